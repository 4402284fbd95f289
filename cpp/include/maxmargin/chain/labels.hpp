// Best label sequences as labels, without packed vectors, for prediction. Scores are packed as for the
// argmax, or one transition matrix is given for all examples. That one is laid out once: in panels for the forward
// pass, its columns as rows for the backward pass, so that an example costs T K^2 additions and maxima and nothing
// else.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "maxmargin/chain/viterbi.hpp"

namespace maxmargin::chain {

// One transition matrix for many chains. `first` and `last` are added to the scores of the labels at the ends, or are
// empty.
struct OneMatrix {
    Aligned matrix, columns;  // panels, unless it is sparse; padded x padded, row b holds the pairs (., b), -inf behind
    SparsePairs sparse;
    std::span<const double> pairs, first, last;
    bool few = false, refused = false;

    Chain chain(std::int64_t length, const double* nodes) const {
        Chain of{length, nodes, few ? pairs.data() : nullptr, matrix.get(), columns.get()};
        if (few) of.sparse = &sparse;
        if (!first.empty()) of.first = first.data();
        if (!last.empty()) of.last = last.data();
        return of;
    }

    OneMatrix(const Panels& panels, std::span<const double> given, std::span<const double> at_first,
              std::span<const double> at_last, bool may_be_sparse = true)
        : pairs(given), first(at_first), last(at_last) {
        const std::int64_t k = panels.n_labels, padded = panels.padded;
        few = may_be_sparse && take_pairs(panels.lanes, k, pairs.data(), sparse, refused);
        columns.resize(padded * padded, NEG_INF);
        if (!few) {
            matrix.resize(padded * padded, NEG_INF);
            pack(panels, pairs.data(), matrix.get());
        }
        for (std::int64_t a = 0; a < k; ++a)
            for (std::int64_t b = 0; b < k; ++b) columns.get()[b * padded + a] = pairs[a * k + b];
        refused = refused || (!few && simd::refused(panels.lanes, pairs.data(), k * k));
    }
};

template <class Vec>
MM_INLINE Status viterbi_once_at(const Panels& panels, const OneMatrix& one, std::int64_t length, const double* nodes,
                                 Scratch& scratch, std::int32_t* labels, double& value) {
    value = 0.0;
    if (one.refused || refused_at<Vec>(nodes, length * panels.n_labels)) return Status::nonfinite;
    if (length == 0) return Status::ok;
    return best_labels<Vec>(panels, one.chain(length, nodes), scratch, labels, value);
}
MM_LEVELS(viterbi_once)

// labels: one per position of the batch, -1 where the status is not ok.
inline void labels(const Batch& batch, std::span<const double> scores, std::span<std::int32_t> labels,
                   std::span<double> value, std::span<std::int8_t> status, int threads) {
    viterbi_all(batch, scores, value, status, threads, [&](std::int64_t i, Status found, const std::int32_t* from) {
        std::int32_t* to = labels.data() + batch.nodes[i] / batch.n_labels;
        if (found == Status::ok) std::copy_n(from, batch.length(i), to);
        else std::fill_n(to, batch.length(i), -1);
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
    auto scratch = per_thread<Scratch>(threads, panels, batch.longest());
    parallel_each(batch.n_examples(), 16, threads, [&](int thread, std::int64_t i) {
        std::int32_t* own = labels.data() + starts[i] / n_labels;
        const Status found = viterbi_once(panels.lanes, panels, one, batch.length(i), nodes.data() + starts[i],
                                          scratch[thread], own, value[i]);
        if (found != Status::ok) std::fill_n(own, batch.length(i), -1);
        if (found == Status::nonfinite) value[i] = std::numeric_limits<double>::quiet_NaN();
        status[i] = static_cast<std::int8_t>(found);
    });
}

}  // namespace maxmargin::chain
