// A packed batch of bipartite graphs, as the matching kernels see it, and shared helpers.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "maxmargin/base/simd.hpp"

namespace maxmargin::matching {

enum Status : std::int8_t { kOk = 0, kInexact = 1, kNonfinite = 2, kAbsent = 3 };

// Example i has left nodes left_start[i]:left_start[i+1], right nodes right_start[i]:right_start[i+1] and edges
// edge_start[i]:edge_start[i+1], sorted by (left, right) and distinct. `ends` holds (left, right) per edge, local to
// the example; it is empty if every example has all its edges. The caller has checked all of this.
struct Batch {
    std::span<const std::int64_t> left_start, right_start, edge_start;
    std::span<const std::int32_t> ends;
    std::span<const std::int64_t> left_capacity, right_capacity;

    std::int64_t size() const { return static_cast<std::int64_t>(edge_start.size()) - 1; }
};

// One example of a batch.
struct Example {
    std::int64_t n_left, n_right, n_edges;
    const std::int32_t* ends;  // null if all edges are there
    const std::int64_t* left_capacity;
    const std::int64_t* right_capacity;

    bool full() const { return n_edges == n_left * n_right; }
    std::int64_t small_side() const { return std::min(n_left, n_right); }
    std::int64_t large_side() const { return std::max(n_left, n_right); }
};

inline Example example(const Batch& batch, std::int64_t i) {
    const std::int64_t left = batch.left_start[i], right = batch.right_start[i], edge = batch.edge_start[i];
    return {batch.left_start[i + 1] - left,    batch.right_start[i + 1] - right,
            batch.edge_start[i + 1] - edge,    batch.ends.empty() ? nullptr : batch.ends.data() + 2 * edge,
            batch.left_capacity.data() + left, batch.right_capacity.data() + right};
}

// The largest size(example) of a batch, for scratch that fits all of them.
template <class Size>
std::int64_t largest_of(const Batch& batch, Size&& size) {
    std::int64_t most = 0;
    for (std::int64_t i = 0; i < batch.size(); ++i) most = std::max(most, size(example(batch, i)));
    return most;
}
inline std::int64_t most_edges(const Batch& batch) {
    return largest_of(batch, [](const Example& ex) { return ex.n_edges; });
}

struct Sides {
    std::int64_t small = 0, large = 0;
};
inline Sides largest_sides(const Batch& batch) {
    Sides sides;
    for (std::int64_t i = 0; i < batch.size(); ++i) {
        const Example ex = example(batch, i);
        sides = {std::max(sides.small, ex.small_side()), std::max(sides.large, ex.large_side())};
    }
    return sides;
}

// The width of a row in scratch: a multiple of four doubles, so that loops over rows have no tail.
inline std::int64_t padded(std::int64_t n) { return (n + 3) & ~std::int64_t{3}; }

// A matrix with holes costs less than lists of edges while it is this full, because its rows are read by vectors.
inline bool as_matrix(const Example& ex) {
    return ex.full() || ex.small_side() * padded(ex.large_side()) <= 6 * ex.n_edges;
}

static MM_CLONES bool finite(const double* values, std::int64_t n) {
    constexpr std::uint64_t exponent = 0x7ff0000000000000;  // all ones for infinities and NaN
    std::uint64_t found = 0;
    for (std::int64_t e = 0; e < n; ++e)
        found |= (std::bit_cast<std::uint64_t>(values[e]) & exponent) == exponent ? 1 : 0;
    return found == 0;
}

// Examples per block of work: enough edges to pay for handing the block out.
inline std::int64_t grain(const Batch& batch) {
    const std::int64_t edges = batch.edge_start.back() / std::max<std::int64_t>(batch.size(), 1);
    return std::clamp<std::int64_t>(2000 / (edges + 1), 1, 64);
}

}  // namespace maxmargin::matching
