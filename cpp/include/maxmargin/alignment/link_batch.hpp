// A batch of sentence pairs and the statistics of their word pairs; one pair laid out for features.
//
// Grids hold the cells (word pairs) of all sentence pairs, pair after pair, row-major source x target inside a pair.
// For its features a pair is copied once into grids with a border of zeros, so that neighbors outside the sentence
// read as 0, and with rows padded to whole vectors, so that loops over a row have no remainder. Values are brought into
// their range on the way (probabilities into [0, 1], counts into [0, 1e15]): whatever finite numbers come in, finite
// features come out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "maxmargin/base/scratch.hpp"
#include "maxmargin/base/simd.hpp"

namespace maxmargin::links {

inline constexpr std::int64_t LETTERS_MOST = 64;  // letters of a word are bits of one machine word
inline constexpr double COUNT_MOST = 1e15;
inline constexpr std::int64_t STEP = 8;  // rows are padded to multiples of this

enum WordKind : std::uint8_t { PUNCTUATION = 1, CAPITALIZED = 2 };

// The distinct words of a batch. `letters` are code points, no more than LETTERS_MOST per word.
struct Words {
    std::vector<std::int64_t> start;
    std::vector<std::uint32_t> letters;
    std::vector<std::int32_t> shape, digits;  // equal numbers: equal shapes, equal digits (-1: no digits)
    std::vector<std::int32_t> same;           // equal numbers: equal letters (-1: punctuation)
    std::vector<std::uint8_t> kind;
    std::vector<std::uint64_t> first;  // bit q: letters q - 1, q are two letters that do not follow each other earlier
    std::uint32_t largest = 0;

    std::int64_t size() const { return static_cast<std::int64_t>(kind.size()); }
    std::span<const std::uint32_t> word(std::int64_t i) const {
        return {letters.data() + start[i], letters.data() + start[i + 1]};
    }
    void finish() {
        first.assign(kind.size(), 0);
        for (std::int64_t i = 0; i < size(); ++i) {
            const auto w = word(i);
            for (std::size_t q = 1; q < w.size(); ++q) {
                bool earlier = false;
                for (std::size_t p = 1; p < q && !earlier; ++p) earlier = w[p - 1] == w[q - 1] && w[p] == w[q];
                if (!earlier) first[i] |= std::uint64_t{1} << q;
            }
        }
        largest = letters.empty() ? 0 : *std::max_element(letters.begin(), letters.end());
        same.assign(kind.size(), -1);
        std::vector<std::int32_t> order(kind.size());
        std::iota(order.begin(), order.end(), 0);
        const auto before = [this](std::int32_t a, std::int32_t b) {
            const auto one = word(a), two = word(b);
            return std::lexicographical_compare(one.begin(), one.end(), two.begin(), two.end());
        };
        std::sort(order.begin(), order.end(), before);
        std::int32_t number = 0;
        for (std::size_t at = 0; at < order.size(); ++at) {
            if (at > 0 && before(order[at - 1], order[at])) ++number;
            if ((kind[order[at]] & PUNCTUATION) == 0 && !word(order[at]).empty()) same[order[at]] = number;
        }
    }
};

struct Batch {
    std::vector<std::int64_t> source_start, target_start, grid_start;
    std::vector<std::int32_t> source_word, target_word;
    Words words;
    std::span<const double> model1_forward, model1_backward, hmm_forward, hmm_backward, together;
    std::span<const double> count_source, count_target, null_source, null_target;
    std::span<const std::int32_t> identity;  // empty: none
    std::span<const double> user;
    std::int64_t n_user = 0;
    std::int32_t identity_largest = -1;
    double n_pairs = 0.0;  // 0, or 1 at least

    std::int64_t size() const { return static_cast<std::int64_t>(grid_start.size()) - 1; }
    std::int64_t cells() const { return grid_start.back(); }
};

MM_INLINE double unit(double x) { return std::min(std::max(x, 0.0), 1.0); }
MM_INLINE double as_count(double x) { return std::min(std::max(x, 0.0), COUNT_MOST); }
inline std::int64_t padded(std::int64_t n) { return (n + STEP - 1) / STEP * STEP; }

// log x for normal x > 0 to about 1 ulp, in a form that compilers turn into vectors: x = 2^e (1 + f) with 1 + f between
// sqrt(1/2) and sqrt(2), s = f / (2 + f), z = s^2, log(1 + f) = f - (f^2/2 - s (f^2/2 + R)), R = 2z/3 + 2z^2/5 + ...
MM_INLINE double log_of(double x) {
    constexpr std::uint64_t to_one = 0x3ff0000000000000ULL - 0x3fe6a09e667f3bcdULL, two_to_52 = 0x4330000000000000ULL;
    const std::uint64_t bits = __builtin_bit_cast(std::uint64_t, x);
    const std::uint64_t exponent = (bits + to_one) >> 52;  // e + 1023
    const double e = __builtin_bit_cast(double, exponent | two_to_52) - (0x1p52 + 1023.0);
    const double f = __builtin_bit_cast(double, bits - (exponent << 52) + 0x3ff0000000000000ULL) - 1.0;
    const double s = f / (2.0 + f);
    const double z = s * s, z2 = z * z, z4 = z2 * z2;
    const double r12 = 2.0 / 3.0 + z * (2.0 / 5.0), r34 = 2.0 / 7.0 + z * (2.0 / 9.0);
    const double r56 = 2.0 / 11.0 + z * (2.0 / 13.0), r78 = 2.0 / 15.0 + z * (2.0 / 17.0);
    const double r90 = 2.0 / 19.0 + z * (2.0 / 21.0);
    const double r = z * ((r12 + z2 * r34) + z4 * ((r56 + z2 * r78) + z4 * r90));
    const double half = 0.5 * f * f;
    return e * 0x1.62e42feep-1 + ((e * 0x1.a39ef35793c76p-33 - (half - s * (half + r))) + f);
}

// x log x for x >= 0.
MM_INLINE double x_log_x(double x) { return x * log_of(std::max(x, 1e-300)); }

enum Grid { MODEL1_FORWARD, MODEL1_BACKWARD, HMM_FORWARD, HMM_BACKWARD, PRODUCT, TOGETHER, DICE, GRIDS };
enum Fact {  // of a word of one side; the first six come from its count
    COUNT,
    LOG_COUNT,
    MARGINAL,
    FREQUENCY,
    RARE,
    RARER,
    FREQUENT,
    UNSEEN,
    ALONE,
    WORD,
    SHAPE,
    DIGITS,
    PUNCTUATED,
    CAPITAL,
    LENGTH,
    TWIN,         // the place of the only word of the other side with the same letters, if this word stands once; or -1
    DIGITS_TWIN,  // the same for words with the same digits
    FACTS
};
enum Best { MODEL1_BEST, HMM_BEST, PRODUCT_BEST, PRODUCT_SECOND, DICE_BEST, DICE_SECOND, BESTS };
enum Letters { PREFIX, SUFFIX, COMMON, BIGRAMS, LETTER_ROWS };

// One sentence pair. Row j, column k of a grid is at grid(g, j)[k]; j and k may be -1 and one past the end.
struct Pair {
    std::int64_t J = 0, K = 0, width = 0, stride = 0;
    double n_pairs = 0.0, log_pairs = 0.0, pairs_log_pairs = 0.0;
    std::vector<double> cells, source, target, best, letters;
    std::vector<std::uint64_t> places;  // per code point: where it stands in the word of the row; zero between rows

    double* grid(int g, std::int64_t j) { return cells.data() + (g * (J + 2) + j + 1) * stride + 1; }
    const double* grid(int g, std::int64_t j) const { return cells.data() + (g * (J + 2) + j + 1) * stride + 1; }
    const double* of_target(int fact) const { return target.data() + fact * width; }
    double of_source(int fact, std::int64_t j) const { return source[fact * padded(J) + j]; }
    double* best_of_column(int b) { return best.data() + b * width; }
    const double* best_of_column(int b) const { return best.data() + b * width; }
    double* letter_row(int l) { return letters.data() + l * width; }
    const double* letter_row(int l) const { return letters.data() + l * width; }
};

// Whether all values are finite.
static MM_CLONES bool finite(const double* values, std::int64_t n) {
    double sum = 0.0;
    for (std::int64_t i = 0; i < n; ++i) sum += values[i] - values[i] == 0.0 ? 0.0 : 1.0;
    return sum == 0.0;
}

static inline bool pair_is_finite(const Batch& b, std::int64_t i) {
    const std::int64_t at = b.grid_start[i], cells = b.grid_start[i + 1] - at;
    for (const auto& grid : {b.model1_forward, b.model1_backward, b.hmm_forward, b.hmm_backward, b.together})
        if (!finite(grid.data() + at, cells)) return false;
    const std::int64_t s = b.source_start[i], t = b.target_start[i];
    const std::int64_t J = b.source_start[i + 1] - s, K = b.target_start[i + 1] - t;
    return finite(b.count_source.data() + s, J) && finite(b.null_source.data() + s, J) &&
           finite(b.count_target.data() + t, K) && finite(b.null_target.data() + t, K) &&
           (b.n_user == 0 || finite(b.user.data() + at * b.n_user, cells * b.n_user));
}

static MM_CLONES void facts_of_counts(const double* counts, std::int64_t n, std::int64_t width, double n_pairs,
                                      double scale, double* MM_RESTRICT facts) {
    for (std::int64_t k = 0; k < width; ++k) facts[COUNT * width + k] = k < n ? as_count(counts[k]) : 0.0;
    for (std::int64_t k = 0; k < width; ++k) {
        const double c = facts[COUNT * width + k];
        facts[LOG_COUNT * width + k] = log_of(std::max(c, 1e-300));
        facts[MARGINAL * width + k] = x_log_x(c) + x_log_x(std::max(n_pairs - c, 0.0));
        facts[FREQUENCY * width + k] = std::min(log_of(1.0 + c) * scale, 1.0);
        facts[RARE * width + k] = c <= 3.0 ? 1.0 : 0.0;
        facts[RARER * width + k] = c <= 1.0 ? 1.0 : 0.0;
        facts[FREQUENT * width + k] = c > 0.01 * n_pairs ? 1.0 : 0.0;
        facts[UNSEEN * width + k] = c == 0.0 ? 1.0 : 0.0;
    }
}

static inline void lay_out_side(const Batch& b, std::span<const std::int32_t> words, std::span<const double> counts,
                                std::span<const double> nulls, std::vector<double>& facts) {
    const auto n = static_cast<std::int64_t>(words.size()), width = padded(n);
    at_least(facts, static_cast<std::size_t>(FACTS * width));
    const double pairs = as_count(b.n_pairs);
    facts_of_counts(counts.data(), n, width, pairs, pairs > 0.0 ? 1.0 / std::log(1.0 + pairs) : 0.0, facts.data());
    for (int fact = ALONE; fact < FACTS; ++fact) std::fill_n(facts.data() + fact * width, width, 0.0);
    for (std::int64_t k = 0; k < n; ++k) {
        const std::int32_t w = words[k];
        facts[ALONE * width + k] = unit(nulls[k]);
        facts[WORD * width + k] = w;
        facts[SHAPE * width + k] = b.words.shape[w];
        facts[DIGITS * width + k] = b.words.digits[w];
        facts[PUNCTUATED * width + k] = (b.words.kind[w] & PUNCTUATION) != 0 ? 1.0 : 0.0;
        facts[CAPITAL * width + k] = (b.words.kind[w] & CAPITALIZED) != 0 ? 1.0 : 0.0;
        facts[LENGTH * width + k] = static_cast<double>(b.words.word(w).size());
    }
}

// Places of words that are equal by `number` (-1: to none) and stand once on both sides, in facts[TWIN or DIGITS_TWIN].
static inline void find_twins(std::span<const std::int32_t> source, std::span<const std::int32_t> target,
                              const std::vector<std::int32_t>& number, int fact, Pair& p) {
    double *of_source = p.source.data() + fact * padded(p.J), *of_target = p.target.data() + fact * p.width;
    std::fill_n(of_source, padded(p.J), -1.0);
    std::fill_n(of_target, p.width, -1.0);
    for (std::size_t j = 0; j < source.size(); ++j) {
        const std::int32_t wanted = number[source[j]];
        if (wanted < 0) continue;
        const auto equal = [&](std::int32_t word) { return number[word] == wanted; };
        const auto found = std::find_if(target.begin(), target.end(), equal);
        if (found == target.end() || std::find_if(found + 1, target.end(), equal) != target.end()) continue;
        if (std::count_if(source.begin(), source.end(), equal) != 1) continue;
        of_source[j] = static_cast<double>(found - target.begin());
        of_target[found - target.begin()] = static_cast<double>(j);
    }
}

// One row of all grids, and the best of the columns so far.
static MM_CLONES void lay_out_row(const double* m_f, const double* m_b, const double* h_f, const double* h_b,
                                  const double* both, double count_source, const double* count_target, std::int64_t K,
                                  std::int64_t width, std::int64_t grid, double* MM_RESTRICT out,
                                  double* MM_RESTRICT best) {
    for (std::int64_t k = 0; k < K; ++k) {
        out[MODEL1_FORWARD * grid + k] = unit(m_f[k]);
        out[MODEL1_BACKWARD * grid + k] = unit(m_b[k]);
        out[HMM_FORWARD * grid + k] = unit(h_f[k]);
        out[HMM_BACKWARD * grid + k] = unit(h_b[k]);
        out[TOGETHER * grid + k] = as_count(both[k]);
    }
    for (std::int64_t k = 0; k < K; ++k) {
        out[PRODUCT * grid + k] = out[HMM_FORWARD * grid + k] * out[HMM_BACKWARD * grid + k];
        const double counts = count_source + count_target[k];
        const double ratio = 2.0 * out[TOGETHER * grid + k] / std::max(counts, 1e-300);
        out[DICE * grid + k] = counts > 0.0 ? std::min(ratio, 1.0) : 0.0;
    }
    for (std::int64_t k = 0; k < width; ++k) {
        best[MODEL1_BEST * width + k] = std::max(best[MODEL1_BEST * width + k], out[MODEL1_FORWARD * grid + k]);
        best[HMM_BEST * width + k] = std::max(best[HMM_BEST * width + k], out[HMM_FORWARD * grid + k]);
        const double g = out[PRODUCT * grid + k], g1 = best[PRODUCT_BEST * width + k];
        best[PRODUCT_SECOND * width + k] = std::max(best[PRODUCT_SECOND * width + k], std::min(g, g1));
        best[PRODUCT_BEST * width + k] = std::max(g, g1);
        const double d = out[DICE * grid + k], d1 = best[DICE_BEST * width + k];
        best[DICE_SECOND * width + k] = std::max(best[DICE_SECOND * width + k], std::min(d, d1));
        best[DICE_BEST * width + k] = std::max(d, d1);
    }
}

// Copies sentence pair i, whose values are finite.
static inline void lay_out(const Batch& b, std::int64_t i, Pair& p) {
    const std::int64_t s = b.source_start[i], t = b.target_start[i], at = b.grid_start[i];
    p.J = b.source_start[i + 1] - s;
    p.K = b.target_start[i + 1] - t;
    p.width = padded(p.K);
    p.stride = p.width + 2;
    p.n_pairs = as_count(b.n_pairs);
    p.log_pairs = p.n_pairs > 1.0 ? std::log(p.n_pairs) : 0.0;
    p.pairs_log_pairs = p.n_pairs > 0.0 ? p.n_pairs * std::log(p.n_pairs) : 0.0;
    const auto J = static_cast<std::size_t>(p.J), K = static_cast<std::size_t>(p.K);
    lay_out_side(b, std::span(b.source_word).subspan(s, J), b.count_source.subspan(s, J), b.null_source.subspan(s, J),
                 p.source);
    lay_out_side(b, std::span(b.target_word).subspan(t, K), b.count_target.subspan(t, K), b.null_target.subspan(t, K),
                 p.target);
    find_twins(std::span(b.source_word).subspan(s, J), std::span(b.target_word).subspan(t, K), b.words.same, TWIN, p);
    find_twins(std::span(b.source_word).subspan(s, J), std::span(b.target_word).subspan(t, K), b.words.digits,
               DIGITS_TWIN, p);
    const std::int64_t grid = (p.J + 2) * p.stride;
    at_least(p.cells, static_cast<std::size_t>(GRIDS * grid));
    std::fill_n(p.cells.data(), GRIDS * grid, 0.0);
    at_least(p.best, static_cast<std::size_t>(BESTS * p.width));
    std::fill_n(p.best.data(), BESTS * p.width, 0.0);
    at_least(p.letters, static_cast<std::size_t>(LETTER_ROWS * p.width));
    std::fill_n(p.letters.data(), LETTER_ROWS * p.width, 0.0);
    for (std::int64_t j = 0; j < p.J; ++j) {
        const std::int64_t cell = at + j * p.K;
        lay_out_row(b.model1_forward.data() + cell, b.model1_backward.data() + cell, b.hmm_forward.data() + cell,
                    b.hmm_backward.data() + cell, b.together.data() + cell, p.of_source(COUNT, j), p.of_target(COUNT),
                    p.K, p.width, grid, p.grid(0, j), p.best.data());
    }
}

}  // namespace maxmargin::links
