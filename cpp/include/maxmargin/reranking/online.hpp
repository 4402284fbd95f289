// Passes over lists that change the weights after every one: k-best MIRA and the structured perceptron.
//
// w is a sum of changes, and its average over the visits comes from a second sum, as in online/passes.hpp: the cost of
// a pass is that of scoring all rows once, whatever the number of weights.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "maxmargin/online/examples.hpp"
#include "maxmargin/reranking/quality.hpp"

namespace maxmargin::reranking {

using online::Accumulator;

// Rows of features, dense where `starts` is empty.
template <class Index>
struct FeatureRows {
    std::span<const Index> starts, columns;
    std::span<const double> values;
    std::int64_t d;

    double dot(std::int64_t row, const double* weights) const {
        double sum = 0.0;
        if (starts.empty()) {
            const double* x = values.data() + row * d;
            for (std::int64_t k = 0; k < d; ++k) sum += x[k] * weights[k];
        } else {
            for (Index at = starts[row]; at < starts[row + 1]; ++at) sum += values[at] * weights[columns[at]];
        }
        return sum;
    }
    void add(std::int64_t row, double factor, Accumulator& into) const {
        if (starts.empty()) {
            for (std::int64_t k = 0; k < d; ++k) into.add(k, factor * values[row * d + k]);
        } else {
            for (Index at = starts[row]; at < starts[row + 1]; ++at) into.add(columns[at], factor * values[at]);
        }
    }
};

// Weights as sums over the visits t = 1, 2, ...: of all changes, and of t - 1 times the change at visit t.
struct OnlineSums {
    std::span<double> sum, late;
    double time;                        // visits done
    std::span<const std::int8_t> sign;  // 1: weights >= 0, -1: weights <= 0

    void add(const Accumulator& change, double factor) {
        for (const std::int64_t k : change.touched()) {
            double after = sum[k] + factor * change[k];
            if (sign[k] * after < 0.0) after = 0.0;
            late[k] += (time - 1.0) * (after - sum[k]);
            sum[k] = after;
        }
    }
};

// What a hypothesis is worth: its own number, or, where the metric does not add up over sentences, the quality of a
// corpus of recent hypotheses with this one added, times the number of sentences in it: a change of one sentence counts
// about as much as it does by itself, in the proportions of the corpus (Chiang, Marton and Resnik 2008).
class Gains {
   public:
    // values: one per hypothesis, of which statistics are not read then; empty for gains in context.
    // background: k sums of statistics and the number of sentences in them, updated in place.
    Gains(std::span<const double> values, std::span<const double> statistics, const Quality& quality,
          std::span<double> background, double decay)
        : values_(values), statistics_(statistics), quality_(quality), background_(background), decay_(decay),
          sums_(static_cast<std::size_t>(quality.n_statistics)) {}

    double of(std::int64_t row) {
        if (!values_.empty()) return values_[row];
        const std::int64_t k = quality_.n_statistics;
        for (std::int64_t s = 0; s < k; ++s) sums_[s] = background_[s] + statistics_[row * k + s];
        return (background_[k] + 1.0) * quality_(sums_.data());
    }
    // Puts a hypothesis into the corpus and fades the others.
    void remember(std::int64_t row) {
        if (!values_.empty()) return;
        const std::int64_t k = quality_.n_statistics;
        for (std::int64_t s = 0; s < k; ++s) background_[s] = decay_ * background_[s] + statistics_[row * k + s];
        background_[k] = decay_ * background_[k] + 1.0;
    }

   private:
    std::span<const double> values_, statistics_;
    Quality quality_;
    std::span<double> background_;
    double decay_;
    std::vector<double> sums_;
};

// The first row of a list with the largest score + factor * gain.
inline std::int64_t best_row(const std::vector<double>& scores, const std::vector<double>& gains, double on_scores,
                             double on_gains) {
    std::int64_t best = 0;
    double most = on_scores * scores[0] + on_gains * gains[0];
    for (std::size_t h = 1; h < scores.size(); ++h) {
        const double value = on_scores * scores[h] + on_gains * gains[h];
        if (value > most) {
            most = value;
            best = static_cast<std::int64_t>(h);
        }
    }
    return best;
}

// One pass in the given order. MIRA (Cherry and Foster 2012): hope is the best row by score and gain, fear by score and
// lack of gain; the nearest weights at which hope leads fear by their difference of gains, changed by C times the
// difference of features at most. Perceptron (C = 0): from the best row by score toward the best one by gain, wherever
// it gains. Returns the number of changes.
template <class Index>
std::int64_t online_pass(const FeatureRows<Index>& rows, std::span<const std::int64_t> offsets,
                         std::span<const std::int64_t> order, double C, Gains& gains, OnlineSums& sums) {
    Accumulator change(rows.d);
    std::vector<double> scores, worth;
    std::int64_t changes = 0;
    for (const std::int64_t i : order) {
        const std::int64_t first = offsets[i], size = offsets[i + 1] - first;
        scores.resize(static_cast<std::size_t>(size));
        worth.resize(static_cast<std::size_t>(size));
        for (std::int64_t h = 0; h < size; ++h) {
            scores[h] = rows.dot(first + h, sums.sum.data());
            worth[h] = gains.of(first + h);
        }
        const std::int64_t hope = best_row(scores, worth, C > 0.0 ? 1.0 : 0.0, 1.0);
        const std::int64_t fear = best_row(scores, worth, 1.0, C > 0.0 ? -1.0 : 0.0);
        ++sums.time;
        const double gain = worth[hope] - worth[fear];
        if (gain > 0.0) {
            double step = 1.0;
            change.clear();
            rows.add(first + hope, 1.0, change);
            rows.add(first + fear, -1.0, change);
            if (C > 0.0) {
                const double lack = gain - (scores[hope] - scores[fear]), length = change.squared();
                step = lack > 0.0 && length > 0.0 ? std::min(C, lack / length) : 0.0;
            }
            if (step > 0.0) {
                sums.add(change, step);
                ++changes;
            }
        }
        gains.remember(first + hope);
    }
    return changes;
}

}  // namespace maxmargin::reranking
