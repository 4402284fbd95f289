// Products of a sparse matrix X with weights W of which only some exist: a fixed pattern of (feature, column) pairs.
//
// Feature f has weights for the columns support.columns[support.starts[f] : support.starts[f + 1]], rising; all others
// are always zero. Weights are stored in that order, so that rare features, which are most, cost a few bytes each.
//   forward   out[r, c] = initial[c] + sum_f X[r, f] W[f, c]
//   adjoint   out[f, c] = sum_r X[r, f] Z[r, c]  where (f, c) is in the pattern
// Cost: one addition per non-zero of X and weight of its feature; with up to 64 columns and AVX-512, or 32 and AVX2,
// one per non-zero and vector of columns, without a branch. X without values has ones. Every index has been checked by
// the binding.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "maxmargin/base/parallel.hpp"
#include "maxmargin/base/simd.hpp"
#include "maxmargin/linear/sparse.hpp"
#include "maxmargin/online/examples.hpp"

#if MM_HAS_TARGETS
#include <immintrin.h>
#endif

namespace maxmargin::supported {

using linear::Compressed;  // `values` may be null: all ones

// The columns of one feature as bits, and its first weight: all that a product reads of the pattern, side by side.
template <class Mask>
struct Place {
    Mask mask;
    std::int32_t start;
};

struct Support {
    std::span<const std::int32_t> starts;   // d + 1
    std::span<const std::int32_t> columns;  // one per weight
    std::int64_t m;
    std::span<const Place<std::uint32_t>> narrow{};  // of every feature where m <= 32
    std::span<const Place<std::uint64_t>> wide{};    // of every feature where 32 < m <= 64

    std::int64_t n_features() const { return static_cast<std::int64_t>(starts.size()) - 1; }
    std::int64_t n_weights() const { return static_cast<std::int64_t>(columns.size()); }

    // The weight of a feature for a column; -1 where there is none.
    std::int64_t find(std::int64_t feature, std::int32_t column) const {
        if (!narrow.empty()) return among(narrow[feature], column);
        if (!wide.empty()) return among(wide[feature], column);
        const std::int32_t* first = columns.data() + starts[feature];
        const std::int32_t* last = columns.data() + starts[feature + 1];
        const std::int32_t* at = std::lower_bound(first, last, column);
        return at != last && *at == column ? at - columns.data() : -1;
    }

   private:
    template <class Mask>
    static std::int64_t among(const Place<Mask>& place, std::int32_t column) {
        const Mask bit = Mask{1} << column;
        return place.mask & bit ? place.start + std::popcount(place.mask & (bit - 1)) : -1;
    }
};

template <class Mask>
std::vector<Place<Mask>> places_of(const Support& support) {
    std::vector<Place<Mask>> places(static_cast<std::size_t>(support.n_features()));
    for (std::size_t f = 0; f < places.size(); ++f) {
        Mask mask = 0;
        for (std::int32_t j = support.starts[f]; j < support.starts[f + 1]; ++j) mask |= Mask{1} << support.columns[j];
        places[f] = {mask, support.starts[f]};
    }
    return places;
}

// ---------------------------------------------------------------------------------------------------------------
// Forward

// Rows begin .. end - 1 of X W, from `out` on: weight by weight. Weights are accessed in no order, so their places
// are prefetched.
template <bool ones, class Index>
void scattered_rows(const Support& support, Compressed<Index> x, std::int64_t begin, std::int64_t end, const double* w,
                    const double* initial, double* out) {
    constexpr std::int64_t kStarts = 16, kWeights = 8;
    const std::int32_t* starts = support.starts.data();
    const std::int64_t m = support.m, stop = x.starts[end];
    for (std::int64_t r = begin; r < end; ++r, out += m) {
        if (initial) std::copy(initial, initial + m, out);
        else std::fill(out, out + m, 0.0);
        for (std::int64_t q = x.starts[r]; q < x.starts[r + 1]; ++q) {
            if (q + kStarts < stop) __builtin_prefetch(starts + x.columns[q + kStarts]);
            if (q + kWeights < stop) {
                const std::int32_t ahead = starts[x.columns[q + kWeights]];
                __builtin_prefetch(support.columns.data() + ahead);
                __builtin_prefetch(w + ahead);
            }
            const std::int32_t last = starts[x.columns[q] + 1];
            for (std::int32_t j = starts[x.columns[q]]; j < last; ++j) {
                if constexpr (ones) out[support.columns[j]] += w[j];
                else out[support.columns[j]] += x.values[q] * w[j];
            }
        }
    }
}

#if MM_HAS_TARGETS
// The same with the sums of a row in NV vectors: the weights of a feature are spread over the columns its bits name.
template <int NV, bool ones, class Mask, class Index>
MM_TARGET("arch=x86-64-v4")
void expanded_rows(const Place<Mask>* places, std::int64_t m, Compressed<Index> x, std::int64_t begin, std::int64_t end,
                   const double* w, const double* initial, double* out) {
    constexpr std::int64_t kPlaces = 24, kWeights = 12;
    const std::int64_t stop = x.starts[end];
    const auto tail = static_cast<__mmask8>(0xff >> (8 * NV - m));
    for (std::int64_t r = begin; r < end; ++r, out += m) {
        __m512d sum[NV];
        for (int v = 0; v < NV; ++v)
            sum[v] = initial ? _mm512_maskz_loadu_pd(v + 1 == NV ? tail : 0xff, initial + 8 * v) : _mm512_setzero_pd();
        for (std::int64_t q = x.starts[r]; q < x.starts[r + 1]; ++q) {
            if (q + kPlaces < stop) __builtin_prefetch(places + x.columns[q + kPlaces]);
            if (q + kWeights < stop) __builtin_prefetch(w + places[x.columns[q + kWeights]].start);
            const Place<Mask> place = places[x.columns[q]];
            const double* own = w + place.start;
            for (int v = 0; v < NV; ++v) {
                const auto bits = static_cast<__mmask8>(place.mask >> (8 * v));
                const Mask before = place.mask & ((Mask{1} << (8 * v)) - 1);
                const __m512d weights = _mm512_maskz_expandloadu_pd(bits, own + std::popcount(before));
                if constexpr (ones) sum[v] = _mm512_mask_add_pd(sum[v], bits, sum[v], weights);
                else sum[v] = _mm512_mask3_fmadd_pd(weights, _mm512_set1_pd(x.values[q]), sum[v], bits);
            }
        }
        for (int v = 0; v < NV; ++v) _mm512_mask_storeu_pd(out + 8 * v, v + 1 == NV ? tail : 0xff, sum[v]);
    }
}

// How AVX2, which cannot spread a vector by bits, does it: by a permutation for each of the 16 sets of four columns.
struct Spread {
    alignas(32) std::int32_t halves[16][8];  // where each half of a number comes from
    alignas(32) std::int64_t loaded[16][4];  // -1 for as many of the first numbers as there are bits
    alignas(32) std::int64_t kept[16][4];    // -1 where there is a bit
};
constexpr Spread spread_table() {
    Spread table{};
    for (int bits = 0; bits < 16; ++bits) {
        int count = 0;
        for (int lane = 0; lane < 4; ++lane) {
            const bool has = bits >> lane & 1;
            // The last number is not loaded, and so zero, wherever some column has no bit.
            const int from = has ? count++ : 3;
            table.halves[bits][2 * lane] = 2 * from;
            table.halves[bits][2 * lane + 1] = 2 * from + 1;
            table.kept[bits][lane] = has ? -1 : 0;
        }
        for (int lane = 0; lane < count; ++lane) table.loaded[bits][lane] = -1;
    }
    return table;
}
inline constexpr Spread kSpread = spread_table();

// NV vectors of four numbers; the sums of a row have room for whole vectors.
template <int NV, bool ones, class Index>
MM_TARGET("arch=x86-64-v3")
void permuted_rows(const Place<std::uint32_t>* places, std::int64_t m, Compressed<Index> x, std::int64_t begin,
                   std::int64_t end, const double* w, const double* initial, double* out) {
    constexpr std::int64_t kPlaces = 24, kWeights = 12;
    const std::int64_t stop = x.starts[end];
    double room[4 * NV] = {};
    for (std::int64_t r = begin; r < end; ++r, out += m) {
        if (initial) std::copy(initial, initial + m, room);
        __m256d sum[NV];
        for (int v = 0; v < NV; ++v) sum[v] = initial ? _mm256_loadu_pd(room + 4 * v) : _mm256_setzero_pd();
        for (std::int64_t q = x.starts[r]; q < x.starts[r + 1]; ++q) {
            if (q + kPlaces < stop) __builtin_prefetch(places + x.columns[q + kPlaces]);
            if (q + kWeights < stop) __builtin_prefetch(w + places[x.columns[q + kWeights]].start);
            const Place<std::uint32_t> place = places[x.columns[q]];
            for (int v = 0; v < NV; ++v) {
                const std::uint32_t bits = place.mask >> (4 * v) & 15;
                const int before = std::popcount(place.mask & ((std::uint32_t{1} << (4 * v)) - 1));
                const auto* loaded = reinterpret_cast<const __m256i*>(kSpread.loaded[bits]);
                const auto* halves = reinterpret_cast<const __m256i*>(kSpread.halves[bits]);
                const __m256d own = _mm256_maskload_pd(w + place.start + before, _mm256_load_si256(loaded));
                const __m256d weights = _mm256_castsi256_pd(
                    _mm256_permutevar8x32_epi32(_mm256_castpd_si256(own), _mm256_load_si256(halves)));
                if constexpr (ones) {
                    sum[v] = _mm256_add_pd(sum[v], weights);
                } else {
                    // A value that is not finite must not reach a column without a weight.
                    const auto* kept = reinterpret_cast<const double*>(kSpread.kept[bits]);
                    const __m256d added = _mm256_fmadd_pd(weights, _mm256_set1_pd(x.values[q]), sum[v]);
                    sum[v] = _mm256_blendv_pd(sum[v], added, _mm256_load_pd(kept));
                }
            }
        }
        for (int v = 0; v < NV; ++v) _mm256_storeu_pd(room + 4 * v, sum[v]);
        std::copy(room, room + m, out);
    }
}

// Calls body(n) with a constant for n in 1 .. most; false for other n.
template <int most, class Body>
bool with_constant(std::int64_t n, Body&& body) {
    if (n == most) {
        body(std::integral_constant<int, most>{});
        return true;
    }
    if constexpr (most > 1) return with_constant<most - 1>(n, body);
    return false;
}

template <bool ones, class Index>
bool permuted(const Support& s, Compressed<Index> x, std::int64_t begin, std::int64_t end, const double* w,
              const double* initial, double* out) {
    return with_constant<8>(s.narrow.empty() ? 0 : (s.m + 3) / 4, [&](auto nv) {
        permuted_rows<nv, ones>(s.narrow.data(), s.m, x, begin, end, w, initial, out);
    });
}

template <bool ones, class Index>
bool expanded(const Support& s, Compressed<Index> x, std::int64_t begin, std::int64_t end, const double* w,
              const double* initial, double* out) {
    return with_constant<8>(s.narrow.empty() && s.wide.empty() ? 0 : (s.m + 7) / 8, [&](auto nv) {
        if constexpr (nv <= 4) expanded_rows<nv, ones>(s.narrow.data(), s.m, x, begin, end, w, initial, out);
        else expanded_rows<nv, ones>(s.wide.data(), s.m, x, begin, end, w, initial, out);
    });
}
#endif

template <class Index>
void rows(int widest, const Support& support, Compressed<Index> x, std::int64_t begin, std::int64_t end,
          const double* w, const double* initial, double* out) {
#if MM_HAS_TARGETS
    if (widest == 8 && (x.values ? expanded<false>(support, x, begin, end, w, initial, out)
                                 : expanded<true>(support, x, begin, end, w, initial, out)))
        return;
    if (widest == 4 && (x.values ? permuted<false>(support, x, begin, end, w, initial, out)
                                 : permuted<true>(support, x, begin, end, w, initial, out)))
        return;
#else
    static_cast<void>(widest);
#endif
    if (x.values) scattered_rows<false>(support, x, begin, end, w, initial, out);
    else scattered_rows<true>(support, x, begin, end, w, initial, out);
}

template <class Index>
void forward(const Support& support, Compressed<Index> x, std::int64_t n, const double* w, const double* initial,
             double* out, int threads) {
    const int widest = simd::lanes_in_use();
    parallel_blocks(n, 256, threads, [&](int, std::int64_t begin, std::int64_t end) {
        rows(widest, support, x, begin, end, w, initial, out + begin * support.m);
    });
}

// ---------------------------------------------------------------------------------------------------------------
// Adjoint and norms

// A feature has many columns where it has more than one in so many.
inline constexpr std::int64_t kDense = 5;

// Sums over the rows of Z that one feature has, in all columns: into one of two buffers of m numbers, which is
// returned.
template <class Index>
const double* dense_sums(int widest, const Index* rows, const double* values, std::int64_t count, const double* z,
                         std::int64_t n, std::int64_t m, double* one, double* other) {
    constexpr std::int64_t kSegment = 256;
    static constexpr auto ones = [] {
        std::array<double, kSegment> filled{};
        filled.fill(1.0);
        return filled;
    }();
    const double* initial = nullptr;
    for (std::int64_t q = 0; q < count || !initial; q += kSegment) {
        const Index bounds[2] = {0, static_cast<Index>(std::min(kSegment, count - q))};
        const Compressed<Index> segment{bounds, rows + q, values ? values + q : ones.data()};
        linear::sparse_rows(widest, segment, 0, 1, z, n, m, initial, linear::ToRows{one, m});  // indices were checked
        initial = one;
        std::swap(one, other);
    }
    return initial;
}

// `x` is the transposed matrix: its rows are features; Z has n rows. Where a feature has many of the columns all are
// summed, by vectors. Rows of Z are accessed in no order, so they are prefetched.
template <class Index>
void adjoint(const Support& support, Compressed<Index> x, std::int64_t n, const double* z, double* out, int threads) {
    constexpr std::int64_t kAhead = 12;
    const std::int64_t m = support.m;
    const int widest = simd::lanes_in_use();
    // parallel_blocks has no more threads than blocks.
    constexpr std::int64_t kGrain = 64;
    const std::int64_t blocks = (support.n_features() + kGrain - 1) / kGrain;
    std::vector<std::vector<double>> buffers(static_cast<std::size_t>(std::min<std::int64_t>(threads, blocks)));
    parallel_blocks(support.n_features(), kGrain, threads, [&](int thread, std::int64_t begin, std::int64_t end) {
        std::vector<double>& sums = buffers[thread];
        sums.resize(static_cast<std::size_t>(2 * m));
        const std::int64_t stop = x.starts[end];
        for (std::int64_t f = begin; f < end; ++f) {
            const std::int32_t first = support.starts[f], last = support.starts[f + 1];
            if (first == last) continue;
            if ((last - first) * kDense > m) {
                const double* values = x.values ? x.values + x.starts[f] : nullptr;
                const double* all = dense_sums(widest, x.columns + x.starts[f], values, x.starts[f + 1] - x.starts[f],
                                               z, n, m, sums.data(), sums.data() + m);
                for (std::int32_t j = first; j < last; ++j) out[j] = all[support.columns[j]];
                continue;
            }
            std::fill(out + first, out + last, 0.0);
            for (std::int64_t q = x.starts[f]; q < x.starts[f + 1]; ++q) {
                if (q + kAhead < stop)
                    __builtin_prefetch(z + static_cast<std::int64_t>(x.columns[q + kAhead]) * m +
                                       support.columns[first]);
                const double* row = z + static_cast<std::int64_t>(x.columns[q]) * m;
                const double value = x.values ? x.values[q] : 1.0;
                for (std::int32_t j = first; j < last; ++j) out[j] += value * row[support.columns[j]];
            }
        }
    });
}

// Norms over the features of each part: Euclidean, or the largest absolute value.
template <class Index>
void part_norms(const Support& support, Compressed<Index> x, std::int64_t n, bool largest, double* out, int threads) {
    const std::int64_t m = support.m;
    parallel_each(n, 256, threads, [&](int, std::int64_t r) {
        double* row = out + r * m;
        std::fill(row, row + m, 0.0);
        for (std::int64_t q = x.starts[r]; q < x.starts[r + 1]; ++q) {
            const double size = x.values ? std::abs(x.values[q]) : 1.0;
            const std::int32_t last = support.starts[x.columns[q] + 1];
            for (std::int32_t j = support.starts[x.columns[q]]; j < last; ++j) {
                double& norm = row[support.columns[j]];
                norm = largest ? std::max(norm, size) : norm + size * size;
            }
        }
        if (!largest)
            for (std::int64_t c = 0; c < m; ++c) row[c] = std::sqrt(row[c]);
    });
}

// ---------------------------------------------------------------------------------------------------------------
// Single examples

// The map of single examples, see online/examples.hpp; with `constant`, m weights come first that every row has.
template <class Index>
class SupportedMap final : public online::FeatureMap {
   public:
    SupportedMap(Support support, std::span<const std::int64_t> offsets, bool constant, Compressed<Index> x)
        : support_(support), offsets_(offsets), first_(constant ? support.m : 0), x_(x), widest_(simd::lanes_in_use()) {
    }

    std::int64_t n_weights() const override { return first_ + support_.n_weights(); }
    std::int64_t n_examples() const override { return static_cast<std::int64_t>(offsets_.size()) - 1; }
    std::int64_t size(std::int64_t i) const override { return (offsets_[i + 1] - offsets_[i]) * support_.m; }

    void scores(std::int64_t i, const double* w, double* out) const override {
        rows(widest_, support_, x_, offsets_[i], offsets_[i + 1], w + first_, first_ ? w : nullptr, out);
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
    void add(std::int64_t i, std::int64_t part, double x, std::int64_t from,
             std::vector<online::Entry>& into) const override {
        each(i, part, [&](std::int64_t at, double value) { into.push_back({from + at, x * value}); });
    }

   private:
    template <class Body>
    void each(std::int64_t i, std::int64_t part, Body&& body) const {
        const std::int64_t row = offsets_[i] + part / support_.m;
        const auto column = static_cast<std::int32_t>(part % support_.m);
        if (first_) body(column, 1.0);
        for (Index q = x_.starts[row]; q < x_.starts[row + 1]; ++q)
            if (const std::int64_t at = support_.find(x_.columns[q], column); at >= 0)
                body(first_ + at, x_.values ? x_.values[q] : 1.0);
    }

    Support support_;
    std::span<const std::int64_t> offsets_;
    std::int64_t first_;
    Compressed<Index> x_;
    int widest_;
};

}  // namespace maxmargin::supported
