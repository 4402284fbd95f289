// Sum-product on chains: log-partition function and marginals of p(y) ~ exp(potentials'y), threads over examples. Each
// example is computed with scaled probabilities, or in the log domain if those would lose precision.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "maxmargin/base/flush.hpp"
#include "maxmargin/base/parallel.hpp"
#include "maxmargin/chain/sum_product_logs.hpp"
#include "maxmargin/chain/sum_product_scaled.hpp"

namespace maxmargin::chain {

// Log-partition function and marginals of one example; the status otherwise. Means are all written where it is ok.
template <class Vec>
MM_INLINE Status sum_product_at(const Panels& panels, const Task& task, bool by_logs, SumScratch& scratch,
                                double& value) {
    const std::int64_t square = panels.n_labels * panels.n_labels;
    const std::int64_t n_pairs = task.shared ? square : std::max<std::int64_t>(task.length - 1, 0) * square;
    value = 0.0;
    if (refused_at<Vec>(task.pairs, n_pairs) || refused_at<Vec>(task.nodes, task.length * panels.n_labels))
        return Status::nonfinite;
    if (task.shared && task.length < 2) std::fill(task.pair_means, task.pair_means + square, 0.0);
    if (task.length == 0) return Status::ok;
    if (!by_logs && scaled<Vec>(panels, task, scratch, value)) return Status::ok;
    return logs<Vec>(panels, task, scratch, value);
}
MM_LEVELS(sum_product)

// Every entry of z, value, status and edges (empty, or K x K for every edge of the batch) is written. With `by_logs`
// all examples are computed in the log domain, for tests.
inline void marginals(const Batch& batch, bool by_logs, std::span<const double> potentials, std::span<double> z,
                      std::span<double> value, std::span<std::int8_t> status, std::span<double> edges, int threads) {
    const Panels panels(batch.n_labels, lanes_in_use());
    const std::int64_t n = batch.n_examples(), square = batch.n_labels * batch.n_labels;
    std::vector<std::int64_t> first_edge;
    if (!edges.empty()) {
        first_edge.push_back(0);
        for (std::int64_t i = 0; i < n; ++i)
            first_edge.push_back(first_edge.back() + std::max<std::int64_t>(batch.length(i) - 1, 0) * square);
    }
    auto scratch = per_thread<SumScratch>(threads, panels, batch.longest(), batch.shared);
    parallel_blocks(n, 4, threads, [&](int thread, std::int64_t begin, std::int64_t end) {
        const FlushToZero flush;
        for (std::int64_t i = begin; i < end; ++i) {
            const Task task{batch.shared,
                            batch.length(i),
                            potentials.data() + batch.nodes[i],
                            potentials.data() + batch.pairs[i],
                            z.data() + batch.nodes[i],
                            z.data() + batch.pairs[i],
                            edges.empty() ? nullptr : edges.data() + first_edge[i]};
            const Status found = sum_product(panels.lanes, panels, task, by_logs, scratch[thread], value[i]);
            status[i] = static_cast<std::int8_t>(found);
            if (found == Status::ok) continue;
            value[i] = found == Status::absent ? NEG_INF : std::numeric_limits<double>::quiet_NaN();
            std::fill(z.begin() + batch.nodes[i], z.begin() + batch.nodes[i + 1], 0.0);
            std::fill(z.begin() + batch.pairs[i], z.begin() + batch.pairs[i + 1], 0.0);
            if (task.edges) std::fill(edges.begin() + first_edge[i], edges.begin() + first_edge[i + 1], 0.0);
        }
    });
}

}  // namespace maxmargin::chain
