#include <cmath>

#include "arrays.hpp"
#include "maxmargin/graph/clique_projection.hpp"

namespace maxmargin {

namespace {

using network::CliqueGraphs;

// Nodes, edges and cliques of associative networks, checked on construction; it owns copies that cannot change.
class CliqueBatch {
   public:
    CliqueBatch(const In<std::int64_t>& nodes, const In<std::int64_t>& edges, const In<std::int64_t>& cliques,
                const In<std::int64_t>& begin, const In<std::int32_t>& members)
        : nodes_(copied(nodes)), edges_(copied(edges)), cliques_(copied(cliques)), begin_(copied(begin)),
          members_(copied(members)) {
        const CliqueGraphs g = graphs();
        for (const auto& offsets : {g.nodes, g.edges, g.cliques})
            require(
                offsets.size() == g.nodes.size() && rises_from_zero(offsets) && offsets.back() < std::int64_t{1} << 40,
                "offsets must rise from 0 to less than 2^40, one entry more than there are examples");
        require(g.begin.size() == static_cast<std::size_t>(g.first_group(g.examples())) + 1 &&
                    rises_to(g.begin, g.members.size()),
                "begin needs one entry more than there are edges and cliques, rising to the number of members");
        for (std::int64_t i = 0; i < g.examples(); ++i) {
            const std::int64_t first = g.begin[g.first_group(i)], last = g.begin[g.first_group(i + 1)];
            const std::int64_t own = g.nodes[i + 1] - g.nodes[i];
            require(own < (1 << 30), "an example has too many nodes");
            require(within(g.members.subspan(first, last - first), 0, own), "a member is not a node of its example");
        }
    }
    CliqueGraphs graphs() const { return {nodes_, edges_, cliques_, begin_, members_}; }

   private:
    std::vector<std::int64_t> nodes_, edges_, cliques_, begin_;
    std::vector<std::int32_t> members_;
};

void project(const CliqueBatch& batch, std::int64_t labels, In<double> point, double tol, int step_limit,
             Out<double> multipliers, Out<double> z, Out<double> value, Out<double> gap, Out<std::int8_t> status,
             Threads threads) {
    const CliqueGraphs g = batch.graphs();
    require(labels >= 1 && labels <= 1 << 12, "labels must be between 1 and 4096");
    require(tol >= 0 && std::isfinite(tol), "tol must be finite and not negative");
    checked_count("step_limit", step_limit, 0, most_steps);
    const auto parts = static_cast<std::size_t>(g.parts(labels)), examples = static_cast<std::size_t>(g.examples());
    require(point.size() == parts && z.size() == parts, "point and z need one entry per part");
    require(multipliers.size() == g.members.size() * static_cast<std::size_t>(labels),
            "multipliers need one entry per member and label");
    require(value.size() == examples && gap.size() == examples && status.size() == examples,
            "one value, gap and status per example");
    const NoGil unlocked;
    network::project_cliques(g, static_cast<std::int32_t>(labels), view(point), tol, step_limit, view(multipliers),
                             view(z), view(value), view(gap), view(status), threads);
}

}  // namespace

void bind_cliques(nb::module_& module) {
    using Offsets = In<std::int64_t>;
    nb::class_<CliqueBatch>(module, "CliqueBatch")
        .def(nb::init<const Offsets&, const Offsets&, const Offsets&, const Offsets&, const In<std::int32_t>&>(),
             "node_offsets"_array, "edge_offsets"_array, "clique_offsets"_array, "begin"_array, "members"_array);
    module.def("clique_project", apart(&project), "batch"_a, "labels"_a, "point"_array, "tol"_a, "step_limit"_a,
               "multipliers"_array, "z"_array, "value"_array, "gap"_array, "status"_array, "threads"_a);
}

}  // namespace maxmargin
