// The sparse half of linear/dense.hpp: X in compressed rows, with 32- or 64-bit indices.
//
// Every column index is compared with d where it is used; a product returns false if one is out of range. Forward, work
// is cut into pieces of about equal rows plus non-zeros. A row with very many
// non-zeros (in a transposed matrix: a feature that is nearly always on) is cut into segments counted from its own
// beginning, so that one row does not hold up all threads and its bits depend on the row alone.
#pragma once

#include <atomic>

#include "maxmargin/linear/dense.hpp"

namespace maxmargin::linear {

template <class Index>
struct Compressed {
    const Index* starts;  // n + 1
    const Index* columns;
    const double* values;
};

// Non-zeros (and rows) per piece; depends on k alone so that a row's bits do not depend on the other rows.
inline std::int64_t piece_size(std::int64_t k) { return std::clamp<std::int64_t>((1 << 17) / k, 2048, 1 << 15); }

// ---------------------------------------------------------------------------------------------------------------
// Forward

// Where the results of a row go: a (n, k) array, or two vectors for the fused pair (k = 2).
struct ToRows {
    double* out;
    std::int64_t k;
    template <class Vec>
    __attribute__((always_inline)) inline void put(std::int64_t row, std::int64_t c, const Vec& value) const {
        store(out + row * k + c, value);
    }
};
struct ToPair {
    double* first;
    double* second;
    __attribute__((always_inline)) inline void put(std::int64_t row, std::int64_t, const Vec2& value) const {
        first[row] = value[0];
        second[row] = value[1];
    }
};

template <class Vec>
MM_INLINE void start_from(Vec& sum, const double* initial, std::int64_t c) {
    if (initial) {
        sum = load<Vec>(initial + c);
    } else {
        sum = Vec{};
    }
}

// Vectors of outputs of one row that are kept in registers together: 32 columns, or 16 on the baseline.
template <class Vec>
inline constexpr std::int64_t most_vectors = lanes<Vec> == 8 ? 4 : 8;

template <class Index>
MM_INLINE bool outside(Index j, std::int64_t d) {  // a negative index becomes a large one
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(j)) >= static_cast<std::uint64_t>(d);
}

template <class... Index>
MM_INLINE bool any_outside(std::int64_t d, Index... j) {  // one branch for all
    return (static_cast<int>(outside(j, d)) | ...);
}

// One vector of outputs per row: four sums in flight.
template <class Vec, class Index, class To>
MM_INLINE bool sparse_rows_narrow(Compressed<Index> x, std::int64_t begin, std::int64_t end,
                                  const double* MM_RESTRICT w, std::int64_t d, std::int64_t k, std::int64_t c,
                                  const double* initial, To to) {
    const double* shifted = w + c;
    for (std::int64_t i = begin; i < end; ++i) {
        std::int64_t q = x.starts[i];
        const std::int64_t last = x.starts[i + 1];
        Vec a0, a1{}, a2{}, a3{};
        start_from(a0, initial, c);
        for (; q + 4 <= last; q += 4) {
            prefetch(x.columns + q, kAhead);
            prefetch(x.values + q, kAhead / 2);
            const Index j0 = x.columns[q], j1 = x.columns[q + 1], j2 = x.columns[q + 2], j3 = x.columns[q + 3];
            if (any_outside(d, j0, j1, j2, j3)) return false;
            a0 += load<Vec>(shifted + j0 * k) * x.values[q];
            a1 += load<Vec>(shifted + j1 * k) * x.values[q + 1];
            a2 += load<Vec>(shifted + j2 * k) * x.values[q + 2];
            a3 += load<Vec>(shifted + j3 * k) * x.values[q + 3];
        }
        for (; q < last; ++q) {
            if (outside(x.columns[q], d)) return false;
            a0 += load<Vec>(shifted + x.columns[q] * k) * x.values[q];
        }
        const Vec sum = (a0 + a1) + (a2 + a3);
        to.put(i, c, sum);
    }
    return true;
}

// NV vectors of outputs per row in registers; the rows of W are prefetched kRowsAhead non-zeros before their use.
template <class Vec, int NV, class Index>
MM_INLINE bool sparse_rows_tile(Compressed<Index> x, std::int64_t begin, std::int64_t end, const double* MM_RESTRICT w,
                                std::int64_t d, std::int64_t k, const std::int64_t* at, const double* initial,
                                ToRows to) {
    constexpr std::int64_t kRowsAhead = 16;
    constexpr int kLine = 64 / sizeof(Vec);  // vectors per cache line
    const std::int64_t stop = x.starts[end];
    for (std::int64_t i = begin; i < end; ++i) {
        Vec acc[NV];
        for (int v = 0; v < NV; ++v) start_from(acc[v], initial, at[v]);
        const std::int64_t last = x.starts[i + 1];
        for (std::int64_t q = x.starts[i]; q < last; ++q) {
            if (q + kRowsAhead < stop) {
                const std::uint64_t next = static_cast<std::uint64_t>(x.columns[q + kRowsAhead]) * k;
                for (int v = 0; v < NV; v += kLine) prefetch(w, next + at[v]);
                prefetch(w, next + at[NV - 1] + lanes<Vec> - 1);
            }
            if (outside(x.columns[q], d)) return false;
            const double* row = w + x.columns[q] * k;
            const double value = x.values[q];
            for (int v = 0; v < NV; ++v) acc[v] += load<Vec>(row + at[v]) * value;
        }
        for (int v = 0; v < NV; ++v) to.put(i, at[v], acc[v]);
    }
    return true;
}

template <class Vec, class Index>
MM_INLINE bool sparse_rows_at(Compressed<Index> x, std::int64_t begin, std::int64_t end, const double* w,
                              std::int64_t d, std::int64_t k, const double* initial, ToRows to) {
    if constexpr (lanes<Vec> > 1) {
        if (k < lanes<Vec>) return sparse_rows_at<Half<Vec>>(x, begin, end, w, d, k, initial, to);
    }
    bool good = true;
    const std::int64_t nv = vectors<Vec>(k);
    for (std::int64_t v = 0; v < nv;) {
        const std::int64_t size = group(nv - v, most_vectors<Vec>);
        std::int64_t at[most_vectors<Vec>];
        for (std::int64_t u = 0; u < size; ++u) at[u] = column<Vec>(v + u, k);
        if constexpr (most_vectors<Vec> > 4) {
            if (size == 8) good &= sparse_rows_tile<Vec, 8>(x, begin, end, w, d, k, at, initial, to);
            if (size == 7) good &= sparse_rows_tile<Vec, 7>(x, begin, end, w, d, k, at, initial, to);
            if (size == 6) good &= sparse_rows_tile<Vec, 6>(x, begin, end, w, d, k, at, initial, to);
            if (size == 5) good &= sparse_rows_tile<Vec, 5>(x, begin, end, w, d, k, at, initial, to);
        }
        if (size == 4) good &= sparse_rows_tile<Vec, 4>(x, begin, end, w, d, k, at, initial, to);
        if (size == 3) good &= sparse_rows_tile<Vec, 3>(x, begin, end, w, d, k, at, initial, to);
        if (size == 2) good &= sparse_rows_tile<Vec, 2>(x, begin, end, w, d, k, at, initial, to);
        if (size == 1) good &= sparse_rows_narrow<Vec>(x, begin, end, w, d, k, at[0], initial, to);
        v += size;
    }
    return good;
}

template <class Vec, class Index>
MM_INLINE bool sparse_rows_at(Compressed<Index> x, std::int64_t begin, std::int64_t end, const double* w,
                              std::int64_t d, std::int64_t, const double* initial, ToPair to) {
    return sparse_rows_narrow<Vec2>(x, begin, end, w, d, 2, 0, initial, to);
}
MM_LEVELS(sparse_rows)

// First row of each piece: the first row r with starts[r] + r >= piece * size.
template <class Index>
std::int64_t piece_start(const Index* starts, std::int64_t n, std::int64_t target) {
    std::int64_t low = 0, high = n;
    while (low < high) {
        const std::int64_t middle = low + (high - low) / 2;
        if (static_cast<std::int64_t>(starts[middle]) + middle < target) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// out = X W for the n rows of X; w is (d, k). False if a column index is out of range (then `to` is not complete).
// `starts` must have been checked to rise from 0 to the number of non-zeros.
template <class Index, class To>
bool sparse_forward(Compressed<Index> x, std::int64_t n, std::int64_t d, std::int64_t k, const double* w,
                    const double* initial, To to, int threads) {
    if (n == 0 || k == 0) return true;
    const int widest = lanes_in_use();
    const std::int64_t size = piece_size(k);
    const std::int64_t count = (static_cast<std::int64_t>(x.starts[n]) + n + size - 1) / size;
    std::vector<std::int64_t> first(static_cast<std::size_t>(count + 1), n);
    for (std::int64_t p = 0; p < count; ++p) first[p] = piece_start(x.starts, n, p * size);
    // Only the last row of a piece can be long: the next piece starts right after it.
    struct Segment {
        std::int64_t begin, end;
    };
    struct Long {
        std::int64_t row, begin, end;  // its segments
    };
    std::vector<Segment> segments;
    std::vector<Long> longs;
    std::vector<char> ends_long(static_cast<std::size_t>(count), 0);
    for (std::int64_t p = 0; p < count; ++p) {
        const std::int64_t row = first[p + 1] - 1;
        if (first[p] > row || x.starts[row + 1] - x.starts[row] <= 2 * size) continue;
        ends_long[p] = 1;
        const auto begin = static_cast<std::int64_t>(segments.size());
        for (std::int64_t q = x.starts[row]; q < x.starts[row + 1]; q += size) {
            segments.push_back({q, std::min<std::int64_t>(q + size, x.starts[row + 1])});
        }
        longs.push_back({row, begin, static_cast<std::int64_t>(segments.size())});
    }
    std::vector<double> partial(segments.size() * static_cast<std::size_t>(k));
    std::atomic<bool> good{true};
    const auto n_segments = static_cast<std::int64_t>(segments.size());
    // Segments first: they are the largest items.
    parallel_blocks(n_segments + count, 1, threads, [&](int, std::int64_t item, std::int64_t) {
        bool fine = true;
        if (item < n_segments) {
            const Index bounds[2] = {static_cast<Index>(segments[item].begin), static_cast<Index>(segments[item].end)};
            const ToRows part{partial.data() + item * k, k};
            const Compressed<Index> row{bounds, x.columns, x.values};
            fine = sparse_rows(widest, row, 0, 1, w, d, k, nullptr, part);
        } else {
            const std::int64_t p = item - n_segments;
            const std::int64_t begin = first[p], end = first[p + 1] - ends_long[p];
            if (begin < end) fine = sparse_rows(widest, x, begin, end, w, d, k, initial, to);
        }
        if (!fine) good.store(false, std::memory_order_relaxed);
    });
    for (const Long& row : longs) {
        double* sum = partial.data() + row.begin * k;
        for (std::int64_t s = row.begin + 1; s < row.end; ++s) {
            for (std::int64_t c = 0; c < k; ++c) sum[c] += partial[s * k + c];
        }
        if constexpr (std::is_same_v<To, ToPair>) {
            to.put(row.row, 0, load<Vec2>(sum));
        } else {
            for (std::int64_t c = 0; c < k; ++c) to.put(row.row, c, initial ? sum[c] + initial[c] : sum[c]);
        }
    }
    return good.load();
}

// ---------------------------------------------------------------------------------------------------------------
// Adjoint by scattering rows into sums (d, k), for d * k small enough to stay in cache.

template <class Vec, int NV, class Index>
MM_INLINE bool scatter_tile(Compressed<Index> x, std::int64_t begin, std::int64_t end, const double* MM_RESTRICT z,
                            std::int64_t d, std::int64_t k, const std::int64_t* at, double* MM_RESTRICT sums) {
    for (std::int64_t i = begin; i < end; ++i) {
        Vec row[NV];
        for (int v = 0; v < NV; ++v) row[v] = load<Vec>(z + i * k + at[v]);
        const std::int64_t last = x.starts[i + 1];
        for (std::int64_t q = x.starts[i]; q < last; ++q) {
            if (NV == 1) {
                prefetch(x.columns + q, kAhead);
                prefetch(x.values + q, kAhead / 2);
            }
            if (outside(x.columns[q], d)) return false;
            double* target = sums + x.columns[q] * k;
            const double value = x.values[q];
            Vec sum[NV];  // all loaded before any is stored: the last may overlap the one before it
            for (int v = 0; v < NV; ++v) sum[v] = load<Vec>(target + at[v]) + row[v] * value;
            for (int v = 0; v < NV; ++v) store(target + at[v], sum[v]);
        }
    }
    return true;
}

template <class Vec, class Index>
MM_INLINE bool scatter_at(Compressed<Index> x, std::int64_t begin, std::int64_t end, const double* z, std::int64_t d,
                          std::int64_t k, double* sums) {
    if constexpr (lanes<Vec> > 1) {
        if (k < lanes<Vec>) return scatter_at<Half<Vec>>(x, begin, end, z, d, k, sums);
    }
    bool good = true;
    const std::int64_t nv = vectors<Vec>(k);
    for (std::int64_t v = 0; v < nv;) {
        const std::int64_t size = group(nv - v, 4);
        std::int64_t at[4];
        for (std::int64_t u = 0; u < size; ++u) at[u] = column<Vec>(v + u, k);
        if (size == 4) good &= scatter_tile<Vec, 4>(x, begin, end, z, d, k, at, sums);
        if (size == 3) good &= scatter_tile<Vec, 3>(x, begin, end, z, d, k, at, sums);
        if (size == 2) good &= scatter_tile<Vec, 2>(x, begin, end, z, d, k, at, sums);
        if (size == 1) good &= scatter_tile<Vec, 1>(x, begin, end, z, d, k, at, sums);
        v += size;
    }
    return good;
}

MM_LEVELS(scatter)

// out (d, k) = X' Z by scattering; memory (chunks - 1) * d * k doubles. False if a column index is out of range.
template <class Index>
bool sparse_adjoint(Compressed<Index> x, std::int64_t n, std::int64_t d, std::int64_t k, const double* z, double* out,
                    int threads) {
    if (d == 0 || k == 0) return n == 0 || k == 0 || x.starts[n] == 0;
    // A chunk has at least 2 d non-zeros on average, so that clearing and adding its sums does not dominate.
    const std::int64_t average = std::max<std::int64_t>(n == 0 ? 0 : static_cast<std::int64_t>(x.starts[n]) / n, 1);
    const Chunks chunks = chunk_rows(n, std::max<std::int64_t>(2 * d, piece_size(k)) / average);
    const int widest = lanes_in_use();
    std::atomic<bool> good{true};
    sum_chunks(n, chunks, d * k, out, threads, [&](std::int64_t begin, std::int64_t end, double* sums) {
        std::fill_n(sums, d * k, 0.0);
        if (!scatter(widest, x, begin, end, z, d, k, sums)) good.store(false, std::memory_order_relaxed);
    });
    return good.load();
}

}  // namespace maxmargin::linear
