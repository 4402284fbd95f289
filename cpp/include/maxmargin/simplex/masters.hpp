// Master problems of simplicial decomposition and of cutting planes: points (d_j, l_j) in blocks, and their weights q,
//
//     min  R(g) - l'q,   g = sum_j q_j d_j,   q >= 0,   q of a block sums to 1 (simplexes) or to anything (cones)
//
// where R(g) is what the weights player's best response w is worth (simplex/response.hpp), so that the derivative by
// q_j is -(w'd_j + l_j). Coordinates after the weights hold the masses of quadratic slack.
//
// Two methods: `joint` builds the Gram matrix of all points of some blocks, and takes generalized Newton steps, each a
// quadratic program over the simplexes (simplex/newton.hpp) and an exact search toward its solution. `sweep` goes from
// block to block with the Gram matrix of the block alone, w kept up to date: exact minimization in the block for a
// plain ridge, and for other sets of weights the minimum of a quadratic that is nowhere below. Cost of a visit: the
// products of the block's points with w. Both are sequential: the number of threads does not enter.
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
#include "maxmargin/simplex/response.hpp"

namespace maxmargin::simplex {

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
    std::vector<double> gram;    // d_i'd_j over the weights, rows `stride` apart
    std::vector<double> masses;  // the same over the masses, empty without any
    std::int64_t stride = 0;
    bool solved = false;  // since points were last aged

    std::int64_t size() const { return static_cast<std::int64_t>(points.size()); }

    void push(Point point, double weight, bool with_masses) {
        const std::int64_t m = size();
        if (m == stride) {
            const std::int64_t wider = std::max<std::int64_t>(4, 2 * stride);
            for (auto* one : {&gram, &masses}) {
                if (one == &masses && !with_masses) continue;
                std::vector<double> grown(static_cast<std::size_t>(wider * wider));
                for (std::int64_t i = 0; i < m; ++i) std::copy_n(&(*one)[i * stride], m, &grown[i * wider]);
                *one = std::move(grown);
            }
            stride = wider;
        }
        points.push_back(std::move(point));
        q.push_back(weight);
    }
    void erase(std::int64_t j) {
        const std::int64_t m = size();
        for (auto* one : {&gram, &masses}) {
            if (one->empty()) continue;
            for (std::int64_t i = 0; i < m; ++i) {
                double* row = &(*one)[i * stride];
                std::copy(row + j + 1, row + m, row + j);
            }
            for (std::int64_t i = j; i + 1 < m; ++i) std::copy_n(&(*one)[(i + 1) * stride], m - 1, &(*one)[i * stride]);
        }
        points.erase(points.begin() + j);
        q.erase(q.begin() + j);
    }
};

struct Outcome {
    Status status = OK;
    double gap = 0.0;
    std::int64_t steps = 0;
};

struct Released;

class Masters {
   public:
    Masters(std::int64_t n_blocks, std::int64_t n_weights, std::int64_t n_masses, double c, WeightSet set, bool cone)
        : n_weights_(n_weights), cone_(cone), response_(n_weights, n_masses, c, std::move(set)),
          blocks_(static_cast<std::size_t>(n_blocks)), scatter_(static_cast<std::size_t>(n_weights + n_masses), 0.0) {
        // A simplex starts at the gold output, whose differences and loss are zero; a cone at its apex.
        if (!cone_)
            for (Block& block : blocks_) {
                Point gold;
                gold.iterate = true;
                block.push(std::move(gold), 1.0, false);
                block.gram[0] = 0.0;
            }
    }

    std::int64_t n_blocks() const { return static_cast<std::int64_t>(blocks_.size()); }
    std::int64_t n_weights() const { return n_weights_; }
    bool cone() const { return cone_; }
    std::int64_t n_coordinates() const { return response_.n_coordinates(); }
    std::int64_t n_points() const {
        std::int64_t total = 0;
        for (const Block& block : blocks_) total += block.size();
        return total;
    }
    Response& response() { return response_; }
    const Response& response() const { return response_; }
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
    Released release(std::span<const std::int64_t> where, std::span<const double> wanted) const;

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
        add_up();
    }

    // After `settle`, all that decides what comes next but for the center: body(block, point, weight).
    template <class Body>
    void each_point(Body&& body) const {
        for (std::int64_t b = 0; b < n_blocks(); ++b)
            for (std::int64_t j = 0; j < blocks_[b].size(); ++j) body(b, blocks_[b].points[j], blocks_[b].q[j]);
    }
    // In place of the points there are, others: `give` calls its argument with block, point and weight, in the order of
    // each_point. Inner products are those of before, as they are taken in the same order.
    template <class Give>
    void restore(Give&& give) {
        for (Block& block : blocks_) block = Block{};
        give([&](std::int64_t b, Point point, double weight) { insert(blocks_[b], std::move(point), weight); });
        add_up();
    }

   private:
    std::int64_t n_weights_;
    bool cone_;
    Response response_;
    std::vector<Block> blocks_;
    std::vector<double> scatter_;  // zero between uses
    std::vector<double> p_, q_, change_, h_;
    NewtonScratch newton_;

    void add_up() {  // g anew
        response_.clear();
        for (const Block& block : blocks_)
            for (std::int64_t j = 0; j < block.size(); ++j) {
                if (block.q[j] == 0.0) continue;
                const Point& point = block.points[j];
                response_.add(point.index.data(), point.value.data(), point.size(), block.q[j]);
            }
        response_.restore();
    }

    // The sum of a point's entries of masses times those of -g.
    double masses_along(const Point& point) const {
        const std::int64_t n = point.size() - point.split;
        if (n == 0) return 0.0;
        return response_.along_masses(point.index.data() + point.split, point.value.data() + point.split, n);
    }
    double slope(const Point& point, double theta) const {  // the derivative by the point's weight
        const double sum = theta * response_.along(point.index.data(), point.value.data(), point.split);
        return -(sum + response_.mass_c() * masses_along(point) + point.loss);
    }

    // A point's entries of weights, and those of masses, times what is scattered.
    double products(const Point& point) const {
        return gathered(point.index.data(), point.value.data(), point.split, scatter_.data());
    }
    double mass_products(const Point& point) const {
        const std::int64_t n = point.size() - point.split;
        return n == 0
                   ? 0.0
                   : gathered(point.index.data() + point.split, point.value.data() + point.split, n, scatter_.data());
    }

    void insert(Block& block, Point point, double weight) {
        for (std::int64_t k = 0; k < point.size(); ++k) scatter_[point.index[k]] += point.value[k];
        const std::int64_t m = block.size();
        block.push(std::move(point), weight, cone_);
        for (std::int64_t j = 0; j <= m; ++j) {
            const std::int64_t up = j * block.stride + m, down = m * block.stride + j;
            block.gram[up] = block.gram[down] = products(block.points[j]);
            if (cone_) block.masses[up] = block.masses[down] = mass_products(block.points[j]);
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
            const double m = -response_.mass_c() * masses_along(point), a = m - p[j];
            squares += block.q[j] * m;
            gain += block.q[j] * a;
            if (m > 0.0) {
                tau = std::max(tau, a / m);
            } else if (a > 0.0) {
                double own = 0.0;
                for (std::int64_t k = point.split; k < point.size(); ++k) own += point.value[k] * point.value[k];
                alone = std::max(alone, 0.5 * a * a / std::max(response_.mass_c() * own, 1e-300));
            }
            if (std::isnan(p[j])) return p[j];
        }
        return std::max(0.0, 0.5 * (tau * tau + 1.0) * squares - gain) + alone;
    }

    double visit(Block& block, double enough);
    double curvature_error(const Block& block, double maximal);
};

// By how much R rises above the quadratic of curvature `maximal` when the block's weights move by change_.
inline double Masters::curvature_error(const Block& block, double maximal) {
    std::vector<std::int32_t> touched;
    for (std::int64_t j = 0; j < block.size(); ++j) {
        if (change_[j] == 0.0) continue;
        const Point& point = block.points[j];
        for (std::int64_t k = 0; k < point.split; ++k) {
            if (scatter_[point.index[k]] == 0.0) touched.push_back(point.index[k]);
            scatter_[point.index[k]] += change_[j] * point.value[k];
        }
    }
    return response_.curvature_error(touched, scatter_.data(), maximal);
}

inline double Masters::visit(Block& block, double enough) {
    const std::int64_t m = block.size();
    block.solved = true;
    if (m == 0 || (m == 1 && !cone_)) return 0.0;
    if (static_cast<std::int64_t>(p_.size()) < m) {
        for (auto* one : {&p_, &q_, &change_}) one->resize(static_cast<std::size_t>(2 * m));
    }
    const double theta = response_.theta(), c = response_.c();
    for (std::int64_t j = 0; j < m; ++j) p_[j] = slope(block.points[j], theta);
    const double before = gap(block, p_.data());
    if (!(before > enough)) return before;
    const std::int64_t offsets[] = {0, m};
    // Beyond the ball R bends less than c; a guess is tried first and checked.
    double bend = response_.ball() && theta > 0.0 ? std::min(c, 1.5 * theta) : c;
    std::vector<double>& p = q_;
    for (;;) {
        std::vector<double>& moved = change_;
        for (std::int64_t j = 0; j < m; ++j) {
            p[j] = p_[j] / bend;
            moved[j] = block.q[j];
        }
        const double* h = block.gram.data();
        if (cone_) {
            const double by = response_.mass_c() / bend;
            h_.resize(static_cast<std::size_t>(m * block.stride));
            for (std::size_t k = 0; k < h_.size(); ++k) h_[k] = block.gram[k] + by * block.masses[k];
            h = h_.data();
        }
        const Program program{m, h, block.stride, offsets, cone_};
        const Status status = newton(program, moved.data(), p.data(), cone_ ? 0.0 : 1e-3 * before / bend, 30, newton_);
        if (status == NONFINITE) return std::numeric_limits<double>::quiet_NaN();
        for (std::int64_t j = 0; j < m; ++j) change_[j] = moved[j] - block.q[j];
        if (bend >= c || curvature_error(block, bend) <= 0.0) break;
        bend = std::min(c, 2.0 * bend);
    }
    for (std::int64_t j = 0; j < m; ++j) {
        if (change_[j] == 0.0) continue;
        block.q[j] = std::max(0.0, block.q[j] + change_[j]);
        const Point& point = block.points[j];
        response_.shift(point.index.data(), point.value.data(), point.size(), change_[j]);
    }
    response_.settle();
    return before;
}

}  // namespace maxmargin::simplex
