// The residual graph of an optimal b-matching, and the cheapest cycle through every edge.
//
// A b-matching is a circulation: from an extra node x (unused capacity) to the left nodes, along edges to the
// right nodes, and back to x. Its residual arcs are
//     j -> k at -s  if edge (j, k) is not taken,         k -> j at +s  if it is,
//     x -> j at 0   if left node j has room,             j -> x at 0   if it has an edge,
//     k -> x at 0   if right node k has room,            x -> k at 0   if it has an edge.
// Another matching is the best one changed along cycles of this graph; none of them gains, and the cheapest cycle
// through the arc of an edge is what it costs to have that edge the other way (Ahuja, Magnanti and Orlin 1993, chapter
// 9).
//
// Nodes of the larger side (`far`) have few arcs out, to their mates and to x, so they are contracted: arcs run among
// the smaller side (`near`) and x, n nodes. Potentials by Bellman and Ford from x make all arcs non-negative, where
// rounding cannot build up in the shortest paths between all pairs (Floyd 1962; Warshall 1962). Cost: O(edges * largest
// number of mates + n^3), the cube in vectors; memory O(n^2 + edges).
//
// Everything holds as well where some edges are fixed: they have no arc.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "maxmargin/base/simd.hpp"
#include "maxmargin/matching/argmax.hpp"
#include "maxmargin/matching/batch.hpp"

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

static MM_CLONES bool any_beyond(const double* values, std::int64_t n, double limit) {
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < n; ++i) found += std::abs(values[i]) > limit ? 1 : 0;
    return found > 0;
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
        const Sides sides = largest_sides(batch);
        const std::int64_t near = sides.small + 1, far = sides.large + 1;
        distance_.resize(near * width(near));
        if (paths) {
            arc_.resize(distance_.size());
            via_.resize(distance_.size());
        }
        for (auto* nodes : {&changed_, &near_used_, &parent_}) nodes->resize(width(near));
        for (auto* nodes : {&potential_, &label_, &rest_}) nodes->resize(width(near));
        for (auto* nodes : {&far_used_, &far_start_, &mate_start_}) nodes->resize(far);
        shut_.resize(most_edges(batch));
        for (auto* edges : {&near_, &far_, &by_far_, &mates_, &listed_}) edges->resize(shut_.size() + 1);
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
        for (std::int64_t e = 0; e < n_edges_; ++e) listed_[e] = static_cast<std::int32_t>(e);
        sort_by_far(listed_.data(), n_edges_, far_start_.data(), by_far_.data());
    }

    // The shortest paths for an optimal matching. Edges with fixed != 0 stay as they are; null fixes none. Both hold 0
    // or 1.
    void close(const std::uint8_t* taken, const std::uint8_t* fixed) {
        taken_ = taken;
        contract(fixed);
        find_potentials();
        for (std::int64_t i = 0; i <= n_; ++i) reduce_arcs(potential_[i], potential_.data(), ld_, row(i));
        if (paths_) std::copy(distance_.begin(), distance_.begin() + (n_ + 1) * ld_, arc_.begin());
        all_pairs(distance_.data(), n_ + 1, ld_);
    }

    // The cost of flipping each edge, at least 0; infinite if no matching allows it. Entries of fixed
    // edges are meaningless.
    void costs(double* cost) const {
        const double* h = potential_.data();
        const double* distance = distance_.data();
        const std::int32_t *near = near_.data(), *by_far = by_far_.data(), *mates = mates_.data();
        const std::uint8_t* shut = shut_.data();
        const double* s = scores_;
        for (std::int64_t k = 0; k < n_far_; ++k) {
            const std::int32_t *first = by_far + far_start_[k], *last = by_far + far_start_[k + 1];
            const double* from_x = far_used_[k] < far_capacity_[k] ? distance + n_ * ld_ : nullptr;
            for (const std::int32_t* e = first; e < last; ++e) cost[*e] = from_x ? from_x[near[*e]] : kFar;
            // The cycle goes along an edge from near to k, from there to a mate and back: cheapest for one and the
            // other.
            for (std::int32_t i = mate_start_[k]; i < mate_start_[k + 1]; ++i) {
                const std::int32_t mate = mates[i];
                const double* from_mate = distance + near[mate] * ld_;
                const double back = s[mate] - h[near[mate]];
                double least = from_mate[n_];
                for (const std::int32_t* e = first; e < last; ++e) {
                    if (shut[*e]) continue;
                    const double way = from_mate[near[*e]];
                    least = std::min(least, way + (h[near[*e]] - s[*e]));
                    cost[*e] = std::min(cost[*e], way + back);
                }
                cost[mate] = unit_ * std::max(0.0, least + back);
            }
            for (const std::int32_t* e = first; e < last; ++e) {
                if (shut[*e]) continue;
                const double around = cost[*e] + (h[near[*e]] - s[*e]);
                cost[*e] = unit_ * (around > 0 ? around : 0);
            }
        }
    }

    // The edges of a cheapest cycle through edge e, whose cost must be finite. They are distinct, e among them.
    void cycle(std::int64_t e, std::vector<std::int32_t>& edges) {
        const std::int64_t j = near_[e], k = far_[e];
        edges.assign(1, static_cast<std::int32_t>(e));
        std::fill(label_.begin(), label_.begin() + n_ + 1, kFar);
        std::fill(parent_.begin(), parent_.begin() + n_ + 1, kStart);
        std::int64_t end = j;
        if (taken_[e]) {
            end = n_;
            std::int64_t last = -1;
            double shortest = apart(j, n_);
            for (std::int64_t i = far_start_[k]; i < far_start_[k + 1]; ++i) {
                const std::int64_t other = by_far_[i];
                if (shut_[other]) continue;
                const double length = apart(j, near_[other]) - scores_[other];
                if (length < shortest) {
                    shortest = length;
                    end = near_[other];
                    last = other;
                }
            }
            if (last >= 0) edges.push_back(static_cast<std::int32_t>(last));
            label_[j] = 0;
        } else {
            if (far_used_[k] < far_capacity_[k]) label_[n_] = 0;
            for (std::int64_t i = mate_start_[k]; i < mate_start_[k + 1]; ++i) {
                const std::int64_t mate = mates_[i], at = near_[mate];
                label_[at] = scores_[mate] - potential_[at];
                parent_[at] = kMate - mate;
            }
        }
        find_path(end);
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
    double apart(std::int64_t from, std::int64_t to) const {
        return distance_[from * ld_ + to] + (potential_[to] - potential_[from]);
    }

    // Sums of scores must not overflow, or else there would be arcs where there are none: beyond 2^600 all are taken in
    // units of 2^500.
    const double* in_range(const double* scores) {
        unit_ = 1;
        if (!any_beyond(scores, n_edges_, 0x1p600)) return scores;
        unit_ = 0x1p500;
        scaled_.resize(n_edges_);
        for (std::int64_t e = 0; e < n_edges_; ++e) scaled_[e] = scores[e] / unit_;
        return scaled_.data();
    }

    // Sorts edges by their far node.
    void sort_by_far(const std::int32_t* edges, std::int64_t n, std::int32_t* start, std::int32_t* sorted) const {
        std::fill(start, start + n_far_ + 1, 0);
        for (std::int64_t i = 0; i < n; ++i) ++start[far_[edges[i]]];
        std::int32_t sum = 0;
        for (std::int64_t k = 0; k <= n_far_; ++k) sum = start[k] += sum;
        for (std::int64_t i = n - 1; i >= 0; --i) sorted[--start[far_[edges[i]]]] = edges[i];
    }

    void offer(std::int64_t from, std::int64_t to, double length, std::int32_t out, std::int32_t in) {
        const std::int64_t at = from * ld_ + to;
        if (!(length < distance_[at])) return;
        distance_[at] = length;
        if (paths_) via_[at] = {out, in};
    }

    void contract(const std::uint8_t* fixed) {
        const std::int32_t *near = near_.data(), *far = far_.data(), *by_far = by_far_.data();
        std::int64_t* near_used = near_used_.data();
        std::int32_t *far_used = far_used_.data(), *listed = listed_.data();
        std::uint8_t* shut = shut_.data();
        const std::uint8_t* taken = taken_;
        const double* s = scores_;
        std::fill(distance_.begin(), distance_.begin() + (n_ + 1) * ld_, kFar);
        for (std::int64_t i = 0; i <= n_; ++i) distance_[i * ld_ + i] = 0;
        std::fill(near_used, near_used + n_, 0);
        std::fill(far_used, far_used + n_far_, 0);
        std::int64_t n_mates = 0;
        for (std::int64_t e = 0; e < n_edges_; ++e) {
            const std::uint8_t still = fixed ? fixed[e] : 0;
            shut[e] = taken[e] | still;
            near_used[near[e]] += taken[e];
            far_used[far[e]] += taken[e];
            listed[n_mates] = static_cast<std::int32_t>(e);
            n_mates += taken[e] & ~still;
        }
        sort_by_far(listed, n_mates, mate_start_.data(), mates_.data());
        const std::int64_t x = n_;
        for (std::int64_t j = 0; j < n_; ++j) {
            if (near_used[j] < near_capacity_[j]) offer(x, j, 0, -1, -1);
            if (near_used[j] > 0) offer(j, x, 0, -1, -1);
        }
        for (std::int64_t k = 0; k < n_far_; ++k) {
            const std::int32_t *first = by_far + far_start_[k], *last = by_far + far_start_[k + 1];
            if (far_used[k] < far_capacity_[k])
                for (const std::int32_t* e = first; e < last; ++e)
                    if (!shut[*e]) offer(near[*e], x, -s[*e], *e, -1);
            for (std::int32_t i = mate_start_[k]; i < mate_start_[k + 1]; ++i) {
                const std::int32_t mate = mates_[i], to = near[mate];
                offer(x, to, s[mate], -1, mate);
                for (const std::int32_t* e = first; e < last; ++e)
                    if (!shut[*e]) offer(near[*e], to, s[mate] - s[*e], *e, mate);
            }
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

    // Parents of a shortest path from the labeled nodes to `end`. As the distances to it are known, the search (Hart,
    // Nilsson and Raphael 1968) hardly leaves the path; each node is taken once, so that it ends and has no loops.
    void find_path(std::int64_t end) {
        auto& open = changed_;
        for (std::int64_t i = 0; i <= n_; ++i) {
            open[i] = 1;
            rest_[i] = distance_[i * ld_ + end];
        }
        for (;;) {
            std::int64_t at = -1;
            double least = kFar;
            for (std::int64_t i = 0; i <= n_; ++i) {
                if (open[i] && label_[i] + rest_[i] < least) {
                    least = label_[i] + rest_[i];
                    at = i;
                }
            }
            if (at < 0 || at == end) return;
            open[at] = 0;
            const double* arc = arc_.data() + at * ld_;
            for (std::int64_t i = 0; i <= n_; ++i) {
                if (!open[i] || !(label_[at] + arc[i] < label_[i])) continue;
                label_[i] = label_[at] + arc[i];
                parent_[i] = at;
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
    const std::uint8_t* taken_ = nullptr;
    std::vector<double> distance_, arc_, potential_, label_, rest_, scaled_;
    std::vector<Via> via_;
    std::vector<std::int64_t> changed_, near_used_, parent_;
    std::vector<std::int32_t> far_used_, far_start_, mate_start_, near_, far_, by_far_, mates_, listed_;
    std::vector<std::uint8_t> shut_;  // taken or fixed: no arc from near to far
};

}  // namespace maxmargin::matching
