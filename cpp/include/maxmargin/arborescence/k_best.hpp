// The k best trees of an example, best first, on demand (Camerini, Fratta and Maffioli 1980).
//
// A cell is a set of trees: those with some arcs and without some others. It knows its best tree, and an arc of that
// tree by which to split it: the best tree without the arc is the second best of the cell. The next tree overall is the
// best among the second ones; its cell is split by the arc, and the half that has the arc keeps its best tree.
//
// The second best follows from the contraction of the best (contraction.hpp): of some set whose arc the tree has taken,
// it enters the set by the second best arc that does not begin below the set. So rows hold the two best arcs from each
// node. Cost of a rank: two contractions, O(n^2). With a single root an arc from the root is exchanged only for another
// one, see contraction.hpp (Zmigrod, Vieira and Cotterell 2021 treat roots apart).
//
// Among trees whose scores differ by rounding alone a contraction may find another one than the best that the cell
// knows. It is then the second best, and they are told apart by an arc of the first.
#pragma once

#include <algorithm>

#include "maxmargin/arborescence/argmax.hpp"

namespace maxmargin::arborescence {

namespace dense {

// to = x, but -inf where the place is one of begin .. end - 1.
MM_CLONES inline void outside(const double* MM_RESTRICT x, const double* MM_RESTRICT places, double begin, double end,
                              double* MM_RESTRICT to, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) to[j] = ((places[j] >= begin) & (places[j] < end)) ? NEG_INF : x[j];
}

}  // namespace dense

class KBest {
   public:
    // Takes an example; scores must stay until the last call of next.
    Status begin(const Example& ex, const double* scores) {
        example_ = ex;
        scores_ = scores;
        cells_.clear();
        waiting_.clear();
        limits_.clear();
        emitted_ = split_ = 0;
        Cell& all = cells_.emplace_back();
        const Status found = best_.run(ex, scores, all.value);
        if (found != Status::ok) return found;
        all.parts = best_.parts;
        const auto n = static_cast<std::size_t>(ex.n_tokens);
        const auto size = (n + 1) * static_cast<std::size_t>(stride_of(ex.n_tokens));
        without_.assign(static_cast<std::size_t>(ex.n_parts()), 0);
        at_least(first_, size);
        at_least(second_, size);
        arc_rows(ex, scores, stride_of(ex.n_tokens), first_.data());
        std::fill(second_.begin(), second_.begin() + static_cast<std::ptrdiff_t>(size), NEG_INF);
        if (ex.n_labels > 1)
            ex.each_arc([&](std::int64_t h, std::int64_t m, std::int64_t part) {
                const std::int64_t at = m * stride_of(ex.n_tokens) + h;
                two_largest(part, first_[at], second_[at]);
            });
        forced_.assign(n + 1, -1);
        for (auto* numbers : {&enter_, &leave_, &child_, &sibling_}) at_least(*numbers, n + 1);
        return found;
    }

    // The parts of the next tree, rising, and its score, until the next call; null if there is none.
    const std::vector<std::int32_t>* next(double* value) {
        std::size_t tree = 0;
        if (emitted_++ > 0) {
            examine(split_);
            wait(split_);
            if (emitted_ > 2) wait(cells_.size() - 1);
            do {
                if (waiting_.empty()) return nullptr;
                std::pop_heap(waiting_.begin(), waiting_.end());
                split_ = waiting_.back().cell;
                waiting_.pop_back();
                tree = cells_.size();
                cells_.emplace_back();
                const std::int32_t part = cells_[split_].split, limit = cells_[split_].limit;
                cells_[tree].limit = add({part, limit, false});
                cells_[split_].limit = add({part, limit, true});
            } while (!found_in(tree));
        }
        *value = cells_[tree].value;
        return &cells_[tree].parts;
    }

   private:
    struct Limit {
        std::int32_t part, before;  // before: the one that holds besides, -1 if none
        bool forced;                // trees of the cell have the part; else they do not have it
    };
    struct Cell {
        std::vector<std::int32_t> parts;  // the best tree; empty if not known
        double value = 0.0, loss = 0.0;   // of the best; what the second best has less
        std::int32_t limit = -1, split = -1;
    };
    struct Second {
        double value;
        std::size_t cell;
        bool operator<(const Second& other) const {  // for a heap with the best on top, older cells first among equals
            return value != other.value ? value < other.value : cell > other.cell;
        }
    };

    std::int32_t add(const Limit& limit) {
        limits_.push_back(limit);
        return static_cast<std::int32_t>(limits_.size()) - 1;
    }

    // Examines the half of a cell without an arc. Where differences of huge scores overflow it may seem to be empty:
    // then the other half goes on.
    bool found_in(std::size_t number) {
        if (examine(number) == Status::ok && score_of(scores_, cells_[number].parts, cells_[number].value)) return true;
        cells_.pop_back();
        examine(split_);
        wait(split_);
        return false;
    }

    void wait(std::size_t number) {
        const Cell& cell = cells_[number];
        if (cell.split < 0) return;
        waiting_.push_back({cell.value - cell.loss, number});
        std::push_heap(waiting_.begin(), waiting_.end());
    }

    // The two largest scores of an arc over the labels that are allowed; the label of the first.
    std::int64_t two_largest(std::int64_t part, double& first, double& second) const {
        first = second = NEG_INF;
        std::int64_t at = -1;
        for (std::int64_t p = part; p < part + example_.n_labels; ++p) {
            if (without_[p]) continue;
            if (scores_[p] > first) {
                second = first;
                first = scores_[p];
                at = p;
            } else {
                second = std::max(second, scores_[p]);
            }
        }
        return at;
    }

    // Finds the best tree of a cell, unless it is known, and by which of its arcs to split the cell.
    Status examine(std::size_t number) {
        const std::int64_t n = example_.n_tokens, stride = stride_of(n);
        double* rows = contraction_.rows(n);
        double* seconds = contraction_.second_rows();
        std::copy(first_.begin() + stride, first_.begin() + (n + 1) * stride, rows + stride);
        std::copy(second_.begin() + stride, second_.begin() + (n + 1) * stride, seconds + stride);
        for (std::int32_t at = cells_[number].limit; at >= 0; at = limits_[at].before) {
            if (limits_[at].forced) forced_[example_.ends(limits_[at].part).second] = limits_[at].part;
            else without_[limits_[at].part] = 1;
        }
        for (std::int32_t at = cells_[number].limit; at >= 0; at = limits_[at].before) {
            const std::int32_t part = limits_[at].part;
            const auto [h, m] = example_.ends(part);
            if (limits_[at].forced) {
                std::fill(rows + m * stride, rows + (m + 1) * stride, NEG_INF);
                std::fill(seconds + m * stride, seconds + (m + 1) * stride, NEG_INF);
                rows[m * stride + h] = scores_[part];
            } else if (forced_[m] < 0) {
                two_largest(part - part % example_.n_labels, rows[m * stride + h], seconds[m * stride + h]);
            }
        }
        Cell& cell = cells_[number];
        cell.split = -1;
        const bool found = contraction_.run<true>(example_.single_root);
        if (found) {
            take_tree();
            if (cell.parts.empty()) cell.parts = tree_;
            if (cell.parts == tree_) {
                split(cell);
            } else {
                double value;
                score_of(scores_, tree_, value);
                cell.loss = cell.value - value;
                std::size_t j = 0;
                while (cell.parts[j] == tree_[j]) ++j;
                cell.split = cell.parts[j];
            }
        }
        for (std::int32_t at = cell.limit; at >= 0; at = limits_[at].before) {
            without_[limits_[at].part] = 0;
            forced_[example_.ends(limits_[at].part).second] = -1;
        }
        return found ? Status::ok : treeless(example_, scores_);
    }

    // The parts of the tree that the contraction has found: with labels the first of the best that are allowed.
    void take_tree() {
        tree_.clear();
        for (std::int64_t m = 1; m <= example_.n_tokens; ++m) {
            std::int64_t part = forced_[m];
            if (part < 0) {
                double first, second;
                part = two_largest(example_.first_part(contraction_.heads[m], m), first, second);
            }
            tree_.push_back(static_cast<std::int32_t>(part));
        }
    }

    // The arc of the tree that is exchanged for another at the least loss.
    void split(Cell& cell) {
        const std::int64_t n = example_.n_tokens;
        visit(n);
        const int widest = simd::lanes_in_use();
        double least = std::numeric_limits<double>::infinity();
        for (std::int64_t set = contraction_.n_sets - 1; set >= 1; --set) {
            if (contraction_.covered[set]) continue;
            const std::int32_t from = contraction_.tail[set], to = entered_[set];
            dense::outside(contraction_.row(set), place_.data(), enter_[to], leave_[to], others_.data(), n + 1);
            others_[from] = contraction_.second_row(set)[from];
            const std::int64_t begin = example_.single_root && from > 0 ? 1 : 0;
            const double most = dense::maximum(widest, others_.data() + begin, n + 1 - begin);
            const double loss = contraction_.best[set] - most;
            if (loss < least) {
                least = loss;
                cell.split = tree_[to - 1];
            }
        }
        cell.loss = least;
    }

    // Numbers the nodes of the tree so that those below a node are enter .. leave - 1, and finds the token by which the
    // tree enters each set that no larger one covers.
    void visit(std::int64_t n) {
        const auto& heads = contraction_.heads;
        std::fill(child_.begin(), child_.begin() + n + 1, 0);
        for (std::int64_t m = n; m >= 1; --m) {
            sibling_[m] = child_[heads[m]];
            child_[heads[m]] = static_cast<std::int32_t>(m);
        }
        std::int32_t count = 0, at = 0;
        enter_[0] = count++;
        for (;;) {
            if (child_[at]) {
                at = child_[at];
                enter_[at] = count++;
                continue;
            }
            while (at != 0 && sibling_[at] == 0) {
                leave_[at] = count;
                at = heads[at];
            }
            if (at == 0) break;
            leave_[at] = count;
            at = sibling_[at];
            enter_[at] = count++;
        }
        leave_[0] = count;
        at_least(place_, static_cast<std::size_t>(n) + 1);
        at_least(others_, static_cast<std::size_t>(n) + 1);
        std::copy(enter_.begin(), enter_.begin() + n + 1, place_.begin());
        at_least(entered_, static_cast<std::size_t>(contraction_.n_sets));
        for (std::int32_t m = 1; m <= n; ++m) {
            std::int32_t set = m;
            while (contraction_.covered[set]) set = contraction_.parent[set];
            entered_[set] = m;
        }
    }

    Example example_{};
    const double* scores_ = nullptr;
    BestTree best_;
    Contraction contraction_;
    std::vector<double> first_, second_;  // rows of tokens: the two largest scores of each arc over its labels
    std::vector<std::uint8_t> without_;   // parts; all 0 between two calls
    std::vector<std::int32_t> forced_;    // of each token the part that it must have, -1 if none
    std::vector<Cell> cells_;
    std::vector<Limit> limits_;
    std::vector<Second> waiting_;
    std::size_t emitted_ = 0, split_ = 0;  // trees listed; the cell of which the last one was a part
    std::vector<std::int32_t> tree_, enter_, leave_, child_, sibling_, entered_;
    std::vector<double> place_, others_;  // enter_ for vectors; arcs that the second best may take
};

// Rank r of example i goes to z[r][..], value[r][i] and status[r][i]; z must be zero on entry.
inline void k_best(const Batch& batch, std::int64_t k, std::span<const double> scores, std::span<double> z,
                   std::span<double> value, std::span<std::int8_t> status, int threads) {
    ScratchLease<KBest> scratch(threads, [](KBest&) {});
    const std::int64_t n = batch.size(), parts = batch.n_parts();
    parallel_each(n, 1, threads, [&](int thread, std::int64_t i) {
        KBest& search = scratch[thread];
        Status found = search.begin(batch[i], scores.data() + batch.begin(i));
        for (std::int64_t r = 0; r < k; ++r) {
            double& score = value[r * n + i];
            const std::vector<std::int32_t>* tree = found == Status::ok ? search.next(&score) : nullptr;
            if (!tree && found == Status::ok) found = Status::absent;
            if (tree)
                for (const std::int32_t p : *tree) z[r * parts + batch.begin(i) + p] = 1.0;
            else score = no_value(found);
            status[r * n + i] = static_cast<std::int8_t>(found);
        }
    });
}

}  // namespace maxmargin::arborescence
