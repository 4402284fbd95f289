// Segmentations of sequences as a deduction system: semi-Markov models.
//
// A sequence of n tokens is cut into segments, each with one of K labels. The parts of an example, block after block:
//
//     tokens       n x S: the state of each token, which the label of its segment and its place in it decide
//     transitions  K x K: how often label b follows label a
//     segments     K for each begin and length, by begin, then by length 1 .. min(longest, n - begin)
//
// Rules name the states of each label: of the first, an inside and the last token of a longer segment, and of the token
// of a segment of length 1; -1 where a label has no such tokens. Tags such as BIO and IOBES are states; so scores of
// tokens are summed over a segment.
//
// Items: B(t, y), a segment of label y may begin at t; I(b, l, y), l tokens of a longer one that begins at b are seen;
// C(b, l, y), one of length l is complete, which uses its part; E(t, y), one ends before t. Those of a position t stand
// together: B(t, .), then I and C(t, l, .) for each l, then E(t + 1, .); the goal comes last.
#pragma once

#include <memory>

#include "maxmargin/deduction/batch.hpp"

namespace maxmargin::segments {

using deduction::NEG_INF;
using deduction::NONE;
using hull::Status;

// The place of a token in its segment.
enum Role : int { FIRST = 0, INSIDE = 1, LAST = 2, SINGLE = 3 };
inline constexpr int n_roles = 4;

// What all examples of a batch share.
struct Rules {
    std::int64_t labels, n_states, longest;
    std::vector<std::int32_t> states;      // n_roles x labels, -1 for none
    std::vector<std::int64_t> most;        // of each label: how long its segments may be
    std::vector<std::uint8_t> legal;       // labels x labels: whether b may follow a
    std::vector<std::uint8_t> begin, end;  // whether a label may come first, last
    // The same as masks to add to scores, 0 or -inf: longest x labels, labels x labels, labels, labels.
    std::vector<double> length_mask, pair_mask, begin_mask, end_mask;

    std::int32_t state(int role, std::int64_t label) const { return states[role * labels + label]; }

    void make_masks() {
        const auto mask = [](const std::vector<std::uint8_t>& allowed, std::vector<double>& to) {
            to.clear();
            for (const std::uint8_t one : allowed) to.push_back(one ? 0.0 : NEG_INF);
        };
        mask(legal, pair_mask), mask(begin, begin_mask), mask(end, end_mask);
        length_mask.clear();
        for (std::int64_t l = 1; l <= longest; ++l)
            for (std::int64_t y = 0; y < labels; ++y) length_mask.push_back(l <= most[y] ? 0.0 : NEG_INF);
    }
};

struct System {
    std::int64_t length;
    const Rules* rules;

    std::int64_t longest() const { return std::min(rules->longest, length); }
    std::int64_t lengths_from(std::int64_t begin) const { return std::min(rules->longest, length - begin); }
    // Segments that start before a position: `longest` for each start, but fewer near the end.
    std::int64_t rows_before(std::int64_t begin) const {
        const std::int64_t full = std::clamp<std::int64_t>(length - rules->longest + 1, 0, begin), rest = begin - full;
        return full * rules->longest + rest * (length - full) - rest * (rest - 1) / 2;
    }

    std::int64_t token(std::int64_t t, int role, std::int64_t y) const {
        return t * rules->n_states + rules->state(role, y);
    }
    std::int64_t transitions() const { return length * rules->n_states; }
    std::int64_t segments() const { return transitions() + rules->labels * rules->labels; }
    std::int64_t segment(std::int64_t begin, std::int64_t l, std::int64_t y) const {
        return segments() + (rows_before(begin) + l - 1) * rules->labels + y;
    }

    std::int64_t n_parts() const { return segments() + rows_before(length) * rules->labels; }
    std::int64_t n_items() const { return length * stride() + 1; }

    std::int64_t part_of(std::int64_t item) const {
        if (item == length * stride()) return NONE;
        const Place at = place(item);
        return at.kind == COMPLETE && at.l <= lengths_from(at.t) ? segment(at.t, at.l, at.y) : NONE;
    }

    template <class Take>
    void ways(std::int64_t item, Take&& take) const {
        const std::int64_t k = rules->labels;
        if (item == length * stride()) {
            if (length == 0) return take(NONE, NONE, NONE);
            for (std::int64_t y = 0; y < k; ++y)
                if (rules->end[y]) take(ended(length, y), NONE, NONE);
            return;
        }
        const auto [kind, t, l, y] = place(item);
        if (kind == BEGIN) {
            if (t == 0) {
                if (rules->begin[y]) take(NONE, NONE, NONE);
                return;
            }
            for (std::int64_t a = 0; a < k; ++a)
                if (rules->legal[a * k + y]) take(ended(t, a), NONE, transitions() + a * k + y);
        } else if (kind == END) {  // here t is where they end
            for (std::int64_t b = std::max<std::int64_t>(t - rules->most[y], 0); b < t; ++b)
                take(row(b, t - b) + k + y, NONE, NONE);
        } else if (l <= lengths_from(t) && l <= rules->most[y]) {
            const std::int64_t before = l == 1 ? t * stride() + y : row(t, l - 1) + y;
            const int role = kind == PARTIAL ? (l == 1 ? FIRST : INSIDE) : (l == 1 ? SINGLE : LAST);
            if (rules->state(role, y) < 0 || (kind == PARTIAL && l == rules->most[y])) return;
            take(before, NONE, token(t + l - 1, role, y));
        }
    }

   private:
    enum Kind { BEGIN, PARTIAL, COMPLETE, END };
    struct Place {
        Kind kind;
        std::int64_t t, l, y;
    };

    std::int64_t stride() const { return 2 * rules->labels * (longest() + 1); }
    std::int64_t row(std::int64_t b, std::int64_t l) const { return b * stride() + rules->labels * (2 * l - 1); }
    std::int64_t ended(std::int64_t t, std::int64_t y) const { return t * stride() - rules->labels + y; }
    Place place(std::int64_t item) const {
        const std::int64_t k = rules->labels, t = item / stride(), rest = item % stride(), y = rest % k, at = rest / k;
        if (at == 0) return {BEGIN, t, 0, y};
        if (at == 2 * longest() + 1) return {END, t + 1, 0, y};
        return {at % 2 ? PARTIAL : COMPLETE, t, (at + 1) / 2, y};
    }
};

// A packed batch: the tokens of all examples, their transitions, their segments.
class Batch {
   public:
    Batch(std::vector<std::int64_t> lengths, Rules rules)
        : lengths_(std::move(lengths)), rules_(std::make_unique<Rules>(std::move(rules))) {
        rules_->make_masks();
        const std::size_t n = lengths_.size(), rows = n + 1;
        offsets_.resize(3 * rows);
        std::int64_t at = 0;
        for (std::size_t block = 0; block < 3; ++block) {
            for (std::size_t i = 0; i < n; ++i) {
                const System one = (*this)[static_cast<std::int64_t>(i)];
                const std::int64_t sizes[] = {one.transitions(), one.segments() - one.transitions(),
                                              one.n_parts() - one.segments()};
                offsets_[block * rows + i] = at;
                at += sizes[block];
            }
            offsets_[block * rows + n] = at;
        }
    }

    std::int64_t size() const { return static_cast<std::int64_t>(lengths_.size()); }
    System operator[](std::int64_t i) const { return {lengths_[i], rules_.get()}; }
    hull::Layout layout() const { return {3, size(), offsets_}; }
    const Rules& rules() const { return *rules_; }

   private:
    std::vector<std::int64_t> lengths_, offsets_;
    std::unique_ptr<Rules> rules_;  // in one place, as systems point to it
};

}  // namespace maxmargin::segments
