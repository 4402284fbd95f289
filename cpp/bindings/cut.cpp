#include "arrays.hpp"

namespace maxmargin {

void bind_cut(nb::module_& module) { (void)module; }

}  // namespace maxmargin
