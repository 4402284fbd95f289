// Passes over the examples that change the weights after every one: perceptron, MIRA, stochastic subgradient.
//
// All keep w as a sum of sparse changes, and its average over the visits through a second sum in which the change at
// visit t counts t - 1 times (Daume 2006): averages cost as much as the changes themselves, whatever the dimension.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "maxmargin/online/examples.hpp"
#include "maxmargin/simplex/steps.hpp"

namespace maxmargin::online {

// The running sums: `sum` = all changes, `late` = sum of (t - 1) times the change at visit t, t = 1, 2, ...
struct Sums {
    std::span<double> sum, late;
    double time;  // visits done

    // Signed coordinates stop at zero (`nonnegative` is empty where there are none).
    void add(const Accumulator& change, std::span<const std::uint8_t> nonnegative) {
        for (const std::int64_t at : change.touched()) {
            double x = change[at];
            if (!nonnegative.empty() && nonnegative[at]) x = std::max(sum[at] + x, 0.0) - sum[at];
            sum[at] += x;
            late[at] += (time - 1.0) * x;
        }
    }
};

// Collins (2002): w += F y - F z wherever the best output z is wrong. Returns the number of wrong outputs.
inline std::int64_t perceptron_pass(Examples& examples, std::span<const std::int64_t> order,
                                    std::span<const std::uint8_t> nonnegative, Sums& sums) {
    Accumulator change(examples.n_weights());
    std::vector<double> scores(static_cast<std::size_t>(examples.most_parts()));
    Sparse z;
    std::int64_t wrong = 0;
    for (const std::int64_t i : order) {
        examples.scores(i, sums.sum.data(), scores.data());
        examples.best(i, scores.data(), z);
        ++sums.time;
        if (examples.is_gold(i, z)) continue;
        ++wrong;
        change.clear();
        examples.add_difference(i, z, -examples.scale(i), change);
        sums.add(change, nonnegative);
    }
    return wrong;
}

// MIRA (Crammer and Singer 2003; McDonald, Crammer and Pereira 2005): the nearest weights at which the k most violated
// outputs keep their margins, masses at most C in all: w -= C sum_j a_j d_j with a in the simplex of the gold output
// and these. Returns the number of examples that changed the weights.
inline std::int64_t mira_pass(Examples& examples, std::span<const std::int64_t> order, double C, std::int64_t k,
                              std::span<const std::uint8_t> nonnegative, Sums& sums) {
    Accumulator change(examples.n_weights());
    std::vector<double> scores(static_cast<std::size_t>(examples.most_parts())), other(scores.size());
    std::vector<double> gram, value, mass;
    std::vector<Atom> atoms;
    std::int64_t changed = 0;
    for (const std::int64_t i : order) {
        examples.scores(i, sums.sum.data(), scores.data());
        if (k == 1) {
            atoms.resize(1);
            examples.most_violated(i, scores.data(), atoms[0]);
        } else {
            examples.most_violated(i, scores.data(), k, atoms);
        }
        ++sums.time;
        // Point 0 is the gold output: no features, no loss.
        const auto n = static_cast<std::int64_t>(atoms.size()) + 1;
        gram.assign(static_cast<std::size_t>(n * n), 0.0);
        value.assign(static_cast<std::size_t>(n), 0.0);
        mass.assign(static_cast<std::size_t>(n), 0.0);
        mass[0] = 1.0;
        double best = 0.0;
        const double gold = examples.gold_score(i, scores.data());
        for (std::int64_t j = 1; j < n; ++j) {
            value[j] = Examples::value(scores.data(), gold, atoms[j - 1]);
            best = std::max(best, value[j]);
        }
        if (!std::isfinite(best)) throw NonFinite();
        if (best <= 0.0) continue;
        for (std::int64_t j = 1; j < n; ++j) {
            change.clear();
            examples.add_difference(i, atoms[j - 1].z, atoms[j - 1].factor, change);
            gram[j * n + j] = change.squared();
            if (j + 1 == n) break;
            examples.scores(i, change.dense(), other.data());
            const double own = examples.gold_score(i, other.data());
            for (std::int64_t l = j + 1; l < n; ++l) {
                const Atom& atom = atoms[l - 1];
                gram[j * n + l] = gram[l * n + j] = atom.factor * (Examples::inner(atom.z, other.data()) - own);
            }
        }
        simplex_steps(Step::pairwise, C, gram.data(), n, n, static_cast<int>(20 * n), 1e-9 * best, value.data(),
                      mass.data());
        change.clear();
        for (std::int64_t j = 1; j < n; ++j)
            if (mass[j] > 0.0) examples.add_difference(i, atoms[j - 1].z, -C * mass[j] * atoms[j - 1].factor, change);
        sums.add(change, nonnegative);
        ++changed;
    }
    return changed;
}

// Stochastic subgradient in the form of dual averaging (Shalev-Shwartz and others 2007, Xiao 2010). With steps C / t on
// w/C + n d_i the weights are w_t = P(a_t / t), a_t the sum of -C n d_i over the visits. Signs and the ball enter
// through P. `loss` grows by the losses met.
struct Averaged {
    double C, radius;
    std::span<const std::uint8_t> nonnegative;  // empty for none
};
inline void subgradient_pass(Examples& examples, std::span<const std::int64_t> order, const Averaged& region,
                             Sums& sums, double& loss) {
    Accumulator change(examples.n_weights());
    std::vector<double> scores(static_cast<std::size_t>(examples.most_parts()));
    const bool signs = !region.nonnegative.empty(), ball = std::isfinite(region.radius);
    auto positive = [&](std::int64_t at, double x) { return signs && region.nonnegative[at] ? std::max(x, 0.0) : x; };
    std::vector<double> projected;  // the sum with its signs; the sum itself where there are none
    double square = 0.0;
    if (signs) projected.resize(sums.sum.size());
    if (signs || ball)
        for (std::size_t at = 0; at < sums.sum.size(); ++at) {
            const double x = positive(static_cast<std::int64_t>(at), sums.sum[at]);
            if (signs) projected[at] = x;
            square += x * x;
        }
    const double* w = signs ? projected.data() : sums.sum.data();
    const auto n = static_cast<double>(examples.size());
    Atom atom;
    for (const std::int64_t i : order) {
        double scale = sums.time > 0.0 ? 1.0 / sums.time : 0.0;
        if (ball && scale * std::sqrt(std::max(square, 0.0)) > region.radius) scale = region.radius / std::sqrt(square);
        examples.scores(i, w, scores.data());
        for (std::int64_t p = 0, parts = examples.parts(i); p < parts; ++p) scores[p] *= scale;
        examples.most_violated(i, scores.data(), atom);
        ++sums.time;
        loss += atom.loss;
        change.clear();
        examples.add_difference(i, atom.z, -region.C * n * atom.factor, change);
        for (const std::int64_t at : change.touched()) {
            const double before = w[at];
            sums.sum[at] += change[at];
            sums.late[at] += (sums.time - 1.0) * change[at];
            const double after = positive(at, sums.sum[at]);
            if (signs) projected[at] = after;
            square += after * after - before * before;
        }
    }
}

}  // namespace maxmargin::online
