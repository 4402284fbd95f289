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
using cut::CutLayout;

inline void check_graphs(const CutGraphs& g) {
    require(!g.node_offsets.empty() && g.edge_offsets.size() == g.node_offsets.size(),
            "node and edge offsets must have one entry more than there are examples");
    require(rises_from_zero(g.node_offsets) && rises_from_zero(g.edge_offsets),
            "offsets must start at 0 and not decrease");
    require(g.nodes() <= most_claimed, "a batch has too many nodes");
    for (std::size_t i = 1; i < g.node_offsets.size(); ++i) {
        const std::int64_t nodes = g.node_offsets[i] - g.node_offsets[i - 1];
        const std::int64_t edges = g.edge_offsets[i] - g.edge_offsets[i - 1];
        require(nodes < (1 << 30) && edges < (1 << 29), "an example has too many nodes or edges");
    }
    require(g.ends.size() % 2 == 0 && g.ends.size() / 2 == static_cast<std::size_t>(g.edges()),
            "ends need two entries per edge");
    for (std::int64_t i = 0; i < g.examples(); ++i) {
        const CutExample one = g[i];
        require(within(std::span(one.ends, 2 * static_cast<std::size_t>(one.edges)), 0, one.nodes),
                "an edge names a node that its example does not have");
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

// Each example's own nodes and edges come first, and every other edge joins one of its own nodes and one of a clique,
// in the direction of that node's kind. Orders are empty where nodes and edges are in their places.
inline void check_cliques(const CutGraphs& g, const CutLayout& layout, std::span<const std::int32_t> node_order,
                          std::span<const std::int32_t> edge_order) {
    for (const auto& offsets : {layout.nodes, layout.edges, layout.cliques})
        require(offsets.size() == g.node_offsets.size() && rises_from_zero(offsets) && offsets.back() <= most_claimed,
                "offsets of cliques and of what is not theirs must rise from 0, one entry more than examples");
    require(layout.nodes.back() + 2 * layout.cliques.back() == g.nodes() && layout.edges.back() <= g.edges(),
            "cliques add two nodes each, and edges");
    for (std::int64_t i = 0; i < g.examples(); ++i) {
        const CutExample one = g[i];
        const cut::Extent own = layout[i];
        require(std::int64_t{own.nodes} + 2 * std::int64_t{own.cliques} == one.nodes && own.edges <= one.edges,
                "a clique adds two nodes to its example");
        const auto place = [&](std::int32_t node) {
            return node_order.empty() ? node : node_order[static_cast<std::size_t>(g.node_offsets[i] + node)];
        };
        bool good = true;
        for (std::int32_t e = 0; e < one.edges; ++e) {
            const std::int32_t at =
                edge_order.empty() ? e : edge_order[static_cast<std::size_t>(g.edge_offsets[i] + e)];
            const std::int32_t first = place(one.ends[2 * e]), second = place(one.ends[2 * e + 1]);
            const bool outward = first < own.nodes, inward = second < own.nodes;
            const bool ones = cut::Extent::all_ones((outward ? second : first) - own.nodes);
            good = good && (at < own.edges ? outward && inward : outward != inward && ones == inward);
        }
        require(good, "an edge of a clique must join one of its two nodes with a member");
    }
}

// Graphs whose arrays are checked on construction. It owns copies that cannot change afterwards, so a call checks only
// the lengths of its vectors: checking all arcs in every call cost a tenth of an argmax. A projection needs the two
// orders as well.
class CutBatch {
   public:
    CutBatch(const In<std::int64_t>& node_offsets, const In<std::int64_t>& edge_offsets, const In<std::int32_t>& ends)
        : node_offsets_(copied(node_offsets)), edge_offsets_(copied(edge_offsets)), none_(node_offsets_.size(), 0),
          ends_(copied(ends)) {
        check_graphs(graphs());
        list_arcs();
    }
    CutBatch(const In<std::int64_t>& node_offsets, const In<std::int64_t>& edge_offsets, const In<std::int32_t>& ends,
             const In<std::int32_t>& nodes, const In<std::int32_t>& edges)
        : CutBatch(node_offsets, edge_offsets, ends) {
        set_orders(nodes, edges);
    }

    // The nodes and edges of an example that are not its own belong to cliques, see cut::Extent; orders as above or
    // empty.
    CutBatch(const In<std::int64_t>& node_offsets, const In<std::int64_t>& edge_offsets, const In<std::int32_t>& ends,
             const In<std::int32_t>& nodes, const In<std::int32_t>& edges, const In<std::int64_t>& own_nodes,
             const In<std::int64_t>& own_edges, const In<std::int64_t>& cliques)
        : CutBatch(node_offsets, edge_offsets, ends) {
        if (nodes.size() || edges.size() || node_offsets_.back() == 0) set_orders(nodes, edges);
        own_nodes_ = copied(own_nodes);
        own_edges_ = copied(own_edges);
        cliques_ = copied(cliques);
        check_cliques(graphs(), {own_nodes_, own_edges_, cliques_}, node_order, edge_order);
    }

    CutGraphs graphs() const { return {node_offsets_, edge_offsets_, ends_, start_, arcs_, heads_, places_}; }

    CutLayout layout() const {
        if (cliques_.empty()) return {node_offsets_, edge_offsets_, none_};
        return {own_nodes_, own_edges_, cliques_};
    }

    std::vector<std::int32_t> node_order, edge_order;
    bool ordered = false;

   private:
    // The arcs that leave each node, in rising order.
    void list_arcs() {
        start_.assign(static_cast<std::size_t>(node_offsets_.back()) + 1, 0);
        for (auto* all : {&arcs_, &heads_, &places_}) all->resize(ends_.size());
        for (std::size_t i = 1; i < node_offsets_.size(); ++i) {
            const std::int64_t nodes = node_offsets_[i - 1], first = 2 * edge_offsets_[i - 1];
            const auto arcs = static_cast<std::int32_t>(2 * edge_offsets_[i] - first);
            const std::int32_t* ends = ends_.data() + first;
            // Next to node j stands where the arcs of node j begin, and after this loop where they end.
            std::int64_t* next = start_.data() + nodes;
            const std::int64_t count = node_offsets_[i] - nodes;
            for (std::int32_t a = 0; a < arcs; ++a) ++next[ends[a] + 1];
            next[0] = first;
            for (std::int64_t j = 0; j < count; ++j) next[j + 1] += next[j];
            for (std::int32_t a = 0; a < arcs; ++a) {
                const std::int64_t place = next[ends[a]]++;
                arcs_[place] = a;
                heads_[place] = ends[a ^ 1];
                places_[first + a] = static_cast<std::int32_t>(place - first);
            }
            for (std::int64_t j = count; j > 0; --j) next[j] = next[j - 1];
            next[0] = first;
        }
    }
    void set_orders(const In<std::int32_t>& nodes, const In<std::int32_t>& edges) {
        node_order = copied(nodes);
        edge_order = copied(edges);
        check_order(node_offsets_, node_order);
        check_order(edge_offsets_, edge_order);
        ordered = true;
    }

    std::vector<std::int64_t> node_offsets_, edge_offsets_, start_, own_nodes_, own_edges_, cliques_, none_;
    std::vector<std::int32_t> ends_, arcs_, heads_, places_;
};

}  // namespace maxmargin
