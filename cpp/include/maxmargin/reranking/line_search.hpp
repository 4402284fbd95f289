// The quality of a corpus along a line of weights w + gamma d, and the best gamma (Och 2003).
//
// Each list changes its best hypothesis at a few values of gamma; between two neighboring changes of any list the
// statistics of the corpus are constant, and so is its quality.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "maxmargin/reranking/quality.hpp"

namespace maxmargin::reranking {

// Values of gamma that a search may take. reach: the size of w in units of d, for lines that have no end.
struct GammaRange {
    double low, high, reach;
};

// Changes of the weights that keep all signs: sign 1 means w >= 0, -1 means w <= 0.
inline GammaRange gamma_range(const double* weights, const double* direction, const std::int8_t* signs,
                              std::int64_t d) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    double low = -infinity, high = infinity, size = 0.0, length = 0.0;
    for (std::int64_t k = 0; k < d; ++k) {
        size = std::max(size, std::abs(weights[k]));
        length = std::max(length, std::abs(direction[k]));
        const double slope = signs[k] * direction[k];
        if (slope > 0.0) low = std::max(low, -weights[k] / direction[k]);
        if (slope < 0.0) high = std::min(high, -weights[k] / direction[k]);
    }
    const double reach = size > 0.0 && length > 0.0 ? size / length : 1.0;
    // Beyond these, w + gamma d does not know w any more.
    return {std::max(low, -1e15 * reach), std::min(high, 1e15 * reach), reach};
}

struct Interval {
    double gamma = 0.0;  // its middle
    double value = -std::numeric_limits<double>::infinity();
    double here = value;  // the value around gamma = 0
};

// The best of the intervals that `changes`, in rising order inside the range, cut the line into; values[t] belongs to
// the one before changes[t]. Of equally good ones the widest, then the first. The outermost ones end one reach, or as
// far as they are from 0, beyond the last change, or where the range does. Intervals so narrow that rounding could miss
// them do not count.
inline Interval best_interval(std::span<const double> changes, std::span<const double> values,
                              const GammaRange& range) {
    const std::size_t m = changes.size();
    Interval best;
    const auto at_zero = std::upper_bound(changes.begin(), changes.end(), 0.0) - changes.begin();
    best.here = values[static_cast<std::size_t>(at_zero)];
    if (m == 0) {
        best.value = best.here;
        return best;
    }
    const double first = changes.front(), last = changes.back();
    double left = std::max(range.low, first - std::max(std::abs(first), range.reach)), widest = 0.0;
    const double end = std::min(range.high, last + std::max(std::abs(last), range.reach));
    for (std::size_t t = 0; t <= m; ++t) {
        const double right = t < m ? changes[t] : end;
        if (values[t] >= best.value) {
            const double width = right - left;
            const bool narrow =
                width <= 1e-10 * std::max(std::abs(left), std::abs(right)) || width <= 1e-12 * range.reach;
            if (!narrow && (values[t] > best.value || width > widest)) {
                best.value = values[t];
                best.gamma = left + 0.5 * width;
                widest = width;
            }
        }
        left = right;
    }
    return best;
}

// The changes of all lists along a line and the quality between them; keeps its memory.
class Sweep {
   public:
    explicit Sweep(const Quality& quality) : quality_(quality), k_(quality.n_statistics) {}

    void clear() {
        base_.assign(static_cast<std::size_t>(k_), 0.0);
        changes_.clear();
        differences_.clear();
    }
    // Statistics of a list at the lower end of the range.
    void start(const double* statistics) {
        for (std::int64_t s = 0; s < k_; ++s) base_[s] += statistics[s];
    }
    // At gamma a list goes over from one hypothesis to another; changes between equal statistics are none.
    void change(double gamma, const double* before, const double* after) {
        const std::size_t end = differences_.size();
        differences_.resize(end + static_cast<std::size_t>(k_));
        double* to = differences_.data() + end;
        bool any = false;
        for (std::int64_t s = 0; s < k_; ++s) {
            to[s] = after[s] - before[s];
            any |= to[s] != 0.0;
        }
        if (any) {
            changes_.push_back({gamma, static_cast<std::int64_t>(changes_.size())});
        } else {
            differences_.resize(end);
        }
    }

    Interval best(const GammaRange& range) {
        sort();
        gammas_.resize(changes_.size());
        values_.resize(changes_.size() + 1);
        values_[0] = quality_(base_.data());
        for (std::size_t t = 0; t < changes_.size(); ++t) {
            const double* difference = differences_.data() + changes_[t].number * k_;
            for (std::int64_t s = 0; s < k_; ++s) base_[s] += difference[s];
            gammas_[t] = changes_[t].gamma;
            values_[t + 1] = quality_(base_.data());
        }
        return best_interval(gammas_, values_, range);
    }

   private:
    struct Change {
        double gamma;
        std::int64_t number;
        bool operator<(const Change& other) const {
            return gamma != other.gamma ? gamma < other.gamma : number < other.number;
        }
    };

    // By three passes over digits of 11 bits, the upper half of each number; insertion puts the few that agree in it in
    // order, and gives up where they are many. All of these keep the order of equal ones.
    void sort() {
        const std::size_t n = changes_.size();
        if (n < 256) {
            std::sort(changes_.begin(), changes_.end());
            return;
        }
        constexpr int digit = 11;
        constexpr std::uint64_t mask = (1u << digit) - 1;
        counts_.assign(3 << digit, 0);
        for (const Change& change : changes_)
            for (int pass = 0; pass < 3; ++pass)
                ++counts_[(pass << digit) + ((key(change) >> (31 + digit * pass)) & mask)];
        other_.resize(n);
        for (int pass = 0; pass < 3; ++pass) {
            std::uint32_t* count = counts_.data() + (pass << digit);
            for (std::uint32_t at = 0, i = 0; i <= mask; ++i) at += std::exchange(count[i], at);
            for (const Change& change : changes_) other_[count[(key(change) >> (31 + digit * pass)) & mask]++] = change;
            changes_.swap(other_);
        }
        std::size_t moves = 0;
        for (std::size_t i = 1; i < n; ++i) {
            const Change change = changes_[i];
            std::size_t at = i;
            for (; at > 0 && change < changes_[at - 1]; --at, ++moves) changes_[at] = changes_[at - 1];
            changes_[at] = change;
            if (moves > 8 * n) {
                std::sort(changes_.begin(), changes_.end());
                return;
            }
        }
    }
    // Unsigned numbers in the order of the doubles.
    static std::uint64_t key(const Change& change) {
        const auto bits = std::bit_cast<std::uint64_t>(change.gamma + 0.0);  // no -0
        return bits ^ (bits >> 63 ? ~std::uint64_t{0} : std::uint64_t{1} << 63);
    }

    Quality quality_;
    std::int64_t k_;
    std::vector<double> base_, differences_, gammas_, values_;
    std::vector<Change> changes_, other_;
    std::vector<std::uint32_t> counts_;
};

}  // namespace maxmargin::reranking
