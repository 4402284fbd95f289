// Minimum cuts with real capacities: max_x sum_j s_j x_j - sum_jk c_jk |x_j - x_k| over 0/1 labels x, c >= 0.
//
// Two search trees grow from the terminals and are repaired after each augmentation (Boykov and Kolmogorov 2004, "An
// experimental comparison of min-cut/max-flow algorithms"). Any flow within the capacities is a start, because what
// it adds to a node is moved to the node's terminal capacity. The trees have no strongly polynomial bound, so after a
// given number of augmentations blocking flows (Dinic 1970) finish the work.
//
// Flow between neighbors of opposite terminals is pushed first, in one pass over the edges, and only nodes that have a
// neighbor to take, which is of the other terminal or of none, begin to grow: on a picture most nodes never do.
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
        at_least(open_, 2 * static_cast<std::size_t>(edges));
        at_least(excess_, nodes);
        at_least(slack_, nodes);
        at_least(tree_, nodes);
        at_least(link_, nodes);
        at_least(queued_, nodes);
        at_least(queue_, static_cast<std::size_t>(nodes) + 1);
        orphans_.reserve(nodes);
        path_.reserve(nodes);
    }

    // capacity(e) is that of edge e. `flow` holds the start and receives the maximum flow (first end to second end); x
    // receives 0/1.
    template <class Capacity>
    void solve(const CutExample& graph, const double* scores, Capacity&& capacity, double* flow, double* x,
               std::int64_t augmentation_limit) {
        graph_ = &graph;
        start(scores, capacity, flow);
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

    // After a warm start the sink tree stays as it is, its roots, until more than a node in so many is the end of an
    // augmenting path: where little has changed, half of the growth is saved.
    static constexpr std::int32_t patience = 30;

    // How a node hangs in its tree: the arc to its parent (or at_terminal, or none), the parent, the last round in
    // which its way to the terminal was known to be whole, and the length of the way then.
    struct Link {
        std::int32_t arc, up, stamp, depth;
    };

    std::int32_t head(std::int32_t arc) const { return graph_->ends[arc ^ 1]; }

    // Residual capacities and what is left at the nodes, after pushes between neighbors.
    template <class Capacity>
    void start(const double* scores, Capacity&& capacity, const double* flow) {
        const CutExample& g = *graph_;
        warm_ = !std::all_of(flow, flow + g.edges, [](double f) { return f == 0.0; });
        for (std::int32_t j = 0; j < g.nodes; ++j) {
            excess_[j] = scores[j];
            slack_[j] = rounding * std::abs(scores[j]);
        }
        std::fill(open_.begin(), open_.begin() + 2 * static_cast<std::ptrdiff_t>(g.edges), std::uint8_t{3});
        if (!warm_) {
            for (std::int32_t e = 0; e < g.edges; ++e) {
                residual_[2 * e] = residual_[2 * e + 1] = capacity(e);
                push_between_ends(e);
            }
            return;
        }
        for (std::int32_t e = 0; e < g.edges; ++e) {
            const double c = capacity(e);
            const double f = flow[e] > c ? c : flow[e] >= -c ? flow[e] : flow[e] < -c ? -c : 0.0;
            const std::int32_t i = g.ends[2 * e], j = g.ends[2 * e + 1];
            const double ahead = c - f, behind = c + f;
            residual_[2 * e] = ahead <= rounding * c ? 0.0 : ahead;
            residual_[2 * e + 1] = behind <= rounding * c ? 0.0 : behind;
            excess_[i] -= f;
            excess_[j] += f;
            slack_[i] += rounding * c;
            slack_[j] += rounding * c;
        }
        // A node that a former call has left with rounding errors only has no excess.
        for (std::int32_t j = 0; j < g.nodes; ++j)
            if (std::abs(excess_[j]) <= 16.0 * slack_[j]) excess_[j] = 0.0;
        for (std::int32_t e = 0; e < g.edges; ++e) push_between_ends(e);
    }

    // Flow from a source's node to a neighbor of the sink's, as much as there is room for.
    void push_between_ends(std::int32_t e) {
        const std::int32_t i = graph_->ends[2 * e], j = graph_->ends[2 * e + 1];
        const double a = excess_[i], b = excess_[j];
        if (!(a * b < 0.0)) return;
        const std::int32_t arc = a > 0.0 ? 2 * e : 2 * e + 1;
        const double amount = std::min({std::abs(a), std::abs(b), residual_[arc]});
        move(arc, amount);
        take_excess(i, a > 0.0 ? amount : -amount);
        take_excess(j, a > 0.0 ? -amount : amount);
    }

    // Pushes flow along an arc; true if the arc has no capacity left.
    bool move(std::int32_t arc, double amount) {
        const double left = residual_[arc] - amount, back = residual_[arc ^ 1] + amount;
        const bool full = left <= rounding * (left + back);
        residual_[arc] = full ? 0.0 : left;
        residual_[arc ^ 1] = back;
        return full;
    }
    // The same, and notes which arcs are open.
    bool take(std::int32_t arc, double amount) {
        const bool first = residual_[arc ^ 1] == 0.0, full = move(arc, amount);
        if (first || full) note(arc);
        return full;
    }
    void note(std::int32_t arc) {
        const int ahead = residual_[arc] > 0.0, behind = residual_[arc ^ 1] > 0.0;
        open_[graph_->places[arc]] = static_cast<std::uint8_t>(ahead | behind << 1);
        open_[graph_->places[arc ^ 1]] = static_cast<std::uint8_t>(behind | ahead << 1);
    }
    void take_excess(std::int32_t node, double signed_amount) {
        excess_[node] -= signed_amount;
        if (std::abs(excess_[node]) <= slack_[node]) excess_[node] = 0.0;
    }

    // --- search trees -------------------------------------------------------------------------------------------

    void activate(std::int32_t node) {
        if (queued_[node]) {
            again_ = again_ || node == growing_;
            return;
        }
        queued_[node] = 1;
        queue_[tail_] = node;
        tail_ = tail_ + 1 == queue_.size() ? 0 : tail_ + 1;
    }

    // The arc that must have residual capacity for `node` to hang on its parent.
    std::int32_t feed(std::int32_t node) const { return link_[node].arc ^ (tree_[node] == source); }

    // Nodes with an excess are the roots; those with an open arc to a node of another kind begin to grow.
    void plant() {
        const CutExample& g = *graph_;
        first_ = tail_ = 0;
        time_ = 0;
        growing_ = none;
        for (std::int32_t j = 0; j < g.nodes; ++j) {
            queued_[j] = 0;
            const bool root = excess_[j] != 0.0;
            tree_[j] = excess_[j] > 0.0 ? source : root ? sink : loose;
            link_[j] = {root ? at_terminal : none, none, 0, 1};
        }
        for (std::int32_t e = 0; e < g.edges; ++e) {
            const std::int32_t i = g.ends[2 * e], j = g.ends[2 * e + 1];
            const bool ahead = residual_[2 * e] > 0.0, behind = residual_[2 * e + 1] > 0.0;
            if (!ahead || !behind) note(2 * e);
            if (tree_[i] == tree_[j]) continue;
            if (tree_[i] == source ? ahead : tree_[i] == sink && behind && !warm_) queued_[i] = 1;
            if (tree_[j] == source ? behind : tree_[j] == sink && ahead && !warm_) queued_[j] = 1;
        }
        // In the order of nodes, so that those that lie near each other in memory have their turns together.
        for (std::int32_t j = 0; j < g.nodes; ++j) {
            queue_[tail_] = j;
            tail_ += queued_[j];
        }
    }

    std::int32_t waiting(std::size_t ahead) const {
        const std::size_t at = first_ + ahead;
        return queue_[at < queue_.size() ? at : at - queue_.size()];
    }
    // Nodes of the queue lie anywhere in memory, so what they need is fetched before their turn.
    void look_ahead() const {
        const CutExample& g = *graph_;
        const std::size_t length = tail_ >= first_ ? tail_ - first_ : tail_ + queue_.size() - first_;
        if (length <= 12) return;
        __builtin_prefetch(g.start + waiting(12));
        const std::int32_t soon = waiting(8);
        const std::int32_t at = g.first_arc(soon);
        __builtin_prefetch(g.heads + at);
        __builtin_prefetch(g.arcs + at);
        __builtin_prefetch(open_.data() + at);
        __builtin_prefetch(link_.data() + soon);
        const std::int32_t next = waiting(4), begin = g.first_arc(next), end = g.first_arc(next + 1);
        for (std::int32_t r = begin; r < end; ++r) {
            __builtin_prefetch(link_.data() + g.heads[r]);
            __builtin_prefetch(tree_.data() + g.heads[r]);
        }
    }

    // Lets the sink tree grow.
    void wake_sinks() {
        const CutExample& g = *graph_;
        for (std::int32_t j = 0; j < g.nodes; ++j) {
            if (tree_[j] != sink) continue;
            for (std::int32_t r = g.first_arc(j), end = g.first_arc(j + 1); r < end; ++r)
                if ((open_[r] & 2) && tree_[g.heads[r]] != sink) {
                    activate(j);
                    break;
                }
        }
    }

    bool grow_trees(std::int64_t limit) {
        plant();
        const CutExample& g = *graph_;
        std::int64_t augmentations = 0;
        while (first_ != tail_) {
            const std::int32_t node = growing_ = queue_[first_];
            // The node stays in the queue while it finds paths; it leaves when its arcs bring no more.
            std::int32_t next = g.first_arc(node);
            again_ = false;
            look_ahead();
            while (tree_[node] != loose) {
                const std::int32_t meeting = grow(node, next);
                if (meeting == none) break;
                if (augmentations++ >= limit) return false;
                if (warm_ && augmentations == g.nodes / patience) wake_sinks();
                augment(meeting);
                adopt();
                if (again_) {
                    next = g.first_arc(node);
                    again_ = false;
                }
            }
            queued_[node] = 0;
            growing_ = none;
            first_ = first_ + 1 == queue_.size() ? 0 : first_ + 1;
        }
        return true;
    }

    // Returns an arc from the source tree to the sink tree, or `none` when the node has taken all it can. `next`: the
    // place of the arc to look at first, or again.
    std::int32_t grow(std::int32_t node, std::int32_t& next) {
        const CutExample& g = *graph_;
        const std::int8_t side = tree_[node];
        const std::int32_t flip = side == source ? 0 : 1, outward = 1 << flip;
        const std::int32_t stamp = link_[node].stamp, depth = link_[node].depth;
        for (const std::int32_t end = g.first_arc(node + 1); next < end; ++next) {
            if (!(open_[next] & outward)) continue;
            const std::int32_t other = g.heads[next];
            if (tree_[other] == loose) {
                tree_[other] = side;
                link_[other] = {g.arcs[next] ^ 1, node, stamp, depth + 1};
                activate(other);
            } else if (tree_[other] != side) {
                return g.arcs[next] ^ flip;
            } else if (link_[other].stamp <= stamp && link_[other].depth > depth + 1 && link_[other].arc >= 0) {
                link_[other] = {g.arcs[next] ^ 1, node, stamp, depth + 1};
            }
        }
        return none;
    }

    void augment(std::int32_t meeting) {
        double amount = residual_[meeting];
        std::int32_t root[2];
        for (int side = 0; side < 2; ++side) {
            std::int32_t node = side == 0 ? graph_->ends[meeting] : head(meeting);
            while (link_[node].arc != at_terminal) {
                amount = std::min(amount, residual_[feed(node)]);
                node = link_[node].up;
            }
            amount = std::min(amount, std::abs(excess_[node]));
            root[side] = node;
        }
        ++time_;
        take(meeting, amount);
        for (int side = 0; side < 2; ++side) {
            std::int32_t node = side == 0 ? graph_->ends[meeting] : head(meeting);
            while (link_[node].arc != at_terminal) {
                const std::int32_t up = link_[node].up;
                if (take(feed(node), amount)) make_orphan(node);
                node = up;
            }
            take_excess(root[side], side == 0 ? amount : -amount);
            if (excess_[root[side]] == 0.0) make_orphan(root[side]);
        }
    }

    void make_orphan(std::int32_t node) {
        link_[node].arc = none;
        orphans_.push_back(node);
    }

    // Length of the way from a node to its terminal, or -1 if it passes an orphan. Nodes on the way are stamped, so
    // that walks of the same round stop early.
    std::int32_t distance(std::int32_t node) {
        std::int32_t steps = 0, at = node;
        while (link_[at].stamp != time_) {
            Link& link = link_[at];
            if (link.arc == none) return -1;
            if (link.arc == at_terminal) {
                link.stamp = time_;
                link.depth = 1;
                break;
            }
            ++steps;
            at = link.up;
        }
        std::int32_t depth = steps + link_[at].depth;
        const std::int32_t result = depth;
        for (at = node; link_[at].stamp != time_; at = link_[at].up) {
            link_[at].stamp = time_;
            link_[at].depth = depth--;
        }
        return result;
    }

    void adopt() {
        const CutExample& g = *graph_;
        for (std::size_t next = 0; next < orphans_.size(); ++next) {
            const std::int32_t node = orphans_[next];
            const std::int8_t side = tree_[node];
            const std::int32_t inward = side == source ? 2 : 1;
            std::int32_t best = none, parent = none, best_depth = std::numeric_limits<std::int32_t>::max();
            const std::int32_t begin = g.first_arc(node), end = g.first_arc(node + 1);
            for (std::int32_t i = begin; i < end; ++i) {
                const std::int32_t other = g.heads[i];
                if (tree_[other] != side || !(open_[i] & inward)) continue;
                const std::int32_t depth = distance(other);
                if (depth >= 0 && depth < best_depth) {
                    best = g.arcs[i];
                    parent = other;
                    best_depth = depth;
                }
            }
            if (best != none) {
                link_[node] = {best, parent, time_, best_depth + 1};
                continue;
            }
            for (std::int32_t i = begin; i < end; ++i) {
                const std::int32_t other = g.heads[i];
                if (tree_[other] != side) continue;
                if (open_[i] & inward) activate(other);
                if (link_[other].arc >= 0 && link_[other].up == node) make_orphan(other);
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
                link_[j].arc = g.first_arc(j);  // the arc to try next
                tree_[j] = excess_[j] > 0.0 ? source : loose;
                link_[j].depth = 0;
                if (tree_[j] == source) queue_[last++] = j;
            }
            while (first < last) {
                const std::int32_t node = queue_[first++];
                reached = reached || excess_[node] < 0.0;
                for (std::int32_t i = g.first_arc(node), end = g.first_arc(node + 1); i < end; ++i) {
                    const std::int32_t arc = g.arcs[i], other = head(arc);
                    if (tree_[other] != loose || !(residual_[arc] > 0.0)) continue;
                    tree_[other] = source;
                    link_[other].depth = link_[node].depth + 1;
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
            for (std::int32_t& next = link_[node].arc; next < end; ++next) {
                const std::int32_t arc = g.arcs[next], other = head(arc);
                if (residual_[arc] > 0.0 && link_[other].depth == link_[node].depth + 1 && tree_[other] == source) {
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
            ++link_[node].arc;
        }
        double amount = std::min(excess_[root], -excess_[node]);
        for (const std::int32_t arc : path_) amount = std::min(amount, residual_[arc]);
        for (const std::int32_t arc : path_) take(arc, amount);
        take_excess(root, amount);
        take_excess(node, -amount);
        return true;
    }

    const CutExample* graph_ = nullptr;
    std::vector<double> residual_, excess_, slack_;
    std::vector<std::int8_t> tree_, queued_;
    std::vector<std::uint8_t> open_;  // by place: 1 if the arc has capacity left, plus 2 if its reverse has
    std::vector<Link> link_;
    std::vector<std::int32_t> queue_, orphans_, path_;
    std::size_t first_ = 0, tail_ = 0;
    std::int32_t time_ = 0, growing_ = none;
    bool warm_ = false, again_ = false;
};

}  // namespace maxmargin::cut
