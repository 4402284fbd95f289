#include <cmath>
#include <vector>

#include "maxmargin/arborescence/argmax.hpp"
#include "maxmargin/arborescence/k_best.hpp"
#include "maxmargin/arborescence/matrix_tree.hpp"
#include "solvers/online.hpp"
#include "structures/arcs.hpp"
#include "structures/vectors.hpp"

namespace maxmargin {

namespace {

// A batch whose arrays are checked on construction.
class ArborescenceBatch {
   public:
    ArborescenceBatch(In<std::int64_t> n_tokens, std::int64_t n_labels, bool single_root, In<std::int64_t> arc_offsets,
                      In<std::int32_t> arcs)
        : batch_(checked(view(n_tokens), n_labels, single_root, arc_offsets, arcs)) {}

    void argmax(In<double> scores, Out<double> z, Out<double> value, Out<std::int8_t> status, Threads threads) const {
        check(scores, z, value, status);
        const NoGil release;
        arborescence::argmax(batch_, view(scores), view(z), view(value), view(status), threads);
    }

    void duals(In<double> scores, Out<double> dual, Out<std::int32_t> parent, Out<double> value,
               Out<std::int8_t> status, Threads threads) const {
        const auto n = static_cast<std::size_t>(batch_.size()), sets = 2 * static_cast<std::size_t>(batch_.n_tokens());
        require(scores.size() == static_cast<std::size_t>(batch_.n_parts()), "scores must have one entry per part");
        require(dual.size() == sets && parent.size() == sets, "duals and parents must have two entries per token");
        require(value.size() == n && status.size() == n, "value and status must have one entry per example");
        const NoGil release;
        arborescence::duals(batch_, view(scores), view(dual), view(parent), view(value), view(status), threads);
    }

    void marginals(In<double> potentials, Out<double> z, Out<double> value, Out<std::int8_t> status,
                   Threads threads) const {
        check(potentials, z, value, status);
        const NoGil release;
        arborescence::marginals(batch_, view(potentials), view(z), view(value), view(status), threads);
    }

    void k_best(std::int64_t k, In<double> scores, Out<double> z, Out<double> value, Out<std::int8_t> status,
                Threads threads) const {
        check(scores, z, value, status, checked_ranks(k));
        const NoGil release;
        arborescence::k_best(batch_, k, view(scores), view(z), view(value), view(status), threads);
    }

    void project(hull::HullBatch& sets, In<double> point, Out<double> z, Out<double> value, Out<std::int8_t> status,
                 Threads threads) const {
        check(point, z, value, status);
        require_fresh(sets, batch_.size(), [&](std::int64_t i) { return batch_[i].n_parts(); });
        const NoGil release;
        ScratchLease<arborescence::BestTree> scratch(threads, [](arborescence::BestTree&) {});
        sets.project(
            view(z), view(value), view(status), threads,
            [&](std::int64_t i, auto&& block) {
                block(point.data() + batch_.begin(i), batch_.begin(i), batch_[i].n_parts());
            },
            [&](int thread, std::int64_t i, const std::vector<double>& scores, hull::Sparse& vertex) {
                double best;
                const hull::Status found = scratch[thread].run(batch_[i], scores.data(), best);
                if (found == hull::Status::ok) arborescence::vertex_of(scratch[thread].parts, vertex);
                return found;
            });
    }

    const arborescence::Batch& batch() const { return batch_; }

   private:
    static arborescence::Batch checked(std::span<const std::int64_t> tokens, std::int64_t n_labels, bool single_root,
                                       const In<std::int64_t>& arc_offsets, const In<std::int32_t>& arcs) {
        check_sizes(tokens, n_labels);
        arborescence::Batch batch(tokens, n_labels, single_root, arcs_of(tokens, arc_offsets, arcs));
        for (std::int64_t i = 0; i < batch.size(); ++i)
            require(batch[i].n_parts() < most_numbered, "a sentence has too many arcs and labels");
        for (const std::int64_t n : tokens)
            checked_product({2 * n + 1, arborescence::stride_of(n)}, "a sentence has too many tokens for its tables");
        return batch;
    }

    void check(const In<double>& input, const Out<double>& z, const Out<double>& value, const Out<std::int8_t>& status,
               std::int64_t ranks = 1) const {
        require_vectors(input, batch_.n_parts(), batch_.size(), z, value, status, ranks);
    }

    arborescence::Batch batch_;
};

// The best tree, or the k best, of one example at a time.
class ArborescenceOracle final : public RankedOracle {
   public:
    ArborescenceOracle(const ArborescenceBatch& checked, std::int64_t ranks)
        : RankedOracle(checked_ranks(ranks)), batch_(checked.batch()) {}
    std::unique_ptr<online::Oracle> another() const override { return std::make_unique<ArborescenceOracle>(*this); }
    std::int64_t n_examples() const override { return batch_.size(); }
    std::int64_t size(std::int64_t i) const override { return batch_[i].n_parts(); }
    online::Status argmax(std::int64_t i, const double* scores, hull::Sparse& vertex) override {
        double value;
        const online::Status found = best_.run(batch_[i], scores, value);
        if (found == online::Status::ok) arborescence::vertex_of(best_.parts, vertex);
        return found;
    }

   protected:
    online::Status begin(std::int64_t i, const double* scores) override { return k_best_.begin(batch_[i], scores); }
    bool next(hull::Sparse& vertex) override {
        double value;
        const std::vector<std::int32_t>* tree = k_best_.next(&value);
        if (tree) arborescence::vertex_of(*tree, vertex);
        return tree;
    }

   private:
    const arborescence::Batch& batch_;
    arborescence::BestTree best_;
    arborescence::KBest k_best_;
};

}  // namespace

void bind_arborescence(nb::module_& module) {
    auto batch = nb::class_<ArborescenceBatch>(module, "ArborescenceBatch");
    batch
        .def(nb::init<In<std::int64_t>, std::int64_t, bool, In<std::int64_t>, In<std::int32_t>>(), "n_tokens"_array,
             "n_labels"_a, "single_root"_a, "arc_offsets"_array, "arcs"_array)
        .def("duals", apart(&ArborescenceBatch::duals), "scores"_array, "dual"_array, "parent"_array, "value"_array,
             "status"_array, "threads"_a);
    bind_kernels(batch);
    bind_project(batch);
    nb::class_<ArborescenceOracle, online::Oracle>(module, "ArborescenceOracle")
        .def(nb::init<const ArborescenceBatch&, std::int64_t>(), "batch"_a, "ranks"_a, nb::keep_alive<1, 2>());
}

}  // namespace maxmargin
