// The outputs that an example keeps between visits of block-coordinate Frank-Wolfe (atoms), with their masses and inner
// products. Only F z - F y counts, and outputs mostly agree with the gold one: an atom is kept by the few parts in
// which it differs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "maxmargin/online/examples.hpp"

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

struct Kept {
    double factor, loss, mass;
    std::int64_t end;   // of its difference
    std::int32_t idle;  // visits without mass
};

// The atoms of one example, the gold output first, with all mass at the beginning.
struct Block {
    std::vector<Kept> atoms{{0.0, 0.0, 1.0, 0, 0}};
    std::vector<std::int32_t> index;  // parts in which they differ from the gold output, atom after atom
    Changes change;                   // by how much
    std::vector<std::int32_t> used;   // all of these parts once, rising
    std::vector<double> gram{0.0};    // lower triangle, row after row

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

    // Which of the atoms an output is; -1 for none. The z of `fresh` is its difference to the gold output.
    std::int64_t known(const Atom& fresh) const {
        if (fresh.z.index.empty()) return 0;
        for (std::int64_t j = 1; j < size(); ++j) {
            const Kept& atom = atoms[j];
            if (atom.loss != fresh.loss || atom.factor != fresh.factor) continue;
            const bool same = difference(j, [&](const std::int32_t* at, const auto* x, std::size_t n) {
                return std::equal(at, at + n, fresh.z.index.begin(), fresh.z.index.end()) &&
                       std::equal(x, x + n, fresh.z.value.begin(), fresh.z.value.end());
            });
            if (same) return j;
        }
        return -1;
    }
    // One more atom, without mass, whose row of inner products is there already; `room` is working memory.
    void append(const Atom& fresh, std::vector<std::int32_t>& room) {
        Changes::append_to(index, fresh.z.index);
        change.append(fresh.z.value);
        atoms.reserve(atoms.size() + 1);
        atoms.push_back({fresh.factor, fresh.loss, 0.0, static_cast<std::int64_t>(index.size()), 0});
        room.clear();
        std::ranges::set_union(used, fresh.z.index, std::back_inserter(room));
        used.assign(room.begin(), room.end());
    }

    void age() {
        for (std::int64_t j = 1; j < size(); ++j) atoms[j].idle = atoms[j].mass > 0.0 ? 0 : atoms[j].idle + 1;
    }
    // Drops the atoms that have gone without mass for longest where there are too many; the gold one stays.
    void forget(std::int64_t most) {
        if (size() <= most) return;
        while (size() > most) {
            const auto rest = [](const Kept& atom) { return atom.mass > 0.0 ? 0 : atom.idle; };
            const auto out = std::ranges::max_element(atoms, {}, rest) - atoms.begin();
            if (rest(atoms[out]) == 0) break;
            drop(out);
        }
        used = index;
        std::ranges::sort(used);
        used.erase(std::unique(used.begin(), used.end()), used.end());
    }

   private:
    void drop(std::int64_t out) {
        const std::int64_t first = out == 0 ? 0 : atoms[out - 1].end, last = atoms[out].end;
        index.erase(index.begin() + first, index.begin() + last);
        change.erase(first, last);
        std::size_t from = 0, to = 0;
        for (std::int64_t j = 0; j < size(); ++j)
            for (std::int64_t l = 0; l <= j; ++l, ++from)
                if (j != out && l != out) gram[to++] = gram[from];
        gram.resize(to);
        atoms.erase(atoms.begin() + out);
        for (std::int64_t j = out; j < size(); ++j) atoms[j].end -= last - first;
    }
};

// Masses of examples as they were before some visits, so that a share of the changes can be kept.
class Before {
   public:
    // From here on examples are noted before their masses change.
    void begin(std::size_t n_examples) {
        noted_.assign(n_examples, 0);
        examples_.clear();
        starts_.assign(1, 0);
        mass_.clear();
    }
    bool begun() const { return !starts_.empty(); }
    void note(std::int64_t i, const Block& block) {
        if (!begun() || noted_[i]) return;
        noted_[i] = 1;
        examples_.push_back(i);
        for (const Kept& atom : block.atoms) mass_.push_back(atom.mass);
        starts_.push_back(static_cast<std::int64_t>(mass_.size()));
    }
    // Keeps a share of all changes. Later atoms had no mass.
    void end(double share, std::vector<Block>& blocks, std::int64_t most) {
        for (std::size_t at = 0; at < examples_.size(); ++at) {
            Block& block = blocks[examples_[at]];
            for (std::int64_t j = 0, n = starts_[at + 1] - starts_[at]; j < block.size() && share < 1.0; ++j) {
                const double old = j < n ? mass_[starts_[at] + j] : 0.0;
                double& mass = block.atoms[j].mass;
                mass = share > 0.0 ? old + share * (mass - old) : old;
            }
            block.forget(most);
        }
        *this = Before();
    }

    // What was noted, and the same again: the masses of examples()[at] are those from starts()[at] on.
    std::span<const std::int64_t> examples() const { return examples_; }
    std::span<const std::int64_t> starts() const { return starts_; }
    std::span<const double> mass() const { return mass_; }
    // False if an example is none, comes twice, or has more masses than atoms.
    bool resume(const std::vector<Block>& blocks, std::vector<std::int64_t> examples, std::vector<std::int64_t> starts,
                std::vector<double> mass) {
        begin(blocks.size());
        bool fits = true;
        for (std::size_t at = 0; at < examples.size() && fits; ++at) {
            const std::int64_t i = examples[at];
            fits = i >= 0 && i < static_cast<std::int64_t>(blocks.size()) && !noted_[i] &&
                   starts[at + 1] - starts[at] <= blocks[i].size();
            if (fits) noted_[i] = 1;
        }
        examples_ = std::move(examples), starts_ = std::move(starts), mass_ = std::move(mass);
        if (!fits) *this = Before();
        return fits;
    }

   private:
    std::vector<std::uint8_t> noted_;
    std::vector<std::int64_t> examples_, starts_;  // starts are empty where nothing is noted
    std::vector<double> mass_;
};

}  // namespace maxmargin::online
