// Checks of the vectors that kernels of structures take, and the binding of methods that many batches have.
#pragma once

#include "arrays.hpp"
#include "maxmargin/hull/batch.hpp"

namespace maxmargin {

// How many best outputs of an example are asked for.
inline std::int64_t checked_ranks(std::int64_t k) {
    require(k >= 1 && k < std::int64_t{1} << 31, "k must be at least 1 and below 2^31");
    return k;
}

// One number per part in, and vertices, values and states of all examples out, for each of the ranks.
inline void require_vectors(const In<double>& input, std::int64_t n_parts, std::int64_t n_examples,
                            const Out<double>& z, const Out<double>& value, const Out<std::int8_t>& status,
                            std::int64_t ranks = 1) {
    require(input.size() == static_cast<std::size_t>(n_parts), "vectors must have one entry per part");
    require_outputs(input.size(), n_examples, z, value, status, ranks);
}

// What slack rescaling takes beside the scores.
inline void require_slack(const In<double>& scores, std::int64_t n_examples, const In<double>& margin,
                          const In<double>& costs, const In<double>& constants) {
    const auto n = static_cast<std::size_t>(n_examples);
    require(costs.size() == scores.size() && margin.size() == n && constants.size() == n,
            "margins and costs do not fit the batch");
}

// Active sets of a projection, which serve one projection each; size(i) is the number of parts of example i.
inline void require_fresh(const hull::HullBatch& sets) {
    require(!sets.begun, "these active sets have been used; make new ones, and load what is to be kept into them");
}
template <class Size>
void require_fresh(const hull::HullBatch& sets, std::int64_t n_examples, Size&& size) {
    require_fresh(sets);
    require(sets.fit(n_examples, size), "active sets do not fit the batch");
}

// Binds those of the methods that a batch has.
template <class Batch>
void bind_kernels(nb::class_<Batch>& bound) {
    if constexpr (requires { &Batch::argmax; })
        bound.def("argmax", apart(&Batch::argmax), "scores"_array, "z"_array, "value"_array, "status"_array,
                  "threads"_a);
    if constexpr (requires { &Batch::marginals; })
        bound.def("marginals", apart(&Batch::marginals), "potentials"_array, "z"_array, "value"_array, "status"_array,
                  "threads"_a);
    if constexpr (requires { &Batch::k_best; })
        bound.def("k_best", apart(&Batch::k_best), "k"_a, "scores"_array, "z"_array, "value"_array, "status"_array,
                  "threads"_a);
    if constexpr (requires { &Batch::slack_argmax; })
        bound.def("slack_argmax", apart(&Batch::slack_argmax), "scores"_array, "margin"_array, "costs"_array,
                  "constants"_array, "z"_array, "value"_array, "status"_array, "threads"_a);
}

// Binds the projection by active sets.
template <class Batch>
void bind_project(nb::class_<Batch>& bound) {
    bound.def("project", apart(&Batch::project), "sets"_a, "point"_array, "z"_array, "value"_array, "status"_array,
              "threads"_a);
}

}  // namespace maxmargin
