#include "maxmargin/reranking/quality.hpp"

#include "arrays.hpp"
#include "maxmargin/base/parallel.hpp"

namespace maxmargin {

namespace {

using reranking::Formula;
using reranking::Quality;

void run(int formula, double beta, const In<double>& sums, Out<double> out, Threads threads) {
    require(sums.ndim() == 2 && out.size() == sums.shape(0), "sums must have a row for each output");
    const auto k = static_cast<std::int64_t>(sums.shape(1));
    require(Quality::fits(formula, k), "the formula does not take so many statistics");
    const Quality quality{static_cast<Formula>(formula), k, beta};
    const double* rows = sums.data();
    double* values = out.data();
    const auto n = static_cast<std::int64_t>(out.size());
    const NoGil unlocked;
    parallel_each(n, 1024, threads, [&](int, std::int64_t i) { values[i] = quality(rows + i * k); });
}

}  // namespace

void bind_quality(nb::module_& module) {
    module.def("metric_quality", apart(&run), "formula"_a, "beta"_a, "sums"_array, "out"_array, "threads"_a,
               "The quality of each row of summed statistics; formula: 0 bleu, 1 chrf, 2 error rate, 3 mean.");
}

}  // namespace maxmargin
