// SPDX-License-Identifier: Apache-2.0
// See memory_estimate.h.
#include "generate/memory_estimate.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "generate/loop/session.h"
#include "generate/request/call_params.h"
#include "generate/request/result.h"

namespace gen::generate {
namespace {

/// Counts allocated bytes. Large blocks reserve address space only, which takes no memory until it
/// is written; a dry run does not write it.
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
    // Mappings are cut at page borders; `align` is a multiple of the page size or divides it.
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

/// Device memory, as address space only, and pinned host memory.
class DeviceReserve {
 public:
  DeviceReserve(int32_t device, CountingReserve& host) : host_(host) {
    table_.struct_size = sizeof table_;
    table_.user = this;
    table_.allocate = [](void* self, size_t bytes, void** out) {
      auto& of = *static_cast<DeviceReserve*>(self);
      return of.take(of.memory_, bytes, out);
    };
    table_.release = [](void* self, void* at) {
      auto& of = *static_cast<DeviceReserve*>(self);
      return of.give_back(of.memory_, at);
    };
    table_.copy = [](void*, void*, const void*, size_t, int32_t) { return 0; };
    table_.device = device;
    table_.allocate_pinned = [](void* self, size_t bytes, void** out) {
      auto& of = *static_cast<DeviceReserve*>(self);
      return of.take(of.host_, bytes, out);
    };
    table_.release_pinned = [](void* self, void* at) {
      auto& of = *static_cast<DeviceReserve*>(self);
      return of.give_back(of.host_, at);
    };
  }

  [[nodiscard]] const engine::GpuTable& table() const noexcept { return table_; }
  [[nodiscard]] const CountingReserve& memory() const noexcept { return memory_; }

 private:
  static constexpr size_t kAlign = 256;

  int32_t take(CountingReserve& from, size_t bytes, void** out) noexcept {
    const std::lock_guard lock(mutex_);
    try {
      if (const Status status = from.allocate(bytes, kAlign, out); !status.ok()) {
        return static_cast<int32_t>(status.code());
      }
      sizes_.emplace(*out, bytes);
      return 0;
    } catch (const std::bad_alloc&) {
      from.release(*out, bytes);
      return static_cast<int32_t>(Code::kOutOfMemory);
    }
  }
  int32_t give_back(CountingReserve& to, void* at) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = sizes_.find(at);
    if (found == sizes_.end()) return static_cast<int32_t>(Code::kInvalidArgument);
    to.release(at, found->second);
    sizes_.erase(found);
    return 0;
  }

  CountingReserve memory_;
  CountingReserve& host_;
  std::mutex mutex_;
  std::unordered_map<void*, size_t> sizes_;
  engine::GpuTable table_ = {};
};

struct Reserves {
  CountingReserve host;
  DeviceReserve device;

  explicit Reserves(int32_t number) : device(number, host) {}
};

/// Fills one session with `context` tokens (0: its maximum, or what a pool holds). The last token
/// is evaluated alone, because a single row splits its attention differently from a prompt. With a
/// drafter there is a whole draft before it.
Status fill(const Generator& generator, const Reserves& reserves, int32_t context,
            MemoryEstimate* estimate) {
  GEN_ASSIGN(const auto session, generator.new_session());
  if (context == 0) context = session->cache().room();
  const Drafter* const drafter = generator.drafter();
  const int32_t said = 2 + (drafter != nullptr ? drafter->max_rows() + 1 : 0);
  const std::vector<int32_t> tokens(static_cast<size_t>(std::max(1, context - said)), 0);
  Prompt prompt;
  prompt.tokens = tokens;
  CallParams params;
  params.stops.max_new_tokens = std::min(context, said);
  params.stops.ignore_eos = true;  // a dry run has no logits: any token may be sampled
  std::optional<GenResult> result;
  GEN_TRY(session->generate(prompt, params, nullptr, nullptr, &result));
  MemoryFigures& host = estimate->host;
  MemoryFigures& device = estimate->device;
  // Those that there are by now are part of the budget, which may hold more.
  cache::StateSnapshots* const kept = session->keeps_snapshots() ? session->snapshots() : nullptr;
  size_t snapshots = 0;
  if (kept != nullptr) {
    MemoryFigures& side = kept->in_host() ? host : device;
    snapshots = kept->list().bytes();
    side.snapshots = std::max(kept->list().budget() / kept->bytes() * kept->bytes(), snapshots);
  }
  const auto now = [&](const MemoryFigures& side) { return side.snapshots > 0 ? snapshots : 0; };
  // A cache takes a part only when it is needed, such as copies of windows.
  size_t later = 0;
  size_t device_later = 0;
  const auto count = [&](const cache::KvCache& cache) {
    const size_t on_device = cache.max_on_device();
    const size_t in_host = cache.max_resident() - on_device;
    device.cache += on_device;
    host.cache += in_host;
    device_later += on_device - cache.on_device();
    later += in_host - (cache.memory().resident - cache.on_device());
  };
  count(session->cache());
  if (session->drafts() != nullptr) {
    for (const cache::KvCache* const of_drafts : session->drafts()->own_caches()) {
      count(*of_drafts);
    }
  }
  host.workspace = reserves.host.live() + later - host.weights - host.cache - now(host);
  device.workspace =
      reserves.device.memory().live() + device_later - device.weights - device.cache - now(device);
  host.peak = reserves.host.peak() + later + host.snapshots - now(host);
  device.peak = reserves.device.memory().peak() + device_later + device.snapshots - now(device);
  return {};
}

}  // namespace

Result<MemoryEstimate> estimate_memory(const DryLoad& load, int32_t device,
                                       const CacheChoice& choice, const GeneratorOptions& options) {
  MemoryEstimate estimate;
  const auto reserves = std::make_shared<Reserves>(device);
  const CountingReserve& on_device = reserves->device.memory();
  GEN_ASSIGN(const DryModel model,
             load({reserves, &reserves->host}, {reserves, &reserves->device.table()}));
  estimate.host.weights = reserves->host.live();
  estimate.device.weights = on_device.live();
  const size_t load_peak = reserves->host.peak();
  const size_t device_load_peak = on_device.peak();
  CacheChoice chosen = choice;
  GeneratorOptions dry = options;
  dry.memory = model.memory;
  dry.metrics = nullptr;
  dry.tracer = nullptr;
  dry.drafter = model.drafter;
  dry.draft_policy = {};  // as many as there may be
  size_t tiers = 0;
  size_t device_tiers = 0;
  int32_t context = 0;
  // Without keys and values there is nothing in the tiers, and all that a fill takes counts.
  const bool tiered = choice.tiered.has_value() && !model.in_use.model->layer_shapes().empty();
  if (tiered) {
    // A dry run need not write blocks to a file: the context is filled in memory, and the size of
    // the tiers is computed.
    GEN_ASSIGN(const auto generator, create_generator(model.in_use, choice, dry));
    GEN_ASSIGN(const auto cache, generator->make_cache(generator->max_seq_len()));
    device_tiers = cache->max_on_device();
    tiers = cache->max_resident() - device_tiers;
    context = cache->capacity();
    chosen.tiered.reset();
  }
  GEN_ASSIGN(const auto generator, create_generator(model.in_use, chosen, dry));
  GEN_TRY(fill(*generator, *reserves, context, &estimate));
  if (tiered) {
    const auto with_tiers = [](MemoryFigures& figures, size_t cache, size_t peak) {
      figures.cache = cache;
      figures.peak =
          std::max(peak, figures.weights + figures.workspace + cache + figures.snapshots);
    };
    with_tiers(estimate.host, tiers, load_peak);
    with_tiers(estimate.device, device_tiers, device_load_peak);
  }
  GEN_ASSIGN(estimate.mapped, model.in_use.model->memory("mapped"));
  GEN_ASSIGN(estimate.stream, model.in_use.model->memory("stream"));
  return estimate;
}

}  // namespace gen::generate
