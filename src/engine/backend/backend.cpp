// SPDX-License-Identifier: Apache-2.0
// See backend.h.
#include "engine/backend/backend.h"

#include <gen_headers_id.h>

#include <array>
#include <cstring>

namespace gen::engine {
namespace {

/// "<compiler> <headers> <sizes>", a compile-time constant.
constexpr size_t kMaxId = 160;
constexpr std::array<char, kMaxId> make_build_id() {
  std::array<char, kMaxId> id{};
  size_t at = 0;
  const auto put = [&](const char* text) {
    for (; *text != '\0' && at + 24 < kMaxId; ++text) id[at++] = *text;
  };
  const auto number = [&](size_t value) {
    char digits[20] = {};
    size_t n = 0;
    do {
      digits[n++] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value > 0);
    if (at + 24 < kMaxId) id[at++] = ' ';
    while (n > 0) id[at++] = digits[--n];
  };
  put("2 " __VERSION__ " " GEN_HEADERS_ID);
  number(sizeof(OpArgs));
  number(sizeof(MemoryOp));
  number(sizeof(KvLayer));
  number(sizeof(EngineOptions));
  number(sizeof(Status));
  return id;
}
constexpr std::array<char, kMaxId> kBuildId = make_build_id();

}  // namespace

const char* backend_build_id() noexcept { return kBuildId.data(); }

Status check_backend(const gen_backend_v1& backend) {
  if (backend.struct_size < sizeof(gen_backend_v1) || backend.build_id == nullptr ||
      std::strcmp(backend.build_id, backend_build_id()) != 0) {
    return error(Code::kUnsupported, "backend of build \"%.120s\", this library is of \"%.120s\"",
                 backend.struct_size < sizeof(gen_backend_v1) || backend.build_id == nullptr
                     ? "unknown"
                     : backend.build_id,
                 backend_build_id());
  }
  return {};
}

Result<std::shared_ptr<Engine>> create_engine(const gen_backend_v1& backend,
                                              const EngineOptions& options) {
  GEN_TRY(check_backend(backend));
  if (const char* reason = backend.why_not(); reason != nullptr) {
    return error(Code::kUnsupported, "backend %s: %s", backend.name, reason);
  }
  std::shared_ptr<Engine> engine;
  Status status;
  backend.create(&options, &engine, &status);
  if (!status.ok()) return status;
  if (engine == nullptr) return error(Code::kInternal, "backend %s made nothing", backend.name);
  return engine;
}

}  // namespace gen::engine
