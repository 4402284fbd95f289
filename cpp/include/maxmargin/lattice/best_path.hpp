// The best path of a lattice: the largest sum of edge scores, by one pass over the edges in topological order.
#pragma once

#include <cmath>

#include "maxmargin/base/simd.hpp"
#include "maxmargin/hull/batch.hpp"
#include "maxmargin/lattice/batch.hpp"

namespace maxmargin::lattice {

// best[v]: the largest score of a path from the start to v; -inf if all are forbidden.
inline void forward_maxima(const Example& ex, const double* MM_RESTRICT scores, double* MM_RESTRICT best) {
    best[0] = 0.0;
    std::int64_t j = 0;
    for (std::int64_t v = 1; v < ex.n_nodes; ++v) {
        double most = NEG_INF;
        for (; j < ex.first[v + 1]; ++j) {
            const double sum = best[ex.tail[j]] + scores[ex.edge[j]];
            most = sum > most ? sum : most;
        }
        best[v] = most;
    }
}

// The first of the edges into v on a best path to v.
inline std::int64_t best_edge(const Example& ex, const double* scores, const double* best, std::int64_t v) {
    std::int64_t j = ex.first[v];
    while (best[ex.tail[j]] + scores[ex.edge[j]] != best[v]) ++j;
    return j;
}

// Leaves forward maxima and the best path in scratch; of equal paths the one with the first edge into the end, then
// into the node before it, and so on.
inline Status best_path(const Example& ex, const double* scores, Passes& scratch, double& value) {
    if (simd::refused(simd::lanes_in_use(), scores, ex.n_parts)) return Status::nonfinite;
    scratch.fit(ex);
    const double* best = scratch.at_node.data();
    forward_maxima(ex, scores, scratch.at_node.data());
    value = best[ex.last()];
    if (value == NEG_INF) return Status::absent;
    if (!std::isfinite(value)) return Status::nonfinite;
    scratch.path.clear();
    for (std::int64_t v = ex.last(); v > 0;) {
        const std::int64_t j = best_edge(ex, scores, best, v);
        scratch.path.push_back(ex.edge[j]);
        v = ex.tail[j];
    }
    std::reverse(scratch.path.begin(), scratch.path.end());
    return Status::ok;
}

// z must be zero on entry.
inline void argmax(const Batch& batch, std::span<const double> scores, std::span<double> z, std::span<double> value,
                   std::span<std::int8_t> status, int threads) {
    auto scratch = per_thread<Passes>(threads);
    parallel_each(batch.size(), batch.grain(), threads, [&](int thread, std::int64_t i) {
        const Status found = best_path(batch[i], scores.data() + batch.begin(i), scratch[thread], value[i]);
        if (found == Status::ok) mark(scratch[thread].path, z.data() + batch.begin(i));
        else value[i] = no_value(found);
        status[i] = static_cast<std::int8_t>(found);
    });
}

}  // namespace maxmargin::lattice
