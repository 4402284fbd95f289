// Shared by the bindings of single-example views of structures and of the solvers over them.
#pragma once

#include <algorithm>
#include <memory>
#include <variant>
#include <vector>

#include "arrays.hpp"
#include "maxmargin/online/examples.hpp"

namespace maxmargin {

// A dense packed point of one example by its non-zeros.
inline void nonzeros(const double* z, std::int64_t n, hull::Sparse& vertex) {
    vertex.clear();
    for (std::int64_t j = 0; j < n; ++j)
        if (z[j] != 0.0) vertex.add(j, z[j]);
}

inline std::int64_t longest(const std::vector<std::int64_t>& lengths) {
    std::int64_t most = 0;
    for (const std::int64_t length : lengths) {
        require(length >= 0 && length <= most_claimed, "lengths must be between 0 and 2^30");
        most = std::max(most, length);
    }
    return most;
}

// The longest sequence of an oracle, whose tables have a number for each of its labels, or pairs of them (order 2).
inline std::int64_t checked_longest(const std::vector<std::int64_t>& lengths, std::int64_t n_labels, int order = 1) {
    const std::int64_t most = longest(lengths);
    checked_product({most, n_labels, order == 2 ? n_labels : 1}, "a sequence is too long");
    return most;
}

// Oracles whose kernels have no k-best for one example: the best alone.
class SingleBest : public online::Oracle {
   public:
    online::Status k_best(std::int64_t i, const double* scores, std::int64_t k,
                          std::vector<hull::Sparse>& vertices) override {
        require(k == 1, "this oracle has no k-best");
        vertices.resize(1);
        return argmax(i, scores, vertices[0]);
    }
};

// Oracles whose best outputs come one after the other.
class RankedOracle : public online::Oracle {
   public:
    using Oracle::Oracle;
    online::Status k_best(std::int64_t i, const double* scores, std::int64_t k,
                          std::vector<hull::Sparse>& vertices) final {
        require(k <= ranks(), "this oracle was made for fewer ranks");
        vertices.resize(1);
        if (k == 1) return argmax(i, scores, vertices[0]);
        const online::Status found = begin(i, scores);
        if (found != online::Status::ok) return found;
        std::size_t r = 0;
        for (; r < static_cast<std::size_t>(k); ++r) {
            if (r == vertices.size()) vertices.emplace_back();
            if (!next(vertices[r])) break;
        }
        vertices.resize(r);
        return r == 0 ? online::Status::absent : found;
    }

   protected:
    // Takes an example, whose scores stay until the last call of next.
    virtual online::Status begin(std::int64_t i, const double* scores) = 0;
    // The next best output; false if there is none.
    virtual bool next(hull::Sparse& vertex) = 0;
};

// Offsets that have been checked.
inline std::vector<std::int64_t> rising(const In<std::int64_t>& offsets) {
    std::vector<std::int64_t> values = copied(offsets);
    require(!values.empty() && values[0] == 0, "offsets must start at 0");
    require(std::ranges::is_sorted(values), "offsets must not decrease");
    return values;
}

// Working memory of the size of the weights is for those that feature maps claim to have.
inline void require_weights(const online::Examples& examples) {
    checked_product({examples.n_weights()}, "there are too many weights for working memory of their size");
}

using Order = In<std::int64_t>;
using AnyCosts = std::variant<In<double>, In<std::uint8_t>>;

// Examples that keep what they are made of.
class OnlineExamples {
   public:
    OnlineExamples(std::shared_ptr<online::Oracle> oracle, std::shared_ptr<online::FeatureMap> map, int rescaling,
                   nb::object most_violated, bool pairs, const std::vector<In<std::int64_t>>& blocks, AnyCosts costs,
                   In<std::int64_t> gold_starts, In<std::int64_t> gold_index, In<double> gold_value, In<double> scale);

    online::Examples& get() { return *examples_; }
    void check(const Order& order) const {
        require(within(view(order), 0, examples_->size()), "an example is out of range");
    }

   private:
    std::shared_ptr<online::Oracle> oracle_;
    std::shared_ptr<online::FeatureMap> map_;
    AnyCosts costs_;
    std::shared_ptr<online::Hinge> hinge_;
    std::unique_ptr<online::Examples> examples_;
};

}  // namespace maxmargin
