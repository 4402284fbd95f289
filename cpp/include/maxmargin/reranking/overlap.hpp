// Which good hypothesis of a list each other one resembles most, by the n-grams that both have.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "maxmargin/base/parallel.hpp"

namespace maxmargin::reranking {

// Counts of n-grams: row r has the sorted, distinct columns starts[r] .. starts[r + 1] - 1.
struct NgramCounts {
    std::span<const std::int64_t> starts;
    std::span<const std::int32_t> columns;
    std::span<const double> counts;

    double total(std::int64_t row) const {
        double sum = 0.0;
        for (std::int64_t at = starts[row]; at < starts[row + 1]; ++at) sum += counts[at];
        return sum;
    }
    // n-grams in common, each as often as in the hypothesis that has it less often
    double common(std::int64_t a, std::int64_t b) const {
        double sum = 0.0;
        for (std::int64_t i = starts[a], j = starts[b]; i < starts[a + 1] && j < starts[b + 1];) {
            if (columns[i] == columns[j]) sum += std::min(counts[i++], counts[j++]);
            else if (columns[i] < columns[j]) ++i;
            else ++j;
        }
        return sum;
    }
};

// out[r] is the number, counted from 0 in its list, of the good hypothesis with the largest Dice coefficient
// 2 common / (total + total) to r, the first of equal ones; a good one is its own. Every list has a good hypothesis.
inline void nearest_by_overlap(std::span<const std::int64_t> lists, const NgramCounts& grams,
                               std::span<const std::uint8_t> good, std::span<std::int64_t> out, int threads) {
    const auto n = static_cast<std::int64_t>(lists.size()) - 1;
    parallel_each(n, 4, threads, [&](int, std::int64_t i) {
        std::vector<std::int64_t> right;
        std::vector<double> sizes;
        for (std::int64_t r = lists[i]; r < lists[i + 1]; ++r) {
            if (!good[r]) continue;
            right.push_back(r);
            sizes.push_back(grams.total(r));
        }
        for (std::int64_t r = lists[i]; r < lists[i + 1]; ++r) {
            if (good[r]) {
                out[r] = r - lists[i];
                continue;
            }
            const double own = grams.total(r);
            double best = -1.0;
            for (std::size_t g = 0; g < right.size(); ++g) {
                const double both = own + sizes[g];
                const double dice = both > 0.0 ? 2.0 * grams.common(r, right[g]) / both : 1.0;
                if (dice > best) {
                    best = dice;
                    out[r] = right[g] - lists[i];
                }
            }
        }
    });
}

}  // namespace maxmargin::reranking
