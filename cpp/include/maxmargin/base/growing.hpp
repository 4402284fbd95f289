// A vector of plain numbers that grows by realloc: a large one is moved by its pages, so that the old and the new one
// never exist at once, and unused capacity takes no memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>

namespace maxmargin {

template <class T>
class Growing {
    static_assert(std::is_trivially_copyable_v<T>);

   public:
    std::size_t size() const { return size_; }
    T* data() { return data_.get(); }
    const T* data() const { return data_.get(); }
    T& operator[](std::size_t i) { return data_.get()[i]; }
    const T& operator[](std::size_t i) const { return data_.get()[i]; }

    void reserve(std::size_t capacity) {
        if (capacity <= capacity_) return;
        if (capacity > std::numeric_limits<std::size_t>::max() / 2 / sizeof(T)) throw std::bad_alloc();
        void* moved = std::realloc(static_cast<void*>(data_.get()), capacity * sizeof(T));
        if (!moved) throw std::bad_alloc();
        static_cast<void>(data_.release());
        data_.reset(static_cast<T*>(moved));
        capacity_ = capacity;
    }
    // Reserves room for so many more entries, in amortized constant time each.
    void room_for(std::size_t more) {
        if (size_ + more > capacity_) reserve(std::max(size_ + more, capacity_ + capacity_ / 2 + 1024 / sizeof(T)));
    }
    void push_back(const T& value) {
        const T copy = value;  // it may lie in the memory that is about to move
        room_for(1);
        data_.get()[size_++] = copy;
    }
    // New entries are not initialized.
    void resize(std::size_t size) {
        if (size > size_) room_for(size - size_);
        size_ = size;
    }
    // Frees unused capacity.
    void shrink() {
        if (capacity_ == size_ || size_ == 0) return;
        if (void* moved = std::realloc(static_cast<void*>(data_.get()), size_ * sizeof(T))) {
            static_cast<void>(data_.release());
            data_.reset(static_cast<T*>(moved));
            capacity_ = size_;
        }
    }

   private:
    struct Free {
        void operator()(T* p) const { std::free(static_cast<void*>(p)); }
    };
    std::unique_ptr<T, Free> data_;
    std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace maxmargin
