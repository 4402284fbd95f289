// A packed batch of lattices, directed acyclic graphs with a start and an end, as the kernels see them.
//
// Kernels see the nodes and edges that lie on a path from start to end, and no others. The nodes of an example stand in
// topological order, so that the start comes first and the end last, and the edges are listed by the node they enter,
// those of one node in the order in which they were given. This is worked out once for a batch: O(nodes + edges).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "maxmargin/base/parallel.hpp"
#include "maxmargin/base/scratch.hpp"
#include "maxmargin/hull/projection.hpp"

namespace maxmargin::lattice {

using hull::Sparse;
using hull::Status;

inline constexpr double NEG_INF = -std::numeric_limits<double>::infinity();

// Graphs as given: the nodes of an example count from 0. The caller has checked all numbers.
struct Graphs {
    std::span<const std::int64_t> nodes, edges;  // offsets
    std::span<const std::int32_t> ends;          // tail and head of every edge
    std::span<const std::int32_t> start, end;    // of every example

    std::int64_t n_examples() const { return static_cast<std::int64_t>(nodes.size()) - 1; }
    std::int64_t n_nodes(std::int64_t i) const { return nodes[i + 1] - nodes[i]; }
    std::int64_t n_edges(std::int64_t i) const { return edges[i + 1] - edges[i]; }
};

enum class Fault : std::uint8_t { none = 0, cycle = 1, no_path = 2 };

// One example. The edges into node v are first[v] : first[v + 1]; `tail` is the node they leave, `edge` their number
// among all edges of the example.
struct Example {
    std::int64_t n_nodes, n_edges, n_parts;
    const std::int32_t *first, *tail, *edge;

    std::int64_t last() const { return n_nodes - 1; }
};

class Batch {
   public:
    Batch(const Graphs& graphs, int threads)
        : nodes_(graphs.nodes.begin(), graphs.nodes.end()), edges_(graphs.edges.begin(), graphs.edges.end()) {
        const std::int64_t n = graphs.n_examples();
        position_.resize(static_cast<std::size_t>(graphs.nodes[n]));
        faults_.resize(static_cast<std::size_t>(n));
        first_start_.resize(static_cast<std::size_t>(n) + 1);
        in_start_.resize(static_cast<std::size_t>(n) + 1);
        auto scratch = per_thread<Scratch>(threads);
        parallel_each(n, grain(), threads, [&](int thread, std::int64_t i) { place(graphs, i, scratch[thread]); });
        std::inclusive_scan(first_start_.begin(), first_start_.end(), first_start_.begin());
        std::inclusive_scan(in_start_.begin(), in_start_.end(), in_start_.begin());
        first_.resize(static_cast<std::size_t>(first_start_[n]));
        tail_.resize(static_cast<std::size_t>(in_start_[n]));
        edge_.resize(static_cast<std::size_t>(in_start_[n]));
        parallel_each(n, grain(), threads, [&](int thread, std::int64_t i) { list(graphs, i, scratch[thread]); });
    }

    std::int64_t size() const { return static_cast<std::int64_t>(edges_.size()) - 1; }
    std::int64_t n_parts() const { return edges_.back(); }
    std::int64_t begin(std::int64_t i) const { return edges_[i]; }
    Fault fault(std::int64_t i) const { return faults_[i]; }
    Example operator[](std::int64_t i) const {
        const std::int64_t from = in_start_[i];
        return {first_start_[i + 1] - first_start_[i] - 1, in_start_[i + 1] - from, edges_[i + 1] - edges_[i],
                first_.data() + first_start_[i],           tail_.data() + from,     edge_.data() + from};
    }
    // For every node as given its place in the topological order of its example, -1 if it lies on no path.
    std::span<const std::int32_t> positions() const { return position_; }
    std::span<const std::int32_t> positions(std::int64_t i) const {
        return positions().subspan(node_begin(i), nodes_[i + 1] - nodes_[i]);
    }
    std::int64_t node_begin(std::int64_t i) const { return nodes_[i]; }

    // Examples per block of work: enough edges to pay for handing the block out.
    std::int64_t grain() const {
        const std::int64_t mean = edges_.back() / std::max<std::int64_t>(size(), 1);
        return std::clamp<std::int64_t>(4000 / (mean + 1), 1, 64);
    }

   private:
    struct Scratch {
        std::vector<std::int32_t> out, heads, order, waiting;  // edges by their tails; the nodes in topological order
        std::vector<std::uint8_t> reached;
    };

    // Topological order, and the nodes on paths. Sets the numbers of nodes and edges of the example on paths.
    void place(const Graphs& graphs, std::int64_t i, Scratch& scratch) {
        const std::int64_t n = graphs.n_nodes(i), m = graphs.n_edges(i);
        const std::int32_t* ends = graphs.ends.data() + 2 * graphs.edges[i];
        std::int32_t* position = position_.data() + graphs.nodes[i];
        std::fill(position, position + n, -1);
        first_start_[i + 1] = 1;
        in_start_[i + 1] = 0;
        auto& [out, heads, order, waiting, reached] = scratch;
        out.assign(static_cast<std::size_t>(n) + 1, 0);
        heads.resize(static_cast<std::size_t>(m));
        for (std::int64_t e = 0; e < m; ++e) ++out[ends[2 * e] + 1];
        std::inclusive_scan(out.begin(), out.end(), out.begin());
        waiting.assign(out.begin(), out.end());
        for (std::int64_t e = 0; e < m; ++e) heads[waiting[ends[2 * e]]++] = ends[2 * e + 1];
        faults_[i] = sort(n, m, ends, scratch) ? Fault::none : Fault::cycle;
        if (faults_[i] != Fault::none) return;

        constexpr std::uint8_t from_start = 1, to_end = 2, both = 3;
        reached.assign(static_cast<std::size_t>(n), 0);
        reached[graphs.start[i]] |= from_start;
        reached[graphs.end[i]] |= to_end;
        for (const std::int32_t u : order)
            if (reached[u] & from_start)
                for (std::int32_t a = out[u]; a < out[u + 1]; ++a) reached[heads[a]] |= from_start;
        for (std::int64_t t = n - 1; t >= 0; --t) {
            const std::int32_t u = order[t];
            for (std::int32_t a = out[u]; a < out[u + 1]; ++a) reached[u] |= reached[heads[a]] & to_end;
        }
        std::int32_t count = 0;
        for (const std::int32_t u : order)
            if (reached[u] == both) position[u] = count++;
        if (count == 0) {
            faults_[i] = Fault::no_path;
            return;
        }
        std::int64_t kept = 0;
        for (std::int64_t e = 0; e < m; ++e) kept += position[ends[2 * e]] >= 0 && position[ends[2 * e + 1]] >= 0;
        first_start_[i + 1] = count + 1;
        in_start_[i + 1] = kept;
    }

    // False if there is a cycle. Nodes that are numbered in topological order stay as they are.
    static bool sort(std::int64_t n, std::int64_t m, const std::int32_t* ends, Scratch& scratch) {
        auto& [out, heads, order, waiting, reached] = scratch;
        order.resize(static_cast<std::size_t>(n));
        bool rising = true;
        for (std::int64_t e = 0; e < m; ++e) rising &= ends[2 * e] < ends[2 * e + 1];
        if (rising) {
            std::iota(order.begin(), order.end(), 0);
            return true;
        }
        waiting.assign(static_cast<std::size_t>(n), 0);  // edges from nodes that have no place yet
        for (std::int64_t e = 0; e < m; ++e) ++waiting[ends[2 * e + 1]];
        std::int64_t placed = 0;
        for (std::int64_t v = 0; v < n; ++v)
            if (waiting[v] == 0) order[placed++] = static_cast<std::int32_t>(v);
        for (std::int64_t t = 0; t < placed; ++t)
            for (std::int32_t a = out[order[t]]; a < out[order[t] + 1]; ++a)
                if (--waiting[heads[a]] == 0) order[placed++] = heads[a];
        return placed == n;
    }

    // Lists the edges on paths by their heads.
    void list(const Graphs& graphs, std::int64_t i, Scratch& scratch) {
        const std::int64_t m = graphs.n_edges(i), size = first_start_[i + 1] - first_start_[i];
        const std::int32_t* ends = graphs.ends.data() + 2 * graphs.edges[i];
        const std::int32_t* position = position_.data() + graphs.nodes[i];
        std::int32_t* first = first_.data() + first_start_[i];
        std::fill(first, first + size, 0);
        if (in_start_[i + 1] == in_start_[i]) return;
        const auto each = [&](auto&& take) {
            for (std::int64_t e = 0; e < m; ++e) {
                const std::int32_t u = position[ends[2 * e]], v = position[ends[2 * e + 1]];
                if (u >= 0 && v >= 0) take(static_cast<std::int32_t>(e), u, v);
            }
        };
        each([&](std::int32_t, std::int32_t, std::int32_t v) { ++first[v + 1]; });
        std::inclusive_scan(first, first + size, first);
        scratch.waiting.assign(first, first + size);
        each([&](std::int32_t e, std::int32_t u, std::int32_t v) {
            const std::int64_t at = in_start_[i] + scratch.waiting[v]++;
            tail_[at] = u;
            edge_[at] = e;
        });
    }

    std::vector<std::int64_t> nodes_, edges_, first_start_, in_start_;  // offsets
    std::vector<std::int32_t> position_, first_, tail_, edge_;
    std::vector<Fault> faults_;
};

// Memory of one thread for the passes over one example.
struct Passes {
    std::vector<double> at_node, at_edge, flow;
    std::vector<std::int32_t> path;  // edges of the example, from start to end

    void fit(const Example& ex) {
        at_least(at_node, static_cast<std::size_t>(ex.n_nodes));
        at_least(flow, static_cast<std::size_t>(ex.n_nodes));
        at_least(at_edge, static_cast<std::size_t>(ex.n_edges));
    }
};

// The non-zero parts of a path, in rising order.
inline void vertex_of(const std::vector<std::int32_t>& path, Sparse& vertex) {
    vertex.index.assign(path.begin(), path.end());
    std::sort(vertex.index.begin(), vertex.index.end());
    vertex.value.assign(path.size(), 1.0);
}

inline void mark(const std::vector<std::int32_t>& path, double* z) {
    for (const std::int32_t e : path) z[e] = 1.0;
}

// The value of an example without a point.
inline double no_value(Status found) {
    return found == Status::nonfinite ? std::numeric_limits<double>::quiet_NaN() : NEG_INF;
}

}  // namespace maxmargin::lattice
