#pragma once

#include <cstdint>

namespace maxmargin {

// The PointStatus codes of the Python side.
enum class Status : std::int8_t { ok = 0, inexact = 1, nonfinite = 2, absent = 3 };

}  // namespace maxmargin
