// SPDX-License-Identifier: Apache-2.0
// The emulator's device memory. It can be touched while kernels and copies run, between open() and
// close(), and at no other time; each allocation ends within 255 bytes of a page that can never be
// touched; addresses are not used twice. Who touches what is not there is told which place it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gen::cuda::emulator {

class DeviceMemory {
 public:
  DeviceMemory();
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// Addresses without memory; null when there are none left.
  void* reserve(size_t bytes, int device);
  /// From here on kernels may use it; unwritten (unwritten.h). Between open() and close().
  void make_live(void* pointer);
  /// Gives it back, with its addresses.
  void retire(void* pointer);

  void open();
  void close();
  [[nodiscard]] bool is_open() const { return open_; }

  /// Whether all bytes lie in one live allocation.
  [[nodiscard]] bool holds(const void* at, size_t bytes) const;
  [[nodiscard]] bool reserved(const void* pointer) const;
  [[nodiscard]] size_t used_bytes(int device) const;
  /// Copies and fills say here what they have written, whatever it is. Nothing outside live memory.
  void note_written(const void* at, size_t bytes);
  /// The first word within [at, at + bytes) that nobody has written, or null.
  [[nodiscard]] const void* find_unwritten(const void* at, size_t bytes) const;
  /// Whether nobody had written the word at an address when it held `word`.
  [[nodiscard]] bool is_unwritten(uintptr_t at, uint32_t word) const;
  /// Whether somebody wrote between an allocation's end and its page's; empty or a line.
  std::string overrun();
  /// Where an address lies, in words.
  void describe(const void* at, char* text, size_t size) const;
  [[nodiscard]] bool in_arena(const void* at) const;

 private:
  struct Allocation {
    size_t bytes = 0;
    int device = 0;
    bool live = false;
    std::vector<bool> noted;  // words; empty: none
  };
  using Allocations = std::map<uintptr_t, Allocation>;

  [[nodiscard]] Allocations::const_iterator below(uintptr_t at) const;
  static void protect(uintptr_t start, size_t bytes, int protection);

  std::byte* arena_ = nullptr;
  size_t used_ = 0;
  Allocations allocations_;
  bool open_ = false;
};

/// What the last fault was, for fail_after_fault().
const char* fault_text();

}  // namespace gen::cuda::emulator
