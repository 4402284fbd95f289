// The best spanning arborescence of a dense graph in O(n^2) (Chu and Liu 1965; Edmonds 1967; Tarjan 1977; the order of
// contractions is that of Gabow, Galil, Spencer and Tarjan 1986).
//
// A set of tokens is a token or a contracted cycle of sets. A path of sets grows backwards: its last set takes the best
// arc into it, and the set where that arc begins comes next. Where that is on the path already, the cycle becomes one
// set; where it is the root or leads to it, the path is finished. Each set has a row with the best arc into it from
// each node, reduced by what the sets inside have taken: that of a cycle is the elementwise largest of its sets' rows,
// each less the best of its own. There are fewer than 2 n sets, and each is merged once.
//
// The best of the rows are optimal duals y_S of
//     max sum_a s_a x_a   over x >= 0,  sum of x into S >= 1 for every set S of tokens, = 1 for single tokens,
// the laminar family of sets certifies a tree: y_S <= 0 unless S is a single token, no arc scores more than the sum of
// y_S over the sets it enters, and the y_S sum to the score of the tree.
//
// With a single root an arc from the root counts as worse than all others, in exact arithmetic of pairs (number of arcs
// from the root, score): it is taken where there is no other arc into the set, and no set can be contracted after that,
// so only the choice of arcs knows about it. The tree has one such arc if some tree has; the set that it enters may
// have any dual. (Subtracting a large number from their scores, as Gabow and Tarjan 1984 and Stanojevic and Cohen 2021
// say, would round the scores.)
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "maxmargin/arborescence/batch.hpp"
#include "maxmargin/base/scratch.hpp"

namespace maxmargin::arborescence {

namespace dense {

using namespace simd;

// to = max(one - a, two - b), entry by entry; n is a multiple of 8.
template <class Vec>
MM_INLINE void merge_rows_at(const double* one, double a, const double* two, double b, double* to, std::int64_t n) {
    for (std::int64_t j = 0; j < n; j += lanes<Vec>)
        store(to + j, larger<Vec>(load<Vec>(one + j) - a, load<Vec>(two + j) - b));
}
MM_LEVELS(merge_rows)

// The same for the two largest of each entry, for lists of (first, second).
template <class Vec>
MM_INLINE void merge_pairs_at(const double* one, const double* one_second, double a, const double* two,
                              const double* two_second, double b, double* to, double* to_second, std::int64_t n) {
    for (std::int64_t j = 0; j < n; j += lanes<Vec>) {
        const Vec first = load<Vec>(one + j) - a, other = load<Vec>(two + j) - b;
        const Vec seconds = larger<Vec>(load<Vec>(one_second + j) - a, load<Vec>(two_second + j) - b);
        store(to + j, larger<Vec>(first, other));
        store(to_second + j, larger<Vec>(seconds, first < other ? first : other));
    }
}
MM_LEVELS(merge_pairs)

}  // namespace dense

// Memory of one thread for one example after the other, and what the last run has left in it.
class Contraction {
   public:
    // Rows 1 .. n to be filled with scores before run, `stride` apart.
    double* rows(std::int64_t n_tokens) {
        n_ = n_tokens;
        stride_ = stride_of(n_);
        const auto sets = static_cast<std::size_t>(2 * n_ + 1);
        at_least(rows_, sets * static_cast<std::size_t>(stride_));
        for (auto* numbers : {&tail, &parent, &child_, &sibling_, &first_token_, &last_token_})
            at_least(*numbers, sets);
        at_least(best, sets);
        at_least(covered, sets);
        at_least(place_, sets);
        at_least(top_, static_cast<std::size_t>(n_) + 1);
        at_least(next_token_, static_cast<std::size_t>(n_) + 1);
        at_least(heads, static_cast<std::size_t>(n_) + 1);
        return rows_.data();
    }
    // Likewise the second largest number of every arc over its labels, where `seconds` is asked for.
    double* second_rows() {
        at_least(second_rows_, static_cast<std::size_t>(2 * n_ + 1) * static_cast<std::size_t>(stride_));
        return second_rows_.data();
    }
    std::int64_t stride() const { return stride_; }

    // False if there is no tree. Leaves the heads of all tokens, sets and duals.
    template <bool seconds = false>
    bool run(bool single_root) {
        widest_ = simd::lanes_in_use();
        n_sets = n_ + 1;
        bool rooted = false;
        top_[0] = 0;
        place_[0] = finished;
        for (std::int64_t t = 1; t <= n_; ++t) open(t, t, t);
        for (std::int64_t t = 1; t <= n_; ++t) {
            std::int32_t at = top_[t];
            if (place_[at] == finished) continue;
            path_.clear();
            for (;;) {
                place_[at] = static_cast<std::int32_t>(path_.size());
                path_.push_back(at);
                if (!choose(at, single_root)) return false;
                if (tail[at] == 0) {
                    if (single_root && rooted) return false;
                    rooted = true;
                }
                const std::int32_t from = top_[tail[at]];
                if (place_[from] == finished) break;
                at = place_[from] == fresh ? from : contract<seconds>(static_cast<std::size_t>(place_[from]));
            }
            for (const std::int32_t set : path_) place_[set] = finished;
        }
        expand();
        return true;
    }

    std::int64_t n_roots() const { return std::count(heads.begin() + 1, heads.begin() + n_ + 1, 0); }

    // The largest number of a row of a set with an entry for each node, and the same for the second largest.
    const double* row(std::int64_t set) const { return rows_.data() + set * stride_; }
    const double* second_row(std::int64_t set) const { return second_rows_.data() + set * stride_; }

    std::int64_t n_sets = 1;            // tokens are the sets 1 .. n, then come the cycles as they were contracted
    std::vector<std::int32_t> heads;    // of tokens 1 .. n
    std::vector<std::int32_t> tail;     // where the arc begins that each set took
    std::vector<std::int32_t> parent;   // the set that a set was contracted into, 0 if none
    std::vector<double> best;           // the reduced score of that arc, the dual of the set
    std::vector<std::uint8_t> covered;  // whether the tree enters the set by the arc of a larger one

   private:
    static constexpr std::int32_t fresh = -1, finished = -2;

    void open(std::int64_t set, std::int64_t first, std::int64_t last) {
        place_[set] = fresh;
        parent[set] = child_[set] = sibling_[set] = 0;
        first_token_[set] = static_cast<std::int32_t>(first);
        last_token_[set] = static_cast<std::int32_t>(last);
        covered[set] = 0;
        if (set <= n_) {
            top_[set] = static_cast<std::int32_t>(set);
            next_token_[set] = 0;
        }
    }

    // The first of the best arcs into a set; with a single root the root comes last.
    bool choose(std::int32_t set, bool single_root) {
        const double* from = row(set);
        std::int32_t at = single_root ? 1 : 0;
        const double most = dense::maximum(widest_, from + at, n_ + 1 - at);
        if (single_root && most == NEG_INF) {
            best[set] = from[0];
            tail[set] = 0;
            return std::isfinite(from[0]);  // differences of huge scores may overflow
        }
        if (!(most > NEG_INF)) return false;
        while (from[at] != most) ++at;
        best[set] = most;
        tail[set] = at;
        return true;
    }

    // Makes one set of the path from `begin` on.
    template <bool seconds>
    std::int32_t contract(std::size_t begin) {
        const auto set = static_cast<std::int32_t>(n_sets++);
        double *to = rows_.data() + set * stride_, *to_second = seconds ? second_rows_.data() + set * stride_ : nullptr;
        open(set, first_token_[path_[begin]], last_token_[path_.back()]);
        child_[set] = path_[begin];
        for (std::size_t j = begin; j < path_.size(); ++j) {
            const std::int32_t part = path_[j];
            parent[part] = set;
            if (j == begin) continue;
            const std::int32_t before = path_[j - 1];
            sibling_[before] = part;
            next_token_[last_token_[before]] = first_token_[part];
            const bool first = j == begin + 1;
            const double* one = first ? row(before) : to;
            const double shift = first ? best[before] : 0.0;
            if constexpr (seconds)
                dense::merge_pairs(widest_, one, first ? second_row(before) : to_second, shift, row(part),
                                   second_row(part), best[part], to, to_second, stride_);
            else dense::merge_rows(widest_, one, shift, row(part), best[part], to, stride_);
        }
        for (std::int32_t t = first_token_[set];; t = next_token_[t]) {
            top_[t] = set;
            to[t] = NEG_INF;
            if constexpr (seconds) to_second[t] = NEG_INF;
            if (t == last_token_[set]) break;
        }
        path_.resize(begin);
        return set;
    }

    // The tree takes the arc of each set that no larger one covers; it covers the sets from there to its modifier.
    void expand() {
        for (std::int64_t set = n_sets - 1; set >= 1; --set) {
            if (covered[set]) continue;
            const std::int32_t from = tail[set];
            std::int64_t at = set;
            while (at > n_) {
                const double value = row(at)[from];
                std::int32_t part = child_[at];
                while (row(part)[from] - best[part] != value) part = sibling_[part];
                covered[part] = 1;
                at = part;
            }
            heads[at] = from;
        }
    }

    std::int64_t n_ = 0, stride_ = 8;
    int widest_ = 2;
    std::vector<double> rows_, second_rows_;
    std::vector<std::int32_t> child_, sibling_, first_token_, last_token_;  // of sets
    std::vector<std::int32_t> place_;                                       // on the path; fresh or finished
    std::vector<std::int32_t> top_, next_token_;                            // of tokens
    std::vector<std::int32_t> path_;
};

}  // namespace maxmargin::arborescence
