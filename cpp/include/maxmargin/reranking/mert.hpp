// Minimum error rate training on lists: ascent of corpus quality along coordinates and random directions (Och 2003).
//
// All restarts share a pool of directions: the coordinates, then the random ones. The slopes of all hypotheses along
// each of them are computed and sorted once; scores of the current weights are kept and changed by each step.
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

struct AscentSettings {
    std::int64_t max_sweeps;  // over the pool
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
        const std::int64_t width = quality.n_statistics;
        rows_.resize(static_cast<std::size_t>(n_ * d));
        statistics_.resize(static_cast<std::size_t>(n_ * width));
        slopes_.resize(static_cast<std::size_t>(pool_size() * n_));
        order_.resize(slopes_.size());
        parallel_each(static_cast<std::int64_t>(offsets_.size()) - 1, 16, threads, [&](int, std::int64_t i) {
            for (std::int64_t h = offsets_[i]; h < offsets_[i + 1]; ++h) {
                std::copy_n(rows.data() + kept_[h] * d, d, rows_.data() + h * d);
                std::copy_n(statistics.data() + kept_[h] * width, width, statistics_.data() + h * width);
            }
            std::vector<std::pair<double, std::int32_t>> lines(static_cast<std::size_t>(offsets_[i + 1] - offsets_[i]));
            for (std::int64_t j = 0; j < pool_size(); ++j) {
                for (std::size_t h = 0; h < lines.size(); ++h)
                    lines[h] = {dot(offsets_[i] + static_cast<std::int64_t>(h), direction(j)), static_cast<int>(h)};
                std::sort(lines.begin(), lines.end());
                const std::int64_t begin = j * n_ + offsets_[i];
                for (std::size_t t = 0; t < lines.size(); ++t) {
                    slopes_[begin + static_cast<std::int64_t>(t)] = lines[t].first;
                    order_[begin + static_cast<std::int64_t>(t)] = lines[t].second;
                }
            }
        });
    }

    std::int64_t n_features() const { return d_; }

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
                const Interval best = search(j, range, work);
                ++idle;
                if (!(best.value > best.here + settings.min_gain) || best.gamma == 0.0) continue;
                move(weights, signs, j, best.gamma, work);
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
    Interval search_once(const double* weights, const std::int8_t* signs, std::int64_t j) const {
        Work work(*this);
        refresh(weights, work);
        return search(j, gamma_range(weights, direction(j), signs, d_), work);
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
            : scores(static_cast<std::size_t>(lists.n_)), sweep(lists.quality_), lanes(simd::lanes_in_use()) {
            std::int64_t most = 0;
            for (std::size_t i = 1; i < lists.offsets_.size(); ++i)
                most = std::max(most, lists.offsets_[i] - lists.offsets_[i - 1]);
            sorted.resize(static_cast<std::size_t>(most));
        }
        std::vector<double> scores, sorted;  // of all hypotheses; of a list, in the order of slopes
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

    double dot(std::int64_t row, const double* weights) const {
        double sum = 0.0;
        for (std::int64_t k = 0; k < d_; ++k) sum += rows_[row * d_ + k] * weights[k];
        return sum;
    }

    void refresh(const double* weights, Work& work) const {
        for (std::int64_t h = 0; h < n_; ++h) work.scores[h] = dot(h, weights);
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

    Interval search(std::int64_t j, const GammaRange& range, Work& work) const {
        const double* slopes = slopes_.data() + j * n_;
        const std::int32_t* order = order_.data() + j * n_;
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
            const std::int64_t begin = offsets_[i], size = offsets_[i + 1] - begin;
            const double* scores = work.scores.data() + begin;
            for (std::int64_t t = 0; t < size; ++t) work.sorted[t] = scores[order[begin + t]];
            const auto& segments = work.envelope.of_sorted(work.sorted.data(), slopes + begin, size, work.lanes);
            std::size_t t = 0;
            while (t + 1 < segments.size() && segments[t + 1].from <= range.low) ++t;
            add(start, begin + order[begin + segments[t].line]);
            for (++t; t < segments.size() && segments[t].from < range.high; ++t)
                add(segments[t].from, begin + order[begin + segments[t].line]);
            read_to(std::exchange(asked[i % ahead], runs.size()));
        }
        read_to(runs.size());
        return work.sweep.best(range);
    }

    void move(double* weights, const std::int8_t* signs, std::int64_t j, double gamma, Work& work) const {
        for (std::int64_t k = 0; k < d_; ++k) {
            weights[k] += gamma * direction(j)[k];
            if (signs[k] * weights[k] < 0.0) weights[k] = 0.0;  // by rounding
        }
        const double* slopes = slopes_.data() + j * n_;
        const std::int32_t* order = order_.data() + j * n_;
        for (std::size_t i = 0; i + 1 < offsets_.size(); ++i) {
            double* scores = work.scores.data() + offsets_[i];
            for (std::int64_t t = offsets_[i]; t < offsets_[i + 1]; ++t) scores[order[t]] += gamma * slopes[t];
        }
    }

    std::int64_t d_, n_random_, n_ = 0;
    Quality quality_;
    std::vector<std::int64_t> offsets_, kept_;
    std::vector<double> directions_, rows_, statistics_;
    // Of each direction, list after list: slopes in rising order, and which hypothesis of the list has each.
    std::vector<double> slopes_;
    std::vector<std::int32_t> order_;
};

}  // namespace maxmargin::reranking
