// SPDX-License-Identifier: Apache-2.0
// Summary figures of a GGUF file, for display.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "model/gguf/gguf_file.h"

namespace gen::gguf {

struct Totals {
  int64_t parameters = 0;
  std::map<std::string_view, double> shares;  // of the tensors' bytes, by the name of the type
};

Totals totals(const GgufFile& file);

}  // namespace gen::gguf
