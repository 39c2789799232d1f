// SPDX-License-Identifier: Apache-2.0
// The table of operations. See op.h.
#include <type_traits>
#include <variant>

#include "engine/op.h"
#include "engine/ops.h"

namespace gen::engine {
namespace {

constexpr bool kRowWise = true;
constexpr bool kSameWidth = true;
constexpr bool kPacks = true;

constexpr OpInfo kTable[] = {
    // op, name, n_in, in_place, row-wise, same width, packs, effect
    {Op::kEmbed, "embed", 0, 0, false, false, false, Effect::kNone},
    {Op::kPack, "pack", 1, 0, kRowWise, false, false, Effect::kNone},
    {Op::kRmsNorm, "rms_norm", 1, 0, kRowWise, false, kPacks, Effect::kNone},
    {Op::kLinear, "linear", 2, 0b10, kRowWise, false, false, Effect::kNone},  // x, residual
    {Op::kGated, "gated", 2, 0b11, kRowWise, kSameWidth, false, Effect::kNone},
    {Op::kActivate, "activate", 1, 0b1, kRowWise, kSameWidth, false, Effect::kNone},
    {Op::kAdd, "add", 2, 0b11, kRowWise, kSameWidth, false, Effect::kNone},
    {Op::kRopeAngles, "rope_angles", 0, 0, false, false, false, Effect::kNone},
    {Op::kRopeAppend, "rope_append", 3, 0, false, false, false, Effect::kCache},
    {Op::kAttention, "attention", 1, 0, false, false, kPacks, Effect::kNone},
    {Op::kSelectRows, "select_rows", 1, 0, false, false, false, Effect::kNone},
    {Op::kBest, "best", 1, 0, false, false, false, Effect::kHost},
    {Op::kScan, "scan", 3, 0b111, false, false, false, Effect::kState},
    {Op::kAdapterIn, "adapter_in", 1, 0, kRowWise, false, false, Effect::kNone},
    {Op::kRoute, "route", 1, 0, kRowWise, false, false, Effect::kNone},
    {Op::kExperts, "experts", 2, 0, kRowWise, false, false, Effect::kNone},
    {Op::kCombine, "combine", 2, 0, kRowWise, false, false, Effect::kNone},
    {Op::kTap, "tap", 1, 0, false, false, false, Effect::kHost},
    {Op::kLogits, "logits", 1, 0, false, false, false, Effect::kHost},
    {Op::kTransfer, "transfer", 1, 0, false, false, false, Effect::kNone},
};

constexpr bool in_order() {
  for (int32_t i = 0; i < kOps; ++i) {
    if (kTable[i].op != static_cast<Op>(i)) return false;
  }
  return true;
}
static_assert(std::size(kTable) == kOps && in_order(), "a row for each operation, in order");

template <Op op>
using ArgsOf = std::variant_alternative_t<static_cast<size_t>(op), OpArgs>;
static_assert(std::is_same_v<ArgsOf<Op::kEmbed>, EmbedArgs>);
static_assert(std::is_same_v<ArgsOf<Op::kLinear>, LinearArgs>);
static_assert(std::is_same_v<ArgsOf<Op::kAttention>, AttentionArgs>);
static_assert(std::is_same_v<ArgsOf<Op::kSelectRows>, SelectRowsArgs>);
static_assert(std::is_same_v<ArgsOf<Op::kBest>, BestArgs>);
static_assert(std::is_same_v<ArgsOf<Op::kScan>, ScanArgs>);
static_assert(std::is_same_v<ArgsOf<Op::kAdapterIn>, AdapterInArgs>);
static_assert(std::is_same_v<ArgsOf<Op::kCombine>, CombineArgs>);
static_assert(std::variant_size_v<OpArgs> == static_cast<size_t>(Op::kTap));
static_assert(std::is_trivially_copyable_v<OpArgs>, "arguments can be queued");

}  // namespace

const OpInfo& op_info(Op op) noexcept { return kTable[static_cast<size_t>(op)]; }

}  // namespace gen::engine
