// SPDX-License-Identifier: Apache-2.0
// Doubles for tests of generation: a cache that stores tokens, a model whose logits are a function
// of the tokens it finds in that cache, and a tokenizer with a written-out vocabulary. A wrong
// position, a lost or doubled entry or an uncommitted row therefore changes the text.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/status.h"
#include "cache/sequence/kv_cache.h"
#include "engine/memory/host_memory.h"
#include "graph/batch.h"
#include "model/model.h"
#include "tokenizer/tokenizer.h"

namespace gen::test {

/// Holds the token of every entry. With a `pool`, a number of entries left in it that several
/// caches share, a plan takes what it needs from there and cutting gives it back.
class FakeCache final : public cache::KvCache, public cache::Shifts {
 public:
  explicit FakeCache(int32_t capacity, bool can_truncate = true,
                     std::shared_ptr<std::atomic<int32_t>> pool = nullptr,
                     int32_t pool_entries = std::numeric_limits<int32_t>::max())
      : capacity_(capacity), pool_(std::move(pool)), pool_entries_(pool_entries) {
    traits_.kind = "fake";
    traits_.can_truncate = can_truncate;
    traits_.pooled = pool_ != nullptr;
    traits_.keeps_paths = true;
  }
  FakeCache(const FakeCache&) = delete;
  FakeCache& operator=(const FakeCache&) = delete;
  ~FakeCache() override { hold(0); }
  const cache::CacheTraits& traits() const noexcept override { return traits_; }
  std::span<const cache::LayerShape> layers() const noexcept override { return {}; }
  int32_t length() const noexcept override { return length_; }
  int32_t capacity() const noexcept override { return capacity_; }
  bool has_all_room() const noexcept override {
    if (before_has_all_room) before_has_all_room();
    return pool_ == nullptr || pool_->load() + held_ >= pool_entries_;
  }
  int32_t most_room() const noexcept override {
    return std::min(capacity_, pool_entries_) - length_;
  }
  int64_t most_freed() const noexcept override { return held_; }
  int32_t room() const noexcept override {
    const int32_t left = capacity_ - length_;
    return pool_ != nullptr ? std::min(left, held_ - length_ + pool_->load()) : left;
  }
  Result<cache::CachePlan> plan(int32_t n) override {
    if (plans_until_failure >= 0 && plans_until_failure-- == 0) {
      return error(Code::kCacheFull, "injected: no room for %d", n);
    }
    if (n > capacity_ - length_) {
      return error(Code::kCacheFull, "%d entries and %d more exceed %d", length_, n, capacity_);
    }
    if (!hold(length_ + n)) {
      return error(Code::kPoolExhausted, "the pool has no %d entries", length_ + n);
    }
    return cache::CachePlan{length_, n};
  }
  std::span<const engine::KvLayer> kv_layers() const noexcept override { return {}; }
  engine::EngineMemory& engine_memory(int32_t) const noexcept override {
    return engine::system_memory();
  }
  Result<engine::KvTables> tables(int32_t, const cache::CachePlan&) override {
    return engine::KvTables();
  }
  using KvCache::commit;
  void commit(const cache::CachePlan& plan, cache::Kept kept) noexcept override {
    for (int32_t i = 0; kept.rows != nullptr && i < kept.n; ++i) {
      entries_[static_cast<size_t>(plan.start + i)] =
          entries_[static_cast<size_t>(plan.start + kept.rows[i])];
    }
    length_ = plan.start + kept.n;
    hold(length_);
  }
  Status truncate(int32_t n) override {
    if (!traits_.can_truncate) return error(Code::kUnsupported, "this cache cannot be cut");
    length_ = std::min(length_, std::max(n, 0));
    hold(length_);
    std::fill(entries_.begin() + std::min<std::ptrdiff_t>(length_, std::ssize(entries_)),
              entries_.end(), -1);
    return {};
  }
  Result<std::unique_ptr<cache::KvCache>> fork() override {
    return error(Code::kUnsupported, "a fake cache does not fork");
  }
  cache::Shifts* shifting() noexcept override { return can_shift ? this : nullptr; }
  Status shift(int32_t first, int32_t n) override {
    const auto at = entries_.begin() + first;
    entries_.erase(at, at + n);
    length_ -= n;
    ++shifts;
    return {};
  }
  cache::MemoryUse memory() const noexcept override { return {}; }

  /// The model's side: entries of a plan are written before they are committed.
  void write(int32_t entry, int32_t token) {
    if (static_cast<size_t>(entry) >= entries_.size()) {
      entries_.resize(static_cast<size_t>(entry) + 1, -1);
    }
    entries_[static_cast<size_t>(entry)] = token;
  }
  std::span<const int32_t> first(int32_t n) const {
    return std::span(entries_).first(static_cast<size_t>(n));
  }
  std::span<const int32_t> committed() const { return first(length_); }

  int32_t plans_until_failure = -1;  // -1: never
  std::function<void()> before_has_all_room;
  bool can_shift = false;
  int32_t shifts = 0;

 private:
  cache::CacheTraits traits_;
  int32_t capacity_;
  // Takes from the pool or gives back, so that `entries` are this cache's.
  bool hold(int32_t entries) noexcept {
    if (pool_ == nullptr) return true;
    const int32_t more = entries - held_;
    int32_t left = pool_->load();
    do {
      if (left < more) return false;
    } while (!pool_->compare_exchange_weak(left, left - more));
    held_ = entries;
    return true;
  }

  std::shared_ptr<std::atomic<int32_t>> pool_;
  const int32_t pool_entries_;  // in use or not
  int32_t held_ = 0;
  int32_t length_ = 0;
  std::vector<int32_t> entries_;
};

/// Goes on, and never back.
class FakeState final : public cache::SequenceState {
 public:
  int32_t length() const noexcept override { return length_; }
  bool keeps_some() const noexcept override { return false; }
  using SequenceState::plan;
  Result<cache::StatePlan> plan(int32_t n, cache::Keep keep, int32_t /*certain*/) override {
    return cache::StatePlan{length_, n, keep};
  }
  void commit(const cache::StatePlan& plan, cache::Kept kept) noexcept override {
    length_ = plan.start + kept.n;
  }
  void drop(const cache::StatePlan&) noexcept override {}
  Result<int32_t> rewind(int32_t n) override {
    if (n >= length_) return length_;
    return error(Code::kUnsupported, "a state that cannot go back to %d tokens", n);
  }

 private:
  int32_t length_ = 0;
};

class FakeModel final : public model::Model {
 public:
  explicit FakeModel(int32_t vocab_size, int32_t max_seq_len = 64) {
    traits_.architecture = "fake";
    traits_.vocab_size = vocab_size;
    traits_.max_seq_len = max_seq_len;
  }

  const model::ModelTraits& traits() const noexcept override { return traits_; }
  model::ModelTraits& mutable_traits() noexcept { return traits_; }
  std::span<const cache::LayerShape> layer_shapes() const noexcept override { return {}; }
  Result<std::unique_ptr<cache::SequenceState>> new_sequence_state() const override {
    return std::unique_ptr<cache::SequenceState>(stateful ? std::make_unique<FakeState>()
                                                          : nullptr);
  }
  Result<size_t> memory(std::string_view) const override { return size_t{0}; }

  Status forward(const graph::Batch& batch) const override {
    forwards.fetch_add(1);
    if (before_forward) GEN_TRY(before_forward(batch));
    if (batch.cancel != nullptr && batch.cancel->raised()) {
      return error(Code::kCancelled, "cancelled in the model");
    }
    if (batch.rows() > traits_.max_batch_rows) {
      return error(Code::kInvalidArgument, "%lld rows", static_cast<long long>(batch.rows()));
    }
    float* out = batch.logits;
    for (const graph::BatchSequence& sequence : batch.sequences) {
      auto* const cache = dynamic_cast<FakeCache*>(sequence.cache);
      for (int32_t i = 0; i < sequence.n_rows; ++i) {
        const auto row = static_cast<size_t>(sequence.first_row + i);
        const int32_t entry = sequence.plan.start + i;
        cache->write(entry, batch.tokens[row]);
        std::vector<int32_t> branch;
        if (!batch.parents.empty()) branch = history_of(batch, sequence, i, *cache);
        const std::span<const int32_t> history =
            branch.empty() ? cache->first(entry + 1) : std::span<const int32_t>(branch);
        if (batch.positions[row] != static_cast<int32_t>(history.size()) - 1) {
          return error(Code::kOutOfRange, "position %d after %zu tokens", batch.positions[row],
                       history.size() - 1);
        }
        if (batch.wants[row] != 0) {
          write_logits(history, out);
          out += traits_.vocab_size;
        }
      }
    }
    return {};
  }

  /// What row `i` of a sequence looks back at, and its own token.
  static std::vector<int32_t> history_of(const graph::Batch& batch,
                                         const graph::BatchSequence& sequence, int32_t i,
                                         const FakeCache& cache) {
    const std::span<const int32_t> entries = cache.first(sequence.plan.start + i + 1);
    std::vector<int32_t> history;  // the row's own first
    while (i >= 0) {
      history.push_back(entries[static_cast<size_t>(sequence.plan.start + i)]);
      const int32_t parent = batch.parents[static_cast<size_t>(sequence.first_row + i)];
      i = parent < 0 ? i - 1 : parent - sequence.first_row;
    }
    const auto held = cache.first(sequence.plan.start);
    history.insert(history.end(), held.rbegin(), held.rend());
    std::reverse(history.begin(), history.end());
    return history;
  }

  /// The logits after `history`: pseudo-random, or a peak where `next` says.
  void write_logits(std::span<const int32_t> history, float* out) const {
    uint64_t digest = 1469598103934665603U;
    for (const int32_t token : history) {
      digest = (digest ^ static_cast<uint64_t>(token)) * 1099511628211U;
    }
    for (int32_t i = 0; i < traits_.vocab_size; ++i) {
      out[i] = static_cast<float>(8.0 * uniform_double(digest, 0, static_cast<uint64_t>(i)) - 4.0);
    }
    if (next) out[next(history)] = 50.0F;
    if (spoil_logits) spoil_logits(history, out);
  }

  bool stateful = false;
  std::function<Status(const graph::Batch&)> before_forward;
  std::function<int32_t(std::span<const int32_t> history)> next;
  std::function<void(std::span<const int32_t> history, float* logits)> spoil_logits;
  mutable std::atomic<int32_t> forwards{0};

 private:
  model::ModelTraits traits_;
};

/// Encodes by taking the longest piece that fits, again and again.
class FakeTokenizer final : public tokenizer::Tokenizer {
 public:
  static constexpr int32_t kBos = 0;
  static constexpr int32_t kEos = 1;

  /// Ids 0 and 1 are BOS and EOS, `pieces` come after them.
  explicit FakeTokenizer(std::vector<std::string> pieces, bool add_bos = true) {
    spec_.tokens = {"<s>", "</s>"};
    spec_.tokens.insert(spec_.tokens.end(), pieces.begin(), pieces.end());
    spec_.types.assign(spec_.tokens.size(), tokenizer::TokenType::kNormal);
    spec_.types[kBos] = spec_.types[kEos] = tokenizer::TokenType::kControl;
    spec_.bos = kBos;
    spec_.eos = kEos;
    spec_.add_bos = add_bos;
  }

  Status encode_segments(std::span<const tokenizer::TextSegment> segments, uint32_t flags,
                         int32_t /*previous*/, std::vector<int32_t>* out) const override {
    std::vector<int32_t> ids;
    if ((flags & tokenizer::kAddBos) != 0) ids.push_back(kBos);
    for (const tokenizer::TextSegment& segment : segments) {
      std::string_view text = segment.text;
      while (!text.empty()) {
        int32_t best = -1;
        for (int32_t id = segment.parse_special ? 0 : 2; id < vocab_size(); ++id) {
          const std::string& piece = spec_.tokens[static_cast<size_t>(id)];
          const bool longer =
              best < 0 || piece.size() > spec_.tokens[static_cast<size_t>(best)].size();
          if (!piece.empty() && text.starts_with(piece) && longer) best = id;
        }
        if (best < 0) return error(Code::kTokenizer, "no piece for \"%.8s\"", text.data());
        ids.push_back(best);
        text.remove_prefix(spec_.tokens[static_cast<size_t>(best)].size());
      }
    }
    out->insert(out->end(), ids.begin(), ids.end());
    return {};
  }
  Status append_piece(int32_t id, int32_t, bool special_as_text, std::string* out) const override {
    if (id < 0 || id >= vocab_size()) {
      return error(Code::kOutOfRange, "token %d outside vocabulary of %d", id, vocab_size());
    }
    if (!is_control(id) || special_as_text) out->append(spec_.tokens[static_cast<size_t>(id)]);
    return {};
  }
  int32_t vocab_size() const noexcept override { return static_cast<int32_t>(spec_.tokens.size()); }
  int32_t special(tokenizer::Special kind) const noexcept override {
    if (kind == tokenizer::Special::kBos) return kBos;
    return kind == tokenizer::Special::kEos ? kEos : -1;
  }
  bool is_control(int32_t id) const noexcept override { return id == kBos || id == kEos; }
  std::span<const int32_t> end_tokens() const noexcept override { return {&spec_.eos, 1}; }
  const tokenizer::VocabSpec& spec() const noexcept override { return spec_; }

 private:
  tokenizer::VocabSpec spec_;
};

}  // namespace gen::test
