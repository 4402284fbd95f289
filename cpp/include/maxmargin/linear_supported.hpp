// Products of a sparse matrix X with weights W of which only some exist: a fixed pattern of (feature, column) pairs.
//
// Feature f has weights for the columns support.columns[support.starts[f] : support.starts[f + 1]], rising; all others
// are zero for ever. Weights are stored in that order, so that rare features, which are most, cost a few bytes each.
//   forward   out[r, c] = initial[c] + sum_f X[r, f] W[f, c]
//   adjoint   out[f, c] = sum_r X[r, f] Z[r, c]  where (f, c) is in the pattern
// Cost: one addition per non-zero of X and weight of its feature. Every index has been checked by the binding.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "maxmargin/linear_sparse.hpp"
#include "maxmargin/online.hpp"
#include "maxmargin/parallel.hpp"

namespace maxmargin::supported {

using linear::Compressed;

struct Support {
    std::span<const std::int32_t> starts;   // d + 1
    std::span<const std::int32_t> columns;  // one per weight

    std::int64_t n_features() const { return static_cast<std::int64_t>(starts.size()) - 1; }
    std::int64_t n_weights() const { return static_cast<std::int64_t>(columns.size()); }

    // The weight of a feature for a column; -1 where there is none.
    std::int64_t find(std::int64_t feature, std::int32_t column) const {
        const std::int32_t* first = columns.data() + starts[feature];
        const std::int32_t* last = columns.data() + starts[feature + 1];
        const std::int32_t* at = std::lower_bound(first, last, column);
        return at != last && *at == column ? at - columns.data() : -1;
    }
};

// out += row of X times W. Weights of features are met in no order: their places are fetched well ahead.
template <class Index>
inline void add_row(const Support& support, const Index* columns, const double* values, std::int64_t n,
                    const double* w, double* out) {
    constexpr std::int64_t kStarts = 12, kWeights = 6;
    const std::int32_t* starts = support.starts.data();
    for (std::int64_t q = 0; q < n; ++q) {
        if (q + kStarts < n) __builtin_prefetch(starts + columns[q + kStarts]);
        if (q + kWeights < n) {
            const std::int32_t ahead = starts[columns[q + kWeights]];
            __builtin_prefetch(support.columns.data() + ahead);
            __builtin_prefetch(w + ahead);
        }
        const std::int32_t last = starts[columns[q] + 1];
        const double x = values[q];
        for (std::int32_t j = starts[columns[q]]; j < last; ++j) out[support.columns[j]] += x * w[j];
    }
}

template <class Index>
void forward(const Support& support, Compressed<Index> x, std::int64_t n, std::int64_t m, const double* w,
             const double* initial, double* out, int threads) {
    parallel_blocks(n, 256, threads, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
            double* row = out + r * m;
            if (initial) std::copy(initial, initial + m, row);
            else std::fill(row, row + m, 0.0);
            add_row(support, x.columns + x.starts[r], x.values + x.starts[r], x.starts[r + 1] - x.starts[r], w, row);
        }
    });
}

// `x` is the transposed matrix: its rows are features.
template <class Index>
void adjoint(const Support& support, Compressed<Index> x, std::int64_t m, const double* z, double* out, int threads) {
    parallel_blocks(support.n_features(), 64, threads, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t f = begin; f < end; ++f) {
            const std::int32_t first = support.starts[f], last = support.starts[f + 1];
            std::fill(out + first, out + last, 0.0);
            for (Index q = x.starts[f]; q < x.starts[f + 1]; ++q) {
                const double* row = z + static_cast<std::int64_t>(x.columns[q]) * m;
                for (std::int32_t j = first; j < last; ++j) out[j] += x.values[q] * row[support.columns[j]];
            }
        }
    });
}

// The map of single examples, see online.hpp; with `constant`, m weights come first that every row has.
template <class Index>
class SupportedMap final : public online::FeatureMap {
   public:
    SupportedMap(Support support, std::span<const std::int64_t> offsets, std::int64_t m, bool constant,
                 Compressed<Index> x)
        : support_(support), offsets_(offsets), m_(m), first_(constant ? m : 0), x_(x) {}

    std::int64_t n_weights() const override { return first_ + support_.n_weights(); }
    std::int64_t n_examples() const override { return static_cast<std::int64_t>(offsets_.size()) - 1; }
    std::int64_t size(std::int64_t i) const override { return (offsets_[i + 1] - offsets_[i]) * m_; }

    void scores(std::int64_t i, const double* w, double* out) const override {
        for (std::int64_t r = offsets_[i]; r < offsets_[i + 1]; ++r, out += m_) {
            if (first_) std::copy(w, w + m_, out);
            else std::fill(out, out + m_, 0.0);
            add_row(support_, x_.columns + x_.starts[r], x_.values + x_.starts[r], x_.starts[r + 1] - x_.starts[r],
                    w + first_, out);
        }
    }
    void add(std::int64_t i, std::int64_t part, double x, std::int64_t from, online::Accumulator& into) const override {
        each(i, part, [&](std::int64_t at, double value) { into.add(from + at, x * value); });
    }
    // The rows that have one of the parts: a feature's few columns cost no more together than to find one of them.
    void scores_at(std::int64_t i, std::span<const std::int32_t> parts, std::int64_t first, const double* w,
                   double* out) const override {
        if (parts.empty()) return;
        const std::int64_t begin = offsets_[i], m = size(i) / (offsets_[i + 1] - begin);
        std::int64_t bounds[2] = {begin, begin};
        SupportedMap one(*this);  // whose only example is a row
        one.offsets_ = bounds;
        for (const std::int32_t part : parts) {
            const std::int64_t row = (part - first) / m;
            if (begin + row < bounds[1]) continue;
            bounds[0] = begin + row;
            bounds[1] = begin + row + 1;
            one.scores(0, w, out + row * m);
        }
    }
    void add(std::int64_t i, std::int64_t part, double x, double y, double* sum, double* late) const override {
        y *= x;
        each(i, part, [&](std::int64_t at, double value) {
            sum[at] += x * value;
            late[at] += y * value;
        });
    }

   private:
    template <class Body>
    void each(std::int64_t i, std::int64_t part, Body&& body) const {
        const std::int64_t row = offsets_[i] + part / m_;
        const auto column = static_cast<std::int32_t>(part % m_);
        if (first_) body(column, 1.0);
        for (Index q = x_.starts[row]; q < x_.starts[row + 1]; ++q)
            if (const std::int64_t at = support_.find(x_.columns[q], column); at >= 0) body(first_ + at, x_.values[q]);
    }

    Support support_;
    std::span<const std::int64_t> offsets_;
    std::int64_t m_, first_;
    Compressed<Index> x_;
};

}  // namespace maxmargin::supported
