// Attributes of tokens by templates: strings such as "U05:" + piece + "/" + piece, looked up in a table of strings.
//
// Cells of a column are numbered, and every function of a cell that templates name has been computed once per different
// cell: its piece. A line of a template is literals and *views*, a view being a function of a column at a distance from
// the token. The result of a line is a function of the numbers of its views' pieces, so a line with few different
// combinations (one word; two or three tags) keeps the number of each that it has looked up: most attributes then cost
// one load. The others are written out, hashed, and looked up a window at a time (text/string_table.hpp).
//
// Cost: O(views + lines) per token, and O(bytes) per attribute that is written out. Several threads take chunks of
// sentences. Where the table grows, it stays as it is for a round of chunks: each chunk numbers its new attributes for
// itself, and these get their numbers when the round is complete, chunk after chunk, which is the order of first
// appearance. So the numbers, and all rows, are those of one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "maxmargin/base/growing.hpp"
#include "maxmargin/base/parallel.hpp"
#include "maxmargin/text/numbering.hpp"

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
            if (ones && next - i > 1) count_ones();
            columns.push_back(numbers[i]);
            if (!ones) values.push_back(static_cast<double>(next - i));
            i = next;
        }
        starts.push_back(static_cast<std::int64_t>(columns.size()));
    }

    // Adds the rows of another, which is emptied.
    void take(Rows& other) {
        const std::size_t before = columns.size(), more = other.columns.size();
        if (ones && !other.ones) count_ones();
        columns.resize(before + more);
        if (more) std::memcpy(columns.data() + before, other.columns.data(), more * sizeof(std::int32_t));
        if (!ones) {
            values.resize(before + more);
            if (other.ones) std::fill_n(values.data() + before, more, 1.0);
            else if (more) std::memcpy(values.data() + before, other.values.data(), more * sizeof(double));
        }
        for (std::size_t r = 1; r < other.starts.size(); ++r)
            starts.push_back(static_cast<std::int64_t>(before) + other.starts[r]);
        other = Rows();
    }

    // Drops the columns of fewer than `least` rows, except the first `known`, and renumbers the others in order.
    // Returns which of `n_columns` are kept; nothing where all are.
    std::vector<std::uint8_t> cut(std::int64_t least, std::int64_t known, std::int64_t n_columns) {
        std::vector<std::int32_t> number(static_cast<std::size_t>(n_columns), 0);
        const auto most = static_cast<std::int32_t>(std::min<std::int64_t>(least, std::numeric_limits<int>::max()));
        for (std::size_t i = 0; i < columns.size(); ++i) {
            std::int32_t& count = number[static_cast<std::size_t>(columns[i])];
            if (count < most) ++count;
        }
        std::vector<std::uint8_t> keep(number.size());
        std::int32_t kept = 0;
        for (std::size_t c = 0; c < number.size(); ++c) {
            keep[c] = static_cast<std::int64_t>(c) < known || number[c] >= most;
            number[c] = keep[c] ? kept++ : -1;
        }
        if (kept == n_columns) return {};
        std::size_t to = 0;
        for (std::size_t r = 0, from = 0; r + 1 < starts.size(); ++r) {
            for (const auto end = static_cast<std::size_t>(starts[r + 1]); from < end; ++from) {
                const std::int32_t column = number[static_cast<std::size_t>(columns[from])];
                if (column < 0) continue;
                columns[to] = column;
                if (!ones) values[to] = values[from];
                ++to;
            }
            starts[r + 1] = static_cast<std::int64_t>(to);
        }
        columns.resize(to);
        columns.shrink();
        if (!ones) values.resize(to), values.shrink();
        return keep;
    }

   private:
    void count_ones() {
        ones = false;
        values.resize(columns.size());
        std::fill_n(values.data(), columns.size(), 1.0);
    }
};

// Looks attributes up in a table, which grows or does not; or in one that does not and, where they are not there, in
// another that grows, whose numbers then follow those of the first.
class Extractor {
   public:
    Extractor(const Template& given, StringTable& table, bool grow) : given_(given), numbering_(table, grow) {
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

    // Where new attributes go; nullptr for the table itself, or for nowhere.
    void set_fresh(StringTable* fresh) { numbering_.set_fresh(fresh); }

    // Calls row(numbers, count) for all tokens of some sentences or, for edges, all tokens but the first of each.
    template <class Row>
    void run(std::size_t first, std::size_t last, bool edges, Row&& row_of) {
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
                row_of(row, count);
            }
            under_way = 0;
        };
        for (std::size_t s = first; s < last; ++s) {
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
        pending_.push_back({numbering_.ask_slot(text_.data() + begin, length), begin, length, slot, known});
    }

    void look_up() {
        for (const Pending& one : pending_) numbering_.ask_string(one.key);
        for (const Pending& one : pending_) {
            const std::int32_t number = numbering_.of(one.key, text_.data() + one.begin, one.length);
            if (one.known && !numbering_.is_fresh(number)) *one.known = number;
            numbers_[one.slot] = number;
        }
        pending_.clear();
        text_.clear();
    }

    const Template& given_;
    strings::Numbering numbering_;
    std::vector<Line> lines_;
    std::vector<std::int64_t> local_;
    std::vector<std::int32_t> numbers_;
    std::vector<Pending> pending_;
    std::vector<Byte> text_;
};

// The rows of all sentences: of tokens, or with `edges` of pairs of neighbors; those of Extractor(from, table, grow).
template <class Extractor, class From>
void extract(const From& from_what, const Template& given, StringTable& table, bool grow, bool edges, int threads,
             Rows& rows) {
    constexpr std::int64_t chunk_tokens = 1 << 12;
    constexpr int chunks_per_thread = 8;
    const std::size_t n_sentences = given.sentences.size() - 1;
    std::vector<std::size_t> bounds{0};
    for (std::size_t s = 0; s < n_sentences; ++s)
        if (s + 1 == n_sentences || given.sentences[s + 1] - given.sentences[bounds.back()] >= chunk_tokens)
            bounds.push_back(s + 1);
    const std::size_t chunks = bounds.size() - 1;
    const int workers = static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(threads), chunks));
    if (workers <= 1) {
        Extractor(from_what, table, grow).run(0, n_sentences, edges, [&](std::int32_t* row, std::size_t n) {
            rows.add(row, n);
        });
        return;
    }
    struct Part {
        std::unique_ptr<StringTable> fresh;
        Growing<std::int32_t> numbers;  // of all rows, with fresh ones, as they come
        Growing<std::int64_t> ends;
        std::vector<std::int32_t> final;  // the number of each fresh attribute
        Rows rows;
    };
    std::vector<std::unique_ptr<Extractor>> extractors(static_cast<std::size_t>(workers));
    for (std::size_t from = 0; from < chunks;) {
        const std::size_t count =
            std::min<std::size_t>(chunks - from, static_cast<std::size_t>(workers * chunks_per_thread));
        std::vector<Part> parts(count);
        parallel_each(static_cast<std::int64_t>(count), 1, workers, [&](int thread, std::int64_t i) {
            auto& extractor = extractors[static_cast<std::size_t>(thread)];
            if (!extractor) extractor = std::make_unique<Extractor>(from_what, table, false);
            Part& part = parts[static_cast<std::size_t>(i)];
            const std::size_t first = bounds[from + static_cast<std::size_t>(i)];
            const std::size_t last = bounds[from + static_cast<std::size_t>(i) + 1];
            if (!grow) {
                extractor->run(first, last, edges, [&](std::int32_t* row, std::size_t n) { part.rows.add(row, n); });
                return;
            }
            part.fresh = std::make_unique<StringTable>();
            extractor->set_fresh(part.fresh.get());
            extractor->run(first, last, edges, [&](std::int32_t* row, std::size_t n) {
                for (std::size_t j = 0; j < n; ++j) part.numbers.push_back(row[j]);
                part.ends.push_back(static_cast<std::int64_t>(part.numbers.size()));
            });
        });
        if (grow) {
            const std::int64_t base = table.size();
            for (Part& part : parts) {
                part.final.resize(static_cast<std::size_t>(part.fresh->size()));
                table.add_all(*part.fresh, part.final.data());
                part.fresh.reset();
            }
            parallel_each(static_cast<std::int64_t>(count), 1, workers, [&](int, std::int64_t i) {
                Part& part = parts[static_cast<std::size_t>(i)];
                std::size_t begin = 0;
                for (std::size_t r = 0; r < part.ends.size(); ++r) {
                    const auto end = static_cast<std::size_t>(part.ends[r]);
                    for (std::size_t j = begin; j < end; ++j)
                        if (part.numbers[j] >= base)
                            part.numbers[j] = part.final[static_cast<std::size_t>(part.numbers[j] - base)];
                    part.rows.add(part.numbers.data() + begin, end - begin);
                    begin = end;
                }
            });
        }
        for (Part& part : parts) rows.take(part.rows);
        from += count;
    }
}

}  // namespace maxmargin::templates
