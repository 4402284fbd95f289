// Marginals of p(path) ~ exp(sum of its potentials), in logs: one exponential per edge and one logarithm per node.
//
// The forward pass keeps log-sums over the paths to each node, and for each edge its share among those into its head,
// the probability that a path through the head has come by that edge. The backward pass multiplies these shares from
// the end on: what flows out of a node, its own marginal, is divided among the edges into it. So the marginals are a
// flow to rounding, whatever the potentials.
#pragma once

#include <cmath>

#include "maxmargin/base/simd_exp.hpp"
#include "maxmargin/lattice/best_path.hpp"

namespace maxmargin::lattice {

// The forward pass: log-sums into sums, shares into share (edges by their heads). False if all paths are forbidden or
// sums overflow.
template <class Vec>
MM_INLINE bool forward_sums_at(const Example& ex, const double* MM_RESTRICT potentials, double* MM_RESTRICT sums,
                               double* MM_RESTRICT share) {
    using namespace simd;
    constexpr std::int64_t width = lanes<Vec>;
    sums[0] = 0.0;
    for (std::int64_t v = 1; v < ex.n_nodes; ++v) {
        const std::int64_t begin = ex.first[v], end = ex.first[v + 1];
        double most = NEG_INF;
        for (std::int64_t j = begin; j < end; ++j) {
            const double sum = sums[ex.tail[j]] + potentials[ex.edge[j]];
            share[j] = sum;
            most = sum > most ? sum : most;
        }
        sums[v] = most;
        if (!(std::fabs(most) <= std::numeric_limits<double>::max())) {
            if (most != NEG_INF) {
                sums[ex.last()] = most;
                return false;
            }
            for (std::int64_t j = begin; j < end; ++j) share[j] = 0.0;
            continue;
        }
        if (end - begin == 1) {
            share[begin] = 1.0;
            continue;
        }
        double total = 0.0;
        std::int64_t j = begin;
        for (; j + width <= end; j += width) {
            const Vec p = exp_negative<Vec>(load<Vec>(share + j) - most);
            store(share + j, p);
            total += simd::total(p);
        }
        if (j < end) {
            Vec rest = Vec{} + NEG_INF;
            for (std::int64_t k = j; k < end; ++k) rest[k - j] = share[k] - most;
            rest = exp_negative<Vec>(rest);
            for (std::int64_t k = j; k < end; ++k) share[k] = rest[k - j];
            total += simd::total(rest);
        }
        const double inverse = 1.0 / total;
        for (std::int64_t k = begin; k < end; ++k) share[k] *= inverse;
        sums[v] = most + std::log(total);
    }
    return std::isfinite(sums[ex.last()]);
}
MM_LEVELS(forward_sums)

// The unit flow whose edges into each node have the given shares of what flows out of it: into z, which is zero.
inline void flow_by_shares(const Example& ex, const double* MM_RESTRICT share, double* MM_RESTRICT flow,
                           double* MM_RESTRICT z) {
    std::fill(flow, flow + ex.n_nodes, 0.0);
    flow[ex.last()] = 1.0;
    for (std::int64_t v = ex.last(); v > 0; --v) {
        if (flow[v] == 0.0) continue;
        for (std::int64_t j = ex.first[v]; j < ex.first[v + 1]; ++j) {
            const double passed = flow[v] * share[j];
            z[ex.edge[j]] = passed;
            flow[ex.tail[j]] += passed;
        }
    }
}

// z must be zero on entry.
inline void marginals(const Batch& batch, std::span<const double> potentials, std::span<double> z,
                      std::span<double> value, std::span<std::int8_t> status, int threads) {
    const int widest = simd::lanes_in_use();
    auto scratch = per_thread<Passes>(threads);
    parallel_each(batch.size(), batch.grain(), threads, [&](int thread, std::int64_t i) {
        const Example ex = batch[i];
        const double* own = potentials.data() + batch.begin(i);
        Passes& mine = scratch[thread];
        mine.fit(ex);
        double *sums = mine.at_node.data(), *share = mine.at_edge.data();
        Status found = Status::nonfinite;
        if (!simd::refused(widest, own, ex.n_parts)) {
            if (forward_sums(widest, ex, own, sums, share)) found = Status::ok;
            else if (sums[ex.last()] == NEG_INF) found = Status::absent;
        }
        if (found == Status::ok) flow_by_shares(ex, share, mine.flow.data(), z.data() + batch.begin(i));
        value[i] = found == Status::ok ? sums[ex.last()] : no_value(found);
        status[i] = static_cast<std::int8_t>(found);
    });
}

}  // namespace maxmargin::lattice
