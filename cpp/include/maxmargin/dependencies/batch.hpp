// A packed batch of sentences, of which a deduction system finds the trees.
#pragma once

#include <utility>

#include "maxmargin/dependencies/arcs.hpp"
#include "maxmargin/dependencies/sentence.hpp"

namespace maxmargin::dependencies {

// Siblings (head, sibling, modifier) or grandparents (grandparent, head, modifier) of a batch: rising by sentence,
// modifier, head, and then the distance of the sibling from the head, or the grandparent.
struct Triples {
    Extent extent = Extent::none;
    std::vector<std::int64_t> offsets;
    std::vector<std::int32_t> nodes;
};

template <class System>
class Batch {
   public:
    Batch(std::vector<std::int64_t> tokens, std::int64_t labels, bool single_root, const Arcs& arcs,
          const Triples& siblings, const Triples& grandparents)
        : tokens_(std::move(tokens)), labels_(labels), single_root_(single_root) {
        const std::size_t n = tokens_.size();
        cells_.assign(n + 1, 0);
        for (std::size_t i = 0; i < n; ++i) cells_[i + 1] = cells_[i] + (tokens_[i] + 1) * (tokens_[i] + 1) + 1;
        if (!arcs.offsets.empty()) list(arcs);
        siblings_.list(siblings, tokens_, cells_, 0, 1);
        grandparents_.list(grandparents, tokens_, cells_, 1, 0);
        add_block([&](std::size_t i) {
            return (arcs.offsets.empty() ? tokens_[i] * tokens_[i] : arcs.offsets[i + 1] - arcs.offsets[i]) * labels_;
        });
        if (siblings.extent != Extent::none)
            add_block([&](std::size_t i) { return siblings_.count(i, Sentence::all_siblings(tokens_[i])); });
        if (grandparents.extent != Extent::none)
            add_block([&](std::size_t i) { return grandparents_.count(i, Sentence::all_grandparents(tokens_[i])); });
    }

    std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
    hull::Layout layout() const { return {n_blocks_, size(), offsets_}; }
    System operator[](std::int64_t i) const {
        const std::int64_t n = tokens_[i];
        const std::int64_t n_arcs = offsets_[i + 1] - offsets_[i];
        System system;
        system.sentence = {n,
                           labels_,
                           n_arcs / labels_,
                           single_root_,
                           arc_table_.empty() ? nullptr : arc_table_.data() + cells_[i],
                           siblings_.extent,
                           grandparents_.extent,
                           siblings_.of(i, cells_),
                           grandparents_.of(i, cells_),
                           siblings_.count(i, Sentence::all_siblings(n)),
                           grandparents_.count(i, Sentence::all_grandparents(n))};
        return system;
    }

   private:
    // Listed triples by their heads and modifiers.
    struct Table {
        Extent extent = Extent::none;
        std::vector<std::int64_t> offsets;
        std::vector<std::int32_t> first, third;

        // `head` and `other`: where in a triple the head stands, and the node that is neither head nor modifier.
        void list(const Triples& triples, const std::vector<std::int64_t>& tokens,
                  const std::vector<std::int64_t>& cells, int head, int other) {
            extent = triples.extent;
            if (extent != Extent::listed) return;
            offsets = triples.offsets;
            first.assign(static_cast<std::size_t>(cells.back()), 0);
            third.resize(triples.nodes.size() / 3);
            for (std::size_t i = 0; i < tokens.size(); ++i) {
                std::int32_t* own = first.data() + cells[i];
                for (std::int64_t a = offsets[i]; a < offsets[i + 1]; ++a) {
                    const std::int32_t* nodes = triples.nodes.data() + 3 * a;
                    ++own[nodes[2] * (tokens[i] + 1) + nodes[head] + 1];
                    third[a] = nodes[other];
                }
                for (std::int64_t c = 1; c < cells[i + 1] - cells[i]; ++c) own[c] += own[c - 1];
            }
        }

        Listed of(std::int64_t i, const std::vector<std::int64_t>& cells) const {
            if (extent != Extent::listed) return {};
            return {first.data() + cells[i], third.data() + offsets[i]};
        }

        std::int64_t count(std::size_t i, std::int64_t all) const {
            if (extent == Extent::none) return 0;
            return extent == Extent::all ? all : offsets[i + 1] - offsets[i];
        }
    };

    void list(const Arcs& arcs) {
        arc_table_.assign(static_cast<std::size_t>(cells_.back()), static_cast<std::int32_t>(NONE));
        for (std::size_t i = 0; i < tokens_.size(); ++i)
            for (std::int64_t a = arcs.offsets[i]; a < arcs.offsets[i + 1]; ++a)
                arc_table_[cells_[i] + arcs.nodes[2 * a + 1] * (tokens_[i] + 1) + arcs.nodes[2 * a]] =
                    static_cast<std::int32_t>(a - arcs.offsets[i]);
    }

    template <class Count>
    void add_block(Count&& count) {
        const std::size_t n = tokens_.size(), begin = offsets_.size();
        offsets_.resize(begin + n + 1, begin == 0 ? 0 : offsets_.back());
        for (std::size_t i = 0; i < n; ++i) offsets_[begin + i + 1] = offsets_[begin + i] + count(i);
        ++n_blocks_;
    }

    std::vector<std::int64_t> tokens_, offsets_;
    std::vector<std::int64_t> cells_;  // of tables with a cell for each pair of nodes, and one more
    std::int64_t labels_, n_blocks_ = 0;
    bool single_root_;
    std::vector<std::int32_t> arc_table_;
    Table siblings_, grandparents_;
};

}  // namespace maxmargin::dependencies
