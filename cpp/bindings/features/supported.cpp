#include "maxmargin/linear/supported.hpp"

#include <nanobind/stl/shared_ptr.h>

#include <memory>

#include "arrays.hpp"
#include "maxmargin/linear/supported_pairs.hpp"

namespace maxmargin {

namespace {

using supported::Support;

// `values` empty: all ones.
template <class Index>
linear::Compressed<Index> compressed(const In<Index>& starts, const In<Index>& columns, const In<double>& values,
                                     std::int64_t d) {
    require(values.size() == 0 || columns.size() == values.size(), "columns and values do not fit together");
    require(rises_to(view(starts), columns.size()), "starts must rise from 0 to the number of non-zeros");
    require(within(view(columns), 0, d), "a column index of the sparse matrix is out of range");
    return {starts.data(), columns.data(), values.size() ? values.data() : nullptr};
}

// The pattern with the arrays it reads, checked once: products are called piece by piece.
struct HeldSupport {
    In<std::int32_t> starts, columns;
    std::int64_t m;
    Support support;
    std::vector<supported::Place<std::uint32_t>> narrow;
    std::vector<supported::Place<std::uint64_t>> wide;

    HeldSupport(In<std::int32_t> given_starts, In<std::int32_t> given_columns, std::int64_t n_columns)
        : starts(given_starts), columns(given_columns), m(n_columns), support{view(starts), view(columns), m} {
        require(m >= 1 && m <= (std::int64_t{1} << 30), "there must be at least one column");
        bool good = rises_to(support.starts, columns.size()) && within(support.columns, 0, m);
        for (std::size_t f = 1; good && f < support.starts.size(); ++f)
            for (std::int32_t j = support.starts[f - 1] + 1; j < support.starts[f]; ++j)
                good &= support.columns[j] > support.columns[j - 1];
        require(good, "starts must rise to the number of pairs, and every feature have rising columns in 0 .. m - 1");
        if (m <= 32) narrow = supported::places_of<std::uint32_t>(support);
        else if (m <= 64) wide = supported::places_of<std::uint64_t>(support);
        support.narrow = narrow;
        support.wide = wide;
    }
    HeldSupport(const HeldSupport&) = delete;
    HeldSupport& operator=(const HeldSupport&) = delete;
};

template <class Index>
void forward(const HeldSupport& held, const In<Index>& starts, const In<Index>& columns, const In<double>& values,
             const In<double>& w, const In<double>& initial, Out<double>& out, Threads threads) {
    const auto x = compressed(starts, columns, values, held.support.n_features());
    const auto n = static_cast<std::int64_t>(starts.size()) - 1;
    require(static_cast<std::int64_t>(w.size()) == held.support.n_weights(), "one weight per pair of the support");
    require(initial.size() == 0 || static_cast<std::int64_t>(initial.size()) == held.m,
            "initial must have m entries or none");
    require(static_cast<std::int64_t>(out.size()) == n * held.m, "out must have n * m entries");
    NoGil release;
    supported::forward(held.support, x, n, w.data(), initial.size() ? initial.data() : nullptr, out.data(), threads);
}

template <class Index>
void adjoint(const HeldSupport& held, const In<Index>& starts, const In<Index>& columns, const In<double>& values,
             const In<double>& z, Out<double>& out, Threads threads) {
    require(z.size() % static_cast<std::size_t>(held.m) == 0, "z must have n * m entries");
    const std::int64_t n = static_cast<std::int64_t>(z.size()) / held.m;
    const auto x = compressed(starts, columns, values, n);
    require(starts.size() == held.starts.size(), "the transposed matrix has a row per feature");
    require(static_cast<std::int64_t>(out.size()) == held.support.n_weights(), "one sum per pair of the support");
    NoGil release;
    supported::adjoint(held.support, x, n, z.data(), out.data(), threads);
}

template <class Index>
void part_norms(const HeldSupport& held, const In<Index>& starts, const In<Index>& columns, const In<double>& values,
                bool largest, Out<double>& out, Threads threads) {
    const auto x = compressed(starts, columns, values, held.support.n_features());
    const auto n = static_cast<std::int64_t>(starts.size()) - 1;
    require(static_cast<std::int64_t>(out.size()) == n * held.m, "out must have n * m entries");
    NoGil release;
    supported::part_norms(held.support, x, n, largest, out.data(), threads);
}

// A map that keeps the arrays it reads.
template <class Index>
std::shared_ptr<online::FeatureMap> map(std::shared_ptr<HeldSupport> pattern, In<Index> starts, In<Index> columns,
                                        In<double> values, In<std::int64_t> offsets, bool constant) {
    const auto x = compressed(starts, columns, values, pattern->support.n_features());
    require(rises_to(view(offsets), starts.size() - 1), "offsets must rise from 0 to the number of rows");
    struct Held {
        std::shared_ptr<HeldSupport> pattern;
        In<Index> starts, columns;
        In<double> values;
        In<std::int64_t> offsets;
        supported::SupportedMap<Index> map;
    };
    auto held = std::make_shared<Held>(
        Held{pattern, starts, columns, values, offsets, {pattern->support, view(offsets), constant, x}});
    return {held, &held->map};
}

template <class Index>
void add_rows(supported::PairSet& pairs, const In<Index>& starts, const In<Index>& columns,
              const In<std::int64_t>& rows, const In<std::int64_t>& labels) {
    compressed(starts, columns, {}, pairs.n_features());
    const auto n = static_cast<std::int64_t>(starts.size()) - 1;
    require(rows.size() == labels.size(), "one label per row");
    require(within(view(rows), 0, n), "a row is out of range");
    for (const std::int64_t label : view(labels)) require(label < pairs.n_columns(), "a label is out of range");
    NoGil release;
    pairs.add_rows(view(starts), view(columns), view(rows), view(labels));
}

template <class Index>
void bind(nb::module_& module) {
    module.def("supported_forward", apart(&forward<Index>), "support"_a, "starts"_array, "columns"_array,
               "values"_array, "w"_array, "initial"_array, "out"_array, "threads"_a);
    module.def("supported_adjoint", apart(&adjoint<Index>), "support"_a, "starts"_array, "columns"_array,
               "values"_array, "z"_array, "out"_array, "threads"_a);
    module.def("supported_part_norms", apart(&part_norms<Index>), "support"_a, "starts"_array, "columns"_array,
               "values"_array, "largest"_a, "out"_array, "threads"_a);
    module.def("supported_map", &map<Index>, "support"_a, "starts"_array, "columns"_array, "values"_array,
               "offsets"_array, "constant"_a);
}

}  // namespace

void bind_supported(nb::module_& module) {
    nb::class_<HeldSupport>(module, "Support")
        .def(nb::init<In<std::int32_t>, In<std::int32_t>, std::int64_t>(), "starts"_array, "columns"_array, "m"_a);
    using supported::PairSet;
    nb::class_<PairSet>(module, "PairSet")
        .def(
            "__init__",
            [](PairSet* self, std::int64_t d, std::int64_t m) {
                constexpr std::int64_t most = std::int64_t{1} << 30;
                require(d >= 0 && d <= 2 * most - 1 && m >= 1 && m <= most, "too many features or no column");
                checked_product({d, PairSet::words_for(m)}, "a set of so many features and columns is too large");
                new (self) PairSet(d, m);
            },
            "d"_a, "m"_a)
        .def("add_rows", &add_rows<std::int32_t>, "starts"_array, "columns"_array, "rows"_array, "labels"_array)
        .def("add_rows", &add_rows<std::int64_t>, "starts"_array, "columns"_array, "rows"_array, "labels"_array)
        .def(
            "add_support",
            [](PairSet& self, const HeldSupport& held) {
                require(held.support.n_features() <= self.n_features() && held.m <= self.n_columns(),
                        "the support has more features or columns than the set");
                NoGil release;
                self.add_pattern(held.support.starts, held.support.columns);
            },
            "support"_a)
        .def(
            "count",
            [](PairSet& self, Out<std::int64_t> counts) {
                require(static_cast<std::int64_t>(counts.size()) == self.n_features(), "one count per feature");
                NoGil release;
                self.count(view(counts));
            },
            "counts"_array)
        .def(
            "write",
            [](PairSet& self, Out<std::int32_t> columns) {
                require(static_cast<std::int64_t>(columns.size()) == self.size(), "room for every pair, after count");
                NoGil release;
                self.write(view(columns));
            },
            "columns"_array);
    bind<std::int32_t>(module);
    bind<std::int64_t>(module);
}

}  // namespace maxmargin
