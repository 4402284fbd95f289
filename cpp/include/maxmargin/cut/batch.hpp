// Batches of cuts: argmax and Euclidean projection over 0 <= z_j <= 1, |z_j - z_k| <= z_jk <= 1, and for cliques c
// 0 <= p_c1 <= z_j, 0 <= p_c0 <= 1 - z_j for all members j.
//
// Status codes as everywhere: 0 OK, 1 INEXACT, 2 NONFINITE.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "maxmargin/base/parallel.hpp"
#include "maxmargin/base/scratch.hpp"
#include "maxmargin/cut/dual.hpp"
#include "maxmargin/cut/graph.hpp"
#include "maxmargin/cut/maxflow.hpp"
#include "maxmargin/cut/newton.hpp"
#include "maxmargin/cut/order.hpp"

namespace maxmargin::cut {

constexpr std::int8_t ok = 0, inexact = 1, nonfinite = 2;

// On graphs with so many nodes a projection begins with accelerated gradient steps, at most so many: a Newton step
// costs as much as a dozen of them there, and at the tolerances of a training run they often do.
constexpr std::int32_t large = 1 << 15;
constexpr std::int64_t large_steps = 3000;

struct ArgmaxScratch {
    MaxFlow solver;
    std::vector<double> capacity, score, side;

    void reserve(const Sizes& sizes) {
        solver.reserve(sizes.nodes, sizes.edges);
        at_least(capacity, sizes.edges);
        for (auto* v : {&score, &side}) at_least(*v, sizes.nodes);
    }
};

struct ProjectScratch {
    CutFista fista;
    CutNewton newton;
    std::vector<double> node, edge, least, flow, x;

    void reserve(const Sizes& sizes) {
        fista.reserve(sizes.nodes, sizes.edges);
        newton.reserve(sizes.nodes, sizes.edges);
        for (auto* v : {&node, &x}) at_least(*v, sizes.nodes);
        for (auto* v : {&edge, &least, &flow}) at_least(*v, sizes.edges);
    }
};

// False for NaN, infinity and numbers so large that their squares overflow.
inline bool usable(const double* values, std::int64_t n) {
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    for (std::int64_t i = 0; i < n; ++i) sum[i & 3] += std::abs(values[i]);
    return sum[0] + sum[1] + sum[2] + sum[3] < 1e100;
}

inline bool usable(const Extent& size, const CutParts<const double>& parts) {
    return usable(parts.node, size.nodes) && usable(parts.edge, size.edges) &&
           usable(parts.clique, 2 * std::int64_t{size.cliques});
}

inline void clear(const Extent& size, const CutParts<double>& parts) {
    std::fill(parts.node, parts.node + size.nodes, 0.0);
    std::fill(parts.edge, parts.edge + size.edges, 0.0);
    std::fill(parts.clique, parts.clique + 2 * std::int64_t{size.cliques}, 0.0);
}

// Cliques as a cut. With t >= 0 and a in {0, 1}
//
//   t [all members 1] = max_a t a - sum_j t (a - z_j)_+,         (a - z)_+ = (|a - z| + a - z) / 2,
//   t [all members 0] = max_a t (1 - a) - sum_j t (z_j - a)_+,
//
// so an added edge has capacity t / 2, and the rest are scores of nodes (Kohli, Kumar and Torr 2007, "P3 & beyond").
inline void add_cliques(const CutExample& g, const Extent& size, const CutParts<const double>& scores,
                        ArgmaxScratch& own) {
    std::copy(scores.node, scores.node + size.nodes, own.score.data());
    double* added = own.score.data() + size.nodes;
    for (std::int32_t r = 0; r < 2 * size.cliques; ++r) {
        const double t = std::max(0.0, scores.clique[r]);
        added[r] = Extent::all_ones(r) ? t : -t;
    }
    for (std::int32_t e = size.edges; e < g.edges; ++e) {
        const std::int32_t r = size.part(g, e);
        const double half = own.capacity[e] = 0.5 * std::max(0.0, scores.clique[r]);
        const double up = Extent::all_ones(r) ? half : -half;
        own.score[Extent::member(g, e)] += up;
        added[r] -= up;
    }
}

// One example into z. flow: in the start, out the maximum flow. Edges whose score is positive are 1, parts of cliques
// whose score is negative 0.
inline std::int8_t argmax_one(const CutExample& g, const Extent& size, const CutParts<const double>& scores,
                              std::int64_t augmentations_per_arc, ArgmaxScratch& own, double* flow,
                              const CutParts<double>& z, double& value) {
    value = 0.0;
    if (!usable(size, scores)) {
        clear(size, z);
        std::fill(flow, flow + g.edges, 0.0);
        return nonfinite;
    }
    const double *node = scores.node, *edge = scores.edge;
    double *x = z.node, *y = z.edge, *p = z.clique;
    const std::int64_t limit = augmentations_per_arc * (g.nodes + 2 * static_cast<std::int64_t>(g.edges));
    if (size.cliques) {
        for (std::int32_t e = 0; e < size.edges; ++e) own.capacity[e] = std::max(0.0, -edge[e]);
        add_cliques(g, size, scores, own);
        own.solver.solve(
            g, own.score.data(), [&](std::int32_t e) { return own.capacity[e]; }, flow, own.side.data(), limit);
        std::copy(own.side.begin(), own.side.begin() + size.nodes, x);
    } else {
        own.solver.solve(g, node, [edge](std::int32_t e) { return std::max(0.0, -edge[e]); }, flow, x, limit);
    }
    for (std::int32_t j = 0; j < size.nodes; ++j) value += node[j] * x[j];
    for (std::int32_t e = 0; e < size.edges; ++e) {
        y[e] = edge[e] > 0.0 ? 1.0 : std::abs(x[g.ends[2 * e]] - x[g.ends[2 * e + 1]]);
        if (y[e] != 0.0) value += edge[e];
    }
    for (std::int32_t r = 0; r < 2 * size.cliques; ++r) p[r] = scores.clique[r] < 0.0 ? 0.0 : 1.0;
    for (std::int32_t e = size.edges; e < g.edges; ++e) {
        const std::int32_t r = size.part(g, e);
        const double member = x[Extent::member(g, e)];
        p[r] = std::min(p[r], Extent::all_ones(r) ? member : 1.0 - member);
    }
    for (std::int32_t r = 0; r < 2 * size.cliques; ++r) value += scores.clique[r] * p[r];
    return ok;
}

// z = argmax scores'z. flow: in the start, out the maximum flow, one per edge of the graphs.
inline void argmax(const CutGraphs& graphs, const CutLayout& layout, std::span<const double> scores,
                   std::int64_t augmentations_per_arc, std::span<double> flow, std::span<double> z,
                   std::span<double> value, std::span<std::int8_t> status, int threads) {
    const Sizes sizes = largest(graphs);
    ScratchLease<ArgmaxScratch> scratch(workers(graphs, threads), [&](ArgmaxScratch& own) { own.reserve(sizes); });
    parallel_each(graphs.examples(), 1, threads, [&](int thread, std::int64_t i) {
        status[i] =
            argmax_one(graphs[i], layout[i], CutParts(layout, i, scores.data()), augmentations_per_arc, scratch[thread],
                       flow.data() + graphs.edge_offsets[i], CutParts(layout, i, z.data()), value[i]);
    });
}

// Elimination order of the nodes of every example, for cut_project.
inline void order(const CutGraphs& graphs, std::span<std::int32_t> order) {
    CutOrder one;
    for (std::int64_t i = 0; i < graphs.examples(); ++i) one.run(graphs[i], order.data() + graphs.node_offsets[i]);
}

// The nodes and edges that an example is projected with. A part p of a clique is at most each member, so its node has
// target p (or 1 - p) and its edges may only rise: their flow is at least 0. A price of M |x_j - x_k| for falling, the
// edge target -M, makes them rise where M exceeds every flow; no flow needs to exceed max(0, p).
inline bool set_target(const CutExample& g, const Extent& size, const CutParts<const double>& point,
                       const std::int32_t* node_at, const std::int32_t* edge_at, const double* flow,
                       ProjectScratch& own) {
    bool feasible = true;
    for (std::int32_t j = 0; j < g.nodes; ++j) {
        const std::int32_t r = node_at[j] - size.nodes;
        own.node[j] = r < 0 ? point.node[node_at[j]] : Extent::all_ones(r) ? point.clique[r] : 1.0 - point.clique[r];
        own.x[j] = clip01(own.node[j]);
        feasible = feasible && own.x[j] == own.node[j];
    }
    for (std::int32_t e = 0; e < g.edges; ++e) {
        const std::int32_t first = g.ends[2 * e], second = g.ends[2 * e + 1], at = edge_at[e];
        const double d = own.x[first] - own.x[second];
        if (at < size.edges) {
            own.edge[e] = point.edge[at];
            own.least[e] = -std::numeric_limits<double>::infinity();
            feasible = feasible && own.edge[e] <= 1.0 && own.edge[e] >= std::abs(d);
        } else {
            const std::int32_t r = std::max(node_at[first], node_at[second]) - size.nodes;
            own.edge[e] = -1.0 - std::max(0.0, point.clique[r]);
            own.least[e] = 0.0;
            feasible = feasible && d <= 0.0;
        }
        // A flow beyond what its edge carries at any x, |f| <= 1 - a_e, is not a valid start; nor is NaN.
        const double most = std::max(0.0, 1.0 - own.edge[e]), least = std::max(-most, own.least[e]), start = flow[at];
        own.flow[e] = start > most ? most : start >= least ? start : start < least ? least : 0.0;
    }
    return feasible;
}

// z = projection of `point`. `graphs` has the nodes and edges of each example in an order of its own, in which
// neighbors are near each other and nodes are eliminated with little fill: node_order[j] and edge_order[e] are the
// places of its node j and edge e in the graph as `layout` knows it, and in flow. flow: in a start, out the net flow of
// the dual. gap: the duality gap reached. Without `newton`, and where Newton steps fail, FISTA does the work alone; on
// large graphs it comes first.
inline void project(const CutGraphs& graphs, const CutLayout& layout, std::span<const std::int32_t> node_order,
                    std::span<const std::int32_t> edge_order, std::span<const double> packed, double tol, bool newton,
                    std::int64_t step_limit, std::span<double> flow, std::span<double> z, std::span<double> value,
                    std::span<double> gap, std::span<std::int8_t> status, int threads) {
    const Sizes sizes = largest(graphs);
    ScratchLease<ProjectScratch> scratch(workers(graphs, threads), [&](ProjectScratch& own) { own.reserve(sizes); });
    parallel_each(graphs.examples(), 1, threads, [&](int thread, std::int64_t i) {
        ProjectScratch& own = scratch[thread];
        const CutExample g = graphs[i];
        const Extent size = layout[i];
        const std::int32_t* node_at = node_order.data() + graphs.node_offsets[i];
        const std::int32_t* edge_at = edge_order.data() + graphs.edge_offsets[i];
        const CutParts point(layout, i, packed.data());
        const CutParts to(layout, i, z.data());
        double* flow_out = flow.data() + graphs.edge_offsets[i];
        double* x = own.x.data();
        double* f = own.flow.data();
        value[i] = gap[i] = 0.0;
        if (!usable(size, point)) {
            clear(size, to);
            std::fill(flow_out, flow_out + g.edges, 0.0);
            status[i] = nonfinite;
            return;
        }
        status[i] = ok;
        if (set_target(g, size, point, node_at, edge_at, flow_out, own)) {
            std::fill(f, f + g.edges, 0.0);
        } else {
            const CutTarget target{g, own.node.data(), own.edge.data(), own.least.data()};
            const double rounding = gap_rounding(target), enough = std::max(0.5 * tol * tol, rounding);
            const double sought = std::max(0.5 * tol * tol, 1e-4 * rounding);
            bool open = true;
            if (newton && g.nodes >= large) {
                gap[i] = own.fista.run(target, sought, large_steps, true, f, x);
                open = !(gap[i] <= sought);
            }
            if (newton && open) {
                gap[i] = own.newton.run(target, sought, rounding, f, x);
                open = !(gap[i] <= enough);
            }
            if (open) gap[i] = own.fista.run(target, enough, step_limit, false, f, x);
            if (!(gap[i] <= enough)) status[i] = inexact;
        }
        double sum = 0.0;
        std::copy(point.clique, point.clique + 2 * std::int64_t{size.cliques}, to.clique);
        for (std::int32_t e = 0; e < g.edges; ++e) {
            const std::int32_t first = g.ends[2 * e], second = g.ends[2 * e + 1], at = edge_at[e];
            flow_out[at] = f[e];
            if (at < size.edges) {
                const double a = own.edge[e];
                const double y = std::max(std::abs(x[first] - x[second]), std::min(a, 1.0));
                sum += (y - a) * (y - a);
                to.edge[at] = y;
            } else {  // the clique's part is the last node of the two in the layout
                const std::int32_t r = std::max(node_at[first], node_at[second]) - size.nodes;
                const double member = x[node_at[first] < size.nodes ? first : second];
                to.clique[r] = std::min(to.clique[r], Extent::all_ones(r) ? member : 1.0 - member);
            }
        }
        for (std::int32_t r = 0; r < 2 * size.cliques; ++r) {
            to.clique[r] = std::max(0.0, to.clique[r]);
            sum += (to.clique[r] - point.clique[r]) * (to.clique[r] - point.clique[r]);
        }
        for (std::int32_t j = 0; j < g.nodes; ++j) {
            if (node_at[j] >= size.nodes) continue;
            sum += (x[j] - own.node[j]) * (x[j] - own.node[j]);
            to.node[node_at[j]] = x[j];
        }
        value[i] = 0.5 * sum;
    });
}

}  // namespace maxmargin::cut
