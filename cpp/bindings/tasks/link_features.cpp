#include "maxmargin/alignment/link_features.hpp"

#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "maxmargin/alignment/word_features.hpp"

namespace maxmargin {

namespace {

using links::Batch;
using links::Choice;

// A batch and the arrays that it refers to.
struct LinkBatch {
    Batch batch;
    In<double> model1_forward, model1_backward, hmm_forward, hmm_backward, together;
    In<double> count_source, count_target, null_source, null_target, user;
    std::vector<std::int32_t> identity;
};

// Checks offsets, and copies them.
std::vector<std::int64_t> offsets_of(const In<std::int64_t>& offsets, std::size_t n) {
    require(rises_to(view(offsets), n), "offsets must rise from 0 to the end of what they divide");
    return copied(offsets);
}

void create(LinkBatch* self, In<std::int64_t> source_start, In<std::int64_t> target_start, In<std::int64_t> grid_start,
            In<std::int32_t> source_word, In<std::int32_t> target_word, In<std::int64_t> letters_start,
            In<std::uint32_t> letters, In<std::int32_t> shape, In<std::int32_t> digits, In<std::uint8_t> kind,
            In<double> model1_forward, In<double> model1_backward, In<double> hmm_forward, In<double> hmm_backward,
            In<double> together, In<double> count_source, In<double> count_target, In<double> null_source,
            In<double> null_target, In<std::int32_t> identity, In<double> user, double n_pairs) {
    Batch b;
    const std::size_t cells = together.size();
    b.source_start = offsets_of(source_start, source_word.size());
    b.target_start = offsets_of(target_start, target_word.size());
    b.grid_start = offsets_of(grid_start, cells);
    b.source_word = copied(source_word);
    b.target_word = copied(target_word);
    require(b.source_start.size() == b.grid_start.size() && b.target_start.size() == b.grid_start.size(),
            "the three offsets must have one entry per sentence pair and one more");
    for (std::size_t i = 0; i + 1 < b.grid_start.size(); ++i) {
        const std::int64_t J = b.source_start[i + 1] - b.source_start[i], K = b.target_start[i + 1] - b.target_start[i];
        const std::int64_t size = b.grid_start[i + 1] - b.grid_start[i];
        require(K == 0 ? size == 0 : size % K == 0 && size / K == J, "a grid does not have source x target cells");
    }
    b.words.start = offsets_of(letters_start, letters.size());
    b.words.letters = copied(letters);
    b.words.shape = copied(shape);
    b.words.digits = copied(digits);
    b.words.kind = copied(kind);
    require(b.words.start.size() == kind.size() + 1 && shape.size() == kind.size() && digits.size() == kind.size(),
            "letters, shapes, digits and kinds must have one entry per word");
    for (std::size_t i = 1; i < b.words.start.size(); ++i)
        require(b.words.start[i] - b.words.start[i - 1] <= links::LETTERS_MOST, "a word has too many letters");
    for (const std::uint32_t letter : b.words.letters) require(letter < 0x110000, "a letter is not a code point");
    require(within(view(source_word), 0, b.words.size()) && within(view(target_word), 0, b.words.size()),
            "a word is outside the list of words");
    require(model1_forward.size() == cells && model1_backward.size() == cells && hmm_forward.size() == cells &&
                hmm_backward.size() == cells,
            "all grids must have the same size");
    require(count_source.size() == source_word.size() && null_source.size() == source_word.size() &&
                count_target.size() == target_word.size() && null_target.size() == target_word.size(),
            "counts and nulls must have one entry per word");
    require(identity.size() == 0 || identity.size() == cells, "identity must have one entry per cell or none");
    for (const std::int32_t id : view(identity)) b.identity_largest = std::max(b.identity_largest, id);
    require(user.ndim() == 2 && user.shape(0) == cells, "user must have one row per cell");
    require(std::isfinite(n_pairs) && n_pairs >= 0.0, "n_pairs must be finite and not negative");
    b.n_user = static_cast<std::int64_t>(user.shape(1));
    b.n_pairs = n_pairs < 1.0 ? 0.0 : n_pairs;
    b.model1_forward = view(model1_forward);
    b.model1_backward = view(model1_backward);
    b.hmm_forward = view(hmm_forward);
    b.hmm_backward = view(hmm_backward);
    b.together = view(together);
    b.count_source = view(count_source);
    b.count_target = view(count_target);
    b.null_source = view(null_source);
    b.null_target = view(null_target);
    std::vector<std::int32_t> numbers = copied(identity);  // read as columns: they must stay what was checked
    b.identity = numbers;
    b.user = view(user);
    unlocked([&] { b.words.finish(); });
    new (self) LinkBatch{std::move(b), model1_forward, model1_backward, hmm_forward, hmm_backward, together,
                         count_source, count_target,   null_source,     null_target, user,         std::move(numbers)};
}

Choice checked(const LinkBatch& self, unsigned groups, bool user, std::int64_t n_identity, std::size_t n_status) {
    const Batch& b = self.batch;
    require(groups < (1U << links::GROUPS), "there is no such group");
    require(n_identity >= 0 && n_identity < (std::int64_t{1} << 30), "n_identity must be a number of word pairs");
    require(n_identity == 0 ||
                (static_cast<std::int64_t>(b.identity.size()) == b.cells() && b.identity_largest < n_identity),
            "identity is missing, or a number in it is too large");
    require(static_cast<std::int64_t>(n_status) == b.size(), "status must have one entry per sentence pair");
    return {groups, user, n_identity};
}

void scores(const LinkBatch& self, unsigned groups, bool user, std::int64_t n_identity, In<double> weights,
            Out<double> out, Out<std::int8_t> status, Threads threads) {
    const Choice choice = checked(self, groups, user, n_identity, status.size());
    const Batch& b = self.batch;
    require(static_cast<std::int64_t>(weights.size()) == choice.n_dense(b) + n_identity, "weights do not fit");
    require(static_cast<std::int64_t>(out.size()) == b.cells(), "out must have one entry per cell");
    const NoGil release;
    links::scores(b, choice, view(weights), view(out), view(status), threads);
}

void dense(const LinkBatch& self, unsigned groups, bool user, Out<double> out, Out<std::int8_t> status,
           Threads threads) {
    const Choice choice = checked(self, groups, user, 0, status.size());
    const Batch& b = self.batch;
    require(out.ndim() == 2 && static_cast<std::int64_t>(out.shape(0)) == b.cells() &&
                static_cast<std::int64_t>(out.shape(1)) == choice.n_dense(b),
            "out must have one row per cell and one column per feature");
    const NoGil release;
    links::dense(b, choice, view(out), view(status), threads);
}

void count(const LinkBatch& self, unsigned groups, bool user, std::int64_t n_identity, Out<std::int64_t> counts,
           Out<std::int8_t> status, Threads threads) {
    const Choice choice = checked(self, groups, user, n_identity, status.size());
    require(static_cast<std::int64_t>(counts.size()) == self.batch.cells(), "counts must have one entry per cell");
    const NoGil release;
    links::count(self.batch, choice, view(counts), view(status), threads);
}

void fill(const LinkBatch& self, unsigned groups, bool user, std::int64_t n_identity, In<std::int64_t> start,
          Out<std::int32_t> columns, Out<double> values, Out<std::int8_t> status, Threads threads) {
    const Choice choice = checked(self, groups, user, n_identity, status.size());
    const auto s = view(start);
    require(static_cast<std::int64_t>(s.size()) == self.batch.cells() + 1 && rises_to(s, values.size()) &&
                columns.size() == values.size(),
            "start must rise from 0 to the number of entries of all cells");
    const NoGil release;
    links::fill(self.batch, choice, s, view(columns), view(values), view(status), threads);
}

void words(const LinkBatch& self, bool source, Out<double> out, Out<std::int8_t> status, Threads threads) {
    checked(self, 0, false, 0, status.size());
    const std::size_t n = (source ? self.batch.source_word : self.batch.target_word).size();
    require(out.ndim() == 2 && out.shape(0) == n && out.shape(1) == links::WORD_FEATURES,
            "out must have one row per word and one column per feature");
    const NoGil release;
    links::word_features(self.batch, source, view(out), view(status), threads);
}

}  // namespace

void bind_link_features(nb::module_& module) {
    nb::class_<LinkBatch>(module, "LinkBatch", "Sentence pairs and the statistics of their word pairs.")
        .def("__init__", &create, "source_start"_array, "target_start"_array, "grid_start"_array, "source_word"_array,
             "target_word"_array, "letters_start"_array, "letters"_array, "shape"_array, "digits"_array, "kind"_array,
             "model1_forward"_array, "model1_backward"_array, "hmm_forward"_array, "hmm_backward"_array,
             "together"_array, "count_source"_array, "count_target"_array, "null_source"_array, "null_target"_array,
             "identity"_array, "user"_array, "n_pairs"_a,
             "Offsets, distinct words, grids of all cells, counts and null posteriors of all words.")
        .def("scores", apart(&scores), "groups"_a, "user"_a, "n_identity"_a, "weights"_array, "out"_array,
             "status"_array, "threads"_a, "The score of every cell.")
        .def("dense", apart(&dense), "groups"_a, "user"_a, "out"_array, "status"_array, "threads"_a,
             "The features of every cell, without identity.")
        .def("count", apart(&count), "groups"_a, "user"_a, "n_identity"_a, "counts"_array, "status"_array, "threads"_a,
             "The number of features of every cell that are not zero.")
        .def("fill", apart(&fill), "groups"_a, "user"_a, "n_identity"_a, "start"_array, "columns"_array, "values"_array,
             "status"_array, "threads"_a, "The features that are not zero.")
        .def("words", apart(&words), "source"_a, "out"_array, "status"_array, "threads"_a,
             "The features of every word of one side.");
    module.def(
        "link_group_sizes", [] { return std::vector<int>(links::GROUP_SIZES.begin(), links::GROUP_SIZES.end()); },
        "The number of columns of each group.");
}

}  // namespace maxmargin
