// SPDX-License-Identifier: Apache-2.0
// See weight_loader.h.
#include "cuda/engine/weight_loader.h"

#include "cuda/ops/weight.h"
#include "engine/ops.h"
#include "engine/weight_check.h"

namespace gen::cuda {
namespace {

using engine::WeightRole;
using engine::WeightSource;

/// Sources begin where any element may lie.
constexpr size_t kAlign = 256;
size_t aligned(size_t bytes) noexcept { return (bytes + kAlign - 1) / kAlign * kAlign; }

/// Both halves of a gated product are read by one kernel of one type.
Status check(WeightRole role, std::span<const WeightSource> sources) {
  GEN_TRY(engine::check_sources(role, sources));
  if (role == WeightRole::kGated && sources[1].type != sources[0].type) {
    return error(Code::kUnsupported, "tensors %s and %s of types %s and %s are no gated product",
                 sources[0].name, sources[1].name, dtype_name(sources[0].type),
                 dtype_name(sources[1].type));
  }
  return {};
}

}  // namespace

uint32_t DeviceWeight::activation_forms() const noexcept { return engine::kActF32; }

size_t WeightLoader::bytes(WeightRole role, std::span<const WeightSource> sources) noexcept {
  if (!check(role, sources).ok()) return 0;
  size_t total = 0;
  for (const WeightSource& source : sources) total += aligned(source.data.size());
  return total;
}

Result<std::unique_ptr<engine::Weight>> WeightLoader::load(
    WeightRole role, std::span<const WeightSource> sources,
    const std::shared_ptr<engine::WeightMemory>& memory) {
  GEN_TRY(check(role, sources));
  auto weight = std::make_unique<DeviceWeight>();
  weight->role_ = role;
  weight->in_ = sources[0].cols;
  weight->bytes_ = bytes(role, sources);
  uint8_t* data = nullptr;
  if (memory != nullptr) data = static_cast<DeviceWeightMemory&>(*memory).take(weight->bytes_);
  if (data != nullptr) {
    weight->memory_ = memory;
  } else {
    GEN_ASSIGN(weight->buffer_, memory_.allocate(weight->bytes_));
    data = reinterpret_cast<uint8_t*>(weight->buffer_.data().address());
  }
  for (const WeightSource& source : sources) {
    WeightSegment segment;
    segment.type = source.type;
    segment.data = data;
    segment.first_row = role == WeightRole::kGated ? 0 : weight->out_;
    segment.rows = source.rows;
    segment.row_bytes = source.data.size() / static_cast<size_t>(source.rows);
    weight->out_ = segment.first_row + source.rows;
    weight->stream_bytes_ +=
        role == WeightRole::kEmbedding ? segment.row_bytes : source.data.size();
    weight->segments_.push_back(segment);
    {
      const DeviceQueue::Turn turn(queue_);
      GEN_TRY(queue_.write_large(data, source.data.data(), source.data.size()));
    }
    data += aligned(source.data.size());
  }
  return std::unique_ptr<engine::Weight>(std::move(weight));
}

}  // namespace gen::cuda
