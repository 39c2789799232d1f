// SPDX-License-Identifier: Apache-2.0
// Qwen 2.5-VL, under an architecture of its own, and Qwen3-VL: the sections of the rotation have
// another name and three numbers, or are missing.
#include "model/gguf/compat/family.h"

namespace gen::gguf::compat {
namespace {

constexpr int32_t kQwen3Sections[] = {24, 20, 20, 0};  // of all sizes

Status adjust_25(Edit& file) { return sections_from(file, "rope.mrope_section"); }

bool is_ollamas_3(const Source& file) { return !file.has("qwen3vl.rope.dimension_sections"); }
Status adjust_3(Edit& file) {
  GEN_TRY(sections_from(file, "rope.mrope_section"));
  const std::string key = file.key("rope.dimension_sections");
  if (!file.has(key)) file.set_i32s(key, kQwen3Sections);
  return {};
}

}  // namespace

constinit const Family kQwen25Vl = {.name = "qwen25vl", .target = "qwen2vl", .adjust = adjust_25};
constinit const Family kQwen3Vl = {
    .name = "qwen3vl", .recognise = is_ollamas_3, .adjust = adjust_3};

}  // namespace gen::gguf::compat
