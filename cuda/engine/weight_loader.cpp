// SPDX-License-Identifier: Apache-2.0
// See weight_loader.h.
#include "cuda/engine/weight_loader.h"

#include <algorithm>
#include <cstring>

#include "base/mapped_file.h"
#include "cuda/engine/device_align.h"
#include "cuda/engine/uploaded_rows.h"
#include "cuda/ops/linear/bf16_rows.h"
#include "cuda/ops/weight/device_type.h"
#include "cuda/ops/weight/pack_tiles.h"
#include "cuda/ops/weight/weight.h"
#include "cuda/ops/weight/weight_tiles.h"
#include "engine/ops.h"
#include "engine/weight_check.h"

namespace gen::cuda {
namespace {

using engine::WeightRole;
using engine::WeightSource;

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

/// The layout of a source's matrix on the device: pieces, which are tiles or rows.
struct Form {
  const quant::Traits* traits = nullptr;  // for tiles
  size_t row = 0;                         // bytes of a row as it is uploaded
  size_t rows = 0;                        // in a piece
  size_t piece = 0;                       // bytes of a piece on the device
  size_t pieces = 0;

  [[nodiscard]] size_t bytes() const noexcept { return piece * pieces; }
  /// Bytes of a piece as it is uploaded; the last tile may be smaller.
  [[nodiscard]] size_t from() const noexcept { return row * rows; }
};
Form form_of(WeightRole role, const WeightSource& source) noexcept {
  const quant::Traits* const traits = quant::find_traits(device_type(source.type));
  const size_t row = uploaded_row_bytes(source.type, source.cols);
  if (role != WeightRole::kEmbedding && traits != nullptr) {
    return {traits, row, kTileOutputs, tile_bytes(*traits, source.cols),
            static_cast<size_t>(tiles_of(source.rows))};
  }
  const size_t padded = role != WeightRole::kEmbedding ? (row + 15) / 16 * 16 : row;
  return {nullptr, row, 1, padded, static_cast<size_t>(source.rows)};
}

/// Appends the rows of `next` to `last` if they are contiguous in memory: tensors that share an
/// input then become one product of one kernel. `end` is the end of the memory of `last`.
bool joined(WeightSegment* last, const uint8_t* end, const WeightSegment& next) noexcept {
  const bool in_tiles = next.row_bytes == 0;
  if (next.type != last->type || end != next.data) return false;
  if (in_tiles && last->rows % kTileOutputs != 0) return false;
  last->rows += next.rows;
  return true;
}

/// Rows of `n` pieces of a source from `first` on.
size_t rows_of(const Form& form, const WeightSource& source, size_t first, size_t n) noexcept {
  return std::min(n * form.rows, static_cast<size_t>(source.rows) - first * form.rows);
}

/// Copies pieces of a source, each padded to `pitch` bytes, as they are uploaded.
void copy_pieces(const Form& form, const WeightSource& source, size_t first, size_t n, size_t pitch,
                 std::byte* to) noexcept {
  const size_t stored = source.data.size() / static_cast<size_t>(source.rows);
  const size_t rows = rows_of(form, source, first, n);
  const auto bytes = source.data.subspan(first * form.rows * stored, rows * stored);
  fault_in(bytes);
  const bool as_stored = uploads_as_stored(source.type);
  if (as_stored && pitch == form.from()) {
    std::memcpy(to, bytes.data(), bytes.size());
    return;
  }
  const size_t apart = form.rows == 1 ? pitch : form.row;  // tiles are not padded
  for (size_t i = 0; i < rows; ++i, to += apart) {
    const std::byte* const row = bytes.data() + i * stored;
    if (as_stored) {
      std::memcpy(to, row, form.row);
    } else {
      write_uploaded_row(source.type, row, source.cols, to);
    }
    std::memset(to + form.row, 0, apart - form.row);
  }
}

}  // namespace

uint32_t DeviceWeight::activation_forms() const noexcept {
  uint32_t forms = 0;
  for (const WeightSegment& segment : segments_) {
    const quant::Traits* const traits = quant::find_traits(segment.type);
    if (traits == nullptr) {
      forms |= engine::kActF32;
    } else {
      forms |= traits->block == 32 ? engine::kActQ8 : engine::kActQ8K;
    }
  }
  return forms;
}

size_t WeightLoader::bytes(WeightRole role, std::span<const WeightSource> sources) noexcept {
  if (!check(role, sources).ok()) return 0;
  size_t total = 0;
  for (const WeightSource& source : sources) {
    total += device_aligned(form_of(role, source).bytes() * static_cast<size_t>(source.count));
  }
  return total;
}

Result<std::unique_ptr<engine::Weight>> WeightLoader::load(
    WeightRole role, std::span<const WeightSource> sources,
    const std::shared_ptr<engine::WeightMemory>& memory) {
  GEN_TRY(check(role, sources));
  auto weight = std::make_unique<DeviceWeight>();
  weight->role_ = role;
  weight->in_ = sources[0].cols;
  weight->count_ = sources[0].count;
  weight->bytes_ = bytes(role, sources);
  uint8_t* data = nullptr;
  if (memory != nullptr) data = static_cast<DeviceWeightMemory&>(*memory).take(weight->bytes_);
  if (data != nullptr) {
    weight->memory_ = memory;
  } else {
    GEN_ASSIGN(weight->buffer_, memory_.allocate(weight->bytes_));
    data = reinterpret_cast<uint8_t*>(weight->buffer_.data().address());
  }
  const uint8_t* end = nullptr;  // end of the last segment without padding
  for (const WeightSource& source : sources) {
    WeightSegment segment;
    segment.type = device_type(source.type);
    segment.data = data;
    segment.first_row = role == WeightRole::kGated ? 0 : weight->out_;
    segment.rows = source.rows;
    // One kernel reads all segments of a product, so the strictest type counts.
    const int64_t from = bf16_rows(source);
    const bool one_result = segment.type != DType::kF16 && segment.type != DType::kBF16;
    weight->bf16_rows_ = std::max(weight->bf16_rows_, from);
    weight->one_result_rows_ = std::max(weight->one_result_rows_, one_result ? from - 1 : 0);
    const Form form = form_of(role, source);
    segment.row_bytes = form.traits != nullptr ? 0 : form.piece;
    segment.pitch = form.bytes();
    const size_t all = form.bytes() * static_cast<size_t>(source.count);
    weight->out_ = segment.first_row + source.rows;
    weight->stream_bytes_ += role == WeightRole::kEmbedding ? segment.row_bytes : all;
    if (role == WeightRole::kGated || source.count > 1 || weight->segments_.empty() ||
        !joined(&weight->segments_.back(), end, segment)) {
      weight->segments_.push_back(segment);
    }
    {
      const DeviceQueue::Turn turn(queue_);
      weight->number_ = queue_.next_weight();
      for (int64_t i = 0; i < source.count; ++i) {
        const WeightSource one = source.matrix(i);
        uint8_t* const to = data + static_cast<size_t>(i) * form.bytes();
        GEN_TRY(form.traits != nullptr ? write_tiles(one, to) : write_rows(role, one, to));
      }
    }
    end = data + all;
    data += device_aligned(all);
  }
  return std::unique_ptr<engine::Weight>(std::move(weight));
}

int64_t WeightLoader::bf16_rows(const WeightSource& source) {
  const DeviceQueue::Turn turn(queue_);
  return bf16_rows_from(queue_.context(), device_type(source.type), source.cols);
}

Status WeightLoader::write_rows(WeightRole role, const WeightSource& source, uint8_t* to) {
  const Form form = form_of(role, source);
  const auto fill = [&](size_t first, size_t n, std::byte* at) {
    copy_pieces(form, source, first, n, form.piece, at);
  };
  return queue_.write_pieces(to, {form.piece, form.pieces, fill}, pool_);
}

// The bytes are uploaded unchanged: the device packs tiles faster than bytes arrive.
Status WeightLoader::write_tiles(const WeightSource& source, uint8_t* to) {
  const Form form = form_of(WeightRole::kLinear, source);
  uint8_t* raw = nullptr;
  const auto fill = [&](size_t first, size_t n, std::byte* at) {
    copy_pieces(form, source, first, n, form.from(), at);
  };
  const auto send = [&](size_t first, size_t n, const std::byte* pinned) -> Status {
    const OpContext context = queue_.context();
    const size_t bytes = rows_of(form, source, first, n) * form.row;
    GEN_TRY(context.scratch->take_scratch(bytes, &raw));
    GEN_TRY(queue_.copy_up(raw, pinned, bytes));
    const auto row = static_cast<int64_t>(first) * kTileOutputs;
    const int64_t rows = std::min(static_cast<int64_t>(n) * kTileOutputs, source.rows - row);
    return queue_.note(
        pack_tiles(context, form.traits->type, {raw, rows, source.cols}, to + first * form.piece));
  };
  GEN_TRY(queue_.send_pieces({form.from(), form.pieces, fill}, send, pool_));
  // A kernel between these kernels and those that read weights before they wait for predecessors.
  return queue_.fill(raw, 0, 1);
}

}  // namespace gen::cuda
