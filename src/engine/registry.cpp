// SPDX-License-Identifier: Apache-2.0
// The engines of this build. See registry.h.
#include "engine/registry.h"

#include <string>

#include "engine/cpu/cpu_engine.h"

namespace gen::engine {
namespace {

const char* always_there() noexcept { return nullptr; }

constexpr EngineRow kRows[] = {
    {"cpu", always_there, cpu::CpuEngine::create},
};

}  // namespace

std::span<const EngineRow> engine_rows() noexcept { return kRows; }

Result<std::shared_ptr<Engine>> create_engine(std::string_view name, const EngineOptions& options) {
  for (const EngineRow& row : kRows) {
    if (name != row.name) continue;
    if (const char* reason = row.why_not(); reason != nullptr) {
      return error(Code::kUnsupported, "engine %s: %s", row.name, reason);
    }
    return row.create(options);
  }
  std::string known;
  for (const EngineRow& row : kRows) {
    if (!known.empty()) known += ", ";
    known += row.name;
  }
  return error(Code::kInvalidArgument, "engine %.*s is not one of %s",
               static_cast<int>(name.size()), name.data(), known.c_str());
}

}  // namespace gen::engine
