// SPDX-License-Identifier: Apache-2.0
// See memory_estimate.h.
#include "generate/memory_estimate.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "engine/host_memory.h"
#include "generate/session.h"

namespace gen::generate {
namespace {

/// Counts what is held. Large blocks are addresses only, however much memory the machine has, until
/// somebody writes to them, which a dry run does not.
class CountingReserve final : public Allocator {
 public:
  Status allocate(size_t bytes, size_t align, void** out) noexcept override {
    if (bytes < kReserved) {
      GEN_TRY(system_allocator().allocate(bytes, align, out));
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
      system_allocator().release(pointer, bytes);
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
      return error(Code::kOutOfMemory, "%zu bytes are more than this machine can address", bytes);
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

/// One session, filled with `context` tokens, 0 for all that it takes; the last one comes alone,
/// since a single row splits its attention in another way than a prompt.
Status fill(const Generator& generator, const CountingReserve& memory, int32_t context,
            MemoryEstimate* estimate) {
  GEN_ASSIGN(const auto session, generator.new_session());
  if (context == 0) context = generator.max_seq_len();
  const std::vector<int32_t> tokens(static_cast<size_t>(std::max(1, context - 2)), 0);
  Prompt prompt;
  prompt.tokens = tokens;
  CallParams params;
  params.stops.max_new_tokens = 2;
  params.stops.ignore_eos = true;  // without logits any token is chosen
  std::optional<GenResult> result;
  GEN_TRY(session->generate(prompt, params, nullptr, nullptr, &result));
  estimate->cache = session->cache().memory().resident;
  estimate->workspace = memory.live() - estimate->weights - estimate->cache;
  return {};
}

}  // namespace

Result<MemoryEstimate> estimate_memory(const DryLoad& load, const CacheChoice& choice,
                                       const GeneratorOptions& options) {
  MemoryEstimate estimate;
  const auto memory = std::make_shared<CountingReserve>();
  engine::HostMemory caches(*memory);  // outlives what is made of it
  GEN_ASSIGN(const ModelInUse in_use, load(memory));
  estimate.weights = memory->live();
  const size_t load_peak = memory->peak();
  CacheChoice chosen = choice;
  GeneratorOptions dry = options;
  dry.memory = &caches;
  dry.metrics = nullptr;
  dry.tracer = nullptr;
  size_t tiers = 0;
  int32_t context = 0;
  if (choice.tiered.has_value()) {
    // A dry run would write blocks to a file to no purpose: the context is filled in memory, and
    // the tiers tell what they would hold of it.
    GEN_ASSIGN(const auto generator, create_generator(in_use, choice, dry));
    GEN_ASSIGN(const auto cache, generator->make_cache(generator->max_seq_len()));
    tiers = cache->most_resident();
    context = cache->capacity();
    chosen.tiered.reset();
  }
  GEN_ASSIGN(const auto generator, create_generator(in_use, chosen, dry));
  GEN_TRY(fill(*generator, *memory, context, &estimate));
  estimate.peak = memory->peak();
  if (choice.tiered.has_value()) {
    estimate.cache = tiers;
    estimate.peak = std::max(load_peak, estimate.weights + estimate.workspace + tiers);
  }
  GEN_ASSIGN(estimate.mapped, in_use.model->memory("mapped"));
  return estimate;
}

}  // namespace gen::generate
