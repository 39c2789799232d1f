// SPDX-License-Identifier: Apache-2.0
// base.h and error.h of the C API: versions, build, log, thread pools, cancel flags, backends.
#include <generate/base.h>
#include <generate/error.h>

#include "api/boundary/boundary.h"
#include "api/boundary/run_handles.h"
#include "base/json_text.h"
#include "api/boundary/option_table.h"
#include "base/cpu.h"
#include "base/log.h"
#include "cache/sequence/registry.h"
#include "engine/backend/registry.h"
#include "model/arch/registry.h"
#include "quant/format.h"
#include "tensor/dtype.h"

#define GEN_TEXT_INNER(x) #x
#define GEN_TEXT(x) GEN_TEXT_INNER(x)
#define GEN_VERSION_TEXT \
  GEN_TEXT(GEN_VERSION_MAJOR) "." GEN_TEXT(GEN_VERSION_MINOR) "." GEN_TEXT(GEN_VERSION_PATCH)

namespace {

using gen::Code;
using gen::json_quote;
using gen::Result;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;

const gen::engine::EngineRow* find_backend(const char* name) noexcept {
  if (name == nullptr) return nullptr;
  for (const auto& row : gen::engine::engine_rows()) {
    if (std::string_view(row.name) == name) return &row;
  }
  return nullptr;
}

template <typename Rows, typename Name>
std::string names_json(const Rows& rows, Name name) {
  std::string out = "[";
  for (const auto& row : rows) out += (out.size() > 1 ? "," : "") + json_quote(name(row));
  return out + "]";
}

Result<std::string> build_info() {
  GEN_ASSIGN(const gen::CpuLevel level, gen::chosen_cpu_level());
  return std::string("{\"version\":\"" GEN_VERSION_TEXT "\",\"abi\":" GEN_TEXT(GEN_ABI_VERSION)) +
         ",\"compiler\":" + json_quote(__VERSION__) +
         ",\"cpu\":" + json_quote(gen::cpu_level_name(level)) + ",\"backends\":" +
         names_json(gen::engine::engine_rows(), [](const auto& row) { return row.name; }) +
         ",\"weight_types\":" +
         names_json(gen::quant::formats(),
                    [](const auto& row) { return gen::dtype_name(row.type); }) +
         ",\"architectures\":" +
         names_json(gen::model::arch::architectures(), [](const auto* row) { return row->name; }) +
         ",\"kv\":" +
         names_json(gen::cache::cache_kinds(), [](const auto& row) { return row.name; }) + "}";
}

Result<std::string> cpu_device() {
  GEN_ASSIGN(const gen::CpuLevel level, gen::chosen_cpu_level());
  return "{\"name\":\"cpu\",\"level\":" + json_quote(gen::cpu_level_name(level)) +
         ",\"usable_cpus\":" + std::to_string(gen::usable_cpus()) +
         ",\"memory_bytes\":" + std::to_string(gen::machine_memory()) + "}";
}

}  // namespace

const char* gen_version(void) { return GEN_VERSION_TEXT; }

int32_t gen_abi_version(void) { return GEN_ABI_VERSION; }

gen_status gen_build_info(char* buf, size_t capacity, size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_ASSIGN(const std::string text, build_info());
    return gen::api::text_out(text, buf, capacity, n);
  });
}

const char* gen_status_name(gen_status status) {
  static constexpr const char* kNames[] = {"GEN_OK",
                                           "GEN_ERROR_INVALID_ARGUMENT",
                                           "GEN_ERROR_OUT_OF_MEMORY",
                                           "GEN_ERROR_IO",
                                           "GEN_ERROR_FORMAT",
                                           "GEN_ERROR_UNSUPPORTED",
                                           "GEN_ERROR_CACHE_FULL",
                                           "GEN_ERROR_POOL_EXHAUSTED",
                                           "GEN_ERROR_OUT_OF_RANGE",
                                           "GEN_ERROR_SEQUENCE",
                                           "GEN_ERROR_BUSY",
                                           "GEN_ERROR_CANCELLED",
                                           "GEN_ERROR_GRAMMAR",
                                           "GEN_ERROR_DEVICE",
                                           "GEN_ERROR_CONTEXT_FULL",
                                           "GEN_ERROR_STATE",
                                           "GEN_ERROR_MODEL",
                                           "GEN_ERROR_TOKENIZER",
                                           "GEN_ERROR_INTERNAL"};
  constexpr int32_t kCount = sizeof kNames / sizeof kNames[0];
  return status <= 0 && status > -kCount ? kNames[-status] : "GEN_ERROR_UNKNOWN";
}

void gen_log_set_callback(gen_log_callback callback, void* user) {
  gen::set_log_sink(callback, user);
}

void gen_log_set_level(int32_t level) {
  const int32_t clamped = level < GEN_LOG_OFF ? GEN_LOG_OFF : level;
  gen::set_log_level(static_cast<gen::LogLevel>(clamped > GEN_LOG_DEBUG ? GEN_LOG_DEBUG : clamped));
}

gen_status gen_thread_pool_new(int32_t threads, const int32_t* cpus, size_t n_cpus,
                               gen_thread_pool** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    if (n_cpus > 0) GEN_TRY(not_null(cpus, "cpus"));
    auto handle = std::make_unique<gen_thread_pool>();
    GEN_ASSIGN(handle->pool, gen::ThreadPool::create(threads, {cpus, n_cpus}));
    *out = handle.release();
    return {};
  });
}

void gen_thread_pool_free(gen_thread_pool* pool) { gen::api::end_handle(pool); }

gen_status gen_cancel_new(gen_cancel** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    auto handle = std::make_unique<gen_cancel>();
    handle->flag = std::make_shared<gen::CancelFlag>();
    *out = handle.release();
    return {};
  });
}

void gen_cancel_fire(gen_cancel* cancel) {
  if (cancel != nullptr) cancel->flag->fire();
}

void gen_cancel_reset(gen_cancel* cancel) {
  if (cancel != nullptr) cancel->flag->reset();
}

void gen_cancel_free(gen_cancel* cancel) { delete cancel; }

int32_t gen_backend_count(void) { return static_cast<int32_t>(gen::engine::engine_rows().size()); }

const char* gen_backend_name(int32_t index) {
  if (index < 0 || index >= gen_backend_count()) return nullptr;
  return gen::engine::engine_rows()[static_cast<size_t>(index)].name;
}

gen_status gen_backend_available(const char* name, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(name, "name"));
    GEN_ASSIGN(const auto* row, gen::engine::engine_row(name));
    const char* reason = row->why_not();
    if (reason != nullptr) {
      return gen::error(Code::kUnsupported, "backend %s: %s", row->name, reason);
    }
    return {};
  });
}

int32_t gen_device_count(const char* backend) {
  const auto* row = find_backend(backend);
  return row != nullptr ? row->device_count() : 0;
}

gen_status gen_device_describe(const char* backend, int32_t device, char* buf, size_t capacity,
                               size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(backend, "backend"));
    GEN_ASSIGN(const auto* row, gen::engine::engine_row(backend));
    if (const int32_t count = gen_device_count(backend); device < 0 || device >= count) {
      return gen::error(Code::kOutOfRange, "device %d of backend %s, which has %d", device, backend,
                        count);
    }
    GEN_ASSIGN(const std::string text,
               row->describe != nullptr ? row->describe(device) : cpu_device());
    return gen::api::text_out(text, buf, capacity, n);
  });
}
