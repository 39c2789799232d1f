// SPDX-License-Identifier: Apache-2.0
// Properties of operations for plans, their passes and tracers. To add an operation: a row in
// op_list.inc, an argument struct in ops.h, a case in graph/bind.cpp and a kernel in each engine.
// If it reads much memory, it has a cost in trace/op_cost.cpp. If GraphBuilder::apply cannot build
// it, it has a function of GraphBuilder.
#pragma once

#include <cstdint>

namespace gen::engine {

/// Operations of engines in the order of OpArgs, then those that only plans know.
enum class Op : uint8_t {
#define GEN_OP(name, ...) k##name,
#include "engine/op_list.inc"
  kTap,       // copies hidden states to the caller
  kLogits,    // copies selected rows of logits to the caller
  kSlice,     // a view of some columns of a value
  kTransfer,  // copies rows from one engine's memory to another's
  kFeatures,  // copies rows from the caller
  kJoin,      // the columns of several values as one value, which they are written to
};
inline constexpr int32_t kOps = static_cast<int32_t>(Op::kJoin) + 1;
/// The largest number of values that an operation reads.
inline constexpr int32_t kMaxInputs = 6;
/// Whether engines run it; plans handle the others.
constexpr bool is_engine_op(Op op) noexcept { return op < Op::kTap; }

/// Side effects of an operation.
enum class Effect : uint8_t {
  kNone,
  kCache,  // appends to caches; its value is the first operand, changed in place
  kState,  // advances recurrent states; has a value of its own
  kHost,   // copies rows to the host; has no value
};

struct OpInfo {
  Op op;
  const char* name;  // as tracers show it, "rms_norm"
  uint8_t n_in;      // values that it reads; the second of a product is the residual
  uint8_t in_place;  // bit i: the result may reuse the memory of operand i
  bool row_wise;     // a row of the result depends on the same row of the operands only
  bool same_width;   // row-wise, and operands and result have the same width, except narrow gates
  bool packs;        // can write packed rows beside or in place of float rows
  Effect effect;
};

/// Whether its result is a new value.
constexpr bool makes_value(Effect effect) noexcept {
  return effect == Effect::kNone || effect == Effect::kState;
}

const OpInfo& op_info(Op op) noexcept;

}  // namespace gen::engine
