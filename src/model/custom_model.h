// SPDX-License-Identifier: Apache-2.0
// A model that is a function of the caller. The caller computes logits and may keep a state for
// each sequence. This class decides when states are created, copied, truncated and freed. See
// model.h for the contract.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "graph/graph.h"
#include "model/custom_attention.h"
#include "model/draft_head.h"
#include "model/model.h"

namespace gen::model {

/// The caller's functions. A state is an opaque pointer, never dereferenced here; null is as valid
/// as any other.
/// Threads: forward may be called from several at once, never with the same state.
class CustomForward {
 public:
  virtual ~CustomForward() = default;
  /// Writes logits as Model::forward does and, if `features` is not null, hidden states [T, D]; a
  /// row that it does not write has none. It advances `states` [sequences]; after a failure they
  /// may have any content, and the owner of their plans restores them. `attention` is null for
  /// models without layers that keep keys and values.
  virtual Status forward(const graph::Batch& batch, std::span<void* const> states, float* features,
                         CustomAttention* attention) const = 0;
  virtual Result<void*> new_state() const = 0;
  virtual Result<void*> clone_state(const void* state) const = 0;
  /// Truncates a state to `n` positions; a shorter state is not changed. The state is freed after a
  /// failure. Without this function, a state is copied before each pass over drafts and replaced by
  /// its copy if a draft is rejected.
  virtual Status truncate_state(void* state, int32_t n) const = 0;
  virtual void free_state(void* state) const noexcept = 0;
  /// Where CustomStates::layers is above 0: the dims of a layer of a state and, unless `to` is
  /// null, its numbers, as many as it said before.
  virtual Status read_state(const void* /*state*/, int32_t /*layer*/, float* /*to*/,
                            std::array<int32_t, 3>* /*dims*/) const {
    return {Code::kUnsupported, "the model's states cannot be read"};
  }
};

/// The functions that exist. Without a state, a row's logits depend only on its token and position,
/// and there is nothing to copy or to truncate.
struct CustomStates {
  bool used = false;
  bool clone = false;
  bool truncate = false;
  int32_t layers = 0;  // that can be read
};

/// Layers that keep keys and values in caches of the library, if there are any. Traits give the
/// number and size of heads.
struct CustomLayers {
  int32_t count = 0;
  std::shared_ptr<engine::Engine> engine = nullptr;  // computes attention; needed for a count
};

/// Creates the engine that heads run on if no layer needs one.
using StartEngine = std::function<Result<std::shared_ptr<engine::Engine>>()>;

/// Threads: as Model.
class CustomModel final : public Model {
 public:
  /// Sequences whose states cannot be truncated run one at a time, so that a failure affects only
  /// its own sequence. `start` is called when a head is made; null: heads need layers' engine.
  /// kInvalidArgument for invalid sizes.
  static Result<std::shared_ptr<const CustomModel>> create(
      std::shared_ptr<const CustomForward> forward, ModelTraits traits, const CustomStates& states,
      CustomLayers layers = {}, StartEngine start = nullptr);

  [[nodiscard]] const ModelTraits& traits() const noexcept override { return traits_; }
  [[nodiscard]] std::span<const cache::LayerShape> layer_shapes() const noexcept override {
    return shapes_;
  }
  Result<std::unique_ptr<cache::SequenceState>> new_sequence_state() const override;
  Status forward(const graph::Batch& batch) const override;
  /// Without weights to share, and with the features of its function as the only hidden state.
  Result<HeadTarget> head_target() const override;
  Result<size_t> memory(std::string_view key) const override;

 private:
  CustomModel(std::shared_ptr<const CustomForward> forward, ModelTraits traits,
              const CustomStates& states, CustomLayers layers, StartEngine start);
  Status run(const graph::Batch& batch) const;
  [[nodiscard]] bool is_features(const graph::Tap& tap) const noexcept;
  Status check(const graph::Batch& batch) const;
  Status check_state(const graph::Batch& batch, size_t sequence) const;

  std::shared_ptr<const CustomForward> forward_;
  ModelTraits traits_;
  CustomStates states_;
  CustomLayers layers_;
  graph::AttentionSpec attention_;         // of each layer
  std::vector<cache::LayerShape> shapes_;  // [count]
  StartEngine start_engine_;
  mutable std::mutex mutex_;
  mutable std::weak_ptr<engine::Engine> started_;  // while a head runs on it
};

}  // namespace gen::model
