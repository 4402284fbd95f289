// What binding files share to hand out single-example views of structures.
#pragma once

#include "arrays.hpp"
#include "maxmargin/online.hpp"

namespace maxmargin {

// A dense packed point of one example by its non-zeros.
inline void nonzeros(const double* z, std::int64_t n, hull::Sparse& vertex) {
    vertex.clear();
    for (std::int64_t j = 0; j < n; ++j)
        if (z[j] != 0.0) vertex.add(j, z[j]);
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

}  // namespace maxmargin
