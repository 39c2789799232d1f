// SPDX-License-Identifier: Apache-2.0
// Converts an instruction to the arguments of its operation: values become addresses in the arenas,
// indices become weights and vectors, sequences their records in the step block. This is the only
// switch over operations (engine/op.h).
#pragma once

#include <cstddef>
#include <cstdint>

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

  /// From here on, selected values have these rows of the batch.
  void select(const StepBlock::RowList& rows) noexcept { selected_ = rows; }

  /// The number of operations that an instruction takes: one, or one for each group of sequences.
  [[nodiscard]] size_t calls(const Instruction& instruction) const noexcept {
    return instruction.attention.n_heads > 0 ? work_.sides_[0].block.groups().size() : 1;
  }
  /// The arguments of the `call`-th of them.
  [[nodiscard]] engine::OpArgs bind(const Instruction& instruction, size_t call) const noexcept;

  [[nodiscard]] const ProgramValue& value(const Operand& operand) const noexcept;
  /// The number of rows, counting all slots of each.
  [[nodiscard]] int64_t rows_of(const Operand& operand) const noexcept {
    return steps_of(operand) * value(operand).slots;
  }
  [[nodiscard]] engine::MatrixView matrix(const Operand& operand) const noexcept;
  [[nodiscard]] engine::ConstMatrixView const_matrix(const Operand& operand) const noexcept;
  [[nodiscard]] engine::ConstRoutes const_routes(const Operand& operand) const noexcept;

 private:
  /// Rows of the step, or those selected of them.
  [[nodiscard]] int64_t steps_of(const Operand& operand) const noexcept {
    return value(operand).selected ? selected_.n : work_.sides_[0].block.rows();
  }
  [[nodiscard]] engine::Routes routes(const Operand& operand) const noexcept;
  [[nodiscard]] const StepBlock& block(const Instruction& instruction) const noexcept {
    return work_.sides_[static_cast<size_t>(instruction.engine)].block;
  }
  [[nodiscard]] engine::EnginePtr<std::byte> memory(const Operand& operand) const noexcept;
  /// Whether a value's rows are bfloat16 in this run.
  [[nodiscard]] bool in_bf16(const Operand& operand) const noexcept;
  [[nodiscard]] engine::Activations packed(const Operand& operand) const noexcept;
  [[nodiscard]] engine::EnginePtr<const float> vector(int32_t index) const noexcept;
  [[nodiscard]] const engine::Weight* weight(const Instruction& instruction) const noexcept;
  [[nodiscard]] engine::LowRank low_rank(const Instruction& instruction) const noexcept;
  [[nodiscard]] engine::LinearArgs linear(const Instruction& instruction) const noexcept;
  [[nodiscard]] engine::EmbedArgs embed(const Instruction& instruction) const noexcept;
  /// Arguments shared by the operations on a cache layer.
  template <typename Args>
  void over_cache(const Instruction& instruction, size_t call, Args* args) const noexcept;
  [[nodiscard]] engine::BestArgs best(const Instruction& instruction) const noexcept;
  [[nodiscard]] engine::RopeAppendArgs rope_append(const Instruction& instruction,
                                                   size_t call) const noexcept;
  [[nodiscard]] engine::ScanArgs scan(const Instruction& instruction) const noexcept;
  [[nodiscard]] engine::CausalConvArgs causal_conv(const Instruction& instruction) const noexcept;
  [[nodiscard]] engine::DeltaNetArgs delta_net(const Instruction& instruction) const noexcept;
  /// Arguments shared by the operations on states.
  template <typename Args>
  void over_states(const Instruction& instruction, Args* args) const noexcept;
  [[nodiscard]] engine::SelectiveScanArgs selective_scan(
      const Instruction& instruction) const noexcept;
  [[nodiscard]] engine::AttentionArgs attention(const Instruction& instruction,
                                                size_t call) const noexcept;

  const ExecutionPlan& plan_;
  const Batch& batch_;
  Workspace& work_;
  StepBlock::RowList selected_;
};

}  // namespace gen::graph
