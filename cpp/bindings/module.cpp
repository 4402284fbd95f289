#include "common.hpp"

namespace maxmargin {
void bind_arborescence(nb::module_& module);
void bind_block_frank_wolfe(nb::module_& module);
void bind_candidates(nb::module_& module);
void bind_chain(nb::module_& module);
void bind_cliques(nb::module_& module);
void bind_cut(nb::module_& module);
void bind_dependencies(nb::module_& module);
void bind_edits(nb::module_& module);
void bind_grammar(nb::module_& module);
void bind_graph(nb::module_& module);
void bind_hull(nb::module_& module);
void bind_lattice(nb::module_& module);
void bind_linear(nb::module_& module);
void bind_linear_master(nb::module_& module);
void bind_matching(nb::module_& module);
void bind_online(nb::module_& module);
void bind_pairing(nb::module_& module);
void bind_second_order(nb::module_& module);
void bind_segments(nb::module_& module);
void bind_simplex(nb::module_& module);
void bind_supported(nb::module_& module);
void bind_tree(nb::module_& module);
void bind_dependency_features(nb::module_& module);
}  // namespace maxmargin

NB_MODULE(_kernels, module) {
    module.doc() = "Compiled kernels of maxmargin; use the Python classes around them.";
    // Structures keep kernel objects and may live in globals until the interpreter exits; that is not a leak.
    nanobind::set_leak_warnings(false);
    maxmargin::bind_online(module);  // defines the base class of the structures' oracles
    maxmargin::bind_arborescence(module);
    maxmargin::bind_block_frank_wolfe(module);
    maxmargin::bind_candidates(module);
    maxmargin::bind_chain(module);
    maxmargin::bind_cliques(module);
    maxmargin::bind_cut(module);
    maxmargin::bind_dependencies(module);
    maxmargin::bind_edits(module);
    maxmargin::bind_grammar(module);
    maxmargin::bind_graph(module);
    maxmargin::bind_hull(module);
    maxmargin::bind_lattice(module);
    maxmargin::bind_linear(module);
    maxmargin::bind_linear_master(module);
    maxmargin::bind_matching(module);
    maxmargin::bind_pairing(module);
    maxmargin::bind_second_order(module);
    maxmargin::bind_segments(module);
    maxmargin::bind_simplex(module);
    maxmargin::bind_supported(module);
    maxmargin::bind_tree(module);
    maxmargin::bind_dependency_features(module);
    maxmargin::bind_common(module);
}
