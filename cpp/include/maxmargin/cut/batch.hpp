// Batches of cuts: argmax and Euclidean projection over 0 <= z_j <= 1, |z_j - z_k| <= z_jk <= 1.
//
// Status codes as everywhere: 0 OK, 1 INEXACT, 2 NONFINITE.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
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

struct ArgmaxScratch {
    MaxFlow solver;
    std::vector<double> capacity;

    void reserve(const Sizes& sizes) {
        solver.reserve(sizes.nodes, sizes.edges);
        at_least(capacity, sizes.edges);
    }
};

struct ProjectScratch {
    CutFista fista;
    CutNewton newton;
    std::vector<double> node, edge, flow, x;

    void reserve(const Sizes& sizes) {
        fista.reserve(sizes.nodes, sizes.edges);
        newton.reserve(sizes.nodes, sizes.edges);
        for (auto* v : {&node, &x}) at_least(*v, sizes.nodes);
        for (auto* v : {&edge, &flow}) at_least(*v, sizes.edges);
    }
};

// False for NaN, infinity and numbers so large that their squares overflow.
inline bool usable(const double* values, std::int64_t n) {
    double sum = 0.0;
    for (std::int64_t i = 0; i < n; ++i) sum += std::abs(values[i]);
    return sum < 1e100;
}

// One example: nodes into x, edges into y. flow: in the start, out the maximum flow.
inline std::int8_t argmax_one(const CutExample& g, const double* node, const double* edge,
                              std::int64_t augmentations_per_arc, ArgmaxScratch& own, double* flow, double* x,
                              double* y, double& value) {
    value = 0.0;
    if (!usable(node, g.nodes) || !usable(edge, g.edges)) {
        std::fill(x, x + g.nodes, 0.0);
        std::fill(y, y + g.edges, 0.0);
        std::fill(flow, flow + g.edges, 0.0);
        return nonfinite;
    }
    for (std::int32_t e = 0; e < g.edges; ++e) own.capacity[e] = std::max(0.0, -edge[e]);
    const std::int64_t limit = augmentations_per_arc * (g.nodes + 2 * static_cast<std::int64_t>(g.edges));
    own.solver.solve(g, node, own.capacity.data(), flow, x, limit);
    for (std::int32_t j = 0; j < g.nodes; ++j) value += node[j] * x[j];
    for (std::int32_t e = 0; e < g.edges; ++e) {
        y[e] = edge[e] > 0.0 ? 1.0 : std::abs(x[g.ends[2 * e]] - x[g.ends[2 * e + 1]]);
        value += edge[e] * y[e];
    }
    return ok;
}

// z = argmax scores'z (packed: all nodes, then all edges). flow: in the start, out the maximum flow, one per edge.
inline void argmax(const CutGraphs& graphs, std::span<const double> scores, std::int64_t augmentations_per_arc,
                   std::span<double> flow, std::span<double> z, std::span<double> value, std::span<std::int8_t> status,
                   int threads) {
    const Sizes sizes = largest(graphs);
    ScratchLease<ArgmaxScratch> scratch(workers(graphs, threads), [&](ArgmaxScratch& own) { own.reserve(sizes); });
    parallel_each(graphs.examples(), 1, threads, [&](int thread, std::int64_t i) {
        const std::int64_t node0 = graphs.node_offsets[i], edge0 = graphs.edge_offsets[i], edges = graphs.nodes();
        status[i] =
            argmax_one(graphs[i], scores.data() + node0, scores.data() + edges + edge0, augmentations_per_arc,
                       scratch[thread], flow.data() + edge0, z.data() + node0, z.data() + edges + edge0, value[i]);
    });
}

// Elimination order of the nodes of every example, for cut_project.
inline void order(const CutGraphs& graphs, std::span<std::int32_t> order) {
    CutOrder one;
    for (std::int64_t i = 0; i < graphs.examples(); ++i) one.run(graphs[i], order.data() + graphs.node_offsets[i]);
}

// z = projection of `point`. `graphs` has the nodes and edges of each example in an order of its own, in which
// neighbors are near each other and nodes are eliminated with little fill: node_order[j] and edge_order[e] are the
// places of its node j and edge e in the example's part of point, z and flow. flow: in a start, out the net flow of the
// dual. gap: the duality gap reached. Without `newton`, and where Newton steps fail, FISTA does the work alone.
inline void project(const CutGraphs& graphs, std::span<const std::int32_t> node_order,
                    std::span<const std::int32_t> edge_order, std::span<const double> point, double tol, bool newton,
                    std::int64_t step_limit, std::span<double> flow, std::span<double> z, std::span<double> value,
                    std::span<double> gap, std::span<std::int8_t> status, int threads) {
    const Sizes sizes = largest(graphs);
    ScratchLease<ProjectScratch> scratch(workers(graphs, threads), [&](ProjectScratch& own) { own.reserve(sizes); });
    parallel_each(graphs.examples(), 1, threads, [&](int thread, std::int64_t i) {
        ProjectScratch& own = scratch[thread];
        const CutExample g = graphs[i];
        const std::int64_t node0 = graphs.node_offsets[i], edge0 = graphs.edge_offsets[i];
        const std::int32_t* node_at = node_order.data() + node0;
        const std::int32_t* edge_at = edge_order.data() + edge0;
        const double* node = point.data() + node0;
        const double* edge = point.data() + graphs.nodes() + edge0;
        double* z_node = z.data() + node0;
        double* z_edge = z.data() + graphs.nodes() + edge0;
        double* flow_out = flow.data() + edge0;
        double* x = own.x.data();
        double* f = own.flow.data();
        value[i] = gap[i] = 0.0;
        if (!usable(node, g.nodes) || !usable(edge, g.edges)) {
            std::fill(z_node, z_node + g.nodes, 0.0);
            std::fill(z_edge, z_edge + g.edges, 0.0);
            std::fill(flow_out, flow_out + g.edges, 0.0);
            status[i] = nonfinite;
            return;
        }
        bool feasible = true;
        for (std::int32_t j = 0; j < g.nodes; ++j) {
            own.node[j] = node[node_at[j]];
            x[j] = clip01(own.node[j]);
            feasible = feasible && x[j] == own.node[j];
        }
        for (std::int32_t e = 0; e < g.edges; ++e) {
            const double a = own.edge[e] = edge[edge_at[e]];
            feasible = feasible && a <= 1.0 && a >= std::abs(x[g.ends[2 * e]] - x[g.ends[2 * e + 1]]);
            // A flow beyond what its edge carries at any x, |f| <= 1 - a_e, is not a valid start; nor is NaN.
            const double most = std::max(0.0, 1.0 - a), start = flow_out[edge_at[e]];
            f[e] = start > most ? most : start >= -most ? start : start < -most ? -most : 0.0;
        }
        status[i] = ok;
        if (feasible) {
            std::fill(f, f + g.edges, 0.0);
        } else {
            const CutTarget target{g, own.node.data(), own.edge.data()};
            const double rounding = gap_rounding(target), enough = std::max(0.5 * tol * tol, rounding);
            const double sought = std::max(0.5 * tol * tol, 1e-4 * rounding);
            if (newton) gap[i] = own.newton.run(target, sought, rounding, f, x);
            if (!newton || !(gap[i] <= enough)) gap[i] = own.fista.run(target, enough, step_limit, f, x);
            if (!(gap[i] <= enough)) status[i] = inexact;
        }
        double sum = 0.0;
        for (std::int32_t e = 0; e < g.edges; ++e) {
            const double a = own.edge[e];
            const double y = std::max(std::abs(x[g.ends[2 * e]] - x[g.ends[2 * e + 1]]), std::min(a, 1.0));
            sum += (y - a) * (y - a);
            z_edge[edge_at[e]] = y;
            flow_out[edge_at[e]] = f[e];
        }
        for (std::int32_t j = 0; j < g.nodes; ++j) {
            sum += (x[j] - own.node[j]) * (x[j] - own.node[j]);
            z_node[node_at[j]] = x[j];
        }
        value[i] = 0.5 * sum;
    });
}

}  // namespace maxmargin::cut
