// log of sums of probabilities with the largest taken out, a vector at a time.
#pragma once

#include <cstdint>
#include <limits>

#include "maxmargin/base/simd.hpp"
#include "maxmargin/base/simd_exp.hpp"

namespace maxmargin::simd {

// log x for finite x >= 1 to within 1 ulp, and -inf for x = 0. With x = 2^e (1 + f), 1 + f between sqrt(1/2) and
// sqrt(2), s = f / (2 + f) and z = s^2,
//     log(1 + f) = 2 artanh s = f - (f^2/2 - s (f^2/2 + R)),   R = 2z/3 + 2z^2/5 + 2z^3/7 + ...
// where f, taken alone, is exact. R ends with z^10, which leaves 2e-17 of the result.
template <class Vec>
MM_INLINE Vec log_of_sum(const Vec& x) {
    constexpr std::uint64_t root_half = 0x3fe6a09e667f3bcdULL, two_to_52 = 0x4330000000000000ULL;
    const Bits<Vec> bits = __builtin_bit_cast(Bits<Vec>, x);
    const Bits<Vec> exponent = (bits - root_half) >> 52;
    const Vec e = __builtin_bit_cast(Vec, exponent | two_to_52) - 0x1p52;
    const Vec f = __builtin_bit_cast(Vec, bits - (exponent << 52)) - 1.0;
    const Vec s = f / (2.0 + f);
    const Vec z = s * s, z2 = z * z, z4 = z2 * z2;
    const Vec r12 = 2.0 / 3.0 + z * (2.0 / 5.0), r34 = 2.0 / 7.0 + z * (2.0 / 9.0);
    const Vec r56 = 2.0 / 11.0 + z * (2.0 / 13.0), r78 = 2.0 / 15.0 + z * (2.0 / 17.0);
    const Vec r90 = 2.0 / 19.0 + z * (2.0 / 21.0);
    const Vec r = z * ((r12 + z2 * r34) + z4 * ((r56 + z2 * r78) + z4 * r90));
    const Vec half = 0.5 * f * f;
    const Vec result = e * 0x1.62e42feep-1 + ((e * 0x1.a39ef35793c76p-33 - (half - s * (half + r))) + f);
    return x > 0.0 ? result : Vec{} - std::numeric_limits<double>::infinity();
}

}  // namespace maxmargin::simd
