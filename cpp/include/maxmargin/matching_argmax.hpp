// Maximum-weight bipartite b-matching: max sum_e w_e z_e, z in {0,1}, at most r_j edges at row j, s_k at column k.
//
// Only edges of positive weight matter; their cost is c = -w < 0, and a row may stay out at cost 0. Rows enter one unit
// of capacity at a time along a shortest path in reduced costs c_jk - u_j - v_k (Dijkstra), which ends at a column
// with room or at a row that gives up one edge. Potentials: u_j <= 0, v_k <= 0, v_k = 0 while column k has room.
// Cost per example: O(units * (tree edges + tree nodes * columns)) on matrices (Jonker and Volgenant 1987), with a
// heap, O(units * edges log edges), on lists of edges.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "maxmargin/matching.hpp"
#include "maxmargin/simd.hpp"

namespace maxmargin::matching {

constexpr double kFar = std::numeric_limits<double>::infinity();

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
    explicit Matcher(const Batch& batch) {
        std::int64_t cells = 0, small_side = 0, large_side = 0;
        for (std::int64_t i = 0; i < batch.size(); ++i) {
            const Example ex = example(batch, i);
            const std::int64_t small = std::min(ex.n_left, ex.n_right), large = std::max(ex.n_left, ex.n_right);
            if (as_matrix(ex)) cells = std::max(cells, small * padded(large));
            small_side = std::max(small_side, small);
            large_side = std::max(large_side, padded(large));
        }
        cost_.resize(cells);
        u_.resize(small_side);
        v_.resize(large_side);
        key_.resize(large_side);
        parent_.resize(large_side);
        row_mate_.resize(small_side);
        col_mate_.resize(large_side);
        tree_rows_.resize(small_side + 1);
        tree_cols_.resize(large_side);
        done_.resize(large_side);
    }

    Status solve(const Example& ex, const double* scores, double* z, double* value) {
        std::fill(z, z + ex.n_edges, 0.0);
        *value = 0;
        if (!finite(scores, ex.n_edges)) return kNonfinite;
        std::int64_t most = 0, least = 1;
        for (std::int64_t j = 0; j < ex.n_left; ++j) {
            most = std::max(most, ex.left_capacity[j]);
            least = std::min(least, ex.left_capacity[j]);
        }
        for (std::int64_t k = 0; k < ex.n_right; ++k) {
            most = std::max(most, ex.right_capacity[k]);
            least = std::min(least, ex.right_capacity[k]);
        }
        if (most <= 1 && least == 1 && as_matrix(ex)) {
            solve_matrix(ex, scores, z);
        } else {
            solve_lists(ex, scores, z);
        }
        for (std::int64_t e = 0; e < ex.n_edges; ++e) *value += z[e] > 0 ? scores[e] : 0;
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

    // Lists of edges and any capacities. Nodes: rows 0:rows, columns rows:rows+cols; pot = -u for rows, v for columns,
    // so that the reduced cost of edge (j, k) is c + pot_j - pot_k, and >= 0 unless it is taken, then <= 0.
    void solve_lists(const Example& ex, const double* scores, double* z) {
        const std::int64_t rows = ex.n_left, cols = ex.n_right, nodes = rows + cols;
        prepare_lists(ex, scores);
        pot_.assign(nodes, 0.0);
        dist_.assign(nodes, kFar);
        via_.assign(nodes, -1);
        final_.assign(nodes, 0);
        room_.resize(cols);
        for (std::int64_t k = 0; k < cols; ++k) room_[k] = ex.right_capacity[k];
        for (std::int64_t row = 0; row < rows; ++row) {
            // Before its first unit nothing leads to the row: any price that makes its edges dual feasible will do.
            double best = 0;
            for (std::int64_t s = row_start_[row]; s < row_start_[row + 1]; ++s)
                best = std::min(best, cost_of_[s] - pot_[rows + head_[s]]);
            pot_[row] = -best;
            for (std::int64_t unit = 0; unit < ex.left_capacity[row] && unit < row_start_[row + 1] - row_start_[row];
                 ++unit) {
                if (!send(row, rows)) break;
            }
        }
        for (std::int64_t s = 0; s < row_start_[rows]; ++s)
            if (taken_[s]) z[edge_[s]] = 1;
    }

    void prepare_lists(const Example& ex, const double* scores) {
        const std::int64_t rows = ex.n_left, cols = ex.n_right;
        row_start_.assign(rows + 1, 0);
        col_start_.assign(cols + 1, 0);
        head_.clear();
        tail_.clear();
        edge_.clear();
        cost_of_.clear();
        for (std::int64_t e = 0; e < ex.n_edges; ++e) {
            const std::int64_t left = ex.ends ? ex.ends[2 * e] : e / cols;
            const std::int64_t right = ex.ends ? ex.ends[2 * e + 1] : e % cols;
            if (!(scores[e] > 0) || ex.left_capacity[left] == 0 || ex.right_capacity[right] == 0) continue;
            head_.push_back(right);
            tail_.push_back(left);
            edge_.push_back(e);
            cost_of_.push_back(-scores[e]);
            ++row_start_[left + 1];
            ++col_start_[right + 1];
        }
        for (std::int64_t j = 0; j < rows; ++j) row_start_[j + 1] += row_start_[j];
        for (std::int64_t k = 0; k < cols; ++k) col_start_[k + 1] += col_start_[k];
        const std::int64_t m = row_start_[rows];
        taken_.assign(m, 0);
        by_col_.resize(m);
        for (std::int64_t s = 0; s < m; ++s) by_col_[col_start_[head_[s]]++] = s;
        for (std::int64_t k = cols; k > 0; --k) col_start_[k] = col_start_[k - 1];
        col_start_[0] = 0;
    }

    void reach(std::int64_t node, double distance, std::int64_t edge) {
        if (!(distance < dist_[node])) return;
        if (dist_[node] == kFar) touched_.push_back(node);
        dist_[node] = distance;
        via_[node] = edge;
        heap_.emplace_back(distance, node);
        std::push_heap(heap_.begin(), heap_.end(), std::greater<>{});
    }

    // Sends one more unit from `row`; false if staying out is as good, and then it is for all further units.
    bool send(std::int64_t row, std::int64_t rows) {
        touched_.clear();
        heap_.clear();
        reach(row, 0, -1);
        double end_distance = kFar;
        std::int64_t end = -1;
        while (!heap_.empty()) {
            std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
            const auto [distance, node] = heap_.back();
            heap_.pop_back();
            if (final_[node] || distance > dist_[node]) continue;
            if (distance >= end_distance) break;
            final_[node] = 1;
            if (node < rows) {
                // Staying out costs 0: reduced by the price of the row.
                if (distance + pot_[node] < end_distance) {
                    end_distance = distance + pot_[node];
                    end = node;
                }
                for (std::int64_t s = row_start_[node]; s < row_start_[node + 1]; ++s) {
                    if (taken_[s]) continue;
                    const std::int64_t to = rows + head_[s];
                    if (!final_[to])
                        reach(to, distance + std::max(0.0, cost_of_[s] + pot_[node] - pot_[to]), s);
                }
            } else {
                const std::int64_t k = node - rows;
                if (room_[k] > 0 && distance + pot_[node] < end_distance) {
                    end_distance = distance + pot_[node];
                    end = node;
                }
                for (std::int64_t i = col_start_[k]; i < col_start_[k + 1]; ++i) {
                    const std::int64_t s = by_col_[i], to = tail_[s];
                    if (taken_[s] && !final_[to])
                        reach(to, distance + std::max(0.0, pot_[node] - cost_of_[s] - pot_[to]), s);
                }
            }
        }
        for (const std::int64_t node : touched_) {
            if (dist_[node] < end_distance) pot_[node] += dist_[node] - end_distance;
        }
        const bool sent = end != row;
        if (sent) {
            if (end >= rows) --room_[end - rows];
            for (std::int64_t node = end; node != row;) {
                const std::int64_t s = via_[node];
                taken_[s] ^= 1;
                node = node < rows ? rows + head_[s] : tail_[s];
            }
        }
        for (const std::int64_t node : touched_) {
            dist_[node] = kFar;
            final_[node] = 0;
        }
        return sent;
    }

    std::vector<double> cost_, u_, v_, key_, done_, cost_of_, pot_, dist_;
    std::vector<std::int64_t> parent_, row_mate_, col_mate_, tree_rows_, tree_cols_;
    std::vector<std::int64_t> row_start_, col_start_, head_, tail_, edge_, by_col_, via_, room_, touched_;
    std::vector<std::uint8_t> taken_, final_;
    std::vector<std::pair<double, std::int64_t>> heap_;
};

}  // namespace maxmargin::matching
