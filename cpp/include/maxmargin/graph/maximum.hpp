// Maxima of linear scores over the local polytope of one network, and labelings of it.
//
// Message passing (graph/messages.hpp) until a labeling meets the bound. Where none does, for two labels a minimum cut
// (graph/roof_duality.hpp), and otherwise proximal steps
//
//     z <- projection of z + step * scores                                                                    (6)
//
// whose multipliers, divided by the step, give the bound (Rockafellar 1976, "Monotone operators and the proximal point
// algorithm"). On a linear program they end after finitely many steps; the limit need not be a vertex.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "maxmargin/base/scratch.hpp"
#include "maxmargin/graph/expansion.hpp"
#include "maxmargin/graph/local_polytope.hpp"
#include "maxmargin/graph/messages.hpp"
#include "maxmargin/graph/projection.hpp"
#include "maxmargin/graph/roof_duality.hpp"

namespace maxmargin::network {

// Gaps between bound and score, relative to the range of the scores.
constexpr double tight = 1e-12;     // a labeling that meets the bound
constexpr double sought = 1e-11;    // proximal steps end here
constexpr double certified = 1e-9;  // points of other solvers
constexpr double enough = 1e-6;     // the least that is OK where there is no other solver
constexpr double rounding = 1e-15;  // relative to the size of the scores

constexpr int restarts = 32;  // of the search around a labeling: far cheaper than the relaxation itself

template <bool table>
struct Scratch {
    Messages<table> messages;
    Projector<table> projector;
    Expansion expansion;
    Roof roof;
    std::vector<std::int32_t> label, other;
    std::vector<double> node, edge, z, t, start, trial, pair;

    void reserve(const Example<table>& x) {
        messages.reserve(x);
        projector.reserve(x);
        if constexpr (table) {
            roof.reserve(x);
        } else {
            expansion.reserve(x);
        }
        for (auto* v : {&label, &other}) at_least(*v, x.graph.nodes);
        for (auto* v : {&node, &z}) at_least(*v, x.node_parts());
        for (auto* v : {&edge, &t}) at_least(*v, x.edge_parts());
        for (auto* v : {&start, &trial}) at_least(*v, x.multipliers());
        at_least(pair, 2 * static_cast<std::size_t>(x.labels));
    }
};

// The maximum of one example: z, t feasible, m the multipliers of the bound, the value the bound.
template <bool table>
class Maximum {
   public:
    // `tol`: a gap between bound and score that need not be closed.
    Maximum(const Example<table>& x, Scratch<table>& own, double tol, double* m, double* z, double* t)
        : x_(x), own_(own), tol_(tol), m_(m), z_(z), t_(t), range_(range_of(x)), slack_(rounding * size_of(x)) {}

    // The labeling that messages find. `search`: expansion moves too.
    std::int8_t find_labeling(int pass_limit, bool search, double& value, double& gap) {
        pass_messages(pass_limit, search);
        write(own_.label.data());
        return valued(10.0 * tight, value, gap);
    }

    // Goes on from that labeling. `last`: no other solver follows, so a gap of `enough` suffices.
    std::int8_t find_fractions(int step_limit, bool last, double& value) {
        if (!cut_double()) take_steps(step_limit);
        double gap;
        return valued(last ? enough : 10.0 * sought, value, gap);
    }

   private:
    std::int8_t valued(double allowed, double& value, double& gap) const {
        gap = bound_over_point(x_, m_, z_, t_);
        value = score_of(x_, z_, t_) + gap;
        return gap <= std::max(tol_, allowed * range_) + 10.0 * slack_ ? ok : inexact;
    }

    bool meets(double bound, double score) const { return bound - score <= std::max(tol_, tight * range_) + slack_; }

    // The best point whose nodes are those of a labeling: in (2) a part with a score < 0 stays 0 where its ends agree.
    void write(const std::int32_t* label) {
        write_labels(x_, label, z_, t_);
        if constexpr (!table)
            for (std::int64_t p = 0; p < x_.edge_parts(); ++p)
                if (x_.edge[p] < 0.0) t_[p] = 0.0;
    }
    double worth(const std::int32_t* label) const {
        double sum = score_of(x_, label);
        if constexpr (!table)
            for (std::int32_t e = 0; e < x_.graph.edges; ++e)
                sum -= std::min(0.0, edge_score(x_, e, label[x_.graph.ends[2 * e]], label[x_.graph.ends[2 * e + 1]]));
        return sum;
    }

    // Leaves a labeling in own_.label, if possible one that meets the bound. `search`: whether to look for better
    // labelings by expansion moves, which cost as much as dozens of passes: once the bound has settled.
    void pass_messages(int limit, bool search) {
        Messages<table>::admit(x_, m_);
        double best = 0.0, bound = 0.0, last_gap = 0.0, last_bound = 0.0;
        std::vector<std::int32_t>& found = own_.messages.label;
        const auto keep_if_better = [&](bool first) {
            const double score = worth(found.data());
            if (!first && !(score > best)) return;
            std::copy_n(found.begin(), x_.graph.nodes, own_.label.begin());
            best = score;
        };
        const auto expand = [&] {
            if constexpr (!table) {
                std::copy_n(own_.label.begin(), x_.graph.nodes, found.begin());
                own_.expansion.run(x_, found.data(), 50);
                keep_if_better(false);
            }
            search = false;
        };
        for (int pass = 0; pass < limit; ++pass) {
            bound = own_.messages.pass(x_, pass % 2 == 0, pass == 0, m_);
            keep_if_better(pass == 0);
            if (meets(bound, best)) return;
            if (pass % 10 < 9) continue;
            own_.messages.improve(x_, found.data(), 20);
            keep_if_better(false);
            if (search && pass > 10 && last_bound - bound < 0.5 * tol_) expand();
            if (meets(bound, best)) return;
            if (pass > 10 && bound - best > 0.9 * last_gap) break;
            last_gap = bound - best;
            last_bound = bound;
        }
        if (search) expand();
    }

    // Two labels of a table: whether a cut settles it. Otherwise multipliers and point are as before.
    bool cut_double() {
        if constexpr (table) {
            if (!Roof::fits(x_)) return false;
            own_.roof.run(x_, own_.trial.data(), own_.z.data(), own_.t.data());
            const double gap = bound_over_point(x_, own_.trial.data(), own_.z.data(), own_.t.data());
            if (!(gap <= std::max(tol_, sought * range_) + slack_)) return false;
            std::copy_n(own_.trial.begin(), x_.multipliers(), m_);
            std::copy_n(own_.z.begin(), x_.node_parts(), z_);
            std::copy_n(own_.t.begin(), x_.edge_parts(), t_);
            return true;
        }
        return false;
    }

    // Steps (6) from the labeling in z, t.
    void take_steps(int limit) {
        const std::int64_t nodes = x_.node_parts(), edges = x_.edge_parts(), n = x_.multipliers();
        const double size = x_.graph.nodes + x_.graph.edges;
        const double wanted = std::max(tol_, sought * range_) + slack_;
        double step = 8.0 * size / range_, inner = 1e-3 * size;
        double score = score_of(x_, z_, t_), bound = score + bound_over_point(x_, m_, z_, t_);
        for (std::int64_t p = 0; p < n; ++p) own_.start[p] = step * m_[p];
        std::copy_n(z_, nodes, own_.z.begin());
        std::copy_n(t_, edges, own_.t.begin());
        for (int round = 0; round < limit && bound - score > wanted; ++round) {
            for (std::int64_t p = 0; p < nodes; ++p) own_.node[p] = own_.z[p] + step * x_.node[p];
            for (std::int64_t p = 0; p < edges; ++p) own_.edge[p] = own_.t[p] + step * x_.edge[p];
            const Example<table> target{x_.graph, x_.labels, own_.node.data(), own_.edge.data()};
            const double left =
                own_.projector.run(target, inner, 0.0, 50, own_.start.data(), own_.z.data(), own_.t.data());
            const double found = score_of(x_, own_.z.data(), own_.t.data());
            if (found > score) {
                score = found;
                std::copy_n(own_.z.begin(), nodes, z_);
                std::copy_n(own_.t.begin(), edges, t_);
            }
            for (std::int64_t p = 0; p < n; ++p) own_.trial[p] = own_.start[p] / step;
            lower(bound, score);
            // Longer steps need fewer rounds, as long as a projection can follow them.
            const double factor = left <= inner ? 2.0 : 0.5;
            step *= factor;
            for (std::int64_t p = 0; p < n; ++p) own_.start[p] *= factor;
            if (left <= inner) inner = std::max(1e-20, 0.3 * inner);
        }
    }

    // Messages passed from the multipliers of a projection lower their bound further and may decode a labeling.
    void lower(double& bound, double& score) {
        double* trial = own_.trial.data();
        std::vector<std::int32_t>& label = own_.messages.label;
        Messages<table>::admit(x_, trial);
        double reached = 0.0;
        for (int pass = 0; pass < 4; ++pass) reached = own_.messages.pass(x_, pass % 2 == 0, pass == 0, trial);
        if (reached < bound) {
            bound = reached;
            std::copy_n(trial, x_.multipliers(), m_);
        }
        own_.messages.improve(x_, label.data(), 20);
        const double found = worth(label.data());
        if (found <= score) return;
        score = found;
        write(label.data());
    }

    const Example<table>& x_;
    Scratch<table>& own_;
    double tol_;
    double *m_, *z_, *t_;
    double range_, slack_;
};

// The best labeling once more with the labels of fractional nodes, an eighth of them to all, drawn from the relaxed
// point, then improved; it is kept where it is no worse. The numbers drawn are the same in every call.
inline void search_again(const Example<true>& x, Scratch<true>& own, const double* z, double& top) {
    const std::int32_t n = x.labels;
    std::int32_t fractional = 0;
    for (std::int32_t i = 0; i < x.graph.nodes; ++i) {
        const double* zi = z + std::int64_t{i} * n;
        if (*std::max_element(zi, zi + n) < 1.0 - 1e-6) own.messages.label[fractional++] = i;
    }
    if (fractional == 0) return;
    std::uint64_t state = 0x9e3779b97f4a7c15u;
    const auto draw = [&state] {  // xorshift (Marsaglia 2003)
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return static_cast<double>(state >> 11) * 0x1p-53;
    };
    for (int restart = 0; restart < restarts; ++restart) {
        std::copy_n(own.label.begin(), x.graph.nodes, own.other.begin());
        const double share = 0.125 * (1 << restart % 4);
        for (std::int32_t f = 0; f < fractional; ++f) {
            const std::int32_t i = own.messages.label[f];
            if (draw() > share) continue;
            const double* zi = z + std::int64_t{i} * n;
            double left = draw();
            std::int32_t k = 0;
            while (k + 1 < n && left >= zi[k]) left -= zi[k++];
            own.other[i] = k;
        }
        own.messages.improve(x, own.other.data(), 100);
        const double score = score_of(x, own.other.data());
        if (score < top) continue;
        top = score;
        std::copy_n(own.other.begin(), x.graph.nodes, own.label.begin());
    }
}

// A labeling near a relaxed point: the label with the largest part at every node, and the labeling that messages
// decode, and each node's best label, improved by local search (and expansion moves where edges reward agreement); the
// best of them, for tables searched around once more.
template <bool table>
double round_point(const Example<table>& x, Scratch<table>& own, const double* m, const double* z) {
    const std::int32_t n = x.labels;
    std::vector<std::int32_t>& best = own.label;
    for (std::int32_t i = 0; i < x.graph.nodes; ++i) {
        const double* zi = z + std::int64_t{i} * n;
        const double* score = x.node + std::int64_t{i} * n;
        best[i] = static_cast<std::int32_t>(std::max_element(zi, zi + n) - zi);
        own.other[i] = static_cast<std::int32_t>(std::max_element(score, score + n) - score);
        if (!table && n == 2) own.other[i] = 0;  // from where one expansion move is exact
    }
    std::copy_n(m, x.multipliers(), own.trial.begin());
    Messages<table>::admit(x, own.trial.data());
    own.messages.pass(x, true, true, own.trial.data());
    std::vector<std::int32_t>& decoded = own.messages.label;
    double top = 0.0;
    bool first = true;
    for (auto* label : {&best, &decoded, &own.other}) {
        if constexpr (!table) own.expansion.run(x, label->data(), 50);
        own.messages.improve(x, label->data(), 100);
        const double score = score_of(x, label->data());
        if (!first && score <= top) continue;
        top = score;
        if (!first) std::copy_n(label->begin(), x.graph.nodes, best.begin());
        first = false;
    }
    if constexpr (table) search_again(x, own, z, top);
    return top;
}

}  // namespace maxmargin::network
