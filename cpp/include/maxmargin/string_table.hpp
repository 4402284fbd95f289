// Byte strings numbered in the order in which they first appear.
//
// Open addressing with linear probing over slots of 16 bytes (32 bits of the hash, the number, the place of the string),
// at most 5/8 of them taken. A string stands in one arena behind its length, so that a look-up costs two cache misses:
// one for the slot, one for the string. Batches hide both: all strings of a window are hashed and their slots asked for
// before the first is compared. The hash only says where to look: all bytes are compared, so numbers are exact.
//
// Cost: O(bytes) per string; a table of n strings of b bytes in all has 12 n + b bytes and 26 to 52 n of slots.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <shared_mutex>
#include <span>
#include <stdexcept>
#include <vector>

namespace maxmargin::strings {

using Byte = std::uint8_t;

inline constexpr std::int32_t unknown = -1;

inline std::uint64_t read_8(const Byte* p) {
    std::uint64_t value;
    std::memcpy(&value, p, sizeof value);
    return value;
}
inline std::uint64_t read_4(const Byte* p) {
    std::uint32_t value;
    std::memcpy(&value, p, sizeof value);
    return value;
}

// Both halves of the product of 128 bits: each bit of either factor reaches all bits of the result.
inline std::uint64_t folded(std::uint64_t a, std::uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// 32 bits are kept of it, which give the slot and sort out nearly all other strings in neighbouring slots.
inline std::uint32_t hash(const Byte* p, std::size_t size) {
    constexpr std::uint64_t one = 0x9e3779b97f4a7c15, two = 0xd1b54a32d192ed03, three = 0xabc98388fb8fac03;
    std::uint64_t state = three ^ (size * one), a = 0, b = 0;
    std::size_t left = size;
    for (; left > 16; left -= 16, p += 16) state = folded(read_8(p) ^ one ^ state, read_8(p + 8) ^ two);
    if (left >= 8) {
        a = read_8(p);
        b = read_8(p + left - 8);
    } else if (left >= 4) {
        a = read_4(p);
        b = read_4(p + left - 4);
    } else if (left > 0) {
        a = (std::uint64_t{p[0]} << 16) | (std::uint64_t{p[left / 2]} << 8) | p[left - 1];
    }
    const std::uint64_t mixed = folded(folded(a ^ one ^ state, b ^ two), three);
    return static_cast<std::uint32_t>(mixed ^ (mixed >> 32));
}

class StringTable {
   public:
    static constexpr std::size_t window = 32;  // strings under way at once: as many misses as a core can have open

    // Whoever grows a table holds this alone, whoever reads it shares it: bindings lock it without the interpreter's lock.
    mutable std::shared_mutex mutex;

    StringTable() : slots_(64) {}
    StringTable(const StringTable&) = delete;
    StringTable& operator=(const StringTable&) = delete;

    std::int64_t size() const { return static_cast<std::int64_t>(place_.size()); }

    std::span<const Byte> text(std::int64_t number) const {
        const Byte* record = arena_.data() + place_[static_cast<std::size_t>(number)];
        return {record + header, static_cast<std::size_t>(read_4(record))};
    }

    // Bytes of all strings together.
    std::int64_t bytes() const { return static_cast<std::int64_t>(arena_.size() - header * place_.size()); }

    std::int32_t find(const Byte* p, std::size_t length) const { return find(hash(p, length), p, length); }
    std::int32_t add(const Byte* p, std::size_t length) { return add(hash(p, length), p, length); }

    // The first cache line that a look-up needs, and then the second.
    void ask_slot(std::uint32_t key) const { __builtin_prefetch(&slots_[key & mask()]); }
    void ask_string(std::uint32_t key) const {
        for (std::size_t at = key & mask();; at = (at + 1) & mask()) {
            const Slot& slot = slots_[at];
            if (slot.number == unknown) return;
            if (slot.key == key) {
                __builtin_prefetch(arena_.data() + slot.place);
                return;
            }
        }
    }

    std::int32_t find(std::uint32_t key, const Byte* p, std::size_t length) const {
        for (std::size_t at = key & mask();; at = (at + 1) & mask()) {
            const Slot& slot = slots_[at];
            if (slot.number == unknown || (slot.key == key && equal(slot.place, p, length))) return slot.number;
        }
    }

    std::int32_t add(std::uint32_t key, const Byte* p, std::size_t length) {
        std::size_t at = key & mask();
        for (;; at = (at + 1) & mask()) {
            const Slot& slot = slots_[at];
            if (slot.number == unknown) break;
            if (slot.key == key && equal(slot.place, p, length)) return slot.number;
        }
        if (place_.size() >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
            throw std::length_error("more than 2^31 - 1 different strings");
        if (length > std::numeric_limits<std::uint32_t>::max()) throw std::length_error("a string of 2^32 bytes or more");
        const auto number = static_cast<std::int32_t>(place_.size());
        const std::size_t place = arena_.size();
        const auto prefix = static_cast<std::uint32_t>(length);
        // Room first: what follows cannot fail half-way.
        place_.reserve(place_.size() == place_.capacity() ? 2 * place_.size() + 16 : place_.capacity());
        if (arena_.capacity() < place + header + length)
            arena_.reserve(std::max(2 * arena_.capacity(), place + header + length + 1024));
        if (8 * (place_.size() + 1) > 5 * slots_.size()) {
            widen(2 * slots_.size());
            at = key & mask();
            while (slots_[at].number != unknown) at = (at + 1) & mask();
        }
        arena_.resize(place + header + length);
        std::memcpy(arena_.data() + place, &prefix, header);
        if (length) std::memcpy(arena_.data() + place + header, p, length);
        place_.push_back(place);
        slots_[at] = {key, number, place};
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
                keys[i] = hash(buffer + from, static_cast<std::size_t>(end[first + i] - from));
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

    // Forgets all strings but the first `count`.
    void truncate(std::int64_t count) {
        if (count >= size()) return;
        arena_.resize(place_[static_cast<std::size_t>(count)]);
        place_.resize(static_cast<std::size_t>(count));
        for (Slot& slot : slots_)
            if (slot.number >= count) slot.number = unknown;
        widen(slots_.size());  // others may have been pushed on by those that are gone
    }

    void reserve(std::int64_t strings, std::int64_t bytes) {
        place_.reserve(static_cast<std::size_t>(strings));
        arena_.reserve(static_cast<std::size_t>(bytes) + header * static_cast<std::size_t>(strings));
        std::size_t wanted = slots_.size();
        while (8 * static_cast<std::size_t>(strings) > 5 * wanted) wanted *= 2;
        if (wanted > slots_.size()) widen(wanted);
    }

   private:
    static constexpr std::size_t header = sizeof(std::uint32_t);

    struct Slot {
        std::uint32_t key = 0;
        std::int32_t number = unknown;
        std::uint64_t place = 0;
    };

    std::size_t mask() const { return slots_.size() - 1; }

    bool equal(std::uint64_t place, const Byte* p, std::size_t length) const {
        const Byte* record = arena_.data() + place;
        return read_4(record) == length && (length == 0 || std::memcmp(record + header, p, length) == 0);
    }

    void widen(std::size_t count) {
        std::vector<Slot> wider(count);
        for (const Slot& slot : slots_) {
            if (slot.number == unknown) continue;
            std::size_t at = slot.key & (count - 1);
            while (wider[at].number != unknown) at = (at + 1) & (count - 1);
            wider[at] = slot;
        }
        slots_.swap(wider);
    }

    std::vector<Slot> slots_;           // a power of two of them
    std::vector<Byte> arena_;           // length and bytes of each string
    std::vector<std::uint64_t> place_;  // where each begins there
};

}  // namespace maxmargin::strings
