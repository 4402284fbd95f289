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
#include "maxmargin/base/simd.hpp"
#include "maxmargin/cut/graph.hpp"

namespace maxmargin::cut {

struct CutTarget {
    const CutExample& graph;
    const double* node;   // a_j
    const double* edge;   // a_e
    const double* least;  // the least flow of an edge: 0 if it is directed, else -infinity
};

inline double clip01(double u) { return u < 0.0 ? 0.0 : u > 1.0 ? 1.0 : u; }

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

// One accelerated step of all edges, from the extrapolated flow y and x = clip(a - v(y)): the new flow and y, and the
// net outflow of y added to v. Returns sum (y - f)(f - f_old), positive where the step goes against the momentum.
static MM_CLONES double accelerated_step(std::int32_t edges, const std::int32_t* MM_RESTRICT ends,
                                         const double* MM_RESTRICT x, const double* MM_RESTRICT target,
                                         const double* MM_RESTRICT least, double step, double beta,
                                         double* MM_RESTRICT flow, double* MM_RESTRICT y, double* MM_RESTRICT v) {
    constexpr std::int32_t block = 256, lanes = 8;
    alignas(64) double difference[block], uphill[block], sum[lanes] = {};
    const double whole = 1.0 + step;
    for (std::int32_t first = 0; first < edges; first += block) {
        const std::int32_t n = std::min(block, edges - first);
        const std::int32_t* MM_RESTRICT pair = ends + 2 * static_cast<std::ptrdiff_t>(first);
        const double *MM_RESTRICT a = target + first, *MM_RESTRICT low = least + first;
        double *MM_RESTRICT f = flow + first, *MM_RESTRICT at = y + first;
        for (std::int32_t e = 0; e < n; ++e) difference[e] = x[pair[2 * e]] - x[pair[2 * e + 1]];
        for (std::int32_t e = 0; e < n; ++e) {
            const double u = std::max(at[e] + step * difference[e], low[e]), size = std::abs(u);
            const double next = std::copysign(std::max(0.0, std::min(size, (size - step * a[e]) / whole)), u);
            const double change = next - f[e];
            uphill[e] = (at[e] - next) * change;
            f[e] = next;
            at[e] = next + beta * change;
        }
        for (std::int32_t e = n; e < block; ++e) uphill[e] = 0.0;
        for (std::int32_t e = 0; e < block; e += lanes)
            for (std::int32_t k = 0; k < lanes; ++k) sum[k] += uphill[e + k];
        for (std::int32_t e = 0; e < n; ++e) {
            v[pair[2 * e]] += at[e];
            v[pair[2 * e + 1]] -= at[e];
        }
    }
    double total = 0.0;
    for (const double part : sum) total += part;
    return total;
}

// Accelerated proximal gradient on (2) with restarts (Beck and Teboulle 2009; O'Donoghue and Candes 2015): slow where
// much accuracy is asked for, but reliable, and the baseline of the benchmark.
class CutFista {
   public:
    void reserve(std::int32_t nodes, std::int32_t edges) {
        for (auto* v : {&v_, &snapped_}) at_least(*v, nodes);
        for (auto* i : {&group_, &size_}) at_least(*i, nodes);
        at_least(y_, edges);
    }

    // Improves `flow`, writes x, returns the duality gap; stops at `target` or after `limit` steps. x = clip(a - v);
    // with `hasty` it may also come from snap(), and the method also stops where the gap comes down too slowly to get
    // to the target.
    double run(const CutTarget& t, double target, std::int64_t limit, bool hasty, double* flow, double* x) {
        const CutExample& g = t.graph;
        std::int64_t degrees = 1;
        for (std::int32_t e = 0; e < g.edges; ++e) {
            const std::int32_t j = g.ends[2 * e], k = g.ends[2 * e + 1];
            degrees = std::max<std::int64_t>(degrees, g.start[j + 1] - g.start[j] + g.start[k + 1] - g.start[k]);
        }
        const double step = 1.0 / static_cast<double>(degrees);
        double gap = point_and_gap(t, flow, x);
        double momentum = 1.0, earlier = gap;
        std::int64_t noted = 0, snap_at = 0;
        std::copy(flow, flow + g.edges, y_.data());
        for (std::int64_t done = 0; gap > target && done < limit;) {
            net_outflow(g, y_.data(), v_.data());
            for (int inner = 0; inner < (hasty ? 2 : 1) * check_every; ++inner, ++done) {
                for (std::int32_t j = 0; j < g.nodes; ++j) {
                    x[j] = clip01(t.node[j] - v_[j]);
                    v_[j] = 0.0;
                }
                const double next = 0.5 * (1.0 + std::sqrt(1.0 + 4.0 * momentum * momentum));
                const double uphill = accelerated_step(g.edges, g.ends, x, t.edge, t.least, step,
                                                       (momentum - 1.0) / next, flow, y_.data(), v_.data());
                momentum = next;
                if (uphill > 0.0) {
                    momentum = 1.0;
                    std::copy(flow, flow + g.edges, y_.data());
                    net_outflow(g, flow, v_.data());
                }
            }
            gap = point_and_gap(t, flow, x);
            if (!hasty || gap <= target) continue;
            if (gap <= worth_snapping * target && done >= snap_at) {
                snap_at = done + done / 5;
                snap(t, flow);
                const double snapped = cut_gap(t, snapped_.data(), flow, v_.data());
                if (snapped <= target) {
                    std::copy(snapped_.begin(), snapped_.begin() + g.nodes, x);
                    return snapped;
                }
            }
            if (done >= 2 * noted + check_every) {
                // At the rate of the last half of all steps, will the rest do?
                const double rate = std::log(earlier / gap) / static_cast<double>(done - noted);
                const double wanted = std::log(gap / (worth_snapping * target));
                if (noted > 0 && !(wanted < rate * static_cast<double>(limit - done))) break;
                earlier = gap;
                noted = done;
            }
        }
        return gap;
    }

   private:
    static constexpr int check_every = 10;
    static constexpr double worth_snapping = 100.0;

    std::int32_t find(std::int32_t node) {
        while (group_[node] != node) {
            group_[node] = group_[group_[node]];
            node = group_[node];
        }
        return node;
    }

    // Nodes joined by edges whose flow lies inside the flat part of h get one value, the mean of their a - v: the gap
    // is linear in what is left of x_j - x_k on such an edge, so the steps alone are long in bringing it down.
    void snap(const CutTarget& t, const double* flow) {
        const CutExample& g = t.graph;
        for (std::int32_t j = 0; j < g.nodes; ++j) {
            group_[j] = j;
            size_[j] = 0;
            snapped_[j] = 0.0;
        }
        for (std::int32_t e = 0; e < g.edges; ++e) {
            if (!(std::abs(flow[e]) < -t.edge[e]) || flow[e] <= t.least[e]) continue;
            const std::int32_t j = find(g.ends[2 * e]), k = find(g.ends[2 * e + 1]);
            group_[std::max(j, k)] = std::min(j, k);
        }
        for (std::int32_t j = 0; j < g.nodes; ++j) {
            const std::int32_t root = find(j);
            snapped_[root] += t.node[j] - v_[j];
            ++size_[root];
        }
        // Roots are the first nodes of their groups, so each is ready before the others of its group need it.
        for (std::int32_t j = 0; j < g.nodes; ++j)
            snapped_[j] = group_[j] == j ? clip01(snapped_[j] / size_[j]) : snapped_[find(j)];
    }

    double point_and_gap(const CutTarget& t, const double* flow, double* x) {
        net_outflow(t.graph, flow, v_.data());
        for (std::int32_t j = 0; j < t.graph.nodes; ++j) x[j] = clip01(t.node[j] - v_[j]);
        return cut_gap(t, x, flow, v_.data());
    }

    std::vector<double> v_, y_, snapped_;
    std::vector<std::int32_t> group_, size_;
};

}  // namespace maxmargin::cut
