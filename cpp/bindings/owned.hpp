// Results whose size is known only at the end: a vector that a NumPy array takes over without a copy.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "arrays.hpp"

namespace maxmargin {

template <class Values>
auto owned(Values values) {
    using T = std::remove_pointer_t<decltype(values.data())>;
    if constexpr (requires { values.shrink(); }) values.shrink();
    auto kept = std::make_unique<Values>(std::move(values));
    T* data = kept->data();
    const std::size_t size = kept->size();
    nb::capsule owner(kept.get(), [](void* p) noexcept { delete static_cast<Values*>(p); });
    kept.release();
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, owner);
}

}  // namespace maxmargin
