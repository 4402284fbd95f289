// Masters::release: the points' weights moved so that g changes by a given amount at some coordinates.
//
// A master with a proximal term ends where g is off by (w - center) / c from what the region's dual wants. Near a
// solution the term is small, but a large ball multiplies it. The points in use leave room to take it off: q_j changes
// by q_j (d_j - m)'y, m the mean of the block's points, in cones by q_j d_j'y over the curvature of the slack, with y
// from the linear system that gives the change of g. To first order no value is lost, as points in use have equal ones.
#pragma once

#include "maxmargin/simplex/masters.hpp"

namespace maxmargin::simplex {

struct Released {
    std::vector<double> g;
    double loss = 0.0;
};

// sum_j scale_j x_j x_j' into the lower triangle, one x at a time.
static MM_CLONES void add_square(std::int64_t n, double by, const double* MM_RESTRICT x, double* MM_RESTRICT matrix) {
    for (std::int64_t i = 0; i < n; ++i) {
        if (x[i] == 0.0) continue;
        const double times_row = by * x[i];
        double* MM_RESTRICT row = matrix + i * n;
        for (std::int64_t j = 0; j <= i; ++j) row[j] += times_row * x[j];
    }
}

// `wanted`: what g is to be at the coordinates `where`, which are those of weights.
inline Released Masters::release(std::span<const std::int64_t> where, std::span<const double> wanted) const {
    const auto n = static_cast<std::int64_t>(where.size());
    std::vector<std::int64_t> place(static_cast<std::size_t>(n_weights_), -1);
    for (std::int64_t i = 0; i < n; ++i) place[where[i]] = i;
    const auto spread = [&](const Point& point, double by, std::vector<double>& x) {
        for (std::int64_t k = 0; k < point.split; ++k)
            if (const std::int64_t at = place[point.index[k]]; at >= 0) x[at] += by * point.value[k];
    };
    std::vector<std::vector<double>> q(blocks_.size());
    std::vector<double> mean(static_cast<std::size_t>(n)), x(mean.size());
    std::vector<double> matrix(static_cast<std::size_t>(n * n), 0.0);
    // The curvature of a block's slack times the sum of its weights; 1 for simplexes.
    const auto stiffness = [&](const Block& block, const std::vector<double>& own) {
        if (!cone_) return 1.0;
        double sum = 0.0, most = 0.0;
        for (std::int64_t j = 0; j < block.size(); ++j) {
            sum += own[j];
            if (own[j] > 0.0) most = std::max(most, block.masses[j * block.stride + j]);
        }
        return response_.mass_c() * most * sum;
    };
    // The mean of a block's points; zero for cones. False where the block has nothing to move.
    const auto centered = [&](const Block& block, const std::vector<double>& own) {
        std::fill(mean.begin(), mean.end(), 0.0);
        std::int64_t used = 0;
        for (const double one : own) used += one > 0.0;
        if (used < (cone_ ? 1 : 2)) return false;
        if (!cone_)
            for (std::int64_t j = 0; j < block.size(); ++j)
                if (own[j] > 0.0) spread(block.points[j], own[j], mean);
        return true;
    };
    const auto offset = [&](const Point& point) {
        for (std::int64_t k = 0; k < n; ++k) x[k] = -mean[k];
        spread(point, 1.0, x);
    };
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
        q[b] = blocks_[b].q;
        if (!centered(blocks_[b], q[b])) continue;
        const double stiff = stiffness(blocks_[b], q[b]);
        for (std::int64_t j = 0; j < blocks_[b].size(); ++j) {
            if (!(q[b][j] > 0.0) || !(stiff > 0.0)) continue;
            offset(blocks_[b].points[j]);
            add_square(n, q[b][j] / stiff, x.data(), matrix.data());
        }
    }
    double most = 0.0;
    for (std::int64_t i = 0; i < n; ++i) most = std::max(most, matrix[i * n + i]);
    Released released;
    for (int round = 0;; ++round) {
        released.g.assign(static_cast<std::size_t>(n_coordinates()), 0.0);
        released.loss = 0.0;
        for (std::size_t b = 0; b < blocks_.size(); ++b)
            for (std::int64_t j = 0; j < blocks_[b].size(); ++j) {
                const Point& point = blocks_[b].points[j];
                if (q[b][j] == 0.0) continue;
                released.loss += q[b][j] * point.loss;
                for (std::int64_t k = 0; k < point.size(); ++k) released.g[point.index[k]] += q[b][j] * point.value[k];
            }
        if (round == 3 || !(most > 0.0)) return released;
        std::vector<double> factor = matrix, y(static_cast<std::size_t>(n));
        for (std::int64_t i = 0; i < n; ++i) y[i] = wanted[i] - released.g[where[i]];
        for (std::int64_t i = 0; i < n; ++i) factor[i * n + i] += 1e-14 * most;
        solve_floored(n, factor.data(), y.data(), 1e-14 * most);
        // All points move by the same share of their steps: none below zero.
        std::vector<std::vector<double>> step(blocks_.size());
        double share = 1.0;
        for (std::size_t b = 0; b < blocks_.size(); ++b) {
            step[b].assign(q[b].size(), 0.0);
            if (!centered(blocks_[b], q[b])) continue;
            const double stiff = stiffness(blocks_[b], q[b]);
            for (std::int64_t j = 0; j < blocks_[b].size(); ++j) {
                if (!(q[b][j] > 0.0) || !(stiff > 0.0)) continue;
                offset(blocks_[b].points[j]);
                double along = 0.0;
                for (std::int64_t k = 0; k < n; ++k) along += x[k] * y[k];
                step[b][j] = q[b][j] / stiff * along;
                if (step[b][j] < 0.0) share = std::min(share, -0.99 * q[b][j] / step[b][j]);
            }
        }
        if (!std::isfinite(share)) return released;
        for (std::size_t b = 0; b < blocks_.size(); ++b) {
            double sum = 0.0;
            for (std::size_t j = 0; j < q[b].size(); ++j) {
                q[b][j] = std::max(0.0, q[b][j] + share * step[b][j]);
                sum += q[b][j];
            }
            if (!cone_)
                for (double& one : q[b]) one /= sum;
        }
    }
}

}  // namespace maxmargin::simplex
