// Heads of the tokens of a sentence: whether they are a tree.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace maxmargin::dependencies {

// What is wrong with an array of heads.
enum class Fault : int { none = 0, cycle = 1, roots = 2, crossing = 3 };

struct FaultyToken {
    Fault fault = Fault::none;
    std::int64_t token = 0;  // counted from 1
};

// The first fault of one sentence: tokens that do not lead to the root, more than one token below it (with
// `single_root`), arcs that cross another (with `projective`). Heads lie in 0 .. n, no token is its own head.
class TreeCheck {
   public:
    FaultyToken run(const std::int64_t* heads, std::int64_t n, bool single_root, bool projective) {
        if (const std::int64_t lost = unrooted(heads, n)) return {Fault::cycle, lost};
        if (single_root) {
            bool before = false;
            for (std::int64_t m = 1; m <= n; ++m) {
                if (heads[m - 1] == 0 && before) return {Fault::roots, m};
                before |= heads[m - 1] == 0;
            }
        }
        if (projective)
            for (std::int64_t m = 1; m <= n; ++m)
                if (crosses(heads, m)) return {Fault::crossing, m};
        return {};
    }

   private:
    // A token from which the heads do not lead to the root, or 0.
    std::int64_t unrooted(const std::int64_t* heads, std::int64_t n) {
        seen_.assign(static_cast<std::size_t>(n) + 1, 0);  // by the walk that came first; 0 for none
        for (std::int64_t m = 1; m <= n; ++m) {
            std::int64_t at = m;
            while (at != 0 && seen_[at] == 0) {
                seen_[at] = m;
                at = heads[at - 1];
            }
            if (at != 0 && seen_[at] == m) return at;
        }
        return 0;
    }

    // In a tree two arcs cross if and only if one of them has a token between its ends whose head is not.
    static bool crosses(const std::int64_t* heads, std::int64_t m) {
        const std::int64_t low = std::min(heads[m - 1], m), high = std::max(heads[m - 1], m);
        for (std::int64_t between = low + 1; between < high; ++between)
            if (heads[between - 1] < low || heads[between - 1] > high) return true;
        return false;
    }

    std::vector<std::int64_t> seen_;
};

}  // namespace maxmargin::dependencies
