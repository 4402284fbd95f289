#include <cmath>
#include <optional>
#include <vector>

#include "arrays.hpp"
#include "maxmargin/base/parallel.hpp"
#include "maxmargin/matching/argmax.hpp"
#include "maxmargin/matching/batch.hpp"
#include "maxmargin/matching/k_best.hpp"
#include "maxmargin/matching/margins.hpp"
#include "maxmargin/matching/projection.hpp"
#include "solvers/online.hpp"
#include "structures/vectors.hpp"

namespace maxmargin {

namespace {

using matching::Batch;
using Offsets = In<std::int64_t>;

// A batch whose arrays are checked on construction. It owns copies that cannot change afterwards, so a call checks only
// the lengths of its vectors: checking the lists of edges in every call cost a tenth of a projection.
class MatchingBatch {
   public:
    MatchingBatch(const Offsets& left_start, const Offsets& right_start, const Offsets& edge_start,
                  const In<std::int32_t>& ends, const Offsets& left_capacity, const Offsets& right_capacity)
        : left_start_(copied(left_start)), right_start_(copied(right_start)), edge_start_(copied(edge_start)),
          left_capacity_(copied(left_capacity)), right_capacity_(copied(right_capacity)), ends_(copied(ends)) {
        check(view());
        // Larger ones bind nothing, but their sums might wrap.
        for (auto* capacities : {&left_capacity_, &right_capacity_})
            for (std::int64_t& capacity : *capacities) capacity = std::min(capacity, std::int64_t{1} << 30);
    }

    Batch view() const { return {left_start_, right_start_, edge_start_, ends_, left_capacity_, right_capacity_}; }

   private:
    std::vector<std::int64_t> left_start_, right_start_, edge_start_, left_capacity_, right_capacity_;
    std::vector<std::int32_t> ends_;

    static void check(const Batch& batch);
};

void MatchingBatch::check(const Batch& batch) {
    require(batch.left_start.size() == batch.edge_start.size() && batch.right_start.size() == batch.edge_start.size(),
            "offsets must all have one entry more than there are examples");
    require(rises_to(batch.left_start, batch.left_capacity.size()) &&
                rises_to(batch.right_start, batch.right_capacity.size()),
            "offsets must rise from 0 to the number of nodes, and capacities have one entry per node");
    constexpr std::int64_t most_edges = std::int64_t{1} << 40;
    require(!batch.edge_start.empty() && rises_to(batch.edge_start, batch.edge_start.back()) &&
                batch.edge_start.back() <= most_edges,
            "offsets of edges must rise from 0");
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
}

void check_outputs(const Batch& batch, std::size_t input, std::size_t z, std::size_t value, std::size_t status) {
    const auto edges = static_cast<std::size_t>(batch.edge_start.back());
    require(input == edges && z == edges, "vectors must have one entry per edge");
    require(value == static_cast<std::size_t>(batch.size()) && status == value,
            "value and status must have one entry per example");
}

// Calls body(solver, i, e) for every example i, whose edges begin at e.
template <class Solver, class Body>
void each_example(const Batch& batch, Threads threads, const Body& body) {
    const NoGil release;
    // One per thread, made before the threads start: memory may run out here, but not in them.
    const std::int64_t most = std::max<std::int64_t>(batch.size(), 1);
    std::vector<Solver> solvers(std::clamp<std::int64_t>(threads, 1, most), Solver(batch));
    parallel_each(batch.size(), matching::grain(batch), threads,
                  [&](int thread, std::int64_t i) { body(solvers[thread], i, batch.edge_start[i]); });
}

void argmax(const MatchingBatch& checked, const In<double>& scores, Out<double> z, Out<double> value,
            Out<std::int8_t> status, Threads threads) {
    const Batch batch = checked.view();
    check_outputs(batch, scores.size(), z.size(), value.size(), status.size());
    each_example<matching::Matcher>(batch, threads, [&](auto& matcher, std::int64_t i, std::int64_t e) {
        status.data()[i] =
            matcher.solve(matching::example(batch, i), scores.data() + e, z.data() + e, value.data() + i);
    });
}

// Rank r of example i goes to z[r][..], value[r][i] and status[r][i]; z must be zero on entry.
void k_best(const MatchingBatch& checked, std::int64_t k, const In<double>& scores, Out<double> z, Out<double> value,
            Out<std::int8_t> status, Threads threads) {
    const Batch batch = checked.view();
    const auto ranks = static_cast<std::size_t>(checked_ranks(k)), n = static_cast<std::size_t>(batch.size());
    require_outputs(scores.size(), batch.size(), z, value, status, k);
    check_outputs(batch, scores.size(), scores.size(), n, n);
    each_example<matching::KBest>(batch, threads, [&](auto& kernel, std::int64_t i, std::int64_t e) {
        matching::Status found = kernel.begin(matching::example(batch, i), scores.data() + e);
        for (std::size_t r = 0; r < ranks; ++r) {
            double& score = value.data()[r * n + i];
            score = found == matching::kNonfinite ? 0 : -matching::kFar;
            const auto* taken = found == matching::kOk ? kernel.next(&score) : nullptr;
            if (taken) std::copy(taken->begin(), taken->end(), z.data() + r * scores.size() + e);
            else if (found == matching::kOk) found = matching::kAbsent;
            status.data()[r * n + i] = found;
        }
    });
}

void margins(const MatchingBatch& checked, const In<double>& scores, Out<double> margin, Out<std::int8_t> status,
             Threads threads) {
    const Batch batch = checked.view();
    check_outputs(batch, scores.size(), margin.size(), status.size(), status.size());
    each_example<matching::Margins>(batch, threads, [&](auto& solver, std::int64_t i, std::int64_t e) {
        status.data()[i] = solver.run(matching::example(batch, i), scores.data() + e, margin.data() + e);
    });
}

void project(const MatchingBatch& checked, const In<double>& point, double tol, bool warm, Out<double> duals,
             Out<double> z, Out<double> value, Out<std::int8_t> status, Out<std::int32_t> steps, Threads threads) {
    const Batch batch = checked.view();
    require(steps.size() == 2 * static_cast<std::size_t>(batch.size()), "steps must have two entries per example");
    check_outputs(batch, point.size(), z.size(), value.size(), status.size());
    const std::int64_t left_nodes = batch.left_start.back();
    require(static_cast<std::int64_t>(duals.size()) == left_nodes + batch.right_start.back(),
            "duals must have one entry per node");
    require(tol >= 0 && std::isfinite(tol), "tol must be finite and not negative");
    double *left = duals.data(), *right = left + left_nodes;
    each_example<matching::Projector>(batch, threads, [&](auto& projector, std::int64_t i, std::int64_t e) {
        status.data()[i] =
            projector.project(matching::example(batch, i), point.data() + e, tol, warm, left + batch.left_start[i],
                              right + batch.right_start[i], z.data() + e, value.data() + i);
        steps.data()[2 * i] = projector.newton_steps;
        steps.data()[2 * i + 1] = projector.fallbacks;
    });
}

// The best, or the k best, of one example at a time.
class MatchingOracle final : public RankedOracle {
   public:
    // `order` maps the edges, as the batch has sorted them, to parts; empty for the identity.
    MatchingOracle(const MatchingBatch& checked, const Offsets& order, std::int64_t ranks)
        : RankedOracle(checked_ranks(ranks)), batch_(checked.view()), order_(copied(order)), matcher_(batch_) {
        z_.resize(matching::most_edges(batch_));
        if (!order_.empty()) check_order();
        sorted_.resize(order_.empty() ? 0 : z_.size());
        if (ranks > 1) k_best_.emplace(batch_);
    }
    std::unique_ptr<online::Oracle> another() const override { return std::make_unique<MatchingOracle>(*this); }
    std::int64_t n_examples() const override { return batch_.size(); }
    std::int64_t size(std::int64_t i) const override { return batch_.edge_start[i + 1] - batch_.edge_start[i]; }
    online::Status argmax(std::int64_t i, const double* scores, hull::Sparse& vertex) override {
        double value;
        if (matcher_.solve(matching::example(batch_, i), in_order(i, scores), z_.data(), &value) != matching::kOk)
            return online::Status::nonfinite;
        if (order_.empty()) {
            nonzeros(z_.data(), size(i), vertex);
        } else {
            for (std::int64_t e = 0; e < size(i); ++e) sorted_[place(i, e)] = z_[e];
            nonzeros(sorted_.data(), size(i), vertex);
        }
        return online::Status::ok;
    }

   protected:
    online::Status begin(std::int64_t i, const double* scores) override {
        example_ = i;
        const bool fine = k_best_->begin(matching::example(batch_, i), in_order(i, scores)) == matching::kOk;
        return fine ? online::Status::ok : online::Status::nonfinite;
    }
    bool next(hull::Sparse& vertex) override {
        double value;
        const std::vector<std::uint8_t>* taken = k_best_->next(&value);
        if (!taken) return false;
        for (std::int64_t e = 0; e < size(example_); ++e) z_[place(example_, e)] = (*taken)[e] ? 1.0 : 0.0;
        nonzeros(z_.data(), size(example_), vertex);
        return true;
    }

   private:
    // Where edge e of the batch stands among the parts of its example.
    std::int64_t place(std::int64_t i, std::int64_t e) const {
        const std::int64_t first = batch_.edge_start[i];
        return order_.empty() ? e : order_[first + e] - first;
    }
    const double* in_order(std::int64_t i, const double* scores) {
        if (order_.empty()) return scores;
        for (std::int64_t e = 0; e < size(i); ++e) sorted_[e] = scores[place(i, e)];
        return sorted_.data();
    }
    void check_order() const {
        require(static_cast<std::int64_t>(order_.size()) == batch_.edge_start.back(),
                "order must have one entry per edge");
        const std::span<const std::int64_t> order(order_);
        bool good = distinct(order, batch_.edge_start.back());
        for (std::int64_t i = 0; good && i < batch_.size(); ++i)
            good = within(order.subspan(batch_.edge_start[i], size(i)), batch_.edge_start[i], batch_.edge_start[i + 1]);
        require(good, "order must rearrange the edges within each example");
    }

    Batch batch_;
    std::vector<std::int64_t> order_;
    std::vector<double> sorted_;
    matching::Matcher matcher_;
    std::optional<matching::KBest> k_best_;
    std::int64_t example_ = 0;  // of the list that is under way
    std::vector<double> z_;
};

}  // namespace

void bind_matching(nb::module_& module) {
    nb::class_<MatchingBatch>(module, "MatchingBatch")
        .def(nb::init<const Offsets&, const Offsets&, const Offsets&, const In<std::int32_t>&, const Offsets&,
                      const Offsets&>(),
             "left_start"_array, "right_start"_array, "edge_start"_array, "ends"_array, "left_capacity"_array,
             "right_capacity"_array);
    module.def("matching_argmax", apart(&argmax), "batch"_a, "scores"_array, "z"_array, "value"_array, "status"_array,
               "threads"_a);
    module.def("matching_k_best", apart(&k_best), "batch"_a, "k"_a, "scores"_array, "z"_array, "value"_array,
               "status"_array, "threads"_a);
    module.def("matching_margins", apart(&margins), "batch"_a, "scores"_array, "margin"_array, "status"_array,
               "threads"_a);
    module.def("matching_project", apart(&project), "batch"_a, "point"_array, "tol"_a, "warm"_a, "duals"_array,
               "z"_array, "value"_array, "status"_array, "steps"_array, "threads"_a);
    nb::class_<MatchingOracle, online::Oracle>(module, "MatchingOracle")
        .def(nb::init<const MatchingBatch&, const Offsets&, std::int64_t>(), "batch"_a, "order"_array, "ranks"_a,
             nb::keep_alive<1, 2>());
}

}  // namespace maxmargin
