// Frank-Wolfe steps over a few points: max over the simplex of b'a - C/2 a'K a, from where a stands.
//
// b holds the points' values at the current weights, K their inner products; each step moves mass along one direction
// by an exact line search. Pairwise steps cost O(k) on k points, the others O(k^2).
//
// References: Frank and Wolfe (1956); away steps: Guelat and Marcotte (1986); pairwise steps: Lacoste-Julien and Jaggi
// (2015).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace maxmargin::online {

enum class Step : int { frank_wolfe = 0, away = 1, pairwise = 2 };

// `gram` is row-major, `width` apart. b is kept up to date with a. At most `limit` steps, fewer once the gap
// max b - a'b is `small`. Returns the number of steps taken.
inline int simplex_steps(Step kind, double C, const double* gram, std::int64_t width, std::int64_t k, int limit,
                         double small, double* b, double* a) {
    int taken = 0;
    for (; taken < limit; ++taken) {
        std::int64_t best = 0, least = -1;
        double mean = 0.0;
        for (std::int64_t j = 0; j < k; ++j) {
            if (b[j] > b[best]) best = j;
            if (a[j] > 0.0 && (least < 0 || b[j] < b[least])) least = j;
            mean += a[j] * b[j];
        }
        const double gap = b[best] - mean;
        if (!(gap > small) || least < 0 || best == least) break;
        if (kind == Step::pairwise) {
            const double* up = gram + best * width;
            const double* down = gram + least * width;
            const double bend = C * (up[best] + down[least] - 2.0 * up[least]);
            const double slope = b[best] - b[least];
            const double step = slope >= bend * a[least] ? a[least] : slope / bend;
            if (!(step > 0.0)) break;
            a[least] = step == a[least] ? 0.0 : a[least] - step;
            a[best] += step;
            for (std::int64_t j = 0; j < k; ++j) b[j] -= step * C * (up[j] - down[j]);
            continue;
        }
        // Toward the best point, or (away steps) from the least one if that promises more.
        const bool away = kind == Step::away && mean - b[least] > gap && a[least] < 1.0;
        const std::int64_t pivot = away ? least : best;
        const double sign = away ? -1.0 : 1.0, slope = away ? mean - b[least] : gap;
        const double most = away ? a[least] / (1.0 - a[least]) : 1.0;
        // K (e_pivot - a), and the curvature along it.
        double bend = 0.0, mixed = 0.0, square = 0.0;
        for (std::int64_t j = 0; j < k; ++j) {
            if (a[j] == 0.0) continue;
            mixed += a[j] * gram[pivot * width + j];
            for (std::int64_t l = 0; l < k; ++l) square += a[j] * a[l] * gram[j * width + l];
        }
        bend = C * (gram[pivot * width + pivot] - 2.0 * mixed + square);
        const double step = slope >= bend * most ? most : slope / bend;
        if (!(step > 0.0)) break;
        for (std::int64_t l = 0; l < k; ++l) {
            double along = gram[pivot * width + l];
            for (std::int64_t j = 0; j < k; ++j) along -= a[j] * gram[j * width + l];
            b[l] -= sign * step * C * along;
        }
        for (std::int64_t j = 0; j < k; ++j) a[j] *= 1.0 - sign * step;
        a[pivot] += sign * step;
        if (away && step == most) a[pivot] = 0.0;
        for (std::int64_t j = 0; j < k; ++j) a[j] = std::max(a[j], 0.0);
    }
    return taken;
}

}  // namespace maxmargin::online
