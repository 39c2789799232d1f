// SPDX-License-Identifier: Apache-2.0
// See stack_bound.h.
#include "template/stack_bound.h"

#if defined(__linux__)
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstddef>

namespace gen::templates {
namespace {

// For code that does not check: printf with hundreds of digits, sorting, an allocation.
constexpr size_t kReserve = 20 << 10;
// Assumed size of a stack that the system did not make (a coroutine's), since it is unknown.
constexpr size_t kUnknown = 32 << 10;

#if defined(__linux__)
struct Stack {
  uintptr_t base = 0;
  size_t size = 0;  // 0: unknown
};

Stack stack_of_thread() noexcept {
  if (syscall(SYS_gettid) == getpid()) {
    // The main thread: pthread_getattr_np would read all mappings of the process. Arguments and the
    // environment are at the top of the stack and count towards its limit, at most a quarter of it.
    constexpr rlim_t kEnough = 4 << 20;
    rlimit limit{};
    const uintptr_t top = getauxval(AT_RANDOM);
    if (top == 0 || getrlimit(RLIMIT_STACK, &limit) != 0) return {};
    const auto size = static_cast<size_t>(std::min(limit.rlim_cur / 4 * 3, kEnough));
    return {top - size, size};
  }
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* begin = nullptr;
  size_t size = 0;
  const bool known = pthread_attr_getstack(&attributes, &begin, &size) == 0;
  pthread_attr_destroy(&attributes);
  return known ? Stack{reinterpret_cast<uintptr_t>(begin), size} : Stack();
}
#endif

}  // namespace

StackBound::StackBound() noexcept {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  lowest_ = here > kUnknown ? here - kUnknown : 0;
#if defined(__linux__)
  const Stack stack = stack_of_thread();
  if (here >= stack.base && here - stack.base < stack.size) lowest_ = stack.base + kReserve;
#endif
}

}  // namespace gen::templates
