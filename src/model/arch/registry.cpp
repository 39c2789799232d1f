// SPDX-License-Identifier: Apache-2.0
// The table of architectures. See registry.h.
#include "model/arch/registry.h"

#include "model/gguf/clean_name.h"

namespace gen::model::arch {
namespace {

constexpr Architecture kArchitectures[] = {
    {"llama", read_llama, build_llama},
    {"qwen2", read_qwen, build_qwen2},
    {"qwen3", read_qwen, build_qwen3},
};

}  // namespace

std::span<const Architecture> architectures() noexcept { return kArchitectures; }

Result<const Architecture*> find_architecture(std::span<const Architecture> known,
                                              const std::string& name) {
  std::string names;
  for (const Architecture& row : known) {
    if (name == row.name) return &row;
    names += names.empty() ? "" : ", ";
    names += row.name;
  }
  const int shown = gguf::is_clean_name(name) ? gguf::shown_length(name) : 0;
  return error(Code::kUnsupported, "architecture \"%.*s\" is not supported (%s)", shown,
               name.c_str(), names.c_str());
}

}  // namespace gen::model::arch
