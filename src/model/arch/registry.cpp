// SPDX-License-Identifier: Apache-2.0
// The table of architectures. See registry.h.
#include "model/arch/registry.h"

#include "model/gguf/clean_name.h"

namespace gen::model::arch {
namespace {

constexpr Architecture kArchitectures[] = {
    {"llama", build_llama},
    {"qwen2", build_qwen2},
    {"qwen3", build_qwen3},
};

}  // namespace

std::span<const Architecture> architectures() noexcept { return kArchitectures; }

Result<const Architecture*> find_architecture(const std::string& name) {
  std::string known;
  for (const Architecture& row : kArchitectures) {
    if (name == row.name) return &row;
    known += known.empty() ? "" : ", ";
    known += row.name;
  }
  const int shown = gguf::is_clean_name(name) ? gguf::shown_length(name) : 0;
  return error(Code::kUnsupported, "architecture \"%.*s\" is not supported (%s)", shown,
               name.c_str(), known.c_str());
}

}  // namespace gen::model::arch
