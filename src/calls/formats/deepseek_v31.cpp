// SPDX-License-Identifier: Apache-2.0
// DeepSeek V3.1: as R1 without the fence and the kind of call.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat deepseek_v31_format() {
  CallFormat format;
  format.name = "deepseek-v3.1";
  format.signs = {"<｜tool▁calls▁begin｜>"};
  format.reasoning = {{"<think>", "</think>"}};
  format.section = {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"};
  format.several = true;
  format.call = {{Field::kText, "<｜tool▁call▁begin｜>"},
                 {Field::kName},
                 {Field::kText, "<｜tool▁sep｜>"},
                 {Field::kArguments},
                 {Field::kText, "<｜tool▁call▁end｜>"}};
  return format;
}

}  // namespace gen::calls
