#include "arrays.hpp"
#include "maxmargin/reranking/edit_distance.hpp"
#include "maxmargin/reranking/ngram_matches.hpp"
#include "maxmargin/reranking/ter.hpp"

namespace maxmargin {

namespace {

using reranking::Level;
using reranking::Lists;
using reranking::Sequences;
using reranking::Token;

constexpr int longest = 64;  // the largest order of n-grams

Sequences sequences(const In<Token>& tokens, const In<std::int64_t>& offsets) {
    const Sequences found{view(tokens), view(offsets)};
    require(rises_to(found.offsets, tokens.size()), "offsets must rise from 0 to the number of tokens");
    return found;
}

Lists lists_of(const In<std::int64_t>& hypotheses, const In<std::int64_t>& references, const Sequences& texts,
               const Sequences& gold) {
    const Lists lists{view(hypotheses), view(references)};
    require(hypotheses.size() == references.size(), "hypotheses and references must have the same lists");
    require(rises_to(lists.hypotheses, static_cast<std::size_t>(texts.size())),
            "lists must rise from 0 to the number of hypotheses");
    require(rises_to(lists.references, static_cast<std::size_t>(gold.size())),
            "lists must rise from 0 to the number of references");
    for (std::int64_t i = 0; i < lists.size(); ++i) {
        const auto [begin, end] = lists.references_of(i);
        require(begin < end, "each list needs a reference");
        // Nodes of an index are numbered by 32 bits.
        const auto tokens = static_cast<std::size_t>(gold.offsets[end] - gold.offsets[begin]);
        require(tokens < (std::size_t{1} << 31) / longest, "the references of a list are too long");
    }
    return lists;
}

double* rows(Out<double>& out, const Sequences& texts, std::int64_t width) {
    require(out.ndim() == 2 && static_cast<std::int64_t>(out.shape(0)) == texts.size() &&
                static_cast<std::int64_t>(out.shape(1)) == width,
            "out must have a row of statistics for each hypothesis");
    return out.data();
}

void bleu(const In<Token>& tokens, const In<std::int64_t>& offsets, const In<Token>& gold_tokens,
          const In<std::int64_t>& gold_offsets, const In<std::int64_t>& lists, const In<std::int64_t>& gold_lists,
          int order, Out<double> out, Threads threads) {
    require(order >= 1 && order <= longest, "order must lie in 1..64");
    const Sequences texts = sequences(tokens, offsets), gold = sequences(gold_tokens, gold_offsets);
    const Lists all = lists_of(lists, gold_lists, texts, gold);
    double* values = rows(out, texts, 2 * order + 2);
    const NoGil unlocked;
    reranking::bleu_statistics(texts, gold, all, order, values, threads);
}

void chrf(const In<Token>& tokens, const In<std::int64_t>& offsets, const In<Token>& gold_tokens,
          const In<std::int64_t>& gold_offsets, const In<Token>& words, const In<std::int64_t>& word_offsets,
          const In<Token>& gold_words, const In<std::int64_t>& gold_word_offsets, const In<std::int64_t>& lists,
          const In<std::int64_t>& gold_lists, int order, int word_order, double beta, Out<double> out,
          Threads threads) {
    require(order >= 0 && order <= longest && word_order >= 0 && word_order <= longest && order + word_order > 0,
            "orders must lie in 0..64, one of them above 0");
    const Level characters{sequences(tokens, offsets), sequences(gold_tokens, gold_offsets), order};
    const Level both{sequences(words, word_offsets), sequences(gold_words, gold_word_offsets), word_order};
    const Lists all = lists_of(lists, gold_lists, characters.hypotheses, characters.references);
    if (word_order) lists_of(lists, gold_lists, both.hypotheses, both.references);
    double* values = rows(out, characters.hypotheses, 3 * (order + word_order));
    const NoGil unlocked;
    reranking::chrf_statistics(characters, both, all, beta, values, threads);
}

void errors(const In<Token>& tokens, const In<std::int64_t>& offsets, const In<Token>& gold_tokens,
            const In<std::int64_t>& gold_offsets, const In<std::int64_t>& lists, const In<std::int64_t>& gold_lists,
            Out<double> out, Threads threads) {
    const Sequences texts = sequences(tokens, offsets), gold = sequences(gold_tokens, gold_offsets);
    const Lists all = lists_of(lists, gold_lists, texts, gold);
    double* values = rows(out, texts, 2);
    const NoGil unlocked;
    reranking::error_statistics(texts, gold, all, values, threads);
}

void translation_edits(const In<Token>& tokens, const In<std::int64_t>& offsets, const In<Token>& gold_tokens,
                       const In<std::int64_t>& gold_offsets, const In<std::int64_t>& lists,
                       const In<std::int64_t>& gold_lists, Out<double> out, Threads threads) {
    const Sequences texts = sequences(tokens, offsets), gold = sequences(gold_tokens, gold_offsets);
    const Lists all = lists_of(lists, gold_lists, texts, gold);
    for (std::int64_t i = 0; i < texts.size(); ++i)
        require(texts[i].size() < std::size_t{1} << 30, "a hypothesis is too long");
    double* values = rows(out, texts, 2);
    const NoGil unlocked;
    reranking::ter_statistics(texts, gold, all, values, threads);
}

}  // namespace

void bind_list_metrics(nb::module_& module) {
    module.def("bleu_statistics", apart(&bleu), "tokens"_array, "offsets"_array, "gold_tokens"_array,
               "gold_offsets"_array, "lists"_array, "gold_lists"_array, "order"_a, "out"_array, "threads"_a,
               "Matches and n-grams of orders 1..n, length and closest reference length of each hypothesis.");
    module.def(
        "chrf_statistics", apart(&chrf), "tokens"_array, "offsets"_array, "gold_tokens"_array, "gold_offsets"_array,
        "words"_array, "word_offsets"_array, "gold_words"_array, "gold_word_offsets"_array, "lists"_array,
        "gold_lists"_array, "order"_a, "word_order"_a, "beta"_a, "out"_array, "threads"_a,
        "N-grams of the hypothesis, of its best reference, and matches, for each order of characters and words.");
    module.def("error_statistics", apart(&errors), "tokens"_array, "offsets"_array, "gold_tokens"_array,
               "gold_offsets"_array, "lists"_array, "gold_lists"_array, "out"_array, "threads"_a,
               "Edit distance to the reference with the smallest error rate, and its length.");
    module.def("ter_statistics", apart(&translation_edits), "tokens"_array, "offsets"_array, "gold_tokens"_array,
               "gold_offsets"_array, "lists"_array, "gold_lists"_array, "out"_array, "threads"_a,
               "Fewest edits, shifts included, to a reference, and the mean length of the references.");
}

}  // namespace maxmargin
