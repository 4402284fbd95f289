// Translation edit rate (Snover et al. 2006): insertions, deletions, substitutions and shifts of blocks, each one edit.
//
// Which shifts to make is searched for greedily, as tercom and sacrebleu do: of all shifts of a block of words to where
// the reference has it, the one that lowers the distance in the beam most is made, until none lowers it. A block is
// moved only if it and its target each have a wrong word. The longest block wins of equally good shifts, then the one
// that begins first, then the first target. So blocks are tried from the longest to the shortest, and a later one has
// to be better: as moving k words changes a distance by at most 2k, most are never tried. Distances are bit-parallel
// Levenshtein distances, which the distance in the beam is never below and mostly equals.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "maxmargin/base/parallel.hpp"
#include "maxmargin/base/scratch.hpp"
#include "maxmargin/reranking/beam_distance.hpp"
#include "maxmargin/reranking/edit_distance.hpp"
#include "maxmargin/reranking/sequences.hpp"

namespace maxmargin::reranking {

class TranslationEdits {
   public:
    // The reference of the edits that follow, which must outlive them.
    void against(std::span<const Token> reference) {
        reference_ = reference;
        levenshtein_.against(reference);
        beam_.against(reference);
    }

    // The number of edits, shifts included, of a hypothesis of fewer than 2^30 tokens.
    std::int64_t of(std::span<const Token> hypothesis) {
        if (reference_.empty()) return static_cast<std::int64_t>(hypothesis.size());
        words_.assign(hypothesis.begin(), hypothesis.end());
        std::int64_t shifts = 0, tried = 0, distance = beam_.to(words_);
        for (; find_shifts(tried); ++shifts) {
            const Rotation best = best_shift(distance);
            if (best.begin == best.end) break;
            const auto word = words_.begin();
            std::rotate(word + best.begin, word + best.middle, word + best.end);
            distance = beam_.again(words_, best.begin);
        }
        return shifts + distance;
    }

   private:
    static constexpr std::int64_t most_words = 10;     // of a block
    static constexpr std::int64_t farthest = 50;       // from the block to its like in the reference
    static constexpr std::int64_t most_shifts = 1000;  // that may be tried for a hypothesis
    // Beyond this length of the reference the cells of the beam are fewer steps than the bits of the whole table.
    static constexpr std::size_t longest_for_bits = 1024;

    // Words start .. start + length - 1 go before the word `target`, or behind as many words if that is one of them.
    // Numbers order shifts by length, the longest first, then start, then target.
    struct Shift {
        std::int64_t length, start, target;

        std::uint64_t number() const {
            return static_cast<std::uint64_t>(most_words - length) << 60 | static_cast<std::uint64_t>(start) << 30 |
                   static_cast<std::uint64_t>(target);
        }
        static Shift numbered(std::uint64_t number) {
            constexpr std::uint64_t low = (std::uint64_t{1} << 30) - 1;
            return {most_words - static_cast<std::int64_t>(number >> 60), static_cast<std::int64_t>(number >> 30 & low),
                    static_cast<std::int64_t>(number & low)};
        }
    };
    // The words begin .. end - 1 that a shift changes: those from `middle` on come first.
    struct Rotation {
        std::int64_t begin, middle, end;

        // The most that the distance to anything can change: the shorter part is removed and inserted again.
        std::int64_t most_gained() const { return 2 * std::min(middle - begin, end - middle); }
    };

    Rotation rotation(const Shift& shift) const {
        const std::int64_t end = shift.start + shift.length;
        if (shift.target < shift.start) return {shift.target, shift.start, end};
        if (shift.target > end) return {shift.start, end, shift.target};
        return {shift.start, end, std::min(shift.target + shift.length, static_cast<std::int64_t>(words_.size()))};
    }

    // Collects the shifts of blocks to be tried; false if they are too many, and the search ends.
    bool find_shifts(std::int64_t& tried) {
        const auto n = static_cast<std::int64_t>(words_.size()), m = static_cast<std::int64_t>(reference_.size());
        const auto& [before, wrong, wrong_gold] = path_;
        beam_.path(words_, path_);
        shifts_.clear();
        for (std::int64_t h = 0; h < n; ++h) {
            const std::int64_t last = std::min(m - 1, h + farthest);
            for (std::int64_t r = std::max<std::int64_t>(0, h - farthest); r <= last; ++r) {
                const std::int64_t most = std::min({n - h, m - r, most_words});
                for (std::int64_t k = 0; k < most && words_[h + k] == reference_[r + k];) {
                    ++k;
                    if (wrong[h + k] == wrong[h] || wrong_gold[r + k] == wrong_gold[r]) continue;
                    if (h < before[r + 1] && before[r + 1] <= h + k) continue;  // the block is there already
                    for (std::int64_t at = r; at <= r + k; ++at)
                        if (at == r || before[at] != before[at - 1])
                            shifts_.push_back(Shift{k, h, before[at]}.number());
                    if (tried + static_cast<std::int64_t>(shifts_.size()) >= most_shifts) return false;
                }
            }
        }
        tried += static_cast<std::int64_t>(shifts_.size());
        return true;
    }

    // The shift that lowers the distance most; an empty one if none does.
    Rotation best_shift(std::int64_t distance) {
        std::sort(shifts_.begin(), shifts_.end());
        shifts_.erase(std::unique(shifts_.begin(), shifts_.end()), shifts_.end());
        const auto n = static_cast<std::int64_t>(words_.size());
        // By how much the beam makes the distance larger than it need be.
        const std::int64_t excess = beam_.contains(distance, n) ? 0 : distance - levenshtein_.to(words_);
        std::int64_t gained = 0;
        Rotation best{0, 0, 0};
        shifted_ = words_;
        for (const std::uint64_t number : shifts_) {
            const Shift shift = Shift::numbered(number);
            if (2 * shift.length + excess <= gained) break;  // nor do the shorter ones that follow gain more
            const Rotation turn = rotation(shift);
            if (turn.most_gained() + excess <= gained) continue;
            const auto old = words_.cbegin();
            std::rotate_copy(old + turn.begin, old + turn.middle, old + turn.end, shifted_.begin() + turn.begin);
            const std::int64_t found = distance - shifted_distance(turn.begin, distance - gained);
            std::copy(old + turn.begin, old + turn.end, shifted_.begin() + turn.begin);
            if (found <= gained) continue;
            gained = found;
            best = turn;
        }
        return best;
    }

    // The distance in the beam of the shifted words, the first `same` of them where they were, or a lower bound of it
    // that is not below `least`.
    std::int64_t shifted_distance(std::int64_t same, std::int64_t least) {
        if (reference_.size() <= longest_for_bits) {
            const std::int64_t bound = levenshtein_.to(shifted_);
            if (bound >= least || beam_.contains(bound, static_cast<std::int64_t>(shifted_.size()))) return bound;
        }
        return beam_.changed(shifted_, same);
    }

    std::span<const Token> reference_;
    EditDistance levenshtein_;
    BeamDistance beam_;
    EditPath path_;
    std::vector<Token> words_, shifted_;
    std::vector<std::uint64_t> shifts_;
};

// (edits, reference length) of each hypothesis: the fewest edits to a reference, and the mean length of the references.
inline void ter_statistics(const Sequences& hypotheses, const Sequences& references, const Lists& lists, double* out,
                           int threads) {
    auto scratches = per_thread<TranslationEdits>(threads);
    parallel_each(lists.size(), 1, threads, [&](int thread, std::int64_t list) {
        TranslationEdits& edits = scratches[static_cast<std::size_t>(thread)];
        const auto [begin, end] = lists.hypotheses_of(list);
        const auto [first, last] = lists.references_of(list);
        const std::int64_t tokens =
            references.offsets[static_cast<std::size_t>(last)] - references.offsets[static_cast<std::size_t>(first)];
        for (std::int64_t r = first; r < last; ++r) {
            edits.against(references[r]);
            for (std::int64_t i = begin; i < end; ++i) {
                const auto found = static_cast<double>(edits.of(hypotheses[i]));
                if (r == first || found < out[2 * i]) out[2 * i] = found;
            }
        }
        for (std::int64_t i = begin; i < end; ++i)
            out[2 * i + 1] = static_cast<double>(tokens) / static_cast<double>(last - first);
    });
}

}  // namespace maxmargin::reranking
