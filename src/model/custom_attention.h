// SPDX-License-Identifier: Apache-2.0
// Attention for a caller's own model: it stores the model's keys and values in the sequences'
// caches and attends to them, with the engine's operations and in any kind of cache. One object
// serves one forward pass.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "graph/batch.h"
#include "graph/graph.h"
#include "graph/step_block.h"

namespace gen::model {

/// Threads: one.
class CustomAttention {
 public:
  /// Both must outlive it; `layers` is the number of layers, which all follow `spec`.
  CustomAttention(engine::Engine& engine, const graph::Batch& batch,
                  const graph::AttentionSpec& spec, int32_t layers)
      : engine_(engine), batch_(batch), spec_(spec), seen_(static_cast<size_t>(layers)) {}

  /// Stores keys and values [T, G, K] of all rows, and writes [T, H, K], the result of attention to
  /// these and the earlier entries of their sequences. kOutOfRange for an invalid layer,
  /// kInvalidArgument for one that has been run; errors of caches and engine.
  Status run(int32_t layer, const float* q, const float* k, const float* v, float scale,
             float* out);
  /// kModel naming a layer that was not run: its cache would be undefined.
  [[nodiscard]] Status check_all_run() const;

 private:
  /// Runs an operation on the engine, after the tracer, if any, has been called.
  template <typename Work>
  Status step(Work&& work);

  /// Rows of queries, keys, values and results in engine memory.
  struct Rows {
    engine::MatrixView q, k, v, out;
  };
  /// Prepares the data shared by all layers, when the first one runs.
  Status prepare();
  [[nodiscard]] Rows rows() const noexcept;
  Status upload(const engine::MatrixView& to, const float* from);
  Status append(int32_t layer, const Rows& rows);
  Status attend(int32_t layer, const Rows& rows, float scale);

  engine::Engine& engine_;
  const graph::Batch& batch_;
  const graph::AttentionSpec& spec_;
  std::vector<uint8_t> seen_;  // [layers]
  std::unique_ptr<engine::Stream> stream_;
  graph::StepBlock block_;
  engine::EngineBuffer memory_;  // of rows()
};

}  // namespace gen::model
