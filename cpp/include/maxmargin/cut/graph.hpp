// A packed batch of undirected graphs, as the cut kernels see it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace maxmargin::cut {

// Edge e of an example joins ends[2e] and ends[2e + 1]; arc 2e runs from the first to the second, arc 2e + 1 back, so
// arc a has tail ends[a], head ends[a ^ 1] and reverse a ^ 1. arcs[start[j] .. start[j + 1]) are the arcs that leave
// node j, heads[r] is the head of arc arcs[r], and places[a] is where arc a stands in arcs. Node and arc numbers and
// places are local to the example.
struct CutExample {
    std::int32_t nodes;
    std::int32_t edges;
    const std::int32_t* ends;
    const std::int64_t* start;
    const std::int32_t* arcs;
    const std::int32_t* heads;
    const std::int32_t* places;

    std::int32_t first_arc(std::int32_t node) const { return static_cast<std::int32_t>(start[node] - start[0]); }
};

struct CutGraphs {
    std::span<const std::int64_t> node_offsets;
    std::span<const std::int64_t> edge_offsets;
    std::span<const std::int32_t> ends;
    std::span<const std::int64_t> start;
    std::span<const std::int32_t> arcs;
    std::span<const std::int32_t> heads;
    std::span<const std::int32_t> places;

    std::int64_t examples() const { return static_cast<std::int64_t>(node_offsets.size()) - 1; }
    std::int64_t nodes() const { return node_offsets.back(); }
    std::int64_t edges() const { return edge_offsets.back(); }

    CutExample operator[](std::int64_t i) const {
        return {static_cast<std::int32_t>(node_offsets[i + 1] - node_offsets[i]),
                static_cast<std::int32_t>(edge_offsets[i + 1] - edge_offsets[i]),
                ends.data() + 2 * edge_offsets[i],
                start.data() + node_offsets[i],
                arcs.data() + 2 * edge_offsets[i],
                heads.data() + 2 * edge_offsets[i],
                places.data() + 2 * edge_offsets[i]};
    }
};

// The parts of one example: its nodes, its edges, and two for every clique.
//
// A clique adds two nodes to the graph of the example, after its own nodes, and to each of them an edge from or to
// every member, after its own edges. Node n + 2c stands for "a member of clique c has label 1", and its edges run from
// the members to it; node n + 2c + 1 stands for "all members have label 1", and its edges run from it to the members.
// Along all of these edges labels must not fall. The parts of the clique are 1 - z of the first, "all members have
// label 0", and z of the second.
struct Extent {
    std::int32_t nodes = 0, edges = 0, cliques = 0;

    // The part, counted among those of cliques, of an edge that a clique has added, and its member.
    std::int32_t part(const CutExample& g, std::int32_t e) const {
        return std::max(g.ends[2 * e], g.ends[2 * e + 1]) - nodes;
    }
    static std::int32_t member(const CutExample& g, std::int32_t e) {
        return std::min(g.ends[2 * e], g.ends[2 * e + 1]);
    }
    static bool all_ones(std::int32_t part) { return part & 1; }
};

// Where the parts of each example begin in a packed vector: all nodes, then all edges, then those of all cliques.
struct CutLayout {
    std::span<const std::int64_t> nodes, edges, cliques;

    std::int64_t size() const { return nodes.back() + edges.back() + 2 * cliques.back(); }
    Extent operator[](std::int64_t i) const {
        return {static_cast<std::int32_t>(nodes[i + 1] - nodes[i]), static_cast<std::int32_t>(edges[i + 1] - edges[i]),
                static_cast<std::int32_t>(cliques[i + 1] - cliques[i])};
    }
};

// Pointers to the parts of one example in a packed vector.
template <class Number>
struct CutParts {
    Number *node, *edge, *clique;

    CutParts(const CutLayout& layout, std::int64_t i, Number* packed)
        : node(packed + layout.nodes[i]), edge(packed + layout.nodes.back() + layout.edges[i]),
          clique(packed + layout.nodes.back() + layout.edges.back() + 2 * layout.cliques[i]) {}
    CutParts(const Extent& size, Number* own) : node(own), edge(own + size.nodes), clique(edge + size.edges) {}
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
