// Segmentations of sequences as a deduction system: semi-Markov models.
//
// A sequence of n positions is cut into segments of at most `longest` positions, each with one of K labels; `legal[a K
// + b]` says whether a segment of label b may follow one of label a. Parts: segments by their first position, their
// length and their label; then K x K counts of labels that follow each other.
//
// Items: B(t, y), a segment of label y may begin at t; E(t, y), one ends before t + 1. B(t, .) and E(t, .) stand at
// 2 K t, and the goal comes last.
#pragma once

#include "maxmargin/deduction/batch.hpp"

namespace maxmargin::segments {

using deduction::NONE;

struct System {
    std::int64_t length, longest, labels;
    const std::uint8_t* legal;

    std::int64_t n_items() const { return 2 * labels * length + 1; }
    std::int64_t n_parts() const { return begin(length) + labels * labels; }
    std::int64_t part_of(std::int64_t) const { return NONE; }

    // Where the segments that begin at t begin: before it there are `longest` of each position, but fewer near the end.
    std::int64_t begin(std::int64_t t) const {
        const std::int64_t full = std::max<std::int64_t>(length - longest + 1, 0);  // positions with all lengths
        if (t <= full) return t * longest * labels;
        const std::int64_t rest = length - full, left = length - t;
        return (full * longest + rest * (rest + 1) / 2 - left * (left + 1) / 2) * labels;
    }

    template <class Take>
    void ways(std::int64_t item, Take&& take) const {
        if (item == 2 * labels * length) {
            if (length == 0) take(NONE, NONE, NONE);
            else
                for (std::int64_t y = 0; y < labels; ++y) take(ended(length - 1, y), NONE, NONE);
            return;
        }
        const std::int64_t t = item / (2 * labels), state = item % (2 * labels), y = state % labels;
        if (state < labels) {
            if (t == 0) return take(NONE, NONE, NONE);
            const std::int64_t transitions = begin(length);
            for (std::int64_t before = 0; before < labels; ++before)
                if (legal[before * labels + y]) take(ended(t - 1, before), NONE, transitions + before * labels + y);
            return;
        }
        const std::int64_t first = std::max<std::int64_t>(t - longest + 1, 0);
        for (std::int64_t b = t; b >= first; --b) take(2 * labels * b + y, NONE, begin(b) + (t - b) * labels + y);
    }

   private:
    std::int64_t ended(std::int64_t t, std::int64_t y) const { return (2 * t + 1) * labels + y; }
};

// A packed batch: the segments of all examples, then their counts.
class Batch {
   public:
    Batch(std::vector<std::int64_t> lengths, std::int64_t longest, std::vector<std::uint8_t> legal, std::int64_t labels)
        : lengths_(std::move(lengths)), legal_(std::move(legal)), longest_(longest), labels_(labels) {
        const std::size_t n = lengths_.size();
        offsets_.resize(2 * (n + 1));
        for (std::size_t i = 0; i < n; ++i) {
            const System one = (*this)[static_cast<std::int64_t>(i)];
            offsets_[i + 1] = offsets_[i] + one.begin(one.length);
        }
        for (std::size_t i = 0; i <= n; ++i)
            offsets_[n + 1 + i] = offsets_[n] + static_cast<std::int64_t>(i) * labels * labels;
    }

    std::int64_t size() const { return static_cast<std::int64_t>(lengths_.size()); }
    System operator[](std::int64_t i) const { return {lengths_[i], longest_, labels_, legal_.data()}; }
    hull::Layout layout() const { return {2, size(), offsets_}; }

   private:
    std::vector<std::int64_t> lengths_, offsets_;
    std::vector<std::uint8_t> legal_;
    std::int64_t longest_, labels_;
};

}  // namespace maxmargin::segments
