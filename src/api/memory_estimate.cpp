// SPDX-License-Identifier: Apache-2.0
// memory_estimate.h: a load and a session in a dry run (EngineOptions::dry_run) on memory that is
// reserved and counted but never touched, so the figures come from the code that will allocate.
#include <generate/memory_estimate.h>

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "api/boundary.h"
#include "api/handles.h"
#include "api/model_handle.h"
#include "base/allocator.h"
#include <generate/model.h>

struct gen_memory_estimate {
  size_t weights = 0;
  size_t workspace = 0;
  size_t cache = 0;
  size_t peak = 0;
  size_t mapped = 0;
  size_t file = 0;
};

namespace {

using gen::Code;
using gen::Status;
using gen::api::not_null;

constexpr struct {
  const char* name;
  size_t gen_memory_estimate::*figure;
} kFigures[] = {
    {"weights", &gen_memory_estimate::weights}, {"workspace", &gen_memory_estimate::workspace},
    {"cache", &gen_memory_estimate::cache},     {"peak", &gen_memory_estimate::peak},
    {"mapped", &gen_memory_estimate::mapped},   {"file", &gen_memory_estimate::file},
};

/// Counts what is held. Large blocks are addresses only, however much memory the machine has, until
/// somebody writes to them, which a dry run does not.
class CountingReserve final : public gen::Allocator {
 public:
  Status allocate(size_t bytes, size_t align, void** out) noexcept override {
    if (bytes < kReserved) {
      GEN_TRY(gen::system_allocator().allocate(bytes, align, out));
    } else {
      GEN_TRY(reserve(bytes, align, out));
    }
    const size_t now = live_.fetch_add(bytes) + bytes;
    size_t peak = peak_.load();
    while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
    }
    return {};
  }
  void release(void* pointer, size_t bytes) noexcept override {
    live_.fetch_sub(bytes);
    if (bytes < kReserved) {
      gen::system_allocator().release(pointer, bytes);
    } else {
      munmap(pointer, bytes);
    }
  }
  [[nodiscard]] size_t live() const noexcept { return live_; }
  [[nodiscard]] size_t peak() const noexcept { return peak_; }

 private:
  static constexpr size_t kReserved = size_t{1} << 20;

  static Status reserve(size_t bytes, size_t align, void** out) noexcept {
    const size_t all = bytes + align;
    void* mapped = all < bytes ? MAP_FAILED
                               : mmap(nullptr, all, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
      return gen::error(Code::kOutOfMemory, "%zu bytes are more than this machine can address",
                        bytes);
    }
    auto* begin = static_cast<std::byte*>(mapped);
    const size_t past = reinterpret_cast<uintptr_t>(begin) % align;
    const size_t skipped = past == 0 ? 0 : align - past;
    // Mappings are cut at pages, and `align` is no smaller or divides one.
    if (skipped > 0) munmap(begin, skipped);
    *out = begin + skipped;
    const size_t page = 4096;
    const size_t end = (skipped + bytes + page - 1) / page * page;
    if (end < all) munmap(begin + end, all - end);
    return {};
  }

  std::atomic<size_t> live_{0};
  std::atomic<size_t> peak_{0};
};

/// A dry run would write blocks to a file to no purpose: the context is filled in memory, and the
/// tiers tell what they would hold of it.
Status keep_in_memory(const gen_model& model, gen_options* options, size_t* tiers,
                      int32_t* context) {
  GEN_ASSIGN(const auto generator, gen::api::create_generator(model, *options));
  GEN_ASSIGN(const auto cache, generator->shared.peek().make_cache(
                               generator->shared.peek().max_seq_len()));
  *tiers = cache->most_resident();
  *context = cache->capacity();
  options->tiered = nullptr;
  return {};
}

/// One session, filled with `context` tokens, 0 for all that it takes; the last one comes alone,
/// since a single row splits its attention in another way than a prompt.
Status fill(const gen_generator& generator, const CountingReserve& memory, int32_t context,
            gen_memory_estimate* estimate) {
  GEN_ASSIGN(const auto session, generator.shared.peek().new_session());
  if (context == 0) context = generator.shared.peek().max_seq_len();
  const std::vector<int32_t> tokens(static_cast<size_t>(std::max(1, context - 2)), 0);
  gen::generate::Prompt prompt;
  prompt.tokens = tokens;
  gen::generate::CallParams params;
  params.stops.max_new_tokens = 2;
  params.stops.ignore_eos = true;  // without logits any token is chosen
  std::optional<gen::generate::GenResult> result;
  GEN_TRY(session->generate(prompt, params, nullptr, nullptr, &result));
  estimate->cache = session->cache().memory().resident;
  estimate->workspace = memory.live() - estimate->weights - estimate->cache;
  return {};
}

Status estimate_memory(const char* path, const gen_model_options& given, const gen_options* options,
                       gen_memory_estimate* estimate) {
  const auto memory = std::make_shared<CountingReserve>();
  gen_model_options dry = given;
  dry.allocator = memory;
  dry.dry_run = true;
  dry.check_tensors = false;
  dry.progress = nullptr;
  GEN_ASSIGN(const auto model, gen::api::load_model(path, dry));
  gen_options chosen = options != nullptr ? *options : gen_options();
  chosen.metrics = nullptr;  // nothing happens that the host wants to hear of
  chosen.trace = nullptr;
  estimate->weights = memory->live();
  const size_t load_peak = memory->peak();
  size_t tiers = 0;
  int32_t context = 0;
  const bool tiered = chosen.tiered != nullptr;
  if (tiered) GEN_TRY(keep_in_memory(*model, &chosen, &tiers, &context));
  GEN_ASSIGN(const auto generator, gen::api::create_generator(*model, chosen));
  GEN_TRY(fill(*generator, *memory, context, estimate));
  estimate->peak = memory->peak();
  if (tiered) {
    estimate->cache = tiers;
    estimate->peak = std::max(load_peak, estimate->weights + estimate->workspace + tiers);
  }
  GEN_ASSIGN(estimate->mapped, model->shared.peek().loaded->model->memory("mapped"));
  estimate->file = model->shared.peek().file_bytes;
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
    GEN_TRY(estimate_memory(path, model_options != nullptr ? *model_options : defaults, options,
                            estimate.get()));
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
      *bytes = estimate->*row.figure;
      return {};
    }
    return gen::error(Code::kInvalidArgument,
                      "no memory figure \"%.40s\" (weights, workspace, cache, peak, mapped, file)",
                      key);
  });
}

void gen_memory_estimate_free(gen_memory_estimate* estimate) { delete estimate; }
