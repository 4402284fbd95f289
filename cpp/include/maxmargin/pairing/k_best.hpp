// The k best pairings of an example, best first, on demand.
//
// A cell is a set of pairings: those with some edges and without some others. The next pairing overall is the best of a
// cell, and what is left of that cell is split (Lawler 1972): for each edge of the pairing that the cell does not
// force, those that have the edges before it and lack it; and those that have all its edges and others besides. The
// best of these last adds one edge, as no edge that could be added raises the score. Half as many argmax calls as nodes
// a rank.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "maxmargin/pairing/batch.hpp"

namespace maxmargin::pairing {

class KBest {
   public:
    // Takes an example; scores must stay until the last call of next.
    Status begin(const Example& ex, const double* scores) {
        ex_ = ex, scores_ = scores;
        waiting_.clear();
        last_.pairing.clear();
        begun_ = false;
        const Status found = pairer_.begin(ex, scores);
        if (found != Status::ok) return found;
        Cell all;
        all.rules.assign(static_cast<std::size_t>(ex.n_edges), Pairer::kFree);
        return offer(std::move(all)) ? Status::ok : Status::absent;
    }

    // The next pairing by its edges in rising order, and its score, until the next call; null if there is none.
    const std::vector<std::int32_t>* next(double* value) {
        if (begun_) split();
        begun_ = true;
        if (waiting_.empty()) return nullptr;
        std::pop_heap(waiting_.begin(), waiting_.end());
        last_ = std::move(waiting_.back());
        waiting_.pop_back();
        *value = last_.value;
        return &last_.pairing;
    }

   private:
    struct Cell {
        std::vector<std::uint8_t> rules;
        bool adds = false;                    // whether a pairing must have an edge besides the forced ones
        std::vector<std::int32_t> pairing{};  // the best one
        double value = 0;
        bool operator<(const Cell& other) const {  // for a heap with the best on top, in a fixed order among equals
            return value != other.value ? value < other.value : pairing > other.pairing;
        }
    };

    // Puts a cell among those that wait, unless it is empty.
    bool offer(Cell cell) {
        if (cell.adds ? !add_best(cell) : pairer_.solve(cell.rules.data(), cell.pairing) != Status::ok) return false;
        cell.value = pairer_.score(cell.pairing);
        waiting_.push_back(std::move(cell));
        std::push_heap(waiting_.begin(), waiting_.end());
        return true;
    }

    void split() {
        Cell rest{last_.rules, last_.adds};
        for (const std::int32_t e : last_.pairing) {
            if (rest.rules[e] == Pairer::kIn) continue;
            rest.rules[e] = Pairer::kOut;
            offer(rest);
            rest.rules[e] = Pairer::kIn;
        }
        if (ex_.perfect) return;
        rest.adds = true;
        offer(std::move(rest));
    }

    // The forced edges and the best edge that can be added to them; false if there is none.
    bool add_best(Cell& cell) {
        covered_.assign(static_cast<std::size_t>(ex_.n_nodes), 0);
        cell.pairing.clear();
        for (Int e = 0; e < ex_.n_edges; ++e) {
            if (cell.rules[e] != Pairer::kIn) continue;
            covered_[ex_.ends[2 * e]] = covered_[ex_.ends[2 * e + 1]] = 1;
            cell.pairing.push_back(static_cast<std::int32_t>(e));
        }
        double best = -std::numeric_limits<double>::infinity();
        Int at = -1;
        for (Int e = 0; e < ex_.n_edges; ++e) {
            const bool fits =
                cell.rules[e] == Pairer::kFree && !covered_[ex_.ends[2 * e]] && !covered_[ex_.ends[2 * e + 1]];
            if (fits && scores_[e] > best) best = scores_[e], at = e;
        }
        if (at < 0) return false;
        cell.pairing.insert(std::upper_bound(cell.pairing.begin(), cell.pairing.end(), at),
                            static_cast<std::int32_t>(at));
        return true;
    }

    Example ex_{};
    const double* scores_ = nullptr;
    Pairer pairer_;
    std::vector<Cell> waiting_;
    Cell last_;
    bool begun_ = false;
    std::vector<std::uint8_t> covered_;
};

}  // namespace maxmargin::pairing
