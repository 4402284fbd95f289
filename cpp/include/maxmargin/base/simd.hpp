// Code for several machines in one module, in two ways, neither of which needs a flag for the whole build.
//
// MM_CLONES is for plain loops that the compiler turns into vectors by itself: it compiles a function for the portable
// baseline, AVX2 and AVX-512, and the loader picks one. Put it on a non-template function that holds the hot loop, so
// that everything called inside is inlined into each clone.
//
// MM_LEVELS is for loops written with vectors. They are templates over the vector, compiled for AVX-512, AVX2 and the
// baseline with vectors of 8, 4 and 2 numbers; the width is picked per call. (One vector type for all clones does not
// work: GCC lowers a vector that is wider than the machine's through memory, some fifty times slower.)
//
// Clones need a loader that picks functions when it starts (ifunc): that of the GNU C library. The sanitizer build
// turns both off, as sanitizers start after the loader has resolved clones, and MAXMARGIN_PORTABLE does; clang gets
// neither: it lacks clones for levels of x86-64, and which of its runtimes could tell the machine's level depends on
// the system. All widths are then compiled for the baseline.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(MAXMARGIN_NO_CLONES) && !defined(MAXMARGIN_PORTABLE)
#define MM_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#define MM_TARGET(architecture) __attribute__((target(architecture)))
#define MM_HAS_TARGETS 1
#else
#define MM_CLONES
#define MM_TARGET(architecture)
#define MM_HAS_TARGETS 0
#endif

#define MM_RESTRICT __restrict__
#define MM_INLINE inline __attribute__((always_inline))

// Defines name(widest, ...), which calls name_at<VecN>(...) with N = widest, compiled for a machine with such vectors.
// name_at and all it calls with vectors must be MM_INLINE and not lambdas, which are compiled for the baseline.
#define MM_LEVELS(name)                                                                 \
    template <class... Args>                                                            \
    inline auto name##_2(Args... args) {                                                \
        return name##_at<::maxmargin::simd::Vec2>(static_cast<Args&&>(args)...);        \
    }                                                                                   \
    template <class... Args>                                                            \
    MM_TARGET("arch=x86-64-v3")                                                         \
    inline auto name##_4(Args... args) {                                                \
        return name##_at<::maxmargin::simd::Vec4>(static_cast<Args&&>(args)...);        \
    }                                                                                   \
    template <class... Args>                                                            \
    MM_TARGET("arch=x86-64-v4")                                                         \
    inline auto name##_8(Args... args) {                                                \
        return name##_at<::maxmargin::simd::Vec8>(static_cast<Args&&>(args)...);        \
    }                                                                                   \
    template <class... Args>                                                            \
    inline auto name(int widest, Args&&... args) {                                      \
        using ::maxmargin::simd::Passed;                                                \
        if (widest == 8) return name##_8<Passed<Args>...>(std::forward<Args>(args)...); \
        if (widest == 4) return name##_4<Passed<Args>...>(std::forward<Args>(args)...); \
        return name##_2<Passed<Args>...>(std::forward<Args>(args)...);                  \
    }

namespace maxmargin::simd {

// How MM_LEVELS passes an argument: numbers and pointers that are not written to by value, so in registers.
template <class T>
using Passed = std::conditional_t<std::is_scalar_v<std::remove_reference_t<T>> &&
                                      (!std::is_lvalue_reference_v<T> || std::is_const_v<std::remove_reference_t<T>>),
                                  std::remove_cvref_t<T>, T&&>;

// Vectors pass between inlined functions only, so there is no calling convention to warn about.
#pragma GCC diagnostic ignored "-Wpsabi"

using Vec8 = double __attribute__((vector_size(64)));
using Vec4 = double __attribute__((vector_size(32)));
using Vec2 = double __attribute__((vector_size(16)));

template <class Vec>
inline constexpr std::int64_t lanes = sizeof(Vec) / sizeof(double);

inline int machine_lanes() {
#if MM_HAS_TARGETS
    return __builtin_cpu_supports("x86-64-v4") ? 8 : (__builtin_cpu_supports("x86-64-v3") ? 4 : 2);
#else
    return 2;
#endif
}

inline std::atomic<int> lanes_chosen{machine_lanes()};

// Numbers per vector in kernels called now. A kernel asks once per call and lays out its memory accordingly.
inline int lanes_in_use() { return lanes_chosen.load(std::memory_order_relaxed); }

// Numbers per vector in kernels called from now on: 2, 4 or 8, no more than the machine has (without targets all widths
// are compiled for the baseline, so all of them run). For tests of all widths; zero asks for the machine's own. Returns
// what is in use.
inline int use_lanes(int wanted) {
    const int most = machine_lanes();
    const int width = wanted <= 0 ? most : (wanted >= 8 ? 8 : (wanted >= 4 ? 4 : 2));
    lanes_chosen.store(MM_HAS_TARGETS ? std::min(width, most) : width);
    return lanes_in_use();
}

// Rows start anywhere: a copy becomes one unaligned load or store.
template <class Vec>
MM_INLINE Vec load(const double* p) {
    Vec value;
    __builtin_memcpy(&value, p, sizeof(Vec));
    return value;
}
template <class Vec>
MM_INLINE void store(double* p, const Vec& value) {
    __builtin_memcpy(p, &value, sizeof(Vec));
}

// The halves of a vector of numbers or of comparisons; of a pair, its two entries.
template <class Vec>
MM_INLINE auto lower_half(const Vec& v) {
    if constexpr (sizeof(Vec) == 64) {
        return __builtin_shufflevector(v, v, 0, 1, 2, 3);
    } else if constexpr (sizeof(Vec) == 32) {
        return __builtin_shufflevector(v, v, 0, 1);
    } else {
        return v[0];
    }
}
template <class Vec>
MM_INLINE auto upper_half(const Vec& v) {
    if constexpr (sizeof(Vec) == 64) {
        return __builtin_shufflevector(v, v, 4, 5, 6, 7);
    } else if constexpr (sizeof(Vec) == 32) {
        return __builtin_shufflevector(v, v, 2, 3);
    } else {
        return v[1];
    }
}
template <class Vec>
using Half = decltype(lower_half(Vec{}));

template <class Vec>
MM_INLINE double total(const Vec& v) {
    if constexpr (lanes<Vec> == 1) {
        return v;
    } else {
        return total<Half<Vec>>(lower_half(v) + upper_half(v));
    }
}

template <class Vec>
MM_INLINE Vec larger(const Vec& one, const Vec& two) {
    return one > two ? one : two;
}
template <class Vec>
MM_INLINE double largest(const Vec& v) {
    if constexpr (lanes<Vec> == 1) {
        return v;
    } else {
        return largest<Half<Vec>>(larger<Half<Vec>>(lower_half(v), upper_half(v)));
    }
}

// Whether a comparison of vectors holds in some lane.
template <class Mask>
MM_INLINE bool any(const Mask& mask) {
    if constexpr (sizeof(Mask) == sizeof(double)) {
        return mask != 0;
    } else {
        return any(lower_half(mask) | upper_half(mask));
    }
}

MM_INLINE void add_to(double* MM_RESTRICT to, const double* MM_RESTRICT from, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) to[j] += from[j];
}

// Whether some number is NaN or +inf, which scores must not be; -inf forbids. A last vector overlaps the one before.
template <class Vec>
MM_INLINE bool refused_at(const double* MM_RESTRICT x, std::int64_t n) {
    constexpr double most = std::numeric_limits<double>::max();
    if (n < lanes<Vec>) {
        bool bad = false;
        for (std::int64_t i = 0; i < n; ++i) bad |= !(x[i] <= most);
        return bad;
    }
    auto fine = load<Vec>(x) <= most;
    std::int64_t i = lanes<Vec>;
    for (; i + lanes<Vec> <= n; i += lanes<Vec>) fine &= load<Vec>(x + i) <= most;
    if (i < n) fine &= load<Vec>(x + n - lanes<Vec>) <= most;
    return any(~fine);
}
MM_LEVELS(refused)

}  // namespace maxmargin::simd
