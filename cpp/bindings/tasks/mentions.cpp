#include "maxmargin/text/mentions.hpp"

#include "arrays.hpp"
#include "common.hpp"

namespace maxmargin {

namespace {

void find(const In<std::int64_t>& sentences, const In<std::int32_t>& word, const In<bool>& capital,
          std::int64_t n_words, std::int64_t window, Out<std::int64_t> token, Out<std::int64_t> first,
          Out<std::int64_t> last) {
    const std::size_t n = word.size();
    require(rises_to(view(sentences), n), "sentences must rise from 0 to the number of tokens");
    require(capital.size() == n && token.size() == n && first.size() == n && last.size() == n,
            "capital, token, first and last must have one entry per token");
    checked_count("n_words", n_words, 0, most_claimed);
    require(within(view(word), 0, n_words), "a word is not below n_words");
    require(window >= 0, "window must not be negative");
    const mentions::Text text{view(sentences), view(word), bytes_of(capital), static_cast<std::size_t>(n_words)};
    unlocked([&] { mentions::find(text, window, view(token), view(first), view(last)); });
}

}  // namespace

void bind_mentions(nb::module_& module) {
    module.def(
        "other_mentions", apart(&find), "sentences"_array, "word"_array, "capital"_array, "n_words"_a, "window"_a,
        "token"_array, "first"_array, "last"_array,
        "Where each capitalized word occurs nearby, in the longest capitalized run, and the first and last token "
        "of that; -1 for none, see mentions.hpp.");
}

}  // namespace maxmargin
