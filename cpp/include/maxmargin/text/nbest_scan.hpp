// N-best lists as decoders write them, a hypothesis a line:
//
//     id ||| text ||| name= value value name= value ... ||| total ||| more
//
// A separator is the word |||. The total and what follows may be absent. A name is a word that ends in = or, as in old
// files, in a colon, before its values; or it is joined to its only value: name=value. A name has equally many values
// in all lines, and each of them is a column. White space is that of token_scan.hpp; blank lines are skipped.
//
// One pass, O(bytes) with a look-up of each name.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "maxmargin/text/string_table.hpp"
#include "maxmargin/text/token_scan.hpp"

namespace maxmargin::nbest_scan {

enum class Fault : int {
    none,
    fields,   // fewer than three
    id,       // nothing before the first separator, or more than one word
    unnamed,  // a value before the first name
    number,   // not a finite number
    no_value,
    width,  // another number of values than in the line where the name came first
    twice,  // the name is in the line already
    total,  // not one finite number
};

// The first problem of a file, and its location.
struct Problem {
    Fault fault = Fault::none;
    std::int64_t line = 0;            // from 1
    std::int64_t begin = 0, end = 0;  // the piece of text that is wrong
    std::int64_t found = 0, wanted = 0;
};

// Places in the text of each hypothesis, and its values: those of hypothesis i are starts[i] .. starts[i + 1] - 1.
struct Lists {
    std::vector<std::int64_t> id_begin, id_end, text_begin, text_end, more_begin, more_end, lines;
    std::vector<double> total;  // NaN where there is none
    std::vector<std::int64_t> starts{0};
    std::vector<std::int32_t> columns;
    std::vector<double> values;
    std::vector<std::int64_t> width;  // values of each name, in the order in which names first appear
    Problem problem;
};

// A finite number that takes up the whole of a piece of text.
inline bool finite(const std::uint8_t* begin, const std::uint8_t* end, double& value) {
    while (begin < end && token_scan::blank(*begin)) ++begin;
    return begin < end && token_scan::number_of(begin, end, value);
}

// Writes the numbers between given places of a text, and returns the place of the first that is none; -1 if all are.
inline std::int64_t numbers(std::span<const std::uint8_t> text, std::span<const std::int64_t> begin,
                            std::span<const std::int64_t> end, std::span<double> out) {
    for (std::size_t i = 0; i < begin.size(); ++i)
        if (!finite(text.data() + begin[i], text.data() + end[i], out[i])) return static_cast<std::int64_t>(i);
    return -1;
}

// Where the next separator begins, or `end`.
inline std::int64_t separator(const std::uint8_t* data, std::int64_t from, std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = from; at + 3 <= end; ++at) {
        const void* found = std::memchr(data + at, '|', static_cast<std::size_t>(end - at));
        if (!found) return end;
        at = static_cast<const std::uint8_t*>(found) - data;
        if (at + 3 > end) return end;
        if (data[at + 1] == '|' && data[at + 2] == '|' && (at == begin || token_scan::blank(data[at - 1])) &&
            (at + 3 == end || token_scan::blank(data[at + 3])))
            return at;
    }
    return end;
}

class Scanner {
   public:
    Scanner(std::span<const std::uint8_t> text, strings::StringTable& names) : data_(text.data()), names_(names) {
        token_scan::each_line(
            text,
            [&](std::int64_t number, std::int64_t begin, std::int64_t end) {
                line_ = number;
                return line(begin, end);
            },
            [] {});
    }

    Lists lists;

   private:
    const std::uint8_t* data_;
    strings::StringTable& names_;
    std::vector<std::int64_t> first_, seen_;  // of each name: its first column, the line where it was last
    std::int64_t line_ = 0, columns_ = 0;

    bool fail(Fault fault, std::int64_t begin, std::int64_t end, std::int64_t found = 0, std::int64_t wanted = 0) {
        lists.problem = {fault, line_, begin, end, found, wanted};
        return false;
    }

    void trim(std::int64_t& begin, std::int64_t& end) const {
        while (begin < end && token_scan::blank(data_[begin])) ++begin;
        while (begin < end && token_scan::blank(data_[end - 1])) --end;
    }

    bool line(std::int64_t begin, std::int64_t end) {
        constexpr int kFields = 5;  // id, text, features, total, more
        std::int64_t from[kFields], to[kFields];
        int fields = 0;
        for (std::int64_t at = begin; fields < kFields; ++fields) {
            const std::int64_t stop = separator(data_, at, begin, end);
            from[fields] = at;
            to[fields] = stop;
            trim(from[fields], to[fields]);
            if (stop == end) {
                ++fields;
                break;
            }
            at = stop + 3;
        }
        if (fields < 3) return fail(Fault::fields, begin, end, fields);
        std::int64_t at = from[0];
        if (from[0] == to[0] || token_scan::next_word(data_, at, to[0]) != to[0])
            return fail(Fault::id, from[0], to[0]);
        for (int field = fields; field < kFields; ++field) from[field] = to[field] = end;
        double total = std::numeric_limits<double>::quiet_NaN();
        if (from[3] < to[3] && !finite(data_ + from[3], data_ + to[3], total))
            return fail(Fault::total, from[3], to[3]);
        if (!features(from[2], to[2])) return false;
        lists.id_begin.push_back(from[0]);
        lists.id_end.push_back(to[0]);
        lists.text_begin.push_back(from[1]);
        lists.text_end.push_back(to[1]);
        lists.more_begin.push_back(from[4]);
        lists.more_end.push_back(to[4]);
        lists.total.push_back(total);
        lists.lines.push_back(line_);
        lists.starts.push_back(static_cast<std::int64_t>(lists.values.size()));
        return true;
    }

    bool features(std::int64_t begin, std::int64_t end) {
        std::int64_t name_begin = -1, name_end = -1;
        std::size_t first = lists.values.size();
        const auto close = [&] { return name_begin < 0 || named(name_begin, name_end, first); };
        for (std::int64_t at = begin; at < end;) {
            const std::int64_t stop = token_scan::next_word(data_, at, end);
            double value;
            if (stop - at > 1 && (data_[stop - 1] == '=' || data_[stop - 1] == ':')) {
                if (!close()) return false;
                name_begin = at;
                name_end = stop - 1;
                first = lists.values.size();
            } else if (finite(data_ + at, data_ + stop, value)) {
                if (name_begin < 0) return fail(Fault::unnamed, at, stop);
                lists.values.push_back(value);
            } else {
                std::int64_t equals = stop - 1;
                while (equals > at && data_[equals] != '=') --equals;
                if (equals == at || !finite(data_ + equals + 1, data_ + stop, value))
                    return fail(Fault::number, at, stop);
                if (!close()) return false;
                first = lists.values.size();
                lists.values.push_back(value);
                if (!named(at, equals, first)) return false;
                name_begin = -1;
            }
            at = stop;
        }
        return close();
    }

    // Gives the values from `first` on their columns.
    bool named(std::int64_t begin, std::int64_t end, std::size_t first) {
        const auto found = static_cast<std::int64_t>(lists.values.size() - first);
        if (found == 0) return fail(Fault::no_value, begin, end);
        const auto name = static_cast<std::size_t>(names_.add(data_ + begin, static_cast<std::size_t>(end - begin)));
        if (name == first_.size()) {
            if (columns_ + found > std::numeric_limits<std::int32_t>::max())
                throw std::length_error("more than 2^31 - 1 different features");
            first_.push_back(columns_);
            seen_.push_back(0);
            lists.width.push_back(found);
            columns_ += found;
        }
        if (lists.width[name] != found) return fail(Fault::width, begin, end, found, lists.width[name]);
        if (seen_[name] == line_) return fail(Fault::twice, begin, end);
        seen_[name] = line_;
        for (std::int64_t k = 0; k < found; ++k) lists.columns.push_back(static_cast<std::int32_t>(first_[name] + k));
        return true;
    }
};

}  // namespace maxmargin::nbest_scan
