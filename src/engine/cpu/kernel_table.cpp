// SPDX-License-Identifier: Apache-2.0
// Collects the tables of all operations. See kernel_table.h.
#include "engine/cpu/kernel_table.h"

#include "engine/cpu/attention/attention.h"
#include "engine/cpu/elementwise/elementwise.h"
#include "engine/cpu/experts/route.h"
#include "engine/cpu/linear/linear_kernels.h"
#include "engine/cpu/linear/low_rank.h"
#include "engine/cpu/norm/layer_norm.h"
#include "engine/cpu/norm/rms_norm.h"
#include "engine/cpu/pack/activations.h"
#include "engine/cpu/sequence/causal_conv.h"
#include "engine/cpu/sequence/delta_net.h"
#include "engine/cpu/sequence/scan.h"
#include "engine/cpu/sequence/selective_scan.h"

namespace gen::engine::cpu {

KernelTable kernel_table(CpuLevel level) noexcept {
  KernelTable table;
  table.activations = activation_kernels(level);
  table.attention = attention_kernels(level);
  table.causal_conv = causal_conv_kernels(level);
  table.delta_net = delta_net_kernels(level);
  table.elementwise = elementwise_kernels(level);
  table.layer_norm = layer_norm_kernels(level);
  table.linear_float = float_kernels(level);
  table.linear_quant = quant_kernels(level);
  table.low_rank = low_rank_kernels(level);
  table.rms_norm = rms_norm_kernels(level);
  table.route = route_kernels(level);
  table.scan = scan_kernels(level);
  table.selective_scan = selective_scan_kernels(level);
  return table;
}

}  // namespace gen::engine::cpu
