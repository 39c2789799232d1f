// SPDX-License-Identifier: Apache-2.0
// Generator: a model, its tokenizer and the options shared by all sessions made from it. Sessions
// do the work (session.h); the scheduler here joins their steps.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/status.h"
#include "cache/prefix/prefix_cache.h"
#include "cache/sequence/kv_cache.h"
#include "engine/memory.h"
#include "engine/trace/tracer.h"
#include "generate/draft/drafter.h"
#include "generate/request/prompt.h"
#include "generate/step/step_plan.h"
#include "generate/text/text_spec.h"
#include "model/model.h"
#include "tokenizer/tokenizer.h"

namespace gen::generate {

class Scheduler;
class Session;
struct CallParams;
struct GenResult;

/// Makes an empty cache of `capacity` entries.
using CacheFactory = std::function<Result<std::unique_ptr<cache::KvCache>>(
    std::span<const cache::LayerShape> shapes, int32_t capacity)>;

constexpr int32_t kDefaultPrefillChunk = 256;
/// The rows per forward pass that a prefill_chunk means for a model.
inline int32_t prefill_rows(int32_t chunk, const model::ModelTraits& traits) noexcept {
  if (chunk == 0) chunk = traits.prompt_rows > 0 ? traits.prompt_rows : kDefaultPrefillChunk;
  return std::min(chunk, traits.max_batch_rows);
}
constexpr int32_t kDefaultMaxSequences = 64;

constexpr int32_t kDefaultContextKeep = 4;  // attention relies on the very first tokens
constexpr int32_t kDefaultWindowRewind = 256;
constexpr int32_t kDefaultWindowCopies = 2;  // the borders of the last message

/// Snapshots of a model's state (cache/state/snapshot_list.h).
constexpr int32_t kDefaultSnapshotEvery = 1024;
constexpr size_t kDefaultSnapshots = 8;       // what the default budget of a session has room for
constexpr size_t kSharedSnapshotBudgets = 4;  // the prefix cache's budget, in those of a session
/// The budget that an option means, for snapshots of so many bytes.
inline size_t snapshot_budget(int64_t option, size_t bytes) noexcept {
  return option < 0 ? kDefaultSnapshots * bytes : static_cast<size_t>(option);
}

struct GeneratorOptions {
  std::string kv_dtype = "fp32";  // as in cache/sequence/cache_format.h
  int32_t max_seq_len = 0;        // 0: the model's, which is also the maximum
  int32_t prefill_chunk = 0;   // rows per forward pass; 0: the model's preference, or the default
  bool parse_special = false;  // as Prompt::parse_special, for every prompt
  bool shift_context = false;  // a full context drops its oldest tokens instead of ending
  int32_t context_keep = kDefaultContextKeep;    // first tokens that are never dropped
  int32_t max_sequences = kDefaultMaxSequences;  // sequences in one forward pass
  /// Below 0: layers with a window keep every position. Else only those of the window and so many
  /// more: cuts that go back further begin at a copy, or are evaluated again. For caches of
  /// kv_dtype. None: kDefaultWindowRewind.
  std::optional<int32_t> window_rewind = std::nullopt;
  int32_t window_copies = kDefaultWindowCopies;  // of a session's windows, as they once were
  int32_t max_queue = 0;  // calls that may wait beyond max_sequences; 0: no limit
  int32_t max_passed_over = kMaxPassedOver;  // StepLimits, like the next three
  SteadyClock::duration max_starving = kMaxStarving;
  SteadyClock::duration least_starving = kLeastStarving;
  SteadyClock::duration max_yielding = kMaxYielding;
  bool deterministic = false;                      // graph::Batch
  int32_t snapshot_every = kDefaultSnapshotEvery;  // tokens; 0: none within prompts and answers
  int64_t snapshot_budget = -1;  // bytes of a session's snapshots; -1: snapshot_budget(); 0: none
  /// Memory for caches that the model's engine can access; null: the process heap. It must outlive
  /// all sessions.
  engine::EngineMemory* memory = nullptr;
  CacheFactory cache_factory = nullptr;  // replaces kv_dtype: the caller's own caches
  /// Uses the block pool of the factory's caches; null: sessions share no prefixes.
  std::shared_ptr<cache::PrefixCache> prefix_cache = nullptr;
  std::shared_ptr<engine::Tracer> tracer =
      nullptr;  // sees each forward pass of all sessions, one at a time
  std::shared_ptr<Drafter> drafter = nullptr;  // null: no drafts, each step gives one token
  DraftPolicy draft_policy = {};
  std::shared_ptr<Metrics> metrics = nullptr;  // null: no metrics
  /// Sets the gauges of shared caches after a step; null: there are none.
  std::function<void(Metrics& metrics)> measure_caches = nullptr;
};

/// Use of the prefix cache: calls that searched it, calls that found a prefix, and tokens found.
struct PrefixUse {
  std::atomic<int64_t> lookups{0};
  std::atomic<int64_t> hits{0};
  std::atomic<int64_t> tokens{0};
};

/// Use of drafts over all calls.
struct DraftUse {
  std::atomic<int64_t> passes{0};  // passes per sequence that generated tokens
  std::atomic<int64_t> tokens{0};  // tokens that these passes generated
  std::atomic<int64_t> drafted{0};
  std::atomic<int64_t> accepted{0};
  std::array<std::atomic<int64_t>, kMaxDraftRows> tried{};  // by position in the draft
  std::array<std::atomic<int64_t>, kMaxDraftRows> right{};

  void note_pass(size_t n) noexcept {
    passes.fetch_add(1, std::memory_order_relaxed);
    tokens.fetch_add(static_cast<int64_t>(n), std::memory_order_relaxed);
  }
  void note_drafts(int32_t n_drafted, int32_t n_accepted) noexcept {
    drafted.fetch_add(n_drafted, std::memory_order_relaxed);
    accepted.fetch_add(n_accepted, std::memory_order_relaxed);
    for (int32_t i = 0; i < std::min(n_drafted, n_accepted + 1); ++i) {
      tried[static_cast<size_t>(i)].fetch_add(1, std::memory_order_relaxed);
      if (i < n_accepted) right[static_cast<size_t>(i)].fetch_add(1, std::memory_order_relaxed);
    }
  }
};

/// Threads: immutable; any number of threads may use one object. A session holds it by shared_ptr
/// and so keeps it and the model alive.
class Generator : public std::enable_shared_from_this<Generator> {
 public:
  /// `tokenizer` may be null: prompts are then tokens and texts are empty. Errors: kInvalidArgument
  /// for an unknown kv dtype or one that the model's heads do not fit, a negative option, or a
  /// context longer than the model's.
  static Result<std::shared_ptr<const Generator>> create(
      std::shared_ptr<const model::Model> model,
      std::shared_ptr<const tokenizer::Tokenizer> tokenizer, GeneratorOptions options = {});
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  [[nodiscard]] const model::Model& model() const noexcept { return *model_; }
  /// Null if there is none.
  [[nodiscard]] const tokenizer::Tokenizer* tokenizer() const noexcept { return tokenizer_.get(); }
  [[nodiscard]] const std::shared_ptr<const tokenizer::Tokenizer>& shared_tokenizer()
      const noexcept {
    return tokenizer_;
  }
  [[nodiscard]] const GeneratorOptions& options() const noexcept { return options_; }
  [[nodiscard]] int32_t max_seq_len() const noexcept { return options_.max_seq_len; }
  /// Rows per forward pass, limited by the model.
  [[nodiscard]] int32_t prefill_chunk() const noexcept { return options_.prefill_chunk; }
  /// Number of tokens that may be prompted and sampled: the model's, or the tokenizer's if that is
  /// smaller.
  [[nodiscard]] int32_t vocab_size() const noexcept { return vocab_size_; }
  /// Tokens that end a text, from the tokenizer and the model.
  [[nodiscard]] std::span<const int32_t> end_tokens() const noexcept { return end_tokens_; }
  /// Properties shared by all texts.
  [[nodiscard]] TextSpec text_spec() const noexcept {
    return {tokenizer(), end_tokens_, vocab_size_, max_seq_len(), options_.shift_context};
  }
  /// Null if there is none.
  [[nodiscard]] cache::PrefixCache* prefix_cache() const noexcept {
    return options_.prefix_cache.get();
  }
  /// Identifies what keys and values depend on besides the tokens: model and format.
  [[nodiscard]] uint64_t prefix_domain() const noexcept { return prefix_domain_; }
  /// Null if there is none.
  [[nodiscard]] Drafter* drafter() const noexcept { return options_.drafter.get(); }
  [[nodiscard]] Scheduler& scheduler() const noexcept { return *scheduler_; }
  /// Number of generating calls in progress.
  [[nodiscard]] std::atomic<int32_t>& open_calls() const noexcept { return open_calls_; }
  /// Held while a saved session takes its blocks.
  [[nodiscard]] std::mutex& loads() const noexcept { return loads_; }
  [[nodiscard]] PrefixUse& prefix_use() const noexcept { return prefix_use_; }
  [[nodiscard]] DraftUse& draft_use() const noexcept { return draft_use_; }
  [[nodiscard]] Metrics& metrics() const noexcept {
    return options_.metrics != nullptr ? *options_.metrics : no_metrics();
  }
  /// 1, 2, 3, … : ids that tracers tell sequences apart by.
  [[nodiscard]] int64_t new_trace_id() const noexcept { return ++trace_ids_; }

  /// An empty cache for `capacity` tokens, of the kind that sessions have.
  [[nodiscard]] Result<std::unique_ptr<cache::KvCache>> make_cache(int32_t capacity) const {
    return make_cache(capacity, options_.window_rewind.value_or(kDefaultWindowRewind));
  }
  /// The same for a caller who cuts it himself: unless the options say otherwise it keeps all.
  [[nodiscard]] Result<std::unique_ptr<cache::KvCache>> make_lone_cache(int32_t capacity) const {
    return make_cache(capacity, options_.window_rewind.value_or(-1));
  }
  [[nodiscard]] Result<std::shared_ptr<Session>> new_session() const;

  /// One call on a new session; see generate::run in run.h.
  Status generate(const Prompt& prompt, const CallParams& params, EventCallback callback,
                  void* user, std::optional<GenResult>* result) const;

 private:
  Generator(std::shared_ptr<const model::Model> model,
            std::shared_ptr<const tokenizer::Tokenizer> tokenizer, GeneratorOptions options);
  [[nodiscard]] Result<std::unique_ptr<cache::KvCache>> make_cache(int32_t capacity,
                                                                   int32_t window_rewind) const;

  std::shared_ptr<const model::Model> model_;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  GeneratorOptions options_;
  int32_t vocab_size_;
  std::vector<int32_t> end_tokens_;
  uint64_t prefix_domain_ = 0;
  std::unique_ptr<Scheduler> scheduler_;
  mutable std::atomic<int64_t> trace_ids_{0};
  mutable std::atomic<int32_t> open_calls_{0};
  mutable std::mutex loads_;
  mutable PrefixUse prefix_use_;
  mutable DraftUse draft_use_;
};

}  // namespace gen::generate
