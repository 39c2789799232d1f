// SPDX-License-Identifier: Apache-2.0
// See memory_estimate.h.
#include "generate/memory_estimate.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
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

/// What a call asks for that fills a session.
struct Filling {
  bool samples = true;
  bool drafts = false;
};

/// Fills one session with `context` tokens (0: its maximum, or what a pool holds). The last token
/// is evaluated alone, because a single row splits its attention differently from a prompt. With
/// drafts there are two whole ones before it: a state keeps the rows of the last two passes.
Result<std::shared_ptr<Session>> filled(const Generator& generator, int32_t context,
                                        Filling filling) {
  GEN_ASSIGN(auto session, generator.new_session());
  if (context == 0) context = session->cache().room();
  const int32_t said = 2 + (filling.drafts ? 2 * (generator.drafter()->max_rows() + 1) : 0);
  const std::vector<int32_t> tokens(static_cast<size_t>(std::max(1, context - said)), 0);
  Prompt prompt;
  prompt.tokens = tokens;
  CallParams params;
  if (!filling.samples) params.sampling.temperature = 0.0;
  params.stops.max_new_tokens = std::min(context, said);
  params.stops.ignore_eos = true;  // a dry run has no logits: any token may be sampled
  std::optional<GenResult> result;
  GEN_TRY(session->generate(prompt, params, nullptr, nullptr, &result));
  return session;
}

/// What a generator and its filled session have taken from one memory, and may still take: a cache
/// takes a part only when it is needed, such as copies of windows, and snapshots have a budget.
class Side {
 public:
  Side(const CountingReserve& reserve, bool in_host, MemoryFigures* figures) noexcept
      : reserve_(reserve), in_host_(in_host), live_(reserve.live()), figures_(*figures) {}

  void count(const cache::KvCache& cache) noexcept {
    const size_t on_device = cache.max_on_device();
    figures_.cache += in_host_ ? cache.max_resident() - on_device : on_device;
    const cache::KvCache::Taken taken = cache.taken(in_host_);
    taken_ += taken.now;
    later_ += taken.most - taken.now;
  }
  /// Empties the prefix cache: what that frees are the snapshots that it alone holds.
  void count(cache::StateSnapshots& snapshots, cache::PrefixCache* prefixes) noexcept {
    if (snapshots.in_host() != in_host_) return;
    const size_t budget = snapshots.list().budget();
    add_snapshots(snapshots.list().bytes(), budget, snapshots.bytes());
    if (prefixes == nullptr) return;
    // A stretch of positions has one, of at most twice the bytes.
    const size_t stretches = std::min(prefixes->max_size(), prefixes->pool().capacity());
    const size_t before = reserve_.live();
    prefixes->clear();
    add_snapshots(before - reserve_.live(),
                  std::min(kSharedSnapshotBudgets * budget, stretches * 2 * snapshots.bytes()),
                  snapshots.bytes());
  }
  void tell() noexcept {
    figures_.workspace = live_ - figures_.weights - taken_;
    figures_.peak = reserve_.peak() + later_;
  }

 private:
  // Those that there are by now are part of the budget, which may hold more.
  void add_snapshots(size_t now, size_t budget, size_t each) noexcept {
    const size_t most = std::max(budget / each * each, now);
    figures_.snapshots += most;
    taken_ += now;
    later_ += most - now;
  }

  const CountingReserve& reserve_;
  const bool in_host_;
  const size_t live_;
  MemoryFigures& figures_;
  size_t taken_ = 0;
  size_t later_ = 0;
};

void tell(const Generator& generator, const Session& session, const Reserves& reserves,
          MemoryEstimate* estimate) {
  std::array sides = {Side(reserves.host, true, &estimate->host),
                      Side(reserves.device.memory(), false, &estimate->device)};
  for (Side& side : sides) {
    side.count(session.cache());
    if (session.drafts() == nullptr) continue;
    for (const cache::KvCache* const of_drafts : session.drafts()->own_caches()) {
      side.count(*of_drafts);
    }
  }
  for (Side& side : sides) {
    if (session.keeps_snapshots() && session.snapshots() != nullptr) {
      side.count(*session.snapshots(), generator.prefix_cache());
    }
    side.tell();
  }
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
  // Answers that sample and those that do not ask passes for different results.
  std::vector<Filling> fillings = {{.samples = false}, {.samples = true}};
  if (dry.drafter != nullptr) fillings.push_back({.drafts = true});
  for (const Filling& filling : fillings) {
    estimate.host = {.weights = estimate.host.weights};
    estimate.device = {.weights = estimate.device.weights};
    GEN_ASSIGN(const auto generator, create_generator(model.in_use, chosen, dry));
    GEN_ASSIGN(const auto session, filled(*generator, context, filling));
    tell(*generator, *session, *reserves, &estimate);
  }
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
