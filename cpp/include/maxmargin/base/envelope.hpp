// The upper envelope of lines a_i + gamma b_i: which of several scores is best as weights move along a line.
//
// It is the upper hull of the points (b_i, a_i), found in three stages. A filter of two vector passes drops the points
// below the hull of a leftmost point, a rightmost one, and the one farthest above their chord: of 200 points some
// fifteen are left. These are sorted by counting, and a stack of lines keeps those that are best somewhere.
//
// Of equal lines the first is kept.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "maxmargin/base/simd.hpp"

namespace maxmargin {

// A line is best from gamma = from to the `from` of the next segment; the first one begins at -inf.
struct Segment {
    double from, slope, score;
    std::int32_t line;
};

// The first of the lines with the smallest slope, and of those with the largest.
struct Extremes {
    std::int32_t left, right;
};

inline Extremes extremes(const double* slopes, std::int64_t n) {
    const auto [left, right] = std::pair(std::min_element(slopes, slopes + n), std::max_element(slopes, slopes + n));
    return {static_cast<std::int32_t>(left - slopes), static_cast<std::int32_t>(right - slopes)};
}

// Writes the numbers of lines that may be on the envelope to `kept`, in rising order, and returns how many.
template <class Vec>
MM_INLINE std::int64_t filter_lines_at(const double* a, const double* b, std::int64_t n, Extremes ends,
                                       std::int32_t* kept) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const double least = b[ends.left], most = b[ends.right], left = a[ends.left], right = a[ends.right];
    if (n < 2 * width || !(least < most)) {
        for (std::int64_t i = 0; i < n; ++i) kept[i] = static_cast<std::int32_t>(i);
        return n;
    }
    const std::int64_t last = n - width;  // a last vector overlaps the one before
    const double chord = (right - left) / (most - least);
    Vec farthest = Vec{} - infinity, farthest_slope = Vec{}, farthest_score = Vec{};
    for (std::int64_t i = 0;; i = std::min(i + width, last)) {
        const Vec slope = simd::load<Vec>(b + i), score = simd::load<Vec>(a + i), above = score - chord * slope;
        const auto farther = above > farthest;
        farthest = farther ? above : farthest;
        farthest_slope = farther ? slope : farthest_slope;
        farthest_score = farther ? score : farthest_score;
        if (i == last) break;
    }
    double top = -infinity, top_slope = least, top_score = left;
    for (std::int64_t lane = 0; lane < width; ++lane)
        if (farthest[lane] > top)
            top = farthest[lane], top_slope = farthest_slope[lane], top_score = farthest_score[lane];

    // Points below lines between any three points are below the hull: ties and rounding above cost time at most.
    double rise = top_slope > least ? (top_score - left) / (top_slope - least) : infinity;
    double fall = top_slope < most ? (top_score - right) / (most - top_slope) : infinity;
    if (rise == infinity) rise = -fall;
    if (fall == infinity) fall = -rise;
    const double slack = 1e-12 * (std::abs(left) + std::abs(right) + std::abs(top_score));
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < n; i += width) {
        const std::int64_t begin = std::min(i, last);
        const Vec offset = simd::load<Vec>(b + begin) - top_slope;
        const Vec score = simd::load<Vec>(a + begin) - (top_score - slack);
        const Vec up = rise * offset, down = -fall * offset;
        const auto below = score < (up < down ? up : down);
        if (!simd::any(~below)) continue;
        for (std::int64_t j = i; j < begin + width; ++j) {
            kept[count] = static_cast<std::int32_t>(j);
            count += below[j - begin] == 0;
        }
    }
    return count;
}
MM_LEVELS(filter_lines)

// Writes the place of each of n numbers among all of them to `places`, equal ones in their order: each is compared with
// each, so that nothing is guessed. `numbers` and `places` have room up to the next multiple of the vector's length.
template <class Vec>
MM_INLINE void count_places_at(double* numbers, std::int64_t n, std::int64_t* places) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    using Counts = decltype(Vec{} < Vec{});
    Counts lane{};
    for (std::int64_t i = 0; i < width; ++i) lane[i] = i;
    for (std::int64_t i = n; i % width != 0; ++i) numbers[i] = std::numeric_limits<double>::infinity();
    for (std::int64_t block = 0; block < n; block += width) {
        const Vec own = simd::load<Vec>(numbers + block);
        const std::int64_t end = std::min(block + width, n);
        Counts smaller{};  // comparisons are -1 where they hold
        for (std::int64_t j = 0; j < block; ++j) smaller -= numbers[j] <= own;
        for (std::int64_t j = block; j < end; ++j)
            smaller -= (numbers[j] < own) | ((numbers[j] <= own) & (j - block < lane));
        for (std::int64_t j = end; j < n; ++j) smaller -= numbers[j] < own;
        __builtin_memcpy(places + block, &smaller, sizeof(Counts));
    }
}
MM_LEVELS(count_places)

// The envelope of one set of lines after the other; keeps its memory.
class Envelope {
   public:
    // The segments of lines 0 .. n - 1 in rising order of gamma; scores and slopes are finite. Valid until the next
    // call.
    const std::vector<Segment>& operator()(const double* scores, const double* slopes, std::int64_t n, Extremes ends,
                                           int lanes) {
        const auto room = static_cast<std::size_t>(n + lanes);
        if (kept_.size() < room) {
            kept_.resize(room);
            numbers_.resize(room);
            places_.resize(room);
        }
        const std::int64_t count = filter_lines(lanes, scores, slopes, n, ends, kept_.data());
        lines_.resize(static_cast<std::size_t>(count));
        if (count > 64) {  // comparing each with each is quadratic
            for (std::int64_t i = 0; i < count; ++i) lines_[i] = {0.0, slopes[kept_[i]], scores[kept_[i]], kept_[i]};
            return of_lines(lines_);
        }
        for (std::int64_t i = 0; i < count; ++i) numbers_[i] = slopes[kept_[i]];
        count_places(lanes, numbers_.data(), count, places_.data());
        for (std::int64_t i = 0; i < count; ++i)
            lines_[places_[i]] = {0.0, slopes[kept_[i]], scores[kept_[i]], kept_[i]};
        return of_sorted(lines_);
    }

    // The same for lines given as segments, whose `from` is not read; they are sorted in place.
    const std::vector<Segment>& of_lines(std::vector<Segment>& lines) {
        std::sort(lines.begin(), lines.end(), [](const Segment& one, const Segment& two) {
            return one.slope != two.slope ? one.slope < two.slope : one.line < two.line;
        });
        return of_sorted(lines);
    }

   private:
    // Lines in rising order of slopes, of equal ones in that of their numbers.
    const std::vector<Segment>& of_sorted(const std::vector<Segment>& lines) {
        segments_.clear();
        for (const Segment& line : lines) {
            if (!segments_.empty() && segments_.back().slope == line.slope) {
                if (segments_.back().score >= line.score) continue;
                segments_.pop_back();
            }
            double from = -std::numeric_limits<double>::infinity();
            while (!segments_.empty()) {
                const Segment& top = segments_.back();
                from = (top.score - line.score) / (line.slope - top.slope);
                if (from > top.from) break;
                segments_.pop_back();
                from = -std::numeric_limits<double>::infinity();
            }
            segments_.push_back({from, line.slope, line.score, line.line});
        }
        return segments_;
    }

    std::vector<std::int32_t> kept_;
    std::vector<double> numbers_;
    std::vector<std::int64_t> places_;
    std::vector<Segment> lines_, segments_;
};

}  // namespace maxmargin
