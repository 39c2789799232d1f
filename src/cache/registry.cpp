// SPDX-License-Identifier: Apache-2.0
// The cache kinds of this build and the checks they share. See registry.h.
#include "cache/registry.h"

#include <string>

#include "cache/contiguous_cache.h"
#include "engine/kv/codec.h"

namespace gen::cache {
namespace {

constexpr CacheKind kKinds[] = {
    {"fp32", 32.0, false, engine::KvFormat::kF32, create_contiguous_cache},
    {"fp16", 16.0, true, engine::KvFormat::kF16, create_contiguous_cache},
    {"fp8", 8.5, true, engine::KvFormat::kFp8, create_contiguous_cache},
    {"q4", 4.5, true, engine::KvFormat::kQ4, create_contiguous_cache},
    {"q3", 3.5, true, engine::KvFormat::kQ3, create_contiguous_cache},
};

Status check_shape(const LayerShape& shape, size_t layer) {
  if (shape.kv_heads < 1 || shape.k_dim < 1 || shape.v_dim < 1 || shape.window < 0) {
    return error(Code::kInvalidArgument,
                 "layer %zu: %d kv heads of %d and %d elements, window %d: counts must be at least "
                 "1, the window at least 0",
                 layer, shape.kv_heads, shape.k_dim, shape.v_dim, shape.window);
  }
  return {};
}

}  // namespace

std::span<const CacheKind> cache_kinds() noexcept { return kKinds; }

const CacheKind* find_cache_kind(std::string_view name) noexcept {
  for (const CacheKind& kind : kKinds) {
    if (name == kind.name) return &kind;
  }
  return nullptr;
}

Status check_cache_kind(std::string_view name) {
  if (find_cache_kind(name) != nullptr) return {};
  std::string known;
  for (const CacheKind& kind : kKinds)
    known += (known.empty() ? "" : ", ") + std::string(kind.name);
  return error(Code::kInvalidArgument, "unknown cache kind %.40s, known are %s",
               std::string(name).c_str(), known.c_str());
}

Status check_layers(std::span<const LayerShape> layers) {
  for (size_t i = 0; i < layers.size(); ++i) GEN_TRY(check_shape(layers[i], i));
  return {};
}

Result<std::unique_ptr<KvCache>> make_cache(std::string_view kind,
                                            std::span<const LayerShape> layers, int32_t capacity,
                                            Allocator& allocator) {
  GEN_TRY(check_cache_kind(kind));
  if (capacity < 1) {
    return error(Code::kInvalidArgument, "cache capacity %d is below 1", capacity);
  }
  GEN_TRY(check_layers(layers));
  const CacheKind& row = *find_cache_kind(kind);
  return row.create(row, layers, capacity, allocator);
}

Result<std::unique_ptr<KvCache>> clone_cache(KvCache& source, Allocator& allocator) {
  if (source.traits().can_share_blocks) return source.fork();
  GEN_ASSIGN(auto copy,
             make_cache(source.traits().kind, source.layers(), source.capacity(), allocator));
  GEN_ASSIGN(const CachePlan all, copy->plan(source.length()));
  GEN_ASSIGN(const CachePlan held, source.plan(0));
  for (size_t i = 0; i < source.layers().size(); ++i) {
    const auto layer = static_cast<int32_t>(i);
    GEN_ASSIGN(const engine::KvView from, source.view(layer, held));
    GEN_ASSIGN(const engine::KvView to, copy->view(layer, all));
    engine::kv_copy(from.k, 0, to.k, 0, from.kv_heads, held.start);
    engine::kv_copy(from.v, 0, to.v, 0, from.kv_heads, held.start);
  }
  copy->commit(all);
  return copy;
}

}  // namespace gen::cache
