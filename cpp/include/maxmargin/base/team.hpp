// Threads that meet every few microseconds: for loops whose parallel parts are too short to start threads for each.
//
// The threads live as long as the team. Between two calls of each() they look for work, at first busily and then giving
// way to others; a team should not outlive a kernel call.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace maxmargin {

class Team {
   public:
    // body(thread, i) is what each() calls; `thread` is in [0, threads) and picks per-thread scratch. It must not
    // throw.
    template <class Body>
    Team(int threads, Body& body)
        : body_(&body),
          call_([](void* own, int thread, std::int64_t i) noexcept { (*static_cast<Body*>(own))(thread, i); }) {
        pool_.reserve(static_cast<std::size_t>(std::max(threads - 1, 0)));
        try {
            for (int t = 1; t < threads; ++t) pool_.emplace_back([this, t] { serve(t); });
        } catch (const std::exception&) {
            // The system has no more threads or no memory for them: those already started do the work.
        }
    }
    ~Team() {
        ended_.store(true, std::memory_order_release);
        for (auto& thread : pool_) thread.join();
    }
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    // Calls the body for every i of [0, n), n < 2^31, by any of the threads, and returns when all calls have.
    void each(std::int64_t n) {
        if (pool_.empty() || n <= 1) {
            for (std::int64_t i = 0; i < n; ++i) call_(body_, 0, i);
            return;
        }
        n_ = n;
        pending_.store(n, std::memory_order_relaxed);
        round_ += std::uint64_t{1} << 32;
        left_.store(round_ | static_cast<std::uint64_t>(n), std::memory_order_release);
        while (take(0)) {
        }
        for (int idle = 0; pending_.load(std::memory_order_acquire) != 0; ++idle) rest(idle);
    }

   private:
    void serve(int thread) {
        for (int idle = 0; !ended_.load(std::memory_order_acquire);) {
            if (take(thread)) idle = 0;
            else rest(idle++);
        }
    }
    // One item, if there is one. Its round cannot end before it has, so that n_ stays what it is.
    bool take(int thread) {
        std::uint64_t left = left_.load(std::memory_order_acquire);
        do {
            if ((left & 0xffffffffu) == 0) return false;
        } while (!left_.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel, std::memory_order_acquire));
        call_(body_, thread, n_ - static_cast<std::int64_t>(left & 0xffffffffu));
        pending_.fetch_sub(1, std::memory_order_release);
        return true;
    }
    static void rest(int idle) {
        if (idle >= 2000) std::this_thread::yield();
#if defined(__x86_64__)
        else _mm_pause();
#endif
    }

    void* body_;
    void (*call_)(void*, int, std::int64_t) noexcept;
    std::int64_t n_ = 0;
    std::uint64_t round_ = 0;
    alignas(64) std::atomic<std::uint64_t> left_{0};  // the round, and how many of its items nobody has taken
    alignas(64) std::atomic<std::int64_t> pending_{0};
    std::atomic<bool> ended_{false};
    std::vector<std::thread> pool_;
};

}  // namespace maxmargin
