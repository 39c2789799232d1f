// SPDX-License-Identifier: Apache-2.0
// gen_quantize_options.
#pragma once

#include <generate/quantize.h>

#include <string>
#include <vector>

#include "model/type_pattern.h"

struct gen_quantize_options {
  std::string importance;  // path; empty: none
  std::string types_text;
  std::vector<gen::model::TypePattern> types;  // types_text, parsed
};
