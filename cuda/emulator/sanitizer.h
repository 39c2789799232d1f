// SPDX-License-Identifier: Apache-2.0
// What the address sanitizer wants to know of stacks that are not a thread's.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GEN_EMULATOR_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define GEN_EMULATOR_ASAN 1
#endif
#ifdef GEN_EMULATOR_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace gen::cuda::emulator {

#ifdef GEN_EMULATOR_ASAN
inline constexpr bool kAddressSanitizer = true;
inline void leaving_stack(void** fake, const void* bottom, size_t bytes) {
  __sanitizer_start_switch_fiber(fake, bottom, bytes);
}
inline void entered_stack(void* fake, const void** left_bottom, size_t* left_bytes) {
  __sanitizer_finish_switch_fiber(fake, left_bottom, left_bytes);
}
inline void forget_stack(const void* bottom, size_t bytes) {
  __asan_unpoison_memory_region(bottom, bytes);
}
#else
inline constexpr bool kAddressSanitizer = false;
inline void leaving_stack(void**, const void*, size_t) {}
inline void entered_stack(void*, const void**, size_t*) {}
inline void forget_stack(const void*, size_t) {}
#endif

}  // namespace gen::cuda::emulator
