// SPDX-License-Identifier: Apache-2.0
// File names of split models: "PREFIX-00002-of-00003.gguf", numbered from 1.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gen::gguf {

struct SplitName {
  std::string prefix;  // with its directory
  int number = 0;      // from 1
  int count = 0;
};

/// nullopt if `path` does not end like a part's name.
std::optional<SplitName> parse_split_name(std::string_view path);
/// Path of part `number`, from 1. Both numbers are at most 99999.
std::string split_path(std::string_view prefix, int number, int count);

}  // namespace gen::gguf
