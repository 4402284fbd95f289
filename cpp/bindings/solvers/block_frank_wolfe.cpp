#include "maxmargin/online/block_frank_wolfe.hpp"

#include <nanobind/stl/tuple.h>

#include <cmath>
#include <limits>

#include "owned.hpp"
#include "solvers/online.hpp"

namespace maxmargin {

namespace {

using namespace online;

template <class T>
nb::ndarray<nb::numpy, const T> seen(std::span<const T> values, nb::handle owner = {}) {
    const std::size_t shape[1] = {values.size()};
    return nb::ndarray<nb::numpy, const T>(values.data(), 1, shape, owner);
}

template <class T>
auto copy_of(std::span<const T> values) {
    return owned(std::vector<T>(values.begin(), values.end()));
}

// Outputs of all examples: those of example i are starts[i] .. starts[i + 1] - 1, the parts of output r are
// part_starts[r] .. part_starts[r + 1] - 1. They can dominate the memory: values are of type Small if that loses
// nothing, and vectors have no more room than they need.
template <class Small>
struct Outputs {
    std::vector<std::int64_t> starts{0}, part_starts{0};
    std::vector<double> mass, value;
    std::vector<Small> small_value;
    std::vector<std::int32_t> part, idle;
    bool small = true;

    // each(i, body) calls body(output, mass, visits without mass) for the outputs of example i.
    template <class Each>
    Outputs(std::int64_t n_examples, Each&& each) {
        std::size_t outputs = 0, parts = 0;
        for (std::int64_t i = 0; i < n_examples; ++i)
            each(i, [&](View z, double, std::int32_t) {
                ++outputs;
                parts += z.index.size();
                small &= std::ranges::all_of(z.value, is_small);
            });
        starts.reserve(static_cast<std::size_t>(n_examples + 1));
        part_starts.reserve(outputs + 1);
        mass.reserve(outputs);
        idle.reserve(outputs);
        part.reserve(parts);
        if (small) small_value.reserve(parts);
        else value.reserve(parts);
        for (std::int64_t i = 0; i < n_examples; ++i) {
            each(i, [&](View z, double x, std::int32_t visits) {
                part.insert(part.end(), z.index.begin(), z.index.end());
                if (small)
                    for (const double v : z.value) small_value.push_back(static_cast<Small>(v));
                else value.insert(value.end(), z.value.begin(), z.value.end());
                mass.push_back(x);
                idle.push_back(visits);
                part_starts.push_back(static_cast<std::int64_t>(part.size()));
            });
            starts.push_back(static_cast<std::int64_t>(mass.size()));
        }
    }

    nb::object values() { return small ? nb::cast(owned(std::move(small_value))) : nb::cast(owned(std::move(value))); }

   private:
    static bool is_small(double x) {
        using Limits = std::numeric_limits<Small>;
        return x >= Limits::lowest() && x <= Limits::max() && static_cast<Small>(x) == x;
    }
};

constexpr std::int64_t most_group = 1 << 16;

class PyBlockFrankWolfe {
   public:
    PyBlockFrankWolfe(OnlineExamples& examples, double C, double radius, In<std::uint8_t> nonnegative, int step,
                      int steps, std::int64_t most_atoms, double cache_gap, double cache_mean, std::int64_t group)
        : examples_(examples),
          descent_(checked(examples, nonnegative),
                   checked(C, radius, step, steps, most_atoms, cache_gap, cache_mean, group), copied(nonnegative)) {}
    std::tuple<std::int64_t, std::int64_t> pass(Order order, bool kept_only, Threads threads) {
        examples_.check(order);
        const int seats = descent_.seat(threads);  // before the lock is released: oracles may hold Python objects
        const NoGil release;
        const auto totals = descent_.pass(view(order), kept_only, seats);
        return {totals.calls, totals.visits};
    }
    // Output r of example i, starts[i] <= r < starts[i + 1], has the parts from part_starts[r] on.
    template <class Value>
    void seed(In<std::int64_t> starts, In<double> mass, In<std::int64_t> part_starts, In<std::int32_t> part,
              In<Value> value) {
        const auto first = rising(starts), begin = rising(part_starts);
        check_outputs(first, mass, begin, part, value.size());
        const NoGil release;
        std::vector<Sparse> outputs;
        for (std::int64_t i = 0; i < examples_.get().size(); ++i) {
            take_outputs(first[i], first[i + 1], begin, view(part), view(value), outputs);
            descent_.seed(i, outputs, view(mass).subspan(first[i], first[i + 1] - first[i]));
        }
        descent_.refresh();
    }
    // The arguments of restore(): atoms by their differences from the gold output, which comes first, then vectors.
    // Differences are float32 if that is exact; vectors are views into `self`, valid until the next pass.
    auto state(nb::handle self) const {
        auto out = unlocked([&] {
            return Outputs<float>(examples_.get().size(),
                                  [&](std::int64_t i, auto&& body) { descent_.each_atom(i, body); });
        });
        const BlockFrankWolfe::VectorViews v = descent_.vectors();
        std::vector<double> numbers(v.numbers.begin(), v.numbers.end());
        return std::make_tuple(owned(std::move(out.starts)), owned(std::move(out.mass)), owned(std::move(out.idle)),
                               owned(std::move(out.part_starts)), owned(std::move(out.part)), out.values(),
                               seen(v.g, self), seen(v.late, self), seen(v.w, self), seen(v.gap, self),
                               seen(v.asked, self), seen(v.older, self), seen(v.newer, self),
                               owned(std::move(numbers)));
    }
    void restore(In<std::int64_t> starts, In<double> mass, In<std::int32_t> idle, In<std::int64_t> part_starts,
                 In<std::int32_t> part, In<double> value, In<double> g, In<double> late, In<double> w, In<double> gap,
                 In<std::uint8_t> asked, In<double> older, In<double> newer, In<double> numbers) {
        const std::int64_t n = examples_.get().size();
        const auto first = rising(starts), begin = rising(part_starts);
        check_atoms(first, mass, idle, begin, part, value.size());
        BlockFrankWolfe::Vectors vectors{copied(g),     copied(late),  copied(w),     copied(gap),
                                         copied(older), copied(newer), copied(asked), {}};
        require(descent_.fits(vectors) && numbers.size() == vectors.numbers.size(), "vectors do not fit the problem");
        std::copy_n(numbers.data(), numbers.size(), vectors.numbers.begin());
        const NoGil release;
        std::vector<Sparse> outputs;
        for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t count = first[i + 1] - first[i];
            take_outputs(first[i] + 1, first[i + 1], begin, view(part), view(value), outputs);
            descent_.restore(i, outputs, view(mass).subspan(first[i], count), view(idle).subspan(first[i], count));
        }
        descent_.restore(vectors);
    }
    auto active_set() const {
        Outputs<std::uint8_t> out(examples_.get().size(), [&](std::int64_t i, auto&& body) {
            descent_.each_mass(i, [&](const Sparse& z, double mass) { body(z, mass, 0); });
        });
        return std::make_tuple(owned(std::move(out.starts)), owned(std::move(out.mass)),
                               owned(std::move(out.part_starts)), owned(std::move(out.part)), out.values());
    }
    void refresh() {
        const NoGil release;
        descent_.refresh();
    }
    void begin(In<double> g, double loss, double spread) {
        require(static_cast<std::int64_t>(g.size()) == examples_.get().n_weights(), "one entry per weight");
        require(all_finite(view(g)) && std::isfinite(loss), "g and the loss must be finite");
        require(spread >= 1.0 && std::isfinite(spread), "spread must be at least 1");
        const NoGil release;
        descent_.begin(view(g), loss, spread);
    }
    void end(double share) {
        require(share >= 0.0 && share <= 1.0, "share must be between 0 and 1");
        const NoGil release;
        descent_.end(share);
    }
    // The arguments of unpack(): all that later objects over the same examples need to go on after begin().
    auto packed() const {
        const std::int64_t n = examples_.get().size();
        std::vector<double> gram;
        auto out = unlocked([&] {
            std::size_t total = 0;
            for (std::int64_t i = 0; i < n; ++i) total += descent_.gram(i).size();
            gram.reserve(total);
            for (std::int64_t i = 0; i < n; ++i) {
                const auto own = descent_.gram(i);
                gram.insert(gram.end(), own.begin(), own.end());
            }
            return Outputs<std::int8_t>(n, [&](std::int64_t i, auto&& body) { descent_.each_atom(i, body); });
        });
        const BlockFrankWolfe::VectorViews v = descent_.vectors();
        const Before& before = descent_.before();
        return std::make_tuple(owned(std::move(out.starts)), owned(std::move(out.mass)), owned(std::move(out.idle)),
                               owned(std::move(out.part_starts)), owned(std::move(out.part)), out.values(),
                               owned(std::move(gram)), copy_of(v.gap), copy_of(v.asked), v.numbers[4],
                               copy_of(before.examples()), copy_of(before.starts()), copy_of(before.mass()));
    }
    template <class Value>
    void unpack(In<std::int64_t> starts, In<double> mass, In<std::int32_t> idle, In<std::int64_t> part_starts,
                In<std::int32_t> part, In<Value> value, In<double> gram, In<double> gap, In<std::uint8_t> asked,
                double mean_gap, In<std::int64_t> before, In<std::int64_t> before_starts, In<double> before_mass) {
        const std::int64_t n = examples_.get().size();
        const auto first = rising(starts), begin = rising(part_starts);
        check_atoms(first, mass, idle, begin, part, value.size());
        std::vector<std::size_t> rows{0};
        for (std::int64_t i = 0; i < n; ++i) {
            const auto own = static_cast<std::size_t>(first[i + 1] - first[i]);
            rows.push_back(rows.back() + own * (own + 1) / 2);
        }
        require(rows.back() == gram.size() && all_finite(view(gram)), "inner products do not fit the outputs");
        require(gap.size() == asked.size() && static_cast<std::int64_t>(gap.size()) == n, "one gap per example");
        require(all_finite(view(gap)) && std::isfinite(mean_gap), "gaps must be finite");
        const bool begun = before_starts.size() > 0;
        std::vector<std::int64_t> noted = begun ? rising(before_starts) : std::vector<std::int64_t>();
        require(noted.size() == (begun ? before.size() + 1 : before.size()), "one start per example noted");
        require(begun ? noted.back() == static_cast<std::int64_t>(before_mass.size()) : before_mass.size() == 0,
                "starts must end at the number of masses");
        for (const double one : view(before_mass)) require(one >= 0.0 && one <= 2.0, "masses must be shares");
        const NoGil release;
        std::vector<Sparse> outputs;
        for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t count = first[i + 1] - first[i];
            take_outputs(first[i] + 1, first[i + 1], begin, view(part), view(value), outputs);
            descent_.restore(i, outputs, view(mass).subspan(first[i], count), view(idle).subspan(first[i], count),
                             view(gram).subspan(rows[i], rows[i + 1] - rows[i]));
        }
        descent_.restore(copied(gap), copied(asked), mean_gap);
        if (begun)
            require(descent_.resume(copied(before), std::move(noted), copied(before_mass)),
                    "noted examples and masses do not fit the outputs");
    }
    double average(Out<double> g) {
        require(static_cast<std::int64_t>(g.size()) == examples_.get().n_weights(), "one entry per weight");
        return descent_.average(view(g));
    }
    BlockFrankWolfe& get() { return descent_; }
    OnlineExamples& examples() { return examples_; }

   private:
    static Examples& checked(OnlineExamples& examples, const In<std::uint8_t>& nonnegative) {
        require_weights(examples.get());
        require(nonnegative.size() == 0 || static_cast<std::int64_t>(nonnegative.size()) == examples.get().n_weights(),
                "signs must have one entry per weight");
        return examples.get();
    }
    static BlockFrankWolfe::Settings checked(double C, double radius, int step, int steps, std::int64_t most_atoms,
                                             double cache_gap, double cache_mean, std::int64_t group) {
        require(C > 0.0 && radius > 0.0, "C and radius must be positive");
        require(step >= 0 && step <= 2 && most_atoms >= 2, "settings out of range");
        checked_count("steps", steps, 1, most_steps);
        checked_count("group", group, 1, most_group);
        return {C, radius, static_cast<Step>(step), steps, most_atoms, cache_gap, cache_mean, group};
    }
    // Outputs of every example and their masses.
    void check_outputs(const std::vector<std::int64_t>& first, const In<double>& mass,
                       const std::vector<std::int64_t>& begin, const In<std::int32_t>& part, std::size_t values) const {
        const std::int64_t n = examples_.get().size();
        require(static_cast<std::int64_t>(first.size()) == n + 1, "starts must have n_examples + 1 entries");
        require(first.back() == static_cast<std::int64_t>(mass.size()) && begin.size() == mass.size() + 1,
                "every output needs a mass and its parts");
        require(begin.back() == static_cast<std::int64_t>(part.size()) && part.size() == values,
                "every part needs a value");
        for (std::int64_t i = 0; i < n; ++i) {
            for (std::int64_t r = first[i]; r < first[i + 1]; ++r) {
                require(mass.data()[r] >= 0.0 && std::isfinite(mass.data()[r]), "masses must not be negative");
                for (std::int64_t j = begin[r]; j < begin[r + 1]; ++j) {
                    const std::int32_t at = part.data()[j];
                    require(at >= 0 && at < examples_.get().parts(i) && (j == begin[r] || at > part.data()[j - 1]),
                            "parts of an output must rise and lie in the example");
                }
            }
        }
    }
    // The same of differences to the gold outputs, which come first.
    void check_atoms(const std::vector<std::int64_t>& first, const In<double>& mass, const In<std::int32_t>& idle,
                     const std::vector<std::int64_t>& begin, const In<std::int32_t>& part, std::size_t values) const {
        check_outputs(first, mass, begin, part, values);
        require(idle.size() == mass.size(), "every output needs a number of visits");
        for (const std::int32_t visits : view(idle)) require(visits >= 0, "visits must not be negative");
        for (std::size_t i = 0; i + 1 < first.size(); ++i) {
            require(first[i] < first[i + 1] && idle.data()[first[i]] == 0, "every example begins with its gold output");
            for (std::int64_t r = first[i]; r < first[i + 1]; ++r)
                require((begin[r] == begin[r + 1]) == (r == first[i]), "the gold output alone has no difference");
        }
    }
    // Outputs first .. last - 1.
    template <class Value>
    static void take_outputs(std::int64_t first, std::int64_t last, const std::vector<std::int64_t>& begin,
                             std::span<const std::int32_t> part, std::span<const Value> value,
                             std::vector<Sparse>& outputs) {
        outputs.resize(static_cast<std::size_t>(last - first));
        for (std::int64_t r = first; r < last; ++r) {
            outputs[r - first].clear();
            for (std::int64_t j = begin[r]; j < begin[r + 1]; ++j) outputs[r - first].add(part[j], value[j]);
        }
    }
    OnlineExamples& examples_;
    BlockFrankWolfe descent_;
};

}  // namespace

void bind_block_frank_wolfe(nb::module_& module) {
    nb::class_<PyBlockFrankWolfe>(module, "BlockFrankWolfe")
        .def(nb::init<OnlineExamples&, double, double, In<std::uint8_t>, int, int, std::int64_t, double, double,
                      std::int64_t>(),
             "examples"_a, "C"_a, "radius"_a, "nonnegative"_array, "step"_a, "steps"_a, "most_atoms"_a, "cache_gap"_a,
             "cache_mean"_a, "group"_a, nb::keep_alive<1, 2>())
        .def("pass_over", &PyBlockFrankWolfe::pass, "order"_array, "kept_only"_a, "threads"_a)
        .def("seed", &PyBlockFrankWolfe::seed<double>, "starts"_array, "mass"_array, "part_starts"_array, "part"_array,
             "value"_array)
        .def("seed", &PyBlockFrankWolfe::seed<std::uint8_t>, "starts"_array, "mass"_array, "part_starts"_array,
             "part"_array, "value"_array)
        .def("active_set", &PyBlockFrankWolfe::active_set)
        .def("state", [](nb::handle self) { return nb::cast<PyBlockFrankWolfe&>(self).state(self); })
        .def("restore", &PyBlockFrankWolfe::restore, "starts"_array, "mass"_array, "idle"_array, "part_starts"_array,
             "part"_array, "value"_array, "g"_array, "late"_array, "w"_array, "gap"_array, "asked"_array, "older"_array,
             "newer"_array, "numbers"_array)
        .def("begin", &PyBlockFrankWolfe::begin, "g"_array, "loss"_a, "spread"_a)
        .def("end", &PyBlockFrankWolfe::end, "share"_a)
        .def("packed", [](const PyBlockFrankWolfe& self) { return self.packed(); })
        .def("unpack", &PyBlockFrankWolfe::unpack<std::int8_t>, "starts"_array, "mass"_array, "idle"_array,
             "part_starts"_array, "part"_array, "value"_array, "gram"_array, "gap"_array, "asked"_array, "mean_gap"_a,
             "before"_array, "before_starts"_array, "before_mass"_array)
        .def("unpack", &PyBlockFrankWolfe::unpack<double>, "starts"_array, "mass"_array, "idle"_array,
             "part_starts"_array, "part"_array, "value"_array, "gram"_array, "gap"_array, "asked"_array, "mean_gap"_a,
             "before"_array, "before_starts"_array, "before_mass"_array)
        .def("refresh", &PyBlockFrankWolfe::refresh)
        .def("average", &PyBlockFrankWolfe::average, "g"_array)
        .def("mark", [](PyBlockFrankWolfe& self) { self.get().mark(); })
        .def_prop_ro(
            "examples", [](PyBlockFrankWolfe& self) -> OnlineExamples& { return self.examples(); },
            nb::rv_policy::reference_internal)
        .def_prop_ro(
            "g", [](PyBlockFrankWolfe& self) { return seen(self.get().g()); }, nb::rv_policy::reference_internal)
        .def_prop_ro(
            "gap", [](PyBlockFrankWolfe& self) { return seen(self.get().gap()); }, nb::rv_policy::reference_internal)
        .def_prop_ro("loss", [](PyBlockFrankWolfe& self) { return self.get().loss(); })
        .def_prop_ro("atoms", [](PyBlockFrankWolfe& self) { return self.get().atoms(); });
}

}  // namespace maxmargin
