// Points in cubic cells, sorted by column, for neighborhoods of any radius at a bounded cost.
//
// A cell keeps the weight, centroid and scatter of its points. Cells are sorted by (x, y, z), so the cells of all
// columns from y - k to y + k in one row x lie side by side: the neighborhood of a column is 2 k + 1 runs of memory,
// found once for all queries of the column. A ball consists of the cells whose centroid lies in it, and a cylinder of
// those whose centroid is near the vertical through the query. The sums of a ball are exact sums over the points of
// its cells; only its border is as coarse as the cells. With cells of a quarter of the radius a ball on a surface has
// some fifty cells, whatever the density of the points.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "maxmargin/base/parallel.hpp"
#include "maxmargin/scans/eigen.hpp"

namespace maxmargin::scans {

// Columns of the features of a neighborhood; SHAPE_NAMES in segmentation/scans/grids.py names them in this order.
inline constexpr int kShapes = 22;

class Grid {
   public:
    static constexpr std::int64_t kMost = std::int64_t{1} << 21;  // cells along an axis

    // Points are finite; weights are >= 0. Call fits() first.
    Grid(std::span<const double> points, std::span<const double> weights, double size) : size_(size) {
        const auto n = static_cast<std::int64_t>(weights.size());
        low_ = lowest(points);
        std::vector<std::pair<std::uint64_t, std::int32_t>> order(n);
        for (std::int64_t i = 0; i < n; ++i) order[i] = {key_of(&points[3 * i]), static_cast<std::int32_t>(i)};
        std::sort(order.begin(), order.end());
        cell_of_.resize(n);
        for (std::int64_t begin = 0; begin < n;) {
            std::int64_t end = begin;
            while (end < n && order[end].first == order[begin].first) ++end;
            add(points, weights, std::span(order).subspan(begin, end - begin));
            begin = end;
        }
    }

    static std::array<double, 3> lowest(std::span<const double> points) {
        std::array<double, 3> low{};
        for (std::size_t i = 0; i < points.size(); ++i)
            low[i % 3] = i < 3 ? points[i] : std::min(low[i % 3], points[i]);
        return low;
    }

    // Whether all coordinates are finite and the cells along each axis can be numbered.
    static bool fits(std::span<const double> points, double size) {
        const auto low = lowest(points);
        bool good = true;
        for (std::size_t i = 0; i < points.size(); ++i)
            good &= std::isfinite(points[i]) && (points[i] - low[i % 3]) / size < static_cast<double>(kMost);
        return good;
    }

    std::int64_t n_cells() const { return static_cast<std::int64_t>(keys_.size()); }
    std::int64_t n_points() const { return static_cast<std::int64_t>(cell_of_.size()); }
    const std::vector<std::int32_t>& cell_of() const { return cell_of_; }

    // Features of the ball and the cylinder around each query, kShapes per query, and the ball's normal, which points
    // upwards.
    void shapes(std::span<const double> queries, double radius, float* out, float* normals, int threads) const {
        over_queries(queries, radius, threads, [&](std::int64_t q, const double* at, const Runs& runs) {
            shape(at, runs, radius, out + q * kShapes, normals + 3 * q);
        });
    }

    // Weighted means of the points' values: over the ball, over the cylinder more than `gap` above the query, and over
    // the cylinder more than `gap` below it; 3 k numbers per query. A mean over nothing is `missing`.
    void average(std::span<const double> queries, double radius, double gap, std::span<const float> values,
                 std::span<const double> weights, std::int64_t k, float missing, float* out, int threads) const {
        std::vector<float> sums(static_cast<std::size_t>(n_cells() * k), 0.0F);
        {
            std::vector<double> exact(sums.size(), 0.0);
            for (std::int64_t i = 0; i < n_points(); ++i)
                for (std::int64_t j = 0; j < k; ++j)
                    exact[cell_of_[i] * k + j] += weights[i] * static_cast<double>(values[i * k + j]);
            for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<float>(exact[i]);
        }
        over_queries(queries, radius, threads, [&](std::int64_t q, const double* at, const Runs& runs) {
            mean(at, runs, radius, gap, sums.data(), k, missing, out + 3 * q * k);
        });
    }

   private:
    struct Runs {
        std::uint64_t column = std::numeric_limits<std::uint64_t>::max();
        std::vector<std::pair<std::int32_t, std::int32_t>> cells;
    };

    std::int64_t cell_along(double x, int axis) const {
        const auto most = static_cast<double>(kMost);  // what lies farther away is as far for all purposes
        return static_cast<std::int64_t>(std::clamp(std::floor((x - low_[axis]) / size_), -most, most));
    }
    static std::uint64_t key(std::int64_t x, std::int64_t y, std::int64_t z) {
        return (static_cast<std::uint64_t>(x) << 42) | (static_cast<std::uint64_t>(y) << 21) |
               static_cast<std::uint64_t>(z);
    }
    std::uint64_t key_of(const double* p) const {
        return key(cell_along(p[0], 0), cell_along(p[1], 1), cell_along(p[2], 2));
    }

    void add(std::span<const double> points, std::span<const double> weights,
             std::span<const std::pair<std::uint64_t, std::int32_t>> members) {
        const auto cell = static_cast<std::int32_t>(keys_.size());
        keys_.push_back(members.front().first);
        double weight = 0.0;
        std::array<double, 3> sum{};
        double low = std::numeric_limits<double>::infinity(), high = -low;
        for (const auto& [_, i] : members) {
            cell_of_[i] = cell;
            weight += weights[i];
            for (int a = 0; a < 3; ++a) sum[a] += weights[i] * points[3 * i + a];
            low = std::min(low, points[3 * i + 2]);
            high = std::max(high, points[3 * i + 2]);
        }
        std::array<double, 3> center{};
        for (int a = 0; a < 3; ++a) center[a] = weight > 0 ? sum[a] / weight : points[3 * members.front().second + a];
        std::array<double, 6> scatter{};
        for (const auto& [_, i] : members) {
            const double dx = points[3 * i] - center[0], dy = points[3 * i + 1] - center[1],
                         dz = points[3 * i + 2] - center[2], w = weights[i];
            const std::array<double, 6> products{dx * dx, dx * dy, dx * dz, dy * dy, dy * dz, dz * dz};
            for (int j = 0; j < 6; ++j) scatter[j] += w * products[j];
        }
        x_.push_back(center[0]);
        y_.push_back(center[1]);
        z_.push_back(center[2]);
        weight_.push_back(weight);
        bottom_.push_back(low);
        top_.push_back(high);
        scatter_.push_back(scatter);
    }

    // Calls body(query, its point, runs of cells within the radius along x and y).
    template <class Body>
    void over_queries(std::span<const double> queries, double radius, int threads, Body&& body) const {
        const auto n = static_cast<std::int64_t>(queries.size() / 3);
        const auto reach = static_cast<std::int64_t>(std::min(std::ceil(radius / size_), static_cast<double>(kMost)));
        std::vector<Runs> runs(static_cast<std::size_t>(std::max(threads, 1)));
        for (auto& each : runs) each.cells.reserve(static_cast<std::size_t>(2 * std::min(reach, kMost) + 1));
        parallel_blocks(n, 512, threads, [&](int thread, std::int64_t begin, std::int64_t end) {
            Runs& own = runs[thread];
            for (std::int64_t q = begin; q < end; ++q) {
                find(&queries[3 * q], reach, own);
                body(q, &queries[3 * q], own);
            }
        });
    }

    void find(const double* at, std::int64_t reach, Runs& runs) const {
        const auto bounded = [](std::int64_t i) { return std::clamp<std::int64_t>(i, 0, kMost - 1); };
        const std::int64_t x = bounded(cell_along(at[0], 0)), y = bounded(cell_along(at[1], 1));
        const std::uint64_t column = key(x, y, 0);
        if (runs.column == column) return;
        runs.column = column;
        runs.cells.clear();
        const std::int64_t first = bounded(y - reach), last = bounded(y + reach);
        auto from = keys_.begin();
        for (std::int64_t row = bounded(x - reach); row <= bounded(x + reach); ++row) {
            from = std::lower_bound(from, keys_.end(), key(row, first, 0));
            const auto to = std::upper_bound(from, keys_.end(), key(row, last, kMost - 1));
            if (from != to)
                runs.cells.emplace_back(static_cast<std::int32_t>(from - keys_.begin()),
                                        static_cast<std::int32_t>(to - keys_.begin()));
            from = to;
            if (from == keys_.end()) break;
        }
    }

    void shape(const double* at, const Runs& runs, double radius, float* out, float* normal) const {
        const double square = radius * radius;
        double weight = 0.0, sx = 0.0, sy = 0.0, sz = 0.0;
        double xx = 0.0, xy = 0.0, xz = 0.0, yy = 0.0, yz = 0.0, zz = 0.0;
        double low = 0.0, high = 0.0, deepest = 0.0, highest = 0.0;
        double total = 0.0, above = 0.0, below = 0.0, cells = 0.0;
        double column_z = 0.0, column_zz = 0.0;
        for (const auto& [begin, end] : runs.cells) {
            for (std::int32_t i = begin; i < end; ++i) {
                const double dx = x_[i] - at[0], dy = y_[i] - at[1], across = dx * dx + dy * dy;
                if (across > square) continue;
                const double dz = z_[i] - at[2], w = weight_[i];
                total += w;
                column_z += w * dz;
                column_zz += w * dz * dz;
                deepest = std::min(deepest, bottom_[i] - at[2]);
                highest = std::max(highest, top_[i] - at[2]);
                above += dz > radius ? w : 0.0;
                below += dz < -radius ? w : 0.0;
                if (across + dz * dz > square) continue;
                const auto& s = scatter_[i];
                cells += 1.0;
                weight += w;
                sx += w * dx;
                sy += w * dy;
                sz += w * dz;
                xx += w * dx * dx + s[0];
                xy += w * dx * dy + s[1];
                xz += w * dx * dz + s[2];
                yy += w * dy * dy + s[3];
                yz += w * dy * dz + s[4];
                zz += w * dz * dz + s[5];
                low = std::min(low, bottom_[i] - at[2]);
                high = std::max(high, top_[i] - at[2]);
            }
        }
        const double one = 1.0 / std::max(weight, 1e-300), mx = sx * one, my = sy * one, mz = sz * one;
        const Eigen3 found = eigen3({xx * one - mx * mx, xy * one - mx * my, xz * one - mx * mz, yy * one - my * my,
                                     yz * one - my * mz, zz * one - mz * mz});
        const double l1 = std::max(found.values[0], 1e-12 * square), l2 = std::max(found.values[1], 0.0),
                     l3 = std::max(found.values[2], 0.0), sum = l1 + l2 + l3;
        const auto entropy = [&](double value) {
            const double share = value / sum;
            return share > 0 ? -share * std::log(share) : 0.0;
        };
        const double all = std::max(total, 1e-300), mean = column_z / all;
        const double features[kShapes] = {
            (l1 - l2) / l1,                                           // linearity
            (l2 - l3) / l1,                                           // planarity
            l3 / l1,                                                  // scattering
            std::cbrt(l1 * l2 * l3) / square,                         // omnivariance
            (l1 - l3) / l1,                                           // anisotropy
            entropy(l1) + entropy(l2) + entropy(l3),                  // eigenentropy
            l3 / sum,                                                 // change of curvature
            1.0 - std::abs(found.vectors[2][2]),                      // verticality
            std::abs(found.vectors[0][2]),                            // upward part of the main direction
            std::sqrt(l1) / radius,                                   // spread
            std::sqrt(std::max(zz * one - mz * mz, 0.0)) / radius,    // vertical spread
            std::sqrt(mx * mx + my * my) / radius,                    // offset of the centroid
            mz / radius,                                              // rise of the centroid
            std::log1p(weight),                                       // points in the ball
            std::log1p(cells),                                        // cells in the ball
            high - low,                                               // height range of the ball
            -deepest,                                                 // depth of the column's lowest point
            highest,                                                  // height of the column's highest point
            std::sqrt(std::max(column_zz / all - mean * mean, 0.0)),  // vertical spread of the column
            (above - below) / all,                                    // balance of the column above and below
            std::log1p(total),                                        // points in the column
            weight / all,  // share of the column's points that lie in the ball
        };
        for (int j = 0; j < kShapes; ++j) out[j] = static_cast<float>(features[j]);
        const double upwards = found.vectors[2][2] < 0 ? -1.0 : 1.0;
        for (int a = 0; a < 3; ++a) normal[a] = static_cast<float>(upwards * found.vectors[2][a]);
    }

    void mean(const double* at, const Runs& runs, double radius, double gap, const float* sums, std::int64_t k,
              float missing, float* out) const {
        const double square = radius * radius;
        std::fill(out, out + 3 * k, 0.0F);
        std::array<double, 3> weight{};
        const auto take = [&](int where, std::int32_t cell) {
            weight[where] += weight_[cell];
            for (std::int64_t j = 0; j < k; ++j) out[where * k + j] += sums[cell * k + j];
        };
        for (const auto& [begin, end] : runs.cells) {
            for (std::int32_t i = begin; i < end; ++i) {
                const double dx = x_[i] - at[0], dy = y_[i] - at[1], across = dx * dx + dy * dy;
                if (across > square) continue;
                const double dz = z_[i] - at[2];
                if (across + dz * dz <= square) take(0, i);
                if (dz > gap) take(1, i);
                if (dz < -gap) take(2, i);
            }
        }
        for (int where = 0; where < 3; ++where)
            for (std::int64_t j = 0; j < k; ++j) {
                float& value = out[where * k + j];
                value = weight[where] > 0 ? static_cast<float>(value / weight[where]) : missing;
            }
    }

    double size_;
    std::array<double, 3> low_{};
    std::vector<std::int32_t> cell_of_;
    std::vector<std::uint64_t> keys_;
    std::vector<double> x_, y_, z_, weight_, bottom_, top_;
    std::vector<std::array<double, 6>> scatter_;
};

}  // namespace maxmargin::scans
