#include <cmath>

#include "structures/vectors.hpp"

namespace maxmargin {

namespace {

using hull::ActiveSet;
using hull::HullBatch;
using hull::Layout;

// Checks that block ranges follow one another from 0 to the end of a packed vector.
Layout layout_of(const In<std::int64_t>& offsets, std::size_t n_parts) {
    require(offsets.ndim() == 2 && offsets.shape(0) >= 1 && offsets.shape(1) >= 1,
            "offsets must have shape (n_blocks, n_examples + 1)");
    const Layout layout{static_cast<std::int64_t>(offsets.shape(0)), static_cast<std::int64_t>(offsets.shape(1)) - 1,
                        view(offsets)};
    std::int64_t at = 0;
    for (std::int64_t b = 0; b < layout.n_blocks; ++b) {
        require(layout.begin(b, 0) == at, "blocks must follow one another");
        for (std::int64_t e = 0; e < layout.n_examples; ++e)
            require(layout.begin(b, e) <= layout.begin(b, e + 1), "offsets must not decrease");
        at = layout.begin(b, layout.n_examples);
    }
    require(at == static_cast<std::int64_t>(n_parts), "offsets do not span the packed vector");
    return layout;
}

void require_begun(const HullBatch& sets) { require(sets.begun, "call begin first"); }

void check(const HullBatch& sets, const Layout& layout) {
    require(sets.fit(layout.n_examples, [&](std::int64_t e) { return layout.size(e); }),
            "active sets do not fit the batch");
}

void create(HullBatch* self, In<std::int64_t> sizes, double tolerance) {
    for (const std::int64_t size : view(sizes))
        require(size >= 0 && size < (std::int64_t{1} << 31), "an example must have between 0 and 2^31 parts");
    require(tolerance >= 0.0 && std::isfinite(tolerance), "tol must be finite and not negative");
    new (self) HullBatch(view(sizes), tolerance);
}

void begin(HullBatch& sets, In<std::int64_t> offsets, In<double> point, Out<double> scores, Threads threads) {
    const Layout layout = layout_of(offsets, point.size());
    require_fresh(sets);
    check(sets, layout);
    require(scores.size() == point.size(), "scores do not fit the batch");
    const NoGil release;
    sets.begin(layout, view(point), view(scores), threads);
}

void absorb(HullBatch& sets, In<std::int64_t> offsets, In<std::int64_t> ids, In<double> point, In<double> vertex,
            In<std::int8_t> status, Out<double> scores, Out<bool> done, Threads threads) {
    const Layout layout = layout_of(offsets, point.size());
    require_begun(sets);
    const auto n = static_cast<std::size_t>(layout.n_examples);
    require(ids.size() == n && status.size() == n && done.size() == n, "ids, status and done must fit the examples");
    require(vertex.size() == point.size() && scores.size() == point.size(), "vectors do not fit the batch");
    require(distinct(view(ids), static_cast<std::int64_t>(sets.sizes.size())), "ids must be distinct examples");
    for (std::size_t e = 0; e < n; ++e)
        require(sets.sizes[ids.data()[e]] == layout.size(static_cast<std::int64_t>(e)),
                "active sets do not fit the batch");
    unlocked([&] { sets.absorb(layout, view(ids), view(point), view(vertex), view(status), view(scores), threads); });
    for (std::size_t e = 0; e < n; ++e) done.data()[e] = sets.sets[ids.data()[e]].done();
}

void write(HullBatch& sets, In<std::int64_t> offsets, In<double> point, Out<double> z, Out<double> value,
           Out<std::int8_t> status, Threads threads) {
    const Layout layout = layout_of(offsets, point.size());
    require_begun(sets);
    check(sets, layout);
    require_outputs(point.size(), layout.n_examples, z, value, status);
    const NoGil release;
    sets.write(layout, view(point), view(z), view(value), view(status), threads);
}

nb::tuple extent(const HullBatch& sets) {
    std::int64_t vertices = 0, nonzeros = 0;
    for (const ActiveSet& set : sets.sets) {
        vertices += set.size();
        for (std::int64_t i = 0; i < set.size(); ++i) nonzeros += static_cast<std::int64_t>(set.index(i).size());
    }
    return nb::make_tuple(vertices, nonzeros);
}

void save(const HullBatch& sets, Out<std::int64_t> vertices, Out<double> weights, Out<std::int64_t> nonzeros,
          Out<std::int32_t> index, Out<double> value) {
    const nb::tuple need = extent(sets);
    const auto n_vertices = nb::cast<std::size_t>(need[0]), n_nonzeros = nb::cast<std::size_t>(need[1]);
    require(vertices.size() == sets.sets.size() + 1 && weights.size() == n_vertices &&
                nonzeros.size() == n_vertices + 1 && index.size() == n_nonzeros && value.size() == n_nonzeros,
            "arrays do not fit the active sets");
    sets.save(view(vertices), view(weights), view(nonzeros), view(index), view(value));
}

void load(HullBatch& sets, In<std::int64_t> vertices, In<double> weights, In<std::int64_t> nonzeros,
          In<std::int32_t> index, In<double> value) {
    require_fresh(sets);
    const auto v = view(vertices), f = view(nonzeros);
    require(v.size() == sets.sets.size() + 1 && rises_to(v, weights.size()), "vertex offsets do not fit the batch");
    require(f.size() == weights.size() + 1 && rises_to(f, index.size()) && index.size() == value.size(),
            "non-zero offsets do not fit the vertices");
    for (std::size_t e = 0; e < sets.sets.size(); ++e)
        for (std::int64_t j = f[v[e]]; j < f[v[e + 1]]; ++j)
            require(index.data()[j] >= 0 && index.data()[j] < sets.sizes[e] && std::isfinite(value.data()[j]),
                    "a vertex does not fit its example");
    for (const double p : view(weights)) require(p >= 0.0 && std::isfinite(p), "weights must not be negative");
    sets.load(v, view(weights), f, view(index), view(value));
}

}  // namespace

void bind_hull(nb::module_& module) {
    nb::class_<HullBatch>(module, "HullBatch")
        .def("__init__", &create, "sizes"_array, "tolerance"_a)
        .def("begin", apart(&begin), "offsets"_array, "point"_array, "scores"_array, "threads"_a)
        .def("absorb", apart(&absorb), "offsets"_array, "ids"_array, "point"_array, "vertex"_array, "status"_array,
             "scores"_array, "done"_array, "threads"_a)
        .def("write", apart(&write), "offsets"_array, "point"_array, "z"_array, "value"_array, "status"_array,
             "threads"_a)
        .def("extent", &extent)
        .def("save", apart(&save), "vertices"_array, "weights"_array, "nonzeros"_array, "index"_array, "value"_array)
        .def("load", &load, "vertices"_array, "weights"_array, "nonzeros"_array, "index"_array, "value"_array);
}

}  // namespace maxmargin
