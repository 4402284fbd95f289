// Expansion moves for networks whose edges reward equal labels: local search over exponentially many neighbors.
//
// An expansion of label k lets every node keep its label or take k, whichever is best for all nodes together: one
// minimum cut (Boykov, Veksler and Zabih 2001, "Fast approximate energy minimization via graph cuts"). With
// edge scores >= 0 every move is regular, so the cut is exact; two labels need one move from all nodes at label 0.
// Moves are taken in turns until none of the K improves the labeling. Edge scores < 0 count as 0 in the moves, and
// as what they are when a move is judged.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "maxmargin/base/scratch.hpp"
#include "maxmargin/cut/maxflow.hpp"
#include "maxmargin/graph/local_polytope.hpp"

namespace maxmargin::network {

class Expansion {
   public:
    void reserve(const Example<false>& x) {
        flow_solver_.reserve(x.graph.nodes, x.graph.edges);
        for (auto* v : {&node_, &takes_}) at_least(*v, x.graph.nodes);
        for (auto* v : {&capacity_, &flow_}) at_least(*v, x.graph.edges);
        at_least(moved_, x.graph.nodes);
    }

    // Improves the labeling in place; returns its score.
    double run(const Example<false>& x, std::int32_t* label, int most_rounds) {
        double score = score_of(x, label);
        std::int32_t unchanged = 0;
        for (std::int64_t move = 0; unchanged < x.labels && move < std::int64_t{most_rounds} * x.labels; ++move) {
            const auto wanted = static_cast<std::int32_t>(move % x.labels);
            expand(x, label, wanted);
            const double found = score_of(x, moved_.data());
            ++unchanged;
            if (found > score) {
                std::copy_n(moved_.begin(), x.graph.nodes, label);
                score = found;
                unchanged = 1;
            }
        }
        return score;
    }

   private:
    // moved_ = the best labeling in which every node has its label or `wanted`.
    void expand(const Example<false>& x, const std::int32_t* label, std::int32_t wanted) {
        const cut::CutExample& g = x.graph;
        for (std::int32_t i = 0; i < g.nodes; ++i) {
            const double* own = x.node + std::int64_t{i} * x.labels;
            node_[i] = own[wanted] - own[label[i]];
        }
        const auto reward = [&](std::int32_t e, std::int32_t a, std::int32_t b) {
            return a == b ? std::max(0.0, x.edge[std::int64_t{e} * x.labels + a]) : 0.0;
        };
        for (std::int32_t e = 0; e < g.edges; ++e) {
            const std::int32_t i = g.ends[2 * e], j = g.ends[2 * e + 1];
            const double keep = reward(e, label[i], label[j]), second = reward(e, label[i], wanted);
            const double first = reward(e, wanted, label[j]), both = reward(e, wanted, wanted);
            node_[i] += 0.5 * (both + first - keep - second);
            node_[j] += 0.5 * (both + second - keep - first);
            capacity_[e] = std::max(0.0, 0.5 * (keep + both - first - second));
            flow_[e] = 0.0;
        }
        flow_solver_.solve(
            g, node_.data(), [this](std::int32_t e) { return capacity_[e]; }, flow_.data(), takes_.data(),
            20 * (std::int64_t{g.nodes} + 2 * std::int64_t{g.edges}));
        for (std::int32_t i = 0; i < g.nodes; ++i) moved_[i] = takes_[i] > 0.5 ? wanted : label[i];
    }

    cut::MaxFlow flow_solver_;
    std::vector<double> node_, takes_, capacity_, flow_;
    std::vector<std::int32_t> moved_;
};

}  // namespace maxmargin::network
