// Projective trees with grandparents and siblings as a deduction system (Koo and Collins 2010, model 1).
#pragma once

#include "maxmargin/base/simd.hpp"
#include "maxmargin/deduction/argmax.hpp"
#include "maxmargin/dependencies/projective.hpp"

namespace maxmargin::dependencies {

// to[j] = max over d of first[d][j] + second[d][j].
MM_CLONES inline void most_of_pairs(std::int64_t count, std::int64_t width, const double* const* first,
                                    const double* const* second, double* MM_RESTRICT to) {
    for (std::int64_t j = 0; j < width; ++j) to[j] = first[0][j] + second[0][j];
    for (std::int64_t d = 1; d < count; ++d) {
        const double *a = first[d], *b = second[d];
        for (std::int64_t j = 0; j < width; ++j) to[j] = std::max(to[j], a[j] + b[j]);
    }
}

// to[j] = max over d of row[d][j] + add[d] + part[d].
MM_CLONES inline void most_of(std::int64_t count, std::int64_t width, const double* const* row, const double* add,
                              const double* part, double* MM_RESTRICT to) {
    for (std::int64_t j = 0; j < width; ++j) to[j] = row[0][j] + add[0] + part[0];
    for (std::int64_t d = 1; d < count; ++d) {
        const double *a = row[d], x = add[d], y = part[d];
        for (std::int64_t j = 0; j < width; ++j) to[j] = std::max(to[j], a[j] + x + y);
    }
}

// Arcs, grandparents and siblings: O(n^4) (Koo and Collins 2010, model 1). Items of the siblings' system with, for each
// node `above` that lies outside of the span, the head of the span's head; for a split the head of both its ends. The
// root as a head has none above: its items stand in the last place. Labels have items of their own, as they do not
// depend on what is above.
struct Grandparents : Spanned {
    std::int64_t n_items() const { return spans_end() + n_rooted(); }

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
                for (std::int64_t q = s + 1; q <= t; ++q) take(at(above, s, q, right), complete_right(s, q, t), NONE);
                return;
        }
    }

    // The best scores of all items: one pass over spans, with vectors over the nodes above.
    void fill(const double* scores, double* best) const {
        const std::int64_t n = sentence.n, n_pairs = Pairs::count(n_positions());
        Rows rows(n);
        best[0] = 0.0;
        for (std::int64_t pair = 0; pair < n_pairs; ++pair) {
            std::int64_t s, t;
            nodes(pair, s, t);
            if (s > 0) fill_span(s, t, 1 + pair * stride(), scores, best, rows);
            else
                for (std::int64_t item = 1 + pair * stride(); item < 1 + (pair + 1) * stride(); ++item)
                    best[item] = deduction::best_of(*this, item, scores, best);
        }
        for (std::int64_t item = spans_end(); item < n_items(); ++item)
            best[item] = deduction::best_of(*this, item, scores, best);
    }

   private:
    // What one item is made of, for all nodes above: rows of scores, and numbers that are added to each of them.
    struct Rows {
        explicit Rows(std::int64_t n)
            : first(static_cast<std::size_t>(n)), second(first), add(first.size()), part(first.size()),
              zeros(static_cast<std::size_t>(n) + 1) {}
        std::vector<const double*> first, second;
        std::vector<double> add, part, zeros;
        const int widest = simd::lanes_in_use();
    };

    void fill_span(std::int64_t s, std::int64_t t, std::int64_t own, const double* scores, double* best,
                   Rows& rows) const {
        const std::int64_t width = sentence.n + 1, length = t - s;
        const auto row = [&](Kind kind) { return best + own + 2 + kind * width; };
        // The row of another span; of a span of one token it is zero, as item 0 is.
        const auto row_of = [&](std::int64_t from, std::int64_t to, Kind kind) -> const double* {
            return from == to ? rows.zeros.data() : best + at(0, from, to, kind);
        };
        const auto close = [&](Kind kind) { std::fill(row(kind) + s, row(kind) + t + 1, deduction::NEG_INF); };
        best[own] = best_label(rows.widest, scores, s, t);
        best[own + 1] = best_label(rows.widest, scores, t, s);

        for (std::int64_t q = s; q < t; ++q) {
            rows.first[q - s] = row_of(s, q, whole_right);
            rows.second[q - s] = row_of(q + 1, t, whole_left);
        }
        most_of_pairs(length, width, rows.first.data(), rows.second.data(), row(split));
        close(split);

        sentence.siblings(s, t, [&](std::int64_t d, std::int64_t part) {
            rows.first[d] = d ? row_of(s, s + d, right) : rows.zeros.data();
            rows.add[d] = d ? best[at(s, s + d, t, split)] : best[complete_left(s, s + 1, t)];
            rows.part[d] = deduction::at(scores, part);
        });
        most_of(length, width, rows.first.data(), rows.add.data(), rows.part.data(), row(next_right));
        close(next_right);
        attach(s, t, best[own], scores, row(next_right), row(right));

        sentence.siblings(t, s, [&](std::int64_t d, std::int64_t part) {
            rows.first[d] = d ? row_of(t - d, t, left) : rows.zeros.data();
            rows.add[d] = d ? best[at(t, s, t - d, split)] : best[complete_right(t, s, t - 1)];
            rows.part[d] = deduction::at(scores, part);
        });
        most_of(length, width, rows.first.data(), rows.add.data(), rows.part.data(), row(next_left));
        close(next_left);
        attach(t, s, best[own + 1], scores, row(next_left), row(left));

        std::fill_n(rows.part.begin(), length, 0.0);
        for (std::int64_t q = s; q < t; ++q) {
            rows.first[q - s] = row_of(q, t, left);
            rows.add[q - s] = best[complete_left(t, s, q)];
        }
        most_of(length, width, rows.first.data(), rows.add.data(), rows.part.data(), row(whole_left));
        close(whole_left);
        for (std::int64_t q = s + 1; q <= t; ++q) {
            rows.first[q - s - 1] = row_of(s, q, right);
            rows.add[q - s - 1] = best[complete_right(s, q, t)];
        }
        most_of(length, width, rows.first.data(), rows.add.data(), rows.part.data(), row(whole_right));
        close(whole_right);
    }

    // Adds an arc, with the score of its best label, and its grandparents.
    void attach(std::int64_t head, std::int64_t modifier, double label, const double* scores, const double* from,
                double* to) const {
        const std::int64_t n = sentence.n, low = std::min(head, modifier), high = std::max(head, modifier);
        for (std::int64_t above = 0; above <= n; ++above) to[above] = from[above] + label;
        if (sentence.grandparent_extent == Extent::none) return;
        if (sentence.grandparent_extent == Extent::all) {
            const std::int64_t begin = sentence.first_grandparent(head, modifier), later = begin - (high - low + 1);
            for (std::int64_t above = 0; above < low; ++above) to[above] += scores[begin + above];
            for (std::int64_t above = high + 1; above <= n; ++above) to[above] += scores[later + above];
            return;
        }
        const Listed& listed = sentence.grandparent_list;
        const std::int64_t row = modifier * (n + 1) + head,
                           begin = sentence.n_arcs * sentence.labels + sentence.n_siblings;
        for (std::int32_t at = listed.first[row]; at < listed.first[row + 1]; ++at)
            to[listed.third[at]] += scores[begin + at];
    }

    enum Kind : std::int64_t { split, next_right, next_left, right, left, whole_left, whole_right };

    std::int64_t stride() const { return 2 + 7 * (sentence.n + 1); }
    std::int64_t spans_end() const { return 1 + stride() * Pairs::count(n_positions()); }
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
    void rooted(std::int64_t number, Take&& take) const {
        const std::int64_t n = sentence.n, m = number + 1;
        if (number < n) return take(complete_left(0, 1, m), complete_right(0, m, n), sentence.first_sibling(0, m));
        for (std::int64_t top = 1; top <= n; ++top) labeled(spans_end() + top - 1, 0, top, take);
    }
};

}  // namespace maxmargin::dependencies
