#include "maxmargin/text/string_table.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "arrays.hpp"
#include "owned.hpp"

namespace maxmargin {

namespace {

using strings::Byte;
using strings::StringTable;

std::unique_ptr<StringTable> from_strings(const In<Byte>& text, const In<std::int64_t>& ends) {
    require(text.ndim() == 1 && ends.ndim() == 1, "text and ends must be vectors");
    const auto all = view(ends);
    const auto size = static_cast<std::int64_t>(text.size());
    require(std::ranges::is_sorted(all) && (all.empty() ? size == 0 : all.front() >= 0 && all.back() == size),
            "ends must not decrease, and end where the text does");
    auto table = std::make_unique<StringTable>();
    const bool different = unlocked([&] {
        table->reserve(static_cast<std::int64_t>(all.size()), size);
        std::int64_t begin = 0;
        for (const std::int64_t end : all) {
            table->add(text.data() + begin, static_cast<std::size_t>(end - begin));
            begin = end;
        }
        return table->size() == static_cast<std::int64_t>(all.size());
    });
    require(different, "strings must be different from each other");
    return table;
}

void number(StringTable& table, const In<Byte>& buffer, const In<std::int64_t>& begin, const In<std::int64_t>& end,
            bool grow, Out<std::int32_t> out) {
    require(buffer.ndim() == 1 && begin.ndim() == 1 && end.ndim() == 1, "buffer, begin and end must be vectors");
    require(begin.size() == end.size() && begin.size() == out.size(), "begin, end and out must be equally long");
    const auto first = view(begin), last = view(end);
    const auto size = static_cast<std::int64_t>(buffer.size());
    for (std::size_t i = 0; i < first.size(); ++i)
        require(first[i] >= 0 && first[i] <= last[i] && last[i] <= size, "a string lies outside of the buffer");
    const NoGil release;
    table.locked(grow, [&] { table.number(buffer.data(), first, last, grow, out.data()); });
}

nb::tuple texts(const StringTable& table) {
    std::vector<Byte> text;
    std::vector<std::int64_t> ends;
    {
        const NoGil unlocked;
        const std::shared_lock lock(table.mutex);
        text.reserve(static_cast<std::size_t>(table.bytes()));
        ends.reserve(static_cast<std::size_t>(table.size()));
        for (std::int64_t i = 0; i < table.size(); ++i) {
            const auto one = table.text(i);
            text.insert(text.end(), one.begin(), one.end());
            ends.push_back(static_cast<std::int64_t>(text.size()));
        }
    }
    return nb::make_tuple(owned(std::move(text)), owned(std::move(ends)));
}

nb::bytes text_of(const StringTable& table, std::int64_t number) {
    const std::shared_lock lock(table.mutex);
    if (number < 0 || number >= table.size()) throw nb::index_error("no string has this number");
    const auto one = table.text(number);
    return nb::bytes(reinterpret_cast<const char*>(one.data()), one.size());
}

std::int32_t find(const StringTable& table, const nb::bytes& text) {
    const std::shared_lock lock(table.mutex);
    return table.find(reinterpret_cast<const Byte*>(text.c_str()), text.size());
}

std::unique_ptr<StringTable> only(const StringTable& table, const In<bool>& keep) {
    const auto wanted = bytes_of(keep);
    require(static_cast<std::int64_t>(wanted.size()) == table.size(), "keep must have one entry per string");
    auto found = std::make_unique<StringTable>();
    const NoGil unlocked;
    const std::shared_lock lock(table.mutex);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (!wanted[i]) continue;
        const auto one = table.text(static_cast<std::int64_t>(i));
        found->add(one.data(), one.size());
    }
    return found;
}

void truncate(StringTable& table, std::int64_t count) {
    require(count >= 0, "count must not be negative");
    const std::unique_lock lock(table.mutex);
    table.truncate(count);
}

std::int64_t size_of(const StringTable& table) {
    const std::shared_lock lock(table.mutex);
    return table.size();
}

}  // namespace

void bind_string_table(nb::module_& module) {
    nb::class_<StringTable>(module, "StringTable", "Byte strings numbered in order of first appearance.")
        .def(nb::init<>())
        .def_static("from_strings", &from_strings, "text"_array, "ends"_array,
                    "The table of different strings that stand one after the other in text.")
        .def("__len__", &size_of)
        .def("number", apart(&number), "buffer"_array, "begin"_array, "end"_array, "grow"_a, "out"_array,
             "Write the numbers of buffer[begin[i]:end[i]]; unknown ones are added, or get -1.")
        .def("strings", &texts, "All strings one after the other, and where each ends.")
        .def("text", &text_of, "number"_a)
        .def("find", &find, "text"_a, "The number of a string, or -1.")
        .def("only", &only, "keep"_array, "The table of those to keep, renumbered in order.")
        .def(
            "_probes",
            [](const StringTable& self) {
                const hashing::Probes found = self.probes();
                return std::pair(found.total, found.longest);
            },
            "For tests: slots looked at to find every string, in all and at most for one.")
        .def("truncate", &truncate, "count"_a, "Forget all strings but the first count.");
}

}  // namespace maxmargin
