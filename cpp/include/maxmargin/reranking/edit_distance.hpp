// Levenshtein distances of hypotheses to references, and the statistics of error rates.
//
// Bit-parallel (Myers 1999, for global distances Hyyro 2003): a column of the table of distances is kept as the signs
// of its vertical differences, 64 rows of the reference to a machine word, so a hypothesis of n tokens costs n * ceil(m
// / 64) steps of a dozen instructions. The rows where each token of a reference stands are prepared once.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "maxmargin/base/hashing.hpp"
#include "maxmargin/base/parallel.hpp"
#include "maxmargin/base/scratch.hpp"
#include "maxmargin/reranking/sequences.hpp"

namespace maxmargin::reranking {

class EditDistance {
   public:
    // The reference of the distances that follow, which must outlive them.
    void against(std::span<const Token> reference) {
        reference_ = reference;
        stride_ = (reference.size() + 63) / 64 + 1;
        const std::size_t wanted = std::bit_ceil(2 * reference.size() + 2);
        slots_.assign(wanted, Slot{});
        shift_ = 64 - std::countr_zero(wanted);
        small_.fill(0);
        places_.assign(stride_, 0);  // those of tokens that the reference does not have
        for (std::size_t i = 0; i < reference.size(); ++i) {
            std::uint32_t row = row_of(reference[i]);
            if (!row) {
                row = static_cast<std::uint32_t>(places_.size() / stride_);
                places_.resize(places_.size() + stride_, 0);
                keep(reference[i], row);
            }
            places_[row * stride_ + i / 64] |= std::uint64_t{1} << (i % 64);
        }
    }

    // The number of insertions, deletions and substitutions, as few as possible.
    std::int64_t to(std::span<const Token> hypothesis) {
        // Nothing is changed where both begin or end alike.
        std::size_t m = reference_.size(), n = hypothesis.size(), begin = 0;
        while (m && n && reference_[m - 1] == hypothesis[n - 1]) --m, --n;
        const std::size_t least = std::min(m, n);
        while (begin < least && reference_[begin] == hypothesis[begin]) ++begin;
        if (begin == least) return static_cast<std::int64_t>(std::max(m, n) - begin);
        if (m - begin <= 64) return short_distance(begin, m, hypothesis.subspan(begin, n - begin));
        begin -= begin % 64;
        return long_distance(begin / 64, m, hypothesis.subspan(begin, n - begin));
    }

   private:
    struct Slot {
        Token token = 0;
        std::uint32_t row = 0;
    };
    // Vertical differences of +1 and of -1.
    struct Column {
        std::uint64_t up, down;
    };

    std::size_t slot_of(Token token) const {
        std::size_t i = hashing::of_number(secret_, static_cast<std::uint32_t>(token)) >> shift_;
        while (slots_[i].row && slots_[i].token != token) i = (i + 1) & (slots_.size() - 1);
        return i;
    }
    // The row of a token's places, 0 if the reference does not have it. Small numbers, as most characters are, need no
    // look-up.
    std::uint32_t row_of(Token token) const {
        const auto number = static_cast<std::uint32_t>(token);
        return number < small_.size() ? small_[number] : slots_[slot_of(token)].row;
    }
    void keep(Token token, std::uint32_t row) {
        const auto number = static_cast<std::uint32_t>(token);
        if (number < small_.size()) {
            small_[number] = row;
        } else {
            slots_[slot_of(token)] = {token, row};
        }
    }
    const std::uint64_t* places_of(Token token) const { return places_.data() + row_of(token) * stride_; }

    // The distance to the tokens begin .. end - 1 of the reference, at most 64 of them.
    std::int64_t short_distance(std::size_t begin, std::size_t end, std::span<const Token> hypothesis) const {
        const std::size_t block = begin / 64, shift = begin % 64;
        const std::uint64_t last = std::uint64_t{1} << (end - begin - 1);
        std::uint64_t up = ~std::uint64_t{0}, down = 0;
        auto distance = static_cast<std::int64_t>(end - begin);
        for (const Token token : hypothesis) {
            const std::uint64_t* places = places_of(token) + block;
            const std::uint64_t same = (places[0] >> shift) | (places[1] << 1 << (63 - shift));
            const std::uint64_t level = (((same & up) + up) ^ up) | same | down;  // diagonal differences of 0
            std::uint64_t right = down | ~(level | up), left = level & up;        // horizontal ones of +1 and of -1
            distance += (right & last) != 0;
            distance -= (left & last) != 0;
            right = (right << 1) | 1;  // the first row is the number of tokens so far
            left <<= 1;
            up = left | ~(level | right);
            down = right & level;
        }
        return distance;
    }

    // The distance to the tokens of the reference before `end` from a block of 64 on.
    std::int64_t long_distance(std::size_t block, std::size_t end, std::span<const Token> hypothesis) {
        const std::size_t blocks = (end + 63) / 64 - block;
        const std::uint64_t last = std::uint64_t{1} << ((end - 1) % 64);
        columns_.assign(blocks, {~std::uint64_t{0}, 0});
        auto distance = static_cast<std::int64_t>(end - 64 * block);
        for (const Token token : hypothesis) {
            const std::uint64_t* places = places_of(token) + block;
            std::uint64_t right_in = 1, left_in = 0, right = 0, left = 0;
            for (std::size_t b = 0; b < blocks; ++b) {
                auto& [up, down] = columns_[b];
                const std::uint64_t same = places[b] | left_in;
                const std::uint64_t level = (((same & up) + up) ^ up) | same | down;
                right = down | ~(level | up);
                left = level & up;
                const std::uint64_t right_next = (right << 1) | right_in, left_next = (left << 1) | left_in;
                right_in = right >> 63;
                left_in = left >> 63;
                up = left_next | ~(level | right_next);
                down = right_next & level;
            }
            distance += (right & last) != 0;
            distance -= (left & last) != 0;
        }
        return distance;
    }

    std::span<const Token> reference_;
    std::size_t stride_ = 1;  // words of 64 rows that a token has in places_, and one of zeros
    hashing::Secret secret_ = hashing::secret();
    int shift_ = 63;
    std::array<std::uint32_t, 256> small_{};
    std::vector<Slot> slots_;
    std::vector<std::uint64_t> places_;
    std::vector<Column> columns_;
};

// Whether so many errors in a reference of this length are a smaller error rate than the best so far. Errors in an
// empty reference are an infinite one.
inline bool smaller_rate(std::int64_t errors, std::int64_t length, std::int64_t best, std::int64_t best_length) {
    if (!errors || !best) return errors < best;
    return errors * best_length < best * length;
}

// (errors, reference length) of each hypothesis, from the reference with the smallest error rate, the first of equals.
inline void error_statistics(const Sequences& hypotheses, const Sequences& references, const Lists& lists, double* out,
                             int threads) {
    struct Scratch {
        EditDistance distance;
        std::vector<std::int64_t> errors, length;
    };
    auto scratches = per_thread<Scratch>(threads);
    parallel_each(lists.size(), 4, threads, [&](int thread, std::int64_t list) {
        auto& [distance, errors, length] = scratches[static_cast<std::size_t>(thread)];
        const auto [begin, end] = lists.hypotheses_of(list);
        const auto [first, last] = lists.references_of(list);
        errors.resize(static_cast<std::size_t>(end - begin));
        length.resize(errors.size());
        for (std::int64_t r = first; r < last; ++r) {
            const auto size = static_cast<std::int64_t>(references[r].size());
            distance.against(references[r]);
            for (std::size_t i = 0; i < errors.size(); ++i) {
                const std::int64_t found = distance.to(hypotheses[begin + static_cast<std::int64_t>(i)]);
                if (r > first && !smaller_rate(found, size, errors[i], length[i])) continue;
                errors[i] = found;
                length[i] = size;
            }
        }
        for (std::size_t i = 0; i < errors.size(); ++i) {
            double* row = out + 2 * (begin + static_cast<std::int64_t>(i));
            row[0] = static_cast<double>(errors[i]);
            row[1] = static_cast<double>(length[i]);
        }
    });
}

}  // namespace maxmargin::reranking
