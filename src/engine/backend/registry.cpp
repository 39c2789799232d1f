// SPDX-License-Identifier: Apache-2.0
// The engines of this build. See registry.h.
#include "engine/backend/registry.h"

#include <algorithm>
#include <array>
#include <string>

#include "engine/backend/backend_library.h"
#include "engine/cpu/cpu_engine.h"

namespace gen::engine {
namespace {

const char* always_there() noexcept { return nullptr; }

int32_t one_device() noexcept { return 1; }

const char* cuda_why_not() noexcept {
  const BackendLibrary& library = cuda_library();
  return library.table == nullptr ? library.reason : library.table->why_not();
}

/// Only called if the backend is available.
Result<std::shared_ptr<Engine>> create_cuda(const EngineOptions& options) {
  return create_engine(*cuda_library().table, options);
}

int32_t cuda_devices() noexcept {
  return cuda_why_not() == nullptr ? cuda_library().table->device_count() : 0;
}

Result<std::string> describe_cuda(int32_t device) {
  std::array<char, 512> text{};
  cuda_library().table->describe(device, text.data(), text.size());
  if (text[0] == '\0') {
    return error(Code::kDevice, "device %d of backend cuda does not say what it is", device);
  }
  return std::string(text.data());
}

Result<std::shared_ptr<const GpuTable>> cuda_allocator(int32_t device) {
  std::shared_ptr<const GpuTable> table;
  Status status;
  cuda_library().table->create_allocator(device, &table, &status);
  if (!status.ok()) return status;
  return table;
}

Status append_cuda(int32_t device, const CountedAppend& append, void* stream) {
  Status status;
  cuda_library().table->append(device, &append, stream, &status);
  return status;
}

constexpr EngineRow kRows[] = {
    {"cpu", always_there, cpu::CpuEngine::create, one_device, nullptr, nullptr, nullptr},
    {"cuda", cuda_why_not, create_cuda, cuda_devices, describe_cuda, cuda_allocator, append_cuda},
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

Status append_on_device(int32_t device, const CountedAppend& append, void* stream) {
  if (device < 0) {
    if (stream != nullptr) {
      return {Code::kInvalidArgument, "host memory that poses as a device has no streams"};
    }
    append_on_host(append);
    return {};
  }
  if (stream == nullptr) {
    return error(Code::kInvalidArgument, "stream is NULL, no stream of device %d", device);
  }
  GEN_ASSIGN(const EngineRow* const row, engine_row("cuda"));
  if (const char* reason = row->why_not(); reason != nullptr) {
    return error(Code::kUnsupported, "backend %s: %s", row->name, reason);
  }
  if (const int32_t count = row->device_count(); device >= count) {
    return error(Code::kUnsupported, "device %d of backend %s, which has %d", device, row->name,
                 count);
  }
  return row->append(device, append, stream);
}

}  // namespace gen::engine
