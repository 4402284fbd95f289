#include <nanobind/stl/shared_ptr.h>

#include "arrays.hpp"
#include "maxmargin/dependencies/batch.hpp"
#include "maxmargin/dependencies/features.hpp"
#include "maxmargin/dependencies/grandparents.hpp"
#include "maxmargin/dependencies/projective.hpp"
#include "owned.hpp"
#include "structures/deduction.hpp"

namespace maxmargin {

namespace {

using dependencies::DependencyFeatures;
using dependencies::Nodes;
using dependencies::Templates;

using Rows = std::vector<std::array<std::int32_t, 3>>;

// Rows of three numbers: two or three keys, or -1, and what the third column may be.
Rows rows_of(const In<std::int32_t>& given, std::int64_t n_keys, std::int64_t most_last) {
    require(given.size() % 3 == 0, "a template has three numbers");
    Rows rows(given.size() / 3);
    for (std::size_t j = 0; j < rows.size(); ++j)
        for (std::size_t c = 0; c < 3; ++c) {
            const std::int32_t x = given.data()[3 * j + c];
            require(c < 2 || most_last < 0 ? x >= -1 && x < n_keys : x >= 0 && x < most_last,
                    "a template names a key or circumstance that does not exist");
            rows[j][c] = x;
        }
    return rows;
}

template <class System>
std::shared_ptr<DependencyFeatures> dependency_features(
    std::shared_ptr<DeductionBatch<dependencies::Batch<System>>> trees, In<std::int32_t> numbers, In<std::int32_t> tags,
    In<std::uint8_t> kinds, In<std::int32_t> key_starts, In<std::int32_t> key_attributes, In<std::int32_t> key_shifts,
    In<std::int32_t> arcs, In<std::int32_t> siblings, In<std::int32_t> grandparents, std::int64_t between, int bits) {
    const auto& batch = trees->batch();
    std::int64_t n_nodes = 0;
    std::vector<dependencies::Sentence> sentences;
    for (std::int64_t i = 0; i < batch.size(); ++i) {
        sentences.push_back(batch[i].sentence);
        require(sentences.back().labels == 1, "hashed features are those of trees without labels");
        n_nodes += sentences.back().n + 1;
    }
    require(numbers.ndim() == 2 && static_cast<std::int64_t>(numbers.shape(0)) == n_nodes,
            "numbers must have a row for each token, and one for the root before those of a sentence");
    require(static_cast<std::int64_t>(tags.size()) == n_nodes && static_cast<std::int64_t>(kinds.size()) == n_nodes,
            "every node needs a tag and a kind");
    require(within(view(numbers), -1, std::int64_t{1} << 31), "numbers must be -1 or more");
    require(within(view(tags), 0, 1 << 20), "tags must lie in 0 .. 2^20 - 1");
    require(within(view(kinds), 0, 4), "kinds must lie in 0 .. 3");
    checked_count("bits", bits, 3, 30);
    const auto n_attributes = static_cast<std::int64_t>(numbers.shape(1));
    require(rises_to(view(key_starts), key_attributes.size()) && key_shifts.size() == key_attributes.size(),
            "starts of keys must rise from 0 to the number of their attributes, each with a shift");
    require(within(view(key_attributes), 0, n_attributes), "a key names an attribute that does not exist");
    require(within(view(key_shifts), -100, 101), "shifts must lie in -100 .. 100");
    const auto n_keys = static_cast<std::int64_t>(key_starts.size()) - 1;
    checked_count("between", between, -1, n_keys - 1);
    checked_product({n_nodes, n_keys}, "there are too many nodes and keys");
    Templates templates{n_attributes,
                        copied(key_starts),
                        copied(key_attributes),
                        copied(key_shifts),
                        rows_of(arcs, n_keys, dependencies::n_circumstances),
                        rows_of(siblings, n_keys, -1),
                        rows_of(grandparents, n_keys, -1),
                        static_cast<std::int32_t>(between)};
    std::int32_t n_tags = 0;
    for (const std::int32_t tag : view(tags)) n_tags = std::max(n_tags, tag + 1);
    Nodes nodes{copied(numbers), copied(tags), copied(kinds), n_tags};
    const auto layout = batch.layout();
    const NoGil release;
    return std::make_shared<DependencyFeatures>(std::move(sentences), layout, std::move(trees), std::move(templates),
                                                std::move(nodes), bits);
}

template <class System>
void bind_factory(nb::module_& module) {
    module.def("dependency_features", &dependency_features<System>, "trees"_a, "numbers"_array, "tags"_array,
               "kinds"_array, "key_starts"_array, "key_attributes"_array, "key_shifts"_array, "arcs"_array,
               "siblings"_array, "grandparents"_array, "between"_a, "bits"_a);
}

std::size_t n_parts(const DependencyFeatures& map) { return static_cast<std::size_t>(map.layout().offsets.back()); }

void scores(const DependencyFeatures& self, In<double> weights, Out<double> out, Threads threads) {
    require(static_cast<std::int64_t>(weights.size()) == self.n_weights() && out.size() == n_parts(self),
            "weights or scores do not fit the features");
    const int workers = threads;
    const NoGil release;
    self.scores(view(weights), view(out), workers);
}

void adjoint(const DependencyFeatures& self, In<double> z, Out<double> out) {
    require(static_cast<std::int64_t>(out.size()) == self.n_weights() && z.size() == n_parts(self),
            "z or sums do not fit the features");
    const NoGil release;
    std::fill(out.data(), out.data() + out.size(), 0.0);
    self.adjoint(view(z), view(out));
}

// The features of all parts, in the order of a packed vector, each as often as it occurs.
nb::tuple rows(const DependencyFeatures& self) {
    std::vector<std::int64_t> starts{0}, columns;
    {
        const NoGil release;
        const hull::Layout& layout = self.layout();
        for (std::int64_t b = 0; b < layout.n_blocks; ++b)
            for (std::int64_t i = 0; i < self.n_examples(); ++i) {
                std::int64_t before = 0;
                for (std::int64_t c = 0; c < b; ++c) before += layout.begin(c, i + 1) - layout.begin(c, i);
                for (std::int64_t p = 0; p < layout.begin(b, i + 1) - layout.begin(b, i); ++p) {
                    self.each(i, before + p, [&](std::int64_t at) { columns.push_back(at); });
                    starts.push_back(static_cast<std::int64_t>(columns.size()));
                }
            }
    }
    return nb::make_tuple(owned(std::move(starts)), owned(std::move(columns)));
}

}  // namespace

void bind_dependency_features(nb::module_& module) {
    nb::class_<DependencyFeatures, online::FeatureMap>(module, "DependencyFeatures")
        .def("scores", apart(&scores), "weights"_array, "out"_array, "threads"_a)
        .def("adjoint", apart(&adjoint), "z"_array, "out"_array)
        .def("rows", &rows);
    bind_factory<dependencies::FirstOrder>(module);
    bind_factory<dependencies::Siblings>(module);
    bind_factory<dependencies::Grandparents>(module);
}

}  // namespace maxmargin
