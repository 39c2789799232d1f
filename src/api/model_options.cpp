// SPDX-License-Identifier: Apache-2.0
// model.h of the C API: the load options.
#include <generate/model.h>

#include <limits>

#include "api/boundary.h"
#include "api/c_allocator.h"
#include "api/model_handle.h"
#include "api/option_table.h"
#include "engine/registry.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::api::OptionRow;
using O = gen_model_options;

Status in_range(int64_t value, int64_t low, int64_t high, const char* what) {
  if (value >= low && value <= high) return {};
  return gen::error(Code::kInvalidArgument, "%s %lld is outside [%lld, %lld]", what,
                    static_cast<long long>(value), static_cast<long long>(low),
                    static_cast<long long>(high));
}

Status set_backend(O& o, const char* name) {
  GEN_ASSIGN(const auto* row, gen::engine::engine_row(name));
  o.backend = row->name;
  return {};
}
Status set_device(O& o, int64_t value) {
  GEN_TRY(in_range(value, 0, std::numeric_limits<int32_t>::max(), "device"));
  o.device = static_cast<int32_t>(value);
  return {};
}
Status set_threads(O& o, int64_t value) {
  GEN_TRY(in_range(value, 1, gen::ThreadPool::kMostThreads, "threads"));
  o.threads = static_cast<int32_t>(value);
  return {};
}
Status set_max_seq_len(O& o, int64_t value) {
  GEN_TRY(in_range(value, 0, std::numeric_limits<int32_t>::max(), "max_seq_len"));
  o.max_seq_len = static_cast<int32_t>(value);
  return {};
}
Status set_mmap(O& o, bool value) {
  o.use_mmap = value;
  return {};
}
Status set_repack(O& o, bool value) {
  o.repack = value;
  return {};
}
Status set_check_tensors(O& o, bool value) {
  o.check_tensors = value;
  return {};
}

template <Status (*Set)(O&, int64_t)>
Status from_int(O& o, const char* text) {
  GEN_ASSIGN(const int64_t value, gen::api::parse_int(text));
  return Set(o, value);
}
template <Status (*Set)(O&, bool)>
Status from_bool(O& o, const char* text) {
  GEN_ASSIGN(const bool value, gen::api::parse_bool(text));
  return Set(o, value);
}
std::string bool_text(bool value) { return value ? "1" : "0"; }

const OptionRow<O> kRows[] = {
    {"backend", "string", "a name of gen_backend_name", "cpu", set_backend,
     [](const O& o) { return o.backend; }},
    {"device", "int", "0 and up", "0", from_int<set_device>,
     [](const O& o) { return std::to_string(o.device); }},
    {"threads", "int", "1 to 1024; one per usable CPU if not set", "0", from_int<set_threads>,
     [](const O& o) { return std::to_string(o.threads); }},
    {"mmap", "bool", "0 or 1", "1", from_bool<set_mmap>,
     [](const O& o) { return bool_text(o.use_mmap); }},
    {"repack", "bool", "0 or 1", "1", from_bool<set_repack>,
     [](const O& o) { return bool_text(o.repack); }},
    {"max_seq_len", "int", "0 and up; 0 is the model's own", "0", from_int<set_max_seq_len>,
     [](const O& o) { return std::to_string(o.max_seq_len); }},
    {"check_tensors", "bool", "0 or 1", "0", from_bool<set_check_tensors>,
     [](const O& o) { return bool_text(o.check_tensors); }},
};

template <typename F>
gen_status with(O* options, gen_error* error, F&& set) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return set(*options);
  });
}

}  // namespace

gen_status gen_model_options_new(gen_model_options** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    *out = new gen_model_options;
    return {};
  });
}

void gen_model_options_free(gen_model_options* options) { delete options; }

gen_status gen_model_options_set_backend(gen_model_options* options, const char* name,
                                         gen_error* error) {
  return with(options, error, [&](O& o) -> Status {
    GEN_TRY(not_null(name, "name"));
    return set_backend(o, name);
  });
}

gen_status gen_model_options_set_device(gen_model_options* options, int32_t device,
                                        gen_error* error) {
  return with(options, error, [&](O& o) { return set_device(o, device); });
}

gen_status gen_model_options_set_threads(gen_model_options* options, int32_t threads,
                                         gen_error* error) {
  return with(options, error, [&](O& o) { return set_threads(o, threads); });
}

gen_status gen_model_options_set_thread_pool(gen_model_options* options, gen_thread_pool* pool,
                                             gen_error* error) {
  return with(options, error, [&](O& o) -> Status {
    if (pool != nullptr) GEN_TRY(not_null(pool, "the thread pool"));
    o.pool = pool != nullptr ? pool->pool : nullptr;
    return {};
  });
}

gen_status gen_model_options_set_allocator(gen_model_options* options,
                                           const gen_allocator* allocator, gen_error* error) {
  return with(options, error, [&](O& o) -> Status {
    std::shared_ptr<gen::Allocator> wrapped;
    if (allocator != nullptr) {
      GEN_ASSIGN(wrapped, gen::api::wrap_allocator(*allocator));
    }
    o.allocator = std::move(wrapped);
    return {};
  });
}

gen_status gen_model_options_set_mmap(gen_model_options* options, int32_t use_mmap,
                                      gen_error* error) {
  return with(options, error, [&](O& o) { return set_mmap(o, use_mmap != 0); });
}

gen_status gen_model_options_set_progress(gen_model_options* options,
                                          gen_progress_callback callback, void* user,
                                          gen_error* error) {
  return with(options, error, [&](O& o) -> Status {
    o.progress = callback;
    o.progress_user = user;
    return {};
  });
}

gen_status gen_model_options_set_max_seq_len(gen_model_options* options, int32_t tokens,
                                             gen_error* error) {
  return with(options, error, [&](O& o) { return set_max_seq_len(o, tokens); });
}

gen_status gen_model_options_set_check_tensors(gen_model_options* options, int32_t check,
                                               gen_error* error) {
  return with(options, error, [&](O& o) { return set_check_tensors(o, check != 0); });
}

gen_status gen_model_options_set(gen_model_options* options, const char* key, const char* value,
                                 gen_error* error) {
  return with(options, error, [&](O& o) -> Status {
    GEN_TRY(not_null(key, "key"));
    GEN_TRY(not_null(value, "value"));
    return gen::api::set_by_name<O>(kRows, o, key, value);
  });
}

gen_status gen_model_options_describe(const gen_model_options* options, char* buf, size_t capacity,
                                      size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return gen::api::text_out(gen::api::describe_options<O>(kRows, *options), buf, capacity, n);
  });
}
