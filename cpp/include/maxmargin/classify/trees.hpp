// Sums of decision trees over rows of features: boosted trees and forests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "maxmargin/base/parallel.hpp"

namespace maxmargin::classify {

// The nodes of all trees. A row goes left where row[feature] <= threshold; a leaf has feature -1. Children come after
// their parents, so every walk ends. Tree t begins at node root[t] and adds the `width` values of the leaf that a row
// reaches to the outputs from column[t] on.
struct Trees {
    std::span<const std::int32_t> feature, left, right;
    std::span<const double> threshold, value;
    std::span<const std::int32_t> root, column;
    std::int64_t width;
};

// A node as walks see it: 16 bytes, both children in one load.
struct WalkNode {
    float threshold;  // the largest float not above the node's: rows are floats, so they compare the same
    std::int32_t feature;
    std::int32_t child[2];
};

inline std::vector<WalkNode> walk_nodes(const Trees& trees) {
    std::vector<WalkNode> nodes(trees.feature.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        float threshold = static_cast<float>(trees.threshold[i]);
        if (static_cast<double>(threshold) > trees.threshold[i])
            threshold = std::nextafter(threshold, -std::numeric_limits<float>::infinity());
        const bool leaf = trees.feature[i] < 0;
        const auto self = static_cast<std::int32_t>(i);
        nodes[i] = {
            threshold, leaf ? 0 : trees.feature[i], {leaf ? self : trees.left[i], leaf ? self : trees.right[i]}};
    }
    return nodes;
}

// Adds the trees' values to out, shape (rows, columns). Several rows walk a tree at once, as each step waits for
// memory; leaves lead to themselves, so that all of them take as many steps as the slowest.
inline void add_trees(const Trees& trees, const float* rows, std::int64_t n_rows, std::int64_t n_features, double* out,
                      std::int64_t n_columns, int threads) {
    constexpr std::int64_t lanes = 8;
    const std::vector<WalkNode> nodes = walk_nodes(trees);
    parallel_blocks(n_rows, 64, threads, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::size_t t = 0; t < trees.root.size(); ++t) {
            for (std::int64_t first = begin; first < end; first += lanes) {
                const std::int64_t count = std::min(lanes, end - first);
                std::int32_t at[lanes];
                std::fill(at, at + lanes, trees.root[t]);
                for (bool moved = true; moved;) {
                    moved = false;
                    for (std::int64_t k = 0; k < count; ++k) {
                        const WalkNode& node = nodes[at[k]];
                        const std::int32_t next =
                            node.child[rows[(first + k) * n_features + node.feature] > node.threshold];
                        moved |= next != at[k];
                        at[k] = next;
                    }
                }
                for (std::int64_t k = 0; k < count; ++k) {
                    double* to = out + (first + k) * n_columns + trees.column[t];
                    for (std::int64_t v = 0; v < trees.width; ++v) to[v] += trees.value[at[k] * trees.width + v];
                }
            }
        }
    });
}

}  // namespace maxmargin::classify
