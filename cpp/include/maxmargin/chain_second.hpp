// Chains of second order: Viterbi over pairs of neighbouring labels, threads over examples.
//
//     forward_1[b][c] = nodes_0[b] + pairs[b][c] + nodes_1[c]
//     forward_t[b][c] = max_a (forward_{t-1}[a][b] + triples[a][b][c] + pairs[b][c]) + nodes_t[c]
//
// Cost per example: T K^3 additions and maxima, a vector of labels c at a time. The table triples + pairs is larger than
// the first cache from 18 labels on, so up to four chains with the same table walk through it together, each at its own
// position, and every vector that is read serves them all. Only the forward maxima are kept; predecessors are found
// again on the way back. Of a chain longer than a segment, one layer per segment is kept, and the layers of a segment are
// made again on the way back. -inf forbids; NaN and +inf are refused; pairs of labels that are not legal have no rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "maxmargin/chain.hpp"
#include "maxmargin/chain_tables.hpp"
#include "maxmargin/hull_batch.hpp"
#include "maxmargin/parallel.hpp"
#include "maxmargin/simd.hpp"

namespace maxmargin::second {

using chain::Aligned;
using chain::load_part;
using chain::NEG_INF;
using chain::refused_at;
using chain::store_part;
using hull::Sparse;
using hull::Status;

using namespace simd;

inline constexpr double NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();

// Which labels may begin and end a sequence, and follow one another: not zero where they may.
struct Rules {
    std::int64_t n_labels;
    std::span<const std::uint8_t> pairs, first, last;  // K x K, K, K

    bool follows(std::int64_t a, std::int64_t b) const { return pairs[a * n_labels + b] != 0; }
};

// The batch as the kernels see it: scores of nodes one after the other, and tables of every example or of all.
struct Batch {
    Rules rules;
    std::span<const std::int64_t> offsets;  // of the nodes, n_examples + 1
    const double *nodes, *pairs, *triples;
    bool shared;  // one pair of tables for all examples

    std::int64_t n_labels() const { return rules.n_labels; }
    std::int64_t n_examples() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
    std::int64_t length(std::int64_t i) const { return (offsets[i + 1] - offsets[i]) / n_labels(); }
    std::int64_t square() const { return n_labels() * n_labels(); }
    std::int64_t cube() const { return square() * n_labels(); }
    const double* nodes_of(std::int64_t i) const { return nodes + offsets[i]; }
    const double* pairs_of(std::int64_t i) const { return pairs + (shared ? 0 : i * square()); }
    const double* triples_of(std::int64_t i) const { return triples + (shared ? 0 : i * cube()); }
    std::int64_t longest() const {
        std::int64_t most = 0;
        for (std::int64_t i = 0; i < n_examples(); ++i) most = std::max(most, length(i));
        return most;
    }
    // Parts of a packed vector of the batch: all nodes, all pairs, all triples.
    std::int64_t n_parts() const { return offsets.back() + n_examples() * (square() + cube()); }
    std::int64_t pair_parts(std::int64_t i) const { return offsets.back() + i * square(); }
    std::int64_t triple_parts(std::int64_t i) const { return offsets.back() + n_examples() * square() + i * cube(); }
};

// Labels in panels of at most three vectors, so that the running maxima of four chains stay in registers.
struct Shape {
    static constexpr std::int64_t WIDEST = 3, MOST_ROWS = 4;
    int lanes;
    std::int64_t k, padded, height, count, narrow, wide;  // the first `wide` panels have narrow + 1 vectors

    Shape(std::int64_t n_labels, int width) : lanes(width), k(n_labels) {
        const std::int64_t vectors = (k + lanes - 1) / lanes;
        padded = vectors * lanes;
        height = (k + MOST_ROWS - 1) / MOST_ROWS * MOST_ROWS;
        count = (vectors + WIDEST - 1) / WIDEST;
        narrow = vectors / count;
        wide = vectors % count;
    }
    std::int64_t vectors(std::int64_t panel) const { return narrow + (panel < wide ? 1 : 0); }
    std::int64_t layer() const { return k * padded; }  // numbers per position
};

enum class Direction { ahead, back };

// For every label b in the middle a matrix in panels. Ahead: rows a that may come before b, columns c, cells
// triples[a][b][c] + pairs[b][c]. Back: rows c that may come after b, columns a, the same cells. Other cells are -inf.
struct Table {
    Shape shape;
    Direction direction;
    Aligned cells;                        // [middle][panel][row][column of the panel]
    Aligned follow;                       // [b][c] of legal pairs, rows of `padded`
    std::vector<std::int32_t> from;       // [middle][height]: label of each row, times `padded`
    std::vector<std::int64_t> rows;       // [middle]
    std::vector<std::int64_t> start, step;  // of a column: its first cell, and the cells between two rows
    const double *pairs = nullptr, *triples = nullptr;  // whose table it is
    bool refused = false;

    Table(const Rules& rules, int lanes, Direction way = Direction::ahead)
        : shape(rules.n_labels, lanes), direction(way), from(static_cast<std::size_t>(shape.k * shape.height)),
          rows(static_cast<std::size_t>(shape.k)), start(static_cast<std::size_t>(shape.k)),
          step(static_cast<std::size_t>(shape.k)) {
        cells.resize(shape.k * shape.height * shape.padded);
        follow.resize(shape.k * shape.padded, NEG_INF);
        const std::int64_t k = shape.k;
        for (std::int64_t b = 0; b < k; ++b)
            for (std::int64_t x = 0; x < k; ++x)
                if (way == Direction::ahead ? rules.follows(x, b) : rules.follows(b, x))
                    from[b * shape.height + rows[b]++] = static_cast<std::int32_t>(x * shape.padded);
        std::int64_t first = 0;
        for (std::int64_t p = 0; p < shape.count; ++p) {
            const std::int64_t wide = shape.vectors(p) * shape.lanes;
            for (std::int64_t c = first; c < std::min(first + wide, k); ++c) {
                start[c] = first * shape.height + c - first;
                step[c] = wide;
            }
            first += wide;
        }
    }
    const double* middle(std::int64_t b) const { return cells.get() + b * shape.height * shape.padded; }
    double* middle(std::int64_t b) { return cells.get() + b * shape.height * shape.padded; }
    std::int64_t label(std::int64_t b, std::int64_t row) const { return from[b * shape.height + row] / shape.padded; }

    bool holds(const double* p, const double* t) const {
        if (!triples) return false;
        if (p == pairs && t == triples) return true;
        const auto k = static_cast<std::size_t>(shape.k);
        return std::memcmp(p, pairs, sizeof(double) * k * k) == 0 &&
               std::memcmp(t, triples, sizeof(double) * k * k * k) == 0;
    }
};

template <class Vec>
MM_INLINE void pack_at(int, const Rules& rules, const double* MM_RESTRICT pairs, const double* MM_RESTRICT triples,
                       Table& table) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    const Shape& shape = table.shape;
    const std::int64_t k = shape.k;
    table.pairs = pairs;
    table.triples = triples;
    table.refused = refused_at<Vec>(0, pairs, k * k) || refused_at<Vec>(0, triples, k * k * k);
    if (table.refused) return;
    double* follow = table.follow.get();
    for (std::int64_t b = 0; b < k; ++b)
        for (std::int64_t c = 0; c < k; ++c)
            follow[b * shape.padded + c] = rules.follows(b, c) ? pairs[b * k + c] : NEG_INF;
    const bool ahead = table.direction == Direction::ahead;
    for (std::int64_t b = 0; b < k; ++b) {
        double* to = table.middle(b);
        const std::int64_t rows = table.rows[b];
        std::int64_t first = 0;
        for (std::int64_t p = 0; p < shape.count; ++p) {
            const std::int64_t wide = shape.vectors(p) * width;
            for (std::int64_t j = 0; j < rows; ++j) {
                const std::int64_t label = table.label(b, j);
                for (std::int64_t v = 0; v < wide; v += width, to += width) {
                    if (ahead) {
                        const double* row = triples + (label * k + b) * k + first + v;
                        store(to, load_part<Vec>(row, k - first - v, NEG_INF) +
                                      load<Vec>(follow + b * shape.padded + first + v));
                    } else {
                        const double after = follow[b * shape.padded + label];
                        for (std::int64_t u = 0; u < width; ++u) {
                            const std::int64_t a = first + v + u;
                            to[u] = a < k && rules.follows(a, b) ? triples[(a * k + b) * k + label] + after : NEG_INF;
                        }
                    }
                }
            }
            const std::int64_t rest = (shape.height - rows) * wide;
            std::fill(to, to + rest, NEG_INF);
            to += rest;
            first += wide;
        }
    }
}
MM_LEVELS(void, pack,
          (int widest, const Rules& rules, const double* pairs, const double* triples, Table& table),
          (widest, rules, pairs, triples, table))

enum class Over { maxima, sums };

// out[m][c] = max_a (before[m][a] + cells[a][c]) + here[m][c], or sum_a before[m][a] cells[a][c] times here[m][c], over
// one panel of N vectors for M chains; U rows at a time, each with its own running maxima, where there are few chains.
template <class Vec, Over over, int M, int N, int U>
MM_INLINE void panel(const double* MM_RESTRICT cells, const std::int32_t* MM_RESTRICT from, std::int64_t rows,
                     const double* const* before, const double* const* here, double* const* out) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    constexpr double nothing = over == Over::maxima ? NEG_INF : 0.0;
    Vec best[U][M][N];
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u)
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m)
#pragma GCC unroll 3
            for (int j = 0; j < N; ++j) best[u][m][j] = Vec{} + nothing;
    for (std::int64_t a = 0; a < rows; a += U) {
#pragma GCC unroll 4
        for (int u = 0; u < U; ++u) {
            const std::int64_t at = from[a + u];
            const double* row = cells + (a + u) * N * width;
#pragma GCC unroll 4
            for (int m = 0; m < M; ++m) {
                const Vec score = before[m][at] - Vec{};  // x - 0 is x for every x: a plain broadcast
#pragma GCC unroll 3
                for (int j = 0; j < N; ++j) {
                    if constexpr (over == Over::maxima) {
                        best[u][m][j] = larger<Vec>(score + load<Vec>(row + j * width), best[u][m][j]);
                    } else {
                        best[u][m][j] += score * load<Vec>(row + j * width);
                    }
                }
            }
        }
    }
#pragma GCC unroll 4
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 3
        for (int j = 0; j < N; ++j) {
            Vec all = best[0][m][j];
#pragma GCC unroll 4
            for (int u = 1; u < U; ++u) {
                if constexpr (over == Over::maxima) {
                    all = larger(best[u][m][j], all);
                } else {
                    all += best[u][m][j];
                }
            }
            const Vec own = load<Vec>(here[m] + j * width);
            store(out[m] + j * width, over == Over::maxima ? all + own : all * own);
        }
}

// One position further: `now` from `before`, layers of M chains, with a row `here` for each.
template <class Vec, Over over, int M>
MM_INLINE void advance(const Table& table, const double* const* before, const double* const* here, double* const* now) {
    const Shape& shape = table.shape;
    for (std::int64_t b = 0; b < shape.k; ++b) {
        const double* cells = table.middle(b);
        const std::int32_t* from = table.from.data() + b * shape.height;
        const std::int64_t rows = table.rows[b];
        const double *column[M], *row[M];
        double* out[M];
        for (int m = 0; m < M; ++m) {
            column[m] = before[m] + b;
            row[m] = here[m];
            out[m] = now[m] + b * shape.padded;
        }
        for (std::int64_t p = 0; p < shape.count; ++p) {
            const std::int64_t vectors = shape.vectors(p), wide = vectors * simd::lanes<Vec>;
            constexpr int few = M == 1 ? 4 : 1, some = M == 1 ? 2 : 1;
            switch (vectors) {
                case 1: panel<Vec, over, M, 1, few>(cells, from, (rows + few - 1) / few * few, column, row, out); break;
                case 2: panel<Vec, over, M, 2, some>(cells, from, (rows + some - 1) / some * some, column, row, out); break;
                default: panel<Vec, over, M, 3, some>(cells, from, (rows + some - 1) / some * some, column, row, out);
            }
            cells += shape.height * wide;
            for (int m = 0; m < M; ++m) {
                row[m] += wide;
                out[m] += wide;
            }
        }
    }
}

// Node scores of position t, -inf where the label may not stand there.
inline void local_row(const Rules& rules, const double* nodes, std::int64_t length, std::int64_t t, double* row) {
    const std::int64_t k = rules.n_labels;
    const double* own = nodes + t * k;
    std::copy(own, own + k, row);
    if (t == 0)
        for (std::int64_t c = 0; c < k; ++c) row[c] = rules.first[c] ? row[c] : NEG_INF;
    if (t == length - 1)
        for (std::int64_t c = 0; c < k; ++c) row[c] = rules.last[c] ? row[c] : NEG_INF;
}

// One sequence to be labelled, and how it went.
struct Job {
    const double* nodes;
    std::int64_t length;
    std::int32_t* labels;
    double value = 0.0;
    Status status = Status::ok;
};

// A chain on its way: layer u joins positions u and u + 1 and lies in `layers` at u modulo the segment.
struct Slot {
    Job* job = nullptr;
    std::int64_t u = 0;
    Aligned layers, row;
    std::vector<double> kept;  // the last layer of each segment that is done

    double* layer(const Shape& shape, std::int64_t segment, std::int64_t which) {
        return layers.get() + which % segment * shape.layer();
    }
};

struct Scratch {
    static constexpr int SLOTS = 4;
    static constexpr std::int64_t MOST_CELLS = 1 << 22;  // of one slot
    std::int64_t segment;
    Slot slots[SLOTS];
    Aligned best;
    std::vector<Job> jobs;
    std::vector<std::int32_t> labels;

    Scratch(const Shape& shape, std::int64_t longest) {
        segment = std::clamp<std::int64_t>(MOST_CELLS / shape.layer(), 16, 1024);
        const std::int64_t layers = std::clamp<std::int64_t>(longest - 1, 1, segment);
        for (Slot& slot : slots) {
            slot.layers.resize(layers * shape.layer());
            slot.row.resize(shape.padded, 0.0);
        }
        best.resize(shape.padded, NEG_INF);
    }
};

// The layer of the first two positions.
template <class Vec>
MM_INLINE void first_layer(const Rules& rules, const Table& table, const double* nodes, std::int64_t length,
                           double* row, double* layer) {
    const Shape& shape = table.shape;
    local_row(rules, nodes, length, 1, row);
    for (std::int64_t b = 0; b < shape.k; ++b) {
        const double before = rules.first[b] ? nodes[b] : NEG_INF;
        for (std::int64_t c = 0; c < shape.padded; c += simd::lanes<Vec>)
            store(layer + b * shape.padded + c,
                  load<Vec>(table.follow.get() + b * shape.padded + c) + before + load<Vec>(row + c));
    }
}

// The best pair of a layer, the lowest c and then the lowest b among equals; returns its score.
template <class Vec>
MM_INLINE double best_pair(const Shape& shape, const double* layer, double* best, std::int64_t& b, std::int64_t& c) {
    for (std::int64_t v = 0; v < shape.padded; v += simd::lanes<Vec>) {
        Vec most = Vec{} + NEG_INF;
        for (std::int64_t x = 0; x < shape.k; ++x) most = larger(load<Vec>(layer + x * shape.padded + v), most);
        store(best + v, most);
    }
    double value;
    c = chain::first_largest<Vec>(best, shape.k, value);
    for (b = 0; b < shape.k - 1 && !(layer[b * shape.padded + c] == value); ++b) {
    }
    return value;
}

// The label before (b, c), the lowest among equals.
inline std::int64_t best_before(const Table& table, const double* layer, std::int64_t b, std::int64_t c) {
    const std::int32_t* from = table.from.data() + b * table.shape.height;
    const double* cell = table.middle(b) + table.start[c];
    const std::int64_t step = table.step[c], rows = table.rows[b];
    std::int64_t at = 0;
    double most = NEG_INF;
    for (std::int64_t j = 0; j < rows; ++j) {
        const double sum = layer[from[j] + b] + cell[j * step];
        at = sum > most ? j : at;
        most = sum > most ? sum : most;
    }
    return from[at] / table.shape.padded;
}

template <class Vec>
MM_INLINE void step_slots(const Rules& rules, const Table& table, std::int64_t segment, Slot* const* slots, int count) {
    const Shape& shape = table.shape;
    const double *before[Scratch::SLOTS], *here[Scratch::SLOTS];
    double* now[Scratch::SLOTS];
    for (int m = 0; m < count; ++m) {
        Slot& slot = *slots[m];
        before[m] = slot.layer(shape, segment, slot.u);
        if (++slot.u % segment == 0) slot.kept.insert(slot.kept.end(), before[m], before[m] + shape.layer());
        local_row(rules, slot.job->nodes, slot.job->length, slot.u + 1, slot.row.get());
        here[m] = slot.row.get();
        now[m] = slot.layer(shape, segment, slot.u);
    }
    switch (count) {
        case 1: advance<Vec, Over::maxima, 1>(table, before, here, now); break;
        case 2: advance<Vec, Over::maxima, 2>(table, before, here, now); break;
        case 3: advance<Vec, Over::maxima, 3>(table, before, here, now); break;
        default: advance<Vec, Over::maxima, 4>(table, before, here, now); break;
    }
}

// Makes the layers of the segment that ends with layer `last` again.
template <class Vec>
MM_INLINE void remake(const Rules& rules, const Table& table, std::int64_t segment, Slot& slot, std::int64_t last) {
    const Shape& shape = table.shape;
    const Job& job = *slot.job;
    const std::int64_t first = last / segment * segment;
    for (std::int64_t u = first; u <= last; ++u) {
        double* now = slot.layer(shape, segment, u);
        if (u == 0) {
            first_layer<Vec>(rules, table, job.nodes, job.length, slot.row.get(), now);
            continue;
        }
        const double* before = u > first ? slot.layer(shape, segment, u - 1)
                                         : slot.kept.data() + (u / segment - 1) * shape.layer();
        const double* here = slot.row.get();
        local_row(rules, job.nodes, job.length, u + 1, slot.row.get());
        advance<Vec, Over::maxima, 1>(table, &before, &here, &now);
    }
}

template <class Vec>
MM_INLINE void finish(const Rules& rules, const Table& table, std::int64_t segment, Slot& slot, double* best) {
    const Shape& shape = table.shape;
    Job& job = *slot.job;
    std::int64_t b, c;
    job.value = best_pair<Vec>(shape, slot.layer(shape, segment, slot.u), best, b, c);
    if (!std::isfinite(job.value)) {
        job.status = job.value == NEG_INF ? Status::absent : Status::nonfinite;
        return;
    }
    job.labels[job.length - 1] = static_cast<std::int32_t>(c);
    job.labels[job.length - 2] = static_cast<std::int32_t>(b);
    for (std::int64_t u = slot.u; u > 0; --u) {
        if (u % segment == 0) remake<Vec>(rules, table, segment, slot, u - 1);
        const std::int64_t a = best_before(table, slot.layer(shape, segment, u - 1), b, c);
        job.labels[u - 1] = static_cast<std::int32_t>(a);
        c = b;
        b = a;
    }
}

// Chains of no or one position; true where that was all.
template <class Vec>
MM_INLINE bool trivial(const Rules& rules, const Table& table, double* row, Job& job) {
    const std::int64_t k = rules.n_labels;
    if (table.refused || refused_at<Vec>(0, job.nodes, job.length * k)) {
        job.status = Status::nonfinite;
        return true;
    }
    if (job.length > 1) return false;
    if (job.length == 0) return true;
    local_row(rules, job.nodes, 1, 0, row);
    job.labels[0] = static_cast<std::int32_t>(chain::first_largest<Vec>(row, k, job.value));
    if (!std::isfinite(job.value)) job.status = job.value == NEG_INF ? Status::absent : Status::nonfinite;
    return true;
}

// The best labels of chains with the same table, up to four at a time.
template <class Vec>
MM_INLINE void decode_at(int, const Rules& rules, const Table& table, Job* jobs, std::int64_t n, Scratch& scratch) {
    Slot* active[Scratch::SLOTS] = {&scratch.slots[0], &scratch.slots[1], &scratch.slots[2], &scratch.slots[3]};
    int count = 0;
    std::int64_t next = 0;
    for (;;) {
        while (count < Scratch::SLOTS && next < n) {
            Job& job = jobs[next++];
            if (trivial<Vec>(rules, table, scratch.best.get(), job)) continue;
            Slot& slot = *active[count++];
            slot.job = &job;
            slot.u = 0;
            slot.kept.clear();
            first_layer<Vec>(rules, table, job.nodes, job.length, slot.row.get(), slot.layers.get());
        }
        for (int m = 0; m < count;) {
            if (active[m]->u < active[m]->job->length - 2) {
                ++m;
                continue;
            }
            finish<Vec>(rules, table, scratch.segment, *active[m], scratch.best.get());
            std::swap(active[m], active[--count]);
        }
        if (count == 0 && next == n) return;
        if (count == Scratch::SLOTS || next == n) step_slots<Vec>(rules, table, scratch.segment, active, count);
    }
}
MM_LEVELS(void, decode,
          (int widest, const Rules& rules, const Table& table, Job* jobs, std::int64_t n, Scratch& scratch),
          (widest, rules, table, jobs, n, scratch))

// Adds one to the parts of a label sequence.
inline void mark(std::int64_t k, std::int64_t length, const std::int32_t* labels, double* nodes, double* pairs,
                 double* triples) {
    for (std::int64_t t = 0; t < length; ++t) nodes[t * k + labels[t]] = 1.0;
    for (std::int64_t t = 1; t < length; ++t) pairs[labels[t - 1] * k + labels[t]] += 1.0;
    for (std::int64_t t = 2; t < length; ++t) triples[(labels[t - 2] * k + labels[t - 1]) * k + labels[t]] += 1.0;
}

// The non-zero parts of a label sequence in rising order, counted from the first node part.
inline void vertex_of(std::int64_t k, std::int64_t length, const std::int32_t* labels, Sparse& vertex) {
    vertex.clear();
    for (std::int64_t t = 0; t < length; ++t) vertex.add(t * k + labels[t], 1.0);
    auto counted = [&](std::size_t first) {  // equal parts from `first` on become one
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
    };
    std::size_t first = vertex.index.size();
    for (std::int64_t t = 1; t < length; ++t) vertex.add((length + labels[t - 1]) * k + labels[t], 1.0);
    counted(first);
    first = vertex.index.size();
    const std::int64_t begin = length * k + k * k;
    for (std::int64_t t = 2; t < length; ++t)
        vertex.add(begin + (labels[t - 2] * k + labels[t - 1]) * k + labels[t], 1.0);
    counted(first);
}

// Calls work(thread, begin, end, table) for examples begin..end that have the same tables.
template <class Work>
void each_run(const Batch& batch, std::vector<Table>& tables, int threads, Work&& work) {
    const std::int64_t n = batch.n_examples();
    const std::int64_t grain = std::clamp<std::int64_t>(n / (8 * static_cast<std::int64_t>(tables.size())), 16, 512);
    parallel_blocks(n, grain, threads, [&](int thread, std::int64_t begin, std::int64_t end) {
        Table& table = tables[thread];
        for (std::int64_t i = begin; i < end;) {
            const double *pairs = batch.pairs_of(i), *triples = batch.triples_of(i);
            if (!table.holds(pairs, triples)) pack(table.shape.lanes, batch.rules, pairs, triples, table);
            std::int64_t last = i + 1;
            while (last < end && table.holds(batch.pairs_of(last), batch.triples_of(last))) ++last;
            work(thread, i, last, table);
            i = last;
        }
    });
}

// Calls done(i, job) for every example with its labels found.
template <class Place, class Done>
void decode_all(const Batch& batch, int threads, Place&& place, Done&& done) {
    const int lanes = lanes_in_use(), workers = std::max(threads, 1);
    std::vector<Table> tables;
    std::vector<Scratch> scratch;
    const std::int64_t longest = batch.longest();
    for (int t = 0; t < workers; ++t) {
        tables.emplace_back(batch.rules, lanes);
        scratch.emplace_back(tables.back().shape, longest);
    }
    each_run(batch, tables, threads, [&](int thread, std::int64_t begin, std::int64_t end, const Table& table) {
        Scratch& mine = scratch[thread];
        mine.jobs.clear();
        const std::int64_t first = batch.offsets[begin] / batch.n_labels();
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t at = batch.offsets[i] / batch.n_labels();
            mine.jobs.push_back({batch.nodes_of(i), batch.length(i), place(mine, at, at - first, end)});
        }
        decode(lanes, batch.rules, table, mine.jobs.data(), end - begin, mine);
        for (std::int64_t i = begin; i < end; ++i) done(i, mine.jobs[i - begin]);
    });
}

// z must be zero on entry.
inline void argmax(const Batch& batch, std::span<double> z, std::span<double> value, std::span<std::int8_t> status,
                   int threads) {
    const auto place = [&](Scratch& mine, std::int64_t at, std::int64_t within, std::int64_t end) {
        if (within == 0) mine.labels.resize(static_cast<std::size_t>(batch.offsets[end] / batch.n_labels() - at));
        return mine.labels.data() + within;
    };
    decode_all(batch, threads, place, [&](std::int64_t i, const Job& job) {
        value[i] = job.status == Status::nonfinite ? NOT_A_NUMBER : job.value;
        status[i] = static_cast<std::int8_t>(job.status);
        if (job.status == Status::ok)
            mark(batch.n_labels(), job.length, job.labels, z.data() + batch.offsets[i], z.data() + batch.pair_parts(i),
                 z.data() + batch.triple_parts(i));
    });
}

// Labels of all positions, -1 throughout an example without an output.
inline void labels(const Batch& batch, std::span<std::int32_t> labels, std::span<double> value,
                   std::span<std::int8_t> status, int threads) {
    const auto place = [&](Scratch&, std::int64_t at, std::int64_t, std::int64_t) { return labels.data() + at; };
    decode_all(batch, threads, place, [&](std::int64_t i, const Job& job) {
        value[i] = job.status == Status::nonfinite ? NOT_A_NUMBER : job.value;
        status[i] = static_cast<std::int8_t>(job.status);
        if (job.status != Status::ok) std::fill(job.labels, job.labels + job.length, -1);
    });
}

// One example at a time, for active sets and online methods.
struct Single {
    Rules rules;
    Table table;
    Scratch scratch;
    std::vector<std::int32_t> labels;

    Single(const Rules& legal, int lanes, std::int64_t longest)
        : rules(legal), table(legal, lanes), scratch(table.shape, longest), labels(static_cast<std::size_t>(longest)) {}

    // `scores`: nodes, pairs and triples of the example, one after the other.
    Status run(std::int64_t length, const double* scores, double& value) {
        const std::int64_t k = rules.n_labels;
        const double* pairs = scores + length * k;
        pack(table.shape.lanes, rules, pairs, pairs + k * k, table);
        Job job{scores, length, labels.data()};
        decode(table.shape.lanes, rules, table, &job, 1, scratch);
        value = job.value;
        return job.status;
    }
};

// Euclidean projection of every example, the active sets fed by Viterbi.
inline void project(const Batch& batch, hull::HullBatch& sets, std::span<double> z, std::span<double> value,
                    std::span<std::int8_t> status, int threads) {
    const std::int64_t k = batch.n_labels();
    std::vector<Single> single;
    for (int t = 0; t < std::max(threads, 1); ++t) single.emplace_back(batch.rules, lanes_in_use(), batch.longest());
    std::vector<hull::HullScratch> work(single.size());
    hull::HullBatch::each(batch.n_examples(), threads, [&](int thread, std::int64_t i) {
        hull::HullScratch& mine = work[thread];
        hull::ActiveSet& set = sets.sets[i];
        const std::int64_t length = batch.length(i), n_nodes = length * k;
        mine.resize(sets.sizes[i]);
        double* at = std::copy(batch.nodes_of(i), batch.nodes_of(i) + n_nodes, mine.point.data());
        at = std::copy(batch.pairs_of(i), batch.pairs_of(i) + batch.square(), at);
        std::copy(batch.triples_of(i), batch.triples_of(i) + batch.cube(), at);
        set.begin(hull::HullBatch::limit(sets.sizes[i]), mine);
        while (!set.done()) {
            double best;
            const Status found = single[thread].run(length, mine.scores.data(), best);
            if (found != Status::ok) {
                set.finish(found);
                break;
            }
            vertex_of(k, length, single[thread].labels.data(), mine.vertex);
            set.absorb(sets.tolerance, mine);
        }
        value[i] = set.result(mine);
        status[i] = static_cast<std::int8_t>(set.status());
        const double* from = mine.z.data();
        std::copy(from, from + n_nodes, z.begin() + batch.offsets[i]);
        std::copy(from + n_nodes, from + n_nodes + batch.square(), z.begin() + batch.pair_parts(i));
        std::copy(from + n_nodes + batch.square(), from + mine.z.size(), z.begin() + batch.triple_parts(i));
    });
}

}  // namespace maxmargin::second
