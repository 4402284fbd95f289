// Other mentions of names: for each capitalized word, where else it occurs nearby, in the longest name.
//
// A name is a run of capitalized tokens of a sentence, taken for what it looks like. Of a token in a name, the other
// mentions are the capitalized occurrences of the same word in other names, at most `window` sentences away, the
// `most_seen` nearest before it and after it. The one in the longest name counts; among equally long names the one of
// the nearest sentence, then the earliest. Names of more than `longest` tokens are rather headlines and count as names
// of that length.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <tuple>
#include <vector>

namespace maxmargin::mentions {

inline constexpr std::size_t most_seen = 32;
inline constexpr std::int64_t longest = 6;

// Sentences of tokens: what they say as a number, and whether they are capitalized.
struct Text {
    std::span<const std::int64_t> sentences;
    std::span<const std::int32_t> word;
    std::span<const std::uint8_t> capital;
    std::size_t n_words;
};

// Writes the token of the other mention and the first and the last token of its name, -1 for none.
inline void find(const Text& text, std::int64_t window, std::span<std::int64_t> token, std::span<std::int64_t> first,
                 std::span<std::int64_t> last) {
    const std::size_t n = text.word.size();
    std::vector<std::int64_t> sentence(n), begin(n), end(n);
    for (std::size_t s = 0; s + 1 < text.sentences.size(); ++s) {
        const auto stop = static_cast<std::size_t>(text.sentences[s + 1]);
        for (auto t = static_cast<std::size_t>(text.sentences[s]); t < stop;) {
            std::size_t u = t + 1;
            while (text.capital[t] && u < stop && text.capital[u]) ++u;
            for (const std::size_t from = t; t < u; ++t) {
                sentence[t] = static_cast<std::int64_t>(s);
                begin[t] = static_cast<std::int64_t>(from);
                end[t] = static_cast<std::int64_t>(u);
            }
        }
    }

    // The mentions of each word, in order.
    std::vector<std::size_t> start(text.n_words + 1);
    for (std::size_t t = 0; t < n; ++t)
        if (text.capital[t]) ++start[static_cast<std::size_t>(text.word[t]) + 1];
    for (std::size_t w = 0; w < text.n_words; ++w) start[w + 1] += start[w];
    std::vector<std::size_t> at(start.begin(), start.end() - 1);  // mentions of each word before the current token
    std::vector<std::size_t> mention(start.back());
    for (std::size_t t = 0; t < n; ++t)
        if (text.capital[t]) mention[at[static_cast<std::size_t>(text.word[t])]++] = t;
    at.assign(start.begin(), start.end() - 1);

    for (std::size_t t = 0; t < n; ++t) {
        token[t] = first[t] = last[t] = -1;
        if (!text.capital[t]) continue;
        const auto word = static_cast<std::size_t>(text.word[t]);
        std::tuple<std::int64_t, std::int64_t, std::size_t> best{};
        // Returns whether to look on.
        const auto look = [&](std::size_t other) {
            const std::int64_t distance = std::abs(sentence[other] - sentence[t]);
            if (distance > window) return false;
            if (begin[other] == begin[t]) return true;
            const std::tuple found{-std::min(end[other] - begin[other], longest), distance, other};
            if (token[t] < 0 || found < best) {
                best = found;
                token[t] = static_cast<std::int64_t>(other);
                first[t] = begin[other];
                last[t] = end[other] - 1;
            }
            return true;
        };
        std::size_t& before = at[word];
        for (std::size_t i = before, seen = 0; i > start[word] && seen < most_seen; ++seen)
            if (!look(mention[--i])) break;
        ++before;
        for (std::size_t i = before, seen = 0; i < start[word + 1] && seen < most_seen; ++i, ++seen)
            if (!look(mention[i])) break;
    }
}

}  // namespace maxmargin::mentions
