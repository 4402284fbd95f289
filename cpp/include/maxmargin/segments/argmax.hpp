// The best segmentation (semi-Markov Viterbi) without a pass over items: O(n longest K + n K^2) additions and maxima,
// one stream over the scores of segments. Segments come in the order of their beginnings, so the best prefix that ends
// where one begins is known: each is added to it and, where that is better, becomes the best that ends where it ends.
//
// Sums are taken in the order of the items, and ties are decided as there: the numbers and outputs are the same.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "maxmargin/base/parallel.hpp"
#include "maxmargin/base/scratch.hpp"
#include "maxmargin/base/simd.hpp"
#include "maxmargin/segments/system.hpp"

namespace maxmargin::segments {

// Tables of one example: rows of K numbers.
struct Tables {
    std::vector<double> roles;        // n x n_roles rows: scores of tokens by role and label
    std::vector<double> entry, best;  // before a segment begins at t; after one has ended there
    std::vector<double> length;       // of the last segment of the best, as doubles, so that one vector holds both
    std::vector<double> run, matrix;  // a row; K rows

    void resize(std::int64_t n, std::int64_t k) {
        at_least(roles, static_cast<std::size_t>(n * n_roles * k));
        for (auto* one : {&entry, &best, &length}) at_least(*one, static_cast<std::size_t>((n + 1) * k));
        at_least(run, static_cast<std::size_t>(k));
        at_least(matrix, static_cast<std::size_t>(k * k));
    }
};

// to[b] = max over a of from[a] + matrix[a, b].
MM_INLINE void enter(std::int64_t k, const double* MM_RESTRICT from, const double* MM_RESTRICT matrix,
                     double* MM_RESTRICT to) {
    for (std::int64_t b = 0; b < k; ++b) to[b] = NEG_INF;
    for (std::int64_t a = 0; a < k; ++a) {
        const double before = from[a];
        if (before == NEG_INF) continue;
        const double* row = matrix + a * k;
        for (std::int64_t b = 0; b < k; ++b) to[b] = std::max(to[b], before + row[b]);
    }
}

// All segments that begin at one place, after `entry`; best and length are those of the places where they end.
MM_INLINE void extend(std::int64_t k, std::int64_t lengths, const double* MM_RESTRICT entry,
                      const double* MM_RESTRICT roles, const double* MM_RESTRICT scores,
                      const double* MM_RESTRICT allowed, double* MM_RESTRICT run, double* MM_RESTRICT best,
                      double* MM_RESTRICT length) {
    for (std::int64_t y = 0; y < k; ++y) {
        const double sum = entry[y] + roles[SINGLE * k + y] + scores[y] + allowed[y];
        const bool better = sum > best[y];
        best[y] = better ? sum : best[y];
        length[y] = better ? 1.0 : length[y];
        run[y] = entry[y] + roles[FIRST * k + y];
    }
    for (std::int64_t l = 2; l <= lengths; ++l) {
        roles += n_roles * k, scores += k, allowed += k, best += k, length += k;
        const auto own = static_cast<double>(l);
        for (std::int64_t y = 0; y < k; ++y) {
            const double sum = run[y] + roles[LAST * k + y] + scores[y] + allowed[y];
            const bool better = sum > best[y];
            best[y] = better ? sum : best[y];
            length[y] = better ? own : length[y];
            run[y] += roles[INSIDE * k + y];
        }
    }
}

MM_CLONES inline void forward(std::int64_t n, std::int64_t k, std::int64_t longest, const double* begin,
                              const double* allowed, const double* segments, const double* roles, const double* matrix,
                              double* entry, double* best, double* length, double* run) {
    for (std::int64_t j = 0; j < (n + 1) * k; ++j) best[j] = NEG_INF;
    std::memcpy(entry, begin, sizeof(double) * static_cast<std::size_t>(k));
    for (std::int64_t b = 0; b < n; ++b) {
        if (b) enter(k, best + b * k, matrix, entry + b * k);
        const std::int64_t lengths = std::min(longest, n - b);
        extend(k, lengths, entry + b * k, roles + b * n_roles * k, segments, allowed, run, best + (b + 1) * k,
               length + (b + 1) * k);
        segments += lengths * k;
    }
}

// Fills the tables but for those that backward passes need; nonfinite where scores are NaN or +inf, or sums overflow.
inline Status fill(const System& system, const double* scores, Tables& tables) {
    const Rules& rules = *system.rules;
    const std::int64_t n = system.length, k = rules.labels, width = n_roles * k;
    const int widest = simd::lanes_in_use();
    if (simd::refused(widest, scores, system.n_parts())) return Status::nonfinite;
    tables.resize(n, k);
    const std::int32_t* states = rules.states.data();
    double* roles = tables.roles.data();
    for (std::int64_t t = 0; t < n; ++t)
        for (std::int64_t j = 0; j < width; ++j)
            roles[t * width + j] = states[j] < 0 ? NEG_INF : scores[t * rules.n_states + states[j]];
    const double* pairs = scores + system.transitions();
    for (std::int64_t p = 0; p < k * k; ++p) tables.matrix[p] = pairs[p] + rules.pair_mask[p];
    forward(n, k, rules.longest, rules.begin_mask.data(), rules.length_mask.data(), scores + system.segments(),
            tables.roles.data(), tables.matrix.data(), tables.entry.data(), tables.best.data(), tables.length.data(),
            tables.run.data());
    return simd::refused(widest, tables.best.data(), (n + 1) * k) ? Status::nonfinite : Status::ok;
}

}  // namespace maxmargin::segments

namespace maxmargin::deduction {

template <>
class Argmax<segments::System> {
   public:
    std::vector<std::int32_t> parts;  // of the best output, each as often as it is used

    const double* best() const { return items_.best(); }
    Status maximize(const segments::System& system, const double* scores, double& value) {
        return items_.maximize(ItemSystem{system}, scores, value);
    }

    Status run(const segments::System& system, const double* scores, double& value) {
        const segments::Rules& rules = *system.rules;
        const std::int64_t n = system.length, k = rules.labels;
        parts.clear();
        value = 0.0;
        if (n == 0) return Status::ok;
        if (const Status found = segments::fill(system, scores, tables_); found != Status::ok) return found;
        const double* best = tables_.best.data();
        std::int64_t y = 0;
        value = NEG_INF;
        for (std::int64_t one = 0; one < k; ++one)
            if (const double sum = best[n * k + one] + rules.end_mask[one]; sum > value) value = sum, y = one;
        if (value == NEG_INF) return Status::absent;
        for (std::int64_t end = n;;) {
            const auto l = static_cast<std::int64_t>(tables_.length[end * k + y]), b = end - l;
            take(system, b, l, y);
            if (b == 0) return Status::ok;
            const double entered = tables_.entry[b * k + y];
            std::int64_t before = 0;
            while (best[b * k + before] + tables_.matrix[before * k + y] != entered) ++before;
            add(system.transitions() + before * k + y);
            end = b, y = before;
        }
    }

   private:
    // The same system, whose argmax is that of all systems: k best outputs need the best score of every item.
    struct ItemSystem : segments::System {};

    void add(std::int64_t part) { parts.push_back(static_cast<std::int32_t>(part)); }
    void take(const segments::System& system, std::int64_t b, std::int64_t l, std::int64_t y) {
        using namespace segments;
        add(system.segment(b, l, y));
        if (l == 1) return add(system.token(b, SINGLE, y));
        add(system.token(b, FIRST, y));
        for (std::int64_t t = b + 1; t < b + l - 1; ++t) add(system.token(t, INSIDE, y));
        add(system.token(b + l - 1, LAST, y));
    }

    segments::Tables tables_;
    Argmax<ItemSystem> items_;
};

}  // namespace maxmargin::deduction
