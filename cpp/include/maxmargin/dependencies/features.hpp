// Features of the parts of dependency trees, made on the fly from numbers of the tokens and hashed to weights.
//
// A token has attributes, which are numbers, or unknown. A *key* joins a few attributes of a token and its neighbors to
// one hash; a template joins keys of the nodes of a part: head and modifier of an arc; head, sibling and modifier;
// grandparent, head and modifier. Every template of a part is a feature twice, alone and with the distance of its
// nodes: both weights lie in the same cache line. A template with an unknown attribute is not a feature. Templates of
// arcs may also see what lies between head and modifier; and there is one feature for each tag between them.
//
// Only triples of candidate arcs have features. Cost of an arc: a hash and a cache line per template.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "maxmargin/base/parallel.hpp"
#include "maxmargin/dependencies/sentence.hpp"
#include "maxmargin/online/examples.hpp"

namespace maxmargin::dependencies {

using Hash = std::uint64_t;

inline Hash mixed(Hash h) {
    h ^= h >> 32;
    h *= 0x9e3779b97f4a7c15;
    return h ^ (h >> 29);
}

// What a template of arcs sees besides keys.
enum Circumstance : std::int32_t {
    nothing,
    same_as_head,      // how many tokens between have the tag of the head,
    same_as_modifier,  // that of the modifier,
    both_same,         // and both
    kinds_between,     // how many tokens of each kind lie between
    at_the_edge,       // which of the two is the first or last token
    place,             // where the modifier stands, and the length of the sentence
    n_circumstances
};

struct Templates {
    std::int64_t n_attributes;
    std::vector<std::int32_t> key_starts, key_attributes, key_shifts;  // key k: attributes of neighbors by shifts
    std::vector<std::array<std::int32_t, 3>> arcs;  // key of the head, of the modifier, or -1; a circumstance
    std::vector<std::array<std::int32_t, 3>> siblings, grandparents;  // keys of the three nodes, or -1
    std::int32_t between;                                             // key of head and modifier for tags between

    std::int64_t n_keys() const { return static_cast<std::int64_t>(key_starts.size()) - 1; }
};

// Tokens of all sentences, each after its root.
struct Nodes {
    std::vector<std::int32_t> numbers;  // of the attributes, -1 for unknown
    std::vector<std::int32_t> tags;
    std::vector<std::uint8_t> kinds;  // 0, or 1 to 3
    std::int32_t n_tags;
};

class DependencyFeatures final : public online::FeatureMap {
   public:
    // The sentences, with one label, read tables that `owner` keeps.
    DependencyFeatures(std::vector<Sentence> sentences, hull::Layout layout, std::shared_ptr<const void> owner,
                       Templates templates, Nodes nodes, int bits)
        : sentences_(std::move(sentences)), layout_(layout), owner_(std::move(owner)), t_(std::move(templates)),
          nodes_(std::move(nodes)), n_weights_(std::int64_t{1} << bits), first_(sentences_.size() + 1, 0) {
        for (std::size_t i = 0; i < sentences_.size(); ++i) first_[i + 1] = first_[i] + sentences_[i].n + 1;
        keys_.resize(static_cast<std::size_t>(first_.back() * t_.n_keys()));
        for (std::size_t i = 0; i < sentences_.size(); ++i) make_keys(static_cast<std::int64_t>(i));
        nodes_.numbers = {};
        for (std::size_t i = 0; i < sentences_.size(); ++i) {
            const Sentence& s = sentences_[i];
            if (!s.arc_table) continue;
            for (std::int64_t cell = 0; cell < (s.n + 1) * (s.n + 1); ++cell)
                if (s.arc_table[cell] != NONE) cells_.push_back(static_cast<std::int32_t>(cell));
        }
    }

    std::int64_t n_weights() const override { return n_weights_; }
    std::int64_t n_examples() const override { return static_cast<std::int64_t>(sentences_.size()); }
    std::int64_t size(std::int64_t i) const override { return sentences_[i].n_parts(); }

    void scores(std::int64_t i, const double* w, double* out) const override {
        const Sentence& s = sentences_[i];
        Between between(*this, i);
        Pipeline sums(w, out);
        for (std::int64_t m = 1; m <= s.n; ++m)
            for (const int side : {-1, 1}) {
                between.begin(m);
                for (std::int64_t h = m + side; h >= 0 && h <= s.n; h += side) {
                    const std::int64_t part = s.arc(h, m);
                    if (part != NONE) sums.next(part, [&](auto&& take) { arc(i, h, m, between, take); });
                    between.pass(h);
                }
            }
        if (s.sibling_extent == Extent::none && s.grandparent_extent == Extent::none) return;
        std::fill(out + s.n_arcs, out + s.n_parts(), 0.0);
        for (std::int64_t m = 1; m <= s.n; ++m)
            for (std::int64_t h = 0; h <= s.n; ++h)
                if (h != m && s.arc(h, m) != NONE) triples(i, h, m, sums);
    }

    void scores_at(std::int64_t i, std::span<const std::int32_t> parts, std::int64_t first, const double* w,
                   double* out) const override {
        for (const std::int32_t part : parts)
            out[part - first] = sum(w, [&](auto&& take) { each(i, part - first, take); });
    }

    void add(std::int64_t i, std::int64_t part, double x, std::int64_t from, online::Accumulator& into) const override {
        each(i, part, [&](std::int64_t at) { into.add(from + at, x); });
    }
    void add(std::int64_t i, std::int64_t part, double x, std::int64_t from,
             std::vector<online::Entry>& into) const override {
        each(i, part, [&](std::int64_t at) { into.push_back({from + at, x}); });
    }

    // Packed scores of all sentences.
    void scores(std::span<const double> w, std::span<double> out, int threads) const {
        std::vector<std::vector<double>> own(static_cast<std::size_t>(threads));
        parallel_each(n_examples(), 1, threads, [&](int thread, std::int64_t i) {
            if (layout_.n_blocks == 1) return scores(i, w.data(), out.data() + layout_.begin(0, i));
            auto& some = own[static_cast<std::size_t>(thread)];
            if (static_cast<std::int64_t>(some.size()) < size(i)) some.resize(static_cast<std::size_t>(size(i)));
            scores(i, w.data(), some.data());
            layout_.scatter(i, some, out);
        });
    }

    // out += F z of a packed vector, in the order of the parts.
    void adjoint(std::span<const double> z, std::span<double> out) const {
        for (std::int64_t i = 0; i < n_examples(); ++i) {
            std::int64_t before = 0;
            for (std::int64_t b = 0; b < layout_.n_blocks; ++b) {
                const std::int64_t begin = layout_.begin(b, i), n = layout_.begin(b, i + 1) - begin;
                for (std::int64_t p = 0; p < n; ++p)
                    if (const double x = z[begin + p]; x != 0.0)
                        each(i, before + p, [&](std::int64_t at) { out[at] += x; });
                before += n;
            }
        }
    }

    // body(weight) for each feature of a part.
    template <class Body>
    void each(std::int64_t i, std::int64_t part, Body&& body) const {
        const Sentence& s = sentences_[i];
        if (part < s.n_arcs) {
            const auto [h, m] = ends(i, part);
            Between between(*this, i);
            between.begin(m);
            for (std::int64_t at = m + (h > m ? 1 : -1); at != h; at += h > m ? 1 : -1) between.pass(at);
            return arc(i, h, m, between, body);
        }
        part -= s.n_arcs;
        const bool siblings = part < s.n_siblings;
        if (!siblings) part -= s.n_siblings;
        const auto [h, m, place] = triple(s, part, siblings);
        if (siblings) {
            const Extent extent = s.sibling_extent;
            const std::int64_t other =
                extent == Extent::all ? h + (h < m ? place : -place) : s.sibling_list.third[part];
            if (s.arc(h, m) != NONE && (other == h || s.arc(h, other) != NONE)) sibling(i, h, other, m, body);
        } else {
            const std::int64_t low = std::min(h, m), high = std::max(h, m);
            const std::int64_t other = s.grandparent_extent == Extent::all
                                           ? (place < low ? place : place + (high - low + 1))
                                           : s.grandparent_list.third[part];
            if (s.arc(h, m) != NONE && s.arc(other, h) != NONE) grandparent(i, other, h, m, body);
        }
    }

    const hull::Layout& layout() const { return layout_; }

   private:
    // What lies between a modifier and a head, gathered on the way from the one to the other.
    class Between {
       public:
        Between(const DependencyFeatures& map, std::int64_t i)
            : tags_(map.nodes_.tags.data() + map.first_[i]), kinds_(map.nodes_.kinds.data() + map.first_[i]),
              counts_(static_cast<std::size_t>(map.nodes_.n_tags), 0) {}
        void begin(std::int64_t modifier) {
            for (const std::int32_t tag : seen_) counts_[tag] = 0;
            seen_.clear();
            kinds_seen_ = {};
            modifier_ = modifier;
        }
        void pass(std::int64_t node) {
            const std::int32_t tag = tags_[node];
            if (counts_[tag]++ == 0) seen_.push_back(tag);
            ++kinds_seen_[kinds_[node]];
        }
        const std::vector<std::int32_t>& seen() const { return seen_; }
        std::int64_t like(std::int64_t node) const { return std::min(counts_[tags_[node]], 3); }
        std::int64_t kinds() const {
            return std::min(kinds_seen_[1], 2) * 9 + std::min(kinds_seen_[2], 2) * 3 + std::min(kinds_seen_[3], 2);
        }
        std::int64_t modifier() const { return modifier_; }

       private:
        const std::int32_t* tags_;
        const std::uint8_t* kinds_;
        std::vector<int> counts_;
        std::vector<std::int32_t> seen_;
        std::array<int, 4> kinds_seen_{};
        std::int64_t modifier_ = 0;
    };

    static constexpr Hash one = 0xd6e8feb86659fd93, two = 0xa24baed4963ee407, three = 0x9fb21c651e98df25,
                          four = 0x8ebc6af09c88c6e3, turned = 0x5851f42d4c957f2d;

    // 1 to 7: the bits by which weights of the same cache line differ.
    static std::int64_t distance(std::int64_t a, std::int64_t b) {
        const std::int64_t d = std::abs(a - b);
        return d <= 4 ? std::max<std::int64_t>(d, 1) : d <= 7 ? 5 : d <= 14 ? 6 : 7;
    }
    std::int64_t weight(Hash h) const {
        return static_cast<std::int64_t>((h >> 20) & static_cast<Hash>(n_weights_ - 1));
    }
    const Hash* keys(std::int64_t i, std::int64_t node) const {
        return keys_.data() + (first_[i] + node) * t_.n_keys();
    }

    template <class Features>
    static double sum(const double* w, Features&& features) {
        double total = 0.0;
        features([&](std::int64_t at) { total += w[at]; });
        return total;
    }

    template <class Take>
    void arc(std::int64_t i, std::int64_t h, std::int64_t m, const Between& between, Take&& take) const {
        const std::int64_t n = sentences_[i].n, apart = distance(h, m);
        const Hash *head = keys(i, h), *modifier = keys(i, m), side = h < m ? turned + 77 : 77;
        const auto number = [](std::int64_t x) { return static_cast<Hash>(x); };
        const Hash seen[n_circumstances] = {
            0,
            number(100 + between.like(h)),
            number(200 + between.like(m)),
            number(400 + between.like(h) * 4 + between.like(m)),
            number(300 + between.kinds()),
            number(500 + (m == 1) * 2 + (m == n) + (h == 1) * 8 + (h == n) * 4),
            number(600 + std::min<std::int64_t>(n, 40) / 5 * 8 + std::min<std::int64_t>(m, 4) * 256 +
                   std::min<std::int64_t>(n - m, 4) * 2048)};
        Hash salt = side;
        for (const auto& [a, b, circumstance] : t_.arcs) {
            salt += two;
            const Hash x = a < 0 ? 1 : head[a], y = b < 0 ? 1 : modifier[b];
            if (x == 0 || y == 0) continue;
            const std::int64_t at = weight(mixed((x * one) ^ (y + salt + seen[circumstance] * three)));
            take(at);
            take(at ^ apart);
        }
        if (t_.between < 0) return;
        const Hash x = head[t_.between], y = modifier[t_.between];
        if (x == 0 || y == 0) return;
        const Hash base = (x * one) ^ (y + side);
        for (const std::int32_t tag : between.seen()) take(weight(mixed(base + static_cast<Hash>(tag + 1) * four)));
    }

    template <class Take>
    void joined(const std::vector<std::array<std::int32_t, 3>>& templates, const Hash* a, const Hash* b, const Hash* c,
                Hash salt, std::int64_t apart, Take&& take) const {
        for (const auto& [ka, kb, kc] : templates) {
            salt += two;
            const Hash x = ka < 0 ? 1 : a[ka], z = kc < 0 ? 1 : c[kc];
            const Hash y = kb < 0 ? 1 : b ? b[kb] : 12345;  // without a sibling
            if (x == 0 || y == 0 || z == 0) continue;
            const std::int64_t at = weight(mixed(((x * one) ^ (z + salt)) + y * three));
            take(at);
            take(at ^ apart);
        }
    }
    template <class Take>
    void sibling(std::int64_t i, std::int64_t h, std::int64_t s, std::int64_t m, Take&& take) const {
        joined(t_.siblings, keys(i, h), s == h ? nullptr : keys(i, s), keys(i, m), (h < m ? turned : 0) + 7777,
               distance(s, m), take);
    }
    template <class Take>
    void grandparent(std::int64_t i, std::int64_t g, std::int64_t h, std::int64_t m, Take&& take) const {
        const Hash way = static_cast<Hash>(2 * (h < m) + (g < h));
        joined(t_.grandparents, keys(i, g), keys(i, h), keys(i, m), way * turned + 99999, distance(g, m), take);
    }

    // Scores of parts, one after the other. Weights lie anywhere in memory: those of a part are asked for while the
    // ones of the part before are added.
    class Pipeline {
       public:
        Pipeline(const double* w, double* out) : w_(w), out_(out) {}
        ~Pipeline() { finish(); }
        template <class Features>
        void next(std::int64_t part, Features&& features) {
            std::size_t n = 0;
            auto& at = at_[turn_];
            features([&](std::int64_t weight) {
                if (n == at.size()) at.resize(2 * n + 256);
                __builtin_prefetch(w_ + weight);
                at[n++] = weight;
            });
            finish();
            part_ = part;
            n_ = n;
            turn_ = 1 - turn_;
        }

       private:
        void finish() {
            if (part_ == NONE) return;
            const auto& at = at_[1 - turn_];
            double total = 0.0;
            for (std::size_t j = 0; j < n_; ++j) total += w_[at[j]];
            out_[part_] = total;
            part_ = NONE;
        }

        const double* w_;
        double* out_;
        std::array<std::vector<std::int64_t>, 2> at_;
        std::size_t n_ = 0, turn_ = 0;
        std::int64_t part_ = NONE;
    };

    // Scores of the triples of an arc.
    void triples(std::int64_t i, std::int64_t h, std::int64_t m, Pipeline& sums) const {
        const Sentence& s = sentences_[i];
        if (s.sibling_extent != Extent::none)
            s.siblings(h, m, [&](std::int64_t d, std::int64_t part) {
                const std::int64_t other = h < m ? h + d : h - d;
                if (part == NONE || (d > 0 && (other == 0 || s.arc(h, other) == NONE))) return;
                sums.next(part, [&](auto&& take) { sibling(i, h, other, m, take); });
            });
        if (s.grandparent_extent == Extent::none || h == 0) return;
        const std::int64_t low = std::min(h, m), high = std::max(h, m);
        for (std::int64_t g = 0; g <= s.n; ++g) {
            if ((low <= g && g <= high) || s.arc(g, h) == NONE) continue;
            const std::int64_t part = s.grandparent(g, h, m);
            if (part != NONE) sums.next(part, [&](auto&& take) { grandparent(i, g, h, m, take); });
        }
    }

    // Head and modifier of an arc.
    std::pair<std::int64_t, std::int64_t> ends(std::int64_t i, std::int64_t part) const {
        const std::int64_t n = sentences_[i].n;
        if (!sentences_[i].arc_table) {
            const std::int64_t m = part / n + 1, h = part % n;
            return {h + (h >= m), m};
        }
        const std::int64_t cell = cells_[layout_.begin(0, i) + part];
        return {cell % (n + 1), cell / (n + 1)};
    }

    struct Place {
        std::int64_t head, modifier, place;
    };
    // Head and modifier of a triple, and its place among those of the arc.
    static Place triple(const Sentence& s, std::int64_t part, bool siblings) {
        const Extent extent = siblings ? s.sibling_extent : s.grandparent_extent;
        const std::int64_t nodes = s.n + 1;
        const auto before = [&](std::int64_t row) -> std::int64_t {
            if (extent == Extent::listed) return (siblings ? s.sibling_list : s.grandparent_list).first[row];
            std::int64_t m = row / nodes, h = row % nodes;
            if (h == m) {  // no arc: where the next one begins
                ++h;
                if (h > s.n) return siblings ? s.n_siblings : s.n_grandparents;
            }
            if (siblings) return Sentence::siblings_before(s.n, h, m);
            if (h == 0) h = m == 1 ? 2 : 1;
            return h > s.n ? s.n_grandparents : Sentence::grandparents_before(s.n, h, m);
        };
        std::int64_t low = nodes, high = nodes * nodes;  // the last row that begins at or before the part
        while (high - low > 1) {
            const std::int64_t middle = (low + high) / 2;
            if (before(middle) <= part) low = middle;
            else high = middle;
        }
        std::int64_t h = low % nodes, m = low / nodes;
        if (h == m) h = low % nodes + 1;
        return {h, m, part - before(low)};
    }

    void make_keys(std::int64_t i) {
        const std::int64_t n = sentences_[i].n, k = t_.n_keys(), a = t_.n_attributes;
        for (std::int64_t node = 0; node <= n; ++node)
            for (std::int64_t key = 0; key < k; ++key) {
                Hash h = 0x1234567 + static_cast<Hash>(key) * 0x9e3779b97f4a7c15;
                bool known = true;
                for (std::int32_t q = t_.key_starts[key]; q < t_.key_starts[key + 1]; ++q) {
                    const std::int64_t at = node + t_.key_shifts[q];
                    const std::int64_t number = at < 0   ? -3
                                                : at > n ? -2
                                                         : nodes_.numbers[(first_[i] + at) * a + t_.key_attributes[q]];
                    known = known && number != -1;
                    h = mixed(h + static_cast<Hash>(number + 4));
                }
                keys_[(first_[i] + node) * k + key] = known ? h | 1 : 0;
            }
    }

    std::vector<Sentence> sentences_;
    hull::Layout layout_;
    std::shared_ptr<const void> owner_;
    Templates t_;
    Nodes nodes_;
    std::int64_t n_weights_;
    std::vector<std::int64_t> first_;
    std::vector<Hash> keys_;
    std::vector<std::int32_t> cells_;  // of listed arcs: modifier (n + 1) + head
};

}  // namespace maxmargin::dependencies
