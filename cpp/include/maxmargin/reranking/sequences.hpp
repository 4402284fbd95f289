// Sequences of tokens, hypotheses and references of lists: token numbers of words or characters, one sequence after the
// other, and the sequences of each list, one list after the other.
#pragma once

#include <cstdint>
#include <span>

namespace maxmargin::reranking {

using Token = std::int32_t;

struct Sequences {
    std::span<const Token> tokens;
    std::span<const std::int64_t> offsets;  // where each sequence begins, and the end

    std::int64_t size() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
    std::span<const Token> operator[](std::int64_t i) const {
        const auto begin = static_cast<std::size_t>(offsets[static_cast<std::size_t>(i)]);
        return tokens.subspan(begin, static_cast<std::size_t>(offsets[static_cast<std::size_t>(i) + 1]) - begin);
    }
};

// Which hypotheses and which references belong to each list.
struct Lists {
    std::span<const std::int64_t> hypotheses, references;  // where those of each list begin, and the end

    struct Range {
        std::int64_t begin, end;
    };
    std::int64_t size() const { return static_cast<std::int64_t>(hypotheses.size()) - 1; }
    Range hypotheses_of(std::int64_t i) const { return range(hypotheses, i); }
    Range references_of(std::int64_t i) const { return range(references, i); }

   private:
    static Range range(std::span<const std::int64_t> offsets, std::int64_t i) {
        return {offsets[static_cast<std::size_t>(i)], offsets[static_cast<std::size_t>(i) + 1]};
    }
};

}  // namespace maxmargin::reranking
