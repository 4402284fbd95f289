// exp of non-positive numbers, a vector at a time, for sums of probabilities with the largest exponent taken out.
#pragma once

#include <cstdint>

#include "maxmargin/base/simd.hpp"

namespace maxmargin::simd {

// Unsigned integers of the same shape. (GCC drops a vector size that depends on a template's parameter.)
template <class Vec>
struct BitsOf;
template <>
struct BitsOf<double> {
    using type = std::uint64_t;
};
template <>
struct BitsOf<Vec8> {
    using type = std::uint64_t __attribute__((vector_size(64)));
};
template <>
struct BitsOf<Vec4> {
    using type = std::uint64_t __attribute__((vector_size(32)));
};
template <>
struct BitsOf<Vec2> {
    using type = std::uint64_t __attribute__((vector_size(16)));
};
template <class Vec>
using Bits = typename BitsOf<Vec>::type;

// 2^bias exp(x) for x <= 0 to within 2 ulp, the bias between 0 and 700; treated as zero where it is below 3e-308, about
// the least number of full precision, so also for -inf. With n = round(x / ln 2) and r = x - n ln 2 (ln 2
// in two parts, the first of 32 bits, so that n times it is exact) exp(x) = 2^n (1 + r + r^2 q(r)); q interpolates
// (e^r - 1 - r) / r^2 in ten Chebyshev nodes of |r| <= ln(2) / 2, which leaves a relative error of 2e-17.
template <class Vec, int bias = 0>
MM_INLINE Vec exp_negative(const Vec& x) {
    constexpr double least = -708.0 - bias * 0x1.62e42fefa39efp-1;
    constexpr double shift = 0x1.8p52;  // adding it rounds to an integer, which stands in the lowest bits of the sum
    const Vec shifted = x * 0x1.71547652b82fep+0 + shift;
    const Vec n = shifted - shift;
    const Vec r = (x - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
    const Vec r2 = r * r, r4 = r2 * r2;
    const Vec q01 = 0x1.0000000000001p-1 + r * 0x1.5555555555556p-3;
    const Vec q23 = 0x1.5555555553d4fp-5 + r * 0x1.11111111109adp-7;
    const Vec q45 = 0x1.6c16c17893833p-10 + r * 0x1.a01a01a7c8d47p-13;
    const Vec q67 = 0x1.a019b8ef67c6cp-16 + r * 0x1.71de0d9c145d0p-19;
    const Vec q89 = 0x1.2891a8c1d838dp-22 + r * 0x1.af38d53857513p-26;
    const Vec q = (q01 + r2 * q23) + r4 * ((q45 + r2 * q67) + r4 * q89);
    const Vec p = 1.0 + (r + r2 * q);
    const Bits<Vec> exponent = (__builtin_bit_cast(Bits<Vec>, shifted) + static_cast<std::uint64_t>(bias)) << 52;
    const Vec scaled = __builtin_bit_cast(Vec, __builtin_bit_cast(Bits<Vec>, p) + exponent);
    return x >= least ? scaled : Vec{};
}

}  // namespace maxmargin::simd
