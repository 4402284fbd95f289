// Which sparse features tell hypotheses of a list apart.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace maxmargin::reranking {

// For each column, the number of lists in which its value is not the same for all hypotheses: others cannot tell the
// hypotheses of any list apart. Rows hold sorted, distinct columns; list i has the rows lists[i] .. lists[i + 1] - 1.
inline void varying_lists(std::span<const std::int64_t> lists, std::span<const std::int64_t> starts,
                          std::span<const std::int32_t> columns, std::span<const double> values,
                          std::span<std::int32_t> out) {
    struct Seen {
        std::int64_t list = -1, rows = 0;
        double value = 0.0;
        bool varies = false;
    };
    std::vector<Seen> seen(out.size());
    std::vector<std::int32_t> own;
    std::fill(out.begin(), out.end(), 0);
    for (std::size_t i = 0; i + 1 < lists.size(); ++i) {
        own.clear();
        for (std::int64_t at = starts[lists[i]]; at < starts[lists[i + 1]]; ++at) {
            Seen& one = seen[columns[at]];
            if (one.list != static_cast<std::int64_t>(i)) {
                one = {static_cast<std::int64_t>(i), 0, values[at], false};
                own.push_back(columns[at]);
            }
            ++one.rows;
            one.varies |= values[at] != one.value;
        }
        for (const std::int32_t column : own)
            out[column] += seen[column].varies || seen[column].rows < lists[i + 1] - lists[i];
    }
}

}  // namespace maxmargin::reranking
