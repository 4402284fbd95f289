// Python strings to numbers: their words, numbered by a table, and their characters.
#include <mutex>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "maxmargin/base/growing.hpp"
#include "maxmargin/text/string_table.hpp"
#include "maxmargin/text/words.hpp"
#include "owned.hpp"
#include "python.hpp"

namespace maxmargin {

namespace {

using strings::Byte;
using strings::StringTable;

// Strings of a list or tuple; no Python code runs while they are read.
class Texts {
   public:
    explicit Texts(const nb::object& texts)
        : all_(nb::steal(PySequence_Fast(texts.ptr(), "give a list of strings"))),
          list_(all_.is_valid() && PyList_Check(all_.ptr())) {
        if (!all_.is_valid()) throw nb::python_error();
    }

    std::size_t size() const {
        return static_cast<std::size_t>(list_ ? python::list_size(all_.ptr()) : python::tuple_size(all_.ptr()));
    }

    // Calls body(code points, length) for each string.
    template <class Body>
    void each(Body&& body) const {
        std::vector<Py_UCS4> room;
        for (std::size_t i = 0; i < size(); ++i) one(i, room, body);
    }

   private:
    template <class Body>
    void one(std::size_t i, std::vector<Py_UCS4>& room, Body&& body) const {
        const auto at = static_cast<Py_ssize_t>(i);
        PyObject* text = list_ ? python::list_item(all_.ptr(), at) : python::tuple_item(all_.ptr(), at);
        if (!PyUnicode_Check(text)) {
            const std::string got = "text " + std::to_string(i) + " is of type " + python::type_name(text);
            throw nb::value_error((got + "; give strings").c_str());
        }
        python::code_points(text, room, body);
    }

    nb::object all_;
    bool list_;
};

bool is_punctuation(std::uint32_t c) {
    return (c > 0x20 && c < 0x30) || (c > 0x39 && c < 0x41) || (c > 0x5a && c < 0x61) || (c > 0x7a && c < 0x7f);
}

nb::tuple words(StringTable& table, const nb::object& given, bool punctuation, bool grow) {
    const Texts texts(given);
    Growing<std::int32_t> numbers;
    std::vector<std::int64_t> offsets{0};
    offsets.reserve(texts.size() + 1);
    std::vector<Byte> bytes;
    const std::unique_lock lock(table.mutex);
    texts.each([&](const auto* text, std::size_t size) {
        const auto add = [&](std::size_t begin, std::size_t end) {
            bytes.clear();
            for (std::size_t i = begin; i < end; ++i) strings::append_utf8(bytes, text[i]);
            numbers.push_back(grow ? table.add(bytes.data(), bytes.size()) : table.find(bytes.data(), bytes.size()));
        };
        strings::each_word(text, size, [&](std::size_t begin, std::size_t end) {
            if (!punctuation || end - begin == 1) {
                add(begin, end);
            } else if (is_punctuation(text[end - 1])) {
                add(begin, end - 1);
                add(end - 1, end);
            } else if (is_punctuation(text[begin])) {
                add(begin, begin + 1);
                add(begin + 1, end);
            } else {
                add(begin, end);
            }
        });
        offsets.push_back(static_cast<std::int64_t>(numbers.size()));
    });
    return nb::make_tuple(owned(std::move(numbers)), owned(std::move(offsets)));
}

nb::tuple characters(const nb::object& given, bool blanks) {
    const Texts texts(given);
    Growing<std::int32_t> numbers;
    std::vector<std::int64_t> offsets{0};
    offsets.reserve(texts.size() + 1);
    texts.each([&](const auto* text, std::size_t size) {
        const std::size_t first = numbers.size();
        numbers.room_for(size);
        strings::each_word(text, size, [&](std::size_t begin, std::size_t end) {
            if (blanks && numbers.size() > first) numbers.push_back(' ');
            for (std::size_t i = begin; i < end; ++i) numbers.push_back(static_cast<std::int32_t>(text[i]));
        });
        offsets.push_back(static_cast<std::int64_t>(numbers.size()));
    });
    return nb::make_tuple(owned(std::move(numbers)), owned(std::move(offsets)));
}

}  // namespace

void bind_texts(nb::module_& module) {
    module.def("words_of_texts", &words, "table"_a, "texts"_a, "punctuation"_a, "grow"_a = true,
               "Numbers of the words of strings, and where those of each begin; new words are added, or get -1. With "
               "punctuation one mark of ASCII at the end of a word, else at its beginning, is a word of its own.");
    module.def("characters_of_texts", &characters, "texts"_a, "blanks"_a,
               "Code points of the words of strings, with or without a blank between words, and where each begins.");
}

}  // namespace maxmargin
