// Results whose size is known only at the end: a vector that a NumPy array takes over without a copy.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "maxmargin/base/growing.hpp"

namespace maxmargin {

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> owned(std::vector<T>&& values) {
    auto kept = std::make_unique<std::vector<T>>(std::move(values));
    T* data = kept->data();
    const std::size_t size = kept->size();
    nb::capsule owner(kept.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    kept.release();
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, owner);
}

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> owned(Growing<T>&& values) {
    values.shrink();
    auto kept = std::make_unique<Growing<T>>(std::move(values));
    T* data = kept->data();
    const std::size_t size = kept->size();
    nb::capsule owner(kept.get(), [](void* p) noexcept { delete static_cast<Growing<T>*>(p); });
    kept.release();
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, owner);
}

}  // namespace maxmargin
