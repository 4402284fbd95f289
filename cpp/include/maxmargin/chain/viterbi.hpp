// Chains: Viterbi and Euclidean projection, one example at a time, threads over examples.
//
// Viterbi keeps only the forward maxima (position x label) and finds the best predecessor again in the backward pass: K
// comparisons per position instead of K^2 stored indices. Cost per example: T K^2 additions and maxima, a vector at a
// time (8, 4 or 2 lanes, see base/simd.hpp) with the running maxima in registers. -inf forbids a label or a pair; NaN
// and +inf are rejected.
//
// With many labels most pairs are never met, and score 0. A matrix of at least 64 labels with few other entries is
// taken by these: the maximum over the zeros of a column is that of the best label before which has a zero there, and
// a few labels settle this for all columns. The maxima are the same numbers, at a cost of the non-zeros per position.
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
#include "maxmargin/base/scratch.hpp"
#include "maxmargin/base/simd.hpp"
#include "maxmargin/hull/batch.hpp"

namespace maxmargin::chain {

using hull::HullBatch;
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

// Some columns of a table: the first of them, and how many vectors.
struct Panel {
    std::int64_t first, vectors;
};

// Columns for k labels in panels of about equal width, at most `widest` vectors.
inline std::vector<Panel> panels_of(std::int64_t k, int lanes, std::int64_t widest) {
    const std::int64_t vectors = (k + lanes - 1) / lanes, count = (vectors + widest - 1) / widest;
    std::vector<Panel> panels;
    for (std::int64_t p = 0, first = 0; p < count; ++p) {
        panels.push_back({first, vectors / count + (p < vectors % count ? 1 : 0)});
        first += panels.back().vectors * lanes;
    }
    return panels;
}

// A transition matrix in panels of at most six vectors, whose running maxima stay in registers. Panel after panel, each
// a row-major (padded rows) x (its width).
struct Panels {
    static constexpr std::int64_t WIDEST = 6, MOST_ROWS = 4;  // vectors and rows that are taken at a time
    int lanes;                                                // of the vectors
    std::int64_t n_labels, padded;
    std::vector<Panel> list;

    Panels(std::int64_t k, int width) : lanes(width), n_labels(k), list(panels_of(k, width, WIDEST)) {
        padded = std::max((k + lanes - 1) / lanes * lanes, (k + MOST_ROWS - 1) / MOST_ROWS * MOST_ROWS);
    }
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

// The entries of a matrix that are neither 0 nor -inf, row after row.
struct SparsePairs {
    static constexpr std::int64_t LEAST_LABELS = 64, SHARE = 8;  // at most one entry in SHARE

    std::vector<std::int32_t> starts, columns;
    std::vector<double> values;
    std::vector<double> most;  // of each row; -inf where it has none

    bool add(std::int64_t a, std::int64_t b, double x) {
        if (x == 0.0 || x == NEG_INF) return true;
        columns.push_back(static_cast<std::int32_t>(b));
        values.push_back(x);
        most[static_cast<std::size_t>(a)] = std::max(most[static_cast<std::size_t>(a)], x);
        return x <= std::numeric_limits<double>::max();
    }
};

// Whether a matrix has many labels and few entries, which are then taken; `refused` if it has NaN or +inf.
template <class Vec>
MM_INLINE bool take_pairs_at(std::int64_t k, const double* MM_RESTRICT pairs, SparsePairs& to, bool& refused) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    refused = false;
    if (k < SparsePairs::LEAST_LABELS) return false;
    const auto room = static_cast<std::size_t>(k * k / SparsePairs::SHARE);
    to.starts.assign(1, 0);
    to.columns.clear();
    to.values.clear();
    to.most.assign(static_cast<std::size_t>(k), NEG_INF);
    bool fine = true;
    for (std::int64_t a = 0; a < k; ++a) {
        const double* row = pairs + a * k;
        std::int64_t b = 0;
        for (; b + width <= k; b += width) {
            if (!any(load<Vec>(row + b) != 0.0)) continue;
            for (std::int64_t j = b; j < b + width; ++j) fine &= to.add(a, j, row[j]);
        }
        for (; b < k; ++b) fine &= to.add(a, b, row[b]);
        if (to.columns.size() > room) return false;
        to.starts.push_back(static_cast<std::int32_t>(to.columns.size()));
    }
    refused = !fine;
    return fine;
}
MM_LEVELS(take_pairs)

// Scratch of one thread: the packed transition matrix, the forward maxima and the labels found.
struct Scratch {
    Aligned forward, sums;
    std::vector<std::int32_t> labels;
    SparsePairs sparse;
    std::vector<std::int64_t> open;  // whether a column has not been settled

    // The packed matrix, made when it is needed.
    double* matrix(const Panels& panels) {
        if (!matrix_.get()) matrix_.resize(panels.padded * panels.padded, NEG_INF);
        return matrix_.get();
    }

    Scratch(const Panels& panels, std::int64_t longest) : labels(static_cast<std::size_t>(longest)) {
        sums.resize(panels.padded, NEG_INF);
        forward.resize(std::max<std::int64_t>(longest, 1) * panels.padded, NEG_INF);
    }

   private:
    Aligned matrix_;
};

// Row-major K x K into panels. Padding stays as it is.
MM_INLINE void pack(const Panels& panels, const double* MM_RESTRICT from, double* MM_RESTRICT to) {
    const std::int64_t k = panels.n_labels;
    for (const auto [first, vectors] : panels.list) {
        const std::int64_t width = vectors * panels.lanes, used = std::min(width, k - first);
        for (std::int64_t a = 0; a < k; ++a)
            std::memcpy(to + a * width, from + a * k + first, sizeof(double) * static_cast<std::size_t>(used));
        to += panels.padded * width;
    }
}

// Max-product: maxima of sums. Sum-product: sums of products.
enum class Over { maxima, sums };
template <Over over>
inline constexpr double nothing = over == Over::maxima ? NEG_INF : 0.0;

// The total so far and one more term, message and factor.
template <Over over, class Vec>
MM_INLINE Vec with_term(const Vec& total, const Vec& message, const Vec& factor) {
    if constexpr (over == Over::maxima) {
        return larger<Vec>(message + factor, total);
    } else {
        return total + message * factor;
    }
}
template <Over over, class Vec>
MM_INLINE Vec with_total(const Vec& total, const Vec& other) {
    if constexpr (over == Over::maxima) {
        return larger(other, total);
    } else {
        return total + other;
    }
}

// out[b] = max_a before[a] + matrix[a][b], or the sum of products, over one panel of N vectors. U rows at a time, each
// with its own running totals, so that narrow panels do not wait for one chain of operations; `matrix` and `before` are
// padded to a multiple of U rows.
template <class Vec, Over over, int N, int U>
MM_INLINE void panel(const double* MM_RESTRICT before, const double* MM_RESTRICT matrix, std::int64_t rows,
                     double* MM_RESTRICT out) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    Vec total[U][N];
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u)
#pragma GCC unroll 6
        for (int j = 0; j < N; ++j) total[u][j] = Vec{} + nothing<over>;
    for (std::int64_t a = 0; a < rows; a += U) {
        const double* row = matrix + a * N * width;
#pragma GCC unroll 4
        for (int u = 0; u < U; ++u) {
            const Vec here = before[a + u] - Vec{};  // x - 0 is x for every x, so this is a plain broadcast
#pragma GCC unroll 6
            for (int j = 0; j < N; ++j)
                total[u][j] = with_term<over, Vec>(total[u][j], here, load<Vec>(row + (u * N + j) * width));
        }
    }
#pragma GCC unroll 6
    for (int j = 0; j < N; ++j) {
        Vec all = total[0][j];
#pragma GCC unroll 4
        for (int u = 1; u < U; ++u) all = with_total<over, Vec>(all, total[u][j]);
        store(out + j * width, all);
    }
}

template <class Vec, Over over>
MM_INLINE void step(const Panels& panels, const double* before, const double* matrix, double* out) {
    constexpr int some = over == Over::maxima ? 2 : 4, few = some / 2;
    for (const auto [first, vectors] : panels.list) {
        const std::int64_t rows = panels.n_labels;
        const double* cells = matrix + panels.padded * first;
        switch (vectors) {
            case 1: panel<Vec, over, 1, 4>(before, cells, rows, out + first); break;
            case 2: panel<Vec, over, 2, some>(before, cells, rows, out + first); break;
            case 3: panel<Vec, over, 3, some>(before, cells, rows, out + first); break;
            case 4: panel<Vec, over, 4, few>(before, cells, rows, out + first); break;
            case 5: panel<Vec, over, 5, few>(before, cells, rows, out + first); break;
            default: panel<Vec, over, 6, few>(before, cells, rows, out + first); break;
        }
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

// One chain of at least one position. Its edges share a matrix, or each has its own table.
struct Chain {
    std::int64_t length;
    const double* nodes;
    const double* pairs;                             // K x K tables, one or as many as edges; or null, with `columns`
    const double* matrix = nullptr;                  // the shared matrix in panels; null without one
    const double* columns = nullptr;                 // it transposed, rows of `padded` numbers; may be null
    const SparsePairs* sparse = nullptr;             // its entries, with `pairs`; null where there are many
    const double *first = nullptr, *last = nullptr;  // added to the scores of the labels at the ends; null for none
    bool checked = false;                            // tables of edges are known to hold neither NaN nor +inf
};

// The same as `step` for maxima, with the entries of a matrix that has few.
template <class Vec>
MM_INLINE void sparse_step(std::int64_t k, const SparsePairs& sparse, const double* pairs,
                           const double* MM_RESTRICT before, double* MM_RESTRICT now, Scratch& scratch) {
    double* left = scratch.sums.get();  // labels before that have not been taken, behind k -inf
    std::memcpy(left, before, sizeof(double) * static_cast<std::size_t>(k));
    scratch.open.assign(static_cast<std::size_t>(k), 1);
    std::int64_t* MM_RESTRICT open = scratch.open.data();
    std::fill(now, now + k, NEG_INF);
    for (std::int64_t opened = k; opened > 0;) {
        double value;
        const std::int64_t a = first_largest<Vec>(left, k, value);
        if (value == NEG_INF) break;
        left[a] = NEG_INF;
        const double* MM_RESTRICT row = pairs + a * k;
        opened = 0;
        for (std::int64_t b = 0; b < k; ++b) {
            const double sum = value + row[b];
            now[b] = sum > now[b] ? sum : now[b];
            open[b] = row[b] == 0.0 ? 0 : open[b];
            opened += open[b];
        }
    }
    double least = now[0];
    for (std::int64_t b = 1; b < k; ++b) least = now[b] < least ? now[b] : least;
    for (std::int64_t a = 0; a < k; ++a) {
        const double value = before[a];
        if (!(value + sparse.most[static_cast<std::size_t>(a)] > least)) continue;
        for (std::int32_t q = sparse.starts[a]; q < sparse.starts[a + 1]; ++q) {
            const double sum = value + sparse.values[q];
            double& own = now[sparse.columns[q]];
            own = sum > own ? sum : own;
        }
    }
}

// The scores of the best prefixes, into scratch.forward (position x label), with chain.last added at the end. False if
// the table of an edge is refused.
template <class Vec>
MM_INLINE bool forward_maxima(const Panels& panels, const Chain& chain, Scratch& scratch) {
    const std::int64_t k = panels.n_labels, square = k * k, padded = panels.padded;
    double* forward = scratch.forward.get();
    std::memcpy(forward, chain.nodes, sizeof(double) * static_cast<std::size_t>(k));
    if (chain.first) add_to(forward, chain.first, k);
    for (std::int64_t t = 1; t < chain.length; ++t) {
        double* now = forward + t * padded;
        if (chain.sparse) {
            sparse_step<Vec>(k, *chain.sparse, chain.pairs, now - padded, now, scratch);
        } else {
            const double* matrix = chain.matrix;
            if (!matrix) {
                const double* table = chain.pairs + (t - 1) * square;
                if (!chain.checked && refused_at<Vec>(table, square)) return false;
                pack(panels, table, scratch.matrix(panels));
                matrix = scratch.matrix(panels);
            }
            step<Vec, Over::maxima>(panels, now - padded, matrix, now);
        }
        add_to(now, chain.nodes + t * k, k);
    }
    if (chain.last) add_to(forward + (chain.length - 1) * padded, chain.last, k);
    return true;
}

// The best label sequence of one chain, its score into value; the status otherwise. Among equals: the lowest last
// label, then the lowest label before it, and so on.
template <class Vec>
MM_INLINE Status best_labels(const Panels& panels, const Chain& chain, Scratch& scratch,
                             std::int32_t* MM_RESTRICT labels, double& value) {
    const std::int64_t k = panels.n_labels, padded = panels.padded, last = chain.length - 1;
    if (!forward_maxima<Vec>(panels, chain, scratch)) return Status::nonfinite;
    const double* forward = scratch.forward.get();
    std::int64_t label = first_largest<Vec>(forward + last * padded, k, value);
    if (value == NEG_INF) return Status::absent;
    if (!std::isfinite(value)) return Status::nonfinite;
    double* sums = scratch.sums.get();
    double ignored;
    labels[last] = static_cast<std::int32_t>(label);
    for (std::int64_t t = last; t > 0; --t) {
        const double* before = forward + (t - 1) * padded;
        if (chain.columns) {
            const double* column = chain.columns + label * padded;
            for (std::int64_t a = 0; a < k; a += simd::lanes<Vec>)
                store(sums + a, load<Vec>(before + a) + load<Vec>(column + a));
        } else {
            const double* column = chain.pairs + (chain.matrix || chain.sparse ? 0 : (t - 1) * k * k) + label;
            for (std::int64_t a = 0; a < k; ++a) sums[a] = before[a] + column[a * k];
        }
        label = first_largest<Vec>(sums, k, ignored);
        labels[t - 1] = static_cast<std::int32_t>(label);
    }
    return Status::ok;
}

// The same for scores that have not been checked, into scratch.labels.
template <class Vec>
MM_INLINE Status viterbi_at(const Panels& panels, bool shared, std::int64_t length, const double* nodes,
                            const double* pairs, Scratch& scratch, double& value) {
    const std::int64_t k = panels.n_labels;
    value = 0.0;
    if (refused_at<Vec>(nodes, length * k)) return Status::nonfinite;
    bool refused = false;
    const bool sparse = shared && take_pairs_at<Vec>(k, pairs, scratch.sparse, refused);
    if (refused || (shared && !sparse && refused_at<Vec>(pairs, k * k))) return Status::nonfinite;
    if (length == 0) return Status::ok;
    const bool dense = shared && !sparse;
    if (dense && length > 1) pack(panels, pairs, scratch.matrix(panels));
    Chain chain{length, nodes, pairs, dense ? scratch.matrix(panels) : nullptr};
    if (sparse) chain.sparse = &scratch.sparse;
    return best_labels<Vec>(panels, chain, scratch, scratch.labels.data(), value);
}
MM_LEVELS(viterbi)

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

// The best labels of every example, handed to take(example, status, labels).
template <class Take>
void viterbi_all(const Batch& batch, std::span<const double> scores, std::span<double> value,
                 std::span<std::int8_t> status, int threads, Take&& take) {
    const Panels panels(batch.n_labels, lanes_in_use());
    auto scratch = per_thread<Scratch>(threads, panels, batch.longest());
    parallel_each(batch.n_examples(), 4, threads, [&](int thread, std::int64_t i) {
        const Status found =
            viterbi(panels.lanes, panels, batch.shared, batch.length(i), scores.data() + batch.nodes[i],
                    scores.data() + batch.pairs[i], scratch[thread], value[i]);
        take(i, found, scratch[thread].labels.data());
        if (found == Status::nonfinite) value[i] = std::numeric_limits<double>::quiet_NaN();
        status[i] = static_cast<std::int8_t>(found);
    });
}

// z must be zero on entry: fresh pages are zero already, and writing them twice costs as much as a tenth of the pass.
inline void argmax(const Batch& batch, std::span<const double> scores, std::span<double> z, std::span<double> value,
                   std::span<std::int8_t> status, int threads) {
    viterbi_all(batch, scores, value, status, threads, [&](std::int64_t i, Status found, const std::int32_t* labels) {
        if (found == Status::ok)
            mark(batch.n_labels, batch.shared, batch.length(i), labels, z.data() + batch.nodes[i],
                 z.data() + batch.pairs[i]);
    });
}

// Euclidean projection of every example, the active sets fed by Viterbi.
inline void project(const Batch& batch, const Constraints& constraints, HullBatch& sets, std::span<const double> point,
                    std::span<double> z, std::span<double> value, std::span<std::int8_t> status, int threads) {
    const Panels panels(batch.n_labels, lanes_in_use());
    const std::int64_t k = batch.n_labels;
    auto scratch = per_thread<Scratch>(threads, panels, batch.longest());
    std::vector<std::vector<double>> legal(scratch.size());
    const auto find = [&](int thread, std::int64_t i, const std::vector<double>& given, Sparse& vertex) {
        const std::int64_t length = batch.length(i);
        const double* scores = given.data();
        if (!constraints.none()) {
            legal[thread].resize(given.size());
            constraints.add(k, batch.shared, length, scores, legal[thread].data());
            scores = legal[thread].data();
        }
        double best;
        const Status found =
            viterbi(panels.lanes, panels, batch.shared, length, scores, scores + length * k, scratch[thread], best);
        if (found != Status::ok) return constraints.none() ? Status::nonfinite : found;
        vertex_of(k, batch.shared, length, scratch[thread].labels.data(), vertex);
        return found;
    };
    const auto blocks = [&](std::int64_t i, auto&& block) {
        for (const auto& offsets : {batch.nodes, batch.pairs})
            block(point.data() + offsets[i], offsets[i], offsets[i + 1] - offsets[i]);
    };
    sets.project(z, value, status, threads, blocks, find);
    for (std::int64_t i = 0; i < batch.n_examples(); ++i)
        if (status[i] == static_cast<std::int8_t>(Status::absent)) value[i] = -NEG_INF;
}

}  // namespace maxmargin::chain
