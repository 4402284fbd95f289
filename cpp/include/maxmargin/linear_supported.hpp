// Products of a sparse matrix X with weights W of which only some exist: a fixed pattern of (feature, column) pairs.
//
// Feature f has weights for the columns support.columns[support.starts[f] : support.starts[f + 1]], rising; all others
// are zero for ever. Weights are stored in that order, so that rare features, which are most, cost a few bytes each.
//   forward   out[r, c] = initial[c] + sum_f X[r, f] W[f, c]
//   adjoint   out[f, c] = sum_r X[r, f] Z[r, c]  where (f, c) is in the pattern
// X without values (a null pointer) has ones. Cost: one addition per non-zero of X and weight of its feature. Every
// index has been checked by the binding.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "maxmargin/linear_sparse.hpp"
#include "maxmargin/online.hpp"
#include "maxmargin/parallel.hpp"
#include "maxmargin/simd.hpp"

#if MM_HAS_TARGETS
#include <immintrin.h>
#endif

namespace maxmargin::supported {

using linear::Compressed;

struct Support {
    std::span<const std::int32_t> starts;   // d + 1
    std::span<const std::int32_t> columns;  // one per weight
    // Up to kMasked columns the same as bits: `bytes` bytes per feature, and some to spare, so that eight can be read.
    std::span<const std::uint8_t> bits;
    int bytes = 0;

    static constexpr std::int64_t kMasked = 64;

    std::int64_t n_features() const { return static_cast<std::int64_t>(starts.size()) - 1; }
    std::int64_t n_weights() const { return static_cast<std::int64_t>(columns.size()); }

    static std::vector<std::uint8_t> bits_of(std::span<const std::int32_t> starts,
                                             std::span<const std::int32_t> columns, std::int64_t bytes) {
        std::vector<std::uint8_t> bits(starts.size() * static_cast<std::size_t>(bytes) + 8);
        for (std::size_t f = 0; f + 1 < starts.size(); ++f)
            for (std::int32_t j = starts[f]; j < starts[f + 1]; ++j)
                bits[f * bytes + columns[j] / 8] |= static_cast<std::uint8_t>(1u << (columns[j] % 8));
        return bits;
    }
    // Bits of a feature's columns, and above them those of the next one.
    MM_INLINE std::uint64_t mask(std::int64_t feature) const {
        std::uint64_t found;
        __builtin_memcpy(&found, bits.data() + feature * bytes, sizeof found);
        return found;
    }

    // The weight of a feature for a column; -1 where there is none.
    std::int64_t find(std::int64_t feature, std::int32_t column) const {
        if (bytes) {
            const std::uint64_t found = mask(feature), bit = std::uint64_t{1} << column;
            return found & bit ? starts[feature] + std::popcount(found & (bit - 1)) : -1;
        }
        const std::int32_t* first = columns.data() + starts[feature];
        const std::int32_t* last = columns.data() + starts[feature + 1];
        const std::int32_t* at = std::lower_bound(first, last, column);
        return at != last && *at == column ? at - columns.data() : -1;
    }
};

// Weights of features are met in no order: their places are fetched this many non-zeros ahead.
inline constexpr std::int64_t kAhead = 12, kNear = 6;

// out += row of X times W; `there` non-zeros can be read from `columns` on, the row's n and those behind it.
template <bool Ones, class Index>
inline void add_row(const Support& support, const Index* columns, const double* values, std::int64_t n,
                    std::int64_t there, const double* w, double* out) {
    const std::int32_t* starts = support.starts.data();
    for (std::int64_t q = 0; q < n; ++q) {
        if (q + kAhead < there) __builtin_prefetch(starts + columns[q + kAhead]);
        if (q + kNear < there) {
            const std::int32_t ahead = starts[columns[q + kNear]];
            __builtin_prefetch(support.columns.data() + ahead);
            __builtin_prefetch(w + ahead);
        }
        const std::int32_t last = starts[columns[q] + 1];
        const double x = Ones ? 1.0 : values[q];
        for (std::int32_t j = starts[columns[q]]; j < last; ++j) out[support.columns[j]] += Ones ? w[j] : x * w[j];
    }
}

#if MM_HAS_TARGETS
// The same with the m <= 8 Groups sums in registers: a feature's weights are spread to their columns as they are read.
template <int Groups, bool Ones, class Index>
MM_TARGET("arch=x86-64-v4")
void add_row_spread(const Support& support, const Index* columns, const double* values, std::int64_t n,
                    std::int64_t there, const double* w, double* out, std::int64_t m) {
    const std::int32_t* starts = support.starts.data();
    const auto tail = static_cast<__mmask8>((1u << (m - 8 * (Groups - 1))) - 1u);
    __m512d sums[Groups];
    for (int g = 0; g < Groups; ++g) sums[g] = _mm512_maskz_loadu_pd(g + 1 < Groups ? __mmask8(255) : tail, out + 8 * g);
    for (std::int64_t q = 0; q < n; ++q) {
        if (q + kAhead < there) {
            __builtin_prefetch(starts + columns[q + kAhead]);
            __builtin_prefetch(support.bits.data() + columns[q + kAhead] * std::int64_t{Groups});
        }
        if (q + kNear < there) __builtin_prefetch(w + starts[columns[q + kNear]]);
        std::uint64_t found;
        __builtin_memcpy(&found, support.bits.data() + columns[q] * std::int64_t{Groups}, sizeof found);
        const double* at = w + starts[columns[q]];
        for (int g = 0; g < Groups; ++g) {
            const auto mask = static_cast<__mmask8>(found >> (8 * g));
            const __m512d spread = _mm512_maskz_expandloadu_pd(mask, at);
            sums[g] = _mm512_add_pd(sums[g], Ones ? spread : _mm512_mul_pd(_mm512_set1_pd(values[q]), spread));
            at += __builtin_popcount(mask);
        }
    }
    for (int g = 0; g < Groups; ++g) _mm512_mask_storeu_pd(out + 8 * g, g + 1 < Groups ? __mmask8(255) : tail, sums[g]);
}

template <bool Ones, class Index>
inline void add_row_spread(const Support& support, const Index* columns, const double* values, std::int64_t n,
                           std::int64_t there, const double* w, double* out, std::int64_t m) {
    switch (support.bytes) {
        case 1: return add_row_spread<1, Ones>(support, columns, values, n, there, w, out, m);
        case 2: return add_row_spread<2, Ones>(support, columns, values, n, there, w, out, m);
        case 3: return add_row_spread<3, Ones>(support, columns, values, n, there, w, out, m);
        case 4: return add_row_spread<4, Ones>(support, columns, values, n, there, w, out, m);
        case 5: return add_row_spread<5, Ones>(support, columns, values, n, there, w, out, m);
        case 6: return add_row_spread<6, Ones>(support, columns, values, n, there, w, out, m);
        case 7: return add_row_spread<7, Ones>(support, columns, values, n, there, w, out, m);
        default: return add_row_spread<8, Ones>(support, columns, values, n, there, w, out, m);
    }
}
#endif

// Row r of a matrix of `count` non-zeros, on a machine of so many lanes.
template <class Index>
inline void add_row(int width, const Support& support, Compressed<Index> x, std::int64_t count, std::int64_t r,
                    const double* w, double* out, std::int64_t m) {
    const auto first = x.starts[r];
    const std::int64_t n = x.starts[r + 1] - first, there = count - first;
    const Index* columns = x.columns + first;
    const double* values = x.values ? x.values + first : nullptr;
#if MM_HAS_TARGETS
    if (width == 8 && support.bytes) {
        if (values) add_row_spread<false>(support, columns, values, n, there, w, out, m);
        else add_row_spread<true>(support, columns, values, n, there, w, out, m);
        return;
    }
#endif
    if (values) add_row<false>(support, columns, values, n, there, w, out);
    else add_row<true>(support, columns, values, n, there, w, out);
}

template <class Index>
void forward(const Support& support, Compressed<Index> x, std::int64_t n, std::int64_t m, const double* w,
             const double* initial, double* out, int threads) {
    const int width = simd::lanes_in_use();
    parallel_blocks(n, 256, threads, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
            double* row = out + r * m;
            if (initial) std::copy(initial, initial + m, row);
            else std::fill(row, row + m, 0.0);
            add_row(width, support, x, x.starts[n], r, w, row, m);
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
                const double value = x.values ? x.values[q] : 1.0;
                for (std::int32_t j = first; j < last; ++j) out[j] += value * row[support.columns[j]];
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
        : support_(support),
          offsets_(offsets),
          m_(m),
          first_(constant ? m : 0),
          x_(x),
          count_(x.starts[offsets.back()]),
          width_(simd::lanes_in_use()) {}

    std::int64_t n_weights() const override { return first_ + support_.n_weights(); }
    std::int64_t n_examples() const override { return static_cast<std::int64_t>(offsets_.size()) - 1; }
    std::int64_t size(std::int64_t i) const override { return (offsets_[i + 1] - offsets_[i]) * m_; }

    void scores(std::int64_t i, const double* w, double* out) const override {
        for (std::int64_t r = offsets_[i]; r < offsets_[i + 1]; ++r, out += m_) row_scores(r, w, out);
    }
    // Row by row: a feature's few columns cost no more together than one of them, which would have to be found.
    void scores_at(std::int64_t i, std::span<const std::int32_t> parts, std::int64_t first, const double* w,
                   double* out) const override {
        std::int64_t next = 0;  // rows before this one are done
        for (const std::int32_t part : parts) {
            const std::int64_t row = (part - first) / m_;
            if (row < next) continue;
            row_scores(offsets_[i] + row, w, out + row * m_);
            next = row + 1;
        }
    }
    void add(std::int64_t i, std::int64_t part, double x, std::int64_t from, online::Accumulator& into) const override {
        each(i, part, nullptr, nullptr,
             [&](std::int64_t at, double value) { into.add(from + at, x * value); });
    }
    void add(std::int64_t i, std::int64_t part, double x, double y, double* sum, double* late) const override {
        y *= x;
        each(i, part, sum, late, [&](std::int64_t at, double value) {
            sum[at] += x * value;
            late[at] += y * value;
        });
    }

   private:
    void row_scores(std::int64_t r, const double* w, double* out) const {
        if (first_) std::copy(w, w + m_, out);
        else std::fill(out, out + m_, 0.0);
        add_row(width_, support_, x_, count_, r, w + first_, out, m_);
    }
    // body(weight, value) for the features of a part; what it will change in two vectors is fetched ahead.
    template <class Body>
    void each(std::int64_t i, std::int64_t part, const double* one, const double* two, Body&& body) const {
        const std::int64_t row = offsets_[i] + part / m_;
        const auto column = static_cast<std::int32_t>(part % m_);
        if (first_) body(column, 1.0);
        const Index last = x_.starts[row + 1];
        for (Index q = x_.starts[row]; q < last; ++q) {
            if (q + kAhead < last) {
                __builtin_prefetch(support_.starts.data() + x_.columns[q + kAhead]);
                __builtin_prefetch(support_.bits.data() + x_.columns[q + kAhead] * std::int64_t{support_.bytes});
            }
            if (one && q + kNear < last) {
                const std::int64_t near = first_ + support_.starts[x_.columns[q + kNear]];
                __builtin_prefetch(one + near, 1);
                __builtin_prefetch(two + near, 1);
            }
            if (const std::int64_t at = support_.find(x_.columns[q], column); at >= 0)
                body(first_ + at, x_.values ? x_.values[q] : 1.0);
        }
    }

    Support support_;
    std::span<const std::int64_t> offsets_;
    std::int64_t m_, first_;
    Compressed<Index> x_;
    std::int64_t count_;
    int width_;
};

}  // namespace maxmargin::supported
