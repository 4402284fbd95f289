// What both extension modules bind beside their kernels.
#pragma once

#include <nanobind/stl/optional.h>

#include <exception>
#include <new>
#include <optional>

#include "arrays.hpp"
#include "maxmargin/base/hashing.hpp"
#include "maxmargin/base/simd.hpp"

namespace maxmargin {

// Each module has its own secret of hashing and its own vector width.
inline void bind_common(nb::module_& module) {
    module.def("_use_lanes", &simd::use_lanes, "wanted"_a,
               "For tests: sets the numbers per vector (2, 4, 8; 0: the machine's own) and returns those in use.");
    module.def(
        "_use_hash_seed",
        [](std::optional<std::uint64_t> seed) {
            hashing::secret() = seed ? hashing::secret_of(*seed) : hashing::random_secret();
        },
        "seed"_a.none(), "For tests: tables made from now on hash by this seed; None: by a random secret.");
    nb::register_exception_translator([](const std::exception_ptr& p, void*) {
        try {
            std::rethrow_exception(p);
        } catch (const std::bad_alloc&) {
            PyErr_SetString(PyExc_MemoryError, "the sizes of the arguments need more memory than there is");
        }
    });
}

}  // namespace maxmargin
