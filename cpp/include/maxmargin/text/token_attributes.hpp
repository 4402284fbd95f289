// Attributes of tokens by templates: strings such as "U05:" + piece + "/" + piece, looked up in a table of strings.
//
// Cells of a column are numbered, and every function of a cell that templates name has been computed once per different
// cell: its piece. A line of a template is literals and *views*, a view being a function of a column at a distance from
// the token. The result of a line is a function of the numbers of its views' pieces, so a line with few different
// combinations (one word; two or three tags) keeps the number of each that it has looked up: most attributes then cost
// one load. The others are written out, hashed, and looked up a window at a time (text/string_table.hpp).
//
// Cost: O(views + lines) per token, and O(bytes) per attribute that is written out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "maxmargin/base/growing.hpp"
#include "maxmargin/text/string_table.hpp"

namespace maxmargin::templates {

using strings::Byte;
using strings::StringTable;

// Strings of a buffer; begin < 0: there is none, and attributes that need it are left out.
struct Pieces {
    std::span<const Byte> text;
    std::span<const std::int64_t> begin, end;
};

struct Template {
    // Cell t of column c is cells[c * n_tokens + t], in 0 .. column_size[c] - 1.
    std::span<const std::int64_t> sentences;
    std::span<const std::int32_t> cells;
    std::span<const std::int64_t> column_size;
    // A source is a function of a column: its pieces are those of the cells, then `reach` for places before the
    // sentence (nearest first), then `reach` for places after it.
    std::int64_t reach;
    std::span<const std::int32_t> source_column;
    std::span<const std::int64_t> source_first;
    Pieces pieces;
    // A view is a source at a distance.
    std::span<const std::int32_t> view_source, view_row;
    // Line l is made of items line_start[l] .. line_start[l + 1] - 1: a view, or -1 - i for the literal piece i.
    std::span<const std::int64_t> line_start;
    std::span<const std::int64_t> items;

    std::int64_t n_tokens() const { return sentences.back(); }
    std::size_t n_lines() const { return line_start.size() - 1; }
};

struct Rows {
    Growing<std::int64_t> starts;
    Growing<std::int32_t> columns;
    Growing<double> values;  // empty as long as all are 1
    bool ones = true;

    Rows() { starts.push_back(0); }

    // Adds a row; sorts its numbers, and counts those that come more than once.
    void add(std::int32_t* numbers, std::size_t count) {
        if (count <= 48) {
            for (std::size_t i = 1; i < count; ++i) {
                const std::int32_t one = numbers[i];
                std::size_t at = i;
                for (; at > 0 && numbers[at - 1] > one; --at) numbers[at] = numbers[at - 1];
                numbers[at] = one;
            }
        } else {
            std::sort(numbers, numbers + count);
        }
        for (std::size_t i = 0; i < count;) {
            std::size_t next = i + 1;
            while (next < count && numbers[next] == numbers[i]) ++next;
            if (ones && next - i > 1) {
                ones = false;
                values.resize(columns.size());
                std::fill_n(values.data(), columns.size(), 1.0);
            }
            columns.push_back(numbers[i]);
            if (!ones) values.push_back(static_cast<double>(next - i));
            i = next;
        }
        starts.push_back(static_cast<std::int64_t>(columns.size()));
    }
};

class Extractor {
   public:
    Extractor(const Template& given, StringTable& table, bool grow) : given_(given), table_(table), grow_(grow) {
        const std::int64_t most = std::clamp<std::int64_t>(4 * given.n_tokens(), 1 << 8, 1 << 24);
        lines_.resize(given.n_lines());
        for (std::size_t l = 0; l < lines_.size(); ++l) {
            Line& line = lines_[l];
            line.items = given.items.subspan(static_cast<std::size_t>(given.line_start[l]),
                                             static_cast<std::size_t>(given.line_start[l + 1] - given.line_start[l]));
            std::int64_t combinations = 1;
            for (const std::int64_t item : line.items) {
                if (item < 0) continue;
                const std::int64_t size = pieces_of(static_cast<std::size_t>(item));
                combinations = combinations > most / std::max<std::int64_t>(size, 1) ? most + 1 : combinations * size;
            }
            if (combinations <= most) line.known.assign(static_cast<std::size_t>(combinations), not_asked);
        }
        local_.resize(given.view_source.size());
    }

    // Rows of all tokens or, for edges, of all tokens but the first of each sentence.
    void run(bool edges, Rows& rows) {
        const std::size_t n_lines = lines_.size();
        const std::size_t tokens_at_once = std::max<std::size_t>(1, 256 / std::max<std::size_t>(n_lines, 1));
        numbers_.resize(tokens_at_once * n_lines);
        std::size_t under_way = 0;
        const auto finish = [&] {
            look_up();
            for (std::size_t t = 0; t < under_way; ++t) {
                std::int32_t* row = numbers_.data() + t * n_lines;
                std::size_t count = 0;
                for (std::size_t l = 0; l < n_lines; ++l)
                    if (row[l] != strings::unknown) row[count++] = row[l];
                rows.add(row, count);
            }
            under_way = 0;
        };
        for (std::size_t s = 0; s + 1 < given_.sentences.size(); ++s) {
            const std::int64_t begin = given_.sentences[s], end = given_.sentences[s + 1];
            for (std::int64_t token = begin + (edges ? 1 : 0); token < end; ++token) {
                see(token, begin, end);
                for (std::size_t l = 0; l < n_lines; ++l) ask(lines_[l], under_way * n_lines + l);
                if (++under_way == tokens_at_once) finish();
            }
        }
        finish();
    }

   private:
    static constexpr std::int32_t not_asked = -2;

    struct Line {
        std::span<const std::int64_t> items;
        std::vector<std::int32_t> known;  // the number of each combination of pieces; empty where there are too many
    };
    struct Pending {
        std::uint32_t key;
        std::size_t begin, length, slot;
        std::int32_t* known;
    };

    std::int64_t pieces_of(std::size_t view) const {
        const auto source = static_cast<std::size_t>(given_.view_source[view]);
        return given_.column_size[static_cast<std::size_t>(given_.source_column[source])] + 2 * given_.reach;
    }

    // Which piece of its source each view shows.
    void see(std::int64_t token, std::int64_t begin, std::int64_t end) {
        const std::int64_t n_tokens = given_.n_tokens();
        for (std::size_t v = 0; v < local_.size(); ++v) {
            const auto column = given_.source_column[static_cast<std::size_t>(given_.view_source[v])];
            const std::int64_t at = token + given_.view_row[v];
            if (at >= begin && at < end) {
                local_[v] = given_.cells[static_cast<std::size_t>(column * n_tokens + at)];
            } else {
                local_[v] = given_.column_size[static_cast<std::size_t>(column)] +
                            (at < begin ? begin - at - 1 : given_.reach + at - end);
            }
        }
    }

    void ask(Line& line, std::size_t slot) {
        std::int32_t* known = nullptr;
        if (!line.known.empty()) {
            std::int64_t combination = 0;
            for (const std::int64_t item : line.items)
                if (item >= 0)
                    combination = combination * pieces_of(static_cast<std::size_t>(item)) +
                                  local_[static_cast<std::size_t>(item)];
            known = &line.known[static_cast<std::size_t>(combination)];
            if (*known != not_asked) {
                numbers_[slot] = *known;
                return;
            }
        }
        numbers_[slot] = strings::unknown;
        const std::size_t begin = text_.size();
        for (const std::int64_t item : line.items) {
            const auto piece =
                static_cast<std::size_t>(item < 0 ? -1 - item
                                                  : given_.source_first[static_cast<std::size_t>(
                                                        given_.view_source[static_cast<std::size_t>(item)])] +
                                                        local_[static_cast<std::size_t>(item)]);
            const std::int64_t from = given_.pieces.begin[piece];
            if (from < 0) {
                text_.resize(begin);
                if (known) *known = strings::unknown;
                return;
            }
            const Byte* data = given_.pieces.text.data();
            text_.insert(text_.end(), data + from, data + given_.pieces.end[piece]);
        }
        const std::size_t length = text_.size() - begin;
        const std::uint32_t key = table_.key_of(text_.data() + begin, length);
        table_.ask_slot(key);
        pending_.push_back({key, begin, length, slot, known});
    }

    void look_up() {
        for (const Pending& one : pending_) table_.ask_string(one.key);
        for (const Pending& one : pending_) {
            const Byte* text = text_.data() + one.begin;
            const std::int32_t number =
                grow_ ? table_.add(one.key, text, one.length) : table_.find(one.key, text, one.length);
            numbers_[one.slot] = number;
            if (one.known) *one.known = number;
        }
        pending_.clear();
        text_.clear();
    }

    const Template& given_;
    StringTable& table_;
    const bool grow_;
    std::vector<Line> lines_;
    std::vector<std::int64_t> local_;
    std::vector<std::int32_t> numbers_;
    std::vector<Pending> pending_;
    std::vector<Byte> text_;
};

}  // namespace maxmargin::templates
