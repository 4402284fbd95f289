// Masters::joint: generalized Newton steps in all weights of some blocks, see simplex/masters.hpp.
#pragma once

#include "maxmargin/simplex/masters.hpp"

namespace maxmargin::simplex {

inline Outcome Masters::joint(std::span<const std::int64_t> chosen, double tolerance, int limit) {
    std::vector<const Point*> points;
    std::vector<std::int64_t> offsets{0};
    std::vector<double> q;
    for (const std::int64_t b : chosen) {
        blocks_[b].solved = true;
        for (const Point& point : blocks_[b].points) points.push_back(&point);
        q.insert(q.end(), blocks_[b].q.begin(), blocks_[b].q.end());
        offsets.push_back(static_cast<std::int64_t>(points.size()));
    }
    const auto m = static_cast<std::int64_t>(points.size());
    Outcome outcome;
    if (m == 0) return outcome;
    std::vector<double> gram(static_cast<std::size_t>(m * m)), masses(cone_ ? gram.size() : 0);
    for (std::size_t b = 0; b < chosen.size(); ++b) {
        const Block& own = blocks_[chosen[b]];
        for (std::int64_t i = 0; i < own.size(); ++i) {
            const std::int64_t row = offsets[b] + i;
            std::copy_n(&own.gram[i * own.stride], own.size(), &gram[row * m + offsets[b]]);
            if (cone_) std::copy_n(&own.masses[i * own.stride], own.size(), &masses[row * m + offsets[b]]);
            const Point& point = *points[row];
            for (std::int64_t k = 0; k < point.size(); ++k) scatter_[point.index[k]] += point.value[k];
            for (std::int64_t j = offsets[b + 1]; j < m; ++j) {
                gram[row * m + j] = gram[j * m + row] = products(*points[j]);
                if (cone_) masses[row * m + j] = masses[j * m + row] = mass_products(*points[j]);
            }
            for (const std::int32_t at : point.index) scatter_[at] = 0.0;
        }
    }
    // Columns of the coordinates that do not always count.
    std::vector<std::int64_t> special;
    std::vector<double> columns, counted;
    if (!response_.plain()) {
        std::vector<std::int64_t> place(static_cast<std::size_t>(n_weights_), -1);
        for (const Point* point : points)
            for (std::int64_t k = 0; k < point->split; ++k)
                if (const std::int32_t at = point->index[k]; place[at] < 0 && response_.bends(at)) {
                    place[at] = static_cast<std::int64_t>(special.size());
                    special.push_back(at);
                }
        columns.assign(special.size() * static_cast<std::size_t>(m), 0.0);
        counted.assign(special.size(), 1.0);
        for (std::int64_t j = 0; j < m; ++j)
            for (std::int64_t k = 0; k < points[j]->split; ++k)
                if (const std::int64_t at = place[points[j]->index[k]]; at >= 0)
                    columns[at * m + j] += points[j]->value[k];
    }
    std::vector<double> h = gram, p(m), moved(m), model(m), pull(m), dg(static_cast<std::size_t>(n_coordinates()));
    const bool plain = response_.plain();
    for (int step = 0;; ++step) {
        const double theta = response_.theta();
        double size = 0.0;
        for (std::int64_t j = 0; j < m; ++j) {
            p[j] = slope(*points[j], theta);
            size += q[j] * (cone_ ? 10.0 * std::abs(points[j]->loss) : std::abs(p[j]));
        }
        outcome.gap = 0.0;
        for (std::size_t b = 0; b < chosen.size(); ++b) outcome.gap += gap(blocks_[chosen[b]], &p[offsets[b]]);
        outcome.steps = step;
        if (!std::isfinite(outcome.gap) || !all_finite(p.data(), m)) {
            outcome.status = NONFINITE;
            return outcome;
        }
        outcome.status = OK;
        if (outcome.gap <= tolerance || outcome.gap <= 1e-15 * size) return outcome;
        outcome.status = INEXACT;
        if (step >= limit) return outcome;
        // The generalized Hessian over theta: the Gram matrix, with special coordinates counted as they bend now.
        for (std::size_t s = 0; s < special.size(); ++s) {
            const std::int64_t k = special[s];
            const double wanted = response_.counts(k) ? 1.0 : 0.0;
            const double by = wanted - counted[s];
            if (by == 0.0) continue;
            const double* column = &columns[s * static_cast<std::size_t>(m)];
            for (std::int64_t i = 0; i < m; ++i) {
                if (column[i] == 0.0) continue;
                const double times_row = by * column[i];
                for (std::int64_t j = 0; j < m; ++j) gram[i * m + j] += times_row * column[j];
            }
            counted[s] = wanted;
        }
        if (!plain || cone_) h = gram;
        if (cone_) {
            const double by = response_.mass_c() / theta;
            for (std::size_t k = 0; k < h.size(); ++k) h[k] += by * masses[k];
        }
        if (response_.curbed()) {
            for (std::int64_t j = 0; j < m; ++j)
                pull[j] = response_.across(points[j]->index.data(), points[j]->value.data(), points[j]->split);
            for (std::int64_t i = 0; i < m; ++i)
                for (std::int64_t j = 0; j < m; ++j) h[i * m + j] -= pull[i] * pull[j];
        }
        for (std::int64_t j = 0; j < m; ++j) {
            model[j] = p[j] / theta;
            moved[j] = q[j];
        }
        const Program program{m, h.data(), m, offsets, cone_};
        // The program's own measure of cones does not bound the gap: where it was met too early the next step aims
        // lower, in the end at rounding.
        const bool last = !cone_ || step >= 2;
        const double part = !cone_ ? 0.5 : (step == 0 ? 0.1 : (step == 1 ? 1e-3 : 0.0));
        const double aim = (plain ? part * tolerance : std::min(part * tolerance, 0.01 * outcome.gap)) / theta;
        newton(program, moved.data(), model.data(), aim, 100, newton_);
        std::fill(dg.begin(), dg.end(), 0.0);
        double linear = 0.0;
        for (std::int64_t j = 0; j < m; ++j) {
            const double by = moved[j] - q[j];
            if (by == 0.0) continue;
            linear -= by * points[j]->loss;
            for (std::int64_t k = 0; k < points[j]->size(); ++k) dg[points[j]->index[k]] += by * points[j]->value[k];
        }
        const double t = plain ? 1.0 : response_.search(dg, linear);
        if (t == 0.0 && last) return outcome;  // rounding: no descent is left
        bool still = true;
        for (std::size_t b = 0; b < chosen.size(); ++b)
            for (std::int64_t j = offsets[b]; j < offsets[b + 1]; ++j) {
                const double now = std::max(0.0, t == 1.0 ? moved[j] : q[j] + t * (moved[j] - q[j]));
                still = still && now == q[j];
                q[j] = blocks_[chosen[b]].q[j - offsets[b]] = now;
            }
        response_.move(dg, t);
        if (still && last) return outcome;
    }
}

}  // namespace maxmargin::simplex
