// SPDX-License-Identifier: Apache-2.0
// Appending values and texts as GGUF files have them.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace gen::gguf {

template <typename T>
void append_value(std::string* out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out->append(bytes, sizeof value);
}

inline void append_text(std::string* out, std::string_view text) {
  append_value(out, static_cast<uint64_t>(text.size()));
  out->append(text);
}

}  // namespace gen::gguf
