// Products of a tall matrix X (n rows, d columns) with a few columns, forward  out = X W  and adjoint  out = X' Z.
//
// X is dense (row-major) or compressed sparse rows. W is (d, k), Z is (n, k), both row-major, with k = 1 for plain
// weights and k up to a few hundred for weights that are repeated per label.
//
// Bits do not depend on the number of threads: a forward product computes each row by itself; an adjoint adds up
// partial sums over row chunks whose bounds depend on the sizes alone, in the order of the chunks. A sparse adjoint is
// either such a chunked scatter or the forward product of the transposed matrix, which the caller keeps.
//
// Cost: every product reads X once. Dense with k = 1 is bound by memory; dense with k > 1 is a register-tiled product
// (Goto and van de Geijn 2008, without packing: W is small); sparse keeps the k outputs of a row in registers over
// its non-zeros and prefetches the rows of W.
//
// A width k that is not a multiple of the vector length is covered by a last vector that overlaps the one before it:
// both hold the same values, so nothing is masked and nothing is read past the end of a row.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "maxmargin/parallel.hpp"
#include "maxmargin/simd.hpp"

namespace maxmargin::linear {

#define MM_INLINE static inline __attribute__((always_inline))

using Vec8 = double __attribute__((vector_size(64), aligned(8), may_alias));
using Vec4 = double __attribute__((vector_size(32), aligned(8), may_alias));
using Vec2 = double __attribute__((vector_size(16), aligned(8), may_alias));

template <class Vec>
inline constexpr std::int64_t lanes = sizeof(Vec) / sizeof(double);

template <class Vec>
MM_INLINE const Vec& load(const double* p) {
    return *reinterpret_cast<const Vec*>(p);
}
template <class Vec>
MM_INLINE void store(double* p, const Vec& value) {
    *reinterpret_cast<Vec*>(p) = value;
}

// Streams of X are prefetched this many numbers ahead: further than hardware does, which stops at page bounds. A
// prefetch past the end of an array reads nothing.
inline constexpr std::int64_t kAhead = 512;

template <class T>
MM_INLINE void prefetch(const T* p, std::int64_t ahead) {
    __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(p) + ahead * sizeof(T)));
}

MM_INLINE double total(const double& v) { return v; }
MM_INLINE double total(const Vec2& v) { return v[0] + v[1]; }
MM_INLINE double total(const Vec4& v) {
    const Vec2 half = __builtin_shufflevector(v, v, 0, 1) + __builtin_shufflevector(v, v, 2, 3);
    return half[0] + half[1];
}
MM_INLINE double total(const Vec8& v) {
    const Vec4 half = __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
    const Vec2 quarter = __builtin_shufflevector(half, half, 0, 1) + __builtin_shufflevector(half, half, 2, 3);
    return quarter[0] + quarter[1];
}

// Number of vectors that cover k columns (k >= lanes), and where vector v starts; the last one may overlap.
template <class Vec>
MM_INLINE std::int64_t vectors(std::int64_t k) {
    return (k + lanes<Vec> - 1) / lanes<Vec>;
}
template <class Vec>
MM_INLINE std::int64_t column(std::int64_t v, std::int64_t k) {
    return std::min(v * lanes<Vec>, k - lanes<Vec>);
}
// How many of the remaining vectors to treat together: never one alone at the end of many, so that the overlapping
// vector is always loaded together with the one it overlaps, before either is stored.
MM_INLINE std::int64_t group(std::int64_t remaining, std::int64_t most) {
    if (remaining <= most) return remaining;
    return remaining == most + 1 ? most - 1 : most;
}

// ---------------------------------------------------------------------------------------------------------------
// Fixed chunks of rows for adjoints: their number depends on the sizes alone.

struct Chunks {
    std::int64_t count;
    std::int64_t rows;
};

inline constexpr std::int64_t kMostChunks = 32;

inline Chunks chunk_rows(std::int64_t n, std::int64_t fewest_rows) {
    const std::int64_t count = std::clamp<std::int64_t>(n / std::max<std::int64_t>(fewest_rows, 1), 1, kMostChunks);
    const std::int64_t rows = std::max<std::int64_t>((n + count - 1) / count, 1);
    return {std::max<std::int64_t>((n + rows - 1) / rows, 1), rows};
}

// out = sum over chunks of partial(chunk), where body(chunk, begin, end, sums) overwrites `sums` (size doubles).
// Memory: (chunks - 1) * size doubles.
template <class Body>
void sum_chunks(std::int64_t n, Chunks chunks, std::int64_t size, double* out, int threads, Body&& body) {
    const auto scratch = std::make_unique_for_overwrite<double[]>(static_cast<std::size_t>((chunks.count - 1) * size));
    parallel_blocks(chunks.count, 1, threads, [&](int, std::int64_t chunk, std::int64_t) {
        double* sums = chunk == 0 ? out : scratch.get() + (chunk - 1) * size;
        body(std::min(chunk * chunks.rows, n), std::min((chunk + 1) * chunks.rows, n), sums);
    });
    if (chunks.count == 1) return;
    parallel_blocks(size, 1 << 14, threads, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t c = 1; c < chunks.count; ++c) {
            const double* MM_RESTRICT part = scratch.get() + (c - 1) * size;
            for (std::int64_t j = begin; j < end; ++j) out[j] += part[j];
        }
    });
}

// ---------------------------------------------------------------------------------------------------------------
// Dense, one or two right-hand sides (P): the fused pair reads X once.

// Weights laid out as the vectors of a row of X; the lanes that the last vector shares with the one before are zero.
template <class Vec>
inline std::vector<double> overlapped(const double* w, std::int64_t d) {
    const std::int64_t nv = vectors<Vec>(d);
    std::vector<double> padded(static_cast<std::size_t>(nv * lanes<Vec>), 0.0);
    for (std::int64_t j = 0; j < d; ++j) {
        const std::int64_t v = j / lanes<Vec>;
        padded[static_cast<std::size_t>(v * lanes<Vec> + j - column<Vec>(v, d))] = w[j];
    }
    return padded;
}

// out[p][i] = x_i' w[p] for rows begin..end; NV = 0 means the number of vectors is known at run time only.
template <class Vec, int NV, int P>
MM_INLINE void dot_rows(const double* MM_RESTRICT x, std::int64_t d, const double* const* padded,
                        double* const* out, std::int64_t begin, std::int64_t end) {
    constexpr int kRows = 4;
    const std::int64_t nv = NV ? NV : vectors<Vec>(d);
    std::int64_t i = begin;
    for (; i + kRows <= end; i += kRows) {
        Vec acc[kRows][P] = {};
        const double* row = x + i * d;
        for (std::int64_t v = 0; v < nv; ++v) {
            const std::int64_t c = column<Vec>(v, d);
            for (int r = 0; r < kRows; ++r) {
                prefetch(row + r * d + c, kAhead);
                for (int p = 0; p < P; ++p) {
                    acc[r][p] += load<Vec>(row + r * d + c) * load<Vec>(padded[p] + v * lanes<Vec>);
                }
            }
        }
        for (int r = 0; r < kRows; ++r) {
            for (int p = 0; p < P; ++p) out[p][i + r] = total(acc[r][p]);
        }
    }
    for (; i < end; ++i) {
        Vec acc[P] = {};
        for (std::int64_t v = 0; v < nv; ++v) {
            const std::int64_t c = column<Vec>(v, d);
            for (int p = 0; p < P; ++p) acc[p] += load<Vec>(x + i * d + c) * load<Vec>(padded[p] + v * lanes<Vec>);
        }
        for (int p = 0; p < P; ++p) out[p][i] = total(acc[p]);
    }
}

template <int P>
MM_INLINE void dot_rows_any(const double* x, std::int64_t d, const double* const* padded, double* const* out,
                            std::int64_t begin, std::int64_t end) {
    if (d > 32) return dot_rows<Vec8, 0, P>(x, d, padded, out, begin, end);
    if (d > 24) return dot_rows<Vec8, 4, P>(x, d, padded, out, begin, end);
    if (d > 16) return dot_rows<Vec8, 3, P>(x, d, padded, out, begin, end);
    if (d > 8) return dot_rows<Vec8, 2, P>(x, d, padded, out, begin, end);
    if (d == 8) return dot_rows<Vec8, 1, P>(x, d, padded, out, begin, end);
    if (d > 4) return dot_rows<Vec4, 2, P>(x, d, padded, out, begin, end);
    if (d == 4) return dot_rows<Vec4, 1, P>(x, d, padded, out, begin, end);
    if (d == 3) return dot_rows<Vec2, 2, P>(x, d, padded, out, begin, end);
    if (d == 2) return dot_rows<Vec2, 1, P>(x, d, padded, out, begin, end);
    return dot_rows<double, 1, P>(x, d, padded, out, begin, end);
}

MM_CLONES static void dot_rows_one(const double* x, std::int64_t d, const double* const* padded, double* const* out,
                                   std::int64_t begin, std::int64_t end) {
    dot_rows_any<1>(x, d, padded, out, begin, end);
}
MM_CLONES static void dot_rows_two(const double* x, std::int64_t d, const double* const* padded, double* const* out,
                                   std::int64_t begin, std::int64_t end) {
    dot_rows_any<2>(x, d, padded, out, begin, end);
}

inline std::vector<double> overlapped_any(const double* w, std::int64_t d) {
    if (d >= 8) return overlapped<Vec8>(w, d);
    if (d >= 4) return overlapped<Vec4>(w, d);
    if (d >= 2) return overlapped<Vec2>(w, d);
    return overlapped<double>(w, d);
}

// out[p] = X w[p], p < count, count 1 or 2.
inline void dense_forward_vectors(const double* x, std::int64_t n, std::int64_t d, const double* const* w,
                                  double* const* out, int count, int threads) {
    if (d == 0) {
        for (int p = 0; p < count; ++p) std::fill_n(out[p], n, 0.0);
        return;
    }
    std::vector<double> storage[2];
    const double* padded[2] = {};
    for (int p = 0; p < count; ++p) {
        storage[p] = overlapped_any(w[p], d);
        padded[p] = storage[p].data();
    }
    const std::int64_t grain = std::max<std::int64_t>((1 << 16) / d, 16);
    parallel_blocks(n, grain, threads, [&](int, std::int64_t begin, std::int64_t end) {
        (count == 1 ? dot_rows_one : dot_rows_two)(x, d, padded, out, begin, end);
    });
}

// sums[p*d + j] = sum over rows of z[p][i] x_ij with the sums in registers (d at most four vectors).
template <class Vec, int NV, int P>
MM_INLINE void gather_rows(const double* MM_RESTRICT x, std::int64_t d, const double* const* z, double* sums,
                           std::int64_t begin, std::int64_t end) {
    constexpr int kRows = NV * P <= 2 ? 4 : (NV * P <= 4 ? 2 : 1);
    Vec acc[kRows][P][NV] = {};
    std::int64_t i = begin;
    for (; i + kRows <= end; i += kRows) {
        for (int r = 0; r < kRows; ++r) {
            const double* row = x + (i + r) * d;
            for (int v = 0; v < NV; ++v) {
                const Vec value = load<Vec>(row + column<Vec>(v, d));
                prefetch(row + column<Vec>(v, d), kAhead);
                for (int p = 0; p < P; ++p) acc[r][p][v] += value * z[p][i + r];
            }
        }
    }
    for (; i < end; ++i) {
        for (int v = 0; v < NV; ++v) {
            const Vec value = load<Vec>(x + i * d + column<Vec>(v, d));
            for (int p = 0; p < P; ++p) acc[0][p][v] += value * z[p][i];
        }
    }
    for (int p = 0; p < P; ++p) {
        for (int v = 0; v < NV; ++v) {
            Vec sum = acc[0][p][v];
            for (int r = 1; r < kRows; ++r) sum += acc[r][p][v];
            store(sums + p * d + column<Vec>(v, d), sum);
        }
    }
}

// The same for wide rows: four rows at a time are added to the sums, which stay in cache.
template <int P>
MM_INLINE void gather_wide_rows(const double* MM_RESTRICT x, std::int64_t d, const double* const* z,
                                double* MM_RESTRICT sums, std::int64_t begin, std::int64_t end) {
    constexpr int kRows = 4;
    std::fill_n(sums, P * d, 0.0);
    std::int64_t i = begin;
    for (; i + kRows <= end; i += kRows) {
        const double* row = x + i * d;
        std::int64_t j = 0;
        for (; j + 8 <= d; j += 8) {
            Vec8 acc[P];
            for (int p = 0; p < P; ++p) acc[p] = load<Vec8>(sums + p * d + j);
            for (int r = 0; r < kRows; ++r) {
                const Vec8 value = load<Vec8>(row + r * d + j);
                prefetch(row + r * d + j, std::max(kAhead, kRows * d));
                for (int p = 0; p < P; ++p) acc[p] += value * z[p][i + r];
            }
            for (int p = 0; p < P; ++p) store(sums + p * d + j, acc[p]);
        }
        for (; j < d; ++j) {
            for (int p = 0; p < P; ++p) {
                for (int r = 0; r < kRows; ++r) sums[p * d + j] += row[r * d + j] * z[p][i + r];
            }
        }
    }
    for (; i < end; ++i) {
        for (int p = 0; p < P; ++p) {
            for (std::int64_t j = 0; j < d; ++j) sums[p * d + j] += x[i * d + j] * z[p][i];
        }
    }
}

template <int P>
MM_INLINE void gather_rows_any(const double* x, std::int64_t d, const double* const* z, double* sums,
                               std::int64_t begin, std::int64_t end) {
    if (d > 32) return gather_wide_rows<P>(x, d, z, sums, begin, end);
    if (d > 24) return gather_rows<Vec8, 4, P>(x, d, z, sums, begin, end);
    if (d > 16) return gather_rows<Vec8, 3, P>(x, d, z, sums, begin, end);
    if (d > 8) return gather_rows<Vec8, 2, P>(x, d, z, sums, begin, end);
    if (d == 8) return gather_rows<Vec8, 1, P>(x, d, z, sums, begin, end);
    if (d > 4) return gather_rows<Vec4, 2, P>(x, d, z, sums, begin, end);
    if (d == 4) return gather_rows<Vec4, 1, P>(x, d, z, sums, begin, end);
    if (d == 3) return gather_rows<Vec2, 2, P>(x, d, z, sums, begin, end);
    if (d == 2) return gather_rows<Vec2, 1, P>(x, d, z, sums, begin, end);
    return gather_rows<double, 1, P>(x, d, z, sums, begin, end);
}

MM_CLONES static void gather_rows_one(const double* x, std::int64_t d, const double* const* z, double* sums,
                                      std::int64_t begin, std::int64_t end) {
    gather_rows_any<1>(x, d, z, sums, begin, end);
}
MM_CLONES static void gather_rows_two(const double* x, std::int64_t d, const double* const* z, double* sums,
                                      std::int64_t begin, std::int64_t end) {
    gather_rows_any<2>(x, d, z, sums, begin, end);
}

// out (count, d), row p is X' z[p], count 1 or 2.
inline void dense_adjoint_vectors(const double* x, std::int64_t n, std::int64_t d, const double* const* z, double* out,
                                  int count, int threads) {
    if (d == 0) return;
    const Chunks chunks = chunk_rows(n, std::max<std::int64_t>((1 << 15) / d, 64));
    sum_chunks(n, chunks, count * d, out, threads, [&](std::int64_t begin, std::int64_t end, double* sums) {
        (count == 1 ? gather_rows_one : gather_rows_two)(x, d, z, sums, begin, end);
    });
}

// ---------------------------------------------------------------------------------------------------------------
// Dense, k > 1: C (rows, k) = A B with A(r, p) = a[r * row_step + p * depth_step], so that X and X' are both A.

struct Operand {
    const double* at;
    std::int64_t row_step;
    std::int64_t depth_step;
};

// R rows by NV vectors of C in registers over a panel of the inner dimension. `fresh` starts from `initial` (k numbers
// added to every row, or null for zero), otherwise from C.
template <class Vec, int R, int NV>
MM_INLINE void product_tile(const double* a, std::int64_t row_step, std::int64_t depth_step, std::int64_t depth,
                            const double* MM_RESTRICT b, std::int64_t k, const std::int64_t* columns,
                            const double* initial, bool fresh, double* MM_RESTRICT c) {
    Vec acc[R][NV];
    for (int v = 0; v < NV; ++v) {
        for (int r = 0; r < R; ++r) {
            if (!fresh) {
                acc[r][v] = load<Vec>(c + r * k + columns[v]);
            } else if (initial) {
                acc[r][v] = load<Vec>(initial + columns[v]);
            } else {
                acc[r][v] = Vec{};
            }
        }
    }
    for (std::int64_t p = 0; p < depth; ++p) {
        Vec right[NV];
        for (int v = 0; v < NV; ++v) right[v] = load<Vec>(b + p * k + columns[v]);
        for (int r = 0; r < R; ++r) {
            const double left = a[r * row_step + p * depth_step];
            for (int v = 0; v < NV; ++v) acc[r][v] += right[v] * left;
        }
    }
    for (int r = 0; r < R; ++r) {
        for (int v = 0; v < NV; ++v) store(c + r * k + columns[v], acc[r][v]);
    }
}

template <class Vec, int NV>
MM_INLINE void product_rows(Operand a, std::int64_t rows, std::int64_t depth, const double* b, std::int64_t k,
                            const std::int64_t* columns, const double* initial, bool fresh, double* c) {
    constexpr int kRows = 4;
    std::int64_t r = 0;
    for (; r + kRows <= rows; r += kRows) {
        product_tile<Vec, kRows, NV>(a.at + r * a.row_step, a.row_step, a.depth_step, depth, b, k, columns, initial,
                                     fresh, c + r * k);
    }
    for (; r < rows; ++r) {
        product_tile<Vec, 1, NV>(a.at + r * a.row_step, a.row_step, a.depth_step, depth, b, k, columns, initial, fresh,
                                 c + r * k);
    }
}

template <class Vec>
MM_INLINE void product_panel(Operand a, std::int64_t rows, std::int64_t depth, const double* b, std::int64_t k,
                             const double* initial, bool fresh, double* c) {
    const std::int64_t nv = vectors<Vec>(k);
    for (std::int64_t v = 0; v < nv;) {
        const std::int64_t size = group(nv - v, 3);
        std::int64_t columns[3];
        for (std::int64_t u = 0; u < size; ++u) columns[u] = column<Vec>(v + u, k);
        if (size == 3) {
            product_rows<Vec, 3>(a, rows, depth, b, k, columns, initial, fresh, c);
        } else if (size == 2) {
            product_rows<Vec, 2>(a, rows, depth, b, k, columns, initial, fresh, c);
        } else {
            product_rows<Vec, 1>(a, rows, depth, b, k, columns, initial, fresh, c);
        }
        v += size;
    }
}

// Panels of the inner dimension outermost: a panel of B (kDepth rows) and a block of A (kBlock x kDepth) stay in cache
// while all columns of C are updated. `initial` is only for products whose depth starts at zero here.
MM_CLONES static void product(const double* at, std::int64_t row_step, std::int64_t depth_step, std::int64_t rows,
                              std::int64_t depth, const double* b, std::int64_t k, const double* initial, double* c) {
    constexpr std::int64_t kDepth = 256;
    constexpr std::int64_t kBlock = 64;
    std::int64_t p = 0;
    do {  // at least once, so that C is written when depth is zero
        const std::int64_t part = std::min(kDepth, depth - p);
        for (std::int64_t r = 0; r < rows; r += kBlock) {
            const Operand a{at + r * row_step + p * depth_step, row_step, depth_step};
            const std::int64_t block = std::min(kBlock, rows - r);
            const double* right = b + p * k;
            if (k >= 8) {
                product_panel<Vec8>(a, block, part, right, k, initial, p == 0, c + r * k);
            } else if (k >= 4) {
                product_panel<Vec4>(a, block, part, right, k, initial, p == 0, c + r * k);
            } else if (k >= 2) {
                product_panel<Vec2>(a, block, part, right, k, initial, p == 0, c + r * k);
            } else {
                product_panel<double>(a, block, part, right, k, initial, p == 0, c + r * k);
            }
        }
        p += part;
    } while (p < depth);
}

// out (n, k) = X W, plus `initial` (k numbers) in every row unless it is null.
inline void dense_forward(const double* x, std::int64_t n, std::int64_t d, std::int64_t k, const double* w,
                          const double* initial, double* out, int threads) {
    if (k == 0) return;
    const std::int64_t grain = std::clamp<std::int64_t>((1 << 20) / std::max<std::int64_t>(d * k, 1), 64, 4096);
    parallel_blocks(n, grain, threads, [&](int, std::int64_t begin, std::int64_t end) {
        product(x + begin * d, d, 1, end - begin, d, w, k, initial, out + begin * k);
    });
}

// out (d, k) = X' Z. Memory: at most a quarter of X for the partial sums.
inline void dense_adjoint(const double* x, std::int64_t n, std::int64_t d, std::int64_t k, const double* z,
                          double* out, int threads) {
    if (d == 0 || k == 0) return;
    const Chunks chunks = chunk_rows(n, std::max<std::int64_t>(256, 4 * k));
    sum_chunks(n, chunks, d * k, out, threads, [&](std::int64_t begin, std::int64_t end, double* sums) {
        product(x + begin * d, 1, d, d, end - begin, z + begin * k, k, nullptr, sums);
    });
}

}  // namespace maxmargin::linear
