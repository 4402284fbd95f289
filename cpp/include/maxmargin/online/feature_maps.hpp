// Feature maps of single examples: rows with weights repeated for m parts, and maps put together from others.
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "maxmargin/linear/sparse.hpp"
#include "maxmargin/online/examples.hpp"

namespace maxmargin::online {

// Working memory of one call, as a map may be read by several threads.
inline std::unique_ptr<double[]> room(std::int64_t n) {
    return n > 0 ? std::make_unique_for_overwrite<double[]>(static_cast<std::size_t>(n)) : nullptr;
}

// Row r of a matrix (dense, or compressed) gives m parts; see features/tied.py. All spans outlive the map.
//   scores[r, c] = sign (constant[c] + sum_f x_rf W[f, c])     W: (d, m), with `alike` d weights for all m parts
template <class Index>
class RowsMap final : public FeatureMap {
   public:
    struct Settings {
        std::span<const std::int64_t> offsets;  // rows of the examples
        std::int64_t d, m;
        bool constant, alike;
        double sign;
        std::span<const std::int64_t> kept;     // which of the rows' m parts there are, rising; empty for all
        bool some = false;                      // whether `kept` is in use
        std::span<const std::int64_t> numbers;  // which row of the matrix each row is; empty for their own
    };
    // `values` is the dense matrix (then starts and columns are empty) or the non-zeros.
    RowsMap(Settings settings, std::span<const Index> starts, std::span<const Index> columns,
            std::span<const double> values)
        : s_(settings), starts_(starts), columns_(columns), values_(values), width_(simd::lanes_in_use()) {
        if (starts_.empty()) {
            every_.resize(static_cast<std::size_t>(s_.d));
            std::iota(every_.begin(), every_.end(), Index{0});
        }
        if (s_.some) {
            bounds_.reserve(s_.offsets.size());
            for (const std::int64_t row : s_.offsets)
                bounds_.push_back(std::lower_bound(s_.kept.begin(), s_.kept.end(), row * s_.m) - s_.kept.begin());
        }
    }

    std::int64_t n_weights() const override { return first() + s_.d * (s_.alike ? 1 : s_.m); }
    std::int64_t n_examples() const override { return static_cast<std::int64_t>(s_.offsets.size()) - 1; }
    std::int64_t size(std::int64_t i) const override {
        return s_.some ? bounds_[i + 1] - bounds_[i] : (s_.offsets[i + 1] - s_.offsets[i]) * s_.m;
    }

    void scores(std::int64_t i, const double* w, double* out) const override {
        const std::int64_t begin = s_.offsets[i], rows = s_.offsets[i + 1] - begin, m = s_.m;
        const auto whole = room(s_.some ? rows * m : 0);
        double* target = s_.some ? whole.get() : out;
        for (std::int64_t r = 0; r < rows; ++r) row_scores(begin + r, w, target + r * m);
        if (s_.some)
            for (std::int64_t j = bounds_[i]; j < bounds_[i + 1]; ++j)
                out[j - bounds_[i]] = whole[s_.kept[j] - begin * m];
    }

    // Row by row: those that have one of the parts.
    void scores_at(std::int64_t i, std::span<const std::int32_t> parts, std::int64_t first_part, const double* w,
                   double* out) const override {
        if (s_.some) return scores(i, w, out);
        std::int64_t next = 0;  // rows before this one are done
        for (const std::int32_t p : parts) {
            const std::int64_t part = p - first_part, row = part / s_.m;
            if (s_.d == 0) {
                out[part] = s_.constant ? s_.sign * w[part - row * s_.m] : 0.0;
            } else if (row >= next) {
                row_scores(s_.offsets[i] + row, w, out + row * s_.m);
                next = row + 1;
            }
        }
    }

    void add(std::int64_t i, std::int64_t part, double x, std::int64_t from, Accumulator& into) const override {
        x *= s_.sign;
        each(i, part, [&](std::int64_t at, double value) { into.add(from + at, x * value); });
    }
    void add(std::int64_t i, std::int64_t part, double x, std::int64_t from, std::vector<Entry>& into) const override {
        x *= s_.sign;
        each(i, part, [&](std::int64_t at, double value) { into.push_back({from + at, x * value}); });
    }

   private:
    // The scores of the m parts of a row.
    void row_scores(std::int64_t row, const double* w, double* out) const {
        const std::int64_t m = s_.m;
        const double* initial = s_.constant ? w : nullptr;
        w += first();
        if (s_.d == 0) {
            if (initial) std::copy(initial, initial + m, out);
            else std::fill(out, out + m, 0.0);
        } else if (s_.alike || m == 1) {
            const double one = dot(row, w) + (initial ? initial[0] : 0.0);
            std::fill(out, out + m, one);
        } else {
            const auto [columns, values, n] = entries(row);
            const Index bounds[2] = {0, static_cast<Index>(n)};
            linear::sparse_rows(width_, linear::Compressed<Index>{bounds, columns, values}, 0, 1, w, s_.d, m, initial,
                                linear::ToRows{out, m});
        }
        if (s_.sign != 1.0)
            for (std::int64_t j = 0; j < m; ++j) out[j] *= s_.sign;
    }

    // body(weight, value) for the features of a part, without the sign.
    template <class Body>
    void each(std::int64_t i, std::int64_t part, Body&& body) const {
        const std::int64_t at = s_.some ? s_.kept[bounds_[i] + part] : s_.offsets[i] * s_.m + part;
        const std::int64_t row = at / s_.m, column = at % s_.m;
        if (s_.constant) body(column, 1.0);
        if (s_.d == 0) return;
        const auto [columns, values, n] = entries(row);
        const std::int64_t base = first() + (s_.alike ? 0 : column), step = s_.alike ? 1 : s_.m;
        for (std::int64_t q = 0; q < n; ++q) body(base + columns[q] * step, values[q]);
    }

    struct Entries {
        const Index* columns;
        const double* values;
        std::int64_t n;
    };
    Entries entries(std::int64_t row) const {
        if (!s_.numbers.empty()) row = s_.numbers[row];
        if (starts_.empty()) return {every_.data(), values_.data() + row * s_.d, s_.d};
        return {columns_.data() + starts_[row], values_.data() + starts_[row],
                static_cast<std::int64_t>(starts_[row + 1] - starts_[row])};
    }
    double dot(std::int64_t row, const double* w) const {
        const auto [columns, values, n] = entries(row);
        double sum = 0.0;
        if (starts_.empty()) {
            for (std::int64_t q = 0; q < n; ++q) sum += values[q] * w[q];
        } else {
            for (std::int64_t q = 0; q < n; ++q) sum += values[q] * w[columns[q]];
        }
        return sum;
    }
    std::int64_t first() const { return s_.constant ? s_.m : 0; }

    Settings s_;
    std::span<const Index> starts_, columns_;
    std::span<const double> values_;
    int width_;
    std::vector<Index> every_;
    std::vector<std::int64_t> bounds_;
};

// Several maps. Stacked: parts one after the other. Beside: the same parts, scores added. Member j has the weights from
// first[j] on; members may share weights.
class JoinedMap final : public FeatureMap {
   public:
    JoinedMap(std::vector<std::shared_ptr<FeatureMap>> members, std::vector<std::int64_t> first, std::int64_t n_weights,
              bool stacked)
        : members_(std::move(members)), first_(std::move(first)), n_weights_(n_weights), stacked_(stacked) {}

    std::int64_t n_weights() const override { return n_weights_; }
    std::int64_t n_examples() const override { return members_.front()->n_examples(); }
    std::int64_t size(std::int64_t i) const override {
        if (!stacked_) return members_.front()->size(i);
        std::int64_t total = 0;
        for (const auto& member : members_) total += member->size(i);
        return total;
    }
    void scores_at(std::int64_t i, std::span<const std::int32_t> parts, std::int64_t first, const double* w,
                   double* out) const override {
        if (!stacked_) {
            members_.front()->scores_at(i, parts, first, w + first_.front(), out);
            const auto sum = room(size(i));
            for (std::size_t j = 1; j < members_.size(); ++j) {
                members_[j]->scores_at(i, parts, first, w + first_[j], sum.get());
                for (const std::int32_t p : parts) out[p - first] += sum[p - first];
            }
            return;
        }
        for (std::size_t j = 0; j < members_.size() && !parts.empty(); ++j) {
            const std::int64_t own = members_[j]->size(i);
            const auto count = std::lower_bound(parts.begin(), parts.end(), first + own) - parts.begin();
            if (count > 0) members_[j]->scores_at(i, parts.first(count), first, w + first_[j], out);
            parts = parts.subspan(count);
            first += own;
            out += own;
        }
    }
    void scores(std::int64_t i, const double* w, double* out) const override {
        if (stacked_) {
            for (std::size_t j = 0; j < members_.size(); ++j) {
                members_[j]->scores(i, w + first_[j], out);
                out += members_[j]->size(i);
            }
            return;
        }
        const std::int64_t n = size(i);
        members_.front()->scores(i, w + first_.front(), out);
        const auto sum = room(n);
        for (std::size_t j = 1; j < members_.size(); ++j) {
            members_[j]->scores(i, w + first_[j], sum.get());
            for (std::int64_t p = 0; p < n; ++p) out[p] += sum[p];
        }
    }
    void add(std::int64_t i, std::int64_t part, double x, std::int64_t from, Accumulator& into) const override {
        add_to(i, part, x, from, into);
    }
    void add(std::int64_t i, std::int64_t part, double x, std::int64_t from, std::vector<Entry>& into) const override {
        add_to(i, part, x, from, into);
    }

   private:
    template <class Into>
    void add_to(std::int64_t i, std::int64_t part, double x, std::int64_t from, Into& into) const {
        for (std::size_t j = 0; j < members_.size(); ++j) {
            const std::int64_t own = stacked_ ? members_[j]->size(i) : 0;
            if (!stacked_ || part < own) members_[j]->add(i, part, x, from + first_[j], into);
            if (stacked_ && part < own) return;
            part -= own;
        }
    }

    std::vector<std::shared_ptr<FeatureMap>> members_;
    std::vector<std::int64_t> first_;
    std::int64_t n_weights_;
    bool stacked_;
};

}  // namespace maxmargin::online
