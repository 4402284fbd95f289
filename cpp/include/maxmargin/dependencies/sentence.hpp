// The candidate arcs of a sentence and where their parts stand.
//
// Tokens are 1 .. n, the root is 0. Parts, block after block: arcs (head, modifier) with each label, by modifier, head
// and label; siblings (head, sibling, modifier), two modifiers of a head on the same side with none between them, where
// the head in place of the sibling says that the modifier is the first; grandparents (grandparent, head, modifier). Of
// a block either all parts exist, and their places are computed, or those of a list; an arc that is not listed is
// forbidden, a triple that is not listed has no part.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "maxmargin/deduction/batch.hpp"

namespace maxmargin::dependencies {

using deduction::NONE;

// Which parts a block has.
enum class Extent : std::uint8_t { none, all, listed };

// 1 + 3 + 6 + ..: k terms.
inline std::int64_t tetrahedron(std::int64_t k) { return k * (k + 1) * (k + 2) / 6; }

// Listed triples of one sentence: those of head h and modifier m lie at first[m (n + 1) + h] and after it, by their
// third node: siblings by their distance from the head, grandparents by number.
struct Listed {
    const std::int32_t *first = nullptr, *third = nullptr;
};

struct Sentence {
    std::int64_t n, labels, n_arcs;
    bool single_root;
    const std::int32_t* arc_table;  // the arc of m (n + 1) + h, or NONE; null for all arcs
    Extent sibling_extent, grandparent_extent;
    Listed sibling_list, grandparent_list;
    std::int64_t n_siblings, n_grandparents;

    std::int64_t n_parts() const { return n_arcs * labels + n_siblings + n_grandparents; }

    // The first of the parts of an arc, one for each label, or NONE if it is forbidden.
    std::int64_t arc(std::int64_t head, std::int64_t modifier) const {
        if (!arc_table) return ((modifier - 1) * n + head - (head > modifier)) * labels;
        const std::int64_t found = arc_table[modifier * (n + 1) + head];
        return found == NONE ? NONE : found * labels;
    }

    // Calls take(distance, part) for the siblings of an arc at all distances from the head, from 0, which is none, up
    // to the modifier.
    template <class Take>
    void siblings(std::int64_t head, std::int64_t modifier, Take&& take) const {
        const std::int64_t length = std::abs(head - modifier);
        if (sibling_extent == Extent::all) {
            const std::int64_t begin = n_arcs * labels + siblings_before(n, head, modifier);
            for (std::int64_t d = 0; d < length; ++d) take(d, begin + d);
        } else if (sibling_extent == Extent::none) {
            for (std::int64_t d = 0; d < length; ++d) take(d, NONE);
        } else {
            const std::int64_t row = modifier * (n + 1) + head;
            std::int32_t at = sibling_list.first[row];
            const std::int32_t end = sibling_list.first[row + 1];
            for (std::int64_t d = 0; d < length; ++d) {
                const bool is = at < end && std::abs(sibling_list.third[at] - head) == d;
                take(d, is ? n_arcs * labels + at++ : NONE);
            }
        }
    }

    // The part of an arc whose modifier is the first of its head.
    std::int64_t first_sibling(std::int64_t head, std::int64_t modifier) const {
        if (sibling_extent == Extent::none) return NONE;
        if (sibling_extent == Extent::all) return n_arcs * labels + siblings_before(n, head, modifier);
        const std::int64_t row = modifier * (n + 1) + head;
        const std::int32_t at = sibling_list.first[row];
        return at < sibling_list.first[row + 1] && sibling_list.third[at] == head ? n_arcs * labels + at : NONE;
    }

    // The first of the grandparents of an arc, where all have parts.
    std::int64_t first_grandparent(std::int64_t head, std::int64_t modifier) const {
        return n_arcs * labels + n_siblings + grandparents_before(n, head, modifier);
    }

    std::int64_t grandparent(std::int64_t above, std::int64_t head, std::int64_t modifier) const {
        if (grandparent_extent == Extent::none) return NONE;
        if (grandparent_extent == Extent::all) {
            const std::int64_t low = std::min(head, modifier), high = std::max(head, modifier);
            return first_grandparent(head, modifier) + (above < low ? above : above - (high - low + 1));
        }
        const std::int64_t row = modifier * (n + 1) + head;
        const std::int32_t *from = grandparent_list.third + grandparent_list.first[row],
                           *to = grandparent_list.third + grandparent_list.first[row + 1];
        const std::int32_t* at = std::lower_bound(from, to, above);
        return at < to && *at == above ? n_arcs * labels + n_siblings + (at - grandparent_list.third) : NONE;
    }

    // All siblings of a sentence, and those of arcs before one: |head - modifier| for each arc.
    static std::int64_t all_siblings(std::int64_t n) { return tetrahedron(n) + tetrahedron(n - 1); }
    static std::int64_t siblings_before(std::int64_t n, std::int64_t h, std::int64_t m) {
        const std::int64_t modifiers = tetrahedron(m - 1) + tetrahedron(n - 1) - tetrahedron(n - m);
        if (h < m) return modifiers + h * m - h * (h - 1) / 2;
        return modifiers + m * (m + 1) / 2 + (h - m - 1) * (h - m) / 2;
    }

    // The same for grandparents: arcs from other heads than the root, and nodes that are not from head to modifier.
    static std::int64_t all_grandparents(std::int64_t n) { return n * n * (n - 1) - 2 * tetrahedron(n - 1); }
    static std::int64_t grandparents_before(std::int64_t n, std::int64_t h, std::int64_t m) {
        const std::int64_t modifiers =
            (m - 1) * n * (n - 1) - tetrahedron(m - 2) - tetrahedron(n - 1) + tetrahedron(n - m);
        if (h < m) return modifiers + (h - 1) * (n - m) + (h - 1) * h / 2;
        const std::int64_t k = h - m - 1;
        return modifiers + (m - 1) * (n - m) + (m - 1) * m / 2 + k * n - k * (k + 1) / 2;
    }
};

// Pairs of positions s < t, numbered so that the pairs within [s, t] come before (s, t).
struct Pairs {
    static std::int64_t count(std::int64_t n) { return n * (n - 1) / 2; }
    static std::int64_t number(std::int64_t s, std::int64_t t) { return t * (t - 1) / 2 + (t - 1 - s); }
    static void ends(std::int64_t number, std::int64_t& s, std::int64_t& t) {
        t = static_cast<std::int64_t>((1.0 + std::sqrt(1.0 + 8.0 * static_cast<double>(number))) / 2.0);
        while (t * (t - 1) / 2 > number) --t;
        while (t * (t + 1) / 2 <= number) ++t;
        s = t - 1 - (number - t * (t - 1) / 2);
    }
};

}  // namespace maxmargin::dependencies
