// Two directed word alignments of each sentence pair made into one, as the Moses toolkit does it (Koehn, Och and Marcu
// 2003; Koehn et al. 2005).
//
// Growing starts from the links of both directions and repeats scans over the present links in the order (target,
// source). A scan looks at the eight neighbors of each link, those beside it before the diagonal ones, and takes every
// neighbor that is a link of either direction and has a word without links. A link added after the current one
// is visited in the same scan, one added before it in the next scan. The final steps go through the links of one
// direction after the other in the same order and take those with a word (or: both words) without links.
//
// A rejected neighbor stays rejected, since words never lose their links. So each link is visited once
// instead of once per scan, and a heap gives the order of the scans: O(k log k) for k links, whatever the sentence
// lengths.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace maxmargin::symmetrize {

enum class Method : int { intersection, united, grow_diag, grow_diag_final, grow_diag_final_and };

// Links are (source, target) pairs, sorted and distinct within a sentence, positions in [0, 2^31).
struct Directed {
    std::span<const std::int64_t> start;
    std::span<const std::int64_t> links;

    std::int64_t size() const { return static_cast<std::int64_t>(start.size()) - 1; }
    std::span<const std::int64_t> of(std::int64_t sentence) const {
        const auto begin = static_cast<std::size_t>(2 * start[sentence]);
        return links.subspan(begin, static_cast<std::size_t>(2 * start[sentence + 1]) - begin);
    }
};

class Symmetrizer {
   public:
    // Room for the largest sentence, so that nothing is allocated later.
    explicit Symmetrizer(std::size_t most) {
        points_.reserve(most);
        for (auto* indices : {&by_target_, &now_, &later_}) indices->reserve(most);
        keys_.reserve(most);
        source_linked_.reserve(most);
        target_linked_.reserve(most);
    }

    // Writes the links taken, sorted by (source, target), and returns their number; `out` has room for all links of
    // both.
    std::int64_t run(Method method, std::span<const std::int64_t> forward, std::span<const std::int64_t> backward,
                     std::int64_t* out) {
        unite(forward, backward);
        if (method == Method::united)
            for (Point& point : points_) point.taken = true;
        if (method >= Method::grow_diag) {
            order();
            grow();
        }
        if (method >= Method::grow_diag_final)
            for (const std::uint8_t direction : {kForward, kBackward})
                finish(direction, method == Method::grow_diag_final_and);
        std::int64_t written = 0;
        for (const Point& point : points_)
            if (point.taken) {
                out[2 * written] = point.source;
                out[2 * written + 1] = point.target;
                ++written;
            }
        return written;
    }

   private:
    static constexpr std::uint8_t kForward = 1, kBackward = 2, kBoth = 3;

    struct Point {
        std::int64_t source, target;
        std::int32_t source_rank = 0, target_rank = 0;  // among the words that have links
        std::uint8_t directions;
        bool taken;
    };

    std::vector<Point> points_;              // the union, by (source, target)
    std::vector<std::int32_t> by_target_;    // its indices by (target, source)
    std::vector<std::uint64_t> keys_;        // (target, source) in that order
    std::vector<std::int32_t> now_, later_;  // heaps of places in by_target_: this scan and the next
    std::vector<std::uint8_t> source_linked_, target_linked_;

    static constexpr std::uint64_t kRow = std::uint64_t{1} << 32;
    static std::uint64_t key(std::int64_t source, std::int64_t target) {
        return static_cast<std::uint64_t>(target) * kRow | static_cast<std::uint64_t>(source);
    }

    void unite(std::span<const std::int64_t> forward, std::span<const std::int64_t> backward) {
        points_.clear();
        std::size_t f = 0, b = 0;
        const auto at = [](std::span<const std::int64_t> links, std::size_t k) {
            return std::pair{links[k], links[k + 1]};
        };
        while (f < forward.size() || b < backward.size()) {
            const bool from_forward = f < forward.size() && (b >= backward.size() || at(forward, f) <= at(backward, b));
            const bool from_backward =
                b < backward.size() && (f >= forward.size() || at(backward, b) <= at(forward, f));
            const auto [source, target] = from_forward ? at(forward, f) : at(backward, b);
            const auto directions =
                static_cast<std::uint8_t>((from_forward ? kForward : 0) | (from_backward ? kBackward : 0));
            points_.push_back({source, target, 0, 0, directions, directions == kBoth});
            f += from_forward ? 2 : 0;
            b += from_backward ? 2 : 0;
        }
    }

    // The order of the scans, numbers for the words that have links, and which of these the links taken cover.
    void order() {
        const auto n = static_cast<std::int32_t>(points_.size());
        by_target_.resize(points_.size());
        for (std::int32_t k = 0; k < n; ++k) by_target_[k] = k;
        std::sort(by_target_.begin(), by_target_.end(), [&](std::int32_t one, std::int32_t two) {
            return key(points_[one].source, points_[one].target) < key(points_[two].source, points_[two].target);
        });
        keys_.clear();
        for (const std::int32_t k : by_target_) keys_.push_back(key(points_[k].source, points_[k].target));
        for (std::int32_t k = 1; k < n; ++k) {
            points_[k].source_rank = points_[k - 1].source_rank + (points_[k].source != points_[k - 1].source);
            const Point& before = points_[by_target_[k - 1]];
            Point& point = points_[by_target_[k]];
            point.target_rank = before.target_rank + (point.target != before.target);
        }
        source_linked_.assign(points_.size(), 0);
        target_linked_.assign(points_.size(), 0);
        for (const Point& point : points_)
            if (point.taken) source_linked_[point.source_rank] = target_linked_[point.target_rank] = 1;
    }

    void take(Point& point) {
        point.taken = true;
        source_linked_[point.source_rank] = target_linked_[point.target_rank] = 1;
    }

    // The places of the neighbors of a link that are in the union, -1 for others, in the order of Moses: above, left,
    // below, right, then the diagonal ones. Neighbors in one row of the grid lie side by side in keys_, so one search
    // per row finds them.
    std::array<std::int32_t, 8> neighbors(std::int32_t place) const {
        static constexpr std::int32_t kAbove[3] = {4, 0, 5}, kBelow[3] = {6, 2, 7};
        std::array<std::int32_t, 8> found;
        found.fill(-1);
        const std::uint64_t center = keys_[place];
        const auto n = static_cast<std::int32_t>(keys_.size());
        // Positions are below 2^31, so a step to either side never reaches a link of another row.
        if (place > 0 && keys_[place - 1] + 1 == center) found[1] = place - 1;
        if (place + 1 < n && keys_[place + 1] == center + 1) found[3] = place + 1;
        const auto row = [&](std::int32_t k, std::uint64_t middle, const std::int32_t* slots) {
            for (; k < n && keys_[k] <= middle + 1; ++k) found[slots[keys_[k] + 1 - middle]] = k;
        };
        const auto begin = keys_.begin();
        if (center >= kRow) {
            const std::uint64_t middle = center - kRow;
            const std::uint64_t least = middle ? middle - 1 : 0;
            row(static_cast<std::int32_t>(std::lower_bound(begin, begin + place, least) - begin), middle, kAbove);
        }
        row(static_cast<std::int32_t>(std::lower_bound(begin + place, keys_.end(), center + kRow - 1) - begin),
            center + kRow, kBelow);
        return found;
    }

    void grow() {
        now_.clear();
        later_.clear();
        for (std::size_t place = 0; place < by_target_.size(); ++place)
            if (points_[by_target_[place]].taken) now_.push_back(static_cast<std::int32_t>(place));  // sorted: a heap
        while (!now_.empty()) {
            while (!now_.empty()) {
                std::pop_heap(now_.begin(), now_.end(), std::greater<>{});
                const std::int32_t place = now_.back();
                now_.pop_back();
                for (const std::int32_t other : neighbors(place)) {
                    if (other < 0) continue;
                    Point& point = points_[by_target_[other]];
                    if (source_linked_[point.source_rank] && target_linked_[point.target_rank]) continue;
                    take(point);
                    auto& heap = other > place ? now_ : later_;
                    heap.push_back(other);
                    std::push_heap(heap.begin(), heap.end(), std::greater<>{});
                }
            }
            std::swap(now_, later_);
        }
    }

    void finish(std::uint8_t direction, bool both) {
        for (const std::int32_t k : by_target_) {
            Point& point = points_[k];
            if (point.taken || !(point.directions & direction)) continue;
            const bool source = source_linked_[point.source_rank], target = target_linked_[point.target_rank];
            if (both ? !(source || target) : !(source && target)) take(point);
        }
    }
};

}  // namespace maxmargin::symmetrize
