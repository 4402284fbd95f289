// Maximum-weight bipartite b-matching: max sum_e w_e z_e, z in {0,1}, at most r_j edges at row j, s_k at column k.
//
// Only edges of positive weight matter; their cost is c = -w < 0, and a row may stay out at cost 0. Rows enter one
// after the other along a shortest path in reduced costs c_jk - u_j - v_k (Dijkstra), which ends at a free column or at
// a row that gives up its edge. Potentials: u_j <= 0, v_k <= 0, v_k = 0 while column k is free. This is for matrices
// and capacities of one, O(rows * (tree edges + tree nodes * columns)) per example (Jonker and Volgenant 1987); other
// capacities and sparse graphs are solved on lists of edges (matching/edge_lists.hpp).
#pragma once

#include <vector>

#include "maxmargin/base/simd.hpp"
#include "maxmargin/matching/batch.hpp"
#include "maxmargin/matching/edge_lists.hpp"

namespace maxmargin::matching {

// Relaxes all columns from one tree row; `key` of a finished column is -inf, so that nothing relaxes it.
static MM_CLONES void relax_row(const double* MM_RESTRICT cost, const double* MM_RESTRICT v, double base,
                                std::int64_t row, std::int64_t n, double* MM_RESTRICT key,
                                std::int64_t* MM_RESTRICT parent) {
    for (std::int64_t k = 0; k < n; ++k) {
        const double reached = base + (cost[k] - v[k]);
        const bool better = reached < key[k];
        key[k] = better ? reached : key[k];
        parent[k] = better ? row : parent[k];
    }
}

// Solves one example after the other; owns the scratch of one thread and keeps nothing from one example to the next.
class Matcher {
   public:
    explicit Matcher(const Batch& batch) : lists_(batch) {
        cost_.resize(largest_of(
            batch, [](const Example& ex) { return as_matrix(ex) ? ex.small_side() * padded(ex.large_side()) : 0; }));
        const Sides sides = largest_sides(batch);
        const std::int64_t rows = sides.small, columns = padded(sides.large);
        u_.resize(rows);
        row_mate_.resize(rows);
        tree_rows_.resize(rows + 1);
        for (auto* list : {&v_, &key_, &done_}) list->resize(columns);
        for (auto* list : {&parent_, &col_mate_, &tree_cols_}) list->resize(columns);
    }

    Status solve(const Example& ex, const double* scores, double* z, double* value) {
        std::fill(z, z + ex.n_edges, 0.0);
        *value = 0;
        if (!finite(scores, ex.n_edges)) return kNonfinite;
        const auto is_one = [](std::int64_t capacity) { return capacity == 1; };
        const bool ones = std::all_of(ex.left_capacity, ex.left_capacity + ex.n_left, is_one) &&
                          std::all_of(ex.right_capacity, ex.right_capacity + ex.n_right, is_one);
        if (ones && as_matrix(ex)) {
            solve_matrix(ex, scores, z);
            for (std::int64_t e = 0; e < ex.n_edges; ++e) *value += z[e] > 0 ? scores[e] : 0;
        } else {
            lists_.solve(ex, scores, z, value);
        }
        return kOk;
    }

   private:
    void solve_matrix(const Example& ex, const double* scores, double* z) {
        const bool transposed = ex.n_left > ex.n_right;
        const std::int64_t rows = transposed ? ex.n_right : ex.n_left, cols = transposed ? ex.n_left : ex.n_right;
        const std::int64_t ld = padded(cols);
        double* cost = cost_.data();
        auto cell = [&](std::int64_t left, std::int64_t right) {
            return transposed ? right * ld + left : left * ld + right;
        };
        std::fill(cost, cost + rows * ld, kFar);
        if (ex.full()) {
            const double* score = scores;
            for (std::int64_t left = 0; left < ex.n_left; ++left)
                for (std::int64_t right = 0; right < ex.n_right; ++right, ++score)
                    cost[cell(left, right)] = *score > 0 ? -*score : kFar;
        } else {
            for (std::int64_t e = 0; e < ex.n_edges; ++e)
                if (scores[e] > 0) cost[cell(ex.ends[2 * e], ex.ends[2 * e + 1])] = -scores[e];
        }
        std::fill(v_.begin(), v_.begin() + ld, 0.0);
        std::fill(row_mate_.begin(), row_mate_.begin() + rows, -1);
        std::fill(col_mate_.begin(), col_mate_.begin() + ld, -1);
        for (std::int64_t row = 0; row < rows; ++row) enter(row, ld);
        if (ex.full()) {
            for (std::int64_t j = 0; j < rows; ++j) {
                const std::int64_t k = row_mate_[j];
                if (k >= 0) z[transposed ? k * rows + j : j * cols + k] = 1;
            }
        } else {
            for (std::int64_t e = 0; e < ex.n_edges; ++e) {
                const std::int64_t left = ex.ends[2 * e], right = ex.ends[2 * e + 1];
                z[e] = row_mate_[transposed ? right : left] == (transposed ? left : right) ? 1 : 0;
            }
        }
    }

    // One row enters the matching on a matrix with one unit per node.
    void enter(std::int64_t row, std::int64_t ld) {
        double* key = key_.data();
        const double* cost = cost_.data() + row * ld;
        // Most rows find a free column at once.
        double best = 0;
        std::int64_t at = -1;
        for (std::int64_t k = 0; k < ld; ++k) {
            const double reached = cost[k] - v_[k];
            key[k] = reached;
            if (reached < best) {
                best = reached;
                at = k;
            }
        }
        u_[row] = best;
        if (at < 0) return;  // it gains nothing: the row stays out
        if (col_mate_[at] < 0) {
            match(row, at);
            return;
        }
        for (std::int64_t k = 0; k < ld; ++k) {
            key[k] -= best;
            parent_[k] = row;
        }
        std::int64_t n_rows = 0, n_cols = 0, out = row, now = at;
        tree_rows_[n_rows++] = row;
        double leave = -best, distance = 0;  // the cheapest way to end: row `out` stays out, at `leave`
        for (;;) {
            if (now < 0 || !(distance < leave)) {
                // `out` gives its column to the row before it on the path.
                distance = leave;
                reprice(n_cols, n_rows, distance);
                if (out == row) return;
                const std::int64_t column = row_mate_[out];
                row_mate_[out] = -1;
                augment(column, row);
                return;
            }
            if (col_mate_[now] < 0) {
                reprice(n_cols, n_rows, distance);
                augment(now, row);
                return;
            }
            const std::int64_t next = col_mate_[now];
            tree_cols_[n_cols] = now;
            done_[n_cols++] = distance;
            key[now] = -kFar;
            tree_rows_[n_rows++] = next;
            if (distance - u_[next] < leave) {
                leave = distance - u_[next];
                out = next;
            }
            relax_row(cost_.data() + next * ld, v_.data(), distance - u_[next], next, ld, key, parent_.data());
            now = -1;
            double nearest = kFar;
            for (std::int64_t k = 0; k < ld; ++k) {
                if (key[k] < nearest && key[k] > -kFar) {
                    nearest = key[k];
                    now = k;
                }
            }
            distance = std::max(nearest, distance);
        }
    }

    void match(std::int64_t row, std::int64_t column) {
        row_mate_[row] = column;
        col_mate_[column] = row;
    }

    // Tree row 0 is at distance 0, tree row i + 1 at that of tree column i, its mate.
    void reprice(std::int64_t n_cols, std::int64_t n_rows, double distance) {
        u_[tree_rows_[0]] += distance;
        for (std::int64_t i = 1; i < n_rows; ++i) u_[tree_rows_[i]] += distance - done_[i - 1];
        for (std::int64_t i = 0; i < n_cols; ++i) v_[tree_cols_[i]] -= distance - done_[i];
    }

    void augment(std::int64_t column, std::int64_t root) {
        for (;;) {
            const std::int64_t row = parent_[column], next = row_mate_[row];
            match(row, column);
            if (row == root) return;
            column = next;
        }
    }

    ListMatcher lists_;
    std::vector<double> cost_, u_, v_, key_, done_;
    std::vector<std::int64_t> parent_, row_mate_, col_mate_, tree_rows_, tree_cols_;
};

}  // namespace maxmargin::matching
