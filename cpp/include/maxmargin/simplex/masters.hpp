// Master problems of simplicial decomposition and of cutting planes: points (d_j, l_j) in blocks, and their weights q,
//
//     min  R(g) - l'q,   g = sum_j q_j d_j,   q >= 0,   q of a block sums to 1 (simplexes) or to anything (cones)
//
// where R(g) = max_w -w'g - 1/(2C) ||w||^2 over the weights' region. With u = P_K(-g), K everything or a set of signs,
// R = C/2 ||u||^2, and beyond a ball of radius B, where C ||u|| > B, R = B ||u|| - B^2/(2C). The best weights are theta
// u with theta = min(C, B / ||u||), so that the derivative by q_j is -(w'd_j + l_j). R has the generalized Hessian
// theta (I_A - u u' / ||u||^2), A the coordinates with free or negative g, without the second term inside the ball; it
// is never above C. Coordinates after the weights are free of signs and of the ball: R adds C/2 ||g||^2 there. They
// hold the masses of quadratic slack.
//
// Two methods: `joint` builds the Gram matrix of all points of some blocks, and takes generalized Newton steps, each a
// quadratic program over the simplexes (simplex/newton.hpp) and an exact search toward its solution. `sweep` goes from
// block to block with the Gram matrix of the block alone, w kept up to date: exact minimization in the block for a
// plain ridge, and for signs and balls the minimum of a quadratic that is nowhere below. Cost of a visit: the products
// of the block's points with w. Both are sequential: the number of threads does not enter.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "maxmargin/base/parallel.hpp"
#include "maxmargin/simplex/newton.hpp"

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

struct Point {
    std::vector<std::int32_t> index;  // coordinates of weights, then those of masses
    std::vector<double> value;
    std::int64_t split = 0;  // how many are of weights
    double loss = 0.0;
    std::int64_t age = 0;
    bool iterate = false;  // the block's first iterate, or a later one kept in place of points that were dropped

    std::int64_t size() const { return static_cast<std::int64_t>(index.size()); }
    bool same(const Point& other) const { return loss == other.loss && index == other.index && value == other.value; }
};

struct Block {
    std::vector<Point> points;
    std::vector<double> q;
    std::vector<double> gram;  // d_i'd_j, rows `stride` apart
    std::int64_t stride = 0;
    bool solved = false;  // since points were last aged

    std::int64_t size() const { return static_cast<std::int64_t>(points.size()); }

    void push(Point point, double weight) {
        const std::int64_t m = size();
        if (m == stride) {
            const std::int64_t wider = std::max<std::int64_t>(4, 2 * stride);
            std::vector<double> grown(static_cast<std::size_t>(wider * wider));
            for (std::int64_t i = 0; i < m; ++i) std::copy_n(&gram[i * stride], m, &grown[i * wider]);
            gram = std::move(grown);
            stride = wider;
        }
        points.push_back(std::move(point));
        q.push_back(weight);
    }
    void erase(std::int64_t j) {
        const std::int64_t m = size();
        for (std::int64_t i = 0; i < m; ++i) {
            double* row = &gram[i * stride];
            std::copy(row + j + 1, row + m, row + j);
        }
        for (std::int64_t i = j; i + 1 < m; ++i) std::copy_n(&gram[(i + 1) * stride], m - 1, &gram[i * stride]);
        points.erase(points.begin() + j);
        q.erase(q.begin() + j);
    }
};

struct Outcome {
    Status status = OK;
    double gap = 0.0;
    std::int64_t steps = 0;
};

class Masters {
   public:
    Masters(std::int64_t n_blocks, std::int64_t n_weights, std::int64_t n_masses, double penalty_c, double radius,
            std::span<const std::uint8_t> nonnegative, bool cone)
        : n_weights_(n_weights), n_coordinates_(n_weights + n_masses), c_(penalty_c), radius_(radius), cone_(cone),
          sign_(nonnegative.begin(), nonnegative.end()), blocks_(static_cast<std::size_t>(n_blocks)),
          g_(static_cast<std::size_t>(n_coordinates_), 0.0), scatter_(static_cast<std::size_t>(n_coordinates_), 0.0) {
        if (!sign_.empty()) u_.assign(g_.size(), 0.0);
        // A simplex starts at the gold output, whose differences and loss are zero; a cone at its apex.
        if (!cone_)
            for (Block& block : blocks_) {
                Point gold;
                gold.iterate = true;
                block.push(std::move(gold), 1.0);
                block.gram[0] = 0.0;
            }
    }

    std::int64_t n_blocks() const { return static_cast<std::int64_t>(blocks_.size()); }
    std::int64_t n_weights() const { return n_weights_; }
    std::int64_t n_coordinates() const { return n_coordinates_; }
    std::int64_t n_points() const {
        std::int64_t total = 0;
        for (const Block& block : blocks_) total += block.size();
        return total;
    }
    std::span<const double> g() const { return g_; }
    double loss() const {
        double total = 0.0;
        for (const Block& block : blocks_)
            for (std::int64_t j = 0; j < block.size(); ++j) total += block.q[j] * block.points[j].loss;
        return total;
    }
    const std::vector<double>& weights_of(std::int64_t b) const { return blocks_[b].q; }

    // Adds a point, unless its block has it already. Where the block has `limit` points (0: no limit) besides an
    // iterate, the lightest one makes room, and the current iterate stands in for the one kept before, which is the
    // gold output at first (Hearn, Lawphongpanich, Ventura 1987).
    bool add(std::int64_t b, std::span<const std::int32_t> index, std::span<const double> value, double factor,
             double loss, std::int64_t limit) {
        Block& block = blocks_[b];
        Point point;
        point.loss = loss;
        for (const bool masses : {false, true}) {
            for (std::size_t k = 0; k < index.size(); ++k) {
                const double entry = factor * value[k];
                if ((index[k] >= n_weights_) != masses || entry == 0.0) continue;
                point.index.push_back(index[k]);
                point.value.push_back(entry);
            }
            if (!masses) point.split = point.size();
        }
        for (const Point& other : block.points)
            if (point.same(other)) return false;
        if (limit > 0) make_room(block, limit);
        insert(block, std::move(point), 0.0);
        return true;
    }

    // For every block, at weights w: the largest w'd_j + l_j (in a cone at least 0, the value of its apex), and the
    // value sum_j q_j (w'd_j + l_j).
    void values(std::span<const double> w, std::span<double> best, std::span<double> current, int threads) const {
        parallel_each(n_blocks(), 16, threads, [&](int, std::int64_t b) {
            best[b] = cone_ ? 0.0 : -std::numeric_limits<double>::infinity();
            current[b] = 0.0;
            for (std::int64_t j = 0; j < blocks_[b].size(); ++j) {
                const Point& point = blocks_[b].points[j];
                const double v = gathered(point.index.data(), point.value.data(), point.split, w.data()) + point.loss;
                best[b] = std::max(best[b], v);
                current[b] += blocks_[b].q[j] * v;
            }
        });
    }

    // One visit to each of the given blocks; gaps[i] is what the i-th had to gain when it was visited. A block with no
    // more than `enough` is left as it is.
    Outcome sweep(std::span<const std::int64_t> order, double enough, std::span<double> gaps) {
        Outcome outcome;
        for (std::size_t i = 0; i < order.size(); ++i) {
            gaps[i] = visit(blocks_[order[i]], enough);
            outcome.gap += gaps[i];
        }
        outcome.status = std::isfinite(outcome.gap) ? OK : NONFINITE;
        outcome.steps = 1;
        return outcome;
    }

    Outcome joint(std::span<const std::int64_t> chosen, double tolerance, int limit);

    // Makes the weights of every simplex sum to 1 to rounding, adds up g anew, and counts in how many masters in a row
    // a point had no weight; those with none in `age` masters go (0: none goes). Gold outputs stay.
    void settle(std::int64_t age) {
        for (Block& block : blocks_) {
            if (!cone_) {
                const double sum = std::accumulate(block.q.begin(), block.q.end(), 0.0);
                for (double& q : block.q) q /= sum;
            }
            for (std::int64_t j = block.size() - 1; j >= 0 && block.solved; --j) {
                Point& point = block.points[j];
                point.age = block.q[j] > 0.0 ? 0 : point.age + 1;
                if (age > 0 && point.age >= age && point.size() > 0) block.erase(j);
            }
            block.solved = false;
        }
        std::fill(g_.begin(), g_.end(), 0.0);
        for (const Block& block : blocks_)
            for (std::int64_t j = 0; j < block.size(); ++j) {
                if (block.q[j] == 0.0) continue;
                const Point& point = block.points[j];
                for (std::int64_t k = 0; k < point.size(); ++k) g_[point.index[k]] += block.q[j] * point.value[k];
            }
        restore();
    }

   private:
    std::int64_t n_weights_, n_coordinates_;
    double c_, radius_;
    bool cone_;
    std::vector<bool> sign_;
    std::vector<Block> blocks_;
    std::vector<double> g_;
    std::vector<double> u_;        // P_K(-g), only with signs
    double squared_ = 0.0;         // ||u||^2 over the weights, only with a ball
    std::vector<double> scatter_;  // zero between uses
    std::vector<double> p_, q_, change_;
    NewtonScratch newton_;

    bool ball() const { return std::isfinite(radius_); }
    double ascent(std::int64_t k, double g) const {  // a coordinate of u
        return !sign_.empty() && k < n_weights_ && sign_[k] ? std::max(0.0, -g) : -g;
    }
    double scale_at(double squared) const {
        const double length = std::sqrt(std::max(squared, 0.0));
        return c_ * length > radius_ ? radius_ / length : c_;
    }
    double scale() const { return ball() ? scale_at(squared_) : c_; }

    // sum of the entries [first, last) of a point times u
    double along(const Point& point, std::int64_t first, std::int64_t last) const {
        const double* x = sign_.empty() ? g_.data() : u_.data();
        const double sum = gathered(point.index.data() + first, point.value.data() + first, last - first, x);
        return sign_.empty() ? -sum : sum;
    }
    double slope(const Point& point, double theta) const {  // the derivative by the point's weight
        double sum = theta * along(point, 0, point.split);
        if (point.split < point.size()) sum += c_ * along(point, point.split, point.size());
        return -(sum + point.loss);
    }

    void restore() {  // what is derived from g
        if (!sign_.empty())
            for (std::int64_t k = 0; k < n_coordinates_; ++k) u_[k] = ascent(k, g_[k]);
        if (!ball()) return;
        squared_ = 0.0;
        for (std::int64_t k = 0; k < n_weights_; ++k) {
            const double u = ascent(k, g_[k]);
            squared_ += u * u;
        }
    }

    void shift(const Point& point, double by) {  // g += by d
        const std::int64_t n = point.size();
        const bool linear = plain();
        for (std::int64_t k = 0; k < n; ++k) {
            const std::int32_t at = point.index[k];
            const double before = g_[at];
            g_[at] += by * point.value[k];
            if (linear) continue;
            const double u = ascent(at, g_[at]), old = ascent(at, before);
            if (!sign_.empty()) u_[at] = u;
            if (at < n_weights_) squared_ += u * u - old * old;
        }
    }

    void insert(Block& block, Point point, double weight) {
        for (std::int64_t k = 0; k < point.size(); ++k) scatter_[point.index[k]] += point.value[k];
        const std::int64_t m = block.size();
        block.push(std::move(point), weight);
        for (std::int64_t j = 0; j <= m; ++j) {
            const Point& other = block.points[j];
            const double dot = gathered(other.index.data(), other.value.data(), other.size(), scatter_.data());
            block.gram[j * block.stride + m] = block.gram[m * block.stride + j] = dot;
        }
        for (const std::int32_t at : block.points[m].index) scatter_[at] = 0.0;
    }

    void make_room(Block& block, std::int64_t limit) {
        std::int64_t extreme = 0, lightest = -1;
        for (std::int64_t j = 0; j < block.size(); ++j) {
            if (block.points[j].iterate) continue;
            ++extreme;
            if (lightest < 0 || block.q[j] < block.q[lightest]) lightest = j;
        }
        if (extreme < limit) return;
        const double sum = std::accumulate(block.q.begin(), block.q.end(), 0.0);
        const auto heaviest = std::max_element(block.q.begin(), block.q.end()) - block.q.begin();
        // Where one of the points has all the weight, it is the iterate, and no second copy is kept.
        const bool mixed =
            sum > 0.0 && (heaviest == lightest || block.q[heaviest] < sum || block.points[heaviest].iterate);
        // A ray is kept at the length of those it is made of: lengths count where new rays are compared with it.
        const double length = cone_ ? sum : 1.0;
        Point now = mixed ? current(block, 1.0 / length) : Point{};
        now.iterate = true;
        block.erase(lightest);
        for (std::int64_t j = block.size() - 1; j >= 0; --j)
            if (block.points[j].iterate) block.erase(j);
        if (!mixed) return;
        std::fill(block.q.begin(), block.q.end(), 0.0);
        insert(block, std::move(now), length);
    }

    // factor sum_j q_j (d_j, l_j)
    Point current(const Block& block, double factor) {
        Point point;
        for (std::int64_t j = 0; j < block.size(); ++j) {
            if (block.q[j] == 0.0) continue;
            const Point& one = block.points[j];
            point.loss += factor * block.q[j] * one.loss;
            for (std::int64_t k = 0; k < one.size(); ++k) {
                point.index.push_back(one.index[k]);
                scatter_[one.index[k]] += factor * block.q[j] * one.value[k];
            }
        }
        std::sort(point.index.begin(), point.index.end());
        point.index.erase(std::unique(point.index.begin(), point.index.end()), point.index.end());
        std::erase_if(point.index, [&](std::int32_t at) { return scatter_[at] == 0.0; });
        for (const std::int32_t at : point.index) {
            point.value.push_back(scatter_[at]);
            point.split += at < n_weights_;
            scatter_[at] = 0.0;
        }
        return point;
    }

    // By how much a block's part of the dual may be below its maximum, from the derivatives by its weights. Simplexes:
    // see Program::gap. Cones: with a_j = w'd_j + l_j and the masses' products m_j = C e_j'e, e = sum_j q_j e_j, the
    // slacks tau C e with tau = max_j a_j / m_j satisfy all constraints, which gives (tau^2 + 1) / 2 C ||e||^2 - a'q;
    // without masses yet, a^2 / (2 C ||e_j||^2) of the most violated one.
    double gap(const Block& block, const double* p) const {
        const std::int64_t offsets[] = {0, block.size()};
        if (!cone_) return Program{block.size(), nullptr, 0, offsets, false}.gap(p, block.q.data());
        double tau = 0.0, squares = 0.0, gain = 0.0, alone = 0.0;
        for (std::int64_t j = 0; j < block.size(); ++j) {
            const Point& point = block.points[j];
            const double m = -c_ * along(point, point.split, point.size()), a = m - p[j];
            squares += block.q[j] * m;
            gain += block.q[j] * a;
            if (m > 0.0) {
                tau = std::max(tau, a / m);
            } else if (a > 0.0) {
                double own = 0.0;
                for (std::int64_t k = point.split; k < point.size(); ++k) own += point.value[k] * point.value[k];
                alone = std::max(alone, 0.5 * a * a / std::max(c_ * own, 1e-300));
            }
            if (std::isnan(p[j])) return p[j];
        }
        return std::max(0.0, 0.5 * (tau * tau + 1.0) * squares - gain) + alone;
    }

    bool plain() const { return sign_.empty() && !ball(); }
    double visit(Block& block, double enough);
    double search(const std::vector<double>& dg, double linear) const;
    double curvature_error(const Block& block, double theta, double maximal);
};

// By how much R rises above the quadratic of curvature `maximal` when the block's weights move by change_; the slope
// of both is that of R with the scale theta.
inline double Masters::curvature_error(const Block& block, double theta, double maximal) {
    std::vector<std::int32_t> touched;
    for (std::int64_t j = 0; j < block.size(); ++j) {
        if (change_[j] == 0.0) continue;
        const Point& point = block.points[j];
        for (std::int64_t k = 0; k < point.size(); ++k) {
            if (scatter_[point.index[k]] == 0.0) touched.push_back(point.index[k]);
            scatter_[point.index[k]] += change_[j] * point.value[k];
        }
    }
    double squared = squared_, linear = 0.0, length = 0.0;
    for (const std::int32_t at : touched) {
        const double step = scatter_[at], old = ascent(at, g_[at]), now = ascent(at, g_[at] + step);
        scatter_[at] = 0.0;  // also what was canceled and listed twice
        squared += now * now - old * old;
        linear += old * step;
        length += step * step;
    }
    const auto value = [&](double s) {
        s = std::max(s, 0.0);
        return c_ * std::sqrt(s) > radius_ ? radius_ * std::sqrt(s) - 0.5 * radius_ * radius_ / c_ : 0.5 * c_ * s;
    };
    return value(squared) - value(squared_) + theta * linear - 0.5 * maximal * length;
}

inline double Masters::visit(Block& block, double enough) {
    const std::int64_t m = block.size();
    block.solved = true;
    if (m == 0 || (m == 1 && !cone_)) return 0.0;
    if (static_cast<std::int64_t>(p_.size()) < m) {
        for (auto* one : {&p_, &q_, &change_}) one->resize(static_cast<std::size_t>(2 * m));
    }
    const double theta = scale();
    for (std::int64_t j = 0; j < m; ++j) p_[j] = slope(block.points[j], theta);
    const double before = gap(block, p_.data());
    if (!(before > enough)) return before;
    const std::int64_t offsets[] = {0, m};
    const Program program{m, block.gram.data(), block.stride, offsets, cone_};
    // Beyond the ball R bends less than C; a guess is tried first and checked. Masses bend by C, whatever the ball.
    double bend = ball() && !cone_ && theta > 0.0 ? std::min(c_, 1.5 * theta) : c_;
    std::vector<double>& p = q_;
    for (;;) {
        std::vector<double>& moved = change_;
        for (std::int64_t j = 0; j < m; ++j) {
            p[j] = p_[j] / bend;
            moved[j] = block.q[j];
        }
        const Status status = newton(program, moved.data(), p.data(), cone_ ? 0.0 : 1e-3 * before / bend, 30, newton_);
        if (status == NONFINITE) return std::numeric_limits<double>::quiet_NaN();
        for (std::int64_t j = 0; j < m; ++j) change_[j] = moved[j] - block.q[j];
        if (bend >= c_ || curvature_error(block, theta, bend) <= 0.0) break;
        bend = std::min(c_, 2.0 * bend);
    }
    for (std::int64_t j = 0; j < m; ++j) {
        if (change_[j] == 0.0) continue;
        block.q[j] = std::max(0.0, block.q[j] + change_[j]);
        shift(block.points[j], change_[j]);
    }
    return before;
}

// How far to go along dg, at most 1: where the derivative of R(g + t dg) + t linear, which never falls, is zero. Zero
// where there is no descent.
inline double Masters::search(const std::vector<double>& dg, double linear) const {
    const auto derivative = [&](double t) {
        double squared = 0.0, product = 0.0, masses = 0.0;
        for (std::int64_t k = 0; k < n_weights_; ++k) {
            const double u = ascent(k, g_[k] + t * dg[k]);
            squared += u * u;
            product += u * dg[k];
        }
        for (std::int64_t k = n_weights_; k < n_coordinates_; ++k) masses += (g_[k] + t * dg[k]) * dg[k];
        return linear - (ball() ? scale_at(squared) : c_) * product + c_ * masses;
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

}  // namespace maxmargin::simplex
