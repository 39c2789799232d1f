// SPDX-License-Identifier: Apache-2.0
// See compressed_cache.h. Two plain caches do the keeping: one holds the pooled entries and then
// the rows of the current chunk, the other the rows of the chunk closed last.
#include "cache/sequence/compressed_cache.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>
#include <vector>

#include "cache/sequence/cache_state.h"
#include "cache/sequence/host_view.h"
#include "cache/sequence/registry.h"
#include "engine/kv/codec.h"
#include "engine/rope.h"

namespace gen::cache {
namespace {

/// Invariants: entries_ holds chunks_ pooled entries and cursor() < chunk_ rows; kept_ holds the
/// rows of chunk chunks_ - 1, or nothing.
class CompressedCache final : public KvCache {
 public:
  CompressedCache(std::unique_ptr<KvCache> entries, std::unique_ptr<KvCache> kept, int32_t capacity,
                  int32_t chunk, Allocator& allocator)
      : entries_(std::move(entries)),
        kept_(std::move(kept)),
        capacity_(capacity),
        chunk_(chunk),
        allocator_(allocator) {
    traits_.kind = "compressed";
    traits_.layout = "compressed";
    traits_.cuts_exactly = false;
    traits_.lossy = true;
    traits_.bytes_per_entry = entries_->traits().bytes_per_entry;
    const auto most = static_cast<size_t>(entries_->capacity());
    positions_.resize(most);
    log_weights_.resize(most, 0.0F);
    for (const LayerShape& shape : entries_->layers()) {
      const auto heads = static_cast<size_t>(shape.kv_heads);
      const auto k_dim = static_cast<size_t>(shape.k_dim);
      const auto v_dim = static_cast<size_t>(shape.v_dim);
      sums_.resize(std::max({sums_.size(), k_dim, v_dim}));
      keys_.resize(std::max(keys_.size(), heads * k_dim));
      values_.resize(std::max(values_.size(), heads * v_dim));
    }
    turned_.resize(sums_.size());
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
    if (entry < chunks_) return {entry * chunk_, chunk_};
    return {chunks_ * chunk_ + entry - chunks_, 1};
  }
  [[nodiscard]] int32_t capacity() const noexcept override { return capacity_; }
  [[nodiscard]] int32_t plan_limit() const noexcept override { return chunk_ - cursor(); }

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
    return entries_->plan(n);
  }

  [[nodiscard]] std::span<const engine::KvLayer> kv_layers() const noexcept override {
    return entries_->kv_layers();
  }
  [[nodiscard]] Result<CacheTables> tables(int32_t part, const CachePlan& plan) override {
    GEN_ASSIGN(CacheTables tables, entries_->tables(part, plan));
    for (int32_t e = chunks_; e < plan.start + plan.count; ++e) {
      positions_[static_cast<size_t>(e)] = chunks_ * chunk_ + (e - chunks_);
    }
    const auto held = static_cast<size_t>(plan.start + plan.count);
    tables.positions = std::span(positions_).first(held);
    tables.log_weights = std::span(log_weights_).first(held);
    return tables;
  }

  void commit(const CachePlan& plan, Kept kept) noexcept override {
    GEN_ASSERT(kept.rows ==
               nullptr);  // positions of its entries are listed, those of a tree are not
    entries_->commit(plan, kept);
    const int32_t length = length_ + kept.n;
    if (length / chunk_ > chunks_) close_chunk();
    length_ = length;
  }

  Status truncate(int32_t n) override {
    n = std::max(n, 0);
    if (n >= length_) return {};
    const int32_t full = n / chunk_;
    int32_t rest = n % chunk_;
    if (full == chunks_) {
      GEN_TRY(entries_->truncate(full + rest));
    } else {
      const bool kept = full == chunks_ - 1 && kept_->length() == chunk_;
      GEN_TRY(entries_->truncate(full));
      set_chunks(full);
      if (kept && rest > 0) copy_rows(*kept_, 0, rest, *entries_);
      if (!kept) rest = 0;
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
                   sums_.size() * 2 * sizeof(double) +
                   (keys_.size() + values_.size()) * sizeof(float);
    return use;
  }

  [[nodiscard]] Result<std::unique_ptr<KvCache>> fork() override {
    GEN_ASSIGN(auto entries, clone_cache(*entries_, allocator_));
    GEN_ASSIGN(auto kept, clone_cache(*kept_, allocator_));
    auto copy = std::make_unique<CompressedCache>(std::move(entries), std::move(kept), capacity_,
                                                  chunk_, allocator_);
    copy->set_chunks(chunks_);
    copy->length_ = length();
    return std::unique_ptr<KvCache>(std::move(copy));
  }

  Status save(StateWriter& to) override {
    const auto header = [this](StateWriter& out) { return out.numbers({chunk_, length()}); };
    GEN_TRY(to.section(kPoolSection, 2 * sizeof(int32_t), header));
    GEN_TRY(save_entries(*entries_, to));
    return save_entries(*kept_, to);
  }

  Status restore(StateReader& from) override {
    if (!from.next_is(kPoolSection)) {
      return {Code::kInvalidArgument, "the state is not of a compressed cache"};
    }
    GEN_ASSIGN(StateSection header, from.section(kPoolSection));
    int32_t chunk = 0;
    int32_t length = 0;
    GEN_TRY(header.numbers({&chunk, &length}));
    GEN_TRY(header.expect(0));
    GEN_ASSIGN(const SavedEntries entries, read_entries(from));
    GEN_ASSIGN(const SavedEntries kept, read_entries(from));
    GEN_TRY(from.finish());
    if (chunk != chunk_) {
      return error(Code::kInvalidArgument, "the state has chunks of %d, the cache of %d", chunk,
                   chunk_);
    }
    if (length < 0 || entries.entries != length / chunk_ + length % chunk_ ||
        (kept.entries != 0 && (kept.entries != chunk_ || length < chunk_))) {
      return error(Code::kFormat, "%d entries and %d rows for %d positions in chunks of %d",
                   entries.entries, kept.entries, length, chunk_);
    }
    if (length > capacity_) {
      return error(Code::kCacheFull, "a state of %d positions for a cache of at most %d", length,
                   capacity_);
    }
    GEN_TRY(check_entries(entries, *entries_));
    GEN_TRY(kept_->truncate(0));
    GEN_TRY(check_entries(kept, *kept_));
    GEN_TRY(restore_entries(entries, *entries_));
    if (const Status status = restore_entries(kept, *kept_); !status.ok()) {
      GEN_TRY(entries_->truncate(0));
      return status;
    }
    set_chunks(length / chunk_);
    length_ = length;
    return {};
  }

 private:
  [[nodiscard]] int32_t cursor() const noexcept { return length_ - chunks_ * chunk_; }

  /// The first `n` entries are chunks, which count as often as they have positions.
  void set_chunks(int32_t n) noexcept {
    for (int32_t c = 0; c < std::max(n, chunks_); ++c) {
      const auto at = static_cast<size_t>(c);
      log_weights_[at] = c < n ? std::log(static_cast<float>(chunk_)) : 0.0F;
      if (c < n) positions_[at] = c * chunk_ + (chunk_ - 1) / 2;
    }
    chunks_ = n;
  }

  /// Appends rows [first, first + n) of one plain cache to another. Plain caches fail at nothing
  /// but capacity, which is there.
  static void copy_rows(KvCache& from, int32_t first, int32_t n, KvCache& to) noexcept {
    const CachePlan held = from.plan(0).value();
    const CachePlan added = to.plan(n).value();
    for (size_t i = 0; i < from.layers().size(); ++i) {
      const engine::KvView source = host_view(from, static_cast<int32_t>(i), held).value();
      const engine::KvView target = host_view(to, static_cast<int32_t>(i), added).value();
      engine::kv_copy(source.k, first, target.k, added.start, source.kv_heads, n);
      engine::kv_copy(source.v, first, target.v, added.start, source.kv_heads, n);
    }
    to.commit(added);
  }

  /// The rows behind the pooled entries become one more of these.
  void close_chunk() noexcept {
    static_cast<void>(kept_->truncate(0));
    copy_rows(*entries_, chunks_, chunk_, *kept_);
    const CachePlan all = entries_->plan(0).value();
    for (size_t i = 0; i < layers().size(); ++i) {
      const LayerShape& shape = layers()[i];
      const engine::KvView view = host_view(*entries_, static_cast<int32_t>(i), all).value();
      for (int32_t head = 0; head < shape.kv_heads; ++head) {
        pool(view.k, head, shape.rope_table, keys_.data() + int64_t{head} * shape.k_dim);
        pool(view.v, head, nullptr, values_.data() + int64_t{head} * shape.v_dim);
      }
      engine::kv_put(view.k, chunks_, shape.kv_heads, keys_.data());
      engine::kv_put(view.v, chunks_, shape.kv_heads, values_.data());
    }
    static_cast<void>(entries_->truncate(chunks_ + 1));
    set_chunks(chunks_ + 1);
  }

  /// The mean of a head's rows in the current chunk. With a table each row is turned from where it
  /// stands to the middle of the chunk: what it would be had it come there.
  void pool(const engine::KvSide& side, int32_t head, const engine::RopeTable* table, float* out) {
    const auto n = static_cast<size_t>(side.head_dim);
    std::fill_n(sums_.begin(), n, 0.0);
    for (int32_t r = 0; r < chunk_; ++r) {
      engine::kv_get(side, chunks_ + r, head, out);
      std::copy_n(out, n, turned_.begin());
      if (table != nullptr) engine::rope_turn(*table, 0.5 * (chunk_ - 1) - r, turned_.data());
      for (size_t d = 0; d < n; ++d) sums_[d] += turned_[d];
    }
    for (size_t d = 0; d < n; ++d) out[d] = static_cast<float>(sums_[d] / chunk_);
  }

  std::unique_ptr<KvCache> entries_;
  std::unique_ptr<KvCache> kept_;
  int32_t capacity_;
  int32_t chunk_;
  Allocator& allocator_;
  int32_t chunks_ = 0;
  std::atomic<int32_t> length_ = 0;  // one writer; a length may be asked from any thread
  CacheTraits traits_;
  std::vector<int32_t> positions_;  // [capacity of entries_]
  std::vector<float> log_weights_;
  // Scratch of pooling: a head, a row of all heads.
  std::vector<double> sums_;
  std::vector<double> turned_;
  std::vector<float> keys_;
  std::vector<float> values_;
};

}  // namespace

Result<std::unique_ptr<KvCache>> make_compressed_cache(std::span<const LayerShape> layers,
                                                       int32_t capacity, int32_t chunk,
                                                       Allocator& allocator) {
  if (chunk < 1) return error(Code::kInvalidArgument, "chunks of %d positions", chunk);
  if (capacity < 1) {
    return error(Code::kInvalidArgument, "cache capacity %d is below 1", capacity);
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    const bool turns = layers[i].rope != engine::RopeKind::kNone && layers[i].rope_dims > 0;
    if (turns && layers[i].rope_table == nullptr) {
      return error(Code::kInvalidArgument,
                   "layer %zu turns its keys by a table that is not known; they cannot be pooled",
                   i);
    }
    if (layers[i].window > 0 || layers[i].chunk > 0) {
      return error(Code::kUnsupported,
                   "layer %zu has a window or chunks, whose entries cannot be pooled", i);
    }
  }
  chunk = std::min(chunk, capacity);
  GEN_ASSIGN(auto entries, make_cache("fp32", layers, capacity / chunk + chunk, allocator));
  GEN_ASSIGN(auto kept, make_cache("fp32", layers, chunk, allocator));
  return std::unique_ptr<KvCache>(std::make_unique<CompressedCache>(
      std::move(entries), std::move(kept), capacity, chunk, allocator));
}

}  // namespace gen::cache
