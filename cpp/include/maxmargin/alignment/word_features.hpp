// Features of single words: whether a word is likely to have more than one link.
#pragma once

#include "maxmargin/alignment/link_batch.hpp"
#include "maxmargin/base/parallel.hpp"

namespace maxmargin::links {

inline constexpr std::int64_t WORD_FEATURES = 14;

// Word `word` of a side among n words, its partners o = 0..m-1 at grid[i * own + o * step].
struct Neighborhood {
    const double *many, *few;  // posteriors in which a word of this side can have many partners; those of the other way
    std::int64_t n, m, own, step;
};

static inline void partners(const Neighborhood& h, std::int64_t i, double* out) {
    double links = 0.0, directed = 0.0, first = 0.0, second = 0.0, best = -1.0;
    std::int64_t first_at = -1, second_at = -1, best_at = -1;
    for (std::int64_t o = 0; o < h.m; ++o) {
        const std::int64_t at = i * h.own + o * h.step;
        const double many = unit(h.many[at]), product = many * unit(h.few[at]);
        links += product;
        directed += many;
        if (product > best) best = product, best_at = o;
        if (first_at < 0 || many > first) {
            second = first, second_at = first_at;
            first = many, first_at = o;
        } else if (second_at < 0 || many > second) {
            second = many, second_at = o;
        }
    }
    const bool next = second > 0.0 && std::abs(first_at - second_at) == 1;
    double shared = 0.0;
    for (const std::int64_t neighbor : {i - 1, i + 1})
        if (best > 0.0 && neighbor >= 0 && neighbor < h.n)
            shared += 0.5 * unit(h.few[neighbor * h.own + best_at * h.step]);
    out[7] = 0.25 * std::min(links, 4.0);
    out[8] = 0.25 * std::min(directed, 4.0);
    out[9] = second;
    out[10] = next ? 1.0 : 0.0;
    out[11] = next ? second : 0.0;
    out[13] = shared;
}

// Rows of WORD_FEATURES numbers, one per word of the source side or of the target side.
inline void word_features(const Batch& b, bool source, std::span<double> out, std::span<std::int8_t> status,
                          int threads) {
    const auto& start = source ? b.source_start : b.target_start;
    const auto& words = source ? b.source_word : b.target_word;
    const auto counts = source ? b.count_source : b.count_target, nulls = source ? b.null_source : b.null_target;
    const double pairs = as_count(b.n_pairs), scale = pairs > 0.0 ? 1.0 / std::log(1.0 + pairs) : 0.0;
    parallel_each(b.size(), 8, threads, [&](int, std::int64_t i) {
        const std::int64_t J = b.source_start[i + 1] - b.source_start[i];
        const std::int64_t K = b.target_start[i + 1] - b.target_start[i];
        const double *forward = b.hmm_forward.data() + b.grid_start[i],
                     *backward = b.hmm_backward.data() + b.grid_start[i];
        const Neighborhood h =
            source ? Neighborhood{forward, backward, J, K, K, 1} : Neighborhood{backward, forward, K, J, 1, K};
        const bool good = pair_is_finite(b, i);
        status[i] = good ? 0 : 2;
        for (std::int64_t at = start[i]; at < start[i + 1]; ++at) {
            double* row = out.data() + at * WORD_FEATURES;
            std::fill_n(row, WORD_FEATURES, 0.0);
            if (!good) continue;
            const double c = as_count(counts[at]);
            const std::int32_t w = words[at];
            row[0] = 1.0;
            row[1] = std::min(std::log(1.0 + c) * scale, 1.0);
            row[2] = c <= 3.0 ? 1.0 : 0.0;
            row[3] = c > 0.01 * pairs ? 1.0 : 0.0;
            row[4] = std::min(0.1 * static_cast<double>(b.words.word(w).size()), 1.0);
            row[5] = (b.words.kind[w] & PUNCTUATION) != 0 ? 1.0 : 0.0;
            row[6] = b.words.digits[w] >= 0 ? 1.0 : 0.0;
            partners(h, at - start[i], row);
            row[12] = unit(nulls[at]);
        }
    });
}

}  // namespace maxmargin::links
