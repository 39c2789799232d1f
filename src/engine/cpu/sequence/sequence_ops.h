// SPDX-License-Identifier: Apache-2.0
// RopeAppendArgs and AttentionArgs with pointers and views instead of addresses.
#pragma once

#include <span>

#include "base/status.h"
#include "engine/cpu/base/context.h"
#include "engine/ops.h"

namespace gen::engine::cpu {

struct AppendArgs {
  Rows q;
  ConstRows k;
  ConstRows v;
  int32_t n_heads = 0;
  int32_t n_kv_heads = 0;
  int32_t k_dim = 0;
  int32_t v_dim = 0;
  const float* q_norm = nullptr;
  const float* k_norm = nullptr;
  float norm_eps = 0.0F;
  bool norm_last = false;
  RopeKind rope = RopeKind::kNone;
  int32_t rope_dims = 0;
  ConstRows cs;
  std::span<const SequenceRows> sequences;
};
Status append(CpuContext& context, const AppendArgs& args);

struct AttendArgs {
  ConstRows q;
  Rows out;           // data may be null
  PackedView packed;  // data may be null
  int32_t n_heads = 0;
  int32_t n_kv_heads = 0;
  int32_t k_dim = 0;
  int32_t v_dim = 0;
  float scale = 1.0F;
  float soft_cap = 0.0F;
  const float* sinks = nullptr;  // [n_heads] or null
  std::span<const SequenceRows> sequences;
};
/// Writes only the rows of the sequences.
Status attend(CpuContext& context, const AttendArgs& args);

}  // namespace gen::engine::cpu
