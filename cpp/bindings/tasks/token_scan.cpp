#include "maxmargin/text/token_scan.hpp"

#include <utility>

#include "arrays.hpp"

namespace maxmargin {

namespace {

using token_scan::Attributes;
using token_scan::Cells;
using token_scan::Layout;
using token_scan::Places;
using token_scan::Problem;
using token_scan::Sizes;

Layout layout_of(int layout) {
    require(layout >= 0 && layout <= static_cast<int>(Layout::words), "no such layout");
    return static_cast<Layout>(layout);
}

nb::tuple as_tuple(const Problem& problem) {
    return nb::make_tuple(static_cast<int>(problem.fault), problem.line, problem.found, problem.begin, problem.end);
}

nb::tuple count(const In<std::uint8_t>& text, int layout) {
    const Layout chosen = layout_of(layout);
    const Sizes sizes = unlocked([&] { return token_scan::count(view(text), chosen); });
    return nb::make_tuple(sizes.tokens, sizes.sentences);
}

nb::tuple scan(const In<std::uint8_t>& text, int layout, Out<std::int64_t> begin, Out<std::int64_t> end,
               Out<std::int64_t> lines, Out<std::int64_t> sentences) {
    const Layout chosen = layout_of(layout);
    require(begin.ndim() == 2 && end.ndim() == 2 && begin.shape(0) == end.shape(0) && begin.shape(1) == end.shape(1),
            "begin and end must have a row per token and the same columns");
    require(lines.size() == begin.shape(0), "lines must have one entry per token");
    require(sentences.size() >= 1, "sentences must have one more entry than there are sentences");
    const std::int64_t width = static_cast<std::int64_t>(begin.shape(1));
    require(width >= 1, "there must be a column");
    if (token_scan::sentence_a_line(chosen))
        require(width == (chosen == Layout::words ? 1 : 2), "words have one cell, tagged words two");
    const Cells cells{view(begin), view(end), view(lines), view(sentences), width};
    return as_tuple(unlocked([&] { return token_scan::scan(view(text), chosen, cells); }));
}

nb::tuple count_attributes(const In<std::uint8_t>& text) {
    const Sizes sizes = unlocked([&] { return token_scan::count_attributes(view(text)); });
    return nb::make_tuple(sizes.tokens, sizes.sentences, sizes.attributes);
}

nb::tuple scan_attributes(Out<std::uint8_t> text, Out<std::int64_t> begin, Out<std::int64_t> end, Out<double> weight,
                          Out<std::int64_t> starts, Out<std::int64_t> label_begin, Out<std::int64_t> label_end,
                          Out<std::int64_t> lines, Out<std::int64_t> sentences) {
    require(begin.size() == end.size() && begin.size() == weight.size(),
            "begin, end and weight must have one entry per attribute");
    require(label_begin.size() == lines.size() && label_end.size() == lines.size() && starts.size() == lines.size() + 1,
            "labels and lines must have one entry per token, starts one more");
    require(sentences.size() >= 1, "sentences must have one more entry than there are sentences");
    const Attributes out{view(begin),       view(end),       view(weight), view(starts),
                         view(label_begin), view(label_end), view(lines),  view(sentences)};
    return as_tuple(unlocked([&] { return token_scan::scan_attributes(view(text), out); }));
}

std::int64_t splice(const In<std::uint8_t>& text, const In<std::int64_t>& begin, const In<std::int64_t>& end,
                    const In<std::int32_t>& code, const In<std::int64_t>& names, const In<std::uint8_t>& letters,
                    const In<double>& number, const In<std::uint8_t>& before, int digits, Out<std::uint8_t> out) {
    const Places places{view(begin), view(end), view(code), view(names), view(letters), view(number), view(before)};
    const auto bytes = view(text);
    const std::size_t n = places.begin.size();
    require(places.end.size() == n && places.code.size() == n, "begin, end and code must have one entry per place");
    require(places.number.empty() || places.number.size() == n, "number must have one entry per place, or none");
    require(rises_to(places.names, places.letters.size()), "names must rise from 0 to the number of letters");
    require(digits >= 1 && digits <= 9, "digits must lie in 1..9");
    const auto known = static_cast<std::int64_t>(places.names.size()) - 1;
    std::int64_t last = 0;
    std::int64_t room = static_cast<std::int64_t>(bytes.size());
    for (std::size_t i = 0; i < n; ++i) {
        require(places.begin[i] >= last && places.end[i] >= places.begin[i], "places must be sorted and apart");
        last = places.end[i];
        require(places.code[i] >= -1 && places.code[i] < known, "code must be that of a name, or -1");
        room -= places.end[i] - places.begin[i];
        if (places.code[i] >= 0) room += places.names[places.code[i] + 1] - places.names[places.code[i]];
    }
    require(last <= static_cast<std::int64_t>(bytes.size()), "places must lie in the text");
    room += static_cast<std::int64_t>(places.number.size()) *
            (token_scan::kNumber + static_cast<std::int64_t>(places.before.size()));
    require(static_cast<std::int64_t>(out.size()) >= room, "out is too small");
    const NoGil unlocked;
    return token_scan::splice(bytes, places, digits, out.data());
}

}  // namespace

void bind_token_scan(nb::module_& module) {
    module.def("token_count", &count, "text"_array, "layout"_a, "(tokens, sentences) of a text.");
    module.def("token_scan", apart(&scan), "text"_array, "layout"_a, "begin"_array, "end"_array, "lines"_array,
               "sentences"_array,
               "Write where the cells of all tokens are. Returns (fault, line, cells found, begin, end).");
    module.def("attribute_count", &count_attributes, "text"_array,
               "(tokens, sentences, most attributes) of a CRFsuite file.");
    module.def("attribute_scan", apart(&scan_attributes), "text"_array, "begin"_array, "end"_array, "weight"_array,
               "starts"_array, "label_begin"_array, "label_end"_array, "lines"_array, "sentences"_array,
               "Write where labels and attributes are, whose escapes are resolved in the text itself.");
    module.def("text_splice", apart(&splice), "text"_array, "begin"_array, "end"_array, "code"_array, "names"_array,
               "letters"_array, "number"_array, "before"_array, "digits"_a, "out"_array,
               "Write the text with names, and numbers behind them, in place of some pieces. Returns its length.");
}

}  // namespace maxmargin
