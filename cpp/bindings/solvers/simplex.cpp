#include <nanobind/stl/tuple.h>

#include <cmath>
#include <limits>
#include <utility>

#include "arrays.hpp"
#include "maxmargin/simplex/joint.hpp"
#include "maxmargin/simplex/masters.hpp"
#include "maxmargin/simplex/release.hpp"
#include "owned.hpp"

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
    checked_count("limit", limit, 0, most_steps);
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
    checked_count("n_blocks", n_blocks, 0, std::int64_t{1} << 26);
    require(n_weights >= 0 && n_masses >= 0, "sizes must not be negative");
    require(checked_sum({n_weights, n_masses}, "there are too many weights") <= most_claimed,
            "there are too many weights");
    require(c > 0.0 && std::isfinite(c) && radius > 0.0, "C must be finite and positive, the radius positive");
    require(price >= 0.0 && std::isfinite(price) && l1_radius > 0.0, "the price must be finite, the radius positive");
    require(!(std::isfinite(radius) && (price > 0.0 || std::isfinite(l1_radius))), "one norm at a time");
    require(nonnegative.size() == 0 || static_cast<std::int64_t>(nonnegative.size()) == n_weights,
            "the mask does not fit the weights");
    const auto signs = bytes_of(nonnegative);
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

void values(const Masters& masters, In<double> weights, Out<double> best, Out<double> current, Threads threads) {
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
    checked_count("limit", limit, 0, most_steps);
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

// The arguments of restore(): points of block b are starts[b] .. starts[b + 1] - 1, and those of point j its entries
// from entry_starts[j] on, of weights before those of masses.
auto state(const Masters& masters) {
    std::vector<std::int64_t> starts(static_cast<std::size_t>(masters.n_blocks()) + 1, 0), age, entry_starts{0};
    std::vector<double> q, loss, value;
    std::vector<std::uint8_t> iterate;
    std::vector<std::int32_t> index;
    unlocked([&] {
        masters.each_point([&](std::int64_t b, const simplex::Point& point, double weight) {
            ++starts[b + 1];
            q.push_back(weight);
            loss.push_back(point.loss);
            age.push_back(point.age);
            iterate.push_back(point.iterate);
            index.insert(index.end(), point.index.begin(), point.index.end());
            value.insert(value.end(), point.value.begin(), point.value.end());
            entry_starts.push_back(static_cast<std::int64_t>(index.size()));
        });
        for (std::size_t b = 1; b < starts.size(); ++b) starts[b] += starts[b - 1];
    });
    return std::make_tuple(owned(std::move(starts)), owned(std::move(q)), owned(std::move(loss)), owned(std::move(age)),
                           owned(std::move(iterate)), owned(std::move(entry_starts)), owned(std::move(index)),
                           owned(std::move(value)));
}

void restore(Masters& masters, In<std::int64_t> starts, In<double> q, In<double> loss, In<std::int64_t> age,
             In<std::uint8_t> iterate, In<std::int64_t> entry_starts, In<std::int32_t> index, In<double> value) {
    const std::size_t m = q.size();
    const auto of = view(starts), from = view(entry_starts);
    require(of.size() == static_cast<std::size_t>(masters.n_blocks()) + 1 && rises_to(of, m),
            "starts do not span the points");
    require(loss.size() == m && age.size() == m && iterate.size() == m && from.size() == m + 1,
            "every point needs a weight, a loss, an age, a mark and its entries");
    require(rises_to(from, index.size()) && index.size() == value.size(), "entry_starts do not fit the entries");
    require(within(view(index), 0, masters.n_coordinates()), "an entry is outside the weights");
    require(within(view(age), 0, std::int64_t{1} << 53) && within(view(iterate), 0, 2), "ages or marks out of range");
    require(all_finite(view(q)) && all_finite(view(loss)) && all_finite(view(value)), "numbers must be finite");
    for (std::size_t b = 1; b < of.size(); ++b) {
        // The Gram matrix of a block has room for twice its points.
        const std::int64_t room = checked_product({2, of[b] - of[b - 1]}, "there are too many points");
        checked_product({room, room}, "there are too many points");
        double sum = 0.0;
        for (std::int64_t j = of[b - 1]; j < of[b]; ++j) {
            require(q.data()[j] >= 0.0, "weights must not be negative");
            sum += q.data()[j];
            bool masses = false;
            for (std::int64_t k = from[j]; k < from[j + 1]; ++k) {
                const bool mass = index.data()[k] >= masters.n_weights();
                require(mass || !masses, "entries of weights come before those of masses");
                masses = mass;
            }
        }
        require(masters.cone() || std::abs(sum - 1.0) <= 1e-6, "the weights of a block must sum to 1");
    }
    const NoGil release;
    masters.restore([&](auto&& insert) {
        for (std::size_t b = 1; b < of.size(); ++b)
            for (std::int64_t j = of[b - 1]; j < of[b]; ++j) {
                const auto first = static_cast<std::size_t>(from[j]);
                const auto count = static_cast<std::size_t>(from[j + 1]) - first;
                const auto at = view(index).subspan(first, count);
                const auto entries = view(value).subspan(first, count);
                simplex::Point point;
                point.index.assign(at.begin(), at.end());
                point.value.assign(entries.begin(), entries.end());
                for (const std::int32_t k : at) point.split += k < masters.n_weights();
                point.loss = loss.data()[j];
                point.age = age.data()[j];
                point.iterate = iterate.data()[j] != 0;
                insert(static_cast<std::int64_t>(b) - 1, std::move(point), q.data()[j]);
            }
    });
}

}  // namespace

void bind_simplex(nb::module_& module) {
    module.def("simplex_newton", apart(&newton), "h"_array, "linear"_array, "offsets"_array, "cone"_a, "q"_array,
               "tolerance"_a, "limit"_a);
    nb::class_<Masters>(module, "Masters")
        .def("__init__", &create, "n_blocks"_a, "n_weights"_a, "n_masses"_a, "c"_a, "radius"_a, "nonnegative"_array,
             "cone"_a, "price"_a = 0.0, "l1_radius"_a = std::numeric_limits<double>::infinity())
        .def("recenter", &recenter, "center"_array, "reach"_a, "ridge_c"_a)
        .def("response", &response, "out"_array)
        .def("release", apart(&release), "where"_array, "wanted"_array, "out"_array)
        .def("add", apart(&add), "blocks"_array, "rows"_array, "offsets"_array, "index"_array, "value"_array,
             "factor"_array, "loss"_array, "limit"_a, "added"_array)
        .def("values", apart(&values), "weights"_array, "best"_array, "current"_array, "threads"_a)
        .def("sweep", apart(&sweep), "blocks"_array, "enough"_a, "gaps"_array)
        .def("joint", apart(&joint), "blocks"_array, "tolerance"_a, "limit"_a)
        .def("settle", &Masters::settle, "age"_a, nb::call_guard<NoGil>())
        .def("state", &state)
        .def("restore", &restore, "starts"_array, "q"_array, "loss"_array, "age"_array, "iterate"_array,
             "entry_starts"_array, "index"_array, "value"_array)
        .def("g", &g, "out"_array)
        .def("loss", &Masters::loss)
        .def("n_points", &Masters::n_points)
        .def("sizes", &sizes, "out"_array)
        .def("weights", &weights, "block"_a, "out"_array);
}

}  // namespace maxmargin
