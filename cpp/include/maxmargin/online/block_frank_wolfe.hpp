// Block-coordinate Frank-Wolfe over examples (Lacoste-Julien, Jaggi, Schmidt and Pletscher 2013).
//
// The dual max_z sum_i loss_i(z_i) - C/2 ||P(-g(z))||^2 is a product over examples. Each example keeps the outputs it
// has found (atoms), their masses and their inner products. A visit finds the most violated output at the current
// weights (or reuses a kept one), moves mass between the example's atoms by a few Frank-Wolfe steps and corrects g and
// w on the coordinates that change. P: signs, then a ball; with these the quadratic model of a visit overestimates how
// fast the dual bends (P is nonexpansive), so that a visit never decreases the dual.
//
// Threads: examples are visited in groups of fixed size. Where the masses of each should go is found for all of a group
// at the weights before it, by several threads; then one example after the other moves, with an exact line search along
// what it has found, or finds anew from its kept atoms if the moves before it have changed too much. So no result
// depends on the number of threads, and no move decreases the dual.
//
// Outputs mostly agree with the gold one, and only F z - F y counts: an atom is kept by the few parts in which it
// differs. Cost of a visit with the oracle: the example's scores, its argmax, the features of the differing parts twice
// for a new atom and once for the change; of one to the kept atoms alone: the scores of the parts in which some atom
// differs. Memory: these differences, a few weight-sized vectors and one more for each thread.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "maxmargin/base/team.hpp"
#include "maxmargin/online/examples.hpp"
#include "maxmargin/online/kept_outputs.hpp"
#include "maxmargin/simplex/steps.hpp"

namespace maxmargin::online {

class BlockFrankWolfe {
   public:
    struct Settings {
        double C, radius;
        Step step;
        int steps;                     // Frank-Wolfe steps of one visit
        std::int64_t most_atoms;       // kept for one example
        double cache_gap, cache_mean;  // a kept atom will do if its gap is this share of the last one and of the mean
        std::int64_t group;            // examples visited at the same weights
    };
    struct Totals {
        std::int64_t calls = 0, visits = 0;  // of the oracle; in all
    };

    // All mass starts on the gold outputs: g = 0, w = 0.
    BlockFrankWolfe(Examples& examples, Settings settings, std::vector<std::uint8_t> nonnegative)
        : examples_(examples), s_(settings), nonnegative_(std::move(nonnegative)),
          g_(static_cast<std::size_t>(examples.n_weights())), late_(g_.size()),
          plain_(nonnegative_.empty() && !std::isfinite(settings.radius)), w_(plain_ ? 0 : g_.size()),
          blocks_(static_cast<std::size_t>(examples.size())), gap_(blocks_.size(), 0.0), asked_(blocks_.size(), 0),
          moves_(static_cast<std::size_t>(std::max<std::int64_t>(settings.group, 1))) {
        seats_.push_back(std::make_unique<Seat>(examples));
    }

    BlockFrankWolfe(const BlockFrankWolfe&) = delete;
    BlockFrankWolfe& operator=(const BlockFrankWolfe&) = delete;

    // Moves the mass of example i from the gold output to others, which must be feasible; what the masses lack of 1
    // stays there. Call refresh() after the last example.
    void seed(std::int64_t i, std::span<const Sparse> outputs, std::span<const double> masses) {
        Block& block = blocks_[i];
        Seat& seat = *seats_[0];
        before_ = Before();
        double total = 0.0;
        block.atoms[0].mass = 0.0;
        for (std::size_t r = 0; r < outputs.size(); ++r) {
            seat.freshen(i, outputs[r]);
            std::int64_t at = block.known(seat.fresh);
            if (at < 0) {
                at = block.size();
                admit(i, block, seat);
            }
            block.atoms[at].mass += masses[r];
            total += masses[r];
        }
        if (total < 1.0 - 1e-12) block.atoms[0].mass += 1.0 - total;  // less is rounding, which refresh() divides out
    }

    // The outputs of example i with mass: body(output, mass).
    template <class Body>
    void each_mass(std::int64_t i, Body&& body) const {
        const Block& block = blocks_[i];
        Sparse difference, z;
        for (std::int64_t j = 0; j < block.size(); ++j) {
            if (!(block.atoms[j].mass > 0.0)) continue;
            block.copy(j, difference);
            examples_.output(i, difference, z);
            body(z, block.atoms[j].mass);
        }
    }

    // As many seats as there are threads, or one if the oracle is for one thread alone. Returns how many.
    int seat(int threads) {
        while (static_cast<int>(seats_.size()) < threads) {
            auto own = examples_.another();
            if (!own) break;
            seats_.push_back(std::make_unique<Seat>(std::move(own)));
        }
        return std::min(static_cast<int>(seats_.size()), threads);
    }

    // Visits the examples in the given order. With `kept_only` no oracle is called. If an example cannot be visited,
    // the pass ends before the group of that example has moved.
    Totals pass(std::span<const std::int64_t> order, bool kept_only, int threads) {
        Totals totals;
        std::span<const std::int64_t> group;
        auto find_one = [&](int thread, std::int64_t at) {
            Move& found = moves_[at];
            try {
                find(group[at], kept_only, *seats_[thread], found);
            } catch (...) {
                found.failure = std::current_exception();
            }
        };
        Team team(std::min({threads, static_cast<int>(seats_.size()), static_cast<int>(moves_.size())}), find_one);
        while (!order.empty()) {
            group = distinct(order);
            order = order.subspan(group.size());
            team.each(static_cast<std::int64_t>(group.size()));
            for (std::size_t at = 0; at < group.size(); ++at)
                if (moves_[at].failure) std::rethrow_exception(std::exchange(moves_[at].failure, nullptr));
            for (std::size_t at = 0; at < group.size(); ++at) settle(group[at], moves_[at], totals);
        }
        return totals;
    }

    // Shards: other objects have other examples of the same problem. begin() sets g and the loss to those of all of
    // them, from where passes go on. Where as much as here may change in `spread` shards, passes maximize the dual as
    // if it bent so much more, and change g so many times as much as the masses do (Ma and others 2015); then all
    // changes together never decrease the dual. The average is that of the visits since begin(). end() keeps a share of
    // the changes of the masses since begin(); after it g and the loss are not known until the next begin() or
    // refresh().
    void begin(std::span<const double> g, double loss, double spread) {
        std::copy(g.begin(), g.end(), g_.begin());
        loss_ = loss;
        spread_ = spread;
        respond();
        std::fill(late_.begin(), late_.end(), 0.0);
        late_loss_ = time_ = 0.0;
        older_ = newer_ = Sums();
        before_.begin(blocks_.size());
    }
    void end(double share) {
        before_.end(share, blocks_, s_.most_atoms);
        spread_ = 1.0;
    }
    const Before& before() const { return before_; }
    bool resume(std::vector<std::int64_t> examples, std::vector<std::int64_t> starts, std::vector<double> mass) {
        return before_.resume(blocks_, std::move(examples), std::move(starts), std::move(mass));
    }

    // g and the loss from the atoms themselves: sums of changes drift by rounding.
    void refresh() {
        Seat& seat = *seats_[0];
        Accumulator& change = seat.change;
        std::fill(g_.begin(), g_.end(), 0.0);
        loss_ = 0.0;
        for (std::int64_t i = 0; i < examples_.size(); ++i) {
            Block& block = blocks_[i];
            double total = 0.0;
            for (const Kept& atom : block.atoms) total += atom.mass;
            change.clear();
            for (std::int64_t j = 0; j < block.size(); ++j) {
                Kept& atom = block.atoms[j];
                atom.mass /= total;
                if (atom.mass == 0.0) continue;
                block.copy(j, seat.found);
                seat.add_features(i, seat.found, atom.mass * atom.factor);
                loss_ += atom.mass * atom.loss;
            }
            for (const std::int64_t at : change.touched()) g_[at] += change[at];
        }
        change.clear();
        respond();
    }

    // The average of (g, loss) over the visits since the mark before the last, the t-th with weight t.
    void mark() {
        std::swap(older_, newer_);
        newer_.g.resize(g_.size());
        newer_.weight = weight();
        for (std::size_t k = 0; k < g_.size(); ++k) newer_.g[k] = newer_.weight * g_[k] - late_[k];
        newer_.loss = newer_.weight * loss_ - late_loss_;
    }
    double average(std::span<double> g) const {
        const double now = weight(), total = now - older_.weight;
        if (!(total > 0.0)) {
            std::copy(g_.begin(), g_.end(), g.begin());
            return loss_;
        }
        for (std::size_t k = 0; k < g_.size(); ++k)
            g[k] = ((now * g_[k] - late_[k]) - (older_.g.empty() ? 0.0 : older_.g[k])) / total;
        return ((now * loss_ - late_loss_) - older_.loss) / total;
    }

    // All that a later object over the same examples needs, besides the atoms, to resume with the same bits.
    struct Vectors {
        std::vector<double> g, late, w, gap, older, newer;
        std::vector<std::uint8_t> asked;
        std::array<double, 9> numbers;  // loss, late loss, time, norm, mean gap; loss and weight of both marks
    };
    // Views of the same. Values change with the object, but the memory stays where it is.
    struct VectorViews {
        std::span<const double> g, late, w, gap, older, newer;
        std::span<const std::uint8_t> asked;
        std::array<double, 9> numbers;
    };
    VectorViews vectors() const {
        return {g_,
                late_,
                w_,
                gap_,
                older_.g,
                newer_.g,
                asked_,
                {loss_, late_loss_, time_, norm_, mean_gap_, older_.loss, older_.weight, newer_.loss, newer_.weight}};
    }
    bool fits(const Vectors& v) const {
        const auto marked = [&](const std::vector<double>& sum) { return sum.empty() || sum.size() == g_.size(); };
        return v.g.size() == g_.size() && v.late.size() == g_.size() && v.w.size() == w_.size() &&
               v.gap.size() == gap_.size() && v.asked.size() == asked_.size() && marked(v.older) && marked(v.newer);
    }
    void restore(const Vectors& v) {
        const auto& x = v.numbers;
        const auto copy = [](const auto& from, auto& to) { to.assign(from.begin(), from.end()); };
        copy(v.g, g_), copy(v.late, late_), copy(v.w, w_), copy(v.gap, gap_), copy(v.asked, asked_);
        copy(v.older, older_.g), copy(v.newer, newer_.g);
        loss_ = x[0], late_loss_ = x[1], time_ = x[2], norm_ = x[3], mean_gap_ = x[4];
        older_.loss = x[5], older_.weight = x[6];
        newer_.loss = x[7], newer_.weight = x[8];
    }
    // The atoms of example i, the gold one first: body(difference to that, mass, visits without mass).
    template <class Body>
    void each_atom(std::int64_t i, Body&& body) const {
        const Block& block = blocks_[i];
        Sparse difference;
        for (std::int64_t j = 0; j < block.size(); ++j) {
            block.copy(j, difference);
            body(View(difference), block.atoms[j].mass, block.atoms[j].idle);
        }
    }
    // The atoms of example i again, of which `differences` are those after the gold one. Atoms keep the order in which
    // they came and an inner product is made when the later of the two comes, so that it has the same bits as before;
    // or they are given.
    void restore(std::int64_t i, std::span<const Sparse> differences, std::span<const double> mass,
                 std::span<const std::int32_t> idle, std::span<const double> gram = {}) {
        Block& block = blocks_[i] = Block();
        Seat& seat = *seats_[0];
        before_ = Before();
        for (const Sparse& difference : differences) {
            seat.fresh.z = difference;
            examples_.weigh(i, seat.fresh.z, seat.fresh.factor, seat.fresh.loss);
            if (gram.empty()) admit(i, block, seat);
            else block.append(seat.fresh, seat.parts);
        }
        if (!gram.empty()) block.gram.assign(gram.begin(), gram.end());
        for (std::int64_t j = 0; j < block.size(); ++j) block.atoms[j].mass = mass[j], block.atoms[j].idle = idle[j];
    }
    std::span<const double> gram(std::int64_t i) const { return blocks_[i].gram; }
    // The gaps that were last seen.
    void restore(std::vector<double> gap, std::vector<std::uint8_t> asked, double mean) {
        gap_ = std::move(gap), asked_ = std::move(asked), mean_gap_ = mean;
    }

    std::span<const double> g() const { return g_; }
    std::span<const double> gap() const { return gap_; }
    double loss() const { return loss_; }
    std::int64_t atoms() const {
        std::int64_t total = 0;
        for (const Block& block : blocks_) total += static_cast<std::int64_t>(block.atoms.size());
        return total;
    }

   private:
    // sum_t t g_t and sum_t t loss_t over all visits t so far, and the sum of the weights.
    struct Sums {
        std::vector<double> g;
        double loss = 0.0, weight = 0.0;
    };
    double weight() const { return 0.5 * time_ * (time_ + 1.0); }

    double response(std::size_t k) const {
        const double free = -s_.C * g_[k];
        return !nonnegative_.empty() && nonnegative_[k] ? std::max(free, 0.0) : free;
    }
    void respond() {
        norm_ = 0.0;
        for (std::size_t k = 0; k < w_.size(); ++k) {
            w_[k] = response(k);
            norm_ += w_[k] * w_[k];
        }
    }
    double shrink() const { return norm_ > s_.radius * s_.radius ? s_.radius / std::sqrt(norm_) : 1.0; }

    // The examples as one thread sees them, and its working memory.
    struct Seat {
        std::unique_ptr<Examples> owned;
        Examples& examples;
        Accumulator change;
        std::vector<double> scores, other, delta, value, square;
        std::vector<std::int32_t> parts;
        Sparse found;
        Atom fresh;  // its z is the difference

        explicit Seat(Examples& given)
            : examples(given), change(given.n_weights()), scores(static_cast<std::size_t>(given.most_parts())),
              other(scores.size()), delta(scores.size(), 0.0) {}
        explicit Seat(std::unique_ptr<Examples> own) : Seat(*own) { owned = std::move(own); }

        // Makes an output the fresh one: its difference, factor and loss.
        void freshen(std::int64_t i, View z) {
            examples.difference(i, z, fresh.z);
            examples.weigh(i, fresh.z, fresh.factor, fresh.loss);
        }
        // change += x F_i difference.
        void add_features(std::int64_t i, View difference, double x) {
            for (std::size_t j = 0; j < difference.index.size(); ++j)
                examples.map().add(i, difference.index[j], x * difference.value[j], 0, change);
        }
        // The inner products of a block, both triangles.
        const double* gram(const Block& block) {
            const std::int64_t n = block.size();
            square.resize(static_cast<std::size_t>(n * n));
            const double* at = block.gram.data();
            for (std::int64_t j = 0; j < n; ++j)
                for (std::int64_t l = 0; l <= j; ++l) square[j * n + l] = square[l * n + j] = *at++;
            return square.data();
        }
    };

    // Where the masses of an example should go.
    struct Move {
        bool asked = false;  // for a new output; `gap` is what was found then
        double gap = 0.0;
        std::vector<double> mass;    // empty if they should stay
        std::vector<Entry> entries;  // the change of g, without its sign
        double loss = 0.0;           // the change of the loss
        double bend = 0.0;           // C times the squared norm of the change of g, spread
        std::exception_ptr failure;
    };

    static constexpr double whole_step = 0.75, least_step = 0.5;

    // The next examples of an order, none of them twice.
    std::span<const std::int64_t> distinct(std::span<const std::int64_t> order) const {
        std::size_t n = 1;
        while (n < std::min(order.size(), moves_.size()) &&
               std::find(order.begin(), order.begin() + n, order[n]) == order.begin() + n)
            ++n;
        return order.first(n);
    }

    // Where the masses of example i should go at the current weights. May admit an atom, but changes no mass.
    void find(std::int64_t i, bool kept_only, Seat& seat, Move& move) {
        Block& block = blocks_[i];
        move.asked = false;
        move.mass.clear();
        if (kept_only && block.size() == 1) return;  // nowhere to go
        std::vector<double>&scores = seat.scores, &value = seat.value;
        const double* w = plain_ ? g_.data() : w_.data();
        double scale = plain_ ? -s_.C : shrink();
        if (kept_only) {
            examples_.map().scores_at(i, block.used, 0, w, scores.data());
        } else {
            examples_.scores(i, w, scores.data());
            if (scale != 1.0)
                for (std::int64_t p = 0, n = examples_.parts(i); p < n; ++p) scores[p] *= scale;
            scale = 1.0;
        }
        value.resize(block.atoms.size());
        double mean = 0.0, best = 0.0;
        for (std::int64_t j = 0; j < block.size(); ++j) {
            const Kept& atom = block.atoms[j];
            value[j] = atom.factor * (scale * block.inner(j, scores.data())) + atom.loss;
            mean += atom.mass * value[j];
            best = j == 0 ? value[0] : std::max(best, value[j]);
        }
        const double threshold = std::max(s_.cache_gap * gap_[i], s_.cache_mean * mean_gap_);
        const bool content = s_.cache_gap > 0.0 && asked_[i] && best - mean >= threshold && best - mean > 0.0;
        if (!kept_only && !content) {
            seat.examples.most_violated(i, scores.data(), seat.found);
            seat.freshen(i, seat.found);
            const double own = seat.fresh.factor * Examples::inner(seat.fresh.z, scores.data()) + seat.fresh.loss;
            if (!std::isfinite(own)) throw NonFinite();
            best = std::max(best, own);
            move.asked = true;
            move.gap = std::max(best - mean, 0.0);
            if (own > mean && block.known(seat.fresh) < 0) {
                admit(i, block, seat);
                value.push_back(own);
            }
        }
        if (!(best > mean)) return;
        for (const Kept& atom : block.atoms) move.mass.push_back(atom.mass);
        const double small = 0.1 * std::min(best - mean, mean_gap_);
        simplex_steps(s_.step, spread_ * s_.C, seat.gram(block), block.size(), block.size(), s_.steps, small,
                      value.data(), move.mass.data());
        direct(i, block, seat, move);
    }

    // The changes that the new masses make. Parts that atoms share cancel before features are touched.
    void direct(std::int64_t i, const Block& block, Seat& seat, Move& move) const {
        const std::int64_t n = block.size();
        double largest = 0.0, square = 0.0;
        move.loss = 0.0;
        move.entries.clear();
        std::vector<double>& moved = seat.value;
        for (std::int64_t j = 0; j < n; ++j) {
            const Kept& atom = block.atoms[j];
            moved[j] = move.mass[j] - atom.mass;
            if (moved[j] == 0.0) continue;
            const double weight = moved[j] * atom.factor;
            largest = std::max(largest, std::abs(weight));
            move.loss += moved[j] * atom.loss;
            block.difference(j, [&](const std::int32_t* at, const auto* x, std::size_t size) {
                for (std::size_t p = 0; p < size; ++p) seat.delta[at[p]] += weight * static_cast<double>(x[p]);
            });
            square += moved[j] * moved[j] * seat.square[j * n + j];
            for (std::int64_t l = 0; l < j; ++l) square += 2.0 * moved[j] * moved[l] * seat.square[j * n + l];
        }
        move.bend = spread_ * s_.C * square;
        for (const std::int32_t part : block.used) {
            const double x = seat.delta[part];
            seat.delta[part] = 0.0;
            if (std::abs(x) > 1e-14 * largest) examples_.map().add(i, part, x, 0, move.entries);
        }
    }

    // The share of a move that increases the dual most, at most all of it.
    double share(const Move& move) const {
        const double* w = plain_ ? g_.data() : w_.data();
        double slope = 0.0;
        for (const Entry& entry : move.entries) slope += w[entry.at] * entry.x;
        slope = move.loss + (plain_ ? -s_.C : shrink()) * slope;
        return slope >= move.bend ? 1.0 : std::max(slope / move.bend, 0.0);
    }

    // Moves example i.
    void settle(std::int64_t i, Move& move, Totals& totals) {
        ++totals.visits;
        ++time_;
        if (move.asked) {
            ++totals.calls;
            mean_gap_ += (move.gap - gap_[i]) / static_cast<double>(blocks_.size());
            gap_[i] = move.gap;
            asked_[i] = 1;
        }
        if (move.mass.empty()) return;
        double step = moves_.size() > 1 ? share(move) : 1.0;
        if (step < least_step) {  // the moves before it have changed too much
            find(i, true, *seats_[0], move);
            if (move.mass.empty()) return;
            step = 1.0;
        }
        Block& block = blocks_[i];
        before_.note(i, block);
        const bool whole = step >= whole_step;  // nearly as good as the best share, and outputs can lose all their mass
        if (whole) step = 1.0;
        for (std::int64_t j = 0; j < block.size(); ++j) {
            double& mass = block.atoms[j].mass;
            mass = whole ? move.mass[j] : mass + step * (move.mass[j] - mass);
        }
        loss_ += step * move.loss;
        const double early = 0.5 * time_ * (time_ - 1.0);
        late_loss_ += early * step * move.loss;
        for (const Entry& entry : move.entries) {
            const double x = spread_ * step * entry.x;
            g_[entry.at] += x;
            late_[entry.at] += early * x;
            if (plain_) continue;
            double& w = w_[entry.at];
            norm_ -= w * w;
            w = response(static_cast<std::size_t>(entry.at));
            norm_ += w * w;
        }
        block.age();
        if (!before_.begun()) block.forget(s_.most_atoms);
    }

    // Makes the fresh output an atom without mass: its inner products by its features, twice.
    void admit(std::int64_t i, Block& block, Seat& seat) const {
        const Atom& fresh = seat.fresh;
        seat.change.clear();
        seat.add_features(i, fresh.z, fresh.factor);
        examples_.map().scores_at(i, block.used, 0, seat.change.dense(), seat.other.data());
        block.gram.reserve(block.gram.size() + block.atoms.size() + 1);
        const std::size_t before = block.gram.size();
        for (std::int64_t j = 0; j < block.size(); ++j)
            block.gram.push_back(block.atoms[j].factor * block.inner(j, seat.other.data()));
        block.gram.push_back(seat.change.squared());
        seat.change.clear();
        if (!std::isfinite(block.gram.back())) {  // too large to square: no step could be found
            block.gram.resize(before);
            throw NonFinite();
        }
        block.append(fresh, seat.parts);
    }

    Examples& examples_;
    Settings s_;
    std::vector<std::uint8_t> nonnegative_;
    std::vector<double> g_, late_;
    bool plain_;  // neither signs nor a ball: w = -C g is not stored
    std::vector<double> w_;
    double loss_ = 0.0, late_loss_ = 0.0, time_ = 0.0, norm_ = 0.0, mean_gap_ = 0.0;
    Sums older_, newer_;
    Before before_;  // begin()
    double spread_ = 1.0;
    std::vector<Block> blocks_;
    std::vector<double> gap_;          // when an example last asked for its most violated output
    std::vector<std::uint8_t> asked_;  // whether it ever did
    std::vector<std::unique_ptr<Seat>> seats_;
    std::vector<Move> moves_;  // of a group
};

}  // namespace maxmargin::online
