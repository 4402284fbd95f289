// The upper envelope of lines a_i + gamma b_i: which of several scores is best as weights move along a line.
//
// It is the upper hull of the points (b_i, a_i), found in two stages. A filter of four vector passes drops the points
// below the hull of the leftmost point, the rightmost one, and the one farthest above their chord; of 200 points some
// ten are left. These are sorted, and a stack of lines keeps those that are best somewhere.
//
// Of equal lines the first is kept.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "maxmargin/base/simd.hpp"

namespace maxmargin {

// A line is best from gamma = from to the `from` of the next segment; the first one begins at -inf.
struct Segment {
    double from, slope, score;
    std::int32_t line;
};

// Writes the numbers of lines that may be on the envelope to `kept`, in rising order, and returns how many.
template <class Vec>
MM_INLINE std::int64_t filter_lines_at(const double* a, const double* b, std::int64_t n, std::int32_t* kept) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (n < 2 * width) {
        for (std::int64_t i = 0; i < n; ++i) kept[i] = static_cast<std::int32_t>(i);
        return n;
    }
    // A last vector overlaps the one before: extremes of a set do not change when members are seen twice.
    const std::int64_t last = n - width;
    Vec low = simd::load<Vec>(b + last), high = low;
    for (std::int64_t i = 0; i < last; i += width) {
        const Vec slope = simd::load<Vec>(b + i);
        low = slope < low ? slope : low;
        high = slope > high ? slope : high;
    }
    const double least = -simd::largest<Vec>(-low), most = simd::largest<Vec>(high);

    Vec left_scores = Vec{} - infinity, right_scores = left_scores;
    for (std::int64_t i = 0;; i = std::min(i + width, last)) {
        const Vec slope = simd::load<Vec>(b + i), score = simd::load<Vec>(a + i);
        const Vec there = slope <= least ? score : Vec{} - infinity, beyond = slope >= most ? score : Vec{} - infinity;
        left_scores = simd::larger<Vec>(left_scores, there);
        right_scores = simd::larger<Vec>(right_scores, beyond);
        if (i == last) break;
    }
    const double left = simd::largest<Vec>(left_scores), right = simd::largest<Vec>(right_scores);
    if (!(least < most)) {
        for (std::int64_t i = 0; i < n; ++i)
            if (a[i] == left) {
                kept[0] = static_cast<std::int32_t>(i);
                return 1;
            }
        return 0;  // scores that are not numbers
    }

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

    // Any point in between makes a valid test, so rounding above costs survivors, not correctness.
    double rise = top_slope > least ? (top_score - left) / (top_slope - least) : infinity;
    double fall = top_slope < most ? (top_score - right) / (most - top_slope) : infinity;
    if (rise == infinity) rise = -fall;
    if (fall == infinity) fall = -rise;
    const double slack = 1e-12 * (std::abs(left) + std::abs(right) + std::abs(top_score));
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < n; i += width) {
        const std::int64_t begin = std::min(i, last);
        const Vec offset = simd::load<Vec>(b + begin) - top_slope,
                  score = simd::load<Vec>(a + begin) - (top_score - slack);
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

// The envelope of one set of lines after the other; keeps its memory.
class Envelope {
   public:
    // The segments of lines 0 .. n - 1 in rising order of gamma; scores and slopes are finite. Valid until the next
    // call.
    const std::vector<Segment>& operator()(const double* scores, const double* slopes, std::int64_t n, int lanes) {
        if (static_cast<std::int64_t>(kept_.size()) < n) kept_.resize(static_cast<std::size_t>(n));
        const std::int64_t count = filter_lines(lanes, scores, slopes, n, kept_.data());
        lines_.resize(static_cast<std::size_t>(count));
        for (std::int64_t i = 0; i < count; ++i) lines_[i] = {0.0, slopes[kept_[i]], scores[kept_[i]], kept_[i]};
        return of_lines(lines_);
    }

    // The same for lines given as segments, whose `from` is not read; they are sorted in place.
    const std::vector<Segment>& of_lines(std::vector<Segment>& lines) {
        sort(lines);
        segments_.clear();
        for (const Segment& line : lines) {
            double from = -std::numeric_limits<double>::infinity();
            // Of parallel lines the highest, first one comes first.
            if (!segments_.empty() && segments_.back().slope == line.slope) continue;
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

   private:
    static bool before(const Segment& one, const Segment& two) {
        if (one.slope != two.slope) return one.slope < two.slope;
        return one.score != two.score ? one.score > two.score : one.line < two.line;
    }

    static void sort(std::vector<Segment>& lines) {
        if (lines.size() > 24) {
            std::sort(lines.begin(), lines.end(), before);
            return;
        }
        for (std::size_t i = 1; i < lines.size(); ++i) {
            const Segment line = lines[i];
            std::size_t at = i;
            for (; at > 0 && before(line, lines[at - 1]); --at) lines[at] = lines[at - 1];
            lines[at] = line;
        }
    }

    std::vector<std::int32_t> kept_;
    std::vector<Segment> lines_, segments_;
};

}  // namespace maxmargin
