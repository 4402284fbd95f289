// The k best label sequences of chains of second order: every pair of neighboring labels keeps the k best prefixes that
// end in it. Cost per example: at worst T K^3 k^2 maxima and minima forward, a vector of labels at a time, and
// T (K + k) k steps back for each rank listed; where k is above 3, most candidates are rejected by one comparison.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "maxmargin/chain/k_best.hpp"
#include "maxmargin/chain/second_order/viterbi.hpp"

namespace maxmargin::second {

// forward[u][r][b][c] = score of the r-th best prefix that ends in labels b, c at positions u, u + 1; -inf where there
// is none. `lists` and `before` hold one row of `stride` per rank.
template <class Vec>
MM_INLINE void k_best_forward_at(const Constraints& constraints, const Table& table, std::int64_t length,
                                 std::int64_t ranks, const double* nodes, std::int64_t stride, double* row,
                                 double* before, double* lists, double* forward) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    const Shape& shape = table.shape;
    const std::int64_t layer = shape.layer();
    std::fill(forward, forward + ranks * layer, NEG_INF);
    first_layer<Vec>(constraints, table, nodes, length, row, forward);
    for (std::int64_t u = 1; u < length - 1; ++u) {
        const double* past = forward + (u - 1) * ranks * layer;
        double* now = forward + u * ranks * layer;
        local_row(constraints, nodes, length, u + 1, row);
        for (std::int64_t b = 0; b < shape.k; ++b) {
            const std::int32_t* from = table.from.data() + b * shape.height;
            const std::int64_t rows = table.rows[b];
            for (std::int64_t r = 0; r < ranks; ++r)
                for (std::int64_t j = 0; j < rows; ++j) before[r * stride + j] = past[r * layer + from[j] + b];
            std::fill(lists, lists + ranks * stride, NEG_INF);
            chain::sink_panels<Vec>(shape.panels, shape.height, ranks, before, stride, table.middle(b), rows, lists);
            for (std::int64_t r = 0; r < ranks; ++r)
                for (std::int64_t c = 0; c < shape.padded; c += width)
                    store(now + r * layer + b * shape.padded + c,
                          load<Vec>(lists + r * stride + c) + load<Vec>(row + c));
        }
    }
}
MM_LEVELS(k_best_forward)

// The k best sequences of one chain. The backward pass recomputes the list of each pair on the path.
class KBest {
   public:
    KBest(const Shape& shape, std::int64_t longest, std::int64_t ranks)
        : ranks_(ranks), stride_(std::max(shape.height, shape.padded)), last_(ranks), passed_(ranks) {
        forward_.resize(std::max<std::int64_t>(longest - 1, 1) * ranks * shape.layer());
        row_.resize(shape.padded, 0.0);
        before_.resize(ranks * stride_, NEG_INF);
        lists_.resize(ranks * stride_, NEG_INF);
    }

    // Returns how many there are; score(r) and labels(r, ...) give them. The length is one at least.
    std::int64_t run(const Constraints& constraints, const Table& table, std::int64_t length, const double* nodes) {
        table_ = &table;
        length_ = length;
        chain::Ranking best(last_, ranks_);
        const Shape& shape = table.shape;
        if (length == 1) {
            local_row(constraints, nodes, 1, 0, row_.get());
            for (std::int64_t c = 0; c < shape.k; ++c) best.offer(row_.get()[c], c);
            return best.count;
        }
        k_best_forward(shape.lanes, constraints, table, length, ranks_, nodes, stride_, row_.get(), before_.get(),
                       lists_.get(), forward_.get());
        const double* layer = forward_.get() + (length - 2) * ranks_ * shape.layer();
        for (std::int64_t c = 0; c < shape.k; ++c)
            for (std::int64_t b = 0; b < shape.k; ++b)
                for (std::int64_t r = 0; r < ranks_; ++r)
                    if (!best.offer(layer[r * shape.layer() + b * shape.padded + c], (c * shape.k + b) * ranks_ + r))
                        break;
        return best.count;
    }

    double score(std::int64_t r) const { return last_.score[r]; }

    void labels(std::int64_t r, std::int32_t* out) {
        const Shape& shape = table_->shape;
        if (length_ == 1) {
            out[0] = static_cast<std::int32_t>(last_.from[r]);
            return;
        }
        std::int64_t rank = last_.from[r] % ranks_, pair = last_.from[r] / ranks_, b = pair % shape.k,
                     c = pair / shape.k;
        out[length_ - 1] = static_cast<std::int32_t>(c);
        out[length_ - 2] = static_cast<std::int32_t>(b);
        for (std::int64_t u = length_ - 2; u > 0; --u) {
            const double* layer = forward_.get() + (u - 1) * ranks_ * shape.layer();
            const double* cell = table_->middle(b) + table_->start[c];
            chain::Ranking best(passed_, rank + 1);
            for (std::int64_t j = 0; j < table_->rows[b]; ++j) {
                const double* before = layer + table_->from[b * shape.height + j] + b;
                for (std::int64_t s = 0; s < ranks_; ++s)
                    if (!best.offer(before[s * shape.layer()] + cell[j * table_->step[c]], j * ranks_ + s)) break;
            }
            const std::int64_t entry = passed_.from[rank];
            c = b;
            b = table_->label(b, entry / ranks_);
            rank = entry % ranks_;
            out[u - 1] = static_cast<std::int32_t>(b);
        }
    }

   private:
    std::int64_t ranks_, stride_, length_ = 0;
    const Table* table_ = nullptr;
    Aligned forward_, row_, before_, lists_;
    chain::RankedList last_, passed_;
};

// Rank r of example i goes to z[r][..], value[r][i] and status[r][i]; z must be zero on entry.
inline void k_best(const Batch& batch, std::int64_t k, std::span<double> z, std::span<double> value,
                   std::span<std::int8_t> status, int threads) {
    const std::int64_t n = batch.n_examples(), n_parts = batch.n_parts(), longest = batch.longest();
    const int lanes = lanes_in_use();
    auto tables = per_thread<Table>(threads, batch.constraints, lanes);
    auto kernels = per_thread<KBest>(threads, tables.front().shape, longest, k);
    auto labels = per_thread<std::vector<std::int32_t>>(threads, longest);
    each_run(batch, tables, threads, [&](int thread, std::int64_t begin, std::int64_t end, const Table& table) {
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t length = batch.length(i);
            const bool bad = table.refused || simd::refused(lanes, batch.nodes_of(i), length * batch.n_labels());
            chain::write_ranks(
                kernels[thread], k, n, i, length, bad, labels[thread], value, status,
                [&] { return kernels[thread].run(batch.constraints, table, length, batch.nodes_of(i)); },
                [&](std::int64_t r, const std::int32_t* own) {
                    double* to = z.data() + r * n_parts;
                    mark(batch.n_labels(), length, own, to + batch.offsets[i], to + batch.pair_parts(i),
                         to + batch.triple_parts(i));
                });
        }
    });
}

}  // namespace maxmargin::second
