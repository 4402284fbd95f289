#include "maxmargin/chain/k_best.hpp"
#include "maxmargin/chain/labels.hpp"
#include "maxmargin/chain/max_marginals.hpp"
#include "maxmargin/chain/slack.hpp"
#include "maxmargin/chain/sum_product.hpp"
#include "maxmargin/chain/viterbi.hpp"
#include "solvers/online.hpp"
#include "structures/vectors.hpp"

namespace maxmargin {

namespace {

std::int64_t checked_labels(std::int64_t n_labels) {
    require(n_labels >= 1 && n_labels <= 1 << 15, "n_labels must be between 1 and 32768");
    return n_labels;
}

// Ranks whose table, one entry for each label of each position, fits into memory.
void checked_ranks(std::int64_t k, std::int64_t n_labels, std::int64_t longest) {
    require(k >= 1 && k <= (std::int64_t{1} << 31) / n_labels - 1, "k must be at least 1 and k * n_labels below 2^31");
    checked_product({std::max<std::int64_t>(longest, 1), n_labels, k},
                    "the k best of so long a sequence need too much memory; give a smaller k");
}

// Checks that the offsets describe chains of n_labels labels and end where a packed vector ends.
chain::Batch batch_of(const In<std::int64_t>& nodes, const In<std::int64_t>& pairs, std::int64_t n_labels, bool shared,
                      std::size_t n_parts) {
    checked_labels(n_labels);
    require(nodes.ndim() == 1 && pairs.ndim() == 1 && nodes.size() >= 1 && nodes.size() == pairs.size(),
            "offsets must have n_examples + 1 entries");
    const chain::Batch batch{n_labels, shared, view(nodes), view(pairs)};
    const std::int64_t n = batch.n_examples(), square = n_labels * n_labels;
    require(rises_from_zero(batch.nodes) && rises(batch.pairs) && batch.pairs[0] == batch.nodes[n] &&
                batch.pairs[n] == static_cast<std::int64_t>(n_parts),
            "offsets do not span the packed vector");
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t size = batch.nodes[i + 1] - batch.nodes[i];
        require(size >= 0 && size % n_labels == 0, "node parts of an example must be a multiple of n_labels");
        const std::int64_t length = size / n_labels;
        const std::int64_t expected = shared ? square : (length > 1 ? (length - 1) * square : 0);
        require(batch.pairs[i + 1] - batch.pairs[i] == expected, "pair parts of an example do not fit its length");
    }
    return batch;
}

// Constraints for n_labels labels, or none.
chain::Constraints constraints_of(std::int64_t n_labels, std::span<const double> pairs, std::span<const double> first,
                                  std::span<const double> last) {
    const auto k = static_cast<std::size_t>(n_labels);
    require((pairs.empty() && first.empty() && last.empty()) ||
                (pairs.size() == k * k && first.size() == k && last.size() == k),
            "constraints do not fit the labels");
    return {pairs, first, last};
}

void argmax(In<std::int64_t> nodes, In<std::int64_t> pairs, std::int64_t n_labels, bool shared, In<double> scores,
            Out<double> z, Out<double> value, Out<std::int8_t> status, Threads threads) {
    const chain::Batch batch = batch_of(nodes, pairs, n_labels, shared, scores.size());
    require_outputs(scores.size(), batch.n_examples(), z, value, status);
    const NoGil release;
    chain::argmax(batch, view(scores), view(z), view(value), view(status), threads);
}

// `edges` is empty, or has n_labels^2 entries for every edge of a shared batch.
void marginals(In<std::int64_t> nodes, In<std::int64_t> pairs, std::int64_t n_labels, bool shared, bool by_logs,
               In<double> potentials, Out<double> z, Out<double> value, Out<std::int8_t> status, Out<double> edges,
               Threads threads) {
    const chain::Batch batch = batch_of(nodes, pairs, n_labels, shared, potentials.size());
    require_outputs(potentials.size(), batch.n_examples(), z, value, status);
    std::int64_t n_edges = 0;
    for (std::int64_t i = 0; i < batch.n_examples(); ++i) n_edges += std::max<std::int64_t>(batch.length(i) - 1, 0);
    require(edges.size() == 0 || (shared && edges.size() == static_cast<std::size_t>(n_edges * n_labels * n_labels)),
            "edges do not fit the batch");
    const NoGil release;
    chain::marginals(batch, by_logs, view(potentials), view(z), view(value), view(status), view(edges), threads);
}

void k_best(In<std::int64_t> nodes, In<std::int64_t> pairs, std::int64_t n_labels, bool shared, std::int64_t k,
            In<double> scores, Out<double> z, Out<double> value, Out<std::int8_t> status, Threads threads) {
    const chain::Batch batch = batch_of(nodes, pairs, n_labels, shared, scores.size());
    std::int64_t longest = 0;
    for (std::int64_t i = 0; i < batch.n_examples(); ++i) longest = std::max(longest, batch.length(i));
    checked_ranks(k, n_labels, longest);
    require_outputs(scores.size(), batch.n_examples(), z, value, status, k);
    const NoGil release;
    chain::k_best(batch, k, view(scores), view(z), view(value), view(status), threads);
}

void labels(In<std::int64_t> nodes, In<std::int64_t> pairs, std::int64_t n_labels, bool shared, In<double> scores,
            Out<std::int32_t> labels, Out<double> value, Out<std::int8_t> status, Threads threads) {
    const chain::Batch batch = batch_of(nodes, pairs, n_labels, shared, scores.size());
    const auto n = static_cast<std::size_t>(batch.n_examples());
    require(labels.size() == static_cast<std::size_t>(batch.nodes[batch.n_examples()] / n_labels) &&
                value.size() == n && status.size() == n,
            "outputs do not fit the batch");
    const NoGil release;
    chain::labels(batch, view(scores), view(labels), view(value), view(status), threads);
}

// Offsets of the nodes of chains alone; `first` and `last` have an entry per label or none.
void check_once(const In<std::int64_t>& nodes, std::int64_t n_labels, std::size_t n_scores, const In<double>& pairs,
                const In<double>& first, const In<double>& last) {
    const auto k = static_cast<std::size_t>(checked_labels(n_labels));
    require(nodes.ndim() == 1 && nodes.size() >= 1 && pairs.size() == k * k, "offsets and pairs do not fit");
    require((first.size() == 0 || first.size() == k) && (last.size() == 0 || last.size() == k),
            "ends must have one entry per label, or none");
    const auto starts = view(nodes);
    require(rises_to(starts, n_scores), "offsets do not span the node scores");
    for (const std::int64_t start : starts)
        require(start % n_labels == 0, "node parts of an example must be a multiple of n_labels");
}

void labels_once(In<std::int64_t> nodes, std::int64_t n_labels, In<double> scores, In<double> pairs, In<double> first,
                 In<double> last, Out<std::int32_t> labels, Out<double> value, Out<std::int8_t> status,
                 Threads threads) {
    check_once(nodes, n_labels, scores.size(), pairs, first, last);
    require(labels.size() == scores.size() / static_cast<std::size_t>(n_labels) && value.size() + 1 == nodes.size() &&
                status.size() + 1 == nodes.size(),
            "outputs do not fit the batch");
    const NoGil release;
    chain::labels_once(n_labels, view(nodes), view(scores), view(pairs), view(first), view(last), view(labels),
                       view(value), view(status), threads);
}

void max_marginals(In<std::int64_t> nodes, In<std::int64_t> pairs, std::int64_t n_labels, bool shared,
                   In<double> scores, Out<double> out, Threads threads) {
    const chain::Batch batch = batch_of(nodes, pairs, n_labels, shared, scores.size());
    require(out.size() == static_cast<std::size_t>(batch.nodes[batch.n_examples()]), "outputs do not fit the batch");
    const NoGil release;
    chain::max_marginals(batch, view(scores), view(out), threads);
}

void max_marginals_once(In<std::int64_t> nodes, std::int64_t n_labels, In<double> scores, In<double> pairs,
                        In<double> first, In<double> last, Out<double> out, Threads threads) {
    check_once(nodes, n_labels, scores.size(), pairs, first, last);
    require(out.size() == scores.size(), "outputs do not fit the batch");
    const NoGil release;
    chain::max_marginals_once(n_labels, view(nodes), view(scores), view(pairs), view(first), view(last), view(out),
                              int{threads});
}

void project(In<std::int64_t> nodes, In<std::int64_t> pairs, std::int64_t n_labels, bool shared,
             In<double> pair_constraints, In<double> first, In<double> last, hull::HullBatch& sets, In<double> point,
             Out<double> z, Out<double> value, Out<std::int8_t> status, Threads threads) {
    const chain::Batch batch = batch_of(nodes, pairs, n_labels, shared, point.size());
    const chain::Constraints constraints = constraints_of(n_labels, view(pair_constraints), view(first), view(last));
    require_outputs(point.size(), batch.n_examples(), z, value, status);
    const auto size = [&](std::int64_t i) {
        return batch.nodes[i + 1] - batch.nodes[i] + batch.pairs[i + 1] - batch.pairs[i];
    };
    require_fresh(sets, batch.n_examples(), size);
    const NoGil release;
    chain::project(batch, constraints, sets, view(point), view(z), view(value), view(status), threads);
}

// Viterbi, the k best, and slack rescaling, for one example at a time.
class ChainOracle final : public online::Oracle {
   public:
    ChainOracle(In<std::int64_t> lengths, std::int64_t n_labels, bool shared, In<double> pair_constraints,
                In<double> first, In<double> last, std::int64_t ranks)
        : Oracle(ranks), lengths_(copied(lengths)), shared_(shared),
          panels_(checked_labels(n_labels), simd::lanes_in_use()),
          scratch_(panels_, checked_longest(lengths_, n_labels)), pair_constraints_(copied(pair_constraints)),
          first_(copied(first)), last_(copied(last)),
          constraints_(constraints_of(n_labels, pair_constraints_, first_, last_)) {
        checked_ranks(ranks, n_labels, longest(lengths_));
        if (ranks > 1) k_best_ = std::make_unique<chain::KBest>(panels_, longest(lengths_), ranks);
    }
    ChainOracle(const ChainOracle& other)
        : Oracle(other), lengths_(other.lengths_), shared_(other.shared_), panels_(other.panels_),
          scratch_(panels_, longest(lengths_)), pair_constraints_(other.pair_constraints_), first_(other.first_),
          last_(other.last_), constraints_(constraints_of(panels_.n_labels, pair_constraints_, first_, last_)) {
        if (ranks() > 1) k_best_ = std::make_unique<chain::KBest>(panels_, longest(lengths_), ranks());
    }
    std::unique_ptr<online::Oracle> another() const override { return std::make_unique<ChainOracle>(*this); }
    std::int64_t n_examples() const override { return static_cast<std::int64_t>(lengths_.size()); }
    std::int64_t size(std::int64_t i) const override {
        const std::int64_t k = panels_.n_labels, edges = lengths_[i] > 1 ? lengths_[i] - 1 : 0;
        return lengths_[i] * k + (shared_ ? 1 : edges) * k * k;
    }
    // Empty if pairs have costs, or if costs are not multiples of a unit.
    std::optional<online::Status> slack_argmax(std::int64_t i, const online::SlackProduct& product,
                                               hull::Sparse& vertex, double& value) override {
        const std::int64_t length = lengths_[i], nodes = length * panels_.n_labels;
        if (std::any_of(product.costs + nodes, product.costs + size(i), [](double c) { return c != 0.0; })) return {};
        if (!slack_) slack_ = std::make_unique<chain::SlackScratch>(panels_, longest(lengths_));
        const double* scores = legal(i, product.scores);
        const std::int8_t code = chain::slack(panels_.lanes, panels_, shared_, length, scores, scores + nodes,
                                              product.margin, product.costs, product.constant, *slack_, value);
        if (code == chain::ELSEWHERE) return {};
        const auto found = static_cast<online::Status>(code);
        if (found == online::Status::ok)
            chain::vertex_of(panels_.n_labels, shared_, length, slack_->labels.data(), vertex);
        return found;
    }
    online::Status argmax(std::int64_t i, const double* given, hull::Sparse& vertex) override {
        double value;
        const double* scores = legal(i, given);
        const std::int64_t length = lengths_[i];
        const auto found = chain::viterbi(panels_.lanes, panels_, shared_, length, scores,
                                          scores + length * panels_.n_labels, scratch_, value);
        if (found == online::Status::ok)
            chain::vertex_of(panels_.n_labels, shared_, length, scratch_.labels.data(), vertex);
        return found;
    }
    online::Status k_best(std::int64_t i, const double* scores, std::int64_t k,
                          std::vector<hull::Sparse>& vertices) override {
        require(k <= ranks(), "this oracle was made for fewer ranks");
        vertices.resize(1);
        const online::Status first = argmax(i, scores, vertices[0]);  // which checks the scores
        if (first != online::Status::ok || k == 1 || lengths_[i] == 0) return first;
        const std::int64_t length = lengths_[i];
        if (!constraints_.none()) scores = legal_.data();  // of the same scores, by argmax
        const std::int64_t found = k_best_->run(shared_, length, scores, scores + length * panels_.n_labels);
        vertices.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(found, 1, k)));
        for (std::size_t r = 1; r < vertices.size(); ++r) {
            k_best_->labels(static_cast<std::int64_t>(r), scratch_.labels.data());
            chain::vertex_of(panels_.n_labels, shared_, length, scratch_.labels.data(), vertices[r]);
        }
        return first;
    }

   private:
    // The scores with the constraints added; the given ones if there are none.
    const double* legal(std::int64_t i, const double* scores) {
        if (constraints_.none()) return scores;
        legal_.resize(static_cast<std::size_t>(size(i)));
        constraints_.add(panels_.n_labels, shared_, lengths_[i], scores, legal_.data());
        return legal_.data();
    }
    std::vector<std::int64_t> lengths_;
    bool shared_;
    chain::Panels panels_;
    chain::Scratch scratch_;
    std::vector<double> pair_constraints_, first_, last_, legal_;
    chain::Constraints constraints_;  // views of these
    std::unique_ptr<chain::KBest> k_best_;
    std::unique_ptr<chain::SlackScratch> slack_;
};

void slack_argmax(In<std::int64_t> nodes, In<std::int64_t> pairs, std::int64_t n_labels, bool shared, In<double> scores,
                  In<double> margin, In<double> costs, In<double> constants, Out<double> z, Out<double> value,
                  Out<std::int8_t> status, Threads threads) {
    const chain::Batch batch = batch_of(nodes, pairs, n_labels, shared, scores.size());
    require_slack(scores, batch.n_examples(), margin, costs, constants);
    require_outputs(scores.size(), batch.n_examples(), z, value, status);
    const NoGil release;
    chain::slack_argmax(batch, view(scores), view(margin), view(costs), view(constants), view(z), view(value),
                        view(status), threads);
}

}  // namespace

void bind_chain(nb::module_& module) {
    module.def("chain_argmax", apart(&argmax), "nodes"_array, "pairs"_array, "n_labels"_a, "shared"_a, "scores"_array,
               "z"_array, "value"_array, "status"_array, "threads"_a);
    module.def("chain_marginals", apart(&marginals), "nodes"_array, "pairs"_array, "n_labels"_a, "shared"_a,
               "by_logs"_a, "potentials"_array, "z"_array, "value"_array, "status"_array, "edges"_array, "threads"_a);
    module.def("chain_k_best", apart(&k_best), "nodes"_array, "pairs"_array, "n_labels"_a, "shared"_a, "k"_a,
               "scores"_array, "z"_array, "value"_array, "status"_array, "threads"_a);
    module.def("chain_labels", apart(&labels), "nodes"_array, "pairs"_array, "n_labels"_a, "shared"_a, "scores"_array,
               "labels"_array, "value"_array, "status"_array, "threads"_a);
    module.def("chain_labels_once", apart(&labels_once), "nodes"_array, "n_labels"_a, "scores"_array, "pairs"_array,
               "first"_array, "last"_array, "labels"_array, "value"_array, "status"_array, "threads"_a);
    module.def("chain_max_marginals", apart(&max_marginals), "nodes"_array, "pairs"_array, "n_labels"_a, "shared"_a,
               "scores"_array, "out"_array, "threads"_a);
    module.def("chain_max_marginals_once", apart(&max_marginals_once), "nodes"_array, "n_labels"_a, "scores"_array,
               "pairs"_array, "first"_array, "last"_array, "out"_array, "threads"_a);
    module.def("chain_project", apart(&project), "nodes"_array, "pairs"_array, "n_labels"_a, "shared"_a,
               "pair_constraints"_array, "first"_array, "last"_array, "sets"_a, "point"_array, "z"_array, "value"_array,
               "status"_array, "threads"_a);
    nb::class_<ChainOracle, online::Oracle>(module, "ChainOracle")
        .def(nb::init<In<std::int64_t>, std::int64_t, bool, In<double>, In<double>, In<double>, std::int64_t>(),
             "lengths"_array, "n_labels"_a, "shared"_a, "pair_constraints"_array, "first"_array, "last"_array,
             "ranks"_a);

    module.def("chain_slack_argmax", apart(&slack_argmax), "nodes"_array, "pairs"_array, "n_labels"_a, "shared"_a,
               "scores"_array, "margin"_array, "costs"_array, "constants"_array, "z"_array, "value"_array,
               "status"_array, "threads"_a);
}

}  // namespace maxmargin
