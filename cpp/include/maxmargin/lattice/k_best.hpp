// The best paths of a lattice one after the other, on demand: the recursive enumeration of Jimenez and Marzal (1999).
//
// The r-th best path to a node is a path to one of its predecessors and an edge. A node keeps the paths to it that are
// known, and a heap of candidates, one for each edge into it: the edge after the best path to its tail that it has not
// followed yet. The next path to a node needs the next path to one predecessor, that of the path taken last, and so on:
// a rank costs at most one step of a heap for each node of a path. Nodes that no rank has asked for have no heap. No
// path comes twice, and parallel edges are different edges.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "maxmargin/lattice/best_path.hpp"

namespace maxmargin::lattice {

class KBest {
   public:
    // Takes an example; its arrays and the scores must stay until the last call of next.
    Status begin(const Example& ex, const double* scores) {
        double value;
        const Status found = best_path(ex, scores, passes_, value);
        if (found != Status::ok) return found;
        ex_ = ex;
        scores_ = scores;
        const double* best = passes_.at_node.data();
        // The best path to each node has the node's number.
        paths_.assign(static_cast<std::size_t>(ex.n_nodes), {NEG_INF, -1, NONE, UNKNOWN});
        paths_[0] = {0.0, -1, NONE, NONE};
        for (std::int64_t v = 1; v < ex.n_nodes; ++v) {
            if (!(best[v] > NEG_INF)) continue;
            const std::int64_t j = best_edge(ex, scores, best, v);
            paths_[v] = {best[v], static_cast<std::int32_t>(j), ex.tail[j], UNKNOWN};
        }
        latest_.resize(paths_.size());
        std::iota(latest_.begin(), latest_.end(), 0);
        opened_.assign(paths_.size(), 0);
        if (heaps_.size() < paths_.size()) heaps_.resize(paths_.size());
        started_ = false;
        return Status::ok;
    }

    // The next path from start to end, its edges in order, and its score; null if there is none.
    const std::vector<std::int32_t>* next(double* value) {
        const std::int64_t end = ex_.last();
        if (started_) {
            const std::int64_t before = latest_[end];
            if (paths_[before].next == UNKNOWN) advance(end);
            if (paths_[before].next == NONE) return nullptr;
        }
        started_ = true;
        *value = paths_[latest_[end]].score;
        passes_.path.clear();
        for (std::int64_t p = latest_[end]; paths_[p].before != NONE; p = paths_[p].before)
            passes_.path.push_back(ex_.edge[paths_[p].in]);
        std::reverse(passes_.path.begin(), passes_.path.end());
        return &passes_.path;
    }

   private:
    static constexpr std::int64_t NONE = -1, UNKNOWN = -2;

    // A path to a node: an edge into it, of the list by heads, after a path to the edge's tail.
    struct Path {
        double score;
        std::int32_t in;
        std::int64_t before;
        std::int64_t next;  // the next best path to the same node
    };
    struct Candidate {
        double score;
        std::int32_t in;
        std::int64_t before;
        bool operator<(const Candidate& other) const {  // for a heap with the best on top, the first edge among equals
            return score != other.score ? score < other.score : in > other.in;
        }
    };

    // Finds the next path to v: first those to the nodes before it that this needs.
    void advance(std::int64_t v) {
        stack_.assign(1, v);
        for (;;) {
            const std::int64_t before = paths_[latest_[stack_.back()]].before;
            if (paths_[before].next != UNKNOWN) break;
            stack_.push_back(ex_.tail[paths_[latest_[stack_.back()]].in]);
        }
        for (; !stack_.empty(); stack_.pop_back()) settle(stack_.back());
    }

    // Finds the next path to v. What follows the path that the latest one extends is known by then.
    void settle(std::int64_t v) {
        if (!opened_[v]) open(v);
        const std::int64_t last = latest_[v];
        const Path& now = paths_[last];
        if (paths_[now.before].next != NONE) offer(v, now.in, paths_[now.before].next);
        std::vector<Candidate>& heap = heaps_[v];
        if (heap.empty()) {
            paths_[last].next = NONE;
            return;
        }
        std::pop_heap(heap.begin(), heap.end());
        const Candidate found = heap.back();
        heap.pop_back();
        paths_[last].next = latest_[v] = static_cast<std::int64_t>(paths_.size());
        paths_.push_back({found.score, found.in, found.before, UNKNOWN});
    }

    void open(std::int64_t v) {
        opened_[v] = 1;
        heaps_[v].clear();
        for (std::int32_t j = ex_.first[v]; j < ex_.first[v + 1]; ++j)
            if (j != paths_[v].in) offer(v, j, ex_.tail[j]);
    }

    void offer(std::int64_t v, std::int32_t in, std::int64_t before) {
        const double score = paths_[before].score + scores_[ex_.edge[in]];
        if (!(score > NEG_INF)) return;  // forbidden
        heaps_[v].push_back({score, in, before});
        std::push_heap(heaps_[v].begin(), heaps_[v].end());
    }

    Example ex_{};
    const double* scores_ = nullptr;
    Passes passes_;
    std::vector<Path> paths_;
    std::vector<std::int64_t> latest_, stack_;  // of each node the last path that is known
    std::vector<std::uint8_t> opened_;          // whether a node has a heap
    std::vector<std::vector<Candidate>> heaps_;
    bool started_ = false;
};

// The ranks of all examples from kernels with begin(example, ...) and next: rank r of example i goes to z[r][..],
// value[r][i] and status[r][i]; z must be zero on entry.
template <class Begin, class Kernel>
void write_ranks(const Batch& batch, std::int64_t k, std::span<double> z, std::span<double> value,
                 std::span<std::int8_t> status, int threads, std::vector<Kernel>& kernels, Begin&& begin) {
    const std::int64_t n = batch.size();
    parallel_each(n, 1, threads, [&](int thread, std::int64_t i) {
        Kernel& kernel = kernels[thread];
        Status found = begin(kernel, i);
        for (std::int64_t r = 0; r < k; ++r) {
            double& score = value[r * n + i];
            const std::vector<std::int32_t>* path = found == Status::ok ? kernel.next(&score) : nullptr;
            if (path) mark(*path, z.data() + r * batch.n_parts() + batch.begin(i));
            else if (found == Status::ok) found = Status::absent;
            if (!path) score = no_value(found);
            status[r * n + i] = static_cast<std::int8_t>(found);
        }
    });
}

inline void k_best(const Batch& batch, std::int64_t k, std::span<const double> scores, std::span<double> z,
                   std::span<double> value, std::span<std::int8_t> status, int threads) {
    auto kernels = per_thread<KBest>(threads);
    write_ranks(batch, k, z, value, status, threads, kernels,
                [&](KBest& kernel, std::int64_t i) { return kernel.begin(batch[i], scores.data() + batch.begin(i)); });
}

}  // namespace maxmargin::lattice
