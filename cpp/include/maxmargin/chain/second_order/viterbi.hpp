// Chains of second order: Viterbi over pairs of neighboring labels, threads over examples.
//
//     forward_1[b][c] = nodes_0[b] + pairs[b][c] + nodes_1[c]
//     forward_t[b][c] = max_a (forward_{t-1}[a][b] + triples[a][b][c] + pairs[b][c]) + nodes_t[c]
//
// Cost per example: T K^3 additions and maxima, a vector of labels c at a time. The table triples + pairs is larger
// than the first cache from 18 labels on, so up to four chains with the same table walk through it together, each at
// its own position, and every vector that is read serves them all. Only the forward maxima are kept; predecessors are
// found again in the backward pass. Of a chain longer than a segment, one layer per segment is kept, and the layers of
// a segment are made again in the backward pass. -inf forbids; NaN and +inf are rejected; pairs of labels that are not
// allowed have no rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "maxmargin/base/parallel.hpp"
#include "maxmargin/chain/second_order/tables.hpp"
#include "maxmargin/hull/batch.hpp"

namespace maxmargin::second {

// One sequence to be labeled, and its result.
struct Job {
    const double* nodes;
    std::int64_t length;
    std::int32_t* labels;
    double value = 0.0;
    Status status = Status::ok;
};

// A chain in progress: layer u joins positions u and u + 1 and lies in `layers` at u modulo the segment.
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
MM_INLINE void step_slots(const Constraints& constraints, const Table& table, std::int64_t segment, Slot* const* slots,
                          int count) {
    const Shape& shape = table.shape;
    const double *before[Scratch::SLOTS], *here[Scratch::SLOTS];
    double* now[Scratch::SLOTS];
    for (int m = 0; m < count; ++m) {
        Slot& slot = *slots[m];
        before[m] = slot.layer(shape, segment, slot.u);
        if (++slot.u % segment == 0) slot.kept.insert(slot.kept.end(), before[m], before[m] + shape.layer());
        local_row(constraints, slot.job->nodes, slot.job->length, slot.u + 1, slot.row.get());
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
MM_INLINE void remake(const Constraints& constraints, const Table& table, std::int64_t segment, Slot& slot,
                      std::int64_t last) {
    const Shape& shape = table.shape;
    const Job& job = *slot.job;
    const std::int64_t first = last / segment * segment;
    for (std::int64_t u = first; u <= last; ++u) {
        double* now = slot.layer(shape, segment, u);
        if (u == 0) {
            first_layer<Vec>(constraints, table, job.nodes, job.length, slot.row.get(), now);
            continue;
        }
        const double* before =
            u > first ? slot.layer(shape, segment, u - 1) : slot.kept.data() + (u / segment - 1) * shape.layer();
        const double* here = slot.row.get();
        local_row(constraints, job.nodes, job.length, u + 1, slot.row.get());
        advance<Vec, Over::maxima, 1>(table, &before, &here, &now);
    }
}

template <class Vec>
MM_INLINE void finish(const Constraints& constraints, const Table& table, std::int64_t segment, Slot& slot,
                      double* best) {
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
        if (u % segment == 0) remake<Vec>(constraints, table, segment, slot, u - 1);
        const std::int64_t a = best_before(table, slot.layer(shape, segment, u - 1), b, c);
        job.labels[u - 1] = static_cast<std::int32_t>(a);
        c = b;
        b = a;
    }
}

// Chains with at most one position; returns whether this was one.
template <class Vec>
MM_INLINE bool trivial(const Constraints& constraints, const Table& table, double* row, Job& job) {
    const std::int64_t k = constraints.n_labels;
    if (table.refused || refused_at<Vec>(job.nodes, job.length * k)) {
        job.status = Status::nonfinite;
        return true;
    }
    if (job.length > 1) return false;
    if (job.length == 0) return true;
    local_row(constraints, job.nodes, 1, 0, row);
    job.labels[0] = static_cast<std::int32_t>(chain::first_largest<Vec>(row, k, job.value));
    if (!std::isfinite(job.value)) job.status = job.value == NEG_INF ? Status::absent : Status::nonfinite;
    return true;
}

// The best labels of chains with the same table, up to four at a time.
template <class Vec>
MM_INLINE void decode_at(const Constraints& constraints, const Table& table, Job* jobs, std::int64_t n,
                         Scratch& scratch) {
    Slot* active[Scratch::SLOTS] = {&scratch.slots[0], &scratch.slots[1], &scratch.slots[2], &scratch.slots[3]};
    int count = 0;
    std::int64_t next = 0;
    for (;;) {
        while (count < Scratch::SLOTS && next < n) {
            Job& job = jobs[next++];
            if (trivial<Vec>(constraints, table, scratch.best.get(), job)) continue;
            Slot& slot = *active[count++];
            slot.job = &job;
            slot.u = 0;
            slot.kept.clear();
            first_layer<Vec>(constraints, table, job.nodes, job.length, slot.row.get(), slot.layers.get());
        }
        for (int m = 0; m < count;) {
            if (active[m]->u < active[m]->job->length - 2) {
                ++m;
                continue;
            }
            finish<Vec>(constraints, table, scratch.segment, *active[m], scratch.best.get());
            std::swap(active[m], active[--count]);
        }
        if (count == 0 && next == n) return;
        if (count == Scratch::SLOTS || next == n) step_slots<Vec>(constraints, table, scratch.segment, active, count);
    }
}
MM_LEVELS(decode)

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
    std::size_t first = vertex.index.size();
    for (std::int64_t t = 1; t < length; ++t) vertex.add((length + labels[t - 1]) * k + labels[t], 1.0);
    chain::count_equal(vertex, first);
    first = vertex.index.size();
    const std::int64_t begin = length * k + k * k;
    for (std::int64_t t = 2; t < length; ++t)
        vertex.add(begin + (labels[t - 2] * k + labels[t - 1]) * k + labels[t], 1.0);
    chain::count_equal(vertex, first);
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
            if (!table.holds(pairs, triples)) pack(table.shape.lanes, batch.constraints, pairs, triples, table);
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
    const int lanes = lanes_in_use();
    auto tables = per_thread<Table>(threads, batch.constraints, lanes);
    auto scratch = per_thread<Scratch>(threads, tables.front().shape, batch.longest());
    each_run(batch, tables, threads, [&](int thread, std::int64_t begin, std::int64_t end, const Table& table) {
        Scratch& mine = scratch[thread];
        mine.jobs.clear();
        const std::int64_t first = batch.offsets[begin] / batch.n_labels();
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t at = batch.offsets[i] / batch.n_labels();
            mine.jobs.push_back({batch.nodes_of(i), batch.length(i), place(mine, at, at - first, end)});
        }
        decode(lanes, batch.constraints, table, mine.jobs.data(), end - begin, mine);
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
    Constraints constraints;
    Table table;
    Scratch scratch;
    std::vector<std::int32_t> labels;

    Single(const Constraints& legal, int lanes, std::int64_t longest)
        : constraints(legal), table(legal, lanes), scratch(table.shape, longest),
          labels(static_cast<std::size_t>(longest)) {}

    // `scores`: nodes, pairs and triples of the example, one after the other.
    Status run(std::int64_t length, const double* scores, double& value) {
        const std::int64_t k = constraints.n_labels;
        const double* pairs = scores + length * k;
        pack(table.shape.lanes, constraints, pairs, pairs + k * k, table);
        Job job{scores, length, labels.data()};
        decode(table.shape.lanes, constraints, table, &job, 1, scratch);
        value = job.value;
        return job.status;
    }
};

// Euclidean projection of every example, the active sets fed by Viterbi.
inline void project(const Batch& batch, hull::HullBatch& sets, std::span<double> z, std::span<double> value,
                    std::span<std::int8_t> status, int threads) {
    const std::int64_t k = batch.n_labels();
    auto single = per_thread<Single>(threads, batch.constraints, lanes_in_use(), batch.longest());
    const auto find = [&](int thread, std::int64_t i, const std::vector<double>& scores, Sparse& vertex) {
        double best;
        const Status found = single[thread].run(batch.length(i), scores.data(), best);
        if (found == Status::ok) vertex_of(k, batch.length(i), single[thread].labels.data(), vertex);
        return found;
    };
    const auto blocks = [&](std::int64_t i, auto&& block) {
        block(batch.nodes_of(i), batch.offsets[i], batch.length(i) * k);
        block(batch.pairs_of(i), batch.pair_parts(i), batch.square());
        block(batch.triples_of(i), batch.triple_parts(i), batch.cube());
    };
    sets.project(z, value, status, threads, blocks, find);
}

}  // namespace maxmargin::second
