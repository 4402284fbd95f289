// Best label sequences as labels, without packed vectors, for prediction. Scores are packed as for the
// argmax, or one transition matrix is given for all examples. That one is laid out once: in panels for the forward
// pass, its columns as rows for the backward pass, so that an example costs T K^2 additions and maxima and nothing
// else.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "maxmargin/chain/viterbi.hpp"

namespace maxmargin::chain {

// One transition matrix for many chains. `first` and `last` are added to the scores of the labels at the ends, or are
// empty.
struct OneMatrix {
    Aligned matrix, columns;  // panels; padded x padded, row b holds the pairs (., b), -inf behind
    std::span<const double> first, last;
    bool refused;

    OneMatrix(const Panels& panels, std::span<const double> pairs, std::span<const double> at_first,
              std::span<const double> at_last)
        : first(at_first), last(at_last) {
        const std::int64_t k = panels.n_labels, padded = panels.padded;
        matrix.resize(padded * padded, NEG_INF);
        columns.resize(padded * padded, NEG_INF);
        pack(panels, pairs.data(), matrix.get());
        for (std::int64_t a = 0; a < k; ++a)
            for (std::int64_t b = 0; b < k; ++b) columns.get()[b * padded + a] = pairs[a * k + b];
        refused = chain::refused(panels.lanes, pairs.data(), k * k);
    }
};

// As viterbi of chain/viterbi.hpp, ties and statuses included. The backward pass needs only the position of the largest
// sum, not its value.
template <class Vec>
MM_INLINE Status viterbi_once_at(int, const Panels& panels, const OneMatrix& one, std::int64_t length,
                                 const double* MM_RESTRICT nodes, Scratch& scratch, std::int32_t* MM_RESTRICT labels,
                                 double& value) {
    const std::int64_t k = panels.n_labels, padded = panels.padded;
    value = 0.0;
    if (one.refused || refused_at<Vec>(0, nodes, length * k)) return Status::nonfinite;
    if (length == 0) return Status::ok;
    double* forward = scratch.forward.get();
    std::memcpy(forward, nodes, sizeof(double) * static_cast<std::size_t>(k));
    if (!one.first.empty())
        for (std::int64_t b = 0; b < k; ++b) forward[b] += one.first[b];
    for (std::int64_t t = 1; t < length; ++t) {
        double* now = forward + t * padded;
        step<Vec>(panels, now - padded, one.matrix.get(), now);
        const double* here = nodes + t * k;
        for (std::int64_t b = 0; b < k; ++b) now[b] += here[b];
    }
    double* end = forward + (length - 1) * padded;
    if (!one.last.empty())
        for (std::int64_t b = 0; b < k; ++b) end[b] += one.last[b];

    std::int64_t label = first_largest<Vec>(end, k, value);
    if (value == NEG_INF) return Status::absent;
    if (!std::isfinite(value)) return Status::nonfinite;
    double* sums = scratch.sums.get();
    double ignored;
    labels[length - 1] = static_cast<std::int32_t>(label);
    for (std::int64_t t = length - 1; t > 0; --t) {
        const double* before = forward + (t - 1) * padded;
        const double* column = one.columns.get() + label * padded;
        for (std::int64_t a = 0; a < k; a += simd::lanes<Vec>)
            store(sums + a, load<Vec>(before + a) + load<Vec>(column + a));
        label = first_largest<Vec>(sums, k, ignored);
        labels[t - 1] = static_cast<std::int32_t>(label);
    }
    return Status::ok;
}
MM_LEVELS(Status, viterbi_once,
          (int widest, const Panels& panels, const OneMatrix& one, std::int64_t length, const double* nodes,
           Scratch& scratch, std::int32_t* labels, double& value),
          (widest, panels, one, length, nodes, scratch, labels, value))

// The result of an example without a feasible sequence.
inline void settle(Status found, std::span<std::int32_t> labels, double& value, std::int8_t& status) {
    status = static_cast<std::int8_t>(found);
    if (found == Status::ok) return;
    std::fill(labels.begin(), labels.end(), -1);
    if (found == Status::nonfinite) value = std::numeric_limits<double>::quiet_NaN();
}

// labels: one per position of the batch, -1 where the status is not ok.
inline void labels(const Batch& batch, std::span<const double> scores, std::span<std::int32_t> labels,
                   std::span<double> value, std::span<std::int8_t> status, int threads) {
    const Panels panels(batch.n_labels, lanes_in_use());
    std::vector<Scratch> scratch;
    for (int t = 0; t < std::max(threads, 1); ++t) scratch.emplace_back(panels, batch.longest());
    parallel_blocks(batch.n_examples(), 4, threads, [&](int thread, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t length = batch.length(i);
            const auto own = labels.subspan(batch.nodes[i] / batch.n_labels, length);
            const Status found = viterbi(panels.lanes, panels, batch.shared, length, scores.data() + batch.nodes[i],
                                         scores.data() + batch.pairs[i], scratch[thread], value[i]);
            if (found == Status::ok) std::copy_n(scratch[thread].labels.begin(), length, own.begin());
            settle(found, own, value[i], status[i]);
        }
    });
}

// The same with one transition matrix for all examples; `starts` are offsets of the nodes, `first` and `last` have K
// entries or none.
inline void labels_once(std::int64_t n_labels, std::span<const std::int64_t> starts, std::span<const double> nodes,
                        std::span<const double> pairs, std::span<const double> first, std::span<const double> last,
                        std::span<std::int32_t> labels, std::span<double> value, std::span<std::int8_t> status,
                        int threads) {
    const Batch batch{n_labels, true, starts, starts};
    const Panels panels(n_labels, lanes_in_use());
    const OneMatrix one(panels, pairs, first, last);
    std::vector<Scratch> scratch;
    for (int t = 0; t < std::max(threads, 1); ++t) scratch.emplace_back(panels, batch.longest());
    parallel_blocks(batch.n_examples(), 16, threads, [&](int thread, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const auto own = labels.subspan(starts[i] / n_labels, batch.length(i));
            const Status found = viterbi_once(panels.lanes, panels, one, batch.length(i), nodes.data() + starts[i],
                                              scratch[thread], own.data(), value[i]);
            settle(found, own, value[i], status[i]);
        }
    });
}

}  // namespace maxmargin::chain
