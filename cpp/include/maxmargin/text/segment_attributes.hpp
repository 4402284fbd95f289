// Attributes of segments of sentences by templates: as those of tokens (token_attributes.hpp), with views that show a
// token of the segment, one beside it, or all of its tokens.
//
// Candidates are all segments of up to `longest` tokens, sentence after sentence, by begin, then by length. The first
// attribute of each is its length. Strings of all tokens of a segment grow with its length by one piece, so a candidate
// costs O(bytes) of its attributes.
#pragma once

#include <charconv>

#include "maxmargin/text/token_attributes.hpp"

namespace maxmargin::templates {

// What a view shows; in place of the distance of views of tokens.
enum Place : std::int32_t { PLACE_FIRST, PLACE_LAST, PLACE_BEFORE, PLACE_AFTER, PLACE_ALL, N_PLACES };

// Candidates of a sentence of n tokens.
inline std::int64_t n_candidates(std::int64_t n, std::int64_t longest) {
    const std::int64_t full = std::max<std::int64_t>(n - longest + 1, 0), rest = n - full;
    return full * longest + rest * (rest + 1) / 2;
}

struct SegmentTemplate {
    Template lines;  // reach is 1, view_row holds places
    std::int64_t longest;
    std::span<const std::uint8_t> chosen;  // which candidates have rows; empty for all
};

class SegmentExtractor {
   public:
    SegmentExtractor(const SegmentTemplate& given, StringTable& table, bool grow)
        : given_(given), numbering_(table, grow) {
        starts_.push_back(0);
        for (std::size_t s = 0; s + 1 < given.lines.sentences.size(); ++s)
            starts_.push_back(starts_.back() +
                              n_candidates(given.lines.sentences[s + 1] - given.lines.sentences[s], given.longest));
    }

    void set_fresh(StringTable* fresh) { numbering_.set_fresh(fresh); }

    // Calls row(numbers, count) for all candidates of some sentences.
    template <class Row>
    void run(std::size_t first, std::size_t last, bool, Row&& row_of) {
        const Template& lines = given_.lines;
        for (std::size_t s = first; s < last; ++s) {
            std::int64_t candidate = starts_[s];
            const std::int64_t begin = lines.sentences[s], end = lines.sentences[s + 1];
            for (std::int64_t b = begin; b < end; ++b)
                for (std::int64_t l = 1; l <= std::min(given_.longest, end - b); ++l, ++candidate) {
                    if (!given_.chosen.empty() && !given_.chosen[static_cast<std::size_t>(candidate)]) continue;
                    write_length(l);
                    for (std::size_t line = 0; line < lines.n_lines(); ++line) write(line, b, l, begin, end);
                    ends_.push_back(texts_.size());
                    if (ends_.size() == at_once) finish(row_of);
                }
        }
        finish(row_of);
    }

   private:
    static constexpr std::size_t at_once = 64;
    struct Pending {
        std::uint32_t key;
        std::size_t begin, length;
    };

    void put(std::size_t piece) {
        const Pieces& pieces = given_.lines.pieces;
        text_.insert(text_.end(), pieces.text.data() + pieces.begin[piece], pieces.text.data() + pieces.end[piece]);
    }
    // The piece of a source at a token, which may lie one token outside of the sentence.
    std::size_t piece(std::size_t source, std::int64_t t, std::int64_t begin, std::int64_t end) const {
        const Template& lines = given_.lines;
        const auto column = static_cast<std::size_t>(lines.source_column[source]);
        const std::int64_t cells = lines.column_size[column];
        const std::int64_t at =
            t < begin ? cells
            : t >= end
                ? cells + 1
                : lines.cells[static_cast<std::size_t>(static_cast<std::int64_t>(column) * lines.n_tokens() + t)];
        return static_cast<std::size_t>(lines.source_first[source] + at);
    }
    bool put_one(std::size_t source, std::int64_t t, std::int64_t begin, std::int64_t end) {
        const std::size_t found = piece(source, t, begin, end);
        if (given_.lines.pieces.begin[found] < 0) return false;
        put(found);
        return true;
    }
    void keep(std::size_t begin) {
        const std::size_t length = text_.size() - begin;
        texts_.push_back({numbering_.ask_slot(text_.data() + begin, length), begin, length});
    }

    void write_length(std::int64_t l) {
        const std::size_t begin = text_.size();
        constexpr std::string_view name = "length:";
        char digits[24];
        const auto [stop, error] = std::to_chars(digits, digits + sizeof digits, l);
        (void)error;
        text_.insert(text_.end(), name.begin(), name.end());
        text_.insert(text_.end(), digits, stop);
        keep(begin);
    }

    // Nothing if a piece is missing.
    void write(std::size_t line, std::int64_t b, std::int64_t l, std::int64_t begin, std::int64_t end) {
        const Template& lines = given_.lines;
        const std::size_t from = text_.size();
        for (std::int64_t i = lines.line_start[line]; i < lines.line_start[line + 1]; ++i) {
            const std::int64_t item = lines.items[static_cast<std::size_t>(i)];
            bool there = true;
            if (item < 0) {
                put(static_cast<std::size_t>(-1 - item));
            } else {
                const auto source = static_cast<std::size_t>(lines.view_source[static_cast<std::size_t>(item)]);
                switch (lines.view_row[static_cast<std::size_t>(item)]) {
                    case PLACE_FIRST: there = put_one(source, b, begin, end); break;
                    case PLACE_LAST: there = put_one(source, b + l - 1, begin, end); break;
                    case PLACE_BEFORE: there = put_one(source, b - 1, begin, end); break;
                    case PLACE_AFTER: there = put_one(source, b + l, begin, end); break;
                    default:
                        for (std::int64_t t = b; there && t < b + l; ++t) {
                            if (t > b) text_.push_back(' ');
                            there = put_one(source, t, begin, end);
                        }
                }
            }
            if (!there) {
                text_.resize(from);
                return;
            }
        }
        keep(from);
    }

    template <class Row>
    void finish(Row&& row_of) {
        for (const Pending& one : texts_) numbering_.ask_string(one.key);
        std::size_t next = 0;
        for (const std::size_t end : ends_) {
            numbers_.clear();
            for (; next < end; ++next) {
                const Pending& one = texts_[next];
                const std::int32_t number = numbering_.of(one.key, text_.data() + one.begin, one.length);
                if (number != strings::unknown) numbers_.push_back(number);
            }
            row_of(numbers_.data(), numbers_.size());
        }
        texts_.clear(), ends_.clear(), text_.clear();
    }

    const SegmentTemplate& given_;
    strings::Numbering numbering_;
    std::vector<std::int64_t> starts_;  // candidates before each sentence
    std::vector<Pending> texts_;
    std::vector<std::size_t> ends_;  // of the texts of each candidate
    std::vector<std::int32_t> numbers_;
    std::vector<Byte> text_;
};

}  // namespace maxmargin::templates
