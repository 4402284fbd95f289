#include "solvers/online.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "maxmargin/base/parallel.hpp"
#include "maxmargin/online/feature_maps.hpp"
#include "maxmargin/online/passes.hpp"
#include "owned.hpp"

namespace maxmargin {

namespace {

using namespace online;

// A map that keeps the arrays it reads.
template <class Index>
std::shared_ptr<FeatureMap> rows_map(In<Index> starts, In<Index> columns, In<double> values, std::int64_t n,
                                     std::int64_t d, In<std::int64_t> offsets, std::int64_t m, bool constant,
                                     bool alike, double sign, In<std::int64_t> kept, bool some,
                                     In<std::int64_t> numbers) {
    constexpr std::int64_t most = std::int64_t{1} << 40;
    require(n >= 0 && d >= 0 && m >= 1, "sizes must not be negative");
    checked_product({n, m}, "there are too many parts", most);
    checked_product({d, m}, "there are too many weights", most);
    require(!(constant && alike), "not both constant and alike");
    const bool dense = starts.size() == 0;
    if (dense) {
        require(static_cast<std::int64_t>(values.size()) == checked_product({n, d}, "too many values", most),
                "a dense matrix has n x d values");
        require(d <= std::numeric_limits<Index>::max() && d <= most_claimed, "too many columns");
    } else {
        require(static_cast<std::int64_t>(starts.size()) == n + 1 && columns.size() == values.size() &&
                    rises_to(view(starts), values.size()),
                "starts must have n + 1 entries and rise from 0 to the number of non-zeros");
        require(within(view(columns), 0, d), "a column is out of range");
    }
    require(within(view(numbers), 0, n), "a row number is out of range");
    const std::int64_t items = numbers.size() ? static_cast<std::int64_t>(numbers.size()) : n;
    require(rising(offsets).back() == items, "offsets must end at the number of rows");
    for (std::size_t j = 0; j < kept.size(); ++j) {
        const std::int64_t part = kept.data()[j];
        require(part >= 0 && part < items * m && (j == 0 || part > kept.data()[j - 1]), "kept parts must rise");
    }
    for (std::size_t i = 1; some && i < offsets.size(); ++i)
        checked_product({offsets.data()[i] - offsets.data()[i - 1], m}, "an example has too many parts");
    struct Held {
        In<Index> starts, columns;
        In<double> values;
        In<std::int64_t> offsets, kept, numbers;
        std::unique_ptr<RowsMap<Index>> map;
    };
    auto held = std::make_shared<Held>(Held{starts, columns, values, offsets, kept, numbers, nullptr});
    typename RowsMap<Index>::Settings settings{view(offsets), d,          m,    constant,     alike,
                                               sign,          view(kept), some, view(numbers)};
    held->map = std::make_unique<RowsMap<Index>>(settings, view(starts), view(columns), view(values));
    return {held, held->map.get()};
}

std::shared_ptr<FeatureMap> joined_map(std::vector<std::shared_ptr<FeatureMap>> members,
                                       std::vector<std::int64_t> first, std::int64_t n_weights, bool stacked) {
    require(!members.empty() && members.size() == first.size(), "a joined map needs members, each with a first weight");
    for (std::size_t j = 0; j < members.size(); ++j) {
        require(members[j] != nullptr && members[j]->n_examples() == members[0]->n_examples(),
                "all members must have the same examples");
        require(checked_sum({first[j], members[j]->n_weights()}, "too many weights") <= n_weights,
                "weights of a member out of range");
        for (std::int64_t i = 0; !stacked && i < members[0]->n_examples(); ++i)
            require(members[j]->size(i) == members[0]->size(i), "members beside each other must have the same parts");
    }
    checked_product({static_cast<std::int64_t>(members.size()), n_weights}, "there are too many weights",
                    std::int64_t{1} << 40);
    return std::make_shared<JoinedMap>(std::move(members), std::move(first), n_weights, stacked);
}

// Reads one output that Python has found: positions, values.
void read(nb::handle index, nb::handle value, std::int64_t parts, Sparse& z) {
    const auto at = nb::cast<In<std::int64_t>>(index);
    const auto x = nb::cast<In<double>>(value);
    require(at.size() == x.size(), "an output needs as many values as positions");
    z.clear();
    for (std::size_t j = 0; j < at.size(); ++j) {
        require(at.data()[j] >= 0 && at.data()[j] < parts && (j == 0 || at.data()[j] > at.data()[j - 1]),
                "positions of an output must rise and lie in the example");
        z.add(at.data()[j], x.data()[j]);
    }
}

auto scores_of(const double* scores, std::int64_t n) { return owned(std::vector<double>(scores, scores + n)); }

// A structure that only Python knows: find(example, scores, k) -> (status, [(positions, values), ...]).
class PythonOracle final : public Oracle {
   public:
    PythonOracle(nb::callable find, In<std::int64_t> sizes) : find_(std::move(find)), sizes_(copied(sizes)) {}
    std::int64_t n_examples() const override { return static_cast<std::int64_t>(sizes_.size()); }
    std::int64_t size(std::int64_t i) const override { return sizes_[i]; }
    Status argmax(std::int64_t i, const double* scores, Sparse& vertex) override {
        const Status status = k_best(i, scores, 1, one_);
        if (!one_.empty()) std::swap(vertex, one_[0]);
        return status;
    }
    Status k_best(std::int64_t i, const double* scores, std::int64_t k, std::vector<Sparse>& vertices) override {
        const nb::gil_scoped_acquire held;
        const nb::tuple found = nb::cast<nb::tuple>(find_(i, scores_of(scores, sizes_[i]), k));
        const nb::list ranks = nb::cast<nb::list>(found[1]);
        vertices.resize(ranks.size());
        for (std::size_t r = 0; r < ranks.size(); ++r) {
            const nb::tuple one = nb::cast<nb::tuple>(ranks[r]);
            read(one[0], one[1], sizes_[i], vertices[r]);
        }
        const auto status = static_cast<Status>(nb::cast<int>(found[0]));
        require(!ranks.empty() || status == Status::nonfinite || status == Status::absent, "no output was found");
        return status;
    }

   private:
    nb::callable find_;
    std::vector<std::int64_t> sizes_;
    std::vector<Sparse> one_;
};

// A hinge that only Python knows: most_violated(example, scores) -> (positions, values).
class PythonHinge final : public Hinge {
   public:
    explicit PythonHinge(nb::callable most_violated) : most_violated_(std::move(most_violated)) {}
    void most_violated(std::int64_t i, std::span<const double> scores, Sparse& z) override {
        const nb::gil_scoped_acquire held;
        const auto n = static_cast<std::int64_t>(scores.size());
        const nb::tuple found = nb::cast<nb::tuple>(most_violated_(i, scores_of(scores.data(), n)));
        read(found[0], found[1], n, z);
    }
    std::unique_ptr<Hinge> another() const override {
        const nb::gil_scoped_acquire held;
        return std::make_unique<PythonHinge>(most_violated_);
    }

   private:
    nb::callable most_violated_;
};

Costs costs_of(const In<double>& costs) { return {view(costs), {}}; }
Costs costs_of(const In<std::uint8_t>& costs) { return {{}, view(costs)}; }

}  // namespace

OnlineExamples::OnlineExamples(std::shared_ptr<Oracle> oracle, std::shared_ptr<FeatureMap> map, int rescaling,
                               nb::object most_violated, bool pairs, const std::vector<In<std::int64_t>>& blocks,
                               AnyCosts costs, In<std::int64_t> gold_starts, In<std::int64_t> gold_index,
                               In<double> gold_value, In<double> scale)
    : oracle_(std::move(oracle)), map_(std::move(map)), costs_(std::move(costs)) {
    require(rescaling >= 0 && rescaling <= 2 && ((rescaling == 0 && !pairs) || !most_violated.is_none()),
            "rescaling must be 0, 1 or 2, and all but 0, and pairs, need a function for the most violated output");
    if (nb::isinstance<Hinge>(most_violated)) {
        require(nb::try_cast(most_violated, hinge_), "most_violated is a hinge that has not been initialized");
    } else if (!most_violated.is_none()) {
        require(nb::isinstance<nb::callable>(most_violated), "most_violated must be a hinge or a function");
        hinge_ = std::make_shared<PythonHinge>(nb::borrow<nb::callable>(most_violated));
    }
    Packed packed;
    std::int64_t parts = 0;
    require(!blocks.empty(), "there must be a block");
    const std::size_t n = scale.size();
    for (const auto& block : blocks) {
        packed.blocks.push_back(rising(block));
        require(packed.blocks.back().size() == n + 1, "blocks must have n_examples + 1 offsets");
        parts = checked_sum({parts, packed.blocks.back().back()}, "there are too many parts");
    }
    require(oracle_->n_examples() == static_cast<std::int64_t>(n) && map_->n_examples() == oracle_->n_examples(),
            "structure and features must have the same examples");
    for (std::size_t i = 0; i < n; ++i) {
        std::int64_t size = 0;
        for (const auto& block : packed.blocks) size += block[i + 1] - block[i];
        const auto at = static_cast<std::int64_t>(i);
        require(oracle_->size(at) == size && map_->size(at) == size, "an example has parts of different number");
        require(size <= most_claimed, "an example has too many parts");
    }
    packed.costs = std::visit([](const auto& held) { return costs_of(held); }, costs_);
    require(packed.costs.size() == packed.blocks[0].back() || packed.costs.size() == parts,
            "costs must cover the first block or all parts");
    packed.gold_starts = view(gold_starts);
    packed.gold_index = view(gold_index);
    packed.gold_value = view(gold_value);
    packed.scale = copied(scale);
    require(packed.gold_starts.size() == blocks.size() * (n + 1), "gold starts: one row per block");
    require(packed.gold_index.size() == packed.gold_value.size(), "gold needs as many values as positions");
    std::int64_t start = 0;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        for (std::size_t i = 0; i < n; ++i) {
            const std::int64_t *range = packed.gold_starts.data() + b * (n + 1) + i, *own = &packed.blocks[b][i];
            require(range[0] >= 0 && range[1] >= range[0] &&
                        range[1] <= static_cast<std::int64_t>(packed.gold_index.size()),
                    "gold starts out of range");
            for (std::int64_t j = range[0]; j < range[1]; ++j) {
                const std::int64_t at = packed.gold_index[j];
                require(at >= start + own[0] && at < start + own[1] && (j == range[0] || at > packed.gold_index[j - 1]),
                        "gold positions must rise and lie in their example");
            }
        }
        start += packed.blocks[b].back();
    }
    examples_ = std::make_unique<Examples>(*oracle_, *map_, static_cast<Rescaling>(rescaling), hinge_.get(), pairs,
                                           std::move(packed));
}

namespace {

template <class T>
void made(OnlineExamples* self, std::shared_ptr<Oracle> oracle, std::shared_ptr<FeatureMap> map, int rescaling,
          nb::object most_violated, bool pairs, const std::vector<In<std::int64_t>>& blocks, In<T> costs,
          In<std::int64_t> gold_starts, In<std::int64_t> gold_index, In<double> gold_value, In<double> scale) {
    new (self) OnlineExamples(std::move(oracle), std::move(map), rescaling, std::move(most_violated), pairs, blocks,
                              costs, gold_starts, gold_index, gold_value, scale);
}

Sums sums_of(OnlineExamples& examples, Out<double>& sum, Out<double>& late, double time) {
    const auto n = static_cast<std::size_t>(examples.get().n_weights());
    require(sum.size() == n && late.size() == n, "sums must have one entry per weight");
    return {view(sum), view(late), time};
}

using Signs = In<std::uint8_t>;

std::span<const std::uint8_t> signs_of(const Signs& nonnegative, const Sums& sums) {
    require(nonnegative.size() == 0 || nonnegative.size() == sums.sum.size(), "signs must have one entry per weight");
    return view(nonnegative);
}

std::int64_t perceptron(OnlineExamples& examples, Order order, Signs nonnegative, Out<double> sum, Out<double> late,
                        double time) {
    examples.check(order);
    Sums sums = sums_of(examples, sum, late, time);
    const auto signs = signs_of(nonnegative, sums);
    const NoGil release;
    return perceptron_pass(examples.get(), view(order), signs, sums);
}

std::int64_t mira(OnlineExamples& examples, Order order, double C, std::int64_t k, Signs nonnegative, Out<double> sum,
                  Out<double> late, double time) {
    examples.check(order);
    require(C > 0.0 && k >= 1 && k < std::int64_t{1} << 31, "C must be positive, and k between 1 and 2^31 - 1");
    Sums sums = sums_of(examples, sum, late, time);
    const auto signs = signs_of(nonnegative, sums);
    const NoGil release;
    return mira_pass(examples.get(), view(order), C, k, signs, sums);
}

double subgradient(OnlineExamples& examples, Order order, double C, double radius, Signs nonnegative, Out<double> sum,
                   Out<double> late, double time) {
    examples.check(order);
    require(C > 0.0 && radius > 0.0, "C and radius must be positive");
    Sums sums = sums_of(examples, sum, late, time);
    const Averaged region{C, radius, signs_of(nonnegative, sums)};
    double loss = 0.0;
    const NoGil release;
    subgradient_pass(examples.get(), view(order), region, sums, loss);
    return loss;
}

// F_i z_i - F_i y_i of every example as compressed rows.
auto differences(OnlineExamples& own, const std::vector<In<std::int64_t>>& blocks, In<double> z, Threads threads) {
    Examples& examples = own.get();
    const std::int64_t n = examples.size();
    require_weights(examples);
    std::int64_t parts = 0;
    for (const auto& block : blocks) {
        require(static_cast<std::int64_t>(block.size()) == n + 1, "blocks must have n_examples + 1 offsets");
        require(rises_from_zero(view(block)), "offsets of a block must rise from 0");
        parts = checked_sum({parts, block.data()[n]}, "there are too many parts");
    }
    require(static_cast<std::int64_t>(z.size()) == parts, "z does not fit the batch");
    for (std::int64_t i = 0; i < n; ++i) {
        std::int64_t size = 0;
        for (const auto& block : blocks) size += block.data()[i + 1] - block.data()[i];
        require(size == examples.parts(i), "blocks do not fit the batch");
    }
    constexpr std::int64_t grain = 64;
    const std::int64_t chunks = (n + grain - 1) / grain;
    std::vector<std::vector<std::int64_t>> columns(static_cast<std::size_t>(chunks));
    std::vector<std::vector<double>> values(columns.size());
    std::vector<std::int64_t> starts(static_cast<std::size_t>(n + 1), 0);
    {
        const NoGil release;
        std::vector<std::unique_ptr<Accumulator>> sums(static_cast<std::size_t>(int{threads}));
        parallel_blocks(n, grain, threads, [&](int thread, std::int64_t begin, std::int64_t end) {
            auto& sum = sums[static_cast<std::size_t>(thread)];
            if (!sum) sum = std::make_unique<Accumulator>(examples.n_weights());
            Sparse own_z;
            auto& at = columns[begin / grain];
            auto& value = values[begin / grain];
            for (std::int64_t i = begin; i < end; ++i) {
                own_z.clear();
                std::int64_t start = 0, before = 0;
                for (const auto& block : blocks) {
                    const std::int64_t first = block.data()[i], size = block.data()[i + 1] - first;
                    for (std::int64_t j = 0; j < size; ++j)
                        if (z.data()[start + first + j] != 0.0) own_z.add(before + j, z.data()[start + first + j]);
                    start += block.data()[n];
                    before += size;
                }
                sum->clear();
                examples.add_difference(i, own_z, 1.0, *sum);
                std::sort(sum->order().begin(), sum->order().end());
                for (const std::int64_t k : sum->touched()) {
                    if ((*sum)[k] == 0.0) continue;
                    at.push_back(k);
                    value.push_back((*sum)[k]);
                    ++starts[i + 1];
                }
            }
        });
        for (std::int64_t i = 0; i < n; ++i) starts[i + 1] += starts[i];
    }
    std::vector<std::int64_t> all_columns;
    std::vector<double> all_values;
    all_columns.reserve(static_cast<std::size_t>(starts[n]));
    all_values.reserve(static_cast<std::size_t>(starts[n]));
    for (std::int64_t c = 0; c < chunks; ++c) {
        all_columns.insert(all_columns.end(), columns[c].begin(), columns[c].end());
        all_values.insert(all_values.end(), values[c].begin(), values[c].end());
    }
    return std::make_tuple(owned(std::move(starts)), owned(std::move(all_columns)), owned(std::move(all_values)));
}

}  // namespace

void bind_online(nb::module_& module) {
    nb::class_<Oracle>(module, "Oracle").def_prop_ro("ranks", [](const Oracle& self) { return self.ranks(); });
    nb::class_<FeatureMap>(module, "FeatureMap");
    nb::class_<Hinge>(module, "Hinge");
    nb::class_<PythonOracle, Oracle>(module, "PythonOracle")
        .def(nb::init<nb::callable, In<std::int64_t>>(), "find"_a, "sizes"_array);
    module.def("rows_map", &rows_map<std::int32_t>, "starts"_array, "columns"_array, "values"_array, "n"_a, "d"_a,
               "offsets"_array, "m"_a, "constant"_a, "alike"_a, "sign"_a, "kept"_array, "some"_a, "numbers"_array);
    module.def("rows_map", &rows_map<std::int64_t>, "starts"_array, "columns"_array, "values"_array, "n"_a, "d"_a,
               "offsets"_array, "m"_a, "constant"_a, "alike"_a, "sign"_a, "kept"_array, "some"_a, "numbers"_array);
    module.def("joined_map", &joined_map, "members"_a, "first"_a, "n_weights"_a, "stacked"_a);
    nb::class_<OnlineExamples>(module, "OnlineExamples")
        .def("__init__", &made<double>, "oracle"_a, "map"_a, "rescaling"_a, "most_violated"_a.none(), "pairs"_a,
             "blocks"_a, "costs"_array, "gold_starts"_array, "gold_index"_array, "gold_value"_array, "scale"_array)
        .def("__init__", &made<std::uint8_t>, "oracle"_a, "map"_a, "rescaling"_a, "most_violated"_a.none(), "pairs"_a,
             "blocks"_a, "costs"_array, "gold_starts"_array, "gold_index"_array, "gold_value"_array, "scale"_array)
        .def("memory",
             [](OnlineExamples& self) {
                 const auto kept = self.get().memory();
                 return owned(std::vector<double>(kept.begin(), kept.end()));
             })
        .def(
            "remember",
            [](OnlineExamples& self, In<double> values) {
                const auto kept = self.get().memory();
                require(values.size() == kept.size(), "values do not fit the oracle's memory");
                std::copy_n(values.data(), values.size(), kept.begin());
            },
            "values"_array);
    module.def("perceptron_pass", apart(&perceptron), "examples"_a, "order"_array, "nonnegative"_array, "sum"_array,
               "late"_array, "time"_a);
    module.def("mira_pass", apart(&mira), "examples"_a, "order"_array, "C"_a, "k"_a, "nonnegative"_array, "sum"_array,
               "late"_array, "time"_a);
    module.def("subgradient_pass", apart(&subgradient), "examples"_a, "order"_array, "C"_a, "radius"_a,
               "nonnegative"_array, "sum"_array, "late"_array, "time"_a);
    module.def("differences", &differences, "examples"_a, "blocks"_a, "z"_array, "threads"_a);
    nb::register_exception_translator([](const std::exception_ptr& p, void*) {
        try {
            std::rethrow_exception(p);
        } catch (const NonFinite& error) {
            PyErr_SetString(PyExc_ArithmeticError, error.what());
        } catch (const NoOutput& error) {
            PyErr_SetString(PyExc_LookupError, error.what());
        }
    });
}

}  // namespace maxmargin
