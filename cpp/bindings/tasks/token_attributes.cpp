#include <utility>

#include "arrays.hpp"
#include "maxmargin/text/segment_attributes.hpp"
#include "owned.hpp"

namespace maxmargin {

namespace {

using strings::Byte;
using strings::StringTable;
using templates::Template;

// With `places` views show places of segments, not distances.
void check(const Template& given, bool places = false) {
    const auto sentences = given.sentences;
    require(!sentences.empty() && rises_to(sentences, sentences.back()), "sentences must rise from 0");
    const auto n_tokens = static_cast<std::size_t>(sentences.back());
    const std::size_t n_columns = given.column_size.size();
    // The product may wrap: each factor is bounded first.
    require(n_columns > 0 ? n_tokens <= given.cells.size() && n_columns <= (std::size_t{1} << 31)
                          : n_tokens < (std::size_t{1} << 31),
            "cells must have one row per column and one entry per token");
    require(given.cells.size() == n_columns * n_tokens, "cells must have one row per column and one entry per token");
    require(given.reach >= 0 && given.reach < (1 << 20), "reach must be small");
    for (std::size_t c = 0; c < n_columns; ++c) {
        const std::int64_t size = given.column_size[c];
        require(size >= 0 && size < (std::int64_t{1} << 31), "a column has an impossible size");
        require(within(given.cells.subspan(c * n_tokens, n_tokens), 0, size), "a cell is outside of its column");
    }
    const auto& pieces = given.pieces;
    require(pieces.begin.size() == pieces.end.size(), "pieces must have as many ends as beginnings");
    const auto n_pieces = static_cast<std::int64_t>(pieces.begin.size());
    for (std::size_t i = 0; i < pieces.begin.size(); ++i)
        require(pieces.begin[i] == -1 || (pieces.begin[i] >= 0 && pieces.begin[i] <= pieces.end[i] &&
                                          pieces.end[i] <= static_cast<std::int64_t>(pieces.text.size())),
                "a piece lies outside of the text");
    require(given.source_column.size() == given.source_first.size(), "sources must have a column and a first piece");
    for (std::size_t s = 0; s < given.source_column.size(); ++s) {
        const std::int32_t column = given.source_column[s];
        require(column >= 0 && static_cast<std::size_t>(column) < n_columns, "a source has no column");
        const std::int64_t first = given.source_first[s];
        require(first >= 0 && first <= n_pieces &&
                    given.column_size[static_cast<std::size_t>(column)] + 2 * given.reach <= n_pieces - first,
                "a source has too few pieces");
    }
    require(given.view_source.size() == given.view_row.size(), "views must have a source and a row");
    for (std::size_t v = 0; v < given.view_source.size(); ++v) {
        const std::int32_t source = given.view_source[v];
        require(source >= 0 && static_cast<std::size_t>(source) < given.source_column.size(), "a view has no source");
        require(places ? given.view_row[v] >= 0 && given.view_row[v] < templates::N_PLACES
                       : given.view_row[v] >= -given.reach && given.view_row[v] <= given.reach,
                "a row is out of reach");
    }
    require(rises_to(given.line_start, given.items.size()), "lines must rise from 0 to the number of items");
    require(within(given.items, -n_pieces, static_cast<std::int64_t>(given.view_source.size())),
            "an item is neither a view nor a piece");
}

nb::tuple found(templates::Rows& rows, std::vector<std::uint8_t> keep) {
    nb::object kept = keep.empty() ? nb::none() : nb::cast(owned(std::move(keep)));
    nb::object values = rows.ones ? nb::none() : nb::cast(owned(std::move(rows.values)));
    return nb::make_tuple(owned(std::move(rows.starts)), owned(std::move(rows.columns)), values, kept);
}

nb::tuple run(StringTable& table, const In<std::int64_t>& sentences, const In<std::int32_t>& cells,
              const In<std::int64_t>& column_size, std::int64_t reach, const In<std::int32_t>& source_column,
              const In<std::int64_t>& source_first, const In<Byte>& text, const In<std::int64_t>& piece_begin,
              const In<std::int64_t>& piece_end, const In<std::int32_t>& view_source, const In<std::int32_t>& view_row,
              const In<std::int64_t>& line_start, const In<std::int64_t>& items, bool edges, bool grow,
              std::int64_t least, std::int64_t known, Threads threads) {
    const Template given{view(sentences),
                         view(cells),
                         view(column_size),
                         reach,
                         view(source_column),
                         view(source_first),
                         {view(text), view(piece_begin), view(piece_end)},
                         view(view_source),
                         view(view_row),
                         view(line_start),
                         view(items)};
    check(given);
    require(least >= 1 && known >= 0, "least must be at least 1, and known at least 0");
    const int workers = threads;
    templates::Rows rows;
    std::vector<std::uint8_t> keep;
    unlocked([&] {
        table.locked(grow, [&] {
            templates::extract<templates::Extractor>(given, given, table, grow, edges, workers, rows);
            if (least > 1) keep = rows.cut(least, known, table.size());
        });
    });
    return found(rows, std::move(keep));
}

nb::tuple segments(StringTable& table, const In<std::int64_t>& sentences, const In<std::int32_t>& cells,
                   const In<std::int64_t>& column_size, const In<std::int32_t>& source_column,
                   const In<std::int64_t>& source_first, const In<Byte>& text, const In<std::int64_t>& piece_begin,
                   const In<std::int64_t>& piece_end, const In<std::int32_t>& view_source,
                   const In<std::int32_t>& view_place, const In<std::int64_t>& line_start,
                   const In<std::int64_t>& items, std::int64_t longest, const In<std::uint8_t>& chosen, bool grow,
                   std::int64_t least, std::int64_t known, Threads threads) {
    const templates::SegmentTemplate given{{view(sentences),
                                            view(cells),
                                            view(column_size),
                                            1,
                                            view(source_column),
                                            view(source_first),
                                            {view(text), view(piece_begin), view(piece_end)},
                                            view(view_source),
                                            view(view_place),
                                            view(line_start),
                                            view(items)},
                                           longest,
                                           view(chosen)};
    check(given.lines, true);
    for (const std::int64_t item : given.lines.items)
        require(item >= 0 || piece_begin.data()[-1 - item] >= 0, "a literal is missing");
    require(least >= 1 && known >= 0, "least must be at least 1, and known at least 0");
    checked_count("longest", longest, 1, most_claimed);
    std::int64_t candidates = 0;
    for (std::size_t s = 0; s + 1 < sentences.size(); ++s) {
        const std::int64_t n = sentences.data()[s + 1] - sentences.data()[s];
        checked_product({n, std::min(longest, n)}, "a sentence has too many segments");
        candidates = checked_sum({candidates, templates::n_candidates(n, longest)}, "there are too many segments");
    }
    require(candidates <= most_claimed, "there are too many segments");
    require(chosen.size() == 0 || static_cast<std::int64_t>(chosen.size()) == candidates,
            "chosen must have an entry for each candidate, or none");
    const int workers = threads;
    templates::Rows rows;
    std::vector<std::uint8_t> keep;
    unlocked([&] {
        table.locked(grow, [&] {
            templates::extract<templates::SegmentExtractor>(given, given.lines, table, grow, false, workers, rows);
            if (least > 1) keep = rows.cut(least, known, table.size());
        });
    });
    return found(rows, std::move(keep));
}

}  // namespace

void bind_token_attributes(nb::module_& module) {
    module.def("attributes_of_tokens", &run, "table"_a, "sentences"_array, "cells"_array, "column_size"_array,
               "reach"_a, "source_column"_array, "source_first"_array, "text"_array, "piece_begin"_array,
               "piece_end"_array, "view_source"_array, "view_row"_array, "line_start"_array, "items"_array, "edges"_a,
               "grow"_a, "least"_a, "known"_a, "threads"_a,
               "Attributes of tokens by a template, see token_attributes.hpp: starts of rows, columns (sorted), values "
               "(None if all are 1). Those of fewer than `least` rows are dropped, except the first `known`, and the "
               "others renumbered: also which are kept (None if all are).");
    module.def("attributes_of_segments", &segments, "table"_a, "sentences"_array, "cells"_array, "column_size"_array,
               "source_column"_array, "source_first"_array, "text"_array, "piece_begin"_array, "piece_end"_array,
               "view_source"_array, "view_place"_array, "line_start"_array, "items"_array, "longest"_a, "chosen"_array,
               "grow"_a, "least"_a, "known"_a, "threads"_a,
               "Attributes of segments by a template, see segment_attributes.hpp; results as of attributes_of_tokens.");
}

}  // namespace maxmargin
