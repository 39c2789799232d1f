// SPDX-License-Identifier: Apache-2.0
// From an instruction to the arguments of its operation: values become places in the arenas,
// indices become weights and vectors, sequences become views of their caches. One switch, and the
// only one over operations (engine/op.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "engine/ops.h"
#include "graph/batch.h"
#include "graph/execution_plan.h"
#include "graph/workspace.h"

namespace gen::graph {

/// Binds instructions of one run, in their order.
class Binder {
 public:
  Binder(const ExecutionPlan& plan, const Batch& batch, Workspace& workspace) noexcept
      : plan_(plan), batch_(batch), work_(workspace) {}

  /// Selected values have these rows of the batch from here on.
  void select(std::span<const int32_t> rows) noexcept { selected_ = rows; }
  [[nodiscard]] std::span<const int32_t> selected() const noexcept { return selected_; }

  /// The arguments of an engine's operation. What a cache says of its views.
  Status bind(const Instruction& instruction, engine::OpArgs* args);

  [[nodiscard]] const ProgramValue& value(const Operand& operand) const noexcept;
  [[nodiscard]] int64_t rows_of(const Operand& operand) const noexcept {
    return value(operand).selected ? static_cast<int64_t>(selected_.size()) : batch_.rows();
  }
  [[nodiscard]] engine::MatrixView matrix(const Operand& operand) const noexcept;
  [[nodiscard]] engine::ConstMatrixView const_matrix(const Operand& operand) const noexcept;

 private:
  [[nodiscard]] std::byte* memory(const Operand& operand) const noexcept;
  [[nodiscard]] engine::Activations packed(const Operand& operand) const noexcept;
  [[nodiscard]] const float* vector(int32_t index) const noexcept;
  [[nodiscard]] const engine::Weight* weight(const Instruction& instruction) const noexcept;
  Status view_caches(int32_t layer);
  [[nodiscard]] engine::LinearArgs linear(const Instruction& instruction) const noexcept;
  [[nodiscard]] engine::RopeAppendArgs rope_append(const Instruction& instruction) const noexcept;
  [[nodiscard]] engine::AttentionArgs attention(const Instruction& instruction) const noexcept;

  const ExecutionPlan& plan_;
  const Batch& batch_;
  Workspace& work_;
  std::span<const int32_t> selected_;
};

}  // namespace gen::graph
