// Extragradient steps (Korpelevich 1976) for the linear program over a working set of rows,
//
//   min_{w, xi >= 0} max_{lambda >= 0}  sum_k price_k |w_k| + sum_i cost_i xi_i + lambda'(A w + b - D M xi),
//
// with M the 0/1 matrix of which row belongs to which example and D = diag(link): process (13) of Wang and
// Shawe-Taylor (2009), with the absolute values by their proximal step (soft thresholds), so that signed weights need no
// second column, with bounds of the weights, and with diagonal scalings of rows and columns folded into A, price, cost, link and b.
//
// A is kept twice, by rows and by columns, so that both products gather and none scatters. Cost of a step: four passes
// over the non-zeros. One thread: masters are small, and a step is shorter than waking others.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "maxmargin/simd.hpp"

namespace maxmargin::linear_master {

// Compressed rows (or, of the transposed matrix, columns).
struct Compressed {
    std::span<const std::int32_t> starts, at;
    std::span<const double> values;
};

struct Program {
    Compressed rows, columns;
    std::span<const double> b, link;            // one per row
    std::span<const std::int32_t> owner;        // one per row
    std::span<const double> price;              // one per weight
    std::span<const double> lower, upper;       // one per weight: its least and its largest value
    std::span<const double> cost;               // one per example
};

// Where the players stand, or sums of where they stood.
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

// The three gradients at a point: pull = A'lambda, mass = M'D lambda, gain = A w + b - D M xi.
MM_INLINE void gradients(const Program& p, const Point& at, double* MM_RESTRICT pull, double* MM_RESTRICT mass,
                         double* MM_RESTRICT gain) {
    const std::size_t n_rows = p.b.size();
    times(p.columns, at.lambda.data(), pull, p.price.size());
    times(p.rows, at.w.data(), gain, n_rows);
    std::fill(mass, mass + p.cost.size(), 0.0);
    for (std::size_t r = 0; r < n_rows; ++r) {
        mass[p.owner[r]] += p.link[r] * at.lambda[r];
        gain[r] += p.b[r] - p.link[r] * at.xi[p.owner[r]];
    }
}

// to = where a step against those gradients leads from `from`.
MM_INLINE void move(const Program& p, const Point& from, const double* MM_RESTRICT pull,
                    const double* MM_RESTRICT mass, const double* MM_RESTRICT gain, double primal_step,
                    double dual_step, const Point& to) {
    for (std::size_t k = 0; k < p.price.size(); ++k) {
        const double moved = from.w[k] - primal_step * pull[k];
        const double shrunk = std::copysign(std::max(std::abs(moved) - primal_step * p.price[k], 0.0), moved);
        to.w[k] = std::min(std::max(shrunk, p.lower[k]), p.upper[k]);
    }
    for (std::size_t i = 0; i < p.cost.size(); ++i) {
        to.xi[i] = std::max(from.xi[i] - primal_step * (p.cost[i] - mass[i]), 0.0);
    }
    for (std::size_t r = 0; r < p.b.size(); ++r) {
        to.lambda[r] = std::max(from.lambda[r] + dual_step * gain[r], 0.0);
    }
}

MM_INLINE void add(std::span<const double> x, std::span<double> sum) {
    for (std::size_t k = 0; k < x.size(); ++k) sum[k] += x[k];
}

}  // namespace detail

// `steps` steps from `point`, which they move; the predicted points are added to `sums`.
static MM_CLONES void iterate(const Program& p, const Point& point, const Point& sums, double primal_step,
                              double dual_step, std::int64_t steps) {
    const std::size_t n = p.price.size(), m = p.cost.size(), r = p.b.size();
    std::vector<double> memory(2 * (n + m + r));
    double *pull = memory.data(), *mass = pull + n, *gain = mass + m, *ahead = gain + r;
    const Point predicted{{ahead, n}, {ahead + n, m}, {ahead + n + m, r}};
    for (std::int64_t step = 0; step < steps; ++step) {
        detail::gradients(p, point, pull, mass, gain);
        detail::move(p, point, pull, mass, gain, primal_step, dual_step, predicted);
        detail::gradients(p, predicted, pull, mass, gain);
        detail::move(p, point, pull, mass, gain, primal_step, dual_step, point);
        detail::add(predicted.w, sums.w);
        detail::add(predicted.xi, sums.xi);
        detail::add(predicted.lambda, sums.lambda);
    }
}

}  // namespace maxmargin::linear_master
