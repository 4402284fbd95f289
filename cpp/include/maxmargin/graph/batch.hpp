// Batches of pairwise networks: linear maxima, Euclidean projections and labelings over their local polytopes.
//
// Status codes as everywhere: 0 OK, 1 INEXACT, 2 NONFINITE.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "maxmargin/base/parallel.hpp"
#include "maxmargin/base/scratch.hpp"
#include "maxmargin/cut/graph.hpp"
#include "maxmargin/graph/local_polytope.hpp"
#include "maxmargin/graph/maximum.hpp"

namespace maxmargin::network {

// Where the numbers of one example go: parts of a packed vector, which holds all nodes, then all edges; multipliers.
struct Place {
    double *nodes, *edges, *multipliers;
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

// Sets status[i] = body(i, example, place, scratch) for every example; one with unusable numbers gets zeros and
// NONFINITE.
template <bool table, class Body>
void for_each(const cut::CutGraphs& graphs, std::int32_t labels, std::span<const double> packed, std::span<double> m,
              std::span<double> z, std::span<double> value, std::span<std::int8_t> status, int threads, Body&& body) {
    const cut::Sizes most = cut::largest(graphs);
    const cut::CutExample sizes{most.nodes, most.edges, nullptr, nullptr, nullptr, nullptr, nullptr};
    const Example<table> largest{sizes, labels, nullptr, nullptr};
    ScratchLease<Scratch<table>> scratch(cut::workers(graphs, threads),
                                         [&](Scratch<table>& own) { own.reserve(largest); });
    parallel_each(graphs.examples(), 1, threads, [&](int thread, std::int64_t i) {
        const std::int64_t node = graphs.node_offsets[i] * labels, first_edge = graphs.edge_offsets[i];
        const std::int64_t edge = graphs.nodes() * labels + first_edge * largest.edge_size();
        const Example<table> x{graphs[i], labels, packed.data() + node, packed.data() + edge};
        const Place to{z.data() + node, z.data() + edge, m.data() + 2 * first_edge * labels};
        if (usable(x)) {
            status[i] = body(i, x, to, scratch[thread]);
            return;
        }
        std::fill_n(to.nodes, x.node_parts(), 0.0);
        std::fill_n(to.edges, x.edge_parts(), 0.0);
        std::fill_n(to.multipliers, x.multipliers(), 0.0);
        value[i] = 0.0;
        status[i] = nonfinite;
    });
}

// m: in a start, out the multipliers of the bound `value`. tol: how far bounds and points may be apart in all and yet
// be OK, 0 for as near as can be; an example keeps to its share where labelings alone do not keep to the whole.
// last[i]: whether they may be apart by `enough` instead of `sought`, as no other solver comes after this one; 2:
// messages alone, without steps.
template <bool table>
void argmax(const cut::CutGraphs& graphs, std::int32_t labels, std::span<const double> scores, double tol,
            std::span<const std::int8_t> last, int pass_limit, int step_limit, std::span<double> m, std::span<double> z,
            std::span<double> value, std::span<std::int8_t> status, int threads) {
    const auto share = [&](const Example<table>& x) {
        return tol * static_cast<double>(x.node_parts() + x.edge_parts()) / static_cast<double>(z.size());
    };
    std::vector<double> gaps(status.size());
    for_each<table>(graphs, labels, scores, m, z, value, status, threads,
                    [&](std::int64_t i, const auto& x, const Place& to, auto& own) {
                        Maximum<table> maximum(x, own, share(x), to.multipliers, to.nodes, to.edges);
                        return maximum.find_labeling(pass_limit, step_limit > 0 && last[i] != 2, value[i], gaps[i]);
                    });
    if (std::accumulate(gaps.begin(), gaps.end(), 0.0) <= tol) {
        std::replace(status.begin(), status.end(), inexact, ok);
        return;
    }
    for_each<table>(graphs, labels, scores, m, z, value, status, threads,
                    [&](std::int64_t i, const auto& x, const Place& to, auto& own) {
                        if (status[i] == ok) return ok;
                        Maximum<table> maximum(x, own, share(x), to.multipliers, to.nodes, to.edges);
                        return maximum.find_fractions(last[i] == 2 ? 0 : step_limit, last[i] != 0, value[i]);
                    });
}

// Makes points of another solver feasible and values them by their multipliers. gap: bound less score.
template <bool table>
void certify(const cut::CutGraphs& graphs, std::int32_t labels, std::span<const double> scores, std::span<double> m,
             std::span<double> z, std::span<double> value, std::span<std::int8_t> status, int threads) {
    for_each<table>(graphs, labels, scores, m, z, value, status, threads,
                    [&](std::int64_t i, const auto& x, const Place& to, auto& own) {
                        make_feasible(x, to.nodes, to.edges, own.pair.data());
                        Projector<table>::admit(x, to.multipliers);
                        const double gap = bound_over_point(x, to.multipliers, to.nodes, to.edges);
                        value[i] = score_of(x, to.nodes, to.edges) + gap;
                        return gap <= certified * range_of(x) + 10.0 * rounding * size_of(x) ? ok : inexact;
                    });
}

// z: in a relaxed point (its nodes are enough), out a labeling; value its score.
template <bool table>
void round(const cut::CutGraphs& graphs, std::int32_t labels, std::span<const double> scores, std::span<double> m,
           std::span<double> z, std::span<double> value, std::span<std::int8_t> status, int threads) {
    for_each<table>(graphs, labels, scores, m, z, value, status, threads,
                    [&](std::int64_t i, const auto& x, const Place& to, auto& own) {
                        value[i] = round_point(x, own, to.multipliers, to.nodes);
                        write_labels(x, own.label.data(), to.nodes, to.edges);
                        return ok;
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

// Multipliers to start a projection from: the given ones if they beat zeros; otherwise zeros or those of a linear
// program, whichever have the better dual value: far away from the polytope the nearest point is nearly a maximum.
template <bool table>
void choose_start(const Example<table>& x, Scratch<table>& own, bool warm, double* m) {
    const std::int64_t n = x.multipliers();
    const double given = own.projector.value(x, m);
    double best = given;
    const auto compare = [&] {
        const double found = own.projector.value(x, own.trial.data());
        if (!(found > best)) return;
        best = found;
        std::copy_n(own.trial.begin(), n, m);
    };
    std::fill_n(own.trial.begin(), n, 0.0);
    if (warm) compare();
    if (warm && !(best > given)) return;
    Messages<table>::admit(x, own.trial.data());
    for (int pass = 0; pass < 4; ++pass) own.messages.pass(x, pass % 2 == 0, pass == 0, own.trial.data());
    compare();
}

// m: in a start, out the multipliers of the projection. gap: the duality gap reached.
template <bool table>
void project(const cut::CutGraphs& graphs, std::int32_t labels, std::span<const double> point, double tol,
             int step_limit, bool warm, std::span<double> m, std::span<double> z, std::span<double> value,
             std::span<double> gap, std::span<std::int8_t> status, int threads) {
    std::fill(gap.begin(), gap.end(), 0.0);
    for_each<table>(graphs, labels, point, m, z, value, status, threads,
                    [&](std::int64_t i, const auto& x, const Place& to, auto& own) {
                        const auto [nodes, edges, multipliers] = to;
                        choose_start(x, own, warm, multipliers);
                        approach(x, own, multipliers, nodes, edges);
                        // Entries of size a leave sums of t wrong by eps a, and a wrong part may cost a.
                        const double entry = 1.0 + largest_entry(x), sought = 0.5 * tol * tol,
                                     rounding_gap = 4e-16 * (1.0 + x.graph.edges) * entry * entry;
                        gap[i] = own.projector.run(x, sought, rounding_gap, step_limit, multipliers, nodes, edges);
                        double sum = 0.0;
                        for (std::int64_t p = 0; p < x.node_parts(); ++p)
                            sum += (nodes[p] - x.node[p]) * (nodes[p] - x.node[p]);
                        for (std::int64_t p = 0; p < x.edge_parts(); ++p)
                            sum += (edges[p] - x.edge[p]) * (edges[p] - x.edge[p]);
                        value[i] = 0.5 * sum;
                        return gap[i] <= std::max(sought, rounding_gap) ? ok : inexact;
                    });
}

}  // namespace maxmargin::network
