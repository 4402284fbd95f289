#include "arrays.hpp"
#include "maxmargin/edits/scoring.hpp"
#include "maxmargin/edits/system.hpp"
#include "structures/deduction.hpp"

namespace maxmargin {

namespace {

using Checked = DeductionBatch<edits::Batch>;

void create(Checked* self, In<std::int64_t> first, In<std::int64_t> second, bool affine, bool nonmatch) {
    require(first.size() == second.size(), "both sequences of every example need a length");
    const auto n = view(first), m = view(second);
    constexpr const char* message = "sequences are too long";
    std::int64_t total = 0;
    for (std::size_t i = 0; i < n.size(); ++i) {
        require(n[i] >= 0 && m[i] >= 0 && n[i] < edits::Batch::most_items && m[i] < edits::Batch::most_items, message);
        checked_product({3, n[i] + 1, m[i] + 1}, message, edits::Batch::most_items - 1);
        total = checked_sum({total, n[i] * m[i], 2 * (n[i] + m[i]), 1}, message);
    }
    new (self) Checked(edits::Batch(copied(first), copied(second), affine, nonmatch));
}

void edit_scores(In<std::int64_t> offsets, In<std::int32_t> rows, In<std::int32_t> identities, std::int64_t known,
                 In<double> pairs, In<double> equal, In<double> gap_before, In<double> gap_after,
                 In<double> open_before, In<double> open_after, In<double> ends, In<std::int64_t> first,
                 In<std::int64_t> second, Out<double> scores, Threads threads) {
    require(rises_to(view(offsets), rows.size()), "offsets must rise from 0 to the number of symbols");
    const auto R = static_cast<std::int64_t>(equal.size());
    require(R >= 1 && R <= 1 << 15, "tables must have between 1 and 32768 rows");
    require(known >= 0 && known <= R, "known must lie within the rows of the tables");
    require(identities.size() == rows.size(), "every symbol needs an identity");
    require(within(view(rows), 0, R), "a symbol has a row beyond the tables");
    const auto square = static_cast<std::size_t>(R * R);
    require(pairs.size() == square, "the table of pairs must be square");
    for (const In<double>& table : {gap_before, gap_after, open_before, open_after})
        require(table.size() == 2 * square, "tables of gaps must have two squares");
    require(ends.size() == 4, "four scores of ends");
    for (const In<double>& table : {pairs, equal, gap_before, gap_after, open_before, open_after, ends})
        require(all_finite(view(table)), "scores must be finite");
    require(first.size() == second.size() && first.size() == scores.size(), "one score for every pair of sequences");
    const auto count = static_cast<std::int64_t>(offsets.size()) - 1;
    require(within(view(first), 0, count) && within(view(second), 0, count), "a pair has a sequence out of range");
    const edits::Sequences all{view(offsets), view(rows), view(identities)};
    for (std::int64_t s = 0; s < count; ++s)
        require(all.length(s) <= 1 << 16, "a sequence is longer than 65536 symbols");
    const edits::Tables tables{R,
                               known,
                               view(pairs),
                               view(equal),
                               view(gap_before),
                               view(gap_after),
                               view(open_before),
                               view(open_after),
                               {ends.data()[0], ends.data()[1], ends.data()[2], ends.data()[3]}};
    const NoGil release;
    edits::best_scores(all, tables, view(first), view(second), view(scores), threads);
}

}  // namespace

void bind_edits(nb::module_& module) {
    bind_deduction<edits::Batch>(module, "EditsBatch", "EditsOracle")
        .def("__init__", &create, "first"_array, "second"_array, "affine"_a, "nonmatch"_a);
    module.def("edit_scores", apart(&edit_scores), "offsets"_array, "rows"_array, "identities"_array, "known"_a,
               "pairs"_array, "equal"_array, "gap_before"_array, "gap_after"_array, "open_before"_array,
               "open_after"_array, "ends"_array, "first"_array, "second"_array, "scores"_array, "threads"_a);
}

}  // namespace maxmargin
