// SPDX-License-Identifier: Apache-2.0
// A model that is a function of the caller's. The caller computes logits and may keep a state for
// each sequence; when states are made, copied, taken back and freed is decided here, so that the
// function needs no more than that. See model.h for the contract.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "graph/graph.h"
#include "model/custom_attention.h"
#include "model/model.h"

namespace gen::model {

/// The caller's functions. A state is an opaque pointer, never dereferenced here; null is as valid
/// as any other.
/// Threads: forward may be called from several at once, never with the same state.
class CustomForward {
 public:
  virtual ~CustomForward() = default;
  /// Writes logits as Model::forward and, where `features` is not null, hidden states [T, D].
  /// `states` [sequences] are to be taken on; after a failure they are taken back by who made their
  /// plans, and need not be as they were. `attention` is null for models without layers that keep
  /// keys and values.
  virtual Status forward(const graph::Batch& batch, std::span<void* const> states, float* features,
                         CustomAttention* attention) const = 0;
  virtual Result<void*> new_state() const = 0;
  virtual Result<void*> clone_state(const void* state) const = 0;
  /// Back to `n` positions; a state that has no more than that stays. Freed after a failure. Where
  /// there is only copying, a state is copied before each pass over drafts, and replaced by its
  /// copy where not all of them were right.
  virtual Status truncate_state(void* state, int32_t n) const = 0;
  virtual void free_state(void* state) const noexcept = 0;
};

/// Which of them there are. Without a state, a row's logits are a function of its token and its
/// position, and there is nothing to copy or to take back.
struct CustomStates {
  bool used = false;
  bool clone = false;
  bool truncate = false;
};

/// Layers that keep keys and values in caches of the library, if there are any: traits say how many
/// heads of what size.
struct CustomLayers {
  int32_t count = 0;
  std::shared_ptr<engine::Engine> engine = nullptr;  // computes attention; needed for a count
};

/// Threads: as Model.
class CustomModel final : public Model {
 public:
  /// Sequences whose states cannot go back run one at a time, so that a failure is only ever its
  /// own sequence's. kInvalidArgument for sizes that are none.
  static Result<std::shared_ptr<const CustomModel>> create(
      std::shared_ptr<const CustomForward> forward, ModelTraits traits, const CustomStates& states,
      CustomLayers layers = {});

  [[nodiscard]] const ModelTraits& traits() const noexcept override { return traits_; }
  [[nodiscard]] std::span<const cache::LayerShape> layer_shapes() const noexcept override {
    return shapes_;
  }
  Result<std::unique_ptr<cache::SequenceState>> new_sequence_state() const override;
  Status forward(const graph::Batch& batch) const override;
  Result<size_t> memory(std::string_view key) const override;

 private:
  CustomModel(std::shared_ptr<const CustomForward> forward, ModelTraits traits,
              const CustomStates& states, CustomLayers layers);
  Status run(const graph::Batch& batch) const;
  Status check(const graph::Batch& batch) const;
  Status check_state(const graph::Batch& batch, size_t sequence) const;

  std::shared_ptr<const CustomForward> forward_;
  ModelTraits traits_;
  CustomStates states_;
  CustomLayers layers_;
  graph::AttentionSpec attention_;         // of each layer
  std::vector<cache::LayerShape> shapes_;  // [count]
};

}  // namespace gen::model
