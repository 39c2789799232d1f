// SPDX-License-Identifier: Apache-2.0
// gen_adapter_*: adapters of a model, by name.
#include <generate/adapter.h>

#include <memory>
#include <string>
#include <utility>

#include "api/boundary/boundary.h"
#include "api/boundary/option_table.h"
#include "api/model/model_handle.h"
#include "base/io_error.h"
#include "model/adapter_registry.h"
#include "model/gguf/gguf_file.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::model::AdapterRegistry;

/// Null for models that take no adapters.
AdapterRegistry* registry_of(const gen::api::ModelParts& parts) {
  return parts.loaded->model->adapters();
}

Status no_adapters() { return gen::error(Code::kUnsupported, "this model takes no adapters"); }

Status load(const gen::api::ModelParts& parts, const char* path, const char* name, float scale) {
  AdapterRegistry* const registry = registry_of(parts);
  if (registry == nullptr) return no_adapters();
  GEN_TRY(AdapterRegistry::check(name, scale));
  GEN_ASSIGN(const auto file, gen::gguf::GgufFile::open(path, gen::MappedFile::Mode::kMap));
  GEN_ASSIGN(auto adapter, parts.loaded->model->make_adapter(*file));
  return registry->put(name, scale, std::move(adapter));
}

}  // namespace

Status gen::api::load_adapter(const ModelParts& parts, const char* path, const char* name,
                              float scale) {
  const Status loaded = load(parts, path, name, scale);
  return loaded.ok() ? loaded : in_file(path, loaded);
}

gen_status gen_adapter_load(const gen_model* model, const char* path, const char* name, float scale,
                            gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(model, "model"));
    GEN_TRY(not_null(path, "path"));
    GEN_TRY(not_null(name, "name"));
    GEN_ASSIGN(const auto used, model->shared.enter("the model"));
    return gen::api::load_adapter(*used, path, name, scale);
  });
}

gen_status gen_adapter_unload(const gen_model* model, const char* name, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(model, "model"));
    GEN_TRY(not_null(name, "name"));
    GEN_ASSIGN(const auto used, model->shared.enter("the model"));
    AdapterRegistry none;
    AdapterRegistry* const registry = registry_of(*used);
    return (registry != nullptr ? *registry : none).remove(name);
  });
}

gen_status gen_adapter_set_budget(const gen_model* model, int32_t max_memory_mb, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(model, "model"));
    GEN_TRY(gen::api::check_range("adapters' budget of MiB", max_memory_mb, 0, gen::api::kAnyMost));
    GEN_ASSIGN(const auto used, model->shared.enter("the model"));
    AdapterRegistry* const registry = registry_of(*used);
    if (registry == nullptr) return no_adapters();
    registry->set_budget(static_cast<size_t>(max_memory_mb) << 20);
    return {};
  });
}

size_t gen_adapter_count(const gen_model* model) {
  if (!gen::api::usable(model)) return 0;
  const AdapterRegistry* const registry = registry_of(model->shared.peek());
  return registry != nullptr ? registry->size() : 0;
}

gen_status gen_adapter_name(const gen_model* model, size_t index, char* buf, size_t capacity,
                            size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(model, "model"));
    GEN_ASSIGN(const auto used, model->shared.enter("the model"));
    const AdapterRegistry* const registry = registry_of(*used);
    const std::string name = registry != nullptr ? registry->name(index) : std::string();
    if (name.empty()) {
      return gen::error(Code::kOutOfRange, "adapter %zu of %zu", index,
                        registry != nullptr ? registry->size() : 0);
    }
    return gen::api::text_out(name, buf, capacity, n);
  });
}
