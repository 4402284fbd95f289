// Sets of (feature, column) pairs, in 0 .. d - 1 and 0 .. m - 1, built piece by piece.
//
// Up to kBits columns every feature has a set of bits: adding a pair costs one access, 8 bytes per feature and 64
// columns. With more columns pairs are listed as they come, 8 bytes each, and sorted in the end: by feature, by
// counting, then the few of each feature by comparisons.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace maxmargin::supported {

class PairSet {
   public:
    static constexpr std::int64_t kBits = 1024;

    // Words of bits for each feature; none where pairs are listed.
    static std::int64_t words_for(std::int64_t m) { return m <= kBits ? (m + 63) / 64 : 0; }

    PairSet(std::int64_t d, std::int64_t m) : d_(d), m_(m), words_(words_for(m)) {
        bits_.resize(static_cast<std::size_t>(d_ * words_));
    }

    std::int64_t n_features() const { return d_; }
    std::int64_t n_columns() const { return m_; }
    // Pairs counted by count(); -1 before it, and when pairs have been added since.
    std::int64_t size() const { return size_; }

    // The features of row rows[i] of a compressed matrix, with column labels[i]; none where that is negative. Indices
    // have been checked.
    template <class Index>
    void add_rows(std::span<const Index> starts, std::span<const Index> columns, std::span<const std::int64_t> rows,
                  std::span<const std::int64_t> labels) {
        constexpr std::int64_t kAhead = 16;
        size_ = -1;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const std::int64_t label = labels[i];
            if (label < 0) continue;
            const std::int64_t first = starts[rows[i]], last = starts[rows[i] + 1];
            if (!words_) {
                for (std::int64_t q = first; q < last; ++q) add(columns[q], label);
                continue;
            }
            const auto count = static_cast<std::int64_t>(columns.size());
            std::uint64_t* own = bits_.data() + label / 64;
            const std::uint64_t bit = std::uint64_t{1} << (label % 64);
            for (std::int64_t q = first; q < last; ++q) {
                if (q + kAhead < count) __builtin_prefetch(own + columns[q + kAhead] * words_, 1);
                own[columns[q] * words_] |= bit;
            }
        }
    }

    // Those of a pattern with the same or fewer features.
    void add_pattern(std::span<const std::int32_t> starts, std::span<const std::int32_t> columns) {
        size_ = -1;
        for (std::size_t f = 0; f + 1 < starts.size(); ++f)
            for (std::int32_t j = starts[f]; j < starts[f + 1]; ++j) add(static_cast<std::int64_t>(f), columns[j]);
    }

    // How many pairs each feature has, into counts (d).
    void count(std::span<std::int64_t> counts) {
        if (!words_) sort();
        size_ = 0;
        for (std::int64_t f = 0; f < d_; ++f) {
            if (words_) {
                counts[f] = 0;
                for (std::int64_t v = 0; v < words_; ++v) counts[f] += std::popcount(bits_[f * words_ + v]);
            } else {
                counts[f] = ends_[f + 1] - ends_[f];
            }
            size_ += counts[f];
        }
    }

    // The columns of all features, rising within each, after count(); `out` has room for all of them.
    void write(std::span<std::int32_t> out) const {
        if (!words_) {
            std::copy(sorted_.begin(), sorted_.end(), out.begin());
            return;
        }
        std::size_t at = 0;
        for (std::int64_t f = 0; f < d_; ++f)
            for (std::int64_t v = 0; v < words_; ++v)
                for (std::uint64_t left = bits_[f * words_ + v]; left; left &= left - 1)
                    out[at++] = static_cast<std::int32_t>(64 * v + std::countr_zero(left));
    }

   private:
    struct Pair {
        std::int32_t feature, column;
    };

    void add(std::int64_t feature, std::int64_t column) {
        if (words_) bits_[feature * words_ + column / 64] |= std::uint64_t{1} << (column % 64);
        else pairs_.push_back({static_cast<std::int32_t>(feature), static_cast<std::int32_t>(column)});
    }

    void sort() {
        ends_.assign(static_cast<std::size_t>(d_ + 1), 0);
        for (const Pair& pair : pairs_) ++ends_[pair.feature + 1];
        for (std::int64_t f = 0; f < d_; ++f) ends_[f + 1] += ends_[f];
        std::vector<std::int64_t> next(ends_.begin(), ends_.end() - 1);
        sorted_.resize(pairs_.size());
        for (const Pair& pair : pairs_) sorted_[next[pair.feature]++] = pair.column;
        std::int64_t kept = 0;
        for (std::int64_t f = 0, first = 0; f < d_; ++f) {
            const std::int64_t last = ends_[f + 1];
            const auto begin = sorted_.begin() + first, end = sorted_.begin() + last;
            std::sort(begin, end);
            const auto unique = std::unique(begin, end);
            std::copy(begin, unique, sorted_.begin() + kept);
            ends_[f] = kept;
            kept += unique - begin;
            first = last;
        }
        ends_[d_] = kept;
        sorted_.resize(static_cast<std::size_t>(kept));
    }

    std::int64_t d_, m_, words_, size_ = -1;
    std::vector<std::uint64_t> bits_;  // (d, words)
    std::vector<Pair> pairs_;          // as they came
    std::vector<std::int32_t> sorted_;
    std::vector<std::int64_t> ends_;  // d + 1
};

}  // namespace maxmargin::supported
