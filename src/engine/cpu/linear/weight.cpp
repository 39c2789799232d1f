// SPDX-License-Identifier: Apache-2.0
// Packs weight sources. See weight.h.
#include "engine/cpu/linear/weight.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "engine/cpu/linear/linear_kernels.h"
#include "engine/cpu/weight/weight_layout.h"
#include "engine/weight_check.h"

namespace gen::engine::cpu {
namespace {

bool leaves_sources(std::span<const WeightSource> sources, bool repack) {
  return !repack &&
         std::all_of(sources.begin(), sources.end(), [](const auto& s) { return s.lasting; });
}

/// The size of one matrix.
int64_t tiles_of(const WeightSource& source) noexcept { return (source.rows - 1) / kTileRows + 1; }

/// False on overflow.
bool add_tiles(const WeightSource& source, size_t* total) noexcept {
  size_t bytes = 0;
  return checked_mul(tile_bytes(source.type, source.cols), static_cast<size_t>(tiles_of(source)),
                     &bytes) &&
         checked_mul(bytes, static_cast<size_t>(source.count), &bytes) &&
         checked_add(*total, bytes, total);
}

}  // namespace

std::byte* TileMemory::take(size_t bytes) noexcept {
  bytes = round_up_64(bytes);
  if (bytes > buffer_.size() - used_) return nullptr;
  std::byte* piece = buffer_.data() + used_;
  used_ += bytes;
  return piece;
}

size_t CpuWeight::tile_memory_bytes(WeightRole role, std::span<const WeightSource> sources,
                                    bool repack) noexcept {
  if (role == WeightRole::kEmbedding || leaves_sources(sources, repack) ||
      !check_sources(role, sources).ok()) {
    return 0;
  }
  size_t total = 0;
  for (const WeightSource& source : sources) {
    if (!add_tiles(source, &total)) return 0;
  }
  return round_up_64(total);
}

// Segments without their memory; `total` is the size of all their tiles.
Status CpuWeight::lay_out(std::span<const WeightSource> sources, size_t* total) {
  for (const WeightSource& source : sources) {
    WeightSegment segment;
    segment.type = source.type;
    segment.first_row = role_ == WeightRole::kGated ? 0 : out_;
    segment.rows = source.rows;
    segment.n_tiles = tiles_of(source);
    segment.tile_bytes = tile_bytes(source.type, source.cols);
    segment.pitch = segment.tile_bytes * static_cast<size_t>(segment.n_tiles);
    if (!add_tiles(source, total)) {
      return error(Code::kOutOfMemory, "tensor %s is too large to pack", source.name);
    }
    out_ = segment.first_row + source.rows;
    segments_.push_back(segment);
  }
  return {};
}

Status CpuWeight::pack_products(Allocator& allocator, ThreadPool& pool,
                                std::span<const WeightSource> sources,
                                const std::shared_ptr<WeightMemory>& memory) {
  size_t total = 0;
  GEN_TRY(lay_out(sources, &total));
  std::byte* at = memory != nullptr ? static_cast<TileMemory&>(*memory).take(total) : nullptr;
  if (at != nullptr) {
    memory_ = memory;
    resident_bytes_ = round_up_64(total);
  } else {
    GEN_ASSIGN(buffer_, Buffer::allocate_large(allocator, total));
    at = buffer_.data();
    resident_bytes_ = total;
  }
  stream_bytes_ = total;
  for (size_t i = 0; i < sources.size(); ++i) {
    WeightSegment& segment = segments_[i];
    std::byte* tiles = at;
    segment.tiles = tiles;
    at += segment.pitch * static_cast<size_t>(count_);
    if (dry_run_) continue;
    pool.share([&](int32_t index, int32_t shares) {
      const IndexRange range = split_range(segment.n_tiles * count_, 1, shares, index);
      for (int64_t tile = range.begin; tile < range.end; ++tile) {
        const size_t before = static_cast<size_t>(tile / segment.n_tiles) * sources[i].pitch;
        pack_tile(segment.type, sources[i].data.data() + before, segment.rows, in_,
                  tile % segment.n_tiles, tiles + static_cast<size_t>(tile) * segment.tile_bytes);
      }
    });
  }
  return {};
}

Status CpuWeight::leave_products(std::span<const WeightSource> sources) {
  size_t total = 0;
  GEN_TRY(lay_out(sources, &total));
  for (size_t i = 0; i < sources.size(); ++i) {
    segments_[i].source = sources[i].data.data();
    segments_[i].pitch = sources[i].pitch;
    stream_bytes_ += sources[i].matrix(0).data.size() * static_cast<size_t>(count_);
  }
  return {};
}

Status CpuWeight::keep_rows(Allocator& allocator, const WeightSource& source) {
  out_ = source.rows;
  rows_type_ = source.type;
  row_bytes_ = source.data.size() / static_cast<size_t>(source.rows);
  stream_bytes_ = row_bytes_;
  if (source.lasting) {
    rows_data_ = source.data.data();
    return {};
  }
  GEN_ASSIGN(buffer_, Buffer::allocate(allocator, source.data.size()));
  resident_bytes_ = buffer_.size();
  if (!dry_run_) std::memcpy(buffer_.data(), source.data.data(), source.data.size());
  rows_data_ = buffer_.data();
  return {};
}

void CpuWeight::list_host_bytes(std::vector<std::span<const std::byte>>* out) const {
  for (const WeightSegment& segment : segments_) {
    if (segment.tiles != nullptr) {
      out->emplace_back(segment.tiles, segment.pitch * static_cast<size_t>(count_));
      continue;
    }
    const DTypeInfo& type = *dtype_info(segment.type);
    const auto weights = static_cast<size_t>(segment.rows * in_);
    out->emplace_back(segment.source, weights / type.block_elements * type.block_bytes +
                                          static_cast<size_t>(count_ - 1) * segment.pitch);
  }
  if (rows_data_ != nullptr) {
    out->emplace_back(rows_data_, row_bytes_ * static_cast<size_t>(out_));
  }
}

Result<std::unique_ptr<Weight>> CpuWeight::prepare(Allocator& allocator, ThreadPool& pool,
                                                   WeightRole role,
                                                   std::span<const WeightSource> sources,
                                                   const KernelTable& kernels, bool repack,
                                                   const std::shared_ptr<WeightMemory>& memory,
                                                   bool dry_run) {
  GEN_TRY(check_sources(role, sources));
  std::unique_ptr<CpuWeight> weight(new CpuWeight);
  weight->role_ = role;
  weight->dry_run_ = dry_run;
  weight->in_ = sources[0].cols;
  weight->count_ = sources[0].count;
  if (role != WeightRole::kEmbedding) {
    for (const WeightSource& source : sources) {
      weight->forms_ |= activation_form(kernels, source.type);
    }
  }
  GEN_TRY(role == WeightRole::kEmbedding ? weight->keep_rows(allocator, sources[0])
          : leaves_sources(sources, repack)
              ? weight->leave_products(sources)
              : weight->pack_products(allocator, pool, sources, memory));
  return std::unique_ptr<Weight>(std::move(weight));
}

}  // namespace gen::engine::cpu
