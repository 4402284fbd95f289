// Block-coordinate Frank-Wolfe over examples (Lacoste-Julien, Jaggi, Schmidt and Pletscher 2013).
//
// The dual max_z sum_i loss_i(z_i) - C/2 ||P(-g(z))||^2 is a product over examples. Each example keeps the outputs it
// has met (atoms), their masses and their inner products. A visit finds the worst output at the current weights (or is
// content with a kept one), moves mass between the example's atoms by a few Frank-Wolfe steps and corrects g and w on
// the coordinates that change. P: signs, then a ball; with these the quadratic model of a visit overestimates how fast
// the dual bends (P does not expand), so that a visit never loses.
//
// Cost of a visit: the example's scores, its argmax, its features twice for a new atom and once for the change.
// Memory: the non-zero parts of each atom, a few weight-sized vectors.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "maxmargin/online.hpp"
#include "maxmargin/simplex_steps.hpp"

namespace maxmargin::online {

class BlockDescent {
   public:
    struct Settings {
        double C, radius;
        Step step;
        int steps;                    // Frank-Wolfe steps of one visit
        std::int64_t most_atoms;      // kept for one example
        double cache_gap, cache_mean; // a kept atom will do if its gap is this share of the last one and of the mean
    };
    struct Totals {
        std::int64_t calls = 0, visits = 0;  // of the oracle; in all
    };

    // All mass starts on the gold outputs: g = 0, w = 0.
    BlockDescent(Examples& examples, Settings settings, std::vector<std::uint8_t> nonnegative)
        : examples_(examples),
          s_(settings),
          nonnegative_(std::move(nonnegative)),
          g_(static_cast<std::size_t>(examples.n_weights())),
          late_(g_.size()),
          plain_(nonnegative_.empty() && !std::isfinite(settings.radius)),
          w_(plain_ ? 0 : g_.size()),
          change_(examples.n_weights()),
          blocks_(static_cast<std::size_t>(examples.size())),
          gap_(blocks_.size(), 0.0),
          asked_(blocks_.size(), 0),
          scores_(static_cast<std::size_t>(examples.most_parts())),
          other_(scores_.size()),
          delta_(scores_.size(), 0.0) {
        for (std::int64_t i = 0; i < examples.size(); ++i) {
            Block& block = blocks_[i];
            block.atoms.push_back({examples.gold(i), 0.0, 0.0});
            block.mass.push_back(1.0);
            block.idle.push_back(0);
            block.gram.assign(1, 0.0);
            block.width = 1;
        }
    }

    // Moves the mass of example i from the gold output to others, which must be legal; what the masses lack of 1 stays
    // there. Call refresh() after the last example.
    void seed(std::int64_t i, std::span<const Sparse> outputs, std::span<const double> masses) {
        Block& block = blocks_[i];
        double total = 0.0;
        block.mass[0] = 0.0;
        for (std::size_t r = 0; r < outputs.size(); ++r) {
            fresh_.z = outputs[r];
            examples_.weigh(i, fresh_);
            std::int64_t at = examples_.is_gold(i, fresh_.z) ? 0 : known(block);
            if (at < 0) {
                at = block.size();
                admit(i, block);
            }
            block.mass[at] += masses[r];
            total += masses[r];
        }
        if (total < 1.0 - 1e-12) block.mass[0] += 1.0 - total;  // less is rounding, which refresh() divides out
    }

    // The outputs of example i with mass: body(output, mass).
    template <class Body>
    void each_mass(std::int64_t i, Body&& body) const {
        const Block& block = blocks_[i];
        for (std::int64_t j = 0; j < block.size(); ++j)
            if (block.mass[j] > 0.0) body(block.atoms[j].z, block.mass[j]);
    }

    // Visits the examples in the given order. With `kept_only` no oracle is called.
    Totals pass(std::span<const std::int64_t> order, bool kept_only) {
        Totals totals;
        for (const std::int64_t i : order) visit(i, kept_only, totals);
        return totals;
    }

    // g and the loss from the atoms themselves: sums of changes drift by rounding.
    void refresh() {
        std::fill(g_.begin(), g_.end(), 0.0);
        loss_ = 0.0;
        for (std::int64_t i = 0; i < examples_.size(); ++i) {
            Block& block = blocks_[i];
            double total = 0.0;
            for (const double mass : block.mass) total += mass;
            change_.clear();
            for (std::size_t j = 0; j < block.atoms.size(); ++j) {
                block.mass[j] /= total;
                if (block.mass[j] == 0.0) continue;
                examples_.add_difference(i, block.atoms[j].z, block.mass[j] * block.atoms[j].factor, change_);
                loss_ += block.mass[j] * block.atoms[j].loss;
            }
            for (const std::int64_t at : change_.touched()) g_[at] += change_[at];
        }
        change_.clear();
        norm_ = 0.0;
        for (std::size_t k = 0; k < w_.size(); ++k) {
            w_[k] = response(k);
            norm_ += w_[k] * w_[k];
        }
    }

    // The average of (g, loss) over the visits since the mark before the last, the t-th with weight t.
    void mark() {
        older_ = std::move(newer_);
        newer_ = sums();
    }
    double average(std::span<double> g) const {
        const Sums now = sums();
        const double total = now.weight - older_.weight;
        if (!(total > 0.0)) {
            std::copy(g_.begin(), g_.end(), g.begin());
            return loss_;
        }
        for (std::size_t k = 0; k < g_.size(); ++k)
            g[k] = (now.g[k] - (older_.g.empty() ? 0.0 : older_.g[k])) / total;
        return (now.loss - older_.loss) / total;
    }

    // All that a later object over the same examples needs, besides the atoms, to go on with the same bits.
    struct Vectors {
        std::vector<double> g, late, w, gap, older, newer;
        std::vector<std::uint8_t> asked;
        std::array<double, 9> numbers;  // loss, late loss, time, norm, mean gap; loss and weight of both marks
    };
    Vectors vectors() const {
        return {g_, late_, w_, gap_, older_.g, newer_.g, asked_,
                {loss_, late_loss_, time_, norm_, mean_gap_, older_.loss, older_.weight, newer_.loss, newer_.weight}};
    }
    bool fits(const Vectors& v) const {
        const auto marked = [&](const std::vector<double>& sum) { return sum.empty() || sum.size() == g_.size(); };
        return v.g.size() == g_.size() && v.late.size() == g_.size() && v.w.size() == w_.size() &&
               v.gap.size() == gap_.size() && v.asked.size() == asked_.size() && marked(v.older) && marked(v.newer);
    }
    void restore(Vectors v) {
        const auto& x = v.numbers;
        g_ = std::move(v.g), late_ = std::move(v.late), w_ = std::move(v.w);
        gap_ = std::move(v.gap), asked_ = std::move(v.asked);
        loss_ = x[0], late_loss_ = x[1], time_ = x[2], norm_ = x[3], mean_gap_ = x[4];
        older_ = {std::move(v.older), x[5], x[6]};
        newer_ = {std::move(v.newer), x[7], x[8]};
    }
    // The atoms of example i, the gold one first: body(output, mass, visits without mass).
    template <class Body>
    void each_atom(std::int64_t i, Body&& body) const {
        const Block& block = blocks_[i];
        for (std::int64_t j = 0; j < block.size(); ++j) body(block.atoms[j].z, block.mass[j], block.idle[j]);
    }
    // The atoms of example i again, of which `outputs` are those after the gold one. Atoms keep the order in which they
    // came and an inner product is made when the later of the two comes, so that it has the same bits as before.
    void restore(std::int64_t i, std::span<const Sparse> outputs, std::span<const double> mass,
                 std::span<const std::int32_t> idle) {
        Block& block = blocks_[i];
        block.atoms.resize(1);
        block.mass.resize(1);
        block.idle.resize(1);
        for (const Sparse& z : outputs) {
            fresh_.z = z;
            examples_.weigh(i, fresh_);
            admit(i, block);
        }
        std::copy(mass.begin(), mass.end(), block.mass.begin());
        std::copy(idle.begin(), idle.end(), block.idle.begin());
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
    struct Block {
        std::vector<Atom> atoms;
        std::vector<double> mass, gram;  // gram: width x width
        std::vector<std::int32_t> idle;  // visits without mass
        std::int64_t width = 0;
        std::int64_t size() const { return static_cast<std::int64_t>(atoms.size()); }
    };

    // sum_t t g_t and sum_t t loss_t over all visits t so far, and the sum of the weights.
    struct Sums {
        std::vector<double> g;
        double loss = 0.0, weight = 0.0;
    };
    Sums sums() const {
        Sums now{std::vector<double>(g_.size()), 0.0, 0.5 * time_ * (time_ + 1.0)};
        for (std::size_t k = 0; k < g_.size(); ++k) now.g[k] = now.weight * g_[k] - late_[k];
        now.loss = now.weight * loss_ - late_loss_;
        return now;
    }

    double response(std::size_t k) const {
        const double free = -s_.C * g_[k];
        return !nonnegative_.empty() && nonnegative_[k] ? std::max(free, 0.0) : free;
    }
    double shrink() const { return norm_ > s_.radius * s_.radius ? s_.radius / std::sqrt(norm_) : 1.0; }

    void visit(std::int64_t i, bool kept_only, Totals& totals) {
        Block& block = blocks_[i];
        examples_.scores(i, plain_ ? g_.data() : w_.data(), scores_.data());
        if (const double scale = plain_ ? -s_.C : shrink(); scale != 1.0)
            for (std::int64_t p = 0, n = examples_.parts(i); p < n; ++p) scores_[p] *= scale;
        ++totals.visits;
        value_.resize(block.atoms.size());
        const double gold = examples_.gold_score(i, scores_.data());
        double mean = 0.0, best = 0.0;
        for (std::int64_t j = 0; j < block.size(); ++j) {
            value_[j] = Examples::value(scores_.data(), gold, block.atoms[j]);
            mean += block.mass[j] * value_[j];
            best = j == 0 ? value_[0] : std::max(best, value_[j]);
        }
        const double threshold = std::max(s_.cache_gap * gap_[i], s_.cache_mean * mean_gap_);
        const bool content = s_.cache_gap > 0.0 && asked_[i] && best - mean >= threshold && best - mean > 0.0;
        if (!kept_only && !content) {
            examples_.worst(i, scores_.data(), fresh_);
            ++totals.calls;
            const double value = Examples::value(scores_.data(), gold, fresh_);
            if (!std::isfinite(value)) throw NonFinite();
            best = std::max(best, value);
            const double before = gap_[i];
            gap_[i] = std::max(best - mean, 0.0);
            mean_gap_ += (gap_[i] - before) / static_cast<double>(blocks_.size());
            asked_[i] = 1;
            if (value > mean && !examples_.is_gold(i, fresh_.z) && known(block) < 0) {
                admit(i, block);
                value_.push_back(value);
            }
        }
        ++time_;
        if (!(best > mean)) return;
        before_ = block.mass;
        const double small = 0.1 * std::min(best - mean, mean_gap_);
        simplex_steps(s_.step, s_.C, block.gram.data(), block.width, block.size(), s_.steps, small, value_.data(),
                      block.mass.data());
        move(i, block);
        age(block);
    }

    // Which of the atoms the fresh output is; -1 for none.
    std::int64_t known(const Block& block) const {
        for (std::int64_t j = 0; j < block.size(); ++j) {
            const Atom& atom = block.atoms[j];
            if (atom.loss == fresh_.loss && atom.factor == fresh_.factor && atom.z.index == fresh_.z.index &&
                atom.z.value == fresh_.z.value)
                return j;
        }
        return -1;
    }

    // Makes the fresh output an atom without mass: its inner products by its features, twice.
    void admit(std::int64_t i, Block& block) {
        const std::int64_t k = block.size();
        if (k == block.width) widen(block);
        change_.clear();
        examples_.add_difference(i, fresh_.z, fresh_.factor, change_);
        examples_.scores(i, change_.dense(), other_.data());
        double* row = block.gram.data() + k * block.width;
        const double gold = examples_.gold_score(i, other_.data());
        for (std::int64_t j = 0; j < k; ++j) {
            const Atom& atom = block.atoms[j];
            row[j] = atom.factor * (Examples::inner(atom.z, other_.data()) - gold);
            block.gram[j * block.width + k] = row[j];
        }
        row[k] = change_.squared();
        if (!std::isfinite(row[k])) throw NonFinite();  // too large to square: no step could be found
        change_.clear();
        block.atoms.push_back(fresh_);
        block.mass.push_back(0.0);
        block.idle.push_back(0);
    }

    static void widen(Block& block) {
        const std::int64_t width = block.width * 2, k = block.size();
        std::vector<double> gram(static_cast<std::size_t>(width * width));
        for (std::int64_t j = 0; j < k; ++j)
            std::copy_n(block.gram.data() + j * block.width, k, gram.data() + j * width);
        block.gram.swap(gram);
        block.width = width;
    }

    // Brings g, w and the loss to the new masses. Parts that atoms share cancel before features are touched.
    void move(std::int64_t i, const Block& block) {
        parts_.clear();
        double factors = 0.0, loss = 0.0, largest = 0.0;
        auto shift = [&](const Sparse& z, double x) {
            for (std::size_t j = 0; j < z.index.size(); ++j) {
                if (delta_[z.index[j]] == 0.0) parts_.push_back(z.index[j]);
                delta_[z.index[j]] += x * z.value[j];
            }
        };
        for (std::int64_t j = 0; j < block.size(); ++j) {
            const double moved = block.mass[j] - (j < static_cast<std::int64_t>(before_.size()) ? before_[j] : 0.0);
            if (moved == 0.0) continue;
            const double weight = moved * block.atoms[j].factor;
            largest = std::max(largest, std::abs(weight));
            factors += weight;
            loss += moved * block.atoms[j].loss;
            shift(block.atoms[j].z, weight);
        }
        shift(examples_.gold(i), -factors);
        loss_ += loss;
        const double early = 0.5 * time_ * (time_ - 1.0);
        late_loss_ += early * loss;
        for (const std::int32_t part : parts_) {
            const double x = delta_[part];
            delta_[part] = 0.0;
            if (!(std::abs(x) > 1e-14 * largest)) continue;
            if (plain_) examples_.map().add(i, part, x, early, g_.data(), late_.data());
            else examples_.map().add(i, part, x, 0, change_);
        }
        for (const std::int64_t at : change_.touched()) {
            const double x = change_[at];
            g_[at] += x;
            late_[at] += early * x;
            norm_ -= w_[at] * w_[at];
            w_[at] = response(static_cast<std::size_t>(at));
            norm_ += w_[at] * w_[at];
        }
        change_.clear();
    }

    // Drops the atoms that have gone without mass for longest where there are too many; the gold one stays.
    void age(Block& block) const {
        for (std::int64_t j = 0; j < block.size(); ++j) block.idle[j] = block.mass[j] > 0.0 || j == 0 ? 0 : block.idle[j] + 1;
        while (block.size() > s_.most_atoms) {
            const std::int64_t k = block.size();
            const std::int64_t out = std::max_element(block.idle.begin(), block.idle.end()) - block.idle.begin();
            if (block.idle[out] == 0) return;
            block.atoms.erase(block.atoms.begin() + out);
            block.mass.erase(block.mass.begin() + out);
            block.idle.erase(block.idle.begin() + out);
            for (std::int64_t j = 0; j < k; ++j) {
                double* row = block.gram.data() + j * block.width;
                std::copy(row + out + 1, row + k, row + out);
            }
            for (std::int64_t j = out; j + 1 < k; ++j)
                std::copy_n(block.gram.data() + (j + 1) * block.width, k, block.gram.data() + j * block.width);
        }
    }

    Examples& examples_;
    Settings s_;
    std::vector<std::uint8_t> nonnegative_;
    std::vector<double> g_, late_;
    bool plain_;             // neither signs nor a ball: w = -C g is not stored
    std::vector<double> w_;
    double loss_ = 0.0, late_loss_ = 0.0, time_ = 0.0, norm_ = 0.0, mean_gap_ = 0.0;
    Sums older_, newer_;
    Accumulator change_;
    std::vector<Block> blocks_;
    std::vector<double> gap_;         // when an example last asked for its worst output
    std::vector<std::uint8_t> asked_; // whether it ever did
    std::vector<double> scores_, other_, delta_, value_, before_;
    std::vector<std::int32_t> parts_;
    Atom fresh_;
};

}  // namespace maxmargin::online
