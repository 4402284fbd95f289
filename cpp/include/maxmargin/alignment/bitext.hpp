// Sentence pairs as numbers, and the words of two languages that meet in them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "maxmargin/base/growing.hpp"
#include "maxmargin/base/parallel.hpp"
#include "maxmargin/base/simd.hpp"

namespace maxmargin::bitext {

// Pair p has source words source[source_start[p]:source_start[p+1]] and target words likewise; a word is a number from
// 0, or -1 if it is unknown. Its cells, one per source and target position, begin at cell_start[p], row-major. It
// stands for times[p] equal pairs of the text.
struct Pairs {
    std::span<const std::int64_t> source_start, target_start, cell_start;
    std::span<const std::int32_t> source, target, times;

    std::int64_t size() const { return static_cast<std::int64_t>(source_start.size()) - 1; }
    std::int64_t sources(std::int64_t p) const { return source_start[p + 1] - source_start[p]; }
    std::int64_t targets(std::int64_t p) const { return target_start[p + 1] - target_start[p]; }
};

// Sentence pairs that own their arrays.
struct OwnedPairs {
    std::vector<std::int64_t> source_start, target_start;
    std::vector<std::int32_t> source, target, times;

    // Equal pairs become one, in the place of the first of them.
    void merge() {
        const std::int64_t n = static_cast<std::int64_t>(source_start.size()) - 1;
        std::size_t room = 16;
        while (room < 2 * static_cast<std::size_t>(n)) room *= 2;
        std::vector<std::int32_t> found(room, -1);  // numbers of pairs that are kept, by hash
        std::int64_t kept = 0;
        for (std::int64_t p = 0; p < n; ++p) {
            std::size_t at = hash(p) & (room - 1);
            while (found[at] >= 0 && !equal(found[at], p)) at = (at + 1) & (room - 1);
            if (found[at] >= 0) {
                times[found[at]] += times[p];
                continue;
            }
            found[at] = static_cast<std::int32_t>(kept);
            times[kept] = times[p];
            move(source_start, source, p, kept);
            move(target_start, target, p, kept);
            ++kept;
        }
        times.resize(kept);
        for (auto* start : {&source_start, &target_start}) start->resize(kept + 1);
        source.resize(source_start[kept]);
        target.resize(target_start[kept]);
        for (auto* words : {&source, &target, &times}) words->shrink_to_fit();
        for (auto* start : {&source_start, &target_start}) start->shrink_to_fit();
    }

   private:
    static std::span<const std::int32_t> sentence(const std::vector<std::int64_t>& start,
                                                  const std::vector<std::int32_t>& words, std::int64_t p) {
        return {words.data() + start[p], static_cast<std::size_t>(start[p + 1] - start[p])};
    }
    std::uint64_t hash(std::int64_t p) const {
        std::uint64_t sum = static_cast<std::uint64_t>(source_start[p + 1] - source_start[p]);
        for (const auto words : {sentence(source_start, source, p), sentence(target_start, target, p)})
            for (const std::int32_t word : words) {
                sum = (sum ^ static_cast<std::uint32_t>(word)) * 0x9e3779b97f4a7c15u;
                sum ^= sum >> 29;
            }
        return sum;
    }
    bool equal(std::int64_t p, std::int64_t q) const {
        return std::ranges::equal(sentence(source_start, source, p), sentence(source_start, source, q)) &&
               std::ranges::equal(sentence(target_start, target, p), sentence(target_start, target, q));
    }
    // Pair p becomes pair `to`, which is not behind it; start[to] is in place, and start[to + 1] comes to be.
    static void move(std::vector<std::int64_t>& start, std::vector<std::int32_t>& words, std::int64_t p,
                     std::int64_t to) {
        const std::int64_t first = start[p], last = start[p + 1];
        if (p == to) return;
        std::copy(words.begin() + first, words.begin() + last, words.begin() + start[to]);
        start[to + 1] = start[to] + last - first;
    }
};

// Pairs per block of work.
constexpr std::int64_t kGrain = 64;

// Words that meet: row e lists, rising, the target words that occur in a pair with source word e. An entry's place in
// the list of all entries is its slot.
struct Lexicon {
    std::span<const std::int64_t> row_start;
    std::span<const std::int32_t> column;
};

// With the number of pairs in which the words of each slot meet.
struct CountedLexicon {
    Lexicon words;
    std::span<const std::int32_t> together;
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

// Where the source words of pairs begin..end-1 occur: those of words[w] are start[w]..start[w+1]-1, in order of the
// text. Occurrence o is word at[o] of the source text of these pairs, and in the pair begin + pair[o].
struct Occurrences {
    std::vector<std::int32_t> words, at, pair;
    std::vector<std::int64_t> start;

    void find(const Pairs& pairs, std::int64_t begin, std::int64_t end, std::int64_t n_words) {
        const std::int64_t first = pairs.source_start[begin], last = pairs.source_start[end];
        next_.assign(n_words, 0);
        for (std::int64_t token = first; token < last; ++token)
            if (pairs.source[token] >= 0) ++next_[pairs.source[token]];
        words.clear();
        start.assign(1, 0);
        for (std::int64_t e = 0; e < n_words; ++e) {
            if (next_[e] == 0) continue;
            words.push_back(static_cast<std::int32_t>(e));
            start.push_back(start.back() + next_[e]);
            next_[e] = start[start.size() - 2];
        }
        at.resize(start.back());
        pair.resize(start.back());
        for (std::int64_t p = begin; p < end; ++p)
            for (std::int64_t token = pairs.source_start[p]; token < pairs.source_start[p + 1]; ++token)
                if (pairs.source[token] >= 0) {
                    const std::int64_t o = next_[pairs.source[token]]++;
                    at[o] = static_cast<std::int32_t>(token - first);
                    pair[o] = static_cast<std::int32_t>(p - begin);
                }
    }

    std::int64_t size() const { return static_cast<std::int64_t>(words.size()); }

   private:
    std::vector<std::int64_t> next_;
};

// A lexicon that owns its lists, with `together`: in how many pairs two words meet. Source words are shared out among
// the threads; each goes through the pairs it occurs in, so the cost is one visit per cell, and memory is what is kept.
struct OwnedLexicon {
    std::vector<std::int64_t> row_start;
    Growing<std::int32_t> column, together;

    OwnedLexicon(const Pairs& pairs, std::int64_t n_source, std::int64_t n_target, int threads) {
        Occurrences where;
        where.find(pairs, 0, pairs.size(), n_source);
        struct Entry {
            std::int32_t word, together;
        };
        struct Scratch {
            std::vector<std::int32_t> seen, words, last;
        };
        const int workers = std::max(threads, 1);
        std::vector<Scratch> scratch(workers);
        for (auto& one : scratch) {
            one.seen.assign(n_target, 0);
            one.last.assign(n_target, -1);
        }
        row_start.assign(n_source + 1, 0);
        // Rows of so many words at a time, whose vectors are used again: what is kept lies in two arrays that grow.
        std::vector<std::vector<Entry>> rows(kRows);
        for (std::int64_t first = 0; first < where.size(); first += kRows) {
            const std::int64_t count = std::min(kRows, where.size() - first);
            parallel_each(count, 4, workers, [&](int thread, std::int64_t row) {
                Scratch& own = scratch[thread];
                own.words.clear();
                std::int32_t before = -1;
                for (std::int64_t o = where.start[first + row]; o < where.start[first + row + 1]; ++o) {
                    const std::int32_t p = where.pair[o];
                    if (p == before) continue;
                    before = p;
                    for (std::int64_t k = pairs.target_start[p]; k < pairs.target_start[p + 1]; ++k) {
                        const std::int32_t f = pairs.target[k];
                        if (f < 0 || own.last[f] == p) continue;
                        own.last[f] = p;
                        if (own.seen[f] == 0) own.words.push_back(f);
                        own.seen[f] += pairs.times[p];
                    }
                }
                std::sort(own.words.begin(), own.words.end());
                rows[row].clear();
                for (const std::int32_t f : own.words) {
                    rows[row].push_back({f, own.seen[f]});
                    own.seen[f] = 0;
                    own.last[f] = -1;
                }
            });
            for (std::int64_t row = 0; row < count; ++row) {
                std::size_t slot = column.size();
                column.resize(slot + rows[row].size());
                together.resize(slot + rows[row].size());
                for (const Entry& entry : rows[row]) {
                    column[slot] = entry.word;
                    together[slot++] = entry.together;
                }
                row_start[where.words[first + row] + 1] = static_cast<std::int64_t>(rows[row].size());
            }
        }
        for (std::int64_t e = 0; e < n_source; ++e) row_start[e + 1] += row_start[e];
    }

    // All entries of two lexicons of the same source words; numbers of pairs are added.
    OwnedLexicon(const CountedLexicon& one, const CountedLexicon& two, int threads) {
        const std::int64_t n_source = static_cast<std::int64_t>(one.words.row_start.size()) - 1;
        row_start.assign(n_source + 1, 0);
        parallel_each(n_source, 64, threads, [&](int, std::int64_t e) {
            std::int64_t n = 0;
            merge_row(one, two, e, [&](std::int32_t, std::int32_t) { ++n; });
            row_start[e + 1] = n;
        });
        for (std::int64_t e = 0; e < n_source; ++e) row_start[e + 1] += row_start[e];
        column.resize(row_start[n_source]);
        together.resize(row_start[n_source]);
        parallel_each(n_source, 64, threads, [&](int, std::int64_t e) {
            std::int64_t slot = row_start[e];
            merge_row(one, two, e, [&](std::int32_t word, std::int32_t count) {
                column[slot] = word;
                together[slot++] = count;
            });
        });
    }

   private:
    static constexpr std::int64_t kRows = 64;

    // Calls entry(word, together) for the words of two rising rows.
    template <class Entry>
    static void merge_row(const CountedLexicon& one, const CountedLexicon& two, std::int64_t e, Entry&& entry) {
        std::int64_t s = one.words.row_start[e], t = two.words.row_start[e];
        const std::int64_t s_end = one.words.row_start[e + 1], t_end = two.words.row_start[e + 1];
        while (s < s_end || t < t_end) {
            const bool left = t == t_end || (s < s_end && one.words.column[s] <= two.words.column[t]);
            const bool right = s == s_end || (t < t_end && two.words.column[t] <= one.words.column[s]);
            const std::int32_t word = left ? one.words.column[s] : two.words.column[t];
            const std::uint32_t count = (left ? static_cast<std::uint32_t>(one.together[s]) : 0) +
                                        (right ? static_cast<std::uint32_t>(two.together[t]) : 0);
            entry(word, static_cast<std::int32_t>(std::min<std::uint32_t>(count, 0x7fffffff)));
            s += left;
            t += right;
        }
    }
};

}  // namespace maxmargin::bitext
