// Sum-product on chains of second order, threads over examples.
//
// In scaled probabilities, with M = exp(triples + pairs - max) and e_t = exp(nodes_t - max), every message brought to a
// largest entry in [1, 2) by a power of two:
//
//     alpha_t[b][c] = e_t[c] sum_a alpha_{t-1}[a][b] M[a][b][c]      s_t[a][b] = sum_c M[a][b][c] nb_t[b][c]
//     total_t = sum alpha_{t-1} s_t                                   nb_{t-1}[a][b] = e_{t-1}[b] s_t[a][b]
//     pairs (t-2, t-1): alpha_{t-1} s_t / total_t                     triples at t: alpha_{t-1} / total_t x M x nb_t
//
// and sums of triples over t are products of matrices, one per middle label, multiplied by M at the end: 3 T K^3
// multiply-adds per example, and K^3 exponentials where its tables are not those of the example before.
//
// Numbers below 3e-308 are lost. A message whose largest entry is p before it is scaled loses K 1e-307 / p of that
// entry at most, and the total probability in the scale of position t loses K^2 times as much of 1, so that with p >=
// 1e-100 and total_t >= 1e-100 nothing shows. Otherwise the example is computed in the log domain: log-sum-exp forward,
// backward by conditional probabilities p(y_{t-2} | y_{t-1}, y_t), which sum to one whatever was rounded; about ten
// times as expensive.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <span>
#include <vector>

#include "maxmargin/base/flush.hpp"
#include "maxmargin/base/parallel.hpp"
#include "maxmargin/base/simd_exp.hpp"
#include "maxmargin/base/simd_log.hpp"
#include "maxmargin/chain/second_order/tables.hpp"

namespace maxmargin::second {

inline constexpr double LEAST = 1e-100, NO_SHARE = 1e-40;

// One example, and where its expected parts go.
struct Task {
    std::int64_t length;
    const double* nodes;
    double *node_means, *pair_means, *triple_means;
};

struct SumScratch {
    Table logs, ahead, back;   // the table itself, and exponentials of it
    double shift = 0.0;        // the largest cell
    bool ready = false;        // exponentials are those of `logs`
    Aligned alpha, nb, local;  // layers, layers, rows of positions
    Aligned turned, flipped, sums, row;

    SumScratch(const Constraints& constraints, int lanes, std::int64_t longest)
        : logs(constraints, lanes), ahead(constraints, lanes), back(constraints, lanes, Direction::back) {
        const Shape& shape = logs.shape;
        const std::int64_t layers = std::max<std::int64_t>(longest - 1, 1);
        alpha.resize(layers * shape.layer());
        nb.resize(layers * shape.layer());
        local.resize(std::max<std::int64_t>(longest, 1) * shape.padded, NEG_INF);
        for (Aligned* one : {&turned, &flipped, &sums}) one->resize(shape.layer(), 0.0);
        row.resize(shape.padded, 0.0);
    }
};

template <class Vec>
MM_INLINE void exponentials_of(double* x, std::int64_t n, double shift) {
    for (std::int64_t i = 0; i < n; i += simd::lanes<Vec>) store(x + i, exp_negative<Vec>(load<Vec>(x + i) - shift));
}

// The exponentials of a table, in both directions. The largest of all cells is -inf where no triple is allowed.
template <class Vec>
MM_INLINE void prepare(const Constraints& constraints, SumScratch& scratch) {
    const Table& logs = scratch.logs;
    const Shape& shape = logs.shape;
    const std::int64_t n = shape.k * shape.height * shape.padded;
    scratch.shift = chain::largest_of<Vec>(logs.cells.get(), n);
    scratch.ready = true;
    if (!std::isfinite(scratch.shift)) return;
    for (Table* table : {&scratch.ahead, &scratch.back}) {
        pack_at<Vec>(constraints, logs.pairs, logs.triples, *table);
        exponentials_of<Vec>(table->cells.get(), n, scratch.shift);
    }
}

// to[a][b] = from[b][a].
inline void flip(const Shape& shape, const double* MM_RESTRICT from, double* MM_RESTRICT to) {
    for (std::int64_t a = 0; a < shape.k; ++a)
        for (std::int64_t b = 0; b < shape.k; ++b) to[a * shape.padded + b] = from[b * shape.padded + a];
}

template <class Vec>
MM_INLINE double largest_in(const double* x, std::int64_t n) {
    Vec most = Vec{} + NEG_INF;
    for (std::int64_t i = 0; i < n; i += simd::lanes<Vec>) most = larger(load<Vec>(x + i), most);
    return largest(most);
}

template <class Vec>
MM_INLINE void multiply(double* x, std::int64_t n, double factor) {
    for (std::int64_t i = 0; i < n; i += simd::lanes<Vec>) store(x + i, load<Vec>(x + i) * factor);
}

// The power of two that brings a number into [1, 2); its inverse is 2^exponent.
MM_INLINE double scale_of(double most, std::int64_t& exponent) {
    const auto e = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(most) >> 52) - 1023;
    exponent += e;
    return std::bit_cast<double>(static_cast<std::uint64_t>(1023 - e) << 52);
}

// Marginals of positions and the sums of pairs from the marginals of pair u, which joins positions u and u + 1.
template <class Vec>
MM_INLINE void count_pairs(const Shape& shape, const Task& task, std::int64_t u, const double* marginals,
                           double* sums) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    const std::int64_t k = shape.k, padded = shape.padded;
    for (std::int64_t c = 0; c < padded; c += width) {
        Vec column = Vec{};
        for (std::int64_t b = 0; b < k; ++b) {
            const Vec here = load<Vec>(marginals + b * padded + c);
            column += here;
            store(sums + b * padded + c, load<Vec>(sums + b * padded + c) + here);
        }
        store_part<Vec>(task.node_means + (u + 1) * k + c, column, k - c);
    }
    if (u > 0) return;
    for (std::int64_t b = 0; b < k; ++b) {
        Vec all = Vec{};
        for (std::int64_t c = 0; c < padded; c += width) all += load<Vec>(marginals + b * padded + c);
        task.node_means[b] = total(all);
    }
}

// triple_means[a][b][c] = M[a][b][c] sum_u alpha[u - 1][a][b] nb[u][b][c], for U rows a and one panel.
template <class Vec, int N, int U>
MM_INLINE void panel_triples(const Table& table, std::int64_t layers, const double* MM_RESTRICT alpha,
                             const double* MM_RESTRICT nb, std::int64_t b, std::int64_t row, std::int64_t first,
                             const double* cells, double* means) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    const Shape& shape = table.shape;
    const std::int64_t k = shape.k, layer = shape.layer();
    const std::int32_t* from = table.from.data() + b * shape.height + row;
    Vec sum[U][N];
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u)
#pragma GCC unroll 3
        for (int j = 0; j < N; ++j) sum[u][j] = Vec{};
    for (std::int64_t t = 1; t < layers; ++t) {
        const double* left = alpha + (t - 1) * layer + b;
        const double* right = nb + t * layer + b * shape.padded + first;
#pragma GCC unroll 4
        for (int u = 0; u < U; ++u) {
            const Vec weight = left[from[u]] - Vec{};
#pragma GCC unroll 3
            for (int j = 0; j < N; ++j) sum[u][j] += weight * load<Vec>(right + j * width);
        }
    }
    for (int u = 0; u < U && row + u < table.rows[b]; ++u) {
        double* to = means + (from[u] / shape.padded * k + b) * k + first;
#pragma GCC unroll 3
        for (int j = 0; j < N; ++j)
            store_part<Vec>(to + j * width, sum[u][j] * load<Vec>(cells + ((row + u) * N + j) * width),
                            k - first - j * width);
    }
}

template <class Vec>
MM_INLINE void triple_sums(const Table& table, std::int64_t layers, const double* alpha, const double* nb,
                           double* means) {
    const Shape& shape = table.shape;
    for (std::int64_t b = 0; b < shape.k; ++b) {
        for (const auto [first, vectors] : shape.panels) {
            const double* cells = table.middle(b) + shape.height * first;
            for (std::int64_t row = 0; row < table.rows[b]; row += 4) {
                switch (vectors) {
                    case 1: panel_triples<Vec, 1, 4>(table, layers, alpha, nb, b, row, first, cells, means); break;
                    case 2: panel_triples<Vec, 2, 4>(table, layers, alpha, nb, b, row, first, cells, means); break;
                    default: panel_triples<Vec, 3, 4>(table, layers, alpha, nb, b, row, first, cells, means); break;
                }
            }
        }
    }
}

// Forward-backward in probabilities; false where an underflow might show. At least two positions, some output allowed
// in the first two.
template <class Vec>
MM_INLINE bool scaled(const Constraints& constraints, const Task& task, SumScratch& scratch, double& value) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    const Shape& shape = scratch.logs.shape;
    const std::int64_t k = shape.k, padded = shape.padded, layer = shape.layer(), length = task.length;
    const std::int64_t layers = length - 1;
    double *alpha = scratch.alpha.get(), *nb = scratch.nb.get(), *local = scratch.local.get();
    double *turned = scratch.turned.get(), *flipped = scratch.flipped.get(), *sums = scratch.sums.get();

    first_layer<Vec>(constraints, scratch.logs, task.nodes, length, scratch.row.get(), alpha);
    double shifts = largest_in<Vec>(alpha, layer);
    exponentials_of<Vec>(alpha, layer, shifts);
    std::int64_t exponent = 0, ignored = 0;
    if (layers > 1 && !scratch.ready) prepare<Vec>(constraints, scratch);
    if (layers > 1) shifts += static_cast<double>(layers - 1) * scratch.shift;
    for (std::int64_t t = 1; t < length; ++t) {
        double* row = local + t * padded;
        local_row(constraints, task.nodes, length, t, row);
        const double most = chain::largest_of<Vec>(row, k);
        if (!std::isfinite(most)) return false;
        if (t > 1) shifts += most;
        exponentials_of<Vec>(row, padded, most);
        std::fill(row + k, row + padded, 0.0);
    }
    if (!std::isfinite(shifts)) return false;
    for (std::int64_t u = 1; u < layers; ++u) {
        double* now = alpha + u * layer;
        const double *before = now - layer, *here = local + (u + 1) * padded;
        advance<Vec, Over::sums, 1>(scratch.ahead, &before, &here, &now);
        const double peak = largest_in<Vec>(now, layer);
        if (!(peak >= LEAST)) return false;
        multiply<Vec>(now, layer, scale_of(peak, exponent));
    }

    double* last = alpha + (layers - 1) * layer;
    Vec sum = Vec{};
    for (std::int64_t i = 0; i < layer; i += width) sum += load<Vec>(last + i);
    const double all = total(sum);
    value = shifts + (static_cast<double>(exponent) * std::numbers::ln2 + std::log(all));
    std::fill(sums, sums + layer, 0.0);
    for (std::int64_t i = 0; i < layer; i += width) store(flipped + i, load<Vec>(last + i) * (1.0 / all));
    count_pairs<Vec>(shape, task, layers - 1, flipped, sums);

    if (layers > 1) {
        double* ones = scratch.row.get();
        std::fill(ones, ones + padded, 1.0);
        const double* end = local + (length - 1) * padded;
        double* message = nb + (layers - 1) * layer;  // [b][c]; its transpose goes into `flipped`, then to and fro
        for (std::int64_t b = 0; b < k; ++b) std::copy(end, end + padded, message + b * padded);
        for (std::int64_t c = 0; c < k; ++c) std::fill(flipped + c * padded, flipped + (c + 1) * padded, end[c]);
        for (std::int64_t u = layers - 1; u > 0; --u) {
            const double *before = flipped, *here = ones;
            advance<Vec, Over::sums, 1>(scratch.back, &before, &here, &turned);  // s as [b][a]
            double* left = alpha + (u - 1) * layer;
            double* ahead = nb + (u - 1) * layer;
            flip(shape, turned, ahead);
            for (std::int64_t a = 0; a < k; ++a) std::fill(ahead + a * padded + k, ahead + (a + 1) * padded, 0.0);
            Vec dot = Vec{};
            for (std::int64_t i = 0; i < layer; i += width) dot += load<Vec>(left + i) * load<Vec>(ahead + i);
            const double c = total(dot);
            if (!(c >= LEAST)) return false;
            const double inverse = 1.0 / c;
            for (std::int64_t i = 0; i < layer; i += width) {
                const Vec weight = load<Vec>(left + i) * inverse;
                store(left + i, weight);
                store(flipped + i, weight * load<Vec>(ahead + i));
            }
            count_pairs<Vec>(shape, task, u - 1, flipped, sums);
            if (u == 1) break;
            const double* factor = local + u * padded;
            for (std::int64_t a = 0; a < k; ++a)
                for (std::int64_t b = 0; b < padded; b += width)
                    store(ahead + a * padded + b, load<Vec>(ahead + a * padded + b) * load<Vec>(factor + b));
            const double peak = largest_in<Vec>(ahead, layer);
            if (!(peak >= LEAST)) return false;
            const double scale = scale_of(peak, ignored);
            multiply<Vec>(ahead, layer, scale);
            for (std::int64_t b = 0; b < k; ++b)
                for (std::int64_t a = 0; a < padded; a += width)
                    store(flipped + b * padded + a, load<Vec>(turned + b * padded + a) * (factor[b] * scale));
        }
        triple_sums<Vec>(scratch.ahead, layers, alpha, nb, task.triple_means);
    }
    for (std::int64_t b = 0; b < k; ++b) std::copy(sums + b * padded, sums + b * padded + k, task.pair_means + b * k);
    return true;
}

// sum_a exp(before[a] + cells[a] - most) for a vector of columns.
template <class Vec>
MM_INLINE Vec sum_of_exponentials(const double* cells, std::int64_t wide, const std::int32_t* from, std::int64_t rows,
                                  const double* before, const Vec& most) {
    Vec sum = Vec{};
    for (std::int64_t j = 0; j < rows; ++j)
        sum += exp_negative<Vec>(before[from[j]] + load<Vec>(cells + j * wide) - most);
    return sum;
}

template <class Vec>
MM_INLINE Status logs(const Constraints& constraints, const Task& task, SumScratch& scratch, double& value) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    const Table& table = scratch.logs;
    const Shape& shape = table.shape;
    const std::int64_t k = shape.k, padded = shape.padded, layer = shape.layer(), layers = task.length - 1;
    double *forward = scratch.alpha.get(), *maxima = scratch.nb.get(), *row = scratch.row.get();
    double *sums = scratch.sums.get(), *marginals = scratch.flipped.get(), *earlier = scratch.turned.get();

    std::fill(row, row + padded, 0.0);
    first_layer<Vec>(constraints, table, task.nodes, task.length, row, forward);
    double shifts = 0.0;
    for (std::int64_t u = 0;; ++u) {
        double* now = forward + u * layer;
        const double most = largest_in<Vec>(now, layer);  // taken out, so that sums stay small
        if (most == NEG_INF) return Status::absent;
        if (!std::isfinite(most)) return Status::nonfinite;
        for (std::int64_t i = 0; i < layer; i += width) store(now + i, load<Vec>(now + i) - most);
        shifts += most;
        if (u == layers - 1) break;
        const double *before = now, *here = row;
        double* best = maxima + (u + 1) * layer;
        std::fill(row, row + padded, 0.0);
        advance<Vec, Over::maxima, 1>(table, &before, &here, &best);
        local_row(constraints, task.nodes, task.length, u + 2, row);
        for (std::int64_t b = 0; b < k; ++b) {
            const std::int32_t* from = table.from.data() + b * shape.height;
            for (std::int64_t c = 0; c < padded; c += width) {
                const std::int64_t column = std::min(c, k - 1);
                const Vec top = load<Vec>(best + b * padded + c);
                const Vec sum = sum_of_exponentials<Vec>(table.middle(b) + table.start[column], table.step[column],
                                                         from, table.rows[b], now + b, top);
                store(now + layer + b * padded + c, top + log_of_sum(sum) + load<Vec>(row + c));
            }
        }
    }

    double* last = forward + (layers - 1) * layer;
    Vec sum = Vec{};
    for (std::int64_t i = 0; i < layer; i += width) {
        const Vec share = exp_negative<Vec>(load<Vec>(last + i));
        store(marginals + i, share);
        sum += share;
    }
    const double all = total(sum);
    multiply<Vec>(marginals, layer, 1.0 / all);
    value = shifts + std::log(all);
    if (!std::isfinite(value)) return Status::nonfinite;
    std::fill(sums, sums + layer, 0.0);
    for (std::int64_t u = layers - 1;; --u) {
        count_pairs<Vec>(shape, task, u, marginals, sums);
        if (u == 0) break;
        std::fill(earlier, earlier + layer, 0.0);
        const double* before = forward + (u - 1) * layer;
        const double* best = maxima + u * layer;
        for (std::int64_t b = 0; b < k; ++b) {
            const std::int32_t* from = table.from.data() + b * shape.height;
            for (std::int64_t c = 0; c < k; c += width) {
                const Vec share = load<Vec>(marginals + b * padded + c);
                if (!any(share > NO_SHARE)) continue;
                const double* cells = table.middle(b) + table.start[c];
                const std::int64_t wide = table.step[c], rows = table.rows[b];
                const Vec top = load<Vec>(best + b * padded + c);
                const Vec whole = sum_of_exponentials<Vec>(cells, wide, from, rows, before + b, top);
                const Vec weight = share > NO_SHARE ? share / whole : Vec{};
                for (std::int64_t j = 0; j < rows; ++j) {
                    const Vec part =
                        exp_negative<Vec>(before[from[j] + b] + load<Vec>(cells + j * wide) - top) * weight;
                    double* to = task.triple_means + (from[j] / padded * k + b) * k + c;
                    store_part<Vec>(to, load_part<Vec>(to, k - c, 0.0) + part, k - c);
                    earlier[from[j] + b] += total(part);
                }
            }
        }
        std::swap(marginals, earlier);
    }
    for (std::int64_t b = 0; b < k; ++b) std::copy(sums + b * padded, sums + b * padded + k, task.pair_means + b * k);
    return Status::ok;
}

// Log-partition function and expected parts of one example; the status otherwise. Means are all written where it is ok.
template <class Vec>
MM_INLINE Status sum_product_at(const Constraints& constraints, const Task& task, bool by_logs, SumScratch& scratch,
                                double& value) {
    const std::int64_t k = constraints.n_labels;
    value = 0.0;
    if (scratch.logs.refused || refused_at<Vec>(task.nodes, task.length * k)) return Status::nonfinite;
    std::fill(task.pair_means, task.pair_means + k * k, 0.0);
    std::fill(task.triple_means, task.triple_means + k * k * k, 0.0);
    if (task.length == 0) return Status::ok;
    double* row = scratch.row.get();
    if (task.length == 1) {
        local_row(constraints, task.nodes, 1, 0, row);
        const double most = *std::max_element(row, row + k);
        if (most == NEG_INF) return Status::absent;
        double all = 0.0;
        for (std::int64_t c = 0; c < k; ++c) all += task.node_means[c] = std::exp(row[c] - most);
        for (std::int64_t c = 0; c < k; ++c) task.node_means[c] /= all;
        value = most + std::log(all);
        return Status::ok;
    }
    std::fill(row, row + scratch.logs.shape.padded, 0.0);
    if (!by_logs) {
        if (scaled<Vec>(constraints, task, scratch, value)) return Status::ok;
        std::fill(task.triple_means, task.triple_means + k * k * k, 0.0);
    }
    return logs<Vec>(constraints, task, scratch, value);
}
MM_LEVELS(sum_product)

// Every entry of z, value and status is written. With `by_logs` all examples are computed in the log domain, for tests.
inline void marginals(const Batch& batch, bool by_logs, std::span<double> z, std::span<double> value,
                      std::span<std::int8_t> status, int threads) {
    const int lanes = lanes_in_use();
    auto scratch = per_thread<SumScratch>(threads, batch.constraints, lanes, batch.longest());
    parallel_blocks(batch.n_examples(), 4, threads, [&](int thread, std::int64_t begin, std::int64_t end) {
        const FlushToZero flush;
        SumScratch& mine = scratch[thread];
        for (std::int64_t i = begin; i < end; ++i) {
            if (!mine.logs.holds(batch.pairs_of(i), batch.triples_of(i))) {
                pack(lanes, batch.constraints, batch.pairs_of(i), batch.triples_of(i), mine.logs);
                mine.ready = false;
            }
            const Task task{batch.length(i), batch.nodes_of(i), z.data() + batch.offsets[i],
                            z.data() + batch.pair_parts(i), z.data() + batch.triple_parts(i)};
            const Status found = sum_product(lanes, batch.constraints, task, by_logs, mine, value[i]);
            status[i] = static_cast<std::int8_t>(found);
            if (found == Status::ok) continue;
            value[i] = found == Status::absent ? NEG_INF : NOT_A_NUMBER;
            std::fill(task.node_means, task.node_means + task.length * batch.n_labels(), 0.0);
            std::fill(task.pair_means, task.pair_means + batch.square(), 0.0);
            std::fill(task.triple_means, task.triple_means + batch.cube(), 0.0);
        }
    });
}

}  // namespace maxmargin::second
