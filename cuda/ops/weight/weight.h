// SPDX-License-Identifier: Apache-2.0
// Weights on a device. Those that are looked up lie there as in the file, row after row; of
// products quantised ones lie in tiles (weight_tiles.h), floats in rows padded with zeros to 16
// bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/memory.h"
#include "engine/weight.h"
#include "tensor/dtype.h"

namespace gen::cuda {

/// Rows of one source; outputs [first_row, first_row + rows) of the product. Of a stack its first
/// matrix; the others follow, `pitch` bytes apart.
struct WeightSegment {
  DType type = DType::kF32;
  const uint8_t* data = nullptr;
  int64_t first_row = 0;
  int64_t rows = 0;
  size_t row_bytes = 0;  // from a row to the next; 0 where they lie in tiles
  size_t pitch = 0;
};

/// One piece of device memory for many weights.
class DeviceWeightMemory final : public engine::WeightMemory {
 public:
  explicit DeviceWeightMemory(engine::EngineBuffer buffer) noexcept : buffer_(std::move(buffer)) {}
  /// Null if there is no room.
  uint8_t* take(size_t bytes) noexcept {
    if (bytes > buffer_.size() - used_) return nullptr;
    auto* const piece = reinterpret_cast<uint8_t*>(buffer_.data().address()) + used_;
    used_ += bytes;
    return piece;
  }

 private:
  engine::EngineBuffer buffer_;
  size_t used_ = 0;
};

class DeviceWeight final : public engine::Weight {
 public:
  [[nodiscard]] engine::WeightRole role() const noexcept override { return role_; }
  [[nodiscard]] int64_t out_features() const noexcept override { return out_; }
  [[nodiscard]] int64_t in_features() const noexcept override { return in_; }
  [[nodiscard]] int64_t count() const noexcept override { return count_; }
  [[nodiscard]] uint32_t activation_forms() const noexcept override;
  [[nodiscard]] size_t resident_bytes() const noexcept override { return bytes_; }
  [[nodiscard]] size_t stream_bytes() const noexcept override { return stream_bytes_; }
  [[nodiscard]] int64_t one_result_rows() const noexcept override { return one_result_rows_; }
  [[nodiscard]] int64_t bf16_rows() const noexcept override { return bf16_rows_; }
  [[nodiscard]] const std::vector<WeightSegment>& segments() const noexcept { return segments_; }
  /// No other weight of its queue ever has it.
  [[nodiscard]] uint64_t number() const noexcept { return number_; }

 private:
  friend class WeightLoader;
  engine::WeightRole role_ = engine::WeightRole::kLinear;
  int64_t out_ = 0;
  int64_t in_ = 0;
  int64_t count_ = 1;
  size_t bytes_ = 0;
  size_t stream_bytes_ = 0;
  int64_t one_result_rows_ = 0;
  int64_t bf16_rows_ = 0;
  std::vector<WeightSegment> segments_;
  engine::EngineBuffer buffer_;
  std::shared_ptr<engine::WeightMemory> memory_;
  uint64_t number_ = 0;
};

}  // namespace gen::cuda
