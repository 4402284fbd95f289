#include "arrays.hpp"
#include "maxmargin/simd.hpp"

NB_MODULE(_kernels, module) {
    module.doc() = "Compiled kernels of maxmargin; use the Python classes around them.";
    maxmargin::bind_chain(module);
    maxmargin::bind_cut(module);
    maxmargin::bind_hull(module);
    maxmargin::bind_linear(module);
    maxmargin::bind_matching(module);
    module.def("use_lanes", &maxmargin::simd::use_lanes, nanobind::arg("wanted"),
               "For tests: numbers per vector from now on (2, 4, 8; 0: the machine's own). Returns what is in use.");
}
