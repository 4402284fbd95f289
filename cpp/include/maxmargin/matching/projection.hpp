// Euclidean projection onto {0 <= z <= 1, row sums <= r, column sums <= s} of a bipartite graph.
//
// Dual, over node variables x = (alpha, beta) >= 0, with t_jk = a_jk - alpha_j - beta_k:
//
//     min D(x) = sum_jk phi(t_jk) + r'alpha + s'beta,    phi(t) = max_{0<=z<=1} t z - z^2/2,    z_jk = clip(t_jk, 0, 1)
//
// D is convex and piecewise quadratic. Its gradient is capacity minus sum; its Hessian is the signless Laplacian of the
// graph of edges with 0 < z < 1 (the support). A primal-dual active set Newton step (x_i = 0 where x_i n_i <= gradient,
// zero gradient elsewhere) ends exactly at the solution once support and active set are right. Rows are the larger side
// and are eliminated, so a step factorizes a matrix of the size of the positive column duals at most.
// Newton steps are halved until they reduce D, or halve the best residual so far. Where that fails or stalls, there is
// a line search along a regularized Newton direction, which also crosses the flat parts of D, and, regularly or if that
// fails too, a sweep of exact minimizations over all rows, then all columns. Sweeps alone converge (two blocks, Grippo
// and Sciandrone 2000), and what comes between them raises D at most a bounded number of times, when the residual
// halves. With capacities of one the upper clip is redundant and left out.
#pragma once

#include <limits>
#include <vector>

#include "maxmargin/base/scratch.hpp"
#include "maxmargin/matching/dual.hpp"

namespace maxmargin::matching {

// Solves one example after the other; owns the scratch of one thread and keeps nothing from one example to the next.
class Projector : private Dual {
   public:
    explicit Projector(const Batch& batch) : Dual(batch) {
        support_start_.resize(large_side_ + 1);
        support_.resize(most_edges(batch) + 1);
        slot_.resize(nodes_);
        direction_.resize(nodes_);
        right_hand_.resize(nodes_);
        solution_.resize(small_side_);
        diagonal_.resize(small_side_);
    }

    // Writes z (edges of the example) and the node duals (left, right), which also hold the start if `warm`.
    Status project(const Example& ex, const double* point, double tol, bool warm, double* left_dual, double* right_dual,
                   double* z, double* value) {
        newton_steps = fallbacks = 0;
        const bool usable = finite(point, ex.n_edges);
        if (!usable || ex.n_edges == 0) {
            *value = 0;
            std::fill(z, z + ex.n_edges, 0.0);
            std::fill(left_dual, left_dual + ex.n_left, 0.0);
            std::fill(right_dual, right_dual + ex.n_right, 0.0);
            return usable ? kOk : kNonfinite;
        }
        load(ex, point);
        State now = state(0);
        double* row_dual = transposed_ ? right_dual : left_dual;
        double* col_dual = transposed_ ? left_dual : right_dual;
        bool started = false;
        std::fill(now.x, now.x + rows_ + ld_, 0.0);
        if (warm) {
            for (std::int64_t j = 0; j < rows_; ++j) now.x[j] = start_value(row_dual[j], started);
            for (std::int64_t k = 0; k < cols_; ++k) now.x[rows_ + k] = start_value(col_dual[k], started);
        }
        const Status status = minimize(now, started, tol);
        std::copy(now.x, now.x + rows_, row_dual);
        std::copy(now.x + rows_, now.x + rows_ + cols_, col_dual);
        store(ex, now, point, z, value);
        return status;
    }

    std::int32_t newton_steps = 0, fallbacks = 0;  // of the last example

   private:
    static double start_value(double dual, bool& started) {
        if (!(dual > 0 && dual < 1e300)) return 0;
        started = true;
        return dual;
    }

    // Columns of the support in row j that are free, by their slots; branchless, as the pattern is hard to predict.
    std::int64_t list_support(const State& now, std::int64_t j, std::int64_t n) {
        const double top = unit_ ? 1e308 : 1;
        const std::int32_t* slot = slot_.data() + rows_;
        std::int32_t* out = support_.data();
        if (matrix_) {
            const double* z = now.z + j * ld_;
            for (std::int64_t k = 0; k < cols_; ++k) {
                out[n] = slot[k];
                n += (z[k] > 0) & (z[k] < top) & (slot[k] >= 0);
            }
        } else {
            for (std::int64_t at = row_start_[j]; at < row_start_[j + 1]; ++at) {
                const std::int32_t k = slot[column_[at]];
                out[n] = k;
                n += (now.z[at] > 0) & (now.z[at] < top) & (k >= 0);
            }
        }
        return n;
    }

    // Sum over the support of row j of the moves of columns that are not free.
    double settled_columns(const State& now, std::int64_t j, const double* d) const {
        const double top = unit_ ? 1e308 : 1;
        double total = 0;
        const std::int64_t begin = matrix_ ? j * ld_ : row_start_[j];
        const std::int64_t end = matrix_ ? begin + cols_ : row_start_[j + 1];
        for (std::int64_t at = begin; at < end; ++at) {
            const std::int64_t k = rows_ + (matrix_ ? at - begin : column_[at]);
            if (now.z[at] > 0 && now.z[at] < top && slot_[k] < 0) total += d[k];
        }
        return total;
    }

    // Solves (C + floor C - W' R^-1 W) y = b with b and the diagonal of the matrix in work[0:n], work[n:2n]. Returns
    // the largest residual; any number of iterations gives a direction of descent.
    double conjugate_gradients(const State& now, double* work, std::int64_t n, double floor) {
        double *residual = work, *diagonal = work + n, *image = work + 2 * n, *p = work + 3 * n, *scaled = work + 4 * n;
        double* y = solution_.data();
        double size = 0, product = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            diagonal[i] = std::max(diagonal[i], 1e-6 * diagonal_[i]);
            p[i] = scaled[i] = residual[i] / diagonal[i];
            product += residual[i] * scaled[i];
            size = std::max(size, std::abs(residual[i]));
            y[i] = 0;
        }
        double left = size;
        for (int iteration = 0; iteration < 1000 && left > 1e-14 * size; ++iteration) {
            double curvature = 0;
            for (std::int64_t i = 0; i < n; ++i) image[i] = (1 + floor) * diagonal_[i] * p[i];
            for (std::int64_t j = 0; j < rows_; ++j) {
                if (slot_[j] < 0) continue;
                const std::int64_t begin = support_start_[j], end = support_start_[j + 1];
                double total = 0;
                for (std::int64_t at = begin; at < end; ++at) total += p[support_[at]];
                total /= now.count[j];
                for (std::int64_t at = begin; at < end; ++at) image[support_[at]] -= total;
            }
            double norm = 0;
            for (std::int64_t i = 0; i < n; ++i) {
                curvature += p[i] * image[i];
                norm += p[i] * p[i] * diagonal_[i];
            }
            if (!(curvature > 1e-13 * norm)) break;
            const double t = product / curvature;
            double next = 0;
            left = 0;
            for (std::int64_t i = 0; i < n; ++i) {
                y[i] += t * p[i];
                residual[i] -= t * image[i];
                scaled[i] = residual[i] / diagonal[i];
                next += residual[i] * scaled[i];
                left = std::max(left, std::abs(residual[i]));
            }
            const double ratio = next / product;
            product = next;
            for (std::int64_t i = 0; i < n; ++i) p[i] = scaled[i] + ratio * p[i];
        }
        return left;
    }

    // The direction d of a Newton step over the free nodes; other nodes move to 0 (`settle`) or stay. False if the
    // system has no solution. With H = (R W; W' C) over free rows and columns, R and C diagonal:
    // (C - W' R^-1 W) d_col = b_col - W' R^-1 b_row,  d_row = R^-1 (b_row - W d_col).
    bool newton(const State& now, bool settle, double floor) {
        double* d = direction_.data();
        double* b = right_hand_.data();
        const std::int64_t nodes = rows_ + cols_;
        std::int32_t n = 0;
        bool columns_move = false;
        for (std::int64_t i = 0; i < nodes; ++i) {
            const double slope = capacity_[i] - now.sum[i], x = now.x[i];
            const bool wanted = settle ? x * std::max(now.count[i], 1.0) > slope : x > 0 || slope < 0;
            const bool is_free = wanted && now.count[i] > 0;  // no curvature: the node stays, see mend()
            d[i] = settle && !wanted ? -x : 0.0;
            b[i] = -slope;
            slot_[i] = is_free ? 0 : -1;
            if (i >= rows_) {
                if (is_free) slot_[i] = n++;
                columns_move |= d[i] != 0;
            }
        }
        // A few large graphs would need too much memory and time for a factorization; they get conjugate gradients.
        const bool direct = n <= kDirect;
        const std::int64_t ld = padded(n + 1);
        const std::int64_t across = direct ? ld : 1, along = direct ? ld + 1 : 1;
        at_least(schur_, direct ? n * ld : 6 * n);
        double* s = schur_.data();
        std::fill(s, s + (direct ? n * ld : 6 * n), 0.0);
        double* rhs = direct ? s + n : s;
        double* own = direct ? s : s + n;  // the diagonal of the Schur complement
        for (std::int64_t k = 0; k < cols_; ++k) {
            const std::int64_t i = slot_[rows_ + k];
            if (i < 0) continue;
            own[i * along] = diagonal_[i] = now.count[rows_ + k];
            rhs[i * across] = b[rows_ + k];
        }
        std::int64_t last = 0;
        for (std::int64_t j = 0; j < rows_; ++j) {
            support_start_[j] = last;
            if (slot_[j] < 0) {
                if (d[j] == 0) continue;
                const std::int64_t end = list_support(now, j, last);
                for (std::int64_t at = last; at < end; ++at) rhs[support_[at] * across] -= d[j];
                continue;
            }
            const std::int64_t end = list_support(now, j, last);
            if (columns_move) b[j] -= settled_columns(now, j, d);
            const double weight = 1 / now.count[j], share = weight * b[j];
            for (std::int64_t at = last; at < end; ++at) {
                rhs[support_[at] * across] -= share;
                own[support_[at] * along] -= weight;
            }
            if (direct) {
                for (std::int64_t at = last; at < end; ++at) {
                    double* row = s + support_[at] * ld;
                    for (std::int64_t other = at + 1; other < end; ++other) row[support_[other]] -= weight;
                }
            }
            last = end;
        }
        support_start_[rows_] = last;
        const double left = direct ? eliminate(s, n, ld, diagonal_.data(), solution_.data(), floor)
                                   : conjugate_gradients(now, s, n, floor);
        if (floor == 0 && left > 1e-10 * (1 + scale_)) return false;
        for (std::int64_t k = 0; k < cols_; ++k)
            if (slot_[rows_ + k] >= 0) d[rows_ + k] = solution_[slot_[rows_ + k]];
        for (std::int64_t j = 0; j < rows_; ++j) {
            if (slot_[j] < 0) continue;
            double share = b[j];
            const std::int64_t end = support_start_[j + 1];
            for (std::int64_t at = support_start_[j]; at < end; ++at) share -= solution_[support_[at]];
            d[j] = share / now.count[j];
        }
        return true;
    }

    double slope(const State& at) {
        const double* d = direction_.data();
        double total = 0;
        for (std::int64_t i = 0; i < rows_ + cols_; ++i) total += (capacity_[i] - at.sum[i]) * d[i];
        return total;
    }

    // Minimizes D along a regularized Newton direction, inside x >= 0. Handles directions without curvature: there
    // the step goes to the next change of support or to the first bound.
    void line_search(State& now, State& trial) {
        if (!newton(now, false, 1e-8)) return;
        double* d = direction_.data();
        const std::int64_t nodes = rows_ + cols_;
        for (std::int64_t i = 0; i < nodes; ++i)
            if (d[i] < 0 && now.x[i] <= 0) d[i] = 0;
        const double start = slope(now);
        if (!(start < 0)) return;
        double far = std::numeric_limits<double>::infinity();
        double size = 0;
        for (std::int64_t i = 0; i < nodes; ++i) {
            if (d[i] < 0) far = std::min(far, now.x[i] / -d[i]);
            size = std::max(size, std::abs(d[i]));
        }
        if (!(far > 0) || !(size < 1e300)) return;
        auto at = [&](double t) {
            for (std::int64_t i = 0; i < nodes; ++i) trial.x[i] = std::max(0.0, now.x[i] + t * d[i]);
            if (t == far)  // the node that set the bound lands on it exactly
                for (std::int64_t i = 0; i < nodes; ++i)
                    if (d[i] < 0 && now.x[i] / -d[i] <= far) trial.x[i] = 0;
            evaluate(trial);
            return slope(trial);
        };
        double low = 0, low_slope = start;
        double high = std::min(far, 1.0), high_slope = at(high);
        for (int i = 0; i < 60 && high_slope < 0 && high < far; ++i) {
            low = high;
            low_slope = high_slope;
            high = std::min(far, 4 * high);
            high_slope = at(high);
        }
        if (high_slope <= 0) {
            if (trial.dual <= now.dual) std::swap(now, trial);
            return;
        }
        for (int i = 0; i < 60 && low_slope < 0.2 * start; ++i) {
            // Regula falsi, kept away from the ends; bisection every third time.
            double share = i % 3 == 2 ? 0.5 : low_slope / (low_slope - high_slope);
            share = std::clamp(share, 0.02, 0.98);
            const double t = low + share * (high - low);
            if (!(t > low && t < high)) break;
            const double value = at(t);
            if (value <= 0) {
                low = t;
                low_slope = value;
            } else {
                high = t;
                high_slope = value;
            }
        }
        if (low == 0) return;
        at(low);
        if (trial.dual <= now.dual) std::swap(now, trial);
    }

    // Minimizes D exactly over all rows, then over all columns.
    void sweep(State& now) {
        for (std::int64_t j = 0; j < rows_; ++j) relax_row(now, j);
        if (!matrix_) list_columns();
        for (std::int64_t k = 0; k < cols_; ++k) relax_column(now, k);
        evaluate(now);
    }

    // Newton is blind at nodes off their optimum without support: move those to where they have one, or to 0.
    void mend(State& now, double goal) {
        auto blind = [&](std::int64_t i) {
            return now.count[i] == 0 && std::abs(std::min(now.x[i], capacity_[i] - now.sum[i])) > goal;
        };
        bool moved = false;
        for (std::int64_t j = 0; j < rows_; ++j) {
            if (!blind(j)) continue;
            relax_row(now, j);
            moved = true;
        }
        if (moved) evaluate(now);
        moved = false;
        for (std::int64_t k = 0; k < cols_; ++k) {
            if (!blind(rows_ + k)) continue;
            if (!matrix_ && !moved) list_columns();
            relax_column(now, k);
            moved = true;
        }
        if (moved) evaluate(now);
    }

    // Newton steps until the residual is at most `goal`; false after `limit` fallbacks.
    bool descend(State& now, State& trial, double goal, int limit) {
        const std::int64_t nodes = rows_ + cols_;
        double best = now.residual;
        int stalled = 0;
        for (int iteration = 0; iteration < kIterations; ++iteration) {
            if (now.residual <= goal) return true;
            mend(now, goal);
            bool accepted = false;
            if (newton(now, true, 0)) {
                ++newton_steps;
                for (double t = 1; t > 0.1 && !accepted; t *= 0.5) {
                    const double expected =
                        step_along(now.x, direction_.data(), t, now.sum, capacity_.data(), nodes, trial.x);
                    evaluate(trial);
                    accepted =
                        trial.residual <= 0.5 * best || (expected < 0 && trial.dual <= now.dual + 1e-4 * expected);
                }
                if (accepted) std::swap(now, trial);
            }
            // At rounding neither D nor the residual can be trusted to fall.
            if (now.residual <= 100 * rounding_ && now.residual > 0.5 * best) return true;
            // Near a kink D may be too flat to tell right from wrong; slopes, which the line search goes by, are not.
            stalled = now.residual > 0.9 * best ? stalled + 1 : 0;
            if (!accepted || stalled >= 4) {
                if (--limit < 0) return false;
                ++fallbacks;
                stalled = 0;
                const double before = now.dual;
                line_search(now, trial);
                if (fallbacks % 4 == 0 || !(now.dual < before)) sweep(now);
            }
            best = std::min(best, now.residual);
        }
        return false;
    }

    // Half diagonal Newton steps: H <= 2 diag(H), so D falls while the support shrinks. A few find most of the support.
    void settle(State& now) {
        for (int round = 0; round < 8; ++round) {
            half_step(now.x, now.sum, now.count, capacity_.data(), rows_ + cols_);
            evaluate(now);
        }
    }

    void rescale(State& now, double factor) {
        const std::int64_t cells = matrix_ ? rows_ * ld_ : row_start_[rows_];
        for (std::int64_t e = 0; e < cells; ++e) target_[e] *= factor;
        for (std::int64_t i = 0; i < rows_ + cols_; ++i) now.x[i] *= factor;
        evaluate(now);
    }

    Status minimize(State& now, bool started, double tol) {
        State trial = state(1);
        std::fill(trial.x + rows_ + cols_, trial.x + rows_ + ld_, 0.0);
        evaluate(now);
        // Rounding in t is a few units in the last place of the largest dual or target; sums add that up at random.
        rounding_ = std::numeric_limits<double>::epsilon() * (1 + scale_) * (4 + 2 * std::sqrt(double(cols_)));
        const double goal = std::max(rounding_, 1e-3 * tol / static_cast<double>(rows_ + cols_));
        if (now.residual <= goal) return kOk;
        if (started) {
            if (descend(now, trial, goal, kPatience)) return kOk;
            std::fill(now.x, now.x + rows_ + cols_, 0.0);
        }
        // Large targets are approached by way of smaller ones: the projection of a multiple of the target tells the
        // support of the next, up to the linear program that is left at infinity. Powers of two lose no bits.
        int stages = 0;
        for (double size = scale_; size > 8; size *= 0.25) ++stages;
        if (started || stages > 0) rescale(now, std::ldexp(1.0, -2 * stages));
        settle(now);
        for (; stages > 0; --stages) {
            descend(now, trial, std::max(1e-3, rounding_), kPatience);
            rescale(now, 4);
        }
        if (descend(now, trial, goal, kIterations)) return kOk;
        return kInexact;
    }

    static constexpr std::int64_t kDirect = 400;  // largest matrix to factorize
    static constexpr int kPatience = 6;
    static constexpr int kIterations = 500;

    double rounding_ = 0;
    std::vector<double> schur_, solution_, diagonal_, direction_, right_hand_;
    std::vector<std::int64_t> support_start_;
    std::vector<std::int32_t> support_, slot_;
};

}  // namespace maxmargin::matching
