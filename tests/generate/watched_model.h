// SPDX-License-Identifier: Apache-2.0
// WatchedModel: a model that tests look at from outside.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "model/model.h"

namespace gen::generate {

/// Passes everything on to another model, and counts rows.
class WatchedModel final : public model::Model {
 public:
  explicit WatchedModel(const model::Model& model) : model_(model) {}

  const model::ModelTraits& traits() const noexcept override { return model_.traits(); }
  std::span<const cache::LayerShape> layer_shapes() const noexcept override {
    return model_.layer_shapes();
  }
  Result<std::unique_ptr<cache::SequenceState>> new_sequence_state() const override {
    return model_.new_sequence_state();
  }
  Result<size_t> memory(std::string_view key) const override { return model_.memory(key); }
  Status forward(const graph::Batch& batch) const override {
    if (before_forward) before_forward();
    rows += batch.rows();
    GEN_TRY(model_.forward(batch));
    return after_forward ? after_forward() : Status();
  }

  std::function<void()> before_forward;
  std::function<Status()> after_forward;  // what a pass that went well returns
  mutable std::atomic<int64_t> rows{0};

 private:
  const model::Model& model_;
};

}  // namespace gen::generate
