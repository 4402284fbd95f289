// Euclidean projection onto the unit flows of a lattice: a quadratic flow, by its dual over node potentials.
//
//     min D(x) = 1/2 sum_e max(0, t_e)^2 + x_start - x_end,    t_e = a_e - x_tail + x_head,    z_e = max(0, t_e)
//
// D is convex and piecewise quadratic. Its gradient at a node is inflow less outflow, plus 1 at the start and less 1 at
// the end; its Hessian is the Laplacian of the graph of edges with z_e > 0 (the support). So a Newton step (semismooth:
// Qi and Sun 1993) ends exactly at the solution once the support is right. In topological order, in which a lattice is
// narrow, the Laplacian is factorized with little fill. A multiple of the identity that shrinks with the gradient keeps
// the system regular where the support is not connected, and a line search along the direction, whose derivative is
// piecewise linear and rising, makes D fall in every step.
//
// Before that the point is moved by potentials, which changes nothing but the potentials found: by the best scores of
// paths to each node, so that the best path has scores of 0 and no edge a positive one. A point far outside the
// polytope loses no digits that way. The method ends when no entry of the gradient is above tol / (1000 nodes), or
// rounding if that is larger: z is then the exact projection onto flows that lose no more at any node. Last, what
// leaves a node is divided anew among the edges into it by their shares, so that z is a unit flow to rounding.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "maxmargin/cut/linear_system.hpp"
#include "maxmargin/lattice/best_path.hpp"
#include "maxmargin/lattice/sum_product.hpp"

namespace maxmargin::lattice {

// Solves one example after the other; owns the scratch of one thread and keeps nothing from one example to the next.
class Projector {
   public:
    std::int32_t steps = 0;  // Newton steps of the last example

    // Writes z, which must be zero, and the potentials of the nodes on paths, which also hold the start if `warm`.
    Status project(const Example& ex, const double* point, double tol, bool warm, double* potentials, double* z,
                   double& value) {
        steps = 0;
        double size = 0.0;
        for (std::int64_t e = 0; e < ex.n_parts; ++e) size += std::fabs(point[e]);
        if (!std::isfinite(size)) return Status::nonfinite;
        ex_ = ex;
        reserve();
        forward_maxima(ex, point, level_.data());
        for (std::int64_t v = 1; v < ex.n_nodes; ++v)
            for (std::int64_t j = ex.first[v]; j < ex.first[v + 1]; ++j)
                a_[j] = (point[ex.edge[j]] + level_[ex.tail[j]]) - level_[v];
        if (warm) {
            const double shift = potentials[ex.last()] + level_[ex.last()];
            for (std::int64_t v = 0; v < ex.n_nodes; ++v) x_[v] = potentials[v] + level_[v] - shift;
            for (std::int64_t v = 0; v < ex.n_nodes; ++v) warm = warm && std::isfinite(x_[v]);
        }
        if (!warm) start(point);
        const bool solved = minimize(tol / (1000.0 * static_cast<double>(ex.n_nodes)));
        for (std::int64_t v = 0; v < ex.n_nodes; ++v) potentials[v] = x_[v] - level_[v];
        make_flow(z);
        value = 0.0;
        for (std::int64_t e = 0; e < ex.n_parts; ++e) value += 0.5 * (z[e] - point[e]) * (z[e] - point[e]);
        return solved ? Status::ok : Status::inexact;
    }

   private:
    static constexpr int MOST_STEPS = 200, MOST_TRIALS = 60;

    void reserve() {
        const auto n = static_cast<std::size_t>(ex_.n_nodes), m = static_cast<std::size_t>(ex_.n_edges);
        for (auto* values : {&level_, &x_, &d_, &gradient_}) at_least(*values, n);
        for (auto* values : {&a_, &t_, &share_}) at_least(*values, m);
        for (auto* values : {&out_first_, &count_}) at_least(*values, n + 1);
        at_least(out_, m);
        system_.reserve(static_cast<std::int32_t>(ex_.n_nodes), static_cast<std::int32_t>(ex_.n_edges));
        passes_.fit(ex_);
        // The edges by their tails.
        std::fill_n(out_first_.begin(), n + 1, 0);
        for (std::size_t j = 0; j < m; ++j) ++out_first_[ex_.tail[j] + 1];
        for (std::size_t v = 0; v < n; ++v) out_first_[v + 1] += out_first_[v];
        std::copy_n(out_first_.begin(), n + 1, count_.begin());
        for (std::int64_t v = 1; v < ex_.n_nodes; ++v)
            for (std::int32_t j = ex_.first[v]; j < ex_.first[v + 1]; ++j)
                out_[count_[ex_.tail[j]]++] = {j, static_cast<std::int32_t>(v)};
    }

    // Potentials at which as much flows into every node as marginals of sharpened scores say, and a little more: a
    // support that joins all nodes to the start and is not far from that of the solution.
    void start(const double* point) {
        constexpr double sharpness = 4.0, least = 1e-3;
        guess_.resize(static_cast<std::size_t>(ex_.n_parts));
        for (std::int64_t e = 0; e < ex_.n_parts; ++e) guess_[e] = sharpness * point[e];
        double* flow = passes_.flow.data();
        if (forward_sums(simd::lanes_in_use(), ex_, guess_.data(), passes_.at_node.data(), share_.data())) {
            flow_by_shares(ex_, share_.data(), flow, guess_.data());
        } else {
            std::fill(flow, flow + ex_.n_nodes, 1.0);
        }
        x_[0] = 0.0;
        for (std::int64_t v = 1; v < ex_.n_nodes; ++v) {
            // sum_j max(0, s_j + x_v) = wanted for s_j = a_j - x_tail: from the largest s_j down.
            const double wanted = std::max(flow[v], least);
            double most = NEG_INF;
            for (std::int64_t j = ex_.first[v]; j < ex_.first[v + 1]; ++j)
                most = std::max(most, share_[j] = a_[j] - x_[ex_.tail[j]]);
            double level = wanted - most;
            for (int round = 0; round < 100; ++round) {
                double sum = 0.0, count = 0.0;
                for (std::int64_t j = ex_.first[v]; j < ex_.first[v + 1]; ++j)
                    if (share_[j] + level > 0.0) {
                        sum += share_[j];
                        count += 1.0;
                    }
                const double better = (wanted - sum) / count;
                if (!(better < level)) break;
                level = better;
            }
            x_[v] = level;
        }
        const double end = x_[ex_.last()];
        for (std::int64_t v = 0; v < ex_.n_nodes; ++v) x_[v] -= end;
    }

    // t and the gradient at x; returns the largest entry of the gradient, but for the end, whose potential is 0.
    double evaluate() {
        const double* x = x_.data();
        double* gradient = gradient_.data();
        std::fill(gradient, gradient + ex_.n_nodes, 0.0);
        gradient[0] = 1.0;
        gradient[ex_.last()] -= 1.0;
        for (std::int64_t v = 1; v < ex_.n_nodes; ++v) {
            double in = 0.0;
            for (std::int64_t j = ex_.first[v]; j < ex_.first[v + 1]; ++j) {
                t_[j] = (a_[j] - x[ex_.tail[j]]) + x[v];
                const double z = t_[j] > 0.0 ? t_[j] : 0.0;
                in += z;
                gradient[ex_.tail[j]] -= z;
            }
            gradient[v] += in;
        }
        double most = 0.0;
        for (std::int64_t v = 0; v < ex_.last(); ++v) most = std::max(most, std::fabs(gradient[v]));
        return most;
    }

    // Leaves t at the solution; false if the gradient is still above `enough`, or rounding if that is larger. Steps go
    // on below that while they halve it.
    bool minimize(double enough) {
        double most = evaluate(), least = most;
        for (bool halved = true; steps < MOST_STEPS && most > 0.0; ++steps) {
            if (!halved && most <= std::max(enough, rounding())) break;
            newton(std::max(1e-12, 1e-8 * std::min(most, 1.0)), most);
            if (!advance()) break;
            most = evaluate();
            halved = most <= 0.5 * least;
            least = std::min(least, most);
        }
        return most <= std::max(enough, rounding());
    }

    // By how much the sums of a gradient may be off.
    double rounding() const {
        double size = 1.0;
        for (std::int64_t v = 0; v < ex_.n_nodes; ++v) size = std::max(size, std::fabs(x_[v]));
        return 64.0 * std::numeric_limits<double>::epsilon() * size;
    }

    // d = -(H + shift I)^-1 gradient, with the end held.
    void newton(double shift, double most) {
        const auto n = static_cast<std::int32_t>(ex_.last());
        system_.begin(n);
        for (std::int32_t v = 0; v < n; ++v) {
            double degree = shift;
            for (std::int32_t j = ex_.first[v]; j < ex_.first[v + 1]; ++j) {
                if (!(t_[j] > 0.0)) continue;
                degree += 1.0;
                system_.entry(ex_.tail[j], 1.0);
            }
            for (std::int32_t a = out_first_[v]; a < out_first_[v + 1]; ++a) {
                if (!(t_[out_[a].edge] > 0.0)) continue;
                degree += 1.0;
                if (out_[a].head < n) system_.entry(out_[a].head, 1.0);
            }
            system_.row(degree);
            d_[v] = -gradient_[v];
        }
        d_[n] = 0.0;
        system_.solve(1e6, 1e-3 * most, d_.data());
    }

    // The derivative of D along d, `step` from x.
    double slope(double step) {
        double sum = d_[0] - d_[ex_.last()];
        for (std::int64_t v = 1; v < ex_.n_nodes; ++v)
            for (std::int64_t j = ex_.first[v]; j < ex_.first[v + 1]; ++j) {
                const double rise = d_[v] - d_[ex_.tail[j]], t = t_[j] + step * rise;
                sum += t > 0.0 ? t * rise : 0.0;
            }
        return sum;
    }

    // Moves x along d to where D falls no more, or nearly so; false if it does not fall.
    bool advance() {
        const double at_zero = slope(0.0), enough = -0.1 * at_zero;
        if (!(at_zero < 0.0)) return false;
        // The slope rises: where D still falls at the end of a full step, it has fallen all along.
        double step = 1.0, found = slope(step);
        if (found > enough) {
            double low = 0.0, high = step, at_low = at_zero, at_high = found;
            for (int trial = 0; trial < MOST_TRIALS && std::fabs(found) > enough; ++trial) {
                // Where the slope would be zero if it were linear; now and then in the middle, so that both ends move.
                step = trial % 3 == 2 ? 0.5 * (low + high) : low - at_low * (high - low) / (at_high - at_low);
                found = slope(step);
                (found > 0.0 ? high : low) = step;
                (found > 0.0 ? at_high : at_low) = found;
            }
            if (found > enough) step = low;
        }
        bool moved = false;
        for (std::int64_t v = 0; v < ex_.last(); ++v) {
            const double next = x_[v] + step * d_[v];
            moved |= next != x_[v];
            x_[v] = next;
        }
        return moved;
    }

    // The unit flow with the shares of max(0, t) at each node; where nothing flows in, by the edge of the largest t.
    void make_flow(double* z) {
        for (std::int64_t v = 1; v < ex_.n_nodes; ++v) {
            double sum = 0.0;
            std::int64_t largest = ex_.first[v];
            for (std::int64_t j = ex_.first[v]; j < ex_.first[v + 1]; ++j) {
                sum += share_[j] = t_[j] > 0.0 ? t_[j] : 0.0;
                if (t_[j] > t_[largest]) largest = j;
            }
            if (sum > 0.0)
                for (std::int64_t j = ex_.first[v]; j < ex_.first[v + 1]; ++j) share_[j] /= sum;
            else share_[largest] = 1.0;
        }
        flow_by_shares(ex_, share_.data(), passes_.flow.data(), z);
    }

    struct Out {
        std::int32_t edge, head;
    };

    Example ex_{};
    Passes passes_;
    cut::LaplacianSystem system_;
    std::vector<double> level_, x_, d_, gradient_;  // per node
    std::vector<double> a_, t_, share_;             // per edge of the list by heads
    std::vector<double> guess_;                     // per edge as given
    std::vector<std::int32_t> out_first_, count_;
    std::vector<Out> out_;
};

// `potentials`: for every node of the batch as given, zero where it lies on no path. z must be zero on entry.
inline void project(const Batch& batch, std::span<const double> point, double tol, bool warm,
                    std::span<double> potentials, std::span<double> z, std::span<double> value,
                    std::span<std::int8_t> status, std::span<std::int32_t> steps, int threads) {
    struct Scratch {
        Projector projector;
        std::vector<double> own;
    };
    auto scratch = per_thread<Scratch>(threads);
    parallel_each(batch.size(), 1, threads, [&](int thread, std::int64_t i) {
        const Example ex = batch[i];
        auto& [projector, own] = scratch[thread];
        at_least(own, static_cast<std::size_t>(ex.n_nodes));
        const auto places = batch.positions(i);
        double* given = potentials.data() + batch.node_begin(i);
        for (std::size_t v = 0; v < places.size(); ++v)
            if (places[v] >= 0) own[places[v]] = given[v];
        const std::int64_t at = batch.begin(i);
        const Status found = projector.project(ex, point.data() + at, tol, warm, own.data(), z.data() + at, value[i]);
        const bool fine = found == Status::ok || found == Status::inexact;
        for (std::size_t v = 0; v < places.size(); ++v) given[v] = fine && places[v] >= 0 ? own[places[v]] : 0.0;
        if (!fine) {
            value[i] = no_value(found);
            std::fill_n(z.data() + at, ex.n_parts, 0.0);
        }
        status[i] = static_cast<std::int8_t>(found);
        steps[i] = projector.steps;
    });
}

}  // namespace maxmargin::lattice
