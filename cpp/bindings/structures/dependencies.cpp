#include <nanobind/stl/tuple.h>

#include <tuple>

#include "arrays.hpp"
#include "maxmargin/dependencies/batch.hpp"
#include "maxmargin/dependencies/grandparents.hpp"
#include "maxmargin/dependencies/projective.hpp"
#include "maxmargin/dependencies/trees.hpp"
#include "structures/arcs.hpp"
#include "structures/deduction.hpp"

namespace maxmargin {

namespace {

// The first sentence whose heads are not a tree, its fault, and the token where it was found; (-1, 0, 0) if all are.
std::tuple<std::int64_t, int, std::int64_t> dependency_fault(In<std::int64_t> token_offsets, In<std::int64_t> heads,
                                                             bool single_root, bool projective) {
    const auto offsets = view(token_offsets);
    require(rises_to(offsets, heads.size()), "offsets must rise from 0 to the number of heads");
    dependencies::TreeCheck check;
    const std::int64_t n_examples = static_cast<std::int64_t>(offsets.size()) - 1;
    for (std::int64_t i = 0; i < n_examples; ++i) {
        const std::int64_t n = offsets[i + 1] - offsets[i];
        const std::int64_t* own = heads.data() + offsets[i];
        require(within(std::span(own, static_cast<std::size_t>(n)), 0, n + 1), "heads must lie in 0 .. n");
        const dependencies::FaultyToken found = check.run(own, n, single_root, projective);
        if (found.fault != dependencies::Fault::none) return {i, static_cast<int>(found.fault), found.token};
    }
    return {-1, 0, 0};
}

using dependencies::Extent;

// Triples that are listed, checked likewise; `extent` is 0 for none, 1 for all, 2 for those listed.
dependencies::Triples triples_of(std::span<const std::int64_t> tokens, std::int64_t extent,
                                 const In<std::int64_t>& offsets, const In<std::int32_t>& nodes, bool siblings) {
    checked_count("extent", extent, 0, 2);
    dependencies::Triples triples{static_cast<Extent>(extent), copied(offsets), copied(nodes)};
    if (extent != 2) return triples;
    require(triples.nodes.size() % 3 == 0, "a triple has three nodes");
    check_offsets(triples.offsets, tokens.size(), triples.nodes.size() / 3);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const std::int64_t n = tokens[i];
        std::int64_t before = -1;
        require(triples.offsets[i + 1] - triples.offsets[i] < most_numbered, "a sentence has too many triples");
        for (std::int64_t a = triples.offsets[i]; a < triples.offsets[i + 1]; ++a) {
            const std::int32_t* own = triples.nodes.data() + 3 * a;
            const std::int64_t head = own[siblings ? 0 : 1], other = own[siblings ? 1 : 0], modifier = own[2];
            require(head >= (siblings ? 0 : 1) && head <= n && other >= 0 && other <= n && modifier >= 1 &&
                        modifier <= n && head != modifier,
                    "a triple is out of range");
            const std::int64_t low = std::min(head, modifier), high = std::max(head, modifier);
            require(siblings ? other == head || (low < other && other < high) : other < low || other > high,
                    "a sibling must lie between head and modifier or be the head, a grandparent outside of them");
            const std::int64_t place =
                (modifier * (n + 1) + head) * (n + 1) + (siblings ? std::abs(other - head) : other);
            require(place > before, "triples must rise by modifier, head and third node");
            before = place;
        }
    }
    return triples;
}

template <class System>
void create(DeductionBatch<dependencies::Batch<System>>* self, In<std::int64_t> n_tokens, std::int64_t n_labels,
            bool single_root, In<std::int64_t> arc_offsets, In<std::int32_t> arcs, std::int64_t siblings,
            In<std::int64_t> sibling_offsets, In<std::int32_t> sibling_nodes, std::int64_t grandparents,
            In<std::int64_t> grandparent_offsets, In<std::int32_t> grandparent_nodes) {
    const auto tokens = view(n_tokens);
    check_sizes(tokens, n_labels);
    dependencies::Batch<System> batch(copied(n_tokens), n_labels, single_root, arcs_of(tokens, arc_offsets, arcs),
                                      triples_of(tokens, siblings, sibling_offsets, sibling_nodes, true),
                                      triples_of(tokens, grandparents, grandparent_offsets, grandparent_nodes, false));
    for (std::int64_t i = 0; i < batch.size(); ++i)
        require(batch[i].n_items() < most_numbered && batch[i].n_parts() < most_numbered,
                "a sentence is too long: it has too many parts or items");
    new (self) DeductionBatch<dependencies::Batch<System>>(std::move(batch));
}

template <class System>
void bind_trees(nb::module_& module, const char* name, const char* oracle) {
    bind_deduction<dependencies::Batch<System>>(module, name, oracle)
        .def("__init__", &create<System>, "n_tokens"_array, "n_labels"_a, "single_root"_a, "arc_offsets"_array,
             "arcs"_array, "siblings"_a, "sibling_offsets"_array, "sibling_nodes"_array, "grandparents"_a,
             "grandparent_offsets"_array, "grandparent_nodes"_array);
}

}  // namespace

void bind_dependencies(nb::module_& module) {
    module.def("dependency_fault", &dependency_fault, "token_offsets"_array, "heads"_array, "single_root"_a,
               "projective"_a);
    bind_trees<dependencies::FirstOrder>(module, "FirstOrderTreesBatch", "FirstOrderTreesOracle");
    bind_trees<dependencies::Siblings>(module, "SiblingTreesBatch", "SiblingTreesOracle");
    bind_trees<dependencies::Grandparents>(module, "GrandparentTreesBatch", "GrandparentTreesOracle");
}

}  // namespace maxmargin
