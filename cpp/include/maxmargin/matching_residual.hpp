// The residual graph of an optimal b-matching, and the cheapest cycle through every edge.
//
// A b-matching is a circulation: from an extra node x (capacity that nobody uses) to the left nodes, along edges to the
// right nodes, and back to x. Its residual arcs are
//     j -> k at -s  if edge (j, k) is not taken,         k -> j at +s  if it is,
//     x -> j at 0   if left node j has room,             j -> x at 0   if it has an edge,
//     k -> x at 0   if right node k has room,            x -> k at 0   if it has an edge.
// Another matching is the best one changed along cycles of this graph; none of them gains, and the cheapest cycle through
// the arc of an edge is what it costs to have that edge the other way (Ahuja, Magnanti and Orlin 1993, chapter 9).
//
// Nodes of the larger side (`far`) have few arcs out, to their mates and to x, so they are contracted: arcs run among the
// smaller side (`near`) and x, n nodes. Potentials by Bellman and Ford from x make all arcs non-negative, where rounding
// cannot build up in the shortest paths between all pairs (Floyd 1962; Warshall 1962). Cost: O(edges * largest number of
// mates + n^3), the cube in vectors; memory O(n^2 + edges).
//
// Everything holds as well where some edges are fixed: they have no arc.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "maxmargin/matching.hpp"
#include "maxmargin/matching_argmax.hpp"
#include "maxmargin/simd.hpp"

namespace maxmargin::matching {

// reached[j] = min(reached[j], base + arc[j]); changed[j] becomes 1 where that is less.
static MM_CLONES void relax_arcs(const double* MM_RESTRICT arc, double base, std::int64_t n,
                                 double* MM_RESTRICT reached, std::int64_t* MM_RESTRICT changed) {
    for (std::int64_t j = 0; j < n; ++j) {
        const double length = base + arc[j];
        const bool less = length < reached[j];
        reached[j] = less ? length : reached[j];
        changed[j] = less ? 1 : changed[j];
    }
}

// arc[j] = max(0, arc[j] + from - to[j]).
static MM_CLONES void reduce_arcs(double from, const double* MM_RESTRICT to, std::int64_t n, double* MM_RESTRICT arc) {
    for (std::int64_t j = 0; j < n; ++j) {
        const double reduced = arc[j] + (from - to[j]);
        arc[j] = reduced > 0 ? reduced : 0;
    }
}

// All shortest distances from the arcs, in place; rows are `ld` apart, all entries at least 0.
static MM_CLONES void all_pairs(double* distance, std::int64_t n, std::int64_t ld) {
    for (std::int64_t k = 0; k < n; ++k) {
        const double* MM_RESTRICT through = distance + k * ld;
        for (std::int64_t i = 0; i < n; ++i) {
            double* MM_RESTRICT row = distance + i * ld;
            const double to = row[k];
            if (i == k || !(to < kFar)) continue;
            for (std::int64_t j = 0; j < ld; ++j) {
                const double length = to + through[j];
                row[j] = length < row[j] ? length : row[j];
            }
        }
    }
}

// Takes one example after the other; owns the scratch of one thread.
class Residual {
   public:
    // `paths`: whether cycles will be asked for, not only their costs.
    Residual(const Batch& batch, bool paths) : paths_(paths) {
        std::int64_t cells = 0, most_near = 0, most_far = 0, most_edges = 0;
        for (std::int64_t i = 0; i < batch.size(); ++i) {
            const Example ex = example(batch, i);
            const std::int64_t near = std::min(ex.n_left, ex.n_right) + 1, far = std::max(ex.n_left, ex.n_right);
            cells = std::max(cells, near * width(near));
            most_near = std::max(most_near, width(near));
            most_far = std::max(most_far, far + 1);
            most_edges = std::max(most_edges, ex.n_edges);
        }
        distance_.resize(cells);
        if (paths) {
            arc_.resize(cells);
            via_.resize(cells);
        }
        for (auto* nodes : {&changed_, &near_used_, &parent_}) nodes->resize(most_near);
        for (auto* nodes : {&potential_, &label_}) nodes->resize(most_near);
        for (auto* nodes : {&far_used_, &far_start_, &mate_start_}) nodes->resize(most_far);
        for (auto* edges : {&near_, &far_, &by_far_, &mates_}) edges->resize(most_edges);
    }

    // Takes an example.
    void open(const Example& ex, const double* scores) {
        n_edges_ = ex.n_edges;
        scores_ = in_range(scores);
        const bool swapped = ex.n_left > ex.n_right;
        n_ = swapped ? ex.n_right : ex.n_left;
        n_far_ = swapped ? ex.n_left : ex.n_right;
        ld_ = width(n_ + 1);
        near_capacity_ = swapped ? ex.right_capacity : ex.left_capacity;
        far_capacity_ = swapped ? ex.left_capacity : ex.right_capacity;
        std::int32_t *left = swapped ? far_.data() : near_.data(), *right = swapped ? near_.data() : far_.data();
        if (ex.ends) {
            for (std::int64_t e = 0; e < n_edges_; ++e) {
                left[e] = ex.ends[2 * e];
                right[e] = ex.ends[2 * e + 1];
            }
        } else if (ex.full()) {  // or there are no edges at all
            std::int64_t e = 0;
            for (std::int64_t j = 0; j < ex.n_left; ++j)
                for (std::int64_t k = 0; k < ex.n_right; ++k, ++e) {
                    left[e] = static_cast<std::int32_t>(j);
                    right[e] = static_cast<std::int32_t>(k);
                }
        }
        sort_by_far(far_start_.data(), by_far_.data(), [](std::int64_t) { return true; });
    }

    // The shortest paths for an optimal matching. Edges with fixed != 0 stay as they are; null fixes none.
    void close(const std::uint8_t* taken, const std::uint8_t* fixed) {
        taken_ = taken;
        fixed_ = fixed;
        contract();
        find_potentials();
        for (std::int64_t i = 0; i <= n_; ++i) reduce_arcs(potential_[i], potential_.data(), ld_, row(i));
        if (paths_) std::copy(distance_.begin(), distance_.begin() + (n_ + 1) * ld_, arc_.begin());
        all_pairs(distance_.data(), n_ + 1, ld_);
    }

    // What it costs to have edge e the other way, at least 0; infinite if no matching has it so.
    double cost(std::int64_t e) const {
        const std::int64_t j = near_[e], k = far_[e];
        double shortest = kFar;
        if (taken_[e]) {
            shortest = apart(j, n_);
            for (std::int64_t i = far_start_[k]; i < far_start_[k + 1]; ++i) {
                const std::int64_t other = by_far_[i];
                if (taken_[other] || fixed(other)) continue;
                shortest = std::min(shortest, apart(j, near_[other]) - scores_[other]);
            }
            return unit_ * std::max(0.0, shortest + scores_[e]);
        }
        if (far_used_[k] < far_capacity_[k]) shortest = apart(n_, j);
        for (std::int64_t i = mate_start_[k]; i < mate_start_[k + 1]; ++i)
            shortest = std::min(shortest, apart(near_[mates_[i]], j) + scores_[mates_[i]]);
        return shortest < kFar ? unit_ * std::max(0.0, shortest - scores_[e]) : kFar;
    }

    // The edges of a cycle through edge e that costs cost(e), which must be finite. They are distinct, e among them.
    void cycle(std::int64_t e, std::vector<std::int32_t>& edges) {
        const std::int64_t j = near_[e], k = far_[e];
        edges.assign(1, static_cast<std::int32_t>(e));
        std::fill(label_.begin(), label_.begin() + ld_, kFar);
        std::fill(parent_.begin(), parent_.begin() + n_ + 1, kStart);
        std::int64_t end = j;
        if (taken_[e]) {
            label_[j] = 0;
            spread();
            double shortest = label_[n_];
            std::int64_t last = -1;
            end = n_;
            for (std::int64_t i = far_start_[k]; i < far_start_[k + 1]; ++i) {
                const std::int64_t other = by_far_[i];
                if (taken_[other] || fixed(other)) continue;
                const double length = label_[near_[other]] + potential_[near_[other]] - scores_[other];
                if (length < shortest) {
                    shortest = length;
                    end = near_[other];
                    last = other;
                }
            }
            if (last >= 0) edges.push_back(static_cast<std::int32_t>(last));
            trace(end, edges);
            return;
        }
        if (far_used_[k] < far_capacity_[k]) label_[n_] = 0;
        for (std::int64_t i = mate_start_[k]; i < mate_start_[k + 1]; ++i) {
            const std::int64_t mate = mates_[i], at = near_[mate];
            label_[at] = scores_[mate] - potential_[at];
            parent_[at] = kMate - mate;
        }
        spread();
        trace(end, edges);
    }

   private:
    static constexpr std::int64_t kStart = -1, kMate = -2;  // no arc before a node; kMate - e: begun by edge e

    // The edges of a contracted arc, -1 where it has none on that side.
    struct Via {
        std::int32_t out, in;
    };

    static std::int64_t width(std::int64_t n) { return (n + 7) & ~std::int64_t{7}; }
    double* row(std::int64_t i) { return distance_.data() + i * ld_; }
    bool fixed(std::int64_t e) const { return fixed_ != nullptr && fixed_[e] != 0; }
    double apart(std::int64_t from, std::int64_t to) const {
        return distance_[from * ld_ + to] + (potential_[to] - potential_[from]);
    }

    // Sums of scores must not overflow, or else there would be arcs where there are none: beyond 1e200 all are taken in
    // units of 2^200.
    const double* in_range(const double* scores) {
        double largest = 0;
        for (std::int64_t e = 0; e < n_edges_; ++e) largest = std::max(largest, std::abs(scores[e]));
        unit_ = largest > 1e200 ? 0x1p200 : 1.0;
        if (unit_ == 1.0) return scores;
        scaled_.resize(n_edges_);
        for (std::int64_t e = 0; e < n_edges_; ++e) scaled_[e] = scores[e] / unit_;
        return scaled_.data();
    }

    // Edges that pass the test, by their far node.
    template <class Test>
    void sort_by_far(std::int32_t* start, std::int32_t* sorted, Test test) const {
        std::fill(start, start + n_far_ + 1, 0);
        for (std::int64_t e = 0; e < n_edges_; ++e)
            if (test(e)) ++start[far_[e]];
        std::int32_t sum = 0;
        for (std::int64_t k = 0; k <= n_far_; ++k) sum = start[k] += sum;
        for (std::int64_t e = n_edges_ - 1; e >= 0; --e)
            if (test(e)) sorted[--start[far_[e]]] = static_cast<std::int32_t>(e);
    }

    void offer(std::int64_t from, std::int64_t to, double length, std::int32_t out, std::int32_t in) {
        const std::int64_t at = from * ld_ + to;
        if (!(length < distance_[at])) return;
        distance_[at] = length;
        if (paths_) via_[at] = {out, in};
    }

    void contract() {
        std::fill(distance_.begin(), distance_.begin() + (n_ + 1) * ld_, kFar);
        for (std::int64_t i = 0; i <= n_; ++i) distance_[i * ld_ + i] = 0;
        std::fill(near_used_.begin(), near_used_.begin() + n_, 0);
        std::fill(far_used_.begin(), far_used_.begin() + n_far_, 0);
        for (std::int64_t e = 0; e < n_edges_; ++e) {
            if (!taken_[e]) continue;
            ++near_used_[near_[e]];
            ++far_used_[far_[e]];
        }
        sort_by_far(mate_start_.data(), mates_.data(), [&](std::int64_t e) { return taken_[e] && !fixed(e); });
        const std::int64_t x = n_;
        for (std::int64_t j = 0; j < n_; ++j) {
            if (near_used_[j] < near_capacity_[j]) offer(x, j, 0, -1, -1);
            if (near_used_[j] > 0) offer(j, x, 0, -1, -1);
        }
        for (std::int64_t k = 0; k < n_far_; ++k)
            for (std::int64_t i = mate_start_[k]; i < mate_start_[k + 1]; ++i)
                offer(x, near_[mates_[i]], scores_[mates_[i]], -1, mates_[i]);
        for (std::int64_t e = 0; e < n_edges_; ++e) {
            if (taken_[e] || fixed(e)) continue;
            const std::int64_t j = near_[e], k = far_[e];
            const auto out = static_cast<std::int32_t>(e);
            if (far_used_[k] < far_capacity_[k]) offer(j, x, -scores_[e], out, -1);
            for (std::int64_t i = mate_start_[k]; i < mate_start_[k + 1]; ++i)
                offer(j, near_[mates_[i]], scores_[mates_[i]] - scores_[e], out, mates_[i]);
        }
    }

    // Distances from x. A node that x does not reach has no arc in (it has no room, and no edge that it could lose), so
    // that no path goes through it whatever its potential. Rounding may leave cycles that seem to gain: the passes are
    // counted.
    void find_potentials() {
        const std::int64_t x = n_;
        double* potential = potential_.data();
        std::copy(row(x), row(x) + ld_, potential);
        std::fill(changed_.begin(), changed_.begin() + ld_, 0);
        for (std::int64_t i = 0; i < n_; ++i) changed_[i] = potential[i] < kFar ? 1 : 0;
        for (std::int64_t pass = 0, more = 1; pass <= n_ && more; ++pass) {
            more = 0;
            for (std::int64_t i = 0; i < n_; ++i) {
                if (!changed_[i]) continue;
                changed_[i] = 0;
                more = 1;
                relax_arcs(row(i), potential[i], ld_, potential, changed_.data());
            }
            potential[x] = 0;
        }
        for (std::int64_t i = 0; i < ld_; ++i)
            if (!(potential[i] < kFar)) potential[i] = 0;
    }

    // Dijkstra over the arcs from the labels given, with parents.
    void spread() {
        auto& open = changed_;
        std::fill(open.begin(), open.begin() + n_ + 1, 1);
        for (;;) {
            std::int64_t at = -1;
            double nearest = kFar;
            for (std::int64_t i = 0; i <= n_; ++i) {
                if (open[i] && label_[i] < nearest) {
                    nearest = label_[i];
                    at = i;
                }
            }
            if (at < 0) return;
            open[at] = 0;
            const double* arc = arc_.data() + at * ld_;
            for (std::int64_t i = 0; i <= n_; ++i) {
                if (!open[i] || !(nearest + arc[i] < label_[i])) continue;
                label_[i] = nearest + arc[i];
                parent_[i] = static_cast<std::int32_t>(at);
            }
        }
    }

    void trace(std::int64_t at, std::vector<std::int32_t>& edges) const {
        while (parent_[at] >= 0) {
            const Via& via = via_[parent_[at] * ld_ + at];
            if (via.out >= 0) edges.push_back(via.out);
            if (via.in >= 0) edges.push_back(via.in);
            at = parent_[at];
        }
        if (parent_[at] <= kMate) edges.push_back(static_cast<std::int32_t>(kMate - parent_[at]));
    }

    bool paths_;
    double unit_ = 1;
    std::int64_t n_ = 0, n_far_ = 0, ld_ = 0, n_edges_ = 0;
    const double* scores_ = nullptr;
    const std::int64_t *near_capacity_ = nullptr, *far_capacity_ = nullptr;
    const std::uint8_t *taken_ = nullptr, *fixed_ = nullptr;
    std::vector<double> distance_, arc_, potential_, label_, scaled_;
    std::vector<Via> via_;
    std::vector<std::int64_t> changed_, near_used_, parent_;
    std::vector<std::int32_t> far_used_, far_start_, mate_start_, near_, far_, by_far_, mates_;
};

}  // namespace maxmargin::matching
