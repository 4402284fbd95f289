// The projection onto one cut polytope and its dual over net edge flows.
//
//   primal  min_{0 <= x <= 1} 1/2 |x - a|^2 + sum_e phi_e(x_j - x_k),  phi_e(d) = 1/2 ((|d| - a_e)_+)^2        (1)
//   dual    max_f - sum_e h_e(f_e) + sum_j min_{0 <= x <= 1} 1/2 (x - a_j)^2 + x v_j,  v = out-flow - in-flow  (2)
//   h(f) = a |f| + f^2 / 2 where |f| >= -a, and -a^2/2 in the flat part |f| <= -a of a negative target         (3)
//
// A directed edge has phi_e(d) = phi_e(0) for d <= 0, so its flow is at least 0.
//
// Any flow is feasible in (2) and any x in the box in (1), so each pair has a duality gap, and the gap is a sum of
// non-negative terms, one for each node and edge (Fenchel-Young): computed term by term it loses no digits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "maxmargin/base/scratch.hpp"
#include "maxmargin/cut/graph.hpp"

namespace maxmargin::cut {

struct CutTarget {
    const CutExample& graph;
    const double* node;   // a_j
    const double* edge;   // a_e
    const double* least;  // the least flow of an edge: 0 if it is directed, else -infinity
};

inline double clip01(double u) { return u < 0.0 ? 0.0 : u > 1.0 ? 1.0 : u; }

// argmin_f sigma h(f) + 1/2 (f - u)^2: both signs of a in one formula.
inline double flow_prox(double u, double a, double sigma) {
    const double t = std::abs(u);
    const double f = std::max(0.0, std::min(t, (t - sigma * a) / (1.0 + sigma)));
    return std::copysign(f, u);
}

// phi(d) + h(f) - f d, which is >= 0, of an edge that is not directed.
inline double edge_gap(double d, double f, double a) {
    const double D = std::abs(d), F = std::abs(f);
    const double crossed = d * f < 0.0 ? 2.0 * F * D : 0.0;
    if (a >= 0.0 ? D >= a : F >= -a) {
        const double r = D - a - F;
        return 0.5 * r * r + crossed;
    }
    return (a >= 0.0 ? F * (0.5 * F + a - D) : D * (0.5 * D - a - F)) + crossed;
}

inline void net_outflow(const CutExample& g, const double* flow, double* v) {
    std::fill(v, v + g.nodes, 0.0);
    for (std::int32_t e = 0; e < g.edges; ++e) {
        v[g.ends[2 * e]] += flow[e];
        v[g.ends[2 * e + 1]] -= flow[e];
    }
}

// Duality gap of (x, f), given the net outflow v of f.
inline double cut_gap(const CutTarget& t, const double* x, const double* flow, const double* v) {
    const CutExample& g = t.graph;
    double gap = 0.0;
    for (std::int32_t j = 0; j < g.nodes; ++j) {
        const double u = t.node[j] - v[j];
        const double best = clip01(u);
        gap += 0.5 * (x[j] - best) * (x[j] + best - 2.0 * u);
    }
    for (std::int32_t e = 0; e < g.edges; ++e) {
        const double d = x[g.ends[2 * e]] - x[g.ends[2 * e + 1]], least = t.least[e];
        gap +=
            least == 0.0 && d < 0.0 ? edge_gap(0.0, flow[e], t.edge[e]) - flow[e] * d : edge_gap(d, flow[e], t.edge[e]);
    }
    return gap;
}

// The gap that rounding alone may leave: x_j - x_k of a fused edge is known to eps (1 + |a_j| + |a_k|), and costs -a_e.
inline double gap_rounding(const CutTarget& t) {
    const CutExample& g = t.graph;
    double sum = 1.0;
    for (std::int32_t e = 0; e < g.edges; ++e) {
        const double size = 1.0 + std::abs(t.node[g.ends[2 * e]]) + std::abs(t.node[g.ends[2 * e + 1]]);
        sum += std::max(0.0, -t.edge[e]) * size;
    }
    return 4e-16 * sum;
}

// Accelerated proximal gradient on (2) with restarts (Beck and Teboulle 2009; O'Donoghue and Candes 2015): slow
// but reliable, and the baseline of the benchmark.
class CutFista {
   public:
    void reserve(std::int32_t nodes, std::int32_t edges) {
        at_least(v_, nodes);
        at_least(y_, edges);
    }

    // Improves `flow`, writes x = clip(a - v), returns the duality gap; stops at `target` or after `limit` steps.
    double run(const CutTarget& t, double target, std::int64_t limit, double* flow, double* x) {
        const CutExample& g = t.graph;
        std::int64_t degrees = 1;
        for (std::int32_t e = 0; e < g.edges; ++e) {
            const std::int32_t j = g.ends[2 * e], k = g.ends[2 * e + 1];
            degrees = std::max<std::int64_t>(degrees, g.start[j + 1] - g.start[j] + g.start[k + 1] - g.start[k]);
        }
        const double step = 1.0 / static_cast<double>(degrees);
        double gap = point_and_gap(t, flow, x);
        double momentum = 1.0;
        std::copy(flow, flow + g.edges, y_.data());
        for (std::int64_t done = 0; gap > target && done < limit;) {
            for (int inner = 0; inner < check_every; ++inner, ++done) {
                net_outflow(g, y_.data(), v_.data());
                for (std::int32_t j = 0; j < g.nodes; ++j) x[j] = clip01(t.node[j] - v_[j]);
                const double next = 0.5 * (1.0 + std::sqrt(1.0 + 4.0 * momentum * momentum));
                const double beta = (momentum - 1.0) / next;
                double uphill = 0.0;
                for (std::int32_t e = 0; e < g.edges; ++e) {
                    const double y = y_[e];
                    const double u = y + step * (x[g.ends[2 * e]] - x[g.ends[2 * e + 1]]);
                    const double f = flow_prox(std::max(u, t.least[e]), t.edge[e], step);
                    const double change = f - flow[e];
                    uphill += (y - f) * change;
                    flow[e] = f;
                    y_[e] = f + beta * change;
                }
                momentum = next;
                if (uphill > 0.0) {
                    momentum = 1.0;
                    std::copy(flow, flow + g.edges, y_.data());
                }
            }
            gap = point_and_gap(t, flow, x);
        }
        return gap;
    }

   private:
    static constexpr int check_every = 10;

    double point_and_gap(const CutTarget& t, const double* flow, double* x) {
        net_outflow(t.graph, flow, v_.data());
        for (std::int32_t j = 0; j < t.graph.nodes; ++j) x[j] = clip01(t.node[j] - v_[j]);
        return cut_gap(t, x, flow, v_.data());
    }

    std::vector<double> v_, y_;
};

}  // namespace maxmargin::cut
