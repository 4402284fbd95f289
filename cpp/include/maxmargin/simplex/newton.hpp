// Projected Newton method for quadratic programs over a product of simplexes, or over the non-negative orthant:
//
//     min 1/2 q'Hq + c'q,   q >= 0,   and for simplexes the entries of every block of q sum to 1
//
// Reference: Bertsekas (1982), Projected Newton methods for optimization problems with simple constraints. In every
// block the heaviest entry is eliminated by the sum, which leaves bounds alone; entries at zero that would fall further
// are held there, a Newton step is taken in the others, and the step is searched along its projection. H may be
// singular: Newton steps are damped, the less the better they go (Levenberg 1944; Marquardt 1963), and in between every
// block takes an exact step on its best pair of entries. Cost of a step: a Cholesky factorization of the free entries
// and a few products with H.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "maxmargin/base/simd.hpp"

namespace maxmargin::simplex {

enum Status : std::int8_t { OK = 0, INEXACT = 1, NONFINITE = 2 };

struct NewtonScratch {
    std::vector<std::int64_t> reference, free;
    std::vector<double> matrix, direction, trial, change, image;

    void size(std::size_t m) {
        if (reference.size() >= m) return;
        reference.resize(m);
        free.resize(m);
        matrix.resize(m * m);
        for (auto* one : {&direction, &trial, &change, &image}) one->resize(m);
    }
};

// Solves A x = b in place of b for a symmetric A of which the lower triangle is given, and overwritten. Pivots below
// the floor are raised to it: directions without curvature get long steps.
static MM_CLONES void solve_floored(std::int64_t n, double* MM_RESTRICT a, double* MM_RESTRICT b, double floor) {
    for (std::int64_t i = 0; i < n; ++i) {
        double* MM_RESTRICT row = a + i * n;
        for (std::int64_t j = 0; j <= i; ++j) {
            const double* MM_RESTRICT other = a + j * n;
            double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
            std::int64_t k = 0;
            for (; k + 4 <= j; k += 4) {
                s0 += row[k] * other[k];
                s1 += row[k + 1] * other[k + 1];
                s2 += row[k + 2] * other[k + 2];
                s3 += row[k + 3] * other[k + 3];
            }
            for (; k < j; ++k) s0 += row[k] * other[k];
            const double rest = row[j] - ((s0 + s1) + (s2 + s3));
            row[j] = j == i ? std::sqrt(std::max(rest, floor)) : rest / other[j];
        }
    }
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t k = 0; k < i; ++k) b[i] -= a[i * n + k] * b[k];
        b[i] /= a[i * n + i];
    }
    for (std::int64_t i = n - 1; i >= 0; --i) {
        b[i] /= a[i * n + i];
        for (std::int64_t k = 0; k < i; ++k) b[k] -= a[i * n + k] * b[i];
    }
}

// out = H x for symmetric H with rows `stride` apart; rows of zero entries of x are skipped.
static MM_CLONES void times(std::int64_t m, const double* MM_RESTRICT h, std::int64_t stride,
                            const double* MM_RESTRICT x, double* MM_RESTRICT out) {
    for (std::int64_t i = 0; i < m; ++i) out[i] = 0.0;
    for (std::int64_t i = 0; i < m; ++i) {
        if (x[i] == 0.0) continue;
        const double* MM_RESTRICT row = h + i * stride;
        const double by = x[i];
        for (std::int64_t j = 0; j < m; ++j) out[j] += by * row[j];
    }
}

// The program at hand: H with rows `stride` apart, blocks by offsets, q feasible and the gradient there.
struct Program {
    std::int64_t m;
    const double* h;
    std::int64_t stride;
    std::span<const std::int64_t> offsets;  // of the blocks in q; the orthant has no use for them
    bool cone;

    double at(std::int64_t i, std::int64_t j) const { return h[i * stride + j]; }

    // The scale of an entry's rounding errors. In the orthant p is zero wherever q is not.
    double weight(std::int64_t j, double q, double p) const { return cone ? 10.0 * q * at(j, j) : std::abs(p); }

    // How far q may be from the minimum: for simplexes sum_j q_j (p_j - min p), a bound of the decrease that is left;
    // for the orthant the violated complementarity, and what one coordinate alone would gain.
    double gap(const double* p, const double* q) const {
        double total = 0.0;
        if (cone) {
            for (std::int64_t j = 0; j < m; ++j)
                total += p[j] > 0.0 ? q[j] * p[j] : q[j] * -p[j] + p[j] * p[j] / std::max(at(j, j), 1e-300);
            return total;
        }
        for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
            double least = std::numeric_limits<double>::infinity();
            for (std::int64_t j = offsets[b]; j < offsets[b + 1]; ++j) least = std::min(least, p[j]);
            for (std::int64_t j = offsets[b]; j < offsets[b + 1]; ++j)
                if (q[j] > 0.0) total += q[j] * (p[j] - least);
        }
        return total;
    }
};

inline bool all_finite(const double* values, std::int64_t n) {
    double sum = 0.0;
    for (std::int64_t i = 0; i < n; ++i) sum += 0.0 * values[i];
    return sum == 0.0;
}

// Moves q along `change` with its image H change, and the gradient with it.
inline void move(std::int64_t m, double* q, double* p, const double* change, const double* image) {
    for (std::int64_t j = 0; j < m; ++j) {
        q[j] = std::max(0.0, q[j] + change[j]);
        p[j] += image[j];
    }
}

// One exact step on the best pair of entries of every block, or for the orthant on every entry. False where none gains.
// These cheap steps find which entries count; Newton steps then find how much.
inline bool pair_steps(const Program& program, double* q, double* p) {
    bool moved = false;
    const auto shift = [&](std::int64_t to, std::int64_t from, double step) {
        const double before = q[to];
        q[to] += step;
        if (q[to] == before) return;
        if (from >= 0) q[from] = std::max(0.0, q[from] - step);
        for (std::int64_t j = 0; j < program.m; ++j)
            p[j] += step * (program.at(to, j) - (from < 0 ? 0.0 : program.at(from, j)));
        moved = true;
    };
    if (program.cone) {
        for (std::int64_t j = 0; j < program.m; ++j) {
            const double step = std::max(-q[j], -p[j] / std::max(program.at(j, j), 1e-300));
            if (step != 0.0 && std::isfinite(step)) shift(j, -1, step);
        }
        return moved;
    }
    for (std::size_t b = 0; b + 1 < program.offsets.size(); ++b) {
        const std::int64_t first = program.offsets[b], last = program.offsets[b + 1];
        std::int64_t low = first, from = -1;
        for (std::int64_t j = first; j < last; ++j)
            if (p[j] < p[low]) low = j;
        double best = 0.0, step = 0.0;
        for (std::int64_t j = first; j < last; ++j) {
            if (!(q[j] > 0.0) || !(p[j] > p[low])) continue;
            const double bend = program.at(j, j) + program.at(low, low) - 2.0 * program.at(j, low);
            const double slope = p[j] - p[low];
            const double t = bend * q[j] > slope ? slope / bend : q[j];
            const double gain = t * (slope - 0.5 * t * std::max(bend, 0.0));
            if (gain > best) best = gain, from = j, step = t;
        }
        if (from >= 0) shift(low, from, step);
    }
    return moved;
}

// Two entries of one simplex: the minimum in closed form.
inline void two(const Program& program, double* q, double* p) {
    const double curvature = program.at(0, 0) + program.at(1, 1) - 2.0 * program.at(0, 1), slope = p[1] - p[0];
    double t = slope > 0.0 ? q[1] : -q[0];  // added to the first entry
    if (curvature * std::abs(t) > std::abs(slope)) t = slope / curvature;
    const double first = std::clamp(q[0] + t, 0.0, q[0] + q[1]), sum = q[0] + q[1];
    t = first - q[0];
    q[0] = first;
    q[1] = sum - first;
    for (std::int64_t j = 0; j < 2; ++j) p[j] += t * (program.at(0, j) - program.at(1, j));
}

// One projected Newton step with `damping` times the largest curvature added, which the step adapts: a singular H has
// long steps that the bounds would bend beyond use. False where there was no decrease.
inline bool newton_step(const Program& program, double* q, double* p, double& damping, NewtonScratch& s) {
    const std::int64_t m = program.m;
    // The reference of a block is its heaviest entry; reduced gradients are differences from it.
    if (program.cone) {
        std::fill_n(s.reference.begin(), m, -1);
    } else {
        for (std::size_t b = 0; b + 1 < program.offsets.size(); ++b) {
            std::int64_t heavy = program.offsets[b];
            for (std::int64_t j = heavy; j < program.offsets[b + 1]; ++j)
                if (q[j] > q[heavy]) heavy = j;
            for (std::int64_t j = program.offsets[b]; j < program.offsets[b + 1]; ++j) s.reference[j] = heavy;
        }
    }
    constexpr double near_zero = 1e-10;
    std::int64_t n = 0;
    for (std::int64_t j = 0; j < m; ++j) {
        const std::int64_t r = s.reference[j];
        s.direction[j] = 0.0;
        if (r == j) continue;
        const double slope = p[j] - (r < 0 ? 0.0 : p[r]);
        if (q[j] <= near_zero && slope >= 0.0) {
            s.direction[j] = -q[j];  // held at the bound, or moved there
        } else {
            s.free[n++] = j;
        }
    }
    for (int attempt = 0; attempt < 4; ++attempt) {
        // H in the coordinates in which a block's reference makes up for every change.
        double largest = 0.0;
        for (std::int64_t a = 0; a < n; ++a) {
            const std::int64_t i = s.free[a], ri = s.reference[i];
            for (std::int64_t b = 0; b <= a; ++b) {
                const std::int64_t j = s.free[b], rj = s.reference[j];
                double value = program.at(i, j);
                if (ri >= 0) value += program.at(ri, rj) - program.at(ri, j) - program.at(i, rj);
                s.matrix[a * n + b] = value;
            }
            largest = std::max(largest, s.matrix[a * n + a]);
            s.trial[a] = -(p[i] - (ri < 0 ? 0.0 : p[ri]));
        }
        for (std::int64_t a = 0; a < n; ++a) s.matrix[a * n + a] += damping * largest;
        solve_floored(n, s.matrix.data(), s.trial.data(), std::max(largest * 1e-14, 1e-280));
        // Entries at zero that the others would push below it are held as well, and the rest is solved again.
        std::int64_t kept = 0;
        for (std::int64_t a = 0; a < n; ++a) {
            const std::int64_t j = s.free[a];
            const bool pushed = q[j] == 0.0 && s.trial[a] < 0.0;
            s.direction[j] = pushed ? 0.0 : s.trial[a];
            if (!pushed) s.free[kept++] = j;
        }
        if (kept == n) break;
        n = kept;
    }
    if (!all_finite(s.direction.data(), m)) return false;
    const auto slope_of = [&] {
        double slope = 0.0;
        for (std::int64_t j = 0; j < m; ++j) slope += p[j] * s.change[j];
        return slope;
    };
    double step = 1.0;
    for (int halvings = 0; halvings < 4; ++halvings, step *= 0.25) {
        std::fill_n(s.change.begin(), m, 0.0);
        bool inside = true;
        for (std::int64_t j = 0; j < m; ++j) {
            if (s.reference[j] == j) continue;
            s.change[j] = std::max(-q[j], step * s.direction[j]);
            if (s.reference[j] >= 0) s.change[s.reference[j]] -= s.change[j];
        }
        for (std::int64_t j = 0; j < m && inside; ++j) inside = q[j] + s.change[j] >= 0.0;
        if (!inside) continue;
        const double slope = slope_of();
        if (!(slope < 0.0)) continue;
        times(m, program.h, program.stride, s.change.data(), s.image.data());
        double bend = 0.0;
        for (std::int64_t j = 0; j < m; ++j) bend += s.change[j] * s.image[j];
        if (slope + 0.5 * bend <= 0.1 * slope) {
            move(m, q, p, s.change.data(), s.image.data());
            damping = halvings == 0 ? std::max(0.1 * damping, 1e-13) : std::min(4.0 * damping, 1.0);
            return true;
        }
    }
    // The projection bends the step too much: all go straight until the first entry is zero, or to the minimum.
    for (std::int64_t j = 0; j < m; ++j) s.change[j] = s.reference[j] == j ? 0.0 : s.direction[j];
    for (std::int64_t j = 0; j < m; ++j)
        if (s.reference[j] >= 0 && s.reference[j] != j) s.change[s.reference[j]] -= s.change[j];
    double most = 1.0;
    for (std::int64_t j = 0; j < m; ++j)
        if (q[j] + most * s.change[j] < 0.0) most = -q[j] / s.change[j];
    for (std::int64_t j = 0; j < m; ++j) s.change[j] = std::max(-q[j], most * s.change[j]);
    const double slope = slope_of();
    if (!(slope < 0.0)) return false;
    times(m, program.h, program.stride, s.change.data(), s.image.data());
    double bend = 0.0;
    for (std::int64_t j = 0; j < m; ++j) bend += s.change[j] * s.image[j];
    const double t = bend > -slope ? -slope / bend : 1.0;
    damping = t == 1.0 ? std::max(0.25 * damping, 1e-13) : std::min(10.0 * damping, 1.0);
    for (std::int64_t j = 0; j < m; ++j) {
        s.change[j] *= t;
        s.image[j] *= t;
    }
    move(m, q, p, s.change.data(), s.image.data());
    return true;
}

// Solves the program from a feasible q with gradient p = Hq + c, both kept up to date, to the gap `tolerance`.
inline Status newton(const Program& program, double* q, double* p, double tolerance, int limit, NewtonScratch& s) {
    const std::int64_t m = program.m;
    if (m == 0) return OK;
    if (!all_finite(p, m) || !all_finite(q, m)) return NONFINITE;
    if (!program.cone && program.offsets.size() == 2) {
        if (m == 1) return OK;
        if (m == 2) {
            two(program, q, p);
            return all_finite(p, 2) ? OK : NONFINITE;
        }
    }
    s.size(static_cast<std::size_t>(m));
    double damping = 1e-3;
    for (int step = 0; step < limit; ++step) {
        double most = 0.0;
        for (std::int64_t j = 0; j < m; ++j)
            if (q[j] > 0.0) most += q[j] * program.weight(j, q[j], p[j]);
        const double gap = program.gap(p, q);
        if (!std::isfinite(gap)) return NONFINITE;
        if (gap <= tolerance || gap <= 1e-15 * most) return OK;
        if (!newton_step(program, q, p, damping, s) && !pair_steps(program, q, p))
            return gap <= 1e-12 * most ? OK : INEXACT;
    }
    return program.gap(p, q) <= tolerance ? OK : INEXACT;
}

}  // namespace maxmargin::simplex
