#include "maxmargin/reranking/mert.hpp"

#include <nanobind/stl/unique_ptr.h>

#include <memory>

#include "arrays.hpp"
#include "maxmargin/base/envelope.hpp"
#include "maxmargin/base/parallel.hpp"
#include "owned.hpp"

namespace maxmargin {

namespace {

using reranking::AscentSettings;
using reranking::Formula;
using reranking::GammaRange;
using reranking::Interval;
using reranking::MertLists;
using reranking::Quality;

// Lists that have members, which lines and rows are numbered by.
void check_lists(std::span<const std::int64_t> offsets, std::size_t n) {
    require(rises_to(offsets, n), "offsets must rise from 0 to the number of hypotheses");
    bool full = true;
    for (std::size_t i = 1; i < offsets.size(); ++i)
        full &= offsets[i - 1] < offsets[i] && offsets[i] - offsets[i - 1] < std::int64_t{1} << 31;
    require(full, "every list must have a hypothesis, and no more than 2^31");
}

std::unique_ptr<MertLists> prepare(const In<std::int64_t>& offsets, const In<double>& rows,
                                   const In<double>& statistics, int formula, double beta, const In<double>& directions,
                                   Threads threads) {
    require(rows.ndim() == 2 && statistics.ndim() == 2 && directions.ndim() == 2, "arrays must be matrices");
    require(rows.shape(0) == statistics.shape(0), "every hypothesis must have statistics");
    require(rows.shape(1) > 0 && rows.shape(1) == directions.shape(1), "directions must have an entry per feature");
    check_lists(view(offsets), rows.shape(0));
    // NaN has no place in an order, which sorting relies on.
    require(all_finite(view(rows)) && all_finite(view(statistics)) && all_finite(view(directions)),
            "features, statistics and directions must be finite");
    const auto k = static_cast<std::int64_t>(statistics.shape(1));
    require(Quality::fits(formula, k), "the formula does not take so many statistics");
    const auto d = static_cast<std::int64_t>(rows.shape(1));
    checked_product({k}, "there are too many statistics");
    checked_product({d}, "there are too many features");
    const Quality quality{static_cast<Formula>(formula), k, beta};
    return unlocked([&] {
        return std::make_unique<MertLists>(view(offsets), view(rows), d, view(statistics), quality, view(directions),
                                           threads);
    });
}

void ascend(const MertLists& lists, Out<double> weights, const In<std::int8_t>& signs, std::int64_t max_sweeps,
            double min_gain, Out<double> quality, Out<std::int64_t> searches, Threads threads) {
    const std::int64_t d = lists.n_features();
    require(weights.ndim() == 2 && static_cast<std::int64_t>(weights.shape(1)) == d,
            "weights must have an entry per feature");
    require(static_cast<std::int64_t>(signs.size()) == d, "signs must have an entry per feature");
    require(quality.size() == weights.shape(0) && searches.size() == quality.size(), "outputs must fit the restarts");
    checked_count("max_sweeps", max_sweeps, 0, most_steps);
    const auto restarts = static_cast<std::int64_t>(quality.size());
    const NoGil release;
    parallel_each(restarts, 1, threads, [&](int, std::int64_t r) {
        const auto found = lists.ascend(weights.data() + r * d, signs.data(), {max_sweeps, min_gain});
        quality.data()[r] = found.quality;
        searches.data()[r] = found.searches;
    });
}

nb::tuple search(const MertLists& lists, const In<double>& weights, const In<std::int8_t>& signs,
                 std::int64_t direction) {
    const auto d = static_cast<std::size_t>(lists.n_features());
    require(weights.size() == d && signs.size() == d, "weights and signs must have an entry per feature");
    require(direction >= 0 && direction < lists.pool_size(), "there is no such direction");
    const Interval best = unlocked([&] { return lists.search_once(weights.data(), signs.data(), direction); });
    return nb::make_tuple(best.gamma, best.value, best.here);
}

// For metrics that are computed in Python.
nb::tuple envelopes(const In<std::int64_t>& offsets, const In<double>& scores, const In<double>& slopes,
                    Threads threads) {
    require(scores.size() == slopes.size(), "every line must have a score and a slope");
    check_lists(view(offsets), scores.size());
    require(all_finite(view(scores)) && all_finite(view(slopes)),
            "scores of hypotheses are NaN or infinite; check the features, or scale them");
    const auto bounds = view(offsets);
    const auto n = static_cast<std::int64_t>(bounds.size()) - 1;
    std::vector<double> from;
    std::vector<std::int64_t> line, ends(static_cast<std::size_t>(n) + 1, 0);
    {
        const NoGil release;
        std::vector<std::vector<Segment>> found(static_cast<std::size_t>(n));
        parallel_blocks(n, 16, threads, [&](int, std::int64_t first, std::int64_t last) {
            Envelope envelope;
            std::vector<Segment> lines;
            for (std::int64_t i = first; i < last; ++i) {
                lines.clear();
                for (std::int64_t h = bounds[i]; h < bounds[i + 1]; ++h)
                    lines.push_back(
                        {0.0, slopes.data()[h], scores.data()[h], static_cast<std::int32_t>(h - bounds[i])});
                found[i] = envelope.of_lines(lines);
            }
        });
        for (std::int64_t i = 0; i < n; ++i) {
            for (const auto& segment : found[i]) {
                from.push_back(segment.from);
                line.push_back(bounds[i] + segment.line);
            }
            ends[i + 1] = static_cast<std::int64_t>(line.size());
        }
    }
    return nb::make_tuple(owned(std::move(ends)), owned(std::move(from)), owned(std::move(line)));
}

nb::tuple gamma_range(const In<double>& weights, const In<double>& direction, const In<std::int8_t>& signs) {
    require(weights.size() == direction.size() && weights.size() == signs.size(), "vectors must be equally long");
    const GammaRange range = reranking::gamma_range(weights.data(), direction.data(), signs.data(),
                                                    static_cast<std::int64_t>(weights.size()));
    return nb::make_tuple(range.low, range.high, range.reach);
}

nb::tuple best_interval(const In<double>& changes, const In<double>& values, double low, double high, double reach) {
    require(values.size() == changes.size() + 1, "there must be one value more than changes");
    const Interval best = reranking::best_interval(view(changes), view(values), {low, high, reach});
    return nb::make_tuple(best.gamma, best.value, best.here);
}

}  // namespace

void bind_mert(nb::module_& module) {
    nb::class_<MertLists>(module, "MertLists", "Lists ready for minimum error rate training.")
        .def_static("prepare", &prepare, "offsets"_array, "rows"_array, "statistics"_array, "formula"_a, "beta"_a,
                    "directions"_array, "threads"_a,
                    "Directions are searched beside the coordinates; nothing that is given is kept.")
        .def("ascend", apart(&ascend), "weights"_array, "signs"_array, "max_sweeps"_a, "min_gain"_a, "quality"_array,
             "searches"_array, "threads"_a,
             "Move each row of weights to a local optimum; writes its quality and the line searches it took.")
        .def("search", &search, "weights"_array, "signs"_array, "direction"_a,
             "One line search: the best gamma, the quality there, and the quality at gamma = 0.");
    module.def("line_envelopes", &envelopes, "offsets"_array, "scores"_array, "slopes"_array, "threads"_a,
               "Segments of the upper envelope of the lines of each list: offsets, where each begins, and its line.");
    module.def("gamma_range", &gamma_range, "weights"_array, "direction"_array, "signs"_array,
               "Bounds of gamma along a line of weights, and the size of the weights in units of the direction.");
    module.def("best_interval", &best_interval, "changes"_array, "values"_array, "low"_a, "high"_a, "reach"_a,
               "The best gamma between changes, its value, and the value at gamma = 0.");
}

}  // namespace maxmargin
