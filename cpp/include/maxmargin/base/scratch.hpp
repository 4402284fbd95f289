// Working memory of threads: for one kernel call, or kept from call to call.
//
// ScratchLease: memory that outlives a kernel call. A call takes one object per thread and gives them back at its end,
// so that the pages of a large scratch are not asked from the system, and cleared, again in every call. Kept objects
// have the size of the largest call so far. A kernel must not read values that an earlier call has left.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

namespace maxmargin {

// One object per thread, all made from the same arguments.
template <class Scratch, class... Args>
std::vector<Scratch> per_thread(int threads, const Args&... args) {
    std::vector<Scratch> all;
    for (int t = 0; t < std::max(threads, 1); ++t) all.emplace_back(args...);
    return all;
}

template <class Scratch>
class ScratchLease {
   public:
    // One object per thread; fit(object) makes it large enough.
    template <class Fit>
    ScratchLease(int threads, Fit&& fit) {
        const auto count = static_cast<std::size_t>(std::max(threads, 1));
        {
            const std::lock_guard lock(mutex());
            auto& idle = pool();
            while (taken_.size() < count && !idle.empty()) {
                taken_.push_back(std::move(idle.back()));
                idle.pop_back();
            }
            while (taken_.size() < count) taken_.push_back(std::make_unique<Scratch>());
            idle.reserve(idle.size() + count);  // so that giving back cannot fail
        }
        for (auto& one : taken_) fit(*one);
    }
    ~ScratchLease() {
        const std::lock_guard lock(mutex());
        auto& idle = pool();
        for (auto& one : taken_)
            if (idle.size() < idle.capacity()) idle.push_back(std::move(one));
    }
    ScratchLease(const ScratchLease&) = delete;
    ScratchLease& operator=(const ScratchLease&) = delete;

    Scratch& operator[](std::size_t i) { return *taken_[i]; }

   private:
    static std::mutex& mutex() {
        static std::mutex one;
        return one;
    }
    static std::vector<std::unique_ptr<Scratch>>& pool() {
        static std::vector<std::unique_ptr<Scratch>> idle;
        return idle;
    }
    std::vector<std::unique_ptr<Scratch>> taken_;
};

template <class T>
void at_least(std::vector<T>& values, std::size_t size) {
    if (values.size() < size) values.resize(size);
}

}  // namespace maxmargin
