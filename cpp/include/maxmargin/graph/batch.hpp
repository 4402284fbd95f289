// Batches of pairwise networks: linear maxima, Euclidean projections and labelings over their local polytopes.
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
#include "maxmargin/cut/graph.hpp"
#include "maxmargin/graph/local_polytope.hpp"
#include "maxmargin/graph/maximum.hpp"

namespace maxmargin::network {

// Where one example's numbers are: packed vectors hold all nodes, then all edges.
template <bool table>
struct Place {
    Example<table> shape;
    std::int64_t node, edge, multiplier;

    Place(const cut::CutGraphs& graphs, std::int32_t labels, std::int64_t i)
        : shape{graphs[i], labels, nullptr, nullptr}, node(graphs.node_offsets[i] * labels),
          edge(graphs.nodes() * labels + graphs.edge_offsets[i] * shape.edge_size()),
          multiplier(2 * graphs.edge_offsets[i] * labels) {}

    Example<table> of(std::span<const double> packed) const {
        return {shape.graph, shape.labels, packed.data() + node, packed.data() + edge};
    }
};

// False for NaN, infinity and numbers so large that their squares overflow.
template <bool table>
inline bool usable(const Example<table>& x) {
    return size_of(x) < 1e100;
}

template <bool table>
inline double largest_entry(const Example<table>& x) {
    double largest = 0.0;
    for (std::int64_t p = 0; p < x.node_parts(); ++p) largest = std::max(largest, std::abs(x.node[p]));
    for (std::int64_t p = 0; p < x.edge_parts(); ++p) largest = std::max(largest, std::abs(x.edge[p]));
    return largest;
}

// Calls body(i, place, example, scratch) for every example; one with unusable numbers gets zeros and NONFINITE.
template <bool table, class Body>
void for_each(const cut::CutGraphs& graphs, std::int32_t labels, std::span<const double> packed, std::span<double> m,
              std::span<double> z, std::span<double> value, std::span<std::int8_t> status, int threads, Body&& body) {
    ScratchLease<Scratch<table>> scratch(std::clamp<std::int64_t>(graphs.examples(), 1, std::max(threads, 1)));
    cut::CutExample largest{0, 0, nullptr, nullptr, nullptr};
    for (std::int64_t i = 0; i < graphs.examples(); ++i) {
        largest.nodes = std::max(largest.nodes, graphs[i].nodes);
        largest.edges = std::max(largest.edges, graphs[i].edges);
    }
    for (std::size_t k = 0; k < scratch.size(); ++k) scratch[k].reserve({largest, labels, nullptr, nullptr});
    parallel_blocks(graphs.examples(), 1, threads, [&](int thread, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const Place<table> place(graphs, labels, i);
            const Example<table> x = place.of(packed);
            if (usable(x)) {
                body(i, place, x, scratch[thread]);
                continue;
            }
            std::fill_n(z.data() + place.node, x.node_parts(), 0.0);
            std::fill_n(z.data() + place.edge, x.edge_parts(), 0.0);
            std::fill_n(m.data() + place.multiplier, x.multipliers(), 0.0);
            value[i] = 0.0;
            status[i] = nonfinite;
        }
    });
}

// m: in a start, out the multipliers of the bound `value`. last[i]: whether bound and point may be apart by `enough`
// instead of `sought` and yet be OK, as no other solver comes after this one.
template <bool table>
void argmax(const cut::CutGraphs& graphs, std::int32_t labels, std::span<const double> scores,
            std::span<const std::int8_t> last, int pass_limit, int step_limit, std::span<double> m, std::span<double> z,
            std::span<double> value, std::span<std::int8_t> status, int threads) {
    for_each<table>(graphs, labels, scores, m, z, value, status, threads,
                    [&](std::int64_t i, const Place<table>& place, const Example<table>& x, Scratch<table>& own) {
                        Maximum<table> maximum(x, own, m.data() + place.multiplier, z.data() + place.node,
                                               z.data() + place.edge);
                        status[i] = maximum.run(pass_limit, step_limit, last[i] != 0, value[i]);
                    });
}

// Makes points of another solver feasible and values them by their multipliers. gap: bound less score.
template <bool table>
void certify(const cut::CutGraphs& graphs, std::int32_t labels, std::span<const double> scores, std::span<double> m,
             std::span<double> z, std::span<double> value, std::span<std::int8_t> status, int threads) {
    for_each<table>(graphs, labels, scores, m, z, value, status, threads,
                    [&](std::int64_t i, const Place<table>& place, const Example<table>& x, Scratch<table>& own) {
                        double* nodes = z.data() + place.node;
                        double* edges = z.data() + place.edge;
                        double* own_m = m.data() + place.multiplier;
                        value[i] = 0.0;
                        make_feasible(x, nodes, edges, own.pair.data());
                        for (std::int64_t p = 0; p < x.multipliers(); ++p)
                            if (!(std::abs(own_m[p]) < 1e100) || (!table && own_m[p] < 0.0)) own_m[p] = 0.0;
                        const double gap = bound_over_point(x, own_m, nodes, edges);
                        value[i] = score_of(x, nodes, edges) + gap;
                        status[i] = gap <= certified * range_of(x) + 10.0 * rounding * size_of(x) ? ok : inexact;
                    });
}

// z: in a relaxed point (its nodes are enough), out a labeling; value its score.
template <bool table>
void round(const cut::CutGraphs& graphs, std::int32_t labels, std::span<const double> scores, std::span<double> m,
           std::span<double> z, std::span<double> value, std::span<std::int8_t> status, int threads) {
    for_each<table>(graphs, labels, scores, m, z, value, status, threads,
                    [&](std::int64_t i, const Place<table>& place, const Example<table>& x, Scratch<table>& own) {
                        double* nodes = z.data() + place.node;
                        value[i] = round_point(x, own, m.data() + place.multiplier, nodes);
                        write_labels(x, own.label.data(), nodes, z.data() + place.edge);
                        status[i] = ok;
                    });
}

// Multipliers for a point that is far away: those of the point scaled down to the size of the polytope, where few steps
// are needed, then followed back by factors of 4. Where the nearest point no longer changes they grow in proportion.
template <bool table>
void approach(const Example<table>& x, Scratch<table>& own, double* m, double* z, double* t) {
    const double size = 1.0 + x.graph.nodes + x.graph.edges, far = range_of(x) / size;
    if (!(far > 8.0)) return;
    const double at_once = own.projector.run(x, 0.1 * size, 0.0, 10, m, z, t);
    if (at_once <= 0.1 * size) return;
    std::vector<double>& scaled = own.start;
    double scale = 2.0 / far;
    for (std::int64_t p = 0; p < x.multipliers(); ++p) scaled[p] = scale * m[p];
    for (; scale < 0.99; scale *= 4.0) {
        for (std::int64_t p = 0; p < x.node_parts(); ++p) own.node[p] = scale * x.node[p];
        for (std::int64_t p = 0; p < x.edge_parts(); ++p) own.edge[p] = scale * x.edge[p];
        const Example<table> near{x.graph, x.labels, own.node.data(), own.edge.data()};
        own.projector.run(near, 1e-4 * size, 0.0, 60, scaled.data(), z, t);
        const double factor = std::min(4.0, 1.0 / scale);
        for (std::int64_t p = 0; p < x.multipliers(); ++p) scaled[p] *= factor;
    }
    const double found = own.projector.value(x, scaled.data());
    if (found > own.projector.value(x, m)) std::copy_n(scaled.begin(), x.multipliers(), m);
}

// m: in a start, out the multipliers of the projection. gap: the duality gap reached.
template <bool table>
void project(const cut::CutGraphs& graphs, std::int32_t labels, std::span<const double> point, double tol,
             int step_limit, bool warm, std::span<double> m, std::span<double> z, std::span<double> value,
             std::span<double> gap, std::span<std::int8_t> status, int threads) {
    std::fill(gap.begin(), gap.end(), 0.0);
    for_each<table>(graphs, labels, point, m, z, value, status, threads,
                    [&](std::int64_t i, const Place<table>& place, const Example<table>& x, Scratch<table>& own) {
                        double* start = m.data() + place.multiplier;
                        double* nodes = z.data() + place.node;
                        double* edges = z.data() + place.edge;
                        const std::int64_t n = x.multipliers();
                        // The given multipliers if they beat zeros; otherwise zeros or those of a linear program,
                        // whichever have the better dual value: far away from the polytope the nearest point is nearly
                        // a maximum.
                        double best = own.projector.value(x, start);
                        const auto compare = [&] {
                            const double found = own.projector.value(x, own.trial.data());
                            if (!(found > best)) return;
                            best = found;
                            std::copy_n(own.trial.begin(), n, start);
                        };
                        const double given = best;
                        std::fill_n(own.trial.begin(), n, 0.0);
                        if (warm) compare();
                        if (!warm || best > given) {
                            Messages<table>::admit(x, own.trial.data());
                            for (int pass = 0; pass < 4; ++pass)
                                own.messages.pass(x, pass % 2 == 0, pass == 0, own.trial.data());
                            compare();
                        }
                        // Entries of size a leave sums of t wrong by eps a, and a wrong part may cost a.
                        const double entry = 1.0 + largest_entry(x),
                                     rounding_gap = 4e-16 * (1.0 + x.graph.edges) * entry * entry;
                        approach(x, own, start, nodes, edges);
                        gap[i] = own.projector.run(x, 0.5 * tol * tol, rounding_gap, step_limit, start, nodes, edges);
                        status[i] = gap[i] <= std::max(0.5 * tol * tol, rounding_gap) ? ok : inexact;
                        double sum = 0.0;
                        for (std::int64_t p = 0; p < x.node_parts(); ++p)
                            sum += (nodes[p] - x.node[p]) * (nodes[p] - x.node[p]);
                        for (std::int64_t p = 0; p < x.edge_parts(); ++p)
                            sum += (edges[p] - x.edge[p]) * (edges[p] - x.edge[p]);
                        value[i] = 0.5 * sum;
                    });
}

}  // namespace maxmargin::network
