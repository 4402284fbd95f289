// Fronts for slack rescaling: pairs (loss, score) of partial outputs of which none is at least as good as another in
// both. At a positive maximum of (loss + a) (score + b) both factors are positive, and the product grows in each, so
// nothing else can win.
//
// Sorted: the loss falls, the score rises. A front of more than `limit` entries is thinned: neighbors are joined into
// one entry with the larger loss and the larger score of the two, so that products found later are upper bounds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace maxmargin {

// Entry has `loss` and `score`, and says what the partial output is.
template <class Entry>
struct FrontMerge {
    std::vector<Entry> front, other;  // the result, and what is to be merged with it next, a front itself
    bool thinned = false;

    // near: losses that differ by less are the same sum, rounded in another order.
    void begin(std::int64_t limit, double near) {
        limit_ = limit;
        near_ = near;
        thinned = false;
    }

    // How many entries a front may have where an example has so many fronts: 64 to 4096.
    static std::int64_t limit_for(std::int64_t fronts) {
        constexpr std::int64_t room = std::int64_t{1} << 20, fewest = 64, most = 4096;
        return std::clamp(room / std::max<std::int64_t>(fronts, 1), fewest, most);
    }

    // `front` becomes the front of both.
    void merge() {
        if (front.empty()) {
            std::swap(front, other);
            return thin();
        }
        spare_.clear();
        double head = 0.0;
        auto a = front.cbegin(), b = other.cbegin();
        while (a != front.cend() || b != other.cend()) {
            const bool from_a =
                b == other.cend() ||
                (a != front.cend() && (a->loss > b->loss || (a->loss == b->loss && a->score >= b->score)));
            const Entry& next = from_a ? *a++ : *b++;
            if (spare_.empty()) {
                head = next.loss;
                spare_.push_back(next);
            } else if (next.score > spare_.back().score) {
                if (next.loss >= head - near_) {
                    spare_.back() = next;
                } else {
                    head = next.loss;
                    spare_.push_back(next);
                }
            }
        }
        std::swap(front, spare_);
        thin();
    }

   private:
    void thin() {
        while (static_cast<std::int64_t>(front.size()) > limit_) {
            thinned = true;
            std::size_t kept = 0;
            for (std::size_t j = 0; j < front.size(); j += 2, ++kept) {
                Entry entry = front[j];
                if (j + 1 < front.size()) entry.score = front[j + 1].score;
                front[kept] = entry;
            }
            front.resize(kept);
        }
    }

    std::vector<Entry> spare_;
    std::int64_t limit_ = 0;
    double near_ = 0.0;
};

}  // namespace maxmargin
