// Sum-product on chains: log-partition function and marginals of p(y) ~ exp(potentials'y), threads over examples.
//
// Two ways to the same numbers:
//
// * `scaled`: forward-backward in probabilities. With e_t = exp(node_t - max), M = exp(pair - max) and powers of two
//   that keep the largest entry of every message between 1 and 2,
//       alpha_t = 2^. (alpha_{t-1}' M) * e_t,    s_t = M nb_t,    c_t = alpha_{t-1}'s_t,    nb_{t-1} = 2^. e_{t-1} * s_t,
//       node marginals (t-1) = alpha_{t-1} * s_t / c_t,    edge marginals t = (alpha_{t-1} / c_t) x nb_t * M.
//   Sums over the edges of one matrix are one matrix product, multiplied by M once at the end: 3 T K^2 multiply-adds
//   per example, T K + K^2 exponentials, and none of the latter where the example before had the same matrix.
// * `logs`: log-sum-exp forward; backward by conditional probabilities p(y_{t-1} | y_t), which sum to one whatever was
//   rounded. 2 T K^2 exponentials, less those of vectors in which all are zero.
//
// The scaled way is taken where it loses nothing, and that is seen afterwards: all factors are at most 2, so what
// underflow drops of c_t, the total probability in the scale of edge t, is below K^2 1e-300; with c_t and the largest
// entry of every message before scaling above 1e-100 it is no part of 1e-90. All other examples go the way of logs.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numbers>
#include <span>
#include <vector>

#include "maxmargin/chain.hpp"
#include "maxmargin/simd_exp.hpp"

namespace maxmargin::chain {

inline constexpr double LEAST_SCALE = 1e-100;

// What one thread needs. Rows of messages are padded with zeros; the part of a row behind its last vector, which a
// step may read and nothing writes, stays as it was filled.
struct SumScratch {
    Aligned matrix, other;          // the matrix in panels; its transpose, or the pair sums of the way of logs
    Aligned forward, local, third;  // positions x labels
    Aligned row, weights;           // labels
    const double* cached = nullptr; // the pair potentials whose exponentials are in `matrix` and `other`
    double cached_shift = 0.0;

    SumScratch(const Panels& panels, std::int64_t longest, bool shared) {
        const std::int64_t rows = std::max<std::int64_t>(longest, 1) * panels.padded;
        matrix.resize(panels.padded * panels.padded, 0.0);
        if (shared) other.resize(panels.padded * panels.padded, 0.0);
        forward.resize(rows, 0.0);
        local.resize(rows, 0.0);
        third.resize(rows);
        row.resize(panels.padded, 0.0);
        weights.resize(panels.padded, 0.0);
    }
};

// One example. `edges` is null unless edge marginals are asked for beside the pair sums.
struct Task {
    bool shared;
    std::int64_t length;
    const double* nodes;
    const double* pairs;
    double* node_means;
    double* pair_means;
    double* edges;
};

// The first n entries of a vector, the rest filled; n may be more than a vector has.
template <class Vec>
MM_INLINE Vec load_part(const double* p, std::int64_t n, double fill) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    if (n >= width) return load<Vec>(p);
    double entries[width];
    for (std::int64_t i = 0; i < width; ++i) entries[i] = i < n ? p[i] : fill;
    return load<Vec>(entries);
}
template <class Vec>
MM_INLINE void store_part(double* p, const Vec& value, std::int64_t n) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    if (n >= width) return store(p, value);
    double entries[width];
    store(entries, value);
    for (std::int64_t i = 0; i < n; ++i) p[i] = entries[i];
}

template <class Vec>
MM_INLINE double largest_of(const double* x, std::int64_t n) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    Vec most = load_part<Vec>(x, n, NEG_INF);
    std::int64_t i = width;
    for (; i + width <= n; i += width) most = larger(load<Vec>(x + i), most);
    if (i < n) most = larger(load_part<Vec>(x + i, n - i, NEG_INF), most);
    return largest(most);
}

// A row-major K x K table into panels (see Panels): the numbers themselves padded with -inf or zero, or
// exp(number - shift) padded with zero.
enum class Pack { logs, plain, exponentials };
template <class Vec, Pack how>
MM_INLINE void pack_table(const Panels& panels, const double* MM_RESTRICT from, double shift, double* MM_RESTRICT to) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    constexpr double outside = how == Pack::plain ? 0.0 : NEG_INF;
    const std::int64_t k = panels.n_labels;
    std::int64_t first = 0;
    for (std::int64_t p = 0; p < panels.count; ++p) {
        const std::int64_t vectors = panels.vectors(p);
        for (std::int64_t a = 0; a < k; ++a) {
            const double* row = from + a * k + first;
            for (std::int64_t j = 0; j < vectors; ++j, to += width) {
                const Vec x = load_part<Vec>(row + j * width, k - first - j * width, outside);
                if constexpr (how == Pack::exponentials) {
                    store(to, exp_negative<Vec>(x - shift));
                } else {
                    store(to, x);
                }
            }
        }
        const std::int64_t rest = (panels.padded - k) * vectors * width;
        std::fill(to, to + rest, how == Pack::logs ? NEG_INF : 0.0);
        to += rest;
        first += vectors * width;
    }
}

// The transpose of a matrix in panels, padded with zeros.
template <class Vec>
MM_INLINE void transpose(const Panels& panels, const double* MM_RESTRICT from, double* MM_RESTRICT to) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    const std::int64_t k = panels.n_labels, padded = panels.padded;
    std::int64_t first = 0;
    for (std::int64_t p = 0; p < panels.count; ++p) {
        const std::int64_t wide = panels.vectors(p) * width;
        const double* column = from;
        std::int64_t begin = 0;
        for (std::int64_t q = 0; q < panels.count; ++q) {
            const std::int64_t high = panels.vectors(q) * width;
            for (std::int64_t b = begin; b < std::min(begin + high, k); ++b)
                for (std::int64_t a = 0; a < wide; ++a)
                    to[b * wide + a] = first + a < k ? column[(first + a) * high + b - begin] : 0.0;
            column += padded * high;
            begin += high;
        }
        std::fill(to + k * wide, to + padded * wide, 0.0);
        to += padded * wide;
        first += wide;
    }
}

// out[b] = sum_a before[a] matrix[a][b] over one panel of N vectors, U rows at a time (as panel_max).
template <class Vec, int N, int U>
MM_INLINE void panel_sum(const double* MM_RESTRICT before, const double* MM_RESTRICT matrix, std::int64_t rows,
                         double* MM_RESTRICT out) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    Vec sum[U][N];
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u)
#pragma GCC unroll 6
        for (int j = 0; j < N; ++j) sum[u][j] = Vec{};
    for (std::int64_t a = 0; a < rows; a += U) {
        const double* row = matrix + a * N * width;
#pragma GCC unroll 4
        for (int u = 0; u < U; ++u) {
            const Vec here = before[a + u] - Vec{};
#pragma GCC unroll 6
            for (int j = 0; j < N; ++j) sum[u][j] += here * load<Vec>(row + (u * N + j) * width);
        }
    }
#pragma GCC unroll 6
    for (int j = 0; j < N; ++j) {
        Vec all = sum[0][j];
#pragma GCC unroll 4
        for (int u = 1; u < U; ++u) all += sum[u][j];
        store(out + j * width, all);
    }
}

template <class Vec>
MM_INLINE void sum_step(const Panels& panels, const double* before, const double* matrix, double* out) {
    const std::int64_t twos = (panels.n_labels + 1) / 2 * 2, fours = (panels.n_labels + 3) / 4 * 4;
    for (std::int64_t p = 0; p < panels.count; ++p) {
        const std::int64_t vectors = panels.vectors(p);
        switch (vectors) {
            case 1: panel_sum<Vec, 1, 4>(before, matrix, fours, out); break;
            case 2: panel_sum<Vec, 2, 4>(before, matrix, fours, out); break;
            case 3: panel_sum<Vec, 3, 4>(before, matrix, fours, out); break;
            case 4: panel_sum<Vec, 4, 2>(before, matrix, twos, out); break;
            case 5: panel_sum<Vec, 5, 2>(before, matrix, twos, out); break;
            default: panel_sum<Vec, 6, 2>(before, matrix, twos, out); break;
        }
        matrix += panels.padded * vectors * simd::lanes<Vec>;
        out += vectors * simd::lanes<Vec>;
    }
}

// means[a][b] = matrix[a][b] sum_{t < edges} left[t][a] right[t][b] for U rows of one panel, the sums in registers.
template <class Vec, int N, int U>
MM_INLINE void panel_products(std::int64_t edges, std::int64_t padded, const double* MM_RESTRICT left,
                              const double* MM_RESTRICT right, const double* MM_RESTRICT matrix, std::int64_t rows,
                              std::int64_t k, std::int64_t columns, double* MM_RESTRICT means) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    Vec sum[U][N];
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u)
#pragma GCC unroll 6
        for (int j = 0; j < N; ++j) sum[u][j] = Vec{};
    for (std::int64_t t = 0; t < edges; ++t) {
#pragma GCC unroll 6
        for (int j = 0; j < N; ++j) {
            const Vec there = load<Vec>(right + t * padded + j * width);
#pragma GCC unroll 4
            for (int u = 0; u < U; ++u) sum[u][j] += left[t * padded + u] * there;
        }
    }
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u) {
        if (u >= rows) break;
#pragma GCC unroll 6
        for (int j = 0; j < N; ++j)
            store_part<Vec>(means + u * k + j * width, sum[u][j] * load<Vec>(matrix + (u * N + j) * width),
                            columns - j * width);
    }
}

template <class Vec>
MM_INLINE void pair_sums(const Panels& panels, std::int64_t edges, const double* left, const double* right,
                         const double* matrix, double* means) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    constexpr int U = width == 8 ? 4 : 2;  // there are 32 registers of 8 numbers, 16 of fewer
    const std::int64_t k = panels.n_labels, padded = panels.padded;
    std::int64_t first = 0;
    for (std::int64_t p = 0; p < panels.count; ++p) {
        const std::int64_t vectors = panels.vectors(p);
        for (std::int64_t a = 0; a < k; a += U) {
            const double *l = left + a, *r = right + first, *m = matrix + a * vectors * width;
            double* to = means + a * k + first;
            switch (vectors) {
                case 1: panel_products<Vec, 1, U>(edges, padded, l, r, m, k - a, k, k - first, to); break;
                case 2: panel_products<Vec, 2, U>(edges, padded, l, r, m, k - a, k, k - first, to); break;
                case 3: panel_products<Vec, 3, U>(edges, padded, l, r, m, k - a, k, k - first, to); break;
                case 4: panel_products<Vec, 4, U>(edges, padded, l, r, m, k - a, k, k - first, to); break;
                case 5: panel_products<Vec, 5, U>(edges, padded, l, r, m, k - a, k, k - first, to); break;
                default: panel_products<Vec, 6, U>(edges, padded, l, r, m, k - a, k, k - first, to); break;
            }
        }
        matrix += padded * vectors * width;
        first += vectors * width;
    }
}

// The power of two that brings a positive normal number into [1, 2); its exponent is added to `exponent`.
MM_INLINE double scale_of(double most, std::int64_t& exponent) {
    const auto e = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(most) >> 52) - 1023;
    exponent += e;
    return std::bit_cast<double>(static_cast<std::uint64_t>(1023 - e) << 52);
}

// x *= factor, and both rows of a message times a power of two so that the largest entry is in [1, 2). False where
// the largest was too small.
template <class Vec>
MM_INLINE bool multiply_and_scale(double* MM_RESTRICT x, const double* MM_RESTRICT factor, std::int64_t n,
                                  std::int64_t& exponent) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    Vec most = Vec{};
    for (std::int64_t i = 0; i < n; i += width) {
        const Vec product = load<Vec>(x + i) * load<Vec>(factor + i);
        store(x + i, product);
        most = larger(product, most);
    }
    const double peak = largest(most);
    if (!(peak >= LEAST_SCALE)) return false;
    const double scale = scale_of(peak, exponent);
    for (std::int64_t i = 0; i < n; i += width) store(x + i, load<Vec>(x + i) * scale);
    return true;
}

// Exponentials of node potentials, the largest of each position taken out; the sum of those into `shifts`.
template <class Vec>
MM_INLINE void local_factors(const Panels& panels, std::int64_t length, const double* nodes, double* local,
                             double& shifts) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    const std::int64_t k = panels.n_labels;
    for (std::int64_t t = 0; t < length; ++t, nodes += k, local += panels.padded) {
        const double most = largest_of<Vec>(nodes, k);
        shifts += most;
        for (std::int64_t b = 0; b < k; b += width)
            store(local + b, exp_negative<Vec>(load_part<Vec>(nodes + b, k - b, NEG_INF) - most));
    }
}

// exp(x - largest) of a table of any size into `to`; returns the largest.
template <class Vec>
MM_INLINE double exponentials(const double* MM_RESTRICT x, std::int64_t n, double* MM_RESTRICT to) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    const double most = largest_of<Vec>(x, n);
    for (std::int64_t i = 0; i < n; i += width)
        store_part<Vec>(to + i, exp_negative<Vec>(load_part<Vec>(x + i, n - i, NEG_INF) - most), n - i);
    return most;
}

// out[a] = sum_b table[a][b] right[b], the table row-major and unpadded.
template <class Vec>
MM_INLINE void row_products(std::int64_t k, const double* MM_RESTRICT table, const double* MM_RESTRICT right,
                            double* MM_RESTRICT out) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    for (std::int64_t a = 0; a < k; ++a) {
        const double* row = table + a * k;
        Vec sum = Vec{};
        std::int64_t b = 0;
        for (; b + width <= k; b += width) sum += load<Vec>(row + b) * load<Vec>(right + b);
        if (b < k) sum += load_part<Vec>(row + b, k - b, 0.0) * load<Vec>(right + b);
        out[a] = total(sum);
    }
}

// to[a][b] = left[a] from[a][b] right[b] on row-major unpadded tables, which may be the same one.
template <class Vec>
MM_INLINE void edge_table(std::int64_t k, const double* left, const double* right, const double* from, double* to) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    for (std::int64_t a = 0; a < k; ++a)
        for (std::int64_t b = 0; b < k; b += width) {
            const Vec product = load_part<Vec>(from + a * k + b, k - b, 0.0) * load<Vec>(right + b);
            store_part<Vec>(to + a * k + b, left[a] * product, k - b);
        }
}

// The same from a matrix in panels.
template <class Vec>
MM_INLINE void edge_table_of(const Panels& panels, const double* left, const double* right, const double* matrix,
                             double* to) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    const std::int64_t k = panels.n_labels;
    std::int64_t first = 0;
    for (std::int64_t p = 0; p < panels.count; ++p) {
        const std::int64_t wide = panels.vectors(p) * width;
        for (std::int64_t a = 0; a < k; ++a)
            for (std::int64_t b = 0; b < std::min(wide, k - first); b += width) {
                const Vec product = load<Vec>(matrix + a * wide + b) * load<Vec>(right + first + b);
                store_part<Vec>(to + a * k + first + b, left[a] * product, k - first - b);
            }
        matrix += panels.padded * wide;
        first += wide;
    }
}

// Forward-backward in probabilities; false where an underflow might show.
template <class Vec>
MM_INLINE bool scaled(const Panels& panels, const Task& task, SumScratch& scratch, double& value) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    const std::int64_t k = panels.n_labels, square = k * k, padded = panels.padded, length = task.length;
    const std::int64_t used = (k + width - 1) / width * width;
    double *forward = scratch.forward.get(), *local = scratch.local.get(), *row = scratch.row.get();
    double *matrix = scratch.matrix.get(), *other = scratch.other.get();

    double shifts = 0.0;
    if (task.shared && length > 1) {
        const std::size_t bytes = sizeof(double) * static_cast<std::size_t>(square);
        if (scratch.cached == nullptr || std::memcmp(scratch.cached, task.pairs, bytes) != 0) {
            scratch.cached_shift = largest_of<Vec>(task.pairs, square);
            pack_table<Vec, Pack::exponentials>(panels, task.pairs, scratch.cached_shift, matrix);
            transpose<Vec>(panels, matrix, other);
        }
        scratch.cached = task.pairs;
        shifts = static_cast<double>(length - 1) * scratch.cached_shift;
    }
    local_factors<Vec>(panels, length, task.nodes, local, shifts);
    if (!std::isfinite(shifts)) return false;

    std::int64_t exponent = 0, ignored = 0;
    std::memcpy(forward, local, sizeof(double) * static_cast<std::size_t>(used));
    for (std::int64_t t = 1; t < length; ++t) {
        if (!task.shared) {
            double* factors = task.pair_means + (t - 1) * square;
            shifts += exponentials<Vec>(task.pairs + (t - 1) * square, square, factors);
            if (!std::isfinite(shifts)) return false;
            pack_table<Vec, Pack::plain>(panels, factors, 0.0, matrix);
        }
        double* now = forward + t * padded;
        sum_step<Vec>(panels, now - padded, matrix, now);
        if (!multiply_and_scale<Vec>(now, local + t * padded, used, exponent)) return false;
    }

    double* last = forward + (length - 1) * padded;
    Vec sum = Vec{};
    for (std::int64_t b = 0; b < used; b += width) sum += load<Vec>(last + b);
    const double all = total(sum);
    for (std::int64_t b = 0; b < k; b += width)
        store_part<Vec>(task.node_means + (length - 1) * k + b, load<Vec>(last + b) * (1.0 / all), k - b);
    value = shifts + (static_cast<double>(exponent) * std::numbers::ln2 + std::log(all));

    for (std::int64_t t = length - 1; t > 0; --t) {
        const double* ahead = local + t * padded;  // nb_t
        double* alpha = forward + (t - 1) * padded;
        double* table = task.pair_means + (t - 1) * square;
        if (task.shared) {
            sum_step<Vec>(panels, ahead, other, row);
        } else {
            row_products<Vec>(k, table, ahead, row);
        }
        Vec dot = Vec{};
        for (std::int64_t a = 0; a < used; a += width) dot += load<Vec>(alpha + a) * load<Vec>(row + a);
        const double c = total(dot);
        if (!(c >= LEAST_SCALE)) return false;
        const double inverse = 1.0 / c;
        double* means = task.node_means + (t - 1) * k;
        for (std::int64_t a = 0; a < used; a += width) {
            const Vec left = load<Vec>(alpha + a) * inverse;
            store(alpha + a, left);
            store_part<Vec>(means + a, left * load<Vec>(row + a), k - a);
        }
        if (!task.shared) edge_table<Vec>(k, alpha, ahead, table, table);
        if (t > 1 && !multiply_and_scale<Vec>(local + (t - 1) * padded, row, used, ignored)) return false;
    }
    if (task.shared && length > 1) {
        pair_sums<Vec>(panels, length - 1, forward, local + padded, matrix, task.pair_means);
        if (task.edges)
            for (std::int64_t t = 1; t < length; ++t)
                edge_table_of<Vec>(panels, forward + (t - 1) * padded, local + t * padded, matrix,
                                   task.edges + (t - 1) * square);
    }
    return true;
}

// Sums over a of exp(before[a] + matrix[a][b] - most[b]), and from them log-messages: now[b] = most[b] + log(sum) +
// nodes[b], inverse[b] = 1 / sum. Where nothing reaches b: most and inverse 0, now -inf.
template <class Vec>
MM_INLINE void log_step(const Panels& panels, const double* before, const double* matrix, const double* nodes,
                        double* most, double* inverse, double* now) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    const std::int64_t k = panels.n_labels;
    step<Vec>(panels, before, matrix, most);
    std::int64_t first = 0;
    for (std::int64_t p = 0; p < panels.count; ++p) {
        const std::int64_t wide = panels.vectors(p) * width;
        for (std::int64_t j = 0; j < wide; j += width) {
            const Vec found = load<Vec>(most + first + j);
            const Vec top = found > NEG_INF ? found : Vec{};
            Vec sum = Vec{};
            for (std::int64_t a = 0; a < k; ++a) {
                const Vec x = (before[a] + load<Vec>(matrix + a * wide + j)) - top;
                if (any(x >= EXP_LEAST)) sum += exp_negative<Vec>(x);
            }
            store(most + first + j, top);
            store(now + first + j, sum);
            store(inverse + first + j, sum > 0.0 ? 1.0 / sum : Vec{});
        }
        matrix += panels.padded * wide;
        first += wide;
    }
    for (std::int64_t b = 0; b < k; ++b) now[b] = most[b] + std::log(now[b]) + nodes[b];
    std::fill(now + k, now + first, NEG_INF);
}

// The largest entry is taken out of a log-message; returns it.
template <class Vec>
MM_INLINE double take_out_largest(double* x, std::int64_t n) {
    const double most = largest_of<Vec>(x, n);
    if (std::isfinite(most))
        for (std::int64_t i = 0; i < n; ++i) x[i] -= most;
    return most;
}

// One edge back: marginals means[a][b] = exp(before[a] + matrix[a][b] - most[b]) weights[b] and their row sums. They are
// written to `table` and added to `sums` (in panels), where these are not null.
template <class Vec>
MM_INLINE void log_step_back(const Panels& panels, const double* before, const double* matrix, const double* most,
                             const double* weights, double* MM_RESTRICT table, double* MM_RESTRICT sums,
                             double* MM_RESTRICT row) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    const std::int64_t k = panels.n_labels;
    std::fill(row, row + k, 0.0);
    std::int64_t first = 0;
    for (std::int64_t p = 0; p < panels.count; ++p) {
        const std::int64_t wide = panels.vectors(p) * width;
        for (std::int64_t a = 0; a < k; ++a) {
            Vec all = Vec{};
            for (std::int64_t j = 0; j < wide; j += width) {
                const Vec x = (before[a] + load<Vec>(matrix + a * wide + j)) - load<Vec>(most + first + j);
                Vec mean = Vec{};
                if (any(x >= EXP_LEAST)) {
                    mean = exp_negative<Vec>(x) * load<Vec>(weights + first + j);
                    all += mean;
                    if (sums) store(sums + a * wide + j, load<Vec>(sums + a * wide + j) + mean);
                }
                if (table) store_part<Vec>(table + a * k + first + j, mean, k - first - j);
            }
            row[a] += total(all);
        }
        matrix += panels.padded * wide;
        if (sums) sums += panels.padded * wide;
        first += wide;
    }
}

// Panels back to a row-major K x K table.
inline void unpack(const Panels& panels, const double* MM_RESTRICT from, double* MM_RESTRICT to) {
    const std::int64_t k = panels.n_labels;
    std::int64_t first = 0;
    for (std::int64_t p = 0; p < panels.count; ++p) {
        const std::int64_t wide = panels.vectors(p) * panels.lanes;
        const std::int64_t used = std::min(wide, k - first);
        for (std::int64_t a = 0; a < k; ++a) std::copy(from + a * wide, from + a * wide + used, to + a * k + first);
        from += panels.padded * wide;
        first += wide;
    }
}

// Forward log-sum-exp, backward conditional probabilities: right for any finite potentials and any that forbid.
template <class Vec>
MM_INLINE Status logs(const Panels& panels, const Task& task, SumScratch& scratch, double& value) {
    const std::int64_t k = panels.n_labels, square = k * k, padded = panels.padded, length = task.length;
    double *forward = scratch.forward.get(), *most = scratch.local.get(), *inverse = scratch.third.get();
    double *matrix = scratch.matrix.get(), *row = scratch.row.get(), *weights = scratch.weights.get();
    double* sums = task.shared ? scratch.other.get() : nullptr;
    const std::int64_t used = (k + simd::lanes<Vec> - 1) / simd::lanes<Vec> * simd::lanes<Vec>;
    scratch.cached = nullptr;

    if (task.shared && length > 1) {
        pack_table<Vec, Pack::logs>(panels, task.pairs, 0.0, matrix);
        std::fill(sums, sums + padded * padded, 0.0);
    }
    value = 0.0;
    for (std::int64_t t = 0; t < length; ++t) {
        double* now = forward + t * padded;
        if (t == 0) {
            std::copy(task.nodes, task.nodes + k, now);
            std::fill(now + k, now + used, NEG_INF);
        } else {
            if (!task.shared) pack_table<Vec, Pack::logs>(panels, task.pairs + (t - 1) * square, 0.0, matrix);
            log_step<Vec>(panels, now - padded, matrix, task.nodes + t * k, most + t * padded, inverse + t * padded,
                          now);
        }
        const double shift = take_out_largest<Vec>(now, k);
        if (!std::isfinite(shift)) return shift == NEG_INF ? Status::absent : Status::nonfinite;
        value += shift;
    }

    const double* last = forward + (length - 1) * padded;
    double* means = task.node_means + (length - 1) * k;
    double all = 0.0;
    for (std::int64_t b = 0; b < k; ++b) all += means[b] = std::exp(last[b]);
    for (std::int64_t b = 0; b < k; ++b) means[b] /= all;
    value += std::log(all);
    if (!std::isfinite(value)) return Status::nonfinite;

    for (std::int64_t t = length - 1; t > 0; --t) {
        const double* ahead = task.node_means + t * k;
        for (std::int64_t b = 0; b < k; ++b) weights[b] = ahead[b] * inverse[t * padded + b];
        std::fill(weights + k, weights + used, 0.0);
        double* table = task.shared ? (task.edges ? task.edges + (t - 1) * square : nullptr)
                                    : task.pair_means + (t - 1) * square;
        if (!task.shared) pack_table<Vec, Pack::logs>(panels, task.pairs + (t - 1) * square, 0.0, matrix);
        log_step_back<Vec>(panels, forward + (t - 1) * padded, matrix, most + t * padded, weights, table, sums, row);
        all = 0.0;
        for (std::int64_t a = 0; a < k; ++a) all += row[a];
        means = task.node_means + (t - 1) * k;
        for (std::int64_t a = 0; a < k; ++a) means[a] = row[a] / all;
    }
    if (task.shared && length > 1) unpack(panels, sums, task.pair_means);
    return Status::ok;
}

// Log-partition function and marginals of one example; the status otherwise. Means are all written where it is ok.
template <class Vec>
MM_INLINE Status sum_product_at(int, const Panels& panels, const Task& task, bool by_logs, SumScratch& scratch,
                                double& value) {
    const std::int64_t square = panels.n_labels * panels.n_labels;
    const std::int64_t n_pairs = task.shared ? square : std::max<std::int64_t>(task.length - 1, 0) * square;
    value = 0.0;
    if (refused_at<Vec>(0, task.pairs, n_pairs) || refused_at<Vec>(0, task.nodes, task.length * panels.n_labels))
        return Status::nonfinite;
    if (task.shared && task.length < 2) std::fill(task.pair_means, task.pair_means + square, 0.0);
    if (task.length == 0) return Status::ok;
    if (!by_logs && scaled<Vec>(panels, task, scratch, value)) return Status::ok;
    return logs<Vec>(panels, task, scratch, value);
}
MM_LEVELS(Status, sum_product,
          (int widest, const Panels& panels, const Task& task, bool by_logs, SumScratch& scratch, double& value),
          (widest, panels, task, by_logs, scratch, value))

// Every entry of z, value, status and edges (empty, or K x K for every edge of the batch) is written. With `by_logs` all
// examples go that way, for tests.
inline void entropic(const Batch& batch, bool by_logs, std::span<const double> potentials, std::span<double> z,
                     std::span<double> value, std::span<std::int8_t> status, std::span<double> edges, int threads) {
    const Panels panels(batch.n_labels, lanes_in_use());
    const std::int64_t n = batch.n_examples(), square = batch.n_labels * batch.n_labels;
    std::vector<std::int64_t> first_edge;
    if (!edges.empty()) {
        first_edge.push_back(0);
        for (std::int64_t i = 0; i < n; ++i)
            first_edge.push_back(first_edge.back() + std::max<std::int64_t>(batch.length(i) - 1, 0) * square);
    }
    std::vector<SumScratch> scratch;
    for (int t = 0; t < std::max(threads, 1); ++t) scratch.emplace_back(panels, batch.longest(), batch.shared);
    parallel_blocks(n, 4, threads, [&](int thread, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const Task task{batch.shared,
                            batch.length(i),
                            potentials.data() + batch.nodes[i],
                            potentials.data() + batch.pairs[i],
                            z.data() + batch.nodes[i],
                            z.data() + batch.pairs[i],
                            edges.empty() ? nullptr : edges.data() + first_edge[i]};
            const Status found = sum_product(panels.lanes, panels, task, by_logs, scratch[thread], value[i]);
            status[i] = static_cast<std::int8_t>(found);
            if (found == Status::ok) continue;
            value[i] = found == Status::absent ? NEG_INF : std::numeric_limits<double>::quiet_NaN();
            std::fill(z.begin() + batch.nodes[i], z.begin() + batch.nodes[i + 1], 0.0);
            std::fill(z.begin() + batch.pairs[i], z.begin() + batch.pairs[i + 1], 0.0);
            if (task.edges) std::fill(edges.begin() + first_edge[i], edges.begin() + first_edge[i + 1], 0.0);
        }
    });
}

}  // namespace maxmargin::chain
