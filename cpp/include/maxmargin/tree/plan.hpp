// The elimination of a batch of graphs, planned once and followed by every pass over the batch.
//
// Eliminating node v leaves a table over its separator S(v), the nodes that are next to it by then and come later in
// the order: its message. The first of S(v) to be eliminated is the parent of v. In a forest S(v) is the parent, or
// empty at a root. The cluster of v is its joint table over S(v) and v,
//     T_v(x_S, x_v) = h_v(x_v) + sum of edge tables from v into S(v) + tables of cliques whose first node to go is v
//                     + messages of children over more than one node,
//     h_v(x_v) = node scores + tables of cliques of v alone + messages of children whose separator is v alone.
// Tables are row-major: separator nodes from the last eliminated (slowest) to the parent, then v itself (fastest).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "maxmargin/tree/order.hpp"

namespace maxmargin::tree {

enum class Source : std::uint8_t { edge, clique, message };

// A table added to a cluster: an edge's, a clique's, or a child's message. Position of an entry: base + sum over
// separator nodes of label * stride, plus own label * own stride.
struct Term {
    std::int64_t base;     // in the edge parts or the clique parts of the example, or in its messages
    std::int64_t strides;  // where its strides begin: one per separator node
    std::int64_t own;
    std::int64_t size;  // entries of the table
    Source source;
};

struct Plan {
    std::vector<std::int64_t> nodes;  // n_examples + 1: where the nodes of an example begin
    std::vector<std::int64_t> node_parts, edge_parts, clique_parts;  // n_examples + 1: positions in a packed vector
    std::vector<std::int64_t> n_messages;                            // per example, the length of all its messages
    std::vector<std::int32_t> order;                                 // per example its nodes as they are eliminated

    // Per node of the batch; positions count from the example's own beginning.
    std::vector<std::int32_t> labels, parent;  // parent: node number within the example, -1 at a root
    std::vector<std::int64_t> part;            // first node part
    std::vector<std::int64_t> message, rows;   // where its message begins, and its length: joint labels of S(v)
    std::vector<std::int64_t> cluster;         // where its table begins among those of clusters not simple
    std::vector<std::int64_t> separators, terms, children;  // offsets into the three lists below
    std::vector<std::uint8_t> simple;                       // one edge term and no other, or a root without terms
    std::vector<std::int64_t> as_term;                      // which term of its parent its message is; -1: added to h

    std::vector<std::int32_t> separator, child;  // node numbers within the example
    std::vector<Term> term;
    std::vector<std::int64_t> stride;

    // Ends of edges and where the table of each edge begins in the example's edge parts.
    std::vector<std::int32_t> ends;
    std::vector<std::int64_t> edge_offsets, table;

    // Nodes of cliques and where the table of each clique begins in the example's clique parts.
    std::vector<std::int32_t> clique_nodes;
    std::vector<std::int64_t> clique_offsets, clique_begin, clique_table;

    std::vector<std::int64_t> n_clusters;  // per example, the entries of all its clusters not simple
    std::int64_t most_nodes = 0, most_node_parts = 0, most_messages = 0, most_table = 0, most_rows = 0;
    std::int64_t most_labels = 1, widest = 0;

    std::int64_t n_examples() const { return static_cast<std::int64_t>(nodes.size()) - 1; }
    std::int64_t n_parts() const { return clique_parts.back(); }
    std::int64_t n_parts(std::int64_t i) const {
        return (node_parts[i + 1] - node_parts[i]) + (edge_parts[i + 1] - edge_parts[i]) +
               (clique_parts[i + 1] - clique_parts[i]);
    }
    std::int64_t clique_size(std::int64_t c) const { return clique_begin[c + 1] - clique_begin[c]; }

    // Elimination in the given order; false if a cluster has more than `most` entries.
    bool build(const Graphs& graphs, std::span<const std::int32_t> given, double most);

   private:
    struct Work {
        std::vector<std::int32_t> place;                                         // of a node in the order
        std::vector<std::vector<std::int32_t>> around;                           // separators
        std::vector<std::vector<std::pair<std::int32_t, std::int64_t>>> joined;  // later neighbors, and by which edge
        std::vector<std::vector<std::int32_t>> below;                            // children
        std::vector<std::vector<std::int64_t>> cliques;  // of two nodes or more of which this is the first to go
    };
    bool build_one(std::int64_t i, double most, Work& work);
};

inline bool Plan::build(const Graphs& graphs, std::span<const std::int32_t> given, double most) {
    const std::int64_t n = graphs.n_examples(), total = graphs.nodes[n];
    nodes.assign(graphs.nodes.begin(), graphs.nodes.end());
    edge_offsets.assign(graphs.edge_offsets.begin(), graphs.edge_offsets.end());
    order.assign(given.begin(), given.end());
    labels.assign(graphs.labels.begin(), graphs.labels.end());
    ends.assign(graphs.edges.begin(), graphs.edges.end());
    clique_nodes.assign(graphs.clique_nodes.begin(), graphs.clique_nodes.end());
    clique_begin.assign(graphs.clique_begin.begin(), graphs.clique_begin.end());
    clique_offsets.assign(graphs.clique_offsets.begin(), graphs.clique_offsets.end());
    const auto size = static_cast<std::size_t>(total);
    parent.assign(size, -1);
    for (auto* list : {&part, &message, &rows, &cluster}) list->assign(size, 0);
    as_term.assign(size, -1);
    simple.assign(size, 1);
    for (auto* list : {&separators, &terms, &children}) list->assign(size + 1, 0);
    table.assign(ends.size() / 2, 0);
    clique_table.assign(clique_begin.size() - 1, 0);
    for (auto* list : {&node_parts, &edge_parts, &clique_parts}) list->assign(1, 0);
    n_messages.clear();
    n_clusters.clear();
    Work work;
    for (std::int64_t i = 0; i < n; ++i)
        if (!build_one(i, most, work)) return false;
    for (std::int64_t& at : edge_parts) at += node_parts.back();
    for (std::int64_t& at : clique_parts) at += edge_parts.back();
    return true;
}

inline bool Plan::build_one(std::int64_t i, double most, Work& work) {
    const std::int64_t first = nodes[i], n = nodes[i + 1] - first;
    const std::int32_t* own_order = order.data() + first;
    const std::int32_t* k = labels.data() + first;
    std::int64_t n_node_parts = 0, n_edge_parts = 0, n_clique_parts = 0, length = 0, entries_kept = 0;
    for (std::int64_t v = 0; v < n; ++v) {
        part[first + v] = n_node_parts;
        n_node_parts += k[v];
        most_labels = std::max<std::int64_t>(most_labels, k[v]);
    }
    work.place.resize(static_cast<std::size_t>(n));
    for (std::int64_t t = 0; t < n; ++t) work.place[own_order[t]] = static_cast<std::int32_t>(t);
    const auto& place = work.place;
    if (static_cast<std::int64_t>(work.joined.size()) < n) {
        work.joined.resize(static_cast<std::size_t>(n));
        work.around.resize(static_cast<std::size_t>(n));
        work.below.resize(static_cast<std::size_t>(n));
        work.cliques.resize(static_cast<std::size_t>(n));
    }
    for (std::int64_t v = 0; v < n; ++v) {
        work.joined[v].clear();
        work.around[v].clear();
        work.below[v].clear();
        work.cliques[v].clear();
    }
    for (std::int64_t e = edge_offsets[i]; e < edge_offsets[i + 1]; ++e) {
        const std::int32_t u = ends[2 * e], v = ends[2 * e + 1];
        table[e] = n_edge_parts;
        n_edge_parts += static_cast<std::int64_t>(k[u]) * k[v];
        const bool u_first = place[u] < place[v];
        work.joined[u_first ? u : v].push_back({u_first ? v : u, e});
    }
    for (std::int64_t c = clique_offsets[i]; c < clique_offsets[i + 1]; ++c) {
        const std::int32_t* of = clique_nodes.data() + clique_begin[c];
        std::int64_t entries = 1;
        std::int32_t first_to_go = of[0];
        for (std::int64_t j = 0; j < clique_size(c); ++j) {
            entries *= k[of[j]];
            if (place[of[j]] < place[first_to_go]) first_to_go = of[j];
        }
        clique_table[c] = n_clique_parts;
        n_clique_parts += entries;
        if (clique_size(c) > 1) work.cliques[first_to_go].push_back(c);
    }
    node_parts.push_back(node_parts.back() + n_node_parts);
    edge_parts.push_back(edge_parts.back() + n_edge_parts);
    clique_parts.push_back(clique_parts.back() + n_clique_parts);
    most_nodes = std::max(most_nodes, n);
    most_node_parts = std::max(most_node_parts, n_node_parts);

    // Separators, each from the last eliminated to the parent: later neighbors, and what children pass on.
    const auto by_place = [&](std::int32_t a, std::int32_t b) { return place[a] > place[b]; };
    for (std::int64_t t = 0; t < n; ++t) {
        const std::int32_t v = own_order[t];
        auto& around = work.around[v];
        for (const auto& [u, e] : work.joined[v]) around.push_back(u);
        for (const std::int64_t c : work.cliques[v])
            for (std::int64_t j = clique_begin[c]; j < clique_begin[c + 1]; ++j)
                if (clique_nodes[j] != v) around.push_back(clique_nodes[j]);
        for (const std::int32_t c : work.below[v])
            for (const std::int32_t u : work.around[c])
                if (u != v) around.push_back(u);
        std::sort(around.begin(), around.end(), by_place);
        around.erase(std::unique(around.begin(), around.end()), around.end());
        double entries = k[v];
        for (const std::int32_t u : around) entries *= k[u];
        if ((around.size() > 1 || !work.cliques[v].empty()) && entries > most) return false;
        rows[first + v] = static_cast<std::int64_t>(entries / k[v]);
        message[first + v] = length;
        if (!around.empty()) {
            length += rows[first + v];
            parent[first + v] = around.back();
            work.below[around.back()].push_back(v);
        }
        widest = std::max(widest, static_cast<std::int64_t>(around.size()));
    }
    n_messages.push_back(length);
    most_messages = std::max(most_messages, length);

    for (std::int64_t v = 0; v < n; ++v) {
        const auto& around = work.around[v];
        const auto s = static_cast<std::int64_t>(around.size());
        const auto where = [&](std::int32_t u) { return std::find(around.begin(), around.end(), u) - around.begin(); };
        separator.insert(separator.end(), around.begin(), around.end());
        for (const auto& [u, e] : work.joined[v]) {
            const auto at = static_cast<std::int64_t>(stride.size());
            stride.resize(stride.size() + around.size(), 0);
            const bool own_first = ends[2 * e] == v;
            stride[at + where(u)] = own_first ? 1 : k[v];
            term.push_back({table[e], at, own_first ? k[u] : 1, static_cast<std::int64_t>(k[u]) * k[v], Source::edge});
        }
        for (const std::int64_t c : work.cliques[v]) {
            const auto at = static_cast<std::int64_t>(stride.size());
            stride.resize(stride.size() + around.size(), 0);
            std::int64_t step = 1, own = 0;
            for (std::int64_t j = clique_begin[c + 1] - 1; j >= clique_begin[c]; --j) {
                const std::int32_t u = clique_nodes[j];
                (u == v ? own : stride[at + where(u)]) = step;
                step *= k[u];
            }
            term.push_back({clique_table[c], at, own, step, Source::clique});
        }
        bool plain = s <= 1 && static_cast<std::int64_t>(work.joined[v].size()) == s && work.cliques[v].empty();
        for (const std::int32_t c : work.below[v]) {
            child.push_back(c);
            const auto& over = work.around[c];
            if (over.size() == 1) continue;
            plain = false;
            as_term[first + c] = static_cast<std::int64_t>(term.size());
            const auto at = static_cast<std::int64_t>(stride.size());
            stride.resize(stride.size() + around.size(), 0);
            std::int64_t step = 1;
            for (auto u = over.rbegin(); u != over.rend(); ++u) {
                if (*u != v) stride[at + where(*u)] = step;
                step *= k[*u];
            }
            term.push_back({message[first + c], at, 1, rows[first + c], Source::message});
        }
        simple[first + v] = plain;
        if (!plain) {
            cluster[first + v] = entries_kept;
            entries_kept += (rows[first + v] * k[v] + 7) / 8 * 8;  // a last vector of 8 may run on to there
            most_table = std::max(most_table, rows[first + v] * k[v]);
        }
        most_rows = std::max(most_rows, rows[first + v]);
        separators[first + v + 1] = static_cast<std::int64_t>(separator.size());
        terms[first + v + 1] = static_cast<std::int64_t>(term.size());
        children[first + v + 1] = static_cast<std::int64_t>(child.size());
    }
    n_clusters.push_back(entries_kept);
    return true;
}

}  // namespace maxmargin::tree
