// The dual function D of one projection onto a matching polytope, see matching/projection.hpp: the target in scratch,
// as a matrix or as lists, its value and gradient at a point, and its minimum over one coordinate.
#pragma once

#include <vector>

#include "maxmargin/matching/batch.hpp"
#include "maxmargin/matching/loops.hpp"

namespace maxmargin::matching {

constexpr double kHole = -1e300;  // the target of an edge that is not there: z = 0 for any dual

class Dual {
   public:
    explicit Dual(const Batch& batch) {
        target_.resize(largest_of(batch, [](const Example& ex) {
            return as_matrix(ex) ? ex.large_side() * padded(ex.small_side()) : ex.n_edges;
        }));
        z_.resize(2 * target_.size());
        const Sides sides = largest_sides(batch);
        large_side_ = sides.large;
        small_side_ = padded(sides.small);
        nodes_ = large_side_ + small_side_;
        reals_.resize(6 * nodes_);
        line_.resize(nodes_);
        capacity_.resize(nodes_);
        row_start_.resize(large_side_ + 1);
        fill_.resize(large_side_);
        column_start_.resize(small_side_ + 1);
        const std::int64_t listed = largest_of(batch, [](const Example& ex) { return as_matrix(ex) ? 0 : ex.n_edges; });
        for (auto* list : {&column_, &place_, &by_column_, &row_of_}) list->resize(listed);
    }

   protected:
    // Everything that belongs to one dual point. Nodes: rows 0:rows_, then columns, padded to ld_.
    struct State {
        double *x, *sum, *count, *z;
        double dual, residual;
    };

    State state(int which) {
        double* base = reals_.data() + which * 3 * nodes_;
        double* z = z_.data() + which * static_cast<std::int64_t>(target_.size());
        return {base, base + nodes_, base + 2 * nodes_, z, 0, 0};
    }
    void load(const Example& ex, const double* point) {
        transposed_ = ex.n_left < ex.n_right;
        rows_ = transposed_ ? ex.n_right : ex.n_left;
        cols_ = transposed_ ? ex.n_left : ex.n_right;
        matrix_ = as_matrix(ex);
        ld_ = padded(cols_);
        const std::int64_t* row_capacity = transposed_ ? ex.right_capacity : ex.left_capacity;
        const std::int64_t* col_capacity = transposed_ ? ex.left_capacity : ex.right_capacity;
        const auto columns = std::copy(row_capacity, row_capacity + rows_, capacity_.begin());
        const auto padding = std::copy(col_capacity, col_capacity + cols_, columns);
        std::fill(padding, columns + ld_, 1.0);
        const auto most_one = [](double capacity) { return capacity <= 1; };
        // One side is enough: z <= its sum <= 1.
        unit_ = std::all_of(capacity_.begin(), columns, most_one) || std::all_of(columns, padding, most_one);
        if (matrix_) {
            load_matrix(ex, point);
        } else {
            load_lists(ex, point);
        }
        if (std::find(capacity_.begin(), padding, 0.0) != padding) close_nodes();
        const std::int64_t cells = matrix_ ? rows_ * ld_ : ex.n_edges;
        scale_ = std::max(0.0, largest(target_.data(), cells));
    }

    void load_matrix(const Example& ex, const double* point) {
        double* a = target_.data();
        if (ex.full()) {
            for (std::int64_t j = 0; j < rows_; ++j, a += ld_) {
                if (!transposed_) std::copy(point + j * cols_, point + (j + 1) * cols_, a);
                else
                    for (std::int64_t k = 0; k < cols_; ++k) a[k] = point[k * rows_ + j];
                std::fill(a + cols_, a + ld_, kHole);
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
        std::copy(row_start_.begin(), row_start_.begin() + rows_, fill_.begin());
        for (std::int64_t e = 0; e < ex.n_edges; ++e) {
            const std::int64_t at = fill_[ex.ends[2 * e + row_end]]++;
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
        const double shrink = ratio < 1e300 ? 1 / ratio : 0;
        if (!matrix_) {
            for (std::int64_t at = 0; at < ex.n_edges; ++at) z[place_[at]] = std::min(now.z[at], 1.0) * shrink;
        } else if (ex.full() && !transposed_) {
            for (std::int64_t j = 0; j < rows_; ++j) scale_into(now.z + j * ld_, cols_, shrink, z + j * cols_);
        } else if (ex.full()) {
            for (std::int64_t k = 0; k < cols_; ++k)
                for (std::int64_t j = 0; j < rows_; ++j) z[k * rows_ + j] = std::min(now.z[j * ld_ + k], 1.0) * shrink;
        } else {
            for (std::int64_t e = 0; e < ex.n_edges; ++e) {
                const std::int64_t left = ex.ends[2 * e], right = ex.ends[2 * e + 1];
                z[e] = std::min(now.z[transposed_ ? right * ld_ + left : left * ld_ + right], 1.0) * shrink;
            }
        }
        *value = 0.5 * squared_distance(z, point, ex.n_edges);
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
        summarize(now.x, now.sum, capacity_.data(), rows_ + cols_, &linear, &now.residual);
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

    // Minimizes D over the dual of one row, or one column, alone.
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

    bool transposed_ = false, matrix_ = true, unit_ = true;
    std::int64_t rows_ = 0, cols_ = 0, ld_ = 0, nodes_ = 0, small_side_ = 0, large_side_ = 0;
    double scale_ = 0;  // the largest target, or 0
    std::vector<double> target_, z_, reals_, line_, capacity_;
    std::vector<std::int64_t> row_start_, column_start_, fill_;
    std::vector<std::int32_t> column_, place_, by_column_, row_of_;
};

}  // namespace maxmargin::matching
