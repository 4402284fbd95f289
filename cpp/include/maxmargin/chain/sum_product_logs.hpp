// Sum-product on chains in the log domain, for potentials that spread too far for probabilities in one scale.
//
// Two passes of maxima find the score of the best output through every label. There are at most K^T outputs, so labels
// whose best one is more than T log K + 100 below the best of all have a probability below 1e-40, and are left out.
// Among the others: log-sum-exp forward; backward by conditional probabilities p(y_{t-1} | y_t), which sum to one
// whatever was rounded. The larger the potentials, the fewer labels are left: 2 T K^2 additions and maxima per example,
// at most 2 T K^2 exponentials, and hardly any where one output outweighs all others.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "maxmargin/chain/tables.hpp"

namespace maxmargin::chain {

inline constexpr double LEFT_OUT = 100.0;

// The largest entry is taken out of a log-message; returns it.
template <class Vec>
MM_INLINE double take_out_largest(double* x, std::int64_t n) {
    const double most = largest_of<Vec>(x, n);
    if (std::isfinite(most))
        for (std::int64_t i = 0; i < n; ++i) x[i] -= most;
    return most;
}

// out[a] = max_b table[a][b] + right[b], the table row-major and unpadded.
template <class Vec>
MM_INLINE void row_maxima(std::int64_t k, const double* MM_RESTRICT table, const double* MM_RESTRICT right,
                          double* MM_RESTRICT out) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    for (std::int64_t a = 0; a < k; ++a) {
        const double* row = table + a * k;
        Vec most = Vec{} + NEG_INF;
        std::int64_t b = 0;
        for (; b + width <= k; b += width) most = larger<Vec>(load<Vec>(row + b) + load<Vec>(right + b), most);
        if (b < k) most = larger<Vec>(load_part<Vec>(row + b, k - b, NEG_INF) + load<Vec>(right + b), most);
        out[a] = largest(most);
    }
}

// Max-product forward (into scratch.forward) and backward (into scratch.local), each message less its largest entry.
template <class Vec>
MM_INLINE Status max_messages(const Panels& panels, const Task& task, SumScratch& scratch) {
    const std::int64_t k = panels.n_labels, square = k * k, padded = panels.padded, length = task.length;
    double *forward = scratch.forward.get(), *backward = scratch.local.get(), *row = scratch.row.get();
    double *matrix = scratch.matrix.get(), *other = scratch.other.get();
    if (task.shared && length > 1) {
        pack_table<Vec, Pack::logs>(panels, task.pairs, 0.0, matrix);
        transpose_at<Vec>(panels, matrix, NEG_INF, other);
    }
    for (std::int64_t t = 0; t < length; ++t) {
        double* now = forward + t * padded;
        const double* nodes = task.nodes + t * k;
        if (t == 0) {
            std::copy(nodes, nodes + k, now);
        } else {
            if (!task.shared) pack_table<Vec, Pack::logs>(panels, task.pairs + (t - 1) * square, 0.0, matrix);
            step<Vec, Over::maxima>(panels, now - padded, matrix, now);
            for (std::int64_t b = 0; b < k; ++b) now[b] += nodes[b];
        }
        const double most = take_out_largest<Vec>(now, k);
        if (!std::isfinite(most)) return most == NEG_INF ? Status::absent : Status::nonfinite;
    }
    std::fill(backward + (length - 1) * padded, backward + (length - 1) * padded + k, 0.0);
    for (std::int64_t t = length - 1; t > 0; --t) {
        double* before = backward + (t - 1) * padded;
        for (std::int64_t b = 0; b < k; ++b) row[b] = backward[t * padded + b] + task.nodes[t * k + b];
        if (task.shared) {
            step<Vec, Over::maxima>(panels, row, other, before);
        } else {
            row_maxima<Vec>(k, task.pairs + (t - 1) * square, row, before);
        }
        if (!std::isfinite(take_out_largest<Vec>(before, k))) return Status::nonfinite;
    }
    return Status::ok;
}

// The labels that are kept at every position: labels[t * K ...], counts[t] of them, in increasing order.
MM_INLINE void keep_labels(std::int64_t k, std::int64_t padded, std::int64_t length, const double* forward,
                           const double* backward, SumScratch& scratch) {
    const double range = static_cast<double>(length) * std::log(static_cast<double>(k)) + LEFT_OUT;
    for (std::int64_t t = 0; t < length; ++t, forward += padded, backward += padded) {
        double most = NEG_INF;
        for (std::int64_t b = 0; b < k; ++b) most = std::max(most, forward[b] + backward[b]);
        std::int32_t* labels = scratch.labels.data() + t * k;
        std::int64_t kept = 0;
        for (std::int64_t b = 0; b < k; ++b) {
            labels[kept] = static_cast<std::int32_t>(b);
            kept += forward[b] + backward[b] >= most - range ? 1 : 0;
        }
        scratch.counts[t] = static_cast<std::int32_t>(kept);
    }
}

// The kept labels of two neighboring positions, and table[a][b] = before[a] + pairs[label a][label b], rows padded
// with -inf to whole vectors.
struct Edge {
    std::int64_t rows, columns, padded;
    const std::int32_t *from, *to;
};
template <class Vec>
MM_INLINE Edge kept_table(const Panels& panels, const Task& task, const SumScratch& scratch, std::int64_t t,
                          const double* before, double* MM_RESTRICT table) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    const std::int64_t k = panels.n_labels, columns = scratch.counts[t];
    const Edge edge{scratch.counts[t - 1], columns, (columns + width - 1) / width * width,
                    scratch.labels.data() + (t - 1) * k, scratch.labels.data() + t * k};
    const double* pairs = task.pairs + (task.shared ? 0 : (t - 1) * k * k);
    for (std::int64_t a = 0; a < edge.rows; ++a, table += edge.padded) {
        const double* row = pairs + edge.from[a] * k;
        for (std::int64_t b = 0; b < columns; ++b) table[b] = before[a] + row[edge.to[b]];
        for (std::int64_t b = columns; b < edge.padded; ++b) table[b] = NEG_INF;
    }
    return edge;
}

// Log-messages now[b] = log sum_a exp(table[a][b]) + node[b], by way of the largest terms, most[b], and the sums after
// these are taken out, whose inverses go to inverse[b]. Where nothing reaches b: most and inverse 0, now -inf.
template <class Vec>
MM_INLINE void log_step(const Edge& edge, const double* MM_RESTRICT table, const double* nodes,
                        double* MM_RESTRICT most, double* MM_RESTRICT inverse, double* MM_RESTRICT now) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    for (std::int64_t j = 0; j < edge.padded; j += width) {
        Vec top = Vec{} + NEG_INF, sum = Vec{};
        for (std::int64_t a = 0; a < edge.rows; ++a) top = larger<Vec>(load<Vec>(table + a * edge.padded + j), top);
        top = top > NEG_INF ? top : Vec{};
        for (std::int64_t a = 0; a < edge.rows; ++a)
            sum += exp_negative<Vec>(load<Vec>(table + a * edge.padded + j) - top);
        store(most + j, top);
        store(now + j, sum);
        store(inverse + j, sum > 0.0 ? 1.0 / sum : Vec{});
    }
    for (std::int64_t b = 0; b < edge.columns; ++b) now[b] = most[b] + std::log(now[b]) + nodes[edge.to[b]];
}

// One edge back: table[a][b] = exp(table[a][b] - most[b]) weights[b], and the row sums.
template <class Vec>
MM_INLINE void log_step_back(const Edge& edge, double* MM_RESTRICT table, const double* MM_RESTRICT most,
                             const double* MM_RESTRICT weights, double* MM_RESTRICT sums) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    for (std::int64_t a = 0; a < edge.rows; ++a, table += edge.padded) {
        Vec all = Vec{};
        for (std::int64_t j = 0; j < edge.padded; j += width) {
            const Vec mean = exp_negative<Vec>(load<Vec>(table + j) - load<Vec>(most + j)) * load<Vec>(weights + j);
            store(table + j, mean);
            all += mean;
        }
        sums[a] = total(all);
    }
}

MM_INLINE void add_table(const Edge& edge, std::int64_t k, const double* table, double* means) {
    for (std::int64_t a = 0; a < edge.rows; ++a, table += edge.padded)
        for (std::int64_t b = 0; b < edge.columns; ++b) means[edge.from[a] * k + edge.to[b]] += table[b];
}

// Right for any finite potentials and any that forbid; nonfinite only where sums of potentials overflow.
template <class Vec>
MM_INLINE Status logs(const Panels& panels, const Task& task, SumScratch& scratch, double& value) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    const std::int64_t k = panels.n_labels, square = k * k, padded = panels.padded, length = task.length;
    double *forward = scratch.forward.get(), *most = scratch.local.get(), *inverse = scratch.third.get();
    double *table = scratch.matrix.get(), *sums = scratch.sums.get(), *weights = scratch.weights.get();
    scratch.cached = nullptr;

    const Status found = max_messages<Vec>(panels, task, scratch);
    if (found != Status::ok) return found;
    keep_labels(k, padded, length, forward, most, scratch);

    value = 0.0;
    for (std::int64_t b = 0; b < scratch.counts[0]; ++b) forward[b] = task.nodes[scratch.labels[b]];
    for (std::int64_t t = 0; t < length; ++t) {
        double* now = forward + t * padded;
        if (t > 0) {
            const Edge edge = kept_table<Vec>(panels, task, scratch, t, now - padded, table);
            log_step<Vec>(edge, table, task.nodes + t * k, most + t * padded, inverse + t * padded, now);
        }
        const double shift = take_out_largest<Vec>(now, scratch.counts[t]);
        if (!std::isfinite(shift)) return Status::nonfinite;
        value += shift;
    }

    const double* last = forward + (length - 1) * padded;
    double all = 0.0;
    for (std::int64_t b = 0; b < scratch.counts[length - 1]; ++b) all += sums[b] = std::exp(last[b]);
    value += std::log(all);
    if (!std::isfinite(value)) return Status::nonfinite;

    std::fill(task.node_means, task.node_means + length * k, 0.0);
    std::fill(task.pair_means, task.pair_means + (task.shared ? square : (length - 1) * square), 0.0);
    if (task.edges) std::fill(task.edges, task.edges + (length - 1) * square, 0.0);
    for (std::int64_t t = length - 1; t >= 0; --t) {
        // sums holds the marginals of position t up to a factor that differs from 1 by rounding only (but at the end).
        const std::int64_t count = scratch.counts[t];
        const std::int32_t* labels = scratch.labels.data() + t * k;
        double* means = task.node_means + t * k;
        for (std::int64_t b = 0; b < count; ++b) means[labels[b]] = sums[b] / all;
        if (t == 0) break;
        for (std::int64_t b = 0; b < (count + width - 1) / width * width; ++b)
            weights[b] = b < count ? sums[b] / all * inverse[t * padded + b] : 0.0;
        const Edge edge = kept_table<Vec>(panels, task, scratch, t, forward + (t - 1) * padded, table);
        log_step_back<Vec>(edge, table, most + t * padded, weights, sums);
        all = 0.0;
        for (std::int64_t a = 0; a < edge.rows; ++a) all += sums[a];
        if (!(all > 0.0)) return Status::nonfinite;
        add_table(edge, k, table, task.pair_means + (task.shared ? 0 : (t - 1) * square));
        if (task.edges) add_table(edge, k, table, task.edges + (t - 1) * square);
    }
    return Status::ok;
}

}  // namespace maxmargin::chain
