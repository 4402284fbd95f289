// The k best label sequences of chains: every label keeps the k best prefixes that end in it.
//
// Cost per example: at worst T K^2 k^2 maxima and minima forward, a vector of labels at a time, and T (K + k) k steps
// back for each rank listed; where k is above 3, most candidates are rejected by one comparison.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "maxmargin/chain/viterbi.hpp"

namespace maxmargin::chain {

// A candidate sinks through a sorted list by one maximum and one minimum per rank, a vector of lists at a time.
template <class Vec>
MM_INLINE void sink(Vec& candidate, Vec& listed) {
    const Vec higher = larger(candidate, listed);
    candidate = candidate < listed ? candidate : listed;  // a comparison of its own: one instruction, no blend
    listed = higher;
}

// The score of a prefix and a pair; -inf for NaN, which sums that overflow can make and lists must not hold.
template <class Vec>
MM_INLINE Vec joined(const Vec& into, double before) {
    return larger<Vec>(into + before, Vec{} + NEG_INF);
}

// The R best of before[r][a] + scores[a] over a and r, for a vector of labels; lists in registers.
template <class Vec, int R>
MM_INLINE void sink_few(const double* before, std::int64_t padded, const double* scores, std::int64_t width,
                        std::int64_t k, double* lists) {
    Vec list[R];
    for (int r = 0; r < R; ++r) list[r] = Vec{} + NEG_INF;
    for (std::int64_t a = 0; a < k; ++a)
#pragma GCC unroll 3
        for (int r = 0; r < R; ++r) {
            Vec candidate = joined(load<Vec>(scores + a * width), before[r * padded + a]);
#pragma GCC unroll 3
            for (int rank = 0; rank < R; ++rank) sink(candidate, list[rank]);
        }
    for (int r = 0; r < R; ++r) store(lists + r * padded, list[r]);
}

// The same for any number of ranks. Lists of prefixes are sorted, so the first candidate that enters none of the lists
// of the vector ends its list.
template <class Vec>
MM_INLINE void sink_many(std::int64_t ranks, const double* before, std::int64_t padded, const double* scores,
                         std::int64_t width, std::int64_t k, double* lists) {
    const double* lowest = lists + (ranks - 1) * padded;
    for (std::int64_t a = 0; a < k; ++a) {
        const Vec into = load<Vec>(scores + a * width);
        for (std::int64_t r = 0; r < ranks; ++r) {
            Vec candidate = joined(into, before[r * padded + a]);
            if (!any(candidate > load<Vec>(lowest))) break;
            for (std::int64_t rank = 0; rank < ranks; ++rank) {
                Vec listed = load<Vec>(lists + rank * padded);
                sink(candidate, listed);
                store(lists + rank * padded, listed);
            }
        }
    }
}

// lists[r][b] = the r-th best of before[s][a] + cells[a][b] over a and s, in a table of `rows` rows that lies in panels
// of `height` rows; rows of lists and of `before` are `stride` apart. Lists hold -inf on entry.
template <class Vec>
MM_INLINE void sink_panels(const std::vector<Panel>& panels, std::int64_t height, std::int64_t ranks,
                           const double* before, std::int64_t stride, const double* cells, std::int64_t rows,
                           double* lists) {
    for (const auto [first, vectors] : panels) {
        const std::int64_t width = vectors * simd::lanes<Vec>;
        const double* from = cells + height * first;
        double* to = lists + first;
        for (std::int64_t j = 0; j < vectors; ++j, from += simd::lanes<Vec>, to += simd::lanes<Vec>) {
            switch (ranks) {
                case 1: sink_few<Vec, 1>(before, stride, from, width, rows, to); break;
                case 2: sink_few<Vec, 2>(before, stride, from, width, rows, to); break;
                case 3: sink_few<Vec, 3>(before, stride, from, width, rows, to); break;
                default: sink_many<Vec>(ranks, before, stride, from, width, rows, to); break;
            }
        }
    }
}

// forward[t][r][b] (rows of `padded`) = score of the r-th best prefix that ends in label b at position t, -inf where
// there is none.
template <class Vec>
MM_INLINE void k_best_forward_at(const Panels& panels, bool shared, std::int64_t length, std::int64_t ranks,
                                 const double* MM_RESTRICT nodes, const double* MM_RESTRICT pairs,
                                 double* MM_RESTRICT matrix, double* MM_RESTRICT forward) {
    const std::int64_t k = panels.n_labels, padded = panels.padded, layer = ranks * padded;
    std::fill(forward, forward + layer, NEG_INF);
    std::memcpy(forward, nodes, sizeof(double) * static_cast<std::size_t>(k));
    if (shared && length > 1) pack(panels, pairs, matrix);
    for (std::int64_t t = 1; t < length; ++t) {
        if (!shared) pack(panels, pairs + (t - 1) * k * k, matrix);
        double* now = forward + t * layer;
        std::fill(now, now + layer, NEG_INF);
        sink_panels<Vec>(panels.list, padded, ranks, now - layer, padded, matrix, k, now);
        for (std::int64_t r = 0; r < ranks; ++r)
            for (std::int64_t b = 0; b < k; ++b) now[r * padded + b] += nodes[t * k + b];
    }
}
MM_LEVELS(k_best_forward)

// Candidates by rank.
struct RankedList {
    std::vector<double> score;
    std::vector<std::int64_t> from;

    explicit RankedList(std::int64_t ranks)
        : score(static_cast<std::size_t>(ranks)), from(static_cast<std::size_t>(ranks)) {}
};

// Fills a list with the best of the candidates offered, in falling order; equals in the order in which they came.
struct Ranking {
    double* score;
    std::int64_t* from;
    std::int64_t most, count = 0;

    // At most `limit` are kept.
    Ranking(RankedList& list, std::int64_t limit) : score(list.score.data()), from(list.from.data()), most(limit) {}

    // False if the candidate is NaN or too low.
    bool offer(double candidate, std::int64_t source) {
        if (!(candidate > NEG_INF) || (count == most && !(candidate > score[count - 1]))) return false;
        if (count < most) ++count;
        std::int64_t at = count - 1;
        for (; at > 0 && candidate > score[at - 1]; --at) {
            score[at] = score[at - 1];
            from[at] = from[at - 1];
        }
        score[at] = candidate;
        from[at] = source;
        return true;
    }
};

// The k best sequences of one chain from k_best_forward. The backward pass recomputes the list of each label on the
// path.
class KBest {
   public:
    KBest(const Panels& panels, std::int64_t longest, std::int64_t ranks)
        : panels_(panels), ranks_(ranks), last_(ranks), passed_(ranks) {
        matrix_.resize(panels.padded * panels.padded, NEG_INF);
        forward_.resize(std::max<std::int64_t>(longest, 1) * ranks * panels.padded, NEG_INF);
    }

    // Returns how many there are; score(r) and labels(r, ...) give them.
    std::int64_t run(bool shared, std::int64_t length, const double* nodes, const double* pairs) {
        shared_ = shared;
        length_ = length;
        pairs_ = pairs;
        k_best_forward(panels_.lanes, panels_, shared, length, ranks_, nodes, pairs, matrix_.get(), forward_.get());
        return merge(length - 1, nullptr, ranks_, last_);
    }

    double score(std::int64_t r) const { return last_.score[r]; }

    void labels(std::int64_t r, std::int32_t* out) {
        const std::int64_t k = panels_.n_labels;
        std::int64_t entry = last_.from[r];
        for (std::int64_t t = length_ - 1;; --t) {
            const std::int64_t label = entry / ranks_, rank = entry % ranks_;
            out[t] = static_cast<std::int32_t>(label);
            if (t == 0) return;
            merge(t - 1, pairs_ + (shared_ ? 0 : (t - 1) * k * k) + label, rank + 1, passed_);
            entry = passed_.from[rank];
        }
    }

   private:
    Panels panels_;
    std::int64_t ranks_, length_ = 0;
    bool shared_ = true;
    const double* pairs_ = nullptr;
    Aligned matrix_, forward_;
    RankedList last_, passed_;  // from: label * ranks + rank

    // The best `most` prefixes up to position t, plus a column of pair scores if there is one. Equals in the order of
    // their labels and ranks.
    std::int64_t merge(std::int64_t t, const double* column, std::int64_t most, RankedList& list) const {
        const std::int64_t k = panels_.n_labels, padded = panels_.padded;
        const double* row = forward_.get() + t * ranks_ * padded;
        Ranking best(list, most);
        for (std::int64_t a = 0; a < k; ++a) {
            const double plus = column ? column[a * k] : 0.0;
            for (std::int64_t r = 0; r < ranks_; ++r)
                if (!best.offer(row[r * padded + a] + plus, a * ranks_ + r)) break;
        }
        return best.count;
    }
};

// The k best sequences of example i: run() returns how many the kernel has found, and mark(r, labels) takes rank r.
// Score and status of rank r go to value[r][i] and status[r][i].
template <class Kernel, class Run, class Mark>
void write_ranks(Kernel& kernel, std::int64_t k, std::int64_t n, std::int64_t i, std::int64_t length, bool bad,
                 std::vector<std::int32_t>& labels, std::span<double> value, std::span<std::int8_t> status, Run&& run,
                 Mark&& mark) {
    const std::int64_t found = bad ? 0 : (length > 0 ? run() : 1);
    for (std::int64_t r = 0; r < k; ++r) {
        double& score = value[r * n + i];
        Status code = Status::ok;
        if (r >= found) {
            score = bad ? std::numeric_limits<double>::quiet_NaN() : NEG_INF;
            code = bad ? Status::nonfinite : Status::absent;
        } else if (length == 0) {
            score = 0.0;
        } else {
            score = kernel.score(r);
            kernel.labels(r, labels.data());
            mark(r, labels.data());
        }
        status[r * n + i] = static_cast<std::int8_t>(code);
    }
}

// Rank r of example i goes to z[r][..], value[r][i] and status[r][i]; z must be zero on entry.
inline void k_best(const Batch& batch, std::int64_t k, std::span<const double> scores, std::span<double> z,
                   std::span<double> value, std::span<std::int8_t> status, int threads) {
    const std::int64_t n = batch.n_examples(), n_parts = batch.pairs[n];
    const Panels panels(batch.n_labels, lanes_in_use());
    auto kernels = per_thread<KBest>(threads, panels, batch.longest(), k);
    auto labels = per_thread<std::vector<std::int32_t>>(threads, batch.longest());
    parallel_each(n, 1, threads, [&](int thread, std::int64_t i) {
        const std::int64_t length = batch.length(i);
        const double *nodes = scores.data() + batch.nodes[i], *pairs = scores.data() + batch.pairs[i];
        const bool bad = refused(panels.lanes, nodes, batch.nodes[i + 1] - batch.nodes[i]) ||
                         refused(panels.lanes, pairs, batch.pairs[i + 1] - batch.pairs[i]);
        write_ranks(
            kernels[thread], k, n, i, length, bad, labels[thread], value, status,
            [&] { return kernels[thread].run(batch.shared, length, nodes, pairs); },
            [&](std::int64_t r, const std::int32_t* own) {
                double* to = z.data() + r * n_parts;
                mark(batch.n_labels, batch.shared, length, own, to + batch.nodes[i], to + batch.pairs[i]);
            });
    });
}

}  // namespace maxmargin::chain
