// Euclidean projection onto the polytope of an associative network with cliques: semismooth Newton steps on
// multipliers.
//
// Nodes have K labels and lie in simplexes; a group of nodes, an edge or a clique, has K parts
//
//     0 <= t(k) <= z_j(k)   for all members j.
//
// With one multiplier m >= 0 for each member and label the dual is (5) of graph/projection.hpp, with
// v_j = node_j + the multipliers of j's memberships and u = group - the multipliers of its members. A step solves
// (H + shift) d = gradient by conjugate gradients on the multipliers that are not held at 0 (two-metric projection,
// Bertsekas 1982). H couples the members of a group at each label whose part is positive, and the memberships of a node
// at the labels in its support; the first, with the diagonal of the second, is inverted exactly as a preconditioner
// (Sherman and Morrison 1950), so cliques of any size cost what their members do.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "maxmargin/base/parallel.hpp"
#include "maxmargin/base/scratch.hpp"
#include "maxmargin/graph/line_search.hpp"
#include "maxmargin/graph/local_polytope.hpp"

namespace maxmargin::network {

// A packed batch: example i has nodes, then edges and then cliques as groups. Members of group g of the batch are
// members[begin[g] .. begin[g + 1]), numbers of nodes within the example; groups of an example follow each other.
struct CliqueGraphs {
    std::span<const std::int64_t> nodes, edges, cliques, begin;
    std::span<const std::int32_t> members;

    std::int64_t examples() const { return static_cast<std::int64_t>(nodes.size()) - 1; }
    std::int64_t first_group(std::int64_t i) const { return edges[i] + cliques[i]; }
    std::int64_t parts(std::int64_t labels) const { return (nodes.back() + edges.back() + cliques.back()) * labels; }
};

// One example; slot q is a membership, slots of group g are begin[g] - begin[0] .. begin[g + 1] - begin[0].
struct CliqueExample {
    std::int32_t nodes, labels;
    std::int64_t groups;
    const std::int64_t* begin;
    const std::int32_t* members;
    const double* node;
    const double* group;

    std::int64_t first(std::int64_t g) const { return begin[g] - begin[0]; }
    std::int64_t slots() const { return first(groups); }
    std::int64_t node_parts() const { return std::int64_t{nodes} * labels; }
    std::int64_t group_parts() const { return groups * labels; }
    std::int64_t multipliers() const { return slots() * labels; }
};

class CliqueProjector {
   public:
    void reserve(std::int64_t node_parts, std::int64_t group_parts, std::int64_t multipliers, std::int32_t labels) {
        for (auto* v : {&m_, &m_next_, &gradient_, &gradient_next_, &direction_, &residual_, &scaled_, &search_,
                        &image_, &diagonal_})
            at_least(*v, multipliers);
        for (auto* v : {&z_, &z_next_, &v_}) at_least(*v, node_parts);
        for (auto* v : {&t_, &t_next_, &fit_}) at_least(*v, group_parts);
        at_least(held_, multipliers);
        at_least(row_, 2 * static_cast<std::size_t>(labels));
    }

    // `m`: a start, and then the multipliers of the answer; z, t: the feasible point. Returns its duality gap, which is
    // at most `sought`, or at most `noise` after a few steps more, unless `step_limit` Newton steps were too few.
    double run(const CliqueExample& x, double sought, double noise, int step_limit, double* m, double* z, double* t) {
        const std::int64_t n = x.multipliers();
        for (std::int64_t p = 0; p < n; ++p) m_[p] = m[p] > 0.0 && m[p] < 1e100 ? m[p] : 0.0;
        double value = evaluate(x, m_.data(), z_, t_, gradient_);
        double shift = first_shift, best = std::numeric_limits<double>::infinity(), last = best;
        int more = 4;
        for (int step = 0;; ++step) {
            double sum = 0.0, squares = 0.0;
            for (std::int64_t p = 0; p < n; ++p) {
                const double move = std::max(gradient_[p], -m_[p]);  // a multiplier moves down by no more than it has
                sum += std::abs(move);
                squares += move * move;
            }
            if (sum > 0.3 * last) shift = std::min(most_stalled_shift, 10.0 * shift);
            last = sum;
            // Where the gradient is as small as this, the gap may be; it costs as much as an evaluation.
            if (step >= step_limit || !(squares > 100.0 * std::max(sought, noise)) || step % 8 == 7) {
                const double gap = repair(x);
                if (gap < best) {
                    best = gap;
                    std::copy_n(z_.begin(), x.node_parts(), z);
                    std::copy_n(fit_.begin(), x.group_parts(), t);
                    std::copy_n(m_.begin(), n, m);
                }
                if (best <= sought || step >= step_limit || (best <= noise && more-- == 0)) break;
            }
            find_direction(x, shift);
            if (!advance(x, value, shift)) step = step_limit - 1;
        }
        return best;
    }

   private:
    static constexpr double first_shift = 1e-3, least_shift = 1e-4, most_stalled_shift = 1e-2;
    static constexpr int most_products = 500;

    double evaluate(const CliqueExample& x, const double* m, std::vector<double>& z, std::vector<double>& t,
                    std::vector<double>& gradient) {
        const std::int32_t n = x.labels;
        std::copy_n(x.node, x.node_parts(), v_.begin());
        for (std::int64_t q = 0; q < x.slots(); ++q) {
            double* own = v_.data() + std::int64_t{x.members[q]} * n;
            for (std::int32_t k = 0; k < n; ++k) own[k] += m[q * n + k];
        }
        double value = 0.0;
        for (std::int32_t i = 0; i < x.nodes; ++i) {
            double* own = v_.data() + std::int64_t{i} * n;
            double* zi = z.data() + std::int64_t{i} * n;
            value -= onto_simplex(own, n, zi);
            for (std::int32_t k = 0; k < n; ++k) value += zi[k] * (0.5 * zi[k] - own[k]);
        }
        for (std::int64_t g = 0; g < x.groups; ++g) {
            double* tg = t.data() + g * n;
            std::copy_n(x.group + g * n, n, tg);
            for (std::int64_t q = x.first(g); q < x.first(g + 1); ++q)
                for (std::int32_t k = 0; k < n; ++k) tg[k] -= m[q * n + k];
            double squares = 0.0;
            for (std::int32_t k = 0; k < n; ++k) {
                tg[k] = std::max(0.0, tg[k]);
                squares += tg[k] * tg[k];
            }
            for (std::int64_t q = x.first(g); q < x.first(g + 1); ++q)
                for (std::int32_t k = 0; k < n; ++k)
                    gradient[q * n + k] = tg[k] - z[std::int64_t{x.members[q]} * n + k];
            value -= 0.5 * squares;
        }
        return value;
    }

    // fit_ = feasible parts of groups for the nodes z_; returns the gap, a sum of terms none of which is negative.
    double repair(const CliqueExample& x) {
        const std::int32_t n = x.labels;
        double gap = 0.0;
        for (std::int64_t g = 0; g < x.groups; ++g)
            for (std::int32_t k = 0; k < n; ++k) {
                double u = x.group[g * n + k], fit = std::max(0.0, u);
                for (std::int64_t q = x.first(g); q < x.first(g + 1); ++q) {
                    fit = std::min(fit, z_[std::int64_t{x.members[q]} * n + k]);
                    u -= m_[q * n + k];
                }
                for (std::int64_t q = x.first(g); q < x.first(g + 1); ++q)
                    gap += m_[q * n + k] * (z_[std::int64_t{x.members[q]} * n + k] - fit);
                const double moved = fit - t_[g * n + k];
                gap += u > 0.0 ? 0.5 * moved * moved : fit * (0.5 * fit - u);
                fit_[g * n + k] = fit;
            }
        return gap;
    }

    // direction_: towards 0 for multipliers that are near it and would become negative, so that the others do not wait
    // for them; near is measured by how far a gradient step leads (Bertsekas 1982, eq. 32).
    void find_direction(const CliqueExample& x, double shift) {
        const std::int64_t size = x.multipliers();
        double near = 0.0;
        for (std::int64_t p = 0; p < size; ++p)
            near = std::max(near, std::abs(m_[p] - std::max(0.0, m_[p] + gradient_[p])));
        near = std::min(near, 1e-2);
        for (std::int64_t p = 0; p < size; ++p) {
            held_[p] = m_[p] <= near && gradient_[p] <= 0.0;
            residual_[p] = held_[p] ? 0.0 : gradient_[p];
        }
        iterate(x, shift);
        for (std::int64_t p = 0; p < size; ++p)
            if (held_[p]) direction_[p] = -m_[p];
    }

    void iterate(const CliqueExample& x, double shift) {
        const std::int32_t n = x.labels;
        const std::int64_t size = x.multipliers();
        for (std::int64_t q = 0; q < x.slots(); ++q) {
            const double* zi = z_.data() + std::int64_t{x.members[q]} * n;
            const double own = 1.0 - 1.0 / support(zi, n);
            for (std::int32_t k = 0; k < n; ++k) diagonal_[q * n + k] = 1.0 / (shift + (zi[k] > 0.0 ? own : 0.0));
        }
        std::fill_n(direction_.begin(), size, 0.0);
        double squares = 0.0;
        for (std::int64_t p = 0; p < size; ++p) squares += residual_[p] * residual_[p];
        // As exact as the gradient is small: fast at the end, cheap at the start.
        const double norm = std::sqrt(squares), wanted = norm * std::min(0.1, std::sqrt(norm));
        precondition(x);
        std::copy_n(scaled_.begin(), size, search_.begin());
        double before = 0.0;
        for (std::int64_t p = 0; p < size; ++p) before += residual_[p] * scaled_[p];
        for (int product = 0; product < most_products && before > 0.0; ++product) {
            apply(x, shift);
            double curvature = 0.0;
            for (std::int64_t p = 0; p < size; ++p) curvature += search_[p] * image_[p];
            if (!(curvature > 0.0)) break;
            const double length = before / curvature;
            squares = 0.0;
            for (std::int64_t p = 0; p < size; ++p) {
                direction_[p] += length * search_[p];
                residual_[p] -= length * image_[p];
                squares += residual_[p] * residual_[p];
            }
            if (std::sqrt(squares) <= wanted) break;
            precondition(x);
            double after = 0.0;
            for (std::int64_t p = 0; p < size; ++p) after += residual_[p] * scaled_[p];
            const double turn = after / before;
            for (std::int64_t p = 0; p < size; ++p) search_[p] = scaled_[p] + turn * search_[p];
            before = after;
        }
    }

    static double support(const double* zi, std::int32_t n) {
        double count = 0.0;
        for (std::int32_t k = 0; k < n; ++k) count += zi[k] > 0.0;
        return count;
    }

    // scaled_ = (diagonal + the ones of groups with a positive part)^-1 residual_, on the multipliers that are not
    // held.
    void precondition(const CliqueExample& x) {
        const std::int32_t n = x.labels;
        double *sums = row_.data(), *weights = sums + n;
        for (std::int64_t g = 0; g < x.groups; ++g) {
            std::fill_n(sums, 2 * n, 0.0);
            for (std::int64_t q = x.first(g); q < x.first(g + 1); ++q)
                for (std::int32_t k = 0; k < n; ++k) {
                    const std::int64_t p = q * n + k;
                    scaled_[p] = diagonal_[p] * residual_[p];
                    if (held_[p]) continue;
                    sums[k] += scaled_[p];
                    weights[k] += diagonal_[p];
                }
            for (std::int32_t k = 0; k < n; ++k) sums[k] = t_[g * n + k] > 0.0 ? sums[k] / (1.0 + weights[k]) : 0.0;
            for (std::int64_t q = x.first(g); q < x.first(g + 1); ++q)
                for (std::int32_t k = 0; k < n; ++k)
                    if (!held_[q * n + k]) scaled_[q * n + k] -= diagonal_[q * n + k] * sums[k];
        }
    }

    // image_ = (H + shift) search_ on the multipliers that are not held.
    void apply(const CliqueExample& x, double shift) {
        const std::int32_t n = x.labels;
        std::fill_n(v_.begin(), x.node_parts(), 0.0);
        double* sums = row_.data();
        for (std::int64_t g = 0; g < x.groups; ++g) {
            std::fill_n(sums, n, 0.0);
            for (std::int64_t q = x.first(g); q < x.first(g + 1); ++q) {
                double* own = v_.data() + std::int64_t{x.members[q]} * n;
                for (std::int32_t k = 0; k < n; ++k) {
                    sums[k] += search_[q * n + k];
                    own[k] += search_[q * n + k];
                }
            }
            for (std::int32_t k = 0; k < n; ++k) sums[k] = t_[g * n + k] > 0.0 ? sums[k] : 0.0;
            for (std::int64_t q = x.first(g); q < x.first(g + 1); ++q)
                for (std::int32_t k = 0; k < n; ++k) image_[q * n + k] = shift * search_[q * n + k] + sums[k];
        }
        for (std::int32_t i = 0; i < x.nodes; ++i) {
            double* own = v_.data() + std::int64_t{i} * n;
            const double* zi = z_.data() + std::int64_t{i} * n;
            double mean = 0.0;
            for (std::int32_t k = 0; k < n; ++k) mean += zi[k] > 0.0 ? own[k] : 0.0;
            mean /= support(zi, n);
            for (std::int32_t k = 0; k < n; ++k) own[k] = zi[k] > 0.0 ? own[k] - mean : 0.0;
        }
        for (std::int64_t q = 0; q < x.slots(); ++q) {
            const double* own = v_.data() + std::int64_t{x.members[q]} * n;
            for (std::int32_t k = 0; k < n; ++k) {
                const std::int64_t p = q * n + k;
                image_[p] = held_[p] ? 0.0 : image_[p] + own[k];
            }
        }
    }

    // Moves to the end of a step along the projected direction that raises the dual; false where rounding forbids one.
    bool advance(const CliqueExample& x, double& value, double& shift) {
        const DualPoint at{m_, z_, t_, gradient_}, next{m_next_, z_next_, t_next_, gradient_next_};
        return advance_along(
            at, next, x.multipliers(), least_shift, value, shift,
            [&](std::int64_t p, double length) { return std::max(0.0, m_[p] + length * direction_[p]); },
            [&] { return evaluate(x, m_next_.data(), z_next_, t_next_, gradient_next_); });
    }

    std::vector<double> m_, m_next_, gradient_, gradient_next_, direction_, residual_, scaled_, search_, image_;
    std::vector<double> diagonal_, z_, z_next_, v_, t_, t_next_, fit_, row_;
    std::vector<std::int8_t> held_;
};

struct CliqueScratch {
    CliqueProjector projector;
    std::vector<double> node, group, scaled_node, scaled_group, t;
};

// Multipliers for a point that is far away: those of the point scaled down to the size of the polytope, where few steps
// are needed, then followed back by factors of 4.
inline void approach(const CliqueExample& x, CliqueScratch& own, double entry, double* m, double* z) {
    double scale = 2.0 / entry;
    const double size = 1.0 + x.nodes + static_cast<double>(x.groups);
    if (!(scale < 0.25) || own.projector.run(x, 0.1 * size, 0.0, 10, m, z, own.t.data()) <= 0.1 * size) return;
    const std::int64_t n = x.multipliers();
    for (std::int64_t p = 0; p < n; ++p) m[p] *= scale;
    for (; scale < 0.99; scale *= 4.0) {
        for (std::int64_t p = 0; p < x.node_parts(); ++p) own.scaled_node[p] = scale * x.node[p];
        for (std::int64_t p = 0; p < x.group_parts(); ++p) own.scaled_group[p] = scale * x.group[p];
        CliqueExample near = x;
        near.node = own.scaled_node.data();
        near.group = own.scaled_group.data();
        own.projector.run(near, 1e-4 * size, 0.0, 60, m, z, own.t.data());
        const double factor = std::min(4.0, 1.0 / scale);
        for (std::int64_t p = 0; p < n; ++p) m[p] *= factor;
    }
}

// z = projection of `point`, both packed: all nodes, then all edges, then all cliques, with `labels` parts each. m: in
// a start, out the multipliers, `labels` per member. gap: the duality gap reached.
inline void project_cliques(const CliqueGraphs& graphs, std::int32_t labels, std::span<const double> point, double tol,
                            int step_limit, std::span<double> m, std::span<double> z, std::span<double> value,
                            std::span<double> gap, std::span<std::int8_t> status, int threads) {
    std::int64_t nodes = 0, groups = 0, slots = 0;
    for (std::int64_t i = 0; i < graphs.examples(); ++i) {
        const std::int64_t first = graphs.first_group(i), last = graphs.first_group(i + 1);
        nodes = std::max(nodes, graphs.nodes[i + 1] - graphs.nodes[i]);
        groups = std::max(groups, last - first);
        slots = std::max(slots, graphs.begin[last] - graphs.begin[first]);
    }
    const int workers = static_cast<int>(std::clamp<std::int64_t>(graphs.examples(), 1, std::max(threads, 1)));
    ScratchLease<CliqueScratch> scratch(workers, [&](CliqueScratch& own) {
        own.projector.reserve(nodes * labels, groups * labels, slots * labels, labels);
        for (auto* v : {&own.node, &own.scaled_node}) at_least(*v, nodes * labels);
        for (auto* v : {&own.group, &own.scaled_group, &own.t}) at_least(*v, groups * labels);
    });
    parallel_each(graphs.examples(), 1, threads, [&](int thread, std::int64_t i) {
        CliqueScratch& own = scratch[thread];
        const std::int64_t edges = (graphs.edges[i + 1] - graphs.edges[i]) * labels;
        const std::int64_t cliques = (graphs.cliques[i + 1] - graphs.cliques[i]) * labels;
        const std::int64_t first = graphs.first_group(i), at = graphs.nodes[i] * labels;
        const std::int64_t edge_at = (graphs.nodes.back() + graphs.edges[i]) * labels;
        const std::int64_t clique_at = (graphs.nodes.back() + graphs.edges.back() + graphs.cliques[i]) * labels;
        const CliqueExample x{static_cast<std::int32_t>(graphs.nodes[i + 1] - graphs.nodes[i]),
                              labels,
                              graphs.first_group(i + 1) - first,
                              graphs.begin.data() + first,
                              graphs.members.data() + graphs.begin[first],
                              point.data() + at,
                              own.group.data()};
        std::copy_n(point.data() + edge_at, edges, own.group.begin());
        std::copy_n(point.data() + clique_at, cliques, own.group.begin() + edges);
        double* multipliers = m.data() + graphs.begin[first] * labels;
        double size = 0.0, entry = 1.0;
        for (std::int64_t p = 0; p < x.node_parts(); ++p) {
            size += std::abs(x.node[p]);
            entry = std::max(entry, 1.0 + std::abs(x.node[p]));
        }
        for (std::int64_t p = 0; p < x.group_parts(); ++p) {
            size += std::abs(x.group[p]);
            entry = std::max(entry, 1.0 + std::abs(x.group[p]));
        }
        value[i] = gap[i] = 0.0;
        if (!(size < 1e100)) {
            std::fill_n(z.data() + at, x.node_parts(), 0.0);
            std::fill_n(z.data() + edge_at, edges, 0.0);
            std::fill_n(z.data() + clique_at, cliques, 0.0);
            std::fill_n(multipliers, x.multipliers(), 0.0);
            status[i] = nonfinite;
            return;
        }
        for (std::int64_t p = 0; p < x.multipliers(); ++p)
            if (!(multipliers[p] > 0.0 && multipliers[p] < 1e100)) multipliers[p] = 0.0;
        approach(x, own, entry, multipliers, own.node.data());
        // Entries of size a leave sums wrong by eps a, and a wrong part may cost a.
        const double sought = 0.5 * tol * tol, rounding = 4e-16 * static_cast<double>(1 + x.slots()) * entry * entry;
        gap[i] = own.projector.run(x, sought, rounding, step_limit, multipliers, own.node.data(), own.t.data());
        double sum = 0.0;
        for (std::int64_t p = 0; p < x.node_parts(); ++p) sum += (own.node[p] - x.node[p]) * (own.node[p] - x.node[p]);
        for (std::int64_t p = 0; p < x.group_parts(); ++p) sum += (own.t[p] - x.group[p]) * (own.t[p] - x.group[p]);
        value[i] = 0.5 * sum;
        std::copy_n(own.node.begin(), x.node_parts(), z.data() + at);
        std::copy_n(own.t.begin(), edges, z.data() + edge_at);
        std::copy_n(own.t.begin() + edges, cliques, z.data() + clique_at);
        status[i] = gap[i] <= std::max(sought, rounding) ? ok : inexact;
    });
}

}  // namespace maxmargin::network
