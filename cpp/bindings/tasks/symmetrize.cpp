#include "maxmargin/alignment/symmetrize.hpp"

#include <algorithm>
#include <vector>

#include "arrays.hpp"
#include "maxmargin/base/parallel.hpp"

namespace maxmargin {

namespace {

using symmetrize::Directed;
using symmetrize::Method;
using symmetrize::Symmetrizer;

void check(const Directed& directed) {
    require(directed.links.size() % 2 == 0, "links must be pairs");
    require(rises_to(directed.start, directed.links.size() / 2), "offsets must rise from 0 to the number of links");
    require(within(directed.links, 0, std::int64_t{1} << 31), "positions must lie in 0..2^31 - 1");
    for (std::int64_t i = 0; i < directed.size(); ++i) {
        const auto links = directed.of(i);
        require(links.size() < std::size_t{1} << 30, "a sentence has too many links");
        for (std::size_t k = 2; k < links.size(); k += 2)
            require(links[k] > links[k - 2] || (links[k] == links[k - 2] && links[k + 1] > links[k - 1]),
                    "links must be sorted and distinct");
    }
}

void run(int method, const In<std::int64_t>& forward_start, const In<std::int64_t>& forward_links,
         const In<std::int64_t>& backward_start, const In<std::int64_t>& backward_links, Out<std::int64_t> links,
         Out<std::int64_t> count, Threads threads) {
    const Directed forward{view(forward_start), view(forward_links)};
    const Directed backward{view(backward_start), view(backward_links)};
    require(method >= 0 && method <= static_cast<int>(Method::grow_diag_final_and), "no such method");
    check(forward);
    check(backward);
    require(forward.size() == backward.size(), "both directions must have the same sentences");
    require(links.size() == forward.links.size() + backward.links.size(), "links must have room for both directions");
    require(static_cast<std::int64_t>(count.size()) == forward.size(), "count must have one entry per sentence");
    std::int64_t *out = links.data(), *counts = count.data();
    const NoGil unlocked;
    std::int64_t most = 0;
    for (std::int64_t i = 0; i < forward.size(); ++i)
        most = std::max(most, static_cast<std::int64_t>(forward.of(i).size() + backward.of(i).size()) / 2);
    // One per thread, made before the threads start: memory may run out here, but not in them.
    std::vector<Symmetrizer> workers;
    const auto wanted = std::clamp<std::int64_t>(threads, 1, std::max<std::int64_t>(forward.size(), 1));
    for (std::int64_t t = 0; t < wanted; ++t) workers.emplace_back(static_cast<std::size_t>(most));
    parallel_each(forward.size(), 256, static_cast<int>(wanted), [&](int thread, std::int64_t i) {
        counts[i] = workers[thread].run(static_cast<Method>(method), forward.of(i), backward.of(i),
                                        out + 2 * (forward.start[i] + backward.start[i]));
    });
}

}  // namespace

void bind_symmetrize(nb::module_& module) {
    module.def("symmetrize_links", apart(&run), "method"_a, "forward_start"_array, "forward_links"_array,
               "backward_start"_array, "backward_links"_array, "links"_array, "count"_array, "threads"_a,
               "Write the links of each sentence at the sum of its two offsets, and their numbers to count.");
}

}  // namespace maxmargin
