// SPDX-License-Identifier: Apache-2.0
// WatchedModel: a model whose calls tests can observe.
#pragma once

#include <atomic>
#include <functional>

#include "generate/passing_model.h"

namespace gen::generate {

/// Forwards all calls to another model, and counts rows.
class WatchedModel final : public PassingModel {
 public:
  using PassingModel::PassingModel;

  Status forward(const graph::Batch& batch) const override {
    if (before_forward) before_forward();
    rows += batch.rows();
    GEN_TRY(PassingModel::forward(batch));
    return after_forward ? after_forward() : Status();
  }

  std::function<void()> before_forward;
  std::function<Status()> after_forward;  // what a pass that went well returns
  mutable std::atomic<int64_t> rows{0};
};

}  // namespace gen::generate
