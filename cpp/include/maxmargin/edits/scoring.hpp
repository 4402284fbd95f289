// Scores of the best alignments of many pairs of sequences, from tables of symbols: no parts, no back-trace.
//
// As many pairs as a vector has lanes are aligned side by side, so the recursions of edits/system.hpp need no
// dependence between lanes; pairs of similar lengths go together. Every lane does the same operations whatever the
// others hold: results have the same bits for any width of vectors, number of threads and order of pairs.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "maxmargin/base/parallel.hpp"
#include "maxmargin/base/scratch.hpp"
#include "maxmargin/base/simd.hpp"

namespace maxmargin::edits {

// Sequences one after the other. A symbol has a row of the tables; symbols that are not known share rows and are told
// apart by their identity.
struct Sequences {
    std::span<const std::int64_t> offsets;
    std::span<const std::int32_t> rows, identities;

    std::int64_t length(std::int64_t s) const { return offsets[s + 1] - offsets[s]; }
};

// Scores by rows of the tables. Tables of gaps are R x R for each side: `before` by the rows of the symbol before and
// of the symbol itself, `after` by those of the symbol itself and of the one after; beyond the ends lies the row R - 1.
struct Tables {
    std::int64_t rows, known;       // rows from `known` on belong to symbols that are not known
    std::span<const double> pairs;  // R x R
    std::span<const double> equal;  // R: of two equal symbols of a row
    std::span<const double> gap_before, gap_after, open_before, open_after;  // 2 x R x R
    std::array<double, 4> ends;  // more for a pair of first symbols that are equal, that differ; of last symbols
};

// The tables of gaps and openings of one side, next to each other: pairs (gap, opening).
struct Gaps {
    std::vector<double> before, after;  // R x R x 2

    Gaps(const Tables& tables, int side) {
        const auto square = static_cast<std::size_t>(tables.rows * tables.rows), start = side * square;
        before.resize(2 * square), after.resize(2 * square);
        for (std::size_t at = 0; at < square; ++at) {
            before[2 * at] = tables.gap_before[start + at], before[2 * at + 1] = tables.open_before[start + at];
            after[2 * at] = tables.gap_after[start + at], after[2 * at + 1] = tables.open_after[start + at];
        }
    }

    // Of the symbol at place p of a sequence that begins at `begin` and ends before `end`.
    MM_INLINE void get(const std::int32_t* rows, std::int64_t p, std::int64_t begin, std::int64_t end, std::int64_t R,
                       double& gap, double& open) const {
        const std::int64_t own = rows[p], left = p > begin ? rows[p - 1] : R - 1,
                           right = p + 1 < end ? rows[p + 1] : R - 1;
        const double *b = before.data() + 2 * (left * R + own), *a = after.data() + 2 * (own * R + right);
        gap = b[0] + a[0], open = b[1] + a[1];
    }
};

// One vector of pairs, and the memory that it needs.
struct Lanes {
    static constexpr std::int64_t most = 8;
    std::int64_t first[most], second[most];  // the sequences of each lane
    double score[most];
    std::vector<double> memory;
    std::vector<std::int32_t> right;
};

// Aligns the pairs of `lanes`.
template <class Vec>
MM_INLINE void align_at(const Sequences* all, const Tables* tables, const Gaps* deletions, const Gaps* insertions,
                        Lanes* lanes) {
    constexpr std::int64_t L = simd::lanes<Vec>;
    constexpr double never = -std::numeric_limits<double>::infinity();
    std::int64_t n = 0, m = 0, R = tables->rows;
    std::int64_t rows[L], columns[L], left[L], right[L];
    for (std::int64_t l = 0; l < L; ++l) {
        left[l] = all->offsets[lanes->first[l]], right[l] = all->offsets[lanes->second[l]];
        rows[l] = all->length(lanes->first[l]), columns[l] = all->length(lanes->second[l]);
        n = std::max(n, rows[l]), m = std::max(m, columns[l]);
    }
    at_least(lanes->memory, static_cast<std::size_t>((6 * (m + 1)) * L));
    at_least(lanes->right, static_cast<std::size_t>((m + 1) * L));
    double *paired = lanes->memory.data(), *deleted = paired + (m + 1) * L, *best = deleted + (m + 1) * L,
           *gap = best + (m + 1) * L, *open = gap + (m + 1) * L, *pair = open + (m + 1) * L;
    std::int32_t* symbol = lanes->right.data();
    for (std::int64_t j = 1; j <= m; ++j) {
        for (std::int64_t l = 0; l < L; ++l) {
            const bool inside = j <= columns[l];
            const std::int64_t p = right[l] + j - 1;
            symbol[j * L + l] = inside ? all->rows[p] : 0;
            gap[j * L + l] = open[j * L + l] = 0.0;
            if (inside)
                insertions->get(all->rows.data(), p, right[l], right[l] + columns[l], R, gap[j * L + l],
                                open[j * L + l]);
        }
    }
    const Vec none = Vec{} + never;
    // The empty beginning of the first sequence.
    Vec inserted = none, before = Vec{};
    simd::store(paired, before), simd::store(deleted, none), simd::store(best, before);
    for (std::int64_t j = 1; j <= m; ++j) {
        inserted = simd::load<Vec>(gap + j * L) + simd::larger<Vec>(before + simd::load<Vec>(open + j * L), inserted);
        before = none;
        simd::store(paired + j * L, none), simd::store(deleted + j * L, none), simd::store(best + j * L, inserted);
    }
    for (std::int64_t l = 0; l < L; ++l)
        if (rows[l] == 0) lanes->score[l] = best[columns[l] * L + l];
    for (std::int64_t i = 1; i <= n; ++i) {
        double edge_gap[L] = {}, edge_open[L] = {};
        const double* table[L];
        for (std::int64_t l = 0; l < L; ++l) {
            const bool inside = i <= rows[l];
            const std::int64_t p = left[l] + i - 1;
            table[l] = tables->pairs.data() + (inside ? all->rows[p] * R : 0);
            if (inside) deletions->get(all->rows.data(), p, left[l], left[l] + rows[l], R, edge_gap[l], edge_open[l]);
        }
        const Vec own_gap = simd::load<Vec>(edge_gap), own_open = simd::load<Vec>(edge_open);
        for (std::int64_t j = 1; j <= m; ++j)
            for (std::int64_t l = 0; l < L; ++l) pair[j * L + l] = table[l][symbol[j * L + l]];
        for (std::int64_t l = 0; l < L; ++l) {
            if (i > rows[l]) continue;
            const std::int64_t p = left[l] + i - 1, row = all->rows[p];
            if (row >= tables->known)
                for (std::int64_t j = 1; j <= columns[l]; ++j)
                    if (all->identities[p] == all->identities[right[l] + j - 1]) pair[j * L + l] = tables->equal[row];
            if (!columns[l]) continue;
            if (i == 1) pair[L + l] += tables->ends[all->identities[p] != all->identities[right[l]]];
            if (i == rows[l])
                pair[columns[l] * L + l] +=
                    tables->ends[2 + (all->identities[p] != all->identities[right[l] + columns[l] - 1])];
        }
        Vec corner = simd::load<Vec>(best);  // the best of the row above, one column to the left
        Vec down = own_gap + simd::larger<Vec>(simd::load<Vec>(paired) + own_open, simd::load<Vec>(deleted));
        inserted = none, before = down;
        simd::store(paired, none), simd::store(deleted, down), simd::store(best, down);
        for (std::int64_t j = 1; j <= m; ++j) {
            const std::int64_t at = j * L;
            down = own_gap + simd::larger<Vec>(simd::load<Vec>(paired + at) + own_open, simd::load<Vec>(deleted + at));
            const Vec match = corner + simd::load<Vec>(pair + at);
            inserted = simd::load<Vec>(gap + at) + simd::larger<Vec>(before + simd::load<Vec>(open + at), inserted);
            corner = simd::load<Vec>(best + at);
            before = simd::larger<Vec>(match, down);
            simd::store(paired + at, match), simd::store(deleted + at, down);
            simd::store(best + at, simd::larger<Vec>(before, inserted));
        }
        for (std::int64_t l = 0; l < L; ++l)
            if (rows[l] == i) lanes->score[l] = best[columns[l] * L + l];
    }
}
MM_LEVELS(align)

// out[p] is the score of the best alignment of sequences first[p] and second[p].
inline void best_scores(const Sequences& all, const Tables& tables, std::span<const std::int64_t> first,
                        std::span<const std::int64_t> second, std::span<double> out, int threads) {
    constexpr std::int64_t block = 2048;
    struct Scratch {
        Lanes lanes;
        std::vector<std::int64_t> order, other;
        std::vector<std::int64_t> count;
    };
    const Gaps deletions(tables, 0), insertions(tables, 1);
    const int width = simd::lanes_in_use();
    std::vector<Scratch> scratch(static_cast<std::size_t>(std::max(threads, 1)));
    const auto body = [&](int thread, std::int64_t begin, std::int64_t end) {
        auto& [lanes, order, other, count] = scratch[static_cast<std::size_t>(thread)];
        // By lengths of the first, then of the second sequence, as far as they differ below 256.
        order.resize(static_cast<std::size_t>(end - begin));
        other.resize(order.size());
        for (std::int64_t p = begin; p < end; ++p) other[p - begin] = p;
        for (const auto& side : {second, first}) {
            const auto key = [&](std::int64_t p) { return std::min<std::int64_t>(all.length(side[p]), 255); };
            count.assign(257, 0);
            for (const std::int64_t p : other) ++count[key(p) + 1];
            for (std::size_t c = 1; c < count.size(); ++c) count[c] += count[c - 1];
            for (const std::int64_t p : other) order[count[key(p)]++] = p;
            std::swap(order, other);
        }
        for (std::int64_t at = 0; at < end - begin; at += width) {
            for (int l = 0; l < width; ++l) {
                const std::int64_t p = other[std::min<std::int64_t>(at + l, end - begin - 1)];
                lanes.first[l] = first[p], lanes.second[l] = second[p];
            }
            align(width, &all, &tables, &deletions, &insertions, &lanes);
            for (int l = 0; l < width && at + l < end - begin; ++l) out[other[at + l]] = lanes.score[l];
        }
    };
    parallel_blocks(static_cast<std::int64_t>(first.size()), block, threads, body);
}

}  // namespace maxmargin::edits
