// SPDX-License-Identifier: Apache-2.0
// ModelDrafter: a second, smaller model says how a text goes on. Its passes are part of the steps
// of the model that it drafts for: one for each further token, with the rows of all sequences of
// the step. Each session has a cache of its own for it, which is brought to the session's text
// whenever something is guessed: what the text no longer has is cut, what is new is run, a long
// prompt over several steps. Where there is no memory for that a session goes on without drafts.
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
#include "graph/batch.h"
#include "model/model.h"

namespace gen::generate {

class ModelDrafter final : public Drafter {
 public:
  /// As GeneratorOptions::cache_factory.
  using MakeCache = std::function<Result<std::unique_ptr<cache::KvCache>>(
      std::span<const cache::LayerShape> shapes, int32_t capacity)>;
  struct Options {
    int32_t most = 4;         // tokens of a guess
    int32_t vocab = 0;        // tokens that both models have: the first so many
    int32_t context = 0;      // of the model that it drafts for
    int32_t prompt_rows = 0;  // most rows of texts that are caught up with in a step
    std::string kv_dtype = "fp32";
    engine::EngineMemory* memory = nullptr;  // for caches; outlives all sessions
    MakeCache cache_factory = nullptr;       // instead of kv_dtype and memory
  };
  /// kUnsupported for a model that cannot go back to any place, kInvalidArgument for
  /// a format that its heads do not fit.
  static Result<std::shared_ptr<ModelDrafter>> create(std::shared_ptr<const model::Model> model,
                                                      Options options);

  [[nodiscard]] int32_t max_rows() const noexcept override { return options_.most; }
  std::unique_ptr<DraftState> begin() override;
  void propose(std::span<DraftJob* const> jobs) override;

 private:
  struct State;
  /// A job that has rows in the next pass.
  struct Running {
    DraftJob* job;
    State* state;
    size_t accepted = 0;  // tokens that its matcher has taken for us
    int32_t row = 0;      // of those that want something, in the pass
    bool wants = false;
    bool logits = false;  // it wants those, for a mask
    bool ends = false;    // nothing more is guessed
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
  int32_t pick(Running* running);
  void guess(Running* running);
  void rest(Running* running) noexcept;

  const std::shared_ptr<const model::Model> model_;
  const Options options_;
  const int32_t capacity_;  // tokens of a text

  // Scratch of the leader's.
  std::vector<Running> running_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> positions_;
  std::vector<uint8_t> wants_;
  std::vector<graph::BatchSequence> sequences_;
  std::vector<State*> in_pass_;  // whose sequences they are
  std::vector<float> logits_;    // [rows that want them, V]
  std::vector<int32_t> best_tokens_;
  std::vector<float> best_logits_;
  std::vector<uint64_t> mask_;
  std::vector<uint32_t> bits_;  // the same in halves
  int32_t n_logits_ = 0;
  int32_t n_best_ = 0;
};

}  // namespace gen::generate
