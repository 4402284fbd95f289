// The quality of a corpus from summed statistics of its sentences, larger is better: the formula of each metric.
//
//   bleu        (matches of orders 1..n, n-grams of orders 1..n, hypothesis length, reference length)
//   chrf        for each order: n-grams of the hypothesis, of the reference, and matches; parameter beta
//   error_rate  (errors, reference length): 1 - errors / length
//   mean        (sum, count): sum / count
//
// Zero n-gram matches of BLEU are smoothed as sacrebleu does by default: by halving ("exp").
#pragma once

#include <cmath>
#include <cstdint>

namespace maxmargin::reranking {

enum class Formula : int { bleu = 0, chrf = 1, error_rate = 2, mean = 3 };

struct Quality {
    Formula formula;
    std::int64_t n_statistics;
    double beta;  // of chrf

    static bool fits(int formula, std::int64_t n) {
        switch (static_cast<Formula>(formula)) {
            case Formula::bleu: return n >= 4 && n % 2 == 0;
            case Formula::chrf: return n >= 3 && n % 3 == 0;
            case Formula::error_rate:
            case Formula::mean: return n == 2;
        }
        return false;
    }

    double operator()(const double* sums) const {
        switch (formula) {
            case Formula::bleu: return bleu(sums);
            case Formula::chrf: return chrf(sums);
            case Formula::error_rate: return sums[1] > 0.0 ? 1.0 - sums[0] / sums[1] : (sums[0] > 0.0 ? 0.0 : 1.0);
            case Formula::mean: return sums[1] != 0.0 ? sums[0] / sums[1] : 0.0;
        }
        return 0.0;
    }

   private:
    double bleu(const double* sums) const {
        const std::int64_t order = (n_statistics - 2) / 2;
        const double length = sums[n_statistics - 2], reference = sums[n_statistics - 1];
        bool any = false;
        for (std::int64_t n = 0; n < order; ++n) any |= sums[n] > 0.0;
        if (!any || length <= 0.0) return 0.0;
        // The geometric mean of the precisions, without logarithms: this is called at every change along every line of
        // a search.
        double precisions = 1.0, halved = 1.0;
        for (std::int64_t n = 0; n < order; ++n) {
            const double total = sums[order + n];
            if (total <= 0.0) return 0.0;
            precisions *= (sums[n] > 0.0 ? sums[n] : 1.0 / (halved *= 2.0)) / total;
        }
        const double mean =
            order == 4 ? std::sqrt(std::sqrt(precisions)) : std::pow(precisions, 1.0 / static_cast<double>(order));
        return length < reference ? mean * std::exp(1.0 - reference / length) : mean;
    }

    double chrf(const double* sums) const {
        double precision = 0.0, recall = 0.0, orders = 0.0;
        for (std::int64_t at = 0; at < n_statistics; at += 3) {
            if (sums[at] <= 0.0 || sums[at + 1] <= 0.0) continue;
            precision += sums[at + 2] / sums[at];
            recall += sums[at + 2] / sums[at + 1];
            orders += 1.0;
        }
        if (precision + recall <= 0.0) return 0.0;
        // Rounded as sacrebleu does, as a choice between references that are equally good depends on it.
        precision /= orders;
        recall /= orders;
        const double factor = beta * beta;
        return (1.0 + factor) * precision * recall / (factor * precision + recall);
    }
};

}  // namespace maxmargin::reranking
