// The upper envelope of lines a_i + gamma b_i: which of several scores is best as weights move along a line.
//
// It is the upper hull of the points (b_i, a_i). Of lines in rising order of slopes, a filter of two vector passes
// drops the points below the hull of the first one, the last one, and the one farthest above their chord: of 200 points
// some fifteen are left. A stack of lines keeps those that are best somewhere.
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

// For slopes b that do not fall, writes the numbers of lines that may be on the envelope to `kept`, in rising order,
// and returns how many; `above` and `kept` have room for n.
template <class Vec>
MM_INLINE std::int64_t filter_lines_at(const double* a, const double* b, std::int64_t n, double* above,
                                       std::int32_t* kept) {
    constexpr std::int64_t width = simd::lanes<Vec>;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const double least = b[0], most = b[n - 1], left = a[0], right = a[n - 1];
    if (n < 2 * width || !(least < most)) {
        for (std::int64_t i = 0; i < n; ++i) kept[i] = static_cast<std::int32_t>(i);
        return n;
    }
    const std::int64_t last = n - width;  // a last vector overlaps the one before
    const double chord = (right - left) / (most - least);
    Vec farthest = Vec{} - infinity, farthest_slope = Vec{}, farthest_score = Vec{};
    for (std::int64_t i = 0;; i = std::min(i + width, last)) {
        const Vec slope = simd::load<Vec>(b + i), score = simd::load<Vec>(a + i), height = score - chord * slope;
        const auto farther = height > farthest;
        farthest = farther ? height : farthest;
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
    for (std::int64_t i = 0;; i = std::min(i + width, last)) {
        const Vec offset = simd::load<Vec>(b + i) - top_slope, up = rise * offset, down = -fall * offset;
        simd::store<Vec>(above + i, simd::load<Vec>(a + i) - (top_score - slack) - (up < down ? up : down));
        if (i == last) break;
    }
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < n; ++i) {  // without branches, as few of them could be foreseen
        kept[count] = static_cast<std::int32_t>(i);
        count += !(above[i] < 0.0);
    }
    return count;
}
MM_LEVELS(filter_lines)

// The envelope of one set of lines after the other; keeps its memory.
class Envelope {
   public:
    // The segments of lines 0 .. n - 1 in rising order of gamma. Scores and slopes are finite, and slopes do not fall.
    // Valid until the next call.
    const std::vector<Segment>& of_sorted(const double* scores, const double* slopes, std::int64_t n, int lanes) {
        const auto room = static_cast<std::size_t>(n);
        if (kept_.size() < room) {
            kept_.resize(room);
            above_.resize(room);
        }
        const std::int64_t count = filter_lines(lanes, scores, slopes, n, above_.data(), kept_.data());
        segments_.clear();
        for (std::int64_t i = 0; i < count; ++i) add(slopes[kept_[i]], scores[kept_[i]], kept_[i]);
        return segments_;
    }

    // The same for lines given as segments in any order, whose `from` is not read; they are sorted in place.
    const std::vector<Segment>& of_lines(std::vector<Segment>& lines) {
        std::sort(lines.begin(), lines.end(), [](const Segment& one, const Segment& two) {
            return one.slope != two.slope ? one.slope < two.slope : one.line < two.line;
        });
        segments_.clear();
        for (const Segment& line : lines) add(line.slope, line.score, line.line);
        return segments_;
    }

   private:
    // A line whose slope is not below those before it.
    void add(double slope, double score, std::int32_t line) {
        if (!segments_.empty() && segments_.back().slope == slope) {
            if (segments_.back().score >= score) return;
            segments_.pop_back();
        }
        double from = -std::numeric_limits<double>::infinity();
        while (!segments_.empty()) {
            const Segment& top = segments_.back();
            from = (top.score - score) / (slope - top.slope);
            if (from > top.from) break;
            segments_.pop_back();
            from = -std::numeric_limits<double>::infinity();
        }
        segments_.push_back({from, slope, score, line});
    }

    std::vector<std::int32_t> kept_;
    std::vector<double> above_;
    std::vector<Segment> segments_;
};

}  // namespace maxmargin
