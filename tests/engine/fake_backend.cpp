// SPDX-License-Identifier: Apache-2.0
// libgenerate-cuda.so for tests, in the forms GEN_FAKE names: of another build, with too small a
// table, with a reason not to be used, without the function, or with the CPU engine in it.
#include <cstdio>

#include "base/thread_pool.h"
#include "engine/backend/backend.h"
#include "engine/cpu/cpu_engine.h"

namespace {

enum Form { kOtherBuild, kSmall, kRefuses, kNoFunction, kWorks };
constexpr Form kForm = GEN_FAKE;

const char* why_not() { return kForm == kRefuses ? "it is a quiet day" : nullptr; }

void create(const gen::engine::EngineOptions* options, std::shared_ptr<gen::engine::Engine>* engine,
            gen::Status* status) {
  auto made = gen::engine::cpu::CpuEngine::create(*options);
  *status = made.status();
  if (made.ok()) *engine = std::move(made).value();
}

int32_t device_count() { return 3; }

void describe(int32_t device, char* text, size_t capacity) {
  std::snprintf(text, capacity, "{\"name\":\"fake %d\"}", device);
}

void create_allocator(int32_t device, std::shared_ptr<const gen::engine::GpuTable>* /*table*/,
                      gen::Status* status) {
  *status = gen::error(gen::Code::kUnsupported, "device %d has no memory", device);
}

void set_log(gen::LogSink sink) {
  sink(nullptr, static_cast<int32_t>(gen::LogLevel::kInfo), "100 % fake");
}

void append(int32_t device, const gen::engine::CountedAppend* /*append*/, void* /*stream*/,
            gen::Status* status) {
  *status = gen::error(gen::Code::kUnsupported, "device %d has no kernels", device);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const gen_backend_v1*
#if defined(GEN_FAKE_NAMELESS)
gen_backend_v1_other() {
#else
gen_backend_v1_get() {
#endif
  static const gen_backend_v1 table = {
      kForm == kSmall ? 8 : static_cast<uint32_t>(sizeof(gen_backend_v1)),
      kForm == kOtherBuild ? "0 another" : gen::engine::backend_build_id(),
      "cuda",
      why_not,
      create,
      device_count,
      describe,
      create_allocator,
      set_log,
      append};
  return &table;
}
