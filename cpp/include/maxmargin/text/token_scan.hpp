// Files of tokens, from bytes to places and back: where cells begin and end, and text with some places replaced.
//
// A line ends at a line feed; white space (ASCII only) at its end belongs to no cell, so files with Windows line ends
// or trailing blanks are read alike. A line without anything else is blank and ends a sentence. Each scan is one pass,
// O(bytes), after another that counts what it will find; nothing is written past the room that a caller gives.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>

#include "maxmargin/text/numbers.hpp"

namespace maxmargin::token_scan {

// How a line is cut into cells.
enum class Layout : int {
    tabs,    // at each TAB
    blanks,  // at runs of white space
    conllu,  // at each TAB; comments, ranges of words (3-4) and empty nodes (5.1) are not tokens
    tagged,  // words of a line, each a token: word/TAG, split at the last slash
    joined,  // the same, but a word without a tag belongs to the token that follows
    words,   // words of a line, each a token of one cell
};

constexpr bool sentence_a_line(Layout layout) { return layout >= Layout::tagged; }

enum class Fault : int { none, room, ragged, number, untagged, weight };

// The first problem that a scan has found, and its location.
struct Problem {
    Fault fault = Fault::none;
    std::int64_t line = 0;            // from 1
    std::int64_t found = 0;           // cells of this line
    std::int64_t begin = 0, end = 0;  // the piece of text that is wrong
};

struct Sizes {
    std::int64_t tokens = 0, sentences = 0, attributes = 0;
};

// Cells of all tokens, row after row: begin and end have tokens * columns entries, lines one per token, sentences one
// more than there are sentences.
struct Cells {
    std::span<std::int64_t> begin, end, lines, sentences;
    std::int64_t columns;
};

struct Attributes {
    std::span<std::int64_t> begin, end;
    std::span<double> weight;
    std::span<std::int64_t> starts;  // one more than there are tokens
    std::span<std::int64_t> label_begin, label_end, lines, sentences;
};

inline bool blank(std::uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
inline bool digit(std::uint8_t c) { return c >= '0' && c <= '9'; }

// Calls body(number from 1, begin, end) for each line with something on it, and gap() at each blank line.
// Stops where body says false.
template <class Body, class Gap>
inline void each_line(std::span<const std::uint8_t> text, Body&& body, Gap&& gap) {
    const std::uint8_t* data = text.data();
    const auto size = static_cast<std::int64_t>(text.size());
    std::int64_t number = 0;
    for (std::int64_t at = 0; at < size;) {
        const void* found = std::memchr(data + at, '\n', static_cast<std::size_t>(size - at));
        const std::int64_t stop = found ? static_cast<const std::uint8_t*>(found) - data : size;
        std::int64_t end = stop;
        while (end > at && blank(data[end - 1])) --end;
        ++number;
        if (end == at) {
            gap();
        } else if (!body(number, at, end)) {
            return;
        }
        at = stop + 1;
    }
}

enum class Row { token, beside, neither };

// The kind of a line of CoNLL-U, by its first cell.
inline Row row_of(const std::uint8_t* data, std::int64_t begin, std::int64_t end) {
    if (data[begin] == '#') return Row::beside;
    std::int64_t at = begin;
    while (at < end && digit(data[at])) ++at;
    if (at == begin) return Row::neither;
    if (at == end || data[at] == '\t') return Row::token;
    if (data[at] != '-' && data[at] != '.') return Row::neither;
    const std::int64_t second = ++at;
    while (at < end && digit(data[at])) ++at;
    return at > second && (at == end || data[at] == '\t') ? Row::beside : Row::neither;
}

// The end of the next word from `at`, which is moved to its beginning; the end of the line where there is none.
inline std::int64_t next_word(const std::uint8_t* data, std::int64_t& at, std::int64_t end) {
    while (at < end && blank(data[at])) ++at;
    std::int64_t stop = at;
    while (stop < end && !blank(data[stop])) ++stop;
    return stop;
}

// Where the tag of a word begins: behind its last slash, with something on both sides; or -1.
inline std::int64_t tag_of(const std::uint8_t* data, std::int64_t begin, std::int64_t end) {
    std::int64_t at = end;
    while (at > begin && data[at - 1] != '/') --at;
    return at > begin + 1 && at < end ? at : -1;
}

// Tokens and sentences of a text.
inline Sizes count(std::span<const std::uint8_t> text, Layout layout) {
    Sizes sizes;
    const std::uint8_t* data = text.data();
    bool open = false;
    each_line(
        text,
        [&](std::int64_t, std::int64_t begin, std::int64_t end) {
            if (sentence_a_line(layout)) {
                const std::int64_t before = sizes.tokens;
                for (std::int64_t at = begin; at < end;) {
                    const std::int64_t stop = next_word(data, at, end);
                    // A line that ends without a tag is a fault that the scan will find: it counts as a token here.
                    if (at < stop && (layout != Layout::joined || stop == end || tag_of(data, at, stop) >= 0))
                        ++sizes.tokens;
                    at = stop;
                }
                sizes.sentences += sizes.tokens > before;
                return true;
            }
            if (layout == Layout::conllu && row_of(data, begin, end) == Row::beside) return true;
            ++sizes.tokens;
            sizes.sentences += !open;
            open = true;
            return true;
        },
        [&] { open = false; });
    return sizes;
}

// Fills what `count` has counted; a problem leaves the rest as it was.
inline Problem scan(std::span<const std::uint8_t> text, Layout layout, const Cells& cells) {
    Problem problem;
    const std::uint8_t* data = text.data();
    const auto room = static_cast<std::int64_t>(cells.lines.size());
    const auto most = static_cast<std::int64_t>(cells.sentences.size()) - 1;
    const std::int64_t width = cells.columns;
    std::int64_t token = 0, sentence = 0;
    bool open = false;
    const auto fail = [&](Fault fault, std::int64_t line, std::int64_t found, std::int64_t begin, std::int64_t end) {
        problem = {fault, line, found, begin, end};
        return false;
    };
    const auto start = [&] {
        if (sentence >= most) return false;
        cells.sentences[sentence++] = token;
        return true;
    };
    const auto of_words = [&](std::int64_t number, std::int64_t begin, std::int64_t end) {
        if (!start()) return fail(Fault::room, number, 0, begin, end);
        for (std::int64_t at = begin, first = -1; at < end;) {
            const std::int64_t stop = next_word(data, at, end);
            if (first < 0) first = at;
            const std::int64_t tag = layout == Layout::words ? stop : tag_of(data, at, stop);
            if (tag < 0 && layout == Layout::joined && stop < end) {
                at = stop;
                continue;
            }
            if (tag < 0) return fail(Fault::untagged, number, 0, at, stop);
            if (token >= room) return fail(Fault::room, number, 0, begin, end);
            cells.begin[token * width] = first;
            cells.end[token * width] = layout == Layout::words ? stop : tag - 1;
            if (layout != Layout::words) {
                cells.begin[token * width + 1] = tag;
                cells.end[token * width + 1] = stop;
            }
            cells.lines[token++] = number;
            at = stop;
            first = -1;
        }
        return true;
    };
    const auto of_cells = [&](std::int64_t number, std::int64_t begin, std::int64_t end) {
        if (layout == Layout::conllu) {
            const Row row = row_of(data, begin, end);
            if (row == Row::beside) return true;
            if (row == Row::neither) {
                const void* tab = std::memchr(data + begin, '\t', static_cast<std::size_t>(end - begin));
                return fail(Fault::number, number, 0, begin, tab ? static_cast<const std::uint8_t*>(tab) - data : end);
            }
        }
        if (token >= room || (!open && !start())) return fail(Fault::room, number, 0, begin, end);
        open = true;
        std::int64_t* first = cells.begin.data() + token * width;
        std::int64_t* last = cells.end.data() + token * width;
        std::int64_t found = 0;
        if (layout == Layout::blanks) {
            for (std::int64_t at = begin; at < end; ++found) {
                const std::int64_t stop = next_word(data, at, end);
                if (found < width) {
                    first[found] = at;
                    last[found] = stop;
                }
                at = stop;
            }
        } else {
            std::int64_t from = begin;
            for (std::int64_t at = begin; at <= end; ++at)
                if (at == end || data[at] == '\t') {
                    if (found < width) {
                        first[found] = from;
                        last[found] = at;
                    }
                    ++found;
                    from = at + 1;
                }
        }
        if (found != width) return fail(Fault::ragged, number, found, begin, end);
        cells.lines[token++] = number;
        return true;
    };
    if (sentence_a_line(layout)) {
        each_line(text, of_words, [] {});
    } else {
        each_line(text, of_cells, [&] { open = false; });
    }
    if (problem.fault == Fault::none) cells.sentences[sentence] = token;
    return problem;
}

// ---- CRFsuite: label TAB attribute[:weight] TAB ..., with \: and \\ in names.

inline Sizes count_attributes(std::span<const std::uint8_t> text) {
    Sizes sizes;
    bool open = false;
    const std::uint8_t* data = text.data();
    each_line(
        text,
        [&](std::int64_t, std::int64_t begin, std::int64_t end) {
            ++sizes.tokens;
            sizes.sentences += !open;
            open = true;
            sizes.attributes += std::count(data + begin, data + end, std::uint8_t{'\t'});
            return true;
        },
        [&] { open = false; });
    return sizes;
}

// The end of an escaped name that begins at `at`, written without its escapes to the same place; `at` is moved behind
// it in the text: to its colon if `colon` counts, or to `end`.
inline std::int64_t unescape(std::span<std::uint8_t> text, std::int64_t& at, std::int64_t end, bool colon) {
    std::int64_t to = at;
    for (; at < end && !(colon && text[at] == ':'); ++at) {
        if (text[at] == '\\' && at + 1 < end && (text[at + 1] == ':' || text[at + 1] == '\\')) ++at;
        text[to++] = text[at];
    }
    return to;
}

// A finite number that takes up the whole of a piece of text; no text at all stands for 1, as in CRFsuite.
inline bool number_of(const std::uint8_t* begin, const std::uint8_t* end, double& value) {
    while (begin < end && blank(*begin)) ++begin;
    while (begin < end && blank(end[-1])) --end;
    value = 1.0;
    if (begin == end) return true;
    if (*begin == '+' && end - begin > 1 && begin[1] != '-') ++begin;
    return strings::parse_number(reinterpret_cast<const char*>(begin), reinterpret_cast<const char*>(end), value);
}

// Writes names without their escapes into the text itself. Room as `count_attributes` says: empty fields, which are not
// attributes, leave some of it unused; the last entry of `starts` tells how much is in use.
inline Problem scan_attributes(std::span<std::uint8_t> text, const Attributes& out) {
    Problem problem;
    const auto room = static_cast<std::int64_t>(out.lines.size());
    const auto most = static_cast<std::int64_t>(out.sentences.size()) - 1;
    const auto places = static_cast<std::int64_t>(out.begin.size());
    std::int64_t token = 0, sentence = 0, attribute = 0;
    bool open = false;
    each_line(
        text,
        [&](std::int64_t number, std::int64_t begin, std::int64_t end) {
            if (token >= room || (!open && sentence >= most)) {
                problem = {Fault::room, number, 0, begin, end};
                return false;
            }
            if (!open) out.sentences[sentence++] = token;
            open = true;
            out.starts[token] = attribute;
            const auto field_end = [&](std::int64_t at) {
                const void* tab = std::memchr(text.data() + at, '\t', static_cast<std::size_t>(end - at));
                return tab ? static_cast<const std::uint8_t*>(tab) - text.data() : end;
            };
            std::int64_t at = begin, stop = field_end(begin);
            out.label_begin[token] = at;
            out.label_end[token] = unescape(text, at, stop, false);
            while (stop < end) {
                const std::int64_t from = stop + 1;
                stop = field_end(from);
                if (from == stop) continue;
                if (attribute >= places) {
                    problem = {Fault::room, number, 0, from, stop};
                    return false;
                }
                at = from;
                out.begin[attribute] = from;
                out.end[attribute] = unescape(text, at, stop, true);
                out.weight[attribute] = 1.0;
                if (at < stop && !number_of(text.data() + at + 1, text.data() + stop, out.weight[attribute])) {
                    problem = {Fault::weight, number, 0, at + 1, stop};
                    return false;
                }
                ++attribute;
            }
            out.lines[token++] = number;
            return true;
        },
        [&] { open = false; });
    if (problem.fault == Fault::none) {
        out.starts[token] = attribute;
        out.sentences[sentence] = token;
    }
    return problem;
}

// ---- writing

// The longest that a number is written: a sign, nine digits with a point, an exponent.
constexpr std::int64_t kNumber = 24;

struct Places {
    std::span<const std::int64_t> begin, end;  // sorted, apart
    std::span<const std::int32_t> code;        // which name takes the place of each; -1: none
    std::span<const std::int64_t> names;       // where each name begins in `letters`, and where the last ends
    std::span<const std::uint8_t> letters;
    std::span<const double> number;        // written behind the name; NaN: none; or empty
    std::span<const std::uint8_t> before;  // text before a number
};

// The text with places replaced, written to `out`, which has room for it: returns its length.
inline std::int64_t splice(std::span<const std::uint8_t> text, const Places& places, int digits, std::uint8_t* out) {
    std::uint8_t* to = out;
    std::int64_t from = 0;
    const auto copy = [&](const std::uint8_t* data, std::int64_t size) {
        if (size > 0) std::memcpy(to, data, static_cast<std::size_t>(size));
        to += size;
    };
    for (std::size_t i = 0; i < places.begin.size(); ++i) {
        copy(text.data() + from, places.begin[i] - from);
        from = places.end[i];
        if (const std::int32_t code = places.code[i]; code >= 0)
            copy(places.letters.data() + places.names[code], places.names[code + 1] - places.names[code]);
        if (!places.number.empty() && !std::isnan(places.number[i])) {
            copy(places.before.data(), static_cast<std::int64_t>(places.before.size()));
            auto* first = reinterpret_cast<char*>(to);
            to += strings::write_number(first, first + kNumber, places.number[i], digits) - first;
        }
    }
    copy(text.data() + from, static_cast<std::int64_t>(text.size()) - from);
    return to - out;
}

}  // namespace maxmargin::token_scan
