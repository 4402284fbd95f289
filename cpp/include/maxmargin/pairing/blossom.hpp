// Maximum-weight matching of any graph, by Edmonds' blossom method (1965) in whole numbers.
//
//     max sum_e w_e x_e,  at most one edge at a node                    (perfect: exactly one)
//     min sum_v u_v + sum_B (|B| - 1)/2 z_B,  u_i + u_j + (z_B of the odd sets B that hold i and j) >= w_ij,  u, z >= 0
//
// (perfect: u of any sign). An odd set with z_B > 0 is a blossom: a circle of an odd number of members, each a node or
// a blossom, matched inside but for one node, its base. One free node after the other becomes the root of an
// alternating tree. Time runs from 0: the u of an outer node falls by one per unit of time, that of an inner node
// rises, the z of an outer set rises by two, that of an inner one falls, until the tree reaches a free node, an edge
// closes an odd circle, which shrinks to an outer set, the z of an inner set comes to zero and it falls apart, or the u
// of an outer node comes to zero, which may then stay free. With
//
//     y_v = u_v of a node that is not in the tree,  u_v - t_v of an inner node,  u_v + t_v of an outer node,
//
// where t_v is the time of its label and u_v its dual at that time, the number k = y_i + y_v - w_iv of an outer node i
// does not change: it is the time at which the edge reaches v outside the tree, twice the time at which it reaches an
// outer v, and the slack of an edge to an inner v. So a scan of a row is one loop, and O(n^2) a search unless the
// nearest edges of many outer nodes fall inside shrunken sets. O(n^3) in all (Gabow 1976).
//
// Weights are whole numbers, multiples of four: then all duals are whole numbers, and every comparison is exact. The
// caller scales scores by a power of two.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "maxmargin/base/simd.hpp"

namespace maxmargin::pairing {

using Int = std::int64_t;
constexpr Int kNever = Int{1} << 62;
constexpr Int kNoEdge = -(Int{1} << 61);

// Relaxes all nodes from outer node i.
static MM_CLONES void relax(const Int* MM_RESTRICT w, const Int* MM_RESTRICT y, Int yi, Int i, Int n,
                            Int* MM_RESTRICT key, Int* MM_RESTRICT from) {
    for (Int v = 0; v < n; ++v) {
        const Int k = yi + y[v] - w[v];
        const bool better = k < key[v];
        key[v] = better ? k : key[v];
        from[v] = better ? i : from[v];
    }
}

// The smallest k of an edge from outer node i to a node that is not hidden.
static MM_CLONES Int nearest_outer(const Int* MM_RESTRICT w, const Int* MM_RESTRICT y, Int yi, Int n,
                                   const Int* MM_RESTRICT hidden) {
    Int best = kNever;
    for (Int v = 0; v < n; ++v) {
        const Int k = hidden[v] ? kNever : yi + y[v] - w[v];
        best = k < best ? k : best;
    }
    return best;
}

static MM_CLONES Int smallest(const Int* MM_RESTRICT value, Int n) {
    Int best = kNever;
    for (Int v = 0; v < n; ++v) best = value[v] < best ? value[v] : best;
    return best;
}
static MM_CLONES Int smallest_where(const Int* MM_RESTRICT value, const Int* MM_RESTRICT hidden, Int n) {
    Int best = kNever;
    for (Int v = 0; v < n; ++v) {
        const Int k = hidden[v] ? kNever : value[v];
        best = k < best ? k : best;
    }
    return best;
}
static Int place_of(const Int* value, Int wanted, Int n) {
    Int v = 0;
    while (v < n && value[v] != wanted) ++v;
    return v;
}

class Blossom {
   public:
    // w: n x n with leading dimension n, symmetric, kNoEdge where there is no edge and on the diagonal.
    // Returns false if a perfect matching is asked for and there is none.
    bool solve(Int n, const Int* w, bool perfect) {
        n_ = n, w_ = w, perfect_ = perfect;
        prepare();
        start();
        for (Int root = 0; root < n; ++root)
            if (mate_[root] < 0 && (perfect || u_[root] > 0))
                if (!search(root)) return false;
        return true;
    }

    const std::vector<Int>& mate() const { return mate_; }
    const std::vector<Int>& u() const { return u_; }

    // Calls visit(z, nodes) for each odd set with z > 0.
    template <class Visit>
    void odd_sets(Visit&& visit) const {
        std::vector<Int> nodes;
        for (Int b = n_; b < static_cast<Int>(z_.size()); ++b) {
            if (!alive_[b] || z_[b] == 0) continue;
            nodes.clear();
            for (Int v = 0; v < n_; ++v)
                for (Int s = v; s >= 0; s = parent_[s])
                    if (s == b) nodes.push_back(v);
            visit(z_[b], nodes);
        }
    }

   private:
    enum Label : std::int8_t { kNone, kOuter, kInner };
    // An odd circle of sets: edge[k] joins member k to member k + 1, at node `a` of the former and `b` of the latter.
    struct Circle {
        std::vector<Int> member;
        std::vector<std::pair<Int, Int>> edge;
    };

    void prepare() {
        const auto n = static_cast<std::size_t>(n_), sets = 2 * n + 2;
        for (auto* one : {&u_, &mate_, &top_, &y_, &key_, &from_, &to_outer_, &shut_, &not_outer_}) one->assign(n, 0);
        for (auto* one : {&z_, &base_, &parent_, &since_, &enter_from_, &enter_to_, &mark_}) one->assign(sets, 0);
        label_.assign(sets, kNone);
        alive_.assign(sets, 0);
        if (circle_.size() < sets) circle_.resize(sets);
        std::fill(mate_.begin(), mate_.end(), -1);
        std::fill(parent_.begin(), parent_.end(), -1);
        for (Int v = 0; v < n_; ++v) base_[v] = top_[v] = v, alive_[v] = 1;
        idle_.clear();
        for (Int b = static_cast<Int>(sets) - 1; b >= n_; --b) idle_.push_back(b);
    }

    // Duals that cover all edges, and a matching of edges that they meet.
    void start() {
        for (Int v = 0; v < n_; ++v) {
            Int most = kNoEdge;
            for (Int j = 0; j < n_; ++j) most = std::max(most, w_[v * n_ + j]);
            u_[v] = most > kNoEdge ? most / 2 : 0;
            if (!perfect_) u_[v] = std::max<Int>(u_[v], 0);
        }
        for (Int v = 0; v < n_; ++v) {
            if (mate_[v] >= 0) continue;
            Int most = perfect_ ? kNoEdge : 0, free = -1;
            for (Int j = 0; j < n_; ++j) {
                const Int need = w_[v * n_ + j] == kNoEdge ? kNoEdge : w_[v * n_ + j] - u_[j];
                if (need > most || (need == most && free < 0)) {
                    if (need > most) free = -1;
                    most = need;
                    if (mate_[j] < 0 && w_[v * n_ + j] > kNoEdge) free = j;
                }
            }
            if (most == kNoEdge) continue;
            u_[v] = most;
            if (free >= 0 && w_[v * n_ + free] == u_[v] + u_[free]) {
                mate_[v] = free;
                mate_[free] = v;
            }
        }
    }

    template <class Visit>
    void each_node(Int set, Visit&& visit) const {
        if (set < n_) {
            visit(set);
        } else {
            for (const Int child : circle_[set].member) each_node(child, visit);
        }
    }

    // Duals of a set of the tree at the present time; its nodes' y become their u, and its label is taken off.
    void settle(Int set) {
        const Label label = static_cast<Label>(label_[set]);
        if (label == kNone) return;
        const Int sign = label == kOuter ? -1 : 1;
        if (set >= n_) z_[set] -= 2 * sign * (now_ - since_[set]);
        each_node(set, [&](Int v) {
            u_[v] = y_[v] + sign * now_;
            if (label == kInner) key_[v] += now_;
            y_[v] = u_[v];
            shut_[v] = 0;
            not_outer_[v] = 1;
            to_outer_[v] = kNever;
        });
        label_[set] = kNone;
    }

    void make_inner(Int set, Int outer_node, Int node) {
        label_[set] = kInner;
        since_[set] = now_;
        enter_from_[set] = outer_node;
        enter_to_[set] = node;
        labeled_.push_back(set);
        if (set >= n_) inner_sets_.push_back(set);
        each_node(set, [&](Int v) {
            y_[v] = u_[v] - now_;
            key_[v] -= now_;
            shut_[v] = 1;
        });
    }

    // The nodes of an outer set get their y first and are then scanned: the edges between them are inside.
    void make_outer(Int set) {
        label_[set] = kOuter;
        since_[set] = now_;
        labeled_.push_back(set);
        each_node(set, [&](Int v) { become_outer(v); });
        each_node(set, [&](Int v) { scan(v); });
        each_node(set, [&](Int v) { not_outer_[v] = 0; });
    }

    void become_outer(Int v) {
        y_[v] = u_[v] + now_;
        shut_[v] = 1;
        if (!perfect_ && y_[v] < leave_) {
            leave_ = y_[v];
            leaver_ = v;
        }
    }

    void scan(Int v) {
        const Int* w = w_ + v * n_;
        relax(w, y_.data(), y_[v], v, n_, key_.data(), from_.data());
        to_outer_[v] = nearest_outer(w, y_.data(), y_[v], n_, not_outer_.data());
    }

    bool search(Int root) {
        now_ = 0;
        leave_ = kNever;
        labeled_.clear();
        inner_sets_.clear();
        for (Int v = 0; v < n_; ++v) {
            y_[v] = u_[v];
            key_[v] = kNever;
            to_outer_[v] = kNever;
            shut_[v] = 0;
            not_outer_[v] = 1;
        }
        make_outer(top_[root]);
        bool found = true;
        for (;;) {
            const Int reach = smallest_where(key_.data(), shut_.data(), n_);
            const Int meet = smallest(to_outer_.data(), n_);
            Int apart = kNever, falling = -1;
            for (const Int set : inner_sets_) {
                if (label_[set] != kInner || !alive_[set] || parent_[set] >= 0) continue;
                const Int at = since_[set] + z_[set] / 2;
                if (at < apart) apart = at, falling = set;
            }
            const Int next = std::min(std::min(reach, leave_), std::min(meet / 2, apart));
            if (next >= kNever / 8) {
                found = false;
                break;
            }
            now_ = next;
            if (next == leave_) {
                flip(leaver_, -1);
                break;
            }
            if (next == reach) {
                Int v = 0;
                while (shut_[v] || key_[v] != reach) ++v;
                const Int set = top_[v], i = from_[v];
                if (mate_[base_[set]] < 0) {
                    rotate(set, v);
                    flip(i, v);
                    break;
                }
                make_inner(set, i, v);
                make_outer(top_[mate_[base_[set]]]);
            } else if (next == apart) {
                fall_apart(falling);
            } else {
                meet_at(place_of(to_outer_.data(), meet, n_), meet);
            }
        }
        for (const Int set : labeled_)
            if (alive_[set] && parent_[set] < 0) settle(set);
        for (const Int set : labeled_)
            if (set >= n_ && alive_[set] && parent_[set] < 0 && z_[set] == 0) open(set);
        return found;
    }

    // The edge of outer node i with number k: to an outer node of another set, with which it closes a circle, or inside
    // a set by now, and then the next one is looked for.
    void meet_at(Int i, Int k) {
        const Int* w = w_ + i * n_;
        Int best = kNever, at = -1;
        for (Int v = 0; v < n_; ++v) {
            if (not_outer_[v] || top_[v] == top_[i]) continue;
            const Int own = y_[i] + y_[v] - w[v];
            if (own < best) best = own, at = v;
        }
        if (best > k) {
            to_outer_[i] = best < kNever / 2 ? best : kNever;
            return;
        }
        shrink(i, at);
    }

    Int outer_parent(Int outer) const {  // of an outer set but the root's: the next outer set on the way to the root
        return top_[enter_from_[top_[mate_[base_[outer]]]]];
    }

    void shrink(Int i, Int v) {
        ++stamp_;
        Int one = top_[i], two = top_[v], common = -1;
        for (;;) {
            if (one >= 0) {
                if (mark_[one] == stamp_) {
                    common = one;
                    break;
                }
                mark_[one] = stamp_;
                one = mate_[base_[one]] < 0 ? -1 : outer_parent(one);
            }
            std::swap(one, two);
        }
        const Int set = idle_.back();
        idle_.pop_back();
        Circle& circle = circle_[set];
        circle.member.clear();
        circle.edge.clear();
        // From node i up to the common set, turned around; then from node v up.
        for (Int at = top_[i]; at != common; at = outer_parent(at)) {
            const Int inner = top_[mate_[base_[at]]];
            circle.member.push_back(at);
            circle.member.push_back(inner);
            circle.edge.push_back({mate_[base_[at]], base_[at]});
            circle.edge.push_back({enter_from_[inner], enter_to_[inner]});
        }
        circle.member.push_back(common);
        std::reverse(circle.member.begin(), circle.member.end());
        std::reverse(circle.edge.begin(), circle.edge.end());
        circle.edge.push_back({i, v});
        for (Int at = top_[v]; at != common; at = outer_parent(at)) {
            const Int inner = top_[mate_[base_[at]]];
            circle.member.push_back(at);
            circle.member.push_back(inner);
            circle.edge.push_back({base_[at], mate_[base_[at]]});
            circle.edge.push_back({enter_to_[inner], enter_from_[inner]});
        }
        fresh_.clear();
        for (const Int member : circle.member) {
            if (label_[member] == kInner) {
                settle(member);
                each_node(member, [&](Int node) { fresh_.push_back(node); });
            } else if (member >= n_) {
                z_[member] += 2 * (now_ - since_[member]);
            }
            label_[member] = kNone;
            parent_[member] = set;
            each_node(member, [&](Int node) { top_[node] = set; });
        }
        alive_[set] = 1;
        parent_[set] = -1;
        z_[set] = 0;
        base_[set] = base_[common];
        label_[set] = kOuter;
        since_[set] = now_;
        labeled_.push_back(set);
        for (const Int node : fresh_) become_outer(node);
        each_node(set, [&](Int node) { not_outer_[node] = 1; });
        for (const Int node : fresh_) scan(node);
        each_node(set, [&](Int node) { not_outer_[node] = 0; });
    }

    // The members of a set become sets of their own.
    void release(Int set) {
        for (const Int member : circle_[set].member) {
            parent_[member] = -1;
            each_node(member, [&](Int v) { top_[v] = member; });
        }
        alive_[set] = 0;
        label_[set] = kNone;
        idle_.push_back(set);
    }

    // After a search: sets without a dual fall apart, as deep as need be.
    void open(Int set) {
        const std::vector<Int> members = circle_[set].member;
        release(set);
        for (const Int member : members)
            if (member >= n_ && z_[member] == 0) open(member);
    }

    Int member_with(Int set, Int node) const {
        Int at = node;
        while (parent_[at] != set) at = parent_[at];
        return at;
    }

    // An inner set whose dual is zero: the part of the circle between where the tree enters and the base stays.
    void fall_apart(Int set) {
        const Int from = enter_from_[set], entered = enter_to_[set];
        const Int first = member_with(set, entered);
        settle(set);
        const Circle circle = circle_[set];
        const Int size = static_cast<Int>(circle.member.size());
        const Int place = place_of(circle.member.data(), first, size);
        release(set);
        // Member 0 holds the base; pairs (1, 2), (3, 4), ... are matched.
        make_inner(first, from, entered);
        if (place % 2 == 1) {
            for (Int k = place; k < size; k += 2) {
                make_outer(circle.member[k + 1]);
                const auto [a, b] = circle.edge[k + 1];
                make_inner(circle.member[(k + 2) % size], a, b);
            }
        } else {
            for (Int k = place; k > 0; k -= 2) {
                make_outer(circle.member[k - 1]);
                const auto [a, b] = circle.edge[k - 2];
                make_inner(circle.member[k - 2], b, a);
            }
        }
    }

    // Makes `node` the base of a set: the node that is not matched inside.
    void rotate(Int set, Int node) {
        if (set < n_) return;
        Circle& circle = circle_[set];
        const Int first = member_with(set, node), size = static_cast<Int>(circle.member.size());
        const Int place = place_of(circle.member.data(), first, size);
        rotate(first, node);
        if (place > 0) {
            std::rotate(circle.member.begin(), circle.member.begin() + place, circle.member.end());
            std::rotate(circle.edge.begin(), circle.edge.begin() + place, circle.edge.end());
            for (Int k = 1; k < size; k += 2) {
                const auto [a, b] = circle.edge[k];
                rotate(circle.member[k], a);
                rotate(circle.member[k + 1], b);
                mate_[a] = b;
                mate_[b] = a;
            }
        }
        base_[set] = node;
    }

    // Outer node i is matched to `partner` (-1: to none), and the edges on its way to the root change.
    void flip(Int i, Int partner) {
        if (partner >= 0) mate_[partner] = i;
        for (;;) {
            const Int set = top_[i], old_base = base_[set], old_mate = mate_[old_base];
            rotate(set, i);
            mate_[i] = partner;
            if (old_mate < 0) return;
            const Int inner = top_[old_mate], p = enter_from_[inner], q = enter_to_[inner];
            rotate(inner, q);
            mate_[q] = p;
            i = p;
            partner = q;
        }
    }

    Int n_ = 0, now_ = 0, leave_ = kNever, leaver_ = -1, stamp_ = 0;
    const Int* w_ = nullptr;
    bool perfect_ = false;
    std::vector<Int> u_, mate_, top_, y_, key_, from_, to_outer_, shut_, not_outer_;  // of nodes
    std::vector<Int> z_, base_, parent_, since_, enter_from_, enter_to_, mark_;       // of sets: nodes, then blossoms
    std::vector<std::int8_t> label_, alive_;
    std::vector<Circle> circle_;
    std::vector<Int> idle_, labeled_, inner_sets_, fresh_;
};

}  // namespace maxmargin::pairing
