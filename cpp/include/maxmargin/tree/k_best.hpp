// The k best outputs of forests and junction trees, found on demand from the top (Huang and Chiang 2005, algorithm 3).
//
// After max-product every choice knows its best continuation. A *choice* is a node with the labels of its separator
// fixed: its list holds the best labeled subtrees, merged from one list per label. A *joint* is a node with its label
// fixed and two or more children: its list holds the best combinations of their lists, two at a time (child j, and the
// joint of those after it). Lists grow by one entry on demand: the best waiting candidate is taken, and
// the candidates next to it (one rank further in a list it was made from) are put in its place. Cost per example:
// max-product, plus for each rank at most one entry in each list along the output. No recursion, however long a path.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "maxmargin/base/hashing.hpp"
#include "maxmargin/tree/max_product.hpp"

namespace maxmargin::tree {

class KBest {
   public:
    explicit KBest(const Plan& plan) : plan_(plan) { scratch_.resize(plan); }

    // Takes example i; the status of its best output.
    Status begin(int width, std::int64_t i, const Scores& scores) {
        i_ = i;
        first_ = plan_.nodes[i];
        n_ = plan_.nodes[i + 1] - first_;
        scores_ = scores;
        used_ = 0;
        joints_.clear();
        choices_.assign(static_cast<std::size_t>(plan_.n_messages[i]), NONE);
        roots_.clear();
        double value;
        const Status found = upward(width, plan_, i, scores, scratch_, value);
        if (found != Status::ok) return found;
        for (std::int64_t t = 0; t < n_; ++t) {
            const std::int32_t v = plan_.order[first_ + t];
            if (plan_.parent[first_ + v] < 0) roots_.push_back(add_choice(v, 0));
        }
        top_ = NONE;
        for (auto root = roots_.rbegin(); root != roots_.rend(); ++root)
            top_ = top_ == NONE ? *root : add_pair(*root, top_);
        return found;
    }

    // The labels of output number r (asked for in rising order) and its score; false if there is none.
    bool labels(std::int64_t r, std::int32_t* out, double& score) {
        if (top_ == NONE) {  // no nodes: one output
            score = 0.0;
            return r == 0;
        }
        if (!have(top_, static_cast<std::int32_t>(r))) return false;
        score = items_[top_].list[static_cast<std::size_t>(r)].value;
        walk_.assign(1, {top_, static_cast<std::int32_t>(r)});
        while (!walk_.empty()) {
            const auto [id, rank] = walk_.back();
            walk_.pop_back();
            if (!have(id, rank)) return false;  // it is there: a label's best continuation is counted before it is made
            const Entry entry = items_[id].list[rank];
            if (items_[id].node == NONE) {
                walk_.push_back({items_[id].left, entry.one});
                walk_.push_back({items_[id].right, entry.two});
            } else {
                out[items_[id].node] = entry.one;
                const std::int32_t below = continuation(id, entry.one);
                if (below != NONE) walk_.push_back({below, entry.two});
            }
        }
        return true;
    }

   private:
    static constexpr std::int32_t NONE = -1;

    // Of a choice: its label and the rank of the continuation. Of a pair: the ranks in its two lists.
    struct Entry {
        double value;
        std::int32_t one, two;
    };
    struct Waiting {
        Entry entry;
        double best;  // of a choice: the value with this label's best continuation
        std::int64_t serial;
        bool operator<(const Waiting& other) const {  // for a heap with the best on top, first come among equals
            return entry.value != other.entry.value ? entry.value < other.entry.value : serial > other.serial;
        }
    };
    struct Item {
        std::int32_t node;         // of a choice; NONE for a pair
        std::int64_t row;          // of a choice: labels of its separator
        std::int32_t left, right;  // of a pair
        bool started;
        std::vector<Entry> list;
        std::vector<Waiting> heap, next;  // next: candidates whose values are not known yet
    };

    const Plan& plan_;
    Scratch scratch_;
    std::int64_t i_ = 0, first_ = 0, n_ = 0, serial_ = 0;
    Scores scores_{};
    std::vector<Item> items_;  // the first used_ of them; the rest keep their memory for later examples
    std::size_t used_ = 0;
    std::vector<std::int32_t> choices_, roots_;                                 // by position in the messages; roots
    std::unordered_map<std::int64_t, std::int32_t, hashing::OfNumber> joints_;  // by node and labels
    std::vector<std::pair<std::int32_t, std::int32_t>> walk_, asked_;
    std::int32_t top_ = NONE;

    std::int32_t add(std::int32_t node, std::int64_t row, std::int32_t left, std::int32_t right) {
        if (used_ == items_.size()) items_.emplace_back();
        Item& item = items_[used_];
        item.node = node;
        item.row = row;
        item.left = left;
        item.right = right;
        item.started = false;
        item.list.clear();
        item.heap.clear();
        item.next.clear();
        return static_cast<std::int32_t>(used_++);
    }
    std::int32_t add_choice(std::int32_t node, std::int64_t row) { return add(node, row, NONE, NONE); }
    std::int32_t add_pair(std::int32_t left, std::int32_t right) { return add(NONE, 0, left, right); }
    std::int32_t choice(std::int32_t node, std::int64_t row) {
        std::int32_t& id = choices_[plan_.message[first_ + node] + row];
        if (id == NONE) id = add_choice(node, row);
        return id;
    }

    // Labels of the separator of node v in a row of its cluster.
    void digits_of(std::int64_t v, std::int64_t row) {
        for (std::int64_t d = plan_.separators[v + 1] - plan_.separators[v] - 1; d >= 0; --d) {
            const std::int64_t k = plan_.labels[first_ + plan_.separator[plan_.separators[v] + d]];
            scratch_.digits[d] = row % k;
            row /= k;
        }
    }

    // The list that follows label x in a choice: nothing, the choice of the only child, or the joint of all children.
    std::int32_t continuation(std::int32_t id, std::int32_t x) {
        const std::int32_t node = items_[id].node;
        const std::int64_t v = first_ + node, row = items_[id].row;
        const std::int64_t from = plan_.children[v], to = plan_.children[v + 1];
        if (from == to) return NONE;
        bool wide = false;
        for (std::int64_t c = from; c < to; ++c) wide |= plan_.as_term[first_ + plan_.child[c]] >= 0;
        if (to - from > 1) {
            // Children that see nothing but v have the same joint whatever the separator's labels.
            const std::int64_t key = (wide ? row * plan_.labels[v] : 0) + x;
            const auto found = joints_.find(key * n_ + node);
            if (found != joints_.end()) return found->second;
            if (wide) digits_of(v, row);
            std::int32_t last = NONE;
            for (std::int64_t c = to - 1; c >= from; --c) {
                const std::int32_t one = child_choice(v, plan_.child[c], x);
                last = last == NONE ? one : add_pair(one, last);
            }
            joints_.emplace(key * n_ + node, last);
            return last;
        }
        if (wide) digits_of(v, row);
        return child_choice(v, plan_.child[from], x);
    }

    // The choice of a child given label x of its parent v, and scratch_.digits where it sees more than v.
    std::int32_t child_choice(std::int64_t v, std::int32_t child, std::int32_t x) {
        const std::int64_t at = plan_.as_term[first_ + child];
        if (at < 0) return choice(child, x);
        const Term& term = plan_.term[at];
        std::int64_t row = x * term.own;
        for (std::int64_t d = 0; d < plan_.separators[v + 1] - plan_.separators[v]; ++d)
            row += scratch_.digits[d] * plan_.stride[term.strides + d];
        return choice(child, row);
    }

    void wait(std::int32_t id, const Entry& entry, double best) {
        if (!(entry.value > NEG_INF)) return;
        auto& heap = items_[id].heap;
        heap.push_back({entry, best, serial_++});
        std::push_heap(heap.begin(), heap.end());
    }

    void start(std::int32_t id) {
        items_[id].started = true;
        const std::int32_t node = items_[id].node;
        if (node == NONE) {
            items_[id].next.push_back({{0.0, 0, 0}, 0.0, 0});
            return;
        }
        const std::int64_t v = first_ + node;
        digits_of(v, items_[id].row);
        double* row = scratch_.row.data();
        cluster_row(
            plan_, v, scores_, scratch_.h.data(), scratch_.messages.data(),
            [&](std::int64_t d) { return scratch_.digits[d]; }, row);
        for (std::int32_t x = 0; x < plan_.labels[v]; ++x) wait(id, {row[x], x, 0}, row[x]);
    }

    // Whether list `id` has an entry of this rank, made now if need be. A list that needs an entry of another waits on
    // the stack until that is there or known not to be.
    bool have(std::int32_t id, std::int32_t rank) {
        asked_.assign(1, {id, rank});
        while (!asked_.empty()) {
            const auto [at, wanted] = asked_.back();
            if (known(at, wanted)) {
                asked_.pop_back();
                continue;
            }
            if (!items_[at].started) start(at);
            if (!settle(at)) continue;
            Item& item = items_[at];
            if (item.heap.empty()) {
                asked_.pop_back();
                continue;
            }
            std::pop_heap(item.heap.begin(), item.heap.end());
            const Waiting taken = item.heap.back();
            item.heap.pop_back();
            item.list.push_back(taken.entry);
            const auto [value, one, two] = taken.entry;
            // A pair (a, b) is reached from (a, b - 1), and (a, 0) from (a - 1, 0): each once.
            item.next.push_back({{0.0, one, two + 1}, taken.best, 0});
            if (item.node == NONE && two == 0) item.next.push_back({{0.0, one + 1, 0}, 0.0, 0});
        }
        return static_cast<std::int64_t>(items_[id].list.size()) > rank;
    }

    bool exhausted(std::int32_t id) const {
        return items_[id].started && items_[id].heap.empty() && items_[id].next.empty();
    }
    bool known(std::int32_t id, std::int32_t rank) const {
        return static_cast<std::int64_t>(items_[id].list.size()) > rank || exhausted(id);
    }
    bool ask(std::int32_t id, std::int32_t rank) {
        if (known(id, rank)) return false;
        asked_.push_back({id, rank});
        return true;
    }
    const Entry* entry(std::int32_t id, std::int32_t rank) const {
        const auto& list = items_[id].list;
        return static_cast<std::int64_t>(list.size()) > rank ? &list[rank] : nullptr;
    }

    // Values for the candidates of `next`; false if another list was asked first.
    bool settle(std::int32_t id) {
        while (!items_[id].next.empty()) {
            const Waiting candidate = items_[id].next.back();
            const auto [value, one, two] = candidate.entry;
            if (items_[id].node == NONE) {
                const std::int32_t left = items_[id].left, right = items_[id].right;
                if (ask(left, one) || ask(right, two)) return false;
                items_[id].next.pop_back();
                const Entry *a = entry(left, one), *b = entry(right, two);
                if (a && b) wait(id, {a->value + b->value, one, two}, 0.0);
            } else {
                const std::int32_t below = continuation(id, one);
                if (below != NONE && ask(below, two)) return false;
                items_[id].next.pop_back();
                // The loss against the best continuation keeps the list sorted whatever the rounding.
                const Entry* a = below == NONE ? nullptr : entry(below, two);
                if (a) wait(id, {candidate.best + (a->value - entry(below, 0)->value), one, two}, candidate.best);
            }
        }
        return true;
    }
};

// Rank r of example i goes to z[r][..], value[r][i] and status[r][i]; z must be zero on entry.
inline void k_best(const Plan& plan, std::int64_t k, std::span<const double> scores, std::span<double> z,
                   std::span<double> value, std::span<std::int8_t> status, int threads) {
    const int width = lanes_in_use();
    const std::int64_t n = plan.n_examples(), n_parts = plan.n_parts();
    auto kernels = per_thread<KBest>(threads, plan);
    auto labels = per_thread<std::vector<std::int32_t>>(threads, plan.most_nodes);
    parallel_each(n, 1, threads, [&](int thread, std::int64_t i) {
        KBest& kernel = kernels[thread];
        std::int32_t* own = labels[thread].data();
        Status found = kernel.begin(width, i, parts_of(plan, i, scores.data()));
        for (std::int64_t r = 0; r < k; ++r) {
            double& score = value[r * n + i];
            score = found == Status::nonfinite ? std::numeric_limits<double>::quiet_NaN() : NEG_INF;
            if (found == Status::ok && !kernel.labels(r, own, score)) {
                found = Status::absent;
                score = NEG_INF;
            }
            if (found == Status::ok) mark(plan, i, own, z.data() + r * n_parts);
            status[r * n + i] = static_cast<std::int8_t>(found);
        }
    });
}

}  // namespace maxmargin::tree
