// Expectation steps of two word translation models, in both directions at
// once: IBM Model 1 (Brown et al. 1993) and the hidden Markov model (Vogel, Ney and Tillmann 1996; the empty word
// as in Och and Ney 2003).
//
// "Forward" means that source words generate target words, t(f | e); "backward" the other way round. Cost per pair of
// J and K words: O(J K) for Model 1, O(J K width) for the hidden Markov models.
//
// Tables of words are too large for caches, so an expectation step never looks a cell up in them. It goes through the
// text in blocks. In each, one source word after the other spreads its row of the table out over the target words and
// copies from there what its tokens need; then the pairs are computed; then each source word collects its counts in
// the same way. No two threads write to the same row, and a row's sums are taken in the order of the text: so they
// have the same bits for any number of threads. Counts of the empty word and of jumps are sums of fixed-point numbers,
// which come out the same in any order.
#pragma once

#include <algorithm>
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

// t(f | e) and t(e | f) of a cell, or posteriors of its link.
struct Cell {
    float forth, back;
};

// A word pair that has met keeps at least 1e-30, so that no sentence becomes impossible. NaN becomes that too.
inline float probability(float value) {
    value = value > 1e-30f ? value : 1e-30f;
    return value < 1.0f ? value : 1.0f;
}

// Probabilities of each slot of a lexicon, and what the empty word generates.
struct Tables {
    std::span<const float> word, null_target, null_source;
    float unseen;  // the probability of a word given one that it never met

    Cell cell(std::int64_t slot) const { return {probability(word[2 * slot]), probability(word[2 * slot + 1])}; }
};

// Expected jumps by distance, and departures by (place, number of positions): a matrix of `side` squared.
struct JumpCounts {
    std::span<std::uint64_t> distance, departures;
    std::int64_t side;
};

struct Counts {
    std::span<std::uint64_t> null_target, null_source;
    JumpCounts forth, back;
    double scale;  // a count of one is this much

    void add(std::uint64_t& to, double count) const {
        const auto fixed = static_cast<std::uint64_t>(static_cast<std::int64_t>(count * scale + 0.5));
        __atomic_fetch_add(&to, fixed, __ATOMIC_RELAXED);  // std::atomic_ref, which Apple's library lacks
    }
};

// Sums, or maxima, over the rows of a grid of `rows` x `columns` cells: of the forward numbers of each column, and of
// the backward numbers of each row.
static MM_CLONES void sums_of(const Cell* MM_RESTRICT cells, std::int64_t rows, std::int64_t columns,
                              float* MM_RESTRICT of_column, float* MM_RESTRICT of_row) {
    for (std::int64_t j = 0; j < rows; ++j, cells += columns) {
        float sums[4] = {0, 0, 0, 0};
        std::int64_t k = 0;
        for (; k + 4 <= columns; k += 4)
            for (int i = 0; i < 4; ++i) sums[i] += cells[k + i].back;
        for (; k < columns; ++k) sums[0] += cells[k].back;
        of_row[j] += (sums[0] + sums[2]) + (sums[1] + sums[3]);
        for (k = 0; k < columns; ++k) of_column[k] += cells[k].forth;
    }
}
static MM_CLONES void largest_of(const Cell* MM_RESTRICT cells, std::int64_t rows, std::int64_t columns,
                                 float* MM_RESTRICT of_column, float* MM_RESTRICT of_row) {
    for (std::int64_t j = 0; j < rows; ++j, cells += columns)
        for (std::int64_t k = 0; k < columns; ++k) {
            of_column[k] = of_column[k] > cells[k].forth ? of_column[k] : cells[k].forth;
            of_row[j] = of_row[j] > cells[k].back ? of_row[j] : cells[k].back;
        }
}
static MM_CLONES void scale_cells(Cell* MM_RESTRICT cells, std::int64_t rows, std::int64_t columns,
                                  const float* MM_RESTRICT by_column, const float* MM_RESTRICT by_row) {
    for (std::int64_t j = 0; j < rows; ++j, cells += columns)
        for (std::int64_t k = 0; k < columns; ++k) {
            cells[k].forth *= by_column[k];
            cells[k].back *= by_row[j];
        }
}

// The working memory of one thread. model1() and hmm() turn the probabilities of a pair's cells into posteriors, and
// leave those of the empty word; they return the two log-likelihoods.
class Worker {
   public:
    std::vector<float> null_target, null_source;

    void begin(const Pairs& pairs, std::int64_t p, const Tables& tables) {
        rows_ = pairs.sources(p);
        columns_ = pairs.targets(p);
        times_ = pairs.times[p];
        empty(pairs.target.data() + pairs.target_start[p], columns_, tables.null_target, tables.unseen, null_target);
        empty(pairs.source.data() + pairs.source_start[p], rows_, tables.null_source, tables.unseen, null_source);
        by_column_ = null_target;
        by_row_ = null_source;
    }

    std::pair<double, double> model1(Cell* cells) {
        sums_of(cells, rows_, columns_, by_column_.data(), by_row_.data());
        const double forth = shares(by_column_, null_target, rows_), back = shares(by_row_, null_source, columns_);
        scale_cells(cells, rows_, columns_, by_column_.data(), by_row_.data());
        return {forth, back};
    }

    // Jumps are counted if counts are given.
    std::pair<double, double> hmm(Cell* cells, const Jumps& forth, const Jumps& back, const Counts* counts) {
        const int widest = simd::lanes_in_use();
        const std::int64_t step = stride_of(rows_, 2 * widest), stride = stride_of(columns_, 2 * widest);
        // Each word's probabilities are scaled by the largest of them, which single precision needs.
        largest_of(cells, rows_, columns_, by_column_.data(), by_row_.data());
        LogProduct scale_forth, scale_back;
        scaled(by_column_, null_target, scale_forth);
        scaled(by_row_, null_source, scale_back);
        forward_.assign(columns_ * step, 0.0f);
        backward_.assign(rows_ * stride, 0.0f);
        for (std::int64_t j = 0; j < rows_; ++j) {
            const Cell* row = cells + j * columns_;
            float *forths = forward_.data() + j + 1, *backs = backward_.data() + j * stride + 1;
            for (std::int64_t k = 0; k < columns_; ++k) {
                forths[k * step] = std::max(row[k].forth * by_column_[k], kLeast);
                backs[k] = std::max(row[k].back * by_row_[j], kLeast);
            }
        }
        ChainView one =
            forth_.begin(forward_.data(), null_target.data(), columns_, rows_, forth, step, counts != nullptr);
        ChainView two =
            back_.begin(backward_.data(), null_source.data(), rows_, columns_, back, stride, counts != nullptr);
        forward_backward(widest, one, two);
        if (counts) {
            forth_.end(one);
            back_.end(two);
            count_jumps(forth_, rows_, counts->forth, *counts);
            count_jumps(back_, columns_, counts->back, *counts);
        }
        for (std::int64_t j = 0; j < rows_; ++j) {
            Cell* row = cells + j * columns_;
            const float *forths = forward_.data() + j + 1, *backs = backward_.data() + j * stride + 1;
            for (std::int64_t k = 0; k < columns_; ++k) row[k] = {forths[k * step], backs[k]};
        }
        return {one.likelihood.value() + scale_forth.value(), two.likelihood.value() + scale_back.value()};
    }

    void count_empty(const Pairs& pairs, std::int64_t p, const Counts& counts) const {
        for (std::int64_t k = 0; k < columns_; ++k)
            if (const std::int32_t f = pairs.target[pairs.target_start[p] + k]; f >= 0)
                counts.add(counts.null_target[f], times_ * static_cast<double>(null_target[k]));
        for (std::int64_t j = 0; j < rows_; ++j)
            if (const std::int32_t e = pairs.source[pairs.source_start[p] + j]; e >= 0)
                counts.add(counts.null_source[e], times_ * static_cast<double>(null_source[j]));
    }

   private:
    static constexpr float kLeast = 1e-20f;  // relative to the most probable word

    static void empty(const std::int32_t* words, std::int64_t n, std::span<const float> table, float unseen,
                      std::vector<float>& out) {
        out.resize(n);
        for (std::int64_t k = 0; k < n; ++k) out[k] = words[k] >= 0 ? probability(table[words[k]]) : unseen;
    }

    // Sums become factors; the log-likelihood.
    static double shares(std::vector<float>& sums, std::vector<float>& null, std::int64_t positions) {
        LogProduct likelihood;
        for (std::size_t k = 0; k < sums.size(); ++k) {
            likelihood.times(static_cast<double>(sums[k]) / static_cast<double>(positions + 1));
            sums[k] = 1 / sums[k];
            null[k] *= sums[k];
        }
        return likelihood.value();
    }

    // Maxima become factors.
    static void scaled(std::vector<float>& largest, std::vector<float>& null, LogProduct& scale) {
        for (std::size_t k = 0; k < largest.size(); ++k) {
            scale.times(static_cast<double>(largest[k]));
            largest[k] = 1 / largest[k];
            null[k] = std::max(null[k] * largest[k], kLeast);
        }
    }

    void count_jumps(const WordChain& chain, std::int64_t positions, const JumpCounts& jumps,
                     const Counts& counts) const {
        for (std::int64_t m = 0; m <= positions; ++m)
            counts.add(jumps.departures[m * jumps.side + positions], times_ * static_cast<double>(chain.departures[m]));
        for (std::size_t d = 0; d < jumps.distance.size(); ++d)
            counts.add(jumps.distance[d], times_ * chain.distances[d]);
    }

    std::int64_t rows_ = 0, columns_ = 0;
    double times_ = 1;
    std::vector<float> by_column_, by_row_;
    std::vector<float> forward_, backward_;  // (targets, sources) and (sources, targets), rows as in ChainView
    WordChain forth_, back_;
};

// The cells of a block of pairs begin..end-1: probabilities spread out from a lexicon, posteriors collected into it.
class Block {
   public:
    Block(const Pairs& pairs, const bitext::Lexicon& lexicon, const Tables& tables, int threads)
        : pairs_(pairs), lexicon_(lexicon), tables_(tables), threads_(threads), scratch_(std::max(threads, 1)) {
        for (auto& one : scratch_) {
            one.spread.assign(tables.null_target.size(), unseen());
            one.sums.resize(tables.null_target.size());
        }
    }

    void take(std::int64_t begin, std::int64_t end) {
        begin_ = begin;
        where_.find(pairs_, begin, end, static_cast<std::int64_t>(lexicon_.row_start.size()) - 1);
        cells_.resize(pairs_.cell_start[end] - pairs_.cell_start[begin]);
        n_tokens_ = pairs_.source_start[end] - pairs_.source_start[begin];
        counted_.resize(cells_.size());
        n_counted_.assign(n_tokens_, 0);
        rows_.resize(where_.at.size());
        parallel_each(static_cast<std::int64_t>(rows_.size()), 1 << 12, threads_, [&](int, std::int64_t o) {
            const std::int64_t p = begin + where_.pair[o], n = pairs_.targets(p);
            const std::int64_t j = where_.at[o] + pairs_.source_start[begin] - pairs_.source_start[p];
            rows_[o] = {cells(p) + j * n, pairs_.target.data() + pairs_.target_start[p], n};
        });
    }

    Cell* cells(std::int64_t p) { return cells_.data() + (pairs_.cell_start[p] - pairs_.cell_start[begin_]); }

    void spread() {
        // Rows of unknown source words; the loops below write all others.
        if (static_cast<std::int64_t>(rows_.size()) < n_tokens_) std::fill(cells_.begin(), cells_.end(), unseen());
        each_word([&](Scratch& own, std::int64_t first, std::int64_t last, const auto& each_token) {
            if (own.searched) {
                each_token([&](Cell* row, const std::int32_t* words, std::int64_t n) {
                    own.search(lexicon_, first, last, words, n);
                    for (std::int64_t k = 0; k < n; ++k)
                        row[k] = own.places[k] >= 0 ? tables_.cell(own.places[k]) : unseen();
                });
                return;
            }
            for (std::int64_t s = first; s < last; ++s) own.spread[lexicon_.column[s]] = tables_.cell(s);
            each_token([&](Cell* row, const std::int32_t* words, std::int64_t n) {
                for (std::int64_t k = 0; k < n; ++k) row[k] = words[k] >= 0 ? own.spread[words[k]] : unseen();
            });
            for (std::int64_t s = first; s < last; ++s) own.spread[lexicon_.column[s]] = unseen();
        });
    }

    // Keeps of the posteriors of a pair's cells those to be counted, with their words: most have nothing to speak of.
    // With `agree` both directions count only what they agree on (Liang, Taskar and Klein 2006).
    void choose(std::int64_t p, bool agree) {
        const std::int64_t n = pairs_.targets(p), first = pairs_.source_start[p] - pairs_.source_start[begin_];
        const std::int32_t* words = pairs_.target.data() + pairs_.target_start[p];
        const auto times = static_cast<float>(pairs_.times[p]);
        Cell* row = cells(p);
        std::int32_t* chosen = counted_.data() + (row - cells_.data());
        for (std::int64_t j = 0; j < pairs_.sources(p); ++j, row += n, chosen += n) {
            std::int32_t kept = 0;
            for (std::int64_t k = 0; k < n; ++k) {
                const float both = row[k].forth * row[k].back;
                const Cell cell = agree ? Cell{both, both} : row[k];
                row[kept] = {times * cell.forth, times * cell.back};
                chosen[kept] = words[k];
                kept += static_cast<std::int32_t>((std::max(cell.forth, cell.back) >= kNegligible) & (words[k] >= 0));
            }
            n_counted_[first + j] = kept;
        }
    }

    // Adds what choose() kept to the counts of slots.
    void collect(std::span<float> counts) {
        parallel_each(static_cast<std::int64_t>(rows_.size()), 1 << 12, threads_, [&](int, std::int64_t o) {
            rows_[o].words = counted_.data() + (rows_[o].cells - cells_.data());
            rows_[o].n = n_counted_[where_.at[o]];
        });
        each_word([&](Scratch& own, std::int64_t first, std::int64_t last, const auto& each_token) {
            if (own.searched) {
                each_token([&](const Cell* row, const std::int32_t* words, std::int64_t n) {
                    own.search(lexicon_, first, last, words, n);
                    for (std::int64_t k = 0; k < n; ++k) {
                        if (own.places[k] < 0) continue;
                        counts[2 * own.places[k]] += row[k].forth;
                        counts[2 * own.places[k] + 1] += row[k].back;
                    }
                });
                return;
            }
            // Sums of words that are not in the row are never read.
            for (std::int64_t s = first; s < last; ++s) own.sums[lexicon_.column[s]] = {0, 0};
            each_token([&](const Cell* row, const std::int32_t* words, std::int64_t n) {
                for (std::int64_t k = 0; k < n; ++k) {
                    own.sums[words[k]].forth += static_cast<double>(row[k].forth);
                    own.sums[words[k]].back += static_cast<double>(row[k].back);
                }
            });
            for (std::int64_t s = first; s < last; ++s) {
                const Sum& sum = own.sums[lexicon_.column[s]];
                counts[2 * s] += static_cast<float>(sum.forth);
                counts[2 * s + 1] += static_cast<float>(sum.back);
            }
        });
    }

   private:
    // Words whose rows are so many times longer than their cells in the block are searched instead of spread out.
    static constexpr std::int64_t kLonger = 4;
    // Posteriors of less than this are not counted.
    static constexpr float kNegligible = 1e-6f;

    struct Sum {
        double forth, back;
    };
    struct Scratch {
        std::vector<Cell> spread;
        std::vector<Sum> sums;
        std::vector<std::int64_t> places;
        bool searched;

        void search(const bitext::Lexicon& lexicon, std::int64_t first, std::int64_t last, const std::int32_t* words,
                    std::int64_t n) {
            if (static_cast<std::int64_t>(places.size()) < n) places.resize(n);
            bitext::search(lexicon.column.data(), first, last, words, n, places.data());
        }
    };

    Cell unseen() const { return {tables_.unseen, tables_.unseen}; }

    // Calls body(scratch, first slot, last slot, each_token) for every source word of the block. The rows of a word are
    // all over the block, so they are asked for some tokens ahead.
    template <class Body>
    void each_word(Body&& body) {
        parallel_each(where_.size(), 4, threads_, [&](int thread, std::int64_t w) {
            Scratch& own = scratch_[thread];
            const std::int32_t e = where_.words[w];
            const std::int64_t first = lexicon_.row_start[e], last = lexicon_.row_start[e + 1];
            const std::int64_t begin = where_.start[w], end = where_.start[w + 1];
            std::int64_t n_cells = 0;
            for (std::int64_t o = begin; o < end; ++o) n_cells += rows_[o].n;
            own.searched = last - first > kLonger * n_cells;
            body(own, first, last, [&](auto&& token) {
                for (std::int64_t o = begin; o < end; ++o) {
                    if (o + kAhead < end) rows_[o + kAhead].fetch();
                    token(rows_[o].cells, rows_[o].words, rows_[o].n);
                }
            });
        });
    }

    // The cells of a source token, and the target words of its pair.
    struct Row {
        Cell* cells;
        const std::int32_t* words;
        std::int64_t n;

        void fetch() const {
            const auto *first = reinterpret_cast<const char*>(cells), *second = reinterpret_cast<const char*>(words);
            for (std::int64_t b = 0; b < n * 8; b += 64) __builtin_prefetch(first + b, 1, 2);
            for (std::int64_t b = 0; b < n * 4; b += 64) __builtin_prefetch(second + b, 0, 2);
        }
    };
    static constexpr std::int64_t kAhead = 8;

    std::vector<Row> rows_;
    Pairs pairs_;
    bitext::Lexicon lexicon_;
    Tables tables_;
    int threads_;
    std::int64_t begin_ = 0, n_tokens_ = 0;
    bitext::Occurrences where_;
    std::vector<Cell> cells_;
    std::vector<std::int32_t> counted_;    // words of the cells that are counted, in front of each row
    std::vector<std::int32_t> n_counted_;  // their number, by source token
    std::vector<Scratch> scratch_;
};

// One expectation step: of the hidden Markov models if `markov`, else of Model 1. Pairs with more than `longest` words
// on a side are left out. A block has at most `block_cells` cells, or one pair. Jumps are counted in every `every`-th
// pair of a text of which these pairs, the first of them number `first`, may be a part.
struct Expectation {
    Pairs pairs;
    bitext::Lexicon lexicon;
    Tables tables;
    Jumps forth, back;
    bool markov, agree;
    std::int64_t longest, block_cells, first, every;

    void run(std::span<float> word, const Counts& counts, std::span<double> likelihood, int threads) const {
        Block block(pairs, lexicon, tables, threads);
        std::vector<Worker> workers(std::max(threads, 1));
        for (std::int64_t begin = 0, end; begin < pairs.size(); begin = end) {
            end = begin + 1;
            while (end < pairs.size() && pairs.cell_start[end + 1] - pairs.cell_start[begin] <= block_cells) ++end;
            block.take(begin, end);
            block.spread();
            parallel_each(end - begin, bitext::kGrain, threads, [&](int thread, std::int64_t at) {
                const std::int64_t p = begin + at, n_cells = pairs.cell_start[p + 1] - pairs.cell_start[p];
                likelihood[2 * p] = likelihood[2 * p + 1] = 0;
                if (n_cells == 0) return;
                if (std::max(pairs.sources(p), pairs.targets(p)) > longest) return;
                auto& worker = workers[thread];
                worker.begin(pairs, p, tables);
                const auto [one, two] =
                    markov ? worker.hmm(block.cells(p), forth, back, (first + p) % every == 0 ? &counts : nullptr)
                           : worker.model1(block.cells(p));
                likelihood[2 * p] = pairs.times[p] * one;
                likelihood[2 * p + 1] = pairs.times[p] * two;
                worker.count_empty(pairs, p, counts);
                block.choose(p, agree);
            });
            block.collect(word);
        }
    }
};

// exp(digamma(x)), which replaces a count x in variational Bayes with a Dirichlet prior, by the asymptotic series after
// a few steps of the recurrence.
inline double discounted(double x) {
    double shift = 0;
    for (; x < 6; x += 1) shift += 1 / x;
    const double y = 1 / (x * x);
    return std::exp(std::log(x) - 0.5 / x - y * (1.0 / 12 - y * (1.0 / 120 - y / 252)) - shift);
}

// The maximization step for words, in place: t = count / total of the word that generates, or with a Dirichlet prior of
// strength `prior` on every entry, exp(digamma(count + prior)) / exp(digamma(total + prior * entries)).
inline void maximize(const bitext::Lexicon& lexicon, std::span<float> word, double prior, std::int64_t n_target,
                     int threads) {
    const std::int64_t n_source = static_cast<std::int64_t>(lexicon.row_start.size()) - 1;
    std::vector<double> totals(n_target, 0.0);
    std::vector<std::int64_t> entries(n_target, 0);
    for (std::size_t slot = 0; slot < lexicon.column.size(); ++slot) {
        totals[lexicon.column[slot]] += static_cast<double>(word[2 * slot + 1]);
        ++entries[lexicon.column[slot]];
    }
    auto weigh = [&](double count, double extra) { return prior > 0 ? discounted(count + extra) : count; };
    std::vector<double> below(n_target);
    for (std::int64_t f = 0; f < n_target; ++f)
        below[f] = entries[f] ? weigh(totals[f], prior * static_cast<double>(entries[f])) : 1.0;
    parallel_each(n_source, 64, threads, [&](int, std::int64_t e) {
        const std::int64_t first = lexicon.row_start[e], last = lexicon.row_start[e + 1];
        double total = 0;
        for (std::int64_t s = first; s < last; ++s) total += static_cast<double>(word[2 * s]);
        const double under = last > first ? weigh(total, prior * static_cast<double>(last - first)) : 1.0;
        for (std::int64_t s = first; s < last; ++s) {
            const double over = below[lexicon.column[s]];
            const double forth = static_cast<double>(word[2 * s]), back = static_cast<double>(word[2 * s + 1]);
            word[2 * s] = under > 0 ? static_cast<float>(weigh(forth, prior) / under) : 0.0f;
            word[2 * s + 1] = over > 0 ? static_cast<float>(weigh(back, prior) / over) : 0.0f;
        }
    });
}

// Marks the slots to keep: those whose two probabilities have a geometric mean of at least `least`, and those with the
// largest probability of a word in a direction.
inline void probable(const bitext::Lexicon& lexicon, std::span<const float> word, float least, std::int64_t n_target,
                     std::span<std::uint8_t> kept) {
    std::vector<float> best(n_target, 0.0f);
    for (std::size_t s = 0; s < lexicon.column.size(); ++s) {
        float& largest = best[lexicon.column[s]];
        largest = std::max(largest, word[2 * s + 1]);
    }
    for (std::size_t e = 0; e + 1 < lexicon.row_start.size(); ++e) {
        const std::int64_t first = lexicon.row_start[e], last = lexicon.row_start[e + 1];
        float largest = 0;
        for (std::int64_t s = first; s < last; ++s) largest = std::max(largest, word[2 * s]);
        for (std::int64_t s = first; s < last; ++s) {
            const float forth = word[2 * s], back = word[2 * s + 1];
            kept[s] =
                std::sqrt(forth) * std::sqrt(back) >= least || forth >= largest || back >= best[lexicon.column[s]];
        }
    }
}

}  // namespace maxmargin::translation
