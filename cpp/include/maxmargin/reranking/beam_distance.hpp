// Edit distances within a beam around the diagonal of the table, and the path that translation edit rate aligns by.
//
// Row i of the table, after i tokens of a hypothesis of n, has the columns around floor(i * m / n) only, m the length
// of the reference: the distance is the smallest number of edits of a path that stays there, so it is never below the
// Levenshtein distance. Beam, rounding and preferences between equally good edits are those of sacrebleu's TER.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "maxmargin/base/scratch.hpp"
#include "maxmargin/reranking/sequences.hpp"

namespace maxmargin::reranking {

// A hypothesis edited into the reference.
struct EditPath {
    std::vector<std::int64_t> before;  // hypothesis tokens used up by the edits that yield the first j reference tokens
    std::vector<std::int64_t> wrong, wrong_gold;  // tokens that are not kept, among the first i of each side
};

class BeamDistance {
   public:
    static constexpr std::int64_t width = 25;

    // The reference of the distances that follow, which must outlive them.
    void against(std::span<const Token> reference) { reference_ = reference; }

    // Whether no path leaves the beam that has as many edits as the Levenshtein distance, so that both distances are
    // the same. A path leaves the diagonal by at most its insertions on one side and its deletions on the other, whose
    // difference is m - n; the beam follows the line to (n, m), a column less where i * m / n was rounded down.
    bool contains(std::int64_t levenshtein, std::int64_t n) const {
        return levenshtein + std::abs(columns() - 1 - n) <= 2 * width - 4;
    }

    // The distance of a hypothesis, whose table is kept.
    std::int64_t to(std::span<const Token> hypothesis) {
        begin(static_cast<std::int64_t>(hypothesis.size()));
        std::iota(table_.begin(), table_.begin() + columns(), 0);
        return again(hypothesis, 0);
    }

    // The same for one with as many tokens as the hypothesis before, the first `same` of them equal.
    std::int64_t again(std::span<const Token> hypothesis, std::int64_t same) {
        for (std::int64_t i = same + 1; i <= n_; ++i)
            fill(row(i - 1), row(i), hypothesis[static_cast<std::size_t>(i) - 1]);
        return row(n_).at(columns() - 1);
    }

    // The same without keeping the table.
    std::int64_t changed(std::span<const Token> hypothesis, std::int64_t same) {
        at_least(other_, 2 * static_cast<std::size_t>(stride_));
        Row last = row(same);
        for (std::int64_t i = same + 1; i <= n_; ++i) {
            Row next = row(i);
            next.cells = other_.data() + i % 2 * stride_;
            fill(last, next, hypothesis[static_cast<std::size_t>(i) - 1]);
            last = next;
        }
        return last.at(columns() - 1);
    }

    // The path of the hypothesis whose table is kept. Of equally good edits it takes, from the end, a kept or replaced
    // token first, then one of the hypothesis that is removed, then one of the reference that is inserted.
    void path(std::span<const Token> hypothesis, EditPath& out) {
        const std::int64_t m = columns() - 1;
        out.before.assign(static_cast<std::size_t>(m) + 1, 0);
        out.wrong.assign(static_cast<std::size_t>(n_) + 1, 0);
        out.wrong_gold.assign(static_cast<std::size_t>(m) + 1, 0);
        for (std::int64_t i = n_, j = m; i > 0 || j > 0;) {
            const auto x = static_cast<std::size_t>(i), y = static_cast<std::size_t>(j);
            if (j > 0) out.before[y] = i;
            if (i == 0) {
                out.wrong_gold[y] = 1;
                --j;
                continue;
            }
            const std::int32_t cost = row(i).at(j);
            const Row above = row(i - 1);
            const bool differ = j > 0 && hypothesis[x - 1] != reference_[y - 1];
            if (j > 0 && cost == above.at(j - 1) + differ) {
                out.wrong[x] = out.wrong_gold[y] = differ;
                --i, --j;
            } else if (cost == above.at(j) + 1) {
                out.wrong[x] = 1;
                --i;
            } else {
                out.wrong_gold[y] = 1;
                --j;
            }
        }
        for (std::size_t i = 1; i < out.wrong.size(); ++i) out.wrong[i] += out.wrong[i - 1];
        for (std::size_t j = 1; j < out.wrong_gold.size(); ++j) out.wrong_gold[j] += out.wrong_gold[j - 1];
    }

   private:
    static constexpr std::int32_t none = std::numeric_limits<std::int32_t>::max() / 2;

    // Columns begin .. end - 1 of a row; none elsewhere.
    struct Row {
        std::int64_t begin, end;
        std::int32_t* cells;

        std::int32_t at(std::int64_t j) const { return begin <= j && j < end ? cells[j - begin] : none; }
    };

    std::int64_t columns() const { return static_cast<std::int64_t>(reference_.size()) + 1; }

    void begin(std::int64_t n) {
        n_ = n;
        ratio_ = n ? static_cast<double>(reference_.size()) / static_cast<double>(n) : 1.0;
        // Rows of a hypothesis much shorter than its reference overlap only in a wider beam.
        beam_ =
            static_cast<double>(width) < ratio_ / 2 ? static_cast<std::int64_t>(std::ceil(ratio_ / 2 + width)) : width;
        stride_ = std::min(2 * beam_, columns());
        at_least(table_, static_cast<std::size_t>(columns() + n * stride_));
    }

    Row row(std::int64_t i) {
        if (i == 0) return {0, columns(), table_.data()};
        const auto middle = static_cast<std::int64_t>(std::floor(static_cast<double>(i) * ratio_));
        return {std::max<std::int64_t>(0, middle - beam_), std::min(columns(), middle + beam_),
                table_.data() + columns() + (i - 1) * stride_};
    }

    void fill(const Row& last, const Row& row, Token token) const {
        std::int64_t j = row.begin;
        std::int32_t left = none, diagonal = last.at(j - 1);
        const auto next = [&](std::int32_t above, bool differ) {
            left = std::min(left + 1, std::min(above + 1, diagonal + differ));
            row.cells[j++ - row.begin] = left;
            diagonal = above;
        };
        if (j == 0) next(last.cells[0], true);
        // No row begins before the last one, but most end behind it.
        const std::int64_t both = std::min(row.end, last.end);
        const Token* gold = reference_.data();
        while (j < both) next(last.cells[j - last.begin], gold[j - 1] != token);
        while (j < row.end) next(none, gold[j - 1] != token);
    }

    std::span<const Token> reference_;
    std::int64_t n_ = 0, beam_ = width, stride_ = 1;
    double ratio_ = 1.0;
    std::vector<std::int32_t> table_, other_;
};

}  // namespace maxmargin::reranking
