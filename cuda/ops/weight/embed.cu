// SPDX-License-Identifier: Apache-2.0
// embed: y[t, :] = decode(weight[ids[t], :]) * scale; rows with an id below 0 are left alone. A
// block is a row, an element a thread in turn. The bits of the reference decoders.
#include "cuda/ops/device.cuh"
#include "cuda/ops/ops_run.h"
#include "cuda/ops/weight/weight.h"
#include "cuda/ops/weight/weights.cuh"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 256;

template <typename Codec>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads) embed_kernel(const uint8_t* weight, size_t row_bytes,
                                                    const int32_t* ids, float scale, RowsView y) {
  after_predecessor();
  const int64_t t = block_x();
  const int32_t id = ids[t];
  if (id < 0) return;
  const uint8_t* const row = weight + static_cast<size_t>(id) * row_bytes;
  for (int64_t c = thread_x(); c < y.cols; c += kThreads) {
    const float value = row_element<Codec>(row, c);
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
                      rows.row_bytes, pointer(args.ids), args.scale, view(args.y));
  });
}

}  // namespace gen::cuda
