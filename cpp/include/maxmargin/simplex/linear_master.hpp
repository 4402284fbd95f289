// Steps of extragradient (Korpelevich 1976), process (13) of Wang and Shawe-Taylor (2009), toward a solution of the
// linear program over a working set of rows,
//
//   min_{w, xi >= 0} max_{lambda >= 0}  sum_k price_k |w_k| + sum_i cost_i xi_i + lambda'(A w + b - M xi),
//
// with M the 0/1 matrix of which row belongs to which example. Absolute values by their proximal step (soft
// thresholds), so that signed weights need no second column.
//
// A is kept twice, by rows and by columns, so that both products gather and none scatters. Cost of a step: four passes
// over the non-zeros. One thread: masters are small, and a step is shorter than waking others.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "maxmargin/base/simd.hpp"

namespace maxmargin::linear_master {

// Compressed rows (or, of the transposed matrix, columns).
struct Compressed {
    std::span<const std::int32_t> starts, at;
    std::span<const double> values;
};

struct Program {
    Compressed rows, columns;
    std::span<const double> b;            // one per row
    std::span<const std::int32_t> owner;  // one per row
    std::span<const double> price;        // one per weight
    std::span<const double> lower;        // one per weight: its least value
    std::span<const double> cost;         // one per example
};

// Where the players stand.
struct Point {
    std::span<double> w, xi, lambda;
};

namespace detail {

// out = X v, two sums at a time to hide the latency of additions.
MM_INLINE void times(const Compressed& x, const double* v, double* MM_RESTRICT out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        double even = 0.0, odd = 0.0;
        std::int32_t e = x.starts[i];
        const std::int32_t end = x.starts[i + 1];
        for (; e + 1 < end; e += 2) {
            even += x.values[e] * v[x.at[e]];
            odd += x.values[e + 1] * v[x.at[e + 1]];
        }
        if (e < end) even += x.values[e] * v[x.at[e]];
        out[i] = even + odd;
    }
}

// pull = A'lambda, mass = M'lambda.
MM_INLINE void primal_gradients(const Program& p, const Point& at, double* MM_RESTRICT pull, double* MM_RESTRICT mass) {
    times(p.columns, at.lambda.data(), pull, p.price.size());
    std::fill(mass, mass + p.cost.size(), 0.0);
    for (std::size_t r = 0; r < p.b.size(); ++r) mass[p.owner[r]] += at.lambda[r];
}

// gain = A w + b - M xi.
MM_INLINE void dual_gradient(const Program& p, const Point& at, double* MM_RESTRICT gain) {
    times(p.rows, at.w.data(), gain, p.b.size());
    for (std::size_t r = 0; r < p.b.size(); ++r) gain[r] += p.b[r] - at.xi[p.owner[r]];
}

// to = where a step of the weights and slacks against those gradients leads from `from`.
MM_INLINE void move_primal(const Program& p, const Point& from, const double* MM_RESTRICT pull,
                           const double* MM_RESTRICT mass, double step, const Point& to) {
    for (std::size_t k = 0; k < p.price.size(); ++k) {
        const double moved = from.w[k] - step * pull[k];
        const double shrunk = std::copysign(std::max(std::abs(moved) - step * p.price[k], 0.0), moved);
        to.w[k] = std::max(shrunk, p.lower[k]);
    }
    for (std::size_t i = 0; i < p.cost.size(); ++i) {
        to.xi[i] = std::max(from.xi[i] - step * (p.cost[i] - mass[i]), 0.0);
    }
}

MM_INLINE void move_dual(const Point& from, const double* MM_RESTRICT gain, double step, const Point& to) {
    for (std::size_t r = 0; r < from.lambda.size(); ++r) to.lambda[r] = std::max(from.lambda[r] + step * gain[r], 0.0);
}

}  // namespace detail

// `steps` steps from `point`, which they move.
static MM_CLONES void extragradient(const Program& p, const Point& point, double step, std::int64_t steps) {
    const std::size_t n = p.price.size(), m = p.cost.size(), r = p.b.size();
    std::vector<double> memory(2 * (n + m + r));
    double *pull = memory.data(), *mass = pull + n, *gain = mass + m, *ahead = gain + r;
    const Point predicted{{ahead, n}, {ahead + n, m}, {ahead + n + m, r}};
    for (std::int64_t done = 0; done < steps; ++done) {
        detail::primal_gradients(p, point, pull, mass);
        detail::move_primal(p, point, pull, mass, step, predicted);
        detail::dual_gradient(p, point, gain);
        detail::move_dual(point, gain, step, predicted);
        detail::primal_gradients(p, predicted, pull, mass);
        detail::move_primal(p, point, pull, mass, step, point);
        detail::dual_gradient(p, predicted, gain);
        detail::move_dual(point, gain, step, point);
    }
}

}  // namespace maxmargin::linear_master
