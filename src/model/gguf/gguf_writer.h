// SPDX-License-Identifier: Apache-2.0
// HeaderWriter: everything of a GGUF file, version 3, that comes before the tensors' data. The data
// is not kept: the caller appends it tensor by tensor, padded as padding() says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/metadata.h"
#include "tensor/dtype.h"

namespace gen::gguf {

/// Threads: one at a time.
class HeaderWriter {
 public:
  /// `alignment` is a power of two; the file's general.alignment, where it has one, must say so.
  explicit HeaderWriter(uint32_t alignment) : alignment_(alignment) {}

  /// Keys are the caller's to keep unique.
  void copy(const Value& entry);
  void set_u32(std::string_view key, uint32_t value);
  void set_string(std::string_view key, std::string_view value);
  void set_strings(std::string_view key, std::span<const std::string> values);
  /// A tensor of the name and shape of `like`, whose data follows that of the tensor before it.
  /// False if rows of that length cannot be stored as `type`, or if sizes overflow.
  [[nodiscard]] bool add_tensor(const TensorInfo& like, DType type);

  /// The bytes up to the first tensor's data.
  [[nodiscard]] std::string finish() const;
  /// Zero bytes that follow `bytes` bytes of data, of every tensor and of the header.
  [[nodiscard]] uint64_t padding(uint64_t bytes) const noexcept {
    return (alignment_ - bytes % alignment_) % alignment_;
  }

 private:
  uint32_t alignment_;
  uint64_t entries_ = 0;
  uint64_t tensors_ = 0;
  uint64_t data_bytes_ = 0;  // of all tensors, padded
  std::string metadata_;     // bytes, as infos_
  std::string infos_;
};

}  // namespace gen::gguf
