// The score of the best output through every label of every position, by Viterbi forward and back: 2 T K^3 additions
// and maxima per example, and T K^2 numbers of memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "maxmargin/base/parallel.hpp"
#include "maxmargin/chain/second_order/tables.hpp"

namespace maxmargin::second {

struct MarginScratch {
    Table ahead, back;
    Aligned forward, message, other, row;

    MarginScratch(const Constraints& constraints, int lanes, std::int64_t longest)
        : ahead(constraints, lanes), back(constraints, lanes, Direction::back) {
        const Shape& shape = ahead.shape;
        forward.resize(std::max<std::int64_t>(longest - 1, 1) * shape.layer());
        message.resize(shape.layer(), 0.0);
        other.resize(shape.layer(), 0.0);
        row.resize(shape.padded, 0.0);
    }
};

// most[t][c] = the score of the best output with label c at position t.
template <class Vec>
MM_INLINE void max_marginals_of_at(const Constraints& constraints, std::int64_t length, const double* nodes,
                                   MarginScratch& scratch, double* most) {
    const Shape& shape = scratch.ahead.shape;
    const std::int64_t k = shape.k, padded = shape.padded, layer = shape.layer();
    if (scratch.ahead.refused || refused_at<Vec>(nodes, length * k)) {
        std::fill(most, most + length * k, NOT_A_NUMBER);
        return;
    }
    double *forward = scratch.forward.get(), *row = scratch.row.get();
    if (length == 1) local_row(constraints, nodes, 1, 0, most);
    if (length < 2) return;
    std::fill(most, most + length * k, NEG_INF);
    std::fill(row, row + padded, 0.0);
    first_layer<Vec>(constraints, scratch.ahead, nodes, length, row, forward);
    for (std::int64_t u = 1; u < length - 1; ++u) {
        double* now = forward + u * layer;
        const double *before = now - layer, *here = row;
        local_row(constraints, nodes, length, u + 1, row);
        advance<Vec, Over::maxima, 1>(scratch.ahead, &before, &here, &now);
    }
    // message[c][b]: the best of all that comes after labels b, c at positions u, u + 1.
    double *message = scratch.message.get(), *other = scratch.other.get();
    std::fill(message, message + layer, 0.0);
    for (std::int64_t u = length - 2;; --u) {
        const double* own = forward + u * layer;
        for (std::int64_t b = 0; b < k; ++b)
            for (std::int64_t c = 0; c < k; ++c) {
                const double score = own[b * padded + c] + message[c * padded + b];
                double& right = most[(u + 1) * k + c];
                right = score > right ? score : right;
                if (u == 0 && score > most[b]) most[b] = score;
            }
        if (u == 0) return;
        local_row(constraints, nodes, length, u + 1, row);
        for (std::int64_t c = 0; c < k; ++c)
            for (std::int64_t b = 0; b < k; ++b) message[c * padded + b] += row[c];
        std::fill(row, row + padded, 0.0);
        const double *before = message, *here = row;
        advance<Vec, Over::maxima, 1>(scratch.back, &before, &here, &other);
        std::swap(message, other);
    }
}
MM_LEVELS(max_marginals_of)

// `most`: a number for every label of every position of the batch; NaN throughout an example with NaN or infinite
// scores.
inline void max_marginals(const Batch& batch, std::span<double> most, int threads) {
    const int lanes = lanes_in_use();
    auto scratch = per_thread<MarginScratch>(threads, batch.constraints, lanes, batch.longest());
    parallel_each(batch.n_examples(), 4, threads, [&](int thread, std::int64_t i) {
        MarginScratch& mine = scratch[thread];
        const double *pairs = batch.pairs_of(i), *triples = batch.triples_of(i);
        if (!mine.ahead.holds(pairs, triples))
            for (Table* table : {&mine.ahead, &mine.back}) pack(lanes, batch.constraints, pairs, triples, *table);
        max_marginals_of(lanes, batch.constraints, batch.length(i), batch.nodes_of(i), mine,
                         most.data() + batch.offsets[i]);
    });
}

}  // namespace maxmargin::second
