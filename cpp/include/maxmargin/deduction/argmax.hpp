// The best output of a deduction system: one pass over the items, and a way back from the goal.
#pragma once

#include <cmath>

#include "maxmargin/base/scratch.hpp"
#include "maxmargin/base/simd.hpp"
#include "maxmargin/deduction/system.hpp"

namespace maxmargin::deduction {

// The largest score of an item, from those of the items before it.
template <class System>
double best_of(const System& system, std::int64_t item, const double* scores, const double* best) {
    double most = NEG_INF;
    system.ways(item, [&](std::int64_t left, std::int64_t right, std::int64_t part) {
        const double sum = at(best, left) + at(best, right) + at(scores, part);
        most = sum > most ? sum : most;
    });
    return most + at(scores, system.part_of(item));
}

template <class System>
class Argmax {
   public:
    std::vector<std::int32_t> parts;  // of the best output, each as often as it is used

    // The largest score of each item after run: NEG_INF for one that cannot be made.
    const double* best() const { return best_.data(); }

    // Of equal outputs the one whose items, from the goal on, are made in the first of their best ways.
    Status run(const System& system, const double* scores, double& value) {
        const Status found = maximize(system, scores, value);
        if (found != Status::ok) return found;
        parts.clear();
        open_.assign(1, system.n_items() - 1);
        while (!open_.empty()) {
            const std::int64_t item = open_.back();
            open_.pop_back();
            trace(system, scores, item);
        }
        return Status::ok;
    }

    // The value alone.
    Status maximize(const System& system, const double* scores, double& value) {
        if (simd::refused(simd::lanes_in_use(), scores, system.n_parts())) return Status::nonfinite;
        const std::int64_t n = system.n_items();
        at_least(best_, static_cast<std::size_t>(n));
        double* best = best_.data();
        if constexpr (requires { system.fill(scores, best); }) system.fill(scores, best);
        else
            for (std::int64_t item = 0; item < n; ++item) best[item] = best_of(system, item, scores, best);
        value = best[n - 1];
        if (value == NEG_INF) return Status::absent;
        return std::isfinite(value) ? Status::ok : Status::nonfinite;
    }

   private:
    void trace(const System& system, const double* scores, std::int64_t item) {
        const double* best = best_.data();
        const std::int64_t own = system.part_of(item);
        bool found = false;
        system.ways(item, [&](std::int64_t left, std::int64_t right, std::int64_t part) {
            if (found || at(best, left) + at(best, right) + at(scores, part) + at(scores, own) != best[item]) return;
            found = true;
            if (right != NONE) open_.push_back(right);
            if (left != NONE) open_.push_back(left);
            if (part != NONE) parts.push_back(static_cast<std::int32_t>(part));
        });
        if (own != NONE) parts.push_back(static_cast<std::int32_t>(own));
    }

    std::vector<double> best_;
    std::vector<std::int64_t> open_;  // items of the output that are not traced yet
};

}  // namespace maxmargin::deduction
