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

// Checks of whole arrays have no branches, so that they become vectors.

// Whether offsets rise from 0 to `end`; equal neighbors are allowed.
template <class T>
bool rises_to(std::span<const T> offsets, std::size_t end) {
    bool good = !offsets.empty() && offsets.front() == 0 && static_cast<std::size_t>(offsets.back()) == end;
    for (std::size_t i = 1; i < offsets.size(); ++i) good &= offsets[i - 1] <= offsets[i];
    return good;
}

// Whether all numbers lie in first .. end - 1.
template <class T>
bool within(std::span<const T> numbers, std::int64_t first, std::int64_t end) {
    bool good = true;
    for (const T x : numbers) good &= first <= x && x < end;
    return good;
}

// Whether no number is NaN or infinite.
inline bool all_finite(std::span<const double> numbers) {
    double sum = 0.0;
    for (const double x : numbers) sum += 0.0 * x;
    return sum == 0.0;
}

// Whether all numbers lie in 0 .. n - 1 and are different.
template <class T>
bool distinct(std::span<const T> numbers, std::int64_t n) {
    std::vector<bool> seen(static_cast<std::size_t>(n), false);
    for (const T x : numbers) {
        if (x < 0 || x >= n || seen[x]) return false;
        seen[x] = true;
    }
    return true;
}

// Outputs of a batch with so many parts and examples, for each of the ranks.
inline void require_outputs(std::size_t n_parts, std::int64_t n_examples, const Out<double>& z,
                            const Out<double>& value, const Out<std::int8_t>& status, std::int64_t ranks = 1) {
    const auto k = static_cast<std::size_t>(ranks), n = k * static_cast<std::size_t>(n_examples);
    require(z.size() == k * n_parts && value.size() == n && status.size() == n, "outputs do not fit the batch");
}

using NoGil = nb::gil_scoped_release;

// The result of work(), done without the GIL.
template <class Work>
auto unlocked(Work&& work) {
    const NoGil release;
    return work();
}

// Each extension module has its own vector width.
inline void bind_simd(nb::module_& module) {
    module.def("_use_lanes", &simd::use_lanes, "wanted"_a,
               "For tests: sets the numbers per vector (2, 4, 8; 0: the machine's own) and returns those in use.");
}

}  // namespace maxmargin
