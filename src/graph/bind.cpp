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

std::byte* Binder::memory(const Operand& operand) const noexcept {
  const ProgramValue& of = value(operand);
  std::byte* arena = of.selected ? work_.selected_.data() : work_.rows_.data();
  return arena + of.offset * static_cast<size_t>(rows_of(operand));
}

engine::MatrixView Binder::matrix(const Operand& operand) const noexcept {
  if (!operand.present()) return {};
  return {reinterpret_cast<float*>(memory(operand)) + operand.first, rows_of(operand), operand.cols,
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

const float* Binder::vector(int32_t index) const noexcept {
  return index < 0 ? nullptr : plan_.vectors_[at(index)];
}

const engine::Weight* Binder::weight(const Instruction& instruction) const noexcept {
  return plan_.products_[at(instruction.product)].weight.get();
}

Status Binder::view_caches(int32_t layer) {
  for (size_t s = 0; s < batch_.sequences.size(); ++s) {
    const BatchSequence& sequence = batch_.sequences[s];
    engine::SequenceRows& rows = work_.sequences_[s];
    rows.first_row = sequence.first_row;
    rows.n_rows = sequence.n_rows;
    rows.first_entry = sequence.plan.start;
    GEN_ASSIGN(rows.view, sequence.cache->view(layer, sequence.plan));
  }
  return {};
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

engine::RopeAppendArgs Binder::rope_append(const Instruction& instruction) const noexcept {
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
  args.sequences = work_.sequences_;
  return args;
}

engine::AttentionArgs Binder::attention(const Instruction& instruction) const noexcept {
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
  args.sequences = work_.sequences_;
  return args;
}

Status Binder::bind(const Instruction& in, engine::OpArgs* args) {
  switch (in.op) {
    case Op::kEmbed:
      *args = engine::EmbedArgs{weight(in), batch_.tokens, in.factor, matrix(in.y)};
      return {};
    case Op::kPack:
      *args = engine::PackArgs{const_matrix(in.x), packed(in.packed)};
      return {};
    case Op::kRmsNorm:
      *args = engine::RmsNormArgs{const_matrix(in.x), vector(in.vector), in.factor, matrix(in.y),
                                  packed(in.packed)};
      return {};
    case Op::kLinear:
      *args = linear(in);
      return {};
    case Op::kGated:
      *args =
          engine::GatedArgs{const_matrix(in.x), const_matrix(in.x2), matrix(in.y), in.activation};
      return {};
    case Op::kActivate:
      *args = engine::ActivateArgs{const_matrix(in.x), matrix(in.y), in.activation};
      return {};
    case Op::kAdd:
      *args = engine::AddArgs{const_matrix(in.x), const_matrix(in.x2), matrix(in.y)};
      return {};
    case Op::kRopeAngles:
      *args = engine::RopeAnglesArgs{&plan_.tables_[at(in.attention.rope)], batch_.positions,
                                     matrix(in.y)};
      return {};
    case Op::kRopeAppend:
      GEN_TRY(view_caches(in.layer));
      *args = rope_append(in);
      return {};
    case Op::kAttention:
      *args = attention(in);
      return {};
    case Op::kSelectRows:
      *args = engine::SelectRowsArgs{const_matrix(in.x), selected_, matrix(in.y)};
      return {};
    case Op::kTap:
    case Op::kLogits:
      break;
  }
  return error(Code::kInternal, "%s has no arguments", engine::op_info(in.op).name);
}

}  // namespace gen::graph
