// Two labels: the maximum over the local polytope by one minimum cut on a graph of twice the size (roof duality).
//
// With a, b in {0, 1} a table is w(0, 0) + p a + q b + g a b, and
//
//     g a b = g/2 (a + b) - |g|/2 |a - b|              for g >= 0 (the ends attract),
//     g a b = g/2 (a + b) - |g|/2 |a - (1 - b)| + |g|/2  for g < 0 (they repel).
//
// Every node gets a copy that stands for 1 - a; an attracting edge joins the nodes and the copies of its ends, a
// repelling one the node of one end with the copy of the other. The mean of a node's cut and the complement of its
// copy's is 0, 1/2 or 1, and these means are a maximum over the polytope (Hammer, Hansen and Simeone 1984, "Roof
// duality, complementation and persistency in quadratic 0-1 optimization"); the flow through an edge gives its
// multipliers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "maxmargin/base/scratch.hpp"
#include "maxmargin/cut/maxflow.hpp"
#include "maxmargin/graph/local_polytope.hpp"

namespace maxmargin::network {

class Roof {
   public:
    static bool fits(const Example<true>& x) { return x.labels == 2 && x.graph.nodes < 1 << 29; }

    void reserve(const Example<true>& x) {
        if (!fits(x)) return;
        const auto nodes = 2 * static_cast<std::size_t>(x.graph.nodes);
        const auto edges = 2 * static_cast<std::size_t>(x.graph.edges);
        flow_solver_.reserve(2 * x.graph.nodes, 2 * x.graph.edges);
        at_least(score_, nodes);
        at_least(side_, nodes);
        at_least(start_, nodes + 1);
        at_least(capacity_, edges);
        at_least(flow_, edges);
        at_least(ends_, 2 * edges);
        at_least(arcs_, 2 * edges);
        at_least(heads_, 2 * edges);
        at_least(places_, 2 * edges);
    }

    // z, t: the maximum; m: its multipliers.
    void run(const Example<true>& x, double* m, double* z, double* t) {
        const cut::CutExample doubled = build(x);
        flow_solver_.solve(
            doubled, score_.data(), [this](std::int32_t e) { return capacity_[e]; }, flow_.data(), side_.data(),
            20 * (std::int64_t{doubled.nodes} + 2 * std::int64_t{doubled.edges}));
        const std::int32_t nodes = x.graph.nodes;
        for (std::int32_t i = 0; i < nodes; ++i) {
            z[2 * i + 1] = 0.5 * (side_[i] + 1.0 - side_[nodes + i]);
            z[2 * i] = 1.0 - z[2 * i + 1];
        }
        for (std::int32_t e = 0; e < x.graph.edges; ++e) {
            const double *w = x.edge + 4 * std::int64_t{e}, both = product(w);
            const double through = 0.5 * (flow_[2 * e] - flow_[2 * e + 1]);
            double* own = m + 4 * std::int64_t{e};
            own[0] = own[2] = 0.0;
            own[1] = w[2] - w[0] + 0.5 * both - through;
            own[3] = w[1] - w[0] + 0.5 * both + (both < 0.0 ? -through : through);
            const double a = z[2 * x.graph.ends[2 * e] + 1], b = z[2 * x.graph.ends[2 * e + 1] + 1];
            double* te = t + 4 * std::int64_t{e};
            te[3] = both < 0.0 ? std::max(0.0, a + b - 1.0) : std::min(a, b);
            te[2] = a - te[3];
            te[1] = b - te[3];
            te[0] = 1.0 - te[1] - te[2] - te[3];
        }
    }

   private:
    static double product(const double* w) { return w[0] + w[3] - w[1] - w[2]; }

    cut::CutExample build(const Example<true>& x) {
        const cut::CutExample& g = x.graph;
        for (std::int32_t i = 0; i < g.nodes; ++i) score_[i] = x.node[2 * i + 1] - x.node[2 * i];
        for (std::int32_t e = 0; e < g.edges; ++e) {
            const double *w = x.edge + 4 * std::int64_t{e}, both = product(w);
            const std::int32_t i = g.ends[2 * e], j = g.ends[2 * e + 1], repels = both < 0.0;
            score_[i] += w[2] - w[0] + 0.5 * both;
            score_[j] += w[1] - w[0] + 0.5 * both;
            const std::int32_t ends[4] = {i, repels ? g.nodes + j : j, g.nodes + i, repels ? j : g.nodes + j};
            std::copy_n(ends, 4, ends_.begin() + 4 * std::int64_t{e});
            capacity_[2 * e] = capacity_[2 * e + 1] = 0.5 * std::abs(both);
            flow_[2 * e] = flow_[2 * e + 1] = 0.0;
        }
        for (std::int32_t i = 0; i < g.nodes; ++i) {
            score_[g.nodes + i] = -score_[i];
            start_[i] = g.first_arc(i);
            start_[g.nodes + i] = 2 * std::int64_t{g.edges} + g.first_arc(i);
            for (std::int32_t r = g.first_arc(i); r < g.first_arc(i + 1); ++r) {
                // Edge 2e of the double has the first end itself, and the second end itself unless the ends repel.
                const std::int32_t arc = g.arcs[r], e = arc >> 1, side = arc & 1;
                const std::int32_t own = 2 * e + (side && product(x.edge + 4 * std::int64_t{e}) < 0.0 ? 1 : 0);
                arcs_[r] = 2 * own + side;
                arcs_[2 * std::int64_t{g.edges} + r] = 2 * (own ^ 1) + side;
            }
        }
        start_[2 * std::int64_t{g.nodes}] = 4 * std::int64_t{g.edges};
        for (std::int32_t r = 0; r < 4 * g.edges; ++r) {
            heads_[r] = ends_[arcs_[r] ^ 1];
            places_[arcs_[r]] = r;
        }
        return {2 * g.nodes, 2 * g.edges, ends_.data(), start_.data(), arcs_.data(), heads_.data(), places_.data()};
    }

    cut::MaxFlow flow_solver_;
    std::vector<double> score_, side_, capacity_, flow_;
    std::vector<std::int64_t> start_;
    std::vector<std::int32_t> ends_, arcs_, heads_, places_;
};

}  // namespace maxmargin::network
