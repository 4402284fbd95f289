// What tokens get: the states of the best segmentations, and max-marginals, the score of the best segmentation that
// gives a token a state. Max-marginals take a pass forward (argmax.hpp) and one backward, and O(n longest^2 K) maxima
// at most: each segment is seen by each of its tokens.
#pragma once

#include <limits>

#include "maxmargin/segments/argmax.hpp"

namespace maxmargin::segments {

// out: the state of every token of the batch; -1 in an example without an output.
inline void states(const Batch& batch, std::span<const double> scores, std::span<std::int32_t> out,
                   std::span<double> value, std::span<std::int8_t> status, int threads) {
    struct Scratch {
        deduction::Argmax<System> search;
        deduction::Gathered own;
    };
    const hull::Layout layout = batch.layout();
    const std::int64_t n_states = batch.rules().n_states;
    auto scratch = per_thread<Scratch>(threads);
    parallel_each(batch.size(), 4, threads, [&](int thread, std::int64_t i) {
        auto& [search, own] = scratch[thread];
        const System system = batch[i];
        const Status found = search.run(system, own.of(layout, i, scores), value[i]);
        std::int32_t* to = out.data() + layout.begin(0, i) / n_states;
        std::fill_n(to, system.length, -1);
        if (found == Status::ok) {
            for (const std::int32_t part : search.parts)
                if (part < system.transitions()) to[part / n_states] = static_cast<std::int32_t>(part % n_states);
        } else {
            value[i] = deduction::no_value(found);
        }
        status[i] = static_cast<std::int8_t>(found);
    });
}

class MaxMarginals {
   public:
    // out: n x S numbers.
    Status run(const System& system, const double* scores, double* out) {
        const Rules& rules = *system.rules;
        const std::int64_t n = system.length, k = rules.labels;
        std::fill_n(out, n * rules.n_states, NEG_INF);
        if (n == 0) return Status::ok;
        if (const Status found = fill(system, scores, tables_); found != Status::ok) return found;
        // after: the best that follows a segment of a label that ends at t, which then is the last, or followed by one.
        after_.assign(static_cast<std::size_t>((n + 1) * k), NEG_INF);
        next_.assign(static_cast<std::size_t>(k), NEG_INF);
        std::copy(rules.end_mask.begin(), rules.end_mask.end(), after_.begin() + n * k);
        double most = NEG_INF;
        for (std::int64_t b = n - 1; b >= 0; --b) {
            std::fill(next_.begin(), next_.end(), NEG_INF);
            for (std::int64_t y = 0; y < k; ++y) begin_at(system, scores, b, y, out);
            double* to = after_.data() + b * k;
            for (std::int64_t a = 0; b > 0 && a < k; ++a)
                for (std::int64_t y = 0; y < k; ++y) to[a] = std::max(to[a], tables_.matrix[a * k + y] + next_[y]);
            for (std::int64_t y = 0; b == 0 && y < k; ++y) most = std::max(most, tables_.entry[y] + next_[y]);
        }
        return most == NEG_INF                              ? Status::absent
               : most <= std::numeric_limits<double>::max() ? Status::ok
                                                            : Status::nonfinite;
    }

   private:
    // All segments of label y that begin at b.
    void begin_at(const System& system, const double* scores, std::int64_t b, std::int64_t y, double* out) {
        const Rules& rules = *system.rules;
        const std::int64_t k = rules.labels, width = n_roles * k,
                           most = std::min(system.lengths_from(b), rules.most[y]);
        const double *roles = tables_.roles.data() + b * width + y, *own = scores + system.segment(b, 1, y);
        const double before = tables_.entry[b * k + y];
        const auto reach = [&](std::int64_t t, int role, double sum) {
            if (rules.state(role, y) < 0) return;
            double& to = out[system.token(t, role, y)];
            to = std::max(to, sum);
        };
        double run = 0.0;
        for (std::int64_t l = 1; l <= most; ++l, own += k) {
            const double* last = roles + (l - 1) * width;
            const double sum = (l == 1 ? last[SINGLE * k] : run + last[LAST * k]) + *own + after_[(b + l) * k + y];
            next_[y] = std::max(next_[y], sum);
            if (l == 1) {
                reach(b, SINGLE, before + sum);
            } else {
                reach(b, FIRST, before + sum);
                for (std::int64_t t = b + 1; t < b + l - 1; ++t) reach(t, INSIDE, before + sum);
                reach(b + l - 1, LAST, before + sum);
            }
            run = l == 1 ? last[FIRST * k] : run + last[INSIDE * k];
        }
    }

    Tables tables_;
    std::vector<double> after_, next_;
};

// out: S numbers per token of the batch; -inf in an example without an output, NaN where its scores are rejected.
inline void max_marginals(const Batch& batch, std::span<const double> scores, std::span<double> out, int threads) {
    struct Scratch {
        MaxMarginals search;
        deduction::Gathered own;
    };
    const hull::Layout layout = batch.layout();
    auto scratch = per_thread<Scratch>(threads);
    parallel_each(batch.size(), 4, threads, [&](int thread, std::int64_t i) {
        auto& [search, own] = scratch[thread];
        const System system = batch[i];
        double* to = out.data() + layout.begin(0, i);
        const Status found = search.run(system, own.of(layout, i, scores), to);
        if (found == Status::ok) return;
        std::fill_n(to, system.transitions(),
                    found == Status::absent ? NEG_INF : std::numeric_limits<double>::quiet_NaN());
    });
}

}  // namespace maxmargin::segments
