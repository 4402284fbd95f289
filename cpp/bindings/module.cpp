#include "arrays.hpp"

NB_MODULE(_kernels, module) {
    module.doc() = "Compiled kernels of maxmargin; use the Python classes around them.";
    maxmargin::bind_chain(module);
    maxmargin::bind_cut(module);
    maxmargin::bind_hull(module);
    maxmargin::bind_linear(module);
    maxmargin::bind_matching(module);
}
