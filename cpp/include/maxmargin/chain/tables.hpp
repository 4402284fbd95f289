// Shared by both forms of sum-product on chains: one example and its scratch, parts of vectors, tables in panels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "maxmargin/base/simd_exp.hpp"
#include "maxmargin/chain/viterbi.hpp"

namespace maxmargin::chain {

// The largest exponentials of potentials are 2^FACTOR_BIAS, the largest entries of messages in [1, 2) * 2^MESSAGE_BIAS:
// see chain/sum_product_scaled.hpp.
inline constexpr int FACTOR_BIAS = 420, MESSAGE_BIAS = 150;

// Scratch of one thread. In `row` and in what lies behind the last vector of a row of messages, which a step may read,
// padding stays zero.
struct SumScratch {
    Aligned matrix, other;                     // one matrix in panels, and its transpose where it is shared
    Aligned forward, local, third;             // positions x labels
    Aligned row, sums, weights;                // labels
    std::vector<std::int32_t> labels, counts;  // in the log domain: labels that are kept, and how many per position
    const double* cached = nullptr;            // the pair potentials whose exponentials are in `matrix` and `other`
    double cached_shift = 0.0;

    SumScratch(const Panels& panels, std::int64_t longest, bool shared)
        : labels(static_cast<std::size_t>(longest * panels.n_labels)), counts(static_cast<std::size_t>(longest)) {
        const std::int64_t rows = std::max<std::int64_t>(longest, 1) * panels.padded;
        matrix.resize(panels.padded * panels.padded, 0.0);
        if (shared) other.resize(panels.padded * panels.padded, 0.0);
        forward.resize(rows, 0.0);
        local.resize(rows, 0.0);
        third.resize(rows);
        row.resize(panels.padded, 0.0);
        sums.resize(panels.padded);
        weights.resize(panels.padded);
    }
};

// One example. `edges` is null unless edge marginals are asked for beside the pair sums.
struct Task {
    bool shared;
    std::int64_t length;
    const double* nodes;
    const double* pairs;
    double* node_means;
    double* pair_means;
    double* edges;
};

template <class Vec>
MM_INLINE Vec joined_halves(const Half<Vec>& lower, const Half<Vec>& upper) {
    if constexpr (simd::lanes<Vec> == 8) {
        return __builtin_shufflevector(lower, upper, 0, 1, 2, 3, 4, 5, 6, 7);
    } else if constexpr (simd::lanes<Vec> == 4) {
        return __builtin_shufflevector(lower, upper, 0, 1, 2, 3);
    } else {
        return Vec{lower, upper};
    }
}

// The first n entries of a vector, the rest filled; n may be more than a vector has. In halves, not entry by entry: a
// vector that is read right after its entries were written has to wait for them.
template <class Vec>
MM_INLINE Vec load_part(const double* p, std::int64_t n, double fill) {
    if constexpr (simd::lanes<Vec> == 1) {
        return n > 0 ? *p : fill;
    } else {
        constexpr std::int64_t half = simd::lanes<Vec> / 2;
        if (n >= 2 * half) return load<Vec>(p);
        if (n >= half) return joined_halves<Vec>(load<Half<Vec>>(p), load_part<Half<Vec>>(p + half, n - half, fill));
        return joined_halves<Vec>(load_part<Half<Vec>>(p, n, fill), Half<Vec>{} + fill);
    }
}
template <class Vec>
MM_INLINE void store_part(double* p, const Vec& value, std::int64_t n) {
    if constexpr (simd::lanes<Vec> == 1) {
        if (n > 0) *p = value;
    } else {
        constexpr std::int64_t half = simd::lanes<Vec> / 2;
        if (n >= 2 * half) return store(p, value);
        if (n < half) return store_part<Half<Vec>>(p, lower_half(value), n);
        store(p, lower_half(value));
        store_part<Half<Vec>>(p + half, upper_half(value), n - half);
    }
}

template <class Vec>
MM_INLINE double largest_of(const double* x, std::int64_t n) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    Vec most = load_part<Vec>(x, n, NEG_INF);
    std::int64_t i = width;
    for (; i + width <= n; i += width) most = larger(load<Vec>(x + i), most);
    if (i < n) most = larger(load_part<Vec>(x + i, n - i, NEG_INF), most);
    return largest(most);
}

// A row-major K x K table into panels (see Panels): the numbers themselves padded with -inf or zero, or
// 2^FACTOR_BIAS exp(number - shift) padded with zero.
enum class Pack { logs, plain, exponentials };
template <class Vec, Pack how>
MM_INLINE void pack_table(const Panels& panels, const double* MM_RESTRICT from, double shift, double* MM_RESTRICT to) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    constexpr double outside = how == Pack::plain ? 0.0 : NEG_INF;
    const std::int64_t k = panels.n_labels;
    for (const auto [first, vectors] : panels.list) {
        for (std::int64_t a = 0; a < k; ++a) {
            const double* row = from + a * k + first;
            for (std::int64_t j = 0; j < vectors; ++j, to += width) {
                const Vec x = load_part<Vec>(row + j * width, k - first - j * width, outside);
                if constexpr (how == Pack::exponentials) {
                    store(to, exp_negative<Vec, FACTOR_BIAS>(x - shift));
                } else {
                    store(to, x);
                }
            }
        }
        const std::int64_t rest = (panels.padded - k) * vectors * width;
        std::fill(to, to + rest, how == Pack::logs ? NEG_INF : 0.0);
        to += rest;
    }
}

// The transpose of a matrix in panels, padded with `outside`.
template <class Vec>
MM_INLINE void transpose_at(const Panels& panels, const double* MM_RESTRICT from, double outside,
                            double* MM_RESTRICT to) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    const std::int64_t k = panels.n_labels, padded = panels.padded;
    for (const auto [first, vectors] : panels.list) {
        const std::int64_t wide = vectors * width;
        for (const auto [begin, other_vectors] : panels.list) {
            const double* column = from + padded * begin;
            const std::int64_t high = other_vectors * width;
            for (std::int64_t b = begin; b < std::min(begin + high, k); ++b)
                for (std::int64_t a = 0; a < wide; ++a)
                    to[b * wide + a] = first + a < k ? column[(first + a) * high + b - begin] : outside;
        }
        std::fill(to + k * wide, to + padded * wide, outside);
        to += padded * wide;
    }
}
MM_LEVELS(transpose)

}  // namespace maxmargin::chain
