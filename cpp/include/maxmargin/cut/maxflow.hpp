// Minimum cuts with real capacities: max_x sum_j s_j x_j - sum_jk c_jk |x_j - x_k| over 0/1 labels x, c >= 0.
//
// Two search trees grow from the terminals and are repaired after each augmentation (Boykov and Kolmogorov 2004, "An
// experimental comparison of min-cut/max-flow algorithms"). Any flow within the capacities is a start, because what
// it adds to a node is moved to the node's terminal capacity. The trees have no strongly polynomial bound, so after a
// given number of augmentations blocking flows (Dinic 1970) finish the work.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "maxmargin/base/scratch.hpp"
#include "maxmargin/cut/graph.hpp"

namespace maxmargin::cut {

class MaxFlow {
   public:
    void reserve(std::int32_t nodes, std::int32_t edges) {
        at_least(residual_, 2 * static_cast<std::size_t>(edges));
        at_least(excess_, nodes);
        at_least(slack_, nodes);
        at_least(tree_, nodes);
        at_least(parent_, nodes);
        at_least(stamp_, nodes);
        at_least(depth_, nodes);
        at_least(queued_, nodes);
        at_least(queue_, static_cast<std::size_t>(nodes) + 1);
        orphans_.reserve(nodes);
        path_.reserve(nodes);
    }

    // `flow` holds the start and receives the maximum flow (first end to second end); x receives 0/1.
    void solve(const CutExample& graph, const double* scores, const double* capacity, double* flow, double* x,
               std::int64_t augmentation_limit) {
        graph_ = &graph;
        capacity_ = capacity;
        start(scores, flow);
        if (!grow_trees(augmentation_limit)) blocking_flows();
        for (std::int32_t e = 0; e < graph.edges; ++e) flow[e] = 0.5 * (residual_[2 * e + 1] - residual_[2 * e]);
        for (std::int32_t j = 0; j < graph.nodes; ++j) x[j] = tree_[j] == source ? 1.0 : 0.0;
    }

   private:
    static constexpr std::int8_t loose = 0, source = 1, sink = 2;
    static constexpr std::int32_t at_terminal = -1, none = -2;
    // A residual capacity below this fraction of the capacity counts as zero. The cut is then optimal
    // up to rounding in the sum of the scores, and no path carries a flow of rounding errors only.
    static constexpr double rounding = 4 * std::numeric_limits<double>::epsilon();

    std::int32_t head(std::int32_t arc) const { return graph_->ends[arc ^ 1]; }

    void start(const double* scores, const double* flow) {
        const CutExample& g = *graph_;
        for (std::int32_t j = 0; j < g.nodes; ++j) {
            excess_[j] = scores[j];
            slack_[j] = std::abs(scores[j]);
        }
        for (std::int32_t e = 0; e < g.edges; ++e) {
            const double c = capacity_[e];
            const double f = flow[e] > c ? c : flow[e] >= -c ? flow[e] : flow[e] < -c ? -c : 0.0;
            residual_[2 * e] = c - f;
            residual_[2 * e + 1] = c + f;
            excess_[g.ends[2 * e]] -= f;
            excess_[g.ends[2 * e + 1]] += f;
            slack_[g.ends[2 * e]] += c;
            slack_[g.ends[2 * e + 1]] += c;
        }
        for (std::int32_t j = 0; j < g.nodes; ++j) {
            slack_[j] *= rounding;
            if (std::abs(excess_[j]) <= slack_[j]) excess_[j] = 0.0;
        }
    }

    void take(std::int32_t arc, double amount) {
        residual_[arc] -= amount;
        residual_[arc ^ 1] += amount;
        if (residual_[arc] <= 2 * rounding * capacity_[arc >> 1]) residual_[arc] = 0.0;
    }
    void take_excess(std::int32_t node, double signed_amount) {
        excess_[node] -= signed_amount;
        if (std::abs(excess_[node]) <= slack_[node]) excess_[node] = 0.0;
    }

    // --- search trees -------------------------------------------------------------------------------------------

    void activate(std::int32_t node) {
        if (queued_[node]) return;
        queued_[node] = 1;
        queue_[tail_] = node;
        tail_ = tail_ + 1 == queue_.size() ? 0 : tail_ + 1;
    }

    // The arc that must have residual capacity for `node` to hang on its parent.
    std::int32_t link(std::int32_t node) const { return tree_[node] == source ? parent_[node] ^ 1 : parent_[node]; }

    bool grow_trees(std::int64_t limit) {
        const CutExample& g = *graph_;
        first_ = tail_ = 0;
        time_ = 0;
        for (std::int32_t j = 0; j < g.nodes; ++j) {
            queued_[j] = 0;
            stamp_[j] = 0;
            depth_[j] = 1;
            parent_[j] = none;
            tree_[j] = loose;
        }
        for (std::int32_t j = 0; j < g.nodes; ++j) {
            if (excess_[j] == 0.0) continue;
            tree_[j] = excess_[j] > 0.0 ? source : sink;
            parent_[j] = at_terminal;
            activate(j);
        }
        std::int64_t augmentations = 0;
        while (first_ != tail_) {
            const std::int32_t node = queue_[first_];
            // The node stays in the queue while it finds paths; it leaves when its arcs bring no more.
            std::int32_t meeting = none;
            if (tree_[node] != loose) meeting = grow(node);
            if (meeting == none) {
                queued_[node] = 0;
                first_ = first_ + 1 == queue_.size() ? 0 : first_ + 1;
                continue;
            }
            if (augmentations++ >= limit) return false;
            augment(meeting);
            adopt();
        }
        return true;
    }

    // Returns an arc from the source tree to the sink tree, or `none` when the node has taken all it can.
    std::int32_t grow(std::int32_t node) {
        const CutExample& g = *graph_;
        const std::int8_t side = tree_[node];
        const std::int32_t flip = side == source ? 0 : 1;
        for (std::int32_t i = g.first_arc(node), end = g.first_arc(node + 1); i < end; ++i) {
            const std::int32_t arc = g.arcs[i];
            if (!(residual_[arc ^ flip] > 0.0)) continue;
            const std::int32_t other = head(arc);
            if (tree_[other] == loose) {
                tree_[other] = side;
                parent_[other] = arc ^ 1;
                stamp_[other] = stamp_[node];
                depth_[other] = depth_[node] + 1;
                activate(other);
            } else if (tree_[other] != side) {
                return arc ^ flip;
            } else if (stamp_[other] <= stamp_[node] && depth_[other] > depth_[node] + 1 && parent_[other] >= 0) {
                parent_[other] = arc ^ 1;
                stamp_[other] = stamp_[node];
                depth_[other] = depth_[node] + 1;
            }
        }
        return none;
    }

    void augment(std::int32_t meeting) {
        double amount = residual_[meeting];
        std::int32_t root[2];
        for (int side = 0; side < 2; ++side) {
            std::int32_t node = side == 0 ? graph_->ends[meeting] : head(meeting);
            while (parent_[node] != at_terminal) {
                amount = std::min(amount, residual_[link(node)]);
                node = head(parent_[node]);
            }
            amount = std::min(amount, std::abs(excess_[node]));
            root[side] = node;
        }
        ++time_;
        take(meeting, amount);
        for (int side = 0; side < 2; ++side) {
            std::int32_t node = side == 0 ? graph_->ends[meeting] : head(meeting);
            while (parent_[node] != at_terminal) {
                const std::int32_t arc = link(node);
                const std::int32_t up = head(parent_[node]);
                take(arc, amount);
                if (residual_[arc] == 0.0) make_orphan(node);
                node = up;
            }
            take_excess(root[side], side == 0 ? amount : -amount);
            if (excess_[root[side]] == 0.0) make_orphan(root[side]);
        }
    }

    void make_orphan(std::int32_t node) {
        parent_[node] = none;
        orphans_.push_back(node);
    }

    // Length of the way from a node to its terminal, or -1 if it passes an orphan. Nodes on the way are stamped, so
    // that walks of the same round stop early.
    std::int32_t distance(std::int32_t node) {
        std::int32_t steps = 0, at = node;
        while (stamp_[at] != time_) {
            if (parent_[at] == none) return -1;
            if (parent_[at] == at_terminal) {
                stamp_[at] = time_;
                depth_[at] = 1;
                break;
            }
            ++steps;
            at = head(parent_[at]);
        }
        std::int32_t depth = steps + depth_[at];
        const std::int32_t result = depth;
        for (at = node; stamp_[at] != time_; at = head(parent_[at])) {
            stamp_[at] = time_;
            depth_[at] = depth--;
        }
        return result;
    }

    void adopt() {
        const CutExample& g = *graph_;
        for (std::size_t next = 0; next < orphans_.size(); ++next) {
            const std::int32_t node = orphans_[next];
            const std::int8_t side = tree_[node];
            const std::int32_t flip = side == source ? 1 : 0;
            std::int32_t best = none, best_depth = std::numeric_limits<std::int32_t>::max();
            const std::int32_t begin = g.first_arc(node), end = g.first_arc(node + 1);
            for (std::int32_t i = begin; i < end; ++i) {
                const std::int32_t arc = g.arcs[i], other = head(arc);
                if (tree_[other] != side || !(residual_[arc ^ flip] > 0.0)) continue;
                const std::int32_t depth = distance(other);
                if (depth >= 0 && depth < best_depth) {
                    best = arc;
                    best_depth = depth;
                }
            }
            if (best != none) {
                parent_[node] = best;
                stamp_[node] = time_;
                depth_[node] = best_depth + 1;
                continue;
            }
            for (std::int32_t i = begin; i < end; ++i) {
                const std::int32_t arc = g.arcs[i], other = head(arc);
                if (tree_[other] != side) continue;
                if (residual_[arc ^ flip] > 0.0) activate(other);
                if (parent_[other] >= 0 && head(parent_[other]) == node) make_orphan(other);
            }
            tree_[node] = loose;
        }
        orphans_.clear();
    }

    // --- blocking flows -----------------------------------------------------------------------------------------

    // Leaves tree_ = source exactly on the nodes that residual capacity reaches from the source.
    void blocking_flows() {
        const CutExample& g = *graph_;
        orphans_.clear();
        for (;;) {
            std::size_t first = 0, last = 0;
            bool reached = false;
            for (std::int32_t j = 0; j < g.nodes; ++j) {
                parent_[j] = g.first_arc(j);  // the arc to try next
                tree_[j] = excess_[j] > 0.0 ? source : loose;
                depth_[j] = 0;
                if (tree_[j] == source) queue_[last++] = j;
            }
            while (first < last) {
                const std::int32_t node = queue_[first++];
                reached = reached || excess_[node] < 0.0;
                for (std::int32_t i = g.first_arc(node), end = g.first_arc(node + 1); i < end; ++i) {
                    const std::int32_t arc = g.arcs[i], other = head(arc);
                    if (tree_[other] != loose || !(residual_[arc] > 0.0)) continue;
                    tree_[other] = source;
                    depth_[other] = depth_[node] + 1;
                    queue_[last++] = other;
                }
            }
            if (!reached) return;
            for (std::int32_t j = 0; j < g.nodes; ++j) {
                while (excess_[j] > 0.0 && push_from(j)) {
                }
            }
        }
    }

    // One augmenting path of the level graph out of `root`; false if there is none left.
    bool push_from(std::int32_t root) {
        const CutExample& g = *graph_;
        path_.clear();
        std::int32_t node = root;
        while (!(excess_[node] < 0.0)) {
            const std::int32_t end = g.first_arc(node + 1);
            bool advanced = false;
            for (; parent_[node] < end; ++parent_[node]) {
                const std::int32_t arc = g.arcs[parent_[node]], other = head(arc);
                if (residual_[arc] > 0.0 && depth_[other] == depth_[node] + 1 && tree_[other] == source) {
                    path_.push_back(arc);
                    node = other;
                    advanced = true;
                    break;
                }
            }
            if (advanced) continue;
            if (path_.empty()) return false;
            node = g.ends[path_.back()];
            path_.pop_back();
            ++parent_[node];
        }
        double amount = std::min(excess_[root], -excess_[node]);
        for (const std::int32_t arc : path_) amount = std::min(amount, residual_[arc]);
        for (const std::int32_t arc : path_) take(arc, amount);
        take_excess(root, amount);
        take_excess(node, -amount);
        return true;
    }

    const CutExample* graph_ = nullptr;
    const double* capacity_ = nullptr;
    std::vector<double> residual_, excess_, slack_;
    std::vector<std::int8_t> tree_, queued_;
    std::vector<std::int32_t> parent_, stamp_, depth_, queue_, orphans_, path_;
    std::size_t first_ = 0, tail_ = 0;
    std::int32_t time_ = 0;
};

}  // namespace maxmargin::cut
