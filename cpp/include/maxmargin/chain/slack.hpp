// Slack rescaling on chains: argmax_y (costs'y + constant) (margin + scores'y), exactly, one example at a time.
//
// The product is not linear in the parts. Where the costs of labels are whole multiples of one unit above the cheapest
// label of their position (Hamming loss: the unit is the cost of an error) the loss so far is a number of units, and
// Viterbi with that number as an extra state keeps, for each of them and each label, the best score. Position t then
// has N_t + 1 rows of K maxima, N_t the most units that its prefix can have: for Hamming loss t + 1 rows, and T^2 K^2 /
// 2 additions and maxima for a chain, T / 2 times those of Viterbi, with the same inner loop (chain/viterbi.hpp).
// Predecessors are found again in the backward pass. Costs that are not such multiples, costs of pairs, and chains that
// need more memory than MOST_ROOM are left to the tree kernel: status ELSEWHERE.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "maxmargin/base/loss_units.hpp"
#include "maxmargin/chain/viterbi.hpp"

namespace maxmargin::chain {

inline constexpr std::int8_t ELSEWHERE = 4;
inline constexpr std::int64_t MOST_ROOM = std::int64_t{1} << 25;  // numbers per thread

struct SlackScratch : Scratch {
    Aligned rows;  // the maxima of all positions, `room` numbers
    std::int64_t room = 0;
    SlackUnits costs;                       // T x K
    std::vector<std::int64_t> first, most;  // per position: its first row, and N_t

    SlackScratch(const Panels& panels, std::int64_t longest)
        : Scratch(panels, 1), first(static_cast<std::size_t>(longest)), most(static_cast<std::size_t>(longest)) {
        labels.resize(static_cast<std::size_t>(longest));
    }
    void need(std::int64_t numbers) {
        if (numbers <= room) return;
        rows.resize(numbers, NEG_INF);  // padding is never written but with -inf
        room = numbers;
    }
};

// Costs in units, and the layout of the rows; false if they are not multiples of a unit, or too many.
inline bool lay_out(std::int64_t k, std::int64_t padded, std::int64_t length, const double* costs,
                    SlackScratch& scratch) {
    if (!scratch.costs.measure(costs, length, [k](std::int64_t) { return k; })) return false;
    std::int64_t total = 0, rows = 0;
    for (std::int64_t t = 0; t < length; ++t) {
        total += scratch.costs.most[t];
        scratch.first[t] = rows;
        scratch.most[t] = total;
        rows += total + 1;
        if (rows > MOST_ROOM / padded) return false;
    }
    scratch.need(rows * padded);
    return true;
}

// A number of units that many labels of a position have (most of them, where there are such).
inline std::int64_t usual(const std::int32_t* units, std::int64_t k) {
    std::int64_t held = units[0], votes = 0;
    for (std::int64_t b = 0; b < k; ++b) {
        if (votes == 0) held = units[b];
        votes += units[b] == held ? 1 : -1;
    }
    return held;
}

inline void clear_rows(double* rows, std::int64_t begin, std::int64_t end, std::int64_t padded) {
    if (begin < end) std::fill(rows + begin * padded, rows + end * padded, NEG_INF);
}

// Entries [from, from + n) of a column to [from + by, from + by + n); what they leave is -inf.
inline void shift_column(double* column, std::int64_t padded, std::int64_t from, std::int64_t n, std::int64_t by) {
    if (by < 0) {
        for (std::int64_t c = from; c < from + n; ++c) column[(c + by) * padded] = column[c * padded];
        for (std::int64_t c = std::max(from, from + n + by); c < from + n; ++c) column[c * padded] = NEG_INF;
    } else {
        for (std::int64_t c = from + n - 1; c >= from; --c) column[(c + by) * padded] = column[c * padded];
        for (std::int64_t c = from; c < std::min(from + n, from + by); ++c) column[c * padded] = NEG_INF;
    }
}

// The labels of the best output into scratch.labels, its product into value; ELSEWHERE if costs have no unit.
template <class Vec>
MM_INLINE std::int8_t slack_at(const Panels& panels, bool shared, std::int64_t length, const double* MM_RESTRICT nodes,
                               const double* MM_RESTRICT pairs, double margin, const double* costs, double constant,
                               SlackScratch& scratch, double& value) {
    const std::int64_t k = panels.n_labels, square = k * k, padded = panels.padded;
    constexpr auto refuse = static_cast<std::int8_t>(Status::nonfinite);
    value = 0.0;
    if (refused_at<Vec>(nodes, length * k) || !std::isfinite(margin) || !std::isfinite(constant)) return refuse;
    if (shared && refused_at<Vec>(pairs, square)) return refuse;
    for (std::int64_t j = 0; j < length * k; ++j)
        if (!std::isfinite(costs[j])) return refuse;
    if (length == 0) {
        value = std::max(0.0, constant * margin);
        return static_cast<std::int8_t>(Status::ok);
    }
    if (!lay_out(k, padded, length, costs, scratch)) return ELSEWHERE;
    const SlackUnits& lattice = scratch.costs;

    double* matrix = scratch.matrix(panels);
    double* rows = scratch.rows.get();
    clear_rows(rows, 0, scratch.most[0] + 1, padded);
    for (std::int64_t b = 0; b < k; ++b) rows[lattice.units[b] * padded + b] = nodes[b];
    if (shared && length > 1) pack(panels, pairs, matrix);
    for (std::int64_t t = 1; t < length; ++t) {
        if (!shared) {
            const double* table = pairs + (t - 1) * square;
            if (refused_at<Vec>(table, square)) return refuse;
            pack(panels, table, matrix);
        }
        const double* before = rows + scratch.first[t - 1] * padded;
        double* now = rows + scratch.first[t] * padded;
        const double* here = nodes + t * k;
        const std::int32_t* units = lattice.units.data() + t * k;
        const std::int64_t many = usual(units, k), n = scratch.most[t - 1] + 1;
        clear_rows(now, 0, many, padded);
        clear_rows(now, many + n, scratch.most[t] + 1, padded);
        for (std::int64_t c = 0; c < n; ++c) {
            double* row = now + (many + c) * padded;
            step<Vec, Over::maxima>(panels, before + c * padded, matrix, row);
            add_to(row, here, k);
        }
        for (std::int64_t b = 0; b < k; ++b)
            if (units[b] != many) shift_column(now + b, padded, many, n, units[b] - many);
    }

    // The best product, or where none is positive the best score (an output of loss zero, if there is one of margin).
    const double* last = rows + scratch.first[length - 1] * padded;
    std::int64_t at = -1, label = 0, highest = 0;
    double product = 0.0, score = NEG_INF;
    for (std::int64_t c = 0; c <= scratch.most[length - 1]; ++c) {
        double best;
        first_largest<Vec>(last + c * padded, k, best);
        if (best > std::numeric_limits<double>::max()) return refuse;
        const double loss = constant + lattice.base + static_cast<double>(c) * lattice.unit;
        if (best > NEG_INF && loss > 0.0 && margin + best > 0.0 && loss * (margin + best) > product) {
            product = loss * (margin + best);
            at = c;
        }
        if (best > score) {
            score = best;
            highest = c;
        }
    }
    if (score == NEG_INF) return static_cast<std::int8_t>(Status::absent);
    std::int64_t row = at < 0 ? highest : at;
    double* sums = scratch.sums.get();
    double loss = constant, found = 0.0, ignored;
    label = first_largest<Vec>(last + row * padded, k, ignored);
    for (std::int64_t t = length - 1;; --t) {
        scratch.labels[t] = static_cast<std::int32_t>(label);
        loss += costs[t * k + label];
        found += nodes[t * k + label];
        if (t == 0) break;
        row -= lattice.units[t * k + label];
        const double* before = rows + (scratch.first[t - 1] + row) * padded;
        const double* column = pairs + (shared ? 0 : (t - 1) * square) + label;
        for (std::int64_t a = 0; a < k; ++a) sums[a] = before[a] + column[a * k];
        const std::int64_t next = first_largest<Vec>(sums, k, ignored);
        found += column[next * k];
        label = next;
    }
    value = at < 0 ? 0.0 : std::max(0.0, loss * (margin + found));
    return std::isfinite(value) ? static_cast<std::int8_t>(Status::ok) : refuse;
}
MM_LEVELS(slack)

// z must be zero on entry.
inline void slack_argmax(const Batch& batch, std::span<const double> scores, std::span<const double> margin,
                         std::span<const double> costs, std::span<const double> constants, std::span<double> z,
                         std::span<double> value, std::span<std::int8_t> status, int threads) {
    const Panels panels(batch.n_labels, lanes_in_use());
    auto scratch = per_thread<SlackScratch>(threads, panels, batch.longest());
    parallel_each(batch.n_examples(), 1, threads, [&](int thread, std::int64_t i) {
        const std::int64_t length = batch.length(i);
        const bool plain = std::all_of(costs.begin() + batch.pairs[i], costs.begin() + batch.pairs[i + 1],
                                       [](double cost) { return cost == 0.0; });
        status[i] = ELSEWHERE;
        if (plain)
            status[i] = slack(panels.lanes, panels, batch.shared, length, scores.data() + batch.nodes[i],
                              scores.data() + batch.pairs[i], margin[i], costs.data() + batch.nodes[i], constants[i],
                              scratch[thread], value[i]);
        if (status[i] == static_cast<std::int8_t>(Status::ok))
            mark(batch.n_labels, batch.shared, length, scratch[thread].labels.data(), z.data() + batch.nodes[i],
                 z.data() + batch.pairs[i]);
        else
            value[i] = status[i] == static_cast<std::int8_t>(Status::absent) ? NEG_INF
                                                                             : std::numeric_limits<double>::quiet_NaN();
    });
}

}  // namespace maxmargin::chain
