// Maximum-weight bipartite b-matching on lists of edges, with any capacities: the general case of matching/argmax.hpp.
//
// Only edges of positive weight matter. A node with no more of them than its capacity is *idle*: its constraint never
// binds. Edges between two idle nodes are taken at once, so that the rest of the work is about nodes where edges
// compete. There rows enter one unit of capacity at a time along a shortest path in reduced costs c_jk - u_j - v_k >= 0
// (c = -w; <= 0 on edges taken), which ends at a column with room or at a row that gives up one edge or stays out.
// Potentials: u_j <= 0, v_k <= 0, v_k = 0 while column k has room. Most units find a column with room next to their
// row; the others search (Dijkstra), never beyond the best end known so far. Cost per example: O(edges) and for each
// unit at most O(edges log edges), by a heap, or on up to kFew nodes O(edges + nodes^2) by looking through the open
// nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "maxmargin/matching/batch.hpp"

namespace maxmargin::matching {

constexpr double kFar = std::numeric_limits<double>::infinity();

class ListMatcher {
   public:
    explicit ListMatcher(const Batch& batch) {
        const std::int64_t edges = most_edges(batch) + 1;
        const std::int64_t nodes = largest_of(batch, [](const Example& ex) { return ex.n_left + ex.n_right; }) + 1;
        for (auto* list : {&from_, &to_, &edge_, &head_, &tail_, &origin_, &mates_}) list->resize(edges);
        for (auto* list : {&weight_, &cost_, &open_cost_}) list->resize(edges);
        taken_.resize(edges);
        for (auto* list : {&degree_, &start_, &mate_start_, &n_mates_, &parent_}) list->resize(nodes);
        for (auto* list : {&price_, &label_}) list->resize(nodes);
        room_.resize(nodes);
        state_.resize(nodes);
    }

    // z is zero on entry, scores are finite.
    void solve(const Example& ex, const double* scores, double* z, double* value) {
        const std::int32_t m = positive_edges(ex, scores);
        rows_ = static_cast<std::int32_t>(ex.n_left);
        if (competing_edges(ex, m) > 0) {
            lay_out(ex);
            for (std::int32_t row = 0; row < rows_; ++row) {
                const std::int64_t units = std::min<std::int64_t>(ex.left_capacity[row], start_[row + 1] - start_[row]);
                for (std::int64_t unit = 0; unit < units; ++unit)
                    if (!send(row)) break;
            }
            for (std::int32_t s = 0; s < start_[rows_]; ++s) taken_[origin_[s]] = open_cost_[s] < kFar ? 0 : 1;
        }
        double sum = 0;
        for (std::int32_t t = 0; t < m; ++t) {
            if (!taken_[t]) continue;
            z[edge_[t]] = 1;
            sum += weight_[t];
        }
        *value = sum;
    }

   private:
    static constexpr std::int64_t kFew = 128;
    enum State : std::uint8_t { kUnseen = 0, kOpen, kDone };

    // Edges of positive weight between nodes that have capacity, in order.
    std::int32_t positive_edges(const Example& ex, const double* scores) {
        std::int32_t m = 0;
        auto add = [&](std::int64_t e, std::int32_t left, std::int32_t right) {
            from_[m] = left;
            to_[m] = right;
            edge_[m] = static_cast<std::int32_t>(e);
            weight_[m] = scores[e];
            m += (scores[e] > 0) & (ex.left_capacity[left] > 0) & (ex.right_capacity[right] > 0);
        };
        if (ex.ends) {
            for (std::int64_t e = 0; e < ex.n_edges; ++e) add(e, ex.ends[2 * e], ex.ends[2 * e + 1]);
        } else if (ex.full()) {
            std::int64_t e = 0;
            for (std::int32_t left = 0; left < ex.n_left; ++left)
                for (std::int32_t right = 0; right < ex.n_right; ++right, ++e) add(e, left, right);
        }
        return m;
    }

    // Takes the edges between idle nodes; the others become slots, by row. Returns how many.
    std::int32_t competing_edges(const Example& ex, std::int32_t m) {
        std::int32_t* of_right = degree_.data() + ex.n_left;
        std::fill(degree_.begin(), degree_.begin() + ex.n_left + ex.n_right, 0);
        for (std::int32_t t = 0; t < m; ++t) {
            ++degree_[from_[t]];
            ++of_right[to_[t]];
        }
        std::fill(start_.begin(), start_.begin() + ex.n_left + 1, 0);
        std::int32_t n = 0;
        for (std::int32_t t = 0; t < m; ++t) {
            const std::int32_t left = from_[t], right = to_[t];
            const bool busy = (degree_[left] > ex.left_capacity[left]) | (of_right[right] > ex.right_capacity[right]);
            taken_[t] = !busy;
            tail_[n] = left;
            head_[n] = right;
            origin_[n] = t;
            open_cost_[n] = cost_[n] = -weight_[t];
            start_[left + 1] += busy;
            n += busy;
        }
        return n;
    }

    void lay_out(const Example& ex) {
        const std::int64_t cols = ex.n_right, nodes = rows_ + cols;
        for (std::int32_t row = 0; row < rows_; ++row) start_[row + 1] += start_[row];
        std::int32_t sum = 0;
        for (std::int64_t k = 0; k < cols; ++k) {
            mate_start_[k] = sum;
            sum += static_cast<std::int32_t>(std::min<std::int64_t>(ex.right_capacity[k], degree_[rows_ + k]));
            n_mates_[k] = 0;
            room_[k] = ex.right_capacity[k];
        }
        std::fill(price_.begin(), price_.begin() + nodes, 0.0);
        std::fill(label_.begin(), label_.begin() + nodes, kFar);
        std::fill(state_.begin(), state_.begin() + nodes, kUnseen);
        many_ = nodes > kFew;
    }

    void take(std::int32_t s) {
        const std::int32_t k = head_[s];
        open_cost_[s] = kFar;
        mates_[mate_start_[k] + n_mates_[k]++] = s;
    }
    void give_up(std::int32_t s) {
        const std::int32_t k = head_[s];
        open_cost_[s] = cost_[s];
        std::int32_t* mates = mates_.data() + mate_start_[k];
        std::int32_t i = 0;
        while (mates[i] != s) ++i;
        mates[i] = mates[--n_mates_[k]];
    }

    // Sends one more unit from `row`; false if staying out is as good, and then it is for all further units.
    bool send(std::int32_t row) {
        const double* v = price_.data() + rows_;
        double best = 0;
        std::int32_t at = -1;
        for (std::int32_t s = start_[row]; s < start_[row + 1]; ++s) {
            const double reached = open_cost_[s] - v[head_[s]];
            if (reached < best) {
                best = reached;
                at = s;
            }
        }
        price_[row] = best;
        if (at < 0) return false;
        if (room_[head_[at]] == 0) return search(row);
        --room_[head_[at]];
        take(at);
        return true;
    }

    void open(std::int32_t node) {
        if (many_) {
            heap_.emplace_back(label_[node], node);
            std::push_heap(heap_.begin(), heap_.end(), std::greater<>{});
        } else if (state_[node] != kOpen) {
            open_.push_back(node);
        }
        state_[node] = kOpen;
    }

    // The open node of the smallest label; -1 if none is left.
    std::int32_t nearest() {
        if (many_) {
            while (!heap_.empty()) {
                std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
                const auto [label, node] = heap_.back();
                heap_.pop_back();
                if (state_[node] == kOpen && label == label_[node]) return node;
            }
            return -1;
        }
        if (open_.empty()) return -1;
        std::size_t at = 0;
        for (std::size_t i = 1; i < open_.size(); ++i)
            if (label_[open_[i]] < label_[open_[at]]) at = i;
        const std::int32_t node = open_[at];
        open_[at] = open_.back();
        open_.pop_back();
        return node;
    }

    void label(std::int32_t node, double distance, std::int32_t slot) {
        if (label_[node] == kFar) seen_.push_back(node);
        label_[node] = distance;
        parent_[node] = slot;
    }

    void relax(std::int32_t row) {
        const double base = label_[row], u = price_[row];
        for (std::int32_t s = start_[row]; s < start_[row + 1]; ++s) {
            const std::int32_t k = head_[s], node = rows_ + k;
            const double distance = base + std::max(0.0, open_cost_[s] - u - price_[node]);
            if (!(distance < label_[node] && distance < end_distance_)) continue;
            label(node, distance, s);
            if (room_[k] > 0) {
                end_distance_ = distance;
                end_ = node;
            } else {
                open(node);
            }
        }
    }

    bool search(std::int32_t root) {
        seen_.clear();
        open_.clear();
        heap_.clear();
        label(root, 0, -1);
        state_[root] = kDone;
        end_ = root;
        end_distance_ = -price_[root];
        relax(root);
        for (;;) {
            const std::int32_t node = nearest();
            if (node < 0 || !(label_[node] < end_distance_)) break;
            state_[node] = kDone;
            if (node < rows_) {
                relax(node);
                continue;
            }
            const std::int32_t k = node - rows_;
            const double base = label_[node], v = price_[node];
            for (std::int32_t i = mate_start_[k]; i < mate_start_[k] + n_mates_[k]; ++i) {
                const std::int32_t s = mates_[i], row = tail_[s];
                const double distance = base + std::max(0.0, price_[row] + v - cost_[s]);
                if (!(distance < label_[row] && distance < end_distance_)) continue;
                label(row, distance, s);
                open(row);
                if (distance - price_[row] < end_distance_) {  // it gives up this edge and stays out
                    end_distance_ = distance - price_[row];
                    end_ = row;
                }
            }
        }
        for (const std::int32_t node : seen_) {
            if (label_[node] < end_distance_) price_[node] += (node < rows_ ? 1 : -1) * (end_distance_ - label_[node]);
            label_[node] = kFar;
            state_[node] = kUnseen;
        }
        if (end_ == root) return false;
        if (end_ >= rows_) --room_[end_ - rows_];
        for (std::int32_t node = end_; node != root;) {
            const std::int32_t s = parent_[node];
            if (node < rows_) {
                give_up(s);
                node = rows_ + head_[s];
            } else {
                take(s);
                node = tail_[s];
            }
        }
        return true;
    }

    // Edges of positive weight; slots, the competing ones among them, by row; open_cost is infinite if taken.
    std::vector<std::int32_t> from_, to_, edge_, head_, tail_, origin_;
    std::vector<double> weight_, cost_, open_cost_;
    std::vector<std::uint8_t> taken_;
    // Nodes: rows, then columns. A column holds the slots it has taken.
    std::vector<std::int32_t> degree_, start_, mate_start_, n_mates_, mates_, parent_, open_, seen_;
    std::vector<std::int64_t> room_;
    std::vector<double> price_, label_;
    std::vector<std::uint8_t> state_;
    std::vector<std::pair<double, std::int32_t>> heap_;
    std::int32_t rows_ = 0, end_ = 0;
    double end_distance_ = 0;
    bool many_ = false;
};

}  // namespace maxmargin::matching
