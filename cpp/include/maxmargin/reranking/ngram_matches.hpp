// Statistics of BLEU and chrF of the hypotheses of lists, in the order that quality.hpp reads them.
//
//   bleu  matches of orders 1..n, clipped at the largest count of one reference; n-grams of orders 1..n; length of the
//         hypothesis; length of the reference of the closest length, the shorter of two equally close ones
//   chrf  for each order of characters, then of words: n-grams of the hypothesis (0 if the reference has none), of the
//         reference, and matches; from the reference with the largest chrF, the first of equal ones
//
// Cost: O(order * tokens) for references once per list, and for hypotheses once per list (bleu) or reference (chrf).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "maxmargin/base/parallel.hpp"
#include "maxmargin/base/scratch.hpp"
#include "maxmargin/reranking/ngram_index.hpp"
#include "maxmargin/reranking/quality.hpp"
#include "maxmargin/reranking/sequences.hpp"

namespace maxmargin::reranking {

inline constexpr std::int64_t lists_at_once = 4;  // of a thread

inline void bleu_statistics(const Sequences& hypotheses, const Sequences& references, const Lists& lists, int order,
                            double* out, int threads) {
    const std::int64_t width = 2 * order + 2;
    auto indices = per_thread<NgramIndex>(threads);
    parallel_each(lists.size(), lists_at_once, threads, [&](int thread, std::int64_t list) {
        NgramIndex& index = indices[static_cast<std::size_t>(thread)];
        const auto [first, last] = lists.references_of(list);
        index.clear(static_cast<std::size_t>(references.offsets[last] - references.offsets[first]), order);
        for (std::int64_t r = first; r < last; ++r) index.add(references[r]);
        const auto [begin, end] = lists.hypotheses_of(list);
        for (std::int64_t h = begin; h < end; ++h) {
            const auto hypothesis = hypotheses[h];
            double* row = out + h * width;
            std::fill_n(row, width, 0.0);
            index.match(hypothesis, row);
            for (int n = 1; n <= order; ++n) row[order + n - 1] = static_cast<double>(ngrams_in(hypothesis.size(), n));
            const auto length = static_cast<std::int64_t>(hypothesis.size());
            std::int64_t closest = static_cast<std::int64_t>(references[first].size());
            for (std::int64_t r = first + 1; r < last; ++r) {
                const auto other = static_cast<std::int64_t>(references[r].size());
                const std::int64_t near = std::abs(other - length), nearest = std::abs(closest - length);
                if (near < nearest || (near == nearest && other < closest)) closest = other;
            }
            row[2 * order] = static_cast<double>(length);
            row[2 * order + 1] = static_cast<double>(closest);
        }
    });
}

// Characters or words, and their largest order; 0 for none.
struct Level {
    Sequences hypotheses, references;
    int order;
};

inline void chrf_statistics(const Level& characters, const Level& words, const Lists& lists, double beta, double* out,
                            int threads) {
    struct Scratch {
        NgramIndex index[2];
        std::vector<double> row, matches, best;
    };
    const std::int64_t width = 3 * (characters.order + words.order);
    const Quality quality{Formula::chrf, width, beta};
    const Level* const levels[] = {&characters, &words};
    auto scratches = per_thread<Scratch>(threads);
    parallel_each(lists.size(), lists_at_once, threads, [&](int thread, std::int64_t list) {
        Scratch& scratch = scratches[static_cast<std::size_t>(thread)];
        const auto [begin, end] = lists.hypotheses_of(list);
        const auto [first, last] = lists.references_of(list);
        scratch.row.resize(static_cast<std::size_t>(width));
        scratch.best.assign(static_cast<std::size_t>(end - begin), -1.0);
        for (std::int64_t r = first; r < last; ++r) {
            for (int l = 0; l < 2; ++l) {
                if (!levels[l]->order) continue;
                const auto reference = levels[l]->references[r];
                scratch.index[l].clear(reference.size(), levels[l]->order);
                scratch.index[l].add(reference);
            }
            for (std::int64_t h = begin; h < end; ++h) {
                double* cell = scratch.row.data();
                for (int l = 0; l < 2; ++l) {
                    const Level& level = *levels[l];
                    if (!level.order) continue;
                    const auto hypothesis = level.hypotheses[h];
                    const std::size_t length = level.references[r].size();
                    scratch.matches.assign(static_cast<std::size_t>(level.order), 0.0);
                    scratch.index[l].match(hypothesis, scratch.matches.data());
                    for (int n = 1; n <= level.order; ++n, cell += 3) {
                        const std::int64_t there = ngrams_in(length, n);
                        cell[0] = there ? static_cast<double>(ngrams_in(hypothesis.size(), n)) : 0.0;
                        cell[1] = static_cast<double>(there);
                        cell[2] = scratch.matches[static_cast<std::size_t>(n) - 1];
                    }
                }
                // In percent, as sacrebleu compares: rounding decides between equal references in the same way.
                const double found = 100.0 * quality(scratch.row.data());
                double& best = scratch.best[static_cast<std::size_t>(h - begin)];
                if (found > best) {
                    best = found;
                    std::copy_n(scratch.row.data(), width, out + h * width);
                }
            }
        }
    });
}

}  // namespace maxmargin::reranking
