// Pairwise networks and their local polytopes: shared by message passing, projections and linear programs.
//
// Nodes have K labels and lie in simplexes, sum_k z_i(k) = 1. An edge (i, j) has either a table of K x K parts,
//
//     t >= 0,   sum_b t(a, b) = z_i(a),   sum_a t(a, b) = z_j(b)                                              (1)
//
// or K parts, one for each label that both ends may have,
//
//     0 <= t(k) <= min(z_i(k), z_j(k)).                                                                       (2)
//
// In both, every part of an edge meets one multiplier of each end: part (a, b) those of label a at the first end and of
// label b at the second, part k those of label k. The multipliers of (1) are free, those of (2) are >= 0. Multiplier
// of label k at the tail of arc r (cut/graph.hpp) is m[r K + k], and
//
//     node_i(k) + sum_{arcs r of i} m[r, k]            edge(a, b) - m[2e, a] - m[2e + 1, b]                   (3)
//
// are the scores of nodes and edges after the constraints were moved into them; for any m
//
//     max score <= sum_i max_k node_i(k) + sum_e max_{a,b} edge(a, b)       (with max(0, .) on edges in (2)).  (4)
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "maxmargin/cut/graph.hpp"

namespace maxmargin::network {

constexpr std::int8_t ok = 0, inexact = 1, nonfinite = 2;

// Calls body(labels), with a constant for small numbers of labels, for which the compiler unrolls the loops.
template <class Body>
inline auto with_labels(std::int32_t labels, Body&& body) {
    switch (labels) {
        case 2: return body(std::integral_constant<std::int32_t, 2>{});
        case 3: return body(std::integral_constant<std::int32_t, 3>{});
        case 4: return body(std::integral_constant<std::int32_t, 4>{});
        case 5: return body(std::integral_constant<std::int32_t, 5>{});
        default: return body(labels);
    }
}

// One example: its graph, and a number (a score, or a coordinate of a point) for every part.
template <bool table>
struct Example {
    cut::CutExample graph;
    std::int32_t labels;
    const double* node;
    const double* edge;

    std::int64_t edge_size() const { return table ? std::int64_t{labels} * labels : labels; }
    std::int64_t node_parts() const { return std::int64_t{graph.nodes} * labels; }
    std::int64_t edge_parts() const { return graph.edges * edge_size(); }
    std::int64_t multipliers() const { return 2 * std::int64_t{graph.edges} * labels; }
};

// The score of a part of an edge where its first end has label a and its second b.
template <bool table>
inline double edge_score(const Example<table>& x, std::int32_t e, std::int32_t a, std::int32_t b) {
    if constexpr (table) return x.edge[e * x.edge_size() + std::int64_t{a} * x.labels + b];
    return a == b ? x.edge[e * x.edge_size() + a] : 0.0;
}

template <bool table>
inline double score_of(const Example<table>& x, const std::int32_t* label) {
    double sum = 0.0;
    for (std::int32_t i = 0; i < x.graph.nodes; ++i) sum += x.node[std::int64_t{i} * x.labels + label[i]];
    for (std::int32_t e = 0; e < x.graph.edges; ++e)
        sum += edge_score(x, e, label[x.graph.ends[2 * e]], label[x.graph.ends[2 * e + 1]]);
    return sum;
}

// How far scores of outputs can differ, at most: the measure of all tolerances. It does not see constants that are
// added to all labels of a node or to a whole table.
template <bool table>
inline double range_of(const Example<table>& x) {
    double sum = 0.0;
    for (std::int32_t i = 0; i < x.graph.nodes; ++i) {
        const auto [low, high] =
            std::minmax_element(x.node + std::int64_t{i} * x.labels, x.node + std::int64_t{i + 1} * x.labels);
        sum += *high - *low;
    }
    for (std::int32_t e = 0; e < x.graph.edges; ++e) {
        const double* first = x.edge + e * x.edge_size();
        const auto [low, high] = std::minmax_element(first, first + x.edge_size());
        sum += table ? *high - *low : std::max(0.0, *high);
    }
    return sum;
}

// Size of all scores: what rounding errors are relative to.
template <bool table>
inline double size_of(const Example<table>& x) {
    double sum = 0.0;
    for (std::int64_t p = 0; p < x.node_parts(); ++p) sum += std::abs(x.node[p]);
    for (std::int64_t p = 0; p < x.edge_parts(); ++p) sum += std::abs(x.edge[p]);
    return sum;
}

// z = the point of the simplex nearest to v (Michelot 1986), computed relative to the largest entry, so that the sum is
// 1 to rounding however large v is. Returns that entry; v is left relative to it.
template <class Count>
inline double onto_simplex(double* v, const Count n, double* z) {
    const double largest = *std::max_element(v, v + n);
    double sum = 0.0;
    std::int32_t count = 0;
    for (std::int32_t k = 0; k < n; ++k) {
        v[k] -= largest;
        if (v[k] > -1.0) sum += v[k], ++count;
    }
    // The threshold only rises: every round drops entries or ends.
    double threshold = (sum - 1.0) / count;
    for (std::int32_t round = 0; round < n; ++round) {
        double kept = 0.0;
        std::int32_t left = 0;
        for (std::int32_t k = 0; k < n; ++k)
            if (v[k] > threshold) kept += v[k], ++left;
        if (left == count) break;
        count = left;
        threshold = (kept - 1.0) / count;
    }
    double total = 0.0;
    for (std::int32_t k = 0; k < n; ++k) total += z[k] = std::max(0.0, v[k] - threshold);
    for (std::int32_t k = 0; k < n; ++k) z[k] /= total;
    return largest;
}

// Makes the table t >= 0 feasible for (1), where its ends have z_i and z_j: rows and columns that are too large are
// scaled down, what is missing is added as a product (Altschuler, Weed and Rigollet 2017). `sums`: 2 K numbers.
template <class Count>
inline void fit_table(const Count n, const double* zi, const double* zj, double* t, double* sums) {
    double* rows = sums;
    double* columns = sums + n;
    std::fill(columns, columns + n, 0.0);
    for (std::int32_t a = 0; a < n; ++a) {
        double sum = 0.0;
        for (std::int32_t b = 0; b < n; ++b) sum += t[a * n + b];
        const double scale = sum > zi[a] ? zi[a] / sum : 1.0;
        for (std::int32_t b = 0; b < n; ++b) columns[b] += t[a * n + b] *= scale;
    }
    for (std::int32_t b = 0; b < n; ++b) columns[b] = columns[b] > zj[b] ? zj[b] / columns[b] : 1.0;
    for (std::int32_t a = 0; a < n; ++a) {
        double sum = 0.0;
        for (std::int32_t b = 0; b < n; ++b) sum += t[a * n + b] *= columns[b];
        rows[a] = std::max(0.0, zi[a] - sum);
    }
    double missing = 0.0;
    for (std::int32_t b = 0; b < n; ++b) {
        double sum = 0.0;
        for (std::int32_t a = 0; a < n; ++a) sum += t[a * n + b];
        missing += columns[b] = std::max(0.0, zj[b] - sum);
    }
    if (!(missing > 0.0)) return;
    for (std::int32_t a = 0; a < n; ++a) {
        if (rows[a] == 0.0) continue;
        const double share = rows[a] / missing;
        for (std::int32_t b = 0; b < n; ++b) t[a * n + b] += share * columns[b];
    }
}

// The bound (4) less the score of a feasible point, as a sum of terms none of which is negative, so that it is right to
// rounding even where it is tiny.
template <bool table>
inline double bound_over_point(const Example<table>& x, const double* m, const double* z, const double* t) {
    const std::int32_t n = x.labels;
    double gap = 0.0;
    for (std::int32_t i = 0; i < x.graph.nodes; ++i) {
        const auto total = [&](std::int32_t k) {
            double sum = x.node[std::int64_t{i} * n + k];
            for (std::int32_t r = x.graph.first_arc(i); r < x.graph.first_arc(i + 1); ++r)
                sum += m[std::int64_t{x.graph.arcs[r]} * n + k];
            return sum;
        };
        double best = total(0);
        for (std::int32_t k = 1; k < n; ++k) best = std::max(best, total(k));
        for (std::int32_t k = 0; k < n; ++k)
            if (z[std::int64_t{i} * n + k] > 0.0) gap += z[std::int64_t{i} * n + k] * (best - total(k));
    }
    for (std::int32_t e = 0; e < x.graph.edges; ++e) {
        const double* mi = m + 2 * std::int64_t{e} * n;
        const double* mj = mi + n;
        const double* score = x.edge + e * x.edge_size();
        const double* te = t + e * x.edge_size();
        if constexpr (table) {
            double best = score[0] - mi[0] - mj[0];
            for (std::int32_t a = 0; a < n; ++a)
                for (std::int32_t b = 0; b < n; ++b) best = std::max(best, score[a * n + b] - mi[a] - mj[b]);
            for (std::int32_t a = 0; a < n; ++a)
                for (std::int32_t b = 0; b < n; ++b) gap += te[a * n + b] * (best - (score[a * n + b] - mi[a] - mj[b]));
        } else {
            const double* zi = z + std::int64_t{x.graph.ends[2 * e]} * n;
            const double* zj = z + std::int64_t{x.graph.ends[2 * e + 1]} * n;
            double best = 0.0, sum = 0.0;
            for (std::int32_t k = 0; k < n; ++k) best = std::max(best, score[k] - mi[k] - mj[k]);
            for (std::int32_t k = 0; k < n; ++k) {
                sum += te[k];
                gap += te[k] * (best - (score[k] - mi[k] - mj[k]));
                gap += mi[k] * (zi[k] - te[k]) + mj[k] * (zj[k] - te[k]);
            }
            gap += best * std::max(0.0, 1.0 - sum);
        }
    }
    return gap;
}

template <bool table>
inline double score_of(const Example<table>& x, const double* z, const double* t) {
    double sum = 0.0;
    for (std::int64_t p = 0; p < x.node_parts(); ++p) sum += x.node[p] * z[p];
    for (std::int64_t p = 0; p < x.edge_parts(); ++p) sum += x.edge[p] * t[p];
    return sum;
}

// A point of the polytope near z, t, to rounding in it; entries that are nearly 0 become 0. `sums`: 2 K numbers.
template <bool table>
inline void make_feasible(const Example<table>& x, double* z, double* t, double* sums) {
    const std::int32_t n = x.labels;
    const auto clean = [](double value) { return value > 1e-9 ? value : 0.0; };
    for (std::int32_t i = 0; i < x.graph.nodes; ++i) {
        double* zi = z + std::int64_t{i} * n;
        double total = 0.0;
        for (std::int32_t k = 0; k < n; ++k) total += zi[k] = clean(zi[k]);
        if (!(total > 0.0)) total = zi[0] = 1.0;
        for (std::int32_t k = 0; k < n; ++k) zi[k] /= total;
    }
    for (std::int32_t e = 0; e < x.graph.edges; ++e) {
        double* te = t + e * x.edge_size();
        const double* zi = z + std::int64_t{x.graph.ends[2 * e]} * n;
        const double* zj = z + std::int64_t{x.graph.ends[2 * e + 1]} * n;
        for (std::int64_t c = 0; c < x.edge_size(); ++c) te[c] = clean(te[c]);
        if constexpr (table) {
            fit_table(n, zi, zj, te, sums);
        } else {
            for (std::int32_t k = 0; k < n; ++k) te[k] = std::min({te[k], zi[k], zj[k]});
        }
    }
}

// The vertex of a labeling.
template <bool table>
inline void write_labels(const Example<table>& x, const std::int32_t* label, double* z, double* t) {
    const std::int32_t n = x.labels;
    std::fill(z, z + x.node_parts(), 0.0);
    std::fill(t, t + x.edge_parts(), 0.0);
    for (std::int32_t i = 0; i < x.graph.nodes; ++i) z[std::int64_t{i} * n + label[i]] = 1.0;
    for (std::int32_t e = 0; e < x.graph.edges; ++e) {
        const std::int32_t a = label[x.graph.ends[2 * e]], b = label[x.graph.ends[2 * e + 1]];
        if constexpr (table) {
            t[e * x.edge_size() + std::int64_t{a} * n + b] = 1.0;
        } else if (a == b) {
            t[e * x.edge_size() + a] = 1.0;
        }
    }
}

}  // namespace maxmargin::network
