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
  int64_t active = 0;  // those that a token uses: of stacks of experts only the chosen ones
  std::map<std::string_view, double> shares;  // of the tensors' bytes, by the name of the type
};

/// Of a model of `blocks` blocks; the file's others only draft. Tensors of pictures and sound are
/// not counted. `used` of `experts` matrices of a stack are read for a token; both 0 without
/// experts.
Totals totals(const GgufFile& file, int64_t blocks, int64_t used, int64_t experts);

}  // namespace gen::gguf
