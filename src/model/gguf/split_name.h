// SPDX-License-Identifier: Apache-2.0
// File names of split models: "PREFIX-00002-of-00003.gguf", numbered from 1.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

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
/// The message of a failure in a part other than the named file, with the part's name in front.
Status in_part(const Status& status, std::string_view path) noexcept;

}  // namespace gen::gguf
