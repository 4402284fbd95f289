// Sparse rows of features that are 0 or 1, from lists with a feature of every row, or none.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace maxmargin::linear {

// lists[l * n + i] is a feature of row i by list l, negative for none. Fills starts, n + 1 entries, and chosen with the
// features of each row in rising order; false where there are more than Index can count.
template <class Index>
bool indicator_rows(std::span<const std::int64_t> lists, std::span<Index> starts, std::vector<Index>& chosen) {
    const std::size_t n = starts.size() - 1, n_lists = n ? lists.size() / n : 0;
    starts[0] = 0;
    std::size_t total = 0;
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t l = 0; l < n_lists; ++l) total += lists[l * n + i] >= 0;
        if (total > static_cast<std::size_t>(std::numeric_limits<Index>::max())) return false;
        starts[i + 1] = static_cast<Index>(total);
    }
    chosen.resize(total);
    for (std::size_t i = 0; i < n; ++i) {
        Index* const begin = chosen.data() + starts[i];
        Index* end = begin;
        for (std::size_t l = 0; l < n_lists; ++l) {
            if (lists[l * n + i] < 0) continue;
            const auto feature = static_cast<Index>(lists[l * n + i]);
            Index* at = end++;  // rows are short, and lists mostly rise
            for (; at > begin && at[-1] > feature; --at) *at = at[-1];
            *at = feature;
        }
    }
    return true;
}

}  // namespace maxmargin::linear
