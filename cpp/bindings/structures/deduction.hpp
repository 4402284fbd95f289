// Bindings of structures whose kernels are those of deduction systems: a structure checks its arrays and makes a batch,
// the rest is here.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "maxmargin/deduction/batch.hpp"
#include "owned.hpp"
#include "solvers/online.hpp"
#include "structures/vectors.hpp"

namespace maxmargin {

// A batch that the structure's binding has checked.
template <class Batch>
class DeductionBatch {
   public:
    explicit DeductionBatch(Batch batch) : batch_(std::move(batch)) {}

    const Batch& batch() const { return batch_; }

    void argmax(In<double> scores, Out<double> z, Out<double> value, Out<std::int8_t> status, Threads threads) const {
        check(scores, z, value, status);
        const NoGil release;
        deduction::argmax(batch_, view(scores), view(z), view(value), view(status), threads);
    }

    void marginals(In<double> potentials, Out<double> z, Out<double> value, Out<std::int8_t> status,
                   Threads threads) const {
        check(potentials, z, value, status);
        const NoGil release;
        deduction::marginals(batch_, view(potentials), view(z), view(value), view(status), threads);
    }

    void k_best(std::int64_t k, In<double> scores, Out<double> z, Out<double> value, Out<std::int8_t> status,
                Threads threads) const {
        check(scores, z, value, status, checked_ranks(k));
        const NoGil release;
        deduction::k_best(batch_, k, view(scores), view(z), view(value), view(status), threads);
    }

    void slack_argmax(In<double> scores, In<double> margin, In<double> costs, In<double> constants, Out<double> z,
                      Out<double> value, Out<std::int8_t> status, Threads threads) const {
        check(scores, z, value, status);
        require_slack(scores, batch_.size(), margin, costs, constants);
        const NoGil release;
        deduction::slack_argmax(batch_, view(scores), view(margin), view(costs), view(constants), view(z), view(value),
                                view(status), threads);
    }

    void project(hull::HullBatch& sets, In<double> point, Out<double> z, Out<double> value, Out<std::int8_t> status,
                 Threads threads) const {
        check(point, z, value, status);
        require_fresh(sets, batch_.size(), [&](std::int64_t i) { return batch_[i].n_parts(); });
        const NoGil release;
        deduction::project(batch_, sets, view(point), view(z), view(value), view(status), threads);
    }

    // The first item of each example, and every way as its item, its antecedents and its two parts; items count over
    // the batch, parts as in a packed vector, NONE where there is none. For small batches.
    nb::tuple ways() const {
        const hull::Layout layout = batch_.layout();
        std::vector<std::int64_t> starts{0}, found;
        {
            const NoGil release;
            for (std::int64_t i = 0; i < batch_.size(); ++i) {
                const auto system = batch_[i];
                const std::int64_t first = starts.back();
                const auto packed = [&](std::int64_t part) {
                    return part == deduction::NONE ? part : deduction::place(layout, i, part);
                };
                const auto over_batch = [&](std::int64_t item) {
                    return item == deduction::NONE ? item : first + item;
                };
                for (std::int64_t item = 0; item < system.n_items(); ++item)
                    system.ways(item, [&](std::int64_t left, std::int64_t right, std::int64_t part) {
                        for (const std::int64_t number : {first + item, over_batch(left), over_batch(right),
                                                          packed(part), packed(system.part_of(item))})
                            found.push_back(number);
                    });
                starts.push_back(first + system.n_items());
            }
        }
        return nb::make_tuple(owned(std::move(starts)), owned(std::move(found)));
    }

   private:
    void check(const In<double>& input, const Out<double>& z, const Out<double>& value, const Out<std::int8_t>& status,
               std::int64_t ranks = 1) const {
        require_vectors(input, batch_.layout().offsets.back(), batch_.size(), z, value, status, ranks);
    }

    Batch batch_;
};

// The best output, the k best, and slack rescaling, of one example at a time.
template <class Batch>
class DeductionOracle final : public RankedOracle {
   public:
    DeductionOracle(const DeductionBatch<Batch>& checked, std::int64_t ranks)
        : RankedOracle(checked_ranks(ranks)), batch_(checked.batch()) {}
    std::unique_ptr<online::Oracle> another() const override { return std::make_unique<DeductionOracle>(*this); }
    std::int64_t n_examples() const override { return batch_.size(); }
    std::int64_t size(std::int64_t i) const override { return batch_[i].n_parts(); }
    online::Status argmax(std::int64_t i, const double* scores, hull::Sparse& vertex) override {
        double value;
        const online::Status found = argmax_.run(batch_[i], scores, value);
        if (found == online::Status::ok) deduction::vertex_of(argmax_.parts, vertex);
        return found;
    }
    std::optional<online::Status> slack_argmax(std::int64_t i, const online::SlackProduct& product,
                                               hull::Sparse& vertex, double& value) override {
        const online::Status found =
            slack_.run(batch_[i], product.scores, product.margin, product.costs, product.constant, value);
        if (found == online::Status::ok || found == online::Status::inexact) deduction::vertex_of(slack_.parts, vertex);
        return found;
    }

   protected:
    online::Status begin(std::int64_t i, const double* scores) override {
        system_.emplace(batch_[i]);
        return k_best_.begin(*system_, scores);
    }
    bool next(hull::Sparse& vertex) override {
        double value;
        std::vector<std::int32_t>* parts = k_best_.next(&value);
        if (parts) deduction::vertex_of(*parts, vertex);
        return parts;
    }

   private:
    using System = deduction::SystemOf<Batch>;
    const Batch& batch_;
    std::optional<System> system_;  // of the list that is under way
    deduction::Argmax<System> argmax_;
    deduction::KBest<System> k_best_;
    deduction::SlackSearch<System> slack_;
};

// Binds both under names of their own; the structure adds the constructor of the batch.
template <class Batch>
nb::class_<DeductionBatch<Batch>> bind_deduction(nb::module_& module, const char* name, const char* oracle) {
    using Checked = DeductionBatch<Batch>;
    auto bound = nb::class_<Checked>(module, name);
    bind_kernels(bound);
    bind_project(bound);
    bound.def("ways", &Checked::ways);
    nb::class_<DeductionOracle<Batch>, online::Oracle>(module, oracle)
        .def(nb::init<const Checked&, std::int64_t>(), "batch"_a, "ranks"_a, nb::keep_alive<1, 2>());
    return bound;
}

}  // namespace maxmargin
