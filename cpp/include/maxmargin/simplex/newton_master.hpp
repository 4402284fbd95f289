// Newton's method on a smoothed linear program over a working set of rows with a proximal term,
//
//   min_w  sum_k price |w_k| + mu / 2 (w_k - center_k)^2 + sum_i M_i(w),      w within [lower, inf), lower 0 or -inf,
//   M_i(w) = max_{lambda >= 0, sum_{r of i} lambda_r <= 1}  sum_r lambda_r (a_r'w + b_r) - nu / 2 (lambda_r -
//   from_r)^2.
//
// M_i is the largest of the rows' values and zero, smoothed: the maximum is attained at the projection of from + (A w +
// b) / nu, which is also the derivative by those values, and piecewise linear in w. Its derivative on the rows with
// multiplier, centered where these sum to 1, over nu, gives the generalized Hessian, a matrix of the weights' size.
// Each step minimizes the quadratic model with the absolute values by coordinate descent, then searches toward there.
// Near a solution steps are few and leave next to nothing, so that A'lambda keeps to the bounds that duality demands of
// it, |A'lambda| <= price, as closely as is asked for; coordinate ascent on the multipliers does not get there.
//
// Cost of a step: two products with A, the non-zeros of the rows with multiplier times the weights, and sweeps over the
// Hessian. Rows of an example are adjacent.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "maxmargin/base/simd.hpp"
#include "maxmargin/simplex/proximal_master.hpp"

namespace maxmargin::newton_master {

using proximal_master::Program;

// to += x from
static MM_CLONES void add_scaled(std::int64_t n, double x, const double* MM_RESTRICT from, double* MM_RESTRICT to) {
    for (std::int64_t k = 0; k < n; ++k) to[k] += x * from[k];
}

struct Outcome {
    double left;         // the largest derivative that is not zero
    std::int64_t steps;  // Newton steps taken
};

class Minimization {
   public:
    // `from` holds the multipliers around which the maxima are smoothed, `lambda` receives the new ones.
    Minimization(const Program& program, double nu, std::span<const double> from, std::span<double> w,
                 std::span<double> lambda)
        : p_(program), nu_(nu), from_(from), w_(w), lambda_(lambda), n_(static_cast<std::int64_t>(w.size())),
          values_(lambda.size()), along_(lambda.size()), ahead_(lambda.size()), g_(w.size()), d_(w.size()),
          moved_(w.size()), product_(w.size()), hessian_(w.size() * w.size()) {}

    // Steps until no derivative is above `aim`, at most `most`.
    Outcome run(double aim, std::int64_t most) {
        for (std::size_t r = 0; r < values_.size(); ++r) values_[r] = p_.value(static_cast<std::int32_t>(r), w_.data());
        double objective = smoothed(values_, 0.0, lambda_.data()) + penalty(w_.data());
        Outcome outcome{0.0, 0};
        for (;; ++outcome.steps) {
            gradient();
            outcome.left = violation();
            if (!(outcome.left > aim) || outcome.steps >= most) return outcome;
            hessian();
            descend(CLOSER * outcome.left);
            const double before = objective;
            objective = search(objective);
            if (!(objective < before)) return outcome;
        }
    }

   private:
    static constexpr double CLOSER = 0.01;  // how closely the quadratic model is minimized, as a share of what is left
    static constexpr int SWEEPS = 300;
    static constexpr int HALVINGS = 30;

    const Program& p_;
    double nu_;
    std::span<const double> from_;
    std::span<double> w_, lambda_;
    std::int64_t n_;
    std::vector<double> values_, along_, ahead_, g_, d_, moved_, product_, hessian_;
    std::vector<double> scatter_, mean_;
    std::vector<std::int32_t> active_;

    double penalty(const double* w) const {
        double sum = 0.0;
        for (std::int64_t k = 0; k < n_; ++k) {
            const double from = w[k] - p_.center[k];
            sum += p_.price * std::abs(w[k]) + 0.5 * p_.mu[k] * from * from;
        }
        return sum;
    }

    // sum_i M_i for the rows' values + step along_; the multipliers of the maxima.
    double smoothed(const std::vector<double>& values, double step, double* out) const {
        double total = 0.0;
        for (std::size_t i = 0; i + 1 < p_.first.size(); ++i) {
            const std::int32_t first = p_.first[i], last = p_.first[i + 1];
            double sum = 0.0, tau = 0.0;
            for (std::int32_t r = first; r < last; ++r) {
                out[r] = from_[r] + (values[r] + step * along_[r]) / nu_;
                sum += std::max(out[r], 0.0);
            }
            if (sum > 1.0) {  // the threshold rises until what is above it, less it, sums to 1
                double before = -1.0;
                while (tau > before) {
                    before = tau;
                    double above = 0.0;
                    std::int32_t count = 0;
                    for (std::int32_t r = first; r < last; ++r)
                        if (out[r] > tau) above += out[r], ++count;
                    if (count == 0) break;
                    tau = std::max(tau, (above - 1.0) / count);
                }
            }
            for (std::int32_t r = first; r < last; ++r) {
                out[r] = std::max(out[r] - tau, 0.0);
                const double off = out[r] - from_[r];
                total += out[r] * (values[r] + step * along_[r]) - 0.5 * nu_ * off * off;
            }
        }
        return total;
    }

    void gradient() {  // of all but the absolute values
        for (std::int64_t k = 0; k < n_; ++k) g_[k] = p_.mu[k] * (w_[k] - p_.center[k]);
        for (std::size_t r = 0; r < lambda_.size(); ++r) {
            if (lambda_[r] == 0.0) continue;
            for (std::int32_t e = p_.starts[r]; e < p_.starts[r + 1]; ++e) g_[p_.at[e]] += lambda_[r] * p_.values[e];
        }
    }
    double violation() const {
        double most = 0.0;
        for (std::int64_t k = 0; k < n_; ++k) {
            double one = w_[k] > 0.0   ? std::abs(g_[k] + p_.price)
                         : w_[k] < 0.0 ? std::abs(g_[k] - p_.price)
                                       : (p_.lower[k] < 0.0 ? std::abs(g_[k]) : -g_[k]) - p_.price;
            if (std::isnan(g_[k])) one = g_[k];
            if (!(one <= most)) most = one;
        }
        return most;
    }

    // The lower triangle, row after row, and then the upper one.
    void hessian() {
        std::fill(hessian_.begin(), hessian_.end(), 0.0);
        scatter_.assign(static_cast<std::size_t>(n_), 0.0);
        mean_.assign(static_cast<std::size_t>(n_), 0.0);
        for (std::size_t i = 0; i + 1 < p_.first.size(); ++i) {
            active_.clear();
            double sum = 0.0;
            for (std::int32_t r = p_.first[i]; r < p_.first[i + 1]; ++r)
                if (lambda_[r] > 0.0) active_.push_back(r), sum += lambda_[r];
            const bool full = sum > 1.0 - 1e-10;
            if (active_.size() < (full ? 2u : 1u)) continue;
            for (const std::int32_t r : active_) {
                add(r, 1.0, scatter_);
                outer(scatter_, 1.0 / nu_);
                if (full) add(r, 1.0, mean_);
            }
            if (full) outer(mean_, -1.0 / (nu_ * static_cast<double>(active_.size())));
        }
        for (std::int64_t k = 0; k < n_; ++k)
            for (std::int64_t l = 0; l < k; ++l) hessian_[l * n_ + k] = hessian_[k * n_ + l];
        double trace = 0.0;
        for (std::int64_t k = 0; k < n_; ++k) trace += hessian_[k * n_ + k];
        for (std::int64_t k = 0; k < n_; ++k) hessian_[k * n_ + k] += p_.mu[k] + 1e-10 * trace / n_ + 1e-300;
    }
    void add(std::int32_t r, double x, std::vector<double>& to) const {
        for (std::int32_t e = p_.starts[r]; e < p_.starts[r + 1]; ++e) to[p_.at[e]] += x * p_.values[e];
    }
    void outer(std::vector<double>& x, double factor) {  // and makes x zero
        for (std::int64_t k = 0; k < n_; ++k)
            if (x[k] != 0.0) add_scaled(k + 1, factor * x[k], x.data(), &hessian_[k * n_]);
        std::fill(x.begin(), x.end(), 0.0);
    }

    // Coordinate descent on g'd + d'Hd/2 + price |w + d|, until a sweep changes no derivative by more than `enough`.
    void descend(double enough) {
        std::fill(d_.begin(), d_.end(), 0.0);
        std::fill(product_.begin(), product_.end(), 0.0);
        for (int sweep = 0; sweep < SWEEPS; ++sweep) {
            double most = 0.0;
            for (std::int64_t k = 0; k < n_; ++k) {
                const double bend = hessian_[k * n_ + k], at = w_[k] + d_[k], free = at - (g_[k] + product_[k]) / bend;
                const double shrunk = std::max(std::abs(free) - p_.price / bend, 0.0);
                const double change = (free >= 0.0 ? shrunk : std::max(-shrunk, p_.lower[k])) - at;
                if (change == 0.0) continue;
                d_[k] += change;
                add_scaled(n_, change, &hessian_[k * n_], product_.data());
                most = std::max(most, std::abs(change) * bend);
            }
            if (!(most > enough)) break;
        }
    }

    // Halves the step until the objective falls as it should; the objective there.
    double search(double objective) {
        for (std::size_t r = 0; r < along_.size(); ++r)
            along_[r] = p_.value(static_cast<std::int32_t>(r), d_.data()) - p_.b[r];
        double slope = 0.0;
        for (std::int64_t k = 0; k < n_; ++k)
            slope += g_[k] * d_[k] + p_.price * (std::abs(w_[k] + d_[k]) - std::abs(w_[k]));
        double step = 1.0;
        for (int i = 0; i < HALVINGS; ++i, step *= 0.5) {
            for (std::int64_t k = 0; k < n_; ++k) moved_[k] = w_[k] + step * d_[k];
            const double there = smoothed(values_, step, ahead_.data()) + penalty(moved_.data());
            if (!(there <= objective + 1e-4 * step * slope)) continue;
            std::copy(moved_.begin(), moved_.end(), w_.begin());
            std::copy(ahead_.begin(), ahead_.end(), lambda_.begin());
            for (std::size_t r = 0; r < along_.size(); ++r) values_[r] += step * along_[r];
            return there;
        }
        return objective;
    }
};

}  // namespace maxmargin::newton_master
