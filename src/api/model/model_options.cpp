// SPDX-License-Identifier: Apache-2.0
// model.h of the C API: the load options.
#include <generate/model.h>

#include <cstring>
#include <string>

#include "api/boundary/boundary.h"
#include "api/boundary/c_allocator.h"
#include "api/boundary/c_gpu_allocator.h"
#include "api/model/model_handle.h"
#include "api/boundary/option_table.h"
#include "api/boundary/run_handles.h"
#include "engine/backend/registry.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::kAnyMost;
using gen::api::not_null;
using gen::api::OptionRow;
using gen::api::SwitchOption;
using gen::api::TextOption;
using gen::api::WholeOption;
using O = gen_model_options;

std::string backend_names() {
  std::string names;
  for (const auto& row : gen::engine::engine_rows()) {
    names.append(names.empty() ? "" : ", ").append(row.name);
  }
  return names;
}

Status set_backend(O& o, const char* name) {
  GEN_ASSIGN(const auto* row, gen::engine::engine_row(name));
  if (const char* reason = row->why_not(); reason != nullptr) {
    return gen::error(Code::kUnsupported, "backend %s: %s", row->name, reason);
  }
  o.backend = row->name;
  return {};
}

constexpr OptionRow<O> kDevice = {
    "device", WholeOption<O>{[](O& o) -> int32_t& { return o.device; }, 0, kAnyMost},
    "number of the backend's device"};
std::string layers_range() { return "all, auto or a number"; }

using Layers = int32_t gen::model::DeviceLayers::*;

Status set_layers(O& o, const char* name, Layers which, int64_t layers) {
  GEN_TRY(gen::api::check_range(name, layers, GEN_GPU_LAYERS_AUTO, kAnyMost));
  o.on_device.*which = static_cast<int32_t>(layers);
  return {};
}

Status set_layers_text(O& o, const char* name, Layers which, const char* value) {
  if (std::strcmp(value, "all") == 0) return set_layers(o, name, which, GEN_GPU_LAYERS_ALL);
  if (std::strcmp(value, "auto") == 0) return set_layers(o, name, which, GEN_GPU_LAYERS_AUTO);
  auto layers = gen::api::parse_int(value);
  // -1 and -2 mean all and auto; the error message does not mention these numbers.
  if (!layers.ok() || *layers < GEN_GPU_LAYERS_AUTO) {
    return gen::error(Code::kInvalidArgument, "\"%.60s\" is not all, auto or a whole number from 0",
                      value);
  }
  return set_layers(o, name, which, *layers);
}

std::string layers_text(int32_t layers) {
  if (layers == GEN_GPU_LAYERS_ALL) return "all";
  if (layers == GEN_GPU_LAYERS_AUTO) return "auto";
  return std::to_string(layers);
}

Status add_adapter(O& o, const char* path) {
  if (*path == '\0') {
    o.adapters.clear();
  } else {
    o.adapters.emplace_back(path);
  }
  return {};
}

std::string joined_adapters(const O& o) {
  std::string out;
  for (const std::string& path : o.adapters) out += (out.empty() ? "" : "\n") + path;
  return out;
}

constexpr char kGpuLayers[] = "gpu_layers";
constexpr char kGpuExpertLayers[] = "gpu_expert_layers";
constexpr Layers kLayers = &gen::model::DeviceLayers::layers;
constexpr Layers kExperts = &gen::model::DeviceLayers::experts;
static_assert(GEN_GPU_LAYERS_ALL == gen::model::kAllLayers);
static_assert(GEN_GPU_LAYERS_AUTO == gen::model::kFittingLayers);

constexpr OptionRow<O> kThreads = {
    "threads",
    WholeOption<O>{[](O& o) -> int32_t& { return o.threads; }, 0, gen::ThreadPool::kMaxThreads},
    "CPU threads; 0: one per usable CPU"};
constexpr OptionRow<O> kMaxSeqLen = {
    "max_seq_len", WholeOption<O>{[](O& o) -> int32_t& { return o.max_seq_len; }, 0, kAnyMost},
    "longest context; 0: the model's, which is the maximum"};

const OptionRow<O> kRows[] = {
    {"backend", TextOption<O>{backend_names, set_backend, [](const O& o) { return o.backend; }},
     "engine that runs the model"},
    kDevice,
    {kGpuLayers,
     TextOption<O>{
         layers_range,
         [](O& o, const char* value) { return set_layers_text(o, kGpuLayers, kLayers, value); },
         [](const O& o) { return layers_text(o.on_device.layers); }},
     "last layers that run on the backend's device, the others on the CPU; auto: as many as it has "
     "memory for"},
    {kGpuExpertLayers,
     TextOption<O>{layers_range,
                   [](O& o, const char* value) {
                     return set_layers_text(o, kGpuExpertLayers, kExperts, value);
                   },
                   [](const O& o) { return layers_text(o.on_device.experts); }},
     "last layers on the device whose experts are there, too, the others' on the CPU; auto: as "
     "many "
     "as it has memory for"},
    kThreads,
    {"mmap", SwitchOption<O>{[](O& o) -> bool& { return o.use_mmap; }},
     "maps the file instead of reading it"},
    {"mlock", SwitchOption<O>{[](O& o) -> bool& { return o.lock; }},
     "locks the weights on the host in memory"},
    {"repack", SwitchOption<O>{[](O& o) -> bool& { return o.repack; }},
     "copies weights into the engine's layout, which is faster; 0: used as they are in the file"},
    kMaxSeqLen,
    {"check_tensors", SwitchOption<O>{[](O& o) -> bool& { return o.check_tensors; }},
     "checks every weight for NaN and infinity, which reads the whole file"},
    {"pre_tokenizer",
     TextOption<O>{[] { return std::string("a name as in tokenizer.ggml.pre"); },
                   [](O& o, const char* value) -> Status {
                     o.pre_tokenizer = value;
                     return {};
                   },
                   [](const O& o) { return o.pre_tokenizer; }},
     "how texts are split into words before merges, whatever the file says; empty: as it says"},
    {"adapter",
     TextOption<O>{[] { return std::string("a file as gen_adapter_load() takes it"); }, add_adapter,
                   joined_adapters},
     "an adapter that is loaded with the model, and named as its file is here; may be repeated, "
     "empty for none"},
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
  return with(options, error, [&](O& o) { return kDevice.set(o, device); });
}

gen_status gen_model_options_set_gpu_layers(gen_model_options* options, int32_t layers,
                                            gen_error* error) {
  return with(options, error, [&](O& o) { return set_layers(o, kGpuLayers, kLayers, layers); });
}

gen_status gen_model_options_set_gpu_expert_layers(gen_model_options* options, int32_t layers,
                                                   gen_error* error) {
  return with(options, error,
              [&](O& o) { return set_layers(o, kGpuExpertLayers, kExperts, layers); });
}

gen_status gen_model_options_set_threads(gen_model_options* options, int32_t threads,
                                         gen_error* error) {
  return with(options, error, [&](O& o) { return kThreads.set(o, threads); });
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

gen_status gen_model_options_set_gpu_allocator(gen_model_options* options,
                                               const gen_gpu_allocator* allocator,
                                               gen_error* error) {
  return with(options, error, [&](O& o) -> Status {
    gen::api::EngineGpu wrapped;
    if (allocator != nullptr) {
      GEN_ASSIGN(wrapped, gen::api::engine_gpu_allocator(*allocator));
    }
    o.gpu_allocator = std::move(wrapped.table);
    o.gpu_callbacks = std::move(wrapped.callbacks);
    return {};
  });
}

gen_status gen_model_options_set_mmap(gen_model_options* options, int32_t use_mmap,
                                      gen_error* error) {
  return with(options, error, [&](O& o) -> Status {
    o.use_mmap = use_mmap != 0;
    return {};
  });
}

gen_status gen_model_options_set_mlock(gen_model_options* options, int32_t lock, gen_error* error) {
  return with(options, error, [&](O& o) -> Status {
    o.lock = lock != 0;
    return {};
  });
}

gen_status gen_model_options_set_progress(gen_model_options* options,
                                          gen_progress_callback callback, void* user,
                                          gen_error* error) {
  return with(options, error, [&](O& o) -> Status {
    o.callback = callback;
    o.callback_user = user;
    return {};
  });
}

gen_status gen_model_options_set_max_seq_len(gen_model_options* options, int32_t tokens,
                                             gen_error* error) {
  return with(options, error, [&](O& o) { return kMaxSeqLen.set(o, tokens); });
}

gen_status gen_model_options_set_check_tensors(gen_model_options* options, int32_t check,
                                               gen_error* error) {
  return with(options, error, [&](O& o) -> Status {
    o.check_tensors = check != 0;
    return {};
  });
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
