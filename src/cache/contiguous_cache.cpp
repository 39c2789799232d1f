// SPDX-License-Identifier: Apache-2.0
// fp32 and fp16: one buffer for everything; per layer keys, then values, each as
// [position][kv_head][head_dim], regions starting on multiples of 64 bytes. The whole capacity is
// reserved at once but never initialised, so the kernel gives pages only as entries are written;
// growing then moves nothing and allocates nothing.
#include "cache/contiguous_cache.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/checked.h"

namespace gen::cache {
namespace {

size_t element_bytes(engine::KvFormat format) {
  return format == engine::KvFormat::kF32 ? sizeof(float) : sizeof(uint16_t);
}

/// Where a layer's regions lie in the buffer.
struct LayerPlace {
  size_t k_offset = 0;
  size_t v_offset = 0;
  size_t k_entry_bytes = 0;
  size_t v_entry_bytes = 0;
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
  }

  /// Lays the layers out and reserves the buffer.
  Status reserve(Allocator& allocator) {
    size_t bytes = 0;
    for (size_t i = 0; i < shapes_.size(); ++i) {
      const LayerShape& shape = shapes_[i];
      LayerPlace& place = places_[i];
      if (!add_region(shape.kv_heads, shape.k_dim, &bytes, &place.k_offset, &place.k_entry_bytes) ||
          !add_region(shape.kv_heads, shape.v_dim, &bytes, &place.v_offset, &place.v_entry_bytes)) {
        return error(Code::kOutOfMemory, "a cache of %d entries of %zu layers overflows %zu bits",
                     capacity_, shapes_.size(), 8 * sizeof(size_t));
      }
      traits_.bytes_per_entry += place.k_entry_bytes + place.v_entry_bytes;
    }
    if (bytes == 0) return {};
    GEN_ASSIGN(buffer_, Buffer::allocate(allocator, bytes));
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
    view.k = side(place.k_offset, place.k_entry_bytes, shape.k_dim);
    view.v = side(place.v_offset, place.v_entry_bytes, shape.v_dim);
    view.kv_heads = shape.kv_heads;
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
    use.metadata = sizeof(*this) + shapes_.size() * (sizeof(LayerShape) + sizeof(LayerPlace));
    return use;
  }

 private:
  [[nodiscard]] bool add_region(int32_t heads, int32_t dim, size_t* bytes, size_t* offset,
                                size_t* entry_bytes) const {
    size_t region = 0;
    *offset = *bytes;
    return checked_mul(static_cast<size_t>(heads), static_cast<size_t>(dim), entry_bytes) &&
           checked_mul(*entry_bytes, element_bytes(format_), entry_bytes) &&
           checked_mul(*entry_bytes, static_cast<size_t>(capacity_), &region) &&
           checked_add(*bytes, region, bytes) && checked_align_up(*bytes, size_t{64}, bytes);
  }

  [[nodiscard]] engine::KvSide side(size_t offset, size_t entry_bytes, int32_t dim) const {
    engine::KvSide side;
    side.format = format_;
    side.base = buffer_.data() + offset;
    side.entry_stride = entry_bytes;
    side.head_stride = static_cast<size_t>(dim) * element_bytes(format_);
    side.head_dim = dim;
    return side;
  }

  std::vector<LayerShape> shapes_;
  std::vector<LayerPlace> places_;
  engine::KvFormat format_;
  int32_t capacity_;
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
