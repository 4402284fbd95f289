#include "arrays.hpp"
#include "maxmargin/segments/max_marginals.hpp"
#include "structures/deduction.hpp"

namespace maxmargin {

namespace {

using Checked = DeductionBatch<segments::Batch>;

// states: (4, K), of the first, inside, last and single token of a segment of each label.
void create(Checked* self, In<std::int64_t> lengths, std::int64_t n_states, In<std::int32_t> states,
            In<std::int64_t> longest, In<std::uint8_t> legal, In<std::uint8_t> begin, In<std::uint8_t> end) {
    const auto k = static_cast<std::int64_t>(longest.size());
    const std::int64_t square = checked_product({checked_count("n_labels", k, 1, 1 << 15), k}, "too many labels");
    checked_count("n_states", n_states, 1, most_claimed);
    require(static_cast<std::int64_t>(states.size()) == segments::n_roles * k && within(view(states), -1, n_states),
            "states must have four entries per label, each a state or -1");
    require(static_cast<std::int64_t>(legal.size()) == square && begin.size() == longest.size() &&
                end.size() == longest.size(),
            "legal must have one entry per pair of labels, begin and end one per label");
    require(within(view(longest), 1, most_claimed), "longest must be at least 1 and below 2^30");
    const std::int64_t most = *std::max_element(longest.data(), longest.data() + k);
    checked_product({most, k}, "segments are too long for so many labels");
    std::int64_t total = 0;
    for (const std::int64_t length : view(lengths)) {
        require(length >= 0, "lengths must not be negative");
        const std::int64_t reach = std::min(most, length) + 1;
        checked_product({2, length, reach, k}, "a sequence has too many segments");
        total = checked_sum({total, checked_product({length, n_states}, "a sequence has too many states"), square,
                             checked_product({length, reach, k}, "a sequence has too many segments")},
                            "the batch has too many segments");
    }
    segments::Rules rules{
        k, n_states, most, copied(states), copied(longest), copied(legal), copied(begin), copied(end), {}, {}, {}, {}};
    new (self) Checked(segments::Batch(copied(lengths), std::move(rules)));
}

void require_scores(const Checked& self, const In<double>& scores) {
    require(scores.size() == static_cast<std::size_t>(self.batch().layout().offsets.back()),
            "vectors must have one entry per part");
}

std::size_t n_variables(const Checked& self) {  // states of all tokens
    const hull::Layout layout = self.batch().layout();
    return static_cast<std::size_t>(layout.begin(0, layout.n_examples));
}

void states(const Checked& self, In<double> scores, Out<std::int32_t> states, Out<double> value,
            Out<std::int8_t> status, Threads threads) {
    require_scores(self, scores);
    const auto n = static_cast<std::size_t>(self.batch().size());
    require(states.size() * static_cast<std::size_t>(self.batch().rules().n_states) == n_variables(self) &&
                value.size() == n && status.size() == n,
            "outputs do not fit the batch");
    const NoGil release;
    segments::states(self.batch(), view(scores), view(states), view(value), view(status), threads);
}

void max_marginals(const Checked& self, In<double> scores, Out<double> out, Threads threads) {
    require_scores(self, scores);
    require(out.size() == n_variables(self), "outputs do not fit the batch");
    const NoGil release;
    segments::max_marginals(self.batch(), view(scores), view(out), threads);
}

}  // namespace

void bind_segments(nb::module_& module) {
    bind_deduction<segments::Batch>(module, "SegmentsBatch", "SegmentsOracle")
        .def("__init__", &create, "lengths"_array, "n_states"_a, "states"_array, "longest"_array, "legal"_array,
             "begin"_array, "end"_array)
        .def("states", apart(&states), "scores"_array, "states"_array, "value"_array, "status"_array, "threads"_a)
        .def("max_marginals", apart(&max_marginals), "scores"_array, "out"_array, "threads"_a);
}

}  // namespace maxmargin
