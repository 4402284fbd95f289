// Words of Unicode text: the pieces between white space, as Python's str.split() has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "maxmargin/text/string_table.hpp"

namespace maxmargin::strings {

// Code points that Unicode has as white space, and the separators of ASCII.
inline bool is_space(std::uint32_t c) {
    if (c < 0x80) return c == 0x20 || (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x1f);
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

// Calls body(begin, end) for each word of a text; Unit holds a code point.
template <class Unit, class Body>
void each_word(const Unit* text, std::size_t size, Body&& body) {
    for (std::size_t at = 0;;) {
        while (at < size && is_space(text[at])) ++at;
        if (at == size) return;
        const std::size_t begin = at;
        while (at < size && !is_space(text[at])) ++at;
        body(begin, at);
    }
}

// Appends a code point as UTF-8; lone surrogates, which strings may have, get three bytes like their neighbors.
inline void append_utf8(std::vector<Byte>& out, std::uint32_t c) {
    const auto tail = [&](int shift) { out.push_back(static_cast<Byte>(0x80 | ((c >> shift) & 0x3f))); };
    if (c < 0x80) {
        out.push_back(static_cast<Byte>(c));
    } else if (c < 0x800) {
        out.push_back(static_cast<Byte>(0xc0 | (c >> 6)));
        tail(0);
    } else if (c < 0x10000) {
        out.push_back(static_cast<Byte>(0xe0 | (c >> 12)));
        tail(6);
        tail(0);
    } else {
        out.push_back(static_cast<Byte>(0xf0 | (c >> 18)));
        tail(12);
        tail(6);
        tail(0);
    }
}

}  // namespace maxmargin::strings
