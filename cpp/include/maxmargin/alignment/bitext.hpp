// Sentence pairs as numbers, and the words of two languages that meet in them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "maxmargin/base/parallel.hpp"
#include "maxmargin/base/simd.hpp"

namespace maxmargin::bitext {

// Pair p has source words source[source_start[p]:source_start[p+1]] and target words likewise; a word is a number from
// 0, or -1 if it is unknown. Its cells, one per source and target position, begin at cell_start[p], row-major.
struct Pairs {
    std::span<const std::int64_t> source_start, target_start, cell_start;
    std::span<const std::int32_t> source, target;

    std::int64_t size() const { return static_cast<std::int64_t>(source_start.size()) - 1; }
    std::int64_t sources(std::int64_t p) const { return source_start[p + 1] - source_start[p]; }
    std::int64_t targets(std::int64_t p) const { return target_start[p + 1] - target_start[p]; }
};

// Pairs per block of work.
constexpr std::int64_t kGrain = 64;

// Words that meet: row e lists, rising, the target words that occur in a pair with source word e. An entry's place in
// the list of all entries is its slot.
struct Lexicon {
    std::span<const std::int64_t> row_start;
    std::span<const std::int32_t> column;
};

// The places of n words in the rising list column[begin:end], -1 for those that are not there. All searches halve
// their lists in step, so that none waits for another.
static MM_CLONES void search(const std::int32_t* MM_RESTRICT column, std::int64_t begin, std::int64_t end,
                             const std::int32_t* MM_RESTRICT words, std::int64_t n, std::int64_t* MM_RESTRICT places) {
    if (begin == end) {
        std::fill(places, places + n, -1);
        return;
    }
    std::fill(places, places + n, begin);
    for (std::int64_t length = end - begin; length > 1; length -= length / 2) {
        const std::int64_t half = length / 2;
        for (std::int64_t k = 0; k < n; ++k) places[k] += column[places[k] + half - 1] < words[k] ? half : 0;
    }
    for (std::int64_t k = 0; k < n; ++k) places[k] = column[places[k]] == words[k] ? places[k] : -1;
}

// Where the source words occur: tokens of word e are at[start[e]:start[e+1]], in order of the text; token o belongs to
// sentence pair pair_of[o].
struct Occurrences {
    std::vector<std::int64_t> start, at, pair_of;
};

inline Occurrences occurrences(const Pairs& pairs, std::int64_t n_words) {
    const std::span<const std::int32_t> words = pairs.source;
    Occurrences found{std::vector<std::int64_t>(n_words + 1, 0), {}, std::vector<std::int64_t>(words.size())};
    for (std::int64_t p = 0; p < pairs.size(); ++p)
        std::fill_n(found.pair_of.begin() + pairs.source_start[p], pairs.sources(p), p);
    for (const std::int32_t word : words)
        if (word >= 0) ++found.start[word + 1];
    for (std::int64_t e = 0; e < n_words; ++e) found.start[e + 1] += found.start[e];
    found.at.resize(found.start[n_words]);
    std::vector<std::int64_t> next(found.start.begin(), found.start.end() - 1);
    for (std::size_t token = 0; token < words.size(); ++token)
        if (words[token] >= 0) found.at[next[words[token]]++] = static_cast<std::int64_t>(token);
    return found;
}

// A lexicon that owns its lists, with `together`: in how many pairs two words meet. Source words are shared out among
// the threads; each goes through the pairs it occurs in, so the cost is one visit per cell, and memory is what is kept.
struct OwnedLexicon {
    std::vector<std::int64_t> row_start;
    std::vector<std::int32_t> column, together;

    OwnedLexicon(const Pairs& pairs, std::int64_t n_source, std::int64_t n_target, int threads) {
        const Occurrences where = occurrences(pairs, n_source);
        struct Entry {
            std::int32_t word, together;
        };
        struct Scratch {
            std::vector<std::int32_t> seen, words;
            std::vector<std::int64_t> last;
        };
        const int workers = std::max(threads, 1);
        std::vector<Scratch> scratch(workers);
        for (auto& one : scratch) {
            one.seen.assign(n_target, 0);
            one.last.assign(n_target, -1);
        }
        std::vector<std::vector<Entry>> rows(n_source);
        parallel_each(n_source, 16, workers, [&](int thread, std::int64_t e) {
            Scratch& own = scratch[thread];
            own.words.clear();
            std::int64_t before = -1;
            for (std::int64_t o = where.start[e]; o < where.start[e + 1]; ++o) {
                const std::int64_t p = where.pair_of[where.at[o]];
                if (p == before) continue;
                before = p;
                for (std::int64_t k = pairs.target_start[p]; k < pairs.target_start[p + 1]; ++k) {
                    const std::int32_t f = pairs.target[k];
                    if (f < 0 || own.last[f] == p) continue;
                    own.last[f] = p;
                    if (own.seen[f]++ == 0) own.words.push_back(f);
                }
            }
            std::sort(own.words.begin(), own.words.end());
            rows[e].reserve(own.words.size());
            for (const std::int32_t f : own.words) {
                rows[e].push_back({f, own.seen[f]});
                own.seen[f] = 0;
                own.last[f] = -1;
            }
        });
        row_start.assign(n_source + 1, 0);
        for (std::int64_t e = 0; e < n_source; ++e)
            row_start[e + 1] = row_start[e] + static_cast<std::int64_t>(rows[e].size());
        column.resize(row_start[n_source]);
        together.resize(row_start[n_source]);
        for (std::int64_t e = 0; e < n_source; ++e) {
            std::int64_t slot = row_start[e];
            for (const Entry& entry : rows[e]) {
                column[slot] = entry.word;
                together[slot++] = entry.together;
            }
            std::vector<Entry>().swap(rows[e]);
        }
    }

    Lexicon view() const { return {row_start, column}; }
};

constexpr std::uint32_t kNoSlot = 0xffffffff;

// The slot of every cell, by one pass over the cells: for each source word the slots of its row are spread out over the
// target words, then read for every pair in which it occurs.
inline std::vector<std::uint32_t> slots_of(const Pairs& pairs, const Lexicon& lexicon, std::int64_t n_target,
                                           int threads) {
    const std::int64_t n_source = static_cast<std::int64_t>(lexicon.row_start.size()) - 1;
    std::vector<std::uint32_t> slots(pairs.cell_start.back(), kNoSlot);
    const Occurrences where = occurrences(pairs, n_source);
    const int workers = std::max(threads, 1);
    std::vector<std::vector<std::uint32_t>> spread(workers, std::vector<std::uint32_t>(n_target, kNoSlot));
    parallel_each(n_source, 16, workers, [&](int thread, std::int64_t e) {
        auto& slot = spread[thread];
        for (std::int64_t s = lexicon.row_start[e]; s < lexicon.row_start[e + 1]; ++s)
            slot[lexicon.column[s]] = static_cast<std::uint32_t>(s);
        for (std::int64_t o = where.start[e]; o < where.start[e + 1]; ++o) {
            const std::int64_t token = where.at[o], p = where.pair_of[token], n = pairs.targets(p);
            const std::int32_t* words = pairs.target.data() + pairs.target_start[p];
            std::uint32_t* row = slots.data() + pairs.cell_start[p] + (token - pairs.source_start[p]) * n;
            for (std::int64_t k = 0; k < n; ++k)
                if (words[k] >= 0) row[k] = slot[words[k]];
        }
        for (std::int64_t s = lexicon.row_start[e]; s < lexicon.row_start[e + 1]; ++s)
            slot[lexicon.column[s]] = kNoSlot;
    });
    return slots;
}

}  // namespace maxmargin::bitext
