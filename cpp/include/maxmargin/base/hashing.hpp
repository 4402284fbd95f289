// Keyed hashes. Where strings and numbers that come from files stand in a table depends on a secret of the process, so
// that nobody can write a file whose entries all fall on the same slot and make its reading quadratic. The secret
// decides only how fast entries are found: whatever is numbered is numbered in the order of its first appearance.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <random>

namespace maxmargin::hashing {

struct Secret {
    std::uint64_t first = 0, second = 0, third = 0;
};

// Spreads the bits of a seed (Steele, Lea, Flood 2014).
inline std::uint64_t spread(std::uint64_t& state) {
    std::uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

inline Secret secret_of(std::uint64_t seed) {
    const std::uint64_t first = spread(seed), second = spread(seed) | 1;  // factors are odd: products lose nothing
    return {first, second, spread(seed) | 1};
}

inline Secret random_secret() {
    try {
        std::random_device device;
        const auto drawn = [&] { return (std::uint64_t{device()} << 32) | device(); };
        const std::uint64_t first = drawn(), second = drawn() | 1;
        return {first, second, drawn() | 1};
    } catch (const std::exception&) {  // a system without a source of random numbers
        const auto now = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
        const int local = 0;
        return secret_of(now ^ reinterpret_cast<std::uintptr_t>(&local));
    }
}

// The secret of tables that are made from now on; each keeps its own.
inline Secret& secret() {
    static Secret one = random_secret();
    return one;
}

inline std::uint64_t read_8(const std::uint8_t* p) {
    std::uint64_t value;
    std::memcpy(&value, p, sizeof value);
    return value;
}
inline std::uint64_t read_4(const std::uint8_t* p) {
    std::uint32_t value;
    std::memcpy(&value, p, sizeof value);
    return value;
}

// Both halves of the product of 128 bits: each bit of either factor reaches all bits of the result.
inline std::uint64_t folded(std::uint64_t a, std::uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// Of a string: folded products of 16 bytes at a time, each with words of the secret (wyhash, foldhash). Whoever writes
// a file cannot ask the process for hashes, and without the secret collisions cannot be computed. SipHash-1-3, which
// also holds where hashes can be asked for, makes a look-up take 10 ns more, half as much again.
inline std::uint64_t of_bytes(const Secret& secret, const std::uint8_t* p, std::size_t size) {
    std::uint64_t state = secret.third ^ (size * 0x9e3779b97f4a7c15), a = 0, b = 0;
    std::size_t left = size;
    for (; left > 16; left -= 16, p += 16)
        state = folded(read_8(p) ^ secret.first ^ state, read_8(p + 8) ^ secret.second);
    if (left >= 8) {
        a = read_8(p);
        b = read_8(p + left - 8);
    } else if (left >= 4) {
        a = read_4(p);
        b = read_4(p + left - 4);
    } else if (left > 0) {
        a = (std::uint64_t{p[0]} << 16) | (std::uint64_t{p[left / 2]} << 8) | p[left - 1];
    }
    return folded(folded(a ^ secret.first ^ state, b ^ secret.second), secret.third);
}

// Of a number: one product, as look-ups of numbers, which wait for each other, cannot hide more.
inline std::uint64_t of_number(const Secret& secret, std::uint64_t number) {
    return folded(number ^ secret.first, secret.second);
}

// For tables of the standard library.
struct OfNumber {
    Secret own = secret();
    std::size_t operator()(std::int64_t number) const { return of_number(own, static_cast<std::uint64_t>(number)); }
};

// How many slots are looked at to find every entry of a table: in all, and at most for one.
struct Probes {
    std::int64_t total = 0, longest = 0;

    void add(std::size_t distance) {
        const auto looked_at = static_cast<std::int64_t>(distance) + 1;
        total += looked_at;
        longest = longest < looked_at ? looked_at : longest;
    }
};

}  // namespace maxmargin::hashing
