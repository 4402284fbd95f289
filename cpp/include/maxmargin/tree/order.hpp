// The elimination order of the nodes of a graph: leaves first, and of what has no leaves the node of least fill.
//
// A forest goes leaf by leaf in linear time, without adjacency lists: for every node the exclusive-or of its remaining
// neighbors, which for a leaf is its neighbor. The rest (its 2-core) is triangulated by minimum fill-in (Rose 1972):
// next comes the node whose neighbors lack the fewest edges, among equals the one of the smallest joint table, then
// the lowest number. Cost of a step: the pairs of neighbors of the nodes whose fill it changes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "maxmargin/base/parallel.hpp"
#include "maxmargin/base/scratch.hpp"

namespace maxmargin::tree {

// A batch of graphs; node numbers in `edges` (pairs, first and second end) and cliques count from 0 within an example.
// Elimination orders take cliques as edges between all their nodes: `eliminate` and what it calls see edges alone.
struct Graphs {
    std::span<const std::int64_t> nodes, edge_offsets;  // n_examples + 1: where nodes and edges begin
    std::span<const std::int32_t> labels, edges;        // labels per node; two ends per edge
    std::span<const std::int64_t> clique_offsets;       // n_examples + 1: where cliques begin; empty in `eliminate`
    std::span<const std::int64_t> clique_begin;         // n_cliques + 1: where the nodes of a clique begin
    std::span<const std::int32_t> clique_nodes;

    std::int64_t n_examples() const { return static_cast<std::int64_t>(nodes.size()) - 1; }
    std::int64_t n_nodes(std::int64_t i) const { return nodes[i + 1] - nodes[i]; }
};

// Takes leaves (and nodes without neighbors) off example i for as long as there are any, each followed at once by its
// neighbor if that has become one. Writes them to `order` and returns how many there are: all nodes of a forest.
inline std::int64_t strip_leaves(const Graphs& graphs, std::int64_t i, std::int32_t* order,
                                 std::vector<std::int32_t>& degree, std::vector<std::int32_t>& others) {
    const std::int64_t n = graphs.n_nodes(i);
    degree.assign(static_cast<std::size_t>(n), 0);
    others.assign(static_cast<std::size_t>(n), 0);
    for (std::int64_t e = graphs.edge_offsets[i]; e < graphs.edge_offsets[i + 1]; ++e) {
        const std::int32_t u = graphs.edges[2 * e], v = graphs.edges[2 * e + 1];
        ++degree[u];
        ++degree[v];
        others[u] ^= v;
        others[v] ^= u;
    }
    std::int64_t count = 0;
    for (std::int32_t start = 0; start < n; ++start)
        for (std::int32_t v = start; degree[v] == 0 || degree[v] == 1;) {
            order[count++] = v;
            const std::int32_t next = others[v];
            const bool joined = degree[v] == 1;
            degree[v] = -1;
            if (!joined) break;
            --degree[next];
            others[next] ^= v;
            v = next;
        }
    return count;
}

// The order of what strip_leaves has left (degree > 0), behind the first `count` entries. Returns false where a
// node's joint table with its neighbors has more than `most` entries or it has more than `width` neighbors.
class MinimumFill {
   public:
    double joint = 1.0;      // entries of the largest table
    std::int64_t width = 0;  // most neighbors of a node when it was eliminated

    bool run(const Graphs& graphs, std::int64_t i, std::int32_t* order, std::int64_t count,
             const std::vector<std::int32_t>& degree, double most, std::int64_t widest) {
        labels_ = graphs.labels.data() + graphs.nodes[i];
        most_ = most;
        widest_ = widest;
        const std::int64_t n = graphs.n_nodes(i);
        near_.assign(static_cast<std::size_t>(n), {});
        for (std::int64_t e = graphs.edge_offsets[i]; e < graphs.edge_offsets[i + 1]; ++e) {
            const std::int32_t u = graphs.edges[2 * e], v = graphs.edges[2 * e + 1];
            if (degree[u] <= 0 || degree[v] <= 0) continue;
            near_[u].push_back(v);
            near_[v].push_back(u);
        }
        key_.assign(static_cast<std::size_t>(n), Key{});
        queue_.clear();
        for (auto& around : near_) std::sort(around.begin(), around.end());
        for (std::int32_t v = 0; v < n; ++v)
            if (degree[v] > 0) enter(v);
        std::vector<std::int32_t> changed;
        std::vector<std::pair<std::int32_t, std::int32_t>> added;
        while (!queue_.empty()) {
            const std::int32_t v = std::get<2>(*queue_.begin());
            queue_.erase(queue_.begin());
            const std::vector<std::int32_t> around = std::move(near_[v]);
            near_[v].clear();
            joint = std::max(joint, std::get<1>(key_[v]));
            width = std::max(width, static_cast<std::int64_t>(around.size()));
            if (joint > most || width > widest) return false;
            order[count++] = v;
            const bool filled = std::get<0>(key_[v]) > 0;
            changed.assign(around.begin(), around.end());
            added.clear();
            for (const std::int32_t u : around) {
                erase(u, v);
                for (const std::int32_t w : around)
                    if (filled && u < w && insert(u, w)) {
                        insert(w, u);
                        added.push_back({u, w});
                    }
            }
            // A new edge changes the fill of its ends and of the nodes next to both.
            for (const auto& [u, w] : added) {
                const bool u_fewer = near_[u].size() < near_[w].size();
                for (const std::int32_t x : near_[u_fewer ? u : w])
                    if (joined(u_fewer ? w : u, x)) changed.push_back(x);
            }
            std::sort(changed.begin(), changed.end());
            changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
            for (const std::int32_t u : changed) {
                queue_.erase(key_[u]);
                enter(u);
            }
        }
        return true;
    }

   private:
    using Key = std::tuple<std::int64_t, double, std::int32_t>;  // fill, entries of the table, node
    static constexpr std::int64_t MOST_COUNTED = 500;
    const std::int32_t* labels_ = nullptr;
    double most_ = 0.0;
    std::int64_t widest_ = 0;
    std::vector<std::vector<std::int32_t>> near_;  // sorted
    std::vector<Key> key_;
    std::set<Key> queue_;

    bool joined(std::int32_t u, std::int32_t w) const {
        return std::binary_search(near_[u].begin(), near_[u].end(), w);
    }
    bool insert(std::int32_t u, std::int32_t w) {
        const auto at = std::lower_bound(near_[u].begin(), near_[u].end(), w);
        if (at != near_[u].end() && *at == w) return false;
        near_[u].insert(at, w);
        return true;
    }
    void erase(std::int32_t u, std::int32_t w) {
        const auto at = std::lower_bound(near_[u].begin(), near_[u].end(), w);
        if (at != near_[u].end() && *at == w) near_[u].erase(at);
    }
    void enter(std::int32_t v) {
        const auto& around = near_[v];
        const auto size = static_cast<std::int64_t>(around.size());
        double entries = labels_[v];
        for (const std::int32_t u : around) entries *= labels_[u];
        std::int64_t missing = size * size;  // for a node that cannot be next, without the price of counting
        if (entries <= most_ && size <= widest_ && size <= MOST_COUNTED) {
            missing = 0;
            for (std::int64_t a = 0; a < size; ++a)
                for (std::int64_t b = a + 1; b < size; ++b) missing += !joined(around[a], around[b]);
        }
        key_[v] = {missing, entries, v};
        queue_.insert(key_[v]);
    }
};

// Orders of a whole batch. Per example the most neighbors of a node when it is eliminated, and the entries of the
// largest table met while filling; a width of -1 where the limits are passed (or, without `fill`, where there is a
// cycle), and then no order.
inline void eliminate(const Graphs& graphs, bool fill, double most, std::int64_t widest, std::span<std::int32_t> order,
                      std::span<std::int64_t> width, std::span<double> entries, int threads) {
    struct Scratch {
        std::vector<std::int32_t> degree, others;
    };
    auto scratch = per_thread<Scratch>(threads);
    parallel_each(graphs.n_examples(), 1, threads, [&](int thread, std::int64_t i) {
        Scratch& mine = scratch[thread];
        std::int32_t* to = order.data() + graphs.nodes[i];
        const std::int64_t count = strip_leaves(graphs, i, to, mine.degree, mine.others);
        width[i] = graphs.edge_offsets[i] < graphs.edge_offsets[i + 1];
        entries[i] = 1.0;
        if (count == graphs.n_nodes(i)) return;
        MinimumFill rest;
        const bool fits = fill && rest.run(graphs, i, to, count, mine.degree, most, widest);
        width[i] = fits ? rest.width : -1;
        entries[i] = rest.joint;
    });
}

}  // namespace maxmargin::tree
