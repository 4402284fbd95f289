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
// Kernels are templates over the widest vector, compiled per width (MM_LEVELS).
//
// A width k that is not a multiple of the vector length is covered by a last vector that overlaps the one before it:
// both hold the same values, so nothing is masked and nothing is read past the end of a row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "maxmargin/base/parallel.hpp"
#include "maxmargin/base/simd.hpp"

namespace maxmargin::linear {

using namespace simd;

// Streams of X are prefetched this many numbers ahead: further than hardware does, which stops at page bounds. A
// prefetch past the end of an array reads nothing.
inline constexpr std::int64_t kAhead = 512;

template <class T>
MM_INLINE void prefetch(const T* p, std::uint64_t ahead) {
    __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(p) + ahead * sizeof(T)));
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

// The vector length for rows of d columns: the widest at hand that fits into a row.
inline std::int64_t lanes_for(std::int64_t d, std::int64_t widest) {
    while (widest > 1 && widest > d) widest /= 2;
    return widest;
}

// Weights laid out as the vectors of a row of X; the lanes that the last vector shares with the one before are zero.
inline std::vector<double> overlapped(const double* w, std::int64_t d, std::int64_t size) {
    std::vector<double> padded(static_cast<std::size_t>((d + size - 1) / size * size), 0.0);
    for (std::int64_t j = 0; j < d; ++j) {
        const std::int64_t start = j / size * size;
        padded[static_cast<std::size_t>(start + j - std::min(start, d - size))] = w[j];
    }
    return padded;
}

// out[p][i] = x_i' w[p] for rows begin..end; NV = 0 means the number of vectors is known at run time only.
template <class Vec, int NV, int P>
MM_INLINE void dot_rows(const double* MM_RESTRICT x, std::int64_t d, const double* const* padded, double* const* out,
                        std::int64_t begin, std::int64_t end) {
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

template <class Vec, int P>
MM_INLINE void dot_rows_any(const double* x, std::int64_t d, const double* const* padded, double* const* out,
                            std::int64_t begin, std::int64_t end) {
    if constexpr (lanes<Vec> > 1) {
        if (d < lanes<Vec>) return dot_rows_any<Half<Vec>, P>(x, d, padded, out, begin, end);
    }
    const std::int64_t nv = vectors<Vec>(d);
    if (nv == 1) return dot_rows<Vec, 1, P>(x, d, padded, out, begin, end);
    if (nv == 2) return dot_rows<Vec, 2, P>(x, d, padded, out, begin, end);
    if (nv == 3) return dot_rows<Vec, 3, P>(x, d, padded, out, begin, end);
    if (nv == 4) return dot_rows<Vec, 4, P>(x, d, padded, out, begin, end);
    return dot_rows<Vec, 0, P>(x, d, padded, out, begin, end);
}

template <class Wide>
MM_INLINE void dot_all_at(const double* x, std::int64_t d, const double* const* padded, double* const* out, int count,
                          std::int64_t begin, std::int64_t end) {
    if (count == 1) return dot_rows_any<Wide, 1>(x, d, padded, out, begin, end);
    return dot_rows_any<Wide, 2>(x, d, padded, out, begin, end);
}
MM_LEVELS(dot_all)

// out[p] = X w[p], p < count, count 1 or 2.
inline void dense_forward_vectors(const double* x, std::int64_t n, std::int64_t d, const double* const* w,
                                  double* const* out, int count, int threads) {
    if (d == 0) {
        for (int p = 0; p < count; ++p) std::fill_n(out[p], n, 0.0);
        return;
    }
    const int widest = lanes_in_use();
    std::vector<double> storage[2];
    const double* padded[2] = {};
    for (int p = 0; p < count; ++p) {
        storage[p] = overlapped(w[p], d, lanes_for(d, widest));
        padded[p] = storage[p].data();
    }
    const std::int64_t grain = std::max<std::int64_t>((1 << 16) / d, 16);
    parallel_blocks(n, grain, threads, [&](int, std::int64_t begin, std::int64_t end) {
        dot_all(widest, x, d, padded, out, count, begin, end);
    });
}

// sums[p*d + j] = sum over rows of z[p][i] x_ij with the sums in registers (d at most NV vectors).
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
template <class Vec, int P>
MM_INLINE void gather_wide_rows(const double* MM_RESTRICT x, std::int64_t d, const double* const* z,
                                double* MM_RESTRICT sums, std::int64_t begin, std::int64_t end) {
    constexpr int kRows = 4;
    std::fill_n(sums, P * d, 0.0);
    std::int64_t i = begin;
    for (; i + kRows <= end; i += kRows) {
        const double* row = x + i * d;
        std::int64_t j = 0;
        for (; j + lanes<Vec> <= d; j += lanes<Vec>) {
            Vec acc[P];
            for (int p = 0; p < P; ++p) acc[p] = load<Vec>(sums + p * d + j);
            for (int r = 0; r < kRows; ++r) {
                const Vec value = load<Vec>(row + r * d + j);
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

template <class Vec, int P>
MM_INLINE void gather_rows_any(const double* x, std::int64_t d, const double* const* z, double* sums,
                               std::int64_t begin, std::int64_t end) {
    if constexpr (lanes<Vec> > 1) {
        if (d < lanes<Vec>) return gather_rows_any<Half<Vec>, P>(x, d, z, sums, begin, end);
    }
    const std::int64_t nv = vectors<Vec>(d);
    if (nv == 1) return gather_rows<Vec, 1, P>(x, d, z, sums, begin, end);
    if (nv == 2) return gather_rows<Vec, 2, P>(x, d, z, sums, begin, end);
    if (nv == 3) return gather_rows<Vec, 3, P>(x, d, z, sums, begin, end);
    if (nv == 4) return gather_rows<Vec, 4, P>(x, d, z, sums, begin, end);
    return gather_wide_rows<Vec, P>(x, d, z, sums, begin, end);
}

template <class Wide>
MM_INLINE void gather_all_at(const double* x, std::int64_t d, const double* const* z, double* sums, int count,
                             std::int64_t begin, std::int64_t end) {
    if (count == 1) return gather_rows_any<Wide, 1>(x, d, z, sums, begin, end);
    return gather_rows_any<Wide, 2>(x, d, z, sums, begin, end);
}
MM_LEVELS(gather_all)

// out (count, d), row p is X' z[p], count 1 or 2.
inline void dense_adjoint_vectors(const double* x, std::int64_t n, std::int64_t d, const double* const* z, double* out,
                                  int count, int threads) {
    if (d == 0) return;
    const int widest = lanes_in_use();
    const Chunks chunks = chunk_rows(n, std::max<std::int64_t>((1 << 15) / d, 64));
    sum_chunks(n, chunks, count * d, out, threads, [&](std::int64_t begin, std::int64_t end, double* sums) {
        gather_all(widest, x, d, z, sums, count, begin, end);
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
    if constexpr (lanes<Vec> > 1) {
        if (k < lanes<Vec>) return product_panel<Half<Vec>>(a, rows, depth, b, k, initial, fresh, c);
    }
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
template <class Wide>
MM_INLINE void product_at(Operand from, std::int64_t rows, std::int64_t depth, const double* b, std::int64_t k,
                          const double* initial, double* c) {
    constexpr std::int64_t kDepth = 256;
    constexpr std::int64_t kBlock = 64;
    std::int64_t p = 0;
    do {  // at least once, so that C is written when depth is zero
        const std::int64_t part = std::min(kDepth, depth - p);
        for (std::int64_t r = 0; r < rows; r += kBlock) {
            const Operand a{from.at + r * from.row_step + p * from.depth_step, from.row_step, from.depth_step};
            const std::int64_t block = std::min(kBlock, rows - r);
            product_panel<Wide>(a, block, part, b + p * k, k, initial, p == 0, c + r * k);
        }
        p += part;
    } while (p < depth);
}
MM_LEVELS(product)

// out (n, k) = X W, plus `initial` (k numbers) in every row unless it is null.
inline void dense_forward(const double* x, std::int64_t n, std::int64_t d, std::int64_t k, const double* w,
                          const double* initial, double* out, int threads) {
    if (k == 0) return;
    const int widest = lanes_in_use();
    const std::int64_t grain = std::clamp<std::int64_t>((1 << 20) / std::max<std::int64_t>(d * k, 1), 64, 4096);
    parallel_blocks(n, grain, threads, [&](int, std::int64_t begin, std::int64_t end) {
        product(widest, Operand{x + begin * d, d, 1}, end - begin, d, w, k, initial, out + begin * k);
    });
}

// out (d, k) = X' Z. Memory: at most a quarter of X for the partial sums.
inline void dense_adjoint(const double* x, std::int64_t n, std::int64_t d, std::int64_t k, const double* z, double* out,
                          int threads) {
    if (d == 0 || k == 0) return;
    const int widest = lanes_in_use();
    const Chunks chunks = chunk_rows(n, std::max<std::int64_t>(256, 4 * k));
    sum_chunks(n, chunks, d * k, out, threads, [&](std::int64_t begin, std::int64_t end, double* sums) {
        product(widest, Operand{x + begin * d, 1, d}, d, end - begin, z + begin * k, k, nullptr, sums);
    });
}

}  // namespace maxmargin::linear
