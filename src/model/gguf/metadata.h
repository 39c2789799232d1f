// SPDX-License-Identifier: Apache-2.0
// Metadata: the typed key-value pairs of a GGUF file. It owns a copy of that part of the file, so
// it outlives the file and the memory it was parsed from. Every entry was checked when it was
// parsed: types are known, lengths are inside the file, keys are unique printable UTF-8 without
// NUL. Contents of string values are not checked. The parser is metadata_parser.cpp; vocab.h reads
// a tokenizer from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace gen::gguf {

/// Numbered as in the file.
enum class ValueType : uint8_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

/// "u8", …, "string", "array"; "unknown" outside the enumeration.
const char* value_type_name(ValueType type) noexcept;

/// One entry: its key and the location of its value. Small, because a file of tiny entries must not
/// need many times its size.
class Value {
 public:
  /// Ends with a NUL that the view does not count.
  [[nodiscard]] std::string_view key() const noexcept { return {key_, key_length_}; }
  [[nodiscard]] ValueType type() const noexcept { return type_; }
  /// Of an array, the type of its elements; else type().
  [[nodiscard]] ValueType element_type() const noexcept { return element_; }
  /// Elements of an array; 1 for all others.
  [[nodiscard]] uint64_t count() const noexcept { return count_; }
  /// "u32", "array of string": for messages.
  [[nodiscard]] std::string type_text() const;
  /// A text for humans. Arrays show their first `max_elements` and their length; malformed UTF-8
  /// and NUL become U+FFFD.
  [[nodiscard]] std::string text(size_t max_elements = 8) const;
  /// As in the file, of an array without its type and length. Lives as long as the Metadata.
  [[nodiscard]] std::span<const std::byte> bytes() const;

 private:
  friend class Metadata;
  friend class MetadataParser;

  const char* key_ = nullptr;
  const std::byte* data_ = nullptr;  // of a string: at its length; of an array: its first element
  uint64_t count_ = 1;
  uint32_t key_length_ = 0;
  ValueType type_ = ValueType::kU8;
  ValueType element_ = ValueType::kU8;
};

/// Threads: immutable.
class Metadata {
 public:
  Metadata() = default;
  Metadata(const Metadata&) = delete;
  Metadata& operator=(const Metadata&) = delete;

  /// In file order.
  [[nodiscard]] std::span<const Value> entries() const noexcept { return entries_; }
  /// nullptr if there is no such key.
  [[nodiscard]] const Value* find(std::string_view key) const noexcept;
  [[nodiscard]] bool has(std::string_view key) const noexcept { return find(key) != nullptr; }

  // Scalars. Integers accept every integer type whose value fits, floats every float type (f64 is
  // rounded). Without a fallback a missing key is a failure; with one it gives the fallback. A
  // wrong type or a value that does not fit is always kFormat naming key, wanted and found type.
  [[nodiscard]] Result<uint32_t> get_u32(std::string_view key,
                                         std::optional<uint32_t> fallback = {}) const {
    return scalar(key, fallback);
  }
  [[nodiscard]] Result<int32_t> get_i32(std::string_view key,
                                        std::optional<int32_t> fallback = {}) const {
    return scalar(key, fallback);
  }
  [[nodiscard]] Result<uint64_t> get_u64(std::string_view key,
                                         std::optional<uint64_t> fallback = {}) const {
    return scalar(key, fallback);
  }
  /// Finite: NaN and infinities are refused.
  [[nodiscard]] Result<float> get_f32(std::string_view key,
                                      std::optional<float> fallback = {}) const {
    return scalar(key, fallback);
  }
  [[nodiscard]] Result<bool> get_bool(std::string_view key,
                                      std::optional<bool> fallback = {}) const {
    return scalar(key, fallback);
  }
  /// Well-formed UTF-8 without NUL: anything else is kFormat.
  [[nodiscard]] Result<std::string> get_string(std::string_view key,
                                               std::optional<std::string_view> fallback = {}) const;

  // Arrays; elements as above, except that strings come byte for byte as they are in the file.
  [[nodiscard]] Result<std::vector<uint32_t>> get_u32s(std::string_view key) const {
    return array<uint32_t>(key);
  }
  [[nodiscard]] Result<std::vector<int32_t>> get_i32s(std::string_view key) const {
    return array<int32_t>(key);
  }
  [[nodiscard]] Result<std::vector<float>> get_f32s(std::string_view key) const {
    return array<float>(key);
  }
  [[nodiscard]] Result<std::vector<bool>> get_bools(std::string_view key) const {
    return array<bool>(key);
  }
  /// The views live as long as this object.
  [[nodiscard]] Result<std::vector<std::string_view>> get_strings(std::string_view key) const;

 private:
  friend class MetadataParser;

  // Defined and instantiated for the types above in metadata.cpp.
  template <typename T>
  Result<T> scalar(std::string_view key, std::optional<T> fallback) const;
  template <typename T>
  Result<std::vector<T>> array(std::string_view key) const;
  [[nodiscard]] Result<const Value*> require_array(std::string_view key, const char* wanted) const;

  std::shared_ptr<const std::vector<std::byte>> bytes_;
  std::vector<Value> entries_;
  std::vector<uint32_t> by_key_;  // indexes of entries_, ascending by key
};

}  // namespace gen::gguf
