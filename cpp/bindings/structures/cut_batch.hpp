// A checked batch of graphs that outlives a call, shared by cuts and pairwise graphs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "arrays.hpp"
#include "maxmargin/cut/graph.hpp"

namespace maxmargin {

using cut::CutExample;
using cut::CutGraphs;

inline void check_graphs(const CutGraphs& g) {
    require(!g.node_offsets.empty() && g.edge_offsets.size() == g.node_offsets.size(),
            "node and edge offsets must have one entry more than there are examples");
    require(g.node_offsets[0] == 0 && g.edge_offsets[0] == 0, "offsets must start at 0");
    for (std::size_t i = 1; i < g.node_offsets.size(); ++i) {
        const std::int64_t nodes = g.node_offsets[i] - g.node_offsets[i - 1];
        const std::int64_t edges = g.edge_offsets[i] - g.edge_offsets[i - 1];
        require(nodes >= 0 && edges >= 0, "offsets must not decrease");
        require(nodes < (1 << 30) && edges < (1 << 29), "an example has too many nodes or edges");
    }
    const auto nodes = static_cast<std::size_t>(g.nodes()), arcs_in_all = 2 * static_cast<std::size_t>(g.edges());
    require(g.ends.size() == arcs_in_all && g.arcs.size() == arcs_in_all, "ends and arcs need two entries per edge");
    require(g.start.size() == nodes + 1 && rises_to(g.start, arcs_in_all),
            "start needs one entry more than there are nodes, rising from 0 to twice the number of edges");
    for (std::int64_t i = 0; i < g.examples(); ++i) {
        const CutExample one = g[i];
        require(g.start[g.node_offsets[i]] == 2 * g.edge_offsets[i], "start must agree with the edge offsets");
        require(within(std::span(one.ends, 2 * one.edges), 0, one.nodes),
                "an edge names a node that its example does not have");
        bool good = true;
        for (std::int32_t j = 0; j < one.nodes; ++j)
            for (std::int32_t a = one.first_arc(j); a < one.first_arc(j + 1); ++a)
                good = good && one.arcs[a] >= 0 && one.arcs[a] < 2 * one.edges && one.ends[one.arcs[a]] == j;
        require(good, "arcs must list the arcs that leave each node");
    }
}

// Each example's entries must be a permutation of its nodes (or edges).
inline void check_order(std::span<const std::int64_t> offsets, std::span<const std::int32_t> order) {
    require(order.size() == static_cast<std::size_t>(offsets.back()), "an order needs one entry per node or edge");
    for (std::size_t i = 1; i < offsets.size(); ++i) {
        const std::int64_t size = offsets[i] - offsets[i - 1];
        require(distinct(order.subspan(offsets[i - 1], size), size), "an order must be a permutation");
    }
}

// Graphs whose arrays are checked on construction. It owns copies that cannot change afterwards, so a call checks only
// the lengths of its vectors: checking all arcs in every call cost a tenth of an argmax. A projection needs the two
// orders as well.
class CutBatch {
   public:
    CutBatch(const In<std::int64_t>& node_offsets, const In<std::int64_t>& edge_offsets, const In<std::int32_t>& ends,
             const In<std::int64_t>& start, const In<std::int32_t>& arcs)
        : node_offsets_(copied(node_offsets)), edge_offsets_(copied(edge_offsets)), start_(copied(start)),
          ends_(copied(ends)), arcs_(copied(arcs)) {
        check_graphs(graphs());
    }
    CutBatch(const In<std::int64_t>& node_offsets, const In<std::int64_t>& edge_offsets, const In<std::int32_t>& ends,
             const In<std::int64_t>& start, const In<std::int32_t>& arcs, const In<std::int32_t>& nodes,
             const In<std::int32_t>& edges)
        : CutBatch(node_offsets, edge_offsets, ends, start, arcs) {
        node_order = copied(nodes);
        edge_order = copied(edges);
        check_order(node_offsets_, node_order);
        check_order(edge_offsets_, edge_order);
        ordered = true;
    }

    CutGraphs graphs() const { return {node_offsets_, edge_offsets_, ends_, start_, arcs_}; }

    std::vector<std::int32_t> node_order, edge_order;
    bool ordered = false;

   private:
    std::vector<std::int64_t> node_offsets_, edge_offsets_, start_;
    std::vector<std::int32_t> ends_, arcs_;
};

}  // namespace maxmargin
