#include "maxmargin/classify/trees.hpp"

#include "arrays.hpp"

namespace maxmargin {

namespace {

using classify::Trees;

void check(const Trees& trees, std::int64_t n_features, std::int64_t n_columns) {
    const std::size_t n = trees.feature.size();
    require(n < std::size_t{1} << 31, "too many nodes");
    require(trees.left.size() == n && trees.right.size() == n && trees.threshold.size() == n,
            "every node must have a feature, a threshold and two children");
    require(trees.width > 0 && trees.width <= n_columns, "leaves must have between one value and one per column");
    require(trees.value.size() == n * static_cast<std::size_t>(trees.width), "every node must have its values");
    require(trees.root.size() == trees.column.size(), "every tree must have a root and a column");
    require(n_features > 0 || trees.root.empty(), "rows without features have no trees");
    require(within(trees.feature, -1, n_features), "features must be columns of the rows, or -1 at leaves");
    require(within(trees.root, 0, static_cast<std::int64_t>(n)), "roots must be nodes");
    require(within(trees.column, 0, n_columns - trees.width + 1), "columns must lie inside the outputs");
    bool after = true;
    for (std::size_t i = 0; i < n; ++i) {
        const auto node = static_cast<std::int64_t>(i), end = static_cast<std::int64_t>(n);
        after &= trees.feature[i] < 0 ||
                 (trees.left[i] > node && trees.left[i] < end && trees.right[i] > node && trees.right[i] < end);
    }
    require(after, "children must come after their parents");
}

void run(const In<std::int32_t>& feature, const In<std::int32_t>& left, const In<std::int32_t>& right,
         const In<double>& threshold, const In<double>& value, const In<std::int32_t>& root,
         const In<std::int32_t>& column, std::int64_t width, const In<float>& rows, Out<double> out, Threads threads) {
    require(rows.ndim() == 2 && out.ndim() == 2 && rows.shape(0) == out.shape(0), "outputs must have a row per row");
    const Trees trees{view(feature), view(left), view(right),  view(threshold),
                      view(value),   view(root), view(column), width};
    const auto n_features = static_cast<std::int64_t>(rows.shape(1)),
               n_columns = static_cast<std::int64_t>(out.shape(1));
    check(trees, n_features, n_columns);
    const NoGil unlocked;
    classify::add_trees(trees, rows.data(), static_cast<std::int64_t>(rows.shape(0)), n_features, out.data(), n_columns,
                        threads);
}

}  // namespace

void bind_trees(nb::module_& module) {
    module.def("add_trees", apart(&run), "feature"_array, "left"_array, "right"_array, "threshold"_array, "value"_array,
               "root"_array, "column"_array, "width"_a, "rows"_array, "out"_array, "threads"_a,
               "Add the values of the leaves that each row reaches to the outputs.");
}

}  // namespace maxmargin
