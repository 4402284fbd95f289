#include "maxmargin/chain/second_order/k_best.hpp"
#include "maxmargin/chain/second_order/max_marginals.hpp"
#include "maxmargin/chain/second_order/sum_product.hpp"
#include "maxmargin/chain/second_order/viterbi.hpp"
#include "solvers/online.hpp"
#include "structures/vectors.hpp"

namespace maxmargin {

namespace {

constexpr std::int64_t MOST_LABELS = 512;

using Legal = In<std::uint8_t>;

second::Constraints constraints_of(std::int64_t n_labels, const Legal& follow, const Legal& first, const Legal& last) {
    require(n_labels >= 1 && n_labels <= MOST_LABELS, "n_labels must be between 1 and 512");
    const auto k = static_cast<std::size_t>(n_labels);
    require(follow.size() == k * k && first.size() == k && last.size() == k, "constraints do not fit the labels");
    return {n_labels, view(follow), view(first), view(last)};
}

// Ranks whose table, one entry for each pair of labels of each position, fits into memory.
void checked_ranks(std::int64_t k, std::int64_t n_labels, std::int64_t longest) {
    require(k >= 1 && k < (std::int64_t{1} << 31) / (n_labels * n_labels),
            "k must be at least 1, k * n_labels^2 below 2^31");
    checked_product({std::max<std::int64_t>(longest, 1), n_labels, n_labels, k},
                    "the k best of so long a sequence need too much memory; give a smaller k");
}

// Checks that offsets describe sequences of n_labels labels, and that there are tables for each or for all of them.
second::Batch batch_of(const In<std::int64_t>& offsets, const second::Constraints& constraints, const In<double>& nodes,
                       const In<double>& pairs, const In<double>& triples) {
    const auto starts = view(offsets);
    require(offsets.ndim() == 1 && rises_to(starts, nodes.size()), "offsets do not span the node scores");
    for (const std::int64_t start : starts)
        require(start % constraints.n_labels == 0, "node parts of an example must be a multiple of n_labels");
    const std::size_t n = starts.size() - 1, square = constraints.pairs.size(),
                      cube = square * constraints.first.size();
    const bool each = pairs.size() == n * square && triples.size() == n * cube;
    require(each || (pairs.size() == square && triples.size() == cube), "tables do not fit the batch");
    return {constraints, starts, nodes.data(), pairs.data(), triples.data(), !each};
}

// The arguments that all kernels over batches begin with.
#define MM_BATCH                                                                                              \
    In<std::int64_t> offsets, std::int64_t n_labels, Legal follow, Legal first, Legal last, In<double> nodes, \
        In<double> pairs, In<double> triples
#define MM_BATCH_NAMES                                                                                        \
    "offsets"_array, "n_labels"_a, "follow"_array, "first"_array, "last"_array, "nodes"_array, "pairs"_array, \
        "triples"_array

void argmax(MM_BATCH, Out<double> z, Out<double> value, Out<std::int8_t> status, Threads threads) {
    const second::Batch batch = batch_of(offsets, constraints_of(n_labels, follow, first, last), nodes, pairs, triples);
    require_outputs(batch.n_parts(), batch.n_examples(), z, value, status);
    const NoGil release;
    second::argmax(batch, view(z), view(value), view(status), threads);
}

void labels(MM_BATCH, Out<std::int32_t> labels, Out<double> value, Out<std::int8_t> status, Threads threads) {
    const second::Batch batch = batch_of(offsets, constraints_of(n_labels, follow, first, last), nodes, pairs, triples);
    const auto n = static_cast<std::size_t>(batch.n_examples());
    require(
        labels.size() == nodes.size() / static_cast<std::size_t>(n_labels) && value.size() == n && status.size() == n,
        "outputs do not fit the batch");
    const NoGil release;
    second::labels(batch, view(labels), view(value), view(status), threads);
}

void k_best(MM_BATCH, std::int64_t k, Out<double> z, Out<double> value, Out<std::int8_t> status, Threads threads) {
    const second::Batch batch = batch_of(offsets, constraints_of(n_labels, follow, first, last), nodes, pairs, triples);
    std::int64_t longest = 0;
    for (std::int64_t i = 0; i < batch.n_examples(); ++i) longest = std::max(longest, batch.length(i));
    checked_ranks(k, n_labels, longest);
    require_outputs(batch.n_parts(), batch.n_examples(), z, value, status, k);
    const NoGil release;
    second::k_best(batch, k, view(z), view(value), view(status), threads);
}

void marginals(MM_BATCH, bool by_logs, Out<double> z, Out<double> value, Out<std::int8_t> status, Threads threads) {
    const second::Batch batch = batch_of(offsets, constraints_of(n_labels, follow, first, last), nodes, pairs, triples);
    require_outputs(batch.n_parts(), batch.n_examples(), z, value, status);
    const NoGil release;
    second::marginals(batch, by_logs, view(z), view(value), view(status), threads);
}

void max_marginals(MM_BATCH, Out<double> most, Threads threads) {
    const second::Batch batch = batch_of(offsets, constraints_of(n_labels, follow, first, last), nodes, pairs, triples);
    require(most.size() == nodes.size(), "outputs do not fit the batch");
    const NoGil release;
    second::max_marginals(batch, view(most), threads);
}

void project(MM_BATCH, hull::HullBatch& sets, Out<double> z, Out<double> value, Out<std::int8_t> status,
             Threads threads) {
    const second::Batch batch = batch_of(offsets, constraints_of(n_labels, follow, first, last), nodes, pairs, triples);
    require_outputs(batch.n_parts(), batch.n_examples(), z, value, status);
    const auto size = [&](std::int64_t i) { return batch.length(i) * n_labels + batch.square() + batch.cube(); };
    require_fresh(sets, batch.n_examples(), size);
    const NoGil release;
    second::project(batch, sets, view(z), view(value), view(status), threads);
}

// Viterbi and the k best, for one example at a time.
class SecondOrderOracle final : public online::Oracle {
   public:
    SecondOrderOracle(In<std::int64_t> lengths, std::int64_t n_labels, Legal follow, Legal first, Legal last,
                      std::int64_t ranks)
        : Oracle(ranks), lengths_(copied(lengths)), follow_(copied(follow)), first_(copied(first)), last_(copied(last)),
          single_(constraints_of(n_labels, follow, first, last), simd::lanes_in_use(),
                  checked_longest(lengths_, n_labels, 2)) {
        single_.constraints = {n_labels, follow_, first_, last_};
        checked_ranks(ranks, n_labels, longest(lengths_));
        if (ranks > 1) k_best_ = std::make_unique<second::KBest>(single_.table.shape, longest(lengths_), ranks);
    }
    SecondOrderOracle(const SecondOrderOracle& other)
        : Oracle(other), lengths_(other.lengths_), follow_(other.follow_), first_(other.first_), last_(other.last_),
          single_({other.single_.constraints.n_labels, follow_, first_, last_}, simd::lanes_in_use(),
                  longest(lengths_)) {
        if (ranks() > 1) k_best_ = std::make_unique<second::KBest>(single_.table.shape, longest(lengths_), ranks());
    }
    std::unique_ptr<online::Oracle> another() const override { return std::make_unique<SecondOrderOracle>(*this); }
    std::int64_t n_examples() const override { return static_cast<std::int64_t>(lengths_.size()); }
    std::int64_t size(std::int64_t i) const override {
        const std::int64_t k = single_.constraints.n_labels;
        return (lengths_[i] + k + k * k) * k;
    }
    online::Status argmax(std::int64_t i, const double* scores, hull::Sparse& vertex) override {
        double value;
        const online::Status found = single_.run(lengths_[i], scores, value);
        if (found == online::Status::ok)
            second::vertex_of(single_.constraints.n_labels, lengths_[i], single_.labels.data(), vertex);
        return found;
    }
    online::Status k_best(std::int64_t i, const double* scores, std::int64_t k,
                          std::vector<hull::Sparse>& vertices) override {
        require(k <= ranks(), "this oracle was made for fewer ranks");
        vertices.resize(1);
        const online::Status best = argmax(i, scores, vertices[0]);  // which checks the scores and lays out the table
        if (best != online::Status::ok || k == 1 || lengths_[i] == 0) return best;
        const std::int64_t found = k_best_->run(single_.constraints, single_.table, lengths_[i], scores);
        vertices.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(found, 1, k)));
        for (std::size_t r = 1; r < vertices.size(); ++r) {
            k_best_->labels(static_cast<std::int64_t>(r), single_.labels.data());
            second::vertex_of(single_.constraints.n_labels, lengths_[i], single_.labels.data(), vertices[r]);
        }
        return best;
    }

   private:
    std::vector<std::int64_t> lengths_;
    std::vector<std::uint8_t> follow_, first_, last_;
    second::Single single_;
    std::unique_ptr<second::KBest> k_best_;
};

}  // namespace

void bind_second_order(nb::module_& module) {
    module.def("second_order_argmax", apart(&argmax), MM_BATCH_NAMES, "z"_array, "value"_array, "status"_array,
               "threads"_a);
    module.def("second_order_labels", apart(&labels), MM_BATCH_NAMES, "labels"_array, "value"_array, "status"_array,
               "threads"_a);
    module.def("second_order_k_best", apart(&k_best), MM_BATCH_NAMES, "k"_a, "z"_array, "value"_array, "status"_array,
               "threads"_a);
    module.def("second_order_marginals", apart(&marginals), MM_BATCH_NAMES, "by_logs"_a, "z"_array, "value"_array,
               "status"_array, "threads"_a);
    module.def("second_order_max_marginals", apart(&max_marginals), MM_BATCH_NAMES, "most"_array, "threads"_a);
    module.def("second_order_project", apart(&project), MM_BATCH_NAMES, "sets"_a, "z"_array, "value"_array,
               "status"_array, "threads"_a);
    nb::class_<SecondOrderOracle, online::Oracle>(module, "SecondOrderOracle")
        .def(nb::init<In<std::int64_t>, std::int64_t, Legal, Legal, Legal, std::int64_t>(), "lengths"_array,
             "n_labels"_a, "follow"_array, "first"_array, "last"_array, "ranks"_a);
}

#undef MM_BATCH
#undef MM_BATCH_NAMES

}  // namespace maxmargin
