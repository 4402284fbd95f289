// Vectors of single precision, as long as those of base/simd.hpp: for kernels that MM_LEVELS compiles.
#pragma once

#include <cstdint>
#include <type_traits>

#include "maxmargin/base/simd.hpp"

namespace maxmargin::simd {

using Single16 = float __attribute__((vector_size(64)));
using Single8 = float __attribute__((vector_size(32)));
using Single4 = float __attribute__((vector_size(16)));
template <class Vec>
using Single = std::conditional_t<sizeof(Vec) == 64, Single16, std::conditional_t<sizeof(Vec) == 32, Single8, Single4>>;
template <class Vec>
inline constexpr std::int64_t single_lanes = sizeof(Vec) / sizeof(float);

template <class Vec>
MM_INLINE Vec load(const float* p) {
    Vec value;
    __builtin_memcpy(&value, p, sizeof(Vec));
    return value;
}
template <class Vec>
MM_INLINE void store(float* p, const Vec& value) {
    __builtin_memcpy(p, &value, sizeof(Vec));
}
template <class Vec>
MM_INLINE float single_total(const Vec& v) {
    if constexpr (sizeof(Vec) == 64) {
        return single_total<Single8>(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                                     __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
    } else if constexpr (sizeof(Vec) == 32) {
        return single_total<Single4>(__builtin_shufflevector(v, v, 0, 1, 2, 3) +
                                     __builtin_shufflevector(v, v, 4, 5, 6, 7));
    } else {
        return (v[0] + v[2]) + (v[1] + v[3]);
    }
}

}  // namespace maxmargin::simd
