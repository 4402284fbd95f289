// Expectation steps of two models of how the words of a sentence give rise to those of its translation, both ways at
// once: IBM Model 1 (Brown et al. 1993) and the hidden Markov model (Vogel, Ney and Tillmann 1996; the empty word
// as Och and Ney 2003 have it).
//
// "Forward" means that source words generate target words, t(f | e); "backward" the other way round. Cost per pair of
// J and K words: O(J K) for Model 1, O(J K (J + K)) for the hidden Markov models.
//
// Expected counts are sums of fixed-point numbers, which come out the same in any order: so they have the same bits
// for any number of threads, without a copy of the tables for each of them.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "maxmargin/bitext.hpp"
#include "maxmargin/simd.hpp"

namespace maxmargin::translation {

using bitext::Pairs;

// t(f | e) and t(e | f) of each slot of a lexicon, next to each other, and what the empty word generates.
struct Tables {
    std::span<const float> word, null_target, null_source;
    double unseen;  // the probability of a word given one that it never met
};

struct Counts {
    std::span<std::uint64_t> word, null_target, null_source;
    double scale;  // a count of one is this much

    void add(std::uint64_t& to, double count) const {
        std::atomic_ref<std::uint64_t>(to).fetch_add(static_cast<std::uint64_t>(count * scale + 0.5),
                                                     std::memory_order_relaxed);
    }
};

// Jumps between the positions that generate neighbouring words: p(i | i') = (1 - null) c(i - i') / sum_l c(l - i').
// c has one entry per distance -width..width; distances beyond share the outermost ones.
struct Jumps {
    std::span<const double> c;
    double null;

    std::int64_t width() const { return static_cast<std::int64_t>(c.size()) / 2; }
    double at(std::int64_t distance) const { return c[std::clamp(distance, -width(), width()) + width()]; }
};

// Expected jumps by distance, and departures by (i' + 1, number of positions): a matrix of `side` squared.
struct JumpCounts {
    std::span<std::uint64_t> distance, departures;
    std::int64_t side;
};

static MM_CLONES void add_scaled(const double* MM_RESTRICT x, double a, std::int64_t n, double* MM_RESTRICT y) {
    for (std::int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}

// The working memory of one thread. After model1() or hmm() the posteriors of a pair are in `forward` and `backward`
// (row-major source x target), those of the empty word in `null_target` and `null_source`.
class Worker {
   public:
    std::vector<double> forward, backward, null_target, null_source;

    // The word probabilities of pair p, by the slots of its cells.
    void gather(const Pairs& pairs, std::int64_t p, const std::uint32_t* slots, const Tables& tables) {
        begin(pairs, p, tables);
        for (std::int64_t c = 0; c < rows_ * columns_; ++c) {
            const std::uint32_t slot = slots[c];
            const bool known = slot != bitext::kNoSlot;
            forward[c] = known ? std::max<double>(tables.word[2 * std::size_t{slot}], kLeast) : tables.unseen;
            backward[c] = known ? std::max<double>(tables.word[2 * std::size_t{slot} + 1], kLeast) : tables.unseen;
        }
    }

    // Posteriors of Model 1; the two log-likelihoods.
    std::pair<double, double> model1() {
        double forth = 0, back = 0;
        sums_.assign(null_target.begin(), null_target.end());
        for (std::int64_t j = 0; j < rows_; ++j) add_scaled(forward.data() + j * columns_, 1.0, columns_, sums_.data());
        for (std::int64_t k = 0; k < columns_; ++k) {
            forth += std::log(sums_[k] / static_cast<double>(rows_ + 1));
            null_target[k] /= sums_[k];
        }
        for (std::int64_t j = 0; j < rows_; ++j) {
            double* row = forward.data() + j * columns_;
            for (std::int64_t k = 0; k < columns_; ++k) row[k] /= sums_[k];
            double* other = backward.data() + j * columns_;
            double sum = null_source[j];
            for (std::int64_t k = 0; k < columns_; ++k) sum += other[k];
            back += std::log(sum / static_cast<double>(columns_ + 1));
            null_source[j] /= sum;
            for (std::int64_t k = 0; k < columns_; ++k) other[k] /= sum;
        }
        return {forth, back};
    }

    // Posteriors of the hidden Markov models; the two log-likelihoods. Jumps are counted if counts are given.
    std::pair<double, double> hmm(const Jumps& forth, const Jumps& back, const JumpCounts* forth_counts,
                                  const JumpCounts* back_counts, double scale) {
        turned_.resize(forward.size());
        for (std::int64_t j = 0; j < rows_; ++j)
            for (std::int64_t k = 0; k < columns_; ++k) turned_[k * rows_ + j] = forward[j * columns_ + k];
        const double first = chain(turned_.data(), null_target.data(), rows_, columns_, forth, forth_counts, scale);
        for (std::int64_t j = 0; j < rows_; ++j)
            for (std::int64_t k = 0; k < columns_; ++k) forward[j * columns_ + k] = turned_[k * rows_ + j];
        const double second = chain(backward.data(), null_source.data(), columns_, rows_, back, back_counts, scale);
        return {first, second};
    }

    // Both directions believe only what they agree on (Liang, Taskar and Klein 2006).
    void agree() {
        for (std::size_t c = 0; c < forward.size(); ++c) forward[c] = backward[c] = forward[c] * backward[c];
    }

    void count(const Pairs& pairs, std::int64_t p, const std::uint32_t* slots, const Counts& counts) const {
        for (std::int64_t c = 0; c < rows_ * columns_; ++c) {
            if (slots[c] == bitext::kNoSlot) continue;
            counts.add(counts.word[2 * std::size_t{slots[c]}], forward[c]);
            counts.add(counts.word[2 * std::size_t{slots[c]} + 1], backward[c]);
        }
        for (std::int64_t k = 0; k < columns_; ++k)
            if (const std::int32_t f = pairs.target[pairs.target_start[p] + k]; f >= 0)
                counts.add(counts.null_target[f], null_target[k]);
        for (std::int64_t j = 0; j < rows_; ++j)
            if (const std::int32_t e = pairs.source[pairs.source_start[p] + j]; e >= 0)
                counts.add(counts.null_source[e], null_source[j]);
    }

    std::int64_t cells() const { return rows_ * columns_; }

   private:
    // A word pair that has met keeps at least this probability, so that no sentence becomes impossible.
    static constexpr double kLeast = 1e-30;

    void begin(const Pairs& pairs, std::int64_t p, const Tables& tables) {
        rows_ = pairs.sources(p);
        columns_ = pairs.targets(p);
        forward.resize(rows_ * columns_);
        backward.resize(rows_ * columns_);
        null_target.resize(columns_);
        null_source.resize(rows_);
        for (std::int64_t k = 0; k < columns_; ++k) {
            const std::int32_t f = pairs.target[pairs.target_start[p] + k];
            null_target[k] = f >= 0 ? std::max<double>(tables.null_target[f], kLeast) : tables.unseen;
        }
        for (std::int64_t j = 0; j < rows_; ++j) {
            const std::int32_t e = pairs.source[pairs.source_start[p] + j];
            null_source[j] = e >= 0 ? std::max<double>(tables.null_source[e], kLeast) : tables.unseen;
        }
    }

    // Forward-backward over n words, each generated by one of `states` positions or by the empty word. `emission` is
    // (n, states), `null` (n,); both become posteriors. A memory of the last position (states of them, and the start,
    // which is the last one) lives through empty words.
    double chain(double* emission, double* null, std::int64_t states, std::int64_t n, const Jumps& jumps,
                 const JumpCounts* counts, double scale) {
        if (n == 0) return 0;
        const std::int64_t memories = states + 1;
        jump_table(states, jumps);
        const double stay = states ? jumps.null : 1.0;
        before_.resize((n + 1) * memories);
        alpha_.assign(n * states, 0.0);
        norm_.resize(n);
        std::fill(before_.begin(), before_.begin() + memories, 0.0);
        before_[states] = 1;
        double likelihood = 0;
        for (std::int64_t k = 0; k < n; ++k) {
            const double* from = before_.data() + k * memories;
            double* to = before_.data() + (k + 1) * memories;
            double* a = alpha_.data() + k * states;
            for (std::int64_t m = 0; m < memories; ++m)
                if (from[m] > 0) add_scaled(table_.data() + m * states, from[m], states, a);
            double sum = 0;
            for (std::int64_t i = 0; i < states; ++i) {
                a[i] *= emission[k * states + i];
                to[i] = a[i] + stay * null[k] * from[i];
                sum += to[i];
            }
            to[states] = stay * null[k] * from[states];
            sum += to[states];
            sum = std::max(sum, 1e-300);
            const double inverse = 1 / sum;
            for (std::int64_t i = 0; i < states; ++i) a[i] *= inverse;
            for (std::int64_t m = 0; m < memories; ++m) to[m] *= inverse;
            norm_[k] = sum;
            likelihood += std::log(sum);
        }
        beta_.assign(memories, 1.0);
        if (counts) moves_.assign(memories * states, 0.0);
        ahead_.resize(states);
        for (std::int64_t k = n - 1; k >= 0; --k) {
            const double* from = before_.data() + k * memories;
            const double inverse = 1 / norm_[k];
            double empty = 0;
            for (std::int64_t m = 0; m < memories; ++m) empty += from[m] * beta_[m];
            for (std::int64_t i = 0; i < states; ++i) ahead_[i] = emission[k * states + i] * beta_[i] * inverse;
            for (std::int64_t i = 0; i < states; ++i) emission[k * states + i] = alpha_[k * states + i] * beta_[i];
            const double kept = stay * null[k] * inverse;
            null[k] = empty * kept;
            if (counts)
                for (std::int64_t m = 0; m < memories; ++m)
                    if (from[m] > 0) add_scaled(ahead_.data(), from[m], states, moves_.data() + m * states);
            for (std::int64_t m = 0; m < memories; ++m) beta_[m] *= kept;
            for (std::int64_t i = 0; i < states; ++i)
                add_scaled(turned_table_.data() + i * memories, ahead_[i], memories, beta_.data());
        }
        if (counts) count_jumps(states, *counts, scale, jumps.width());
        return likelihood;
    }

    void jump_table(std::int64_t states, const Jumps& jumps) {
        const std::int64_t memories = states + 1;
        table_.resize(memories * states);
        turned_table_.resize(memories * states);
        for (std::int64_t m = 0; m < memories; ++m) {
            const std::int64_t last = m == states ? -1 : m;
            double sum = 0;
            for (std::int64_t i = 0; i < states; ++i) sum += table_[m * states + i] = jumps.at(i - last);
            const double factor = (1 - jumps.null) / sum;
            for (std::int64_t i = 0; i < states; ++i)
                turned_table_[i * memories + m] = table_[m * states + i] *= factor;
        }
    }

    void count_jumps(std::int64_t states, const JumpCounts& counts, double scale, std::int64_t width) {
        const Counts fixed{{}, {}, {}, scale};
        by_distance_.assign(2 * width + 1, 0.0);
        for (std::int64_t m = 0; m <= states; ++m) {
            const std::int64_t last = m == states ? -1 : m;
            double departures = 0;
            for (std::int64_t i = 0; i < states; ++i) {
                const double moved = moves_[m * states + i] * table_[m * states + i];
                departures += moved;
                by_distance_[std::clamp(i - last, -width, width) + width] += moved;
            }
            fixed.add(counts.departures[(last + 1) * counts.side + states], departures);
        }
        for (std::int64_t d = 0; d < 2 * width + 1; ++d) fixed.add(counts.distance[d], by_distance_[d]);
    }

    std::int64_t rows_ = 0, columns_ = 0;
    std::vector<double> sums_, turned_, table_, turned_table_, before_, alpha_, beta_, norm_, ahead_, moves_,
        by_distance_;
};

// exp(digamma(x)), what a Dirichlet prior makes of a count in variational Bayes, by the asymptotic series after a few
// steps of the recurrence.
inline double discounted(double x) {
    double shift = 0;
    for (; x < 6; x += 1) shift += 1 / x;
    const double y = 1 / (x * x);
    return std::exp(std::log(x) - 0.5 / x - y * (1.0 / 12 - y * (1.0 / 120 - y / 252)) - shift);
}

// The maximisation step for words: t = count / total of the word that generates, or with a Dirichlet prior of strength
// `prior` on every entry, exp(digamma(count + prior)) / exp(digamma(total + prior * entries)).
inline void maximise(const bitext::Lexicon& lexicon, std::span<const std::uint64_t> counts, double scale, double prior,
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
    parallel_blocks(n_source, 64, threads, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t e = begin; e < end; ++e) {
            const std::int64_t first = lexicon.row_start[e], last = lexicon.row_start[e + 1];
            std::uint64_t total = 0;
            for (std::int64_t s = first; s < last; ++s) total += counts[2 * s];
            const double under = last > first ? weigh(total, prior * static_cast<double>(last - first)) : 1.0;
            for (std::int64_t s = first; s < last; ++s) {
                const double over = below[lexicon.column[s]];
                word[2 * s] = under > 0 ? static_cast<float>(weigh(counts[2 * s], prior) / under) : 0.0f;
                word[2 * s + 1] = over > 0 ? static_cast<float>(weigh(counts[2 * s + 1], prior) / over) : 0.0f;
            }
        }
    });
}

}  // namespace maxmargin::translation
