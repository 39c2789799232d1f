// SPDX-License-Identifier: Apache-2.0
// The engines of this build. See registry.h.
#include "engine/registry.h"

#include <algorithm>
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

Result<const EngineRow*> engine_row(std::string_view name) {
  std::string known;
  for (const EngineRow& row : kRows) {
    if (name == row.name) return &row;
    known.append(known.empty() ? "" : ", ").append(row.name);
  }
  return error(Code::kInvalidArgument, "unknown backend \"%.*s\", known are %s",
               static_cast<int>(std::min<size_t>(name.size(), 60)), name.data(), known.c_str());
}

Result<std::shared_ptr<Engine>> create_engine(std::string_view name, const EngineOptions& options) {
  GEN_ASSIGN(const EngineRow* row, engine_row(name));
  if (const char* reason = row->why_not(); reason != nullptr) {
    return error(Code::kUnsupported, "backend %s: %s", row->name, reason);
  }
  return row->create(options);
}

}  // namespace gen::engine
