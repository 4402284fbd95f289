// How far to go along a direction of dual multipliers: the step of both projections by semismooth Newton.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace maxmargin::network {

// Multipliers m, and what the dual's evaluation gives there: points z, t and the gradient.
struct DualPoint {
    std::vector<double>&m, &z, &t, &gradient;
};

// Moves `at` to the end of a step along the (projected) direction that raises the dual, and adapts the shift of the
// next linear system; false where rounding forbids a step. `moved(p, length)` is the p-th multiplier there,
// `evaluate()` the dual at next.m, which fills the rest of `next`.
template <class Moved, class Evaluate>
inline bool advance_along(const DualPoint& at, const DualPoint& next, std::int64_t size, double least_shift,
                          double& value, double& shift, Moved&& moved, Evaluate&& evaluate) {
    double length = 1.0;
    for (int trial = 0; trial < 60; ++trial) {
        double ahead = 0.0;
        for (std::int64_t p = 0; p < size; ++p) {
            next.m[p] = moved(p, length);
            ahead += at.gradient[p] * (next.m[p] - at.m[p]);
        }
        const double found = evaluate();
        double behind = 0.0;
        for (std::int64_t p = 0; p < size; ++p) behind += next.gradient[p] * (next.m[p] - at.m[p]);
        // Concavity: where the function still rises along the way at its end, it has risen all along.
        const bool rises = behind >= 0.0 || (ahead > 0.0 && found >= value + 1e-4 * ahead);
        const double noise = 1e-15 * (1.0 + std::abs(value));
        if (rises || (std::abs(ahead) <= noise && found >= value - noise)) {
            std::swap(at.m, next.m);
            std::swap(at.z, next.z);
            std::swap(at.t, next.t);
            std::swap(at.gradient, next.gradient);
            value = found;
            if (length >= 1.0) {
                shift = std::max(least_shift, 0.1 * shift);
            } else if (length < 0.3) {
                shift = std::min(1.0, 3.0 * shift);
            }
            return ahead != 0.0;
        }
        // Where the arc was bent back at 0, its first part may still rise.
        length *= ahead > 0.0 ? std::clamp(ahead / (ahead - behind), 0.1, 0.6) : 0.25;
    }
    return false;
}

}  // namespace maxmargin::network
