#include "arrays.hpp"
#include "maxmargin/segments/system.hpp"
#include "structures/deduction.hpp"

namespace maxmargin {

namespace {

using Checked = DeductionBatch<segments::Batch>;

void create(Checked* self, In<std::int64_t> lengths, std::int64_t longest, In<std::uint8_t> legal,
            std::int64_t n_labels) {
    checked_count("longest", longest, 1, most_claimed);
    checked_count("n_labels", n_labels, 1, most_claimed);
    require(
        static_cast<std::int64_t>(legal.size()) == checked_product({n_labels, n_labels}, "there are too many labels"),
        "legal must have one entry per pair of labels");
    std::int64_t total = 0;
    for (const std::int64_t length : view(lengths)) {
        require(length >= 0, "lengths must not be negative");
        const std::int64_t parts =
            checked_product({length, std::min(longest, std::max<std::int64_t>(length, 1)), n_labels},
                            "a sequence has too many segments");
        total = checked_sum({total, parts, checked_product({n_labels, n_labels}, "there are too many labels")},
                            "the batch has too many segments");
    }
    new (self) Checked(segments::Batch(copied(lengths), longest, copied(legal), n_labels));
}

}  // namespace

void bind_segments(nb::module_& module) {
    bind_deduction<segments::Batch>(module, "SegmentsBatch", "SegmentsOracle")
        .def("__init__", &create, "lengths"_array, "longest"_a, "legal"_array, "n_labels"_a);
}

}  // namespace maxmargin
