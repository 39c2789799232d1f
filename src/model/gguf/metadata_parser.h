// SPDX-License-Identifier: Apache-2.0
// MetadataParser: the metadata part of a GGUF file, from hostile bytes to a checked Metadata.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "model/gguf/byte_reader.h"
#include "model/gguf/metadata.h"

namespace gen::gguf {

class MetadataParser {
 public:
  /// Bytes that an entry takes at least: a key's length, one character, a type, one byte of value.
  static constexpr uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;
  static constexpr uint64_t kMaxKeyBytes = 65535;

  /// Leaves `reader` after `count` entries, each of which was checked. Allocates nothing.
  static Status skip(ByteReader& reader, uint64_t count);
  /// Reads `count` entries and leaves `reader`, which reads `*head`, behind them. The metadata
  /// keeps these bytes, and puts a NUL behind each key. What is allocated stays within a small
  /// multiple of the bytes read, whatever they say.
  static Result<std::shared_ptr<const Metadata>> parse(
      ByteReader& reader, uint64_t count, const std::shared_ptr<std::vector<std::byte>>& head);

 private:
  static Status parse_entry(ByteReader& reader, uint64_t index, uint64_t count, Value* out);
  static Status skip_value(ByteReader& reader, const Value& entry, uint64_t element);
  static Status skip_array(ByteReader& reader, Value* entry);
  static Status check_count(const ByteReader& reader, uint64_t count);
  static void end_keys(std::vector<std::byte>& head, const Metadata& metadata);
  static Status index_keys(Metadata* out);
};

/// Bytes of a scalar of fixed size; 0 for strings and arrays.
constexpr uint64_t scalar_bytes(ValueType type) noexcept {
  switch (type) {
    case ValueType::kU8:
    case ValueType::kI8:
    case ValueType::kBool:
      return 1;
    case ValueType::kU16:
    case ValueType::kI16:
      return 2;
    case ValueType::kU32:
    case ValueType::kI32:
    case ValueType::kF32:
      return 4;
    case ValueType::kU64:
    case ValueType::kI64:
    case ValueType::kF64:
      return 8;
    case ValueType::kString:
    case ValueType::kArray:
      break;
  }
  return 0;
}

}  // namespace gen::gguf
