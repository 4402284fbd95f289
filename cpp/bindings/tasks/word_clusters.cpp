#include "maxmargin/text/word_clusters.hpp"

#include "arrays.hpp"
#include "common.hpp"

namespace maxmargin {

namespace {

constexpr std::int64_t most_classes = 4096;
// Sums of counts must be exact as doubles.
constexpr std::int64_t most_counted = std::int64_t{1} << 52;

void check(const clusters::Neighbors& all, std::size_t n_words) {
    require(all.start.size() == n_words + 1 && rises_to(all.start, all.word.size()),
            "starts must rise from 0 to the number of neighbors, one for each word and one more");
    require(all.count.size() == all.word.size(), "each neighbor must have a count");
    require(within(all.word, 0, static_cast<std::int64_t>(n_words)), "a neighbor is not a word");
    std::int64_t sum = 0;
    for (const std::int64_t count : all.count) {
        require(count >= 1 && count <= most_counted - sum, "counts must be positive, and their sum below 2^52");
        sum += count;
    }
}

std::int64_t pass(const In<std::int64_t>& after_start, const In<std::int32_t>& after_word,
                  const In<std::int64_t>& after_count, const In<std::int64_t>& before_start,
                  const In<std::int32_t>& before_word, const In<std::int64_t>& before_count, std::int64_t n_classes,
                  std::int64_t n_fixed, std::int64_t n_free, Out<std::int32_t> class_of) {
    const auto k = static_cast<std::size_t>(checked_count("n_classes", n_classes, 1, most_classes));
    checked_count("n_fixed", n_fixed, 0, n_classes - 1);
    const std::size_t n_words = class_of.size();
    checked_count("n_free", n_free, 0, static_cast<std::int64_t>(n_words));
    const clusters::Neighbors after{view(after_start), view(after_word), view(after_count)};
    const clusters::Neighbors before{view(before_start), view(before_word), view(before_count)};
    check(after, n_words);
    check(before, n_words);
    // The counts of classes would fall below 0 if the two directions told different numbers.
    require(after.word.size() == before.word.size(), "both directions must have the same neighbors");
    std::vector<std::int64_t> at(before.start.begin(), before.start.end());
    for (std::size_t w = 0; w < n_words; ++w)
        for (auto e = static_cast<std::size_t>(after.start[w]); e < static_cast<std::size_t>(after.start[w + 1]); ++e) {
            const auto v = static_cast<std::size_t>(after.word[e]);
            const auto place = static_cast<std::size_t>(at[v]++);
            require(place < static_cast<std::size_t>(before.start[v + 1]) &&
                        static_cast<std::size_t>(before.word[place]) == w && before.count[place] == after.count[e],
                    "both directions must have the same neighbors, in the order of the words");
            require(e == static_cast<std::size_t>(after.start[w]) || after.word[e - 1] < after.word[e],
                    "neighbors of a word must be in the order of the words");
        }
    auto classes = view(class_of);
    const auto free = static_cast<std::size_t>(n_free);
    require(within(std::span<const std::int32_t>(classes.first(free)), 0, n_classes - n_fixed) &&
                within(std::span<const std::int32_t>(classes), 0, n_classes),
            "a word has no class, or one that is fixed");
    return unlocked([&] {
        return clusters::exchange_pass(after, before, k, k - static_cast<std::size_t>(n_fixed), free, classes);
    });
}

void merge(const In<std::int64_t>& counts, std::int64_t n_fixed, Out<std::int32_t> pairs) {
    require(counts.ndim() == 2 && counts.shape(0) == counts.shape(1), "counts must be a square matrix");
    const std::size_t k = counts.shape(0);
    checked_count("the number of classes", static_cast<std::int64_t>(k), 1, most_classes);
    checked_count("n_fixed", n_fixed, 0, static_cast<std::int64_t>(k) - 1);
    std::int64_t sum = 0;
    for (const std::int64_t count : view(counts)) {
        require(count >= 0 && count <= most_counted - sum, "counts must not be negative, and their sum below 2^52");
        sum += count;
    }
    const std::size_t free = k - static_cast<std::size_t>(n_fixed);
    require(pairs.size() == 2 * (free - 1), "pairs must have two numbers for each merge");
    unlocked([&] { clusters::merge_classes(view(counts), k, free, view(pairs)); });
}

}  // namespace

void bind_word_clusters(nb::module_& module) {
    module.def(
        "exchange_words", apart(&pass), "after_start"_array, "after_word"_array, "after_count"_array,
        "before_start"_array, "before_word"_array, "before_count"_array, "n_classes"_a, "n_fixed"_a, "n_free"_a,
        "class_of"_array,
        "One pass of the exchange algorithm over the first n_free words, see word_clusters.hpp; the last n_fixed "
        "classes take no words. Returns how many words moved.");
    module.def("merge_classes", apart(&merge), "counts"_array, "n_fixed"_a, "pairs"_array,
               "The pairs of classes that are merged, in order, until one is left; the last n_fixed stay as they are.");
}

}  // namespace maxmargin
