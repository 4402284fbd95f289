// By how much each edge of a bipartite graph is in or out of the best b-matching:
//     margin_e = (best score of a matching with e) - (best score of a matching without e).
// One argmax, then the cheapest cycle of its residual graph through every edge (matching/residual.hpp).
#pragma once

#include <limits>
#include <vector>

#include "maxmargin/matching/argmax.hpp"
#include "maxmargin/matching/residual.hpp"

namespace maxmargin::matching {

class Margins {
   public:
    explicit Margins(const Batch& batch)
        : matcher_(batch), residual_(batch, false), z_(most_edges(batch)), taken_(z_.size()) {}

    // At least 0 for edges of the best matching, at most 0 for the others, -inf for edges that no matching has.
    Status run(const Example& ex, const double* scores, double* margins) {
        double value;
        const Status found = matcher_.solve(ex, scores, z_.data(), &value);
        if (found != kOk) {
            std::fill(margins, margins + ex.n_edges, 0.0);
            return found;
        }
        for (std::int64_t e = 0; e < ex.n_edges; ++e) taken_[e] = z_[e] > 0 ? 1 : 0;
        residual_.open(ex, scores);
        residual_.close(taken_.data(), nullptr);
        residual_.costs(margins);
        for (std::int64_t e = 0; e < ex.n_edges; ++e) margins[e] = taken_[e] ? margins[e] : 0.0 - margins[e];
        return kOk;
    }

   private:
    Matcher matcher_;
    Residual residual_;
    std::vector<double> z_;
    std::vector<std::uint8_t> taken_;
};

}  // namespace maxmargin::matching
