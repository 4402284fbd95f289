#include <cmath>

#include "arrays.hpp"
#include "maxmargin/scans/grid.hpp"

namespace maxmargin {

namespace {

using scans::Grid;

void make(Grid* self, const In<double>& points, const In<double>& weights, double size) {
    require(points.size() == 3 * weights.size() && weights.size() > 0, "three coordinates and a weight per point");
    require(weights.size() < std::size_t{1} << 31, "too many points");
    require(size > 0 && std::isfinite(size), "cells must have a positive size");
    require(Grid::fits(view(points), size), "coordinates must be finite and within 2^21 cells of each other");
    bool good = true;
    for (const double w : view(weights)) good &= w >= 0 && std::isfinite(w);
    require(good, "weights must be finite and >= 0");
    const NoGil unlocked;
    new (self) Grid(view(points), view(weights), size);
}

void require_queries(const In<double>& queries, double radius) {
    require(queries.size() % 3 == 0, "three coordinates per query");
    bool good = true;
    for (const double x : view(queries)) good &= std::abs(x) < 1e15;  // also refuses NaN; cells fit 64 bits
    require(good, "queries must be finite");
    require(radius > 0 && std::isfinite(radius), "the radius must be positive");
}

void shapes(const Grid& self, const In<double>& queries, double radius, Out<float> out, Out<float> normals,
            Threads threads) {
    require_queries(queries, radius);
    require(out.size() == queries.size() / 3 * scans::kShapes, "out must have a row of features per query");
    require(normals.size() == queries.size(), "normals must have three coordinates per query");
    const NoGil unlocked;
    self.shapes(view(queries), radius, out.data(), normals.data(), threads);
}

void average(const Grid& self, const In<double>& queries, double radius, double gap, const In<float>& values,
             const In<double>& weights, float missing, Out<float> out, Threads threads) {
    require_queries(queries, radius);
    const auto n = static_cast<std::size_t>(self.n_points());
    require(weights.size() == n && values.size() % n == 0, "a weight and a row of values per point");
    require(gap >= 0, "the gap must be >= 0");
    const std::size_t k = values.size() / n;
    require(out.size() == queries.size() * k, "out must have three means of every value per query");
    const NoGil unlocked;
    self.average(view(queries), radius, gap, view(values), view(weights), static_cast<std::int64_t>(k), missing,
                 out.data(), threads);
}

void cells(const Grid& self, Out<std::int32_t> out) {
    require(out.size() == self.cell_of().size(), "out must have one number per point");
    std::copy(self.cell_of().begin(), self.cell_of().end(), out.data());
}

}  // namespace

void bind_scan_grid(nb::module_& module) {
    nb::class_<Grid>(module, "ScanGrid", "Points in cubic cells.")
        .def("__init__", &make, "points"_array, "weights"_array, "size"_a)
        .def_prop_ro("n_cells", &Grid::n_cells)
        .def("cells", &cells, "out"_array, "Write the number of every point's cell.")
        .def("shapes", apart(&shapes), "queries"_array, "radius"_a, "out"_array, "normals"_array, "threads"_a,
             "Write the features of the neighborhood of each query, and its normal.")
        .def("average", apart(&average), "queries"_array, "radius"_a, "gap"_a, "values"_array, "weights"_array,
             "missing"_a, "out"_array, "threads"_a, "Write means of values around, above and below each query.");
    module.attr("SCAN_SHAPES") = scans::kShapes;
}

}  // namespace maxmargin
