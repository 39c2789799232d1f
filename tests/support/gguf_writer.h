// SPDX-License-Identifier: Apache-2.0
// GgufWriter: builds GGUF files in memory, good ones and, by way of the marks that it leaves, bad
// ones. It knows the format on its own and shares nothing with the reader that it tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gen::test {

/// A finished file with the places of its fields, to be changed by tests.
struct GgufImage {
  std::vector<std::byte> bytes;
  /// "magic", "version", "tensor_count", "metadata_count", "infos_end", "data"; of an entry K
  /// "K.key_length", "K.key", "K.type", "K.value", of an array also "K.array_type",
  /// "K.array_length"; of a tensor T "T.name_length", "T.name", "T.n_dims", "T.dim0" to "T.dim3",
  /// "T.type", "T.offset", "T.data".
  std::map<std::string, size_t, std::less<>> marks;

  [[nodiscard]] size_t at(std::string_view mark) const { return marks.find(mark)->second; }
  template <typename T>
  GgufImage& poke(std::string_view mark, T value) {
    std::memcpy(bytes.data() + at(mark), &value, sizeof value);
    return *this;
  }
  GgufImage& cut(std::string_view mark, size_t keep = 0) {
    bytes.resize(at(mark) + keep);
    return *this;
  }
};

class GgufWriter {
 public:
  explicit GgufWriter(uint32_t version = 3) : version_(version) {}

  /// The file's number for a type of C++.
  template <typename T>
  static constexpr uint32_t type_number() {
    if constexpr (std::is_same_v<T, uint8_t>) return 0;
    if constexpr (std::is_same_v<T, int8_t>) return 1;
    if constexpr (std::is_same_v<T, uint16_t>) return 2;
    if constexpr (std::is_same_v<T, int16_t>) return 3;
    if constexpr (std::is_same_v<T, uint32_t>) return 4;
    if constexpr (std::is_same_v<T, int32_t>) return 5;
    if constexpr (std::is_same_v<T, float>) return 6;
    if constexpr (std::is_same_v<T, bool>) return 7;
    if constexpr (std::is_same_v<T, uint64_t>) return 10;
    if constexpr (std::is_same_v<T, int64_t>) return 11;
    if constexpr (std::is_same_v<T, double>) return 12;
    return ~0U;
  }
  static constexpr uint32_t kString = 8;
  static constexpr uint32_t kArray = 9;

  template <typename T>
  GgufWriter& set(std::string key, T value) {
    static_assert(type_number<T>() != ~0U);
    std::vector<std::byte> bytes;
    append(&bytes, value);
    entries_.push_back({std::move(key), type_number<T>(), 0, 0, std::move(bytes)});
    return *this;
  }
  GgufWriter& set_string(std::string key, std::string_view value);
  template <typename T>
  GgufWriter& set_array(std::string key, const std::vector<T>& values) {
    std::vector<std::byte> bytes;
    for (const T value : values) append(&bytes, value);
    entries_.push_back({std::move(key), kArray, type_number<T>(), values.size(), std::move(bytes)});
    return *this;
  }
  GgufWriter& set_strings(std::string key, const std::vector<std::string>& values);

  /// `data` is taken as it is: its size need not be what type and dims say.
  GgufWriter& tensor(std::string name, uint32_t type, std::vector<uint64_t> dims,
                     std::vector<std::byte> data);
  /// A tensor whose n_bytes of data are not here: the caller writes them behind head(), each
  /// tensor's padded to the alignment.
  GgufWriter& tensor_elsewhere(std::string name, uint32_t type, std::vector<uint64_t> dims,
                               uint64_t n_bytes);
  /// Takes out the tensors whose names `out` is true of.
  template <typename F>
  GgufWriter& drop_tensors(const F& out) {
    std::erase_if(tensors_, [&](const Tensor& tensor) { return out(tensor.name); });
    return *this;
  }
  /// How data is aligned; writing general.alignment is up to the caller.
  GgufWriter& alignment(uint64_t bytes);

  [[nodiscard]] GgufImage build() const;
  /// The file up to where the data begins, for files too large for memory.
  [[nodiscard]] GgufImage head() const;

 private:
  struct Entry {
    std::string key;
    uint32_t type;
    uint32_t element;
    uint64_t count;
    std::vector<std::byte> value;
  };
  struct Tensor {
    std::string name;
    uint32_t type;
    std::vector<uint64_t> dims;
    std::vector<std::byte> data;
    uint64_t n_bytes;  // of the data, wherever it is
  };

  template <typename T>
  static void append(std::vector<std::byte>* out, T value) {
    // Byte by byte: gcc 12 warns falsely about the insertion of a range that it can see through.
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    for (size_t i = 0; i < sizeof value; ++i) out->push_back(from[i]);
  }
  static void append_string(std::vector<std::byte>* out, std::string_view text);
  void pad(std::vector<std::byte>* out) const;

  uint32_t version_;
  uint64_t alignment_ = 32;
  std::vector<Entry> entries_;
  std::vector<Tensor> tensors_;
};

/// Writes all bytes to a file; false if that fails.
bool write_file(const std::string& path, const std::vector<std::byte>& bytes);

}  // namespace gen::test
