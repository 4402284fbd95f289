// Linear systems (diagonal - weights) y = b with a symmetric, sparse, diagonally dominant matrix: conjugate gradients
// or a sparse L D L' factorization (rows one by one along the elimination tree), whichever promises less work.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <new>
#include <vector>

#include "maxmargin/base/scratch.hpp"

namespace maxmargin::cut {

class LaplacianSystem {
   public:
    void reserve(std::int32_t nodes, std::int32_t edges) {
        for (auto* v : {&diagonal_, &residual_, &search_, &product_, &pivot_, &solution_}) at_least(*v, nodes);
        for (auto* i : {&parent_, &mark_, &fill_, &pattern_, &path_}) at_least(*i, nodes);
        at_least(row_, static_cast<std::size_t>(nodes) + 1);
        at_least(column_, 2 * static_cast<std::size_t>(edges));
        at_least(weight_, 2 * static_cast<std::size_t>(edges));
        at_least(lower_start_, static_cast<std::size_t>(nodes) + 1);
    }

    // The matrix is given row by row, in elimination order: entry() for each neighbor, then row().
    void begin(std::int32_t n) {
        n_ = n;
        rows_ = 0;
        filled_ = 0;
        row_[0] = 0;
    }
    void entry(std::int32_t column, double weight) {
        column_[filled_] = column;
        weight_[filled_++] = weight;
    }
    void row(double diagonal) {
        diagonal_[rows_++] = diagonal;
        row_[rows_] = filled_;
    }

    // b holds the right-hand side and receives a solution with a residual norm of at most `enough` (or close to it).
    void solve(double sigma, double enough, double* b) {
        // Conjugate gradients need about sqrt(condition) steps; a factorization has flops = sum of squared columns.
        const double steps = 8.0 + 3.0 * std::sqrt(sigma);
        const double budget = steps * (filled_ + 6.0 * n_);
        if (analyze(budget)) {
            factorize();
            substitute(b);
        } else {
            conjugate_gradients(enough, b);
        }
    }

   private:
    void conjugate_gradients(double enough, double* b) {
        double rho = 0.0;
        for (std::int32_t i = 0; i < n_; ++i) {
            residual_[i] = b[i];
            b[i] = 0.0;
            search_[i] = residual_[i] / diagonal_[i];
            rho += residual_[i] * search_[i];
        }
        for (int iteration = 0; iteration < 1000 && rho > 0.0; ++iteration) {
            double curvature = 0.0;
            for (std::int32_t i = 0; i < n_; ++i) {
                double sum = diagonal_[i] * search_[i];
                for (std::int32_t a = row_[i]; a < row_[i + 1]; ++a) sum -= weight_[a] * search_[column_[a]];
                product_[i] = sum;
                curvature += sum * search_[i];
            }
            if (!(curvature > 0.0)) return;
            const double alpha = rho / curvature;
            double next = 0.0, square = 0.0;
            for (std::int32_t i = 0; i < n_; ++i) {
                b[i] += alpha * search_[i];
                residual_[i] -= alpha * product_[i];
                next += residual_[i] * residual_[i] / diagonal_[i];
                square += residual_[i] * residual_[i];
            }
            if (square <= enough * enough) return;
            const double beta = next / rho;
            rho = next;
            for (std::int32_t i = 0; i < n_; ++i) search_[i] = residual_[i] / diagonal_[i] + beta * search_[i];
        }
    }

    // Elimination tree and column sizes of L; false if the factorization would cost more than `budget`.
    bool analyze(double budget) {
        double most = budget;
        std::int64_t total = 0;
        for (std::int32_t k = 0; k < n_; ++k) {
            parent_[k] = -1;
            mark_[k] = k;
            fill_[k] = 0;
            for (std::int32_t a = row_[k]; a < row_[k + 1]; ++a) {
                for (std::int32_t i = column_[a]; i < k && mark_[i] != k; i = parent_[i]) {
                    if (parent_[i] < 0) parent_[i] = k;
                    mark_[i] = k;
                    most -= 1.0 + 2.0 * fill_[i];  // (f + 1)^2 - f^2
                    ++fill_[i];
                    ++total;
                }
            }
            if (most < 0.0) return false;
        }
        lower_start_[0] = 0;
        for (std::int32_t k = 0; k < n_; ++k) lower_start_[k + 1] = lower_start_[k] + fill_[k];
        try {
            at_least(lower_index_, total);
            at_least(lower_value_, total);
        } catch (const std::bad_alloc&) {  // conjugate gradients need no more memory
            return false;
        }
        return true;
    }

    void factorize() {
        for (std::int32_t k = 0; k < n_; ++k) {
            solution_[k] = 0.0;
            mark_[k] = k;
            fill_[k] = 0;
            std::int32_t top = n_;
            for (std::int32_t a = row_[k]; a < row_[k + 1]; ++a) {
                std::int32_t i = column_[a];
                if (i >= k) continue;
                solution_[i] -= weight_[a];
                std::int32_t length = 0;
                for (; mark_[i] != k; i = parent_[i]) {
                    path_[length++] = i;
                    mark_[i] = k;
                }
                while (length > 0) pattern_[--top] = path_[--length];
            }
            double pivot = diagonal_[k];
            for (; top < n_; ++top) {
                const std::int32_t i = pattern_[top];
                const double y = solution_[i];
                solution_[i] = 0.0;
                const std::int64_t begin = lower_start_[i], end = begin + fill_[i];
                for (std::int64_t p = begin; p < end; ++p) solution_[lower_index_[p]] -= lower_value_[p] * y;
                const double l = y / pivot_[i];
                pivot -= l * y;
                lower_index_[end] = k;
                lower_value_[end] = l;
                ++fill_[i];
            }
            pivot_[k] = pivot;
        }
    }

    void substitute(double* b) const {
        for (std::int32_t k = 0; k < n_; ++k) {
            const double y = b[k];
            const std::int64_t end = lower_start_[k + 1];
            for (std::int64_t p = lower_start_[k]; p < end; ++p) b[lower_index_[p]] -= lower_value_[p] * y;
        }
        for (std::int32_t k = 0; k < n_; ++k) b[k] /= pivot_[k];
        for (std::int32_t k = n_; k-- > 0;) {
            double y = b[k];
            const std::int64_t end = lower_start_[k + 1];
            for (std::int64_t p = lower_start_[k]; p < end; ++p) y -= lower_value_[p] * b[lower_index_[p]];
            b[k] = y;
        }
    }

    std::int32_t n_ = 0, rows_ = 0, filled_ = 0;
    std::vector<double> diagonal_, residual_, search_, product_, pivot_, solution_, weight_, lower_value_;
    std::vector<std::int32_t> parent_, mark_, fill_, pattern_, path_, row_, column_, lower_index_;
    std::vector<std::int64_t> lower_start_;
};

}  // namespace maxmargin::cut
