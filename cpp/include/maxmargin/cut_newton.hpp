// The projection onto one cut polytope by an augmented Lagrangian with semismooth Newton steps.
//
// The multipliers are the net flows f of cut_dual.hpp. For fixed f and sigma the x that minimises
//
//   G(x) = 1/2 |x - a|^2 + sum_e max_s { s d_e - h_e(s) - (s - f_e)^2 / (2 sigma) },   d_e = x_j - x_k,  0 <= x <= 1   (4)
//
// gives the next flow s_e = prox_{sigma h_e}(f_e + sigma d_e) (Rockafellar 1976; with Newton steps inside: Li, Sun and
// Toh 2018). G is piecewise quadratic with Hessian I + a Laplacian: weight sigma on the flat part of h (fused edges),
// sigma / (1 + sigma) beyond, 0 on idle edges. Nodes that stay at 0 or 1 drop out of the Newton system, and only edges
// with a free end are looked at between two updates of the multipliers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "maxmargin/cut_dual.hpp"
#include "maxmargin/cut_linear.hpp"

namespace maxmargin {

class CutNewton {
public:
    std::int64_t n_outer = 0, n_newton = 0, n_ls = 0, n_free = 0;

    void reserve(std::int32_t nodes, std::int32_t edges) {
        for (auto* v : {&v_, &gradient_, &trial_, &snapped_, &step_}) v->resize(nodes);
        for (auto* e : {&flow_, &weight_, &energy_}) e->resize(edges);
        for (auto* i : {&place_, &free_, &group_, &size_}) i->resize(nodes);
        touched_.resize(edges);
        system_.reserve(nodes, edges);
    }

    // Improves `flow` and x; returns the duality gap reached, which is <= target unless the limits came first.
    double run(const CutTarget& t, double target, double* flow, double* x) {
        const CutExample& g = t.graph;
        double sigma=getenv("CUT_S")?atof(getenv("CUT_S")):2,growth=getenv("CUT_G")?atof(getenv("CUT_G")):3;
        net_outflow(g, flow, v_.data());
        for (std::int32_t j = 0; j < g.nodes; ++j) x[j] = clip01(t.node[j] - v_[j]);
        double gap = cut_gap(t, x, flow, v_.data());
        for (int outer = 0; gap > target && outer < 100; ++outer) {
            ++n_outer;
            const double K=getenv("CUT_K")?atof(getenv("CUT_K")):0; const int KN=getenv("CUT_KN")?atoi(getenv("CUT_KN")):0;
            if (outer == 0 && KN>0) { low_ = -K; high_ = 1+K; for (std::int32_t j = 0; j < g.nodes; ++j) x[j] = std::min(high_, std::max(low_, t.node[j] - v_[j])); }
            if (outer == KN) { low_ = 0; high_ = 1; for (std::int32_t j = 0; j < g.nodes; ++j) x[j] = clip01(x[j]); }
            const bool solved = minimise(t, sigma, target, flow, x);
            const double rho = getenv("CUT_R")?atof(getenv("CUT_R")):1.0;
            if (rho != 1.0) for (std::int32_t e = 0; e < g.edges; ++e) { const double old = flow[e]; flow[e] = flow_[e] + (rho - 1.0) * (flow_[e] - old); }
            else std::copy(flow_.begin(), flow_.begin() + g.edges, flow);
            snap(t, sigma, x);
            gap = cut_gap(t, snapped_.data(), flow_.data(), v_.data());
            if (getenv("CUT_DEBUG")) printf("outer %d sigma %g gap %g unsnapped %g newton %ld cg %ld ls %ld\n", outer, sigma, gap, cut_gap(t,x,flow,v_.data()), n_newton, system_.iterations, n_ls);
            if (gap <= target || outer == 99) std::copy(flow_.begin(), flow_.begin() + g.edges, flow), std::copy(snapped_.begin(), snapped_.begin() + g.nodes, x);
            if (solved) sigma = std::min(sigma * growth, 1e6);
        }
        return gap;
    }

private:
    struct Step {
        double flow, weight, energy;
    };

    // One edge of (4) at difference d.
    struct Edge {
        double sigma, half, shrink, soft;
        explicit Edge(double s) : sigma(s), half(0.5 / s), shrink(1.0 / (1.0 + s)), soft(s / (1.0 + s)) {}
        Step operator()(double d, double a, double f) const {
            const double u = f + sigma * d, T = std::abs(u), q = (T - sigma * a) * shrink;
            const double s = std::max(0.0, std::min(T, q));
            const double next = std::copysign(s, u);
            const double h = s >= -a ? s * (a + 0.5 * s) : -0.5 * a * a;
            return {next, q < T ? (q > 0.0 ? soft : 0.0) : sigma, next * d - h - half * (next - f) * (next - f)};
        }
    };

    __attribute__((noinline)) void evaluate_all(const CutTarget& t, double sigma, const double* flow, const double* x) {
        const CutExample& g = t.graph;
        std::fill(v_.begin(), v_.begin() + g.nodes, 0.0);
        const Edge edge(sigma);
        for (std::int32_t e = 0; e < g.edges; ++e) {
            const std::int32_t j = g.ends[2 * e], k = g.ends[2 * e + 1];
            const Step s = edge(x[j] - x[k], t.edge[e], flow[e]);
            weight_[e] = s.weight;
            energy_[e] = s.energy;
            flow_[e] = s.flow;
            v_[j] += s.flow;
            v_[k] -= s.flow;
        }
    }

    // The same on the touched edges only; returns their energy.
    __attribute__((noinline)) double evaluate_touched(const CutTarget& t, double sigma, const double* flow, const double* x) {
        const CutExample& g = t.graph;
        const Edge edge(sigma);
        double sum = 0.0;
        for (std::int32_t i = 0; i < touches_; ++i) {
            const std::int32_t e = touched_[i], j = g.ends[2 * e], k = g.ends[2 * e + 1];
            const Step s = edge(x[j] - x[k], t.edge[e], flow[e]);
            weight_[e] = s.weight;
            energy_[e] = s.energy;
            const double change = s.flow - flow_[e];
            flow_[e] = s.flow;
            v_[j] += change;
            v_[k] -= change;
            sum += s.energy;
        }
        return sum;
    }

    // Finds the free nodes, in elimination order; returns the norm of the gradient on them.
    __attribute__((noinline)) double projected_gradient(const CutTarget& t, const double* x) {
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

    bool minimise(const CutTarget& t, double sigma, double target, const double* flow,
                  double* x) {
        const CutExample& g = t.graph;
        evaluate_all(t, sigma, flow, x);
        double change = 0.0;
        for (std::int32_t e = 0; e < g.edges; ++e) change += (flow_[e] - flow[e]) * (flow_[e] - flow[e]);
        std::copy(x, x + g.nodes, trial_.data());
        for (int iteration = 0; iteration < (getenv("CUT_I")?atoi(getenv("CUT_I")):50); ++iteration) {
            const double norm = projected_gradient(t, x);
            const double enough = std::max(0.1 * std::sqrt(target), (getenv("CUT_E")?atof(getenv("CUT_E")):0.1) * std::sqrt(change) / sigma);
            if (getenv("CUT_DEBUG2")) printf("   newton %d norm %g enough %g free %d direct %d\n", iteration, norm, enough, count_, (int)system_.direct);
            if (norm <= enough) return true;
            ++n_newton;
            n_free += count_;
            assemble(t);
            for (std::int32_t i = 0; i < count_; ++i) step_[i] = -gradient_[free_[i]];
            system_.solve(sigma, std::max(0.3 * enough, 0.01 * norm), step_.data());
            double before = 0.0, changed = 0.0;
            for (std::int32_t i = 0; i < touches_; ++i) {
                before += energy_[touched_[i]];
                const double c = flow_[touched_[i]] - flow[touched_[i]];
                changed += c * c;
            }
            double length = 1.0;
            for (int tries = 0;; ++tries) {
                // The change of 1/2 |x - a|^2 from its differences, so that it keeps its digits near the end.
                double slope = 0.0, nodes = 0.0;
                for (std::int32_t i = 0; i < count_; ++i) {
                    const std::int32_t j = free_[i];
                    trial_[j] = std::min(high_, std::max(low_, x[j] + length * step_[i]));
                    const double move = trial_[j] - x[j];
                    slope += gradient_[j] * move;
                    nodes += move * (0.5 * move + x[j] - t.node[j]);
                }
                const double after = evaluate_touched(t, sigma, flow, trial_.data());
                ++n_ls;
                if (nodes + after - before <= 1e-4 * slope + 1e-15 * std::abs(before) || tries >= 30) break;
                length *= 0.5;
            }
            for (std::int32_t i = 0; i < count_; ++i) x[free_[i]] = trial_[free_[i]];
            for (std::int32_t i = 0; i < touches_; ++i) {
                const double c = flow_[touched_[i]] - flow[touched_[i]];
                changed -= c * c;
            }
            change = std::max(0.0, change - changed);
        }
        return false;
    }

    // The Newton system on the free nodes, and the edges that have a free end.
    __attribute__((noinline)) void assemble(const CutTarget& t) {
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
    __attribute__((noinline)) void snap(const CutTarget& t, double sigma, const double* x) {
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

    std::vector<double> v_, gradient_, trial_, snapped_, step_, flow_, weight_, energy_;
    std::vector<std::int32_t> place_, free_, group_, size_, touched_;
    std::int32_t count_ = 0, touches_ = 0;
    double low_ = 0.0, high_ = 1.0;
    LaplacianSystem system_;
};

}  // namespace maxmargin
