// The spans (begin, end) of n tokens, 0 <= begin < end <= n: in the order of parts and in the order of items.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace maxmargin::grammar {

inline std::int64_t n_spans(std::int64_t n) { return n * (n + 1) / 2; }

// Parts go by begin, then by end.
inline std::int64_t row_of(std::int64_t n, std::int64_t begin, std::int64_t end) {
    return begin * (2 * n - begin + 1) / 2 + end - begin - 1;
}

inline std::int64_t n_splits(std::int64_t n) { return (n + 1) * n * (n - 1) / 6; }

// Splits go by begin, then by end, then by the place of the split.
inline std::int64_t split_of(std::int64_t n, std::int64_t begin, std::int64_t split, std::int64_t end) {
    return n_splits(n) - n_splits(n - begin) + (end - begin - 1) * (end - begin - 2) / 2 + split - begin - 1;
}

// Items go by end, then by falling begin, so that a span comes after all spans inside it. The number of a span does not
// depend on n, and one table of their ends serves all examples.
inline std::int64_t place_of(std::int64_t begin, std::int64_t end) { return end * (end - 1) / 2 + end - 1 - begin; }

using Ends = std::vector<std::pair<std::int32_t, std::int32_t>>;

inline Ends ends_of_spans(std::int64_t longest) {
    Ends ends;
    ends.reserve(static_cast<std::size_t>(n_spans(longest)));
    for (std::int32_t end = 1; end <= longest; ++end)
        for (std::int32_t begin = end - 1; begin >= 0; --begin) ends.emplace_back(begin, end);
    return ends;
}

// Where the parts of each example lie in a packed vector, block after block: size(block, i) parts each.
template <class Size>
std::vector<std::int64_t> layout_of(std::int64_t n_blocks, std::int64_t n_examples, Size&& size) {
    std::vector<std::int64_t> offsets;
    std::int64_t at = 0;
    for (std::int64_t block = 0; block < n_blocks; ++block) {
        offsets.push_back(at);
        for (std::int64_t i = 0; i < n_examples; ++i) offsets.push_back(at += size(block, i));
    }
    return offsets;
}

}  // namespace maxmargin::grammar
