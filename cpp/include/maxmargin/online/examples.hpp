// One example at a time: structures, features and hinges as online methods see them.
//
// Batch kernels treat all examples at fixed weights; an online method changes the weights after every example. It sees
// the batch as Examples: the scores of one example's parts (FeatureMap), the output that violates its margin most
// (Oracle, or a Hinge of its own), and the feature difference of an output to the gold one, added to a weight-sized
// sum. The parts of an example are counted from 0, block after block. A FeatureMap may be read by several threads; of
// the others each thread needs its own, which another() gives.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "maxmargin/hull/projection.hpp"

namespace maxmargin::online {

using hull::Sparse;
using hull::Status;

// A view of non-zeros owned elsewhere.
struct View {
    std::span<const std::int32_t> index;
    std::span<const double> value;

    View(std::span<const std::int32_t> at, std::span<const double> x) : index(at), value(x) {}
    View(const Sparse& z) : index(z.index), value(z.value) {}
};

// Scores or features that are NaN or infinite: the pass ends, complete up to the example before.
struct NonFinite : std::runtime_error {
    NonFinite() : std::runtime_error("an output met NaN or infinite scores") {}
};

// The product that slack rescaling maximizes over the outputs of one example: (costs'y + constant) (margin + scores'y).
struct SlackProduct {
    const double* scores;
    double margin;
    const double* costs;
    double constant;
};

// An example without a feasible output.
struct NoOutput : std::runtime_error {
    explicit NoOutput(std::int64_t i)
        : std::runtime_error("example " + std::to_string(i) + " has no feasible output") {}
};

// Argmax over the outputs of one example.
class Oracle {
   public:
    // ranks: how many outputs k_best may be asked for; 1 if k_best is left to Python.
    explicit Oracle(std::int64_t ranks = 1) : ranks_(ranks) {}
    virtual ~Oracle() = default;
    std::int64_t ranks() const { return ranks_; }
    // The vertex of the largest product, and that product or a bound of it; empty if the oracle cannot compute it.
    virtual std::optional<Status> slack_argmax(std::int64_t, const SlackProduct&, Sparse&, double&) { return {}; }
    virtual std::int64_t n_examples() const = 0;
    virtual std::int64_t size(std::int64_t i) const = 0;  // parts
    // The best vertex for the example's own scores, in rising order of parts.
    virtual Status argmax(std::int64_t i, const double* scores, Sparse& vertex) = 0;
    // The k best vertices, fewer where there are fewer.
    virtual Status k_best(std::int64_t i, const double* scores, std::int64_t k, std::vector<Sparse>& vertices) = 0;
    // State carried from call to call, which may decide between outputs of equal score.
    virtual std::span<double> memory() { return {}; }
    // The same oracle for another thread, which shares the memory; null if there is none. Two threads must not ask for
    // the same example at once. It must not outlive this one.
    virtual std::unique_ptr<Oracle> another() const { return nullptr; }

   private:
    std::int64_t ranks_;
};

// A weight-sized vector that is zero but for the entries it lists.
class Accumulator {
   public:
    explicit Accumulator(std::int64_t n) : value_(static_cast<std::size_t>(n)), seen_(static_cast<std::size_t>(n)) {}

    void add(std::int64_t at, double x) {
        if (!seen_[at]) {
            seen_[at] = 1;
            touched_.push_back(at);
        }
        value_[at] += x;
    }
    void clear() {
        for (const std::int64_t at : touched_) {
            value_[at] = 0.0;
            seen_[at] = 0;
        }
        touched_.clear();
    }
    const double* dense() const { return value_.data(); }
    double operator[](std::int64_t at) const { return value_[at]; }
    std::span<const std::int64_t> touched() const { return touched_; }
    std::vector<std::int64_t>& order() { return touched_; }
    double squared() const {
        double sum = 0.0;
        for (const std::int64_t at : touched_) sum += value_[at] * value_[at];
        return sum;
    }

   private:
    std::vector<double> value_;
    std::vector<std::uint8_t> seen_;
    std::vector<std::int64_t> touched_;
};

// A change of one weight.
struct Entry {
    std::int64_t at;
    double x;
};

// The linear map between weights and the parts of one example.
class FeatureMap {
   public:
    virtual ~FeatureMap() = default;
    virtual std::int64_t n_weights() const = 0;
    virtual std::int64_t n_examples() const = 0;
    virtual std::int64_t size(std::int64_t i) const = 0;  // parts
    // out = F_i'w for all parts.
    virtual void scores(std::int64_t i, const double* w, double* out) const = 0;
    // The same for some parts alone, which rise: out[p - first] for each p of them; others may be written, too.
    virtual void scores_at(std::int64_t i, std::span<const std::int32_t>, std::int64_t, const double* w,
                           double* out) const {
        scores(i, w, out);
    }
    // into += x F_i e_part, with weights counted from `first`.
    virtual void add(std::int64_t i, std::int64_t part, double x, std::int64_t first, Accumulator& into) const = 0;
    // The same as a list, to which it is appended; a weight may come more than once.
    virtual void add(std::int64_t i, std::int64_t part, double x, std::int64_t first,
                     std::vector<Entry>& into) const = 0;
};

// An output as the dual sees it: the feature difference factor (F z - F y) and a loss.
struct Atom {
    Sparse z;
    double factor = 0.0, loss = 0.0;
};

// How the loss of an output scales its margin; see problem/hinges.py.
enum class Rescaling : int { margin = 0, slack = 1, none = 2 };

// The most violated output of one example at given scores, where the oracle does not find it.
class Hinge {
   public:
    virtual ~Hinge() = default;
    virtual void most_violated(std::int64_t i, std::span<const double> scores, Sparse& z) = 0;
    // The same for another thread, see Oracle.
    virtual std::unique_ptr<Hinge> another() const = 0;
};

// Costs of packed parts, owned elsewhere: one of the two is empty.
struct Costs {
    std::span<const double> any;
    std::span<const std::uint8_t> small;  // whole numbers, an eighth of the memory

    std::int64_t size() const { return static_cast<std::int64_t>(any.size() + small.size()); }
    double operator[](std::int64_t at) const { return small.empty() ? any[at] : small[at]; }
    // out += those from `first` on.
    void add(std::int64_t first, std::int64_t n, double* out) const {
        if (small.empty()) {
            const double* cost = any.data() + first;
            for (std::int64_t j = 0; j < n; ++j) out[j] += cost[j];
        } else {
            const std::uint8_t* cost = small.data() + first;
            for (std::int64_t j = 0; j < n; ++j) out[j] += cost[j];
        }
    }
};

// Packed arrays of a problem: block offsets (each n_examples + 1), costs of the leading parts, gold outputs, scales.
struct Packed {
    std::vector<std::vector<std::int64_t>> blocks;
    Costs costs;                                // of the first block, or of all parts
    std::span<const std::int64_t> gold_starts;  // (blocks, n_examples + 1), read by the constructor alone, as are
    std::span<const std::int64_t> gold_index;   // positions in the packed vector
    std::span<const double> gold_value;         // and what the gold outputs have there
    std::vector<double> scale;                  // s_i
};

class Examples {
   public:
    // `hinge` may be null where the margin is rescaled. With `pairs` several outputs are good: the oracle, which knows
    // one, is not asked for the most violated output, only the hinge.
    Examples(Oracle& oracle, const FeatureMap& map, Rescaling rescaling, Hinge* hinge, bool pairs, Packed packed)
        : oracle_(oracle), map_(map), rescaling_(rescaling), hinge_(hinge), pairs_(pairs),
          data_(std::make_shared<const Data>(std::move(packed))) {
        std::int64_t most = 0;
        for (std::int64_t i = 0; i < size(); ++i) most = std::max(most, map_.size(i));
        augmented_.resize(static_cast<std::size_t>(most));
    }
    // The same examples for another thread; null if the oracle is for one thread alone.
    std::unique_ptr<Examples> another() const {
        auto oracle = oracle_.another();
        if (!oracle) return nullptr;
        return std::unique_ptr<Examples>(new Examples(*this, std::move(oracle), hinge_ ? hinge_->another() : nullptr));
    }

    std::int64_t size() const { return static_cast<std::int64_t>(data_->packed.scale.size()); }
    std::int64_t n_weights() const { return map_.n_weights(); }
    std::int64_t parts(std::int64_t i) const { return map_.size(i); }
    std::int64_t most_parts() const { return static_cast<std::int64_t>(augmented_.size()); }
    double scale(std::int64_t i) const { return data_->packed.scale[i]; }
    View gold(std::int64_t i) const {
        const std::size_t first = data_->gold_starts[i], n = data_->gold_starts[i + 1] - first;
        return {{data_->gold.index.data() + first, n}, {data_->gold.value.data() + (data_->ones ? 0 : first), n}};
    }
    const FeatureMap& map() const { return map_; }
    std::span<double> memory() { return oracle_.memory(); }

    void scores(std::int64_t i, const double* w, double* out) const { map_.scores(i, w, out); }

    // The best output without a loss.
    void best(std::int64_t i, const double* scores, Sparse& z) { checked(i, oracle_.argmax(i, scores, z)); }

    // The output that violates the margin most. The scores change during the call.
    void most_violated(std::int64_t i, double* scores, Sparse& z) {
        if (!pairs_ && rescaling_ == Rescaling::margin && scale(i) == 1.0 && !data_->all_costs) {
            // Only the costs of the leading parts are added, which are few next to the pairs of many labels.
            const std::int64_t own = data_->packed.blocks[0][i + 1] - data_->packed.blocks[0][i];
            std::copy_n(scores, own, augmented_.begin());
            add_costs(i, scores);
            const Status found = oracle_.argmax(i, scores, z);
            std::copy_n(augmented_.begin(), own, scores);
            checked(i, found);
        } else {
            most_violated(i, static_cast<const double*>(scores), z);
        }
    }
    void most_violated(std::int64_t i, const double* scores, Sparse& z) {
        if (pairs_) {
            hinge_->most_violated(i, {scores, static_cast<std::size_t>(parts(i))}, z);
        } else if (rescaling_ == Rescaling::margin) {
            checked(i, oracle_.argmax(i, augmented(i, scores), z));
        } else if (!(rescaling_ == Rescaling::slack ? worst_product(i, scores, z) : worst_wrong(i, scores, z))) {
            hinge_->most_violated(i, {scores, static_cast<std::size_t>(parts(i))}, z);
        }
    }
    void most_violated(std::int64_t i, const double* scores, Atom& atom) {
        most_violated(i, scores, atom.z);
        weigh(i, atom);
    }

    // Factor and loss of an output.
    void weigh(std::int64_t i, Atom& atom) const {
        weigh(i, loss(i, atom.z), rescaling_ == Rescaling::none && is_gold(i, atom.z), atom.factor, atom.loss);
    }
    // The same from its difference to the gold output.
    void weigh(std::int64_t i, View difference, double& factor, double& own_loss) const {
        weigh(i, costs(i, difference), difference.index.empty(), factor, own_loss);
    }

    // The k outputs that violate the margin most (margin rescaled only).
    void most_violated(std::int64_t i, const double* scores, std::int64_t k, std::vector<Atom>& atoms) {
        checked(i, oracle_.k_best(i, augmented(i, scores), k, ranks_));
        atoms.resize(ranks_.size());
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            std::swap(atoms[r].z, ranks_[r]);
            weigh(i, atoms[r]);
        }
    }

    // factor w'(F z - F y) + loss; `gold` is the gold output's score.
    static double value(const double* scores, double gold, const Atom& atom) {
        return atom.factor * (inner(atom.z, scores) - gold) + atom.loss;
    }
    double gold_score(std::int64_t i, const double* scores) const { return inner(gold(i), scores); }

    static double inner(View z, const double* scores) {
        double sum = 0.0;
        for (std::size_t j = 0; j < z.index.size(); ++j) sum += z.value[j] * scores[z.index[j]];
        return sum;
    }

    // into += x (F z - F y).
    void add_difference(std::int64_t i, View z, double x, Accumulator& into) const {
        each_sum(gold(i), z, -1.0, [&](std::int64_t part, double change) { map_.add(i, part, x * change, 0, into); });
    }
    // z - y, and the output again.
    void difference(std::int64_t i, View z, Sparse& out) const {
        out.clear();
        each_sum(gold(i), z, -1.0, [&](std::int64_t part, double change) { out.add(part, change); });
    }
    void output(std::int64_t i, View difference, Sparse& out) const {
        out.clear();
        each_sum(gold(i), difference, 1.0, [&](std::int64_t part, double value) { out.add(part, value); });
    }

    bool is_gold(std::int64_t i, View z) const {
        const View y = gold(i);
        return std::ranges::equal(z.index, y.index) && std::ranges::equal(z.value, y.value);
    }

    // s_i (c'z + d): the gold output has loss zero.
    double loss(std::int64_t i, View z) const { return costs(i, z) - costs(i, gold(i)); }

   private:
    // What all threads read.
    struct Data {
        Packed packed;
        std::vector<std::int64_t> starts;
        bool all_costs = false, ones = false;
        Sparse gold;  // of all examples, one after the other; values of all alike if `ones`
        std::vector<std::size_t> gold_starts;

        explicit Data(Packed given) : packed(std::move(given)) {
            const auto n = static_cast<std::int64_t>(packed.scale.size());
            std::int64_t start = 0;
            for (const auto& block : packed.blocks) {
                starts.push_back(start);
                start += block.back();
            }
            all_costs = packed.costs.size() == start && packed.blocks.size() > 1;
            gold.index.reserve(packed.gold_index.size());
            // Gold outputs are mostly zeros and ones: then all of them share as many ones as the longest has.
            ones = std::ranges::all_of(packed.gold_value, [](double x) { return x == 1.0; });
            if (!ones) gold.value.reserve(packed.gold_index.size());
            gold_starts.reserve(static_cast<std::size_t>(n + 1));
            for (std::int64_t i = 0; i < n; ++i) {
                std::int64_t before = 0;
                gold_starts.push_back(gold.index.size());
                for (std::size_t b = 0; b < packed.blocks.size(); ++b) {
                    const auto& block = packed.blocks[b];
                    const std::int64_t* range = packed.gold_starts.data() + b * (n + 1) + i;
                    for (std::int64_t j = range[0]; j < range[1]; ++j) {
                        gold.index.push_back(
                            static_cast<std::int32_t>(packed.gold_index[j] - starts[b] - block[i] + before));
                        if (!ones) gold.value.push_back(packed.gold_value[j]);
                    }
                    before += block[i + 1] - block[i];
                }
            }
            gold_starts.push_back(gold.index.size());
            if (ones) {
                std::size_t longest = 0;
                for (std::int64_t i = 0; i < n; ++i) longest = std::max(longest, gold_starts[i + 1] - gold_starts[i]);
                gold.value.assign(longest, 1.0);
            }
            packed.gold_starts = packed.gold_index = {};
            packed.gold_value = {};
        }
    };
    Examples(const Examples& other, std::unique_ptr<Oracle> oracle, std::unique_ptr<Hinge> hinge)
        : own_oracle_(std::move(oracle)), own_hinge_(std::move(hinge)), oracle_(*own_oracle_), map_(other.map_),
          rescaling_(other.rescaling_), hinge_(own_hinge_.get()), pairs_(other.pairs_), data_(other.data_),
          augmented_(other.augmented_.size()) {}

    // body(part, z + sign y) wherever that is not zero. Outputs mostly agree with the gold one: both lists rise.
    template <class Body>
    static void each_sum(View y, View z, double sign, Body&& body) {
        std::size_t a = 0, b = 0;
        while (a < z.index.size() || b < y.index.size()) {
            const bool left = b == y.index.size() || (a < z.index.size() && z.index[a] < y.index[b]);
            const bool both = !left && a < z.index.size() && z.index[a] == y.index[b];
            const std::int64_t part = left ? z.index[a] : y.index[b];
            const double sum = (left || both ? z.value[a] : 0.0) + (left ? 0.0 : sign * y.value[b]);
            if (sum != 0.0) body(part, sum);
            if (left || both) ++a;
            if (!left) ++b;
        }
    }

    void weigh(std::int64_t i, double own, bool right, double& factor, double& loss) const {
        switch (rescaling_) {
            case Rescaling::margin:
                factor = scale(i);
                loss = own;
                break;
            case Rescaling::slack: factor = loss = std::max(own, 0.0); break;
            case Rescaling::none: factor = loss = right ? 0.0 : scale(i); break;
        }
    }

    static void checked(std::int64_t i, Status status) {
        if (status == Status::nonfinite) throw NonFinite();
        if (status == Status::absent) throw NoOutput(i);
    }

    // Slack rescaled: the output of the largest product, the gold one where none is positive; false if unknown.
    bool worst_product(std::int64_t i, const double* scores, Sparse& z) {
        costs_.assign(static_cast<std::size_t>(parts(i)), 0.0);
        add_costs(i, costs_.data());
        const SlackProduct product{scores, 1.0 - gold_score(i, scores), costs_.data(), 0.0 - costs(i, gold(i))};
        double value = 0.0;
        const std::optional<Status> found = oracle_.slack_argmax(i, product, z, value);
        if (!found) return false;
        checked(i, *found);
        if (value <= 0.0) take_gold(i, z);
        return true;
    }

    // A margin of 1: the best wrong output, the gold one where that violates nothing; false if unknown.
    bool worst_wrong(std::int64_t i, const double* scores, Sparse& z) {
        if (oracle_.ranks() < 2) return false;
        checked(i, oracle_.k_best(i, scores, 2, ranks_));
        const std::size_t wrong = is_gold(i, ranks_[0]) ? 1 : 0;
        const bool counts = wrong < ranks_.size() && !(1.0 + inner(ranks_[wrong], scores) <= gold_score(i, scores));
        if (counts) z = ranks_[wrong];
        else take_gold(i, z);
        return true;
    }

    void take_gold(std::int64_t i, Sparse& z) const {
        const View y = gold(i);
        z.index.assign(y.index.begin(), y.index.end());
        z.value.assign(y.value.begin(), y.value.end());
    }

    double costs(std::int64_t i, View z) const {
        const std::int64_t own = data_->packed.blocks[0][i + 1] - data_->packed.blocks[0][i];
        double sum = 0.0;
        for (std::size_t j = 0; j < z.index.size(); ++j) {
            if (z.index[j] < own) {
                sum += z.value[j] * data_->packed.costs[data_->packed.blocks[0][i] + z.index[j]];
            } else if (data_->all_costs) {
                sum += z.value[j] * data_->packed.costs[packed_position(i, z.index[j])];
            }
        }
        return sum;
    }

    std::int64_t packed_position(std::int64_t i, std::int64_t part) const {
        std::size_t b = 0;
        for (;; ++b) {
            const std::int64_t own = data_->packed.blocks[b][i + 1] - data_->packed.blocks[b][i];
            if (part < own) break;
            part -= own;
        }
        return data_->starts[b] + data_->packed.blocks[b][i] + part;
    }

    const double* augmented(std::int64_t i, const double* scores) {
        const std::int64_t n = parts(i);
        const double s = scale(i);
        for (std::int64_t j = 0; j < n; ++j) augmented_[j] = s * scores[j];
        add_costs(i, augmented_.data());
        return augmented_.data();
    }

    void add_costs(std::int64_t i, double* values) const {
        std::int64_t before = 0;
        for (std::size_t b = 0; b < (data_->all_costs ? data_->packed.blocks.size() : 1); ++b) {
            const std::int64_t first = data_->packed.blocks[b][i], own = data_->packed.blocks[b][i + 1] - first;
            data_->packed.costs.add(data_->starts[b] + first, own, values + before);
            before += own;
        }
    }

    std::unique_ptr<Oracle> own_oracle_;  // of another(); null if they are owned elsewhere
    std::unique_ptr<Hinge> own_hinge_;
    Oracle& oracle_;
    const FeatureMap& map_;
    Rescaling rescaling_;
    Hinge* hinge_;
    bool pairs_;
    std::shared_ptr<const Data> data_;
    std::vector<Sparse> ranks_;
    std::vector<double> augmented_, costs_;
};

}  // namespace maxmargin::online
