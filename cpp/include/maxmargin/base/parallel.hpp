// Threads over independent items. Each item writes only its own outputs, so results have the same bits for any
// number of threads. Sums over items are taken in chunks whose bounds do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace maxmargin {

// Calls body(thread, begin, end) for consecutive blocks of `grain` items out of [0, n). `thread` is in [0, threads)
// and picks per-thread scratch. Blocks are handed out on demand, in increasing order, so any number of threads, also
// fewer than asked for, does all of them. If body throws, for example for lack of memory, no further blocks are
// started, and the first exception is rethrown when all threads have ended.
template <class Body>
void parallel_blocks(std::int64_t n, std::int64_t grain, int threads, Body&& body) {
    if (n <= 0) return;
    grain = std::max<std::int64_t>(grain, 1);
    const std::int64_t blocks = (n + grain - 1) / grain;
    const int workers = static_cast<int>(std::clamp<std::int64_t>(threads, 1, blocks));
    std::atomic<std::int64_t> next{0};
    std::atomic<bool> failed{false};
    std::exception_ptr failure;
    auto work = [&](int thread) {
        try {
            for (;;) {
                const std::int64_t block = next.fetch_add(1, std::memory_order_relaxed);
                if (block >= blocks) return;
                const std::int64_t begin = block * grain;
                body(thread, begin, std::min(begin + grain, n));
            }
        } catch (...) {
            next.store(blocks, std::memory_order_relaxed);
            if (!failed.exchange(true)) failure = std::current_exception();
        }
    };
    if (workers == 1) {
        work(0);
        if (failure) std::rethrow_exception(failure);
        return;
    }
    std::vector<std::thread> pool;
    pool.reserve(workers - 1);
    try {
        for (int t = 1; t < workers; ++t) pool.emplace_back(work, t);
    } catch (const std::exception&) {
        // The system has no more threads or no memory for them: those already started do the work.
    }
    work(0);
    for (auto& thread : pool) thread.join();
    if (failure) std::rethrow_exception(failure);
}

// Calls body(thread, i) for every i of [0, n), in blocks of `grain`.
template <class Body>
void parallel_each(std::int64_t n, std::int64_t grain, int threads, Body&& body) {
    parallel_blocks(n, grain, threads, [&](int thread, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) body(thread, i);
    });
}

}  // namespace maxmargin
