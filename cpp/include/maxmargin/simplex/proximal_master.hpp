// Coordinate ascent on the dual of a linear program over a working set of rows with a proximal term,
//
//   min_{w, xi >= 0}  sum_k price |w_k| + mu_k / 2 (w_k - center_k)^2 + sum_i xi_i    s.t.  xi_i >= a_r'w + b_r,
//   max_{lambda >= 0, sum_{r of i} lambda_r <= 1}  b'lambda + min_w [(A'lambda)'w + price and proximal term],
//
// w within [lower, inf), lower 0 or -inf. The inner minimum is attained, weight by weight, at
//
//   w_k(g) = soft(mu_k center_k - g_k, price) / mu_k,  not below lower_k,     g = A'lambda,
//
// so the derivative by lambda_r is a_r'w + b_r. A visit to an example moves mass from the row with multiplier that is
// violated least (or from the slack of the sum, whose row is zero) to the one that is violated most, as far as the dual
// rises. That one-dimensional function is concave and piecewise quadratic: Newton's method on its derivative, bisection
// where that leaves the bracket. Rows of an example are adjacent. Cost of a visit: the non-zeros of its rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace maxmargin::proximal_master {

struct Program {
    std::span<const std::int32_t> starts, at;  // compressed rows
    std::span<const double> values;
    std::span<const double> b;            // one per row
    std::span<const std::int32_t> first;  // rows of example i: [first[i], first[i + 1])
    std::span<const double> center, mu;   // one per weight
    std::span<const double> lower;        // one per weight: 0, or minus infinity
    double price;

    double weight(std::int32_t k, double g) const {
        const double pull = mu[k] * center[k] - g;
        const double shrunk = std::max(std::abs(pull) - price, 0.0) / mu[k];
        return pull >= 0.0 ? shrunk : std::max(-shrunk, lower[k]);
    }
    double value(std::int32_t r, const double* w) const {
        double sum = b[r];
        for (std::int32_t e = starts[r]; e < starts[r + 1]; ++e) sum += values[e] * w[at[e]];
        return sum;
    }
};

// w = w(g), g = A'lambda.
struct Point {
    std::span<double> w, g, lambda;
};

class Ascent {
   public:
    Ascent(const Program& program, const Point& point, std::uint32_t seed)
        : program_(program), point_(point), change_(program.center.size(), 0.0), order_(program.first.size() - 1),
          resting_(order_.size(), 0), rest_(order_.size(), 0), random_(seed) {
        std::iota(order_.begin(), order_.end(), 0);
    }

    // Sweeps over the examples, each in a new random order (one order for all took twice as many), until one had no
    // more than `aim` to gain; what the last one had to gain. Examples with no more than `enough` rest.
    double run(double enough, double aim, std::int64_t sweeps) {
        double gain = 0.0;
        for (std::int64_t s = 0; s < sweeps; ++s) {
            for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random_() % i]);
            gain = sweep(enough);
            if (!(gain > aim)) break;
        }
        return gain;
    }

   private:
    static constexpr int MOVES = 4;      // pairs of rows in one visit
    static constexpr int MOST_REST = 3;  // sweeps
    static constexpr int NONE = -1;      // the slack of an example's sum
    const Program& program_;
    const Point& point_;
    std::vector<double> change_;  // zero between moves
    std::vector<std::int32_t> touched_;
    std::vector<std::int32_t> order_;
    std::vector<int> resting_, rest_;  // of examples: sweeps that are left of this rest, and the length of the last one
    std::minstd_rand random_;

    // One visit to each example; the sum of what their blocks had to gain, each bounded by the difference of its
    // largest violation and the present one. An example with no more than `enough` to gain is left as it is, and rests
    // for one sweep, then two, up to MOST_REST; what it has to gain while it rests does not count.
    double sweep(double enough) {
        double gain = 0.0;
        for (const std::int32_t i : order_) {
            if (resting_[i] > 0) {
                --resting_[i];
                continue;
            }
            const double gained = visit(program_.first[i], program_.first[i + 1], enough);
            rest_[i] = gained > enough ? 0 : std::min(rest_[i] + 1, MOST_REST);
            resting_[i] = rest_[i];
            gain += gained;
        }
        return gain;
    }

    double visit(std::int32_t first, std::int32_t last, double enough) {
        double begin = 0.0;
        for (int move = 0; first < last && move < MOVES; ++move) {
            double sum = 0.0, present = 0.0, most = 0.0, least = std::numeric_limits<double>::infinity();
            std::int32_t to = NONE, from = NONE;
            for (std::int32_t r = first; r < last; ++r) {
                const double value = program_.value(r, point_.w.data()), mass = point_.lambda[r];
                sum += mass;
                present += mass * value;
                if (value > most) most = value, to = r;
                if (mass > 0.0 && value < least) least = value, from = r;
            }
            const double slack = std::max(0.0, 1.0 - sum), gain = most - present;
            if (move == 0) begin = gain;
            if (slack > 1e-15 && least > 0.0) least = 0.0, from = NONE;
            if (from == to || !(gain > enough)) break;
            shift(to, from, most - least, from == NONE ? slack : point_.lambda[from]);
        }
        return begin;
    }

    void add(std::int32_t r, double sign) {
        if (r == NONE) return;
        for (std::int32_t e = program_.starts[r]; e < program_.starts[r + 1]; ++e) {
            const std::int32_t k = program_.at[e];
            if (change_[k] == 0.0) touched_.push_back(k);
            change_[k] += sign * program_.values[e];
        }
    }

    // Moves up to `room` of mass between two rows, along which the dual rises with this slope at first.
    void shift(std::int32_t to, std::int32_t from, double slope, double room) {
        touched_.clear();
        add(to, 1.0);
        add(from, -1.0);
        const double constant = (to == NONE ? 0.0 : program_.b[to]) - (from == NONE ? 0.0 : program_.b[from]);
        double low = 0.0, high = room, step = 0.0, at_step = slope, bend = 0.0;
        for (const std::int32_t k : touched_)
            if (point_.w[k] != 0.0) bend += change_[k] * change_[k] / program_.mu[k];
        for (int i = 0; i < 20; ++i) {
            double next = bend > 0.0 ? step + at_step / bend : high;
            if (next >= high) next = high < room ? 0.5 * (low + high) : room;
            if (next <= low) next = 0.5 * (low + high);
            step = next, at_step = constant, bend = 0.0;
            for (const std::int32_t k : touched_) {
                const double w = program_.weight(k, point_.g[k] + step * change_[k]);
                at_step += change_[k] * w;
                if (w != 0.0) bend += change_[k] * change_[k] / program_.mu[k];
            }
            if (std::abs(at_step) <= 0.05 * slope || (step >= room && at_step >= 0.0)) break;
            (at_step > 0.0 ? low : high) = step;
        }
        if (from != NONE) point_.lambda[from] = step >= point_.lambda[from] ? 0.0 : point_.lambda[from] - step;
        if (to != NONE) point_.lambda[to] += step;
        for (const std::int32_t k : touched_) {
            if (change_[k] != 0.0) {
                point_.g[k] += step * change_[k];
                point_.w[k] = program_.weight(k, point_.g[k]);
            }
            change_[k] = 0.0;  // also what was canceled and listed twice
        }
    }
};

}  // namespace maxmargin::proximal_master
