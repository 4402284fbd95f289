#include "maxmargin/cut.hpp"

#include "arrays.hpp"

namespace maxmargin {

namespace {

using cut::CutExample;
using cut::CutGraphs;

CutGraphs checked_graphs(const In<std::int64_t>& node_offsets, const In<std::int64_t>& edge_offsets,
                         const In<std::int32_t>& ends, const In<std::int64_t>& start, const In<std::int32_t>& arcs) {
    const CutGraphs g{view(node_offsets), view(edge_offsets), view(ends), view(start), view(arcs)};
    require(!g.node_offsets.empty() && g.edge_offsets.size() == g.node_offsets.size(),
            "node and edge offsets must have one entry more than there are examples");
    require(g.node_offsets[0] == 0 && g.edge_offsets[0] == 0, "offsets must start at 0");
    for (std::size_t i = 1; i < g.node_offsets.size(); ++i) {
        const std::int64_t nodes = g.node_offsets[i] - g.node_offsets[i - 1];
        const std::int64_t edges = g.edge_offsets[i] - g.edge_offsets[i - 1];
        require(nodes >= 0 && edges >= 0, "offsets must not decrease");
        require(nodes < (1 << 30) && edges < (1 << 29), "an example has too many nodes or edges");
    }
    const auto nodes = static_cast<std::size_t>(g.nodes()), arcs_in_all = 2 * static_cast<std::size_t>(g.edges());
    require(g.ends.size() == arcs_in_all && g.arcs.size() == arcs_in_all, "ends and arcs need two entries per edge");
    require(g.start.size() == nodes + 1 && g.start[0] == 0 && g.start[nodes] == g.edges() * 2,
            "start needs one entry more than there are nodes, from 0 to twice the number of edges");
    for (std::size_t j = 0; j < nodes; ++j) require(g.start[j] <= g.start[j + 1], "start must not decrease");
    for (std::int64_t i = 0; i < g.examples(); ++i) {
        const CutExample one = g[i];
        require(g.start[g.node_offsets[i]] == 2 * g.edge_offsets[i], "start must agree with the edge offsets");
        bool good = true;
        for (std::int32_t a = 0; a < 2 * one.edges; ++a) good &= one.ends[a] >= 0 && one.ends[a] < one.nodes;
        require(good, "an edge names a node that its example does not have");
        for (std::int32_t j = 0; j < one.nodes; ++j)
            for (std::int32_t a = one.first_arc(j); a < one.first_arc(j + 1); ++a)
                good = good && one.arcs[a] >= 0 && one.arcs[a] < 2 * one.edges && one.ends[one.arcs[a]] == j;
        require(good, "arcs must list the arcs that leave each node");
    }
    return g;
}

// Each example's entries must be a permutation of its nodes (or edges).
void check_order(std::span<const std::int64_t> offsets, std::span<const std::int32_t> order) {
    require(order.size() == static_cast<std::size_t>(offsets.back()), "an order needs one entry per node or edge");
    std::vector<bool> seen;
    for (std::size_t i = 1; i < offsets.size(); ++i) {
        const std::int64_t size = offsets[i] - offsets[i - 1];
        seen.assign(size, false);
        for (const std::int32_t place : order.subspan(offsets[i - 1], size)) {
            require(place >= 0 && place < size && !seen[place], "an order must be a permutation");
            seen[place] = true;
        }
    }
}

}  // namespace

void bind_cut(nb::module_& module) {
    module.def(
        "cut_argmax",
        [](In<std::int64_t> node_offsets, In<std::int64_t> edge_offsets, In<std::int32_t> ends,
           In<std::int64_t> start, In<std::int32_t> arcs, In<double> scores, std::int64_t augmentations_per_arc,
           Out<double> flow, Out<double> z, Out<double> value, Out<std::int8_t> status, int threads) {
            const CutGraphs g = checked_graphs(node_offsets, edge_offsets, ends, start, arcs);
            const auto parts = static_cast<std::size_t>(g.nodes() + g.edges());
            const auto examples = static_cast<std::size_t>(g.examples());
            require(scores.size() == parts && z.size() == parts, "scores and z need one entry per part");
            require(flow.size() == static_cast<std::size_t>(g.edges()), "flow needs one entry per edge");
            require(value.size() == examples && status.size() == examples, "one value and status per example");
            NoGil unlocked;
            cut::argmax(g, view(scores), augmentations_per_arc, view(flow), view(z), view(value), view(status),
                       threads);
        },
        nb::arg("node_offsets"), nb::arg("edge_offsets"), nb::arg("ends"), nb::arg("start"), nb::arg("arcs"),
        nb::arg("scores"), nb::arg("augmentations_per_arc"), nb::arg("flow"), nb::arg("z"), nb::arg("value"),
        nb::arg("status"), nb::arg("threads"));
    module.def(
        "cut_order",
        [](In<std::int64_t> node_offsets, In<std::int64_t> edge_offsets, In<std::int32_t> ends,
           In<std::int64_t> start, In<std::int32_t> arcs, Out<std::int32_t> order) {
            const CutGraphs g = checked_graphs(node_offsets, edge_offsets, ends, start, arcs);
            require(order.size() == static_cast<std::size_t>(g.nodes()), "order needs one entry per node");
            NoGil unlocked;
            cut::order(g, view(order));
        },
        nb::arg("node_offsets"), nb::arg("edge_offsets"), nb::arg("ends"), nb::arg("start"), nb::arg("arcs"),
        nb::arg("order"));
    module.def(
        "cut_project",
        [](In<std::int64_t> node_offsets, In<std::int64_t> edge_offsets, In<std::int32_t> ends,
           In<std::int64_t> start, In<std::int32_t> arcs, In<std::int32_t> node_order, In<std::int32_t> edge_order,
           In<double> point, double tol, bool newton,
           std::int64_t step_limit, Out<double> flow, Out<double> z, Out<double> value, Out<double> gap,
           Out<std::int8_t> status, int threads) {
            const CutGraphs g = checked_graphs(node_offsets, edge_offsets, ends, start, arcs);
            const auto parts = static_cast<std::size_t>(g.nodes() + g.edges());
            const auto examples = static_cast<std::size_t>(g.examples());
            check_order(g.node_offsets, view(node_order));
            check_order(g.edge_offsets, view(edge_order));
            require(point.size() == parts && z.size() == parts, "point and z need one entry per part");
            require(flow.size() == static_cast<std::size_t>(g.edges()), "flow needs one entry per edge");
            require(value.size() == examples && gap.size() == examples && status.size() == examples,
                    "one value, gap and status per example");
            NoGil unlocked;
            cut::project(g, view(node_order), view(edge_order), view(point), tol, newton, step_limit, view(flow),
                        view(z), view(value), view(gap), view(status), threads);
        },
        nb::arg("node_offsets"), nb::arg("edge_offsets"), nb::arg("ends"), nb::arg("start"), nb::arg("arcs"),
        nb::arg("node_order"), nb::arg("edge_order"), nb::arg("point"), nb::arg("tol"), nb::arg("newton"),
        nb::arg("step_limit"), nb::arg("flow"), nb::arg("z"), nb::arg("value"), nb::arg("gap"), nb::arg("status"),
        nb::arg("threads"));
}

}  // namespace maxmargin
