// The best outputs of a deduction system one after the other, on demand (Huang and Chiang 2005, algorithm 3).
//
// A derivation of an item is one of its ways and a rank of each antecedent. An item that some rank has asked for keeps
// the derivations that are known, best first, and a heap of candidates: for each way the best that has not been taken
// yet. A derivation that is taken offers its successors, with the next rank of the right antecedent, and, where the
// right rank is the first, of the left one: so each pair of ranks is offered once. Items that no rank has asked for
// have no heap: their best score is known from the argmax.
#pragma once

#include "maxmargin/deduction/argmax.hpp"

namespace maxmargin::deduction {

template <class System>
class KBest {
   public:
    // Takes an example; what the system refers to, and the scores, must stay until the last call of next.
    Status begin(const System& system, const double* scores) {
        double value;
        const Status found = argmax_.maximize(system, scores, value);
        for (const std::int64_t item : opened_) nodes_[item].close();
        opened_.clear();
        if (found != Status::ok) return found;
        system_ = &system;
        scores_ = scores;
        if (nodes_.size() < static_cast<std::size_t>(system.n_items()))
            nodes_.resize(static_cast<std::size_t>(system.n_items()));
        rank_ = 0;
        return Status::ok;
    }

    // The parts of the next output, each as often as it is used, and its score; null if there is none.
    std::vector<std::int32_t>* next(double* value) {
        const std::int64_t goal = system_->n_items() - 1;
        if (!reach(goal, rank_)) return nullptr;
        *value = nodes_[goal].found[rank_].score;
        parts_.clear();
        collect(goal, rank_++);
        return &parts_;
    }

   private:
    struct Way {
        std::int64_t left, right, part;
    };
    struct Derivation {
        double score;
        std::int64_t way, left, right;                   // ranks of the antecedents
        bool operator<(const Derivation& other) const {  // for a heap with the best on top, the first way among equals
            if (score != other.score) return score < other.score;
            if (way != other.way) return way > other.way;
            return left != other.left ? left > other.left : right > other.right;
        }
    };
    struct Node {
        bool open = false;
        bool exhausted = false;  // there are no more derivations than those that are found
        bool offered = true;     // the successors of the last derivation are in the heap
        std::vector<Way> ways;
        std::vector<Derivation> found, heap;
        void close() {
            open = exhausted = false;
            offered = true;
            ways.clear();
            found.clear();
            heap.clear();
        }
    };

    // Finds derivations of an item up to a rank; false if there are not so many. What is asked for waits on a stack of
    // its own, not on that of the thread: items of long sequences are as deep as the sequences are long.
    bool reach(std::int64_t goal, std::int64_t rank) {
        asked_.assign(1, {goal, rank});
        while (!asked_.empty()) {
            const auto [item, wanted] = asked_.back();
            open(item);
            Node& node = nodes_[item];
            if (settled(item, wanted)) {
                asked_.pop_back();
            } else if (node.offered || ask_for_successors(item)) {
                if (!node.offered) offer_successors(item);
                take(node);
            }
        }
        return rank < static_cast<std::int64_t>(nodes_[goal].found.size());
    }

    // Whether it is known what a rank of an open item is, or that there is none.
    bool settled(std::int64_t item, std::int64_t rank) const {
        const Node& node = nodes_[item];
        return node.exhausted || rank < static_cast<std::int64_t>(node.found.size());
    }

    // The best candidate of an item becomes its next derivation.
    static void take(Node& node) {
        if (node.heap.empty()) {
            node.exhausted = true;
            return;
        }
        std::pop_heap(node.heap.begin(), node.heap.end());
        node.found.push_back(node.heap.back());
        node.heap.pop_back();
        node.offered = false;
    }

    // Asks for the ranks that the successors of an item's last derivation have; true if all are settled.
    bool ask_for_successors(std::int64_t item) {
        const Derivation last = nodes_[item].found.back();
        const Way way = nodes_[item].ways[last.way];
        const bool right = ask(way.right, last.right + 1);
        return last.right == 0 ? ask(way.left, last.left + 1) && right : right;
    }

    // Ranks up to those of a derivation that was taken are known.
    bool ask(std::int64_t item, std::int64_t rank) {
        if (item == NONE || (nodes_[item].open && settled(item, rank))) return true;
        asked_.push_back({item, rank});
        return false;
    }

    void offer_successors(std::int64_t item) {
        const Derivation last = nodes_[item].found.back();
        offer(item, last.way, last.left, last.right + 1);
        if (last.right == 0) offer(item, last.way, last.left + 1, 0);
        nodes_[item].offered = true;
    }

    void open(std::int64_t item) {
        Node& node = nodes_[item];
        if (node.open) return;
        node.open = true;
        opened_.push_back(item);
        const double *best = argmax_.best(), own = at(scores_, system_->part_of(item));
        system_->ways(item, [&](std::int64_t left, std::int64_t right, std::int64_t part) {
            const double score = at(best, left) + at(best, right) + at(scores_, part) + own;
            if (!(score > NEG_INF)) return;  // forbidden
            node.heap.push_back({score, static_cast<std::int64_t>(node.ways.size()), 0, 0});
            node.ways.push_back({left, right, part});
        });
        std::make_heap(node.heap.begin(), node.heap.end());
    }

    void offer(std::int64_t item, std::int64_t number, std::int64_t left, std::int64_t right) {
        const Way way = nodes_[item].ways[number];
        double first, second;
        if (!score_of(way.left, left, first) || !score_of(way.right, right, second)) return;
        const double score = first + second + at(scores_, way.part) + at(scores_, system_->part_of(item));
        if (!(score > NEG_INF)) return;
        std::vector<Derivation>& heap = nodes_[item].heap;
        heap.push_back({score, number, left, right});
        std::push_heap(heap.begin(), heap.end());
    }

    // The score of an antecedent's rank, which is settled; false if it has not so many.
    bool score_of(std::int64_t item, std::int64_t rank, double& score) const {
        if (item == NONE) {
            score = 0.0;
            return rank == 0;
        }
        if (rank == 0) {
            score = argmax_.best()[item];
            return true;
        }
        if (rank >= static_cast<std::int64_t>(nodes_[item].found.size())) return false;
        score = nodes_[item].found[rank].score;
        return true;
    }

    void collect(std::int64_t goal, std::int64_t rank) {
        stack_.assign(1, {goal, rank});
        while (!stack_.empty()) {
            const auto [item, wanted] = stack_.back();
            stack_.pop_back();
            reach(item, wanted);
            const Derivation taken = nodes_[item].found[wanted];
            const Way way = nodes_[item].ways[taken.way];
            const std::int64_t own = system_->part_of(item);
            if (way.right != NONE) stack_.push_back({way.right, taken.right});
            if (way.left != NONE) stack_.push_back({way.left, taken.left});
            if (way.part != NONE) parts_.push_back(static_cast<std::int32_t>(way.part));
            if (own != NONE) parts_.push_back(static_cast<std::int32_t>(own));
        }
    }

    const System* system_ = nullptr;
    const double* scores_ = nullptr;
    Argmax<System> argmax_;
    std::vector<Node> nodes_;
    std::vector<std::int64_t> opened_;
    // Items and ranks that are to be found, the next one last.
    std::vector<std::pair<std::int64_t, std::int64_t>> asked_;
    std::vector<std::pair<std::int64_t, std::int64_t>> stack_;  // items and ranks whose parts are to be collected
    std::vector<std::int32_t> parts_;
    std::int64_t rank_ = 0;
};

}  // namespace maxmargin::deduction
