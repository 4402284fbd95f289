// Chains: Viterbi and Euclidean projection, one example at a time, threads over examples.
//
// Viterbi keeps only the forward maxima (position x label) and finds the best predecessor again in the backward pass: K
// comparisons per position instead of K^2 stored indices. Cost per example: T K^2 additions and maxima, a vector at a
// time (8, 4 or 2 lanes, see base/simd.hpp) with the running maxima in registers. -inf forbids a label or a pair; NaN
// and +inf are rejected.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "maxmargin/base/parallel.hpp"
#include "maxmargin/base/simd.hpp"
#include "maxmargin/hull/batch.hpp"

namespace maxmargin::chain {

using hull::ActiveSet;
using hull::HullBatch;
using hull::HullScratch;
using hull::Sparse;
using hull::Status;

using namespace simd;

inline constexpr double NEG_INF = -std::numeric_limits<double>::infinity();

// The batch as the kernels see it. Offsets are absolute positions in a packed vector, `length` positions per example.
struct Batch {
    std::int64_t n_labels;
    bool shared;                          // one transition matrix per example, or one per edge
    std::span<const std::int64_t> nodes;  // n_examples + 1
    std::span<const std::int64_t> pairs;  // n_examples + 1

    std::int64_t n_examples() const { return static_cast<std::int64_t>(nodes.size()) - 1; }
    std::int64_t length(std::int64_t i) const { return (nodes[i + 1] - nodes[i]) / n_labels; }
    std::int64_t longest() const {
        std::int64_t most = 0;
        for (std::int64_t i = 0; i < n_examples(); ++i) most = std::max(most, length(i));
        return most;
    }
};

// Constraints on which labels may follow each other, come first and come last, as numbers to add to scores: 0, or -inf
// for what is forbidden. All empty where there are no constraints.
struct Constraints {
    std::span<const double> pairs, first, last;  // K x K, K, K

    bool none() const { return pairs.empty(); }
    // The scores of one example, nodes before pairs, with the constraints added; `to` has as many entries.
    void add(std::int64_t k, bool shared, std::int64_t length, const double* scores, double* to) const {
        const std::int64_t square = k * k, edges = length > 1 ? length - 1 : 0;
        std::copy(scores, scores + length * k, to);
        if (length > 0)
            for (std::int64_t b = 0; b < k; ++b) {
                to[b] += first[b];
                to[(length - 1) * k + b] += last[b];
            }
        for (std::int64_t table = 0; table < (shared ? 1 : edges); ++table) {
            const double* from = scores + length * k + table * square;
            double* out = to + length * k + table * square;
            for (std::int64_t j = 0; j < square; ++j) out[j] = from[j] + pairs[j];
        }
    }
};

// Columns of a transition matrix in panels of at most six vectors, whose running maxima stay in registers.
struct Panels {
    static constexpr std::int64_t WIDEST = 6, MOST_ROWS = 4;  // vectors and rows that panel_max takes at a time
    int lanes;                                                // of the vectors
    std::int64_t n_labels, padded, count, narrow, wide;       // the first `wide` panels have narrow + 1 vectors

    Panels(std::int64_t k, int width) : lanes(width), n_labels(k) {
        const std::int64_t vectors = (k + lanes - 1) / lanes;
        padded = std::max(vectors * lanes, (k + MOST_ROWS - 1) / MOST_ROWS * MOST_ROWS);
        count = (vectors + WIDEST - 1) / WIDEST;
        narrow = vectors / count;
        wide = vectors % count;
    }
    std::int64_t vectors(std::int64_t panel) const { return narrow + (panel < wide ? 1 : 0); }
};

struct Aligned {
    std::unique_ptr<double[], void (*)(double*)> data{nullptr, [](double*) {}};
    void resize(std::int64_t n) {
        constexpr std::align_val_t where{64};
        double* fresh = static_cast<double*>(::operator new(sizeof(double) * static_cast<std::size_t>(n), where));
        data = {fresh, [](double* p) { ::operator delete(p, std::align_val_t{64}); }};
    }
    void resize(std::int64_t n, double fill) {
        resize(n);
        std::fill(get(), get() + n, fill);
    }
    double* get() const { return data.get(); }
};

// Scratch of one thread: the packed transition matrix, the forward maxima and the labels found.
struct Scratch {
    Aligned matrix, forward, sums;
    std::vector<std::int32_t> labels;

    Scratch(const Panels& panels, std::int64_t longest) : labels(static_cast<std::size_t>(longest)) {
        matrix.resize(panels.padded * panels.padded, NEG_INF);
        sums.resize(panels.padded, NEG_INF);
        forward.resize(std::max<std::int64_t>(longest, 1) * panels.padded, NEG_INF);
    }
};

// Whether some value is NaN or +inf.
template <class Vec>
MM_INLINE bool refused_at(int, const double* MM_RESTRICT x, std::int64_t n) {
    constexpr double most = std::numeric_limits<double>::max();
    constexpr std::int64_t width = simd::lanes<Vec>;
    std::int64_t i = 0;
    bool bad = false;
    if (n >= width) {
        auto fine = load<Vec>(x) <= most;
        for (i = width; i + width <= n; i += width) fine &= load<Vec>(x + i) <= most;
        bad = any(~fine);
    }
    for (; i < n; ++i) bad |= !(x[i] <= most);
    return bad;
}
MM_LEVELS(bool, refused, (int widest, const double* x, std::int64_t n), (widest, x, n))

// Row-major K x K into panels: panel after panel, each a row-major (padded rows) x (its width). Padding stays -inf.
MM_INLINE void pack(const Panels& panels, const double* MM_RESTRICT from, double* MM_RESTRICT to) {
    const std::int64_t k = panels.n_labels;
    std::int64_t first = 0;
    for (std::int64_t p = 0; p < panels.count; ++p) {
        const std::int64_t width = panels.vectors(p) * panels.lanes;
        const std::int64_t used = std::min(width, k - first);
        for (std::int64_t a = 0; a < k; ++a)
            std::memcpy(to + a * width, from + a * k + first, sizeof(double) * static_cast<std::size_t>(used));
        to += panels.padded * width;
        first += width;
    }
}

// out[b] = max_a before[a] + matrix[a][b] over one panel of N vectors. U rows at a time, each with its own running
// maxima, so that narrow panels do not wait for one chain of maxima; rows are padded with -inf to a multiple of U.
template <class Vec, int N, int U>
MM_INLINE void panel_max(const double* MM_RESTRICT before, const double* MM_RESTRICT matrix, std::int64_t rows,
                         double* MM_RESTRICT out) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    Vec best[U][N];
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u)
#pragma GCC unroll 6
        for (int j = 0; j < N; ++j) best[u][j] = Vec{} + NEG_INF;
    for (std::int64_t a = 0; a < rows; a += U) {
        const double* row = matrix + a * N * width;
#pragma GCC unroll 4
        for (int u = 0; u < U; ++u) {
            const Vec here = before[a + u] - Vec{};  // x - 0 is x for every x, so this is a plain broadcast
#pragma GCC unroll 6
            for (int j = 0; j < N; ++j) {
                const Vec sum = here + load<Vec>(row + (u * N + j) * width);
                best[u][j] = larger(sum, best[u][j]);
            }
        }
    }
#pragma GCC unroll 6
    for (int j = 0; j < N; ++j) {
        Vec most = best[0][j];
#pragma GCC unroll 4
        for (int u = 1; u < U; ++u) most = larger(best[u][j], most);
        store(out + j * width, most);
    }
}

template <class Vec>
MM_INLINE void step(const Panels& panels, const double* before, const double* matrix, double* out) {
    for (std::int64_t p = 0; p < panels.count; ++p) {
        const std::int64_t vectors = panels.vectors(p);
        const std::int64_t rows = panels.n_labels;
        switch (vectors) {
            case 1: panel_max<Vec, 1, 4>(before, matrix, (rows + 3) / 4 * 4, out); break;
            case 2: panel_max<Vec, 2, 2>(before, matrix, (rows + 1) / 2 * 2, out); break;
            case 3: panel_max<Vec, 3, 2>(before, matrix, (rows + 1) / 2 * 2, out); break;
            case 4: panel_max<Vec, 4, 1>(before, matrix, rows, out); break;
            case 5: panel_max<Vec, 5, 1>(before, matrix, rows, out); break;
            default: panel_max<Vec, 6, 1>(before, matrix, rows, out); break;
        }
        matrix += panels.padded * vectors * simd::lanes<Vec>;
        out += vectors * simd::lanes<Vec>;
    }
}

// Position and value of the largest of the first n entries of a row, the first among equals. The row is padded with
// -inf to a multiple of the vector length.
template <class Vec>
MM_INLINE std::int64_t first_largest(const double* x, std::int64_t n, double& value) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    std::int64_t at = 0;
    if (n <= 2 * width) {
        for (std::int64_t i = 1; i < n; ++i) at = x[i] > x[at] ? i : at;
        value = x[at];
        return at;
    }
    Vec best = load<Vec>(x);
    for (std::int64_t i = width; i < n; i += width) best = larger(load<Vec>(x + i), best);
    value = largest(best);
    while (at < n - 1 && !(x[at] == value)) ++at;
    return at;
}

// The best label sequence of one chain into scratch.labels, its score into value; the status otherwise.
// Among equals: the lowest last label, then the lowest label before it, and so on.
template <class Vec>
MM_INLINE Status viterbi_at(int, const Panels& panels, bool shared, std::int64_t length,
                            const double* MM_RESTRICT nodes, const double* MM_RESTRICT pairs, Scratch& scratch,
                            double& value) {
    const std::int64_t k = panels.n_labels, square = k * k, padded = panels.padded;
    value = 0.0;
    if (length == 0) return refused_at<Vec>(0, pairs, shared ? square : 0) ? Status::nonfinite : Status::ok;
    if (refused_at<Vec>(0, nodes, length * k)) return Status::nonfinite;
    if (shared && refused_at<Vec>(0, pairs, square)) return Status::nonfinite;

    double* forward = scratch.forward.get();
    double* matrix = scratch.matrix.get();
    std::memcpy(forward, nodes, sizeof(double) * static_cast<std::size_t>(k));
    if (shared && length > 1) pack(panels, pairs, matrix);
    for (std::int64_t t = 1; t < length; ++t) {
        if (!shared) {
            const double* table = pairs + (t - 1) * square;
            if (refused_at<Vec>(0, table, square)) return Status::nonfinite;
            pack(panels, table, matrix);
        }
        double* now = forward + t * padded;
        step<Vec>(panels, now - padded, matrix, now);
        const double* here = nodes + t * k;
        for (std::int64_t b = 0; b < k; ++b) now[b] += here[b];
    }

    std::int64_t label = first_largest<Vec>(forward + (length - 1) * padded, k, value);
    if (value == NEG_INF) return Status::absent;
    if (!std::isfinite(value)) return Status::nonfinite;
    double* sums = scratch.sums.get();
    double ignored;
    scratch.labels[length - 1] = static_cast<std::int32_t>(label);
    for (std::int64_t t = length - 1; t > 0; --t) {
        const double* before = forward + (t - 1) * padded;
        const double* column = pairs + (shared ? 0 : (t - 1) * square) + label;
        for (std::int64_t a = 0; a < k; ++a) sums[a] = before[a] + column[a * k];
        label = first_largest<Vec>(sums, k, ignored);
        scratch.labels[t - 1] = static_cast<std::int32_t>(label);
    }
    return Status::ok;
}
MM_LEVELS(Status, viterbi,
          (int widest, const Panels& panels, bool shared, std::int64_t length, const double* nodes, const double* pairs,
           Scratch& scratch, double& value),
          (widest, panels, shared, length, nodes, pairs, scratch, value))

// Adds one to the parts of a label sequence.
inline void mark(std::int64_t k, bool shared, std::int64_t length, const std::int32_t* labels, double* nodes,
                 double* pairs) {
    for (std::int64_t t = 0; t < length; ++t) nodes[t * k + labels[t]] = 1.0;
    for (std::int64_t t = 1; t < length; ++t)
        pairs[(shared ? 0 : (t - 1) * k * k) + labels[t - 1] * k + labels[t]] += 1.0;
}

// Equal parts from `first` on become one, in rising order, with their number as value.
inline void count_equal(Sparse& vertex, std::size_t first) {
    if (vertex.index.size() == first) return;
    std::sort(vertex.index.begin() + static_cast<std::ptrdiff_t>(first), vertex.index.end());
    std::size_t last = first;
    for (std::size_t j = first + 1; j < vertex.index.size(); ++j) {
        if (vertex.index[j] == vertex.index[last]) {
            vertex.value[last] += 1.0;
        } else {
            vertex.index[++last] = vertex.index[j];
        }
    }
    vertex.index.resize(last + 1);
    vertex.value.resize(last + 1);
}

// The non-zero parts of a label sequence, positions counted from the first node part; equal pairs are counted together.
inline void vertex_of(std::int64_t k, bool shared, std::int64_t length, const std::int32_t* labels, Sparse& vertex) {
    vertex.clear();
    for (std::int64_t t = 0; t < length; ++t) vertex.add(t * k + labels[t], 1.0);
    const std::size_t first = vertex.index.size();
    for (std::int64_t t = 1; t < length; ++t)
        vertex.add(length * k + (shared ? 0 : (t - 1) * k * k) + labels[t - 1] * k + labels[t], 1.0);
    if (shared) count_equal(vertex, first);
}

// z must be zero on entry: fresh pages are zero already, and writing them twice costs as much as a tenth of the pass.
inline void argmax(const Batch& batch, std::span<const double> scores, std::span<double> z, std::span<double> value,
                   std::span<std::int8_t> status, int threads) {
    const Panels panels(batch.n_labels, lanes_in_use());
    std::vector<Scratch> scratch;
    for (int t = 0; t < std::max(threads, 1); ++t) scratch.emplace_back(panels, batch.longest());
    parallel_blocks(batch.n_examples(), 4, threads, [&](int thread, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t length = batch.length(i);
            const Status found = viterbi(panels.lanes, panels, batch.shared, length, scores.data() + batch.nodes[i],
                                         scores.data() + batch.pairs[i], scratch[thread], value[i]);
            if (found == Status::ok)
                mark(batch.n_labels, batch.shared, length, scratch[thread].labels.data(), z.data() + batch.nodes[i],
                     z.data() + batch.pairs[i]);
            if (found == Status::nonfinite) value[i] = std::numeric_limits<double>::quiet_NaN();
            status[i] = static_cast<std::int8_t>(found);
        }
    });
}

// Euclidean projection of every example, the active sets fed by Viterbi.
inline void project(const Batch& batch, const Constraints& constraints, HullBatch& sets, std::span<const double> point,
                    std::span<double> z, std::span<double> value, std::span<std::int8_t> status, int threads) {
    const Panels panels(batch.n_labels, lanes_in_use());
    const std::int64_t k = batch.n_labels;
    std::vector<Scratch> scratch;
    for (int t = 0; t < std::max(threads, 1); ++t) scratch.emplace_back(panels, batch.longest());
    std::vector<HullScratch> work(scratch.size());
    std::vector<std::vector<double>> legal(scratch.size());
    HullBatch::each(batch.n_examples(), threads, [&](int thread, std::int64_t i) {
        HullScratch& mine = work[thread];
        ActiveSet& set = sets.sets[i];
        const std::int64_t length = batch.length(i), n_nodes = length * k;
        mine.resize(sets.sizes[i]);
        double* split = std::copy(point.data() + batch.nodes[i], point.data() + batch.nodes[i + 1], mine.point.data());
        std::copy(point.data() + batch.pairs[i], point.data() + batch.pairs[i + 1], split);
        set.begin(HullBatch::limit(sets.sizes[i]), mine);
        while (!set.done()) {
            double best;
            const double* scores = mine.scores.data();
            if (!constraints.none()) {
                legal[thread].resize(mine.scores.size());
                constraints.add(k, batch.shared, length, scores, legal[thread].data());
                scores = legal[thread].data();
            }
            const Status found =
                viterbi(panels.lanes, panels, batch.shared, length, scores, scores + n_nodes, scratch[thread], best);
            if (found != Status::ok) {
                set.finish(constraints.none() ? Status::nonfinite : found);
                break;
            }
            vertex_of(k, batch.shared, length, scratch[thread].labels.data(), mine.vertex);
            set.absorb(sets.tolerance, mine);
        }
        value[i] = set.result(mine);
        status[i] = static_cast<std::int8_t>(set.status());
        if (set.status() == Status::absent) value[i] = -NEG_INF;
        std::copy(mine.z.begin(), mine.z.begin() + n_nodes, z.begin() + batch.nodes[i]);
        std::copy(mine.z.begin() + n_nodes, mine.z.end(), z.begin() + batch.pairs[i]);
    });
}

}  // namespace maxmargin::chain
