// Numbers of strings by two tables: one that grows or does not, and for strings that one which does not grow lacks,
// perhaps another, whose numbers follow those of the first.
#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>

#include "maxmargin/text/string_table.hpp"

namespace maxmargin::strings {

// A batch asks for the slots of strings, then for the strings, then for their numbers, so that cache misses overlap.
class Numbering {
   public:
    Numbering(StringTable& table, bool grow) : table_(table), grow_(grow) {}

    // Where strings that the table lacks go; nullptr for nowhere.
    void set_fresh(StringTable* fresh) { fresh_ = fresh, base_ = table_.size(); }

    std::uint32_t ask_slot(const Byte* text, std::size_t length) const {
        const std::uint32_t key = table_.key_of(text, length);
        table_.ask_slot(key);
        return key;
    }
    void ask_string(std::uint32_t key) const { table_.ask_string(key); }

    std::int32_t of(std::uint32_t key, const Byte* text, std::size_t length) {
        const std::int32_t number = grow_ ? table_.add(key, text, length) : table_.find(key, text, length);
        if (number != unknown || !fresh_) return number;
        const std::int64_t found = base_ + fresh_->add(key, text, length);
        if (found > std::numeric_limits<std::int32_t>::max())
            throw std::length_error("more than 2^31 - 1 different strings");
        return static_cast<std::int32_t>(found);
    }

    // Whether a number is one of the second table, which does not last.
    bool is_fresh(std::int32_t number) const { return fresh_ && number >= base_; }

   private:
    StringTable& table_;
    const bool grow_;
    StringTable* fresh_ = nullptr;
    std::int64_t base_ = 0;
};

}  // namespace maxmargin::strings
