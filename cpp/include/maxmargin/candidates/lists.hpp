// Explicit lists, of which one candidate is chosen: the best ones of a list, and its most violated pair.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

namespace maxmargin::candidates {

// Where the largest number is, the first of equal ones. There is at least one, and none is NaN.
inline std::int64_t largest(std::span<const double> values) {
    return std::max_element(values.begin(), values.end()) - values.begin();
}

// The positions of the k largest numbers, fewer where there are fewer, in decreasing order; of equal ones the first.
inline void largest(std::span<const double> values, std::int64_t k, std::vector<std::int64_t>& out) {
    out.resize(values.size());
    std::iota(out.begin(), out.end(), std::int64_t{0});
    const auto last = out.begin() + std::min<std::int64_t>(k, static_cast<std::int64_t>(out.size()));
    std::partial_sort(out.begin(), last, out.end(), [&](std::int64_t a, std::int64_t b) {
        return values[a] != values[b] ? values[a] > values[b] : a < b;
    });
    out.erase(last, out.end());
}

// A bad and a good candidate and by how much the bad one scores more; no bad one: value is -infinity.
struct Pair {
    std::int64_t bad = 0, good = 0;
    double value = -std::numeric_limits<double>::infinity();
};

// The pair of the largest difference scores[bad] - scores[good], the first of equal ones. `nearest` has the good
// candidate that each one is compared with; empty: every one.
inline Pair most_violated(std::span<const double> scores, std::span<const std::uint8_t> good,
                          std::span<const std::int64_t> nearest) {
    Pair found;
    const auto n = static_cast<std::int64_t>(scores.size());
    if (nearest.empty()) {
        double least = std::numeric_limits<double>::infinity();
        for (std::int64_t j = 0; j < n; ++j)
            if (good[j] && scores[j] < least) least = scores[found.good = j];
        for (std::int64_t j = 0; j < n; ++j)
            if (!good[j] && scores[j] - least > found.value) found.value = scores[found.bad = j] - least;
        return found;
    }
    for (std::int64_t j = 0; j < n; ++j) {
        const double apart = scores[j] - scores[nearest[j]];
        if (good[j] || !(apart > found.value)) continue;
        found = {j, nearest[j], apart};
    }
    return found;
}

}  // namespace maxmargin::candidates
