// The active sets of a whole batch: rounds in lock step with a batched argmax, and copies in and out for warm starts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "maxmargin/base/parallel.hpp"
#include "maxmargin/base/scratch.hpp"
#include "maxmargin/hull/projection.hpp"

namespace maxmargin::hull {

// Where the parts of example e lie in a packed vector: one range per block.
struct Layout {
    std::int64_t n_blocks, n_examples;
    std::span<const std::int64_t> offsets;  // n_blocks x (n_examples + 1), positions in the packed vector

    std::int64_t begin(std::int64_t block, std::int64_t e) const { return offsets[block * (n_examples + 1) + e]; }
    std::int64_t size(std::int64_t e) const {
        std::int64_t total = 0;
        for (std::int64_t b = 0; b < n_blocks; ++b) total += begin(b, e + 1) - begin(b, e);
        return total;
    }
    void gather(std::int64_t e, std::span<const double> from, std::vector<double>& to) const {
        double* at = to.data();
        for (std::int64_t b = 0; b < n_blocks; ++b)
            at = std::copy(from.data() + begin(b, e), from.data() + begin(b, e + 1), at);
    }
    void scatter(std::int64_t e, const std::vector<double>& from, std::span<double> to) const {
        const double* at = from.data();
        for (std::int64_t b = 0; b < n_blocks; ++b) {
            const std::int64_t n = begin(b, e + 1) - begin(b, e);
            std::copy(at, at + n, to.data() + begin(b, e));
            at += n;
        }
    }
};

// The active sets of a batch, kept over the rounds of one projection.
struct HullBatch {
    std::vector<std::int64_t> sizes;  // parts per example
    std::vector<ActiveSet> sets;
    double tolerance;
    bool begun = false;  // a set serves one projection: begin() would take what another has left for loaded vertices

    HullBatch(std::span<const std::int64_t> parts, double tol)
        : sizes(parts.begin(), parts.end()), sets(parts.size()), tolerance(tol) {}

    // Whether these are the sets of n examples, size(e) parts each.
    template <class Size>
    bool fit(std::int64_t n, Size&& size) const {
        bool good = static_cast<std::int64_t>(sizes.size()) == n;
        for (std::int64_t e = 0; good && e < n; ++e) good = sizes[e] == size(e);
        return good;
    }

    static std::int64_t limit(std::int64_t parts) { return 1000 + 10 * parts; }

    // The projections of all examples where the argmax is at hand: find(thread, e, scores, vertex) returns its status.
    // blocks(e, block) calls block(from, to, n) for the parts of an example: n numbers of the point, and where their
    // projection goes in z.
    template <class Blocks, class Find>
    void project(std::span<double> z, std::span<double> value, std::span<std::int8_t> status, int threads,
                 Blocks&& blocks, Find&& find) {
        begun = true;
        auto scratch = per_thread<HullScratch>(threads);
        parallel_each(static_cast<std::int64_t>(sets.size()), 1, threads, [&](int thread, std::int64_t e) {
            HullScratch& mine = scratch[thread];
            ActiveSet& set = sets[e];
            mine.resize(sizes[e]);
            double* to = mine.point.data();
            blocks(e, [&](const double* from, std::int64_t, std::int64_t n) { to = std::copy_n(from, n, to); });
            set.begin(limit(sizes[e]), mine);
            while (!set.done()) {
                const Status found = find(thread, e, mine.scores, mine.vertex);
                if (found == Status::ok) set.absorb(tolerance, mine);
                else set.finish(found);
            }
            value[e] = set.result(mine);
            status[e] = static_cast<std::int8_t>(set.status());
            const double* from = mine.z.data();
            blocks(e, [&](const double*, std::int64_t at, std::int64_t n) {
                std::copy_n(from, n, z.data() + at);
                from += n;
            });
        });
    }

    // Takes the points of all examples and writes the scores point - z that the first argmax needs (0 where done).
    void begin(const Layout& layout, std::span<const double> point, std::span<double> scores, int threads) {
        begun = true;
        auto scratch = per_thread<HullScratch>(threads);
        parallel_each(layout.n_examples, 1, threads, [&](int thread, std::int64_t e) {
            HullScratch& mine = scratch[thread];
            mine.resize(sizes[e]);
            layout.gather(e, point, mine.point);
            sets[e].begin(limit(sizes[e]), mine);
            if (sets[e].done()) std::fill(mine.scores.begin(), mine.scores.end(), 0.0);
            layout.scatter(e, mine.scores, scores);
        });
    }

    // One round for the examples ids[e]: vertex holds the maximizers of scores, found their status; scores are updated.
    void absorb(const Layout& layout, std::span<const std::int64_t> ids, std::span<const double> point,
                std::span<const double> vertex, std::span<const std::int8_t> found, std::span<double> scores,
                int threads) {
        auto scratch = per_thread<HullScratch>(threads);
        parallel_each(layout.n_examples, 1, threads, [&](int thread, std::int64_t e) {
            ActiveSet& set = sets[ids[e]];
            if (set.done()) return;
            const auto status = static_cast<Status>(found[e]);
            if (status == Status::nonfinite || status == Status::absent) return set.finish(status);
            HullScratch& mine = scratch[thread];
            mine.resize(sizes[ids[e]]);
            layout.gather(e, vertex, mine.z);
            mine.vertex.clear();
            bool finite = true;
            for (std::size_t j = 0; j < mine.z.size(); ++j) {
                if (mine.z[j] != 0.0) mine.vertex.add(static_cast<std::int64_t>(j), mine.z[j]);
                finite &= std::isfinite(mine.z[j]);
            }
            if (!finite) return set.finish(Status::nonfinite);
            layout.gather(e, point, mine.point);
            set.evaluate(mine);  // the scores it was asked with, and z without the rounding of point - scores
            if (status == Status::inexact) set.doubt();
            set.absorb(tolerance, mine);
            if (!set.done()) layout.scatter(e, mine.scores, scores);
        });
    }

    // The results of all examples.
    void write(const Layout& layout, std::span<const double> point, std::span<double> z, std::span<double> value,
               std::span<std::int8_t> status, int threads) {
        auto scratch = per_thread<HullScratch>(threads);
        parallel_each(layout.n_examples, 1, threads, [&](int thread, std::int64_t e) {
            HullScratch& mine = scratch[thread];
            mine.resize(sizes[e]);
            layout.gather(e, point, mine.point);
            value[e] = sets[e].result(mine);
            layout.scatter(e, mine.z, z);
            status[e] = static_cast<std::int8_t>(sets[e].status());
        });
    }

    // All vertices held with their weights: vertices of example e at [vertices[e], vertices[e + 1]), the non-zeros of
    // vertex i at [nonzeros[i], nonzeros[i + 1]).
    void save(std::span<std::int64_t> vertices, std::span<double> weights, std::span<std::int64_t> nonzeros,
              std::span<std::int32_t> index, std::span<double> value) const {
        std::int64_t vertex = 0, at = 0;
        vertices[0] = nonzeros[0] = 0;
        for (std::size_t e = 0; e < sets.size(); ++e) {
            for (std::int64_t i = 0; i < sets[e].size(); ++i, ++vertex) {
                const auto from = sets[e].index(i);
                const auto x = sets[e].value(i);
                weights[vertex] = sets[e].weight(i);
                std::copy(from.begin(), from.end(), index.begin() + at);
                std::copy(x.begin(), x.end(), value.begin() + at);
                at += static_cast<std::int64_t>(from.size());
                nonzeros[vertex + 1] = at;
            }
            vertices[e + 1] = vertex;
        }
    }

    // The reverse of save, before begin.
    void load(std::span<const std::int64_t> vertices, std::span<const double> weights,
              std::span<const std::int64_t> nonzeros, std::span<const std::int32_t> index,
              std::span<const double> value) {
        for (std::size_t e = 0; e < sets.size(); ++e)
            for (std::int64_t i = vertices[e]; i < vertices[e + 1]; ++i) {
                const auto first = static_cast<std::size_t>(nonzeros[i]);
                const auto count = static_cast<std::size_t>(nonzeros[i + 1] - nonzeros[i]);
                sets[e].preload(index.subspan(first, count), value.subspan(first, count), weights[i]);
            }
    }
};

}  // namespace maxmargin::hull
