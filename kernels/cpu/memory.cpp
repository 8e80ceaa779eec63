#include "memory.h"

#include "fence.h"

#include <new>
#include <utility>

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <sys/mman.h>
#endif

namespace sglite {
namespace {

constexpr size_t kEdge = kFence > 0 ? 4096 : 0;  // bytes behind a fence on both sides

}  // namespace

Memory::Memory(size_t bytes, bool dense) {
    if (bytes == 0) return;
#if defined(_WIN32)
    (void)dense;
    void* at = VirtualAlloc(nullptr, bytes + 2 * kEdge, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    if (at == nullptr) throw std::bad_alloc();
#else
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#if defined(MAP_NORESERVE)
    flags |= MAP_NORESERVE;
#endif
    void* at = mmap(nullptr, bytes + 2 * kEdge, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
    if (dense) madvise(at, bytes, MADV_HUGEPAGE);  // advice only: a refusal costs nothing
#else
    (void)dense;
#endif
#endif
    data_ = static_cast<unsigned char*>(at) + kEdge;
    size_ = bytes;
    close_fence(data_ - kEdge, kEdge);
    close_fence(data_ + bytes, kEdge);
}

void Memory::release() {
    if (data_ == nullptr) return;
    open_fence(data_ - kEdge, size_ + 2 * kEdge);
#if defined(_WIN32)
    VirtualFree(data_ - kEdge, 0, MEM_RELEASE);
#else
    munmap(data_ - kEdge, size_ + 2 * kEdge);
#endif
    data_ = nullptr;
    size_ = 0;
}

Memory::Memory(Memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Memory& Memory::operator=(Memory&& other) noexcept {
    if (this != &other) {
        release();
        data_ = std::exchange(other.data_, nullptr);
        size_ = std::exchange(other.size_, 0);
    }
    return *this;
}

}  // namespace sglite
