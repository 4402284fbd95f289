// Costs of labels as whole numbers of one unit, above the cheapest label of each variable: with Hamming loss the number
// of errors. Then the loss of an output is a base and a number of units, a state that dynamic programs can carry.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace maxmargin {

struct SlackUnits {
    static constexpr double MOST = 4096.0, NEAR = 1e-12;  // units of one label; how far a ratio may be from whole

    double base = 0.0, unit = 0.0;    // the loss of n units is base + n * unit
    std::vector<std::int32_t> units;  // one per cost, in their order
    std::vector<std::int64_t> most;   // the most of each variable

    // Variable d has size(d) costs, one after the other; false if they are not multiples of one unit.
    template <class Size>
    bool measure(const double* costs, std::int64_t variables, Size&& size) {
        base = unit = 0.0;
        most.assign(static_cast<std::size_t>(variables), 0);
        std::int64_t total = 0;
        const double* own = costs;
        for (std::int64_t d = 0; d < variables; own += size(d), ++d) {
            const double least = *std::min_element(own, own + size(d));
            base += least;
            total += size(d);
            for (std::int64_t x = 0; x < size(d); ++x)
                if (own[x] > least && (unit == 0.0 || own[x] - least < unit)) unit = own[x] - least;
        }
        units.assign(static_cast<std::size_t>(total), 0);
        if (unit == 0.0) return true;
        std::int32_t* out = units.data();
        own = costs;
        for (std::int64_t d = 0; d < variables; own += size(d), out += size(d), ++d) {
            const double least = *std::min_element(own, own + size(d));
            for (std::int64_t x = 0; x < size(d); ++x) {
                const double ratio = (own[x] - least) / unit, whole = std::rint(ratio);
                if (!(whole <= MOST) || std::fabs(ratio - whole) > NEAR * whole) return false;
                out[x] = static_cast<std::int32_t>(whole);
                most[d] = std::max(most[d], static_cast<std::int64_t>(whole));
            }
        }
        return true;
    }
};

}  // namespace maxmargin
