// SPDX-License-Identifier: Apache-2.0
#include "cuda/emulator/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#include "cuda/emulator/sanitizer.h"

#if defined(__x86_64__)
// Saves what a function has to keep, and goes on where the other stack stopped.
asm(R"(
.text
.p2align 4
.type gen_emulator_change_stack, @function
gen_emulator_change_stack:
  endbr64
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size gen_emulator_change_stack, . - gen_emulator_change_stack
)");
extern "C" void gen_emulator_change_stack(void** from, void* to);
#endif

namespace gen::cuda::emulator {
namespace {

// Frames under the address sanitizer are several times as large.
constexpr size_t kStackBytes = kAddressSanitizer ? 512 << 10 : 128 << 10;
constexpr size_t kStacksPerSlab = 32;

// Who left and who goes on, for the first instructions on a stack.
thread_local Fiber* leaving = nullptr;
thread_local Fiber* entering = nullptr;

}  // namespace

Fiber::Fiber(std::byte* stack, size_t bytes, void (*entry)())
    : bottom_(stack), bytes_(bytes), entry_(entry) {
  restart();
}

void Fiber::restart() {
  forget_stack(bottom_, bytes_);
  fake_stack_ = nullptr;
#if defined(__x86_64__)
  auto** at = reinterpret_cast<void**>(top());
  *--at = nullptr;  // begin() returns nowhere
  *--at = reinterpret_cast<void*>(&Fiber::begin);
  for (int i = 0; i < 6; ++i) *--at = nullptr;  // the registers
  stack_pointer_ = at;
#else
  getcontext(&context_);
  context_.uc_stack.ss_sp = bottom_;
  context_.uc_stack.ss_size = bytes_;
  context_.uc_link = nullptr;
  makecontext(&context_, &Fiber::begin, 0);
#endif
}

void Fiber::change(Fiber& from, Fiber& to) {
  leaving = &from;
  entering = &to;
  leaving_stack(&from.fake_stack_, to.bottom_, to.bytes_);
#if defined(__x86_64__)
  gen_emulator_change_stack(&from.stack_pointer_, to.stack_pointer_);
#else
  swapcontext(&from.context_, &to.context_);
#endif
  // Somebody came back; where that one's stack lies is known only now if it is a thread's.
  const void* bottom = nullptr;
  size_t bytes = 0;
  entered_stack(from.fake_stack_, &bottom, &bytes);
}

void Fiber::begin() {
  const void* bottom = nullptr;
  size_t bytes = 0;
  entered_stack(nullptr, &bottom, &bytes);
  if (leaving->bottom_ == nullptr && bottom != nullptr) {
    leaving->bottom_ = static_cast<std::byte*>(const_cast<void*>(bottom));
    leaving->bytes_ = bytes;
  }
  entering->entry_();
  std::abort();
}

Fiber* FiberPool::take() {
  if (idle_.empty()) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* slab = mmap(nullptr, kStackBytes * kStacksPerSlab, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slab == MAP_FAILED) throw std::bad_alloc();
    slabs_.push_back(static_cast<std::byte*>(slab));
    for (size_t i = 0; i < kStacksPerSlab; ++i) {
      std::byte* stack = slabs_.back() + i * kStackBytes;
      if (mprotect(stack, page, PROT_NONE) != 0) throw std::bad_alloc();
      // Tops at the same place of every page would all lie in the same few lines of the caches.
      const size_t aside = all_.size() * 17 % 128 * 64;
      all_.push_back(std::make_unique<Fiber>(stack + page, kStackBytes - page - aside, entry_));
      idle_.push_back(all_.back().get());
    }
  }
  Fiber* fiber = idle_.back();
  idle_.pop_back();
  return fiber;
}

void FiberPool::restart_all() {
  idle_.clear();
  for (const auto& fiber : all_) {
    fiber->restart();
    idle_.push_back(fiber.get());
  }
}

FiberPool::~FiberPool() {
  restart_all();
  for (std::byte* slab : slabs_) munmap(slab, kStackBytes * kStacksPerSlab);
}

}  // namespace gen::cuda::emulator
