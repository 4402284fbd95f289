// Newton equations of a projection onto a local polytope (graph/projection.hpp), solved over the fractional nodes.
//
// The Hessian of (5) is D + A'PA. D couples the two ends of every edge by its positive parts, one block of 2K x 2K
// numbers per edge, and holds the shift. A sums the multipliers of the arcs that leave a node, and P takes the labels
// in the support of the node and removes their mean; it is 0 for a node whose support is one label. With q = P A d
//
//     (D + A'PA) d = g    <=>    d = D^-1 (g - A'q),    P (I + A D^-1 A') P q = P A D^-1 g,                    (7)
//
// a system over the nodes with two or more positive labels, one unknown for each such label but the last (q sums to 0).
// In training these are few. They are numbered along a breadth-first search from the far end of their component
// (Cuthill and McKee 1969) and the system is factored within the envelope of that order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "maxmargin/base/scratch.hpp"
#include "maxmargin/base/simd.hpp"
#include "maxmargin/graph/local_polytope.hpp"

namespace maxmargin::network {

// Rows of a symmetric positive definite matrix, lower triangle: row r holds columns first[r] .. r from begin[r] on.
struct Envelope {
    std::vector<double> entries;
    std::vector<std::int64_t> begin;
    std::vector<std::int32_t> first;

    double& at(std::int32_t row, std::int32_t column) { return entries[begin[row] + column - first[row]]; }
};

// The sum is kept in four parts, which the compiler makes vectors of.
static MM_CLONES double dot_product(const double* MM_RESTRICT x, const double* MM_RESTRICT y, std::int64_t n) {
    double sums[4] = {};
    std::int64_t p = 0;
    for (; p + 4 <= n; p += 4)
        for (int k = 0; k < 4; ++k) sums[k] += x[p + k] * y[p + k];
    double rest = 0.0;
    for (; p < n; ++p) rest += x[p] * y[p];
    return ((sums[0] + sums[2]) + (sums[1] + sums[3])) + rest;
}

// Replaces the matrix by its Cholesky factor, with the diagonal inverted, and x by the solution; false where it is not
// positive definite.
inline bool solve_within(Envelope& matrix, std::int32_t size, double* x) {
    for (std::int32_t r = 0; r < size; ++r) {
        const std::int32_t first = matrix.first[r];
        double* row = matrix.entries.data() + matrix.begin[r] - first;
        for (std::int32_t c = first; c < r; ++c) {
            const std::int32_t from = std::max(first, matrix.first[c]);
            const double* other = matrix.entries.data() + matrix.begin[c] - matrix.first[c];
            row[c] = (row[c] - dot_product(row + from, other + from, c - from)) * other[c];
        }
        const double left = row[r] - dot_product(row + first, row + first, r - first);
        if (!(left > 0.0)) return false;
        row[r] = 1.0 / std::sqrt(left);
        x[r] = (x[r] - dot_product(row + first, x + first, r - first)) * row[r];
    }
    for (std::int32_t r = size - 1; r >= 0; --r) {
        const std::int32_t first = matrix.first[r];
        const double* row = matrix.entries.data() + matrix.begin[r] - first;
        x[r] *= row[r];
        for (std::int32_t c = first; c < r; ++c) x[c] -= row[c] * x[r];
    }
    return true;
}

template <bool table>
class NodeSystem {
   public:
    void reserve(const Example<table>& x) {
        for (auto* v : {&base_, &last_, &place_, &queue_, &other_queue_}) at_least(*v, x.graph.nodes);
        const auto labels = static_cast<std::size_t>(x.labels);
        if (table) at_least(block_, 3 * labels * labels);
        at_least(spare_, table ? 4 * labels * labels : 3 * labels);
        at_least(counts_, 2 * labels);
        at_least(inverse_at_, x.graph.edges);
    }

    // direction = (D + A'PA)^-1 residual over the multipliers that are not held; false where that would take more than
    // `budget` multiplications, or rounding forbids it.
    bool solve(const Example<table>& x, const double* z, const double* t, const std::int8_t* held, double shift,
               const double* residual, double budget, double* direction) {
        number_nodes(x, z);
        if (!lay_out(x, budget)) return false;
        with_labels(x.labels, [&](const auto n) { fill(n, x, z, t, held, shift, residual, direction); });
        if (size_ == 0) return true;
        if (!solve_within(matrix_, size_, right_.data())) return false;
        finish(x, z, direction);
        return true;
    }

   private:
    // Unknowns of the nodes with several positive labels: base_[i] the first of node i, -1 for others.
    void number_nodes(const Example<table>& x, const double* z) {
        const std::int32_t n = x.labels;
        const cut::CutExample& g = x.graph;
        for (std::int32_t i = 0; i < g.nodes; ++i) {
            std::int32_t support = 0;
            for (std::int32_t k = 0; k < n; ++k)
                if (z[std::int64_t{i} * n + k] > 0.0) ++support, last_[i] = k;
            base_[i] = support > 1 ? -2 : -1;
            place_[i] = support - 1;
        }
        size_ = 0;
        count_ = 0;
        for (std::int32_t i = 0; i < g.nodes; ++i) {
            if (base_[i] != -2) continue;
            const std::int32_t end = search(g, i, -2, -3, other_queue_.data(), 0);
            const std::int32_t found = search(g, other_queue_[end - 1], -3, -4, queue_.data(), count_);
            for (; count_ < found; ++count_) {
                const std::int32_t node = queue_[count_];
                base_[node] = size_;
                size_ += place_[node];
            }
        }
    }

    // Breadth first from `root` over nodes marked `fresh`, which become `seen`; returns the end of the queue.
    std::int32_t search(const cut::CutExample& g, std::int32_t root, std::int32_t fresh, std::int32_t seen,
                        std::int32_t* queue, std::int32_t begin) {
        std::int32_t end = begin;
        queue[end++] = root;
        base_[root] = seen;
        for (std::int32_t at = begin; at < end; ++at)
            for (std::int32_t r = g.first_arc(queue[at]); r < g.first_arc(queue[at] + 1); ++r) {
                const std::int32_t other = g.ends[g.arcs[r] ^ 1];
                if (base_[other] != fresh) continue;
                base_[other] = seen;
                queue[end++] = other;
            }
        return end;
    }

    bool lay_out(const Example<table>& x, double budget) {
        const cut::CutExample& g = x.graph;
        at_least(matrix_.begin, size_);
        at_least(matrix_.first, size_);
        at_least(right_, size_);
        std::int64_t entries = 0;
        double work = 0.0;
        for (std::int32_t at = 0; at < count_; ++at) {
            const std::int32_t i = queue_[at];
            std::int32_t first = base_[i];
            for (std::int32_t r = g.first_arc(i); r < g.first_arc(i + 1); ++r) {
                const std::int32_t other = base_[g.ends[g.arcs[r] ^ 1]];
                if (other >= 0) first = std::min(first, other);
            }
            for (std::int32_t row = base_[i]; row < base_[i] + place_[i]; ++row) {
                matrix_.first[row] = first;
                matrix_.begin[row] = entries;
                const double width = row - first + 1;
                entries += row - first + 1;
                work += width * width;
            }
        }
        std::int64_t inverses = 0;
        const std::int64_t block = table ? 4 * std::int64_t{x.labels} * x.labels : 3 * std::int64_t{x.labels};
        for (std::int32_t e = 0; e < g.edges; ++e) {
            const bool needed = base_[g.ends[2 * e]] >= 0 || base_[g.ends[2 * e + 1]] >= 0;
            inverse_at_[e] = needed ? inverses : -1;
            inverses += needed ? block : 0;
        }
        if (table) work += static_cast<double>(inverses) * x.labels;
        if (!(work <= budget)) return false;
        at_least(matrix_.entries, entries);
        at_least(inverse_, inverses);
        std::fill_n(matrix_.entries.begin(), entries, 0.0);
        return true;
    }

    // Inverts the blocks of all edges, applies them to the residual and adds them to the system.
    template <class Count>
    void fill(const Count n, const Example<table>& x, const double* z, const double* t, const std::int8_t* held,
              double shift, const double* residual, double* direction) {
        const cut::CutExample& g = x.graph;
        for (std::int32_t at = 0; at < count_; ++at) {
            const std::int32_t i = queue_[at], base = base_[i];
            std::fill_n(right_.begin() + base, place_[i], 0.0);
            for (std::int32_t r = 0; r < place_[i]; ++r)
                for (std::int32_t c = 0; c <= r; ++c) matrix_.at(base + r, base + c) = r == c ? 2.0 : 1.0;
        }
        for (std::int32_t e = 0; e < g.edges; ++e) {
            const std::int64_t m = 2 * std::int64_t{e} * n;
            const double* te = t + e * x.edge_size();
            const bool needed = inverse_at_[e] >= 0;
            if constexpr (table) {
                if (!needed && solve_single(n, te, shift, residual + m, direction + m)) continue;
                double* inverse = needed ? inverse_.data() + inverse_at_[e] : spare_.data();
                invert_table(n, te, shift, inverse);
                for (std::int32_t p = 0; p < 2 * n; ++p) {
                    double sum = 0.0;
                    for (std::int32_t q = 0; q < 2 * n; ++q) sum += inverse[p * 2 * n + q] * residual[m + q];
                    direction[m + p] = sum;
                }
            } else {
                double* inverse = needed ? inverse_.data() + inverse_at_[e] : spare_.data();
                invert_pairs(n, te, held + m, shift, inverse);
                for (std::int32_t k = 0; k < n; ++k) {
                    const double *own = inverse + 3 * k, gi = residual[m + k], gj = residual[m + n + k];
                    direction[m + k] = own[0] * gi + own[1] * gj;
                    direction[m + n + k] = own[1] * gi + own[2] * gj;
                }
            }
            if (needed) add(n, x, e, z, direction);
        }
    }

    // Adds the inverted block of edge e to the matrix and the right side of (7).
    template <class Count>
    void add(const Count n, const Example<table>& x, std::int32_t e, const double* z, const double* direction) {
        const double* inverse = inverse_.data() + inverse_at_[e];
        std::int32_t ends[2] = {x.graph.ends[2 * e], x.graph.ends[2 * e + 1]};
        const auto entry = [&](int side, std::int32_t a, int other, std::int32_t b) {
            if constexpr (table) return inverse[(side * n + a) * 2 * n + other * n + b];
            return a == b ? inverse[3 * a + side + other] : 0.0;
        };
        for (int side = 0; side < 2; ++side) {
            const std::int32_t i = ends[side];
            if (base_[i] < 0) continue;
            const double* zi = z + std::int64_t{i} * n;
            const double* found = direction + (2 * std::int64_t{e} + side) * n;
            std::int32_t row = base_[i];
            for (std::int32_t a = 0; a < last_[i]; ++a) {
                if (!(zi[a] > 0.0)) continue;
                right_[row] += found[a] - found[last_[i]];
                for (int other = 0; other < 2; ++other) {
                    const std::int32_t j = ends[other];
                    if (base_[j] < 0 || base_[j] > base_[i]) continue;
                    const double* zj = z + std::int64_t{j} * n;
                    std::int32_t column = base_[j];
                    for (std::int32_t b = 0; b < last_[j] && column <= row; ++b) {
                        if (!(zj[b] > 0.0)) continue;
                        matrix_.at(row, column++) += entry(side, a, other, b) - entry(side, last_[i], other, b) -
                                                     entry(side, a, other, last_[j]) +
                                                     entry(side, last_[i], other, last_[j]);
                    }
                }
                ++row;
            }
        }
    }

    // direction -= D^-1 A'q, with q out of the unknowns found.
    void finish(const Example<table>& x, const double* z, double* direction) {
        const std::int32_t n = x.labels;
        const cut::CutExample& g = x.graph;
        const auto expand = [&](std::int32_t i, double* q) {
            std::fill_n(q, n, 0.0);
            if (base_[i] < 0) return;
            std::int32_t at = base_[i];
            for (std::int32_t k = 0; k < last_[i]; ++k)
                if (z[std::int64_t{i} * n + k] > 0.0) {
                    q[last_[i]] -= right_[at];
                    q[k] = right_[at++];
                }
        };
        double* q = counts_.data();
        for (std::int32_t e = 0; e < g.edges; ++e) {
            if (inverse_at_[e] < 0) continue;
            const double* inverse = inverse_.data() + inverse_at_[e];
            double* own = direction + 2 * std::int64_t{e} * n;
            expand(g.ends[2 * e], q);
            expand(g.ends[2 * e + 1], q + n);
            if constexpr (table) {
                for (std::int32_t p = 0; p < 2 * n; ++p) {
                    double sum = 0.0;
                    for (std::int32_t r = 0; r < 2 * n; ++r) sum += inverse[p * 2 * n + r] * q[r];
                    own[p] -= sum;
                }
            } else {
                for (std::int32_t k = 0; k < n; ++k) {
                    const double* block = inverse + 3 * k;
                    own[k] -= block[0] * q[k] + block[1] * q[n + k];
                    own[n + k] -= block[1] * q[k] + block[2] * q[n + k];
                }
            }
        }
    }

    // Blocks of one label each, (first, first), (first, second), (second, second); 0 for multipliers that are held.
    template <class Count>
    static void invert_pairs(const Count n, const double* te, const std::int8_t* held, double shift, double* inverse) {
        // Where both are free and the part is positive, [1 + shift, 1; 1, 1 + shift].
        const double none = 1.0 / shift, one = 1.0 / (1.0 + shift), both = 1.0 / (shift * (2.0 + shift));
        for (std::int32_t k = 0; k < n; ++k) {
            double* own = inverse + 3 * k;
            const bool part = te[k] > 0.0, coupled = part && !held[k] && !held[n + k];
            const double diagonal = coupled ? both * (1.0 + shift) : part ? one : none;
            own[0] = held[k] ? 0.0 : diagonal;
            own[1] = coupled ? -both : 0.0;
            own[2] = held[n + k] ? 0.0 : diagonal;
        }
    }

    // The common case, one positive part or none; false for others.
    template <class Count>
    static bool solve_single(const Count n, const double* te, double shift, const double* residual, double* direction) {
        std::int32_t active = 0, some = 0;
        for (std::int32_t c = 0; c < n * n; ++c)
            if (te[c] > 0.0) ++active, some = c;
        if (active > 1) return false;
        for (std::int32_t p = 0; p < 2 * n; ++p) direction[p] = residual[p] / shift;
        if (active == 0) return true;
        const std::int32_t a = some / n, b = n + some % n;
        const double scale = 1.0 / (shift * (2.0 + shift));
        direction[a] = scale * ((1.0 + shift) * residual[a] - residual[b]);
        direction[b] = scale * ((1.0 + shift) * residual[b] - residual[a]);
        return true;
    }

    // inverse, 2K x 2K: labels of the first end, then of the second.
    template <class Count>
    void invert_table(const Count n, const double* te, double shift, double* inverse) {
        const std::int32_t width = 2 * n;
        std::int32_t active = 0, some = 0;
        double* row_count = counts_.data();
        double* column_count = row_count + n;
        std::fill_n(row_count, 2 * n, shift);
        for (std::int32_t c = 0; c < n * n; ++c)
            if (te[c] > 0.0) {
                ++active, some = c;
                row_count[c / n] += 1.0;
                column_count[c % n] += 1.0;
            }
        std::fill_n(inverse, width * width, 0.0);
        if (active <= 1) {
            for (std::int32_t p = 0; p < width; ++p) inverse[p * (width + 1)] = 1.0 / shift;
            if (active == 0) return;
            const std::int32_t a = some / n, b = n + some % n;
            const double scale = 1.0 / (shift * (2.0 + shift));
            inverse[a * width + a] = inverse[b * width + b] = scale * (1.0 + shift);
            inverse[a * width + b] = inverse[b * width + a] = -scale;
            return;
        }
        // Eliminates the rows, factors what is left for the columns, and multiplies out its inverse.
        double* left = block_.data();     // n x n
        double* factor = left + n * n;    // inverse of the factor, lower triangle
        double* scaled = factor + n * n;  // R^-1 T
        for (std::int32_t a = 0; a < n; ++a)
            for (std::int32_t b = 0; b < n; ++b) scaled[a * n + b] = te[a * n + b] > 0.0 ? 1.0 / row_count[a] : 0.0;
        for (std::int32_t b = 0; b < n; ++b)
            for (std::int32_t c = 0; c <= b; ++c) {
                double sum = b == c ? column_count[b] : 0.0;
                for (std::int32_t a = 0; a < n; ++a)
                    if (te[a * n + b] > 0.0) sum -= scaled[a * n + c];
                left[b * n + c] = sum;
            }
        for (std::int32_t b = 0; b < n; ++b) {
            for (std::int32_t c = 0; c <= b; ++c) {
                double sum = left[b * n + c];
                for (std::int32_t k = 0; k < c; ++k) sum -= left[b * n + k] * left[c * n + k];
                left[b * n + c] = b == c ? std::sqrt(std::max(sum, 0.25 * shift)) : sum / left[c * n + c];
            }
            for (std::int32_t c = 0; c <= b; ++c) {
                double sum = b == c ? 1.0 : 0.0;
                for (std::int32_t k = c; k < b; ++k) sum -= left[b * n + k] * factor[k * n + c];
                factor[b * n + c] = sum / left[b * n + b];
            }
        }
        for (std::int32_t b = 0; b < n; ++b)
            for (std::int32_t c = 0; c <= b; ++c) {
                double sum = 0.0;
                for (std::int32_t k = b; k < n; ++k) sum += factor[k * n + b] * factor[k * n + c];
                inverse[(n + b) * width + n + c] = inverse[(n + c) * width + n + b] = sum;
            }
        for (std::int32_t a = 0; a < n; ++a)
            for (std::int32_t b = 0; b < n; ++b) {
                double sum = 0.0;
                for (std::int32_t k = 0; k < n; ++k) sum -= scaled[a * n + k] * inverse[(n + k) * width + n + b];
                inverse[a * width + n + b] = inverse[(n + b) * width + a] = sum;
            }
        for (std::int32_t a = 0; a < n; ++a)
            for (std::int32_t c = 0; c <= a; ++c) {
                double sum = a == c ? 1.0 / row_count[a] : 0.0;
                for (std::int32_t k = 0; k < n; ++k) sum -= inverse[a * width + n + k] * scaled[c * n + k];
                inverse[a * width + c] = inverse[c * width + a] = sum;
            }
    }

    std::vector<std::int32_t> base_, last_, place_, queue_, other_queue_;
    std::vector<std::int64_t> inverse_at_;
    std::vector<double> inverse_, spare_, block_, counts_, right_;
    Envelope matrix_;
    std::int32_t size_ = 0, count_ = 0;
};

}  // namespace maxmargin::network
