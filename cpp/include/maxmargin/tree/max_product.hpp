// Max-product on forests and junction trees, and the Euclidean projection fed by it; threads over examples.
//
// Leaves to roots every node sends its parent the maxima of its cluster (tree/plan.hpp) over its own labels; roots to
// leaves every node takes the best label given those of its separator, the lowest among equals. Nothing but the
// messages and h is stored: a cluster's row is made again in the backward pass. Cost per example: one addition and one
// maximum per entry of an edge table in a forest, a vector at a time whichever end the table is written from; per entry
// of a cluster times its tables in a junction tree. -inf forbids a label or a pair; NaN and +inf are rejected.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "maxmargin/base/parallel.hpp"
#include "maxmargin/base/scratch.hpp"
#include "maxmargin/base/simd.hpp"
#include "maxmargin/hull/batch.hpp"
#include "maxmargin/tree/plan.hpp"

namespace maxmargin::tree {

using hull::HullBatch;
using hull::Status;

using namespace simd;

inline constexpr double NEG_INF = -std::numeric_limits<double>::infinity();

// The parts of one example, block by block.
template <class Number>
struct Parts {
    Number *nodes, *edges, *cliques;
};
using Scores = Parts<const double>;

template <class Number>
Parts<Number> parts_of(const Plan& plan, std::int64_t i, Number* packed) {
    return {packed + plan.node_parts[i], packed + plan.edge_parts[i], packed + plan.clique_parts[i]};
}

// The same where the parts of the example stand alone, block after block.
template <class Number>
Parts<Number> parts_within(const Plan& plan, std::int64_t i, Number* own) {
    const std::int64_t nodes = plan.node_parts[i + 1] - plan.node_parts[i];
    return {own, own + nodes, own + nodes + plan.edge_parts[i + 1] - plan.edge_parts[i]};
}

// Where the table of a term begins: among the given parts, or in the messages.
template <class Number>
MM_INLINE Number* table_of(const Term& term, const Parts<Number>& parts, Number* messages) {
    return term.base + (term.source == Source::edge     ? parts.edges
                        : term.source == Source::clique ? parts.cliques
                                                        : messages);
}

// Scratch of one thread for one example.
struct Scratch {
    std::vector<double> h, messages, table, row;
    std::vector<std::int64_t> digits;
    std::vector<std::int32_t> labels;

    void resize(const Plan& plan) {
        at_least(h, static_cast<std::size_t>(plan.most_node_parts));
        at_least(messages, static_cast<std::size_t>(plan.most_messages));
        at_least(table, static_cast<std::size_t>(plan.most_table));
        at_least(row, static_cast<std::size_t>(plan.most_labels));
        at_least(digits, static_cast<std::size_t>(plan.widest + 1));
        at_least(labels, static_cast<std::size_t>(plan.most_nodes));
    }
};

// The kernels below take a table of `rows` rows and `columns` columns. Where a row is not a multiple of the vector
// length its last vector overlaps the one before; rows shorter than a vector take a shorter one.

// out[j] = max_i add[i] + table[i][j] over N vectors of columns from `first`, maxima in registers.
template <class Vec, int N>
MM_INLINE void panel_maxima(const double* MM_RESTRICT add, const double* MM_RESTRICT table, std::int64_t rows,
                            std::int64_t columns, std::int64_t first, double* MM_RESTRICT out) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    std::int64_t at[N];
    Vec best[N];
#pragma GCC unroll 6
    for (int v = 0; v < N; ++v) {
        at[v] = std::min(first + v * width, columns - width);
        best[v] = Vec{} + NEG_INF;
    }
    for (std::int64_t i = 0; i < rows; ++i) {
        const double* row = table + i * columns;
#pragma GCC unroll 6
        for (int v = 0; v < N; ++v) {
            const Vec sum = load<Vec>(row + at[v]) + add[i];
            best[v] = larger(sum, best[v]);
        }
    }
#pragma GCC unroll 6
    for (int v = 0; v < N; ++v) store(out + at[v], best[v]);
}

template <class Vec>
MM_INLINE void column_maxima(const double* add, const double* table, std::int64_t rows, std::int64_t columns,
                             double* out) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    if constexpr (width > 1) {
        if (columns < width) return column_maxima<Half<Vec>>(add, table, rows, columns, out);
    }
    for (std::int64_t first = 0; first < columns;) {
        const std::int64_t left = (columns - first + width - 1) / width;
        const std::int64_t taken = left <= 6 ? left : std::min<std::int64_t>(6, (left + 1) / 2);
        switch (taken) {
            case 1: panel_maxima<Vec, 1>(add, table, rows, columns, first, out); break;
            case 2: panel_maxima<Vec, 2>(add, table, rows, columns, first, out); break;
            case 3: panel_maxima<Vec, 3>(add, table, rows, columns, first, out); break;
            case 4: panel_maxima<Vec, 4>(add, table, rows, columns, first, out); break;
            case 5: panel_maxima<Vec, 5>(add, table, rows, columns, first, out); break;
            default: panel_maxima<Vec, 6>(add, table, rows, columns, first, out); break;
        }
        first += taken * width;
    }
}

// out[i] = max_j add[j] + table[i][j]
template <class Vec>
MM_INLINE void row_maxima(const double* MM_RESTRICT add, const double* MM_RESTRICT table, std::int64_t rows,
                          std::int64_t columns, double* MM_RESTRICT out) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    if constexpr (width > 1) {
        if (columns < width) return row_maxima<Half<Vec>>(add, table, rows, columns, out);
    }
    for (std::int64_t i = 0; i < rows; ++i) {
        const double* row = table + i * columns;
        Vec best = load<Vec>(row + columns - width) + load<Vec>(add + columns - width);
        for (std::int64_t j = 0; j + width <= columns; j += width) {
            const Vec sum = load<Vec>(row + j) + load<Vec>(add + j);
            best = larger(sum, best);
        }
        out[i] = largest(best);
    }
}

template <class Vec>
MM_INLINE double largest_of(const double* x, std::int64_t n) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    if constexpr (width > 1) {
        if (n < width) return largest_of<Half<Vec>>(x, n);
    }
    Vec best = load<Vec>(x + n - width);
    for (std::int64_t j = 0; j + width <= n; j += width) best = larger(load<Vec>(x + j), best);
    return largest(best);
}

// Runs through all joint labels of the separator of node v (index within the batch; not a root) but those of its last,
// the parent, in the order of rows: calls body(row, offset) with the first row there and the offset of a term.
template <class Body>
MM_INLINE void each_block(const Plan& plan, std::int64_t first, std::int64_t v, const std::int64_t* stride,
                          std::int64_t* digits, Body&& body) {
    const std::int64_t last = plan.separators[v + 1] - plan.separators[v] - 1, rows = plan.rows[v];
    const std::int32_t* nodes = plan.separator.data() + plan.separators[v];
    const std::int64_t inner = plan.labels[first + nodes[last]];
    std::fill(digits, digits + last, 0);
    std::int64_t offset = 0;
    for (std::int64_t row = 0; row < rows; row += inner) {
        body(row, offset);
        for (std::int64_t d = last - 1; d >= 0; --d) {
            offset += stride[d];
            if (++digits[d] < plan.labels[first + nodes[d]]) break;
            offset -= stride[d] * digits[d];
            digits[d] = 0;
        }
    }
}

// For every entry of the cluster of node v and the entry of a term that it meets, pair(cluster entry, term entry), long
// runs at a time where both lie one after the other.
template <class Number, class Other, class Pair>
MM_INLINE void each_entry(const Plan& plan, std::int64_t first, std::int64_t v, const Term& term, Number* cluster,
                          Other* table, std::int64_t* digits, Pair&& pair) {
    const std::int64_t* stride = plan.stride.data() + term.strides;
    const std::int64_t k = plan.labels[v], own = term.own;
    const std::int64_t inner = plan.labels[first + plan.parent[v]];
    const std::int64_t step = stride[plan.separators[v + 1] - plan.separators[v] - 1];
    each_block(plan, first, v, stride, digits,
               [&](std::int64_t row, std::int64_t offset) __attribute__((always_inline)) {
                   Number* MM_RESTRICT x = cluster + row * k;
                   Other* MM_RESTRICT y = table + offset;
                   if (own == 1 && step == k) {
                       for (std::int64_t j = 0; j < inner * k; ++j) pair(x[j], y[j]);
                   } else if (own == 1) {
                       for (std::int64_t a = 0; a < inner; ++a, x += k, y += step)
                           for (std::int64_t j = 0; j < k; ++j) pair(x[j], y[j]);
                   } else {
                       for (std::int64_t a = 0; a < inner; ++a, x += k, y += step)
                           for (std::int64_t j = 0; j < k; ++j) pair(x[j], y[j * own]);
                   }
               });
}

// Calls body(v, table) for every clique of one node, v counted over the batch.
template <class Body>
MM_INLINE void each_single(const Plan& plan, std::int64_t i, Body&& body) {
    for (std::int64_t c = plan.clique_offsets[i]; c < plan.clique_offsets[i + 1]; ++c)
        if (plan.clique_size(c) == 1)
            body(plan.nodes[i] + plan.clique_nodes[plan.clique_begin[c]], plan.clique_table[c]);
}

// The whole cluster of node v into `table`.
MM_INLINE void fill_cluster(const Plan& plan, std::int64_t first, std::int64_t v, const Scores& scores, const double* h,
                            const double* messages, double* MM_RESTRICT table, std::int64_t* digits) {
    const std::int64_t k = plan.labels[v];
    const double* own = h + plan.part[v];
    for (std::int64_t row = 0; row < plan.rows[v]; ++row) std::copy(own, own + k, table + row * k);
    for (std::int64_t t = plan.terms[v]; t < plan.terms[v + 1]; ++t) {
        const Term& term = plan.term[t];
        each_entry(plan, first, v, term, table, table_of(term, scores, messages), digits,
                   [](double& x, const double& y) __attribute__((always_inline)) { x += y; });
    }
}

// One row of the cluster of node v: that of the labels in `at`, one per separator node.
template <class Labels>
MM_INLINE void cluster_row(const Plan& plan, std::int64_t v, const Scores& scores, const double* h,
                           const double* messages, Labels&& at, double* MM_RESTRICT row) {
    const std::int64_t k = plan.labels[v], s = plan.separators[v + 1] - plan.separators[v];
    std::copy(h + plan.part[v], h + plan.part[v] + k, row);
    for (std::int64_t t = plan.terms[v]; t < plan.terms[v + 1]; ++t) {
        const Term& term = plan.term[t];
        const double* from = table_of(term, scores, messages);
        for (std::int64_t d = 0; d < s; ++d) from += plan.stride[term.strides + d] * at(d);
        if (term.own == 1) {
            for (std::int64_t x = 0; x < k; ++x) row[x] += from[x];
        } else {
            for (std::int64_t x = 0; x < k; ++x) row[x] += from[x * term.own];
        }
    }
}

// h begins as the scores of single nodes; whether some of them is NaN or +inf.
template <class Vec>
MM_INLINE bool nodes_refused(const Plan& plan, std::int64_t i, const Scores& scores, double* MM_RESTRICT h) {
    const std::int64_t n_parts = plan.node_parts[i + 1] - plan.node_parts[i];
    bool bad = refused_at<Vec>(scores.nodes, n_parts);
    std::copy(scores.nodes, scores.nodes + n_parts, h);
    each_single(plan, i, [&](std::int64_t v, std::int64_t table) __attribute__((always_inline)) {
        for (std::int64_t x = 0; x < plan.labels[v]; ++x) {
            const double score = scores.cliques[table + x];
            bad |= !(score <= std::numeric_limits<double>::max());
            h[plan.part[v] + x] += score;
        }
    });
    return bad;
}

// Whether the table of an edge or a clique in the cluster of node v holds NaN or +inf. Each belongs to one cluster.
template <class Vec>
MM_INLINE bool tables_refused(const Plan& plan, std::int64_t v, const Scores& scores) {
    bool bad = false;
    for (std::int64_t t = plan.terms[v]; t < plan.terms[v + 1]; ++t) {
        const Term& term = plan.term[t];
        if (term.source != Source::message)
            bad |= refused_at<Vec>(table_of<const double>(term, scores, nullptr), term.size);
    }
    return bad;
}

// Messages and h of example i, leaves to roots; the value of the best output.
template <class Vec>
MM_INLINE Status upward_at(const Plan& plan, std::int64_t i, const Scores& scores, Scratch& scratch, double& value) {
    const std::int64_t first = plan.nodes[i], n = plan.nodes[i + 1] - first;
    double* h = scratch.h.data();
    double* messages = scratch.messages.data();
    value = 0.0;
    if (nodes_refused<Vec>(plan, i, scores, h)) return Status::nonfinite;
    bool absent = false;
    for (std::int64_t t = 0; t < n; ++t) {
        const std::int64_t v = first + plan.order[first + t];
        const std::int64_t k = plan.labels[v], p = plan.parent[v];
        const double* own = h + plan.part[v];
        if (tables_refused<Vec>(plan, v, scores)) return Status::nonfinite;
        if (p < 0) {
            double most = own[0];
            for (std::int64_t x = 1; x < k; ++x) most = own[x] > most ? own[x] : most;
            value += most;
            absent |= most == NEG_INF;
            continue;
        }
        double* out = messages + plan.message[v];
        if (plan.simple[v]) {
            const Term& term = plan.term[plan.terms[v]];
            const std::int64_t kp = plan.labels[first + p];
            if (plan.stride[term.strides] == 1 && term.own == kp)
                column_maxima<Vec>(own, scores.edges + term.base, k, kp, out);
            else row_maxima<Vec>(own, scores.edges + term.base, kp, k, out);
        } else {
            fill_cluster(plan, first, v, scores, h, messages, scratch.table.data(), scratch.digits.data());
            for (std::int64_t row = 0; row < plan.rows[v]; ++row)
                out[row] = largest_of<Vec>(scratch.table.data() + row * k, k);
        }
        if (plan.as_term[v] < 0) add_to(h + plan.part[first + p], out, plan.rows[v]);
    }
    if (absent) {
        value = NEG_INF;
        return Status::absent;
    }
    return std::isfinite(value) ? Status::ok : Status::nonfinite;
}
MM_LEVELS(upward)

// The best labels from messages and h, roots to leaves, into scratch.labels.
inline void downward(const Plan& plan, std::int64_t i, const Scores& scores, Scratch& scratch) {
    const std::int64_t first = plan.nodes[i], n = plan.nodes[i + 1] - first;
    std::int32_t* labels = scratch.labels.data();
    double* row = scratch.row.data();
    for (std::int64_t t = n - 1; t >= 0; --t) {
        const std::int32_t node = plan.order[first + t];
        const std::int64_t v = first + node;
        const std::int32_t* around = plan.separator.data() + plan.separators[v];
        cluster_row(
            plan, v, scores, scratch.h.data(), scratch.messages.data(),
            [&](std::int64_t d) __attribute__((always_inline)) { return labels[around[d]]; }, row);
        std::int32_t best = 0;
        for (std::int32_t x = 1; x < plan.labels[v]; ++x) best = row[x] > row[best] ? x : best;
        labels[node] = best;
    }
}

// Calls node, edge and clique(position) for every part of a labeling, in this order, each from its own beginning.
template <class Node, class Edge, class Clique>
void each_part(const Plan& plan, std::int64_t i, const std::int32_t* labels, Node&& node, Edge&& edge,
               Clique&& clique) {
    const std::int64_t first = plan.nodes[i], n = plan.nodes[i + 1] - first;
    for (std::int64_t v = 0; v < n; ++v) node(plan.part[first + v] + labels[v]);
    for (std::int64_t e = plan.edge_offsets[i]; e < plan.edge_offsets[i + 1]; ++e) {
        const std::int32_t u = plan.ends[2 * e], v = plan.ends[2 * e + 1];
        edge(plan.table[e] + static_cast<std::int64_t>(labels[u]) * plan.labels[first + v] + labels[v]);
    }
    for (std::int64_t c = plan.clique_offsets[i]; c < plan.clique_offsets[i + 1]; ++c) {
        std::int64_t at = 0;
        for (std::int64_t j = plan.clique_begin[c]; j < plan.clique_begin[c + 1]; ++j)
            at = at * plan.labels[first + plan.clique_nodes[j]] + labels[plan.clique_nodes[j]];
        clique(plan.clique_table[c] + at);
    }
}

// The non-zero parts of a labeling, counted from the first part of the example.
inline void vertex_of(const Plan& plan, std::int64_t i, const std::int32_t* labels, hull::Sparse& vertex) {
    const std::int64_t edges = plan.node_parts[i + 1] - plan.node_parts[i];
    const std::int64_t cliques = edges + plan.edge_parts[i + 1] - plan.edge_parts[i];
    vertex.clear();
    each_part(
        plan, i, labels, [&](std::int64_t at) { vertex.add(at, 1.0); },
        [&](std::int64_t at) { vertex.add(edges + at, 1.0); }, [&](std::int64_t at) { vertex.add(cliques + at, 1.0); });
}

inline void mark(const Plan& plan, std::int64_t i, const std::int32_t* labels, double* z) {
    const Parts<double> own = parts_of(plan, i, z);
    each_part(
        plan, i, labels, [&](std::int64_t at) { own.nodes[at] = 1.0; }, [&](std::int64_t at) { own.edges[at] = 1.0; },
        [&](std::int64_t at) { own.cliques[at] = 1.0; });
}

// Examples handed to a thread at a time: few where there are few, as they may be large.
inline std::int64_t grain_of(std::int64_t n, int threads) {
    return std::clamp<std::int64_t>(n / (8 * std::max(threads, 1)), 1, 16);
}

// The best labels of every example, handed to take(example, labels).
template <class Take>
void maximize(const Plan& plan, std::span<const double> scores, std::span<double> value, std::span<std::int8_t> status,
              int threads, Take&& take) {
    const int width = lanes_in_use();
    ScratchLease<Scratch> scratch(threads, [&](Scratch& own) { own.resize(plan); });
    const std::int64_t n = plan.n_examples();
    parallel_each(n, grain_of(n, threads), threads, [&](int thread, std::int64_t i) {
        Scratch& mine = scratch[thread];
        const Scores own = parts_of(plan, i, scores.data());
        const Status found = upward(width, plan, i, own, mine, value[i]);
        if (found == Status::ok) {
            downward(plan, i, own, mine);
            take(i, mine.labels.data());
        }
        if (found == Status::nonfinite) value[i] = std::numeric_limits<double>::quiet_NaN();
        status[i] = static_cast<std::int8_t>(found);
    });
}

// z must be zero on entry.
inline void argmax(const Plan& plan, std::span<const double> scores, std::span<double> z, std::span<double> value,
                   std::span<std::int8_t> status, int threads) {
    maximize(plan, scores, value, status, threads,
             [&](std::int64_t i, const std::int32_t* labels) { mark(plan, i, labels, z.data()); });
}

// The label of every node, as its place among the node's own labels; labels must be -1 on entry.
inline void labels(const Plan& plan, std::span<const double> scores, std::span<std::int32_t> labels,
                   std::span<double> value, std::span<std::int8_t> status, int threads) {
    maximize(plan, scores, value, status, threads, [&](std::int64_t i, const std::int32_t* found) {
        std::copy_n(found, plan.nodes[i + 1] - plan.nodes[i], labels.data() + plan.nodes[i]);
    });
}

// Euclidean projection of every example, the active sets fed by the argmax.
inline void project(const Plan& plan, HullBatch& sets, std::span<const double> point, std::span<double> z,
                    std::span<double> value, std::span<std::int8_t> status, int threads) {
    const int width = lanes_in_use();
    ScratchLease<Scratch> scratch(threads, [&](Scratch& own) { own.resize(plan); });
    const auto find = [&](int thread, std::int64_t i, const std::vector<double>& given, hull::Sparse& vertex) {
        double best;
        const Scores scores = parts_within(plan, i, given.data());
        if (upward(width, plan, i, scores, scratch[thread], best) != Status::ok) return Status::nonfinite;
        downward(plan, i, scores, scratch[thread]);
        vertex_of(plan, i, scratch[thread].labels.data(), vertex);
        return Status::ok;
    };
    const auto blocks = [&](std::int64_t i, auto&& block) {
        for (const auto* offsets : {&plan.node_parts, &plan.edge_parts, &plan.clique_parts}) {
            const std::int64_t at = (*offsets)[i];
            block(point.data() + at, at, (*offsets)[i + 1] - at);
        }
    };
    sets.project(z, value, status, threads, blocks, find);
}

}  // namespace maxmargin::tree
