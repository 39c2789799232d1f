// SPDX-License-Identifier: Apache-2.0
// See bind.h. A value lies at arena + offset * rows, so that one placement serves every batch.
#include "graph/bind.h"

namespace gen::graph {
namespace {

size_t at(int32_t index) { return static_cast<size_t>(index); }

}  // namespace

const ProgramValue& Binder::value(const Operand& operand) const noexcept {
  return plan_.values_[at(operand.value)];
}

engine::EnginePtr<std::byte> Binder::memory(const Operand& operand) const noexcept {
  const ProgramValue& of = value(operand);
  const engine::EngineBuffer& arena = of.selected ? work_.selected_ : work_.rows_;
  return arena.data() + static_cast<std::ptrdiff_t>(of.offset) * rows_of(operand);
}

engine::MatrixView Binder::matrix(const Operand& operand) const noexcept {
  if (!operand.present()) return {};
  return {memory(operand).as<float>() + operand.first, rows_of(operand), operand.cols,
          static_cast<int64_t>(value(operand).row_bytes / sizeof(float))};
}

engine::ConstMatrixView Binder::const_matrix(const Operand& operand) const noexcept {
  const engine::MatrixView view = matrix(operand);
  return {view.data, view.rows, view.cols, view.stride};
}

engine::Activations Binder::packed(const Operand& operand) const noexcept {
  if (!operand.present()) return {};
  return {memory(operand), value(operand).forms, rows_of(operand), operand.cols};
}

engine::EnginePtr<const float> Binder::vector(int32_t index) const noexcept {
  if (index < 0) return nullptr;
  return plan_.vectors_[at(index)];
}

const engine::Weight* Binder::weight(const Instruction& instruction) const noexcept {
  return plan_.products_[at(instruction.product)].weight.get();
}

engine::LinearArgs Binder::linear(const Instruction& instruction) const noexcept {
  engine::LinearArgs args;
  args.weight = weight(instruction);
  args.x = packed(instruction.x);
  args.bias = vector(instruction.vector);
  args.activation = instruction.activation;
  args.residual = const_matrix(instruction.x2);
  args.y = matrix(instruction.y);
  return args;
}

engine::RopeAppendArgs Binder::rope_append(const Instruction& instruction,
                                           size_t call) const noexcept {
  const AttentionSpec& spec = instruction.attention;
  engine::RopeAppendArgs args;
  args.q = matrix(instruction.x);
  args.k = const_matrix(instruction.x2);
  args.v = const_matrix(instruction.x3);
  args.n_heads = spec.n_heads;
  args.n_kv_heads = spec.n_kv_heads;
  args.k_dim = spec.k_dim;
  args.v_dim = spec.v_dim;
  args.q_norm = vector(instruction.vector);
  args.k_norm = vector(instruction.vector2);
  args.norm_eps = instruction.factor;
  if (spec.rope >= 0) {
    args.rope = plan_.tables_[at(spec.rope)].kind;
    args.rope_dims = plan_.tables_[at(spec.rope)].n_dims;
    args.cs = const_matrix(instruction.angles);
  }
  const StepBlock::Group& group = work_.block_.groups()[call];
  args.layer = group.layers[at(instruction.layer)];
  args.sequences = work_.block_.sequences(group, args.layer.part);
  args.n_sequences = group.n;
  return args;
}

engine::AttentionArgs Binder::attention(const Instruction& instruction,
                                        size_t call) const noexcept {
  const AttentionSpec& spec = instruction.attention;
  engine::AttentionArgs args;
  args.q = const_matrix(instruction.x);
  args.out = matrix(instruction.y);
  args.packed = packed(instruction.packed);
  args.n_heads = spec.n_heads;
  args.n_kv_heads = spec.n_kv_heads;
  args.k_dim = spec.k_dim;
  args.v_dim = spec.v_dim;
  args.scale = spec.scale;
  args.soft_cap = spec.soft_cap;
  const StepBlock::Group& group = work_.block_.groups()[call];
  args.layer = group.layers[at(instruction.layer)];
  args.sequences = work_.block_.sequences(group, args.layer.part);
  args.n_sequences = group.n;
  return args;
}

engine::OpArgs Binder::bind(const Instruction& in, size_t call) const noexcept {
  switch (in.op) {
    case Op::kEmbed:
      return engine::EmbedArgs{weight(in), work_.block_.tokens(), in.factor, matrix(in.y)};
    case Op::kPack:
      return engine::PackArgs{const_matrix(in.x), packed(in.packed)};
    case Op::kRmsNorm:
      return engine::RmsNormArgs{const_matrix(in.x), vector(in.vector), in.factor, matrix(in.y),
                                 packed(in.packed)};
    case Op::kLinear:
      return linear(in);
    case Op::kGated:
      return engine::GatedArgs{const_matrix(in.x), const_matrix(in.x2), matrix(in.y),
                               in.activation};
    case Op::kActivate:
      return engine::ActivateArgs{const_matrix(in.x), matrix(in.y), in.activation};
    case Op::kAdd:
      return engine::AddArgs{const_matrix(in.x), const_matrix(in.x2), matrix(in.y)};
    case Op::kRopeAngles:
      return engine::RopeAnglesArgs{plan_.inv_freq_[at(in.attention.rope)],
                                    plan_.tables_[at(in.attention.rope)].magnitude,
                                    work_.block_.positions(), matrix(in.y)};
    case Op::kRopeAppend:
      return rope_append(in, call);
    case Op::kAttention:
      return attention(in, call);
    case Op::kSelectRows:
      return engine::SelectRowsArgs{const_matrix(in.x), selected_.rows, matrix(in.y)};
    case Op::kTap:
    case Op::kLogits:
      break;  // the runner's own
  }
  GEN_ASSERT(false);
  return {};
}

}  // namespace gen::graph
