// Classes of words with similar neighbors: the exchange algorithm, and a tree of the classes.
//
// The classes maximize the likelihood of a bigram model of classes, p(v | w) = p(class of v | class of w) p(v | its
// class), as in Brown and others (Class-based n-gram models of natural language, 1992) and Martin, Liermann and Ney
// (Algorithms for bigram and trigram word clustering, 1998). With N(g, h) neighbors of classes g and h, L(g) and R(h)
// the sums of rows and columns, and f(x) = x log x, this is, up to a constant,
//
//     F = sum_gh f(N(g, h)) - sum_g f(L(g)) - sum_h f(R(h)).
//
// A pass takes each word out of its class and puts it where F is largest. Cost: O(K m) per word with K classes, where m
// is the number of classes among its neighbors. Classes at the end of the numbers may be fixed: their words are
// neighbors of others and stay.
//
// The tree merges the two classes whose union loses the least, again and again. A pair (i, j) loses
//
//     sum_g T(i, j, g) + f of the parts of N within {i, j}, before and after - the same for L and R,
//     T(i, j, g) = f(N(i, g)) + f(N(j, g)) - f(N(i, g) + N(j, g)), and likewise for columns,
//
// over all other g. A merge changes T of two classes, so the losses of all pairs are kept in O(K^2), O(K^3) in all.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace maxmargin::clusters {

// x log x, from a table for small numbers.
class XLogX {
   public:
    XLogX() : known_(size) {
        for (std::size_t x = 1; x < size; ++x) known_[x] = value(static_cast<std::int64_t>(x));
    }
    double operator()(std::int64_t x) const {
        return x < static_cast<std::int64_t>(size) ? known_[static_cast<std::size_t>(x)] : value(x);
    }

   private:
    static constexpr std::size_t size = 1 << 14;
    static double value(std::int64_t x) { return static_cast<double>(x) * std::log(static_cast<double>(x)); }
    std::vector<double> known_;
};

// Sparse rows of counts: those of words that follow (or precede) each word.
struct Neighbors {
    std::span<const std::int64_t> start;
    std::span<const std::int32_t> word;
    std::span<const std::int64_t> count;
};

// Counts of neighbors of classes, K x K, with sums, and the transposed matrix for columns.
class ClassCounts {
   public:
    explicit ClassCounts(std::size_t k) : k_(k), rows(k * k), columns(k * k), left(k), right(k) {}

    void add(std::size_t g, std::size_t h, std::int64_t n) {
        rows[g * k_ + h] += n;
        columns[h * k_ + g] += n;
        left[g] += n;
        right[h] += n;
    }
    std::size_t size() const { return k_; }

   private:
    std::size_t k_;

   public:
    std::vector<std::int64_t> rows, columns, left, right;
};

// One pass of the exchange algorithm over the first `n_free` words, in order; classes at or beyond `k_free` are fixed.
// Returns the number of words that moved.
inline std::int64_t exchange_pass(const Neighbors& after, const Neighbors& before, std::size_t k, std::size_t k_free,
                                  std::size_t n_free, std::span<std::int32_t> class_of) {
    const XLogX f;
    ClassCounts counts(k);
    const std::size_t n = class_of.size();
    for (std::size_t w = 0; w < n; ++w)
        for (auto e = static_cast<std::size_t>(after.start[w]); e < static_cast<std::size_t>(after.start[w + 1]); ++e)
            counts.add(static_cast<std::size_t>(class_of[w]),
                       static_cast<std::size_t>(class_of[static_cast<std::size_t>(after.word[e])]), after.count[e]);

    std::vector<std::int64_t> next(k), previous(k);  // neighbors of the word, by class
    std::vector<std::size_t> touched;
    std::vector<double> gain(k_free);
    std::int64_t moved = 0;
    const auto collect = [&](const Neighbors& all, std::size_t w, std::vector<std::int64_t>& into) {
        std::int64_t itself = 0;
        for (auto e = static_cast<std::size_t>(all.start[w]); e < static_cast<std::size_t>(all.start[w + 1]); ++e) {
            const auto v = static_cast<std::size_t>(all.word[e]);
            if (v == w) {
                itself = all.count[e];
                continue;
            }
            const auto g = static_cast<std::size_t>(class_of[v]);
            if (!next[g] && !previous[g]) touched.push_back(g);
            into[g] += all.count[e];
        }
        return itself;
    };
    const auto put = [&](std::size_t c, std::int64_t sign, std::int64_t itself) {
        for (const std::size_t g : touched) {
            if (next[g]) counts.add(c, g, sign * next[g]);
            if (previous[g]) counts.add(g, c, sign * previous[g]);
        }
        if (itself) counts.add(c, c, sign * itself);
    };
    for (std::size_t w = 0; w < n_free; ++w) {
        touched.clear();
        const std::int64_t itself = collect(after, w, next);
        collect(before, w, previous);
        const auto own = static_cast<std::size_t>(class_of[w]);
        put(own, -1, itself);
        std::int64_t as_first = itself, as_second = itself;
        for (const std::size_t g : touched) as_first += next[g], as_second += previous[g];
        for (std::size_t c = 0; c < k_free; ++c) {
            // Words of the class that have this word as a neighbor count wherever it goes.
            const std::int64_t left = counts.left[c] + previous[c], right = counts.right[c] + next[c];
            gain[c] = f(left) - f(left + as_first) + f(right) - f(right + as_second);
        }
        for (const std::size_t g : touched) {
            // All classes at once; the class g itself, where both sums meet, is put right below.
            if (const std::int64_t n_next = next[g]) {
                const std::int64_t* there = &counts.columns[g * k];
                for (std::size_t c = 0; c < k_free; ++c) gain[c] += f(there[c] + n_next) - f(there[c]);
            }
            if (const std::int64_t n_previous = previous[g]) {
                const std::int64_t* there = &counts.rows[g * k];
                for (std::size_t c = 0; c < k_free; ++c) gain[c] += f(there[c] + n_previous) - f(there[c]);
            }
        }
        for (std::size_t c = 0; c < k_free; ++c) {
            const std::int64_t all = next[c] + previous[c] + itself;
            if (!all) continue;
            const std::int64_t there = counts.rows[c * k + c];
            gain[c] += f(there + all) - f(there + next[c]) - f(there + previous[c]) + f(there);
        }
        std::size_t best = own;
        for (std::size_t c = 0; c < k_free; ++c)
            if (gain[c] > gain[best] + 1e-9 * (1.0 + std::abs(gain[best]))) best = c;
        put(best, 1, itself);
        class_of[w] = static_cast<std::int32_t>(best);
        moved += best != own;
        for (const std::size_t g : touched) next[g] = previous[g] = 0;
    }
    return moved;
}

// Merges the first `k_free` of k classes into one, step by step, the pair that loses the least first; of equal ones the
// first. Writes the pairs: the smaller number is that of the union from then on.
inline void merge_classes(std::span<const std::int64_t> given, std::size_t k, std::size_t k_free,
                          std::span<std::int32_t> pairs) {
    const XLogX f;
    ClassCounts counts(k);
    for (std::size_t g = 0; g < k; ++g)
        for (std::size_t h = 0; h < k; ++h)
            if (given[g * k + h]) counts.add(g, h, given[g * k + h]);
    std::vector<char> alive(k, 1);
    std::vector<double> loss(k_free * k_free);

    const auto at = [&](std::size_t g, std::size_t h) { return counts.rows[g * k + h]; };
    const auto through = [&](std::size_t i, std::size_t j, std::size_t g) {
        const std::int64_t ig = counts.rows[i * k + g], jg = counts.rows[j * k + g];
        const std::int64_t gi = counts.columns[i * k + g], gj = counts.columns[j * k + g];
        double found = 0.0;
        if (ig && jg) found += f(ig) + f(jg) - f(ig + jg);
        if (gi && gj) found += f(gi) + f(gj) - f(gi + gj);
        return found;
    };
    const auto whole = [&](std::size_t i, std::size_t j) {
        double found = 0.0;
        for (std::size_t g = 0; g < k; ++g)
            if (g != i && g != j && alive[g]) found += through(i, j, g);
        const std::int64_t ii = at(i, i), ij = at(i, j), ji = at(j, i), jj = at(j, j);
        found += f(ii) + f(ij) + f(ji) + f(jj) - f(ii + ij + ji + jj);
        found += f(counts.left[i] + counts.left[j]) - f(counts.left[i]) - f(counts.left[j]);
        found += f(counts.right[i] + counts.right[j]) - f(counts.right[i]) - f(counts.right[j]);
        return found;
    };
    for (std::size_t i = 0; i < k_free; ++i)
        for (std::size_t j = i + 1; j < k_free; ++j) loss[i * k_free + j] = whole(i, j);

    for (std::size_t step = 0; step + 1 < k_free; ++step) {
        std::size_t a = 0, b = 0;
        double least = std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < k_free; ++i) {
            if (!alive[i]) continue;
            for (std::size_t j = i + 1; j < k_free; ++j)
                if (alive[j] && loss[i * k_free + j] < least) least = loss[i * k_free + j], a = i, b = j;
        }
        pairs[2 * step] = static_cast<std::int32_t>(a);
        pairs[2 * step + 1] = static_cast<std::int32_t>(b);
        const auto others = [&](auto&& change) {
            for (std::size_t i = 0; i < k_free; ++i) {
                if (!alive[i] || i == a || i == b) continue;
                for (std::size_t j = i + 1; j < k_free; ++j)
                    if (alive[j] && j != a && j != b) change(i, j);
            }
        };
        others([&](std::size_t i, std::size_t j) { loss[i * k_free + j] -= through(i, j, a) + through(i, j, b); });
        alive[b] = 0;
        for (std::size_t g = 0; g < k; ++g) {
            if (g == b) continue;
            if (const std::int64_t n = at(b, g)) counts.add(a, g, n), counts.add(b, g, -n);
            if (const std::int64_t n = at(g, b)) counts.add(g, a, n), counts.add(g, b, -n);
        }
        if (const std::int64_t n = at(b, b)) counts.add(a, a, n), counts.add(b, b, -n);
        others([&](std::size_t i, std::size_t j) { loss[i * k_free + j] += through(i, j, a); });
        for (std::size_t i = 0; i < k_free; ++i)
            if (alive[i] && i != a)
                loss[std::min(i, a) * k_free + std::max(i, a)] = whole(std::min(i, a), std::max(i, a));
    }
}

}  // namespace maxmargin::clusters
