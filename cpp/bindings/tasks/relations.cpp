#include "maxmargin/parsing/relations.hpp"

#include "arrays.hpp"
#include "maxmargin/base/parallel.hpp"
#include "owned.hpp"

namespace maxmargin {

namespace {

using parsing::Terms;

// Columns of the features of all tokens below 2^bits, sorted and each once: where those of each token begin, and all.
nb::tuple relation_rows(In<std::int64_t> n_tokens, In<std::int32_t> numbers, In<std::uint8_t> kinds,
                        In<std::int64_t> heads, In<std::int32_t> starts, In<std::int32_t> terms, int bits,
                        Threads threads) {
    const auto tokens = view(n_tokens);
    std::vector<std::int64_t> first{0};
    for (const std::int64_t n : tokens) {
        checked_count("n_tokens", n, 1, (1 << 15) - 1);
        first.push_back(first.back() + n);
    }
    const auto n_examples = static_cast<std::int64_t>(tokens.size());
    require(static_cast<std::int64_t>(heads.size()) == first.back(), "every token needs a head");
    require(numbers.ndim() == 2 && static_cast<std::int64_t>(numbers.shape(0)) == first.back() + n_examples &&
                static_cast<std::int64_t>(kinds.size()) == first.back() + n_examples,
            "numbers and kinds must have a row for each token, and one for the root before those of a sentence");
    require(within(view(kinds), 0, 4), "kinds must lie in 0 .. 3");
    for (std::int64_t i = 0; i < n_examples; ++i)
        require(within(view(heads).subspan(first[i], tokens[i]), 0, tokens[i] + 1), "heads must lie in 0 .. n");
    const auto n_attributes = static_cast<std::int64_t>(numbers.shape(1));
    require(terms.size() % 2 == 0 && rises_to(view(starts), terms.size() / 2), "starts must rise to the terms");
    for (std::size_t q = 0; q < terms.size(); q += 2) {
        const std::int32_t role = terms.data()[q], what = terms.data()[q + 1];
        require(role >= -1 && role < parsing::n_roles && what >= 0 &&
                    what < (role < 0 ? std::int64_t{parsing::n_seen} : n_attributes),
                "a term names what does not exist");
    }
    checked_count("bits", bits, 1, 30);
    const int workers = threads;
    std::vector<std::int64_t> rows(static_cast<std::size_t>(first.back()) + 1, 0);
    std::vector<std::vector<std::int32_t>> found(static_cast<std::size_t>(n_examples));
    std::vector<std::int32_t> columns;
    {
        const NoGil release;
        const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
        const Terms given{view(starts), view(terms)};
        std::vector<parsing::RelationFeatures> makers(static_cast<std::size_t>(workers),
                                                      parsing::RelationFeatures(given));
        parallel_each(n_examples, 16, workers, [&](int thread, std::int64_t i) {
            const std::int64_t nodes = first[i] + i;
            const parsing::Sentence sentence{tokens[i], n_attributes, numbers.data() + nodes * n_attributes,
                                             kinds.data() + nodes, heads.data() + first[i]};
            auto& own = found[i];
            std::int64_t last = 1;
            std::size_t begin = 0;
            const auto close = [&](std::int64_t next) {
                for (; last < next; ++last) {
                    std::sort(own.begin() + static_cast<std::ptrdiff_t>(begin), own.end());
                    own.erase(std::unique(own.begin() + static_cast<std::ptrdiff_t>(begin), own.end()), own.end());
                    rows[first[i] + last] = static_cast<std::int64_t>(own.size() - begin);
                    begin = own.size();
                }
            };
            makers[static_cast<std::size_t>(thread)].run(sentence, [&](std::int64_t m, std::uint64_t h) {
                close(m);
                own.push_back(static_cast<std::int32_t>(h & mask));
            });
            close(tokens[i] + 1);
        });
        for (std::size_t r = 1; r < rows.size(); ++r) rows[r] += rows[r - 1];
        columns.reserve(static_cast<std::size_t>(rows.back()));
        for (auto& own : found) {
            columns.insert(columns.end(), own.begin(), own.end());
            own = {};
        }
    }
    return nb::make_tuple(owned(std::move(rows)), owned(std::move(columns)));
}

}  // namespace

void bind_relations(nb::module_& module) {
    module.def("relation_rows", &relation_rows, "n_tokens"_array, "numbers"_array, "kinds"_array, "heads"_array,
               "starts"_array, "terms"_array, "bits"_a, "threads"_a,
               "Hashed features of the relations of all tokens, as compressed rows.");
}

}  // namespace maxmargin
