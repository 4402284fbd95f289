// Slack rescaling on lattices: argmax over paths of (costs'y + constant) (margin + scores'y), exactly.
//
// A node keeps not one best path but a front of them (base/fronts.hpp): the merge of those at the tails of the edges
// into it, each moved by the edge's cost and score. With Hamming loss it has at most one entry for each number of
// errors, so an example costs at most as many passes as a path has edges.
//
// Other costs may give fronts of any length. Where one was thinned the value found is an upper bound, the path is one
// of the lattice, and the status INEXACT.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "maxmargin/base/fronts.hpp"
#include "maxmargin/lattice/best_path.hpp"

namespace maxmargin::lattice {

class SlackSearch {
   public:
    std::vector<std::int32_t> path;  // the best one

    Status run(const Example& ex, const double* scores, double margin, const double* costs, double constant,
               double& value) {
        if (!prepare(ex, scores, margin, costs, constant)) return Status::nonfinite;
        arena_.push_back({0.0, 0.0, -1, -1});
        first_[0] = 0;
        first_[1] = 1;
        for (std::int64_t v = 1; v < ex.n_nodes; ++v) {
            merge_.front.clear();
            for (std::int64_t j = ex.first[v]; j < ex.first[v + 1]; ++j) {
                const double cost = costs[ex.edge[j]], score = scores[ex.edge[j]];
                if (score == NEG_INF) continue;
                merge_.other.clear();
                for (std::int64_t at = first_[ex.tail[j]]; at < first_[ex.tail[j] + 1]; ++at)
                    merge_.other.push_back({arena_[at].loss + cost, arena_[at].score + score, at, ex.edge[j]});
                merge_.merge();
            }
            arena_.insert(arena_.end(), merge_.front.begin(), merge_.front.end());
            first_[v + 1] = static_cast<std::int64_t>(arena_.size());
        }
        return choose(ex, scores, margin, costs, constant, value);
    }

   private:
    // A path to a node: another one and an edge.
    struct Entry {
        double loss, score;
        std::int64_t before;
        std::int32_t edge;
    };

    // False if a number is not finite, but for scores of -inf.
    bool prepare(const Example& ex, const double* scores, double margin, const double* costs, double constant) {
        double size = std::fabs(margin) + std::fabs(constant), all = 0.0;
        for (std::int64_t e = 0; e < ex.n_parts; ++e) all += std::fabs(costs[e]);
        if (!std::isfinite(size + all) || simd::refused(simd::lanes_in_use(), scores, ex.n_parts)) return false;
        merge_.begin(FrontMerge<Entry>::limit_for(ex.n_edges), 1e-15 * all);
        arena_.clear();
        first_.resize(static_cast<std::size_t>(ex.n_nodes) + 1);
        return true;
    }

    // The path of the best product; where none is positive that of the best score, the last of the front at the end.
    Status choose(const Example& ex, const double* scores, double margin, const double* costs, double constant,
                  double& value) {
        const std::int64_t begin = first_[ex.last()], end = first_[ex.n_nodes];
        if (begin == end) return Status::absent;
        std::int64_t chosen = end - 1;
        value = 0.0;
        for (std::int64_t at = begin; at < end; ++at) {
            const double loss = constant + arena_[at].loss, good = margin + arena_[at].score;
            if (loss > 0.0 && good > 0.0 && loss * good > value) {
                value = loss * good;
                chosen = at;
            }
        }
        path.clear();
        double loss = constant, good = margin;
        for (std::int64_t at = chosen; arena_[at].before >= 0; at = arena_[at].before) path.push_back(arena_[at].edge);
        std::reverse(path.begin(), path.end());
        for (const std::int32_t e : path) {
            loss += costs[e];
            good += scores[e];
        }
        if (!std::isfinite(value) || !std::isfinite(good)) return Status::nonfinite;
        if (merge_.thinned) return Status::inexact;
        // The product of the path itself, whatever the order of the sums was.
        if (value > 0.0) value = std::max(0.0, loss * good);
        return Status::ok;
    }

    std::vector<Entry> arena_;
    FrontMerge<Entry> merge_;
    std::vector<std::int64_t> first_;  // where the front of each node begins
};

// z must be zero on entry.
inline void slack_argmax(const Batch& batch, std::span<const double> scores, std::span<const double> margin,
                         std::span<const double> costs, std::span<const double> constants, std::span<double> z,
                         std::span<double> value, std::span<std::int8_t> status, int threads) {
    auto searches = per_thread<SlackSearch>(threads);
    parallel_each(batch.size(), 1, threads, [&](int thread, std::int64_t i) {
        const std::int64_t at = batch.begin(i);
        const Status found =
            searches[thread].run(batch[i], scores.data() + at, margin[i], costs.data() + at, constants[i], value[i]);
        if (found == Status::ok || found == Status::inexact) mark(searches[thread].path, z.data() + at);
        else value[i] = no_value(found);
        status[i] = static_cast<std::int8_t>(found);
    });
}

}  // namespace maxmargin::lattice
