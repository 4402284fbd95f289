#include <nanobind/stl/tuple.h>

#include <tuple>

#include "arrays.hpp"
#include "maxmargin/dependencies/trees.hpp"

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

}  // namespace

void bind_dependencies(nb::module_& module) {
    module.def("dependency_fault", &dependency_fault, "token_offsets"_array, "heads"_array, "single_root"_a,
               "projective"_a);
}

}  // namespace maxmargin
