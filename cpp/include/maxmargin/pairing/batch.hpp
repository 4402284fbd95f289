// A packed batch of graphs whose nodes are paired, and the best pairings of one of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "maxmargin/hull/projection.hpp"
#include "maxmargin/pairing/blossom.hpp"

namespace maxmargin::pairing {

using hull::Status;

// Example i has nodes node_start[i]:node_start[i+1] and edges edge_start[i]:edge_start[i+1]. `ends` holds two different
// nodes per edge, local to the example; no two edges of an example join the same nodes. The caller has checked this.
struct Batch {
    std::span<const Int> node_start, edge_start;
    std::span<const std::int32_t> ends;
    bool perfect = false;

    Int size() const { return static_cast<Int>(edge_start.size()) - 1; }
    Int n_nodes(Int i) const { return node_start[i + 1] - node_start[i]; }
    Int n_edges(Int i) const { return edge_start[i + 1] - edge_start[i]; }
};

// One example of a batch.
struct Example {
    Int n_nodes, n_edges;
    const std::int32_t* ends;
    bool perfect;
};
inline Example example(const Batch& batch, Int i) {
    return {batch.n_nodes(i), batch.n_edges(i), batch.ends.data() + 2 * batch.edge_start[i], batch.perfect};
}

// Solves one example after the other, with edges forced in or out; owns the scratch of one thread.
class Pairer {
   public:
    enum Rule : std::uint8_t { kFree = 0, kIn = 1, kOut = 2 };

    // Checks the scores, of which -inf forbids an edge, and finds their unit.
    Status begin(const Example& ex, const double* scores) {
        ex_ = ex, scores_ = scores;
        double largest = 0;
        for (Int e = 0; e < ex.n_edges; ++e) {
            if (!(scores[e] <= std::numeric_limits<double>::max())) return Status::nonfinite;
            if (std::isfinite(scores[e])) largest = std::max(largest, std::abs(scores[e]));
        }
        // Weights are multiples of four below 2^57 / (nodes + 2), as duals of perfect matchings may be the sum of all.
        int exponent = 0, nodes = 0;
        std::frexp(largest, &exponent);
        std::frexp(static_cast<double>(ex.n_nodes + 2), &nodes);
        scale_ = std::ldexp(1.0, std::min(55 - nodes - exponent, 1000));
        return Status::ok;
    }

    // The best pairing that obeys the rules, by its edges in rising order; `rules` may be null. Without rules of kIn
    // the duals are those of the whole example.
    Status solve(const std::uint8_t* rules, std::vector<std::int32_t>& pairing) {
        pairing.clear();
        const Int n = lay_out(rules, pairing);
        if (n < 0 || !blossom_.solve(n, weight_.data(), ex_.perfect)) return Status::absent;
        for (Int v = 0; v < n; ++v)
            if (blossom_.mate()[v] > v) pairing.push_back(edge_[v * n + blossom_.mate()[v]]);
        std::sort(pairing.begin(), pairing.end());
        return Status::ok;
    }

    double score(const std::vector<std::int32_t>& pairing) const {
        double sum = 0;
        for (const std::int32_t e : pairing) sum += scores_[e];
        return sum;
    }

    // Duals in the unit of the scores.
    double dual(Int v) const { return static_cast<double>(blossom_.u()[v]) / (4 * scale_); }
    template <class Visit>
    void odd_sets(Visit&& visit) const {
        blossom_.odd_sets(
            [&](Int z, const std::vector<Int>& nodes) { visit(static_cast<double>(z) / (4 * scale_), nodes); });
    }

   private:
    // Weights of the nodes that no forced edge covers, numbered in order; returns their number, or -1 if two forced
    // edges meet.
    Int lay_out(const std::uint8_t* rules, std::vector<std::int32_t>& forced) {
        place_.assign(static_cast<std::size_t>(ex_.n_nodes), 0);
        for (Int e = 0; rules && e < ex_.n_edges; ++e) {
            if (rules[e] != kIn) continue;
            for (const Int end : {2 * e, 2 * e + 1}) {
                if (place_[ex_.ends[end]] < 0) return -1;
                place_[ex_.ends[end]] = -1;
            }
            forced.push_back(static_cast<std::int32_t>(e));
        }
        Int n = 0;
        for (Int& place : place_)
            if (place == 0) place = n++;
        weight_.assign(static_cast<std::size_t>(n * n), kNoEdge);
        edge_.resize(static_cast<std::size_t>(n * n));
        for (Int e = 0; e < ex_.n_edges; ++e) {
            const Int i = place_[ex_.ends[2 * e]], j = place_[ex_.ends[2 * e + 1]];
            if (i < 0 || j < 0 || (rules && rules[e] == kOut) || !std::isfinite(scores_[e])) continue;
            if (!ex_.perfect && scores_[e] <= 0) continue;
            weight_[i * n + j] = weight_[j * n + i] = 4 * static_cast<Int>(std::llrint(scores_[e] * scale_));
            edge_[i * n + j] = edge_[j * n + i] = static_cast<std::int32_t>(e);
        }
        return n;
    }

    Example ex_{};
    const double* scores_ = nullptr;
    double scale_ = 1;
    Blossom blossom_;
    std::vector<Int> weight_, place_;
    std::vector<std::int32_t> edge_;
};

}  // namespace maxmargin::pairing
