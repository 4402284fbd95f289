#include "arrays.hpp"
#include "maxmargin/reranking/online.hpp"

namespace maxmargin {

namespace {

using reranking::FeatureRows;
using reranking::Formula;
using reranking::Gains;
using reranking::OnlineSums;
using reranking::Quality;

template <class Index>
std::int64_t run(const In<Index>& starts, const In<Index>& columns, const In<double>& values,
                 const In<std::int64_t>& offsets, const In<std::int64_t>& order, const In<double>& gains,
                 const In<double>& statistics, int formula, double beta, double decay, Out<double> background, double C,
                 const In<std::int8_t>& signs, Out<double> sum, Out<double> late, double time) {
    const auto bounds = view(offsets);
    const auto d = static_cast<std::int64_t>(sum.size());
    require(!bounds.empty() && bounds.back() >= 0, "offsets must rise from 0 to the number of rows");
    const auto n = static_cast<std::size_t>(bounds.back());
    require(rises_to(bounds, n), "offsets must rise from 0 to the number of rows");
    bool full = true;
    for (std::size_t i = 1; i < bounds.size(); ++i) full &= bounds[i - 1] < bounds[i];
    require(full, "every list must have a hypothesis");
    require(within(view(order), 0, static_cast<std::int64_t>(bounds.size()) - 1), "order must have numbers of lists");
    require(late.size() == sum.size() && signs.size() == sum.size(), "sums and signs must be equally long");
    if (starts.size() == 0) {
        const std::int64_t all =
            checked_product({bounds.back(), d}, "there are too many rows", std::numeric_limits<std::int64_t>::max());
        require(static_cast<std::int64_t>(values.size()) == all, "dense rows must have a value per weight");
    } else {
        require(starts.size() == n + 1 && rises_to(view(starts), columns.size()) && columns.size() == values.size(),
                "starts, columns and values do not fit together");
        require(within(view(columns), 0, d), "columns must be numbers of weights");
    }
    Quality quality{Formula::mean, 0, 1.0};
    if (gains.size() == 0 && n > 0) {
        require(statistics.ndim() == 2 && statistics.shape(0) == n, "every hypothesis must have statistics");
        const auto k = static_cast<std::int64_t>(statistics.shape(1));
        require(Quality::fits(formula, k), "the formula does not take so many statistics");
        require(background.size() == static_cast<std::size_t>(k) + 1, "the background must have k + 1 entries");
        quality = {static_cast<Formula>(formula), k, beta};
    } else {
        require(gains.size() == n, "every hypothesis must have a gain");
    }
    require(C >= 0.0, "C must not be negative");
    const NoGil unlocked;
    const FeatureRows<Index> rows{view(starts), view(columns), view(values), d};
    Gains worth(view(gains), view(statistics), quality, view(background), decay);
    OnlineSums sums{view(sum), view(late), time, view(signs)};
    return reranking::online_pass(rows, bounds, view(order), C, worth, sums);
}

template <class Index>
void bind(nb::module_& module) {
    module.def("online_list_pass", apart(&run<Index>), "starts"_array, "columns"_array, "values"_array, "offsets"_array,
               "order"_array, "gains"_array, "statistics"_array, "formula"_a, "beta"_a, "decay"_a, "background"_array,
               "C"_a, "signs"_array, "sum"_array, "late"_array, "time"_a,
               "One pass of k-best MIRA, or of the perceptron where C is 0; returns the number of changes.");
}

}  // namespace

void bind_list_passes(nb::module_& module) {
    bind<std::int32_t>(module);
    bind<std::int64_t>(module);
}

}  // namespace maxmargin
