#include <nanobind/stl/pair.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "maxmargin/cut/batch.hpp"
#include "solvers/online.hpp"
#include "structures/cut_batch.hpp"

namespace maxmargin {

namespace {

using cut::CutGraphs;

void argmax(const CutBatch& batch, In<double> scores, std::int64_t augmentations_per_arc, Out<double> flow,
            Out<double> z, Out<double> value, Out<std::int8_t> status, Threads threads) {
    const CutGraphs g = batch.graphs();
    const CutLayout layout = batch.layout();
    const auto parts = static_cast<std::size_t>(layout.size());
    const auto examples = static_cast<std::size_t>(g.examples());
    require(scores.size() == parts && z.size() == parts, "scores and z need one entry per part");
    require(flow.size() == static_cast<std::size_t>(g.edges()), "flow needs one entry per edge");
    require(value.size() == examples && status.size() == examples, "one value and status per example");
    checked_count("augmentations_per_arc", augmentations_per_arc, 0, most_steps);
    const NoGil unlocked;
    cut::argmax(g, layout, view(scores), augmentations_per_arc, view(flow), view(z), view(value), view(status),
                threads);
}

// What is wrong with the edges of a batch, and the first edge of which it is true: 1 a node that its example does not
// have, 2 a loop, 3 two nodes that an earlier edge joins; 0 if all is well.
std::pair<int, std::int64_t> faulty_edge(In<std::int64_t> node_offsets, In<std::int64_t> edge_offsets,
                                         In<std::int64_t> edges) {
    const auto nodes = view(node_offsets), offsets = view(edge_offsets), ends = view(edges);
    require(nodes.size() == offsets.size() && rises_from_zero(nodes),
            "node and edge offsets must have one entry more than there are examples and rise from 0");
    require(rises_to(offsets, ends.size() / 2) && ends.size() % 2 == 0, "edges need two entries each");
    const NoGil unlocked;
    std::int64_t loop = -1, repeated = -1;
    for (std::size_t i = 1; i < nodes.size(); ++i) {
        const std::int64_t count = nodes[i] - nodes[i - 1];
        for (std::int64_t e = offsets[i - 1]; e < offsets[i]; ++e) {
            const std::int64_t j = ends[2 * e], k = ends[2 * e + 1];
            if (j < 0 || k < 0 || j >= count || k >= count) return {1, e};
            if (j == k && loop < 0) loop = e;
        }
    }
    if (loop >= 0) return {2, loop};
    // Edges in order of their lower nodes; then each node marks the upper nodes of its edges.
    std::vector<std::int64_t> next, order, last;
    for (std::size_t i = 1; i < nodes.size(); ++i) {
        const std::int64_t count = nodes[i] - nodes[i - 1], begin = offsets[i - 1];
        if (begin == offsets[i]) continue;
        require(count <= most_claimed, "an example has too many nodes");
        next.assign(static_cast<std::size_t>(count) + 1, 0);
        last.assign(static_cast<std::size_t>(count), -1);
        order.resize(static_cast<std::size_t>(offsets[i] - begin));
        for (std::int64_t e = begin; e < offsets[i]; ++e) ++next[std::min(ends[2 * e], ends[2 * e + 1]) + 1];
        for (std::int64_t j = 0; j < count; ++j) next[j + 1] += next[j];
        for (std::int64_t e = begin; e < offsets[i]; ++e) order[next[std::min(ends[2 * e], ends[2 * e + 1])]++] = e;
        std::int64_t at = 0;
        for (std::int64_t j = 0; j < count; ++j) {
            for (; at < next[j]; ++at) {
                const std::int64_t e = order[at], other = std::max(ends[2 * e], ends[2 * e + 1]);
                if (last[other] == j && (repeated < 0 || e < repeated)) repeated = e;
                last[other] = j;
            }
        }
    }
    return {repeated >= 0 ? 3 : 0, repeated};
}

void order(const CutBatch& batch, Out<std::int32_t> order) {
    const CutGraphs g = batch.graphs();
    require(order.size() == static_cast<std::size_t>(g.nodes()), "order needs one entry per node");
    const NoGil unlocked;
    cut::order(g, view(order));
}

void project(const CutBatch& batch, In<double> point, double tol, bool newton, std::int64_t step_limit,
             Out<double> flow, Out<double> z, Out<double> value, Out<double> gap, Out<std::int8_t> status,
             Threads threads) {
    const CutGraphs g = batch.graphs();
    const CutLayout layout = batch.layout();
    const auto parts = static_cast<std::size_t>(layout.size());
    const auto examples = static_cast<std::size_t>(g.examples());
    require(batch.ordered, "a projection needs the orders of nodes and edges");
    require(tol >= 0 && std::isfinite(tol), "tol must be finite and not negative");
    checked_count("step_limit", step_limit, 0, most_steps);
    require(point.size() == parts && z.size() == parts, "point and z need one entry per part");
    require(flow.size() == static_cast<std::size_t>(g.edges()), "flow needs one entry per edge");
    require(value.size() == examples && gap.size() == examples && status.size() == examples,
            "one value, gap and status per example");
    const NoGil unlocked;
    cut::project(g, layout, batch.node_order, batch.edge_order, view(point), tol, newton, step_limit, view(flow),
                 view(z), view(value), view(gap), view(status), threads);
}

// Minimum cuts of one example at a time; each starts from the flow of the last.
class CutOracle final : public SingleBest {
   public:
    CutOracle(const CutBatch& batch, std::int64_t augmentations_per_arc)
        : graphs_(batch.graphs()), layout_(batch.layout()),
          augmentations_per_arc_(checked_count("augmentations_per_arc", augmentations_per_arc, 0, most_steps)),
          flow_(std::make_shared<std::vector<double>>(static_cast<std::size_t>(graphs_.edges()), 0.0)) {
        scratch_.reserve(cut::largest(graphs_));
        std::int64_t most = 0;
        for (std::int64_t i = 0; i < n_examples(); ++i) most = std::max(most, size(i));
        z_.resize(static_cast<std::size_t>(most));
    }
    std::int64_t n_examples() const override { return graphs_.examples(); }
    std::int64_t size(std::int64_t i) const override {
        const cut::Extent own = layout_[i];
        return std::int64_t{own.nodes} + own.edges + 2 * std::int64_t{own.cliques};
    }
    online::Status argmax(std::int64_t i, const double* scores, hull::Sparse& vertex) override {
        const cut::Extent own = layout_[i];
        double value;
        if (cut::argmax_one(graphs_[i], own, cut::CutParts(own, scores), augmentations_per_arc_, scratch_,
                            flow_->data() + graphs_.edge_offsets[i], cut::CutParts(own, z_.data()), value) != cut::ok)
            return online::Status::nonfinite;
        nonzeros(z_.data(), size(i), vertex);
        return online::Status::ok;
    }
    std::span<double> memory() override { return *flow_; }
    std::unique_ptr<online::Oracle> another() const override { return std::make_unique<CutOracle>(*this); }

   private:
    CutGraphs graphs_;
    CutLayout layout_;
    std::int64_t augmentations_per_arc_;
    std::shared_ptr<std::vector<double>> flow_;  // of every example, so that threads may share it
    std::vector<double> z_;
    cut::ArgmaxScratch scratch_;
};

}  // namespace

void bind_cut(nb::module_& module) {
    using Offsets = In<std::int64_t>;
    using Numbers = In<std::int32_t>;
    nb::class_<CutBatch>(module, "CutBatch")
        .def(nb::init<const Offsets&, const Offsets&, const Numbers&>(), "node_offsets"_array, "edge_offsets"_array,
             "ends"_array)
        .def(nb::init<const Offsets&, const Offsets&, const Numbers&, const Numbers&, const Numbers&>(),
             "node_offsets"_array, "edge_offsets"_array, "ends"_array, "node_order"_array, "edge_order"_array)
        .def(nb::init<const Offsets&, const Offsets&, const Numbers&, const Numbers&, const Numbers&, const Offsets&,
                      const Offsets&, const Offsets&>(),
             "node_offsets"_array, "edge_offsets"_array, "ends"_array, "node_order"_array, "edge_order"_array,
             "own_nodes"_array, "own_edges"_array, "cliques"_array);
    module.def("faulty_edge", &faulty_edge, "node_offsets"_array, "edge_offsets"_array, "edges"_array);
    module.def("cut_argmax", apart(&argmax), "batch"_a, "scores"_array, "augmentations_per_arc"_a, "flow"_array,
               "z"_array, "value"_array, "status"_array, "threads"_a);
    module.def("cut_order", &order, "batch"_a, "order"_array);
    module.def("cut_project", apart(&project), "batch"_a, "point"_array, "tol"_a, "newton"_a, "step_limit"_a,
               "flow"_array, "z"_array, "value"_array, "gap"_array, "status"_array, "threads"_a);
    nb::class_<CutOracle, online::Oracle>(module, "CutOracle")
        .def(nb::init<const CutBatch&, std::int64_t>(), "batch"_a, "augmentations_per_arc"_a, nb::keep_alive<1, 2>());
}

}  // namespace maxmargin
