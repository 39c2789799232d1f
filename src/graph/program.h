// SPDX-License-Identifier: Apache-2.0
// A program: the flat list of instructions of a graph, with the values they read and write.
// fusion.h makes it, compile (execution_plan.h) prepares weights and places the values, and the
// runner executes it. Everything is plain data, so that tests and people can inspect it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/op.h"
#include "engine/weight.h"
#include "graph/graph.h"

namespace gen::graph {

using engine::Op;

/// Rows of float32, rows packed for products, or rows of indices: words of 32 bits
/// (engine::Routes).
struct ProgramValue {
  int64_t cols = 0;
  int32_t slots = 1;  // rows per row of the step
  bool index = false;
  bool packed = false;
  bool selected = false;  // is in the region of selected rows
  int32_t engine = 0;     // the engine whose memory it is in
  uint32_t forms = 0;     // packed: ActForm bits, known once weights are prepared
  /// Rows from which on they are bfloat16 (engine::Activations::bf16); 0: never.
  int64_t bf16_rows = 0;
  // Filled by compile:
  size_t row_bytes = 0;  // of all slots of a row, each a multiple of 64
  size_t offset = 0;     // bytes for one row, see memory_plan.h

  /// From a row, or a slot of one, to the next.
  [[nodiscard]] size_t stride_bytes() const noexcept {
    return row_bytes / static_cast<size_t>(slots);
  }
};

/// Columns [first, first + cols) of a value; none if value < 0.
struct Operand {
  int32_t value = -1;
  int64_t first = 0;
  int64_t cols = 0;
  [[nodiscard]] bool present() const noexcept { return value >= 0; }
};

/// The columns of a product's output that belong to one site; an adapter adds its part there.
struct SiteSlice {
  int32_t site = -1;
  int64_t first = 0;
  int64_t cols = 0;
};

/// Weights that become one engine Weight.
struct Product {
  engine::WeightRole role = engine::WeightRole::kLinear;
  std::vector<engine::WeightSource> sources;
  std::vector<SiteSlice> sites;
};

/// What the operands mean, by op; the values read are x, in their order:
///   kRopeAngles  -> y (cos and sin)                  kEmbed       -> y
///   kRmsNorm, kLayerNorm  x -> y, packed             kPack        x -> packed
///   kLinear      x (packed), residual, A x of adapters (before it is compiled the float rows of
///                x) -> y                             kGated, kAdd  a, b -> y
///   kAdapterIn   x -> y, for the product of the same number
///   kActivate    x -> y
///   kRopeAppend  q, k, v, angles; q is rotated in place; without k and v the layer is another
///                block's and nothing is stored
///   kAttention   q -> y, packed                      kTap, kLogits  x
///   kTransfer    x -> y, of another engine           kFeatures    -> y
///   kSelectRows  x -> y                              kBest       x, which it changes
///   kScan        a, b, x -> y                        kRoute      x -> y (indices)
///   kCausalConv  x -> y                              kDeltaNet   q with k and v, alpha, beta -> y
///   kSelectiveScan  x, dt, b, c -> y; `vector` is dt_bias, then d, then a
///   kExperts     x (packed), indices -> y            kCombine    x, indices -> y
struct Instruction {
  Op op = Op::kEmbed;
  bool selected = false;   // runs over selected rows, in chunks, after all others
  bool skippable = false;  // only selected instructions read what it writes
  int32_t engine = 0;      // the engine that runs it; for a transfer, the target
  std::array<Operand, engine::kMaxInputs> x;
  Operand angles;
  Operand y;
  Operand packed;
  int32_t product = -1;  // index into Program::products
  int32_t vector = -1;   // index into Program::vectors: norm weight, bias, norm of q, sinks
  int32_t vector2 = -1;  // bias of a norm, norm of k, scales of experts
  int32_t layer = -1;
  Lookup lookup = Lookup::kTokens;
  float factor = 1.0F;
  int32_t groups = 1;
  bool uncentred = false;
  int32_t n_factors = 0;  // of kPositionScale, for `every` positions each
  int32_t every = 1;
  int32_t taps = 0;  // of kCausalConv
  engine::DeltaShape delta;
  engine::Activation activation;
  engine::Routing routing;
  AttentionSpec attention;

  /// What it reads, in the order of OpInfo::in_place.
  [[nodiscard]] std::array<const Operand*, engine::kMaxInputs + 1> reads() const noexcept {
    std::array<const Operand*, engine::kMaxInputs + 1> all;
    std::transform(x.begin(), x.end(), all.begin(), [](const Operand& each) { return &each; });
    all.back() = &angles;
    return all;
  }
  [[nodiscard]] std::array<const Operand*, 2> writes() const noexcept { return {&y, &packed}; }
};

struct Program {
  std::vector<Instruction> instructions;  // selected ones last
  std::vector<ProgramValue> values;
  std::vector<Product> products;
  std::vector<std::vector<float>> vectors;
};

}  // namespace gen::graph
