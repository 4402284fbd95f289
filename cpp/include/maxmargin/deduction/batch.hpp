// The kernels of deduction systems over packed batches.
//
// A batch is a class with `size()`, the number of examples, `operator[](i)`, the system of one, and `layout()`, where
// the parts of each example lie in a packed vector. Numbers of an example are gathered from its blocks, if there are
// several, and its output goes back to them.
#pragma once

#include <span>

#include "maxmargin/base/parallel.hpp"
#include "maxmargin/deduction/argmax.hpp"
#include "maxmargin/deduction/inside_outside.hpp"
#include "maxmargin/deduction/k_best.hpp"
#include "maxmargin/deduction/slack.hpp"
#include "maxmargin/hull/batch.hpp"

namespace maxmargin::deduction {

template <class Batch>
using SystemOf = std::remove_cvref_t<decltype(std::declval<const Batch&>()[0])>;

// Packed numbers of one example in the order of its parts: where they lie already, or copied together.
class Gathered {
   public:
    const double* of(const hull::Layout& layout, std::int64_t i, std::span<const double> packed) {
        if (layout.n_blocks == 1) return packed.data() + layout.begin(0, i);
        at_least(copy_, static_cast<std::size_t>(layout.size(i)));
        layout.gather(i, packed, copy_);
        return copy_.data();
    }

   private:
    std::vector<double> copy_;
};

// Where a part of an example lies in a packed vector.
inline std::int64_t place(const hull::Layout& layout, std::int64_t i, std::int64_t part) {
    std::int64_t block = 0;
    for (std::int64_t n; part >= (n = layout.begin(block, i + 1) - layout.begin(block, i)); ++block) part -= n;
    return layout.begin(block, i) + part;
}

// Adds one to the packed entry of each part of an example.
inline void mark(const hull::Layout& layout, std::int64_t i, const std::vector<std::int32_t>& parts, double* z) {
    for (const std::int32_t part : parts) z[place(layout, i, part)] += 1.0;
}

// Examples per block of work: enough parts to pay for handing the block out.
inline std::int64_t grain(const hull::Layout& layout, std::size_t n_parts) {
    const std::int64_t mean = static_cast<std::int64_t>(n_parts) / std::max<std::int64_t>(layout.n_examples, 1);
    return std::clamp<std::int64_t>(2000 / (mean + 1), 1, 64);
}

// z must be zero on entry, here and below.
template <class Batch>
void argmax(const Batch& batch, std::span<const double> scores, std::span<double> z, std::span<double> value,
            std::span<std::int8_t> status, int threads) {
    struct Scratch {
        Argmax<SystemOf<Batch>> search;
        Gathered own;
    };
    const hull::Layout layout = batch.layout();
    auto scratch = per_thread<Scratch>(threads);
    parallel_each(batch.size(), grain(layout, scores.size()), threads, [&](int thread, std::int64_t i) {
        auto& [search, own] = scratch[thread];
        const Status found = search.run(batch[i], own.of(layout, i, scores), value[i]);
        if (found == Status::ok) mark(layout, i, search.parts, z.data());
        else value[i] = no_value(found);
        status[i] = static_cast<std::int8_t>(found);
    });
}

template <class Batch>
void marginals(const Batch& batch, std::span<const double> potentials, std::span<double> z, std::span<double> value,
               std::span<std::int8_t> status, int threads) {
    struct Scratch {
        InsideOutside<SystemOf<Batch>> sums;
        Gathered own;
        std::vector<double> z;
    };
    const hull::Layout layout = batch.layout();
    auto scratch = per_thread<Scratch>(threads);
    parallel_each(batch.size(), grain(layout, potentials.size()), threads, [&](int thread, std::int64_t i) {
        Scratch& mine = scratch[thread];
        mine.z.assign(static_cast<std::size_t>(layout.size(i)), 0.0);
        const Status found = mine.sums.run(batch[i], mine.own.of(layout, i, potentials), mine.z.data(), value[i]);
        if (found == Status::ok) layout.scatter(i, mine.z, z);
        else value[i] = no_value(found);
        status[i] = static_cast<std::int8_t>(found);
    });
}

// Rank r of example i goes to z[r][..], value[r][i] and status[r][i].
template <class Batch>
void k_best(const Batch& batch, std::int64_t k, std::span<const double> scores, std::span<double> z,
            std::span<double> value, std::span<std::int8_t> status, int threads) {
    struct Scratch {
        KBest<SystemOf<Batch>> search;
        Gathered own;
    };
    const hull::Layout layout = batch.layout();
    const std::int64_t n = batch.size(), n_parts = static_cast<std::int64_t>(scores.size());
    auto scratch = per_thread<Scratch>(threads);
    parallel_each(n, 1, threads, [&](int thread, std::int64_t i) {
        auto& [search, own] = scratch[thread];
        const auto system = batch[i];
        Status found = search.begin(system, own.of(layout, i, scores));
        for (std::int64_t r = 0; r < k; ++r) {
            double& score = value[r * n + i];
            const std::vector<std::int32_t>* parts = found == Status::ok ? search.next(&score) : nullptr;
            if (parts) mark(layout, i, *parts, z.data() + r * n_parts);
            else if (found == Status::ok) found = Status::absent;
            if (!parts) score = no_value(found);
            status[r * n + i] = static_cast<std::int8_t>(found);
        }
    });
}

template <class Batch>
void slack_argmax(const Batch& batch, std::span<const double> scores, std::span<const double> margin,
                  std::span<const double> costs, std::span<const double> constants, std::span<double> z,
                  std::span<double> value, std::span<std::int8_t> status, int threads) {
    struct Scratch {
        SlackSearch<SystemOf<Batch>> search;
        Gathered own, own_costs;
    };
    const hull::Layout layout = batch.layout();
    auto scratch = per_thread<Scratch>(threads);
    parallel_each(batch.size(), 1, threads, [&](int thread, std::int64_t i) {
        auto& [search, own, own_costs] = scratch[thread];
        const Status found = search.run(batch[i], own.of(layout, i, scores), margin[i], own_costs.of(layout, i, costs),
                                        constants[i], value[i]);
        if (found == Status::ok || found == Status::inexact) mark(layout, i, search.parts, z.data());
        else value[i] = no_value(found);
        status[i] = static_cast<std::int8_t>(found);
    });
}

// By an active set of outputs (hull/projection.hpp).
template <class Batch>
void project(const Batch& batch, hull::HullBatch& sets, std::span<const double> point, std::span<double> z,
             std::span<double> value, std::span<std::int8_t> status, int threads) {
    const hull::Layout layout = batch.layout();
    auto searches = per_thread<Argmax<SystemOf<Batch>>>(threads);
    const auto blocks = [&](std::int64_t i, auto&& block) {
        for (std::int64_t b = 0; b < layout.n_blocks; ++b)
            block(point.data() + layout.begin(b, i), layout.begin(b, i), layout.begin(b, i + 1) - layout.begin(b, i));
    };
    sets.project(z, value, status, threads, blocks,
                 [&](int thread, std::int64_t i, const std::vector<double>& scores, Sparse& vertex) {
                     double best;
                     const Status found = searches[thread].run(batch[i], scores.data(), best);
                     if (found == Status::ok) vertex_of(searches[thread].parts, vertex);
                     return found;
                 });
}

}  // namespace maxmargin::deduction
