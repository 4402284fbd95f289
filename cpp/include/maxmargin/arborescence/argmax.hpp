// The best tree of every example of a batch.
#pragma once

#include <cmath>

#include "maxmargin/arborescence/contraction.hpp"
#include "maxmargin/base/parallel.hpp"

namespace maxmargin::arborescence {

// Why there is no tree: differences of scores that overflow look like forbidden arcs.
inline Status treeless(const Example& ex, const double* scores) {
    for (std::int64_t p = 0; p < ex.n_parts(); ++p)
        if (std::isfinite(scores[p]) && std::fabs(scores[p]) > 1e300) return Status::nonfinite;
    return Status::absent;
}

// The score of a tree by its parts; false if it overflows.
inline bool score_of(const double* scores, const std::vector<std::int32_t>& parts, double& value) {
    value = 0.0;
    for (const std::int32_t p : parts) value += scores[p];
    return std::isfinite(value);
}

// One example at a time, in memory of one thread.
class BestTree {
   public:
    // Leaves the parts of the tree, rising. The best tree with any number of roots has often one; if not, the search
    // for one takes twice as long. Duals are those of the kind of trees that are asked for, with `duals`.
    Status run(const Example& ex, const double* scores, double& value, bool duals = false) {
        if (simd::refused(simd::lanes_in_use(), scores, ex.n_parts())) return Status::nonfinite;
        double* rows = contraction.rows(ex.n_tokens);
        arc_rows(ex, scores, contraction.stride(), rows);
        const bool apart = ex.single_root && duals;
        if (!contraction.run(apart)) return treeless(ex, scores);
        if (ex.single_root && !apart && contraction.n_roots() > 1 && !contraction.run(true))
            return treeless(ex, scores);
        parts.clear();
        for (std::int64_t m = 1; m <= ex.n_tokens; ++m) {
            const std::int64_t first = ex.first_part(contraction.heads[m], m);
            std::int64_t part = first;
            for (std::int64_t p = first + 1; p < first + ex.n_labels; ++p)
                if (scores[p] > scores[part]) part = p;
            parts.push_back(static_cast<std::int32_t>(part));
        }
        return score_of(scores, parts, value) ? Status::ok : Status::nonfinite;
    }

    Contraction contraction;
    std::vector<std::int32_t> parts;
};

inline void vertex_of(const std::vector<std::int32_t>& parts, Sparse& vertex) {
    vertex.index = parts;
    vertex.value.assign(parts.size(), 1.0);
}

// z must be zero on entry.
inline void argmax(const Batch& batch, std::span<const double> scores, std::span<double> z, std::span<double> value,
                   std::span<std::int8_t> status, int threads) {
    ScratchLease<BestTree> scratch(threads, [](BestTree&) {});
    parallel_each(batch.size(), batch.grain(), threads, [&](int thread, std::int64_t i) {
        const std::int64_t at = batch.begin(i);
        const Status found = scratch[thread].run(batch[i], scores.data() + at, value[i]);
        if (found != Status::ok) value[i] = no_value(found);
        else
            for (const std::int32_t p : scratch[thread].parts) z[at + p] = 1.0;
        status[i] = static_cast<std::int8_t>(found);
    });
}

// Optimal duals of every example: the dual of set s = 1 .. 2 n and the set it was contracted into (0: none), two
// entries for each token of the batch; sets that were not made have dual 0 and parent -1.
inline void duals(const Batch& batch, std::span<const double> scores, std::span<double> dual,
                  std::span<std::int32_t> parent, std::span<double> value, std::span<std::int8_t> status, int threads) {
    std::vector<std::int64_t> first{0};
    for (std::int64_t i = 0; i < batch.size(); ++i) first.push_back(first.back() + 2 * batch[i].n_tokens);
    ScratchLease<BestTree> scratch(threads, [](BestTree&) {});
    parallel_each(batch.size(), batch.grain(), threads, [&](int thread, std::int64_t i) {
        const BestTree& tree = scratch[thread];
        const Status found = scratch[thread].run(batch[i], scores.data() + batch.begin(i), value[i], true);
        if (found != Status::ok) value[i] = no_value(found);
        const std::int64_t made = found == Status::ok ? tree.contraction.n_sets : 1;
        for (std::int64_t at = first[i], s = 1; at < first[i + 1]; ++at, ++s) {
            dual[at] = s < made ? tree.contraction.best[s] : 0.0;
            parent[at] = s < made ? tree.contraction.parent[s] : -1;
        }
        status[i] = static_cast<std::int8_t>(found);
    });
}

}  // namespace maxmargin::arborescence
