// Message passing on the dual bound (4) of graph/local_polytope.hpp, and local search for labelings.
//
// A pass visits the nodes in order. Each takes from the edges to nodes visited before it all they can give, keeps what
// it needs and hands the rest in equal shares to the edges to nodes that come later: sequential tree-reweighted message
// passing (Kolmogorov 2006, "Convergent tree-reweighted message passing for energy minimization"). Passes go forward
// and backward by turns, cost O(parts of edges) each, and never raise the bound, which is known at the end of each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "maxmargin/base/scratch.hpp"
#include "maxmargin/graph/local_polytope.hpp"

namespace maxmargin::network {

template <bool table>
class Messages {
   public:
    void reserve(const Example<table>& x) {
        at_least(total_, x.labels);
        at_least(taken_, x.labels);
        at_least(decode_, x.labels);
        at_least(label, x.graph.nodes);
    }

    // Multipliers that a pass can start from, out of any numbers.
    static void admit(const Example<table>& x, double* m) {
        if constexpr (table) {
            for (std::int64_t p = 0; p < x.multipliers(); ++p)
                if (!(std::abs(m[p]) < 1e100)) m[p] = 0.0;
        } else {
            // The ends share the whole score of an edge, so that the edge itself is left with zero.
            for (std::int32_t e = 0; e < x.graph.edges; ++e) {
                double* mi = m + 2 * std::int64_t{e} * x.labels;
                for (std::int32_t k = 0; k < x.labels; ++k) {
                    const double most = std::max(0.0, x.edge[e * x.edge_size() + k]);
                    mi[k] = mi[k] > most ? most : mi[k] > 0.0 ? mi[k] : 0.0;
                    mi[x.labels + k] = most - mi[k];
                }
            }
        }
    }

    // One pass; `first`: m comes from elsewhere, so that edges to later nodes may have something to give as well.
    // Returns the bound. `label` becomes a labeling that was decoded on the way.
    double pass(const Example<table>& x, bool forward, bool first, double* m) {
        return with_labels(x.labels, [&](const auto n) { return pass(n, x, forward, first, m); });
    }

    // Changes of single nodes until none helps: iterated conditional modes. Every change raises the score.
    void improve(const Example<table>& x, std::int32_t* labels, int most_rounds) {
        const std::int32_t n = x.labels;
        const cut::CutExample& g = x.graph;
        bool changed = true;
        for (int round = 0; changed && round < most_rounds; ++round) {
            changed = false;
            for (std::int32_t i = 0; i < g.nodes; ++i) {
                std::copy_n(x.node + std::int64_t{i} * n, n, total_.begin());
                for (std::int32_t r = g.first_arc(i); r < g.first_arc(i + 1); ++r) {
                    const std::int32_t arc = g.arcs[r], there = labels[g.ends[arc ^ 1]];
                    for (std::int32_t k = 0; k < n; ++k)
                        total_[k] += edge_score(x, arc >> 1, arc & 1 ? there : k, arc & 1 ? k : there);
                }
                const auto best =
                    static_cast<std::int32_t>(std::max_element(total_.begin(), total_.begin() + n) - total_.begin());
                if (total_[best] > total_[labels[i]]) {
                    labels[i] = best;
                    changed = true;
                }
            }
        }
    }

    std::vector<std::int32_t> label;

   private:
    template <class Count>
    double pass(const Count n, const Example<table>& x, bool forward, bool first, double* m) {
        const cut::CutExample& g = x.graph;
        double bound = 0.0;
        for (std::int32_t step = 0; step < g.nodes; ++step) {
            const std::int32_t i = forward ? step : g.nodes - 1 - step;
            const std::int32_t begin = g.first_arc(i), end = g.first_arc(i + 1);
            std::copy_n(x.node + std::int64_t{i} * n, n, total_.begin());
            std::copy_n(x.node + std::int64_t{i} * n, n, decode_.begin());
            std::int32_t before = 0;
            for (std::int32_t r = begin; r < end; ++r) {
                const std::int32_t arc = g.arcs[r], other = g.ends[arc ^ 1];
                const bool seen = forward ? other < i : other > i;
                before += seen;
                double* own = m + std::int64_t{arc} * n;
                if (table && (seen || first)) pull(n, x, arc, m);
                for (std::int32_t k = 0; k < n; ++k) total_[k] += own[k];
                if (seen) {
                    const std::int32_t there = label[other];
                    for (std::int32_t k = 0; k < n; ++k)
                        decode_[k] += edge_score(x, arc >> 1, arc & 1 ? there : k, arc & 1 ? k : there);
                } else {
                    for (std::int32_t k = 0; k < n; ++k) decode_[k] += own[k];
                }
            }
            const std::int32_t after = end - begin - before;
            const double share = after ? 1.0 / std::max(before, after) : 0.0;
            const double best = *std::max_element(total_.begin(), total_.begin() + n);
            label[i] =
                static_cast<std::int32_t>(std::max_element(decode_.begin(), decode_.begin() + n) - decode_.begin());
            for (std::int32_t r = begin; r < end; ++r) {
                const std::int32_t arc = g.arcs[r], other = g.ends[arc ^ 1];
                if (forward ? other < i : other > i) continue;
                double* own = m + std::int64_t{arc} * n;
                if constexpr (table) {
                    for (std::int32_t k = 0; k < n; ++k) own[k] += share * (best - total_[k]);
                } else {
                    // Labels that are not the best take from the other end what they can without becoming the best.
                    // The part common to all labels goes to the other end, which may then lose more of any one label.
                    double* theirs = m + std::int64_t{arc ^ 1} * n;
                    double common = std::numeric_limits<double>::infinity();
                    for (std::int32_t k = 0; k < n; ++k) {
                        taken_[k] = own[k] + share * (best - total_[k]);
                        common = std::min(common, taken_[k]);
                    }
                    for (std::int32_t k = 0; k < n; ++k) {
                        const double both = own[k] + theirs[k];
                        own[k] = std::min(taken_[k] - common, both);
                        theirs[k] = both - own[k];
                    }
                    bound -= common;
                }
            }
            bound += best;  // which is handed on to no edge, so that numbers do not grow along the way
        }
        return bound;
    }

    // Gives the tail of an arc the best of its edge for every label.
    template <class Count>
    void pull(const Count n, const Example<table>& x, std::int32_t arc, double* m) {
        const double* score = x.edge + (arc >> 1) * x.edge_size();
        double* own = m + std::int64_t{arc} * n;
        const double* theirs = m + std::int64_t{arc ^ 1} * n;
        if (arc & 1) {
            for (std::int32_t k = 0; k < n; ++k) taken_[k] = score[k] - theirs[0];
            for (std::int32_t a = 1; a < n; ++a)
                for (std::int32_t k = 0; k < n; ++k) {
                    const double found = score[a * n + k] - theirs[a];
                    taken_[k] = found > taken_[k] ? found : taken_[k];
                }
        } else {
            for (std::int32_t k = 0; k < n; ++k) {
                double best = score[k * n] - theirs[0];
                for (std::int32_t b = 1; b < n; ++b) {
                    const double found = score[k * n + b] - theirs[b];
                    best = found > best ? found : best;
                }
                taken_[k] = best;
            }
        }
        std::copy_n(taken_.begin(), n, own);
    }

    std::vector<double> total_, taken_, decode_;
};

}  // namespace maxmargin::network
