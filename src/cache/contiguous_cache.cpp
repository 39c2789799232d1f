// SPDX-License-Identifier: Apache-2.0
// ContiguousCache: sizes are checked once at creation, after that nothing can fail but a full
// cache.
#include "cache/contiguous_cache.h"

#include <algorithm>

#include "base/checked.h"

namespace gen::cache {
namespace {

constexpr size_t kAlign = 64;

constexpr size_t element_bytes(engine::KvFormat format) {
  return format == engine::KvFormat::kF32 ? 4 : 2;
}

Status check_shape(const LayerShape& shape, size_t layer) {
  if (shape.kv_heads >= 1 && shape.k_dim >= 1 && shape.v_dim >= 1 && shape.window >= 0) return {};
  return error(Code::kInvalidArgument,
               "cache layer %zu has %d kv heads, key width %d, value width %d, window %d", layer,
               shape.kv_heads, shape.k_dim, shape.v_dim, shape.window);
}

}  // namespace

ContiguousCache::ContiguousCache(std::span<const LayerShape> layers, int32_t capacity,
                                 engine::KvFormat format, const char* kind)
    : layers_(layers.begin(), layers.end()),
      storage_(layers.size()),
      format_(format),
      capacity_(capacity) {
  traits_.kind = kind;
  traits_.lossy = format != engine::KvFormat::kF32;
}

Result<std::unique_ptr<KvCache>> ContiguousCache::create_fp32(std::span<const LayerShape> layers,
                                                              int32_t capacity,
                                                              Allocator& allocator) {
  return create(layers, capacity, allocator, engine::KvFormat::kF32, "fp32");
}

Result<std::unique_ptr<KvCache>> ContiguousCache::create_fp16(std::span<const LayerShape> layers,
                                                              int32_t capacity,
                                                              Allocator& allocator) {
  return create(layers, capacity, allocator, engine::KvFormat::kF16, "fp16");
}

Result<std::unique_ptr<KvCache>> ContiguousCache::create(std::span<const LayerShape> layers,
                                                         int32_t capacity, Allocator& allocator,
                                                         engine::KvFormat format,
                                                         const char* kind) {
  if (capacity < 1) {
    return error(Code::kInvalidArgument, "a cache of %d entries is below 1", capacity);
  }
  std::unique_ptr<ContiguousCache> cache(new ContiguousCache(layers, capacity, format, kind));
  const auto entries = static_cast<size_t>(capacity);
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerShape& shape = layers[i];
    GEN_TRY(check_shape(shape, i));
    Layer& layer = cache->storage_[i];
    const auto heads = static_cast<size_t>(shape.kv_heads) * element_bytes(format);
    size_t v_bytes = 0;
    size_t total = 0;
    if (!checked_mul(heads, static_cast<size_t>(shape.k_dim), &layer.k_entry_bytes) ||
        !checked_mul(heads, static_cast<size_t>(shape.v_dim), &layer.v_entry_bytes) ||
        !checked_mul(layer.k_entry_bytes, entries, &layer.v_offset) ||
        !checked_align_up(layer.v_offset, kAlign, &layer.v_offset) ||
        !checked_mul(layer.v_entry_bytes, entries, &v_bytes) ||
        !checked_add(layer.v_offset, v_bytes, &total)) {
      return error(Code::kInvalidArgument,
                   "cache layer %zu of %d entries overflows the address space", i, capacity);
    }
    GEN_ASSIGN(layer.buffer, Buffer::allocate(allocator, total, kAlign));
    cache->traits_.bytes_per_entry += layer.k_entry_bytes + layer.v_entry_bytes;
  }
  return std::unique_ptr<KvCache>(std::move(cache));
}

Result<CachePlan> ContiguousCache::plan(int32_t n) {
  if (n < 0) return error(Code::kInvalidArgument, "a plan for %d entries", n);
  if (n > capacity_ - length_) {
    return error(Code::kCacheFull, "%d entries after %d do not fit the cache of %d", n, length_,
                 capacity_);
  }
  return CachePlan{length_, n};
}

engine::KvView ContiguousCache::view(int32_t layer, const CachePlan& plan) {
  const auto index = static_cast<size_t>(layer);
  const LayerShape& shape = layers_[index];
  const Layer& storage = storage_[index];
  engine::KvView view;
  view.k.format = format_;
  view.k.base = storage.buffer.data();
  view.k.entry_stride = storage.k_entry_bytes;
  view.k.head_stride = static_cast<size_t>(shape.k_dim) * element_bytes(format_);
  view.k.head_dim = shape.k_dim;
  view.v.format = format_;
  view.v.base = storage.buffer.data() + storage.v_offset;
  view.v.entry_stride = storage.v_entry_bytes;
  view.v.head_stride = static_cast<size_t>(shape.v_dim) * element_bytes(format_);
  view.v.head_dim = shape.v_dim;
  view.kv_heads = shape.kv_heads;
  view.entries = plan.start + plan.count;
  view.window = shape.window;
  return view;
}

void ContiguousCache::commit(const CachePlan& plan) noexcept {
  GEN_ASSERT(plan.start == length_ && plan.count <= capacity_ - length_);
  length_ = plan.start + plan.count;
}

Status ContiguousCache::truncate(int32_t n) {
  length_ = std::min(length_, std::max(n, 0));
  return {};
}

MemoryUse ContiguousCache::memory() const noexcept {
  MemoryUse use;
  for (const Layer& layer : storage_) use.resident += layer.buffer.size();
  use.payload = static_cast<size_t>(length_) * traits_.bytes_per_entry;
  use.metadata =
      sizeof *this + layers_.size() * sizeof(LayerShape) + storage_.size() * sizeof(Layer);
  return use;
}

}  // namespace gen::cache
