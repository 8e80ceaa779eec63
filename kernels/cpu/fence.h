// Fences around the parts of memory that we divide ourselves: AddressSanitizer reports who touches
// them. They cost nothing in other builds.
#pragma once

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define SGLITE_FENCES 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SGLITE_FENCES 1
#endif
#endif

#if defined(SGLITE_FENCES)
#include <sanitizer/asan_interface.h>
#endif

namespace sglite {

#if defined(SGLITE_FENCES)
constexpr size_t kFence = 64;  // bytes left between two parts
inline void close_fence(const void* at, size_t bytes) { __asan_poison_memory_region(at, bytes); }
inline void open_fence(const void* at, size_t bytes) { __asan_unpoison_memory_region(at, bytes); }
#else
constexpr size_t kFence = 0;
inline void close_fence(const void*, size_t) {}
inline void open_fence(const void*, size_t) {}
#endif

}  // namespace sglite
