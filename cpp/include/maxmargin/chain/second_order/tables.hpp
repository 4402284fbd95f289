// Shared by the kernels of second-order chains: constraints, batches, tables of triples and one step along a chain.
//
// A step is K^3 additions and maxima, or products and sums, a vector of labels at a time; up to four chains with the
// same table take it together, and every vector of the table that is read serves them all.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "maxmargin/base/simd.hpp"
#include "maxmargin/chain/tables.hpp"
#include "maxmargin/chain/viterbi.hpp"

namespace maxmargin::second {

using chain::Aligned;
using chain::load_part;
using chain::NEG_INF;
using chain::Over;
using chain::store_part;
using hull::Sparse;
using hull::Status;

using namespace simd;

inline constexpr double NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();

// Which labels may begin and end a sequence, and follow one another: not zero where they may.
struct Constraints {
    std::int64_t n_labels;
    std::span<const std::uint8_t> pairs, first, last;  // K x K, K, K

    bool follows(std::int64_t a, std::int64_t b) const { return pairs[a * n_labels + b] != 0; }
};

// The batch as the kernels see it: scores of nodes one after the other, and tables of every example or of all.
struct Batch {
    Constraints constraints;
    std::span<const std::int64_t> offsets;  // of the nodes, n_examples + 1
    const double *nodes, *pairs, *triples;
    bool shared;  // one pair of tables for all examples

    std::int64_t n_labels() const { return constraints.n_labels; }
    std::int64_t n_examples() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
    std::int64_t length(std::int64_t i) const { return (offsets[i + 1] - offsets[i]) / n_labels(); }
    std::int64_t square() const { return n_labels() * n_labels(); }
    std::int64_t cube() const { return square() * n_labels(); }
    const double* nodes_of(std::int64_t i) const { return nodes + offsets[i]; }
    const double* pairs_of(std::int64_t i) const { return pairs + (shared ? 0 : i * square()); }
    const double* triples_of(std::int64_t i) const { return triples + (shared ? 0 : i * cube()); }
    std::int64_t longest() const {
        std::int64_t most = 0;
        for (std::int64_t i = 0; i < n_examples(); ++i) most = std::max(most, length(i));
        return most;
    }
    // Parts of a packed vector of the batch: all nodes, all pairs, all triples.
    std::int64_t n_parts() const { return offsets.back() + n_examples() * (square() + cube()); }
    std::int64_t pair_parts(std::int64_t i) const { return offsets.back() + i * square(); }
    std::int64_t triple_parts(std::int64_t i) const { return offsets.back() + n_examples() * square() + i * cube(); }
};

// Labels in panels of at most three vectors, so that the running maxima of four chains stay in registers.
struct Shape {
    static constexpr std::int64_t WIDEST = 3, MOST_ROWS = 4;
    int lanes;
    std::int64_t k, padded, height;  // labels, columns of a row and rows of a panel
    std::vector<chain::Panel> panels;

    Shape(std::int64_t n_labels, int width)
        : lanes(width), k(n_labels), padded((k + lanes - 1) / lanes * lanes),
          height((k + MOST_ROWS - 1) / MOST_ROWS * MOST_ROWS), panels(chain::panels_of(k, lanes, WIDEST)) {}
    std::int64_t layer() const { return k * padded; }  // numbers per position
};

enum class Direction { ahead, back };

// For every label b in the middle a matrix in panels. Ahead: rows a that may come before b, columns c, cells
// triples[a][b][c] + pairs[b][c]. Back: rows c that may come after b, columns a, the same cells. Other cells are -inf.
struct Table {
    Shape shape;
    Direction direction;
    Aligned cells;                                      // [middle][panel][row][column of the panel]
    Aligned follow;                                     // [b][c] of allowed pairs, rows of `padded`
    std::vector<std::int32_t> from;                     // [middle][height]: label of each row, times `padded`
    std::vector<std::int64_t> rows;                     // [middle]
    std::vector<std::int64_t> start, step;              // of a column: its first cell, and the cells between two rows
    const double *pairs = nullptr, *triples = nullptr;  // whose table it is
    bool refused = false;

    Table(const Constraints& constraints, int lanes, Direction way = Direction::ahead)
        : shape(constraints.n_labels, lanes), direction(way), from(static_cast<std::size_t>(shape.k * shape.height)),
          rows(static_cast<std::size_t>(shape.k)), start(static_cast<std::size_t>(shape.k)),
          step(static_cast<std::size_t>(shape.k)) {
        cells.resize(shape.k * shape.height * shape.padded);
        follow.resize(shape.k * shape.padded, NEG_INF);
        const std::int64_t k = shape.k;
        for (std::int64_t b = 0; b < k; ++b)
            for (std::int64_t x = 0; x < k; ++x)
                if (way == Direction::ahead ? constraints.follows(x, b) : constraints.follows(b, x))
                    from[b * shape.height + rows[b]++] = static_cast<std::int32_t>(x * shape.padded);
        for (const auto [first, vectors] : shape.panels)
            for (std::int64_t c = first; c < std::min(first + vectors * lanes, k); ++c) {
                start[c] = first * shape.height + c - first;
                step[c] = vectors * lanes;
            }
    }
    const double* middle(std::int64_t b) const { return cells.get() + b * shape.height * shape.padded; }
    double* middle(std::int64_t b) { return cells.get() + b * shape.height * shape.padded; }
    std::int64_t label(std::int64_t b, std::int64_t row) const { return from[b * shape.height + row] / shape.padded; }

    bool holds(const double* p, const double* t) const {
        if (!triples) return false;
        if (p == pairs && t == triples) return true;
        const auto k = static_cast<std::size_t>(shape.k);
        return std::memcmp(p, pairs, sizeof(double) * k * k) == 0 &&
               std::memcmp(t, triples, sizeof(double) * k * k * k) == 0;
    }
};

template <class Vec>
MM_INLINE void pack_at(const Constraints& constraints, const double* MM_RESTRICT pairs,
                       const double* MM_RESTRICT triples, Table& table) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    const Shape& shape = table.shape;
    const std::int64_t k = shape.k;
    table.pairs = pairs;
    table.triples = triples;
    table.refused = refused_at<Vec>(pairs, k * k) || refused_at<Vec>(triples, k * k * k);
    if (table.refused) return;
    double* follow = table.follow.get();
    for (std::int64_t b = 0; b < k; ++b)
        for (std::int64_t c = 0; c < k; ++c)
            follow[b * shape.padded + c] = constraints.follows(b, c) ? pairs[b * k + c] : NEG_INF;
    const bool ahead = table.direction == Direction::ahead;
    for (std::int64_t b = 0; b < k; ++b) {
        double* to = table.middle(b);
        const std::int64_t rows = table.rows[b];
        for (const auto [first, vectors] : shape.panels) {
            const std::int64_t wide = vectors * width;
            for (std::int64_t j = 0; j < rows; ++j) {
                const std::int64_t label = table.label(b, j);
                const double *row = triples + (label * k + b) * k, *own = follow + b * shape.padded;
                if (ahead) {
                    for (std::int64_t v = first; v < first + wide; v += width, to += width)
                        store(to, load_part<Vec>(row + v, k - v, NEG_INF) + load<Vec>(own + v));
                } else {
                    for (std::int64_t a = first; a < first + wide; ++a, ++to)
                        *to = a < k && constraints.follows(a, b) ? triples[(a * k + b) * k + label] + own[label]
                                                                 : NEG_INF;
                }
            }
            const std::int64_t rest = (shape.height - rows) * wide;
            std::fill(to, to + rest, NEG_INF);
            to += rest;
        }
    }
}
MM_LEVELS(pack)

// out[m][c] = max_a (before[m][a] + cells[a][c]) + here[m][c], or sum_a before[m][a] cells[a][c] times here[m][c], over
// one panel of N vectors for M chains; U rows at a time, each with its own running totals, where there are few chains.
// Tables are padded to a multiple of U rows.
template <class Vec, Over over, int M, int N, int U>
MM_INLINE void panel(const double* MM_RESTRICT cells, const std::int32_t* MM_RESTRICT from, std::int64_t rows,
                     const double* const* before, const double* const* here, double* const* out) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    Vec total[U][M][N];
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u)
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m)
#pragma GCC unroll 3
            for (int j = 0; j < N; ++j) total[u][m][j] = Vec{} + chain::nothing<over>;
    for (std::int64_t a = 0; a < rows; a += U) {
#pragma GCC unroll 4
        for (int u = 0; u < U; ++u) {
            const std::int64_t at = from[a + u];
            const double* row = cells + (a + u) * N * width;
#pragma GCC unroll 4
            for (int m = 0; m < M; ++m) {
                const Vec score = before[m][at] - Vec{};  // x - 0 is x for every x: a plain broadcast
#pragma GCC unroll 3
                for (int j = 0; j < N; ++j)
                    total[u][m][j] = chain::with_term<over, Vec>(total[u][m][j], score, load<Vec>(row + j * width));
            }
        }
    }
#pragma GCC unroll 4
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 3
        for (int j = 0; j < N; ++j) {
            Vec all = total[0][m][j];
#pragma GCC unroll 4
            for (int u = 1; u < U; ++u) all = chain::with_total<over, Vec>(all, total[u][m][j]);
            const Vec own = load<Vec>(here[m] + j * width);
            store(out[m] + j * width, over == Over::maxima ? all + own : all * own);
        }
}

// One position further: `now` from `before`, layers of M chains, with a row `here` for each.
template <class Vec, Over over, int M>
MM_INLINE void advance(const Table& table, const double* const* before, const double* const* here, double* const* now) {
    const Shape& shape = table.shape;
    for (std::int64_t b = 0; b < shape.k; ++b) {
        const double* cells = table.middle(b);
        const std::int32_t* from = table.from.data() + b * shape.height;
        const std::int64_t rows = table.rows[b];
        const double *column[M], *row[M];
        double* out[M];
        for (int m = 0; m < M; ++m) {
            column[m] = before[m] + b;
            row[m] = here[m];
            out[m] = now[m] + b * shape.padded;
        }
        for (const auto [first, vectors] : shape.panels) {
            const std::int64_t wide = vectors * simd::lanes<Vec>;
            constexpr int few = M == 1 ? 4 : 1, some = M == 1 ? 2 : 1;
            switch (vectors) {
                case 1: panel<Vec, over, M, 1, few>(cells, from, rows, column, row, out); break;
                case 2: panel<Vec, over, M, 2, some>(cells, from, rows, column, row, out); break;
                default: panel<Vec, over, M, 3, some>(cells, from, rows, column, row, out);
            }
            cells += shape.height * wide;
            for (int m = 0; m < M; ++m) {
                row[m] += wide;
                out[m] += wide;
            }
        }
    }
}

// Node scores of position t, -inf where the label may not stand there.
inline void local_row(const Constraints& constraints, const double* nodes, std::int64_t length, std::int64_t t,
                      double* row) {
    const std::int64_t k = constraints.n_labels;
    const double* own = nodes + t * k;
    std::copy(own, own + k, row);
    if (t == 0)
        for (std::int64_t c = 0; c < k; ++c) row[c] = constraints.first[c] ? row[c] : NEG_INF;
    if (t == length - 1)
        for (std::int64_t c = 0; c < k; ++c) row[c] = constraints.last[c] ? row[c] : NEG_INF;
}

// The layer of the first two positions.
template <class Vec>
MM_INLINE void first_layer(const Constraints& constraints, const Table& table, const double* nodes, std::int64_t length,
                           double* row, double* layer) {
    const Shape& shape = table.shape;
    local_row(constraints, nodes, length, 1, row);
    for (std::int64_t b = 0; b < shape.k; ++b) {
        const double before = constraints.first[b] ? nodes[b] : NEG_INF;
        for (std::int64_t c = 0; c < shape.padded; c += simd::lanes<Vec>)
            store(layer + b * shape.padded + c,
                  load<Vec>(table.follow.get() + b * shape.padded + c) + before + load<Vec>(row + c));
    }
}

}  // namespace maxmargin::second
