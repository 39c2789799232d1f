// SPDX-License-Identifier: Apache-2.0
// PassingModel: a model that forwards every call to another one, for tests that change or observe
// one function.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace gen::generate {

class PassingModel : public model::Model {
 public:
  explicit PassingModel(const model::Model& model) : model_(model) {}

  const model::ModelTraits& traits() const noexcept override { return model_.traits(); }
  std::span<const cache::LayerShape> layer_shapes() const noexcept override {
    return model_.layer_shapes();
  }
  Result<std::unique_ptr<cache::SequenceState>> new_sequence_state() const override {
    return model_.new_sequence_state();
  }
  Result<std::shared_ptr<const graph::AdapterTable>> adapter_table(
      std::span<const std::vector<graph::AdapterUse>> mixes) const override {
    return model_.adapter_table(mixes);
  }
  model::AdapterRegistry* adapters() const noexcept override { return model_.adapters(); }
  Result<size_t> memory(std::string_view key) const override { return model_.memory(key); }
  Status forward(const graph::Batch& batch) const override { return model_.forward(batch); }

 private:
  const model::Model& model_;
};

}  // namespace gen::generate
