// Marginals and the log-partition function of p(tree) ~ exp(sum of its potentials), by the matrix-tree theorem (Tutte
// 1948; Koo et al. 2007; Smith and Smith 2007; McDonald and Satta 2007): Z is the determinant of the Laplacian of the
// arc weights exp(potential).
//
// Differences of the Laplacian's entries would lose all digits where a few cycles weigh much more than every tree. So
// the elimination works on the arc weights themselves, without a subtraction (Grassmann, Taksar and Heyman 1985; Alfa,
// Xue and Ye 2002): token k, whose arcs from nodes that are left weigh p_k in all, leaves the graph, and the paths
// through it become arcs,
//     w(h, m) += w(h, k) w(k, m) / p_k,   h != m,        Z = product of p_k.
// All is accurate to rounding whatever the potentials. Their derivatives come in reverse order; d log Z / d w(h, k) is
//     (1 + a(h) - sum_h' q(h') a(h')) / p_k,   q(h) = w(h, k) / p_k,   a(h) = sum_m g(h, m) w(k, m),
// where g holds the derivatives for the graph without k, and those of w(k, m) are sum_h q(h) g(h, m).
//
// With a single root the tokens alone are eliminated but for one, token 1: this is the stationary distribution of a
// Markov chain (the same authors), and by the Markov chain tree theorem (Leighton and Rivest 1983) the trees below
// token j weigh product of p_k times t_j, where
//     t_1 = 1,   t_k = sum_{m < k} t_m w(k, m) / p_k;   Z = product of p_k times sum_j w(0, j) t_j.
//
// Weights are divided by the largest of each modifier. Where these may still underflow, numbers with exponents of 64
// bits (wide.hpp) do the same, at some ten times the cost.
#pragma once

#include <cmath>
#include <utility>

#include "maxmargin/arborescence/argmax.hpp"
#include "maxmargin/arborescence/wide.hpp"
#include "maxmargin/base/simd_exp.hpp"

namespace maxmargin::arborescence {

namespace dense {

// y += a x
MM_CLONES inline void add_multiple(double a, const double* MM_RESTRICT x, double* MM_RESTRICT y, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) y[j] += a * x[j];
}

// y += a x, and returns the inner product of x and z
MM_CLONES inline double add_multiple_dot(double a, const double* MM_RESTRICT x, double* MM_RESTRICT y,
                                         const double* MM_RESTRICT z, std::int64_t n) {
    double sums[8] = {};
    std::int64_t j = 0;
    for (; j + 8 <= n; j += 8)
        for (int lane = 0; lane < 8; ++lane) {
            y[j + lane] += a * x[j + lane];
            sums[lane] += x[j + lane] * z[j + lane];
        }
    for (; j < n; ++j) {
        y[j] += a * x[j];
        sums[0] += x[j] * z[j];
    }
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

inline void add_multiple(const Wide& a, const Wide* x, Wide* y, std::int64_t n) {
    if (!a.positive()) return;
    for (std::int64_t j = 0; j < n; ++j) y[j] += a * x[j];
}
inline Wide add_multiple_dot(const Wide& a, const Wide* x, Wide* y, const Wide* z, std::int64_t n) {
    Wide sum;
    for (std::int64_t j = 0; j < n; ++j) {
        y[j] += a * x[j];
        sum += x[j] * z[j];
    }
    return sum;
}

// to = exp(x - most) for x <= most; returns their sum.
template <class Vec>
MM_INLINE double exp_less_at(const double* MM_RESTRICT x, double most, double* MM_RESTRICT to, std::int64_t n) {
    constexpr std::int64_t width = lanes<Vec>;
    Vec sum{};
    std::int64_t j = 0;
    for (; j + width <= n; j += width) {
        const Vec p = exp_negative<Vec>(load<Vec>(x + j) - most);
        store(to + j, p);
        sum += p;
    }
    if (j < n) {
        Vec rest = Vec{} + NEG_INF;
        for (std::int64_t lane = 0; lane < n - j; ++lane) rest[lane] = x[j + lane] - most;
        const Vec p = exp_negative<Vec>(rest);
        for (std::int64_t lane = 0; lane < n - j; ++lane) to[j + lane] = p[lane];
        sum += p;
    }
    return total(sum);
}
MM_LEVELS(exp_less)

inline bool is_positive(double x) { return x > 0.0; }
inline bool is_positive(const Wide& x) { return x.positive(); }
inline double log_of(double x) { return std::log(x); }
inline double log_of(const Wide& x) { return x.log(); }
template <class Number>
Number exp_of(double x) {
    if constexpr (std::is_same_v<Number, Wide>) return Wide::exp(x);
    else return std::exp(x);
}

}  // namespace dense

template <class Number>
class MatrixTree {
   public:
    // The matrix of weights w(h, m) of n tokens, zero, to be filled by at(h, m); node i is a token or 0 for the root.
    void open(std::int64_t n, std::int64_t n_arcs) {
        n_ = n;
        arcs.resize(static_cast<std::size_t>(n_arcs));
        stride_ = stride_of(n);
        const auto size = static_cast<std::size_t>((n + 1) * stride_);
        weights_.assign(size, Number());
        slopes_.assign(size, Number());
        for (auto* numbers : {&pivot_, &tree_, &tree_slope_, &a_})
            numbers->assign(static_cast<std::size_t>(n) + 1, Number());
        place_.resize(static_cast<std::size_t>(n) + 1);
        for (std::int64_t i = 0; i <= n; ++i) place_[i] = i;
    }
    Number& at(std::int64_t h, std::int64_t m) { return weights_[h * stride_ + m]; }

    // log Z, or -inf if it is zero or below all numbers. `lost` counts the logarithms of pivots below 1: where they are
    // large, what has underflowed may have mattered.
    double run(bool single_root, double& lost) {
        first_ = single_root ? 1 : 0;
        double sum = 0.0;
        lost = 0.0;
        const auto count = [&](double log) {
            sum += log;
            lost += std::min(log, 0.0);
        };
        bool closed = false;  // token 1 has no arc from another one that is left
        for (std::int64_t k = n_; k > first_; --k) {
            Number p = column(k);
            if (!dense::is_positive(p)) {
                if (!single_root || closed) return NEG_INF;
                exchange(k);
                closed = true;
                p = column(k);
                if (!dense::is_positive(p)) return NEG_INF;
            }
            pivot_[k] = p;
            for (std::int64_t h = first_; h < k; ++h) {
                at(h, k) = at(h, k) / p;
                dense::add_multiple(at(h, k), &at(k, 1), &at(h, 1), k - 1);
            }
            count(dense::log_of(p));
        }
        if (single_root) {
            tree_[1] = 1.0;
            total_ = at(0, 1);
            for (std::int64_t k = 2; k <= n_; ++k) {
                Number flow = Number();
                for (std::int64_t m = 1; m < k; ++m) flow += tree_[m] * at(k, m);
                tree_[k] = flow / pivot_[k];
                total_ += at(0, k) * tree_[k];
            }
            if (!dense::is_positive(total_)) return NEG_INF;
            count(dense::log_of(total_));
        }
        return sum;
    }

    // After run: the derivatives of log Z by the weights, where slope finds them.
    void differentiate() {
        std::int64_t begin = first_ + 1;
        if (first_ == 1) {
            for (std::int64_t k = 1; k <= n_; ++k) {
                slope_at(0, k) = tree_[k] / total_;
                tree_slope_[k] = at(0, k) / total_;
            }
            for (std::int64_t k = n_; k >= 2; --k)
                dense::add_multiple(tree_slope_[k] / pivot_[k], &at(k, 1), &tree_slope_[1], k - 1);
        }
        for (std::int64_t k = begin; k <= n_; ++k) {
            Number base = 1.0, taken = Number();
            if (first_ == 1) {
                base = base - tree_slope_[k] * tree_[k];
                dense::add_multiple(tree_slope_[k] / pivot_[k], &tree_[1], &slope_at(k, 1), k - 1);
            }
            for (std::int64_t h = first_; h < k; ++h) {
                a_[h] = dense::add_multiple_dot(at(h, k), &slope_at(h, 1), &slope_at(k, 1), &at(k, 1), k - 1);
                taken += at(h, k) * a_[h];
            }
            for (std::int64_t h = first_; h < k; ++h) {
                const Number sum = (base + a_[h]) - taken;
                slope_at(h, k) = dense::is_positive(sum) ? sum / pivot_[k] : Number();
            }
        }
    }
    const Number& slope(std::int64_t h, std::int64_t m) const { return slopes_[place_[h] * stride_ + place_[m]]; }

    std::vector<Number> arcs;  // the weights of the candidates, for the caller

   private:
    Number& slope_at(std::int64_t h, std::int64_t m) { return slopes_[h * stride_ + m]; }

    Number column(std::int64_t k) const {
        Number sum = Number();
        for (std::int64_t h = first_; h < k; ++h) sum += weights_[h * stride_ + k];
        return sum;
    }

    // Exchanges token 1 with the one at place k.
    void exchange(std::int64_t k) {
        for (std::int64_t i = 0; i <= n_; ++i) std::swap(at(i, 1), at(i, k));
        for (std::int64_t i = 0; i <= n_; ++i) std::swap(at(1, i), at(k, i));
        std::swap(place_[1], place_[k]);
    }

    std::int64_t n_ = 0, stride_ = 8, first_ = 0;
    std::vector<Number> weights_, slopes_;  // w, after run q(h) above a pivot; their derivatives, diagonals without use
    std::vector<Number> pivot_, tree_, tree_slope_, a_;
    std::vector<std::int64_t> place_;  // of nodes in the matrix
    Number total_ = Number();
};

// One example at a time, in memory of one thread. The labels of an arc are summed first: with the potential log sum_l
// exp(potential of label l) it is an arc without labels, whose marginal is shared out among them.
class Marginals {
   public:
    Status run(const Example& ex, const double* potentials, double* z, double& value) {
        widest_ = simd::lanes_in_use();
        if (simd::refused(widest_, potentials, ex.n_parts())) return Status::nonfinite;
        const double* arcs = potentials;
        double* shares = z;
        if (ex.n_labels > 1) {
            at_least(arcs_, static_cast<std::size_t>(ex.n_arcs));
            at_least(shares_, static_cast<std::size_t>(ex.n_arcs));
            sum_labels(ex, potentials, z);
            arcs = arcs_.data();
            shares = shares_.data();
        }
        scale(ex, arcs);
        // Numbers below 1e-308 are lost; with all pivots together above 1e-260 they cannot matter.
        constexpr double most_lost = -600.0;
        double lost = 0.0;
        value = solve(narrow_, ex, arcs, shares, lost);
        if (!(lost >= most_lost) || !std::isfinite(value)) value = solve(wide_, ex, arcs, shares, lost);
        if (value == NEG_INF) return Status::absent;
        if (!std::isfinite(value)) return Status::nonfinite;
        for (std::int64_t a = 0; ex.n_labels > 1 && a < ex.n_arcs; ++a)
            for (std::int64_t p = a * ex.n_labels; p < (a + 1) * ex.n_labels; ++p) z[p] *= shares[a];
        return Status::ok;
    }

   private:
    void sum_labels(const Example& ex, const double* potentials, double* z) {
        for (std::int64_t a = 0; a < ex.n_arcs; ++a, potentials += ex.n_labels, z += ex.n_labels) {
            const double most = dense::maximum(widest_, potentials, ex.n_labels);
            arcs_[a] = NEG_INF;
            if (most == NEG_INF) continue;  // z is zero
            const double sum = dense::exp_less(widest_, potentials, most, z, ex.n_labels);
            arcs_[a] = most + std::log(sum);
            for (std::int64_t l = 0; l < ex.n_labels; ++l) z[l] /= sum;
        }
    }

    // What is taken off the potentials of each modifier, and with a single root off those of arcs from the root
    // besides.
    void scale(const Example& ex, const double* arcs) {
        shift_.assign(static_cast<std::size_t>(ex.n_tokens) + 1, NEG_INF);
        ex.each_modifier([&](std::int64_t m, std::int64_t first, std::int64_t last, bool from_root) {
            const std::int64_t begin = first + (from_root && ex.single_root);
            if (begin < last) shift_[m] = dense::maximum(widest_, arcs + begin, last - begin);
            if (shift_[m] == NEG_INF) shift_[m] = 0.0;
            if (from_root && ex.single_root) shift_[0] = std::max(shift_[0], arcs[first] - shift_[m]);
        });
        if (shift_[0] == NEG_INF) shift_[0] = 0.0;
    }

    // Marginals of arcs without labels.
    template <class Number>
    double solve(MatrixTree<Number>& tree, const Example& ex, const double* arcs, double* z, double& lost) {
        tree.open(ex.n_tokens, ex.n_arcs);
        ex.each_modifier([&](std::int64_t m, std::int64_t first, std::int64_t last, bool from_root) {
            if (from_root) tree.arcs[first] = dense::exp_of<Number>(arcs[first] - shift_[m] - shift_[0]);
            for (std::int64_t a = first + from_root; a < last; ++a)
                if constexpr (std::is_same_v<Number, Wide>) tree.arcs[a] = Wide::exp(arcs[a] - shift_[m]);
            if constexpr (std::is_same_v<Number, double>)
                dense::exp_less(widest_, arcs + first + from_root, shift_[m], tree.arcs.data() + first + from_root,
                                last - first - from_root);
        });
        ex.each_arc(
            [&](std::int64_t h, std::int64_t m, std::int64_t part) { tree.at(h, m) = tree.arcs[part / ex.n_labels]; });
        double value = tree.run(ex.single_root, lost);
        if (!std::isfinite(value)) return value;
        tree.differentiate();
        ex.each_modifier([&](std::int64_t m, std::int64_t first, std::int64_t last, bool) {
            double total = 0.0;
            for (std::int64_t a = first; a < last; ++a) {
                z[a] = static_cast<double>(tree.arcs[a] * tree.slope(ex.head(a, m), m));
                total += z[a];
            }
            for (std::int64_t a = first; a < last; ++a) z[a] /= total;
        });
        for (const double x : shift_) value += x;
        return value;
    }

    int widest_ = 2;
    std::vector<double> arcs_, shares_;  // potentials and marginals of arcs that have labels
    std::vector<double> shift_;
    MatrixTree<double> narrow_;
    MatrixTree<Wide> wide_;
};

// z must be zero on entry.
inline void marginals(const Batch& batch, std::span<const double> potentials, std::span<double> z,
                      std::span<double> value, std::span<std::int8_t> status, int threads) {
    ScratchLease<Marginals> scratch(threads, [](Marginals&) {});
    parallel_each(batch.size(), 1, threads, [&](int thread, std::int64_t i) {
        const std::int64_t at = batch.begin(i);
        const Status found = scratch[thread].run(batch[i], potentials.data() + at, z.data() + at, value[i]);
        if (found != Status::ok) {
            std::fill_n(z.data() + at, batch[i].n_parts(), 0.0);
            value[i] = no_value(found);
        }
        status[i] = static_cast<std::int8_t>(found);
    });
}

}  // namespace maxmargin::arborescence
