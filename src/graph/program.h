// SPDX-License-Identifier: Apache-2.0
// A program: the flat list of instructions that a graph becomes, with the values they read and
// write. fusion.h makes it, compile (execution_plan.h) brings weights in and places the values, and
// the runner walks it. Everything is plain data, so a test or a person can look at it.
#pragma once

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
  int32_t slots = 1;  // rows for each row of the step
  bool index = false;
  bool packed = false;
  bool selected = false;  // lies in the region of selected rows
  int32_t engine = 0;     // whose memory it lies in
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

/// What the operands mean, by op:
///   kRopeAngles  -> y (cos and sin)                  kEmbed       -> y
///   kRmsNorm     x -> y, packed                      kPack        x -> packed
///   kLinear      x (packed), x2 (residual), x3 (A x of adapters; before it is compiled the float
///                rows of x) -> y                     kGated, kAdd  x, x2 -> y
///   kAdapterIn   x -> y, for the product of the same number
///   kActivate    x -> y
///   kRopeAppend  x, x2, x3 (q, k, v), angles; x is rotated in place; without x2 and x3 the layer
///                is another block's and nothing is stored
///   kAttention   x -> y, packed                      kTap, kLogits  x
///   kTransfer    x -> y, of another engine
///   kSelectRows  x -> y                              kBest       x, which it changes
///   kScan        x, x2, x3 (a, b, x) -> y            kRoute      x -> y (indices)
///   kExperts     x (packed), x2 (indices) -> y       kCombine    x, x2 (indices) -> y
struct Instruction {
  Op op = Op::kEmbed;
  bool selected = false;   // runs over selected rows, in chunks, after all others
  bool skippable = false;  // only selected instructions read what it writes
  int32_t engine = 0;      // that runs it; of a transfer, that the rows go to
  Operand x, x2, x3;
  Operand angles;
  Operand y;
  Operand packed;
  int32_t product = -1;  // index into Program::products
  int32_t vector = -1;   // index into Program::vectors: norm weight, bias, norm of q
  int32_t vector2 = -1;  // norm of k
  int32_t layer = -1;
  float factor = 1.0F;
  engine::Activation activation;
  engine::Routing routing;
  AttentionSpec attention;

  /// What it reads, in the order of OpInfo::in_place.
  [[nodiscard]] std::array<const Operand*, 4> reads() const noexcept {
    return {&x, &x2, &x3, &angles};
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
