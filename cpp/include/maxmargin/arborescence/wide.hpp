// Numbers of double precision whose exponents do not overflow: sums of products of probabilities at any scale.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace maxmargin::arborescence {

// mantissa 2^exponent, the mantissa 0 or of size 1/2 to 1.
class Wide {
   public:
    Wide(double x = 0.0) : Wide(x, 0) {}
    // exp(x); 0 for -inf.
    static Wide exp(double x) {
        if (x == -std::numeric_limits<double>::infinity()) return {};
        constexpr double log2 = 0x1.62e42fefa39efp-1;
        const double whole = std::floor(x / log2);
        // The remainder in two parts of log 2, the first of 32 bits.
        const double rest = (x - whole * 0x1.62e42feep-1) - whole * 0x1.a39ef35793c76p-33;
        return {std::exp(rest), static_cast<std::int64_t>(whole)};
    }
    double log() const { return std::log(mantissa_) + static_cast<double>(exponent_) * 0x1.62e42fefa39efp-1; }
    explicit operator double() const {
        if (exponent_ < -1100) return 0.0;
        return std::ldexp(mantissa_, static_cast<int>(exponent_ < 1100 ? exponent_ : 1100));
    }

    friend Wide operator+(const Wide& a, const Wide& b) {
        if (a.mantissa_ == 0.0) return b;
        if (b.mantissa_ == 0.0) return a;
        const std::int64_t apart = a.exponent_ - b.exponent_;
        if (apart >= 0)
            return apart > 60 ? a : Wide(a.mantissa_ + std::ldexp(b.mantissa_, -static_cast<int>(apart)), a.exponent_);
        return apart < -60 ? b : Wide(b.mantissa_ + std::ldexp(a.mantissa_, static_cast<int>(apart)), b.exponent_);
    }
    friend Wide operator-(const Wide& a, const Wide& b) {
        Wide negative = b;
        negative.mantissa_ = -b.mantissa_;
        return a + negative;
    }
    friend Wide operator*(const Wide& a, const Wide& b) {
        return {a.mantissa_ * b.mantissa_, a.exponent_ + b.exponent_};
    }
    friend Wide operator/(const Wide& a, const Wide& b) {
        return {a.mantissa_ / b.mantissa_, a.exponent_ - b.exponent_};
    }
    Wide& operator+=(const Wide& b) { return *this = *this + b; }
    bool positive() const { return mantissa_ > 0.0; }

   private:
    Wide(double x, std::int64_t exponent) {
        int own = 0;
        mantissa_ = std::frexp(x, &own);
        exponent_ = mantissa_ == 0.0 ? 0 : exponent + own;
    }

    double mantissa_;
    std::int64_t exponent_;
};

}  // namespace maxmargin::arborescence
