// SPDX-License-Identifier: Apache-2.0
// See bind.h. The address of a value is arena + offset * rows, so one placement serves every batch.
#include "graph/bind.h"

#include <algorithm>

#include "base/mass_slices.h"
#include "base/to_size.h"

namespace gen::graph {
namespace {

/// See AttentionArgs. Rounded up to a power of two, so that it rarely changes as a sequence grows.
int32_t max_chunks(std::span<const engine::KvRows> sequences) noexcept {
  int32_t most = 1;
  for (const engine::KvRows& rows : sequences) {
    if (rows.positions || rows.visible) return 0;
    const int32_t end = rows.entries + rows.first_position % engine::kKvChunk;
    while (most * engine::kKvChunk < end) most *= 2;
  }
  return most;
}

}  // namespace

const ProgramValue& Binder::value(const Operand& operand) const noexcept {
  return plan_.values_[to_size(operand.value)];
}

engine::EnginePtr<std::byte> Binder::memory(const Operand& operand) const noexcept {
  const ProgramValue& of = value(operand);
  const Workspace::Side& side = work_.sides_[to_size(of.engine)];
  const engine::EngineBuffer& arena = of.selected ? side.selected : side.rows;
  return arena.data() + static_cast<std::ptrdiff_t>(of.offset) * steps_of(operand);
}

engine::MatrixView Binder::matrix(const Operand& operand) const noexcept {
  if (!operand.present()) return {};
  return {memory(operand).as<float>() + operand.first, rows_of(operand), operand.cols,
          static_cast<int64_t>(value(operand).stride_bytes() / sizeof(float))};
}

engine::Routes Binder::routes(const Operand& operand) const noexcept {
  return {memory(operand).as<int32_t>(), rows_of(operand), static_cast<int32_t>(operand.cols / 2),
          static_cast<int64_t>(value(operand).stride_bytes() / sizeof(int32_t))};
}

engine::ConstRoutes Binder::const_routes(const Operand& operand) const noexcept {
  if (!operand.present()) return {};
  const engine::Routes view = routes(operand);
  return {view.data, view.rows, view.n_used, view.stride};
}

engine::ConstMatrixView Binder::const_matrix(const Operand& operand) const noexcept {
  const engine::MatrixView view = matrix(operand);
  return {view.data, view.rows, view.cols, view.stride};
}

bool Binder::in_bf16(const Operand& operand) const noexcept {
  const int64_t from = value(operand).bf16_rows;
  return from > 0 && rows_of(operand) >= from && !batch_.deterministic;
}

engine::Activations Binder::packed(const Operand& operand) const noexcept {
  if (!operand.present()) return {};
  return {memory(operand), value(operand).forms, rows_of(operand), operand.cols, in_bf16(operand)};
}

engine::EnginePtr<const float> Binder::vector(int32_t index) const noexcept {
  if (index < 0) return nullptr;
  return plan_.vectors_[to_size(index)];
}

const engine::Weight* Binder::weight(const Instruction& instruction) const noexcept {
  return plan_.products_[to_size(instruction.product)].weight.get();
}

engine::LowRank Binder::low_rank(const Instruction& instruction) const noexcept {
  engine::LowRank of;
  const ExecutionPlan::Prepared& product = plan_.products_[to_size(instruction.product)];
  if (!block(instruction).mixes() || !product.low_rank) return of;
  of.table = batch_.adapters->data(instruction.engine);
  of.stride = batch_.adapters->stride();
  of.mixes = block(instruction).mixes();
  if (instruction.selected) of.rows = block(instruction).at(selected_);
  of.sites = product.low_rank;
  of.n_sites = static_cast<int32_t>(product.sites.size());
  return of;
}

engine::LinearArgs Binder::linear(const Instruction& instruction) const noexcept {
  engine::LinearArgs args;
  args.weight = weight(instruction);
  args.x = packed(instruction.x[0]);
  args.bias = vector(instruction.vector);
  args.activation = instruction.activation;
  args.residual = const_matrix(instruction.x[1]);
  args.y = matrix(instruction.y);
  args.bf16_y = in_bf16(instruction.y);
  args.low_rank = low_rank(instruction);
  args.deterministic = batch_.deterministic;
  if (args.low_rank.table) args.u = const_matrix(instruction.x[2]);
  return args;
}

engine::EmbedArgs Binder::embed(const Instruction& instruction) const noexcept {
  const StepBlock& step = block(instruction);
  const engine::EnginePtr<const int32_t> ids = instruction.lookup == Lookup::kTokens ? step.tokens()
                                               : instruction.lookup == Lookup::kPositions
                                                   ? step.positions()
                                                   : step.zeros();
  return {weight(instruction), ids, instruction.factor, matrix(instruction.y),
          low_rank(instruction)};
}

template <typename Args>
void Binder::over_cache(const Instruction& instruction, size_t call, Args* args) const noexcept {
  const AttentionSpec& spec = instruction.attention;
  args->n_heads = spec.n_heads;
  args->n_kv_heads = spec.n_kv_heads;
  args->k_dim = spec.k_dim;
  args->v_dim = spec.v_dim;
  const StepBlock::Group& group = block(instruction).groups()[call];
  args->layer = group.layers[to_size(instruction.layer)];
  // The row stands for the one behind the entries, which are all that it sees: one less than that
  // row, itself included.
  if (spec.use == CacheUse::kGiven && args->layer.window > 0) --args->layer.window;
  args->sequences = block(instruction).sequences(group, args->layer.part);
  args->n_sequences = group.places;
}

engine::RopeAppendArgs Binder::rope_append(const Instruction& instruction,
                                           size_t call) const noexcept {
  const AttentionSpec& spec = instruction.attention;
  engine::RopeAppendArgs args;
  args.q = matrix(instruction.x[0]);
  args.k = const_matrix(instruction.x[1]);
  args.v = const_matrix(instruction.x[2]);
  over_cache(instruction, call, &args);
  args.q_norm = vector(instruction.vector);
  args.k_norm = vector(instruction.vector2);
  args.norm_eps = instruction.factor;
  args.norm_last = spec.norm_last;
  if (spec.rope >= 0) {
    args.rope = plan_.tables_[to_size(spec.rope)].kind;
    args.rope_dims = plan_.tables_[to_size(spec.rope)].n_dims;
    args.cs = const_matrix(instruction.angles);
  }
  return args;
}

engine::AttentionArgs Binder::attention(const Instruction& instruction,
                                        size_t call) const noexcept {
  engine::AttentionArgs args;
  args.q = const_matrix(instruction.x[0]);
  args.out = matrix(instruction.y);
  args.packed = packed(instruction.packed);
  over_cache(instruction, call, &args);
  args.scale = instruction.attention.scale;
  args.soft_cap = instruction.attention.soft_cap;
  args.sinks = vector(instruction.vector);
  const StepBlock& step = block(instruction);
  args.any_bits = !batch_.deterministic && args.q.rows > plan_.one_result_rows_;
  args.max_chunks = max_chunks(step.host_sequences(step.groups()[call], args.layer.part));
  return args;
}

/// The selected rows that want best; they follow the others.
engine::BestArgs Binder::best(const Instruction& instruction) const noexcept {
  const StepBlock::Best& best = block(instruction).best();
  const int64_t skipped = std::max<int64_t>(best.first - selected_.first, 0);
  const std::ptrdiff_t row = selected_.first + skipped - best.first;
  engine::BestArgs args = best.args;
  args.x = matrix(instruction.x[0]);
  args.x.data = args.x.data + skipped * args.x.stride;
  args.x.rows -= skipped;
  if (args.rows) args.rows = args.rows + row;
  args.tokens = args.tokens + row * args.k;
  args.values = args.values + row * args.k;
  if (args.slice) args.slice = args.slice + row * std::ptrdiff_t{kMassSlice};
  if (args.mass) args.mass = args.mass + row * static_cast<std::ptrdiff_t>(best.mass_slices);
  return args;
}

template <typename Args>
void Binder::over_states(const Instruction& instruction, Args* args) const noexcept {
  args->y = matrix(instruction.y);
  args->layer = plan_.states_->layers[to_size(instruction.layer)];
  args->sequences = block(instruction).states();
  args->n_sequences = block(instruction).n_states();
}

engine::ScanArgs Binder::scan(const Instruction& instruction) const noexcept {
  engine::ScanArgs args;
  args.a = const_matrix(instruction.x[0]);
  args.b = const_matrix(instruction.x[1]);
  args.x = const_matrix(instruction.x[2]);
  over_states(instruction, &args);
  return args;
}

engine::CausalConvArgs Binder::causal_conv(const Instruction& instruction) const noexcept {
  engine::CausalConvArgs args;
  args.x = const_matrix(instruction.x[0]);
  args.w = vector(instruction.vector);
  args.b = vector(instruction.vector2);
  args.taps = instruction.taps;
  args.act = instruction.activation.kind;
  over_states(instruction, &args);
  return args;
}

engine::DeltaNetArgs Binder::delta_net(const Instruction& instruction) const noexcept {
  engine::DeltaNetArgs args;
  args.qkv = const_matrix(instruction.x[0]);
  args.alpha = const_matrix(instruction.x[1]);
  args.beta = const_matrix(instruction.x[2]);
  args.dt = vector(instruction.vector);
  args.a = vector(instruction.vector2);
  args.shape = instruction.delta;
  over_states(instruction, &args);
  return args;
}

engine::SelectiveScanArgs Binder::selective_scan(const Instruction& instruction) const noexcept {
  engine::SelectiveScanArgs args;
  args.x = const_matrix(instruction.x[0]);
  args.dt = const_matrix(instruction.x[1]);
  args.b = const_matrix(instruction.x[2]);
  args.c = const_matrix(instruction.x[3]);
  args.n_groups = instruction.groups;
  args.dt_bias = vector(instruction.vector);
  args.d = args.dt_bias + args.dt.cols;
  args.a = args.d + args.dt.cols;
  over_states(instruction, &args);
  return args;
}

engine::OpArgs Binder::bind(const Instruction& in, size_t call) const noexcept {
  switch (in.op) {
    case Op::kEmbed:
      return embed(in);
    case Op::kPack:
      return engine::PackArgs{const_matrix(in.x[0]), packed(in.packed)};
    case Op::kRmsNorm:
      return engine::RmsNormArgs{const_matrix(in.x[0]), vector(in.vector), in.factor, matrix(in.y),
                                 packed(in.packed)};
    case Op::kLayerNorm:
      return engine::LayerNormArgs{
          const_matrix(in.x[0]), vector(in.vector), vector(in.vector2), in.factor, in.groups,
          !in.uncentred,         matrix(in.y),      packed(in.packed)};
    case Op::kLinear:
      return linear(in);
    case Op::kGated:
      return engine::GatedArgs{const_matrix(in.x[0]), const_matrix(in.x[1]), matrix(in.y),
                               in.activation};
    case Op::kActivate:
      return engine::ActivateArgs{const_matrix(in.x[0]), matrix(in.y), in.activation};
    case Op::kAdd:
      return engine::AddArgs{const_matrix(in.x[0]), const_matrix(in.x[1]), matrix(in.y)};
    case Op::kRopeAngles:
      return engine::RopeAnglesArgs{plan_.inv_freq_[to_size(in.engine)][to_size(in.attention.rope)],
                                    plan_.tables_[to_size(in.attention.rope)].magnitude,
                                    block(in).positions(), matrix(in.y)};
    case Op::kRopeAppend:
      return rope_append(in, call);
    case Op::kAttention:
      return attention(in, call);
    case Op::kSelectRows:
      return engine::SelectRowsArgs{const_matrix(in.x[0]), block(in).at(selected_), matrix(in.y)};
    case Op::kPositionScale:
      return engine::PositionScaleArgs{
          const_matrix(in.x[0]), block(in).positions(), vector(in.vector), in.n_factors, in.every,
          matrix(in.y)};
    case Op::kMeanRows:
      return engine::MeanRowsArgs{const_matrix(in.x[0]), block(in).firsts(selected_),
                                  block(in).at(selected_), matrix(in.y)};
    case Op::kBest:
      return best(in);
    case Op::kScan:
      return scan(in);
    case Op::kCausalConv:
      return causal_conv(in);
    case Op::kDeltaNet:
      return delta_net(in);
    case Op::kSelectiveScan:
      return selective_scan(in);
    case Op::kRoute:
      return engine::RouteArgs{const_matrix(in.x[0]), vector(in.vector), in.routing, routes(in.y)};
    case Op::kExperts:
      return engine::ExpertsArgs{weight(in),        packed(in.x[0]),    const_routes(in.x[1]),
                                 vector(in.vector), vector(in.vector2), in.activation,
                                 matrix(in.y),      low_rank(in),       const_matrix(in.x[2])};
    case Op::kCombine:
      return engine::CombineArgs{const_matrix(in.x[0]), const_routes(in.x[1]), matrix(in.y)};
    case Op::kAdapterIn:
      return engine::AdapterInArgs{const_matrix(in.x[0]), low_rank(in), matrix(in.y),
                                   const_routes(in.x[1])};
    case Op::kTap:
    case Op::kLogits:
    case Op::kSlice:
    case Op::kTransfer:
    case Op::kFeatures:
    case Op::kJoin:
      break;  // handled by the runner
  }
  GEN_ASSERT(false);
  return {};
}

}  // namespace gen::graph
