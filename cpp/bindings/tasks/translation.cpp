#include "maxmargin/alignment/translation.hpp"

#include <cmath>
#include <memory>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "arrays.hpp"
#include "maxmargin/base/parallel.hpp"
#include "owned.hpp"

namespace maxmargin {

namespace {

using bitext::Lexicon;
using bitext::Pairs;
using Offsets = In<std::int64_t>;
using Words = In<std::int32_t>;

// Sentence pairs that were checked when they were made, with the offsets of their cells. With `merge` equal pairs
// become one that counts as many times.
class SentencePairs {
   public:
    SentencePairs(const Offsets& source_start, const Words& source, const Offsets& target_start, const Words& target,
                  std::int64_t n_source, std::int64_t n_target, bool merge)
        : n_source(n_source), n_target(n_target),
          pairs_{copied(source_start), copied(target_start), copied(source), copied(target), {}} {
        checked_count("n_source", n_source, 0, most_claimed);
        checked_count("n_target", n_target, 0, most_claimed);
        require(source_start.size() == target_start.size(), "both sides must have the same number of sentences");
        require(rises_to(maxmargin::view(source_start), source.size()) &&
                    rises_to(maxmargin::view(target_start), target.size()),
                "offsets must rise from 0 to the number of words");
        require(within(maxmargin::view(source), -1, n_source) && within(maxmargin::view(target), -1, n_target),
                "a word is outside its vocabulary");
        require(source_start.size() <= std::size_t{1} << 31, "there are too many sentence pairs");
        pairs_.times.assign(source_start.size() - 1, 1);
        if (merge) pairs_.merge();
        cell_start_.assign(pairs_.source_start.size(), 0);
        for (std::size_t p = 0; p + 1 < cell_start_.size(); ++p) {
            const std::int64_t rows = pairs_.source_start[p + 1] - pairs_.source_start[p];
            const std::int64_t columns = pairs_.target_start[p + 1] - pairs_.target_start[p];
            require(rows < (1 << 20) && columns < (1 << 20), "a sentence is too long");
            cell_start_[p + 1] = cell_start_[p] + rows * columns;
        }
    }

    Pairs view() const {
        return {pairs_.source_start, pairs_.target_start, cell_start_, pairs_.source, pairs_.target, pairs_.times};
    }
    std::int64_t size() const { return static_cast<std::int64_t>(pairs_.times.size()); }

    const std::int64_t n_source, n_target;

   private:
    bitext::OwnedPairs pairs_;
    std::vector<std::int64_t> cell_start_;
};

// A lexicon that was checked when it was made.
class WordPairs {
   public:
    WordPairs(const Offsets& row_start, const Words& column, std::int64_t n_target)
        : n_target(n_target), row_start_(copied(row_start)), column_(copied(column)) {
        require(rises_to(maxmargin::view(row_start), column.size()), "rows of the lexicon do not fit");
        require(within(maxmargin::view(column), 0, n_target), "a word of the lexicon is outside its vocabulary");
    }

    Lexicon view() const { return {row_start_, column_}; }
    std::int64_t n_source() const { return static_cast<std::int64_t>(row_start_.size()) - 1; }

    const std::int64_t n_target;

   private:
    std::vector<std::int64_t> row_start_;
    std::vector<std::int32_t> column_;
};

// The words that meet in sentence pairs: offsets of the rows, columns, and in how many pairs they meet.
auto lexicon_of(const SentencePairs& checked, Threads threads) {
    const int workers = threads;
    std::unique_ptr<bitext::OwnedLexicon> found;
    {
        const NoGil unlocked;
        found = std::make_unique<bitext::OwnedLexicon>(checked.view(), checked.n_source, checked.n_target, workers);
#ifdef __GLIBC__
        malloc_trim(0);  // what numbering words and listing pairs has freed goes back before models are learned
#endif
    }
    return nb::make_tuple(owned(std::move(found->row_start)), owned(std::move(found->column)),
                          owned(std::move(found->together)));
}

// The words that meet in one text or in another one, as lexicon_of lists them.
auto merged_lexicon(const Offsets& row_start, const Words& column, const Words& together, const Offsets& more_start,
                    const Words& more_column, const Words& more_together, Threads threads) {
    require(rises_to(view(row_start), column.size()) && rises_to(view(more_start), more_column.size()),
            "rows of the lexicon do not fit");
    require(row_start.size() == more_start.size(), "both lexicons must have the same source words");
    require(together.size() == column.size() && more_together.size() == more_column.size(),
            "together must have one entry per slot");
    const int workers = threads;
    std::unique_ptr<bitext::OwnedLexicon> found;
    {
        const NoGil unlocked;
        found = std::make_unique<bitext::OwnedLexicon>(
            bitext::CountedLexicon{{view(row_start), view(column)}, view(together)},
            bitext::CountedLexicon{{view(more_start), view(more_column)}, view(more_together)}, workers);
    }
    return nb::make_tuple(owned(std::move(found->row_start)), owned(std::move(found->column)),
                          owned(std::move(found->together)));
}

// Rows of a lexicon that fit their columns and vocabularies. (A row that is not in order only finds less.)
Lexicon checked_lexicon(const Offsets& row_start, const Words& column, std::int64_t n_source, std::int64_t n_target) {
    require(static_cast<std::int64_t>(row_start.size()) == n_source + 1 && rises_to(view(row_start), column.size()),
            "rows of the lexicon do not fit");
    require(within(view(column), 0, n_target), "a word of the lexicon is outside its vocabulary");
    return {view(row_start), view(column)};
}

translation::Tables tables(const In<float>& word, const In<float>& null_target, const In<float>& null_source,
                           double unseen, std::int64_t n_slots, std::int64_t n_source, std::int64_t n_target) {
    require(static_cast<std::int64_t>(word.size()) == 2 * n_slots, "word must have two entries per slot");
    require(static_cast<std::int64_t>(null_target.size()) == n_target &&
                static_cast<std::int64_t>(null_source.size()) == n_source,
            "probabilities of the empty word must be one per word");
    require(unseen >= 1e-30 && unseen < 1, "unseen must be a probability, at least 1e-30");
    return {view(word), view(null_target), view(null_source), static_cast<float>(unseen)};
}

translation::Jumps jumps(const In<double>& c, double null, std::int64_t most_positions) {
    require(c.size() % 2 == 1 && c.size() >= 3, "jumps must have an odd number of entries, at least 3");
    for (const double weight : view(c))
        require(weight >= 1e-100 && weight <= 1e100, "jumps must be positive, from 1e-100 to 1e100");
    require(null >= 0 && null < 1, "null must be a probability below 1");
    return {view(c), null, most_positions};
}

// One expectation step; jump arrays without entries stand for Model 1. The text is taken in blocks of at most
// `block_cells` cells. The pairs are those from number `first` of a text in which every `every`-th counts jumps. Counts
// are added to what is there.
void expect(const SentencePairs& checked, const Offsets& row_start, const Words& column, const In<float>& word,
            const In<float>& null_target, const In<float>& null_source, double unseen, const In<double>& forth,
            const In<double>& back, double null, bool agree, std::int64_t longest, double scale, Out<float> counts,
            Out<std::uint64_t> null_target_counts, Out<std::uint64_t> null_source_counts, Out<std::uint64_t> distances,
            Out<std::uint64_t> departures, Out<double> likelihood, std::int64_t block_cells, std::int64_t first,
            std::int64_t every, Threads threads) {
    const Pairs pairs = checked.view();
    const Lexicon lexicon = checked_lexicon(row_start, column, checked.n_source, checked.n_target);
    const auto n_slots = static_cast<std::int64_t>(column.size());
    const auto table = tables(word, null_target, null_source, unseen, n_slots, checked.n_source, checked.n_target);
    require(counts.size() == word.size() && null_target_counts.size() == null_target.size() &&
                null_source_counts.size() == null_source.size(),
            "counts must have one entry per probability");
    require(static_cast<std::int64_t>(likelihood.size()) == 2 * pairs.size(),
            "likelihood must have two entries per pair");
    require(scale >= 1 && scale <= 0x1p62, "scale must be at least 1 and at most 2^62");
    require(longest >= 0 && longest < (1 << 20), "longest is out of range");
    checked_count("block_cells", block_cells, 1, most_claimed);
    checked_count("first", first, 0, most_claimed);
    checked_count("every", every, 1, most_claimed);
    const bool markov = forth.size() > 0;
    translation::Expectation step{pairs, lexicon, table, {}, {}, markov, agree, longest, block_cells, first, every};
    translation::Counts totals{view(null_target_counts), view(null_source_counts), {}, {}, scale};
    if (markov) {
        step.forth = jumps(forth, null, longest);
        step.back = jumps(back, null, longest);
        const std::int64_t side = longest + 1;
        require(forth.size() == back.size() && distances.size() == 2 * forth.size(),
                "distances must have one entry per jump and direction");
        require(static_cast<std::int64_t>(departures.size()) == 2 * side * side, "departures must be (2, side, side)");
        totals.forth = {{distances.data(), forth.size()}, {departures.data(), departures.size() / 2}, side};
        totals.back = {{distances.data() + forth.size(), forth.size()},
                       {departures.data() + departures.size() / 2, departures.size() / 2},
                       side};
    }
    const auto sums = view(counts);
    const auto values = view(likelihood);
    const int workers = threads;
    const NoGil unlocked;
    step.run(sums, totals, values, workers);
}

// Counts of slots become probabilities, in place.
void maximize(const Offsets& row_start, const Words& column, std::int64_t n_target, double prior, Out<float> word,
              Threads threads) {
    checked_count("n_target", n_target, 0, most_claimed);
    const Lexicon lexicon =
        checked_lexicon(row_start, column, static_cast<std::int64_t>(row_start.size()) - 1, n_target);
    require(word.size() == 2 * column.size(), "word must have two entries per slot");
    require(prior >= 0 && std::isfinite(prior), "prior is out of range");
    const auto values = view(word);
    const int workers = threads;
    const NoGil unlocked;
    translation::maximize(lexicon, values, prior, n_target, workers);
}

// Marks the slots that are kept after Model 1.
void probable(const Offsets& row_start, const Words& column, std::int64_t n_target, const In<float>& word, double least,
              Out<std::uint8_t> kept) {
    checked_count("n_target", n_target, 0, most_claimed);
    const Lexicon lexicon =
        checked_lexicon(row_start, column, static_cast<std::int64_t>(row_start.size()) - 1, n_target);
    require(word.size() == 2 * column.size(), "word must have two entries per slot");
    require(kept.size() == column.size(), "kept must have one entry per slot");
    require(least >= 0 && least <= 1, "least must be a probability");
    const auto probabilities = view(word);
    const auto marks = view(kept);
    const NoGil unlocked;
    translation::probable(lexicon, probabilities, static_cast<float>(least), n_target, marks);
}

// Slots of the cells of any sentence pairs, -1 for words that never met.
void find(const WordPairs& word_pairs, const SentencePairs& checked, Out<std::int64_t> slots, Threads threads) {
    const Pairs pairs = checked.view();
    const Lexicon lexicon = word_pairs.view();
    require(word_pairs.n_source() == checked.n_source && word_pairs.n_target == checked.n_target,
            "the lexicon does not fit the vocabularies of the sentence pairs");
    require(static_cast<std::int64_t>(slots.size()) == pairs.cell_start.back(), "slots must have one entry per cell");
    std::int64_t* out = slots.data();
    const NoGil unlocked;
    parallel_each(pairs.size(), bitext::kGrain, threads, [&](int, std::int64_t p) {
        const std::int64_t n = pairs.targets(p);
        std::int64_t* row = out + pairs.cell_start[p];
        for (std::int64_t j = pairs.source_start[p]; j < pairs.source_start[p + 1]; ++j, row += n) {
            const std::int32_t e = pairs.source[j];
            const std::int64_t first = e < 0 ? 0 : lexicon.row_start[e], last = e < 0 ? 0 : lexicon.row_start[e + 1];
            bitext::search(lexicon.column.data(), first, last, pairs.target.data() + pairs.target_start[p], n, row);
        }
    });
}

// Posteriors of both directions over the cells; jump arrays without entries stand for Model 1.
void posteriors(const SentencePairs& checked, const In<std::int64_t>& slots, const In<float>& word,
                const In<float>& null_target, const In<float>& null_source, double unseen, const In<double>& forth,
                const In<double>& back, double null, Out<double> forward, Out<double> backward,
                Out<double> empty_target, Out<double> empty_source, Out<double> likelihood, Threads threads) {
    const Pairs pairs = checked.view();
    const auto n_slots = static_cast<std::int64_t>(word.size()) / 2;
    const auto table = tables(word, null_target, null_source, unseen, n_slots, checked.n_source, checked.n_target);
    const auto cells = static_cast<std::size_t>(pairs.cell_start.back());
    require(slots.size() == cells && forward.size() == cells && backward.size() == cells,
            "grids must have one entry per cell");
    require(within(view(slots), -1, n_slots), "a slot is out of range");
    require(empty_target.size() == pairs.target.size() && empty_source.size() == pairs.source.size(),
            "posteriors of the empty word must be one per token");
    require(static_cast<std::int64_t>(likelihood.size()) == 2 * pairs.size(),
            "likelihood must have two entries per pair");
    const bool markov = forth.size() > 0;
    translation::Jumps forth_jumps, back_jumps;
    if (markov) {
        std::int64_t sources = 0, targets = 0;
        for (std::int64_t p = 0; p < pairs.size(); ++p) {
            sources = std::max(sources, pairs.sources(p));
            targets = std::max(targets, pairs.targets(p));
        }
        forth_jumps = jumps(forth, null, sources);
        back_jumps = jumps(back, null, targets);
    }
    const std::int64_t* in = slots.data();
    double *out_forward = forward.data(), *out_backward = backward.data(), *out_target = empty_target.data(),
           *out_source = empty_source.data(), *values = likelihood.data();
    const NoGil unlocked;
    struct Scratch {
        translation::Worker worker;
        std::vector<translation::Cell> cells;
    };
    std::vector<Scratch> workers(int{threads});
    parallel_each(pairs.size(), 8, threads, [&](int thread, std::int64_t p) {
        auto& [worker, cells] = workers[thread];
        const std::int64_t first_cell = pairs.cell_start[p], n_cells = pairs.cell_start[p + 1] - first_cell;
        cells.resize(n_cells);
        for (std::int64_t c = 0; c < n_cells; ++c) {
            const std::int64_t slot = in[first_cell + c];
            cells[c] = slot < 0 ? translation::Cell{table.unseen, table.unseen} : table.cell(slot);
        }
        worker.begin(pairs, p, table);
        const auto [first, second] =
            markov ? worker.hmm(cells.data(), forth_jumps, back_jumps, nullptr) : worker.model1(cells.data());
        values[2 * p] = first;
        values[2 * p + 1] = second;
        for (std::int64_t c = 0; c < n_cells; ++c) {
            out_forward[first_cell + c] = static_cast<double>(cells[c].forth);
            out_backward[first_cell + c] = static_cast<double>(cells[c].back);
        }
        std::copy(worker.null_target.begin(), worker.null_target.end(), out_target + pairs.target_start[p]);
        std::copy(worker.null_source.begin(), worker.null_source.end(), out_source + pairs.source_start[p]);
    });
}

}  // namespace

void bind_translation(nb::module_& module) {
    nb::class_<SentencePairs>(module, "SentencePairs")
        .def(nb::init<const Offsets&, const Words&, const Offsets&, const Words&, std::int64_t, std::int64_t, bool>(),
             "source_start"_array, "source"_array, "target_start"_array, "target"_array, "n_source"_a, "n_target"_a,
             "merge"_a = false)
        .def("__len__", &SentencePairs::size);
    module.def("bitext_lexicon", &lexicon_of, "pairs"_a, "threads"_a);
    module.def("merged_lexicon", &merged_lexicon, "row_start"_array, "column"_array, "together"_array,
               "more_start"_array, "more_column"_array, "more_together"_array, "threads"_a);
    module.def("translation_expect", apart(&expect), "pairs"_a, "row_start"_array, "column"_array, "word"_array,
               "null_target"_array, "null_source"_array, "unseen"_a, "forth"_array, "back"_array, "null"_a, "agree"_a,
               "longest"_a, "scale"_a, "counts"_array, "null_target_counts"_array, "null_source_counts"_array,
               "distances"_array, "departures"_array, "likelihood"_array, "block_cells"_a, "first"_a, "every"_a,
               "threads"_a);
    module.def("translation_maximize", apart(&maximize), "row_start"_array, "column"_array, "n_target"_a, "prior"_a,
               "word"_array, "threads"_a);
    module.def("translation_probable", apart(&probable), "row_start"_array, "column"_array, "n_target"_a, "word"_array,
               "least"_a, "kept"_array);
    nb::class_<WordPairs>(module, "WordPairs")
        .def(nb::init<const Offsets&, const Words&, std::int64_t>(), "row_start"_array, "column"_array, "n_target"_a)
        .def("find", apart(&find), "pairs"_a, "slots"_array, "threads"_a);
    module.def("translation_posteriors", apart(&posteriors), "pairs"_a, "slots"_array, "word"_array,
               "null_target"_array, "null_source"_array, "unseen"_a, "forth"_array, "back"_array, "null"_a,
               "forward"_array, "backward"_array, "empty_target"_array, "empty_source"_array, "likelihood"_array,
               "threads"_a);
}

}  // namespace maxmargin
