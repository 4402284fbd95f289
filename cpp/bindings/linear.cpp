#include "arrays.hpp"

namespace maxmargin {

void bind_linear(nb::module_& module) { (void)module; }

}  // namespace maxmargin
