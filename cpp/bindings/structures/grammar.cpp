#include "maxmargin/grammar/rules.hpp"
#include "maxmargin/grammar/spans.hpp"
#include "structures/deduction.hpp"

namespace maxmargin {

namespace {

using CheckedSpans = DeductionBatch<grammar::SpanBatch>;
using CheckedRules = DeductionBatch<grammar::RuleBatch>;

constexpr std::int64_t most_tokens = 1 << 12;  // a batch keeps a table of the spans of its longest sentence

// Refuses sentences without tokens, and batches of more parts than vectors can have: parts(n) of a sentence.
template <class Parts>
void check_lengths(const In<std::int64_t>& lengths, Parts&& parts) {
    std::int64_t total = 0;
    for (const std::int64_t n : view(lengths)) {
        require(n >= 1 && n <= most_tokens, "sentences must have 1 to 4096 tokens");
        const std::int64_t own = parts(n);
        require(own < std::int64_t{1} << 31, "a sentence has too many parts");
        total = checked_sum({total, own}, "the batch has too many parts");
    }
}

void make_spans(CheckedSpans* self, In<std::int64_t> lengths, std::int64_t n_labels, bool rooted, bool splits) {
    checked_count("n_labels", n_labels, 1, most_claimed);
    check_lengths(lengths, [&](std::int64_t n) {
        return checked_sum({checked_product({grammar::n_spans(n), n_labels}, "a sentence has too many parts"),
                            splits ? grammar::n_splits(n) : 0},
                           "a sentence has too many parts");
    });
    new (self) CheckedSpans(grammar::SpanBatch(copied(lengths), n_labels, rooted, splits));
}

void make_rules(CheckedRules* self, In<std::int64_t> lengths, std::int64_t n_symbols, In<std::int32_t> binary,
                In<std::int32_t> unary, In<std::int32_t> preterminals, std::int64_t start) {
    checked_count("n_symbols", n_symbols, 1, most_claimed);
    require(binary.size() % 3 == 0 && unary.size() % 2 == 0, "rules must have three symbols, unary ones two");
    require(within(view(binary), 0, n_symbols) && within(view(unary), 0, n_symbols) &&
                within(view(preterminals), 0, n_symbols) && start >= 0 && start < n_symbols,
            "a symbol is out of range");
    require(static_cast<std::size_t>(n_symbols) <= binary.size() + unary.size() + preterminals.size() + 1,
            "there are symbols without rules");
    std::vector<std::uint8_t> seen(static_cast<std::size_t>(n_symbols), 0);
    for (const std::int32_t symbol : view(preterminals))
        require(!seen[symbol]++, "a symbol is listed twice as a preterminal");
    grammar::Rules rules(n_symbols, view(binary), view(unary), view(preterminals), static_cast<std::int32_t>(start));
    require(rules.acyclic(), "unary rules form a cycle");
    check_lengths(lengths, [&](std::int64_t n) {
        return checked_product({grammar::n_spans(n), std::max({rules.of_span(), rules.of_token(), n_symbols})},
                               "a sentence has too many parts");
    });
    new (self) CheckedRules(grammar::RuleBatch(copied(lengths), std::move(rules)));
}

}  // namespace

void bind_grammar(nb::module_& module) {
    bind_deduction<grammar::SpanBatch>(module, "SpansBatch", "SpansOracle")
        .def("__init__", &make_spans, "lengths"_array, "n_labels"_a, "rooted"_a, "splits"_a);
    bind_deduction<grammar::RuleBatch>(module, "DerivationsBatch", "DerivationsOracle")
        .def("__init__", &make_rules, "lengths"_array, "n_symbols"_a, "binary"_array, "unary"_array,
             "preterminals"_array, "start"_a);
}

}  // namespace maxmargin
