// Byte strings numbered in the order in which they first appear.
//
// Open addressing with linear probing over slots of 8 bytes (the hash, the place of the string), at most 5/8 of them
// taken. A string stands in one arena behind its number and length, so that a look-up costs two cache misses: one for
// the slot, one for the string. Batches hide both: all strings of a window are hashed and their slots prefetched before
// the first is compared. The hash only says where to look: all bytes are compared, so numbers are exact. It is keyed
// (base/hashing.hpp); 32 bits are kept of it, which give the slot and sort out nearly all other strings nearby.
//
// Cost: O(bytes) per string; a table of n strings of b bytes in all has at most 15 n + b bytes and 13 to 26 n of slots.
// It has no more than that while it grows: wider slots take the place of the old ones and are filled from the arena.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <stdexcept>

#include "maxmargin/base/growing.hpp"
#include "maxmargin/base/hashing.hpp"

namespace maxmargin::strings {

using Byte = std::uint8_t;

inline constexpr std::int32_t unknown = -1;

class StringTable {
   public:
    static constexpr std::size_t window = 32;  // strings in flight: as many misses as a core can have open

    // Held exclusively to grow the table and shared to read it; bindings take it without holding the GIL.
    mutable std::shared_mutex mutex;

    // Calls body() with the table locked, exclusively where it may grow.
    template <class Body>
    void locked(bool grow, Body&& body) {
        if (grow) {
            const std::unique_lock lock(mutex);
            body();
        } else {
            const std::shared_lock lock(mutex);
            body();
        }
    }

    StringTable() {
        arena_.resize(unit);  // place 0 is that of no string
        widen(64);
    }
    StringTable(const StringTable&) = delete;
    StringTable& operator=(const StringTable&) = delete;

    std::int64_t size() const { return static_cast<std::int64_t>(place_.size()); }

    std::span<const Byte> text(std::int64_t number) const {
        const Byte* record = at(place_[static_cast<std::size_t>(number)]);
        return {record + header, static_cast<std::size_t>(hashing::read_4(record + sizeof(std::int32_t)))};
    }

    // Bytes of all strings together.
    std::int64_t bytes() const { return bytes_; }

    std::uint32_t key_of(const Byte* p, std::size_t length) const {
        return static_cast<std::uint32_t>(hashing::of_bytes(secret_, p, length));
    }
    std::int32_t find(const Byte* p, std::size_t length) const { return find(key_of(p, length), p, length); }
    std::int32_t add(const Byte* p, std::size_t length) { return add(key_of(p, length), p, length); }

    // The first cache line that a look-up needs, and then the second.
    void ask_slot(std::uint32_t key) const { __builtin_prefetch(&slots_[key & mask()]); }
    void ask_string(std::uint32_t key) const {
        for (std::size_t i = key & mask();; i = (i + 1) & mask()) {
            const Slot& slot = slots_[i];
            if (!slot.place) return;
            if (slot.key == key) {
                __builtin_prefetch(at(slot.place));
                return;
            }
        }
    }

    std::int32_t find(std::uint32_t key, const Byte* p, std::size_t length) const {
        for (std::size_t i = key & mask();; i = (i + 1) & mask()) {
            const Slot& slot = slots_[i];
            if (!slot.place) return unknown;
            if (slot.key == key && equal(slot.place, p, length)) return number_at(slot.place);
        }
    }

    std::int32_t add(std::uint32_t key, const Byte* p, std::size_t length) {
        std::size_t i = key & mask();
        for (;; i = (i + 1) & mask()) {
            const Slot& slot = slots_[i];
            if (!slot.place) break;
            if (slot.key == key && equal(slot.place, p, length)) return number_at(slot.place);
        }
        if (place_.size() >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
            throw std::length_error("more than 2^31 - 1 different strings");
        if (length > std::numeric_limits<std::uint32_t>::max())
            throw std::length_error("a string of 2^32 bytes or more");
        const std::size_t begin = arena_.size(), place = begin / unit;
        if (place > std::numeric_limits<std::uint32_t>::max()) throw std::length_error("2^34 bytes of strings or more");
        const auto number = static_cast<std::int32_t>(place_.size());
        const auto size = static_cast<std::uint32_t>(length);
        // Reserve first, so that the rest cannot fail half-way.
        place_.room_for(1);
        arena_.room_for(record_size(length));
        if (8 * (place_.size() + 1) > 5 * slots_.size()) {
            widen(2 * slots_.size());
            i = free_slot(key);
        }
        arena_.resize(begin + record_size(length));
        Byte* record = arena_.data() + begin;
        std::memcpy(record, &number, sizeof number);
        std::memcpy(record + sizeof number, &size, sizeof size);
        if (length) std::memcpy(record + header, p, length);
        place_.push_back(static_cast<std::uint32_t>(place));
        slots_[i] = {key, static_cast<std::uint32_t>(place)};
        bytes_ += static_cast<std::int64_t>(length);
        return number;
    }

    // Numbers of the strings buffer[begin[i]:end[i]]; those that are not there are added, or get `unknown`.
    void number(const Byte* buffer, std::span<const std::int64_t> begin, std::span<const std::int64_t> end, bool grow,
                std::int32_t* out) {
        std::uint32_t keys[window];
        for (std::size_t first = 0; first < begin.size(); first += window) {
            const std::size_t count = std::min(window, begin.size() - first);
            for (std::size_t i = 0; i < count; ++i) {
                const std::int64_t from = begin[first + i];
                keys[i] = key_of(buffer + from, static_cast<std::size_t>(end[first + i] - from));
                ask_slot(keys[i]);
            }
            for (std::size_t i = 0; i < count; ++i) ask_string(keys[i]);
            for (std::size_t i = 0; i < count; ++i) {
                const Byte* p = buffer + begin[first + i];
                const auto length = static_cast<std::size_t>(end[first + i] - begin[first + i]);
                out[first + i] = grow ? add(keys[i], p, length) : find(keys[i], p, length);
            }
        }
    }

    // Adds all strings of another table; numbers[i] is the number of its string i here.
    void add_all(const StringTable& other, std::int32_t* numbers) {
        std::uint32_t keys[window];
        std::span<const Byte> texts[window];
        for (std::int64_t first = 0; first < other.size(); first += window) {
            const auto count = std::min(window, static_cast<std::size_t>(other.size() - first));
            for (std::size_t i = 0; i < count; ++i) {
                texts[i] = other.text(first + static_cast<std::int64_t>(i));
                keys[i] = key_of(texts[i].data(), texts[i].size());
                ask_slot(keys[i]);
            }
            for (std::size_t i = 0; i < count; ++i) ask_string(keys[i]);
            for (std::size_t i = 0; i < count; ++i)
                numbers[static_cast<std::size_t>(first) + i] = add(keys[i], texts[i].data(), texts[i].size());
        }
    }

    // Forgets all strings but the first `count`.
    void truncate(std::int64_t count) {
        if (count >= size()) return;
        for (std::int64_t i = count; i < size(); ++i) bytes_ -= static_cast<std::int64_t>(text(i).size());
        arena_.resize(unit * place_[static_cast<std::size_t>(count)]);
        place_.resize(static_cast<std::size_t>(count));
        widen(slots_.size());  // removed strings may have displaced others
    }

    hashing::Probes probes() const {
        hashing::Probes all;
        for (std::size_t i = 0; i < slots_.size(); ++i)
            if (slots_[i].place) all.add((i - slots_[i].key) & mask());
        return all;
    }

    void reserve(std::int64_t strings, std::int64_t bytes) {
        const auto count = static_cast<std::size_t>(strings);
        place_.reserve(count);
        arena_.reserve(unit + static_cast<std::size_t>(bytes) + (header + unit - 1) * count);
        std::size_t wanted = slots_.size();
        while (8 * count > 5 * wanted) wanted *= 2;
        if (wanted > slots_.size()) widen(wanted);
    }

   private:
    static constexpr std::size_t unit = 4;  // places count in these, which makes 32 bits enough for 2^34 bytes
    static constexpr std::size_t header = sizeof(std::int32_t) + sizeof(std::uint32_t);  // number, length

    struct Slot {
        std::uint32_t key = 0, place = 0;
    };

    static std::size_t record_size(std::size_t length) { return (header + length + unit - 1) / unit * unit; }

    std::size_t mask() const { return slots_.size() - 1; }
    const Byte* at(std::uint32_t place) const { return arena_.data() + unit * place; }
    std::int32_t number_at(std::uint32_t place) const {
        std::int32_t number;
        std::memcpy(&number, at(place), sizeof number);
        return number;
    }

    bool equal(std::uint32_t place, const Byte* p, std::size_t length) const {
        const Byte* record = at(place);
        return hashing::read_4(record + sizeof(std::int32_t)) == length &&
               (length == 0 || std::memcmp(record + header, p, length) == 0);
    }

    std::size_t free_slot(std::uint32_t key) const {
        std::size_t i = key & mask();
        while (slots_[i].place) i = (i + 1) & mask();
        return i;
    }

    void widen(std::size_t count) {
        slots_.reserve(count);
        slots_.resize(count);
        std::fill_n(slots_.data(), count, Slot{});
        for (std::size_t i = 0; i < place_.size(); ++i) {
            const auto string = text(static_cast<std::int64_t>(i));
            const std::uint32_t key = key_of(string.data(), string.size());
            slots_[free_slot(key)] = {key, place_[i]};
        }
    }

    hashing::Secret secret_ = hashing::secret();
    Growing<Slot> slots_;           // a power of two of them
    Growing<Byte> arena_;           // number, length and bytes of each string
    Growing<std::uint32_t> place_;  // where each begins there, in units
    std::int64_t bytes_ = 0;
};

}  // namespace maxmargin::strings
