// Features of word pairs, and scores under weights without the matrix of features.
//
// A pair is processed row by row, a row in tiles of TILE columns. The features of a tile are a small table, one line of
// TILE numbers per feature, that stays in the first cache: group by group, loops over the columns fill it with vectors.
// Its readers (scores, a dense or a sparse matrix) are separate. About 100 features cost some hundred cycles per cell.
#pragma once

#include "maxmargin/alignment/link_groups.hpp"
#include "maxmargin/base/parallel.hpp"

namespace maxmargin::links {

inline constexpr std::int8_t STATUS_OK = 0, STATUS_NONFINITE = 2;

// Four sums at a time, so that an addition need not wait for the one before it.
template <class Vec>
MM_INLINE void weighted_sum_at(const double* table, const double* weights, std::int64_t n, std::int64_t width,
                               double* sums) {
    for (std::int64_t k = 0; k < width; k += simd::lanes<Vec>) {
        Vec part[4] = {};
        std::int64_t f = 0;
        for (; f + 3 < n; f += 4)
            for (std::int64_t i = 0; i < 4; ++i)
                part[i] += weights[f + i] * simd::load<Vec>(table + (f + i) * TILE + k);
        for (; f < n; ++f) part[0] += weights[f] * simd::load<Vec>(table + f * TILE + k);
        simd::store<Vec>(sums + k, (part[0] + part[1]) + (part[2] + part[3]));
    }
}
MM_LEVELS(weighted_sum)

struct Scratch {
    Pair pair;
    std::vector<double> table, values;
    std::vector<std::int32_t> columns;
};

// Calls read(cell, columns, width, table) for every tile of sentence pair i: the cells of the tile are consecutive.
template <class Read>
void each_tile(const Batch& b, std::int64_t i, unsigned groups, Scratch& scratch, Read&& read) {
    Pair& p = scratch.pair;
    lay_out(b, i, p);
    at_least(p.places, std::size_t{b.words.largest} + 1);
    at_least(scratch.table, static_cast<std::size_t>(std::max<std::int64_t>(n_columns(groups), 1) * TILE));
    double* table = scratch.table.data();
    const int widest = simd::lanes_in_use();
    const auto on = [groups](int g) { return (groups >> g & 1U) != 0; };
    for (std::int64_t j = 0; j < p.J; ++j) {
        if (on(ORTHOGRAPHY) || on(FREQUENCY_BANDS))
            letters_in_common(b.words, b.source_word[b.source_start[i] + j], b.target_word.data() + b.target_start[i],
                              p);
        const Two dice = two_largest(widest, p.grid(DICE, j), p.width),
                  product = two_largest(widest, p.grid(PRODUCT, j), p.width);
        const double model1 = two_largest(widest, p.grid(MODEL1_BACKWARD, j), p.width).best;
        const double hmm = two_largest(widest, p.grid(HMM_BACKWARD, j), p.width).best;
        for (std::int64_t first = 0; first < p.K; first += TILE) {
            const std::int64_t n = std::min(p.K - first, TILE);
            const Tile t{j, first, padded(n)};
            double* out = table;
            for (int g = 0; g < GROUPS; ++g) {
                if (!on(g)) continue;
                switch (g) {
                    case BIAS: std::fill_n(out, t.width, 1.0); break;
                    case ASSOCIATION: association(p, t, dice, out); break;
                    case MODEL1:
                        directions(p.grid(MODEL1_FORWARD, j) + first, p.grid(MODEL1_BACKWARD, j) + first,
                                   p.best_of_column(MODEL1_BEST) + first, model1, t.width, out);
                        break;
                    case HMM:
                        directions(p.grid(HMM_FORWARD, j) + first, p.grid(HMM_BACKWARD, j) + first,
                                   p.best_of_column(HMM_BEST) + first, hmm, t.width, out);
                        hmm_rest(p, t, product, out + 9 * TILE);
                        break;
                    case NEIGHBORS: neighbors(p, t, out); break;
                    case POSITION: position(p, t, out); break;
                    case ORTHOGRAPHY: orthography(p, t, out); break;
                    case FREQUENCY_BANDS: frequency(p, t, out); break;
                    case NULLS: nulls(p, t, out); break;
                    default: identical(p, t, out);
                }
                out += GROUP_SIZES[g] * TILE;
            }
            read(b.grid_start[i] + j * p.K + first, n, t.width, table);
        }
    }
}

// Runs one(pair, scratch) for all pairs with finite values, zero(pair) for the others.
template <class One, class Zero>
void each_pair(const Batch& b, std::span<std::int8_t> status, int threads, One&& one, Zero&& zero) {
    ScratchLease<Scratch> scratch(threads, [](Scratch&) {});
    parallel_each(b.size(), 8, threads, [&](int thread, std::int64_t i) {
        const bool good = pair_is_finite(b, i);
        status[i] = good ? STATUS_OK : STATUS_NONFINITE;
        if (good) one(i, scratch[thread]);
        else zero(i);
    });
}

// The columns that a call asks for, in order: groups, user (if `user`), then n_identity of identity (-1 in the grid:
// none).
struct Choice {
    unsigned groups;
    bool user;
    std::int64_t n_identity;
    std::int64_t n_user(const Batch& b) const { return user ? b.n_user : 0; }
    std::int64_t n_dense(const Batch& b) const { return n_columns(groups) + n_user(b); }
};

inline void scores(const Batch& b, const Choice& choice, std::span<const double> weights, std::span<double> out,
                   std::span<std::int8_t> status, int threads) {
    const std::int64_t d = n_columns(choice.groups), n_user = choice.n_user(b);
    const double *of_user = weights.data() + d, *of_identity = of_user + n_user;
    const int widest = simd::lanes_in_use();
    each_pair(
        b, status, threads,
        [&](std::int64_t i, Scratch& scratch) {
            each_tile(b, i, choice.groups, scratch,
                      [&](std::int64_t cell, std::int64_t n, std::int64_t width, const double* table) {
                          double sums[TILE];
                          weighted_sum(widest, table, weights.data(), d, width, sums);
                          for (std::int64_t k = 0; k < n; ++k) {
                              double sum = sums[k];
                              for (std::int64_t u = 0; u < n_user; ++u)
                                  sum += of_user[u] * b.user[(cell + k) * n_user + u];
                              if (choice.n_identity > 0 && b.identity[cell + k] >= 0)
                                  sum += of_identity[b.identity[cell + k]];
                              out[cell + k] = sum;
                          }
                      });
        },
        [&](std::int64_t i) { std::fill(out.begin() + b.grid_start[i], out.begin() + b.grid_start[i + 1], 0.0); });
}

// Rows of cells with n_dense columns.
inline void dense(const Batch& b, const Choice& choice, std::span<double> out, std::span<std::int8_t> status,
                  int threads) {
    const std::int64_t d = n_columns(choice.groups), n_user = choice.n_user(b), all = d + n_user;
    each_pair(
        b, status, threads,
        [&](std::int64_t i, Scratch& scratch) {
            each_tile(b, i, choice.groups, scratch,
                      [&](std::int64_t cell, std::int64_t n, std::int64_t, const double* table) {
                          for (std::int64_t k = 0; k < n; ++k) {
                              double* row = out.data() + (cell + k) * all;
                              for (std::int64_t f = 0; f < d; ++f) row[f] = table[f * TILE + k];
                              for (std::int64_t u = 0; u < n_user; ++u) row[d + u] = b.user[(cell + k) * n_user + u];
                          }
                      });
        },
        [&](std::int64_t i) {
            std::fill(out.begin() + b.grid_start[i] * all, out.begin() + b.grid_start[i + 1] * all, 0.0);
        });
}

// Collects the non-zeros of cell `at` in order of columns, without branches: each value is written where the next
// non-zero belongs. `columns` and `values` have room for all columns and one more. Returns how many there are.
inline std::int64_t non_zeros(const Batch& b, const Choice& choice, std::int64_t at, const double* table,
                              std::int32_t* MM_RESTRICT columns, double* MM_RESTRICT values) {
    const std::int64_t d = n_columns(choice.groups), n_user = choice.n_user(b);
    std::int64_t found = 0;
    const auto add = [&](std::int64_t column, double value) {
        columns[found] = static_cast<std::int32_t>(column);
        values[found] = value;
        found += value != 0.0;
    };
    for (std::int64_t f = 0; f < d; ++f) add(f, table[f * TILE]);
    for (std::int64_t u = 0; u < n_user; ++u) add(d + u, b.user[at * n_user + u]);
    if (choice.n_identity > 0 && b.identity[at] >= 0) add(d + n_user + b.identity[at], 1.0);
    return found;
}

// Calls take(cell, n, columns, values) for every cell of the pairs with finite values, zero(pair) for the other pairs.
template <class Take, class Zero>
void each_row(const Batch& b, const Choice& choice, std::span<std::int8_t> status, int threads, Take&& take,
              Zero&& zero) {
    const auto room = static_cast<std::size_t>(choice.n_dense(b) + 2);
    each_pair(
        b, status, threads,
        [&](std::int64_t i, Scratch& scratch) {
            at_least(scratch.columns, room);
            at_least(scratch.values, room);
            each_tile(b, i, choice.groups, scratch,
                      [&](std::int64_t cell, std::int64_t n, std::int64_t, const double* table) {
                          for (std::int64_t k = 0; k < n; ++k) {
                              const std::int64_t found = non_zeros(b, choice, cell + k, table + k,
                                                                   scratch.columns.data(), scratch.values.data());
                              take(cell + k, found, scratch.columns.data(), scratch.values.data());
                          }
                      });
        },
        zero);
}

// How many non-zeros each cell has.
inline void count(const Batch& b, const Choice& choice, std::span<std::int64_t> counts, std::span<std::int8_t> status,
                  int threads) {
    each_row(
        b, choice, status, threads,
        [&](std::int64_t cell, std::int64_t n, const std::int32_t*, const double*) { counts[cell] = n; },
        [&](std::int64_t i) {
            std::fill(counts.begin() + b.grid_start[i], counts.begin() + b.grid_start[i + 1], std::int64_t{0});
        });
}

// The rows themselves; start comes from `count`, and no more is written than it has room for.
inline void fill(const Batch& b, const Choice& choice, std::span<const std::int64_t> start,
                 std::span<std::int32_t> columns, std::span<double> values, std::span<std::int8_t> status,
                 int threads) {
    each_row(
        b, choice, status, threads,
        [&](std::int64_t cell, std::int64_t n, const std::int32_t* c, const double* v) {
            const std::int64_t to = start[cell], some = std::min(n, start[cell + 1] - to);
            std::copy_n(c, some, columns.begin() + to);
            std::copy_n(v, some, values.begin() + to);
        },
        [](std::int64_t) {});
}

}  // namespace maxmargin::links
