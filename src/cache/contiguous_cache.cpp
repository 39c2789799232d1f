// SPDX-License-Identifier: Apache-2.0
// fp32, fp16, fp8, q4 and q3: one buffer for everything, in segments of up to 256 positions. A
// segment holds all layers, each layer's keys, then its values, head by head, so that memory is
// touched from its start on as a sequence grows, and what attention reads at once, a head's tiles
// of sixteen positions (engine/kv_view.h), is one stretch for the processor's prefetching. The
// whole capacity is reserved at once but never initialised: growing moves nothing and allocates
// nothing.
#include "cache/contiguous_cache.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/checked.h"
#include "engine/kv/codec.h"

namespace gen::cache {
namespace {

/// Positions of a segment: a chunk of attention reads one.
constexpr int32_t kMostSegment = 256;

constexpr int32_t divide_up(int32_t a, int32_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// Where a layer's keys or values lie in a segment.
struct Region {
  size_t offset = 0;
  size_t tile_bytes = 0;    // of a head
  size_t head_bytes = 0;    // all tiles
  size_t shared_bytes = 0;  // of a tile, after all heads' tiles
  size_t shared_offset = 0;
};
struct LayerPlace {
  Region k;
  Region v;
};

/// Invariant: 0 <= length_ <= capacity_.
class ContiguousCache final : public KvCache {
 public:
  ContiguousCache(const CacheKind& kind, std::span<const LayerShape> layers, int32_t capacity)
      : shapes_(layers.begin(), layers.end()),
        places_(layers.size()),
        format_(kind.format),
        capacity_(capacity) {
    traits_.kind = kind.name;
    traits_.lossy = kind.lossy;
    // As few segments as hold the capacity, as even as tiles allow.
    const int32_t tiles = divide_up(capacity, engine::kKvTile);
    const auto segments = divide_up(tiles, kMostSegment / engine::kKvTile);
    segment_tiles_ = divide_up(tiles, segments);
    segments_.resize(static_cast<size_t>(divide_up(tiles, segment_tiles_)));
  }

  /// Lays the layers out and reserves the buffer.
  Status reserve(Allocator& allocator) {
    size_t segment = 0;
    for (size_t i = 0; i < shapes_.size(); ++i) {
      const LayerShape& shape = shapes_[i];
      LayerPlace& place = places_[i];
      if (!add_region(engine::KvOrder::kKeys, shape.kv_heads, shape.k_dim, &segment, &place.k) ||
          !add_region(engine::KvOrder::kValues, shape.kv_heads, shape.v_dim, &segment, &place.v)) {
        return too_large();
      }
      traits_.bytes_per_entry +=
          (static_cast<size_t>(shape.kv_heads) * (place.k.tile_bytes + place.v.tile_bytes) +
           place.k.shared_bytes + place.v.shared_bytes) /
          engine::kKvTile;
    }
    size_t bytes = 0;
    if (!checked_mul(segment, segments_.size(), &bytes)) return too_large();
    if (bytes == 0) return {};
    GEN_ASSIGN(buffer_, Buffer::allocate_large(allocator, bytes));
    for (size_t i = 0; i < segments_.size(); ++i) segments_[i] = buffer_.data() + i * segment;
    return {};
  }

  [[nodiscard]] const CacheTraits& traits() const noexcept override { return traits_; }
  [[nodiscard]] std::span<const LayerShape> layers() const noexcept override { return shapes_; }
  [[nodiscard]] int32_t length() const noexcept override { return length_; }
  [[nodiscard]] int32_t capacity() const noexcept override { return capacity_; }

  [[nodiscard]] Result<CachePlan> plan(int32_t n) override {
    if (n < 0) return error(Code::kInvalidArgument, "a plan for %d entries", n);
    if (n > capacity_ - length()) {
      return error(Code::kCacheFull, "the cache holds %d of %d entries, no room for %d more",
                   length(), capacity_, n);
    }
    return CachePlan{length(), n};
  }

  [[nodiscard]] engine::KvView view(int32_t layer, const CachePlan& plan) override {
    GEN_ASSERT(layer >= 0 && static_cast<size_t>(layer) < shapes_.size());
    GEN_ASSERT(plan.start == length() && plan.count <= capacity_ - length());
    const LayerShape& shape = shapes_[static_cast<size_t>(layer)];
    const LayerPlace& place = places_[static_cast<size_t>(layer)];
    engine::KvView view;
    view.k = side(place.k, engine::KvOrder::kKeys, shape.k_dim);
    view.v = side(place.v, engine::KvOrder::kValues, shape.v_dim);
    view.kv_heads = shape.kv_heads;
    view.key_form = key_form(shape);
    view.entries = plan.start + plan.count;
    view.window = shape.window;
    return view;
  }

  void commit(const CachePlan& plan) noexcept override {
    GEN_ASSERT(plan.start == length() && plan.count <= capacity_ - length());
    length_ = plan.start + plan.count;
  }

  Status truncate(int32_t n) override {
    length_ = std::min(length(), std::max(n, 0));
    return {};
  }

  [[nodiscard]] MemoryUse memory() const noexcept override {
    MemoryUse use;
    use.resident = buffer_.size();
    use.payload = static_cast<size_t>(length()) * traits_.bytes_per_entry;
    use.metadata = sizeof(*this) + shapes_.size() * (sizeof(LayerShape) + sizeof(LayerPlace)) +
                   segments_.size() * sizeof(segments_[0]);
    return use;
  }

 private:
  /// Few bits suit keys better when they are turned.
  [[nodiscard]] engine::KeyForm key_form(const LayerShape& shape) const {
    const bool few = format_ == engine::KvFormat::kQ4 || format_ == engine::KvFormat::kQ3;
    return few && engine::kv_hadamard_fits(shape.k_dim) ? engine::KeyForm::kHadamard
                                                        : engine::KeyForm::kRotated;
  }

  [[nodiscard]] Status too_large() const {
    return error(Code::kOutOfMemory, "a cache of %d entries of %zu layers overflows %zu bits",
                 capacity_, shapes_.size(), 8 * sizeof(size_t));
  }

  [[nodiscard]] bool add_region(engine::KvOrder order, int32_t heads, int32_t dim, size_t* segment,
                                Region* region) const {
    const engine::KvCodec& codec = engine::kv_codec(format_);
    const auto n_heads = static_cast<size_t>(heads);
    const auto tiles = static_cast<size_t>(segment_tiles_);
    region->offset = *segment;
    region->tile_bytes = codec.tile_bytes(order, static_cast<size_t>(dim));
    if (codec.shared_bytes != nullptr) {
      region->shared_bytes = codec.shared_bytes(n_heads, static_cast<size_t>(dim));
    }
    size_t shared = 0;
    return checked_mul(region->tile_bytes, tiles, &region->head_bytes) &&
           checked_mul(region->head_bytes, n_heads, &region->shared_offset) &&
           checked_mul(region->shared_bytes, tiles, &shared) &&
           checked_add(*segment, region->shared_offset, segment) &&
           checked_add(*segment, shared, segment) &&
           checked_align_up(*segment, size_t{64}, segment);
  }

  [[nodiscard]] engine::KvSide side(const Region& region, engine::KvOrder order,
                                    int32_t dim) const {
    engine::KvSide side;
    side.format = format_;
    side.order = order;
    side.blocks = segments_.data();
    side.block_offset = region.offset;
    side.block_size = segment_tiles_ * engine::kKvTile;
    side.tile_stride = region.tile_bytes;
    side.head_stride = region.head_bytes;
    side.shared_offset = region.shared_offset;
    side.shared_stride = region.shared_bytes;
    side.head_dim = dim;
    return side;
  }

  std::vector<LayerShape> shapes_;
  std::vector<LayerPlace> places_;
  engine::KvFormat format_;
  int32_t capacity_;
  int32_t segment_tiles_ = 1;
  std::vector<std::byte*> segments_;
  std::atomic<int32_t> length_ = 0;  // one writer; a length may be asked from any thread
  CacheTraits traits_;
  Buffer buffer_;
};

}  // namespace

Result<std::unique_ptr<KvCache>> create_contiguous_cache(const CacheKind& kind,
                                                         std::span<const LayerShape> layers,
                                                         int32_t capacity, Allocator& allocator) {
  auto cache = std::make_unique<ContiguousCache>(kind, layers, capacity);
  GEN_TRY(cache->reserve(allocator));
  return std::unique_ptr<KvCache>(std::move(cache));
}

}  // namespace gen::cache
