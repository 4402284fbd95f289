#include "maxmargin/matching.hpp"

#include "arrays.hpp"
#include "maxmargin/matching_argmax.hpp"
#include "maxmargin/matching_projection.hpp"
#include "maxmargin/parallel.hpp"

namespace maxmargin {

namespace {

using matching::Batch;
using Offsets = In<std::int64_t>;

bool increasing(std::span<const std::int64_t> offsets) {
    if (offsets.empty() || offsets.front() != 0) return false;
    for (std::size_t i = 1; i < offsets.size(); ++i)
        if (offsets[i] < offsets[i - 1] || offsets[i] > (std::int64_t{1} << 40)) return false;
    return true;
}

Batch checked(const Offsets& left_start, const Offsets& right_start, const Offsets& edge_start,
              const In<std::int32_t>& ends, const Offsets& left_capacity, const Offsets& right_capacity) {
    const Batch batch{view(left_start), view(right_start),    view(edge_start),
                      view(ends),       view(left_capacity), view(right_capacity)};
    require(increasing(batch.left_start) && increasing(batch.right_start) && increasing(batch.edge_start),
            "offsets must start at 0 and not decrease");
    require(batch.left_start.size() == batch.edge_start.size() && batch.right_start.size() == batch.edge_start.size(),
            "offsets must all have one entry more than there are examples");
    require(static_cast<std::int64_t>(batch.left_capacity.size()) == batch.left_start.back() &&
                static_cast<std::int64_t>(batch.right_capacity.size()) == batch.right_start.back(),
            "capacities must have one entry per node");
    for (const auto capacities : {batch.left_capacity, batch.right_capacity})
        for (const std::int64_t capacity : capacities) require(capacity >= 0, "capacities must not be negative");
    const bool listed = !batch.ends.empty();
    require(!listed || static_cast<std::int64_t>(batch.ends.size()) == 2 * batch.edge_start.back(),
            "edges must have two entries per edge");
    for (std::int64_t i = 0; i < batch.size(); ++i) {
        const matching::Example ex = matching::example(batch, i);
        require(ex.n_left < (std::int64_t{1} << 30) && ex.n_right < (std::int64_t{1} << 30), "too many nodes");
        require(ex.n_edges < (std::int64_t{1} << 31), "too many edges in one example");
        require(listed || ex.full() || batch.edge_start.back() == 0, "without a list of edges all must be there");
        for (std::int64_t e = 0; listed && e < ex.n_edges; ++e) {
            const std::int32_t left = ex.ends[2 * e], right = ex.ends[2 * e + 1];
            require(left >= 0 && left < ex.n_left && right >= 0 && right < ex.n_right, "edge out of range");
            require(e == 0 || left > ex.ends[2 * e - 2] || (left == ex.ends[2 * e - 2] && right > ex.ends[2 * e - 1]),
                    "edges must be sorted and distinct");
        }
    }
    return batch;
}

void check_outputs(const Batch& batch, std::size_t input, std::size_t z, std::size_t value, std::size_t status) {
    const auto edges = static_cast<std::size_t>(batch.edge_start.back());
    require(input == edges && z == edges, "vectors must have one entry per edge");
    require(value == static_cast<std::size_t>(batch.size()) && status == value,
            "value and status must have one entry per example");
}

// One per thread, made before the threads start: memory may run out here, but not in them.
template <class Solver>
std::vector<Solver> scratch(const Batch& batch, int threads) {
    const std::int64_t most = std::max<std::int64_t>(batch.size(), 1);
    return std::vector<Solver>(std::clamp<std::int64_t>(threads, 1, most), Solver(batch));
}

void argmax(const Offsets& left_start, const Offsets& right_start, const Offsets& edge_start,
            const In<std::int32_t>& ends, const Offsets& left_capacity, const Offsets& right_capacity,
            const In<double>& scores, Out<double> z, Out<double> value, Out<std::int8_t> status, int threads) {
    const Batch batch = checked(left_start, right_start, edge_start, ends, left_capacity, right_capacity);
    check_outputs(batch, scores.size(), z.size(), value.size(), status.size());
    const double* in = scores.data();
    double *out = z.data(), *values = value.data();
    std::int8_t* codes = status.data();
    const NoGil unlocked;
    auto matchers = scratch<matching::Matcher>(batch, threads);
    parallel_blocks(batch.size(), matching::grain(batch), threads,
                    [&](int thread, std::int64_t begin, std::int64_t end) {
                        auto& matcher = matchers[thread];
                        for (std::int64_t i = begin; i < end; ++i) {
                            const std::int64_t e = batch.edge_start[i];
                            codes[i] = matcher.solve(matching::example(batch, i), in + e, out + e, values + i);
                        }
                    });
}

void project(const Offsets& left_start, const Offsets& right_start, const Offsets& edge_start,
             const In<std::int32_t>& ends, const Offsets& left_capacity, const Offsets& right_capacity,
             const In<double>& point, double tol, bool warm, Out<double> duals, Out<double> z, Out<double> value,
             Out<std::int8_t> status, Out<std::int32_t> steps, int threads) {
    const Batch batch = checked(left_start, right_start, edge_start, ends, left_capacity, right_capacity);
    require(steps.size() == 2 * static_cast<std::size_t>(batch.size()), "steps must have two entries per example");
    check_outputs(batch, point.size(), z.size(), value.size(), status.size());
    const std::int64_t left_nodes = batch.left_start.back();
    require(static_cast<std::int64_t>(duals.size()) == left_nodes + batch.right_start.back(),
            "duals must have one entry per node");
    require(tol > 0, "tol must be positive");
    const double* in = point.data();
    double *out = z.data(), *values = value.data(), *left = duals.data(), *right = left + left_nodes;
    std::int8_t* codes = status.data();
    std::int32_t* counts = steps.data();
    const NoGil unlocked;
    auto projectors = scratch<matching::Projector>(batch, threads);
    parallel_blocks(batch.size(), matching::grain(batch), threads,
                    [&](int thread, std::int64_t begin, std::int64_t end) {
                        auto& projector = projectors[thread];
                        for (std::int64_t i = begin; i < end; ++i) {
                            const std::int64_t e = batch.edge_start[i];
                            codes[i] = projector.project(matching::example(batch, i), in + e, tol, warm,
                                                          left + batch.left_start[i], right + batch.right_start[i],
                                                          out + e, values + i);
                            counts[2 * i] = projector.newton_steps;
                            counts[2 * i + 1] = projector.fallbacks;
                        }
                    });
}

}  // namespace

void bind_matching(nb::module_& module) {
    using namespace nb::literals;
    module.def("matching_argmax", &argmax, "left_start"_a, "right_start"_a, "edge_start"_a, "ends"_a,
               "left_capacity"_a, "right_capacity"_a, "scores"_a, "z"_a, "value"_a, "status"_a, "threads"_a);
    module.def("matching_project", &project, "left_start"_a, "right_start"_a, "edge_start"_a, "ends"_a,
               "left_capacity"_a, "right_capacity"_a, "point"_a, "tol"_a, "warm"_a, "duals"_a, "z"_a, "value"_a,
               "status"_a, "steps"_a, "threads"_a);
}

}  // namespace maxmargin
