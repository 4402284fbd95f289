// Several good paths per lattice: the most violated pair of a bad and a good one.
//
// The best bad path is the first of the best paths that is not good, so at most one more than there are good ones is
// looked at.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "maxmargin/lattice/k_best.hpp"

namespace maxmargin::lattice {

// Good paths starts[i] : starts[i + 1] belong to example i; path p has the edges offsets[p] : offsets[p + 1], counted
// from 0 in its example, in path order.
struct GoodPaths {
    std::span<const std::int64_t> starts, offsets;
    std::span<const std::int32_t> edges;
    std::span<const std::int64_t> chosen;  // the good path of each example that bad ones are compared with; empty: all

    std::span<const std::int32_t> path(std::int64_t p) const {
        return edges.subspan(offsets[p], offsets[p + 1] - offsets[p]);
    }
    bool has(std::int64_t i, const std::vector<std::int32_t>& path_) const {
        for (std::int64_t p = starts[i]; p < starts[i + 1]; ++p)
            if (std::ranges::equal(path(p), path_)) return true;
        return false;
    }
};

class PairSearch {
   public:
    std::vector<std::int32_t> bad;
    std::span<const std::int32_t> good;

    // value: the score of the best bad path less that of the good one it is compared with, the worst if with all of
    // them. Absent if no path is bad.
    Status run(const Example& ex, const GoodPaths& paths, std::int64_t i, const double* scores, double& value) {
        Status found = k_best_.begin(ex, scores);
        if (found != Status::ok) return found;
        double most;
        const std::vector<std::int32_t>* next = k_best_.next(&most);
        while (next && paths.has(i, *next)) next = k_best_.next(&most);
        if (!next) return Status::absent;
        bad = *next;
        const bool all = paths.chosen.empty();
        const std::int64_t begin = all ? paths.starts[i] : paths.chosen[i], end = all ? paths.starts[i + 1] : begin + 1;
        double least = 0.0;
        for (std::int64_t p = begin; p < end; ++p) {
            double score = 0.0;
            for (const std::int32_t e : paths.path(p)) score += scores[e];
            if (p > begin && !(score < least)) continue;
            least = score;
            good = paths.path(p);
        }
        value = most - least;
        return Status::ok;
    }

   private:
    KBest k_best_;
};

// bad - good into pairs, which must be zero, and how much more the bad one scores; -inf where no path is bad.
inline void most_violated_pairs(const Batch& batch, const GoodPaths& paths, std::span<const double> scores,
                                std::span<double> pairs, std::span<double> value, int threads) {
    auto searches = per_thread<PairSearch>(threads);
    parallel_each(batch.size(), batch.grain(), threads, [&](int thread, std::int64_t i) {
        PairSearch& search = searches[thread];
        const Status found = search.run(batch[i], paths, i, scores.data() + batch.begin(i), value[i]);
        if (found != Status::ok) {
            value[i] = no_value(found);
            return;
        }
        double* z = pairs.data() + batch.begin(i);
        for (const std::int32_t e : search.bad) z[e] += 1.0;
        for (const std::int32_t e : search.good) z[e] -= 1.0;
    });
}

}  // namespace maxmargin::lattice
