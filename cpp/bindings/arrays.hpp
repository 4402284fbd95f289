// The array types that bindings take: C-contiguous NumPy arrays on the CPU, never converted or copied on the way in.
// The type alone does not say so: every array argument of a binding is declared with .noconvert(), or else an output of
// another type would be written into a copy that nobody sees.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>
#include <vector>

namespace maxmargin {

namespace nb = nanobind;

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

void bind_block_descent(nb::module_& module);
void bind_chain(nb::module_& module);
void bind_cut(nb::module_& module);
void bind_graph(nb::module_& module);
void bind_matching(nb::module_& module);
void bind_hull(nb::module_& module);
void bind_items(nb::module_& module);
void bind_linear(nb::module_& module);
void bind_linear_master(nb::module_& module);
void bind_link_features(nb::module_& module);
void bind_online(nb::module_& module);
void bind_second_order(nb::module_& module);
void bind_simplex(nb::module_& module);
void bind_token_scan(nb::module_& module);
void bind_translation(nb::module_& module);
void bind_supported(nb::module_& module);
void bind_token_attributes(nb::module_& module);
void bind_string_table(nb::module_& module);
void bind_symmetrize(nb::module_& module);
void bind_tree(nb::module_& module);

}  // namespace maxmargin
