// Slack rescaling for deduction systems: argmax over outputs of (costs'y + constant) (margin + scores'y), exactly.
//
// An item keeps not one best derivation but a front of them (base/fronts.hpp): the merge of those of its ways, each the
// sums of an entry of the left front and one of the right. With Hamming loss a front has at most one entry for each
// number of errors, so a way costs at most the product of the errors that its antecedents can have.
//
// Other costs may give fronts of any length. Where one was thinned the value found is an upper bound, the output is one
// of the system, and the status INEXACT.
#pragma once

#include <cmath>

#include "maxmargin/base/fronts.hpp"
#include "maxmargin/base/simd.hpp"
#include "maxmargin/deduction/system.hpp"

namespace maxmargin::deduction {

template <class System>
class SlackSearch {
   public:
    std::vector<std::int32_t> parts;  // of the best output, each as often as it is used

    Status run(const System& system, const double* scores, double margin, const double* costs, double constant,
               double& value) {
        if (!prepare(system, scores, margin, costs, constant)) return Status::nonfinite;
        const std::int64_t n = system.n_items();
        for (std::int64_t item = 0; item < n; ++item) {
            merge_.front.clear();
            const std::int64_t own = system.part_of(item);
            if (at(scores, own) > NEG_INF)
                system.ways(item, [&](std::int64_t left, std::int64_t right, std::int64_t part) {
                    const double score = at(scores, part) + at(scores, own);
                    if (score > NEG_INF) join(item, left, right, part, at(costs, part) + at(costs, own), score);
                });
            arena_.insert(arena_.end(), merge_.front.begin(), merge_.front.end());
            first_[item + 1] = static_cast<std::int64_t>(arena_.size());
        }
        return choose(system, scores, margin, costs, constant, value);
    }

   private:
    // A derivation of an item: entries of the antecedents in the arena, and the part of its way.
    struct Entry {
        double loss, score;
        std::int64_t left, right;
        std::int32_t item, part;
    };

    // False if a number is not finite, but for scores of -inf.
    bool prepare(const System& system, const double* scores, double margin, const double* costs, double constant) {
        const double size = std::fabs(margin) + std::fabs(constant);
        double all = 0.0;
        for (std::int64_t p = 0; p < system.n_parts(); ++p) all += std::fabs(costs[p]);
        if (!std::isfinite(size + all) || simd::refused(simd::lanes_in_use(), scores, system.n_parts())) return false;
        merge_.begin(FrontMerge<Entry>::limit_for(system.n_items()), 1e-15 * all);
        arena_.clear();
        first_.assign(static_cast<std::size_t>(system.n_items()) + 1, 0);
        return true;
    }

    // Merges the derivations of one way into the front of its item.
    void join(std::int64_t item, std::int64_t left, std::int64_t right, std::int64_t part, double cost, double score) {
        const auto entry = [&](double loss, double sum, std::int64_t a, std::int64_t b) {
            merge_.other.push_back({loss, sum, a, b, static_cast<std::int32_t>(item), static_cast<std::int32_t>(part)});
        };
        if (left == NONE) {
            merge_.other.clear();
            entry(cost, score, NONE, NONE);
            return merge_.merge();
        }
        // The entries of the left front one at a time, or all at once where there is no right one.
        for (std::int64_t a = first_[left]; a < first_[left + 1];) {
            merge_.other.clear();
            if (right == NONE) {
                for (; a < first_[left + 1]; ++a) entry(arena_[a].loss + cost, arena_[a].score + score, a, NONE);
            } else {
                for (std::int64_t b = first_[right]; b < first_[right + 1]; ++b)
                    entry(arena_[a].loss + arena_[b].loss + cost, arena_[a].score + arena_[b].score + score, a, b);
                ++a;
            }
            if (!merge_.other.empty()) merge_.merge();
        }
    }

    // The output of the best product; where none is positive that of the best score, the last of the goal's front.
    Status choose(const System& system, const double* scores, double margin, const double* costs, double constant,
                  double& value) {
        const std::int64_t n = system.n_items(), begin = first_[n - 1], end = first_[n];
        if (begin == end) return Status::absent;
        std::int64_t chosen = end - 1;
        value = 0.0;
        for (std::int64_t a = begin; a < end; ++a) {
            const double loss = constant + arena_[a].loss, good = margin + arena_[a].score;
            if (loss > 0.0 && good > 0.0 && loss * good > value) {
                value = loss * good;
                chosen = a;
            }
        }
        collect(system, chosen);
        double loss = constant, good = margin;
        for (const std::int32_t part : parts) {
            loss += costs[part];
            good += scores[part];
        }
        if (!std::isfinite(value) || !std::isfinite(good)) return Status::nonfinite;
        if (merge_.thinned) return Status::inexact;
        // The product of the output itself, whatever the order of the sums was.
        if (value > 0.0) value = std::max(0.0, loss * good);
        return Status::ok;
    }

    void collect(const System& system, std::int64_t chosen) {
        parts.clear();
        open_.assign(1, chosen);
        while (!open_.empty()) {
            const Entry& entry = arena_[open_.back()];
            open_.pop_back();
            if (entry.right != NONE) open_.push_back(entry.right);
            if (entry.left != NONE) open_.push_back(entry.left);
            if (entry.part != NONE) parts.push_back(entry.part);
            const std::int64_t own = system.part_of(entry.item);
            if (own != NONE) parts.push_back(static_cast<std::int32_t>(own));
        }
    }

    std::vector<Entry> arena_;
    FrontMerge<Entry> merge_;
    std::vector<std::int64_t> first_, open_;  // where the front of each item begins; entries to collect
};

}  // namespace maxmargin::deduction
