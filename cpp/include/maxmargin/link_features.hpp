// Features of word pairs, and scores under weights without the matrix of features.
//
// A pair is done row by row, a row in tiles of TILE columns. The features of a tile are a small table, one line of TILE
// numbers per feature, that stays in the first cache: group by group, loops over the columns fill it with vectors.
// What reads it (scores, a dense or a sparse matrix) is separate. About 100 features cost some hundred cycles per cell.
#pragma once

#include <array>
#include <bit>

#include "maxmargin/link_batch.hpp"
#include "maxmargin/parallel.hpp"

namespace maxmargin::links {

enum Group { BIAS, ASSOCIATION, MODEL1, HMM, NEIGHBOURS, POSITION, ORTHOGRAPHY, FREQUENCY_BANDS, NULLS, GROUPS };
inline constexpr std::array<int, GROUPS> GROUP_SIZES = {1, 9, 9, 18, 11, 11, 16, 14, 6};
inline constexpr std::int64_t TILE = 32;
inline constexpr std::int8_t STATUS_OK = 0, STATUS_NONFINITE = 2;

inline std::int64_t n_columns(unsigned groups) {
    std::int64_t n = 0;
    for (int g = 0; g < GROUPS; ++g) n += (groups >> g & 1U) != 0 ? GROUP_SIZES[g] : 0;
    return n;
}

// Columns [first, first + width) of row j; width is a multiple of STEP, what lies outside the pair is not read.
struct Tile {
    std::int64_t j, first, width;
};

MM_INLINE double truth(bool is) { return is ? 1.0 : 0.0; }
// The largest of the other values, of which `best` and `second` are the two largest with `value` among them.
MM_INLINE double other(double value, double best, double second) { return value == best ? second : best; }

struct Two {
    double best = 0.0, second = 0.0;
};
// The two largest of `width` numbers >= 0, a multiple of STEP: first in each lane, then of the lanes by halves.
template <class Vec>
MM_INLINE Two two_of_lanes(const Vec& best, const Vec& second) {
    if constexpr (simd::lanes<Vec> == 1) {
        return {best, second};
    } else {
        using Half = simd::Half<Vec>;
        const Half a = simd::lower_half(best), b = simd::upper_half(best), low = a < b ? a : b;
        const Half rest = simd::larger<Half>(simd::lower_half(second), simd::upper_half(second));
        return two_of_lanes<Half>(simd::larger<Half>(a, b), simd::larger<Half>(rest, low));
    }
}
template <class Vec>
MM_INLINE Two two_largest_at(int /*widest*/, const double* values, std::int64_t width) {
    Vec best{}, second{};
    for (std::int64_t k = 0; k < width; k += simd::lanes<Vec>) {
        const Vec value = simd::load<Vec>(values + k);
        second = simd::larger<Vec>(second, value < best ? value : best);
        best = simd::larger<Vec>(best, value);
    }
    return two_of_lanes<Vec>(best, second);
}
MM_LEVELS(Two, two_largest, (int widest, const double* values, std::int64_t width), (widest, values, width))

// With c = c(e, f) of n sentence pairs, G^2 = 2 sum over the four cells of x log (x / expected x), written with x log x
// of the cells and of the margins; its sign says whether the words come together more often than by chance, or less.
static MM_CLONES void association(const Pair& p, const Tile& t, Two row, double* MM_RESTRICT out) {
    const double *d = p.grid(DICE, t.j) + t.first, *c = p.grid(TOGETHER, t.j) + t.first;
    const double *before = p.grid(DICE, t.j - 1) + t.first - 1, *after = p.grid(DICE, t.j + 1) + t.first + 1;
    const double *best = p.best_of_column(DICE_BEST) + t.first, *second = p.best_of_column(DICE_SECOND) + t.first;
    const double *counts = p.of_target(COUNT) + t.first, *logs = p.of_target(LOG_COUNT) + t.first,
                 *margins = p.of_target(MARGINAL) + t.first;
    const double n = p.n_pairs, count = p.of_source(COUNT, t.j), log_count = p.of_source(LOG_COUNT, t.j);
    const double fixed = p.pairs_log_pairs - p.of_source(MARGINAL, t.j);
    const double log_n = p.log_pairs, scale = log_n > 0.0 ? 1.0 / log_n : 0.0;
    for (std::int64_t k = 0; k < t.width; ++k) {
        out[0 * TILE + k] = d[k];
        out[1 * TILE + k] = std::sqrt(d[k]);
        const double log_c = log_of(std::max(c[k], 1e-300));
        out[2 * TILE + k] = unit((log_c + log_n - log_count - logs[k]) * scale) * truth(c[k] > 0.0);
        const double apart = x_log_x(std::max(count - c[k], 0.0)) + x_log_x(std::max(counts[k] - c[k], 0.0)) +
                             x_log_x(std::max(n - count - counts[k] + c[k], 0.0));
        const double g2 = 2.0 * (c[k] * log_c + apart + fixed - margins[k]);
        const double size = 0.1 * log_of(1.0 + std::max(g2, 0.0));
        out[3 * TILE + k] = c[k] * n > count * counts[k] ? size : -size;
    }
    for (std::int64_t k = 0; k < t.width; ++k) {
        out[4 * TILE + k] = d[k] - other(d[k], row.best, row.second);
        out[5 * TILE + k] = d[k] - other(d[k], best[k], second[k]);
        out[6 * TILE + k] = before[k];
        out[7 * TILE + k] = after[k];
        out[8 * TILE + k] = 0.5 * (before[k] + after[k]);
    }
}

// The nine features of posteriors of both directions.
static MM_CLONES void directions(const double* f, const double* b, const double* best, double row_best,
                                 std::int64_t width, double* MM_RESTRICT out) {
    for (std::int64_t k = 0; k < width; ++k) {
        const double product = f[k] * b[k];
        out[0 * TILE + k] = f[k];
        out[1 * TILE + k] = b[k];
        out[2 * TILE + k] = product;
        out[3 * TILE + k] = std::sqrt(product);
        out[4 * TILE + k] = std::min(f[k], b[k]);
        out[5 * TILE + k] = std::max(f[k], b[k]);
        const double column = truth(f[k] >= best[k]) * truth(f[k] > 0.0);
        const double row = truth(b[k] >= row_best) * truth(b[k] > 0.0);
        out[6 * TILE + k] = column;
        out[7 * TILE + k] = row;
        out[8 * TILE + k] = column * row;
    }
}

static MM_CLONES void hmm_rest(const Pair& p, const Tile& t, Two row, double* MM_RESTRICT out) {
    constexpr double scale = 1.0 / (6.0 * 2.302585092994045684);
    const double *f = p.grid(HMM_FORWARD, t.j) + t.first, *b = p.grid(HMM_BACKWARD, t.j) + t.first,
                 *g = p.grid(PRODUCT, t.j) + t.first;
    const double *m_f = p.grid(MODEL1_FORWARD, t.j) + t.first, *m_b = p.grid(MODEL1_BACKWARD, t.j) + t.first;
    const double *best = p.best_of_column(PRODUCT_BEST) + t.first,
                 *second = p.best_of_column(PRODUCT_SECOND) + t.first;
    for (std::int64_t k = 0; k < t.width; ++k) {
        out[0 * TILE + k] = unit(1.0 + scale * log_of(f[k] + 1e-6));
        out[1 * TILE + k] = unit(1.0 + scale * log_of(b[k] + 1e-6));
        const double in_row = other(g[k], row.best, row.second), in_column = other(g[k], best[k], second[k]);
        out[2 * TILE + k] = (g[k] - in_row) / (g[k] + in_row + 0.01);
        out[3 * TILE + k] = (g[k] - in_column) / (g[k] + in_column + 0.01);
        const double some = truth(g[k] > 0.0), first = truth(g[k] >= in_row) * some,
                     top = truth(g[k] >= in_column) * some;
        out[4 * TILE + k] = first;
        out[5 * TILE + k] = top;
        out[6 * TILE + k] = first * top;
        out[7 * TILE + k] = f[k] - m_f[k];
        out[8 * TILE + k] = b[k] - m_b[k];
    }
}

static MM_CLONES void neighbours(const Pair& p, const Tile& t, double* MM_RESTRICT out) {
    const double *up = p.grid(PRODUCT, t.j - 1) + t.first, *g = p.grid(PRODUCT, t.j) + t.first,
                 *down = p.grid(PRODUCT, t.j + 1) + t.first;
    for (std::int64_t k = 0; k < t.width; ++k) {
        const double before = up[k - 1], after = down[k + 1];
        out[0 * TILE + k] = before;
        out[1 * TILE + k] = after;
        out[2 * TILE + k] = up[k + 1];
        out[3 * TILE + k] = down[k - 1];
        out[4 * TILE + k] = up[k];
        out[5 * TILE + k] = down[k];
        out[6 * TILE + k] = g[k - 1];
        out[7 * TILE + k] = g[k + 1];
        out[8 * TILE + k] = std::max(before, after);
        out[9 * TILE + k] = 0.5 * (before + after) * g[k];
        out[10 * TILE + k] = 2.0 * before * after / std::max(before + after, 1e-300);
    }
}

static MM_CLONES void position(const Pair& p, const Tile& t, double* MM_RESTRICT out) {
    const double* g = p.grid(PRODUCT, t.j) + t.first;
    const double lengths =
        std::min(std::fabs(std::log(static_cast<double>(p.J) / static_cast<double>(p.K))), 1.0);
    const double small = truth(std::min(p.J, p.K) <= 5);
    const double row = (static_cast<double>(t.j) + 0.5) / static_cast<double>(p.J), columns = static_cast<double>(p.K);
    const auto first = static_cast<double>(t.first), same = static_cast<double>(t.j);
    const double is_first = truth(t.j == 0), is_last = truth(t.j == p.J - 1);
    for (std::int32_t k = 0; k < static_cast<std::int32_t>(t.width); ++k) {
        const double at = first + static_cast<double>(k);
        const double far = std::fabs(row - (at + 0.5) / columns), root = std::sqrt(far), open = 1.0 - g[k];
        out[0 * TILE + k] = far;
        out[1 * TILE + k] = far * far;
        out[2 * TILE + k] = root;
        out[3 * TILE + k] = far * open;
        out[4 * TILE + k] = far * far * open;
        out[5 * TILE + k] = root * open;
        out[6 * TILE + k] = truth(at == same);
        out[7 * TILE + k] = is_first * truth(at == 0.0);
        out[8 * TILE + k] = is_last * truth(at == columns - 1.0);
        out[9 * TILE + k] = far * lengths;
        out[10 * TILE + k] = small;
    }
}

// Letters in common of the word of a row and all words of the other side, in one pass over the letters of the other
// word. Places of a letter in the row's word, of m letters, are bits of p.places.
// - The longest common subsequence takes four operations per letter (Hyyro, Bit-parallel LCS-length computation
//   revisited, 2004): letters in it are the zeros of v.
// - Two letters follow each other in the row's word where the places of the first, moved by one, meet those of the
//   second.
// - The common prefix are the letters q that have place q, the common suffix those of n letters that have place q + m - n.
static MM_CLONES void letters_in_common(const Words& words, std::int32_t word, const std::int32_t* others, Pair& p) {
    const std::uint32_t* MM_RESTRICT w = words.letters.data() + words.start[word];
    const std::int64_t m = words.start[word + 1] - words.start[word];
    std::uint64_t* MM_RESTRICT places = p.places.data();
    double *MM_RESTRICT prefix = p.letter_row(PREFIX), *MM_RESTRICT suffix = p.letter_row(SUFFIX);
    double *MM_RESTRICT common = p.letter_row(COMMON), *MM_RESTRICT bigrams = p.letter_row(BIGRAMS);
    const double* MM_RESTRICT lengths = p.of_target(LENGTH);
    for (std::int64_t q = 0; q < m; ++q) places[w[q]] |= std::uint64_t{1} << q;
    const std::uint64_t all = m == 0 ? 0 : ~std::uint64_t{0} >> (LETTERS_MOST - m);
    const int own = std::popcount(words.first[word]);
    for (std::int64_t k = 0; k < p.K; ++k) {
        const std::int32_t o = others[k];
        const std::uint32_t* MM_RESTRICT x = words.letters.data() + words.start[o];
        const std::int64_t n = words.start[o + 1] - words.start[o];
        const std::int64_t down = std::clamp<std::int64_t>(m - n, 0, 63), up = std::clamp<std::int64_t>(n - m, 0, 63);
        std::uint64_t v = ~std::uint64_t{0}, previous = 0, shared = 0, head = 0, tail = 0, bit = 1;
        for (std::int64_t q = 0; q < n; ++q, bit <<= 1) {
            const std::uint64_t here = places[x[q]], u = v & here;
            v = (v + u) | (v - u);
            shared |= ((previous << 1) & here) != 0 ? bit : 0;
            head |= here & bit;
            tail |= ((here >> down) << up) & bit;
            previous = here;
        }
        const std::uint64_t theirs = words.first[o];
        prefix[k] = std::countr_one(head);
        suffix[k] = n == 0 ? 0 : std::countl_one(tail << (LETTERS_MOST - n));
        common[k] = std::popcount(~v & all);
        bigrams[k] = 2.0 * std::popcount(shared & theirs) / std::max(own + std::popcount(theirs), 1);
    }
    const auto length = static_cast<double>(m);
    for (std::int64_t k = 0; k < p.width; ++k) {
        const double longest = std::max(std::max(lengths[k], length), 1.0);
        prefix[k] /= longest;
        suffix[k] /= longest;
        common[k] = 2.0 * common[k] / std::max(lengths[k] + length, 1.0);
    }
    for (std::int64_t q = 0; q < m; ++q) places[w[q]] = 0;
}

static MM_CLONES void orthography(const Pair& p, const Tile& t, double* MM_RESTRICT out) {
    const double *prefix = p.letter_row(PREFIX) + t.first, *suffix = p.letter_row(SUFFIX) + t.first,
                 *common = p.letter_row(COMMON) + t.first, *bigrams = p.letter_row(BIGRAMS) + t.first;
    const double *words = p.of_target(WORD) + t.first, *shapes = p.of_target(SHAPE) + t.first,
                 *digits = p.of_target(DIGITS) + t.first, *marks = p.of_target(PUNCTUATED) + t.first,
                 *capitals = p.of_target(CAPITAL) + t.first, *lengths = p.of_target(LENGTH) + t.first;
    const double word = p.of_source(WORD, t.j), shape = p.of_source(SHAPE, t.j), digit = p.of_source(DIGITS, t.j),
                 mark = p.of_source(PUNCTUATED, t.j), capital = p.of_source(CAPITAL, t.j),
                 length = p.of_source(LENGTH, t.j);
    const double has_digits = truth(digit >= 0.0), is_long = truth(length >= 5.0);
    for (std::int64_t k = 0; k < t.width; ++k) {
        out[0 * TILE + k] = truth(words[k] == word);
        out[1 * TILE + k] = truth(shapes[k] == shape);
        out[2 * TILE + k] = prefix[k];
        out[3 * TILE + k] = suffix[k];
        out[4 * TILE + k] = common[k];
        out[5 * TILE + k] = bigrams[k];
        const double longest = std::max(std::max(lengths[k], length), 1.0);
        out[6 * TILE + k] = truth(prefix[k] * longest > 3.5);  // at least 4 letters
        out[14 * TILE + k] = std::fabs(lengths[k] - length) / longest;
        out[15 * TILE + k] = truth(common[k] >= 0.6) * is_long * truth(lengths[k] >= 5.0);
    }
    for (std::int64_t k = 0; k < t.width; ++k) {
        const double both = has_digits * truth(digits[k] >= 0.0), equal = truth(digits[k] == digit);
        out[7 * TILE + k] = both * equal;
        out[8 * TILE + k] = both * (1.0 - equal);
        const double same = truth(words[k] == word), marked = mark * marks[k];
        out[9 * TILE + k] = marked * same;
        out[10 * TILE + k] = marked * (1.0 - same);
        out[11 * TILE + k] = mark + marks[k] - 2.0 * marked;
        out[12 * TILE + k] = capital * capitals[k];
        out[13 * TILE + k] = capital + capitals[k] - 2.0 * capital * capitals[k];
    }
}

static MM_CLONES void frequency(const Pair& p, const Tile& t, double* MM_RESTRICT out) {
    const double *g = p.grid(PRODUCT, t.j) + t.first, *common = p.letter_row(COMMON) + t.first;
    const double *logs = p.of_target(FREQUENCY) + t.first, *rares = p.of_target(RARE) + t.first,
                 *rarers = p.of_target(RARER) + t.first, *often = p.of_target(FREQUENT) + t.first,
                 *unseens = p.of_target(UNSEEN) + t.first;
    const double log = p.of_source(FREQUENCY, t.j), rare = p.of_source(RARE, t.j), rarer = p.of_source(RARER, t.j),
                 frequent = p.of_source(FREQUENT, t.j), unseen = p.of_source(UNSEEN, t.j);
    const double row = (static_cast<double>(t.j) + 0.5) / static_cast<double>(p.J), columns = static_cast<double>(p.K);
    const auto first = static_cast<double>(t.first);
    for (std::int32_t k = 0; k < static_cast<std::int32_t>(t.width); ++k) {
        const double far = std::fabs(row - (first + static_cast<double>(k) + 0.5) / columns);
        const double both_rare = rare * rares[k], both = frequent * often[k], one = frequent + often[k] - 2.0 * both;
        out[0 * TILE + k] = log;
        out[1 * TILE + k] = logs[k];
        out[2 * TILE + k] = std::fabs(log - logs[k]);
        out[3 * TILE + k] = rarer * rarers[k];
        out[4 * TILE + k] = both_rare;
        out[5 * TILE + k] = both;
        out[6 * TILE + k] = one;
        out[7 * TILE + k] = std::max(unseen, unseens[k]);
        out[8 * TILE + k] = unseen * unseens[k];
        out[9 * TILE + k] = both_rare * g[k];
        out[10 * TILE + k] = both * g[k];
        out[11 * TILE + k] = one * g[k];
        out[12 * TILE + k] = both_rare * common[k];
        out[13 * TILE + k] = one * far;
    }
}

static MM_CLONES void nulls(const Pair& p, const Tile& t, double* MM_RESTRICT out) {
    const double *g = p.grid(PRODUCT, t.j) + t.first, *alones = p.of_target(ALONE) + t.first,
                 *often = p.of_target(FREQUENT) + t.first;
    const double alone = p.of_source(ALONE, t.j), frequent = p.of_source(FREQUENT, t.j);
    for (std::int64_t k = 0; k < t.width; ++k) {
        out[0 * TILE + k] = alone;
        out[1 * TILE + k] = alones[k];
        out[2 * TILE + k] = std::max(alone, alones[k]);
        out[3 * TILE + k] = (1.0 - alone) * (1.0 - alones[k]);
        out[4 * TILE + k] = frequent * (1.0 - g[k]);
        out[5 * TILE + k] = often[k] * (1.0 - g[k]);
    }
}

// Four sums at a time, so that an addition need not wait for the one before it.
template <class Vec>
MM_INLINE void weighted_sum_at(int /*widest*/, const double* table, const double* weights, std::int64_t n,
                               std::int64_t width, double* sums) {
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
MM_LEVELS(void, weighted_sum,
          (int widest, const double* table, const double* weights, std::int64_t n, std::int64_t width, double* sums),
          (widest, table, weights, n, width, sums))

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
            letters_in_common(b.words, b.source_word[b.source_start[i] + j], b.target_word.data() + b.target_start[i], p);
        const Two dice = two_largest(widest, p.grid(DICE, j), p.width), product = two_largest(widest, p.grid(PRODUCT, j), p.width);
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
                    case NEIGHBOURS: neighbours(p, t, out); break;
                    case POSITION: position(p, t, out); break;
                    case ORTHOGRAPHY: orthography(p, t, out); break;
                    case FREQUENCY_BANDS: frequency(p, t, out); break;
                    default: nulls(p, t, out);
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
    ScratchLease<Scratch> scratch(static_cast<std::size_t>(std::max(threads, 1)));
    parallel_blocks(b.size(), 8, threads, [&](int thread, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const bool good = pair_is_finite(b, i);
            status[i] = good ? STATUS_OK : STATUS_NONFINITE;
            if (good)
                one(i, scratch[thread]);
            else
                zero(i);
        }
    });
}

// What a call asks for. Columns in order: groups, user (if `user`), then n_identity of identity (-1 in the grid: none).
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
