// SPDX-License-Identifier: Apache-2.0
// Weights of the CPU engine: tiles for products (weight_layout.h), rows as in the file for
// look-ups. Read next: linear.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/allocator.h"
#include "base/thread_pool.h"
#include "engine/cpu/base/kernels.h"
#include "engine/weight.h"

namespace gen::engine::cpu {

/// One source of a product, in tiles of 16 rows. Either packed in advance, or kept as in the file
/// and packed tile by tile on each use.
struct WeightSegment {
  DType type = DType::kF32;
  int64_t first_row = 0;  // its first output; for kGated 0 in both segments
  int64_t rows = 0;
  int64_t n_tiles = 0;
  size_t tile_bytes = 0;
  const std::byte* tiles = nullptr;   // null if not packed
  const std::byte* source = nullptr;  // rows as in the file, if not packed
  size_t pitch = 0;                   // stacks: bytes from one matrix to the next, in tiles or rows

  /// Matrix `i` of a stack.
  [[nodiscard]] WeightSegment matrix(int64_t i) const noexcept {
    WeightSegment one = *this;
    const size_t before = static_cast<size_t>(i) * pitch;
    if (tiles != nullptr) one.tiles += before;
    if (source != nullptr) one.source += before;
    return one;
  }
};

/// Tiles of many weights in one buffer, so that small weights are in huge pages, too.
class TileMemory final : public WeightMemory {
 public:
  explicit TileMemory(Buffer buffer) noexcept : buffer_(std::move(buffer)) {}
  /// Allocates `bytes` aligned to 64; null if they do not fit.
  std::byte* take(size_t bytes) noexcept;

 private:
  Buffer buffer_;
  size_t used_ = 0;
};

/// Immutable. Products use `segments`, look-ups `rows_data`.
class CpuWeight final : public Weight {
 public:
  [[nodiscard]] WeightRole role() const noexcept override { return role_; }
  [[nodiscard]] int64_t out_features() const noexcept override { return out_; }
  [[nodiscard]] int64_t in_features() const noexcept override { return in_; }
  [[nodiscard]] int64_t count() const noexcept override { return count_; }
  [[nodiscard]] uint32_t activation_forms() const noexcept override { return forms_; }
  [[nodiscard]] size_t resident_bytes() const noexcept override { return resident_bytes_; }
  [[nodiscard]] size_t stream_bytes() const noexcept override { return stream_bytes_; }

  void list_host_bytes(std::vector<std::span<const std::byte>>* out) const override;

  [[nodiscard]] std::span<const WeightSegment> segments() const noexcept { return segments_; }
  /// kEmbedding: the rows as in the file.
  [[nodiscard]] DType rows_type() const noexcept { return rows_type_; }
  [[nodiscard]] const std::byte* rows_data() const noexcept { return rows_data_; }
  [[nodiscard]] size_t row_bytes() const noexcept { return row_bytes_; }

  /// Engine::weight_bytes.
  static size_t tile_memory_bytes(WeightRole role, std::span<const WeightSource> sources,
                                  bool repack) noexcept;
  /// Engine::prepare, for products by `kernels`. Packs on the pool; without `repack`, lasting
  /// sources stay in place. A dry run fills nothing. On failure everything is released.
  static Result<std::unique_ptr<Weight>> prepare(Allocator& allocator, ThreadPool& pool,
                                                 WeightRole role,
                                                 std::span<const WeightSource> sources,
                                                 const KernelTable& kernels, bool repack,
                                                 const std::shared_ptr<WeightMemory>& memory,
                                                 bool dry_run);

 private:
  CpuWeight() = default;
  Status lay_out(std::span<const WeightSource> sources, size_t* total);
  Status pack_products(Allocator& allocator, ThreadPool& pool,
                       std::span<const WeightSource> sources,
                       const std::shared_ptr<WeightMemory>& memory);
  Status leave_products(std::span<const WeightSource> sources);
  Status keep_rows(Allocator& allocator, const WeightSource& source);

  WeightRole role_ = WeightRole::kLinear;
  bool dry_run_ = false;
  int64_t out_ = 0;
  int64_t in_ = 0;
  int64_t count_ = 1;
  uint32_t forms_ = 0;
  size_t stream_bytes_ = 0;
  std::vector<WeightSegment> segments_;
  DType rows_type_ = DType::kF32;
  const std::byte* rows_data_ = nullptr;
  size_t row_bytes_ = 0;
  size_t resident_bytes_ = 0;
  Buffer buffer_;                         // its own memory,
  std::shared_ptr<WeightMemory> memory_;  // or a share of this
};

}  // namespace gen::engine::cpu
