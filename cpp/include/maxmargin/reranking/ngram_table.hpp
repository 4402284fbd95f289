// Word n-grams of hypotheses, numbered in the order in which they first appear, with the counts of each hypothesis.
//
// An n-gram is a pair of the n-gram without its last word and that word, so that all orders share one table of pairs
// (open addressing, linear probing, at most 5/8 of the slots taken) and numbers are exact. Cost: one look-up per word
// and order; 24 to 36 bytes per n-gram. It grows over all texts; ngram_index.hpp has one that is cleared for each
// sentence.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include "maxmargin/base/growing.hpp"
#include "maxmargin/base/hashing.hpp"

namespace maxmargin::reranking {

class NgramTable {
   public:
    static constexpr std::int32_t root = -1;     // what a unigram extends
    static constexpr std::int32_t unknown = -2;  // not in the table

    NgramTable() { widen(64); }

    std::int64_t size() const { return static_cast<std::int64_t>(prefixes_.size()); }
    const std::int32_t* prefixes() const { return prefixes_.data(); }
    const std::int32_t* words() const { return words_.data(); }

    std::int32_t find(std::int32_t prefix, std::int32_t word) const {
        const std::uint64_t key = key_of(prefix, word);
        for (std::size_t i = place(key);; i = (i + 1) & mask()) {
            if (slots_[i].number < 0) return unknown;
            if (slots_[i].key == key) return slots_[i].number;
        }
    }

    std::int32_t add(std::int32_t prefix, std::int32_t word) {
        const std::int32_t found = find(prefix, word);
        if (found != unknown) return found;
        if (prefixes_.size() >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
            throw std::length_error("more than 2^31 - 1 different n-grams");
        const auto number = static_cast<std::int32_t>(prefixes_.size());
        prefixes_.push_back(prefix);
        words_.push_back(word);
        if (8 * prefixes_.size() > 5 * slots_.size()) widen(2 * slots_.size());
        else put(number);
        return number;
    }

    hashing::Probes probes() const {
        hashing::Probes all;
        for (std::size_t i = 0; i < slots_.size(); ++i)
            if (slots_[i].number >= 0) all.add((i - place(slots_[i].key)) & mask());
        return all;
    }

    // Appends the n-grams of orders 1 to `order` of one hypothesis, sorted by number, with their counts.
    // Words below 0 are unknown: no n-gram that has one is known.
    void count(std::span<const std::int32_t> words, std::int64_t order, bool grow, std::vector<std::int32_t>& scratch,
               Growing<std::int32_t>& columns, Growing<double>& counts) {
        scratch.clear();
        const auto n = static_cast<std::int64_t>(words.size());
        for (std::int64_t begin = 0; begin < n; ++begin) {
            std::int32_t gram = root;
            for (std::int64_t at = begin; at < begin + std::min(order, n - begin); ++at) {
                if (words[at] < 0) break;
                gram = grow ? add(gram, words[at]) : find(gram, words[at]);
                if (gram == unknown) break;
                scratch.push_back(gram);
            }
        }
        std::sort(scratch.begin(), scratch.end());
        for (std::size_t i = 0; i < scratch.size();) {
            std::size_t last = i;
            while (last < scratch.size() && scratch[last] == scratch[i]) ++last;
            columns.push_back(scratch[i]);
            counts.push_back(static_cast<double>(last - i));
            i = last;
        }
    }

   private:
    struct Slot {
        std::uint64_t key;
        std::int32_t number;
    };

    static std::uint64_t key_of(std::int32_t prefix, std::int32_t word) {
        return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(prefix + 1)) << 32) |
               static_cast<std::uint32_t>(word);
    }
    std::size_t mask() const { return slots_.size() - 1; }
    std::size_t place(std::uint64_t key) const {
        return static_cast<std::size_t>(hashing::of_number(secret_, key)) & mask();
    }
    void put(std::int32_t number) {
        const std::uint64_t key =
            key_of(prefixes_[static_cast<std::size_t>(number)], words_[static_cast<std::size_t>(number)]);
        std::size_t i = place(key);
        while (slots_[i].number >= 0) i = (i + 1) & mask();
        slots_[i] = {key, number};
    }
    void widen(std::size_t count) {
        slots_.resize(count);
        std::fill_n(slots_.data(), count, Slot{0, -1});
        for (std::size_t i = 0; i < prefixes_.size(); ++i) put(static_cast<std::int32_t>(i));
    }

    hashing::Secret secret_ = hashing::secret();
    Growing<Slot> slots_;  // a power of two of them
    Growing<std::int32_t> prefixes_, words_;
};

}  // namespace maxmargin::reranking
