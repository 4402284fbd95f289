#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "maxmargin/tree/k_best.hpp"
#include "maxmargin/tree/max_product.hpp"
#include "maxmargin/tree/slack.hpp"
#include "maxmargin/tree/sum_product.hpp"
#include "solvers/online.hpp"
#include "structures/vectors.hpp"

namespace maxmargin {

namespace {

// Checks offsets, numbers of labels and the ends of all edges.
tree::Graphs graphs_of(const In<std::int64_t>& nodes, const In<std::int32_t>& labels, const In<std::int32_t>& edges,
                       const In<std::int64_t>& edge_offsets) {
    const tree::Graphs graphs{view(nodes), view(edge_offsets), view(labels), view(edges), {}, {}, {}};
    require(graphs.nodes.size() == graphs.edge_offsets.size(),
            "node and edge offsets must have n_examples + 1 entries");
    require(rises_to(graphs.nodes, labels.size()), "node offsets must rise from 0 to the number of nodes");
    require(edges.size() % 2 == 0 && rises_to(graphs.edge_offsets, edges.size() / 2),
            "edge offsets must rise from 0 to the number of edges, which have two ends each");
    for (const std::int32_t k : graphs.labels) require(k >= 1 && k <= 1 << 15, "labels must be between 1 and 32768");
    for (std::int64_t i = 0; i < graphs.n_examples(); ++i) {
        const std::int64_t n = graphs.n_nodes(i);
        require(n < std::int64_t{1} << 30, "an example has too many nodes");
        const std::int32_t* k = graphs.labels.data() + graphs.nodes[i];
        std::int64_t parts = 0;
        for (std::int64_t v = 0; v < n; ++v) parts += k[v];
        for (std::int64_t e = graphs.edge_offsets[i]; e < graphs.edge_offsets[i + 1]; ++e) {
            const std::int32_t u = graphs.edges[2 * e], v = graphs.edges[2 * e + 1];
            require(u >= 0 && u < n && v >= 0 && v < n && u != v, "an edge must join two nodes of its example");
            parts += static_cast<std::int64_t>(k[u]) * k[v];
        }
        require(parts < std::int64_t{1} << 31, "an example has too many parts");
    }
    return graphs;
}

// Checks and adds cliques to graphs that have been checked.
void add_cliques(tree::Graphs& graphs, const In<std::int64_t>& offsets, const In<std::int64_t>& begin,
                 const In<std::int32_t>& clique_nodes) {
    graphs.clique_offsets = view(offsets);
    graphs.clique_begin = view(begin);
    graphs.clique_nodes = view(clique_nodes);
    const auto &of_example = graphs.clique_offsets, &of_clique = graphs.clique_begin;
    require(rises_to(of_clique, clique_nodes.size()), "beginnings of cliques must rise from 0 to the number of nodes");
    require(of_example.size() == graphs.nodes.size() && rises_to(of_example, of_clique.size() - 1),
            "clique offsets must have n_examples + 1 entries and rise from 0 to the number of cliques");
    for (std::size_t c = 1; c < of_clique.size(); ++c)
        require(of_clique[c] > of_clique[c - 1], "a clique must have at least one node");
    std::vector<std::int64_t> last;  // the last clique that a node was seen in
    for (std::int64_t i = 0; i < graphs.n_examples(); ++i) {
        const std::int64_t n = graphs.n_nodes(i);
        const std::int32_t* k = graphs.labels.data() + graphs.nodes[i];
        std::int64_t parts = 0;
        last.assign(static_cast<std::size_t>(n), -1);
        for (std::int64_t c = of_example[i]; c < of_example[i + 1]; ++c) {
            std::int64_t entries = 1;
            for (std::int64_t j = of_clique[c]; j < of_clique[c + 1]; ++j) {
                const std::int32_t v = graphs.clique_nodes[j];
                require(v >= 0 && v < n && last[v] != c, "a clique must have different nodes of its example");
                last[v] = c;
                entries *= k[v];
                require(entries < std::int64_t{1} << 31, "an example has too many parts");
            }
            parts += entries;
            require(parts < std::int64_t{1} << 31, "an example has too many parts");
        }
    }
}

void order(In<std::int64_t> nodes, In<std::int32_t> labels, In<std::int32_t> edges, In<std::int64_t> edge_offsets,
           bool fill, double most, std::int64_t widest, Out<std::int32_t> out, Out<std::int64_t> width,
           Out<double> entries, Threads threads) {
    const tree::Graphs graphs = graphs_of(nodes, labels, edges, edge_offsets);
    const auto n = static_cast<std::size_t>(graphs.n_examples());
    require(out.size() == labels.size() && width.size() == n && entries.size() == n, "outputs do not fit the batch");
    const NoGil release;
    tree::eliminate(graphs, fill, most, widest, view(out), view(width), view(entries), threads);
}

// A batch whose arrays are checked and whose elimination is planned on construction.
class TreeBatch {
   public:
    TreeBatch(In<std::int64_t> nodes, In<std::int32_t> labels, In<std::int32_t> edges, In<std::int64_t> edge_offsets,
              In<std::int64_t> clique_offsets, In<std::int64_t> clique_begin, In<std::int32_t> clique_nodes,
              In<std::int32_t> order, double most) {
        tree::Graphs graphs = graphs_of(nodes, labels, edges, edge_offsets);
        add_cliques(graphs, clique_offsets, clique_begin, clique_nodes);
        require(order.size() == labels.size(), "order must have one entry per node");
        require(most >= 0.0 && most <= static_cast<double>(most_claimed), "most must be between 0 and 2^30 entries");
        for (std::int64_t i = 0; i < graphs.n_examples(); ++i)
            require(distinct(view(order).subspan(graphs.nodes[i], graphs.n_nodes(i)), graphs.n_nodes(i)),
                    "order must hold every node once");
        const NoGil release;
        fits_ = plan_.build(graphs, view(order), most);
    }

    void argmax(In<double> scores, Out<double> z, Out<double> value, Out<std::int8_t> status, Threads threads) const {
        check(scores, z, value, status);
        const NoGil release;
        tree::argmax(plan_, view(scores), view(z), view(value), view(status), threads);
    }

    void labels(In<double> scores, Out<std::int32_t> labels, Out<double> value, Out<std::int8_t> status,
                Threads threads) const {
        const auto n = static_cast<std::size_t>(plan().n_examples());
        require(scores.size() == static_cast<std::size_t>(plan_.n_parts()), "scores do not fit the batch");
        require(labels.size() == static_cast<std::size_t>(plan_.nodes[n]) && value.size() == n && status.size() == n,
                "outputs do not fit the batch");
        const NoGil release;
        tree::labels(plan_, view(scores), view(labels), view(value), view(status), threads);
    }

    void k_best(std::int64_t k, In<double> scores, Out<double> z, Out<double> value, Out<std::int8_t> status,
                Threads threads) const {
        check(scores, z, value, status, checked_ranks(k));
        const NoGil release;
        tree::k_best(plan_, k, view(scores), view(z), view(value), view(status), threads);
    }

    void marginals(In<double> potentials, Out<double> z, Out<double> value, Out<std::int8_t> status,
                   Threads threads) const {
        check(potentials, z, value, status);
        const NoGil release;
        tree::marginals(plan_, view(potentials), view(z), view(value), view(status), threads);
    }

    void project(hull::HullBatch& sets, In<double> point, Out<double> z, Out<double> value, Out<std::int8_t> status,
                 Threads threads) const {
        check(point, z, value, status);
        require_fresh(sets, plan_.n_examples(), [&](std::int64_t i) { return plan_.n_parts(i); });
        const NoGil release;
        tree::project(plan_, sets, view(point), view(z), view(value), view(status), threads);
    }

    const tree::Plan& plan() const {
        require(fits_, "a cluster of the batch is larger than allowed");
        return plan_;
    }

    void slack_argmax(In<double> scores, In<double> margin, In<double> costs, In<double> constants, Out<double> z,
                      Out<double> value, Out<std::int8_t> status, Threads threads) const {
        check(scores, z, value, status);
        require_slack(scores, plan_.n_examples(), margin, costs, constants);
        const NoGil release;
        tree::slack_argmax(plan_, view(scores), view(margin), view(costs), view(constants), view(z), view(value),
                           view(status), threads);
    }

   private:
    tree::Plan plan_;
    bool fits_ = false;

    void check(const In<double>& values, const Out<double>& z, const Out<double>& value, const Out<std::int8_t>& status,
               std::int64_t ranks = 1) const {
        require_vectors(values, plan().n_parts(), plan_.n_examples(), z, value, status, ranks);
    }
};

// Max-product, the k best, and slack rescaling, on one example at a time.
class TreeOracle final : public RankedOracle {
   public:
    TreeOracle(const TreeBatch& batch, std::int64_t ranks) : TreeOracle(batch.plan(), ranks) {}
    TreeOracle(const tree::Plan& plan, std::int64_t ranks) : RankedOracle(checked_ranks(ranks)), plan_(plan) {
        scratch_.resize(plan_);
        if (ranks > 1) k_best_ = std::make_unique<tree::KBest>(plan_);
    }
    std::unique_ptr<online::Oracle> another() const override { return std::make_unique<TreeOracle>(plan_, ranks()); }
    std::int64_t n_examples() const override { return plan_.n_examples(); }
    std::int64_t size(std::int64_t i) const override { return plan_.n_parts(i); }
    online::Status argmax(std::int64_t i, const double* scores, hull::Sparse& vertex) override {
        const tree::Scores own = tree::parts_within(plan_, i, scores);
        double value;
        const auto found = tree::upward(width_, plan_, i, own, scratch_, value);
        if (found != online::Status::ok) return found;
        tree::downward(plan_, i, own, scratch_);
        take(i, vertex);
        return found;
    }
    std::optional<online::Status> slack_argmax(std::int64_t i, const online::SlackProduct& product,
                                               hull::Sparse& vertex, double& value) override {
        const auto found = slack_.run(width_, plan_, i, tree::parts_within(plan_, i, product.scores), product.margin,
                                      tree::parts_within(plan_, i, product.costs), product.constant, scratch_, value);
        if (found == online::Status::ok || found == online::Status::inexact) take(i, vertex);
        return found;
    }

   protected:
    online::Status begin(std::int64_t i, const double* scores) override {
        example_ = i;
        rank_ = 0;
        return k_best_->begin(width_, i, tree::parts_within(plan_, i, scores));
    }
    bool next(hull::Sparse& vertex) override {
        double value;
        if (!k_best_->labels(rank_++, scratch_.labels.data(), value)) return false;
        take(example_, vertex);
        return true;
    }

   private:
    // The output of the labels in the scratch.
    void take(std::int64_t i, hull::Sparse& vertex) const {
        tree::vertex_of(plan_, i, scratch_.labels.data(), vertex);
        std::sort(vertex.index.begin(), vertex.index.end());
    }

    const tree::Plan& plan_;
    int width_ = simd::lanes_in_use();
    tree::Scratch scratch_;
    tree::SlackSearch slack_;
    std::unique_ptr<tree::KBest> k_best_;
    std::int64_t example_ = 0, rank_ = 0;  // of the list that is under way
};

}  // namespace

void bind_tree(nb::module_& module) {
    module.def("tree_order", apart(&order), "nodes"_array, "labels"_array, "edges"_array, "edge_offsets"_array,
               "fill"_a, "most"_a, "widest"_a, "order"_array, "width"_array, "entries"_array, "threads"_a);
    auto batch = nb::class_<TreeBatch>(module, "TreeBatch");
    batch
        .def(nb::init<In<std::int64_t>, In<std::int32_t>, In<std::int32_t>, In<std::int64_t>, In<std::int64_t>,
                      In<std::int64_t>, In<std::int32_t>, In<std::int32_t>, double>(),
             "nodes"_array, "labels"_array, "edges"_array, "edge_offsets"_array, "clique_offsets"_array,
             "clique_begin"_array, "clique_nodes"_array, "order"_array, "most"_a)
        .def("labels", apart(&TreeBatch::labels), "scores"_array, "labels"_array, "value"_array, "status"_array,
             "threads"_a);
    bind_kernels(batch);
    bind_project(batch);
    nb::class_<TreeOracle, online::Oracle>(module, "TreeOracle")
        .def(nb::init<const TreeBatch&, std::int64_t>(), "batch"_a, "ranks"_a, nb::keep_alive<1, 2>());
}

}  // namespace maxmargin
