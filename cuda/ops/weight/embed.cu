// SPDX-License-Identifier: Apache-2.0
// embed: y[t, :] = (decode(weight[ids[t], :]) (+ B u of adapters)) * scale; rows with an id below 0
// are left alone. A block is a row, an element a thread in turn. The bits of the reference
// decoders.
#include "cuda/ops/device.cuh"
#include "cuda/ops/low_rank.cuh"
#include "cuda/ops/ops_run.h"
#include "cuda/ops/weight/weight.h"
#include "cuda/ops/weight/weights.cuh"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 256;
// Ranks of an adapter that are summed before they are added to a row, as on the CPU.
constexpr int32_t kRanks = 64;

/// What a row's adapters add to a column of a token's row.
GEN_DEVICE float add_to_embedding(const LowRankView& of, const engine::LowRankMix* mixes,
                                  int32_t token, int64_t column, float sum) {
  const engine::LowRankSite& site = of.sites[0];
  const engine::LowRankMix& here = mixes[site.site];
  for (int32_t i = 0; i < here.n; ++i) {
    const engine::LowRankPart& part = here.parts[i];
    const float* const a = at(part.a) + static_cast<int64_t>(token) * part.rank;
    const float* const b = at(part.b) + column;
    float value = 0.0F;
    for (int32_t r = 0; r < part.rank; ++r) {
      value = multiply_add(b[r * site.cols], part.scale * a[r], value);
      if ((r + 1) % kRanks != 0) continue;
      sum = sum + value;
      value = 0.0F;
    }
    if (part.rank % kRanks != 0) sum = sum + value;
  }
  return sum;
}

template <typename Codec>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads)
    embed_kernel(const uint8_t* weight, size_t row_bytes, const int32_t* ids, float scale,
                 RowsView y, LowRankView low_rank) {
  after_predecessor();
  const int64_t t = block_x();
  const int32_t id = ids[t];
  if (id < 0) return;
  const uint8_t* const row = weight + static_cast<size_t>(id) * row_bytes;
  const engine::LowRankMix* const mixes = mixes_of(low_rank, t);
  for (int64_t c = thread_x(); c < y.cols; c += kThreads) {
    float value = row_element<Codec>(row, c);
    if (mixes != nullptr) value = add_to_embedding(low_rank, mixes, id, c, value);
    y.data[t * y.stride + c] = scale != 1.0F ? value * scale : value;
  }
}

}  // namespace

Status run(const OpContext& context, const engine::EmbedArgs& args) {
  const auto& weight = static_cast<const DeviceWeight&>(*args.weight);
  const WeightSegment& rows = weight.segments().front();
  const device::Dim3 grid = {static_cast<unsigned>(args.y.rows), 1, 1};
  return for_type(rows.type, [&](auto codec) {
    return run_kernel(context, "embed", embed_kernel<decltype(codec)>, grid, kThreads, 0, rows.data,
                      rows.row_bytes, pointer(args.ids), args.scale, view(args.y),
                      view(args.low_rank));
  });
}

}  // namespace gen::cuda
