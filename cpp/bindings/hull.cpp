#include "arrays.hpp"

namespace maxmargin {

void bind_hull(nb::module_& module) { (void)module; }

}  // namespace maxmargin
