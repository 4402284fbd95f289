#include "maxmargin/simplex/linear_master.hpp"

#include <cmath>

#include "arrays.hpp"
#include "maxmargin/simplex/newton_master.hpp"
#include "maxmargin/simplex/proximal_master.hpp"

namespace maxmargin {

namespace {

linear_master::Compressed compressed(const In<std::int32_t>& starts, const In<std::int32_t>& at,
                                     const In<double>& values, std::size_t n, std::size_t width) {
    require(starts.size() == n + 1 && at.size() == values.size(), "starts, indices and values do not fit together");
    require(rises_to(view(starts), at.size()), "starts must rise from 0 to the number of non-zeros");
    require(within(view(at), 0, static_cast<std::int64_t>(width)), "an index of the sparse matrix is out of range");
    return {view(starts), view(at), view(values)};
}

void linear_master_extragradient(const In<std::int32_t>& starts, const In<std::int32_t>& columns,
                                 const In<double>& values, const In<std::int32_t>& column_starts,
                                 const In<std::int32_t>& rows, const In<double>& column_values, const In<double>& b,
                                 const In<std::int32_t>& owner, const In<double>& price, const In<double>& lower,
                                 const In<double>& cost, Out<double>& w, Out<double>& xi, Out<double>& lambda,
                                 double step, std::int64_t steps) {
    const std::size_t n_rows = b.size(), n = price.size(), m = cost.size();
    require(owner.size() == n_rows && lambda.size() == n_rows, "b, owner and multipliers: one entry per row");
    require(lower.size() == n && w.size() == n, "price, lower and w must have one entry per weight");
    require(xi.size() == m, "cost and xi must have one entry per example");
    require(within(view(owner), 0, static_cast<std::int64_t>(m)), "an owner is out of range");
    require(std::isfinite(step), "the step must be finite");
    checked_count("steps", steps, 0, most_steps);
    const linear_master::Program program{compressed(starts, columns, values, n_rows, n),
                                         compressed(column_starts, rows, column_values, n, n_rows),
                                         view(b),
                                         view(owner),
                                         view(price),
                                         view(lower),
                                         view(cost)};
    const linear_master::Point point{view(w), view(xi), view(lambda)};
    NoGil release;
    linear_master::extragradient(program, point, step, steps);
}

// The rows and the terms of the weights that proximal and Newton masters share.
proximal_master::Program proximal_program(const In<std::int32_t>& starts, const In<std::int32_t>& columns,
                                          const In<double>& values, const In<double>& b, const In<std::int32_t>& first,
                                          const In<double>& center, const In<double>& mu, const In<double>& lower,
                                          double price) {
    const std::size_t n_rows = b.size(), n = center.size();
    require(mu.size() == n && lower.size() == n, "center, mu and lower must have one entry per weight");
    require(first.size() >= 1 && rises_to(view(first), n_rows), "first must rise from 0 to the number of rows");
    const linear_master::Compressed rows = compressed(starts, columns, values, n_rows, n);
    return {rows.starts, rows.at, rows.values, view(b), view(first), view(center), view(mu), view(lower), price};
}

double proximal_master_ascend(const In<std::int32_t>& starts, const In<std::int32_t>& columns, const In<double>& values,
                              const In<double>& b, const In<std::int32_t>& first, const In<double>& center,
                              const In<double>& mu, const In<double>& lower, Out<double>& w, Out<double>& g,
                              Out<double>& lambda, double price, double enough, double aim, std::int64_t sweeps,
                              std::uint32_t seed) {
    const proximal_master::Program program =
        proximal_program(starts, columns, values, b, first, center, mu, lower, price);
    require(w.size() == center.size() && g.size() == center.size(), "w and g must have one entry per weight");
    require(lambda.size() == b.size(), "multipliers must have one entry per row");
    checked_count("sweeps", sweeps, 0, most_steps);
    const proximal_master::Point point{view(w), view(g), view(lambda)};
    NoGil release;
    return proximal_master::Ascent(program, point, seed).run(enough, aim, sweeps);
}

nb::tuple newton_master_minimize(const In<std::int32_t>& starts, const In<std::int32_t>& columns,
                                 const In<double>& values, const In<double>& b, const In<std::int32_t>& first,
                                 const In<double>& center, const In<double>& mu, const In<double>& lower,
                                 const In<double>& around, Out<double>& w, Out<double>& lambda, double price,
                                 double smoothing, double aim, std::int64_t steps) {
    const proximal_master::Program program =
        proximal_program(starts, columns, values, b, first, center, mu, lower, price);
    require(w.size() == center.size(), "w must have one entry per weight");
    require(lambda.size() == b.size() && around.size() == b.size(), "multipliers must have one entry per row");
    require(smoothing > 0.0, "smoothing must be positive");
    checked_count("steps", steps, 0, most_steps);
    newton_master::Outcome outcome{};
    {
        NoGil release;
        outcome = newton_master::Minimization(program, smoothing, view(around), view(w), view(lambda)).run(aim, steps);
    }
    return nb::make_tuple(outcome.left, outcome.steps);
}

}  // namespace

void bind_linear_master(nb::module_& module) {
    module.def("linear_master_extragradient", apart(&linear_master_extragradient), "starts"_array, "columns"_array,
               "values"_array, "column_starts"_array, "rows"_array, "column_values"_array, "b"_array, "owner"_array,
               "price"_array, "lower"_array, "cost"_array, "w"_array, "xi"_array, "multipliers"_array, "step"_a,
               "steps"_a, "Steps of extragradient on a linear program; moves w, xi and multipliers in place.");
    module.def("proximal_master_ascend", apart(&proximal_master_ascend), "starts"_array, "columns"_array,
               "values"_array, "b"_array, "first"_array, "center"_array, "mu"_array, "lower"_array, "w"_array,
               "g"_array, "multipliers"_array, "price"_a, "enough"_a, "aim"_a, "sweeps"_a, "seed"_a,
               "Coordinate ascent on the dual of a linear program with a proximal term, until a sweep had no more than "
               "aim to gain; moves w, g and multipliers in place. Returns what the last sweep had to gain.");
    module.def(
        "newton_master_minimize", apart(&newton_master_minimize), "starts"_array, "columns"_array, "values"_array,
        "b"_array, "first"_array, "center"_array, "mu"_array, "lower"_array, "around"_array, "w"_array,
        "multipliers"_array, "price"_a, "smoothing"_a, "aim"_a, "steps"_a,
        "Newton steps on a smoothed linear program with a proximal term, until no derivative is above aim; moves "
        "w in place and writes multipliers. Returns the largest derivative left and the number of steps.");
}

}  // namespace maxmargin
