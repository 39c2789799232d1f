// SPDX-License-Identifier: Apache-2.0
// memory_estimate.h of the C API.
#include <generate/memory_estimate.h>

#include <cstring>
#include <memory>
#include <utility>

#include "api/boundary/boundary.h"
#include "api/generate/handles.h"
#include "api/model/model_handle.h"
#include "generate/memory_estimate.h"
#include <generate/model.h>

struct gen_memory_estimate {
  gen::generate::MemoryEstimate figures;
  size_t file = 0;
};

namespace {

using gen::Code;
using gen::Status;
using gen::api::not_null;

using Estimate = gen::generate::MemoryEstimate;
using Figures = gen::generate::MemoryFigures;
constexpr struct {
  const char* name;
  Figures Estimate::*side;
  size_t Figures::*figure;
} kFigures[] = {
    {"weights", &Estimate::host, &Figures::weights},
    {"workspace", &Estimate::host, &Figures::workspace},
    {"cache", &Estimate::host, &Figures::cache},
    {"snapshots", &Estimate::host, &Figures::snapshots},
    {"peak", &Estimate::host, &Figures::peak},
    {"device_weights", &Estimate::device, &Figures::weights},
    {"device_workspace", &Estimate::device, &Figures::workspace},
    {"device_cache", &Estimate::device, &Figures::cache},
    {"device_snapshots", &Estimate::device, &Figures::snapshots},
    {"device_peak", &Estimate::device, &Figures::peak},
};

Status estimate_memory(const char* path, const gen_model_options& given, const gen_options& options,
                       gen_memory_estimate* estimate) {
  const auto load = [&](const std::shared_ptr<gen::Allocator>& memory,
                        const std::shared_ptr<const gen::engine::GpuTable>& device)
      -> gen::Result<gen::generate::DryModel> {
    gen_model_options dry = given;
    dry.allocator = memory;
    dry.gpu_allocator = device;
    dry.dry_run = true;
    dry.check_tensors = false;
    dry.callback = nullptr;
    GEN_ASSIGN(const auto model, gen::api::load_model(path, dry));
    const auto parts = model->shared.keep();
    estimate->file = parts->file_bytes;
    const auto in_use = gen::api::in_use(parts);
    GEN_ASSIGN(auto drafts, gen::api::draft_choice(options, *in_use.model));
    if (options.draft != nullptr) drafts.draft.model = gen::api::model_of(options.draft);
    GEN_ASSIGN(const auto head, gen::generate::chosen_head(drafts, in_use));
    gen::generate::GeneratorOptions inner = options.generator;
    inner.memory = &parts->engine->memory();
    GEN_ASSIGN(auto drafter, gen::generate::make_head_drafter(
                                 drafts, head, in_use, gen::api::cache_choice(options), inner));
    return gen::generate::DryModel{in_use, inner.memory, std::move(drafter)};
  };
  GEN_ASSIGN(estimate->figures,
             gen::generate::estimate_memory(load, given.device, gen::api::cache_choice(options),
                                            options.generator));
  return {};
}

}  // namespace

gen_status gen_estimate_memory(const char* path, const gen_model_options* model_options,
                               const gen_options* options, gen_memory_estimate** out,
                               gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return gen::api::guard(error, [&]() -> Status {
    GEN_TRY(not_null(path, "path"));
    GEN_TRY(not_null(out, "out"));
    const gen_model_options defaults;
    auto estimate = std::make_unique<gen_memory_estimate>();
    const gen_options plain;
    GEN_TRY(estimate_memory(path, model_options != nullptr ? *model_options : defaults,
                            options != nullptr ? *options : plain, estimate.get()));
    *out = estimate.release();
    return {};
  });
}

gen_status gen_memory_estimate_get(const gen_memory_estimate* estimate, const char* key,
                                   size_t* bytes, gen_error* error) {
  if (bytes != nullptr) *bytes = 0;
  return gen::api::guard(error, [&]() -> Status {
    GEN_TRY(not_null(estimate, "estimate"));
    GEN_TRY(not_null(key, "key"));
    GEN_TRY(not_null(bytes, "bytes"));
    for (const auto& row : kFigures) {
      if (std::strcmp(key, row.name) != 0) continue;
      *bytes = estimate->figures.*row.side.*row.figure;
      return {};
    }
    for (const auto& [name, value] : {std::pair{"mapped", estimate->figures.mapped},
                                      {"stream", estimate->figures.stream},
                                      {"file", estimate->file}}) {
      if (std::strcmp(key, name) != 0) continue;
      *bytes = value;
      return {};
    }
    return gen::error(
        Code::kInvalidArgument,
        "no memory figure \"%.40s\" (weights, workspace, cache, snapshots, peak, the same behind "
        "device_, mapped, stream, file)",
        key);
  });
}

void gen_memory_estimate_free(gen_memory_estimate* estimate) { delete estimate; }
