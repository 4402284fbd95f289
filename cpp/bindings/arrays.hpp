// The array types that bindings take: C-contiguous NumPy arrays on the CPU, never converted or copied on the way in.
// The type alone does not prevent conversion, so every array argument is declared as "name"_array; otherwise an output
// of another type would be written into a copy that nobody sees.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>
#include <vector>

#include "maxmargin/base/simd.hpp"

namespace maxmargin {

namespace nb = nanobind;
using namespace nb::literals;

inline auto operator""_array(const char* name, std::size_t) { return nb::arg(name).noconvert(); }

template <class T>
using In = nb::ndarray<const T, nb::numpy, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::numpy, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const T> view(const In<T>& array) {
    return {array.data(), array.size()};
}
template <class T>
std::span<T> view(Out<T>& array) {
    return {array.data(), array.size()};
}

// For objects that outlive a call and must not see later changes of an array.
template <class T>
std::vector<T> copied(const In<T>& array) {
    return {array.data(), array.data() + array.size()};
}

// Bindings check lengths with this before they hand spans to a kernel: a kernel never reads past what it was given.
inline void require(bool condition, const char* message) {
    if (!condition) throw nb::value_error(message);
}

using NoGil = nb::gil_scoped_release;

// Each extension module has its own vector width.
inline void bind_simd(nb::module_& module) {
    module.def("_use_lanes", &simd::use_lanes, "wanted"_a,
               "For tests: sets the numbers per vector (2, 4, 8; 0: the machine's own) and returns those in use.");
}

}  // namespace maxmargin
