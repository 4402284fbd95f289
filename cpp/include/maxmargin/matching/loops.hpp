// The loops over vectors of doubles inside the matching projection. Rows are padded to a multiple of four numbers.
#pragma once

#include <cstdint>

#include "maxmargin/base/simd.hpp"

namespace maxmargin::matching {

// Reductions in the loops below may be reordered, so that they become vectors.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3", "associative-math", "no-signed-zeros", "no-trapping-math", "finite-math-only")
#endif

// At duals (alpha, beta): z, sums and support counts of rows and columns; returns sum phi. `ld` is a multiple of 4.
// Where every capacity is 1 the upper clip is idle, and `clipped` leaves it out.
template <bool clipped>
MM_INLINE double evaluate(const double* MM_RESTRICT target, std::int64_t rows, std::int64_t ld,
                          const double* MM_RESTRICT alpha, const double* MM_RESTRICT beta, double* MM_RESTRICT z,
                          double* MM_RESTRICT row_sum, double* MM_RESTRICT row_count, double* MM_RESTRICT col_sum,
                          double* MM_RESTRICT col_count) {
    double phi = 0;
    for (std::int64_t k = 0; k < ld; ++k) col_sum[k] = col_count[k] = 0;
    for (std::int64_t j = 0; j < rows; ++j) {
        const double* MM_RESTRICT a = target + j * ld;
        double* MM_RESTRICT zj = z + j * ld;
        const double shift = alpha[j];
        double sum = 0, count = 0;
        for (std::int64_t k = 0; k < ld; ++k) {
            const double t = a[k] - shift - beta[k];
            const double low = t > 0 ? t : 0;
            double value = low, in = t > 0 ? 1.0 : 0.0;
            if constexpr (clipped) {
                value = low < 1 ? low : 1;
                in -= t >= 1 ? 1.0 : 0.0;
            }
            zj[k] = value;
            sum += value;
            count += in;
            phi += clipped ? value * (low - 0.5 * value) : 0.5 * value * value;
            col_sum[k] += value;
            col_count[k] += in;
        }
        row_sum[j] = sum;
        row_count[j] = count;
    }
    return phi;
}

static MM_CLONES double evaluate_unit(const double* target, std::int64_t rows, std::int64_t ld, const double* alpha,
                                      const double* beta, double* z, double* row_sum, double* row_count,
                                      double* col_sum, double* col_count) {
    return evaluate<false>(target, rows, ld, alpha, beta, z, row_sum, row_count, col_sum, col_count);
}

static MM_CLONES double evaluate_clip(const double* target, std::int64_t rows, std::int64_t ld, const double* alpha,
                                      const double* beta, double* z, double* row_sum, double* row_count,
                                      double* col_sum, double* col_count) {
    return evaluate<true>(target, rows, ld, alpha, beta, z, row_sum, row_count, col_sum, col_count);
}

// Sum and support count of clip(t - shift, 0, top).
static MM_CLONES void shifted(const double* MM_RESTRICT t, std::int64_t n, double shift, double top, double* sum_out,
                              double* count_out) {
    double sum = 0, count = 0;
    for (std::int64_t k = 0; k < n; ++k) {
        const double d = t[k] - shift;
        const double low = d > 0 ? d : 0;
        sum += low < top ? low : top;
        count += (d > 0 ? 1.0 : 0.0) - (d >= top ? 1.0 : 0.0);
    }
    *sum_out = sum;
    *count_out = count;
}

static MM_CLONES double largest(const double* t, std::int64_t n) {
    double best = -1e308;
    for (std::int64_t k = 0; k < n; ++k) best = t[k] > best ? t[k] : best;
    return best;
}

// out = min(in, 1) * factor
static MM_CLONES void scale_into(const double* MM_RESTRICT in, std::int64_t n, double factor, double* MM_RESTRICT out) {
    for (std::int64_t e = 0; e < n; ++e) out[e] = (in[e] < 1 ? in[e] : 1) * factor;
}

static MM_CLONES double squared_distance(const double* MM_RESTRICT one, const double* MM_RESTRICT two, std::int64_t n) {
    double total = 0;
    for (std::int64_t e = 0; e < n; ++e) total += (one[e] - two[e]) * (one[e] - two[e]);
    return total;
}

// sum capacity x and the residual max |min(x, capacity - sum)|.
static MM_CLONES void summarize(const double* MM_RESTRICT x, const double* MM_RESTRICT sum,
                                const double* MM_RESTRICT capacity, std::int64_t n, double* total, double* residual) {
    double product = 0, worst = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        const double slack = capacity[i] - sum[i];
        const double least = x[i] < slack ? x[i] : slack;
        const double size = least < 0 ? -least : least;
        worst = size > worst ? size : worst;
        product += capacity[i] * x[i];
    }
    *total = product;
    *residual = worst;
}

// Half a diagonal Newton step.
static MM_CLONES void half_step(double* MM_RESTRICT x, const double* MM_RESTRICT sum, const double* MM_RESTRICT count,
                                const double* MM_RESTRICT capacity, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
        const double curvature = count[i] > 1 ? count[i] : 1;
        const double next = x[i] + 0.5 * (sum[i] - capacity[i]) / curvature;
        x[i] = next > 0 ? next : 0;
    }
}

// trial = max(0, x + t d); returns gradient'(trial - x).
static MM_CLONES double step_along(const double* MM_RESTRICT x, const double* MM_RESTRICT d, double t,
                                   const double* MM_RESTRICT sum, const double* MM_RESTRICT capacity, std::int64_t n,
                                   double* MM_RESTRICT trial) {
    double expected = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        const double moved = x[i] + t * d[i];
        const double next = moved > 0 ? moved : 0;
        expected += (capacity[i] - sum[i]) * (next - x[i]);
        trial[i] = next;
    }
    return expected;
}

// Solves S y = b by elimination in the upper triangle of S: n rows of `ld` numbers, b at column n. A pivot that
// vanishes against the given diagonal (of the matrix S came from) is replaced by `floor` times that; with floor = 0 its
// unknown is 0. Returns the largest right-hand side left at a vanished pivot. Overwrites `diagonal`.
static MM_CLONES double eliminate(double* MM_RESTRICT s, std::int64_t n, std::int64_t ld, double* MM_RESTRICT diagonal,
                                  double* MM_RESTRICT y, double floor) {
    // Two pivots at a time: half the passes over the rows below.
    double left = 0;
    for (std::int64_t i = 0; i < n; i += 2) {
        double inverse[2] = {0, 0};
        const std::int64_t stop = i + 2 < n ? i + 2 : n;
        for (std::int64_t p = i; p < stop; ++p) {
            const double* MM_RESTRICT pivots = s + p * ld;
            if (pivots[p] > 1e-9 * diagonal[p]) {
                inverse[p - i] = 1 / pivots[p];
            } else {
                const double size = pivots[n] < 0 ? -pivots[n] : pivots[n];
                left = size > left ? size : left;
                inverse[p - i] = floor > 0 ? 1 / (floor * diagonal[p]) : 0.0;
            }
            diagonal[p] = inverse[p - i];
            if (p == i && stop == i + 2) {
                const double factor = pivots[i + 1] * inverse[0];
                double* MM_RESTRICT row = s + (i + 1) * ld;
                for (std::int64_t c = (i + 1) & ~std::int64_t{3}; c < ld; c += 4)
                    for (std::int64_t l = c; l < c + 4; ++l) row[l] -= factor * pivots[l];
            }
        }
        const double* MM_RESTRICT one = s + i * ld;
        const double* MM_RESTRICT two = one + ld;
        for (std::int64_t r = i + 2; r < n; ++r) {
            const double factor_one = one[r] * inverse[0], factor_two = two[r] * inverse[1];
            double* MM_RESTRICT row = s + r * ld;
            for (std::int64_t c = r & ~std::int64_t{3}; c < ld; c += 4)
                for (std::int64_t l = c; l < c + 4; ++l) row[l] -= factor_one * one[l] + factor_two * two[l];
        }
    }
    for (std::int64_t i = n - 1; i >= 0; --i) {
        const double* MM_RESTRICT si = s + i * ld;
        double value = si[n];
        for (std::int64_t c = i + 1; c < n; ++c) value -= si[c] * y[c];
        y[i] = value * diagonal[i];
    }
    return left;
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
}  // namespace maxmargin::matching
