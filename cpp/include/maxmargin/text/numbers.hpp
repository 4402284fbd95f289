// Numbers as text, in the same form whatever the process's locale.
//
// C++17's conversions of floating-point numbers, where the standard library has them. Apple's lacks them, or has them
// only on newer systems than the one that is compiled for, and then does not define the macro: streams take their place
// there, a few times slower.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

#if defined(__cpp_lib_to_chars) && !defined(MAXMARGIN_PORTABLE)
#define MM_HAS_NUMBERS 1
#else
#define MM_HAS_NUMBERS 0
#endif

namespace maxmargin::strings {

// Whether the whole of a piece of text is a finite decimal number, without a plus sign or blanks before it.
inline bool parse_number(const char* first, const char* last, double& value) {
#if MM_HAS_NUMBERS
    const auto [stop, error] = std::from_chars(first, last, value);
    return error == std::errc{} && stop == last && std::isfinite(value);
#else
    const std::string_view text(first, static_cast<std::size_t>(last - first));
    if (text.empty() || text.front() == '+' || text.find_first_not_of("0123456789.eE+-") != text.npos) return false;
    std::istringstream stream{std::string(text)};
    stream.imbue(std::locale::classic());
    stream >> value;
    // Of a number too small for its type some libraries make zero, which is not what was written.
    const auto digits = text.substr(0, text.find_first_of("eE"));
    const bool zero = digits.find_first_of("123456789") == digits.npos;
    return !stream.fail() && stream.peek() == std::istringstream::traits_type::eof() && std::isfinite(value) &&
           (value != 0.0 || zero);
#endif
}

// Writes so many significant digits, with an exponent where that is shorter, and returns where they end; last - first
// must be at least digits + 8.
inline char* write_number(char* first, char* last, double value, int digits) {
#if MM_HAS_NUMBERS
    return std::to_chars(first, last, value, std::chars_format::general, digits).ptr;
#else
    std::ostringstream stream;
    stream.imbue(std::locale::classic());
    stream.precision(digits);
    stream << value;
    const std::string text = stream.str();
    return std::copy_n(text.data(), std::min(text.size(), static_cast<std::size_t>(last - first)), first);
#endif
}

}  // namespace maxmargin::strings
