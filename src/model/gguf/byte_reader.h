// SPDX-License-Identifier: Apache-2.0
// ByteReader: a cursor over bytes that never passes their end. GGUF is little-endian and so are the
// machines we build for, which lets values be copied as they are.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace gen::gguf {

static_assert(std::endian::native == std::endian::little);

/// Reads a value that need not be aligned.
template <typename T>
T load(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

  [[nodiscard]] uint64_t offset() const noexcept { return offset_; }
  [[nodiscard]] uint64_t remaining() const noexcept { return bytes_.size() - offset_; }
  [[nodiscard]] const std::byte* cursor() const noexcept { return bytes_.data() + offset_; }

  /// False, moving nowhere, if fewer than `count` bytes are left.
  [[nodiscard]] bool skip(uint64_t count) noexcept {
    if (count > remaining()) return false;
    offset_ += static_cast<size_t>(count);
    return true;
  }

  template <typename T>
  [[nodiscard]] bool take(T* out) noexcept {
    const std::byte* from = cursor();
    if (!skip(sizeof(T))) return false;
    *out = load<T>(from);
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t offset_ = 0;
};

}  // namespace gen::gguf
