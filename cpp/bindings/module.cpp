#include "arrays.hpp"
#include "maxmargin/simd.hpp"

NB_MODULE(_kernels, module) {
    module.doc() = "Compiled kernels of maxmargin; use the Python classes around them.";
    // Structures keep kernel objects, and may live in globals until the interpreter ends: that is no leak.
    nanobind::set_leak_warnings(false);
    maxmargin::bind_online(module);  // before the oracles of the structures
    maxmargin::bind_block_descent(module);
    maxmargin::bind_chain(module);
    maxmargin::bind_cut(module);
    maxmargin::bind_graph(module);
    maxmargin::bind_hull(module);
    maxmargin::bind_items(module);
    maxmargin::bind_linear(module);
    maxmargin::bind_linear_master(module);
    maxmargin::bind_link_features(module);
    maxmargin::bind_matching(module);
    maxmargin::bind_second_order(module);
    maxmargin::bind_simplex(module);
    maxmargin::bind_supported(module);
    maxmargin::bind_token_scan(module);
    maxmargin::bind_token_attributes(module);
    maxmargin::bind_translation(module);
    maxmargin::bind_string_table(module);
    maxmargin::bind_symmetrize(module);
    maxmargin::bind_tree(module);
    module.def("_use_lanes", &maxmargin::simd::use_lanes, nanobind::arg("wanted"),
               "For tests: numbers per vector from now on (2, 4, 8; 0: the machine's own). Returns what is in use.");
}
