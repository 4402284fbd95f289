// Sum-product on chains in scaled probabilities. With e_t = exp(node_t - max), M = exp(pair - max), both times 2^420,
// and powers of two that bring the largest entry of every message into [2^150, 2^151),
//
//     alpha_t = 2^. (alpha_{t-1}' M) * e_t,    s_t = M nb_t,    c_t = alpha_{t-1}'s_t,    nb_{t-1} = 2^. e_{t-1} * s_t,
//     node marginals (t-1) = alpha_{t-1} * s_t / c_t,    edge marginals t = (alpha_{t-1} / c_t) x nb_t * M.
//
// Sums over the edges of one matrix are one matrix product, multiplied by M once at the end: 3 T K^2 multiply-adds per
// example and T K + K^2 exponentials, without the K^2 where the example before had the same matrix.
//
// Numbers below 3e-308 are lost (flushed to zero, see FlushToZero). Whether that matters is checked afterwards.
// Let p be the smallest peak, the largest entry of a message before it is scaled, which is at most 2^990 K. Counting
// all in units of the bias, M and e_t lose entries below 6e-435, so a message, divided by its peak, loses 2e-434 K / p
// at most, and 2e-353 by its scaling. c_t, the total probability in the scale of edge t, loses 4 K^2 times as much, and
// 1e-17 of itself at most if c_t p >= 1e-416 K^3 and c_t >= 1e-335 K^2. Without units (2^720 of c_t, 2^990 of p) these
// are the conditions below; where one fails, the example is computed in the log domain. Potentials of a normal
// distribution may have a standard deviation of about 120 before that happens.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numbers>

#include "maxmargin/chain/tables.hpp"

namespace maxmargin::chain {

static_assert(FACTOR_BIAS == 420 && MESSAGE_BIAS == 150);
inline constexpr double LEAST_PEAK = 1e-100, LEAST_TOTAL = 6e-119, LEAST_PRODUCT = 6e98;

// means[a][b] = matrix[a][b] sum_{t < edges} left[t][a] right[t][b] for U rows of one panel, the sums in registers.
template <class Vec, int N, int U>
MM_INLINE void panel_products(std::int64_t edges, std::int64_t padded, const double* MM_RESTRICT left,
                              const double* MM_RESTRICT right, const double* MM_RESTRICT matrix, std::int64_t rows,
                              std::int64_t k, std::int64_t columns, double* MM_RESTRICT means) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    Vec sum[U][N];
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u)
#pragma GCC unroll 6
        for (int j = 0; j < N; ++j) sum[u][j] = Vec{};
    for (std::int64_t t = 0; t < edges; ++t) {
#pragma GCC unroll 6
        for (int j = 0; j < N; ++j) {
            const Vec there = load<Vec>(right + t * padded + j * width);
#pragma GCC unroll 4
            for (int u = 0; u < U; ++u) sum[u][j] += left[t * padded + u] * there;
        }
    }
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u) {
        if (u >= rows) break;
#pragma GCC unroll 6
        for (int j = 0; j < N; ++j)
            store_part<Vec>(means + u * k + j * width, sum[u][j] * load<Vec>(matrix + (u * N + j) * width),
                            columns - j * width);
    }
}

template <class Vec>
MM_INLINE void pair_sums(const Panels& panels, std::int64_t edges, const double* left, const double* right,
                         const double* matrix, double* means) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    constexpr int U = width == 8 ? 4 : 2;  // there are 32 registers of 8 numbers, 16 of fewer
    const std::int64_t k = panels.n_labels, padded = panels.padded;
    for (const auto [first, vectors] : panels.list) {
        for (std::int64_t a = 0; a < k; a += U) {
            const double *l = left + a, *r = right + first, *m = matrix + a * vectors * width;
            double* to = means + a * k + first;
            switch (vectors) {
                case 1: panel_products<Vec, 1, U>(edges, padded, l, r, m, k - a, k, k - first, to); break;
                case 2: panel_products<Vec, 2, U>(edges, padded, l, r, m, k - a, k, k - first, to); break;
                case 3: panel_products<Vec, 3, U>(edges, padded, l, r, m, k - a, k, k - first, to); break;
                case 4: panel_products<Vec, 4, U>(edges, padded, l, r, m, k - a, k, k - first, to); break;
                case 5: panel_products<Vec, 5, U>(edges, padded, l, r, m, k - a, k, k - first, to); break;
                default: panel_products<Vec, 6, U>(edges, padded, l, r, m, k - a, k, k - first, to); break;
            }
        }
        matrix += padded * vectors * width;
    }
}

// The power of two that brings a number above LEAST_PEAK into [1, 2) * 2^MESSAGE_BIAS; its inverse goes to `exponent`.
MM_INLINE double scale_of(double most, std::int64_t& exponent) {
    const auto e = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(most) >> 52) - 1023 - MESSAGE_BIAS;
    exponent += e;
    return std::bit_cast<double>(static_cast<std::uint64_t>(1023 - e) << 52);
}

// x *= factor, and then a power of two so that the largest entry is in [1, 2) * 2^MESSAGE_BIAS. False where the
// largest was too small; the smallest of them so far in `least`.
template <class Vec>
MM_INLINE bool multiply_and_scale(double* MM_RESTRICT x, const double* MM_RESTRICT factor, std::int64_t n,
                                  double& least, std::int64_t& exponent) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    Vec most = Vec{};
    for (std::int64_t i = 0; i < n; i += width) {
        const Vec product = load<Vec>(x + i) * load<Vec>(factor + i);
        store(x + i, product);
        most = larger(product, most);
    }
    const double peak = largest(most);
    if (!(peak >= LEAST_PEAK)) return false;
    least = std::min(least, peak);
    const double scale = scale_of(peak, exponent);
    for (std::int64_t i = 0; i < n; i += width) store(x + i, load<Vec>(x + i) * scale);
    return true;
}

// 2^FACTOR_BIAS times the exponentials of node potentials, the largest of each position taken out; the sum of those
// goes to `shifts`.
template <class Vec>
MM_INLINE void local_factors(const Panels& panels, std::int64_t length, const double* nodes, double* local,
                             double& shifts) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    const std::int64_t k = panels.n_labels;
    for (std::int64_t t = 0; t < length; ++t, nodes += k, local += panels.padded) {
        const double most = largest_of<Vec>(nodes, k);
        shifts += most;
        for (std::int64_t b = 0; b < k; b += width)
            store(local + b, exp_negative<Vec, FACTOR_BIAS>(load_part<Vec>(nodes + b, k - b, NEG_INF) - most));
    }
}

// 2^FACTOR_BIAS exp(x - largest) of a table of any size into `to`; returns the largest.
template <class Vec>
MM_INLINE double exponentials(const double* MM_RESTRICT x, std::int64_t n, double* MM_RESTRICT to) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    const double most = largest_of<Vec>(x, n);
    for (std::int64_t i = 0; i < n; i += width)
        store_part<Vec>(to + i, exp_negative<Vec, FACTOR_BIAS>(load_part<Vec>(x + i, n - i, NEG_INF) - most), n - i);
    return most;
}

// out[a] = sum_b table[a][b] right[b], the table row-major and unpadded.
template <class Vec>
MM_INLINE void row_products(std::int64_t k, const double* MM_RESTRICT table, const double* MM_RESTRICT right,
                            double* MM_RESTRICT out) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    for (std::int64_t a = 0; a < k; ++a) {
        const double* row = table + a * k;
        Vec sum = Vec{};
        std::int64_t b = 0;
        for (; b + width <= k; b += width) sum += load<Vec>(row + b) * load<Vec>(right + b);
        if (b < k) sum += load_part<Vec>(row + b, k - b, 0.0) * load<Vec>(right + b);
        out[a] = total(sum);
    }
}

// to[a][b] = left[a] from[a][b] right[b] on row-major unpadded tables, which may be the same one.
template <class Vec>
MM_INLINE void edge_table(std::int64_t k, const double* left, const double* right, const double* from, double* to) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    for (std::int64_t a = 0; a < k; ++a)
        for (std::int64_t b = 0; b < k; b += width) {
            const Vec product = load_part<Vec>(from + a * k + b, k - b, 0.0) * load<Vec>(right + b);
            store_part<Vec>(to + a * k + b, left[a] * product, k - b);
        }
}

// The same from a matrix in panels.
template <class Vec>
MM_INLINE void edge_table_of(const Panels& panels, const double* left, const double* right, const double* matrix,
                             double* to) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    const std::int64_t k = panels.n_labels;
    for (const auto [first, vectors] : panels.list) {
        const std::int64_t wide = vectors * width;
        for (std::int64_t a = 0; a < k; ++a)
            for (std::int64_t b = 0; b < std::min(wide, k - first); b += width) {
                const Vec product = load<Vec>(matrix + a * wide + b) * load<Vec>(right + first + b);
                store_part<Vec>(to + a * k + first + b, left[a] * product, k - first - b);
            }
        matrix += panels.padded * wide;
    }
}

// Forward-backward in probabilities; false where an underflow might show.
template <class Vec>
MM_INLINE bool scaled(const Panels& panels, const Task& task, SumScratch& scratch, double& value) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    const std::int64_t k = panels.n_labels, square = k * k, padded = panels.padded, length = task.length;
    const std::int64_t used = (k + width - 1) / width * width;
    double *forward = scratch.forward.get(), *local = scratch.local.get(), *row = scratch.row.get();
    double *matrix = scratch.matrix.get(), *other = scratch.other.get();

    double shifts = 0.0;
    if (task.shared && length > 1) {
        const std::size_t bytes = sizeof(double) * static_cast<std::size_t>(square);
        if (scratch.cached == nullptr || std::memcmp(scratch.cached, task.pairs, bytes) != 0) {
            scratch.cached_shift = largest_of<Vec>(task.pairs, square);
            pack_table<Vec, Pack::exponentials>(panels, task.pairs, scratch.cached_shift, matrix);
            transpose_at<Vec>(panels, matrix, 0.0, other);
        }
        scratch.cached = task.pairs;
        shifts = static_cast<double>(length - 1) * scratch.cached_shift;
    }
    local_factors<Vec>(panels, length, task.nodes, local, shifts);
    if (!std::isfinite(shifts)) return false;

    const double labels = static_cast<double>(k), least_total = LEAST_TOTAL * labels * labels;
    const double least_product = LEAST_PRODUCT * labels * labels * labels;
    double least = std::numeric_limits<double>::max();
    std::int64_t exponent = -2 * FACTOR_BIAS * (length - 1), ignored = 0;  // of the messages in units of the bias
    constexpr double to_message = 0x1p-270;
    for (std::int64_t b = 0; b < used; b += width) store(forward + b, load<Vec>(local + b) * to_message);
    for (std::int64_t t = 1; t < length; ++t) {
        if (!task.shared) {
            double* factors = task.pair_means + (t - 1) * square;
            shifts += exponentials<Vec>(task.pairs + (t - 1) * square, square, factors);
            if (!std::isfinite(shifts)) return false;
            pack_table<Vec, Pack::plain>(panels, factors, 0.0, matrix);
        }
        double* now = forward + t * padded;
        step<Vec, Over::sums>(panels, now - padded, matrix, now);
        if (!multiply_and_scale<Vec>(now, local + t * padded, used, least, exponent)) return false;
    }

    double* last = forward + (length - 1) * padded;
    Vec sum = Vec{};
    for (std::int64_t b = 0; b < used; b += width) sum += load<Vec>(last + b);
    const double all = total(sum);
    for (std::int64_t b = 0; b < k; b += width)
        store_part<Vec>(task.node_means + (length - 1) * k + b, load<Vec>(last + b) * (1.0 / all), k - b);
    value = shifts + (static_cast<double>(exponent) * std::numbers::ln2 + std::log(all * 0x1p-150));

    double* end = local + (length - 1) * padded;
    for (std::int64_t b = 0; b < used; b += width) store(end + b, load<Vec>(end + b) * to_message);
    for (std::int64_t t = length - 1; t > 0; --t) {
        const double* ahead = local + t * padded;  // nb_t
        double* alpha = forward + (t - 1) * padded;
        double* table = task.pair_means + (t - 1) * square;
        if (task.shared) {
            step<Vec, Over::sums>(panels, ahead, other, row);
        } else {
            row_products<Vec>(k, table, ahead, row);
        }
        Vec dot = Vec{};
        for (std::int64_t a = 0; a < used; a += width) dot += load<Vec>(alpha + a) * load<Vec>(row + a);
        const double c = total(dot);
        if (!(c >= least_total && c * least >= least_product)) return false;
        const double inverse = 1.0 / c;
        double* means = task.node_means + (t - 1) * k;
        for (std::int64_t a = 0; a < used; a += width) {
            const Vec left = load<Vec>(alpha + a) * inverse;
            store(alpha + a, left);
            store_part<Vec>(means + a, left * load<Vec>(row + a), k - a);
        }
        if (!task.shared) edge_table<Vec>(k, alpha, ahead, table, table);
        if (t > 1 && !multiply_and_scale<Vec>(local + (t - 1) * padded, row, used, least, ignored)) return false;
    }
    if (task.shared && length > 1) {
        pair_sums<Vec>(panels, length - 1, forward, local + padded, matrix, task.pair_means);
        if (task.edges)
            for (std::int64_t t = 1; t < length; ++t)
                edge_table_of<Vec>(panels, forward + (t - 1) * padded, local + t * padded, matrix,
                                   task.edges + (t - 1) * square);
    }
    return true;
}

}  // namespace maxmargin::chain
