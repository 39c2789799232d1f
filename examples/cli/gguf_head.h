// SPDX-License-Identifier: Apache-2.0
// What a GGUF file has before its weights, whatever it is and whether the library loads it: files
// that are no models, architectures and types that are not known, files that were cut off.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace cli {

struct GgufHead {
  struct Tensor {
    std::string name;
    std::vector<uint64_t> dims;  // the one whose elements lie side by side first
    uint32_t type = 0;           // see gguf_types.h
    uint64_t offset = 0;         // in the data of its part
    size_t part = 0;             // index in `parts`
    uint64_t elements = 0;       // 0 if they cannot be counted
    uint64_t bytes = 0;          // of a type that is not known: up to the next tensor
  };
  struct Part {
    std::string path;
    uint64_t size = 0;     // of the file in bytes; 0 for a part that is not there
    uint64_t needed = 0;   // where its last tensor ends; at most `size` in a whole file
    uint64_t data = 0;     // where its tensors begin
    uint64_t tensors = 0;  // as many as it says that it has
    uint64_t listed = 0;   // as many as it lists before it ends
  };
  uint32_t version = 0;
  /// Values by key, of the first part. An array of more than kGgufArray elements is an object
  /// {"count":…,"first":[…]}.
  nlohmann::ordered_json metadata;
  std::vector<Part> parts;
  std::vector<Tensor> tensors;

  /// The size of all parts.
  [[nodiscard]] uint64_t size() const;
  /// Whether the file has this tensor to its end.
  [[nodiscard]] bool is_there(const Tensor& tensor) const;
  /// All parts, all tensors and all their bytes are there.
  [[nodiscard]] bool is_whole() const;
};
inline constexpr uint64_t kGgufArray = 1024;
inline constexpr uint64_t kGgufFirst = 8;        // elements shown of a longer array
inline constexpr uint64_t kGgufEntries = 65536;  // of the metadata, at most

/// Whether a value of a file, of whatever type of integers, is 0 or more.
inline bool is_count(const nlohmann::ordered_json& value) {
  return value.is_number_unsigned() || (value.is_number_integer() && value.get<int64_t>() >= 0);
}

/// Paths of all parts of a split model ("name-00001-of-00003.gguf"), or the path alone.
std::vector<std::string> parts_of(const std::string& path);

/// Of the file and, if it is a part of a split model by its split.count and its name
/// ("name-00001-of-00003.gguf"), of all parts beside it. Nothing if the first part cannot be read,
/// is not GGUF of version 2 or 3, or ends within its metadata.
std::optional<GgufHead> read_gguf_head(const std::string& path);

}  // namespace cli
