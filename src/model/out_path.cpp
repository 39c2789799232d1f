// SPDX-License-Identifier: Apache-2.0
// See out_path.h.
#include "model/out_path.h"

#include <filesystem>
#include <system_error>

#include "model/gguf/split_name.h"

namespace gen::model {

Status check_apart(const std::string& in, const std::string& out) {
  const auto same = [&](const std::string& part) {
    std::error_code ignored;
    return part == out || std::filesystem::equivalent(part, out, ignored);
  };
  bool found = same(in);
  if (const auto name = gguf::parse_split_name(in)) {
    for (int number = 1; number <= name->count && !found; ++number) {
      found = same(gguf::split_path(name->prefix, number, name->count));
    }
  }
  if (!found) return {};
  return error(Code::kInvalidArgument, "out '%.600s' is the file to read", out.c_str());
}

}  // namespace gen::model
