#include "maxmargin/candidates/lists.hpp"
#include "solvers/online.hpp"

namespace maxmargin {

namespace {

using Offsets = In<std::int64_t>;

// Lists with at least one candidate each, one after the other.
class Lists {
   public:
    explicit Lists(const Offsets& offsets) : offsets_(rising(offsets)) {
        for (std::size_t i = 1; i < offsets_.size(); ++i)
            require(offsets_[i - 1] < offsets_[i], "every list must have a candidate");
    }
    std::int64_t count() const { return static_cast<std::int64_t>(offsets_.size()) - 1; }
    std::int64_t first(std::int64_t i) const { return offsets_[i]; }
    std::int64_t size(std::int64_t i) const { return offsets_[i + 1] - offsets_[i]; }
    std::size_t total() const { return static_cast<std::size_t>(offsets_.back()); }
    template <class Packed>
    auto of(std::int64_t i, const Packed& packed) const {
        return std::span(packed.data(), packed.size()).subspan(first(i), size(i));
    }

   private:
    std::vector<std::int64_t> offsets_;
};

// The best candidates of one list at a time, and the one of the largest product of slack rescaling.
class CandidatesOracle final : public online::Oracle {
   public:
    CandidatesOracle(const Offsets& offsets, std::int64_t ranks) : Oracle(ranks), lists_(offsets) {
        require(ranks >= 1, "k must be at least 1");
    }
    std::unique_ptr<online::Oracle> another() const override { return std::make_unique<CandidatesOracle>(*this); }
    std::int64_t n_examples() const override { return lists_.count(); }
    std::int64_t size(std::int64_t i) const override { return lists_.size(i); }
    online::Status argmax(std::int64_t i, const double* scores, hull::Sparse& vertex) override {
        const std::span own{scores, static_cast<std::size_t>(size(i))};
        if (!all_finite(own)) return online::Status::nonfinite;
        vertex.clear();
        vertex.add(candidates::largest(own), 1.0);
        return online::Status::ok;
    }
    online::Status k_best(std::int64_t i, const double* scores, std::int64_t k,
                          std::vector<hull::Sparse>& vertices) override {
        require(k <= ranks(), "this oracle was made for fewer ranks");
        const std::span own{scores, static_cast<std::size_t>(size(i))};
        if (!all_finite(own)) return online::Status::nonfinite;
        candidates::largest(own, k, order_);
        vertices.resize(order_.size());
        for (std::size_t r = 0; r < order_.size(); ++r) {
            vertices[r].clear();
            vertices[r].add(order_[r], 1.0);
        }
        return online::Status::ok;
    }
    std::optional<online::Status> slack_argmax(std::int64_t i, const online::SlackProduct& product,
                                               hull::Sparse& vertex, double& value) override {
        products_.resize(static_cast<std::size_t>(size(i)));
        for (std::size_t j = 0; j < products_.size(); ++j)
            products_[j] = (product.costs[j] + product.constant) * (product.margin + product.scores[j]);
        if (!all_finite(products_)) return online::Status::nonfinite;
        const std::int64_t at = candidates::largest(products_);
        vertex.clear();
        vertex.add(at, 1.0);
        value = std::max(products_[at], 0.0);
        return online::Status::ok;
    }

   private:
    Lists lists_;
    std::vector<std::int64_t> order_;
    std::vector<double> products_;
};

// The most violated pair of a bad and a good candidate as the point gold + bad - good; the gold one if none violates
// its margin. Costs, with the example weights, are the margins; without them it is 1.
class PairsHinge final : public online::Hinge {
   public:
    PairsHinge(const Offsets& offsets, const In<std::uint8_t>& good, const Offsets& nearest, const Offsets& gold,
               In<double> costs, In<double> scale)
        : lists_(offsets), good_(copied(good)), nearest_(copied(nearest)), gold_(copied(gold)),
          costs_(std::move(costs)), scale_(std::move(scale)) {
        const auto n = static_cast<std::size_t>(lists_.count());
        require(good_.size() == lists_.total(), "one mark per candidate");
        require(nearest_.size() == 0 || nearest_.size() == lists_.total(), "one nearest number per candidate, or none");
        require(costs_.size() == 0 || costs_.size() == lists_.total(), "one cost per candidate, or none");
        require(gold_.size() == n && scale_.size() == n, "one gold candidate and one weight per list");
        for (std::int64_t i = 0; i < lists_.count(); ++i) {
            require(gold_.data()[i] >= 0 && gold_.data()[i] < lists_.size(i), "a gold candidate is out of range");
            require(std::ranges::any_of(lists_.of(i, good_), [](std::uint8_t g) { return g != 0; }),
                    "every list must have a good candidate");
            require(nearest_.size() == 0 || within(lists_.of(i, nearest_), 0, lists_.size(i)),
                    "a nearest candidate is out of range");
        }
    }
    std::unique_ptr<online::Hinge> another() const override { return std::make_unique<PairsHinge>(*this); }
    void most_violated(std::int64_t i, std::span<const double> scores, hull::Sparse& z) override {
        require(i >= 0 && i < lists_.count() && static_cast<std::int64_t>(scores.size()) == lists_.size(i),
                "scores do not fit the list");
        if (!all_finite(scores)) throw online::NonFinite();
        if (costs_.size()) {
            const auto own = lists_.of(i, costs_);
            augmented_.resize(scores.size());
            for (std::size_t j = 0; j < scores.size(); ++j) augmented_[j] = scale_.data()[i] * scores[j] + own[j];
            scores = augmented_;
        }
        const auto nearest = nearest_.empty() ? std::span<const std::int64_t>{} : lists_.of(i, nearest_);
        const candidates::Pair pair = candidates::most_violated(scores, lists_.of(i, good_), nearest);
        const std::int64_t gold = gold_.data()[i];
        z.clear();
        if (!(pair.value + (costs_.size() ? 0.0 : 1.0) > 0.0)) {
            z.add(gold, 1.0);
            return;
        }
        std::int64_t at[3] = {gold, pair.bad, pair.good};
        std::ranges::sort(at);
        for (int j = 0; j < 3; ++j) {
            if (j > 0 && at[j] == at[j - 1]) continue;
            const double value = (at[j] == gold) + (at[j] == pair.bad) - (at[j] == pair.good);
            if (value != 0.0) z.add(at[j], value);
        }
    }

   private:
    Lists lists_;
    std::vector<std::uint8_t> good_;
    std::vector<std::int64_t> nearest_, gold_;
    In<double> costs_, scale_;
    std::vector<double> augmented_;
};

}  // namespace

void bind_candidates(nb::module_& module) {
    nb::class_<CandidatesOracle, online::Oracle>(module, "CandidatesOracle")
        .def(nb::init<const Offsets&, std::int64_t>(), "offsets"_array, "ranks"_a);
    nb::class_<PairsHinge, online::Hinge>(module, "PairsHinge")
        .def(nb::init<const Offsets&, In<std::uint8_t>, Offsets, Offsets, In<double>, In<double>>(), "offsets"_array,
             "good"_array, "nearest"_array, "gold"_array, "costs"_array, "scale"_array);
}

}  // namespace maxmargin
