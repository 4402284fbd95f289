// Max-marginals of chains: the score of the best output that has a given label at a given position, for all labels and
// positions. Max-product forward and backward, 2 T K^2 additions and maxima per example, in the panels of
// chain/viterbi.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "maxmargin/chain/labels.hpp"
#include "maxmargin/chain/sum_product_logs.hpp"
#include "maxmargin/chain/tables.hpp"
#include "maxmargin/chain/viterbi.hpp"

namespace maxmargin::chain {

// Additional scratch of one thread: the transpose of the packed transition matrix.
struct MaxScratch : Scratch {
    Aligned other;
    MaxScratch(const Panels& panels, std::int64_t longest, bool shared) : Scratch(panels, longest) {
        if (shared) other.resize(panels.padded * panels.padded, NEG_INF);
    }
};

// The forward and backward pass of one example whose scores were checked; out has T x K entries, all written where the
// status is ok. `other` is the transpose of chain.matrix.
template <class Vec>
MM_INLINE Status max_both_ways(const Panels& panels, const Chain& chain, const double* other, Scratch& scratch,
                               double* MM_RESTRICT out) {
    const std::int64_t k = panels.n_labels, square = k * k, padded = panels.padded, length = chain.length;
    forward_maxima<Vec>(panels, chain, scratch);
    double* forward = scratch.forward.get();
    double* last = out + (length - 1) * k;
    std::memcpy(last, forward + (length - 1) * padded, sizeof(double) * static_cast<std::size_t>(k));
    // row: the best continuation from a label on, its own score included; behind k it stays -inf.
    double* row = scratch.sums.get();
    for (std::int64_t b = 0; b < k; ++b)
        row[b] = chain.nodes[(length - 1) * k + b] + (chain.last ? chain.last[b] : 0.0);
    for (std::int64_t t = length - 1; t > 0; --t) {
        double* before = forward + (t - 1) * padded;
        double* behind = forward + t * padded;  // not needed any more
        if (chain.matrix) {
            step<Vec, Over::maxima>(panels, row, other, behind);
        } else {
            row_maxima<Vec>(k, chain.pairs + (t - 1) * square, row, behind);
        }
        const double* here = chain.nodes + (t - 1) * k;
        double* to = out + (t - 1) * k;
        for (std::int64_t a = 0; a < k; ++a) {
            to[a] = before[a] + behind[a];
            row[a] = here[a] + behind[a];
        }
    }
    if (refused_at<Vec>(out, length * k)) return Status::nonfinite;
    return largest_of<Vec>(last, k) == NEG_INF ? Status::absent : Status::ok;
}

// One example whose scores are packed.
template <class Vec>
MM_INLINE Status max_marginals_at(const Panels& panels, bool shared, std::int64_t length, const double* nodes,
                                  const double* pairs, MaxScratch& scratch, double* out) {
    const std::int64_t k = panels.n_labels, tables = shared ? 1 : length - 1;
    if (length == 0) return Status::ok;
    if (refused_at<Vec>(nodes, length * k) || refused_at<Vec>(pairs, tables * k * k)) return Status::nonfinite;
    double *matrix = scratch.matrix(panels), *other = scratch.other.get();
    if (shared && length > 1) {
        pack(panels, pairs, matrix);
        transpose_at<Vec>(panels, matrix, NEG_INF, other);
    }
    Chain chain{length, nodes, pairs, shared ? matrix : nullptr};
    chain.checked = true;
    return max_both_ways<Vec>(panels, chain, other, scratch, out);
}
MM_LEVELS(max_marginals)

// One example with a matrix that is the same for all.
template <class Vec>
MM_INLINE Status max_marginals_once_at(const Panels& panels, const OneMatrix& one, const double* other,
                                       std::int64_t length, const double* nodes, Scratch& scratch, double* out) {
    if (length == 0) return Status::ok;
    if (one.refused || refused_at<Vec>(nodes, length * panels.n_labels)) return Status::nonfinite;
    return max_both_ways<Vec>(panels, one.chain(length, nodes), other, scratch, out);
}
MM_LEVELS(max_marginals_once)

// The result of an example without a feasible output: -inf, or NaN if its scores are rejected.
inline void settle(Status found, double* out, std::int64_t n) {
    if (found == Status::absent) std::fill(out, out + n, NEG_INF);
    if (found == Status::nonfinite) std::fill(out, out + n, std::numeric_limits<double>::quiet_NaN());
}

// out: K numbers per position of the batch.
inline void max_marginals(const Batch& batch, std::span<const double> scores, std::span<double> out, int threads) {
    const Panels panels(batch.n_labels, lanes_in_use());
    auto scratch = per_thread<MaxScratch>(threads, panels, batch.longest(), batch.shared);
    parallel_each(batch.n_examples(), 4, threads, [&](int thread, std::int64_t i) {
        double* own = out.data() + batch.nodes[i];
        const Status found =
            max_marginals(panels.lanes, panels, batch.shared, batch.length(i), scores.data() + batch.nodes[i],
                          scores.data() + batch.pairs[i], scratch[thread], own);
        settle(found, own, batch.nodes[i + 1] - batch.nodes[i]);
    });
}

// The same with one transition matrix for all examples; arguments as for labels_once.
inline void max_marginals_once(std::int64_t n_labels, std::span<const std::int64_t> starts,
                               std::span<const double> nodes, std::span<const double> pairs,
                               std::span<const double> first, std::span<const double> last, std::span<double> out,
                               int threads) {
    const Batch batch{n_labels, true, starts, starts};
    const Panels panels(n_labels, lanes_in_use());
    const OneMatrix one(panels, pairs, first, last, false);
    Aligned other;
    other.resize(panels.padded * panels.padded, NEG_INF);
    transpose(panels.lanes, panels, one.matrix.get(), NEG_INF, other.get());
    auto scratch = per_thread<Scratch>(threads, panels, batch.longest());
    parallel_each(batch.n_examples(), 16, threads, [&](int thread, std::int64_t i) {
        double* own = out.data() + starts[i];
        const Status found = max_marginals_once(panels.lanes, panels, one, other.get(), batch.length(i),
                                                nodes.data() + starts[i], scratch[thread], own);
        settle(found, own, starts[i + 1] - starts[i]);
    });
}

}  // namespace maxmargin::chain
