// Marginals of p(output) ~ exp(sum of its potentials) for a deduction system, in logs.
//
// The pass over the items keeps log-sums over the derivations of each. The pass back from the goal divides the
// probability of an item among its ways by their shares, and hands it on to their antecedents: so marginals agree with
// each other to rounding, whatever the potentials.
#pragma once

#include <cmath>

#include "maxmargin/base/scratch.hpp"
#include "maxmargin/base/simd_exp.hpp"
#include "maxmargin/deduction/system.hpp"

namespace maxmargin::deduction {

// Makes logs of weights their shares, and returns the log of their sum; `most` is the largest of them, finite.
template <class Vec>
MM_INLINE double divide_at(double* MM_RESTRICT share, std::int64_t n, double most) {
    using namespace simd;
    constexpr std::int64_t width = lanes<Vec>;
    if (n == 1) {
        share[0] = 1.0;
        return most;
    }
    double total = 0.0;
    std::int64_t j = 0;
    for (; j + width <= n; j += width) {
        const Vec p = exp_negative<Vec>(load<Vec>(share + j) - most);
        store(share + j, p);
        total += simd::total(p);
    }
    if (j < n) {
        Vec rest = Vec{} + NEG_INF;
        for (std::int64_t k = j; k < n; ++k) rest[k - j] = share[k] - most;
        rest = exp_negative<Vec>(rest);
        for (std::int64_t k = j; k < n; ++k) share[k] = rest[k - j];
        total += simd::total(rest);
    }
    const double inverse = 1.0 / total;
    for (std::int64_t k = 0; k < n; ++k) share[k] *= inverse;
    return most + std::log(total);
}
MM_LEVELS(divide)

template <class System>
class InsideOutside {
   public:
    // z has one entry per part of the example, zero on entry.
    Status run(const System& system, const double* potentials, double* z, double& value) {
        const int widest = simd::lanes_in_use();
        if (simd::refused(widest, potentials, system.n_parts())) return Status::nonfinite;
        const std::int64_t n = system.n_items();
        at_least(inside_, static_cast<std::size_t>(n));
        at_least(first_, static_cast<std::size_t>(n));
        flow_.assign(static_cast<std::size_t>(n), 0.0);
        share_.clear();
        kept_ = 0;
        std::size_t end = 0;  // of the shares that are kept
        for (std::int64_t item = 0; item < n; ++item) {
            share_.resize(end);
            const double most = weigh(system, potentials, item);
            if (most == std::numeric_limits<double>::infinity()) return Status::nonfinite;
            inside_[item] = most == NEG_INF ? most : divide(widest, share_.data() + end, used(end), most);
            inside_[item] += at(potentials, system.part_of(item));
            if (kept_ == item && share_.size() <= MOST_KEPT) {
                first_[kept_++] = end;
                end = share_.size();
            }
        }
        value = inside_[n - 1];
        if (value == NEG_INF) return Status::absent;
        if (!std::isfinite(value)) return Status::nonfinite;
        flow_[n - 1] = 1.0;
        for (std::int64_t item = n - 1; item >= 0; --item) {
            const double flow = flow_[item];
            if (flow == 0.0) continue;
            if (item >= kept_) {
                share_.resize(end);
                divide(widest, share_.data() + end, used(end), weigh(system, potentials, item));
            }
            const std::int64_t own = system.part_of(item);
            if (own != NONE) z[own] += flow;
            const double* share = share_.data() + (item < kept_ ? first_[item] : end);
            system.ways(item, [&](std::int64_t left, std::int64_t right, std::int64_t part) {
                const double passed = flow * *share++;
                if (left != NONE) flow_[left] += passed;
                if (right != NONE) flow_[right] += passed;
                if (part != NONE) z[part] += passed;
            });
        }
        return Status::ok;
    }

   private:
    static constexpr std::size_t MOST_KEPT = std::size_t{1} << 20;  // shares; those of later items are found again

    // Appends the logs of the weights of an item's ways, and returns the largest.
    double weigh(const System& system, const double* potentials, std::int64_t item) {
        const double* inside = inside_.data();
        double most = NEG_INF;
        system.ways(item, [&](std::int64_t left, std::int64_t right, std::int64_t part) {
            const double sum = at(inside, left) + at(inside, right) + at(potentials, part);
            most = sum > most ? sum : most;
            share_.push_back(sum);
        });
        return most;
    }

    std::int64_t used(std::size_t begin) const { return static_cast<std::int64_t>(share_.size() - begin); }

    std::vector<double> inside_, flow_, share_;
    std::vector<std::size_t> first_;  // where the shares of each of the first items begin
    std::int64_t kept_ = 0;           // items whose shares are kept from the first pass
};

}  // namespace maxmargin::deduction
