#include "arrays.hpp"

namespace maxmargin {

void bind_matching(nb::module_& module) { (void)module; }

}  // namespace maxmargin
