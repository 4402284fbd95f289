// Checks of sentences and of their candidate arcs, for all kinds of dependency trees.
#pragma once

#include "arrays.hpp"
#include "maxmargin/dependencies/arcs.hpp"

namespace maxmargin {

// Parts, arcs and items of a sentence are fewer.
inline constexpr std::int64_t most_numbered = std::int64_t{1} << 31;

inline void check_sizes(std::span<const std::int64_t> tokens, std::int64_t n_labels) {
    checked_count("n_labels", n_labels, 1, 1 << 15);
    for (const std::int64_t n : tokens) checked_count("n_tokens", n, 1, (1 << 15) - 1);
}

inline void check_offsets(std::span<const std::int64_t> offsets, std::size_t n_examples, std::size_t size) {
    require(offsets.size() == n_examples + 1 && rises_to(offsets, size),
            "offsets must have one entry per sentence and one more, and rise from 0 to the number of rows");
}

// Arcs that are listed: checked, each once and in order.
inline dependencies::Arcs arcs_of(std::span<const std::int64_t> tokens, const In<std::int64_t>& offsets,
                                  const In<std::int32_t>& nodes) {
    if (offsets.size() == 0) {
        require(nodes.size() == 0, "arcs need offsets");
        return {};
    }
    dependencies::Arcs arcs{copied(offsets), copied(nodes)};
    require(arcs.nodes.size() % 2 == 0, "an arc has a head and a modifier");
    check_offsets(arcs.offsets, tokens.size(), arcs.nodes.size() / 2);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        std::int64_t before = 0;
        for (std::int64_t a = arcs.offsets[i]; a < arcs.offsets[i + 1]; ++a) {
            const std::int64_t head = arcs.nodes[2 * a], modifier = arcs.nodes[2 * a + 1];
            require(head >= 0 && head <= tokens[i] && modifier >= 1 && modifier <= tokens[i] && head != modifier,
                    "an arc is out of range");
            const std::int64_t place = modifier * (tokens[i] + 1) + head + 1;
            require(place > before, "arcs must rise by modifier and head");
            before = place;
        }
    }
    return arcs;
}

}  // namespace maxmargin
