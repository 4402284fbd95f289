// The k best b-matchings of an example, best first, on demand.
//
// A cell is a set of matchings: those that agree with some fixed edges. It knows its best matching and its second best,
// which is the best one changed along the cheapest cycle of the residual graph (matching/residual.hpp). The next
// matching overall is the best among the second ones; its cell is split in two by an edge in which it differs from the
// cell's best, and both halves know their best at once (Chegireddy and Hamacher 1987; the partition is Lawler's, 1972).
// Cost of a rank: twice the cheapest cycle, that is shortest paths between all pairs of nodes of the smaller side;
// memory of a rank: a few bytes per edge.
#pragma once

#include <cstdint>
#include <vector>

#include "maxmargin/matching/argmax.hpp"
#include "maxmargin/matching/residual.hpp"

namespace maxmargin::matching {

class KBest {
   public:
    explicit KBest(const Batch& batch) : matcher_(batch), residual_(batch, true), z_(most_edges(batch)) {}

    // Takes an example; scores must stay until the last call of next.
    Status begin(const Example& ex, const double* scores) {
        scores_ = scores;
        n_edges_ = static_cast<std::size_t>(ex.n_edges);
        used_ = 0;
        waiting_.clear();
        emitted_ = 0;
        double value;
        const Status found = matcher_.solve(ex, scores, z_.data(), &value);
        if (found != kOk) return found;
        residual_.open(ex, scores);
        Cell& all = add();
        all.fixed.assign(n_edges_, 0);
        all.best.resize(n_edges_);
        for (std::size_t e = 0; e < n_edges_; ++e) all.best[e] = z_[e] > 0 ? 1 : 0;
        return kOk;
    }

    // The next matching as taken edges (1) and others (0), and its score, until the next call; null if there is none.
    const std::vector<std::uint8_t>* next(double* value) {
        if (emitted_ == 0) {
            ++emitted_;
            *value = score(cells_[0].best);
            return &cells_[0].best;
        }
        // The cells that the last matching left without a second one: two, at first one.
        if (emitted_ == 1) {
            find_second(0);
        } else {
            find_second(last_);
            find_second(used_ - 1);
        }
        if (waiting_.empty()) return nullptr;
        std::pop_heap(waiting_.begin(), waiting_.end());
        *value = waiting_.back().value;
        last_ = waiting_.back().cell;
        waiting_.pop_back();
        Cell& other = add();
        Cell& cell = cells_[last_];
        other.best = cell.best;
        for (const std::int32_t e : cell.cycle) other.best[e] ^= 1;
        cell.fixed[cell.cycle[0]] = 1;
        other.fixed = cell.fixed;
        ++emitted_;
        return &other.best;
    }

   private:
    struct Cell {
        std::vector<std::uint8_t> fixed, best;
        std::vector<std::int32_t> cycle;  // what the second best changes
    };
    struct Second {
        double value;
        std::size_t cell;
        bool operator<(const Second& other) const {  // for a heap with the best on top, older cells first among equals
            return value != other.value ? value < other.value : cell > other.cell;
        }
    };

    Cell& add() {
        if (used_ == cells_.size()) cells_.emplace_back();
        return cells_[used_++];
    }

    double score(const std::vector<std::uint8_t>& taken) const {
        double sum = 0;
        for (std::size_t e = 0; e < n_edges_; ++e)
            if (taken[e]) sum += scores_[e];
        return sum;
    }

    void find_second(std::size_t number) {
        Cell& cell = cells_[number];
        residual_.close(cell.best.data(), cell.fixed.data());
        double* cost = z_.data();
        residual_.costs(cost);
        double least = kFar;
        std::size_t at = 0;
        for (std::size_t e = 0; e < n_edges_; ++e) {
            if (cost[e] < least && !cell.fixed[e]) {
                least = cost[e];
                at = e;
            }
        }
        if (!(least < kFar)) return;
        residual_.cycle(static_cast<std::int64_t>(at), cell.cycle);
        second_ = cell.best;
        second_.resize(n_edges_);
        for (const std::int32_t e : cell.cycle) second_[e] ^= 1;
        waiting_.push_back({score(second_), number});
        std::push_heap(waiting_.begin(), waiting_.end());
    }

    Matcher matcher_;
    Residual residual_;
    const double* scores_ = nullptr;
    std::size_t n_edges_ = 0, used_ = 0, last_ = 0, emitted_ = 0;
    std::vector<Cell> cells_;  // the first used_ of them; the rest keep their memory for later examples
    std::vector<Second> waiting_;
    std::vector<std::uint8_t> second_;
    std::vector<double> z_;
};

}  // namespace maxmargin::matching
