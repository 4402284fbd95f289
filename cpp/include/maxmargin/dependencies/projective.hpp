// Projective dependency trees as deduction systems (Eisner 1996).
//
// Spans s .. t of positions, which are the tokens, and with several roots also the root, position 0. A node has what is
// left and right of it in two spans; items are, for s < t:
//
//     complete right   s is the head of all tokens of the span, which has all modifiers of the others and of s there
//     complete left    the same with t as the head
//     arc right, left  an arc between s and t, with all modifiers of what lies between, and with none of s or t beyond
//     split            the tokens of a complete right span and of a complete left one beside it
//
// and a complete span of one token is item 0. A tree has exactly one derivation: the last modifier of a head on a side,
// and the place between two trees, are unique. With one root its modifier m is the last thing chosen: a complete left
// span that ends at m, and a complete right one that begins there.
#pragma once

#include <cmath>

#include "maxmargin/base/simd.hpp"
#include "maxmargin/deduction/argmax.hpp"
#include "maxmargin/dependencies/sentence.hpp"

namespace maxmargin::dependencies {

// The largest of some numbers.
template <class Vec>
MM_INLINE double most_at(const double* MM_RESTRICT x, std::int64_t n) {
    using namespace simd;
    Vec found = Vec{} + deduction::NEG_INF;
    std::int64_t j = 0;
    for (; j + lanes<Vec> <= n; j += lanes<Vec>) found = larger(found, load<Vec>(x + j));
    double most = simd::largest(found);
    for (; j < n; ++j) most = x[j] > most ? x[j] : most;
    return most;
}
MM_LEVELS(most)

// What the systems share.
struct Spanned {
    Sentence sentence;

    std::int64_t n_parts() const { return sentence.n_parts(); }

   protected:
    // The node at position 0, and how many positions there are.
    std::int64_t base() const { return sentence.single_root ? 1 : 0; }
    std::int64_t n_positions() const { return sentence.n + 1 - base(); }

    // Beyond the items of spans, with one root: a tree of all tokens for each of them at its top, and the goal.
    std::int64_t n_rooted() const { return sentence.single_root ? sentence.n + 1 : 0; }

    // An arc with each of its labels.
    template <class Take>
    void labeled(std::int64_t from, std::int64_t head, std::int64_t modifier, Take&& take) const {
        const std::int64_t part = modifier == 0 ? NONE : sentence.arc(head, modifier);
        if (part == NONE) return;
        for (std::int64_t label = 0; label < sentence.labels; ++label) take(from, NONE, part + label);
    }

    // The score of its best label.
    double best_label(int widest, const double* scores, std::int64_t head, std::int64_t modifier) const {
        const std::int64_t part = modifier == 0 ? NONE : sentence.arc(head, modifier);
        if (part == NONE) return deduction::NEG_INF;
        return sentence.labels == 1 ? scores[part] : most(widest, scores + part, sentence.labels);
    }
};

// Systems with so many kinds of items for each span; the first is the split, the last four are arcs and complete spans.
// Arcs to the right and left are added to the kinds `from_right` and `from_left`.
template <class System, std::int64_t kinds, std::int64_t from_right, std::int64_t from_left>
struct PlainSpans : Spanned {
    std::int64_t n_items() const { return spans_end() + n_rooted(); }
    std::int64_t part_of(std::int64_t) const { return NONE; }

    // The best scores of all items: those of labels by vectors, others by their ways.
    void fill(const double* scores, double* best) const {
        const auto& system = static_cast<const System&>(*this);
        const int widest = simd::lanes_in_use();
        const auto found = [&](std::int64_t item) { best[item] = deduction::best_of(system, item, scores, best); };
        best[0] = 0.0;
        std::int64_t own = 1;
        for (std::int64_t t = 1; t < n_positions(); ++t)
            for (std::int64_t s = t - 1; s >= 0; --s, own += kinds)
                for (std::int64_t kind = 0; kind < kinds; ++kind)
                    if (kind == right)
                        best[own + right] = best[own + from_right] + best_label(widest, scores, s + base(), t + base());
                    else if (kind == left)
                        best[own + left] = best[own + from_left] + best_label(widest, scores, t + base(), s + base());
                    else found(own + kind);
        for (; own < n_items(); ++own) found(own);
    }

   protected:
    static constexpr std::int64_t split = 0, right = kinds - 4, left = kinds - 3, whole_left = kinds - 2,
                                  whole_right = kinds - 1;

    std::int64_t spans_end() const { return 1 + kinds * Pairs::count(n_positions()); }
    std::int64_t at(std::int64_t s, std::int64_t t, std::int64_t kind) const {
        return 1 + kinds * Pairs::number(s, t) + kind;
    }
    std::int64_t complete_right(std::int64_t s, std::int64_t t) const { return s == t ? 0 : at(s, t, whole_right); }
    std::int64_t complete_left(std::int64_t s, std::int64_t t) const { return s == t ? 0 : at(s, t, whole_left); }

    // The ways of an item of a span but for arcs, which a system adds.
    template <class Take>
    void plain(std::int64_t s, std::int64_t t, std::int64_t kind, Take&& take) const {
        if (kind == split)
            for (std::int64_t q = s; q < t; ++q) take(complete_right(s, q), complete_left(q + 1, t), NONE);
        else if (kind == whole_left && s + base() > 0)
            for (std::int64_t q = s; q < t; ++q) take(complete_left(s, q), at(q, t, left), NONE);
        else if (kind == whole_right)
            for (std::int64_t q = s + 1; q <= t; ++q) take(at(s, q, right), complete_right(q, t), NONE);
    }

    template <class Take>
    void rooted(std::int64_t number, Take&& take) const {
        const std::int64_t n = sentence.n;
        if (number < n)
            return take(complete_left(0, number), complete_right(number, n - 1), sentence.first_sibling(0, number + 1));
        for (std::int64_t m = 1; m <= n; ++m) labeled(spans_end() + m - 1, 0, m, take);
    }
};

// Arcs alone: O(n^3).
struct FirstOrder : PlainSpans<FirstOrder, 5, 0, 0> {
    template <class Take>
    void ways(std::int64_t item, Take&& take) const {
        if (item == 0) return take(NONE, NONE, NONE);
        if (item >= spans_end()) return rooted(item - spans_end(), take);
        std::int64_t s, t;
        Pairs::ends((item - 1) / 5, s, t);
        const std::int64_t kind = (item - 1) % 5;
        if (kind == right) labeled(item - right, s + base(), t + base(), take);
        else if (kind == left) labeled(item - left, t + base(), s + base(), take);
        else plain(s, t, kind, take);
    }
};

// Arcs and siblings: O(n^3). A modifier is attached beyond the one before it on its side, or as the first:
//
//     next right, left   what an arc is added to: the arc to the sibling and a split between the two modifiers, or the
//                        tokens next to the head
struct Siblings : PlainSpans<Siblings, 7, 1, 2> {
    template <class Take>
    void ways(std::int64_t item, Take&& take) const {
        if (item == 0) return take(NONE, NONE, NONE);
        if (item >= spans_end()) return rooted(item - spans_end(), take);
        std::int64_t s, t;
        Pairs::ends((item - 1) / 7, s, t);
        const std::int64_t kind = (item - 1) % 7, first = s + base(), last = t + base();
        if (kind == right) labeled(item - right + next_right, first, last, take);
        else if (kind == left) labeled(item - left + next_left, last, first, take);
        else if (kind == next_right)
            sentence.siblings(first, last, [&](std::int64_t d, std::int64_t part) {
                if (d == 0) take(complete_left(s + 1, t), NONE, part);
                else take(at(s, s + d, right), at(s + d, t, split), part);
            });
        else if (kind == next_left && first > 0)
            sentence.siblings(last, first, [&](std::int64_t d, std::int64_t part) {
                if (d == 0) take(complete_right(s, t - 1), NONE, part);
                else take(at(s, t - d, split), at(t - d, t, left), part);
            });
        else plain(s, t, kind, take);
    }

   private:
    static constexpr std::int64_t next_right = 1, next_left = 2;
};

}  // namespace maxmargin::dependencies
