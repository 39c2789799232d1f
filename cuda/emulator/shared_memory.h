// SPDX-License-Identifier: Apache-2.0
// A block's shared memory with what is known of every byte: whether somebody wrote it, who did and
// who read it last. Two accesses of different threads, one of them a write, need a barrier between
// them, or an operation of their warp; without one the block has a race, whatever the order was.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gen::cuda::emulator {

struct Thread;

inline constexpr size_t kStaticSharedBytes = size_t{48} << 10;
inline constexpr size_t kSharedBytes = size_t{227} << 10;

class SharedMemory {
 public:
  /// A new block begins.
  void reset(size_t dynamic_bytes);

  /// The array that a place of the source declares; the same each time in a block.
  size_t place(const void* key, size_t bytes, size_t align, const char* name);
  [[nodiscard]] size_t dynamic_begin() const { return kStaticSharedBytes; }
  [[nodiscard]] size_t dynamic_bytes() const { return dynamic_bytes_; }

  void read(const Thread& thread, size_t at, void* to, size_t bytes, const char* name);
  void write(const Thread& thread, size_t at, const void* from, size_t bytes, const char* name);
  /// An atomic operation follows on the bytes returned.
  void* atomic(const Thread& thread, size_t at, size_t bytes, const char* name);
  /// A copy begins: until its end nobody may know what is there.
  void begin_copy(const Thread& thread, size_t at, size_t bytes, const char* name);
  /// Where `address` is not null the bytes lay there in device memory, and what nobody had written
  /// there nobody may know here.
  void end_copy(size_t at, const void* from, size_t bytes, const void* address);

 private:
  struct Mark {
    uint32_t thread = kNobody;
    uint32_t epoch = 0;
    uint32_t warp_epoch = 0;
  };
  struct Byte {
    Mark write;
    Mark read;
    bool known = false;
    bool atomic = false;  // the last write
  };
  struct Static {
    const void* key;
    size_t at;
  };
  static constexpr uint32_t kNobody = ~uint32_t{0};

  [[nodiscard]] static Mark mark(const Thread& thread);
  [[nodiscard]] static bool ordered(const Mark& before, const Thread& now);
  void check_write(const Thread& thread, size_t at, const void* from, size_t bytes,
                   const char* name);

  /// Some bytes are about to change.
  void touch(size_t at, size_t bytes);

  // Only what a block wrote is made new for the next one.
  static constexpr size_t kChunk = 256;
  std::vector<size_t> touched_;
  std::vector<char> is_touched_;
  std::vector<Byte> bytes_;
  std::vector<std::byte> data_;
  std::vector<Static> statics_;
  size_t static_bytes_ = 0;
  size_t dynamic_bytes_ = 0;
};

}  // namespace gen::cuda::emulator
