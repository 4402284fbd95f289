#include "arrays.hpp"

namespace maxmargin {

void bind_chain(nb::module_& module) { (void)module; }

}  // namespace maxmargin
