#include <cmath>

#include "arrays.hpp"
#include "maxmargin/graph/batch.hpp"
#include "structures/cut_batch.hpp"

namespace maxmargin {

namespace {

// Checks everything but the graphs, which were checked when the batch was made.
void check(const CutGraphs& g, std::int64_t labels, bool table, std::size_t packed, std::size_t multipliers,
           std::size_t z, std::size_t value, std::size_t status) {
    require(labels >= 1 && labels <= 1 << 12, "labels must be between 1 and 4096");
    const std::int64_t size = table ? labels * labels : labels;
    for (std::int64_t i = 0; i < g.examples(); ++i)
        require(g[i].edges * size < (std::int64_t{1} << 30), "an example has too many parts");
    const auto parts = static_cast<std::size_t>(g.nodes() * labels + g.edges() * size);
    require(packed == parts && z == parts, "scores, points and z need one entry per part");
    require(multipliers == static_cast<std::size_t>(2 * g.edges() * labels), "multipliers need 2 K entries per edge");
    const auto examples = static_cast<std::size_t>(g.examples());
    require(value == examples && status == examples, "one value and status per example");
}

void argmax(const CutBatch& batch, std::int64_t labels, bool table, In<double> scores, double tol, In<std::int8_t> last,
            int pass_limit, int step_limit, Out<double> multipliers, Out<double> z, Out<double> value,
            Out<std::int8_t> status, Threads threads) {
    const CutGraphs g = batch.graphs();
    check(g, labels, table, scores.size(), multipliers.size(), z.size(), value.size(), status.size());
    require(last.size() == value.size(), "one last per example");
    require(tol >= 0 && std::isfinite(tol), "tol must be finite and not negative");
    checked_count("pass_limit", pass_limit, 1, most_steps);
    checked_count("step_limit", step_limit, 0, most_steps);
    const auto n = static_cast<std::int32_t>(labels);
    const NoGil unlocked;
    (table ? network::argmax<true> : network::argmax<false>)(g, n, view(scores), tol, view(last), pass_limit,
                                                             step_limit, view(multipliers), view(z), view(value),
                                                             view(status), threads);
}

template <auto of_tables, auto of_labels>
void evaluate(const CutBatch& batch, std::int64_t labels, bool table, In<double> scores, Out<double> multipliers,
              Out<double> z, Out<double> value, Out<std::int8_t> status, Threads threads) {
    const CutGraphs g = batch.graphs();
    check(g, labels, table, scores.size(), multipliers.size(), z.size(), value.size(), status.size());
    const auto n = static_cast<std::int32_t>(labels);
    const NoGil unlocked;
    (table ? of_tables : of_labels)(g, n, view(scores), view(multipliers), view(z), view(value), view(status), threads);
}

void project(const CutBatch& batch, std::int64_t labels, bool table, In<double> point, double tol, int step_limit,
             bool warm, Out<double> multipliers, Out<double> z, Out<double> value, Out<double> gap,
             Out<std::int8_t> status, Threads threads) {
    const CutGraphs g = batch.graphs();
    check(g, labels, table, point.size(), multipliers.size(), z.size(), value.size(), status.size());
    require(gap.size() == value.size(), "one gap per example");
    require(tol >= 0 && std::isfinite(tol), "tol must be finite and not negative");
    checked_count("step_limit", step_limit, 0, most_steps);
    const auto n = static_cast<std::int32_t>(labels);
    const NoGil unlocked;
    (table ? network::project<true> : network::project<false>)(g, n, view(point), tol, step_limit, warm,
                                                               view(multipliers), view(z), view(value), view(gap),
                                                               view(status), threads);
}

}  // namespace

void bind_graph(nb::module_& module) {
    module.def("graph_argmax", apart(&argmax), "batch"_a, "labels"_a, "table"_a, "scores"_array, "tol"_a, "last"_array,
               "pass_limit"_a, "step_limit"_a, "multipliers"_array, "z"_array, "value"_array, "status"_array,
               "threads"_a);
    module.def("graph_certify", apart(&evaluate<network::certify<true>, network::certify<false>>), "batch"_a,
               "labels"_a, "table"_a, "scores"_array, "multipliers"_array, "z"_array, "value"_array, "status"_array,
               "threads"_a);
    module.def("graph_round", apart(&evaluate<network::round<true>, network::round<false>>), "batch"_a, "labels"_a,
               "table"_a, "scores"_array, "multipliers"_array, "z"_array, "value"_array, "status"_array, "threads"_a);
    module.def("graph_project", apart(&project), "batch"_a, "labels"_a, "table"_a, "point"_array, "tol"_a,
               "step_limit"_a, "warm"_a, "multipliers"_array, "z"_array, "value"_array, "gap"_array, "status"_array,
               "threads"_a);
}

}  // namespace maxmargin
