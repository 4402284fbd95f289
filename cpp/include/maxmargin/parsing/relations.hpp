// Features of the relations of dependency trees: for each token, what is near its arc, hashed to columns.
//
// A template is a list of terms, attributes of nodes near the arc and circumstances. A template that names a child or a
// sibling of the token gives a feature for each of them; one that names a node which does not exist sees that it does
// not. A feature with an unknown attribute is left out.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace maxmargin::parsing {

enum Role : std::int32_t {
    modifier,
    head,
    grandparent,
    before_modifier,
    after_modifier,
    before_head,
    after_head,
    left,  // the nearest siblings
    right,
    first,  // the outermost children
    last,
    begin,  // the outermost tokens
    end,
    child,
    sibling,
    n_roles
};

enum Seen : std::int32_t { distance, siblings, children, between, side, top, n_seen };

// One sentence: its root and n tokens.
struct Sentence {
    std::int64_t n, n_attributes;
    const std::int32_t* numbers;  // of nodes and attributes, -1 for unknown
    const std::uint8_t* kinds;    // of nodes, 0 to 3
    const std::int64_t* heads;    // of tokens
};

struct Terms {
    std::span<const std::int32_t> starts, terms;  // of templates; (role, attribute), or (-1, what is seen)
};

class RelationFeatures {
   public:
    explicit RelationFeatures(const Terms& terms) : t_(terms) {
        for (std::size_t k = 0; k + 1 < t_.starts.size(); ++k) {
            std::int32_t repeated = n_roles;
            for (std::int32_t q = t_.starts[k]; q < t_.starts[k + 1]; ++q)
                if (t_.terms[2 * q] == child || t_.terms[2 * q] == sibling) repeated = t_.terms[2 * q];
            repeated_.push_back(repeated);
        }
    }

    // Calls take(token, hash) for all features of all tokens, from 1.
    template <class Take>
    void run(const Sentence& s, Take&& take) {
        below_.assign(static_cast<std::size_t>(s.n + 1), {});
        for (std::int64_t m = 1; m <= s.n; ++m) below_[s.heads[m - 1]].push_back(static_cast<std::int32_t>(m));
        for (std::int64_t m = 1; m <= s.n; ++m) {
            place(s, m);
            for (std::size_t k = 0; k < repeated_.size(); ++k) {
                if (repeated_[k] == n_roles) {
                    hash(s, m, k, take);
                    continue;
                }
                const std::int64_t of = repeated_[k] == child ? m : nodes_[head];
                for (const std::int32_t other : below_[of]) {
                    if (other == m) continue;
                    nodes_[repeated_[k]] = other;
                    seen_[side] = 10 * repeated_[k] + 2 * (other < m) + (other < nodes_[head]);
                    hash(s, m, k, take);
                }
            }
        }
    }

   private:
    static constexpr std::int64_t absent = -1;

    void place(const Sentence& s, std::int64_t m) {
        const std::int64_t h = s.heads[m - 1];
        const auto inside = [&](std::int64_t at) { return at >= 0 && at <= s.n ? at : absent; };
        nodes_.fill(absent);
        nodes_[modifier] = m, nodes_[head] = h, nodes_[grandparent] = h == 0 ? absent : s.heads[h - 1];
        nodes_[before_modifier] = inside(m - 1), nodes_[after_modifier] = inside(m + 1);
        nodes_[before_head] = inside(h - 1), nodes_[after_head] = inside(h + 1);
        nodes_[begin] = 1, nodes_[end] = s.n;
        std::int64_t inner = 0, outer = 0;  // siblings on the side of the head, before and after the token
        for (const std::int32_t other : below_[h]) {
            if (other < m) nodes_[left] = other;
            else if (other > m && nodes_[right] == absent) nodes_[right] = other;
            if (other != m && (other < h) == (m < h)) ++(other < m ? inner : outer);
        }
        if (!below_[m].empty()) nodes_[first] = below_[m].front(), nodes_[last] = below_[m].back();
        std::array<std::int64_t, 4> kinds{};
        for (std::int64_t at = std::min(h, m) + 1; at < std::max(h, m); ++at) ++kinds[s.kinds[at]];
        const auto few = [](std::int64_t x, std::int64_t most) { return std::min(x, most); };
        const std::int64_t apart = std::abs(h - m);
        seen_[distance] = apart <= 4 ? apart : apart <= 7 ? 5 : apart <= 14 ? 6 : 7;
        seen_[siblings] = few(inner, 3) * 4 + few(outer, 3);
        seen_[children] = few(static_cast<std::int64_t>(below_[m].size()), 4);
        seen_[between] = few(kinds[1], 2) * 9 + few(kinds[2], 2) * 3 + few(kinds[3], 2);
        seen_[side] = 0;
        seen_[top] = h == 0 ? 2 : nodes_[grandparent] == 0 ? 1 : 0;
    }

    template <class Take>
    void hash(const Sentence& s, std::int64_t m, std::size_t k, Take&& take) const {
        std::uint64_t h = 2 * k + (nodes_[head] < m);
        for (std::int32_t q = t_.starts[k]; q < t_.starts[k + 1]; ++q) {
            const std::int32_t role = t_.terms[2 * q], what = t_.terms[2 * q + 1];
            std::int64_t x;
            if (role < 0) {
                x = seen_[what];
            } else if (nodes_[role] == absent) {
                x = -2;
            } else {
                x = s.numbers[nodes_[role] * s.n_attributes + what];
                if (x < 0) return;
            }
            h = (h ^ (h >> 32)) * 0x9e3779b97f4a7c15 + static_cast<std::uint64_t>(x + 3);
            h ^= h >> 29;
        }
        h *= 0xd6e8feb86659fd93;
        take(m, h ^ (h >> 32));
    }

    Terms t_;
    std::vector<std::int32_t> repeated_;
    std::vector<std::vector<std::int32_t>> below_;
    std::array<std::int64_t, n_roles> nodes_{};
    std::array<std::int64_t, n_seen> seen_{};
};

}  // namespace maxmargin::parsing
