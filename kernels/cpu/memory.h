// Pages from the operating system: zeroed, aligned to 64 bytes at least, and without cost until
// they are touched.
#pragma once

#include <stddef.h>

namespace sglite {

class Memory {
  public:
    Memory() = default;
    // `dense`: all of it will be used, so large pages pay. Throws std::bad_alloc.
    Memory(size_t bytes, bool dense);
    ~Memory() { release(); }
    Memory(Memory&& other) noexcept;
    Memory& operator=(Memory&& other) noexcept;
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    unsigned char* data() const { return data_; }
    size_t size() const { return size_; }

  private:
    void release();

    unsigned char* data_ = nullptr;
    size_t size_ = 0;
};

}  // namespace sglite
