// Euclidean projection onto a local polytope (graph/local_polytope.hpp): semismooth Newton steps on the multipliers.
//
// With (node, edge) the point, the dual of min 1/2 |z - node|^2 + 1/2 |t - edge|^2 is, up to a constant,
//
//     max_m  sum_i min_{z in simplex} (1/2 |z|^2 - z'v_i)  -  sum_{parts of edges} 1/2 max(0, u)^2            (5)
//     v_i = node_i + sum_{arcs r of i} m[r],    u = edge - m[first end] - m[second end],
//
// concave with the Lipschitz gradient (sums of t at an end) - z of the end, where z is v_i projected onto the simplex
// and t = max(0, u); over all m for (1), over m >= 0 for (2). Its generalized Hessian couples two multipliers where the
// part that they share is positive, and the labels in the support of a node. A step solves (H + shift) d = gradient
// over the fractional nodes (graph/newton.hpp) or, where these are too many, by conjugate gradients that touch positive
// parts only, on the multipliers that are not held at 0 (two-metric projection, Bertsekas 1982), with a search along
// the projected arc.
//
// The gap between (5) and a repaired feasible point, sum 1/2 (t' - t)^2 + t' max(0, -u) and for (2) the slacks times
// their multipliers, has no negative terms: it is right to rounding however small it is.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "maxmargin/base/scratch.hpp"
#include "maxmargin/base/simd.hpp"
#include "maxmargin/graph/line_search.hpp"
#include "maxmargin/graph/local_polytope.hpp"
#include "maxmargin/graph/newton.hpp"

namespace maxmargin::network {

// The long vectors of conjugate gradients.

struct Norms {
    double scaled, plain;
};

// direction += length search, residual -= length image; the squares of the residual, scaled and plain.
static MM_CLONES Norms move_along(double length, const double* MM_RESTRICT search, const double* MM_RESTRICT image,
                                  const double* MM_RESTRICT scale, double* MM_RESTRICT direction,
                                  double* MM_RESTRICT residual, std::int64_t n) {
    double scaled[8] = {}, plain[8] = {};
    std::int64_t p = 0;
    for (; p + 8 <= n; p += 8)
        for (int k = 0; k < 8; ++k) {
            direction[p + k] += length * search[p + k];
            const double r = residual[p + k] -= length * image[p + k];
            plain[k] += r * r;
            scaled[k] += r * r * scale[p + k];
        }
    Norms total{0.0, 0.0};
    for (; p < n; ++p) {
        direction[p] += length * search[p];
        const double r = residual[p] -= length * image[p];
        total.plain += r * r;
        total.scaled += r * r * scale[p];
    }
    for (int k = 0; k < 8; ++k) {
        total.plain += plain[k];
        total.scaled += scaled[k];
    }
    return total;
}

static MM_CLONES void turn_search(double turn, const double* MM_RESTRICT residual, const double* MM_RESTRICT scale,
                                  double* MM_RESTRICT search, std::int64_t n) {
    for (std::int64_t p = 0; p < n; ++p) search[p] = residual[p] * scale[p] + turn * search[p];
}

template <bool table>
class Projector {
    // Added to the Hessian. For conjugate gradients smaller ones let steps run away along directions in which the dual
    // is flat, which most of the work then goes into: up to 8 times the products on 30 x 30 grids.
    static constexpr double first_shift = 1e-3, least_shift = 1e-4, most_stalled_shift = 1e-2;

   public:
    void reserve(const Example<table>& x) {
        for (auto* v :
             {&m_, &m_next_, &gradient_, &gradient_next_, &direction_, &residual_, &search_, &image_, &diagonal_})
            at_least(*v, x.multipliers());
        for (auto* v : {&z_, &z_next_}) at_least(*v, x.node_parts());
        for (auto* v : {&t_, &t_next_, &fit_}) at_least(*v, x.edge_parts());
        at_least(v_, 2 * static_cast<std::size_t>(x.labels));
        at_least(first_, x.edge_parts());
        at_least(second_, x.edge_parts());
        at_least(held_, x.multipliers());
        at_least(support_, x.graph.nodes);
        at_least(single_, x.graph.nodes);
        system_.reserve(x);
    }

    // Multipliers that (5) allows, out of any numbers.
    static void admit(const Example<table>& x, double* m) {
        for (std::int64_t p = 0; p < x.multipliers(); ++p)
            if (!(std::abs(m[p]) < 1e100) || (!table && m[p] < 0.0)) m[p] = 0.0;
    }

    // The value of (5) at m, with m admitted first.
    double value(const Example<table>& x, double* m) {
        admit(x, m);
        return evaluate(x, m, z_, t_, gradient_);
    }

    // `m`: a start, and then the multipliers of the answer; z, t: the feasible point. Returns its duality gap, which is
    // at most `sought`, or at most `noise` after a few steps more, unless `step_limit` Newton steps were too few.
    double run(const Example<table>& x, double sought, double noise, int step_limit, double* m, double* z, double* t) {
        const std::int64_t n = x.multipliers();
        std::copy_n(m, n, m_.begin());
        admit(x, m_.data());
        double value = evaluate(x, m_.data(), z_, t_, gradient_);
        double shift = first_shift, best = std::numeric_limits<double>::infinity(), last = best;
        const double curvature = steepest(x);
        int more = 4;
        for (int step = 0;; ++step) {
            const Slope slope = slope_of(x);
            // Kinks on the way, or rounding: divided by the shift it moves multipliers along flat directions.
            if (slope.sum > 0.3 * last) shift = std::min(most_stalled_shift, 10.0 * shift);
            last = slope.sum;
            // A gradient step alone would raise (5) by this much, so the gap is no less.
            if (step >= step_limit || !(slope.squares > 2.0 * curvature * std::max(sought, noise))) {
                const double gap = repair(x);
                if (gap < best) {
                    best = gap;
                    std::copy_n(z_.begin(), x.node_parts(), z);
                    std::copy_n(fit_.begin(), x.edge_parts(), t);
                    std::copy_n(m_.begin(), n, m);
                }
                if (best <= sought || step >= step_limit || (best <= noise && more-- == 0)) break;
            }
            const double size = find_direction(x, shift);
            if (!(size > 0.0) || !advance(x, value, shift)) step = step_limit - 1;
        }
        return best;
    }

   private:
    struct Slope {
        double sum, squares;
    };

    // Size of the gradient, without the entries that hold multipliers at 0.
    Slope slope_of(const Example<table>& x) const {
        Slope slope{0.0, 0.0};
        for (std::int64_t p = 0; p < x.multipliers(); ++p) {
            // A multiplier moves down by no more than it has.
            const double move = table ? gradient_[p] : std::max(gradient_[p], -m_[p]);
            slope.sum += std::abs(move);
            slope.squares += move * move;
        }
        return slope;
    }

    // A Lipschitz constant of the gradient: at most one per part that two multipliers share, each way, and per arc.
    static double steepest(const Example<table>& x) {
        std::int32_t degree = 0;
        for (std::int32_t i = 0; i < x.graph.nodes; ++i)
            degree = std::max(degree, x.graph.first_arc(i + 1) - x.graph.first_arc(i));
        return (table ? 2.0 * x.labels : 2.0) + degree;
    }

    double evaluate(const Example<table>& x, const double* m, std::vector<double>& z, std::vector<double>& t,
                    std::vector<double>& gradient) {
        return with_labels(x.labels, [&](const auto n) { return evaluate(n, x, m, z, t, gradient); });
    }
    template <class Count>
    double evaluate(const Count n, const Example<table>& x, const double* m, std::vector<double>& z,
                    std::vector<double>& t, std::vector<double>& gradient) {
        const cut::CutExample& g = x.graph;
        double value = 0.0;
        for (std::int32_t i = 0; i < g.nodes; ++i) {
            std::copy_n(x.node + std::int64_t{i} * n, n, v_.begin());
            for (std::int32_t r = g.first_arc(i); r < g.first_arc(i + 1); ++r)
                for (std::int32_t k = 0; k < n; ++k) v_[k] += m[std::int64_t{g.arcs[r]} * n + k];
            double* zi = z.data() + std::int64_t{i} * n;
            value -= onto_simplex(v_.data(), n, zi);
            for (std::int32_t k = 0; k < n; ++k) value += zi[k] * (0.5 * zi[k] - v_[k]);
        }
        for (std::int32_t e = 0; e < g.edges; ++e) {
            const double* mi = m + 2 * std::int64_t{e} * n;
            const double* mj = mi + n;
            const double* point = x.edge + e * x.edge_size();
            double* te = t.data() + e * x.edge_size();
            double* gi = gradient.data() + 2 * std::int64_t{e} * n;
            double* gj = gi + n;
            const double* zi = z.data() + std::int64_t{g.ends[2 * e]} * n;
            const double* zj = z.data() + std::int64_t{g.ends[2 * e + 1]} * n;
            for (std::int32_t k = 0; k < n; ++k) gj[k] = -zj[k];
            double squares = 0.0;
            if constexpr (table) {
                for (std::int32_t a = 0; a < n; ++a) {
                    double sum = 0.0;
                    for (std::int32_t b = 0; b < n; ++b) {
                        const double u = point[a * n + b] - mi[a] - mj[b];
                        const double part = u > 0.0 ? u : 0.0;
                        te[a * n + b] = part;
                        gj[b] += part;
                        sum += part;
                        squares += part * part;
                    }
                    gi[a] = sum - zi[a];
                }
            } else {
                for (std::int32_t k = 0; k < n; ++k) {
                    const double u = point[k] - mi[k] - mj[k];
                    const double part = u > 0.0 ? u : 0.0;
                    te[k] = part;
                    gi[k] = part - zi[k];
                    gj[k] += part;
                    squares += part * part;
                }
            }
            value -= 0.5 * squares;
        }
        return value;
    }

    // fit_ = feasible parts of edges for the nodes z_; returns the gap.
    double repair(const Example<table>& x) {
        return with_labels(x.labels, [&](const auto n) { return repair(n, x); });
    }
    template <class Count>
    double repair(const Count n, const Example<table>& x) {
        for (std::int32_t i = 0; table && i < x.graph.nodes; ++i) {
            single_[i] = -1;
            for (std::int32_t k = 0; k < n; ++k)
                if (z_[std::int64_t{i} * n + k] == 1.0) single_[i] = k;
        }
        double gap = 0.0;
        for (std::int32_t e = 0; e < x.graph.edges; ++e) {
            const double* mi = m_.data() + 2 * std::int64_t{e} * n;
            const double* mj = mi + n;
            const double* point = x.edge + e * x.edge_size();
            const double* te = t_.data() + e * x.edge_size();
            double* fit = fit_.data() + e * x.edge_size();
            const double* zi = z_.data() + std::int64_t{x.graph.ends[2 * e]} * n;
            const double* zj = z_.data() + std::int64_t{x.graph.ends[2 * e + 1]} * n;
            if constexpr (table) {
                const std::int32_t a = single_[x.graph.ends[2 * e]], b = single_[x.graph.ends[2 * e + 1]];
                if (a >= 0 && b >= 0) {
                    std::fill_n(fit, n * n, 0.0);
                    fit[a * n + b] = 1.0;
                } else {
                    std::copy_n(te, n * n, fit);
                    fit_table(n, zi, zj, fit, v_.data());
                }
                for (std::int32_t a = 0; a < n; ++a)
                    for (std::int32_t b = 0; b < n; ++b) {
                        const double u = point[a * n + b] - mi[a] - mj[b], moved = fit[a * n + b] - te[a * n + b];
                        gap += u > 0.0 ? 0.5 * moved * moved : fit[a * n + b] * (0.5 * fit[a * n + b] - u);
                    }
            } else {
                for (std::int32_t k = 0; k < n; ++k) {
                    fit[k] = std::max(0.0, std::min({point[k], zi[k], zj[k]}));
                    const double u = point[k] - mi[k] - mj[k], moved = fit[k] - te[k];
                    gap += u > 0.0 ? 0.5 * moved * moved : fit[k] * (0.5 * fit[k] - u);
                    gap += mi[k] * (zi[k] - fit[k]) + mj[k] * (zj[k] - fit[k]);
                }
            }
        }
        return gap;
    }

    // image = (H + shift) search on the multipliers that are not held.
    void apply(const Example<table>& x, double shift) {
        const std::int32_t n = x.labels;
        const cut::CutExample& g = x.graph;
        const std::int64_t size = x.multipliers();
        for (std::int64_t p = 0; p < size; ++p) image_[p] = shift * search_[p];
        for (std::int64_t q = 0; q < active_; ++q) {
            const double sum = search_[first_[q]] + search_[second_[q]];
            image_[first_[q]] += sum;
            image_[second_[q]] += sum;
        }
        for (std::int32_t i = 0; i < g.nodes; ++i) {
            if (support_[i] < 2) continue;
            const double* zi = z_.data() + std::int64_t{i} * n;
            std::fill_n(v_.begin(), n, 0.0);
            const std::int32_t begin = g.first_arc(i), end = g.first_arc(i + 1);
            for (std::int32_t r = begin; r < end; ++r)
                for (std::int32_t k = 0; k < n; ++k) v_[k] += search_[std::int64_t{g.arcs[r]} * n + k];
            double mean = 0.0;
            for (std::int32_t k = 0; k < n; ++k) mean += zi[k] > 0.0 ? v_[k] : 0.0;
            mean /= support_[i];
            for (std::int32_t k = 0; k < n; ++k) v_[k] = zi[k] > 0.0 ? v_[k] - mean : 0.0;
            for (std::int32_t r = begin; r < end; ++r)
                for (std::int32_t k = 0; k < n; ++k) image_[std::int64_t{g.arcs[r]} * n + k] += v_[k];
        }
        if constexpr (!table)
            for (std::int64_t p = 0; p < size; ++p)
                if (held_[p]) image_[p] = 0.0;
    }

    // direction_; returns the largest entry of the gradient that counts.
    double find_direction(const Example<table>& x, double shift) {
        const std::int64_t size = x.multipliers();
        // Multipliers that are near 0 and would become negative are held: they go to 0, and the others do not wait for
        // them. How near is measured by how far a gradient step leads (Bertsekas 1982, eq. 32).
        double near = 0.0;
        if constexpr (!table) {
            for (std::int64_t p = 0; p < size; ++p)
                near = std::max(near, std::abs(m_[p] - std::max(0.0, m_[p] + gradient_[p])));
            near = std::min(near, 1e-2);
        }
        double largest = 0.0;
        for (std::int64_t p = 0; p < size; ++p) {
            held_[p] = !table && m_[p] <= near && gradient_[p] <= 0.0;
            residual_[p] = held_[p] ? 0.0 : gradient_[p];
            largest = std::max(largest, std::abs(gradient_[p] * (held_[p] ? m_[p] : 1.0)));
        }
        // About what conjugate gradients would cost.
        const double budget = 1e3 * static_cast<double>(size);
        if (!system_.solve(x, z_.data(), t_.data(), held_.data(), shift, residual_.data(), budget, direction_.data()))
            iterate(x, shift);
        if constexpr (!table)
            for (std::int64_t p = 0; p < size; ++p)
                if (held_[p]) direction_[p] = -m_[p];
        return largest;
    }

    // direction_ by conjugate gradients.
    void iterate(const Example<table>& x, double shift) {
        const std::int32_t n = x.labels;
        const cut::CutExample& g = x.graph;
        const std::int64_t size = x.multipliers();
        std::fill_n(diagonal_.begin(), size, shift);
        active_ = 0;
        for (std::int32_t e = 0; e < g.edges; ++e) {
            const double* te = t_.data() + e * x.edge_size();
            const std::int64_t base = 2 * std::int64_t{e} * n;
            for (std::int32_t c = 0; c < x.edge_size(); ++c) {
                if (!(te[c] > 0.0)) continue;
                const std::int64_t p = base + (table ? c / n : c), q = base + n + (table ? c % n : c);
                first_[active_] = static_cast<std::int32_t>(p);
                second_[active_++] = static_cast<std::int32_t>(q);
                diagonal_[p] += 1.0;
                diagonal_[q] += 1.0;
            }
        }
        for (std::int32_t i = 0; i < g.nodes; ++i) {
            const double* zi = z_.data() + std::int64_t{i} * n;
            support_[i] = 0;
            for (std::int32_t k = 0; k < n; ++k) support_[i] += zi[k] > 0.0;
            const double own = 1.0 - 1.0 / support_[i];
            for (std::int32_t r = g.first_arc(i); r < g.first_arc(i + 1); ++r)
                for (std::int32_t k = 0; k < n; ++k)
                    if (zi[k] > 0.0) diagonal_[std::int64_t{g.arcs[r]} * n + k] += own;
        }
        double before = 0.0, sum = 0.0;
        for (std::int64_t p = 0; p < size; ++p) {
            direction_[p] = 0.0;
            diagonal_[p] = 1.0 / diagonal_[p];
            search_[p] = residual_[p] * diagonal_[p];
            before += residual_[p] * search_[p];
            sum += residual_[p] * residual_[p];
        }
        // As exact as the gradient is small: fast at the end, cheap at the start.
        const double norm = std::sqrt(sum), wanted = norm * std::min(0.1, std::sqrt(norm));
        for (int iteration = 0; iteration < 500 && before > 0.0; ++iteration) {
            apply(x, shift);
            const double curvature = dot_product(search_.data(), image_.data(), size);
            if (!(curvature > 0.0)) break;
            const double length = before / curvature;
            const Norms after = move_along(length, search_.data(), image_.data(), diagonal_.data(), direction_.data(),
                                           residual_.data(), size);
            if (std::sqrt(after.plain) <= wanted) break;
            turn_search(after.scaled / before, residual_.data(), diagonal_.data(), search_.data(), size);
            before = after.scaled;
        }
    }

    // Moves to the end of a step along the (projected) direction that raises (5); false where rounding forbids one.
    bool advance(const Example<table>& x, double& value, double& shift) {
        const DualPoint at{m_, z_, t_, gradient_}, next{m_next_, z_next_, t_next_, gradient_next_};
        return advance_along(
            at, next, x.multipliers(), least_shift, value, shift,
            [&](std::int64_t p, double length) {
                const double there = m_[p] + length * direction_[p];
                return table || there > 0.0 ? there : 0.0;
            },
            [&] { return evaluate(x, m_next_.data(), z_next_, t_next_, gradient_next_); });
    }

    std::vector<double> m_, m_next_, gradient_, gradient_next_, direction_, residual_, search_, image_, diagonal_;
    std::vector<double> z_, z_next_, t_, t_next_, fit_, v_;
    std::vector<std::int32_t> first_, second_, support_, single_;
    std::vector<std::int8_t> held_;
    std::int64_t active_ = 0;
    NodeSystem<table> system_;
};

}  // namespace maxmargin::network
