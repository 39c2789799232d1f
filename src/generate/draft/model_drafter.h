// SPDX-License-Identifier: Apache-2.0
// ModelDrafter: a second, smaller model drafts. Its passes are part of the target's steps: one pass
// for each draft token, with the rows of all sequences of the step. Each session has its own cache
// of the draft model. It is brought up to date before each proposal: tokens that the text no longer
// has are cut, new ones are evaluated, a long prompt over several steps. If there is no memory for
// the cache, the session runs without drafts.
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
#include "model/model.h"

namespace gen::generate {

/// kUnsupported for a model that cannot draft: its state goes back to few places, or nowhere, and
/// much of the text would run again for each draft. Errors of making a state.
Status check_draft_model(const model::Model& model);

class ModelDrafter final : public Drafter {
 public:
  /// As GeneratorOptions::cache_factory.
  using MakeCache = std::function<Result<std::unique_ptr<cache::KvCache>>(
      std::span<const cache::LayerShape> shapes, int32_t capacity)>;
  struct Options {
    const char* name = "model";  // see Drafter::name
    int32_t most = 4;            // draft tokens at a time
    int32_t vocab = 0;           // size of the shared vocabulary: the first tokens of both models
    int32_t context = 0;         // context of the target
    int32_t prompt_rows = 0;     // most rows per step that catch up with texts
    std::string kv_dtype = "fp32";
    engine::EngineMemory* memory = nullptr;  // for caches; must outlive all sessions
    MakeCache cache_factory = nullptr;       // instead of kv_dtype and memory
  };
  /// Errors of check_draft_model(), kInvalidArgument for a format that
  /// its heads do not fit.
  static Result<std::shared_ptr<ModelDrafter>> create(std::shared_ptr<const model::Model> model,
                                                      Options options);

  [[nodiscard]] int32_t max_rows() const noexcept override { return options_.most; }
  [[nodiscard]] const char* name(const DraftState&) const noexcept override {
    return options_.name;
  }
  std::unique_ptr<DraftState> begin() override;
  void propose(std::span<DraftJob* const> jobs) override;

 private:
  struct State;
  /// A job with rows in the next pass.
  struct Running {
    Guessing of;
    State* state;
    int32_t row = 0;  // its row among those of the pass that return a token
    bool wants = false;
  };
  class GiveBack;
  class DropStates;

  ModelDrafter(std::shared_ptr<const model::Model> model, Options options);
  void propose_group(std::span<DraftJob* const> jobs);
  bool catch_up(State* state, std::span<const int32_t> text);
  static Status cut(State* state, int32_t n);
  void reserve(size_t sequences, size_t rows);
  void begin_pass() noexcept;
  bool add_rows(Running* running, std::span<const int32_t> tokens, bool wants);
  bool run_pass();
  void guess(Running* running);
  void rest(Running* running) noexcept;

  const std::shared_ptr<const model::Model> model_;
  const Options options_;
  Guesser guesser_;
  const int32_t capacity_;  // most tokens of a text

  // Scratch memory of the leader.
  std::vector<Running> running_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> positions_;
  std::vector<uint8_t> wants_;
  std::vector<graph::BatchSequence> sequences_;
  std::vector<State*> in_pass_;  // states of the sequences in the pass
  std::vector<float> logits_;    // [rows that need them, V]
  std::vector<int32_t> best_tokens_;
  std::vector<float> best_logits_;
  int32_t n_logits_ = 0;
  int32_t n_best_ = 0;
};

}  // namespace gen::generate
