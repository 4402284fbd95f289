// The array types that bindings take: C-contiguous NumPy arrays on the CPU, never converted or copied on the way in.
// The type alone does not prevent conversion, so every array argument is declared as "name"_array; otherwise an output
// of another type would be written into a copy that nobody sees.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace maxmargin {

namespace nb = nanobind;
using namespace nb::literals;

inline auto operator""_array(const char* name, std::size_t) { return nb::arg(name).noconvert(); }

template <class T>
using In = nb::ndarray<const T, nb::numpy, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::numpy, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const T> view(const In<T>& array) {
    return {array.data(), array.size()};
}
template <class T>
std::span<T> view(Out<T>& array) {
    return {array.data(), array.size()};
}

// Truth values as bytes: memory that was written as another type may hold more than 0 and 1.
inline std::span<const std::uint8_t> bytes_of(const In<bool>& array) {
    return {reinterpret_cast<const std::uint8_t*>(array.data()), array.size()};
}

// For objects that outlive a call and must not see later changes of an array.
template <class T>
std::vector<T> copied(const In<T>& array) {
    return {array.data(), array.data() + array.size()};
}

// Bindings check lengths with this before they hand spans to a kernel: a kernel never reads past what it was given.
inline void require(bool condition, const char* message) {
    if (!condition) throw nb::value_error(message);
}

// The same where the message must be put together.
inline void require(bool condition, const std::string& message) { require(condition, message.c_str()); }

// A number of threads, checked where it is used.
class Threads {
   public:
    Threads(int count = 1) : count_(count) {}
    operator int() const {
        require(count_ >= 1 && count_ <= most, "threads must be between 1 and 1024");
        return count_;
    }

   private:
    static constexpr int most = 1024;
    int count_;
};

// Sizes and counts are numbers that nothing proves: sums and products of them may wrap, memory for them may be more
// than any machine has, and a loop over them may never end. These are the checks of all of them.

// Numbers that a call may claim, beyond the arrays given to it, for working memory: 8 GB of doubles.
inline constexpr std::int64_t most_claimed = std::int64_t{1} << 30;

// Steps that one call may take: a kernel cannot be interrupted, so its work is bounded and callers ask again for more.
inline constexpr std::int64_t most_steps = 1'000'000;

// The product of factors that are not negative, refused beyond `most`.
inline std::int64_t checked_product(std::initializer_list<std::int64_t> factors, const char* message,
                                    std::int64_t most = most_claimed) {
    std::int64_t product = 1;
    for (const std::int64_t factor : factors)
        require(factor >= 0 && !__builtin_mul_overflow(product, factor, &product), message);
    require(product <= most, message);
    return product;
}

// The sum of numbers that are not negative, refused where it wraps.
inline std::int64_t checked_sum(std::initializer_list<std::int64_t> terms, const char* message) {
    std::int64_t sum = 0;
    for (const std::int64_t term : terms) require(term >= 0 && !__builtin_add_overflow(sum, term, &sum), message);
    return sum;
}

// A count within bounds; `name` is that of the argument.
inline std::int64_t checked_count(const char* name, std::int64_t count, std::int64_t least, std::int64_t most) {
    require(count >= least && count <= most, std::string(name) + " must be between " + std::to_string(least) + " and " +
                                                 std::to_string(most) + ", got " + std::to_string(count));
    return count;
}

// Checks of whole arrays have no branches, so that they become vectors.

// Whether offsets rise; equal neighbors are allowed. All that lies between the first and the last is then in order, and
// no difference of two of them wraps if neither is negative.
template <class T>
bool rises(std::span<const T> offsets) {
    bool good = !offsets.empty();
    for (std::size_t i = 1; i < offsets.size(); ++i) good &= offsets[i - 1] <= offsets[i];
    return good;
}

// Whether they rise from 0 to `end`.
template <class T>
bool rises_to(std::span<const T> offsets, std::size_t end) {
    return rises(offsets) && offsets.front() == 0 && static_cast<std::size_t>(offsets.back()) == end;
}

// Whether they rise from 0 to wherever they end.
template <class T>
bool rises_from_zero(std::span<const T> offsets) {
    return rises(offsets) && offsets.front() == 0;
}

// Whether all numbers lie in first .. end - 1.
template <class T>
bool within(std::span<const T> numbers, std::int64_t first, std::int64_t end) {
    bool good = true;
    for (const T x : numbers) good &= first <= x && x < end;
    return good;
}

// Whether no number is NaN or infinite.
inline bool all_finite(std::span<const double> numbers) {
    double sum = 0.0;
    for (const double x : numbers) sum += 0.0 * x;
    return sum == 0.0;
}

// Whether all numbers lie in 0 .. n - 1 and are different.
template <class T>
bool distinct(std::span<const T> numbers, std::int64_t n) {
    std::vector<bool> seen(static_cast<std::size_t>(n), false);
    for (const T x : numbers) {
        if (x < 0 || x >= n || seen[x]) return false;
        seen[x] = true;
    }
    return true;
}

// Outputs of a batch with so many parts and examples, for each of the ranks.
inline void require_outputs(std::size_t n_parts, std::int64_t n_examples, const Out<double>& z,
                            const Out<double>& value, const Out<std::int8_t>& status, std::int64_t ranks = 1) {
    constexpr const char* message = "outputs do not fit the batch";
    const auto parts = static_cast<std::int64_t>(n_parts), most = std::numeric_limits<std::int64_t>::max();
    const auto n = static_cast<std::size_t>(checked_product({ranks, n_examples}, message, most));
    require(z.size() == static_cast<std::size_t>(checked_product({ranks, parts}, message, most)) && value.size() == n &&
                status.size() == n,
            message);
}

using NoGil = nb::gil_scoped_release;

// The result of work(), done without the GIL.
template <class Work>
auto unlocked(Work&& work) {
    const NoGil release;
    return work();
}

// A bound function refuses arrays to write that share memory with another of its arrays: what is checked first, such as
// offsets, would change while it is used. Bind functions with several arrays, one of them written, as apart(&function).
namespace sharing {

struct Memory {
    const char *begin = nullptr, *end = nullptr;
    bool written = false;
};

template <class T>
Memory memory_of(const In<T>& array) {
    const auto* begin = reinterpret_cast<const char*>(array.data());
    return {begin, begin + array.nbytes(), false};
}
template <class T>
Memory memory_of(const Out<T>& array) {
    const auto* begin = reinterpret_cast<const char*>(array.data());
    return {begin, begin + array.nbytes(), true};
}
template <class T>
Memory memory_of(const T&) {
    return {};
}

template <class... Args>
void check(const Args&... args) {
    const Memory all[] = {memory_of(args)...};
    for (std::size_t i = 0; i < sizeof...(Args); ++i)
        for (std::size_t j = 0; j < i; ++j)
            require(!(all[i].written || all[j].written) || all[i].begin >= all[j].end || all[j].begin >= all[i].end,
                    "an array to write shares memory with another argument; give arrays of their own");
}

}  // namespace sharing

template <class Result, class... Args>
auto apart(Result (*function)(Args...)) {
    return [function](Args... args) -> Result {
        sharing::check(args...);
        return function(std::forward<Args>(args)...);
    };
}
template <class Class, class Result, class... Args>
auto apart(Result (Class::*method)(Args...) const) {
    return [method](const Class& self, Args... args) -> Result {
        sharing::check(args...);
        return (self.*method)(std::forward<Args>(args)...);
    };
}

}  // namespace maxmargin

template <>
struct nanobind::detail::type_caster<maxmargin::Threads> {
    NB_TYPE_CASTER(maxmargin::Threads, const_name("int"))

    bool from_python(handle source, std::uint8_t flags, cleanup_list* cleanup) noexcept {
        make_caster<int> caster;
        if (!caster.from_python(source, flags, cleanup)) return false;
        value = maxmargin::Threads(caster.value);
        return true;
    }
};
