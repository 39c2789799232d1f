// SPDX-License-Identifier: Apache-2.0
#include "cuda/emulator/device_memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>
#include <vector>

#include "cuda/emulator/machine.h"
#include "cuda/emulator/sanitizer.h"
#include "cuda/emulator/unwritten.h"

namespace gen::cuda::emulator {
namespace {

constexpr size_t kArenaBytes = size_t{1} << 38;
constexpr size_t kAlign = 256;
constexpr unsigned char kTail = 0xCB;

size_t page_bytes() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}
size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }
std::byte* pointer(uintptr_t at) { return reinterpret_cast<std::byte*>(at); }

const DeviceMemory* faulting_memory = nullptr;
struct sigaction earlier {};
char fault_line[256];

void on_fault(int number, siginfo_t* info, void* context) {
  const bool in_kernel = current_thread != nullptr;
  if (!in_kernel && !faulting_memory->in_arena(info->si_addr)) {
    // Not ours: whoever was here before, or the end.
    if ((earlier.sa_flags & SA_SIGINFO) != 0 && earlier.sa_sigaction != nullptr) {
      earlier.sa_sigaction(number, info, context);
    } else {
      signal(number, SIG_DFL);
    }
    return;
  }
  char place[160];
  faulting_memory->describe(info->si_addr, place, sizeof place);
  if (in_kernel) {
    std::snprintf(fault_line, sizeof fault_line, "out of bounds: touches %s", place);
    // The thread goes on at the top of its stack, as if it had called this.
    std::byte* const top = current_stack();
    forget_stack(top - (64 << 10), 64 << 10);
    auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
    registers.gregs[REG_RSP] = reinterpret_cast<greg_t>(top - 256 - 8);
    registers.gregs[REG_RIP] = reinterpret_cast<greg_t>(&fail_after_fault);
    return;
#elif defined(__aarch64__)
    registers.sp = reinterpret_cast<uintptr_t>(top - 256);
    registers.pc = reinterpret_cast<uintptr_t>(&fail_after_fault);
    return;
#else
    static_cast<void>(registers);
#endif
  } else {
    std::snprintf(fault_line, sizeof fault_line, "the host touches device memory, %s", place);
  }
  std::fprintf(stderr, "emulator: %s\n", fault_line);
  std::abort();
}

/// A fiber's stack may be what is full.
void use_signal_stack() {
  static thread_local std::vector<std::byte> stack;
  stack_t now{};
  if (sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_DISABLE) == 0) return;
  stack.resize(64 << 10);
  now = {};
  now.ss_sp = stack.data();
  now.ss_size = stack.size();
  sigaltstack(&now, nullptr);
}

}  // namespace

const char* fault_text() { return fault_line; }

DeviceMemory::DeviceMemory() {
  void* arena =
      mmap(nullptr, kArenaBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (arena == MAP_FAILED) throw std::bad_alloc();
  arena_ = static_cast<std::byte*>(arena);
  used_ = page_bytes();
  faulting_memory = this;
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, &earlier);
}

DeviceMemory::~DeviceMemory() {
  sigaction(SIGSEGV, &earlier, nullptr);
  faulting_memory = nullptr;
  munmap(arena_, kArenaBytes);
}

void DeviceMemory::protect(uintptr_t start, size_t bytes, int protection) {
  const uintptr_t first = start / page_bytes() * page_bytes();
  if (mprotect(pointer(first), round_up(start + bytes - first, page_bytes()), protection) != 0) {
    throw std::bad_alloc();
  }
}

void* DeviceMemory::reserve(size_t bytes, int device) {
  const size_t aligned = round_up(bytes, kAlign);
  const size_t pages = round_up(aligned, page_bytes());
  if (bytes > kArenaBytes || pages + page_bytes() > kArenaBytes - used_) return nullptr;
  const uintptr_t start = reinterpret_cast<uintptr_t>(arena_) + used_ + pages - aligned;
  used_ += pages + page_bytes();
  allocations_[start] = {bytes, device, false, {}};
  return pointer(start);
}

void DeviceMemory::make_live(void* at) {
  const auto start = reinterpret_cast<uintptr_t>(at);
  Allocation& allocation = allocations_.at(start);
  allocation.live = true;
  protect(start, allocation.bytes, PROT_READ | PROT_WRITE);
  const size_t tail = round_up(allocation.bytes, kAlign) - allocation.bytes;
  fill_unwritten(at, allocation.bytes);
  std::memset(pointer(start) + allocation.bytes, kTail, tail);
#ifdef GEN_EMULATOR_ASAN
  __asan_poison_memory_region(pointer(start) + allocation.bytes, tail);
#endif
}

void DeviceMemory::retire(void* at) {
  const auto start = reinterpret_cast<uintptr_t>(at);
  const size_t bytes = round_up(allocations_.at(start).bytes, kAlign);
  allocations_.erase(start);
  forget_stack(at, bytes);
  const uintptr_t first = start / page_bytes() * page_bytes();
  mmap(pointer(first), start + bytes - first, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void DeviceMemory::open() {
  use_signal_stack();
  open_ = true;
  for (const auto& [start, allocation] : allocations_) {
    if (allocation.live) protect(start, allocation.bytes, PROT_READ | PROT_WRITE);
  }
}

void DeviceMemory::close() {
  open_ = false;
  for (const auto& [start, allocation] : allocations_) {
    if (allocation.live) protect(start, allocation.bytes, PROT_NONE);
  }
}

DeviceMemory::Allocations::const_iterator DeviceMemory::below(uintptr_t at) const {
  const auto above = allocations_.upper_bound(at);
  return above == allocations_.begin() ? allocations_.end() : std::prev(above);
}

bool DeviceMemory::holds(const void* at, size_t bytes) const {
  const auto start = reinterpret_cast<uintptr_t>(at);
  const auto found = below(start);
  if (found == allocations_.end() || !found->second.live) return false;
  const size_t offset = start - found->first;
  return offset <= found->second.bytes && bytes <= found->second.bytes - offset;
}

bool DeviceMemory::reserved(const void* at) const {
  return allocations_.count(reinterpret_cast<uintptr_t>(at)) != 0;
}

size_t DeviceMemory::used_bytes(int device) const {
  size_t sum = 0;
  for (const auto& [start, allocation] : allocations_) {
    if (allocation.device == device) sum += allocation.bytes;
  }
  return sum;
}

void DeviceMemory::note_written(const void* at, size_t bytes) {
  const auto start = reinterpret_cast<uintptr_t>(at);
  const auto found = below(start);
  if (bytes == 0 || !holds(at, bytes)) return;
  Allocation& allocation = allocations_.at(found->first);
  const size_t offset = start - found->first;
  allocation.noted.resize(allocation.bytes / kUnwrittenWord + 1);
  const auto word = [&](size_t byte) {
    return allocation.noted.begin() + static_cast<std::ptrdiff_t>(byte / kUnwrittenWord);
  };
  std::fill(word(offset), word(offset + bytes - 1) + 1, true);
}

bool DeviceMemory::is_unwritten(uintptr_t at, uint32_t word) const {
  if (word != unwritten_word(at) || !in_arena(pointer(at))) return false;
  const auto found = below(at);
  if (found == allocations_.end()) return true;
  const std::vector<bool>& noted = found->second.noted;
  const size_t index = (at - found->first) / kUnwrittenWord;
  return index >= noted.size() || !noted[index];
}

const void* DeviceMemory::find_unwritten(const void* at, size_t bytes) const {
  const auto begin = reinterpret_cast<uintptr_t>(at);
  const uintptr_t first = round_up(begin, kUnwrittenWord);
  for (uintptr_t word = first; word + kUnwrittenWord <= begin + bytes; word += kUnwrittenWord) {
    uint32_t now;
    std::memcpy(&now, pointer(word), sizeof now);
    if (is_unwritten(word, now)) return pointer(word);
  }
  return nullptr;
}

std::string DeviceMemory::overrun() {
  if (kAddressSanitizer) return "";  // it sees for itself
  for (const auto& [start, allocation] : allocations_) {
    if (!allocation.live) continue;
    for (size_t at = allocation.bytes; at < round_up(allocation.bytes, kAlign); ++at) {
      std::byte& tail = pointer(start)[at];
      if (tail == std::byte{kTail}) continue;
      tail = std::byte{kTail};
      char place[160];
      describe(&tail, place, sizeof place);
      return std::string("out of bounds: wrote ") + place;
    }
  }
  return "";
}

void DeviceMemory::describe(const void* at, char* text, size_t size) const {
  const auto found = below(reinterpret_cast<uintptr_t>(at));
  if (!in_arena(at)) {
    std::snprintf(text, size, "address %p, which is no device memory", at);
  } else if (found == allocations_.end()) {
    std::snprintf(text, size, "address %p, where nothing is allocated", at);
  } else {
    std::snprintf(text, size, "byte %zu of an allocation of %zu bytes%s",
                  reinterpret_cast<uintptr_t>(at) - found->first, found->second.bytes,
                  found->second.live ? "" : " that is not there yet");
  }
}

bool DeviceMemory::in_arena(const void* at) const {
  return at >= arena_ && at < arena_ + kArenaBytes;
}

}  // namespace gen::cuda::emulator
