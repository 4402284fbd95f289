// Euclidean projection onto {0 <= z <= 1, row sums <= r, column sums <= s} of a bipartite graph.
//
// Dual, over node variables x = (alpha, beta) >= 0, with t_jk = a_jk - alpha_j - beta_k:
//
//     min D(x) = sum_jk phi(t_jk) + r'alpha + s'beta,    phi(t) = max_{0<=z<=1} t z - z^2/2,    z_jk = clip(t_jk, 0, 1)
//
// D is convex and piecewise quadratic. Its gradient is capacity minus sum; its Hessian is the signless Laplacian of the
// graph of edges with 0 < z < 1 (the support). A primal-dual active set Newton step (x_i = 0 where x_i n_i <= gradient,
// zero gradient elsewhere) ends exactly at the solution once support and active set are right. Rows are the larger side
// and are eliminated, so a step factorises a matrix of the size of the positive column duals at most.
// Newton steps are halved until they reduce D or the residual; where that fails they are replaced by a line search along a regularised Newton
// direction and a sweep of exact minimisations over all rows, then all columns; sweeps alone converge (two blocks,
// Grippo and Sciandrone 2000), and nothing in between raises D. With capacities of one the upper clip is redundant and left out.
#pragma once

#include <vector>

#include "maxmargin/matching.hpp"
#include "maxmargin/simd.hpp"

namespace maxmargin::matching {

constexpr double kHole = -1e300;  // the target of an edge that is not there: z = 0 for any dual

// Reductions in the loops below may be reordered, so that they become vectors.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3", "associative-math", "no-signed-zeros", "no-trapping-math", "no-math-errno", "finite-math-only")
#endif

// At duals (alpha, beta): z, sums and support counts of rows and columns; returns sum phi. `ld` columns, a multiple of 4.
static MM_CLONES double evaluate_unit(const double* MM_RESTRICT target, std::int64_t rows, std::int64_t ld,
                                      const double* MM_RESTRICT alpha, const double* MM_RESTRICT beta,
                                      double* MM_RESTRICT z, double* MM_RESTRICT row_sum, double* MM_RESTRICT row_count,
                                      double* MM_RESTRICT col_sum, double* MM_RESTRICT col_count) {
    double phi = 0;
    for (std::int64_t k = 0; k < ld; ++k) col_sum[k] = col_count[k] = 0;
    for (std::int64_t j = 0; j < rows; ++j) {
        const double* MM_RESTRICT a = target + j * ld;
        double* MM_RESTRICT zj = z + j * ld;
        const double shift = alpha[j];
        double sum = 0, count = 0;
        for (std::int64_t k = 0; k < ld; ++k) {
            const double t = a[k] - shift - beta[k];
            const double value = t > 0 ? t : 0;
            const double in = t > 0 ? 1.0 : 0.0;
            zj[k] = value;
            sum += value;
            count += in;
            phi += value * value;
            col_sum[k] += value;
            col_count[k] += in;
        }
        row_sum[j] = sum;
        row_count[j] = count;
    }
    return 0.5 * phi;
}

static MM_CLONES double evaluate_clip(const double* MM_RESTRICT target, std::int64_t rows, std::int64_t ld,
                                      const double* MM_RESTRICT alpha, const double* MM_RESTRICT beta,
                                      double* MM_RESTRICT z, double* MM_RESTRICT row_sum, double* MM_RESTRICT row_count,
                                      double* MM_RESTRICT col_sum, double* MM_RESTRICT col_count) {
    double phi = 0;
    for (std::int64_t k = 0; k < ld; ++k) col_sum[k] = col_count[k] = 0;
    for (std::int64_t j = 0; j < rows; ++j) {
        const double* MM_RESTRICT a = target + j * ld;
        double* MM_RESTRICT zj = z + j * ld;
        const double shift = alpha[j];
        double sum = 0, count = 0;
        for (std::int64_t k = 0; k < ld; ++k) {
            const double t = a[k] - shift - beta[k];
            const double low = t > 0 ? t : 0;
            const double value = low < 1 ? low : 1;
            const double in = (t > 0 ? 1.0 : 0.0) - (t >= 1 ? 1.0 : 0.0);
            zj[k] = value;
            sum += value;
            count += in;
            phi += value * (low - 0.5 * value);
            col_sum[k] += value;
            col_count[k] += in;
        }
        row_sum[j] = sum;
        row_count[j] = count;
    }
    return phi;
}

// Sum and support count of clip(t - shift, 0, top).
static MM_CLONES void shifted(const double* MM_RESTRICT t, std::int64_t n, double shift, double top, double* sum_out,
                              double* count_out) {
    double sum = 0, count = 0;
    for (std::int64_t k = 0; k < n; ++k) {
        const double d = t[k] - shift;
        const double low = d > 0 ? d : 0;
        sum += low < top ? low : top;
        count += (d > 0 ? 1.0 : 0.0) - (d >= top ? 1.0 : 0.0);
    }
    *sum_out = sum;
    *count_out = count;
}

static MM_CLONES double largest(const double* t, std::int64_t n) {
    double best = -1e308;
    for (std::int64_t k = 0; k < n; ++k) best = t[k] > best ? t[k] : best;
    return best;
}

// sum capacity x and the residual max |min(x, capacity - sum)|.
static MM_CLONES void summarise(const double* MM_RESTRICT x, const double* MM_RESTRICT sum,
                                const double* MM_RESTRICT capacity, std::int64_t n, double* total, double* residual) {
    double product = 0, worst = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        const double slack = capacity[i] - sum[i];
        const double least = x[i] < slack ? x[i] : slack;
        const double size = least < 0 ? -least : least;
        worst = size > worst ? size : worst;
        product += capacity[i] * x[i];
    }
    *total = product;
    *residual = worst;
}

// Half a diagonal Newton step.
static MM_CLONES void half_step(double* MM_RESTRICT x, const double* MM_RESTRICT sum, const double* MM_RESTRICT count,
                                const double* MM_RESTRICT capacity, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
        const double curvature = count[i] > 1 ? count[i] : 1;
        const double next = x[i] + 0.5 * (sum[i] - capacity[i]) / curvature;
        x[i] = next > 0 ? next : 0;
    }
}

// trial = max(0, x + t d); returns gradient'(trial - x).
static MM_CLONES double step_along(const double* MM_RESTRICT x, const double* MM_RESTRICT d, double t,
                                   const double* MM_RESTRICT sum, const double* MM_RESTRICT capacity, std::int64_t n,
                                   double* MM_RESTRICT trial) {
    double expected = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        const double moved = x[i] + t * d[i];
        const double next = moved > 0 ? moved : 0;
        expected += (capacity[i] - sum[i]) * (next - x[i]);
        trial[i] = next;
    }
    return expected;
}

// Solves S y = b by elimination in the upper triangle of S: n rows of `ld` numbers, b at column n. A pivot that vanishes
// against the given diagonal (of the matrix S came from) is replaced by `floor` times that; with floor = 0 its unknown is
// 0. Returns the largest right-hand side left at a vanished pivot. Overwrites `diagonal`.
static MM_CLONES double eliminate(double* MM_RESTRICT s, std::int64_t n, std::int64_t ld, double* MM_RESTRICT diagonal,
                                  double* MM_RESTRICT y, double floor) {
    // Two pivots at a time: half the passes over the rows below.
    double left = 0;
    for (std::int64_t i = 0; i < n; i += 2) {
        double inverse[2] = {0, 0};
        const std::int64_t stop = i + 2 < n ? i + 2 : n;
        for (std::int64_t p = i; p < stop; ++p) {
            const double* MM_RESTRICT pivots = s + p * ld;
            if (pivots[p] > 1e-9 * diagonal[p]) {
                inverse[p - i] = 1 / pivots[p];
            } else {
                const double size = pivots[n] < 0 ? -pivots[n] : pivots[n];
                left = size > left ? size : left;
                inverse[p - i] = floor > 0 ? 1 / (floor * diagonal[p]) : 0.0;
            }
            diagonal[p] = inverse[p - i];
            if (p == i && stop == i + 2) {
                const double factor = pivots[i + 1] * inverse[0];
                double* MM_RESTRICT row = s + (i + 1) * ld;
                for (std::int64_t c = (i + 1) & ~std::int64_t{3}; c < ld; c += 4)
                    for (std::int64_t l = c; l < c + 4; ++l) row[l] -= factor * pivots[l];
            }
        }
        const double* MM_RESTRICT one = s + i * ld;
        const double* MM_RESTRICT two = one + ld;
        for (std::int64_t r = i + 2; r < n; ++r) {
            const double factor_one = one[r] * inverse[0], factor_two = two[r] * inverse[1];
            double* MM_RESTRICT row = s + r * ld;
            for (std::int64_t c = r & ~std::int64_t{3}; c < ld; c += 4)
                for (std::int64_t l = c; l < c + 4; ++l) row[l] -= factor_one * one[l] + factor_two * two[l];
        }
    }
    for (std::int64_t i = n - 1; i >= 0; --i) {
        const double* MM_RESTRICT si = s + i * ld;
        double value = si[n];
        for (std::int64_t c = i + 1; c < n; ++c) value -= si[c] * y[c];
        y[i] = value * diagonal[i];
    }
    return left;
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

// Solves one example after the other; owns the scratch of one thread and keeps nothing from one example to the next.
class Projector {
   public:
    explicit Projector(const Batch& batch) {
        std::int64_t cells = 0, nodes = 0, edges = 0, sparse = 0, large_side = 0, small_side = 0;
        for (std::int64_t i = 0; i < batch.size(); ++i) {
            const Example ex = example(batch, i);
            const std::int64_t small = std::min(ex.n_left, ex.n_right), large = std::max(ex.n_left, ex.n_right);
            cells = std::max(cells, as_matrix(ex) ? large * padded(small) : ex.n_edges);
            if (!as_matrix(ex)) sparse = std::max(sparse, ex.n_edges);
            edges = std::max(edges, ex.n_edges);
            nodes = std::max(nodes, large + padded(small));
            large_side = std::max(large_side, large);
            small_side = std::max(small_side, padded(small));
        }
        nodes_ = nodes;
        target_.resize(cells);
        z_.resize(2 * cells);
        reals_.resize(8 * nodes);
        line_.resize(nodes);
        capacity_.resize(nodes);
        row_start_.resize(large_side + 1);
        column_.resize(sparse);
        place_.resize(sparse);
        by_column_.resize(sparse);
        row_of_.resize(sparse);
        column_start_.resize(small_side + 1);
        support_start_.resize(large_side + 1);
        support_.resize(edges + 1);
        slot_.resize(nodes);
        solution_.resize(small_side);
        diagonal_.resize(small_side);
    }

    // Writes z (edges of the example) and the node duals (left, right), which also hold the start if `warm`.
    Status project(const Example& ex, const double* point, double tol, bool warm, double* left_dual,
                   double* right_dual, double* z, double* value) {
        *value = 0;
        newton_steps = fallbacks = 0;
        std::fill(z, z + ex.n_edges, 0.0);
        if (!finite(point, ex.n_edges)) {
            std::fill(left_dual, left_dual + ex.n_left, 0.0);
            std::fill(right_dual, right_dual + ex.n_right, 0.0);
            return kNonfinite;
        }
        if (ex.n_edges == 0) {
            std::fill(left_dual, left_dual + ex.n_left, 0.0);
            std::fill(right_dual, right_dual + ex.n_right, 0.0);
            return kOk;
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
        const Status status = minimise(now, started, tol);
        std::copy(now.x, now.x + rows_, row_dual);
        std::copy(now.x + rows_, now.x + rows_ + cols_, col_dual);
        store(ex, now, point, z, value);
        return status;
    }

    std::int32_t newton_steps = 0, fallbacks = 0;  // of the last example

   private:
    // Everything that belongs to one dual point. Nodes: rows 0:rows_, then columns, padded to ld_.
    struct State {
        double *x, *sum, *count, *z;
        double dual, residual;
    };

    static double start_value(double dual, bool& started) {
        if (!(dual > 0 && dual < 1e300)) return 0;
        started = true;
        return dual;
    }

    State state(int which) {
        double* base = reals_.data() + which * 3 * nodes_;
        return {base, base + nodes_, base + 2 * nodes_, z_.data() + which * static_cast<std::int64_t>(target_.size()), 0, 0};
    }
    double* direction() { return reals_.data() + 6 * nodes_; }
    double* gradient() { return reals_.data() + 7 * nodes_; }

    void load(const Example& ex, const double* point) {
        transposed_ = ex.n_left < ex.n_right;
        rows_ = transposed_ ? ex.n_right : ex.n_left;
        cols_ = transposed_ ? ex.n_left : ex.n_right;
        matrix_ = as_matrix(ex);
        ld_ = padded(cols_);
        const std::int64_t* row_capacity = transposed_ ? ex.right_capacity : ex.left_capacity;
        const std::int64_t* col_capacity = transposed_ ? ex.left_capacity : ex.right_capacity;
        std::int64_t row_most = 0, col_most = 0, least = 1;
        for (std::int64_t j = 0; j < rows_; ++j) {
            capacity_[j] = static_cast<double>(row_capacity[j]);
            row_most = std::max(row_most, row_capacity[j]);
            least = std::min(least, row_capacity[j]);
        }
        for (std::int64_t k = 0; k < cols_; ++k) {
            capacity_[rows_ + k] = static_cast<double>(col_capacity[k]);
            col_most = std::max(col_most, col_capacity[k]);
            least = std::min(least, col_capacity[k]);
        }
        for (std::int64_t k = cols_; k < ld_; ++k) capacity_[rows_ + k] = 1;
        unit_ = std::min(row_most, col_most) <= 1;  // one side is enough: z <= its sum <= 1
        if (matrix_) {
            load_matrix(ex, point);
        } else {
            load_lists(ex, point);
        }
        if (least == 0) close_nodes();
        const std::int64_t cells = matrix_ ? rows_ * ld_ : ex.n_edges;
        scale_ = std::max(0.0, largest(target_.data(), cells));
    }

    void load_matrix(const Example& ex, const double* point) {
        double* a = target_.data();
        if (ex.full()) {
            if (!transposed_) {
                for (std::int64_t j = 0; j < rows_; ++j) {
                    std::copy(point + j * cols_, point + (j + 1) * cols_, a + j * ld_);
                    std::fill(a + j * ld_ + cols_, a + (j + 1) * ld_, kHole);
                }
            } else {
                for (std::int64_t j = 0; j < rows_; ++j) {
                    for (std::int64_t k = 0; k < cols_; ++k) a[j * ld_ + k] = point[k * rows_ + j];
                    std::fill(a + j * ld_ + cols_, a + (j + 1) * ld_, kHole);
                }
            }
            return;
        }
        std::fill(a, a + rows_ * ld_, kHole);
        for (std::int64_t e = 0; e < ex.n_edges; ++e) {
            const std::int64_t left = ex.ends[2 * e], right = ex.ends[2 * e + 1];
            a[transposed_ ? right * ld_ + left : left * ld_ + right] = point[e];
        }
    }

    void load_lists(const Example& ex, const double* point) {
        const int row_end = transposed_ ? 1 : 0;
        std::fill(row_start_.begin(), row_start_.begin() + rows_ + 1, 0);
        for (std::int64_t e = 0; e < ex.n_edges; ++e) ++row_start_[ex.ends[2 * e + row_end] + 1];
        for (std::int64_t j = 0; j < rows_; ++j) row_start_[j + 1] += row_start_[j];
        std::copy(row_start_.begin(), row_start_.begin() + rows_, support_start_.begin());
        for (std::int64_t e = 0; e < ex.n_edges; ++e) {
            const std::int64_t at = support_start_[ex.ends[2 * e + row_end]]++;
            column_[at] = ex.ends[2 * e + 1 - row_end];
            target_[at] = point[e];
            place_[at] = static_cast<std::int32_t>(e);
        }
    }

    // Edges at a node of capacity 0 are as good as missing.
    void close_nodes() {
        for (std::int64_t j = 0; j < rows_; ++j) {
            const std::int64_t begin = matrix_ ? j * ld_ : row_start_[j];
            const std::int64_t end = matrix_ ? j * ld_ + cols_ : row_start_[j + 1];
            for (std::int64_t at = begin; at < end; ++at) {
                const std::int64_t k = matrix_ ? at - begin : column_[at];
                if (capacity_[j] == 0 || capacity_[rows_ + k] == 0) target_[at] = kHole;
            }
        }
    }

    void store(const Example& ex, const State& now, const double* point, double* z, double* value) {
        double ratio = 1;  // the repair: z / max(1, largest sum over its capacity)
        for (std::int64_t i = 0; i < rows_ + cols_; ++i) {
            if (now.sum[i] > capacity_[i] * ratio) ratio = now.sum[i] / capacity_[i];
        }
        const bool usable = ratio < 1e300;
        const double shrink = usable ? 1 / ratio : 0;
        double total = 0;
        auto put = [&](std::int64_t e, double raw) {
            const double part = std::min(raw, 1.0) * shrink;
            z[e] = part;
            const double d = part - point[e];
            total += d * d;
        };
        if (!matrix_) {
            for (std::int64_t at = 0; at < ex.n_edges; ++at) put(place_[at], now.z[at]);
        } else if (ex.full() && !transposed_) {
            for (std::int64_t j = 0; j < rows_; ++j)
                for (std::int64_t k = 0; k < cols_; ++k) put(j * cols_ + k, now.z[j * ld_ + k]);
        } else if (ex.full()) {
            for (std::int64_t k = 0; k < cols_; ++k)
                for (std::int64_t j = 0; j < rows_; ++j) put(k * rows_ + j, now.z[j * ld_ + k]);
        } else {
            for (std::int64_t e = 0; e < ex.n_edges; ++e) {
                const std::int64_t left = ex.ends[2 * e], right = ex.ends[2 * e + 1];
                put(e, now.z[transposed_ ? right * ld_ + left : left * ld_ + right]);
            }
        }
        *value = 0.5 * total;
    }

    void evaluate(State& now) {
        double phi;
        double *col_sum = now.sum + rows_, *col_count = now.count + rows_;
        if (matrix_) {
            phi = (unit_ ? evaluate_unit : evaluate_clip)(target_.data(), rows_, ld_, now.x, now.x + rows_, now.z,
                                                          now.sum, now.count, col_sum, col_count);
        } else {
            phi = evaluate_lists(now);
        }
        double linear;
        summarise(now.x, now.sum, capacity_.data(), rows_ + cols_, &linear, &now.residual);
        now.dual = phi + linear;
    }

    double evaluate_lists(State& now) {
        double phi = 0;
        double *col_sum = now.sum + rows_, *col_count = now.count + rows_;
        const double* beta = now.x + rows_;
        const double top = unit_ ? 1e308 : 1;
        std::fill(col_sum, col_sum + cols_, 0.0);
        std::fill(col_count, col_count + cols_, 0.0);
        for (std::int64_t j = 0; j < rows_; ++j) {
            double sum = 0, count = 0;
            const double shift = now.x[j];
            for (std::int64_t at = row_start_[j]; at < row_start_[j + 1]; ++at) {
                const std::int64_t k = column_[at];
                const double t = target_[at] - shift - beta[k];
                double part = 0;
                if (t > 0) {
                    part = std::min(t, top);
                    const double in = t < top;
                    sum += part;
                    count += in;
                    phi += part * (t - 0.5 * part);
                    col_sum[k] += part;
                    col_count[k] += in;
                }
                now.z[at] = part;
            }
            now.sum[j] = sum;
            now.count[j] = count;
        }
        return phi;
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

    // The direction d of a Newton step over the free nodes; other nodes move to 0 (`settle`) or stay. False if the
    // system has no solution. With H = (R W; W' C) over free rows and columns, R and C diagonal:
    // (C - W' R^-1 W) d_col = b_col - W' R^-1 b_row,  d_row = R^-1 (b_row - W d_col).
    bool newton(const State& now, bool settle, double floor) {
        double* d = direction();
        double* b = gradient();
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
        const std::int64_t ld = padded(n + 1);
        if (static_cast<std::int64_t>(schur_.size()) < n * ld) schur_.resize(n * ld);
        double* s = schur_.data();
        std::fill(s, s + n * ld, 0.0);
        for (std::int64_t k = 0; k < cols_; ++k) {
            const std::int64_t i = slot_[rows_ + k];
            if (i < 0) continue;
            s[i * ld + i] = diagonal_[i] = now.count[rows_ + k];
            s[i * ld + n] = b[rows_ + k];
        }
        std::int64_t last = 0;
        for (std::int64_t j = 0; j < rows_; ++j) {
            support_start_[j] = last;
            if (slot_[j] < 0) {
                if (d[j] == 0) continue;
                const std::int64_t end = list_support(now, j, last);
                for (std::int64_t at = last; at < end; ++at) s[support_[at] * ld + n] -= d[j];
                continue;
            }
            const std::int64_t end = list_support(now, j, last);
            if (columns_move) b[j] -= settled_columns(now, j, d);
            const double weight = 1 / now.count[j], share = weight * b[j];
            for (std::int64_t at = last; at < end; ++at) {
                double* row = s + support_[at] * ld;
                row[n] -= share;
                for (std::int64_t other = at; other < end; ++other) row[support_[other]] -= weight;
            }
            last = end;
        }
        support_start_[rows_] = last;
        const double left = eliminate(s, n, ld, diagonal_.data(), solution_.data(), floor);
        if (floor == 0 && left > 1e-10 * (1 + scale_)) return false;
        for (std::int64_t k = 0; k < cols_; ++k)
            if (slot_[rows_ + k] >= 0) d[rows_ + k] = solution_[slot_[rows_ + k]];
        for (std::int64_t j = 0; j < rows_; ++j) {
            if (slot_[j] < 0) continue;
            double share = b[j];
            for (std::int64_t at = support_start_[j]; at < support_start_[j + 1]; ++at) share -= solution_[support_[at]];
            d[j] = share / now.count[j];
        }
        return true;
    }

    double slope(const State& at) {
        const double* d = direction();
        double total = 0;
        for (std::int64_t i = 0; i < rows_ + cols_; ++i) total += (capacity_[i] - at.sum[i]) * d[i];
        return total;
    }

    // Minimises D along a regularised Newton direction, inside x >= 0. Handles directions without curvature: there
    // the step goes to the next change of support or to the first bound.
    void line_search(State& now, State& trial) {
        if (!newton(now, false, 1e-8)) return;
        double* d = direction();
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

    // The dual >= 0 at which clip(t - dual, 0, top) sums to the capacity, or 0. Newton from the left is monotone
    // without the upper clip (Michelot 1986); with it, a bracket keeps the steps in order.
    double threshold(const double* t, std::int64_t n, double capacity) const {
        const double top = unit_ ? 1e308 : 1;
        const double most = largest(t, n);
        if (most <= 0 || capacity == 0) return 0;
        double sum, count, low = 0, high = most;
        double dual = unit_ ? std::max(0.0, most - capacity) : 0;
        shifted(t, n, dual, top, &sum, &count);
        if (dual == 0 && sum <= capacity) return 0;
        for (int i = 0; i < 100; ++i) {
            if (sum == capacity) return dual;
            (sum > capacity ? low : high) = dual;
            double next = count > 0 ? dual + (sum - capacity) / count : 0.5 * (low + high);
            if (std::abs(next - dual) <= 1e-16 * most) return std::max(0.0, next);
            if (!unit_ && !(next > low && next < high)) {  // a bound again would be a cycle
                next = 0.5 * (low + high);
                if (!(next > low && next < high)) return next;
            }
            dual = next;
            shifted(t, n, dual, top, &sum, &count);
        }
        return std::max(0.0, dual);
    }

    // Minimises D over the dual of one row, or one column, alone.
    void relax_row(State& now, std::int64_t j) {
        const double* beta = now.x + rows_;
        double* t = line_.data();
        std::int64_t n = 0;
        if (matrix_) {
            for (std::int64_t k = 0; k < ld_; ++k) t[k] = target_[j * ld_ + k] - beta[k];
            n = ld_;
        } else {
            for (std::int64_t at = row_start_[j]; at < row_start_[j + 1]; ++at)
                t[n++] = target_[at] - beta[column_[at]];
        }
        now.x[j] = threshold(t, n, capacity_[j]);
    }
    void relax_column(State& now, std::int64_t k) {  // after list_columns(), if there is no matrix
        double* t = line_.data();
        std::int64_t n = 0;
        if (matrix_) {
            for (std::int64_t j = 0; j < rows_; ++j) t[n++] = target_[j * ld_ + k] - now.x[j];
        } else {
            for (std::int64_t s = column_start_[k]; s < column_start_[k + 1]; ++s) {
                const std::int64_t at = by_column_[s];
                t[n++] = target_[at] - now.x[row_of_[at]];
            }
        }
        now.x[rows_ + k] = threshold(t, n, capacity_[rows_ + k]);
    }

    // Minimises D exactly over all rows, then over all columns.
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

    // All edges by columns: positions in by_column_, and the row of each position in row_of_.
    void list_columns() {
        std::fill(column_start_.begin(), column_start_.begin() + cols_ + 1, 0);
        const std::int64_t edges = row_start_[rows_];
        for (std::int64_t at = 0; at < edges; ++at) ++column_start_[column_[at] + 1];
        for (std::int64_t k = 0; k < cols_; ++k) column_start_[k + 1] += column_start_[k];
        for (std::int64_t j = 0; j < rows_; ++j)
            for (std::int64_t at = row_start_[j]; at < row_start_[j + 1]; ++at) {
                by_column_[column_start_[column_[at]]++] = static_cast<std::int32_t>(at);
                row_of_[at] = static_cast<std::int32_t>(j);
            }
        for (std::int64_t k = cols_; k > 0; --k) column_start_[k] = column_start_[k - 1];
        column_start_[0] = 0;
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
                    const double expected = step_along(now.x, direction(), t, now.sum, capacity_.data(), nodes, trial.x);
                    evaluate(trial);
                    accepted = trial.residual <= 0.5 * best ||
                               (expected < 0 && trial.dual <= now.dual + 1e-4 * expected);
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

    // Steps of half a diagonal Newton step: H <= 2 diag(H), so D falls, and a few of them find most of the support.
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

    Status minimise(State& now, bool started, double tol) {
        State trial = state(1);
        std::fill(trial.x + rows_ + cols_, trial.x + rows_ + ld_, 0.0);
        evaluate(now);
        // Rounding in t is a few units in the last place of the largest dual or target; sums add that up.
        rounding_ = std::numeric_limits<double>::epsilon() * (1 + scale_) * static_cast<double>(4 + cols_);
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
        rescale(now, std::ldexp(1.0, -2 * stages));
        settle(now);
        for (; stages > 0; --stages) {
            descend(now, trial, std::max(1e-3, rounding_), kPatience);
            rescale(now, 4);
        }
        if (descend(now, trial, goal, kIterations)) return kOk;
        return kInexact;
    }

    static constexpr int kPatience = 6;
    static constexpr int kIterations = 500;

    bool transposed_ = false, matrix_ = true, unit_ = true;
    std::int64_t rows_ = 0, cols_ = 0, ld_ = 0, nodes_ = 0;
    double scale_ = 0, rounding_ = 0;
    std::vector<double> target_, z_, reals_, line_, capacity_, schur_, solution_, diagonal_;
    std::vector<std::int64_t> row_start_, support_start_, column_start_;
    std::vector<std::int32_t> column_, place_, by_column_, row_of_, support_, slot_;
};

}  // namespace maxmargin::matching
