// SPDX-License-Identifier: Apache-2.0
// What the plan, its passes and its tracers know of an operation. A new one is a row of
// op_list.inc, its arguments (ops.h), its case in graph/bind.cpp, and a kernel of each engine. One
// that reads much memory has a cost (op_cost.cpp), one that GraphBuilder::apply cannot name a
// function there; nobody else names it.
#pragma once

#include <cstdint>

namespace gen::engine {

/// First the operations of engines, in the order of OpArgs; then what only plans know.
enum class Op : uint8_t {
#define GEN_OP(name, ...) k##name,
#include "engine/op_list.inc"
  kTap,       // rows go to whoever asked for them
  kLogits,    // selected rows go to whoever asked for them
  kSlice,     // columns of a value, where they lie
  kTransfer,  // rows go from one engine's memory to another's
};
inline constexpr int32_t kOps = static_cast<int32_t>(Op::kTransfer) + 1;
/// Values that an operation reads at most.
inline constexpr int32_t kMaxInputs = 6;
/// Engines run it; the others are plans' own.
constexpr bool is_engine_op(Op op) noexcept { return op < Op::kTap; }

/// What an operation changes besides the value it makes.
enum class Effect : uint8_t {
  kNone,
  kCache,  // appends to caches; makes no value of its own but the first operand, changed in place
  kState,  // takes states on; makes a value, too
  kHost,   // gives rows to the host; makes no value
};

struct OpInfo {
  Op op;
  const char* name;  // as tracers show it, "rms_norm"
  uint8_t n_in;      // values that it reads; the second of a product is the residual
  uint8_t in_place;  // bit i: the value made may take over the memory of operand i
  bool row_wise;     // a row of the value is made of the same row of its operands, and nothing else
  bool same_width;   // row-wise, and all operands and the value are equally wide
  bool packs;        // can write packed rows beside or in place of float rows
  Effect effect;
};

/// Whether its value is a new one.
constexpr bool makes_value(Effect effect) noexcept {
  return effect == Effect::kNone || effect == Effect::kState;
}

const OpInfo& op_info(Op op) noexcept;

}  // namespace gen::engine
