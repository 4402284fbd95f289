// Minimum error rate training on lists: ascent of corpus quality along coordinates and random directions (Och 2003).
//
// All restarts share a pool of directions: the coordinates, then the random ones. The slopes of all hypotheses along
// each of them are computed once; scores of the current weights are kept and changed by each step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "maxmargin/base/envelope.hpp"
#include "maxmargin/base/parallel.hpp"
#include "maxmargin/base/simd.hpp"
#include "maxmargin/reranking/line_search.hpp"
#include "maxmargin/reranking/quality.hpp"

namespace maxmargin::reranking {

MM_CLONES inline void add_scaled(double factor, const double* MM_RESTRICT from, double* MM_RESTRICT to,
                                 std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) to[i] += factor * from[i];
}

struct AscentSettings {
    std::int64_t max_sweeps;  // over the pool
    std::int64_t window;      // of best_interval
    double min_gain;          // a step must gain more quality than this
};

struct Ascent {
    double quality;  // of the hypotheses that the weights choose
    std::int64_t searches;
};

// Lists ready for line searches. Hypotheses whose features equal those of an earlier one of their list are dropped, as
// the earlier one is chosen whatever the weights are.
class MertLists {
   public:
    // rows: shape (n, d); statistics: shape (n, k); directions: shape (random, d), beside the coordinates.
    MertLists(std::span<const std::int64_t> offsets, std::span<const double> rows, std::int64_t d,
              std::span<const double> statistics, const Quality& quality, std::span<const double> directions,
              int threads)
        : d_(d), n_random_(d > 0 ? static_cast<std::int64_t>(directions.size()) / d : 0), quality_(quality) {
        keep_different(offsets, rows, threads);
        n_ = offsets_.back();
        directions_.assign(static_cast<std::size_t>(d * d), 0.0);
        for (std::int64_t k = 0; k < d; ++k) directions_[k * d + k] = 1.0;
        directions_.insert(directions_.end(), directions.begin(), directions.end());
        slopes_.assign(static_cast<std::size_t>(pool_size() * n_), 0.0);
        const std::int64_t width = quality.n_statistics;
        statistics_.resize(static_cast<std::size_t>(n_ * width));
        parallel_blocks(n_, 1024, threads, [&](int, std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) {
                const double* row = rows.data() + kept_[i] * d_;
                for (std::int64_t k = 0; k < d_; ++k) slopes_[k * n_ + i] = row[k];
                std::copy_n(statistics.data() + kept_[i] * width, width, statistics_.data() + i * width);
            }
            for (std::int64_t j = 0; j < n_random_; ++j)
                combine(direction(d_ + j), slopes_.data() + (d_ + j) * n_, begin, end);
        });
        extremes_.resize(static_cast<std::size_t>(pool_size() * n_lists()));
        parallel_each(n_lists(), 16, threads, [&](int, std::int64_t i) {
            for (std::int64_t j = 0; j < pool_size(); ++j)
                extremes_[j * n_lists() + i] =
                    extremes(slopes_.data() + j * n_ + offsets_[i], offsets_[i + 1] - offsets_[i]);
        });
    }

    std::int64_t n_features() const { return d_; }
    std::int64_t n_lists() const { return static_cast<std::int64_t>(offsets_.size()) - 1; }

    // From the weights to a local optimum of the pool. Every direction is searched in turn, until none of them gains.
    Ascent ascend(double* weights, const std::int8_t* signs, const AscentSettings& settings) const {
        Work work(*this);
        refresh(weights, work);
        const std::vector<double> start(weights, weights + d_);
        const double before = realized(work);
        std::int64_t searches = 0, idle = 0;
        for (std::int64_t sweep = 0; sweep < settings.max_sweeps && idle < pool_size(); ++sweep) {
            for (std::int64_t j = 0; j < pool_size() && idle < pool_size(); ++j, ++searches) {
                const GammaRange range = gamma_range(weights, direction(j), signs, d_);
                const Interval best = search(j, range, settings.window, work);
                ++idle;
                if (!(best.value > best.here + settings.min_gain) || best.gamma == 0.0) continue;
                move(weights, signs, j, best.gamma);
                add_scaled(best.gamma, slopes_.data() + j * n_, work.scores.data(), n_);
                idle = 0;
            }
        }
        refresh(weights, work);
        const double after = realized(work);
        if (after >= before) return {after, searches};
        // Rounding, or ties at the start, have promised what is not there.
        std::copy(start.begin(), start.end(), weights);
        return {before, searches};
    }

    // One search along a direction of the pool, for weights outside of an ascent.
    Interval search_once(const double* weights, const std::int8_t* signs, std::int64_t j, std::int64_t window) const {
        Work work(*this);
        refresh(weights, work);
        return search(j, gamma_range(weights, direction(j), signs, d_), window, work);
    }

    std::int64_t pool_size() const { return d_ + n_random_; }

   private:
    // A hypothesis that is the best of its list from some gamma on.
    struct Run {
        double from;
        const double* statistics;
    };

    struct Work {
        explicit Work(const MertLists& lists)
            : scores(static_cast<std::size_t>(lists.n_)), sweep(lists.quality_), lanes(simd::lanes_in_use()) {}
        std::vector<double> scores;
        Envelope envelope;
        std::vector<Run> runs;
        Sweep sweep;
        int lanes;
    };

    const double* direction(std::int64_t j) const { return directions_.data() + j * d_; }

    void keep_different(std::span<const std::int64_t> offsets, std::span<const double> rows, int threads) {
        const auto n_lists = static_cast<std::int64_t>(offsets.size()) - 1;
        std::vector<std::vector<std::int64_t>> kept(static_cast<std::size_t>(n_lists));
        parallel_each(n_lists, 16, threads, [&](int, std::int64_t i) {
            std::vector<std::int64_t> order(static_cast<std::size_t>(offsets[i + 1] - offsets[i]));
            std::iota(order.begin(), order.end(), offsets[i]);
            const auto row = [&](std::int64_t at) { return rows.data() + at * d_; };
            std::sort(order.begin(), order.end(), [&](std::int64_t one, std::int64_t two) {
                for (std::int64_t k = 0; k < d_; ++k)
                    if (row(one)[k] != row(two)[k]) return row(one)[k] < row(two)[k];
                return one < two;
            });
            order.erase(std::unique(order.begin(), order.end(),
                                    [&](std::int64_t one, std::int64_t two) {
                                        return std::equal(row(one), row(one) + d_, row(two));
                                    }),
                        order.end());
            std::sort(order.begin(), order.end());
            kept[i] = std::move(order);
        });
        offsets_.assign(1, 0);
        for (const auto& some : kept) {
            kept_.insert(kept_.end(), some.begin(), some.end());
            offsets_.push_back(static_cast<std::int64_t>(kept_.size()));
        }
    }

    // out[begin:end] = scores of the weights.
    void combine(const double* weights, double* out, std::int64_t begin, std::int64_t end) const {
        std::fill(out + begin, out + end, 0.0);
        for (std::int64_t k = 0; k < d_; ++k)
            if (weights[k] != 0.0) add_scaled(weights[k], slopes_.data() + k * n_ + begin, out + begin, end - begin);
    }

    void refresh(const double* weights, Work& work) const {
        constexpr std::int64_t block = 1024;  // scores that stay in cache over all features
        for (std::int64_t begin = 0; begin < n_; begin += block)
            combine(weights, work.scores.data(), begin, std::min(begin + block, n_));
    }

    double realized(Work& work) const {
        const std::int64_t k = quality_.n_statistics;
        std::vector<double> sums(static_cast<std::size_t>(k), 0.0);
        for (std::size_t i = 0; i + 1 < offsets_.size(); ++i) {
            const double* scores = work.scores.data();
            const auto best = std::max_element(scores + offsets_[i], scores + offsets_[i + 1]) - scores;
            for (std::int64_t s = 0; s < k; ++s) sums[s] += statistics_[best * k + s];
        }
        return quality_(sums.data());
    }

    Interval search(std::int64_t j, const GammaRange& range, std::int64_t window, Work& work) const {
        const double* slopes = slopes_.data() + j * n_;
        const Extremes* ends = extremes_.data() + j * n_lists();
        constexpr double start = -std::numeric_limits<double>::infinity();
        const std::int64_t k = quality_.n_statistics;
        // Statistics are asked for as soon as the hypotheses are known and read some lists later, so that no list waits
        // for memory.
        constexpr std::size_t ahead = 16;
        std::size_t asked[ahead] = {}, done = 0;
        auto& runs = work.runs;
        runs.clear();
        work.sweep.clear();
        const auto add = [&](double from, std::int64_t line) {
            const double* row = statistics_.data() + line * k;
            __builtin_prefetch(row);
            __builtin_prefetch(row + k - 1);
            runs.push_back({from, row});
        };
        const auto read_to = [&](std::size_t end) {
            for (; done < end; ++done) {
                if (runs[done].from == start) {
                    work.sweep.start(runs[done].statistics);
                } else {
                    work.sweep.change(runs[done].from, runs[done - 1].statistics, runs[done].statistics);
                }
            }
        };
        for (std::size_t i = 0; i + 1 < offsets_.size(); ++i) {
            const std::int64_t begin = offsets_[i];
            const auto& segments =
                work.envelope(work.scores.data() + begin, slopes + begin, offsets_[i + 1] - begin, ends[i], work.lanes);
            std::size_t t = 0;
            while (t + 1 < segments.size() && segments[t + 1].from <= range.low) ++t;
            add(start, begin + segments[t].line);
            for (++t; t < segments.size() && segments[t].from < range.high; ++t)
                add(segments[t].from, begin + segments[t].line);
            read_to(std::exchange(asked[i % ahead], runs.size()));
        }
        read_to(runs.size());
        return work.sweep.best(range, window);
    }

    void move(double* weights, const std::int8_t* signs, std::int64_t j, double gamma) const {
        for (std::int64_t k = 0; k < d_; ++k) {
            weights[k] += gamma * direction(j)[k];
            if (signs[k] * weights[k] < 0.0) weights[k] = 0.0;  // by rounding
        }
    }

    std::int64_t d_, n_random_, n_ = 0;
    Quality quality_;
    std::vector<std::int64_t> offsets_, kept_;
    std::vector<double> directions_, slopes_, statistics_;
    std::vector<Extremes> extremes_;  // of the slopes of each direction in each list
};

}  // namespace maxmargin::reranking
