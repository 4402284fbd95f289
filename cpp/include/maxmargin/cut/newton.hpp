// The projection onto one cut polytope by an augmented Lagrangian with semismooth Newton steps.
//
// The multipliers are the net flows f of cut/dual.hpp. For fixed f and sigma the x in the box that minimizes
//
//   G(x) = 1/2 |x - a|^2 + sum_e max_s { s d_e - h_e(s) - (s - f_e)^2 / (2 sigma) },  d_e = x_j - x_k              (4)
//
// gives the next flow s_e = prox_{sigma h_e}(f_e + sigma d_e) (Rockafellar 1976; with Newton steps inside: Li, Sun and
// Toh 2018). G is piecewise quadratic with Hessian I + a Laplacian: weight sigma on the flat part of h (fused edges),
// sigma / (1 + sigma) beyond, 0 on idle edges and on directed ones that rise. Nodes that stay at 0 or 1 drop out of the
// Newton system, and only edges with a free end are looked at between two updates of the multipliers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "maxmargin/base/scratch.hpp"
#include "maxmargin/base/simd.hpp"
#include "maxmargin/cut/dual.hpp"
#include "maxmargin/cut/linear_system.hpp"

namespace maxmargin::cut {

// Next flow, Hessian weight and energy of n edges of (4), each from its difference d, target a, least flow and
// multiplier f.
static MM_CLONES void flow_steps(std::int32_t n, double sigma, const double* MM_RESTRICT d, const double* MM_RESTRICT a,
                                 const double* MM_RESTRICT least, const double* MM_RESTRICT f, double* MM_RESTRICT next,
                                 double* MM_RESTRICT weight, double* MM_RESTRICT energy) {
    const double half = 0.5 / sigma, shrink = 1.0 / (1.0 + sigma), soft = sigma * shrink;
    for (std::int32_t e = 0; e < n; ++e) {
        const double v = f[e] + sigma * d[e], u = std::max(v, least[e]);
        const double T = std::abs(u), q = (T - sigma * a[e]) * shrink;
        const double s = std::max(0.0, std::min(T, q)), step = std::copysign(s, u);
        const double beyond = s * (a[e] + 0.5 * s), flat = -0.5 * a[e] * a[e];
        const double curved = q > 0.0 ? soft : 0.0;
        next[e] = step;
        const double rising = q < T ? curved : sigma;
        weight[e] = v < least[e] ? 0.0 : rising;
        energy[e] = step * d[e] - (s >= -a[e] ? beyond : flat) - half * (step - f[e]) * (step - f[e]);
    }
}

class CutNewton {
   public:
    void reserve(std::int32_t nodes, std::int32_t edges) {
        for (auto* v : {&v_, &gradient_, &trial_, &snapped_, &step_}) at_least(*v, nodes);
        for (auto* e : {&flow_, &weight_, &energy_, &difference_, &near_target_, &near_least_, &near_flow_, &near_next_,
                        &near_weight_, &near_energy_})
            at_least(*e, edges);
        for (auto* i : {&place_, &free_, &group_, &size_}) at_least(*i, nodes);
        at_least(touched_, edges);
        at_least(member_start_, static_cast<std::size_t>(nodes) + 1);
        system_.reserve(nodes, edges);
    }

    // Improves `flow`, writes x and returns the duality gap of the two. It is at most `target`, or at most `rounding`
    // where rounding stops all progress before, unless the limits came first.
    double run(const CutTarget& t, double target, double rounding, double* flow, double* x) {
        const CutExample& g = t.graph;
        net_outflow(g, flow, v_.data());
        double excess = 0.0;
        std::int32_t outside = 0;
        for (std::int32_t j = 0; j < g.nodes; ++j) {
            x[j] = clip01(t.node[j] - v_[j]);
            const double over = std::abs(t.node[j] - clip01(t.node[j]));
            excess += over;
            outside += over > 0.0;
        }
        double gap = cut_gap(t, x, flow, v_.data());
        if (gap <= target) return gap;
        const bool cold = std::all_of(flow, flow + g.edges, [](double f) { return f == 0.0; });
        // The first rounds let nodes go a little beyond 0 and 1. Among the many flows that hold a region at a bound
        // they find one with room to spare, so that its nodes drop out of the Newton systems, here and after a warm
        // start.
        const int wide_rounds = outside == 0 ? 0 : cold ? 2 : 1;
        const double room = outside == 0 ? 0.0 : wide_part * excess / outside;
        low_ = -room;
        high_ = 1.0 + room;
        for (std::int32_t j = 0; j < g.nodes; ++j) x[j] = std::clamp(t.node[j] - v_[j], low_, high_);
        // Differences are at most 1, flows as large as the targets: sigma has the size of their ratio.
        const double scale = outside == 0 ? 1.0 : std::max(1.0, excess / outside);
        double sigma = first_sigma * scale, best = std::numeric_limits<double>::infinity();
        int failures = 0, idle = 0;
        for (int round = 0; round < max_rounds; ++round) {
            if (round == wide_rounds) {
                low_ = 0.0;
                high_ = 1.0;
                for (std::int32_t j = 0; j < g.nodes; ++j) x[j] = clip01(x[j]);
            }
            const bool solved = minimize(t, sigma, target, flow, x);
            // The gap is about the square of the last move: checking earlier is useless.
            const bool last = round + 1 == max_rounds;
            if (moved_ * moved_ <= 10.0 * target || round % 8 == 7 || last) {
                snap(t, sigma, x);
                gap = cut_gap(t, snapped_.data(), flow_.data(), v_.data());
                idle = gap < 0.5 * best ? 0 : idle + 1;
                best = std::min(best, gap);
                if (gap <= target || (gap <= rounding && idle >= 3) || last) {
                    gap = polish(t, sigma, gap);
                    std::copy(flow_.begin(), flow_.begin() + g.edges, flow);
                    std::copy(snapped_.begin(), snapped_.begin() + g.nodes, x);
                    return gap;
                }
            }
            if (solved) {
                for (std::int32_t e = 0; e < g.edges; ++e) flow[e] = flow_[e] + over_relaxation * (flow_[e] - flow[e]);
                sigma = std::min(sigma * growth, largest_sigma * scale);
                failures = 0;
            } else {
                std::copy(flow_.begin(), flow_.begin() + g.edges, flow);
                if (++failures == 2) {  // too stiff for the few steps that it gets
                    sigma = std::max(0.5 * sigma, smallest_sigma);
                    failures = 0;
                }
            }
        }
        return gap;
    }

   private:
    // Chosen by measurement on surface meshes; each is flat around its value.
    static constexpr double first_sigma = 1.0, growth = 3.0, smallest_sigma = 0.5, largest_sigma = 1e6;
    static constexpr double wide_part = 0.3, over_relaxation = 0.3;
    static constexpr int max_rounds = 120, steps_per_round = 3, max_halvings = 30;

    // Flow, weight and energy of every edge at x, and the net outflow; returns the squared change of the flow.
    double evaluate_all(const CutTarget& t, double sigma, const double* flow, const double* x) {
        const CutExample& g = t.graph;
        for (std::int32_t e = 0; e < g.edges; ++e) difference_[e] = x[g.ends[2 * e]] - x[g.ends[2 * e + 1]];
        flow_steps(g.edges, sigma, difference_.data(), t.edge, t.least, flow, flow_.data(), weight_.data(),
                   energy_.data());
        std::fill(v_.begin(), v_.begin() + g.nodes, 0.0);
        double change = 0.0;
        for (std::int32_t e = 0; e < g.edges; ++e) {
            const double f = flow_[e];
            v_[g.ends[2 * e]] += f;
            v_[g.ends[2 * e + 1]] -= f;
            change += (f - flow[e]) * (f - flow[e]);
        }
        return change;
    }

    // The same on the touched edges only; returns their energy.
    double evaluate_touched(const CutTarget& t, double sigma, const double* x) {
        const CutExample& g = t.graph;
        for (std::int32_t i = 0; i < touches_; ++i) {
            const std::int32_t e = touched_[i];
            difference_[i] = x[g.ends[2 * e]] - x[g.ends[2 * e + 1]];
        }
        flow_steps(touches_, sigma, difference_.data(), near_target_.data(), near_least_.data(), near_flow_.data(),
                   near_next_.data(), near_weight_.data(), near_energy_.data());
        double sum = 0.0;
        for (std::int32_t i = 0; i < touches_; ++i) {
            const std::int32_t e = touched_[i];
            const double change = near_next_[i] - flow_[e];
            flow_[e] = near_next_[i];
            weight_[e] = near_weight_[i];
            energy_[e] = near_energy_[i];
            v_[g.ends[2 * e]] += change;
            v_[g.ends[2 * e + 1]] -= change;
            sum += near_energy_[i];
        }
        return sum;
    }

    // Finds the free nodes, in elimination order; returns the norm of the gradient on them.
    double projected_gradient(const CutTarget& t, const double* x) {
        double square = 0.0;
        count_ = 0;
        for (std::int32_t j = 0; j < t.graph.nodes; ++j) {
            const double d = x[j] - t.node[j] + v_[j];
            const bool fixed = (x[j] <= low_ && d >= 0.0) || (x[j] >= high_ && d <= 0.0);
            gradient_[j] = d;
            place_[j] = fixed ? -1 : count_;
            if (!fixed) {
                free_[count_++] = j;
                square += d * d;
            }
        }
        return std::sqrt(square);
    }

    // A few Newton steps on (4); true if the gradient came down to the size of the multipliers' move, which is as much
    // as the outer method needs.
    bool minimize(const CutTarget& t, double sigma, double target, const double* flow, double* x) {
        double change = evaluate_all(t, sigma, flow, x);
        std::copy(x, x + t.graph.nodes, trial_.data());
        for (int iteration = 0;; ++iteration) {
            const double norm = projected_gradient(t, x);
            moved_ = std::sqrt(change) / sigma;
            const double enough = std::max(0.1 * std::sqrt(target), moved_);
            if (norm <= enough) return true;
            if (iteration == steps_per_round) return false;
            assemble(t);
            for (std::int32_t i = 0; i < count_; ++i) step_[i] = -gradient_[free_[i]];
            system_.solve(sigma, std::max(0.3 * enough, 0.01 * norm), step_.data());
            double before = 0.0;
            for (std::int32_t i = 0; i < touches_; ++i) {
                const std::int32_t e = touched_[i];
                near_target_[i] = t.edge[e];
                near_least_[i] = t.least[e];
                near_flow_[i] = flow[e];
                before += energy_[e];
                change -= (flow_[e] - flow[e]) * (flow_[e] - flow[e]);
            }
            double length = 1.0;
            for (int halvings = 0;; ++halvings) {
                // The change of 1/2 |x - a|^2 from its differences, so that it keeps its digits near the end.
                double slope = 0.0, nodes = 0.0;
                for (std::int32_t i = 0; i < count_; ++i) {
                    const std::int32_t j = free_[i];
                    trial_[j] = std::clamp(x[j] + length * step_[i], low_, high_);
                    const double move = trial_[j] - x[j];
                    slope += gradient_[j] * move;
                    nodes += move * (0.5 * move + x[j] - t.node[j]);
                }
                const double after = evaluate_touched(t, sigma, trial_.data());
                const double allowed = 1e-4 * slope + 1e-15 * std::abs(before);
                if (nodes + after - before <= allowed || halvings == max_halvings) break;
                length *= 0.5;
            }
            for (std::int32_t i = 0; i < count_; ++i) x[free_[i]] = trial_[free_[i]];
            for (std::int32_t i = 0; i < touches_; ++i) {
                const std::int32_t e = touched_[i];
                change += (flow_[e] - flow[e]) * (flow_[e] - flow[e]);
            }
            change = std::max(0.0, change);
        }
    }

    // The Newton system on the free nodes, and the edges that have a free end.
    void assemble(const CutTarget& t) {
        const CutExample& g = t.graph;
        system_.begin(count_);
        touches_ = 0;
        for (std::int32_t i = 0; i < count_; ++i) {
            const std::int32_t j = free_[i];
            double diagonal = 1.0;
            for (std::int32_t a = g.first_arc(j), end = g.first_arc(j + 1); a < end; ++a) {
                const std::int32_t arc = g.arcs[a], e = arc >> 1, k = place_[g.ends[arc ^ 1]];
                if (k < i) touched_[touches_++] = e;
                const double w = weight_[e];
                if (w == 0.0) continue;
                diagonal += w;
                if (k >= 0) system_.entry(k, w);
            }
            system_.row(diagonal);
        }
    }

    std::int32_t find(std::int32_t node) {
        while (group_[node] != node) {
            group_[node] = group_[group_[node]];
            node = group_[node];
        }
        return node;
    }

    // Nodes joined by fused edges get one value: the bound if one of them is fixed there, else their mean. The gap is
    // linear in what is left of x_j - x_k on a fused edge, and quadratic in the error of the common value.
    void snap(const CutTarget& t, double sigma, const double* x) {
        const CutExample& g = t.graph;
        for (std::int32_t j = 0; j < g.nodes; ++j) {
            group_[j] = j;
            size_[j] = 0;
            snapped_[j] = 0.0;
        }
        for (std::int32_t e = 0; e < g.edges; ++e) {
            if (weight_[e] != sigma) continue;
            const std::int32_t j = find(g.ends[2 * e]), k = find(g.ends[2 * e + 1]);
            group_[std::max(j, k)] = std::min(j, k);
        }
        for (std::int32_t j = 0; j < g.nodes; ++j) {
            const std::int32_t root = find(j);
            if (size_[root] < 0) continue;
            if (place_[j] < 0) {
                snapped_[root] = x[j];
                size_[root] = -1;
            } else {
                snapped_[root] += x[j];
                ++size_[root];
            }
        }
        for (std::int32_t j = 0; j < g.nodes; ++j)
            if (group_[j] == j && size_[j] > 0) snapped_[j] /= size_[j];
        for (std::int32_t j = 0; j < g.nodes; ++j) snapped_[j] = clip01(snapped_[find(j)]);
    }

    // One Newton step on (1) with the groups that snap() found as variables. Where the groups are right it is exact,
    // and then also max_v (a - z)'(v - z), which is linear in the error of x, comes down to rounding. Returns the gap.
    double polish(const CutTarget& t, double sigma, double gap) {
        const CutExample& g = t.graph;
        // size_ of a root: members of a free group, negative for a fixed one. Groups are numbered by their roots, which
        // are their first nodes in elimination order; free_ lists the members of group after group.
        count_ = 0;
        std::int32_t members = 0;
        for (std::int32_t j = 0; j < g.nodes; ++j) {
            const std::int32_t root = find(j);
            if (root == j && size_[j] > 0) {
                place_[j] = count_;
                member_start_[count_++] = members;
                members += size_[j];
            } else {
                place_[j] = size_[root] > 0 ? place_[root] : -1;
            }
        }
        if (count_ == 0) return gap;
        member_start_[count_] = members;
        for (std::int32_t j = 0; j < g.nodes; ++j)
            if (place_[j] >= 0) free_[member_start_[place_[j]]++] = j;
        for (std::int32_t c = count_; c > 0; --c) member_start_[c] = member_start_[c - 1];
        member_start_[0] = 0;
        system_.begin(count_);
        for (std::int32_t c = 0; c < count_; ++c) {
            double diagonal = 0.0, slope = 0.0;
            for (std::int32_t i = member_start_[c]; i < member_start_[c + 1]; ++i) {
                const std::int32_t j = free_[i];
                diagonal += 1.0;
                slope += snapped_[j] - t.node[j];
                for (std::int32_t a = g.first_arc(j), end = g.first_arc(j + 1); a < end; ++a) {
                    const std::int32_t arc = g.arcs[a], e = arc >> 1, k = g.ends[arc ^ 1];
                    const double d = snapped_[j] - snapped_[k], over = std::abs(d) - t.edge[e];
                    if (place_[k] == c || !(over > 0.0)) continue;
                    if (t.least[e] == 0.0 && !((arc & 1 ? -d : d) > 0.0)) continue;  // directed, and rising
                    const double flow = arc & 1 ? -flow_[e] : flow_[e];
                    slope += std::copysign(over, d != 0.0 ? d : flow);
                    diagonal += 1.0;
                    if (place_[k] >= 0) system_.entry(place_[k], 1.0);
                }
            }
            system_.row(diagonal);
            step_[c] = -slope;
        }
        system_.solve(sigma, 1e-15, step_.data());
        for (std::int32_t j = 0; j < g.nodes; ++j)
            trial_[j] = place_[j] < 0 ? snapped_[j] : clip01(snapped_[j] + step_[place_[j]]);
        const double polished = cut_gap(t, trial_.data(), flow_.data(), v_.data());
        if (!(polished <= gap)) return gap;
        std::swap(trial_, snapped_);
        return polished;
    }

    std::vector<double> v_, gradient_, trial_, snapped_, step_, flow_, weight_, energy_;
    std::vector<double> difference_, near_target_, near_least_, near_flow_, near_next_, near_weight_, near_energy_;
    std::vector<std::int32_t> place_, free_, group_, size_, touched_, member_start_;
    std::int32_t count_ = 0, touches_ = 0;
    double moved_ = 0.0, low_ = 0.0, high_ = 1.0;
    LaplacianSystem system_;
};

}  // namespace maxmargin::cut
