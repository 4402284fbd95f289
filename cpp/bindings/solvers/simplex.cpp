#include <cmath>
#include <limits>
#include <utility>

#include "arrays.hpp"
#include "maxmargin/simplex/joint.hpp"
#include "maxmargin/simplex/masters.hpp"
#include "maxmargin/simplex/release.hpp"

namespace maxmargin {

namespace {

using simplex::Masters;
using simplex::Outcome;
using simplex::Program;

// A feasible q for blocks that follow one another from 0 to its end.
void check_blocks(const In<std::int64_t>& offsets, std::size_t m) {
    const auto o = view(offsets);
    require(!o.empty() && o.front() == 0 && o.back() == static_cast<std::int64_t>(m),
            "offsets do not span the weights");
    for (std::size_t b = 1; b < o.size(); ++b) require(o[b - 1] < o[b], "every block must have a point");
}

nb::tuple newton(In<double> h, In<double> linear, In<std::int64_t> offsets, bool cone, Out<double> q, double tolerance,
                 int limit) {
    const std::size_t m = linear.size();
    require(h.ndim() == 2 && h.shape(0) == m && h.shape(1) == m && q.size() == m, "H, linear and q do not fit");
    check_blocks(offsets, m);
    require(tolerance >= 0.0, "tolerance must not be negative");
    simplex::Status status;
    double gap;
    {
        const NoGil release;
        std::vector<double> p(m);
        const auto n = static_cast<std::int64_t>(m);
        simplex::times(n, h.data(), n, q.data(), p.data());
        for (std::size_t j = 0; j < m; ++j) p[j] += linear.data()[j];
        simplex::NewtonScratch scratch;
        const Program program{n, h.data(), n, view(offsets), cone};
        status = simplex::newton(program, q.data(), p.data(), tolerance, limit, scratch);
        gap = program.gap(p.data(), q.data());
        if (status == simplex::NONFINITE) std::fill_n(q.data(), m, 0.0);
    }
    return nb::make_tuple(static_cast<int>(status), gap);
}

void create(Masters* self, std::int64_t n_blocks, std::int64_t n_weights, std::int64_t n_masses, double c,
            double radius, In<bool> nonnegative, bool cone, double price, double l1_radius) {
    require(n_blocks >= 0 && n_weights >= 0 && n_masses >= 0, "sizes must not be negative");
    require(n_weights + n_masses < (std::int64_t{1} << 31), "there are too many weights");
    require(c > 0.0 && std::isfinite(c) && radius > 0.0, "C must be finite and positive, the radius positive");
    require(price >= 0.0 && std::isfinite(price) && l1_radius > 0.0, "the price must be finite, the radius positive");
    require(!(std::isfinite(radius) && (price > 0.0 || std::isfinite(l1_radius))), "one norm at a time");
    require(nonnegative.size() == 0 || static_cast<std::int64_t>(nonnegative.size()) == n_weights,
            "the mask does not fit the weights");
    const auto signs = view(nonnegative);
    simplex::WeightSet set{radius, price, l1_radius, {signs.begin(), signs.end()}};
    new (self) Masters(n_blocks, n_weights, n_masses, c, std::move(set), cone);
}

void check_chosen(const Masters& masters, const In<std::int64_t>& blocks) {
    require(distinct(view(blocks), masters.n_blocks()), "blocks must be distinct numbers of blocks");
}

void add(Masters& masters, In<std::int64_t> blocks, In<std::int64_t> rows, In<std::int64_t> offsets,
         In<std::int32_t> index, In<double> value, In<double> factor, In<double> loss, std::int64_t limit,
         Out<bool> added) {
    const std::size_t n = blocks.size();
    require(rows.size() == n && factor.size() == n && loss.size() == n && added.size() == n,
            "blocks, rows, factor, loss and added must have one entry per point");
    const auto o = view(offsets);
    require(rises_to(o, index.size()) && index.size() == value.size(), "offsets do not fit the entries");
    require(within(view(index), 0, masters.n_coordinates()), "an entry is outside the weights");
    check_chosen(masters, blocks);
    require(within(view(rows), 0, static_cast<std::int64_t>(o.size()) - 1), "rows must be numbers of rows");
    const NoGil release;
    for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t row = rows.data()[i];
        const auto first = static_cast<std::size_t>(o[row]), count = static_cast<std::size_t>(o[row + 1]) - first;
        added.data()[i] = masters.add(blocks.data()[i], view(index).subspan(first, count),
                                      view(value).subspan(first, count), factor.data()[i], loss.data()[i], limit);
    }
}

void values(const Masters& masters, In<double> weights, Out<double> best, Out<double> current, int threads) {
    const auto n = static_cast<std::size_t>(masters.n_blocks());
    require(static_cast<std::int64_t>(weights.size()) == masters.n_weights(), "weights do not fit");
    require(best.size() == n && current.size() == n, "outputs must have one entry per block");
    const NoGil release;
    masters.values(view(weights), view(best), view(current), threads);
}

nb::tuple as_tuple(const Outcome& outcome) {
    return nb::make_tuple(static_cast<int>(outcome.status), outcome.gap, outcome.steps);
}

nb::tuple sweep(Masters& masters, In<std::int64_t> blocks, double enough, Out<double> gaps) {
    check_chosen(masters, blocks);
    require(gaps.size() == blocks.size(), "gaps must have one entry per block");
    return as_tuple(unlocked([&] { return masters.sweep(view(blocks), enough, view(gaps)); }));
}

nb::tuple joint(Masters& masters, In<std::int64_t> blocks, double tolerance, int limit) {
    check_chosen(masters, blocks);
    return as_tuple(unlocked([&] { return masters.joint(view(blocks), tolerance, limit); }));
}

void g(const Masters& masters, Out<double> out) {
    require(out.size() == static_cast<std::size_t>(masters.n_coordinates()), "out does not fit the coordinates");
    std::copy(masters.response().g().begin(), masters.response().g().end(), out.data());
}

void recenter(Masters& masters, In<double> center, double reach, double ridge_c) {
    require(static_cast<std::int64_t>(center.size()) == masters.n_weights(), "the center does not fit the weights");
    require(reach > 0.0 && std::isfinite(reach) && ridge_c > 0.0, "reach must be finite and positive, C positive");
    const NoGil release;
    masters.response().recenter(view(center), reach, ridge_c);
}

void response(const Masters& masters, Out<double> out) {
    require(static_cast<std::int64_t>(out.size()) == masters.n_weights(), "out does not fit the weights");
    masters.response().weights(view(out));
}

double release(const Masters& masters, In<std::int64_t> where, In<double> wanted, Out<double> out) {
    require(distinct(view(where), masters.n_weights()), "where must be distinct numbers of weights");
    require(wanted.size() == where.size(), "wanted must have one entry per coordinate");
    require(out.size() == static_cast<std::size_t>(masters.n_coordinates()), "out does not fit the coordinates");
    const auto released = unlocked([&] { return masters.release(view(where), view(wanted)); });
    std::copy(released.g.begin(), released.g.end(), out.data());
    return released.loss;
}

void sizes(const Masters& masters, Out<std::int64_t> out) {
    require(out.size() == static_cast<std::size_t>(masters.n_blocks()), "out must have one entry per block");
    for (std::int64_t b = 0; b < masters.n_blocks(); ++b)
        out.data()[b] = static_cast<std::int64_t>(masters.weights_of(b).size());
}

void weights(const Masters& masters, std::int64_t block, Out<double> out) {
    require(block >= 0 && block < masters.n_blocks() && out.size() == masters.weights_of(block).size(),
            "out does not fit the block");
    std::copy(masters.weights_of(block).begin(), masters.weights_of(block).end(), out.data());
}

}  // namespace

void bind_simplex(nb::module_& module) {
    module.def("simplex_newton", &newton, "h"_array, "linear"_array, "offsets"_array, "cone"_a, "q"_array,
               "tolerance"_a, "limit"_a);
    nb::class_<Masters>(module, "Masters")
        .def("__init__", &create, "n_blocks"_a, "n_weights"_a, "n_masses"_a, "c"_a, "radius"_a, "nonnegative"_array,
             "cone"_a, "price"_a = 0.0, "l1_radius"_a = std::numeric_limits<double>::infinity())
        .def("recenter", &recenter, "center"_array, "reach"_a, "ridge_c"_a)
        .def("response", &response, "out"_array)
        .def("release", &release, "where"_array, "wanted"_array, "out"_array)
        .def("add", &add, "blocks"_array, "rows"_array, "offsets"_array, "index"_array, "value"_array, "factor"_array,
             "loss"_array, "limit"_a, "added"_array)
        .def("values", &values, "weights"_array, "best"_array, "current"_array, "threads"_a)
        .def("sweep", &sweep, "blocks"_array, "enough"_a, "gaps"_array)
        .def("joint", &joint, "blocks"_array, "tolerance"_a, "limit"_a)
        .def("settle", &Masters::settle, "age"_a, nb::call_guard<NoGil>())
        .def("g", &g, "out"_array)
        .def("loss", &Masters::loss)
        .def("n_points", &Masters::n_points)
        .def("sizes", &sizes, "out"_array)
        .def("weights", &weights, "block"_a, "out"_array);
}

}  // namespace maxmargin
