// SPDX-License-Identifier: Apache-2.0
// The table of operations. See op.h.
#include <type_traits>
#include <variant>

#include "engine/op.h"
#include "engine/ops.h"

namespace gen::engine {
namespace {

constexpr bool kNo = false;
constexpr bool kRowWise = true;
constexpr bool kSameWidth = true;
constexpr bool kPacks = true;

constexpr OpInfo kTable[] = {
#define GEN_OP(name, text, in, in_place, row_wise, same_width, packs, effect) \
  {Op::k##name, text, in, in_place, row_wise, same_width, packs, Effect::effect},
#include "engine/op_list.inc"
    {Op::kTap, "tap", 1, 0, kNo, kNo, kNo, Effect::kHost},
    {Op::kLogits, "logits", 1, 0, kNo, kNo, kNo, Effect::kHost},
    {Op::kSlice, "slice", 1, 0, kRowWise, kNo, kNo, Effect::kNone},
    {Op::kTransfer, "transfer", 1, 0, kNo, kNo, kNo, Effect::kNone},
    {Op::kFeatures, "features", 0, 0, kNo, kNo, kNo, Effect::kNone},
    {Op::kJoin, "join", 2, 0, kNo, kNo, kNo, Effect::kNone},
};

constexpr bool in_order() {
  for (int32_t i = 0; i < kOps; ++i) {
    if (kTable[i].op != static_cast<Op>(i)) return false;
  }
  return true;
}
static_assert(std::size(kTable) == kOps && in_order(), "a row for each operation, in order");

constexpr bool inputs_fit() {
  for (const OpInfo& row : kTable) {
    if (row.n_in > kMaxInputs || row.in_place >> row.n_in != 0) return false;
  }
  return true;
}
static_assert(inputs_fit(), "values are read where nodes and instructions have room for them");
static_assert(std::is_trivially_copyable_v<OpArgs>, "arguments can be queued");

}  // namespace

const OpInfo& op_info(Op op) noexcept { return kTable[static_cast<size_t>(op)]; }

}  // namespace gen::engine
