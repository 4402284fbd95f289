// Batches of cuts: argmax and Euclidean projection over 0 <= z_j <= 1, |z_j - z_k| <= z_jk <= 1.
//
// Status codes as everywhere: 0 OK, 1 INEXACT, 2 NONFINITE.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "maxmargin/cut_dual.hpp"
#include "maxmargin/cut_graph.hpp"
#include "maxmargin/cut_newton.hpp"
#include "maxmargin/cut_order.hpp"
#include "maxmargin/maxflow.hpp"
#include "maxmargin/parallel.hpp"

namespace maxmargin {

namespace cut {

constexpr std::int8_t ok = 0, inexact = 1, nonfinite = 2;

struct Sizes {
    std::int32_t nodes = 0, edges = 0;
};

inline Sizes largest(const CutGraphs& graphs) {
    Sizes sizes;
    for (std::int64_t i = 0; i < graphs.examples(); ++i) {
        sizes.nodes = std::max(sizes.nodes, graphs[i].nodes);
        sizes.edges = std::max(sizes.edges, graphs[i].edges);
    }
    return sizes;
}

// Sum of squares (or of absolute values): finite exactly if the input is and can be computed with.
inline bool usable(const double* values, std::int64_t n) {
    double sum = 0.0;
    for (std::int64_t i = 0; i < n; ++i) sum += std::abs(values[i]);
    return std::isfinite(sum) && sum < 1e150;
}

}  // namespace cut

// z = argmax scores'z (packed: all nodes, then all edges). flow: in the start, out the maximum flow, one per edge.
inline void cut_argmax(const CutGraphs& graphs, std::span<const double> scores, std::int64_t augmentations_per_arc,
                       std::span<double> flow, std::span<double> z, std::span<double> value,
                       std::span<std::int8_t> status, int threads) {
    struct Scratch {
        MaxFlow solver;
        std::vector<double> capacity;
    };
    const cut::Sizes sizes = cut::largest(graphs);
    std::vector<Scratch> scratch(std::clamp<std::int64_t>(graphs.examples(), 1, std::max(threads, 1)));
    for (auto& own : scratch) {
        own.solver.reserve(sizes.nodes, sizes.edges);
        own.capacity.resize(sizes.edges);
    }
    parallel_blocks(graphs.examples(), 1, threads, [&](int thread, std::int64_t begin, std::int64_t end) {
        Scratch& own = scratch[thread];
        for (std::int64_t i = begin; i < end; ++i) {
            const CutExample g = graphs[i];
            const std::int64_t node0 = graphs.node_offsets[i], edge0 = graphs.edge_offsets[i];
            const double* node = scores.data() + node0;
            const double* edge = scores.data() + graphs.nodes() + edge0;
            double* x = z.data() + node0;
            double* y = z.data() + graphs.nodes() + edge0;
            double* f = flow.data() + edge0;
            if (!cut::usable(node, g.nodes) || !cut::usable(edge, g.edges)) {
                std::fill(x, x + g.nodes, 0.0);
                std::fill(y, y + g.edges, 0.0);
                std::fill(f, f + g.edges, 0.0);
                value[i] = 0.0;
                status[i] = cut::nonfinite;
                continue;
            }
            for (std::int32_t e = 0; e < g.edges; ++e) own.capacity[e] = std::max(0.0, -edge[e]);
            const std::int64_t limit = augmentations_per_arc * (g.nodes + 2 * static_cast<std::int64_t>(g.edges));
            own.solver.solve(g, node, own.capacity.data(), f, x, limit);
            double sum = 0.0;
            for (std::int32_t j = 0; j < g.nodes; ++j) sum += node[j] * x[j];
            for (std::int32_t e = 0; e < g.edges; ++e) {
                y[e] = edge[e] > 0.0 ? 1.0 : std::abs(x[g.ends[2 * e]] - x[g.ends[2 * e + 1]]);
                sum += edge[e] * y[e];
            }
            value[i] = sum;
            status[i] = cut::ok;
        }
    });
}

// Elimination order of the nodes of every example, for cut_project.
inline void cut_order(const CutGraphs& graphs, std::span<std::int32_t> order) {
    CutOrder one;
    for (std::int64_t i = 0; i < graphs.examples(); ++i) one.run(graphs[i], order.data() + graphs.node_offsets[i]);
}

// z = projection of `point`; flow as above (net flow of the dual), gap[i] the duality gap reached.
inline void cut_project(const CutGraphs& graphs, std::span<const std::int32_t> order,
                        std::span<const double> point, double tol, int method, std::int64_t step_limit,
                        std::span<double> flow, std::span<double> z, std::span<double> value,
                        std::span<double> gap, std::span<std::int8_t> status, int threads) {
    struct Scratch {
        CutFista fista;
        CutNewton newton;
    };
    const cut::Sizes sizes = cut::largest(graphs);
    std::vector<Scratch> scratch(std::clamp<std::int64_t>(graphs.examples(), 1, std::max(threads, 1)));
    for (auto& own : scratch) {own.fista.reserve(sizes.nodes, sizes.edges);own.newton.reserve(sizes.nodes, sizes.edges);}
    parallel_blocks(graphs.examples(), 1, threads, [&](int thread, std::int64_t begin, std::int64_t end) {
        Scratch& own = scratch[thread];
        for (std::int64_t i = begin; i < end; ++i) {
            const CutExample g = graphs[i];
            const std::int64_t node0 = graphs.node_offsets[i], edge0 = graphs.edge_offsets[i];
            const CutTarget target{g, point.data() + node0, point.data() + graphs.nodes() + edge0};
            double* x = z.data() + node0;
            double* y = z.data() + graphs.nodes() + edge0;
            double* f = flow.data() + edge0;
            value[i] = gap[i] = 0.0;
            if (!cut::usable(target.node, g.nodes) || !cut::usable(target.edge, g.edges)) {
                std::fill(x, x + g.nodes, 0.0);
                std::fill(y, y + g.edges, 0.0);
                std::fill(f, f + g.edges, 0.0);
                status[i] = cut::nonfinite;
                continue;
            }
            // A flow beyond what its edge can carry at any x, |f| <= 1 - a_e, is no start; nor is a stray NaN.
            bool feasible = true;
            for (std::int32_t j = 0; j < g.nodes; ++j) {
                x[j] = clip01(target.node[j]);
                feasible = feasible && x[j] == target.node[j];
            }
            for (std::int32_t e = 0; e < g.edges; ++e) {
                const double most = std::max(0.0, 1.0 - target.edge[e]);
                f[e] = f[e] > most ? most : f[e] >= -most ? f[e] : f[e] < -most ? -most : 0.0;
                feasible = feasible && target.edge[e] <= 1.0 &&
                           target.edge[e] >= std::abs(x[g.ends[2 * e]] - x[g.ends[2 * e + 1]]);
            }
            status[i] = cut::ok;
            if (feasible) {
                std::fill(f, f + g.edges, 0.0);
            } else {
                const double enough = std::max(0.5 * tol * tol, gap_rounding(target));
                if (method == 0) {
                    const char* s0 = getenv("CUT_S"); const char* gr = getenv("CUT_G");
                    gap[i] = own.newton.run(target, order.data() + node0, enough, s0 ? atof(s0) : 10.0, gr ? atof(gr) : 3.0, f, x);
                }
                else gap[i] = own.fista.run(target, enough, step_limit, f, x);
                if (!(gap[i] <= enough)) status[i] = cut::inexact;
            }
            double sum = 0.0;
            for (std::int32_t e = 0; e < g.edges; ++e) {
                const double a = target.edge[e];
                y[e] = std::max(std::abs(x[g.ends[2 * e]] - x[g.ends[2 * e + 1]]), std::min(a, 1.0));
                sum += (y[e] - a) * (y[e] - a);
            }
            for (std::int32_t j = 0; j < g.nodes; ++j) sum += (x[j] - target.node[j]) * (x[j] - target.node[j]);
            value[i] = 0.5 * sum;
        }
    });
}

}  // namespace maxmargin
