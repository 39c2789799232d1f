// SPDX-License-Identifier: Apache-2.0
// The backend table of this engine, and the reason why it may be unavailable.
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "cuda/device/runtime.h"
#include "cuda/engine/cuda_engine.h"
#include "cuda/ops/cache/cache_append.h"

namespace gen::cuda {

namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

std::string why_unavailable() {
  int driver = 0;
  int runtime = 0;
  int count = 0;
  static_cast<void>(device::runtime_version(&runtime));
  static_cast<void>(device::driver_version(&driver));
  const device::Error failed = device::device_count(&count);
  if (driver != 0 && failed.ok() && count > 0) return "";
  const std::string needed = "this build needs one for CUDA " + version_text(runtime) + " or newer";
  if (driver == 0) return "no driver was found, and " + needed;
  const std::string found = "the driver is for CUDA " + version_text(driver) + ", and " + needed;
  if (failed == device::kDriverTooOld) return found;
  return (failed.ok() ? "there is no device" : failed.message()) + (" (" + found + ")");
}

namespace {

const char* why_not() {
  try {
    static const std::string reason = why_unavailable();
    return reason.empty() ? nullptr : reason.c_str();
  } catch (const std::exception&) {
    return "out of memory";
  }
}

void create(const engine::EngineOptions* options, std::shared_ptr<engine::Engine>* engine,
            Status* status) {
  try {
    auto made = CudaEngine::create(*options);
    if (made.ok()) {
      *engine = std::move(made).value();
    } else {
      *status = made.status();
    }
  } catch (const std::bad_alloc&) {
    *status = Status(Code::kOutOfMemory, "no memory for an engine");
  }
}

int32_t device_count() {
  // Counted once, like the reason: a device that is lost later still counts.
  static const int32_t found = [] {
    int count = 0;
    return why_not() == nullptr && device::device_count(&count).ok() ? count : 0;
  }();
  return found;
}

void describe(int32_t device, char* text, size_t capacity) {
  device::DeviceProperties of;
  if (!device::device_properties(device, &of).ok()) {
    if (capacity > 0) text[0] = '\0';
    return;
  }
  for (char& each : of.name) {
    if (each == '"' || each == '\\' || (each != '\0' && each < ' ')) each = ' ';
  }
  std::snprintf(text, capacity,
                "{\"name\":\"%.200s\",\"compute_capability\":\"%d.%d\",\"multiprocessors\":%d,"
                "\"memory_bytes\":%zu}",
                of.name, of.major, of.minor, of.sm_count, of.total_bytes);
}

void create_allocator(int32_t device, std::shared_ptr<const engine::GpuTable>* table,
                      Status* status) {
  try {
    auto made = PoolAllocator::create(device);
    if (!made.ok()) {
      *status = made.status();
      return;
    }
    const std::shared_ptr<PoolAllocator> pool = std::move(made).value();
    *table = {pool, &pool->table()};
  } catch (const std::bad_alloc&) {
    *status = Status(Code::kOutOfMemory, "no memory for an allocator");
  }
}

void set_log(LogSink sink) {
  set_log_sink(sink, nullptr);
  set_log_level(LogLevel::kDebug);
}

void append(int32_t device, const engine::CountedAppend* what, void* stream, Status* status) {
  DeviceContext context(device);
  {
    const DeviceGuard guard(context);
    *status = cache_append(*what, static_cast<device::Stream>(stream));
  }
  context.give_back();  // the stream's owner has it, too
}

}  // namespace

const gen_backend_v1& cuda_backend() noexcept {
  static const gen_backend_v1 table = {sizeof(gen_backend_v1),
                                       engine::backend_build_id(),
                                       "cuda",
                                       why_not,
                                       create,
                                       device_count,
                                       describe,
                                       create_allocator,
                                       set_log,
                                       append};
  return table;
}

}  // namespace gen::cuda
