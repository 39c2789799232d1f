// SPDX-License-Identifier: Apache-2.0
// HeadDrafter: a head (model/draft_head.h) drafts from hidden states that the target's steps give.
// A row of the head is a token and the hidden state of the row before it. Rows of the text are run
// with the target's states, many at a time: those of a prompt after its steps, those of an answer
// when a draft is due or enough have gathered. A draft begins at the last of them; its own rows
// follow with the head's own states, one pass for each token, and are then dropped. If rows of the
// text were run without the drafter, or their features are not finite, the head begins anew behind
// them: it sees less of the text. A head that reads the cache of the text has none, and runs only the last of these rows. Later
// heads, of which each drafts one token, have caches of their own; rows wait for each of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "cache/sequence/kv_cache.h"
#include "engine/memory.h"
#include "generate/draft/drafter.h"
#include "generate/draft/guesser.h"
#include "graph/batch.h"
#include "model/draft_head.h"
#include "model/model.h"

namespace gen::generate {

struct HeadState;

class HeadDrafter final : public Drafter {
 public:
  /// As GeneratorOptions::cache_factory.
  using MakeCache = std::function<Result<std::unique_ptr<cache::KvCache>>(
      std::span<const cache::LayerShape> shapes, int32_t capacity)>;
  struct Options {
    int32_t most = 4;     // draft tokens at a time
    int32_t vocab = 0;    // tokens of the target that may be drafted: the first ones
    int32_t context = 0;  // of the target
    std::string kv_dtype = "fp32";
    engine::EngineMemory* memory = nullptr;  // for caches; must outlive all sessions
    MakeCache cache_factory = nullptr;       // instead of kv_dtype and memory
  };
  /// kInvalidArgument for a format that its heads do not fit.
  static Result<std::shared_ptr<HeadDrafter>> create(std::shared_ptr<const model::DraftHead> head,
                                                     Options options);

  [[nodiscard]] int32_t max_rows() const noexcept override { return options_.most; }
  [[nodiscard]] const char* name(const DraftState&) const noexcept override { return "head"; }
  std::unique_ptr<DraftState> begin() override;
  Result<std::unique_ptr<DraftState>> restore(std::span<const int32_t> text,
                                              const SavedHead& saved) override;
  void propose(std::span<DraftJob* const> jobs) override;
  [[nodiscard]] std::span<const int32_t> taps() const noexcept override { return head_->taps; }
  void observe(std::span<const ObservedRows> rows) override;

 private:
  /// A session with rows in the next pass.
  struct Running {
    Guessing of;
    HeadState* state;
    int32_t row = 0;                 // its row among those that return a token
    int32_t last = 0;                // its last row in the pass
    int32_t settled = 0;             // rows of the text in the pass
    std::vector<float> states = {};  // for later heads: of the rows that were drafted behind
  };
  class EndDraft;

  HeadDrafter(std::shared_ptr<const model::DraftHead> head, Options options);
  void propose_group(std::span<DraftJob* const> jobs);
  bool begin_draft(Running* running, int32_t* room);
  bool go_on(Running* running);
  /// Runs the rows of texts that wait, except for the last of each.
  void fill(std::span<HeadState* const> states);
  bool fill(HeadState* state, size_t head);
  [[nodiscard]] const model::Model& head_model(size_t head) const noexcept;
  bool make_cache(HeadState* state, size_t head) const;
  /// A pass of this head; 0 is the first.
  void begin_pass(size_t head) noexcept;
  /// Adds the first `n` rows that wait for the head, the last of which is that of the token `last`
  /// if the text has no token behind it.
  void add_waiting(Running* running, int32_t n, int32_t last);
  void add_row(Running* running, int32_t token, std::span<const float> features);
  bool plan_rows(Running* running, int32_t n);
  void want(Running* running);
  bool run_pass(const model::Model& model, bool states);
  void guess(Running* running);

  const std::shared_ptr<const model::DraftHead> head_;
  const Options options_;
  Guesser guesser_;
  const size_t width_;      // of the features of a row
  const size_t own_width_;  // of a state of the head
  const size_t heads_;      // the first and the later ones
  const bool caches_;       // it has a cache
  const bool reads_;        // it reads the cache of the text
  const bool by_logits_;    // it gives no best tokens, only logits

  // Scratch memory of the leader.
  size_t head_now_ = 0;  // of the pass
  std::vector<Running> running_;
  std::vector<HeadState*> full_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> positions_;
  std::vector<uint8_t> wants_;
  std::vector<float> features_;  // [rows, F]
  std::vector<float> states_;    // [rows, own width]
  std::vector<graph::BatchSequence> sequences_;
  std::vector<float> logits_;  // [rows that need them, V of the head]
  std::vector<float> spread_;  // [V of the target]
  std::vector<int32_t> best_tokens_;
  std::vector<float> best_logits_;
  int32_t n_logits_ = 0;
  int32_t n_best_ = 0;
};

}  // namespace gen::generate
