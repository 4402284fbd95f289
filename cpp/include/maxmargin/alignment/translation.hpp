// Expectation steps of two word translation models, in both directions at
// once: IBM Model 1 (Brown et al. 1993) and the hidden Markov model (Vogel, Ney and Tillmann 1996; the empty word
// as in Och and Ney 2003).
//
// "Forward" means that source words generate target words, t(f | e); "backward" the other way round. Cost per pair of
// J and K words: O(J K) for Model 1, O(J K width) for the hidden Markov models.
//
// Expected counts are sums of fixed-point numbers, which come out the same in any order: so they have the same bits
// for any number of threads, whether these add to the same table or to tables of their own.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "maxmargin/alignment/bitext.hpp"
#include "maxmargin/alignment/word_chain.hpp"
#include "maxmargin/base/simd.hpp"

namespace maxmargin::translation {

using bitext::Pairs;

// t(f | e) and t(e | f) of each slot of a lexicon, next to each other, and what the empty word generates.
struct Tables {
    std::span<const float> word, null_target, null_source;
    double unseen;  // the probability of a word given one that it never met
};

// Expected jumps by distance, and departures by (place, number of positions): a matrix of `side` squared.
struct JumpCounts {
    std::span<std::uint64_t> distance, departures;
    std::int64_t side;
};

struct Counts {
    std::span<std::uint64_t> word, null_target, null_source;
    JumpCounts forth, back;
    double scale;  // a count of one is this much
    bool shared;   // whether other threads add to `word` at the same time; the rest is always shared

    std::uint64_t fixed(double count) const {
        return static_cast<std::uint64_t>(static_cast<std::int64_t>(count * scale + 0.5));
    }
    void add_shared(std::uint64_t& to, double count) const {
        std::atomic_ref<std::uint64_t>(to).fetch_add(fixed(count), std::memory_order_relaxed);
    }
};

// Posteriors of Model 1 from word probabilities, rows as in ChainView; the log-likelihood.
template <class Vec>
MM_INLINE double shares_at(double* rows, double* null, std::int64_t words, std::int64_t positions,
                           std::int64_t stride) {
    double likelihood = 0;
    for (std::int64_t k = 0; k < words; ++k) {
        double* row = rows + k * stride;
        Vec sums{};
        for (std::int64_t i = 0; i < stride; i += simd::lanes<Vec>) sums += simd::load<Vec>(row + i);
        const double sum = null[k] + simd::total<Vec>(sums), inverse = 1 / sum;
        likelihood += std::log(sum / static_cast<double>(positions + 1));
        null[k] *= inverse;
        for (std::int64_t i = 0; i < stride; i += simd::lanes<Vec>)
            simd::store<Vec>(row + i, inverse * simd::load<Vec>(row + i));
    }
    return likelihood;
}

MM_LEVELS(shares)

// The working memory of one thread. After model1() or hmm() it holds the posteriors of a pair.
class Worker {
   public:
    std::vector<double> null_target, null_source;

    double& forward(std::int64_t j, std::int64_t k) { return forward_[k * forward_stride_ + j + 1]; }
    double& backward(std::int64_t j, std::int64_t k) { return backward_[j * backward_stride_ + k + 1]; }

    // The word probabilities of pair p, by the slots of its cells.
    template <class Slot>
    void gather(const Pairs& pairs, std::int64_t p, const Slot* slots, Slot none, const Tables& tables) {
        rows_ = pairs.sources(p);
        columns_ = pairs.targets(p);
        forward_stride_ = stride_of(rows_);
        backward_stride_ = stride_of(columns_);
        forward_.assign(columns_ * forward_stride_, 0.0);
        backward_.assign(rows_ * backward_stride_, 0.0);
        empty(pairs.target.data() + pairs.target_start[p], columns_, tables.null_target, tables.unseen, null_target);
        empty(pairs.source.data() + pairs.source_start[p], rows_, tables.null_source, tables.unseen, null_source);
        const std::int64_t rows = rows_, columns = columns_, step = forward_stride_;
        for (std::int64_t j = 0; j < rows; ++j) {
            double *forth = forward_.data() + j + 1, *back = backward_.data() + j * backward_stride_ + 1;
            for (std::int64_t k = 0; k < columns; ++k) {
                const Slot slot = slots[j * columns + k];
                const bool known = slot != none;
                const float* word = tables.word.data() + (known ? 2 * static_cast<std::size_t>(slot) : 0);
                forth[k * step] = known ? probability(word[0]) : tables.unseen;
                back[k] = known ? probability(word[1]) : tables.unseen;
            }
        }
    }

    // Tables are larger than caches, and their slots known ahead of time.
    template <class T>
    static void fetch(const std::uint32_t* slots, std::int64_t n, const T* table) {
        for (std::int64_t c = 0; c < n; ++c)
            if (slots[c] != bitext::kNoSlot) __builtin_prefetch(table + 2 * std::size_t{slots[c]}, 0, 2);
    }

    // Posteriors of Model 1; the two log-likelihoods.
    std::pair<double, double> model1() {
        const int widest = simd::lanes_in_use();
        return {shares(widest, forward_.data(), null_target.data(), columns_, rows_, forward_stride_),
                shares(widest, backward_.data(), null_source.data(), rows_, columns_, backward_stride_)};
    }

    // Posteriors of the hidden Markov models; the two log-likelihoods. Jumps are counted if counts are given.
    std::pair<double, double> hmm(const Jumps& forth, const Jumps& back, const Counts* counts) {
        ChainView one = forth_.begin(forward_.data(), null_target.data(), columns_, rows_, forth, counts != nullptr);
        ChainView two = back_.begin(backward_.data(), null_source.data(), rows_, columns_, back, counts != nullptr);
        forward_backward(simd::lanes_in_use(), one, two);
        if (counts) {
            forth_.end(one);
            back_.end(two);
            count_jumps(forth_, rows_, counts->forth, *counts);
            count_jumps(back_, columns_, counts->back, *counts);
        }
        return {one.likelihood, two.likelihood};
    }

    // Adds the posteriors up; with `agree` both directions count only what they agree on (Liang, Taskar and Klein
    // 2006).
    void count(const Pairs& pairs, std::int64_t p, const std::uint32_t* slots, bool agree, const Counts& counts) {
        const std::int64_t rows = rows_, columns = columns_, step = forward_stride_;
        std::uint64_t* const word = counts.word.data();
        const bool shared = counts.shared;
        for (std::int64_t j = 0; j < rows; ++j) {
            const double *forths = forward_.data() + j + 1, *backs = backward_.data() + j * backward_stride_ + 1;
            for (std::int64_t k = 0; k < columns; ++k) {
                const std::uint32_t slot = slots[j * columns + k];
                double forth = forths[k * step], back = backs[k];
                if (agree) forth = back = forth * back;
                const std::uint64_t one = counts.fixed(forth), two = counts.fixed(back);
                if ((one | two) == 0 || slot == bitext::kNoSlot) continue;
                std::uint64_t* to = word + 2 * std::size_t{slot};
                if (shared) {
                    std::atomic_ref<std::uint64_t>(to[0]).fetch_add(one, std::memory_order_relaxed);
                    std::atomic_ref<std::uint64_t>(to[1]).fetch_add(two, std::memory_order_relaxed);
                } else {
                    to[0] += one;
                    to[1] += two;
                }
            }
        }
        for (std::int64_t k = 0; k < columns_; ++k)
            if (const std::int32_t f = pairs.target[pairs.target_start[p] + k]; f >= 0)
                counts.add_shared(counts.null_target[f], null_target[k]);
        for (std::int64_t j = 0; j < rows_; ++j)
            if (const std::int32_t e = pairs.source[pairs.source_start[p] + j]; e >= 0)
                counts.add_shared(counts.null_source[e], null_source[j]);
    }

   private:
    // A word pair that has met keeps at least 1e-30, so that no sentence becomes impossible. NaN becomes that too.
    static double probability(float value) {
        value = value > 1e-30f ? value : 1e-30f;
        return value < 1.0f ? value : 1.0f;
    }

    static void empty(const std::int32_t* words, std::int64_t n, std::span<const float> table, double unseen,
                      std::vector<double>& out) {
        out.resize(n);
        for (std::int64_t k = 0; k < n; ++k) out[k] = words[k] >= 0 ? probability(table[words[k]]) : unseen;
    }

    static void count_jumps(const WordChain& chain, std::int64_t positions, const JumpCounts& jumps,
                            const Counts& counts) {
        for (std::int64_t m = 0; m <= positions; ++m)
            counts.add_shared(jumps.departures[m * jumps.side + positions], chain.departures[m]);
        for (std::size_t d = 0; d < jumps.distance.size(); ++d)
            counts.add_shared(jumps.distance[d], chain.distances[d]);
    }

    std::int64_t rows_ = 0, columns_ = 0, forward_stride_ = 0, backward_stride_ = 0;
    std::vector<double> forward_, backward_;  // (targets, sources) and (sources, targets), rows as in ChainView
    WordChain forth_, back_;
};

// exp(digamma(x)), which replaces a count x in variational Bayes with a Dirichlet prior, by the asymptotic series after
// a few steps of the recurrence.
inline double discounted(double x) {
    double shift = 0;
    for (; x < 6; x += 1) shift += 1 / x;
    const double y = 1 / (x * x);
    return std::exp(std::log(x) - 0.5 / x - y * (1.0 / 12 - y * (1.0 / 120 - y / 252)) - shift);
}

// The maximization step for words: t = count / total of the word that generates, or with a Dirichlet prior of strength
// `prior` on every entry, exp(digamma(count + prior)) / exp(digamma(total + prior * entries)).
inline void maximize(const bitext::Lexicon& lexicon, std::span<const std::uint64_t> counts, double scale, double prior,
                     std::int64_t n_target, std::span<float> word, int threads) {
    const std::int64_t n_source = static_cast<std::int64_t>(lexicon.row_start.size()) - 1;
    std::vector<std::uint64_t> totals(n_target, 0);
    std::vector<std::int64_t> entries(n_target, 0);
    for (std::size_t slot = 0; slot < lexicon.column.size(); ++slot) {
        totals[lexicon.column[slot]] += counts[2 * slot + 1];
        ++entries[lexicon.column[slot]];
    }
    auto weigh = [&](std::uint64_t count, double extra) {
        const double x = static_cast<double>(count) / scale + extra;
        return prior > 0 ? discounted(x) : x;
    };
    std::vector<double> below(n_target);
    for (std::int64_t f = 0; f < n_target; ++f)
        below[f] = entries[f] ? weigh(totals[f], prior * static_cast<double>(entries[f])) : 1.0;
    parallel_each(n_source, 64, threads, [&](int, std::int64_t e) {
        const std::int64_t first = lexicon.row_start[e], last = lexicon.row_start[e + 1];
        std::uint64_t total = 0;
        for (std::int64_t s = first; s < last; ++s) total += counts[2 * s];
        const double under = last > first ? weigh(total, prior * static_cast<double>(last - first)) : 1.0;
        for (std::int64_t s = first; s < last; ++s) {
            const double over = below[lexicon.column[s]];
            word[2 * s] = under > 0 ? static_cast<float>(weigh(counts[2 * s], prior) / under) : 0.0f;
            word[2 * s + 1] = over > 0 ? static_cast<float>(weigh(counts[2 * s + 1], prior) / over) : 0.0f;
        }
    });
}

}  // namespace maxmargin::translation
