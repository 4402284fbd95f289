// The groups of features of word pairs: functions that fill the lines of a table for a tile of cells.
#pragma once

#include <array>
#include <bit>

#include "maxmargin/alignment/link_batch.hpp"

namespace maxmargin::links {

enum Group {
    BIAS,
    ASSOCIATION,
    MODEL1,
    HMM,
    NEIGHBORS,
    POSITION,
    ORTHOGRAPHY,
    FREQUENCY_BANDS,
    NULLS,
    IDENTICAL,
    GROUPS
};
inline constexpr std::array<int, GROUPS> GROUP_SIZES = {1, 9, 9, 18, 11, 11, 16, 14, 6, 6};
inline constexpr std::int64_t TILE = 32;

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
MM_INLINE Two two_largest_at(const double* values, std::int64_t width) {
    Vec best{}, second{};
    for (std::int64_t k = 0; k < width; k += simd::lanes<Vec>) {
        const Vec value = simd::load<Vec>(values + k);
        second = simd::larger<Vec>(second, value < best ? value : best);
        best = simd::larger<Vec>(best, value);
    }
    return two_of_lanes<Vec>(best, second);
}
MM_LEVELS(two_largest)

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
    const double *best = p.best_of_column(PRODUCT_BEST) + t.first, *second = p.best_of_column(PRODUCT_SECOND) + t.first;
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

static MM_CLONES void neighbors(const Pair& p, const Tile& t, double* MM_RESTRICT out) {
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
    const double lengths = std::min(std::fabs(std::log(static_cast<double>(p.J) / static_cast<double>(p.K))), 1.0);
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
// - The common prefix are the letters q that have place q, the common suffix those of n letters that have place q + m -
// n.
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

// Words with the same letters, or the same digits, that stand once on both sides; `another`: one of the two has its
// twin elsewhere.
static MM_CLONES void identical(const Pair& p, const Tile& t, double* MM_RESTRICT out) {
    const double *twins = p.of_target(TWIN) + t.first, *digit_twins = p.of_target(DIGITS_TWIN) + t.first,
                 *rares = p.of_target(RARE) + t.first;
    const double twin = p.of_source(TWIN, t.j), digit_twin = p.of_source(DIGITS_TWIN, t.j),
                 rare = p.of_source(RARE, t.j), digits = truth(p.of_source(DIGITS, t.j) >= 0.0);
    const double has = truth(twin >= 0.0), has_digits = truth(digit_twin >= 0.0);
    const auto row = static_cast<double>(t.j);
    for (std::int64_t k = 0; k < t.width; ++k) {
        const double same = truth(twins[k] == row), same_digits = truth(digit_twins[k] == row);
        out[0 * TILE + k] = same;
        out[1 * TILE + k] = same * digits;
        out[2 * TILE + k] = same * rare * rares[k];
        out[3 * TILE + k] = std::max(has, truth(twins[k] >= 0.0)) * (1.0 - same);
        out[4 * TILE + k] = same_digits * (1.0 - same);
        out[5 * TILE + k] = std::max(has_digits, truth(digit_twins[k] >= 0.0)) * (1.0 - same_digits);
    }
}

}  // namespace maxmargin::links
