// SPDX-License-Identifier: Apache-2.0
// What a GGUF file has before its weights, for files that are no models, which the library does not
// load.
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
  };
  /// Values by key. Arrays of more than kGgufArray elements are null.
  nlohmann::ordered_json metadata;
  std::vector<Tensor> tensors;
  uint64_t size = 0;  // of the file in bytes
};
inline constexpr uint64_t kGgufArray = 4096;
inline constexpr uint64_t kGgufEntries = 4096;  // of the metadata, at most

/// Nothing if the file cannot be read, is not GGUF of version 2 or 3, or has more entries.
std::optional<GgufHead> read_gguf_head(const std::string& path);

}  // namespace cli
