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

#include "maxmargin/dependencies/sentence.hpp"

namespace maxmargin::dependencies {

// Arcs alone: O(n^3).
struct FirstOrder {
    static constexpr std::int64_t kinds = 5;
    enum Kind : std::int64_t { split, right, left, whole_left, whole_right };

    Sentence sentence;

    std::int64_t base() const { return sentence.single_root ? 1 : 0; }
    std::int64_t n_positions() const { return sentence.n + 1 - base(); }
    std::int64_t spans_end() const { return 1 + kinds * Pairs::count(n_positions()); }
    std::int64_t n_items() const { return spans_end() + (sentence.single_root ? sentence.n + 1 : 0); }
    std::int64_t n_parts() const { return sentence.n_parts(); }
    std::int64_t part_of(std::int64_t) const { return NONE; }

    template <class Take>
    void ways(std::int64_t item, Take&& take) const {
        if (item == 0) return take(NONE, NONE, NONE);
        if (item >= spans_end()) return rooted(item - spans_end(), take);
        std::int64_t s, t;
        Pairs::ends((item - 1) / kinds, s, t);
        const std::int64_t own = item - (item - 1) % kinds;
        switch (static_cast<Kind>((item - 1) % kinds)) {
            case split:
                for (std::int64_t q = s; q < t; ++q) take(complete_right(s, q), complete_left(q + 1, t), NONE);
                return;
            case right: return labeled(own + split, s + base(), t + base(), take);
            case left: return labeled(own + split, t + base(), s + base(), take);
            case whole_left:
                if (s + base() == 0) return;
                for (std::int64_t q = s; q < t; ++q) take(complete_left(s, q), at(q, t, left), NONE);
                return;
            case whole_right:
                for (std::int64_t q = s + 1; q <= t; ++q) take(at(s, q, right), complete_right(q, t), NONE);
                return;
        }
    }

   private:
    std::int64_t at(std::int64_t s, std::int64_t t, Kind kind) const {
        return 1 + kinds * Pairs::number(s, t) + kind;
    }
    std::int64_t complete_right(std::int64_t s, std::int64_t t) const { return s == t ? 0 : at(s, t, whole_right); }
    std::int64_t complete_left(std::int64_t s, std::int64_t t) const { return s == t ? 0 : at(s, t, whole_left); }

    // An arc with each of its labels.
    template <class Take>
    void labeled(std::int64_t from, std::int64_t head, std::int64_t modifier, Take&& take) const {
        const std::int64_t part = modifier == 0 ? NONE : sentence.arc(head, modifier);
        if (part == NONE) return;
        for (std::int64_t label = 0; label < sentence.labels; ++label) take(from, NONE, part + label);
    }

    // With one root: a tree of all tokens for each of them at its top, and then the goal.
    template <class Take>
    void rooted(std::int64_t number, Take&& take) const {
        const std::int64_t n = sentence.n;
        if (number < n) return take(complete_left(0, number), complete_right(number, n - 1), NONE);
        for (std::int64_t m = 1; m <= n; ++m) labeled(spans_end() + m - 1, 0, m, take);
    }
};

// Arcs and siblings: O(n^3). A modifier is attached beyond the one before it on its side, or as the first:
//
//     next right, left   what an arc is added to: the arc to the sibling and a split between the two modifiers, or the
//                        tokens next to the head
struct Siblings {
    static constexpr std::int64_t kinds = 7;
    enum Kind : std::int64_t { split, next_right, next_left, right, left, whole_left, whole_right };

    Sentence sentence;

    std::int64_t base() const { return sentence.single_root ? 1 : 0; }
    std::int64_t n_positions() const { return sentence.n + 1 - base(); }
    std::int64_t spans_end() const { return 1 + kinds * Pairs::count(n_positions()); }
    std::int64_t n_items() const { return spans_end() + (sentence.single_root ? sentence.n + 1 : 0); }
    std::int64_t n_parts() const { return sentence.n_parts(); }
    std::int64_t part_of(std::int64_t) const { return NONE; }

    template <class Take>
    void ways(std::int64_t item, Take&& take) const {
        if (item == 0) return take(NONE, NONE, NONE);
        if (item >= spans_end()) return rooted(item - spans_end(), take);
        std::int64_t s, t;
        Pairs::ends((item - 1) / kinds, s, t);
        const std::int64_t own = item - (item - 1) % kinds, head = s + base(), last = t + base();
        const Kind kind = static_cast<Kind>((item - 1) % kinds);
        if (head == 0 && (kind == next_left || kind == left || kind == whole_left)) return;
        switch (kind) {
            case split:
                for (std::int64_t q = s; q < t; ++q) take(complete_right(s, q), complete_left(q + 1, t), NONE);
                return;
            case next_right:
                return sentence.siblings(head, last, [&](std::int64_t d, std::int64_t part) {
                    if (d == 0) take(complete_left(s + 1, t), NONE, part);
                    else take(at(s, s + d, right), at(s + d, t, split), part);
                });
            case next_left:
                return sentence.siblings(last, head, [&](std::int64_t d, std::int64_t part) {
                    if (d == 0) take(complete_right(s, t - 1), NONE, part);
                    else take(at(s, t - d, split), at(t - d, t, left), part);
                });
            case right: return labeled(own + next_right, head, last, take);
            case left: return labeled(own + next_left, last, head, take);
            case whole_left:
                for (std::int64_t q = s; q < t; ++q) take(complete_left(s, q), at(q, t, left), NONE);
                return;
            case whole_right:
                for (std::int64_t q = s + 1; q <= t; ++q) take(at(s, q, right), complete_right(q, t), NONE);
                return;
        }
    }

   private:
    std::int64_t at(std::int64_t s, std::int64_t t, Kind kind) const {
        return 1 + kinds * Pairs::number(s, t) + kind;
    }
    std::int64_t complete_right(std::int64_t s, std::int64_t t) const { return s == t ? 0 : at(s, t, whole_right); }
    std::int64_t complete_left(std::int64_t s, std::int64_t t) const { return s == t ? 0 : at(s, t, whole_left); }

    template <class Take>
    void labeled(std::int64_t from, std::int64_t head, std::int64_t modifier, Take&& take) const {
        const std::int64_t part = sentence.arc(head, modifier);
        if (part == NONE) return;
        for (std::int64_t label = 0; label < sentence.labels; ++label) take(from, NONE, part + label);
    }

    template <class Take>
    void rooted(std::int64_t number, Take&& take) const {
        const std::int64_t n = sentence.n;
        if (number < n)
            return take(complete_left(0, number), complete_right(number, n - 1), sentence.first_sibling(0, number + 1));
        for (std::int64_t m = 1; m <= n; ++m) labeled(spans_end() + m - 1, 0, m, take);
    }
};

// Arcs, grandparents and siblings: O(n^4) (Koo and Collins 2010, model 1). Items of the siblings' system with, for each
// node `above` that lies outside of the span, the head of the span's head; for a split the head of both its ends. The
// root as a head has none above: its items stand in the last place. Labels have items of their own, as they do not
// depend on what is above.
struct Grandparents {
    static constexpr std::int64_t kinds = 7;
    enum Kind : std::int64_t { split, next_right, next_left, right, left, whole_left, whole_right };

    Sentence sentence;

    std::int64_t base() const { return sentence.single_root ? 1 : 0; }
    std::int64_t n_positions() const { return sentence.n + 1 - base(); }
    std::int64_t stride() const { return 2 + kinds * (sentence.n + 1); }
    std::int64_t spans_end() const { return 1 + stride() * Pairs::count(n_positions()); }
    std::int64_t n_items() const { return spans_end() + (sentence.single_root ? sentence.n + 1 : 0); }
    std::int64_t n_parts() const { return sentence.n_parts(); }

    std::int64_t part_of(std::int64_t item) const {
        if (item == 0 || item >= spans_end()) return NONE;
        const std::int64_t place = (item - 1) % stride() - 2;
        if (place < 0) return NONE;
        const auto kind = static_cast<Kind>(place / (sentence.n + 1));
        if (kind != right && kind != left) return NONE;
        const std::int64_t above = place % (sentence.n + 1);
        std::int64_t s, t;
        nodes((item - 1) / stride(), s, t);
        if (s == 0 || (s <= above && above <= t)) return NONE;
        return kind == right ? sentence.grandparent(above, s, t) : sentence.grandparent(above, t, s);
    }

    template <class Take>
    void ways(std::int64_t item, Take&& take) const {
        if (item == 0) return take(NONE, NONE, NONE);
        if (item >= spans_end()) return rooted(item - spans_end(), take);
        const std::int64_t pair = (item - 1) / stride(), place = (item - 1) % stride() - 2;
        const std::int64_t labels = 1 + pair * stride();
        std::int64_t s, t;
        nodes(pair, s, t);
        if (place < 0) return place == -2 ? labeled(NONE, s, t, take) : labeled(NONE, t, s, take);
        const std::int64_t above = place % (sentence.n + 1);
        const auto kind = static_cast<Kind>(place / (sentence.n + 1));
        if (s == 0) {
            if (above != sentence.n || (kind != next_right && kind != right && kind != whole_right)) return;
        } else if (s <= above && above <= t) {
            return;
        }
        switch (kind) {
            case split:
                for (std::int64_t q = s; q < t; ++q)
                    take(complete_right(above, s, q), complete_left(above, q + 1, t), NONE);
                return;
            case next_right:
                return sentence.siblings(s, t, [&](std::int64_t d, std::int64_t part) {
                    if (d == 0) take(complete_left(s, s + 1, t), NONE, part);
                    else take(at(above, s, s + d, right), at(s, s + d, t, split), part);
                });
            case next_left:
                return sentence.siblings(t, s, [&](std::int64_t d, std::int64_t part) {
                    if (d == 0) take(complete_right(t, s, t - 1), NONE, part);
                    else take(at(t, s, t - d, split), at(above, t - d, t, left), part);
                });
            case right: return take(at(above, s, t, next_right), labels, NONE);
            case left: return take(at(above, s, t, next_left), labels + 1, NONE);
            case whole_left:
                for (std::int64_t q = s; q < t; ++q) take(complete_left(t, s, q), at(above, q, t, left), NONE);
                return;
            case whole_right:
                for (std::int64_t q = s + 1; q <= t; ++q)
                    take(at(above, s, q, right), complete_right(s, q, t), NONE);
                return;
        }
    }

   private:
    void nodes(std::int64_t pair, std::int64_t& s, std::int64_t& t) const {
        Pairs::ends(pair, s, t);
        s += base();
        t += base();
    }
    std::int64_t at(std::int64_t above, std::int64_t s, std::int64_t t, Kind kind) const {
        return 1 + stride() * Pairs::number(s - base(), t - base()) + 2 + kind * (sentence.n + 1) + above;
    }
    std::int64_t complete_right(std::int64_t above, std::int64_t s, std::int64_t t) const {
        return s == t ? 0 : at(above, s, t, whole_right);
    }
    std::int64_t complete_left(std::int64_t above, std::int64_t s, std::int64_t t) const {
        return s == t ? 0 : at(above, s, t, whole_left);
    }

    template <class Take>
    void labeled(std::int64_t from, std::int64_t head, std::int64_t modifier, Take&& take) const {
        const std::int64_t part = modifier == 0 ? NONE : sentence.arc(head, modifier);
        if (part == NONE) return;
        for (std::int64_t label = 0; label < sentence.labels; ++label) take(from, NONE, part + label);
    }

    template <class Take>
    void rooted(std::int64_t number, Take&& take) const {
        const std::int64_t n = sentence.n, m = number + 1;
        if (number < n) return take(complete_left(0, 1, m), complete_right(0, m, n), sentence.first_sibling(0, m));
        for (std::int64_t top = 1; top <= n; ++top) labeled(spans_end() + top - 1, 0, top, take);
    }
};

// Listed parts of a batch.
struct ListedArcs {
    std::vector<std::int64_t> offsets;  // of the sentences; empty for all arcs
    std::vector<std::int32_t> ends;     // (head, modifier)
};
struct ListedTriples {
    Extent extent = Extent::none;
    std::vector<std::int64_t> offsets;  // of the sentences, where they are listed
    std::vector<std::int32_t> nodes;    // (grandparent or head, head or sibling, modifier)
};

// A packed batch of sentences.
template <class System_>
class ProjectiveBatch {
   public:
    ProjectiveBatch(std::vector<std::int64_t> tokens, std::int64_t labels, bool single_root, const ListedArcs& arcs,
                    const ListedTriples& siblings, const ListedTriples& grandparents)
        : tokens_(std::move(tokens)), labels_(labels), single_root_(single_root), siblings_(siblings.extent),
          grandparents_(grandparents.extent) {
        const std::size_t n = tokens_.size();
        cells_.assign(n + 1, 0);  // of tables with a cell for each pair of nodes, and one more
        for (std::size_t i = 0; i < n; ++i) cells_[i + 1] = cells_[i] + (tokens_[i] + 1) * (tokens_[i] + 1) + 1;
        if (!arcs.offsets.empty()) list(arcs);
        if (siblings_ == Extent::listed) list(siblings, 0, 1, sibling_first_, sibling_third_);
        if (grandparents_ == Extent::listed) list(grandparents, 1, 0, grandparent_first_, grandparent_third_);
        const std::int64_t blocks = 1 + (siblings_ != Extent::none) + (grandparents_ != Extent::none);
        offsets_.assign(static_cast<std::size_t>(blocks) * (n + 1), 0);
        std::int64_t* at = offsets_.data();
        std::int64_t begin = 0;
        const auto block = [&](auto&& count) {
            at[0] = begin;
            for (std::size_t i = 0; i < n; ++i) at[i + 1] = at[i] + count(i);
            begin = at[n];
            at += n + 1;
        };
        block([&](std::size_t i) {
            return (arcs.offsets.empty() ? tokens_[i] * tokens_[i] : arcs.offsets[i + 1] - arcs.offsets[i]) * labels_;
        });
        if (siblings_ != Extent::none)
            block([&](std::size_t i) {
                return siblings_ == Extent::all ? Sentence::all_siblings(tokens_[i])
                                                : siblings.offsets[i + 1] - siblings.offsets[i];
            });
        if (grandparents_ != Extent::none)
            block([&](std::size_t i) {
                return grandparents_ == Extent::all ? Sentence::all_grandparents(tokens_[i])
                                                    : grandparents.offsets[i + 1] - grandparents.offsets[i];
            });
        sibling_start_ = siblings.offsets;
        grandparent_start_ = grandparents.offsets;
    }

    std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
    hull::Layout layout() const {
        return {1 + (siblings_ != Extent::none) + (grandparents_ != Extent::none), size(), offsets_};
    }
    System_ operator[](std::int64_t i) const {
        const hull::Layout layout = this->layout();
        const auto count = [&](std::int64_t block) { return layout.begin(block, i + 1) - layout.begin(block, i); };
        const bool has_siblings = siblings_ != Extent::none, has_grandparents = grandparents_ != Extent::none;
        return {Sentence{
            tokens_[i], labels_, count(0) / labels_, single_root_,
            arc_table_.empty() ? nullptr : arc_table_.data() + cells_[i], siblings_, grandparents_,
            siblings_ == Extent::listed
                ? Listed{sibling_first_.data() + cells_[i], sibling_third_.data() + sibling_start_[i]}
                : Listed{},
            grandparents_ == Extent::listed
                ? Listed{grandparent_first_.data() + cells_[i], grandparent_third_.data() + grandparent_start_[i]}
                : Listed{},
            has_siblings ? count(1) : 0, has_grandparents ? count(has_siblings ? 2 : 1) : 0}};
    }

   private:
    void list(const ListedArcs& arcs) {
        arc_table_.assign(static_cast<std::size_t>(cells_.back()), static_cast<std::int32_t>(NONE));
        for (std::size_t i = 0; i < tokens_.size(); ++i)
            for (std::int64_t a = arcs.offsets[i]; a < arcs.offsets[i + 1]; ++a)
                arc_table_[cells_[i] + arcs.ends[2 * a + 1] * (tokens_[i] + 1) + arcs.ends[2 * a]] =
                    static_cast<std::int32_t>(a - arcs.offsets[i]);
    }

    // `head` and `other`: at which place of a triple the head stands, and the node that is neither head nor modifier.
    void list(const ListedTriples& triples, int head, int other, std::vector<std::int32_t>& first,
              std::vector<std::int32_t>& third) {
        first.assign(static_cast<std::size_t>(cells_.back()), 0);
        third.resize(triples.nodes.size() / 3);
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            std::int32_t* own = first.data() + cells_[i];
            const std::int64_t n_cells = cells_[i + 1] - cells_[i];
            for (std::int64_t a = triples.offsets[i]; a < triples.offsets[i + 1]; ++a) {
                const std::int32_t* nodes = triples.nodes.data() + 3 * a;
                ++own[nodes[2] * (tokens_[i] + 1) + nodes[head] + 1];
                third[a] = nodes[other];
            }
            for (std::int64_t c = 1; c < n_cells; ++c) own[c] += own[c - 1];
        }
    }

    std::vector<std::int64_t> tokens_, cells_, offsets_, sibling_start_, grandparent_start_;
    std::int64_t labels_;
    bool single_root_;
    Extent siblings_, grandparents_;
    std::vector<std::int32_t> arc_table_, sibling_first_, sibling_third_, grandparent_first_, grandparent_third_;
};

}  // namespace maxmargin::dependencies
