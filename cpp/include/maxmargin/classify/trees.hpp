// Sums of decision trees over rows of features: boosted trees and forests.
#pragma once

#include <cstdint>
#include <span>

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

// Adds the trees' values to out, shape (rows, columns); trees go over a block of rows at a time, which stays in cache.
inline void add_trees(const Trees& trees, const float* rows, std::int64_t n_rows, std::int64_t n_features, double* out,
                      std::int64_t n_columns, int threads) {
    parallel_blocks(n_rows, 64, threads, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::size_t t = 0; t < trees.root.size(); ++t) {
            for (std::int64_t i = begin; i < end; ++i) {
                const float* row = rows + i * n_features;
                std::int32_t node = trees.root[t];
                while (trees.feature[node] >= 0)
                    node = static_cast<double>(row[trees.feature[node]]) <= trees.threshold[node] ? trees.left[node]
                                                                                                  : trees.right[node];
                double* to = out + i * n_columns + trees.column[t];
                for (std::int64_t v = 0; v < trees.width; ++v) to[v] += trees.value[node * trees.width + v];
            }
        }
    });
}

}  // namespace maxmargin::classify
