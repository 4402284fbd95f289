// Euclidean projection onto the convex hull of vertices that are known only through an argmax.
//
//     min 1/2 ||sum_i p_i v_i - a||^2   over p >= 0, sum p = 1
//
// The min-norm-point scheme (Wolfe 1976; Niculae et al. 2018 for structures): hold affinely independent vertices with
// positive weights, optimal over their affine hull; ask for the vertex v that maximizes (a - z)'v; stop when
// (a - z)'(v - z) is within the tolerance or rounding, or v is held already; otherwise add v and go back to the optimum
// over the new affine hull, dropping every vertex whose weight reaches zero on the way.
//
// With H = G + rho 11' (G the Gram matrix, rho > 0; the same minimizers where sum p = 1, but H is invertible as soon as
// the vertices are affinely independent) and R'R = H, the optimum over the affine hull is
//     p = R^-1 (u_b - tau u_1),  u_b = R'^-1 V a,  u_1 = R'^-1 1,  tau = (u_1'u_b - 1) / u_1'u_1.
// R, u_b and u_1 follow an append by one triangular solve and a drop by plane rotations: O(s^2) for s vertices held.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "maxmargin/base/simd.hpp"

namespace maxmargin::hull {

// The PointStatus codes of the Python side.
enum class Status : std::int8_t { ok = 0, inexact = 1, nonfinite = 2, absent = 3 };

// A vector by its non-zeros.
struct Sparse {
    std::vector<std::int32_t> index;
    std::vector<double> value;

    void clear() {
        index.clear();
        value.clear();
    }
    void add(std::int64_t i, double x) {
        index.push_back(static_cast<std::int32_t>(i));
        value.push_back(x);
    }
};

// The inner loops. R is upper triangular with s rows, row-major, `width` apart.
namespace dense {

using namespace simd;

MM_CLONES inline double gather_dot(const std::int32_t* MM_RESTRICT at, const double* MM_RESTRICT x, std::int64_t n,
                                   const double* MM_RESTRICT dense) {
    double lanes[4] = {};
    std::int64_t j = 0;
    for (; j + 4 <= n; j += 4)
        for (int lane = 0; lane < 4; ++lane) lanes[lane] += x[j + lane] * dense[at[j + lane]];
    for (; j < n; ++j) lanes[0] += x[j] * dense[at[j]];
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

// held = s'z and scale = (|a| + |z|)'|z|, in eight sums each
template <class Vec>
MM_INLINE void score_at(const double* MM_RESTRICT s, const double* MM_RESTRICT a, const double* MM_RESTRICT z,
                        std::int64_t n, double& held, double& scale) {
    constexpr int count = 8 / lanes<Vec>;
    Vec products[count] = {}, sizes[count] = {};
    std::int64_t j = 0;
    for (; j + 8 <= n; j += 8)
#pragma GCC unroll 4
        for (int v = 0; v < count; ++v) {
            const std::int64_t at = j + v * lanes<Vec>;
            const Vec here = load<Vec>(z + at), cross = load<Vec>(a + at) * here;
            products[v] += load<Vec>(s + at) * here;
            sizes[v] += here * here + (cross < 0.0 ? -cross : cross);
        }
    held = scale = 0.0;
    for (; j < n; ++j) {
        held += s[j] * z[j];
        scale += z[j] * z[j] + std::fabs(a[j] * z[j]);
    }
#pragma GCC unroll 4
    for (int v = 0; v < count; ++v) {
        held += total(products[v]);
        scale += total(sizes[v]);
    }
}
MM_LEVELS(score)

// x <- R'^-1 x
MM_CLONES inline void solve_transposed(const double* MM_RESTRICT factor, std::int64_t width, std::int64_t s,
                                       double* MM_RESTRICT x) {
    for (std::int64_t i = 0; i < s; ++i) {
        const double* MM_RESTRICT r = factor + i * width;
        const double here = x[i] / r[i];
        x[i] = here;
        for (std::int64_t j = i + 1; j < s; ++j) x[j] -= here * r[j];
    }
}

// x <- R^-1 x, each row in sixteen sums
template <class Vec>
MM_INLINE void solve_at(const double* MM_RESTRICT factor, std::int64_t width, std::int64_t s, double* MM_RESTRICT x) {
    constexpr int count = 16 / lanes<Vec>;
    for (std::int64_t i = s - 1; i >= 0; --i) {
        const double* MM_RESTRICT r = factor + i * width;
        Vec sums[count] = {};
        std::int64_t k = i + 1;
        for (; k + 16 <= s; k += 16)
#pragma GCC unroll 8
            for (int v = 0; v < count; ++v)
                sums[v] += load<Vec>(r + k + v * lanes<Vec>) * load<Vec>(x + k + v * lanes<Vec>);
        double rest = 0.0;
        for (; k < s; ++k) rest += r[k] * x[k];
#pragma GCC unroll 8
        for (int v = 1; v < count; ++v) sums[0] += sums[v];
        x[i] = (x[i] - rest - total(sums[0])) / r[i];
    }
}
MM_LEVELS(solve)

// R without column j is triangular again after plane rotations of rows c and c + 1, c = j, j + 1, ...; the right-hand
// sides u and v of R'-systems turn with it.
MM_CLONES inline void remove_column(double* MM_RESTRICT factor, std::int64_t width, std::int64_t s, std::int64_t j,
                                    double* MM_RESTRICT u, double* MM_RESTRICT v) {
    for (std::int64_t i = 0; i < s; ++i) {
        double* r = factor + i * width;
        std::copy(r + std::max(i, j + 1), r + s, r + std::max(i, j + 1) - 1);
    }
    for (std::int64_t c = j; c + 1 < s; ++c) {
        double* MM_RESTRICT upper = factor + c * width;
        double* MM_RESTRICT lower = upper + width;
        const double length = std::sqrt(upper[c] * upper[c] + lower[c] * lower[c]);
        const double cosine = upper[c] / length, sine = lower[c] / length;
        for (std::int64_t k = c; k + 1 < s; ++k) {
            const double x = upper[k], y = lower[k];
            upper[k] = cosine * x + sine * y;
            lower[k] = cosine * y - sine * x;
        }
        const double x = u[c], y = v[c];
        u[c] = cosine * x + sine * u[c + 1];
        u[c + 1] = cosine * u[c + 1] - sine * x;
        v[c] = cosine * y + sine * v[c + 1];
        v[c + 1] = cosine * v[c + 1] - sine * y;
    }
}

}  // namespace dense

// Scratch of one thread for one example of `size` parts.
struct HullScratch {
    std::vector<double> point, z, scores, dense, weights;
    Sparse vertex;

    void resize(std::int64_t size) {
        const auto n = static_cast<std::size_t>(size);
        point.assign(n, 0.0);
        z.assign(n, 0.0);
        scores.assign(n, 0.0);
        dense.assign(n, 0.0);
    }
};

// The vertices held for one example, their weights and the factor R.
class ActiveSet {
   public:
    std::int64_t size() const { return static_cast<std::int64_t>(slot_.size()); }
    bool done() const { return done_; }
    Status status() const { return status_; }
    void finish(Status status) {
        done_ = true;
        status_ = status == Status::ok && doubtful_ ? Status::inexact : status;
        if (status == Status::ok || status == Status::inexact) return;
        slot_.clear();
        weight_.clear();
    }

    double weight(std::int64_t i) const { return weight_[i]; }
    std::span<const std::int32_t> index(std::int64_t i) const {
        return {index_.data() + start_[slot_[i]], static_cast<std::size_t>(start_[slot_[i] + 1] - start_[slot_[i]])};
    }
    std::span<const double> value(std::int64_t i) const {
        return {value_.data() + start_[slot_[i]], static_cast<std::size_t>(start_[slot_[i] + 1] - start_[slot_[i]])};
    }

    // A vertex from an earlier call, to be held from the start; begin() fits the weights to the new point.
    void preload(std::span<const std::int32_t> index, std::span<const double> value, double weight) {
        store(index, value);
        weight_.push_back(weight);
    }

    // Takes scratch.point as the point to project. Leaves z and scores = point - z in scratch.
    void begin(std::int64_t limit, HullScratch& scratch) {
        limit_ = limit;
        for (const double x : scratch.point)
            if (!std::isfinite(x)) return finish(Status::nonfinite);
        const std::vector<double> preloaded = std::move(weight_);
        weight_.clear();
        double total = 0.0;
        for (std::size_t i = 0; i < preloaded.size(); ++i) {
            if (append(static_cast<std::int64_t>(i), scratch) != Appended::yes) continue;
            weight_.back() = preloaded[i];
            total += preloaded[i];
        }
        if (size() > 0) {
            for (double& p : weight_) p = total > 0.0 ? p / total : 1.0 / static_cast<double>(size());
            optimize(scratch, false);
        }
        evaluate(scratch);
    }

    // Takes scratch.vertex, the maximizer of scratch.scores, and moves to the optimum over the extended hull.
    void absorb(double tolerance, HullScratch& scratch) {
        const bool first = size() == 0;
        double gap = 0.0, rounding = 0.0;
        if (!first) {
            measure(scratch, gap, rounding);
            if (gap <= std::max(0.5 * tolerance * tolerance, rounding)) return finish(Status::ok);
        }
        if (++rounds_ > limit_) return finish(Status::inexact);
        store(scratch.vertex.index, scratch.vertex.value);
        const auto newest = static_cast<std::int64_t>(start_.size()) - 2;
        bool moved = append(newest, scratch) == Appended::yes;
        if (first) {
            weight_.assign(1, 1.0);
            return evaluate(scratch);
        }
        if (moved) moved = optimize(scratch, true);
        if (moved) {
            polished_ = 0;
            return evaluate(scratch);
        }
        // The best vertex is held already, or adds no direction: what is left of the gap comes from rounded weights.
        if (polished_ < MOST_POLISH) {
            polish(scratch);
            ++polished_;
            return evaluate(scratch);
        }
        finish(gap <= SLACK * rounding || gap <= 0.5 * tolerance * tolerance ? Status::ok : Status::inexact);
    }

    // Vertices came from an argmax that may not be exact.
    void doubt() { doubtful_ = true; }

    // z into scratch.z; returns 1/2 ||z - point||^2.
    double result(HullScratch& scratch) {
        if (size() == 0) {
            std::fill(scratch.z.begin(), scratch.z.end(), 0.0);
            return std::numeric_limits<double>::quiet_NaN();
        }
        evaluate(scratch);
        double sum = 0.0;
        for (const double x : scratch.scores) sum += x * x;
        return 0.5 * sum;
    }

    // z = sum_i p_i v_i over sum_i p_i into scratch.z, scores = point - z.
    void evaluate(HullScratch& scratch) {
        std::fill(scratch.z.begin(), scratch.z.end(), 0.0);
        double total = 0.0;
        for (const double p : weight_) total += p;
        if (!(total > 0.0)) {
            std::fill(weight_.begin(), weight_.end(), 1.0);
            total = static_cast<double>(size());
        }
        for (std::int64_t i = 0; i < size(); ++i) {
            weight_[i] /= total;
            const auto at = index(i);
            const auto x = value(i);
            for (std::size_t j = 0; j < at.size(); ++j) scratch.z[at[j]] += weight_[i] * x[j];
        }
        for (std::size_t j = 0; j < scratch.z.size(); ++j) scratch.scores[j] = scratch.point[j] - scratch.z[j];
    }

   private:
    enum class Appended { yes, held, dependent };
    static constexpr int MOST_POLISH = 3;
    static constexpr double SLACK = 1e4;        // a gap of so many rounding errors, left after polishing, is exact
    static constexpr double DEPENDENT = 1e-11;  // squared distance to the affine hull below which it is all rounding

    std::vector<std::int64_t> start_{0};  // non-zeros of every vertex seen, by slot
    std::vector<std::int32_t> index_;
    std::vector<double> value_;
    std::vector<std::int64_t> slot_;   // the vertices held
    std::vector<double> norm_;         // ||v_i||^2
    std::vector<double> weight_;       // p
    std::vector<double> factor_;       // R, row-major, rows of width_
    std::vector<double> along_point_;  // u_b
    std::vector<double> along_one_;    // u_1
    std::int64_t width_ = 0, rounds_ = 0, limit_ = 0;
    double rho_ = 1.0;
    bool done_ = false, doubtful_ = false;
    int polished_ = 0;
    Status status_ = Status::inexact;

    double* row(std::int64_t i) { return factor_.data() + i * width_; }

    void store(std::span<const std::int32_t> index, std::span<const double> value) {
        index_.insert(index_.end(), index.begin(), index.end());
        value_.insert(value_.end(), value.begin(), value.end());
        start_.push_back(static_cast<std::int64_t>(index_.size()));
    }

    void widen(std::int64_t need) {
        if (need <= width_) return;
        const std::int64_t wider = std::max<std::int64_t>(16, 2 * need);
        std::vector<double> fresh(static_cast<std::size_t>(wider * wider), 0.0);
        for (std::int64_t i = 0; i < size(); ++i) std::copy(row(i) + i, row(i) + size(), fresh.data() + i * wider + i);
        factor_ = std::move(fresh);
        width_ = wider;
    }

    // (point - z)'(v - z), and how much of it rounding can make up.
    void measure(const HullScratch& scratch, double& gap, double& rounding) const {
        const double* MM_RESTRICT s = scratch.scores.data();
        const double* MM_RESTRICT z = scratch.z.data();
        const double* MM_RESTRICT a = scratch.point.data();
        double scale = 0.0, held = 0.0, found = 0.0;
        dense::score(simd::lanes_in_use(), s, a, z, static_cast<std::int64_t>(scratch.z.size()), held, scale);
        const Sparse& v = scratch.vertex;
        for (std::size_t j = 0; j < v.index.size(); ++j) {
            found += s[v.index[j]] * v.value[j];
            scale += (std::fabs(a[v.index[j]]) + std::fabs(z[v.index[j]])) * std::fabs(v.value[j]);
        }
        // z may cancel to something far smaller than the vertices it is made of, and its error does not shrink with it.
        double made_of = 0.0, norm = 0.0;
        for (std::int64_t i = 0; i < size(); ++i) made_of += weight_[i] * std::sqrt(norm_[i]);
        for (const double x : v.value) norm += x * x;
        scale += made_of * (made_of + std::sqrt(norm));
        gap = found - held;
        rounding = 4.0 * std::numeric_limits<double>::epsilon() * scale;
    }

    // Holds the vertex of a slot with weight 0 and extends R, u_b and u_1.
    Appended append(std::int64_t slot, HullScratch& scratch) {
        const std::int64_t s = size();
        const auto begin = static_cast<std::size_t>(start_[slot]), end = static_cast<std::size_t>(start_[slot + 1]);
        double norm = 0.0, along = 0.0;
        for (std::size_t j = begin; j < end; ++j) {
            scratch.dense[index_[j]] = value_[j];
            norm += value_[j] * value_[j];
            along += value_[j] * scratch.point[index_[j]];
        }
        if (s == 0) rho_ = norm > 0.0 ? norm : 1.0;
        std::vector<double>& column = scratch.weights;
        column.assign(static_cast<std::size_t>(s), 0.0);
        bool held = false;
        for (std::int64_t i = 0; i < s; ++i) {
            const auto at = index(i);
            const auto x = value(i);
            const double dot =
                dense::gather_dot(at.data(), x.data(), static_cast<std::int64_t>(at.size()), scratch.dense.data());
            held |= norm_[i] + norm - 2.0 * dot <= 1e-14 * (norm_[i] + norm);
            column[i] = dot + rho_;
        }
        for (std::size_t j = begin; j < end; ++j) scratch.dense[index_[j]] = 0.0;
        if (held) return Appended::held;

        dense::solve_transposed(factor_.data(), width_, s, column.data());
        double left = norm + rho_;
        for (const double x : column) left -= x * x;
        if (!(left > DEPENDENT * (norm + rho_))) return Appended::dependent;
        widen(s + 1);
        const double corner = std::sqrt(left);
        double to_point = along, to_one = 1.0;
        for (std::int64_t i = 0; i < s; ++i) {
            row(i)[s] = column[i];
            to_point -= column[i] * along_point_[i];
            to_one -= column[i] * along_one_[i];
        }
        row(s)[s] = corner;
        along_point_.push_back(to_point / corner);
        along_one_.push_back(to_one / corner);
        slot_.push_back(slot);
        norm_.push_back(norm);
        weight_.push_back(0.0);
        return Appended::yes;
    }

    // Drops vertex j: its column leaves R, and plane rotations make R triangular again.
    void drop(std::int64_t j) {
        dense::remove_column(factor_.data(), width_, size(), j, along_point_.data(), along_one_.data());
        along_point_.pop_back();
        along_one_.pop_back();
        slot_.erase(slot_.begin() + j);
        norm_.erase(norm_.begin() + j);
        weight_.erase(weight_.begin() + j);
    }

    // Weights of the optimum over the affine hull, from u_b and u_1.
    void affine_optimum(const std::vector<double>& u, double sum, std::vector<double>& weights) {
        const std::int64_t s = size();
        double cross = 0.0, square = 0.0;
        for (std::int64_t i = 0; i < s; ++i) {
            cross += along_one_[i] * u[i];
            square += along_one_[i] * along_one_[i];
        }
        const double tau = (cross - sum) / square;
        weights.resize(static_cast<std::size_t>(s));
        for (std::int64_t i = 0; i < s; ++i) weights[i] = u[i] - tau * along_one_[i];
        dense::solve(simd::lanes_in_use(), factor_.data(), width_, s, weights.data());
    }

    // From feasible weights to the optimum over the convex hull of some of the vertices held. False if the rest was at
    // its optimum before and the vertex just added was dropped at once.
    bool optimize(HullScratch& scratch, bool added) {
        bool moved = false;
        for (;;) {
            std::vector<double>& q = scratch.weights;
            affine_optimum(along_point_, 1.0, q);
            double step = 1.0;
            std::int64_t blocking = -1;
            for (std::int64_t i = 0; i < size(); ++i) {
                if (q[i] > 0.0) continue;
                const double ratio = weight_[i] > 0.0 ? weight_[i] / (weight_[i] - q[i]) : 0.0;
                if (blocking < 0 || ratio < step) {
                    step = ratio;
                    blocking = i;
                }
            }
            if (blocking < 0) {
                weight_.assign(q.begin(), q.begin() + size());
                return true;
            }
            for (std::int64_t i = 0; i < size(); ++i)
                weight_[i] = std::max(0.0, weight_[i] + step * (q[i] - weight_[i]));
            moved = moved || step > 0.0;
            if (size() == 1) {  // cannot happen but for overflow: one vertex has weight 1
                weight_[0] = 1.0;
                return moved;
            }
            drop(blocking);
            if (added && !moved && blocking == size()) return false;
        }
    }

    // One step of iterative refinement: the scores v_i'(point - z) of the vertices held should be equal.
    void polish(HullScratch& scratch) {
        const std::int64_t s = size();
        std::vector<double> u(static_cast<std::size_t>(s)), change;
        for (std::int64_t i = 0; i < s; ++i) {
            const auto at = index(i);
            const auto x = value(i);
            for (std::size_t j = 0; j < at.size(); ++j) u[i] += x[j] * scratch.scores[at[j]];
        }
        const double level = u[0];
        for (double& x : u) x -= level;
        dense::solve_transposed(factor_.data(), width_, s, u.data());
        affine_optimum(u, 0.0, change);
        double step = 1.0;
        for (std::int64_t i = 0; i < s; ++i)
            if (weight_[i] + change[i] < 0.0) step = std::min(step, -weight_[i] / change[i]);
        for (std::int64_t i = 0; i < s; ++i) weight_[i] = std::max(0.0, weight_[i] + step * change[i]);
    }
};

}  // namespace maxmargin::hull
