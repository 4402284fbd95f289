// The n-grams of references of one sentence, to count those of hypotheses that match.
//
// N-grams of all orders are the nodes of a trie whose edges stand in one hash table, by node and token. A hypothesis is
// walked from each of its positions until no reference goes on in the same way, so a look-up is spent on each match and
// on one mismatch per position: O(order * tokens), exactly, as keys and not hashes are compared. It is cleared for each
// sentence; ngram_table.hpp has one that grows over all texts.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "maxmargin/base/hashing.hpp"
#include "maxmargin/reranking/sequences.hpp"

namespace maxmargin::reranking {

// The number of n-grams in a sequence.
inline std::int64_t ngrams_in(std::size_t length, int order) {
    return std::max<std::int64_t>(static_cast<std::int64_t>(length) - order + 1, 0);
}

class NgramIndex {
   public:
    // Forgets all n-grams; room for references of so many tokens in all.
    void clear(std::size_t tokens, int order) {
        order_ = order;
        const std::size_t wanted = std::bit_ceil(2 * tokens * static_cast<std::size_t>(order) + 2);
        if (edges_.size() < wanted) edges_.resize(wanted);
        mask_ = wanted - 1;
        shift_ = 64 - std::countr_zero(wanted);
        std::fill_n(edges_.begin(), wanted, Edge{});
        limit_.assign(1, 0);
        used_.assign(1, 0);
    }

    // Adds a reference: the limit of an n-gram is the largest number of times that one reference has it.
    void add(std::span<const Token> reference) {
        for (std::size_t i = 0; i < reference.size(); ++i) {
            std::uint32_t node = root;
            for (std::size_t k = i; k < end(i, reference.size()); ++k) use(node = child(node, reference[k]));
        }
        for (const std::uint32_t node : touched_) limit_[node] = std::max(limit_[node], used_[node]);
        forget();
    }

    // Adds to matches[n - 1] the n-grams of a hypothesis that match, each at most as often as its limit.
    template <class Count>
    void match(std::span<const Token> hypothesis, Count* matches) {
        for (std::size_t i = 0; i < hypothesis.size(); ++i) {
            std::uint32_t node = root;
            for (std::size_t k = i; k < end(i, hypothesis.size()); ++k) {
                node = find(node, hypothesis[k]);
                if (node == root) break;
                if (used_[node] < limit_[node]) matches[k - i] += 1;
                use(node);
            }
        }
        forget();
    }

   private:
    static constexpr std::uint32_t root = 0;  // no edge leads to it, so it also marks free slots

    struct Edge {
        std::uint64_t key = 0;
        std::uint32_t node = root;
    };

    std::size_t end(std::size_t i, std::size_t length) const {
        return std::min(i + static_cast<std::size_t>(order_), length);
    }
    static std::uint64_t key_of(std::uint32_t node, Token token) {
        return (std::uint64_t{node} << 32) | static_cast<std::uint32_t>(token);
    }
    std::size_t slot_of(std::uint64_t key) const {
        std::size_t i = hashing::of_number(secret_, key) >> shift_;
        while (edges_[i].node != root && edges_[i].key != key) i = (i + 1) & mask_;
        return i;
    }
    std::uint32_t find(std::uint32_t node, Token token) const { return edges_[slot_of(key_of(node, token))].node; }
    std::uint32_t child(std::uint32_t node, Token token) {
        const std::uint64_t key = key_of(node, token);
        Edge& edge = edges_[slot_of(key)];
        if (edge.node == root) {
            edge = {key, static_cast<std::uint32_t>(limit_.size())};
            limit_.push_back(0);
            used_.push_back(0);
        }
        return edge.node;
    }
    void use(std::uint32_t node) {
        if (used_[node]++ == 0) touched_.push_back(node);
    }
    void forget() {
        for (const std::uint32_t node : touched_) used_[node] = 0;
        touched_.clear();
    }

    hashing::Secret secret_ = hashing::secret();
    int order_ = 1, shift_ = 63;
    std::size_t mask_ = 0;
    std::vector<Edge> edges_;  // at most half of the slots in use are taken
    std::vector<std::uint32_t> limit_, used_, touched_;
};

}  // namespace maxmargin::reranking
