// The weights player of the master problems: its best response w to g = sum_j q_j d_j, and what that is worth,
//
//     R(g) = max_{w in W}  -w'g - price ||w||_1 - 1/(2c) ||w - center||^2  (+ a constant)
//
// over weights with signs, in a ball ||w|| <= radius or ||w||_1 <= l1_radius. The center is zero for a ridge penalty
// 1/(2c) ||w||^2 alone; else the term is that of a proximal step, or the sum of both, which is of this form too. With
// v = center / c - g and u = v shrunk toward zero
// by price + extra, at signed coordinates not below zero, w = theta u: extra is zero inside the L1 ball and what brings
// c ||u||_1 to l1_radius beyond, theta = min(c, radius / ||u||). R has the generalized Hessian theta (I_A - n n'), A
// the coordinates where u is not zero, n = u / ||u|| where the L2 ball is active, the signs of u over sqrt |A| where
// the L1 ball is, and otherwise zero. It is never above c.
//
// Coordinates after the weights hold the masses of quadratic slack: R adds mass_c / 2 ||g||^2 there.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "maxmargin/base/simd.hpp"

namespace maxmargin::simplex {

// sum_k value[k] x[index[k]]
static MM_CLONES double gathered(const std::int32_t* MM_RESTRICT index, const double* MM_RESTRICT value, std::int64_t n,
                                 const double* MM_RESTRICT x) {
    double s[8] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    std::int64_t k = 0;
    for (; k + 8 <= n; k += 8)
        for (int t = 0; t < 8; ++t) s[t] += value[k + t] * x[index[k + t]];
    for (; k < n; ++k) s[0] += value[k] * x[index[k]];
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

struct WeightSet {
    double radius = std::numeric_limits<double>::infinity();  // of the L2 ball
    double price = 0.0;                                       // of ||w||_1
    double l1_radius = std::numeric_limits<double>::infinity();
    std::vector<bool> sign;  // empty, or one entry per weight
};

class Response {
   public:
    Response(std::int64_t n_weights, std::int64_t n_masses, double c, WeightSet set)
        : n_weights_(n_weights), n_coordinates_(n_weights + n_masses), c_(c), mass_c_(c), set_(std::move(set)),
          g_(static_cast<std::size_t>(n_coordinates_), 0.0) {
        if (!plain()) u_.assign(static_cast<std::size_t>(n_weights_), 0.0);
    }

    std::int64_t n_weights() const { return n_weights_; }
    std::int64_t n_coordinates() const { return n_coordinates_; }
    double c() const { return c_; }
    double mass_c() const { return mass_c_; }
    // Whether R is quadratic.
    bool plain() const { return set_.sign.empty() && !ball() && set_.price == 0.0 && !l1_ball() && offset_.empty(); }
    bool ball() const { return std::isfinite(set_.radius); }
    bool l1_ball() const { return std::isfinite(set_.l1_radius); }
    // Whether the Hessian counts a weight's coordinate at some g and not at others.
    bool bends(std::int64_t k) const {
        return k < n_weights_ && (set_.price > 0.0 || l1_ball() || (!set_.sign.empty() && set_.sign[k]));
    }
    bool counts(std::int64_t k) const { return u_[k] != 0.0; }
    std::span<const double> g() const { return g_; }

    // The term of a proximal step from here on, 1/(2 reach) ||w - center||^2 besides a ridge penalty 1/(2C) ||w||^2.
    void recenter(std::span<const double> center, double reach, double ridge_c) {
        c_ = 1.0 / (1.0 / reach + 1.0 / ridge_c);
        offset_.assign(center.begin(), center.end());
        for (double& one : offset_) one /= reach;
        u_.resize(static_cast<std::size_t>(n_weights_));
        restore();
    }

    double theta() const { return ball() ? theta_at(squared_) : c_; }
    void weights(std::span<double> out) const {
        const double by = theta();
        for (std::int64_t k = 0; k < n_weights_; ++k) out[k] = by * (plain() ? -g_[k] : u_[k]);
    }

    // Sums over entries of a point: those of weights times u, those of masses times -g.
    double along(const std::int32_t* index, const double* value, std::int64_t n) const {
        return plain() ? -gathered(index, value, n, g_.data()) : gathered(index, value, n, u_.data());
    }
    double along_masses(const std::int32_t* index, const double* value, std::int64_t n) const {
        return -gathered(index, value, n, g_.data());
    }
    // The sum over entries of weights times n of the Hessian; only where `curbed`.
    bool curbed() const { return theta() < c_ || extra_ > 0.0; }
    double across(const std::int32_t* index, const double* value, std::int64_t n) const {
        if (extra_ == 0.0) return along(index, value, n) / std::sqrt(squared_);
        double sum = 0.0;
        for (std::int64_t k = 0; k < n; ++k)
            if (const double u = u_[index[k]]; u != 0.0) sum += u > 0.0 ? value[k] : -value[k];
        return active_ > 0 ? sum / std::sqrt(static_cast<double>(active_)) : 0.0;
    }

    // g += by d; after some of these `settle`.
    void shift(const std::int32_t* index, const double* value, std::int64_t n, double by) {
        const bool linear = plain();
        for (std::int64_t k = 0; k < n; ++k) {
            const std::int32_t at = index[k];
            g_[at] += by * value[k];
            if (linear || at >= n_weights_) continue;
            const double u = shrunk(at, g_[at], extra_), old = u_[at];
            u_[at] = u;
            squared_ += u * u - old * old;
        }
    }
    void settle() {
        if (l1_ball()) restore();
    }
    void clear() { std::fill(g_.begin(), g_.end(), 0.0); }
    void add(const std::int32_t* index, const double* value, std::int64_t n, double by) {
        for (std::int64_t k = 0; k < n; ++k) g_[index[k]] += by * value[k];
    }
    void move(std::span<const double> dg, double by) {
        for (std::int64_t k = 0; k < n_coordinates_; ++k) g_[k] += by * dg[k];
        restore();
    }
    void restore() {  // what is derived from g
        if (plain()) return;
        extra_ = threshold(g_.data());
        squared_ = 0.0;
        active_ = 0;
        for (std::int64_t k = 0; k < n_weights_; ++k) {
            u_[k] = shrunk(k, g_[k], extra_);
            squared_ += u_[k] * u_[k];
            active_ += u_[k] != 0.0;
        }
    }

    // By how much R rises above the quadratic of curvature `maximal` along a step of g, given at some coordinates of
    // weights, with L2 balls; both have the slope of R. `step` is zero afterwards.
    double curvature_error(std::span<const std::int32_t> touched, double* step, double maximal) const {
        double squared = squared_, linear = 0.0, length = 0.0;
        for (const std::int32_t at : touched) {
            const double by = step[at], old = u_[at], now = shrunk(at, g_[at] + by, extra_);
            step[at] = 0.0;  // also what was canceled and listed twice
            squared += now * now - old * old;
            linear += old * by;
            length += by * by;
        }
        const auto value = [&](double s) {
            s = std::max(s, 0.0);
            const double radius = set_.radius;
            return c_ * std::sqrt(s) > radius ? radius * std::sqrt(s) - 0.5 * radius * radius / c_ : 0.5 * c_ * s;
        };
        return value(squared) - value(squared_) + theta() * linear - 0.5 * maximal * length;
    }

    // How far to go along dg, at most 1: where the derivative of R(g + t dg) + t linear, which never falls, is zero.
    // Zero where there is no descent.
    double search(std::span<const double> dg, double linear) const {
        std::vector<double> at_t(l1_ball() ? static_cast<std::size_t>(n_weights_) : 0);
        const auto derivative = [&](double t) {
            double squared = 0.0, product = 0.0, masses = 0.0, extra = 0.0;
            if (l1_ball()) {
                for (std::int64_t k = 0; k < n_weights_; ++k) at_t[k] = g_[k] + t * dg[k];
                extra = threshold(at_t.data());
            }
            for (std::int64_t k = 0; k < n_weights_; ++k) {
                const double u = shrunk(k, g_[k] + t * dg[k], extra);
                squared += u * u;
                product += u * dg[k];
            }
            for (std::int64_t k = n_weights_; k < n_coordinates_; ++k) masses += (g_[k] + t * dg[k]) * dg[k];
            return linear - (ball() ? theta_at(squared) : c_) * product + mass_c_ * masses;
        };
        double low = 0.0, at_low = derivative(0.0), high = 1.0, at_high = derivative(1.0), t = 1.0;
        if (!(at_low < 0.0)) return 0.0;
        const double first = at_low;
        for (int i = 0; i < 60 && at_high > 0.0; ++i) {
            t = i % 3 == 2 ? 0.5 * (low + high) : low + (high - low) * at_low / (at_low - at_high);
            if (!(t > low && t < high)) break;
            const double at = derivative(t);
            if (std::abs(at) <= -1e-10 * first || high - low < 1e-14) break;
            if (at < 0.0) {
                low = t, at_low = at;
            } else {
                high = t, at_high = at;
            }
        }
        return t;
    }

   private:
    std::int64_t n_weights_, n_coordinates_;
    double c_, mass_c_;
    WeightSet set_;
    std::vector<double> offset_;  // center / c, empty for zero
    std::vector<double> g_;
    std::vector<double> u_;  // one entry per weight, empty where R is quadratic
    double squared_ = 0.0;   // ||u||^2
    double extra_ = 0.0;
    std::int64_t active_ = 0;  // how many entries of u are not zero, when extra was found

    double theta_at(double squared) const {
        const double length = std::sqrt(std::max(squared, 0.0));
        return c_ * length > set_.radius ? set_.radius / length : c_;
    }
    double pull(std::int64_t k, double g) const {  // v, at signed coordinates not below zero
        const double v = (offset_.empty() ? 0.0 : offset_[k]) - g;
        return !set_.sign.empty() && set_.sign[k] ? std::max(0.0, v) : v;
    }
    double shrunk(std::int64_t k, double g, double extra) const {
        const double v = pull(k, g), by = set_.price + extra;
        return by == 0.0 ? v : std::copysign(std::max(std::abs(v) - by, 0.0), v);
    }
    // extra at g: zero of a convex falling function, piecewise linear, by Newton's method from the left.
    double threshold(const double* g) const {
        if (!l1_ball()) return 0.0;
        const double most = set_.l1_radius / c_;
        double extra = 0.0;
        for (int i = 0; i < 100; ++i) {
            double excess = -most;
            std::int64_t active = 0;
            for (std::int64_t k = 0; k < n_weights_; ++k) {
                const double over = std::abs(pull(k, g[k])) - set_.price - extra;
                if (over > 0.0) excess += over, ++active;
            }
            if (!(excess > 0.0) || active == 0) break;
            const double next = extra + excess / static_cast<double>(active);
            if (next == extra) break;
            extra = next;
        }
        return extra;
    }
};

}  // namespace maxmargin::simplex
