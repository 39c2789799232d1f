// SPDX-License-Identifier: Apache-2.0
// See compressed_cache.h. It consists of two plain caches: one holds the pooled entries followed by
// the rows of the current chunk, the other the rows of the last closed chunk. A chunk that a commit
// has filled is closed by the next plan.
#include "cache/sequence/compressed_cache.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "cache/sequence/cache_state.h"
#include "cache/sequence/cache_trial.h"
#include "cache/sequence/registry.h"
#include "cache/sequence/shift_entries.h"

namespace gen::cache {
namespace {

/// The rotation angles of the layers' keys. Owned, because a chunk may be pooled after the model is
/// gone.
class OwnAngles {
 public:
  explicit OwnAngles(std::span<const LayerShape> layers) : pointers_(turning_tables(layers)) {
    frequencies_.reserve(layers.size());
    tables_.reserve(layers.size());
    for (const engine::RopeTable*& table : pointers_) {
      if (table == nullptr) continue;
      tables_.push_back(*table);
      const float* const first = table->inv_freq;
      frequencies_.emplace_back(first, first + std::max(table->n_dims, 0) / 2);
      tables_.back().inv_freq = frequencies_.back().data();
      table = &tables_.back();
    }
  }
  [[nodiscard]] engine::RopeTables tables() const noexcept { return pointers_; }
  [[nodiscard]] size_t bytes() const noexcept {
    size_t bytes = pointers_.size() * sizeof(pointers_[0]);
    for (const engine::RopeTable& table : tables_) {
      bytes += sizeof(table) + static_cast<size_t>(table.n_dims / 2) * sizeof(float);
    }
    return bytes;
  }

 private:
  std::vector<std::vector<float>> frequencies_;
  std::vector<engine::RopeTable> tables_;
  std::vector<const engine::RopeTable*> pointers_;  // by layer
};

/// Invariants: entries_ holds chunks_ pooled entries followed by at most one chunk of rows; kept_
/// is empty or holds the rows of chunk chunks_ - 1.
class CompressedCache final : public KvCache {
 public:
  CompressedCache(std::unique_ptr<KvCache> entries, std::unique_ptr<KvCache> kept, int32_t capacity,
                  int32_t chunk, std::shared_ptr<const OwnAngles> angles)
      : entries_(std::move(entries)),
        kept_(std::move(kept)),
        capacity_(capacity),
        chunk_(chunk),
        angles_(std::move(angles)) {
    traits_.kind = "compressed";
    traits_.layout = "compressed";
    traits_.cuts_exactly = false;
    traits_.lossy = true;
    traits_.has_means = true;
    traits_.bytes_per_entry = entries_->traits().bytes_per_entry;
    const auto most = static_cast<size_t>(entries_->capacity());
    positions_.resize(most);
    log_weights_.resize(most, 0.0F);
  }

  [[nodiscard]] const CacheTraits& traits() const noexcept override { return traits_; }
  [[nodiscard]] std::span<const LayerShape> layers() const noexcept override {
    return entries_->layers();
  }
  [[nodiscard]] int32_t length() const noexcept override { return length_; }
  [[nodiscard]] int32_t entries() const noexcept override {
    const int32_t length = length_;
    return length / chunk_ + length % chunk_;
  }
  [[nodiscard]] EntryPositions positions_of(int32_t entry) const noexcept override {
    const int32_t chunks = length_ / chunk_;
    if (entry < chunks) return {entry * chunk_, chunk_};
    return {chunks * chunk_ + entry - chunks, 1};
  }
  [[nodiscard]] int32_t capacity() const noexcept override { return capacity_; }
  [[nodiscard]] int32_t plan_limit() const noexcept override { return chunk_ - length_ % chunk_; }

  [[nodiscard]] Result<CachePlan> plan(int32_t n) override {
    if (n < 0) return error(Code::kInvalidArgument, "a plan for %d entries", n);
    if (n > capacity_ - length()) {
      return error(Code::kCacheFull, "the cache holds %d of %d entries, no room for %d more",
                   length(), capacity_, n);
    }
    if (n > plan_limit()) {
      return error(Code::kInvalidArgument,
                   "%d rows reach over the end of a chunk of %d, %d may come", n, chunk_,
                   plan_limit());
    }
    GEN_TRY(settle());
    return entries_->plan(n);
  }

  [[nodiscard]] std::span<const engine::KvLayer> kv_layers() const noexcept override {
    return entries_->kv_layers();
  }
  [[nodiscard]] engine::EngineMemory& engine_memory(int32_t part) const noexcept override {
    return entries_->engine_memory(part);
  }
  [[nodiscard]] Result<engine::KvTables> tables(int32_t part, const CachePlan& plan) override {
    GEN_ASSIGN(engine::KvTables tables, entries_->tables(part, plan));
    for (int32_t e = chunks_; e < plan.start + plan.count; ++e) {
      positions_[static_cast<size_t>(e)] = chunks_ * chunk_ + (e - chunks_);
    }
    const auto held = static_cast<size_t>(plan.start + plan.count);
    tables.positions = std::span(positions_).first(held);
    tables.log_weights = std::span(log_weights_).first(held);
    return tables;
  }

  void commit(const CachePlan& plan, Kept kept) noexcept override {
    GEN_ASSERT(kept.rows == nullptr);  // entries have listed positions, which trees do not support
    entries_->commit(plan, kept);
    length_ += kept.n;
  }

  Status truncate(int32_t n) override {
    n = std::max(n, 0);
    if (n >= length_) return {};
    const int32_t full = n / chunk_;
    int32_t rest = n % chunk_;
    // A full chunk that is not closed yet is cut as if it were, so that the difference is not
    // visible.
    const bool open = filled();
    if (full == chunks_) {
      GEN_TRY(entries_->truncate(full + rest));
      if (open) GEN_TRY(kept_->truncate(0));
    } else {
      const bool kept = !open && full == chunks_ - 1 && kept_->length() == chunk_;
      if (!kept) rest = 0;
      if (rest > 0) GEN_TRY(bring_back(rest, full));
      GEN_TRY(entries_->truncate(full + rest));
      set_chunks(full);
      GEN_TRY(kept_->truncate(0));
    }
    length_ = full * chunk_ + rest;
    return {};
  }

  [[nodiscard]] MemoryUse memory() const noexcept override {
    const MemoryUse entries = entries_->memory();
    const MemoryUse kept = kept_->memory();
    MemoryUse use;
    use.resident = entries.resident + kept.resident;
    use.payload = entries.payload + kept.payload;
    use.metadata = sizeof(*this) + entries.metadata + kept.metadata +
                   positions_.size() * (sizeof(positions_[0]) + sizeof(log_weights_[0])) +
                   angles_->bytes();
    return use;
  }

  [[nodiscard]] Result<std::unique_ptr<KvCache>> fork() override {
    GEN_TRY(settle());
    GEN_ASSIGN(auto entries, entries_->fork());
    GEN_ASSIGN(auto kept, kept_->fork());
    auto copy = std::make_unique<CompressedCache>(std::move(entries), std::move(kept), capacity_,
                                                  chunk_, angles_);
    copy->set_chunks(chunks_);
    copy->length_ = length();
    return std::unique_ptr<KvCache>(std::move(copy));
  }

  Status save(StateWriter& to) override {
    GEN_TRY(settle());
    const auto header = [this](StateWriter& out) { return out.numbers({chunk_, length()}); };
    GEN_TRY(to.section(kPoolSection, 2 * sizeof(int32_t), header));
    GEN_TRY(save_entries(*entries_, to));
    return save_entries(*kept_, to);
  }

  Status restore(StateReader& from) override {
    if (!from.next_is(kPoolSection)) {
      return {Code::kInvalidArgument, "the state is not of a compressed cache"};
    }
    GEN_ASSIGN(const SavedChunks saved, read_chunks(from));
    GEN_TRY(from.finish());
    if (saved.chunk != chunk_) {
      return error(Code::kInvalidArgument, "the state has chunks of %d, the cache of %d",
                   saved.chunk, chunk_);
    }
    if (saved.positions > capacity_) {
      return error(Code::kCacheFull, "a state of %d positions for a cache of at most %d",
                   saved.positions, capacity_);
    }
    GEN_TRY(check_entries(saved.entries, *entries_));
    GEN_TRY(kept_->truncate(0));
    GEN_TRY(check_entries(saved.kept, *kept_));
    CacheTrial rows(*kept_);  // undone if a later step fails
    GEN_TRY(restore_entries(saved.kept, *kept_));
    GEN_TRY(restore_entries(saved.entries, *entries_));
    static_cast<void>(rows.keep());
    set_chunks(saved.positions / chunk_);
    length_ = saved.positions;
    return {};
  }

 private:
  /// Whether a full chunk is not closed yet.
  [[nodiscard]] bool filled() const noexcept { return length_ / chunk_ > chunks_; }

  /// The first `n` entries are pooled chunks, each weighted by its number of positions.
  void set_chunks(int32_t n) noexcept {
    for (int32_t c = 0; c < std::max(n, chunks_); ++c) {
      const auto at = static_cast<size_t>(c);
      log_weights_[at] = c < n ? std::log(static_cast<float>(chunk_)) : 0.0F;
      if (c < n) positions_[at] = c * chunk_ + (chunk_ - 1) / 2;
    }
    chunks_ = n;
  }

  /// The committed entries of a plain cache and the entries of a plan.
  static Result<engine::KvEntries> entries_of(KvCache& cache, const CachePlan& plan) {
    GEN_ASSIGN(const engine::KvTables tables, cache.tables(0, plan));
    return engine::KvEntries{cache.kv_layers(), tables};
  }

  /// Appends rows [first, first + n) of one plain cache to another.
  static Status copy_rows(KvCache& from, int32_t first, int32_t n, KvCache& to) {
    GEN_ASSIGN(const CachePlan held, from.plan(0));
    GEN_ASSIGN(const CachePlan added, to.plan(n));
    GEN_ASSIGN(const engine::KvEntries source, entries_of(from, held));
    GEN_ASSIGN(const engine::KvEntries target, entries_of(to, added));
    const engine::KvRun run{first, added.start, n};
    GEN_TRY(to.engine_memory(0).run(engine::KvCopyArgs{source, target, {&run, 1}}));
    to.commit(added);
    return {};
  }

  /// Copies the first `n` kept rows to entries [at, at + n), over pooled entries. A failure changes
  /// nothing.
  Status bring_back(int32_t n, int32_t at) {
    GEN_ASSIGN(const CachePlan held, kept_->plan(0));
    GEN_ASSIGN(const CachePlan added, entries_->plan(std::max(at + n - entries_->length(), 0)));
    GEN_ASSIGN(const engine::KvEntries source, entries_of(*kept_, held));
    GEN_ASSIGN(const engine::KvEntries target, entries_of(*entries_, added));
    const engine::KvRun run{0, at, n};
    GEN_TRY(entries_->engine_memory(0).run(engine::KvCopyArgs{source, target, {&run, 1}}));
    entries_->commit(added);
    return {};
  }

  /// Pools a full chunk into one entry. After a failure it can be called again.
  Status settle() {
    if (!filled()) return {};
    GEN_TRY(kept_->truncate(0));
    GEN_TRY(copy_rows(*entries_, chunks_, chunk_, *kept_));
    GEN_ASSIGN(const CachePlan all, entries_->plan(0));
    GEN_ASSIGN(const engine::KvEntries entries, entries_of(*entries_, all));
    GEN_TRY(entries_->engine_memory(0).run(
        engine::KvPoolArgs{entries, angles_->tables(), chunks_, chunk_, chunks_}));
    GEN_TRY(entries_->truncate(chunks_ + 1));
    set_chunks(chunks_ + 1);
    return {};
  }

  std::unique_ptr<KvCache> entries_;
  std::unique_ptr<KvCache> kept_;
  int32_t capacity_;
  int32_t chunk_;
  std::shared_ptr<const OwnAngles> angles_;  // immutable, shared by forks
  int32_t chunks_ = 0;
  std::atomic<int32_t> length_ = 0;  // one writer; any thread may read it
  CacheTraits traits_;
  std::vector<int32_t> positions_;  // [capacity of entries_]
  std::vector<float> log_weights_;
};

}  // namespace

Result<std::unique_ptr<KvCache>> make_compressed_cache(std::span<const LayerShape> layers,
                                                       int32_t capacity, int32_t chunk,
                                                       engine::EngineMemory& memory) {
  if (chunk < 1) return error(Code::kInvalidArgument, "chunks of %d positions", chunk);
  if (capacity < 1) {
    return error(Code::kInvalidArgument, "cache capacity %d is below 1", capacity);
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    const bool turns = layers[i].rope != engine::RopeKind::kNone && layers[i].rope_dims > 0;
    if (turns && layers[i].rope_table == nullptr) {
      return error(
          Code::kInvalidArgument,
          "the keys of layer %zu cannot be rotated to other positions, so they cannot be averaged",
          i);
    }
    if (layers[i].window > 0 || layers[i].chunk > 0) {
      return error(Code::kUnsupported,
                   "layer %zu has a window or chunks, whose entries cannot be averaged", i);
    }
  }
  chunk = std::min(chunk, capacity);
  const int64_t most = int64_t{capacity} / chunk + chunk;
  if (most > std::numeric_limits<int32_t>::max()) {
    return error(Code::kInvalidArgument, "chunks of %d positions in a cache of %d", chunk,
                 capacity);
  }
  GEN_ASSIGN(auto entries, make_cache("fp32", layers, static_cast<int32_t>(most), memory));
  GEN_ASSIGN(auto kept, make_cache("fp32", layers, chunk, memory));
  auto angles = std::make_shared<const OwnAngles>(layers);
  return std::unique_ptr<KvCache>(std::make_unique<CompressedCache>(
      std::move(entries), std::move(kept), capacity, chunk, std::move(angles)));
}

}  // namespace gen::cache
