// Derivations of a grammar in Chomsky normal form with unary rules, as a deduction system.
//
// Rules are numbered: binary ones A -> B C, then unary ones A -> B without cycles, then preterminals A -> token. A part
// is a rule used over a span; where the span is split follows from the rules used below. An item is a symbol over a
// span; symbols stand in such an order that a unary rule leads from a lower place to a higher one.
#pragma once

#include <span>

#include "maxmargin/deduction/batch.hpp"
#include "maxmargin/grammar/chart.hpp"

namespace maxmargin::grammar {

using deduction::NONE;

// The caller has checked all numbers, but for cycles of unary rules.
class Rules {
   public:
    struct Binary {
        std::int32_t left, right, rule;  // places of symbols, and the number of the rule
    };
    struct Unary {
        std::int32_t below, rule;
    };

    // `binary`: three symbols a rule, `unary`: two, `preterminals`: one each, all different.
    Rules(std::int64_t n_symbols, std::span<const std::int32_t> binary, std::span<const std::int32_t> unary,
          std::span<const std::int32_t> preterminals, std::int32_t start)
        : n_symbols_(n_symbols), n_binary_(static_cast<std::int64_t>(binary.size()) / 3),
          n_unary_(static_cast<std::int64_t>(unary.size()) / 2),
          n_preterminals_(static_cast<std::int64_t>(preterminals.size())) {
        const auto size = static_cast<std::size_t>(n_symbols);
        const std::vector<std::int32_t> place = places(unary);
        acyclic_ = std::ranges::find(place, -1) == place.end();
        if (!acyclic_) return;
        start_ = place[start];
        std::vector<std::vector<Binary>> over(size);
        std::vector<std::vector<Unary>> above(size);
        preterminal_.assign(size, -1);
        std::int32_t rule = 0;
        for (std::size_t r = 0; r < binary.size(); r += 3)
            over[place[binary[r]]].push_back({place[binary[r + 1]], place[binary[r + 2]], rule++});
        for (std::size_t r = 0; r < unary.size(); r += 2)
            above[place[unary[r]]].push_back({place[unary[r + 1]], rule++});
        for (const std::int32_t symbol : preterminals) preterminal_[place[symbol]] = rule++;
        binary_begin_.assign(1, 0);
        unary_begin_.assign(1, 0);
        for (std::size_t s = 0; s < size; ++s) {
            binary_.insert(binary_.end(), over[s].begin(), over[s].end());
            unary_.insert(unary_.end(), above[s].begin(), above[s].end());
            binary_begin_.push_back(static_cast<std::int64_t>(binary_.size()));
            unary_begin_.push_back(static_cast<std::int64_t>(unary_.size()));
        }
    }

    bool acyclic() const { return acyclic_; }
    std::int64_t n_symbols() const { return n_symbols_; }
    std::int64_t n_binary() const { return n_binary_; }
    std::int64_t start() const { return start_; }
    // Parts of a span: binary and unary rules, or of one token unary rules and preterminals.
    std::int64_t of_span() const { return n_binary_ + n_unary_; }
    std::int64_t of_token() const { return n_unary_ + n_preterminals_; }
    std::int64_t preterminal(std::int64_t s) const { return preterminal_[s]; }
    std::span<const Binary> binary(std::int64_t s) const {
        return std::span(binary_).subspan(binary_begin_[s], binary_begin_[s + 1] - binary_begin_[s]);
    }
    std::span<const Unary> unary(std::int64_t s) const {
        return std::span(unary_).subspan(unary_begin_[s], unary_begin_[s + 1] - unary_begin_[s]);
    }

   private:
    // The place of each symbol, after all symbols that unary rules make of it; -1 on and above cycles.
    std::vector<std::int32_t> places(std::span<const std::int32_t> unary) const {
        const auto size = static_cast<std::size_t>(n_symbols_);
        std::vector<std::int32_t> waiting(size, 0), place(size, -1), ready;
        std::vector<std::vector<std::int32_t>> above(size);
        for (std::size_t r = 0; r < unary.size(); r += 2) {
            ++waiting[unary[r]];
            above[unary[r + 1]].push_back(unary[r]);
        }
        for (std::size_t s = 0; s < size; ++s)
            if (waiting[s] == 0) ready.push_back(static_cast<std::int32_t>(s));
        for (std::size_t at = 0; at < ready.size(); ++at) {
            place[ready[at]] = static_cast<std::int32_t>(at);
            for (const std::int32_t s : above[ready[at]])
                if (--waiting[s] == 0) ready.push_back(s);
        }
        return place;
    }

    std::int64_t n_symbols_, n_binary_, n_unary_, n_preterminals_, start_ = 0;
    bool acyclic_ = false;
    std::vector<Binary> binary_;
    std::vector<Unary> unary_;
    std::vector<std::int64_t> binary_begin_, unary_begin_;
    std::vector<std::int32_t> preterminal_;
};

struct RuleSystem {
    std::int64_t n;
    const Rules* rules;
    const Ends::value_type* ends;

    std::int64_t n_items() const { return n_spans(n) * rules->n_symbols() + 1; }
    std::int64_t n_parts() const { return parts(n, *rules); }
    std::int64_t part_of(std::int64_t) const { return NONE; }

    static std::int64_t parts(std::int64_t n, const Rules& rules) {
        return (n_spans(n) - n) * rules.of_span() + n * rules.of_token();
    }

    template <class Take>
    void ways(std::int64_t item, Take&& take) const {
        const std::int64_t size = rules->n_symbols();
        if (item == n_spans(n) * size) {
            take(place_of(0, n) * size + rules->start(), NONE, NONE);
            return;
        }
        const auto [i, j] = ends[item / size];
        const std::int64_t symbol = item % size, own = item - symbol, first = first_part(i, j);
        if (j == i + 1) {
            const std::int64_t rule = rules->preterminal(symbol);
            if (rule >= 0) take(NONE, NONE, first + rule);
        } else {
            const auto binary = rules->binary(symbol);
            if (!binary.empty())
                for (std::int64_t k = i + 1; k < j; ++k) {
                    const std::int64_t left = place_of(i, k) * size, right = place_of(k, j) * size;
                    for (const auto& rule : binary) take(left + rule.left, right + rule.right, first + rule.rule);
                }
        }
        for (const auto& rule : rules->unary(symbol)) take(own + rule.below, NONE, first + rule.rule);
    }

   private:
    // Where rule 0 over the span would be; the first part of a token is its first unary rule.
    std::int64_t first_part(std::int64_t i, std::int64_t j) const {
        const bool token = j == i + 1;
        const std::int64_t tokens = token ? i : i + 1;  // of the spans before
        return (row_of(n, i, j) - tokens) * rules->of_span() + tokens * rules->of_token() -
               (token ? rules->n_binary() : 0);
    }
};

// Sentences of `lengths` tokens. The caller has checked all numbers, and that unary rules have no cycle.
class RuleBatch {
   public:
    RuleBatch(std::vector<std::int64_t> lengths, Rules rules)
        : lengths_(std::move(lengths)), rules_(std::move(rules)),
          ends_(ends_of_spans(lengths_.empty() ? 0 : *std::ranges::max_element(lengths_))),
          offsets_(layout_of(1, size(),
                             [&](std::int64_t, std::int64_t i) { return RuleSystem::parts(lengths_[i], rules_); })) {}

    std::int64_t size() const { return static_cast<std::int64_t>(lengths_.size()); }
    RuleSystem operator[](std::int64_t i) const { return {lengths_[i], &rules_, ends_.data()}; }
    hull::Layout layout() const { return {1, size(), offsets_}; }

   private:
    std::vector<std::int64_t> lengths_;
    Rules rules_;
    Ends ends_;
    std::vector<std::int64_t> offsets_;
};

}  // namespace maxmargin::grammar
