// Block-coordinate Frank-Wolfe over examples (Lacoste-Julien, Jaggi, Schmidt and Pletscher 2013).
//
// The dual max_z sum_i loss_i(z_i) - C/2 ||P(-g(z))||^2 is a product over examples. Each example keeps the outputs it
// has found (atoms), their masses and their inner products. A visit finds the most violated output at the current
// weights (or reuses a kept one), moves mass between the example's atoms by a few Frank-Wolfe steps and corrects g and
// w on the coordinates that change. P: signs, then a ball; with these the quadratic model of a visit overestimates how
// fast the dual bends (P is nonexpansive), so that a visit never decreases the dual.
//
// Outputs mostly agree with the gold one, and only F z - F y counts: an atom is kept by the few parts in which it
// differs. Cost of a visit with the oracle: the example's scores, its argmax, the features of the differing parts twice
// for a new atom and once for the change; of one to the kept atoms alone: the scores of the parts in which some atom
// differs. Memory: these differences, a few weight-sized vectors.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "maxmargin/online/examples.hpp"
#include "maxmargin/simplex/steps.hpp"

namespace maxmargin::online {

// Changes of parts, kept as bytes as long as all are small whole numbers: an eighth of the memory, and nearly always
// so.
class Changes {
   public:
    std::size_t size() const { return whole_ ? small_.size() : any_.size(); }
    void clear() { *this = Changes(); }
    void append(std::span<const double> values) {
        if (whole_ && !std::ranges::all_of(values, is_small)) {
            any_.assign(small_.begin(), small_.end());
            std::vector<std::int8_t>().swap(small_);
            whole_ = false;
        }
        if (whole_) append_to(small_, values);
        else append_to(any_, values);
    }
    void erase(std::int64_t first, std::int64_t last) {
        if (whole_) small_.erase(small_.begin() + first, small_.begin() + last);
        else any_.erase(any_.begin() + first, any_.begin() + last);
    }
    // body(values) with a pointer to those from `first` on, bytes or doubles.
    template <class Body>
    auto from(std::int64_t first, Body&& body) const {
        return whole_ ? body(small_.data() + first) : body(any_.data() + first);
    }

    // Exactly as much room as is needed: these vectors are small, many, and grow a few times only.
    template <class To, class From>
    static void append_to(std::vector<To>& to, const From& values) {
        to.reserve(to.size() + values.size());
        for (const auto value : values) to.push_back(static_cast<To>(value));
    }

   private:
    static bool is_small(double x) { return x >= -127.0 && x <= 127.0 && x == std::trunc(x) && !(x == 0.0); }

    bool whole_ = true;
    std::vector<std::int8_t> small_;
    std::vector<double> any_;
};

class BlockFrankWolfe {
   public:
    struct Settings {
        double C, radius;
        Step step;
        int steps;                     // Frank-Wolfe steps of one visit
        std::int64_t most_atoms;       // kept for one example
        double cache_gap, cache_mean;  // a kept atom will do if its gap is this share of the last one and of the mean
    };
    struct Totals {
        std::int64_t calls = 0, visits = 0;  // of the oracle; in all
    };

    // All mass starts on the gold outputs: g = 0, w = 0.
    BlockFrankWolfe(Examples& examples, Settings settings, std::vector<std::uint8_t> nonnegative)
        : examples_(examples), s_(settings), nonnegative_(std::move(nonnegative)),
          g_(static_cast<std::size_t>(examples.n_weights())), late_(g_.size()),
          plain_(nonnegative_.empty() && !std::isfinite(settings.radius)), w_(plain_ ? 0 : g_.size()),
          change_(examples.n_weights()), blocks_(static_cast<std::size_t>(examples.size())), gap_(blocks_.size(), 0.0),
          asked_(blocks_.size(), 0), scores_(static_cast<std::size_t>(examples.most_parts())), other_(scores_.size()),
          delta_(scores_.size(), 0.0) {
        for (std::int64_t i = 0; i < examples.size(); ++i) {
            blocks_[i].atoms.push_back({0.0, 0.0, 1.0, 0, 0});
            blocks_[i].gram.push_back(0.0);
        }
    }

    // Moves the mass of example i from the gold output to others, which must be feasible; what the masses lack of 1
    // stays there. Call refresh() after the last example.
    void seed(std::int64_t i, std::span<const Sparse> outputs, std::span<const double> masses) {
        Block& block = blocks_[i];
        double total = 0.0;
        block.atoms[0].mass = 0.0;
        for (std::size_t r = 0; r < outputs.size(); ++r) {
            freshen(i, outputs[r]);
            std::int64_t at = known(block);
            if (at < 0) {
                at = block.size();
                admit(i, block);
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
            for (const Kept& atom : block.atoms) total += atom.mass;
            change_.clear();
            for (std::int64_t j = 0; j < block.size(); ++j) {
                Kept& atom = block.atoms[j];
                atom.mass /= total;
                if (atom.mass == 0.0) continue;
                block.copy(j, kept_);
                add_features(i, kept_, atom.mass * atom.factor);
                loss_ += atom.mass * atom.loss;
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
    // they came and an inner product is made when the later of the two comes, so that it has the same bits as before.
    void restore(std::int64_t i, std::span<const Sparse> differences, std::span<const double> mass,
                 std::span<const std::int32_t> idle) {
        Block& block = blocks_[i];
        block.atoms.resize(1);
        block.gram.resize(1);
        block.index.clear();
        block.change.clear();
        block.used.clear();
        for (const Sparse& difference : differences) {
            fresh_.z = difference;
            examples_.weigh(i, fresh_.z, fresh_.factor, fresh_.loss);
            admit(i, block);
        }
        for (std::int64_t j = 0; j < block.size(); ++j) block.atoms[j].mass = mass[j], block.atoms[j].idle = idle[j];
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
    struct Kept {
        double factor, loss, mass;
        std::int64_t end;   // of its difference
        std::int32_t idle;  // visits without mass
    };
    struct Block {
        std::vector<Kept> atoms;          // the gold output first
        std::vector<std::int32_t> index;  // parts in which they differ from the gold output, atom after atom
        Changes change;                   // by how much
        std::vector<std::int32_t> used;   // all of these parts once, rising
        std::vector<double> gram;         // lower triangle, row after row
        std::int64_t size() const { return static_cast<std::int64_t>(atoms.size()); }
        // body(parts, changes, how many) of atom j.
        template <class Body>
        auto difference(std::int64_t j, Body&& body) const {
            const std::int64_t first = j == 0 ? 0 : atoms[j - 1].end;
            const auto n = static_cast<std::size_t>(atoms[j].end - first);
            return change.from(first, [&](const auto* values) { return body(index.data() + first, values, n); });
        }
        void copy(std::int64_t j, Sparse& out) const {
            difference(j, [&](const std::int32_t* at, const auto* x, std::size_t n) {
                out.index.assign(at, at + n);
                out.value.assign(x, x + n);
            });
        }
        double inner(std::int64_t j, const double* scores) const {
            return difference(j, [&](const std::int32_t* at, const auto* x, std::size_t n) {
                double sum = 0.0;
                for (std::size_t p = 0; p < n; ++p) sum += static_cast<double>(x[p]) * scores[at[p]];
                return sum;
            });
        }
    };

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
    double shrink() const { return norm_ > s_.radius * s_.radius ? s_.radius / std::sqrt(norm_) : 1.0; }

    void visit(std::int64_t i, bool kept_only, Totals& totals) {
        Block& block = blocks_[i];
        ++totals.visits;
        if (kept_only && block.size() == 1) {  // nowhere to go
            ++time_;
            return;
        }
        const double* w = plain_ ? g_.data() : w_.data();
        double scale = plain_ ? -s_.C : shrink();
        if (kept_only) {
            examples_.map().scores_at(i, block.used, 0, w, scores_.data());
        } else {
            examples_.scores(i, w, scores_.data());
            if (scale != 1.0)
                for (std::int64_t p = 0, n = examples_.parts(i); p < n; ++p) scores_[p] *= scale;
            scale = 1.0;
        }
        value_.resize(block.atoms.size());
        double mean = 0.0, best = 0.0;
        for (std::int64_t j = 0; j < block.size(); ++j) {
            const Kept& atom = block.atoms[j];
            value_[j] = atom.factor * (scale * block.inner(j, scores_.data())) + atom.loss;
            mean += atom.mass * value_[j];
            best = j == 0 ? value_[0] : std::max(best, value_[j]);
        }
        const double threshold = std::max(s_.cache_gap * gap_[i], s_.cache_mean * mean_gap_);
        const bool content = s_.cache_gap > 0.0 && asked_[i] && best - mean >= threshold && best - mean > 0.0;
        if (!kept_only && !content) {
            examples_.most_violated(i, scores_.data(), found_);
            freshen(i, found_);
            ++totals.calls;
            const double value = fresh_.factor * Examples::inner(fresh_.z, scores_.data()) + fresh_.loss;
            if (!std::isfinite(value)) throw NonFinite();
            best = std::max(best, value);
            const double before = gap_[i];
            gap_[i] = std::max(best - mean, 0.0);
            mean_gap_ += (gap_[i] - before) / static_cast<double>(blocks_.size());
            asked_[i] = 1;
            if (value > mean && known(block) < 0) {
                admit(i, block);
                value_.push_back(value);
            }
        }
        ++time_;
        if (!(best > mean)) return;
        mass_.clear();
        for (const Kept& atom : block.atoms) mass_.push_back(atom.mass);
        const double small = 0.1 * std::min(best - mean, mean_gap_);
        simplex_steps(s_.step, s_.C, square(block), block.size(), block.size(), s_.steps, small, value_.data(),
                      mass_.data());
        move(i, block);
        age(block);
    }

    // The inner products of a block, both triangles.
    const double* square(const Block& block) {
        const std::int64_t n = block.size();
        square_.resize(static_cast<std::size_t>(n * n));
        const double* at = block.gram.data();
        for (std::int64_t j = 0; j < n; ++j)
            for (std::int64_t l = 0; l <= j; ++l) square_[j * n + l] = square_[l * n + j] = *at++;
        return square_.data();
    }

    // Makes an output the fresh one: its difference, factor and loss.
    void freshen(std::int64_t i, View z) {
        examples_.difference(i, z, fresh_.z);
        examples_.weigh(i, fresh_.z, fresh_.factor, fresh_.loss);
    }

    // Which of the atoms the fresh output is; -1 for none.
    std::int64_t known(const Block& block) const {
        if (fresh_.z.index.empty()) return 0;
        for (std::int64_t j = 1; j < block.size(); ++j) {
            const Kept& atom = block.atoms[j];
            if (atom.loss != fresh_.loss || atom.factor != fresh_.factor) continue;
            const bool same = block.difference(j, [&](const std::int32_t* at, const auto* x, std::size_t n) {
                return std::equal(at, at + n, fresh_.z.index.begin(), fresh_.z.index.end()) &&
                       std::equal(x, x + n, fresh_.z.value.begin(), fresh_.z.value.end());
            });
            if (same) return j;
        }
        return -1;
    }

    // change_ += x F_i difference.
    void add_features(std::int64_t i, View difference, double x) {
        for (std::size_t j = 0; j < difference.index.size(); ++j)
            examples_.map().add(i, difference.index[j], x * difference.value[j], 0, change_);
    }

    // Makes the fresh output an atom without mass: its inner products by its features, twice.
    void admit(std::int64_t i, Block& block) {
        change_.clear();
        add_features(i, fresh_.z, fresh_.factor);
        examples_.map().scores_at(i, block.used, 0, change_.dense(), other_.data());
        block.gram.reserve(block.gram.size() + block.atoms.size() + 1);
        for (std::int64_t j = 0; j < block.size(); ++j)
            block.gram.push_back(block.atoms[j].factor * block.inner(j, other_.data()));
        block.gram.push_back(change_.squared());
        if (!std::isfinite(block.gram.back())) throw NonFinite();  // too large to square: no step could be found
        change_.clear();
        Changes::append_to(block.index, fresh_.z.index);
        block.change.append(fresh_.z.value);
        block.atoms.reserve(block.atoms.size() + 1);
        block.atoms.push_back({fresh_.factor, fresh_.loss, 0.0, static_cast<std::int64_t>(block.index.size()), 0});
        parts_.clear();
        std::ranges::set_union(block.used, fresh_.z.index, std::back_inserter(parts_));
        block.used.assign(parts_.begin(), parts_.end());
    }

    // Brings g, w and the loss to the new masses. Parts that atoms share cancel before features are touched.
    void move(std::int64_t i, Block& block) {
        double loss = 0.0, largest = 0.0;
        for (std::int64_t j = 0; j < block.size(); ++j) {
            Kept& atom = block.atoms[j];
            const double moved = mass_[j] - atom.mass;
            if (moved == 0.0) continue;
            atom.mass = mass_[j];
            const double weight = moved * atom.factor;
            largest = std::max(largest, std::abs(weight));
            loss += moved * atom.loss;
            block.difference(j, [&](const std::int32_t* at, const auto* x, std::size_t n) {
                for (std::size_t p = 0; p < n; ++p) delta_[at[p]] += weight * static_cast<double>(x[p]);
            });
        }
        loss_ += loss;
        const double early = 0.5 * time_ * (time_ - 1.0);
        late_loss_ += early * loss;
        for (const std::int32_t part : block.used) {
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
        for (std::int64_t j = 1; j < block.size(); ++j) {
            Kept& atom = block.atoms[j];
            atom.idle = atom.mass > 0.0 ? 0 : atom.idle + 1;
        }
        if (block.size() <= s_.most_atoms) return;
        while (block.size() > s_.most_atoms) {
            const auto out = std::ranges::max_element(block.atoms, {}, &Kept::idle) - block.atoms.begin();
            if (block.atoms[out].idle == 0) break;
            drop(block, out);
        }
        block.used = block.index;
        std::ranges::sort(block.used);
        block.used.erase(std::unique(block.used.begin(), block.used.end()), block.used.end());
    }

    static void drop(Block& block, std::int64_t out) {
        const std::int64_t first = out == 0 ? 0 : block.atoms[out - 1].end, last = block.atoms[out].end;
        block.index.erase(block.index.begin() + first, block.index.begin() + last);
        block.change.erase(first, last);
        std::size_t from = 0, to = 0;
        for (std::int64_t j = 0; j < block.size(); ++j)
            for (std::int64_t l = 0; l <= j; ++l, ++from)
                if (j != out && l != out) block.gram[to++] = block.gram[from];
        block.gram.resize(to);
        block.atoms.erase(block.atoms.begin() + out);
        for (std::int64_t j = out; j < block.size(); ++j) block.atoms[j].end -= last - first;
    }

    Examples& examples_;
    Settings s_;
    std::vector<std::uint8_t> nonnegative_;
    std::vector<double> g_, late_;
    bool plain_;  // neither signs nor a ball: w = -C g is not stored
    std::vector<double> w_;
    double loss_ = 0.0, late_loss_ = 0.0, time_ = 0.0, norm_ = 0.0, mean_gap_ = 0.0;
    Sums older_, newer_;
    Accumulator change_;
    std::vector<Block> blocks_;
    std::vector<double> gap_;          // when an example last asked for its most violated output
    std::vector<std::uint8_t> asked_;  // whether it ever did
    std::vector<double> scores_, other_, delta_, value_, mass_, square_;
    std::vector<std::int32_t> parts_;
    Sparse found_;
    Atom fresh_;  // its z is the difference
    Sparse kept_;
};

}  // namespace maxmargin::online
