#include "maxmargin/text/nbest_scan.hpp"

#include <utility>

#include "arrays.hpp"
#include "owned.hpp"

namespace maxmargin {

namespace {

using nbest_scan::Lists;
using nbest_scan::Problem;
using nbest_scan::Scanner;
using strings::StringTable;

nb::tuple scan(const In<std::uint8_t>& text, StringTable& names) {
    require(text.ndim() == 1, "text must be a vector");
    Lists lists;
    bool empty = false;
    {
        const NoGil release;
        names.locked(true, [&] {
            empty = names.size() == 0;
            if (empty) lists = std::move(Scanner(view(text), names).lists);
        });
    }
    require(empty, "names must be an empty table");
    const Problem& bad = lists.problem;
    return nb::make_tuple(
        nb::make_tuple(static_cast<int>(bad.fault), bad.line, bad.begin, bad.end, bad.found, bad.wanted),
        owned(std::move(lists.id_begin)), owned(std::move(lists.id_end)), owned(std::move(lists.text_begin)),
        owned(std::move(lists.text_end)), owned(std::move(lists.more_begin)), owned(std::move(lists.more_end)),
        owned(std::move(lists.lines)), owned(std::move(lists.total)), owned(std::move(lists.starts)),
        owned(std::move(lists.columns)), owned(std::move(lists.values)), owned(std::move(lists.width)));
}

std::int64_t numbers(const In<std::uint8_t>& text, const In<std::int64_t>& begin, const In<std::int64_t>& end,
                     Out<double> out) {
    const auto first = view(begin), last = view(end);
    require(first.size() == last.size() && first.size() == out.size(), "begin, end and out must be equally long");
    const auto size = static_cast<std::int64_t>(text.size());
    for (std::size_t i = 0; i < first.size(); ++i)
        require(first[i] >= 0 && first[i] <= last[i] && last[i] <= size, "a number lies outside of the text");
    return unlocked([&] { return nbest_scan::numbers(view(text), first, last, view(out)); });
}

}  // namespace

void bind_nbest_scan(nb::module_& module) {
    module.def(
        "nbest_scan", &scan, "text"_array, "names"_a,
        "Find the hypotheses of Moses lists. Returns (fault, line, begin, end, found, wanted), then begin and end "
        "of ids, texts and of what follows the totals, lines, totals, starts, columns and values of features, and "
        "the number of values of each name, which are added to an empty table.");
    module.def("text_numbers", apart(&numbers), "text"_array, "begin"_array, "end"_array, "out"_array,
               "Write the numbers text[begin[i]:end[i]]. Returns the first i that is not a finite number, or -1.");
}

}  // namespace maxmargin
