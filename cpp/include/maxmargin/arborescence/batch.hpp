// A packed batch of sentences whose outputs are spanning arborescences: trees of arcs away from the root 0 that reach
// every token 1 .. n, with arcs that may cross.
//
// The candidate arcs (head, modifier) of an example are listed by modifier, then by head, each with K labels, which are
// parallel arcs; part a K + l is arc a with label l. An example without a list has all arcs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "maxmargin/base/simd.hpp"
#include "maxmargin/dependencies/arcs.hpp"
#include "maxmargin/hull/projection.hpp"

namespace maxmargin::arborescence {

using hull::Sparse;
using hull::Status;

inline constexpr double NEG_INF = -std::numeric_limits<double>::infinity();

// One example. Arcs and parts are counted from 0 inside it.
struct Example {
    std::int64_t n_tokens, n_arcs, n_labels;
    const std::int32_t* arcs;  // head and modifier of each, or null for all arcs
    bool single_root;

    std::int64_t n_parts() const { return n_arcs * n_labels; }
    // Calls take(head, modifier, first part) for all arcs in their order.
    template <class Take>
    void each_arc(Take&& take) const {
        std::int64_t part = 0;
        if (arcs) {
            for (std::int64_t a = 0; a < n_arcs; ++a, part += n_labels) take(arcs[2 * a], arcs[2 * a + 1], part);
            return;
        }
        for (std::int64_t m = 1; m <= n_tokens; ++m)
            for (std::int64_t h = 0; h <= n_tokens; ++h) {
                if (h == m) continue;
                take(h, m, part);
                part += n_labels;
            }
    }
    // Calls take(modifier, first, last, from_root) for the tokens that have candidates, the arcs first : last, of which
    // the first may come from the root.
    template <class Take>
    void each_modifier(Take&& take) const {
        if (!arcs) {
            for (std::int64_t m = 1; m <= n_tokens; ++m) take(m, (m - 1) * n_tokens, m * n_tokens, true);
            return;
        }
        for (std::int64_t first = 0, last = 0; first < n_arcs; first = last) {
            const std::int64_t m = arcs[2 * first + 1];
            while (last < n_arcs && arcs[2 * last + 1] == m) ++last;
            take(m, first, last, arcs[2 * first] == 0);
        }
    }
    std::int64_t head(std::int64_t arc, std::int64_t modifier) const {
        if (arcs) return arcs[2 * arc];
        const std::int64_t place = arc - (modifier - 1) * n_tokens;
        return place + (place >= modifier);
    }
    // The first part of an arc that is a candidate.
    std::int64_t first_part(std::int64_t head, std::int64_t modifier) const {
        if (!arcs) return ((modifier - 1) * n_tokens + head - (head > modifier)) * n_labels;
        std::int64_t low = 0, high = n_arcs - 1;
        while (low < high) {
            const std::int64_t middle = (low + high) / 2;
            const std::int32_t* arc = arcs + 2 * middle;
            if (arc[1] < modifier || (arc[1] == modifier && arc[0] < head)) low = middle + 1;
            else high = middle;
        }
        return low * n_labels;
    }
    // Head and modifier of the arc of a part.
    std::pair<std::int64_t, std::int64_t> ends(std::int64_t part) const {
        const std::int64_t arc = part / n_labels;
        if (arcs) return {arcs[2 * arc], arcs[2 * arc + 1]};
        const std::int64_t modifier = arc / n_tokens + 1, place = arc % n_tokens;
        return {place + (place >= modifier), modifier};
    }
};

// The caller has checked all numbers.
class Batch {
   public:
    Batch(std::span<const std::int64_t> tokens, std::int64_t n_labels, bool single_root, dependencies::Arcs arcs)
        : tokens_(tokens.begin(), tokens.end()), arcs_(std::move(arcs)), n_labels_(n_labels), single_root_(single_root),
          listed_(!arcs_.offsets.empty()) {
        if (listed_) return;
        arcs_.offsets.push_back(0);
        for (const std::int64_t n : tokens_) arcs_.offsets.push_back(arcs_.offsets.back() + n * n);
    }

    std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
    std::int64_t n_parts() const { return arcs_.offsets.back() * n_labels_; }
    std::int64_t n_tokens() const { return std::accumulate(tokens_.begin(), tokens_.end(), std::int64_t{0}); }
    std::int64_t begin(std::int64_t i) const { return arcs_.offsets[i] * n_labels_; }
    Example operator[](std::int64_t i) const {
        const std::int64_t first = arcs_.offsets[i];
        const std::int32_t* own = listed_ ? arcs_.nodes.data() + 2 * first : nullptr;
        return {tokens_[i], arcs_.offsets[i + 1] - first, n_labels_, own, single_root_};
    }
    // Examples per block of work: enough parts to pay for handing the block out.
    std::int64_t grain() const {
        return std::clamp<std::int64_t>(4000 / (n_parts() / std::max<std::int64_t>(size(), 1) + 1), 1, 64);
    }

   private:
    std::vector<std::int64_t> tokens_;
    dependencies::Arcs arcs_;  // with offsets, and nodes if they are listed
    std::int64_t n_labels_;
    bool single_root_, listed_;
};

namespace dense {

using namespace simd;

// The largest of n numbers, n > 0.
template <class Vec>
MM_INLINE double maximum_at(const double* MM_RESTRICT x, std::int64_t n) {
    constexpr std::int64_t width = lanes<Vec>;
    if (n < width) {
        double most = x[0];
        for (std::int64_t j = 1; j < n; ++j) most = x[j] > most ? x[j] : most;
        return most;
    }
    Vec one = load<Vec>(x), two = load<Vec>(x + n - width);
    std::int64_t j = width;
    for (; j + 2 * width <= n; j += 2 * width) {
        one = larger<Vec>(one, load<Vec>(x + j));
        two = larger<Vec>(two, load<Vec>(x + j + width));
    }
    if (j + width <= n) one = larger<Vec>(one, load<Vec>(x + j));
    return largest(larger<Vec>(one, two));
}
MM_LEVELS(maximum)

}  // namespace dense

// Numbers between the rows of tables with a number for each node: whole vectors.
inline std::int64_t stride_of(std::int64_t n_tokens) { return (n_tokens + 8) / 8 * 8; }

// The largest number of each arc over its labels, by modifier: rows 1 .. n, `stride` apart, of columns 0 .. n for the
// heads and then -inf; -inf also where there is no arc.
inline void arc_rows(const Example& ex, const double* MM_RESTRICT scores, std::int64_t stride,
                     double* MM_RESTRICT rows) {
    const std::int64_t n = ex.n_tokens;
    if (!ex.arcs && ex.n_labels == 1) {
        for (std::int64_t m = 1; m <= n; ++m, scores += n) {
            double* row = rows + m * stride;
            std::copy(scores, scores + m, row);
            row[m] = NEG_INF;
            std::copy(scores + m, scores + n, row + m + 1);
            std::fill(row + n + 1, row + stride, NEG_INF);
        }
        return;
    }
    const int widest = simd::lanes_in_use();
    std::fill(rows + stride, rows + (n + 1) * stride, NEG_INF);
    ex.each_arc([&](std::int64_t h, std::int64_t m, std::int64_t part) {
        rows[m * stride + h] = dense::maximum(widest, scores + part, ex.n_labels);
    });
}

// The value of an example without a point.
inline double no_value(Status found) {
    return found == Status::nonfinite ? std::numeric_limits<double>::quiet_NaN() : NEG_INF;
}

}  // namespace maxmargin::arborescence
