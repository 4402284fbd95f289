// The candidate arcs of a batch of sentences.
#pragma once

#include <cstdint>
#include <vector>

namespace maxmargin::dependencies {

// Arcs of a batch, if they are listed: rising by sentence, modifier and head.
struct Arcs {
    std::vector<std::int64_t> offsets;  // of the sentences; empty for all arcs
    std::vector<std::int32_t> nodes;    // (head, modifier)
};

}  // namespace maxmargin::dependencies
