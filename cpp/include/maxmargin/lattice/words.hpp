// The best word sequences of a lattice one after the other, each by its best path, on demand.
//
// Edges carry words or none; many paths may spell the same words. Sequences are built word by word, as the lattice is
// made deterministic on the way (Mohri and Riley 2002): a prefix of words holds all nodes that paths of these words
// reach, each with the best of these paths. A queue has the prefixes in the order of the best score with which a path
// can go on from them, which is known from one backward pass. So only prefixes of answers are ever taken from it, and
// no prefix is made twice: k sequences of at most L words take k L steps, each of them over the edges that leave the
// nodes of one prefix. This is exact, and the number of paths does not matter. Sequences whose scores differ by
// rounding alone may come in any order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "maxmargin/lattice/k_best.hpp"

namespace maxmargin::lattice {

inline constexpr std::int64_t NO_WORD = -1;

class WordKBest {
   public:
    // Takes an example with the word of each of its edges (NO_WORD: none); all arrays must stay until the last call of
    // next.
    Status begin(const Example& ex, const double* scores, const std::int64_t* words) {
        double value;
        const Status found = best_path(ex, scores, passes_, value);
        if (found != Status::ok) return found;
        ex_ = ex;
        scores_ = scores;
        words_ = words;
        list_by_tails();
        look_ahead();
        reached_.clear();
        made_ = 0;
        queue_.clear();
        slot_.assign(static_cast<std::size_t>(ex.n_nodes), NONE);
        reached_.push_back({0.0, 0, -1, NONE});
        add_prefix(0, ahead_[0], false);
        return Status::ok;
    }

    // The best path of the next word sequence, its edges in order, and its score; null if there is none.
    const std::vector<std::int32_t>* next(double* value) {
        while (!queue_.empty()) {
            std::pop_heap(queue_.begin(), queue_.end());
            const Prefix prefix = queue_.back();
            queue_.pop_back();
            if (!prefix.whole) {
                extend(prefix);
                continue;
            }
            *value = reached_[prefix.begin].score;
            passes_.path.clear();
            for (std::int64_t at = prefix.begin; reached_[at].before != NONE; at = reached_[at].before)
                passes_.path.push_back(ex_.edge[reached_[at].in]);
            std::reverse(passes_.path.begin(), passes_.path.end());
            return &passes_.path;
        }
        return nullptr;
    }

   private:
    static constexpr std::int64_t NONE = -1;

    // The best path of some words to a node: an edge, of the list by heads, after another such path.
    struct Reached {
        double score;
        std::int32_t node, in;
        std::int64_t before;
    };
    // Word sequences with a common beginning: the nodes that it reaches, before edges without words are followed; or
    // one whole sequence.
    struct Prefix {
        double bound;
        std::int64_t number, begin, end;
        bool whole;
        bool operator<(const Prefix& other) const {  // for a heap with the best on top, whole and older ones first
            if (bound != other.bound) return bound < other.bound;
            return whole != other.whole ? !whole : number > other.number;
        }
    };
    struct Step {
        std::int64_t word, before;
        double score;
        std::int32_t node, in;
    };

    void list_by_tails() {
        const auto n = static_cast<std::size_t>(ex_.n_nodes);
        out_first_.assign(n + 1, 0);
        out_.resize(static_cast<std::size_t>(ex_.n_edges));
        head_.resize(out_.size());
        for (std::int64_t j = 0; j < ex_.n_edges; ++j) ++out_first_[ex_.tail[j] + 1];
        for (std::size_t v = 0; v < n; ++v) out_first_[v + 1] += out_first_[v];
        std::vector<std::int32_t>& at = order_;
        at.assign(out_first_.begin(), out_first_.end());
        for (std::int64_t v = 0; v < ex_.n_nodes; ++v)
            for (std::int32_t j = ex_.first[v]; j < ex_.first[v + 1]; ++j) {
                head_[j] = static_cast<std::int32_t>(v);
                out_[at[ex_.tail[j]]++] = j;
            }
    }

    // ahead[v]: the largest score of a path from v to the end.
    void look_ahead() {
        ahead_.assign(static_cast<std::size_t>(ex_.n_nodes), NEG_INF);
        ahead_[ex_.last()] = 0.0;
        for (std::int64_t v = ex_.last(); v > 0; --v)
            for (std::int32_t j = ex_.first[v]; j < ex_.first[v + 1]; ++j)
                ahead_[ex_.tail[j]] = std::max(ahead_[ex_.tail[j]], scores_[ex_.edge[j]] + ahead_[v]);
    }

    void add_prefix(std::int64_t begin, double bound, bool whole) {
        if (!(bound > NEG_INF)) return;  // forbidden
        queue_.push_back({bound, made_++, begin, static_cast<std::int64_t>(reached_.size()), whole});
        std::push_heap(queue_.begin(), queue_.end());
    }

    // Follows edges without words as far as they go, then makes the prefixes that are one word longer.
    void extend(const Prefix& prefix) {
        // Nodes wait in topological order, so that a node is left when its best path is known.
        const auto later = [](std::int32_t a, std::int32_t b) { return a > b; };
        waiting_.clear();
        steps_.clear();
        for (std::int64_t at = prefix.begin; at < prefix.end; ++at) {
            slot_[reached_[at].node] = at;
            waiting_.push_back(reached_[at].node);
        }
        std::make_heap(waiting_.begin(), waiting_.end(), later);
        while (!waiting_.empty()) {
            std::pop_heap(waiting_.begin(), waiting_.end(), later);
            const std::int32_t v = waiting_.back();
            waiting_.pop_back();
            const std::int64_t here = slot_[v];
            slot_[v] = NONE;
            if (v == ex_.last()) {
                const Reached last = reached_[here];
                reached_.push_back(last);
                add_prefix(static_cast<std::int64_t>(reached_.size()) - 1, last.score, true);
                continue;
            }
            for (std::int32_t a = out_first_[v]; a < out_first_[v + 1]; ++a) {
                const std::int32_t j = out_[a], head = head_[j];
                const double score = reached_[here].score + scores_[ex_.edge[j]];
                if (!(score > NEG_INF)) continue;
                const std::int64_t word = words_[ex_.edge[j]];
                if (word != NO_WORD) {
                    steps_.push_back({word, here, score, head, j});
                } else if (slot_[head] == NONE) {
                    slot_[head] = static_cast<std::int64_t>(reached_.size());
                    reached_.push_back({score, head, j, here});
                    waiting_.push_back(head);
                    std::push_heap(waiting_.begin(), waiting_.end(), later);
                } else if (score > reached_[slot_[head]].score) {
                    slot_[head] = static_cast<std::int64_t>(reached_.size());
                    reached_.push_back({score, head, j, here});
                }
            }
        }
        std::sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) {
            if (a.word != b.word) return a.word < b.word;
            if (a.node != b.node) return a.node < b.node;
            return a.score != b.score ? a.score > b.score : a.in < b.in;
        });
        for (std::size_t s = 0; s < steps_.size();) {
            const auto begin = static_cast<std::int64_t>(reached_.size());
            const std::int64_t word = steps_[s].word;
            double bound = NEG_INF;
            std::int32_t node = -1;
            for (; s < steps_.size() && steps_[s].word == word; ++s) {
                if (steps_[s].node == node) continue;  // a worse path to the same node
                node = steps_[s].node;
                reached_.push_back({steps_[s].score, node, steps_[s].in, steps_[s].before});
                bound = std::max(bound, steps_[s].score + ahead_[node]);
            }
            add_prefix(begin, bound, false);
        }
    }

    Example ex_{};
    const double* scores_ = nullptr;
    const std::int64_t* words_ = nullptr;
    Passes passes_;
    std::vector<double> ahead_;
    std::vector<std::int32_t> out_first_, out_, head_, order_, waiting_;  // edges of the list by heads, by their tails
    std::vector<Reached> reached_;
    std::vector<Prefix> queue_;
    std::vector<Step> steps_;
    std::vector<std::int64_t> slot_;  // where in reached_ a node of the present prefix stands
    std::int64_t made_ = 0;
};

// As lattice::k_best; `words` has the word of every edge of the batch.
inline void k_best_words(const Batch& batch, std::int64_t k, std::span<const double> scores,
                         std::span<const std::int64_t> words, std::span<double> z, std::span<double> value,
                         std::span<std::int8_t> status, int threads) {
    auto kernels = per_thread<WordKBest>(threads);
    write_ranks(batch, k, z, value, status, threads, kernels, [&](WordKBest& kernel, std::int64_t i) {
        return kernel.begin(batch[i], scores.data() + batch.begin(i), words.data() + batch.begin(i));
    });
}

}  // namespace maxmargin::lattice
