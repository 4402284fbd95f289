#include "maxmargin/reranking/ngram_table.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "maxmargin/reranking/overlap.hpp"
#include "maxmargin/reranking/varying.hpp"
#include "owned.hpp"

namespace maxmargin {

namespace {

using reranking::NgramTable;

// The table whose n-gram i extends prefixes[i], which must come before it, by words[i].
std::unique_ptr<NgramTable> from_pairs(const In<std::int32_t>& prefixes, const In<std::int32_t>& words) {
    require(prefixes.size() == words.size(), "there must be a prefix for each word");
    auto table = std::make_unique<NgramTable>();
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::int32_t prefix = prefixes.data()[i], word = words.data()[i];
        require(prefix >= NgramTable::root && prefix < static_cast<std::int64_t>(i) && word >= 0,
                "an n-gram must extend one before it by a word");
        require(table->add(prefix, word) == static_cast<std::int64_t>(i), "an n-gram comes twice");
    }
    return table;
}

nb::tuple count(NgramTable& table, const In<std::int64_t>& starts, const In<std::int32_t>& words, std::int64_t order,
                bool grow) {
    require(rises_to(view(starts), words.size()), "starts must rise from 0 to the number of words");
    require(order >= 1, "the order must be at least 1");
    std::vector<std::int64_t> row_starts(starts.size(), 0);
    Growing<std::int32_t> columns;
    Growing<double> counts;
    {
        const NoGil unlocked;
        std::vector<std::int32_t> scratch;
        const auto text = view(words);
        for (std::size_t i = 0; i + 1 < row_starts.size(); ++i) {
            const std::int64_t begin = starts.data()[i], end = starts.data()[i + 1];
            table.count(text.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)), order,
                        grow, scratch, columns, counts);
            row_starts[i + 1] = static_cast<std::int64_t>(columns.size());
        }
    }
    return nb::make_tuple(owned(std::move(row_starts)), owned(std::move(columns)), owned(std::move(counts)));
}

nb::tuple pairs(const NgramTable& table) {
    const auto n = static_cast<std::size_t>(table.size());
    std::vector<std::int32_t> prefixes(table.prefixes(), table.prefixes() + n), words(table.words(), table.words() + n);
    return nb::make_tuple(owned(std::move(prefixes)), owned(std::move(words)));
}

void varying(const In<std::int64_t>& lists, const In<std::int64_t>& starts, const In<std::int32_t>& columns,
             const In<double>& values, Out<std::int32_t> out) {
    require(starts.size() >= 1 && rises_to(view(lists), starts.size() - 1), "lists must rise to the number of rows");
    require(rises_to(view(starts), columns.size()) && values.size() == columns.size(), "rows do not fit");
    require(within(view(columns), 0, static_cast<std::int64_t>(out.size())), "a column is out of range");
    const NoGil unlocked;
    reranking::varying_lists(view(lists), view(starts), view(columns), view(values), view(out));
}

void nearest(const In<std::int64_t>& lists, const In<std::int64_t>& starts, const In<std::int32_t>& columns,
             const In<double>& counts, const In<std::uint8_t>& good, Out<std::int64_t> out, Threads threads) {
    require(starts.size() >= 1 && rises_to(view(lists), starts.size() - 1), "lists must rise to the number of rows");
    require(rises_to(view(starts), columns.size()) && counts.size() == columns.size(), "rows do not fit");
    require(good.size() == starts.size() - 1 && out.size() == good.size(), "one mark and one number per row");
    for (std::size_t i = 0; i + 1 < lists.size(); ++i)
        require(std::any_of(good.data() + lists.data()[i], good.data() + lists.data()[i + 1],
                            [](std::uint8_t mark) { return mark != 0; }),
                "every list must have a good row");
    const NoGil unlocked;
    reranking::nearest_by_overlap(view(lists), {view(starts), view(columns), view(counts)}, view(good), view(out),
                                  threads);
}

}  // namespace

void bind_ngram_table(nb::module_& module) {
    nb::class_<NgramTable>(module, "NgramTable")
        .def(nb::init<>())
        .def_static("from_pairs", &from_pairs, "prefixes"_array, "words"_array)
        .def("__len__", &NgramTable::size)
        .def("count", &count, "starts"_array, "words"_array, "order"_a, "grow"_a,
             "Starts, columns and counts of the n-grams of each hypothesis, as the arrays of a CSR matrix.")
        .def(
            "_probes",
            [](const NgramTable& self) {
                const hashing::Probes found = self.probes();
                return std::pair(found.total, found.longest);
            },
            "For tests: slots looked at to find every n-gram, in all and at most for one.")
        .def("pairs", &pairs, "The prefix (-1 for none) and the last word of each n-gram.");
    module.def("varying_lists", apart(&varying), "lists"_array, "starts"_array, "columns"_array, "values"_array,
               "out"_array, "For each column, the number of lists in which not all hypotheses have the same value.");
    module.def("nearest_by_overlap", apart(&nearest), "lists"_array, "starts"_array, "columns"_array, "counts"_array,
               "good"_array, "out"_array, "threads"_a,
               "For each hypothesis the good one of its list that shares most n-grams with it.");
}

}  // namespace maxmargin
