// Trees of labeled spans over tokens, as a deduction system.
//
// A node has two children or more, or it is one token, with or without a label. Each tree has one derivation: children
// are read from left to right, the first one and the list of the others. Items of the span (i, j):
//
//     list(i, j)   two nodes or more, side by side:   node(i, k) rest(k, j)   for each k, with the part of the split
//     node(i, j)   one node:                          list(i, j)              for each label, with its part
//                  a token also:                      nothing
//     rest(i, j)   one node or more:                  node(i, j) | list(i, j)
#pragma once

#include "maxmargin/deduction/batch.hpp"
#include "maxmargin/grammar/chart.hpp"

namespace maxmargin::grammar {

using deduction::NONE;

struct SpanSystem {
    std::int64_t n, n_labels;
    bool rooted;  // whether the whole must be a labeled node; else any sequence of nodes
    bool splits;  // whether splits are parts too
    const Ends::value_type* ends;

    std::int64_t n_items() const { return 3 * n_spans(n) + 1; }
    std::int64_t n_parts() const { return n_spans(n) * n_labels + (splits ? n_splits(n) : 0); }
    std::int64_t part_of(std::int64_t) const { return NONE; }

    template <class Take>
    void ways(std::int64_t item, Take&& take) const {
        if (item == 3 * n_spans(n)) {
            if (rooted) labeled(0, n, take);
            else take(rest(0, n), NONE, NONE);
            return;
        }
        const auto [i, j] = ends[item / 3];
        const std::int64_t kind = item % 3;
        if (kind == LIST) {
            const std::int64_t first = splits ? n_spans(n) * n_labels + split_of(n, i, i + 1, j) - i - 1 : 0;
            for (std::int64_t k = i + 1; k < j; ++k) take(node(i, k), rest(k, j), splits ? first + k : NONE);
        } else if (kind == NODE) {
            if (j == i + 1) take(NONE, NONE, NONE);
            labeled(i, j, take);
        } else {
            take(node(i, j), NONE, NONE);
            if (j > i + 1) take(list(i, j), NONE, NONE);
        }
    }

   private:
    enum Kind : std::int64_t { LIST = 0, NODE = 1, REST = 2 };

    static std::int64_t list(std::int64_t i, std::int64_t j) { return 3 * place_of(i, j) + LIST; }
    static std::int64_t node(std::int64_t i, std::int64_t j) { return 3 * place_of(i, j) + NODE; }
    static std::int64_t rest(std::int64_t i, std::int64_t j) { return 3 * place_of(i, j) + REST; }

    template <class Take>
    void labeled(std::int64_t i, std::int64_t j, Take& take) const {
        const std::int64_t below = j == i + 1 ? NONE : list(i, j), first = row_of(n, i, j) * n_labels;
        for (std::int64_t label = 0; label < n_labels; ++label) take(below, NONE, first + label);
    }
};

// Sentences of `lengths` tokens. The caller has checked all numbers.
class SpanBatch {
   public:
    SpanBatch(std::vector<std::int64_t> lengths, std::int64_t n_labels, bool rooted, bool splits)
        : lengths_(std::move(lengths)), n_labels_(n_labels), rooted_(rooted), splits_(splits),
          ends_(ends_of_spans(lengths_.empty() ? 0 : *std::ranges::max_element(lengths_))),
          offsets_(layout_of(n_blocks(), size(), [&](std::int64_t block, std::int64_t i) {
              return block == 0 ? n_spans(lengths_[i]) * n_labels : n_splits(lengths_[i]);
          })) {}

    std::int64_t size() const { return static_cast<std::int64_t>(lengths_.size()); }
    SpanSystem operator[](std::int64_t i) const { return {lengths_[i], n_labels_, rooted_, splits_, ends_.data()}; }
    hull::Layout layout() const { return {n_blocks(), size(), offsets_}; }

   private:
    std::int64_t n_blocks() const { return splits_ ? 2 : 1; }

    std::vector<std::int64_t> lengths_;
    std::int64_t n_labels_;
    bool rooted_, splits_;
    Ends ends_;
    std::vector<std::int64_t> offsets_;
};

}  // namespace maxmargin::grammar
