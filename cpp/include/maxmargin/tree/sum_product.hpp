// Sum-product on forests and junction trees: log-partition functions and marginals; threads over examples.
//
// Up: with M(x_S) = max_x T(x_S, x) every entry of a cluster becomes E = exp(T - M), its rows sum to R(x_S) in
// [1, labels], and the message is M - max M + log R (what is taken off adds up to the value), so that potentials of any
// size neither overflow nor eat each other's digits. Down: E / R is the distribution of x given x_S,
// and the marginal of the separator times it that of the cluster: products of probabilities, without differences. In a
// forest E is written where the edge marginals go, so each entry costs one exponential. So it does in larger clusters,
// which are kept from up to down unless those of an example have more than KEPT entries; then they are made again.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "maxmargin/base/simd_exp.hpp"
#include "maxmargin/base/simd_log.hpp"
#include "maxmargin/tree/max_product.hpp"

namespace maxmargin::tree {

// E[i][j] = exp(add[i] + table[i][j] - top[j]) and sums[j] over i.
template <class Vec>
MM_INLINE void column_exps(const double* MM_RESTRICT add, const double* MM_RESTRICT table, std::int64_t rows,
                           std::int64_t columns, const double* MM_RESTRICT top, double* MM_RESTRICT e,
                           double* MM_RESTRICT sums) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    if constexpr (width > 1) {
        if (columns < width) return column_exps<Half<Vec>>(add, table, rows, columns, top, e, sums);
    }
    for (std::int64_t j = 0; j < columns; j += width) {
        const std::int64_t at = std::min(j, columns - width);
        const Vec high = load<Vec>(top + at);
        Vec sum = Vec{};
        for (std::int64_t i = 0; i < rows; ++i) {
            const Vec x = exp_negative<Vec>(load<Vec>(table + i * columns + at) + add[i] - high);
            store(e + i * columns + at, x);
            sum += x;
        }
        store(sums + at, sum);
    }
}

// E[i][j] = exp(add[j] + table[i][j] - top[i]) and sums[i] over j
template <class Vec>
MM_INLINE void row_exps(const double* MM_RESTRICT add, const double* MM_RESTRICT table, std::int64_t rows,
                        std::int64_t columns, const double* MM_RESTRICT top, double* MM_RESTRICT e,
                        double* MM_RESTRICT sums) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    if constexpr (width > 1) {
        if (columns < width) return row_exps<Half<Vec>>(add, table, rows, columns, top, e, sums);
    }
    const std::int64_t whole = columns / width * width;
    for (std::int64_t i = 0; i < rows; ++i) {
        const double* row = table + i * columns;
        double* to = e + i * columns;
        Vec sum = Vec{};
        for (std::int64_t j = 0; j < whole; j += width) {
            const Vec x = exp_negative<Vec>(load<Vec>(row + j) + load<Vec>(add + j) - top[i]);
            store(to + j, x);
            sum += x;
        }
        double all = total(sum);
        if (whole < columns) {
            const std::int64_t at = columns - width;
            store(to + at, exp_negative<Vec>(load<Vec>(row + at) + load<Vec>(add + at) - top[i]));
            for (std::int64_t j = whole; j < columns; ++j) all += to[j];
        }
        sums[i] = all;
    }
}

template <class Vec>
MM_INLINE double total_of(const double* x, std::int64_t n) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    if constexpr (width > 1) {
        if (n < width) return total_of<Half<Vec>>(x, n);
    }
    Vec sums = Vec{};
    std::int64_t j = 0;
    for (; j + width <= n; j += width) sums += load<Vec>(x + j);
    double sum = total(sums);
    for (; j < n; ++j) sum += x[j];
    return sum;
}

// out[j] = (tops[j] - most) + log(sums[j])
template <class Vec>
MM_INLINE void log_sums(const double* MM_RESTRICT tops, double most, const double* MM_RESTRICT sums, std::int64_t n,
                        double* MM_RESTRICT out) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    if constexpr (width > 1) {
        if (n < width) return log_sums<Half<Vec>>(tops, most, sums, n, out);
    }
    for (std::int64_t j = 0; j < n; j += width) {
        const std::int64_t at = std::min(j, n - width);
        store(out + at, (load<Vec>(tops + at) - most) + log_of_sum<Vec>(load<Vec>(sums + at)));
    }
}

// A largest value to subtract: that of -inf alone is 0, as there -inf - 0 is still -inf.
MM_INLINE double finite_top(double top) { return top > NEG_INF ? top : 0.0; }

// Entries of all clusters of an example that a thread keeps: 8 MB, about what a core has of cache.
inline constexpr std::int64_t KEPT = 1 << 20;

struct EntropicScratch : Scratch {
    std::vector<double> tops, sums, marginals;  // marginals: of separators, laid out like messages

    // The table of the cluster of node v of example i.
    double* cluster(const Plan& plan, std::int64_t i, std::int64_t v) {
        return table.data() + (plan.n_clusters[i] <= KEPT ? plan.cluster[v] : 0);
    }

    void resize(const Plan& plan) {
        Scratch::resize(plan);
        std::int64_t kept = plan.most_table;
        for (const std::int64_t entries : plan.n_clusters)
            if (entries <= KEPT) kept = std::max(kept, entries);
        at_least(table, static_cast<std::size_t>(kept + simd::lanes<Vec8>));
        at_least(tops, static_cast<std::size_t>(plan.most_rows));
        at_least(sums, static_cast<std::size_t>(plan.most_messages));
        at_least(marginals, static_cast<std::size_t>(plan.most_messages));
    }
};

// E of a cluster larger than an edge into `table`, which has room for a last vector, and row sums into `sums`.
template <class Vec>
MM_INLINE void cluster_exps(const Plan& plan, std::int64_t first, std::int64_t v, const Scores& scores,
                            EntropicScratch& scratch, double* table, double* sums) {
    const std::int64_t k = plan.labels[v];
    fill_cluster(plan, first, v, scores, scratch.h.data(), scratch.messages.data(), table, scratch.digits.data());
    for (std::int64_t row = 0; row < plan.rows[v]; ++row) {
        double* x = table + row * k;
        const double top = finite_top(largest_of<Vec>(x, k));
        scratch.tops[row] = top;
        for (std::int64_t j = 0; j < k; ++j) x[j] -= top;
    }
    const std::int64_t entries = plan.rows[v] * k;
    for (std::int64_t j = 0; j < entries; j += simd::lanes<Vec>)
        store(table + j, exp_negative<Vec>(load<Vec>(table + j)));
    for (std::int64_t row = 0; row < plan.rows[v]; ++row) sums[row] = total_of<Vec>(table + row * k, k);
}

// Example i: log-partition function into value, E of simple clusters into the edge parts of z, row sums into
// scratch.sums.
template <class Vec>
MM_INLINE Status sum_up_at(const Plan& plan, std::int64_t i, const Scores& scores, EntropicScratch& scratch,
                           double* edge_z, double& value) {
    const std::int64_t first = plan.nodes[i], n = plan.nodes[i + 1] - first;
    double* h = scratch.h.data();
    value = 0.0;
    if (nodes_refused<Vec>(plan, i, scores, h)) return Status::nonfinite;
    for (std::int64_t t = 0; t < n; ++t)
        if (tables_refused<Vec>(plan, first + t, scores)) return Status::nonfinite;
    for (std::int64_t t = 0; t < n; ++t) {
        const std::int64_t v = first + plan.order[first + t];
        const std::int64_t k = plan.labels[v], p = plan.parent[v], rows = plan.rows[v];
        const double* own = h + plan.part[v];
        double most = NEG_INF;
        if (p < 0) {
            for (std::int64_t x = 0; x < k; ++x) most = own[x] > most ? own[x] : most;
            double sum = 0.0;
            for (std::int64_t x = 0; x < k; ++x) sum += exp_negative<double>(own[x] - finite_top(most));
            value += finite_top(most) + std::log(sum);
        } else {
            double* out = scratch.messages.data() + plan.message[v];
            double* sums = scratch.sums.data() + plan.message[v];
            double* tops = scratch.tops.data();
            if (plan.simple[v]) {
                const Term& term = plan.term[plan.terms[v]];
                const bool own_first = plan.stride[term.strides] == 1 && term.own == rows;
                const double* table = scores.edges + term.base;
                if (own_first) column_maxima<Vec>(own, table, k, rows, tops);
                else row_maxima<Vec>(own, table, rows, k, tops);
                for (std::int64_t j = 0; j < rows; ++j) tops[j] = finite_top(tops[j]);
                if (own_first) column_exps<Vec>(own, table, k, rows, tops, edge_z + term.base, sums);
                else row_exps<Vec>(own, table, rows, k, tops, edge_z + term.base, sums);
            } else {
                cluster_exps<Vec>(plan, first, v, scores, scratch, scratch.cluster(plan, i, v), sums);
            }
            for (std::int64_t j = 0; j < rows; ++j) most = sums[j] > 0.0 && tops[j] > most ? tops[j] : most;
            value += finite_top(most);
            log_sums<Vec>(tops, finite_top(most), sums, rows, out);
            if (plan.as_term[v] < 0) add_to(h + plan.part[first + p], out, rows);
        }
        if (most == NEG_INF) {
            value = NEG_INF;
            return Status::absent;
        }
    }
    return std::isfinite(value) ? Status::ok : Status::nonfinite;
}
MM_LEVELS(sum_up)

// Numbers that should sum to 1 and do so to rounding: made to, so that errors do not pile up along a path.
MM_INLINE void normalize(double* x, std::int64_t n) {
    double sum = 0.0;
    for (std::int64_t j = 0; j < n; ++j) sum += x[j];
    const double scale = 1.0 / sum;
    for (std::int64_t j = 0; j < n; ++j) x[j] *= scale;
}

// Marginals of example i from what sum_up has left, roots to leaves.
template <class Vec>
MM_INLINE void sum_down_at(const Plan& plan, std::int64_t i, const Scores& scores, EntropicScratch& scratch,
                           const Parts<double>& z) {
    const std::int64_t first = plan.nodes[i], n = plan.nodes[i + 1] - first;
    const double* h = scratch.h.data();
    double* share = scratch.tops.data();
    for (std::int64_t t = n - 1; t >= 0; --t) {
        const std::int64_t v = first + plan.order[first + t];
        const std::int64_t k = plan.labels[v], rows = plan.rows[v], p = plan.parent[v];
        double* own = z.nodes + plan.part[v];
        if (p < 0) {
            double most = NEG_INF;
            for (std::int64_t x = 0; x < k; ++x) most = std::max(most, h[plan.part[v] + x]);
            for (std::int64_t x = 0; x < k; ++x) own[x] = exp_negative<double>(h[plan.part[v] + x] - most);
            normalize(own, k);
            continue;
        }
        // Where its separator is the parent alone, the parent's marginals are those of the separator.
        const double* before =
            plan.as_term[v] < 0 ? z.nodes + plan.part[first + p] : scratch.marginals.data() + plan.message[v];
        const double* sums = scratch.sums.data() + plan.message[v];
        const bool simple = plan.simple[v];
        double* MM_RESTRICT cluster = scratch.cluster(plan, i, v);
        if (!simple && plan.n_clusters[i] > KEPT)
            cluster_exps<Vec>(plan, first, v, scores, scratch, cluster, scratch.sums.data() + plan.message[v]);
        for (std::int64_t j = 0; j < rows; ++j) share[j] = sums[j] > 0.0 ? before[j] / sums[j] : 0.0;
        std::fill(own, own + k, 0.0);
        if (simple) {
            const Term& term = plan.term[plan.terms[v]];
            double* MM_RESTRICT table = z.edges + term.base;
            if (plan.stride[term.strides] == 1 && term.own == rows) {
                for (std::int64_t x = 0; x < k; ++x) {
                    double* MM_RESTRICT row = table + x * rows;
                    for (std::int64_t j = 0; j < rows; ++j) row[j] *= share[j];
                    double sums8[8] = {};
                    std::int64_t j = 0;
                    for (; j + 8 <= rows; j += 8)
                        for (int lane = 0; lane < 8; ++lane) sums8[lane] += row[j + lane];
                    for (; j < rows; ++j) sums8[0] += row[j];
                    own[x] = ((sums8[0] + sums8[1]) + (sums8[2] + sums8[3])) +
                             ((sums8[4] + sums8[5]) + (sums8[6] + sums8[7]));
                }
            } else {
                for (std::int64_t j = 0; j < rows; ++j) {
                    double* MM_RESTRICT row = table + j * k;
                    for (std::int64_t x = 0; x < k; ++x) {
                        row[x] *= share[j];
                        own[x] += row[x];
                    }
                }
            }
            normalize(own, k);
            continue;
        }
        for (std::int64_t j = 0; j < rows; ++j) {
            double* MM_RESTRICT row = cluster + j * k;
            const double scale = share[j];
            for (std::int64_t x = 0; x < k; ++x) {
                row[x] *= scale;
                own[x] += row[x];
            }
        }
        normalize(own, k);
        // Marginals of the cluster: summed onto its edges and cliques, and onto the separators of children that see
        // more than v.
        for (std::int64_t t2 = plan.terms[v]; t2 < plan.terms[v + 1]; ++t2) {
            const Term& term = plan.term[t2];
            double* to = table_of(term, z, scratch.marginals.data());
            std::fill(to, to + term.size, 0.0);
            each_entry(plan, first, v, term, cluster, to, scratch.digits.data(),
                       [](const double& x, double& y) __attribute__((always_inline)) { y += x; });
            if (term.source == Source::message) normalize(to, term.size);
        }
    }
    each_single(plan, i, [&](std::int64_t v, std::int64_t table) __attribute__((always_inline)) {
        std::copy(z.nodes + plan.part[v], z.nodes + plan.part[v] + plan.labels[v], z.cliques + table);
    });
}
MM_LEVELS(sum_down)

// z is written throughout.
inline void marginals(const Plan& plan, std::span<const double> potentials, std::span<double> z,
                      std::span<double> value, std::span<std::int8_t> status, int threads) {
    const int width = lanes_in_use();
    ScratchLease<EntropicScratch> scratch(threads, [&](EntropicScratch& own) { own.resize(plan); });
    const std::int64_t n = plan.n_examples();
    parallel_each(n, grain_of(n, threads), threads, [&](int thread, std::int64_t i) {
        EntropicScratch& mine = scratch[thread];
        const Scores scores = parts_of(plan, i, potentials.data());
        const Parts<double> own = parts_of(plan, i, z.data());
        const Status found = sum_up(width, plan, i, scores, mine, own.edges, value[i]);
        if (found == Status::ok) {
            sum_down(width, plan, i, scores, mine, own);
        } else {
            for (const auto* block : {&plan.node_parts, &plan.edge_parts, &plan.clique_parts})
                std::fill(z.begin() + (*block)[i], z.begin() + (*block)[i + 1], 0.0);
            if (found == Status::nonfinite) value[i] = std::numeric_limits<double>::quiet_NaN();
        }
        status[i] = static_cast<std::int8_t>(found);
    });
}

}  // namespace maxmargin::tree
