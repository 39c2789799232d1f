// SPDX-License-Identifier: Apache-2.0
// See weight_loader.h.
#include "cuda/engine/weight_loader.h"

#include <cinttypes>

#include "base/checked.h"
#include "cuda/ops/weight.h"
#include "engine/ops.h"
#include "quant/format.h"

namespace gen::cuda {
namespace {

using engine::WeightRole;
using engine::WeightSource;

/// Sources begin where any element may lie.
constexpr size_t kAlign = 256;
size_t aligned(size_t bytes) noexcept { return (bytes + kAlign - 1) / kAlign * kAlign; }

Status check_source(const WeightSource& source) {
  if (quant::find_format(source.type) == nullptr) {
    return error(Code::kUnsupported, "type %s (%d) of tensor %s has no kernel",
                 dtype_name(source.type), static_cast<int>(source.type), source.name);
  }
  if (source.rows <= 0 || source.cols <= 0) {
    return error(Code::kFormat, "tensor %s of %" PRId64 " by %" PRId64 " is empty", source.name,
                 source.rows, source.cols);
  }
  uint64_t row_bytes = 0;
  if (!dtype_row_bytes(source.type, static_cast<uint64_t>(source.cols), &row_bytes)) {
    return error(Code::kFormat,
                 "rows of tensor %s have %" PRId64 " elements, not whole blocks of %s", source.name,
                 source.cols, dtype_name(source.type));
  }
  uint64_t bytes = 0;
  if (!checked_mul(row_bytes, static_cast<uint64_t>(source.rows), &bytes) ||
      bytes != source.data.size()) {
    return error(
        Code::kFormat, "tensor %s has %zu bytes, but %" PRId64 " by %" PRId64 " of %s do not",
        source.name, source.data.size(), source.rows, source.cols, dtype_name(source.type));
  }
  return {};
}

Status check_sources(WeightRole role, std::span<const WeightSource> sources) {
  const size_t expected = role == WeightRole::kGated ? 2 : 1;
  if (sources.empty() || (role != WeightRole::kLinear && sources.size() != expected)) {
    return error(Code::kInternal, "%zu weight sources where %zu belong", sources.size(), expected);
  }
  for (const WeightSource& source : sources) {
    GEN_TRY(check_source(source));
    if (source.cols != sources[0].cols ||
        (role == WeightRole::kGated && source.rows != sources[0].rows)) {
      return error(Code::kFormat,
                   "tensor %s of %" PRId64 " by %" PRId64 " does not fit tensor %s of %" PRId64
                   " by %" PRId64,
                   source.name, source.rows, source.cols, sources[0].name, sources[0].rows,
                   sources[0].cols);
    }
    if (role == WeightRole::kGated && source.type != sources[0].type) {
      return error(Code::kUnsupported, "tensors %s and %s of types %s and %s are no gated product",
                   sources[0].name, source.name, dtype_name(sources[0].type),
                   dtype_name(source.type));
    }
  }
  return {};
}

}  // namespace

uint32_t DeviceWeight::activation_forms() const noexcept { return engine::kActF32; }

size_t WeightLoader::bytes(WeightRole role, std::span<const WeightSource> sources) noexcept {
  if (!check_sources(role, sources).ok()) return 0;
  size_t total = 0;
  for (const WeightSource& source : sources) total += aligned(source.data.size());
  return total;
}

Result<std::unique_ptr<engine::Weight>> WeightLoader::load(
    WeightRole role, std::span<const WeightSource> sources,
    const std::shared_ptr<engine::WeightMemory>& memory) {
  GEN_TRY(check_sources(role, sources));
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
