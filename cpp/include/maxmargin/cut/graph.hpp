// A packed batch of undirected graphs, as the cut kernels see it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace maxmargin::cut {

// Edge e of an example joins ends[2e] and ends[2e + 1]; arc 2e runs from the first to the second, arc 2e + 1 back, so
// arc a has tail ends[a], head ends[a ^ 1] and reverse a ^ 1. arcs[start[j] .. start[j + 1]) are the arcs that leave
// node j. Node and arc numbers are local to the example.
struct CutExample {
    std::int32_t nodes;
    std::int32_t edges;
    const std::int32_t* ends;
    const std::int64_t* start;
    const std::int32_t* arcs;

    std::int32_t first_arc(std::int32_t node) const { return static_cast<std::int32_t>(start[node] - start[0]); }
};

struct CutGraphs {
    std::span<const std::int64_t> node_offsets;
    std::span<const std::int64_t> edge_offsets;
    std::span<const std::int32_t> ends;
    std::span<const std::int64_t> start;
    std::span<const std::int32_t> arcs;

    std::int64_t examples() const { return static_cast<std::int64_t>(node_offsets.size()) - 1; }
    std::int64_t nodes() const { return node_offsets.back(); }
    std::int64_t edges() const { return edge_offsets.back(); }

    CutExample operator[](std::int64_t i) const {
        return {static_cast<std::int32_t>(node_offsets[i + 1] - node_offsets[i]),
                static_cast<std::int32_t>(edge_offsets[i + 1] - edge_offsets[i]), ends.data() + 2 * edge_offsets[i],
                start.data() + node_offsets[i], arcs.data() + 2 * edge_offsets[i]};
    }
};

// The most nodes and the most edges of an example.
struct Sizes {
    std::int32_t nodes = 0, edges = 0;
};

inline Sizes largest(const CutGraphs& graphs) {
    Sizes sizes;
    for (std::int64_t i = 0; i < graphs.examples(); ++i) {
        sizes.nodes = std::max(sizes.nodes, graphs[i].nodes);
        sizes.edges = std::max(sizes.edges, graphs[i].edges);
    }
    return sizes;
}

// Threads that have something to do.
inline int workers(const CutGraphs& graphs, int threads) {
    return static_cast<int>(std::clamp<std::int64_t>(graphs.examples(), 1, std::max(threads, 1)));
}

}  // namespace maxmargin::cut
