// Sum-product on forests and junction trees: log-partition functions and marginals; threads over examples.
//
// Up: with M(x_S) = max_x T(x_S, x) every entry of a cluster becomes E = exp(T - M), its rows sum to R(x_S) in
// [1, labels], and the message is M - max M + log R (what is taken off adds up to the value), so that potentials of any
// size neither overflow nor eat each other's digits. Down: E / R is the distribution of x given x_S,
// and the marginal of the separator times it that of the cluster: products of probabilities, without differences. In a
// forest E is written where the edge marginals go, so each entry costs one exponential; a larger cluster is made again.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "maxmargin/tree.hpp"

namespace maxmargin::tree {

// Unsigned integers of the same shape. (GCC drops a vector size that depends on a template's parameter.)
template <class Vec>
struct Bits;
template <>
struct Bits<double> {
    using type = std::uint64_t;
};
template <>
struct Bits<Vec2> {
    using type = std::uint64_t __attribute__((vector_size(16)));
};
template <>
struct Bits<Vec4> {
    using type = std::uint64_t __attribute__((vector_size(32)));
};
template <>
struct Bits<Vec8> {
    using type = std::uint64_t __attribute__((vector_size(64)));
};

// exp(x) for x <= 0, zero below -708: x = n log 2 + r with |r| <= log 2 / 2, the Taylor series of exp(r) to r^13
// (remainder 4e-18), times 2^n through the exponent's bits. Adding 1.5 * 2^52 rounds to an integer, which the low bits
// then hold.
template <class Vec>
MM_INLINE Vec exp_below_zero(const Vec& given) {
    constexpr double floor = -708.0, shift = 6755399441055744.0;
    const Vec x = given > floor ? given : Vec{} + floor;
    const Vec shifted = x * 1.4426950408889634 + shift;
    const Vec n = shifted - shift;
    const Vec r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
    Vec p = Vec{} + 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    using Int = typename Bits<Vec>::type;
    Int exponent, bits;
    static_assert(sizeof(Int) == sizeof(Vec));
    __builtin_memcpy(&exponent, &shifted, sizeof(Vec));
    __builtin_memcpy(&bits, &p, sizeof(Vec));
    bits += exponent << 52;
    Vec result;
    __builtin_memcpy(&result, &bits, sizeof(Vec));
    return given > floor ? result : Vec{};
}

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
            const Vec x = exp_below_zero<Vec>(load<Vec>(table + i * columns + at) + add[i] - high);
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
            const Vec x = exp_below_zero<Vec>(load<Vec>(row + j) + load<Vec>(add + j) - top[i]);
            store(to + j, x);
            sum += x;
        }
        double all = total(sum);
        if (whole < columns) {
            const std::int64_t at = columns - width;
            store(to + at, exp_below_zero<Vec>(load<Vec>(row + at) + load<Vec>(add + at) - top[i]));
            for (std::int64_t j = whole; j < columns; ++j) all += to[j];
        }
        sums[i] = all;
    }
}

// A largest value to subtract: that of -inf alone is 0, as there -inf - 0 is still -inf.
MM_INLINE double finite_top(double top) { return top > NEG_INF ? top : 0.0; }

struct EntropicScratch : Scratch {
    std::vector<double> tops, sums, marginals;  // marginals: of separators, laid out like messages

    void resize(const Plan& plan) {
        Scratch::resize(plan);
        at_least(table, static_cast<std::size_t>(plan.most_table + simd::lanes<Vec8>));
        at_least(tops, static_cast<std::size_t>(plan.most_rows));
        at_least(sums, static_cast<std::size_t>(plan.most_messages));
        at_least(marginals, static_cast<std::size_t>(plan.most_messages));
    }
};

// E of a cluster larger than an edge into scratch.table, row sums into `sums`.
template <class Vec>
MM_INLINE void cluster_exps(const Plan& plan, std::int64_t first, std::int64_t v, const double* edges,
                            EntropicScratch& scratch, double* sums) {
    const std::int64_t k = plan.labels[v];
    double* table = scratch.table.data();
    fill_cluster(plan, first, v, edges, scratch.h.data(), scratch.messages.data(), table, scratch.digits.data());
    for (std::int64_t row = 0; row < plan.rows[v]; ++row) {
        double* x = table + row * k;
        double top = x[0];
        for (std::int64_t j = 1; j < k; ++j) top = x[j] > top ? x[j] : top;
        scratch.tops[row] = finite_top(top);
        for (std::int64_t j = 0; j < k; ++j) x[j] -= scratch.tops[row];
    }
    const std::int64_t entries = plan.rows[v] * k;
    for (std::int64_t j = 0; j < entries; j += simd::lanes<Vec>)  // the table has room for a last vector
        store(table + j, exp_below_zero<Vec>(load<Vec>(table + j)));
    for (std::int64_t row = 0; row < plan.rows[v]; ++row) {
        double sum = 0.0;
        for (std::int64_t j = 0; j < k; ++j) sum += table[row * k + j];
        sums[row] = sum;
    }
}

// Example i: log-partition function into value, E of simple clusters into the edge parts of z, row sums into
// scratch.sums.
template <class Vec>
MM_INLINE Status sum_up_at(int, const Plan& plan, std::int64_t i, const double* nodes, const double* edges,
                           EntropicScratch& scratch, double* edge_z, double& value) {
    const std::int64_t first = plan.nodes[i], n = plan.nodes[i + 1] - first;
    const std::int64_t n_parts = plan.node_parts[i + 1] - plan.node_parts[i];
    value = 0.0;
    if (refused<Vec>(nodes, n_parts)) return Status::nonfinite;
    double* h = scratch.h.data();
    std::copy(nodes, nodes + n_parts, h);
    for (std::int64_t t = 0; t < n; ++t)
        if (edges_refused<Vec>(plan, first + t, edges)) return Status::nonfinite;
    for (std::int64_t t = 0; t < n; ++t) {
        const std::int64_t v = first + plan.order[first + t];
        const std::int64_t k = plan.labels[v], p = plan.parent[v], rows = plan.rows[v];
        const double* own = h + plan.part[v];
        double most = NEG_INF;
        if (p < 0) {
            for (std::int64_t x = 0; x < k; ++x) most = own[x] > most ? own[x] : most;
            double sum = 0.0;
            for (std::int64_t x = 0; x < k; ++x) sum += exp_below_zero<double>(own[x] - finite_top(most));
            value += finite_top(most) + std::log(sum);
        } else {
            double* out = scratch.messages.data() + plan.message[v];
            double* sums = scratch.sums.data() + plan.message[v];
            double* tops = scratch.tops.data();
            if (plan.simple[v]) {
                const Term& term = plan.term[plan.terms[v]];
                const bool own_first = plan.stride[term.strides] == 1 && term.own == rows;
                const double* table = edges + term.base;
                if (own_first)
                    column_maxima<Vec>(own, table, k, rows, tops);
                else
                    row_maxima<Vec>(own, table, rows, k, tops);
                for (std::int64_t j = 0; j < rows; ++j) tops[j] = finite_top(tops[j]);
                if (own_first)
                    column_exps<Vec>(own, table, k, rows, tops, edge_z + term.base, sums);
                else
                    row_exps<Vec>(own, table, rows, k, tops, edge_z + term.base, sums);
            } else {
                cluster_exps<Vec>(plan, first, v, edges, scratch, sums);
            }
            for (std::int64_t j = 0; j < rows; ++j) most = sums[j] > 0.0 && tops[j] > most ? tops[j] : most;
            value += finite_top(most);
            for (std::int64_t j = 0; j < rows; ++j) out[j] = (tops[j] - finite_top(most)) + std::log(sums[j]);
            if (plan.as_term[v] < 0) add_to<Vec>(h + plan.part[first + p], out, rows);
        }
        if (most == NEG_INF) {
            value = NEG_INF;
            return Status::absent;
        }
    }
    return std::isfinite(value) ? Status::ok : Status::nonfinite;
}
MM_LEVELS(Status, sum_up,
          (int widest, const Plan& plan, std::int64_t i, const double* nodes, const double* edges,
           EntropicScratch& scratch, double* edge_z, double& value),
          (widest, plan, i, nodes, edges, scratch, edge_z, value))

// Numbers that should sum to 1 and do so to rounding: made to, so that errors do not pile up along a path.
MM_INLINE void normalise(double* x, std::int64_t n) {
    double sum = 0.0;
    for (std::int64_t j = 0; j < n; ++j) sum += x[j];
    const double scale = 1.0 / sum;
    for (std::int64_t j = 0; j < n; ++j) x[j] *= scale;
}

// Marginals of example i from what sum_up has left, roots to leaves.
template <class Vec>
MM_INLINE void sum_down_at(int, const Plan& plan, std::int64_t i, const double* edges, EntropicScratch& scratch,
                           double* node_z, double* edge_z) {
    const std::int64_t first = plan.nodes[i], n = plan.nodes[i + 1] - first;
    const double* h = scratch.h.data();
    double* share = scratch.tops.data();
    for (std::int64_t t = n - 1; t >= 0; --t) {
        const std::int64_t v = first + plan.order[first + t];
        const std::int64_t k = plan.labels[v], rows = plan.rows[v], p = plan.parent[v];
        double* own = node_z + plan.part[v];
        if (p < 0) {
            double most = NEG_INF;
            for (std::int64_t x = 0; x < k; ++x) most = std::max(most, h[plan.part[v] + x]);
            for (std::int64_t x = 0; x < k; ++x) own[x] = exp_below_zero<double>(h[plan.part[v] + x] - most);
            normalise(own, k);
            continue;
        }
        // Where its separator is the parent alone, the parent's marginals are those of the separator.
        const double* before = plan.as_term[v] < 0 ? node_z + plan.part[first + p]
                                                   : scratch.marginals.data() + plan.message[v];
        const double* sums = scratch.sums.data() + plan.message[v];
        const bool simple = plan.simple[v];
        if (!simple) cluster_exps<Vec>(plan, first, v, edges, scratch, scratch.sums.data() + plan.message[v]);
        for (std::int64_t j = 0; j < rows; ++j) share[j] = sums[j] > 0.0 ? before[j] / sums[j] : 0.0;
        std::fill(own, own + k, 0.0);
        if (simple) {
            const Term& term = plan.term[plan.terms[v]];
            double* MM_RESTRICT table = edge_z + term.base;
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
            normalise(own, k);
            continue;
        }
        double* MM_RESTRICT table = scratch.table.data();
        for (std::int64_t j = 0; j < rows; ++j)
            for (std::int64_t x = 0; x < k; ++x) {
                table[j * k + x] *= share[j];
                own[x] += table[j * k + x];
            }
        normalise(own, k);
        // Marginals of the cluster: summed onto its edges, and onto the separators of children that see more than v.
        for (std::int64_t t2 = plan.terms[v]; t2 < plan.terms[v + 1]; ++t2) {
            const Term& term = plan.term[t2];
            double* to = (term.message ? scratch.marginals.data() : edge_z) + term.base;
            std::fill(to, to + term.size, 0.0);
            each_row(plan, first, v, plan.stride.data() + term.strides, scratch.digits.data(),
                     [&](std::int64_t row, std::int64_t offset) __attribute__((always_inline)) {
                         const double* MM_RESTRICT from = table + row * k;
                         double* MM_RESTRICT at = to + offset;
                         for (std::int64_t x = 0; x < k; ++x) at[x * term.own] += from[x];
                     });
            if (term.message) normalise(to, term.size);
        }
    }
}
MM_LEVELS(void, sum_down,
          (int widest, const Plan& plan, std::int64_t i, const double* edges, EntropicScratch& scratch, double* node_z,
           double* edge_z),
          (widest, plan, i, edges, scratch, node_z, edge_z))

// z is written throughout.
inline void entropic(const Plan& plan, std::span<const double> potentials, std::span<double> z,
                     std::span<double> value, std::span<std::int8_t> status, int threads) {
    const int width = lanes_in_use();
    ScratchLease<EntropicScratch> scratch(static_cast<std::size_t>(std::max(threads, 1)));
    for (std::size_t t = 0; t < scratch.size(); ++t) scratch[t].resize(plan);
    const std::int64_t n = plan.n_examples();
    parallel_blocks(n, grain_of(n, threads), threads, [&](int thread, std::int64_t begin, std::int64_t end) {
        EntropicScratch& mine = scratch[static_cast<std::size_t>(thread)];
        for (std::int64_t i = begin; i < end; ++i) {
            const double* nodes = potentials.data() + plan.node_parts[i];
            const double* edges = potentials.data() + plan.edge_parts[i];
            double* node_z = z.data() + plan.node_parts[i];
            double* edge_z = z.data() + plan.edge_parts[i];
            const Status found = sum_up(width, plan, i, nodes, edges, mine, edge_z, value[i]);
            if (found == Status::ok) {
                sum_down(width, plan, i, edges, mine, node_z, edge_z);
            } else {
                std::fill(node_z, z.data() + plan.node_parts[i + 1], 0.0);
                std::fill(edge_z, z.data() + plan.edge_parts[i + 1], 0.0);
                if (found == Status::nonfinite) value[i] = std::numeric_limits<double>::quiet_NaN();
            }
            status[i] = static_cast<std::int8_t>(found);
        }
    });
}

}  // namespace maxmargin::tree
