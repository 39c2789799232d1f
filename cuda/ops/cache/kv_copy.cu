// SPDX-License-Identifier: Apache-2.0
// Copies cache entries in their stored form. A block is an entry of one side of a layer; its
// threads copy one byte each in turn. Other entries of the tile are not changed.
#include "cuda/ops/cache/kv.cuh"
#include "cuda/ops/cache/kv_bytes.cuh"
#include "cuda/ops/cache/memory_ops.h"
#include "cuda/ops/device.cuh"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 128;

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads)
    kv_copy_kernel(EntriesView from, EntriesView to, int32_t first_side, int32_t n_sides,
                   engine::KvRun run) {
  after_predecessor();
  const int32_t index = block_y() / n_sides;
  const bool keys = block_y() % n_sides + first_side == 0;
  const engine::KvLayer& source = from.layers[index];
  const engine::KvLayer& target = to.layers[index];
  const KvSideForm& form = keys ? source.k : source.v;
  const KvSideForm& to_form = keys ? target.k : target.v;
  const Blocks from_blocks = {from.blocks, from.cells, from.first_cell, source.block_size};
  const Blocks to_blocks = {to.blocks, to.cells, to.first_cell, target.block_size};
  const KvPlace at = place_of(form, from_blocks, run.from + block_x());
  const KvPlace there = place_of(to_form, to_blocks, run.to + block_x());
  const int32_t heads = source.kv_heads;
  const int32_t bytes = heads * entry_bytes(form) + shared_entry_bytes(form, heads);
  for (int32_t i = thread_x(); i < bytes; i += kThreads) {
    *byte_of(to_form, there, heads, i) = *byte_of(form, at, heads, i);
  }
}

}  // namespace

Status kv_copy(const OpContext& context, const EntriesView& from, const EntriesView& to,
               int32_t n_layers, engine::KvSides sides, const engine::KvRun& run) {
  const int32_t first = sides == engine::KvSides::kValues ? 1 : 0;
  const int32_t n = sides == engine::KvSides::kBoth ? 2 : 1;
  const device::Dim3 grid = {static_cast<unsigned>(run.count), static_cast<unsigned>(n * n_layers),
                             1};
  return run_kernel(context, "kv_copy", kv_copy_kernel, grid, kThreads, 0, from, to, first, n, run);
}

}  // namespace gen::cuda
