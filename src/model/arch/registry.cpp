// SPDX-License-Identifier: Apache-2.0
// The table of architectures. See registry.h.
#include "model/arch/registry.h"

namespace gen::model::arch {
namespace {

constexpr Architecture kArchitectures[] = {
    {"llama", engine::RopeKind::kAdjacent, build_llama},
    {"qwen2", engine::RopeKind::kHalves, build_qwen2},
    {"qwen3", engine::RopeKind::kHalves, build_qwen3},
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
  return error(Code::kUnsupported, "architecture \"%.64s\" is not supported (%s)", name.c_str(),
               known.c_str());
}

}  // namespace gen::model::arch
