// Slack rescaling on forests where the loss is a number of units (base/loss_units.hpp), as with Hamming loss:
// max-product with that number as an extra state. Node v keeps, for each number of units of its subtree and each label,
// the best score; a message holds the maxima over the node's labels for each number, by the loops of max-product, and
// children are joined by max-plus convolution over the numbers, a vector of labels at a time. Cost per example: with
// s_v nodes below v, sum_v s_v times max-product's work at v, and n^2 K / 2 for joining; a path of n nodes n / 2 times
// max-product, a balanced tree log n times. Nothing is stored for the backward pass but the tables themselves.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "maxmargin/base/loss_units.hpp"
#include "maxmargin/tree/max_product.hpp"

namespace maxmargin::tree {

inline constexpr std::int64_t MOST_ROOM = std::int64_t{1} << 25;  // numbers per thread

// Tables of one example, each (units + 1) x labels, in one vector. Nodes count from the example's first.
struct UnitTables {
    SlackUnits costs;
    std::vector<double> numbers;
    std::vector<std::int64_t> count;             // the most units of a node's subtree
    std::vector<std::int64_t> last, message;     // a node's table with all children, and its message
    std::vector<std::int64_t> before, n_before;  // the parent's table before this child was joined, and its units;
                                                 // of a root, the table of the roots before it
    std::vector<std::int64_t> taken;             // units of a node's subtree in the best output
    std::int64_t total = 0, n_total = 0;         // the table of all roots

    // Lays out the tables; false if the example has other clusters than a forest's, its costs are not multiples of a
    // unit, or the tables would be too large. Costs of edges must be zero.
    bool prepare(const Plan& plan, std::int64_t i, const std::vector<double>& node_costs) {
        const std::int64_t first = plan.nodes[i], n = plan.nodes[i + 1] - first;
        for (std::int64_t v = first; v < first + n; ++v)
            if (!plan.simple[v]) return false;
        if (!costs.measure(node_costs.data(), n, [&](std::int64_t v) { return plan.labels[first + v]; })) return false;
        for (auto* list : {&count, &last, &message, &before, &n_before, &taken})
            list->resize(static_cast<std::size_t>(n));
        std::int64_t size = 1;
        total = n_total = 0;
        for (std::int64_t t = 0; t < n; ++t) {
            const std::int32_t node = plan.order[first + t];
            const std::int64_t v = first + node, k = plan.labels[v];
            count[node] = costs.most[node];
            last[node] = size;
            size += (count[node] + 1) * k;
            for (std::int64_t c = plan.children[v]; c < plan.children[v + 1]; ++c) {
                const std::int32_t child = plan.child[c];
                before[child] = last[node];
                n_before[child] = count[node];
                count[node] += count[child];
                last[node] = size;
                size += (count[node] + 1) * k;
            }
            message[node] = size;
            if (plan.parent[v] >= 0) {
                size += (count[node] + 1) * plan.labels[first + plan.parent[v]];
            } else {
                size += count[node] + 1;
                before[node] = total;
                n_before[node] = n_total;
                n_total += count[node];
                total = size;
                size += n_total + 1;
            }
            if (size > MOST_ROOM) return false;
        }
        at_least(numbers, static_cast<std::size_t>(size));
        numbers[0] = 0.0;
        return true;
    }
};

// out[c + d] = max one[c] + two[d], rows of k labels.
MM_INLINE void join(const double* MM_RESTRICT one, std::int64_t n_one, const double* MM_RESTRICT two,
                    std::int64_t n_two, std::int64_t k, double* MM_RESTRICT out) {
    std::fill(out, out + (n_one + n_two + 1) * k, NEG_INF);
    for (std::int64_t c = 0; c <= n_one; ++c)
        for (std::int64_t d = 0; d <= n_two; ++d) {
            const double* MM_RESTRICT a = one + c * k;
            const double* MM_RESTRICT b = two + d * k;
            double* MM_RESTRICT to = out + (c + d) * k;
            for (std::int64_t x = 0; x < k; ++x) {
                const double sum = a[x] + b[x];
                to[x] = sum > to[x] ? sum : to[x];
            }
        }
}

// All tables, leaves to roots; h holds the scores of single nodes. False if a table holds NaN or +inf.
template <class Vec>
MM_INLINE bool fill_units_at(const Plan& plan, std::int64_t i, const Scores& scores, const double* h,
                             UnitTables& tables) {
    const std::int64_t first = plan.nodes[i], n = plan.nodes[i + 1] - first;
    double* numbers = tables.numbers.data();
    for (std::int64_t t = 0; t < n; ++t) {
        const std::int32_t node = plan.order[first + t];
        const std::int64_t v = first + node, k = plan.labels[v];
        if (tables_refused<Vec>(plan, v, scores)) return false;
        const std::int64_t from = plan.children[v], to = plan.children[v + 1];
        double* own = numbers + (from < to ? tables.before[plan.child[from]] : tables.last[node]);
        std::fill(own, own + (tables.costs.most[node] + 1) * k, NEG_INF);
        for (std::int64_t x = 0; x < k; ++x) own[tables.costs.units[plan.part[v] + x] * k + x] = h[plan.part[v] + x];
        for (std::int64_t c = from; c < to; ++c) {
            const std::int32_t child = plan.child[c];
            double* out = numbers + (c + 1 < to ? tables.before[plan.child[c + 1]] : tables.last[node]);
            join(numbers + tables.before[child], tables.n_before[child], numbers + tables.message[child],
                 tables.count[child], k, out);
        }
        own = numbers + tables.last[node];
        double* out = numbers + tables.message[node];
        if (plan.parent[v] < 0) {
            for (std::int64_t c = 0; c <= tables.count[node]; ++c) out[c] = largest_of<Vec>(own + c * k, k);
            join(numbers + tables.before[node], tables.n_before[node], out, tables.count[node], 1,
                 out + tables.count[node] + 1);  // the table of all roots so far comes next
            continue;
        }
        const Term& term = plan.term[plan.terms[v]];
        const std::int64_t kp = plan.labels[first + plan.parent[v]];
        const bool columns = plan.stride[term.strides] == 1 && term.own == kp;
        for (std::int64_t c = 0; c <= tables.count[node]; ++c) {
            if (columns) column_maxima<Vec>(own + c * k, scores.edges + term.base, k, kp, out + c * kp);
            else row_maxima<Vec>(own + c * k, scores.edges + term.base, kp, k, out + c * kp);
        }
    }
    return true;
}
MM_LEVELS(fill_units)

// How many of `units` belong to the second of two joined tables, for one label.
inline std::int64_t second_share(const double* one, std::int64_t n_one, const double* two, std::int64_t n_two,
                                 std::int64_t k, std::int64_t units) {
    std::int64_t best = std::max<std::int64_t>(0, units - n_one);
    for (std::int64_t d = best + 1; d <= std::min(n_two, units); ++d)
        if (one[(units - d) * k] + two[d * k] > one[(units - best) * k] + two[best * k]) best = d;
    return best;
}

// The labels of the best output of so many units, roots to leaves.
inline void labels_of_units(const Plan& plan, std::int64_t i, const Scores& scores, UnitTables& tables,
                            std::int64_t units, std::int32_t* labels) {
    const std::int64_t first = plan.nodes[i], n = plan.nodes[i + 1] - first;
    const double* numbers = tables.numbers.data();
    for (std::int64_t t = n - 1; t >= 0; --t) {
        const std::int32_t node = plan.order[first + t];
        const std::int64_t v = first + node, k = plan.labels[v], parent = plan.parent[v];
        if (parent < 0) {
            tables.taken[node] = second_share(numbers + tables.before[node], tables.n_before[node],
                                              numbers + tables.message[node], tables.count[node], 1, units);
            units -= tables.taken[node];
        }
        std::int64_t left = tables.taken[node];
        const double* row = numbers + tables.last[node] + left * k;
        const Term* term = parent < 0 ? nullptr : &plan.term[plan.terms[v]];
        const double* table = term ? scores.edges + term->base + plan.stride[term->strides] * labels[parent] : nullptr;
        std::int32_t best = 0;
        double most = NEG_INF;
        for (std::int32_t x = 0; x < k; ++x) {
            const double sum = row[x] + (table ? table[x * term->own] : 0.0);
            if (sum > most) {
                most = sum;
                best = x;
            }
        }
        labels[node] = best;
        for (std::int64_t c = plan.children[v + 1] - 1; c >= plan.children[v]; --c) {
            const std::int32_t child = plan.child[c];
            tables.taken[child] = second_share(numbers + tables.before[child] + best, tables.n_before[child],
                                               numbers + tables.message[child] + best, tables.count[child], k, left);
            left -= tables.taken[child];
        }
    }
}

}  // namespace maxmargin::tree
