// Alignments of two sequences as a deduction system: pairs, deletions and insertions with affine gaps (Gotoh 1982).
//
// A sequence of n symbols is turned into one of m: each symbol of the first is paired with one of the second, in order,
// or deleted, and those of the second without a partner are inserted. Between two pairs deletions come before
// insertions, so an alignment has one derivation: that of its set of pairs.
//
// Parts: pairs (i, j) at i m + j; then a gap for each symbol of the first sequence (its deletion) and of the second
// (its insertion); with affine gaps as many openings, used by the first symbol of a run of deletions or of insertions.
// If the sequences may also be no match, one part comes before all others, that of saying so: an output of its own.
//
// Items: for 0 <= i <= n and 0 <= j <= m, of the first i and the first j symbols, the alignments that end in a pair (or
// are empty), in a deletion, in an insertion; the goal comes last.
#pragma once

#include "maxmargin/deduction/batch.hpp"

namespace maxmargin::edits {

using deduction::NONE;

struct System {
    std::int64_t n, m;
    bool affine, nonmatch;

    std::int64_t n_items() const { return 3 * (n + 1) * (m + 1) + 1; }
    std::int64_t n_parts() const { return nonmatch + n * m + (affine ? 2 : 1) * (n + m); }

    std::int64_t part_of(std::int64_t item) const {
        const Place at = place(item);
        if (at.i > n) return NONE;  // the goal
        if (at.state == deleted) return at.i ? gap(at.i - 1) : NONE;
        if (at.state == inserted) return at.j ? gap(n + at.j - 1) : NONE;
        return at.i && at.j ? nonmatch + (at.i - 1) * m + at.j - 1 : NONE;
    }

    template <class Take>
    void ways(std::int64_t item, Take&& take) const {
        const Place at = place(item);
        if (at.i > n) {
            if (nonmatch) take(NONE, NONE, 0);
            take(item - 3, NONE, NONE);
            take(item - 2, NONE, NONE);
            take(item - 1, NONE, NONE);
        } else if (at.state == deleted) {
            if (at.i == 0) return;
            const std::int64_t before = item - deleted - 3 * (m + 1);
            take(before + paired, NONE, opening(at.i - 1));
            take(before + deleted, NONE, NONE);
        } else if (at.state == inserted) {
            if (at.j == 0) return;
            const std::int64_t before = item - inserted - 3, open = opening(n + at.j - 1);
            take(before + paired, NONE, open);
            take(before + deleted, NONE, open);
            take(before + inserted, NONE, NONE);
        } else if (item == 0) {
            take(NONE, NONE, NONE);
        } else if (at.i && at.j) {
            const std::int64_t before = item - 3 * (m + 2);
            take(before + paired, NONE, NONE);
            take(before + deleted, NONE, NONE);
            take(before + inserted, NONE, NONE);
        }
    }

   private:
    enum State { paired = 0, deleted = 1, inserted = 2 };
    struct Place {
        std::int64_t i, j;
        int state;
    };

    // Items are counted in 32 bits (Batch sees to it), whose division is much faster.
    Place place(std::int64_t item) const {
        const auto cell = static_cast<std::uint32_t>(item) / 3, width = static_cast<std::uint32_t>(m + 1);
        const std::uint32_t i = cell / width;
        return {i, cell - i * width, static_cast<int>(static_cast<std::uint32_t>(item) - 3 * cell)};
    }
    std::int64_t gap(std::int64_t symbol) const { return nonmatch + n * m + symbol; }
    std::int64_t opening(std::int64_t symbol) const { return affine ? gap(n + m) + symbol : NONE; }
};

// A packed batch, block after block: that the sequences do not match (if they may not), pairs, gaps, openings (if any).
class Batch {
   public:
    static constexpr std::int64_t most_items = std::int64_t{1} << 31;  // of one example

    Batch(std::vector<std::int64_t> first, std::vector<std::int64_t> second, bool affine, bool nonmatch)
        : first_(std::move(first)), second_(std::move(second)), affine_(affine), nonmatch_(nonmatch) {
        blocks_ = 2 + affine + nonmatch;
        std::int64_t at = 0;
        offsets_.reserve(static_cast<std::size_t>(blocks_ * (size() + 1)));
        const auto block = [&](auto&& parts) {
            offsets_.push_back(at);
            for (std::int64_t i = 0; i < size(); ++i) offsets_.push_back(at += parts(i));
        };
        const auto gaps = [&](std::int64_t i) { return first_[i] + second_[i]; };
        if (nonmatch) block([](std::int64_t) { return 1; });
        block([&](std::int64_t i) { return first_[i] * second_[i]; });
        block(gaps);
        if (affine) block(gaps);
    }

    std::int64_t size() const { return static_cast<std::int64_t>(first_.size()); }
    System operator[](std::int64_t i) const { return {first_[i], second_[i], affine_, nonmatch_}; }
    hull::Layout layout() const { return {blocks_, size(), offsets_}; }

   private:
    std::vector<std::int64_t> first_, second_, offsets_;
    std::int64_t blocks_;
    bool affine_, nonmatch_;
};

}  // namespace maxmargin::edits
