// SPDX-License-Identifier: Apache-2.0
// A program's own caches. See generate.hpp.
#ifndef GENERATE_KV_CACHE_HPP
#define GENERATE_KV_CACHE_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "handle.hpp"

namespace gen {

/// Dense float32, [batch, seq, dim] for a cache of one sequence; fastest dimension first for one of many.
struct CacheTensor {
  std::vector<float> data;
  std::array<int32_t, 3> shape{};
};

/// A copy of the content of a layer.
struct CacheLayer {
  CacheTensor keys;
  CacheTensor values;
};

/// Memory of a cache in bytes, see kv_cache_memory_bytes.
struct CacheMemory {
  size_t resident = 0;
  size_t payload = 0;
  size_t metadata = 0;
};

namespace detail {

inline void make_room(CacheTensor *tensor) {
  size_t count = 1;
  for (const int32_t extent : tensor->shape) count *= static_cast<size_t>(extent);
  tensor->data.resize(count);
}

/// Through ask(k, k_room, v, v_room, k_shape, v_shape).
template <class Ask>
CacheLayer layer_of(Ask ask) {
  CacheLayer out;
  ask(nullptr, 0, nullptr, 0, out.keys.shape.data(), out.values.shape.data());
  make_room(&out.keys);
  make_room(&out.values);
  ask(out.keys.data.data(), out.keys.data.size(), out.values.data.data(), out.values.data.size(), out.keys.shape.data(),
      out.values.shape.data());
  return out;
}

}  // namespace detail

/// What caches of one and of many sequences have in common.
class AnyCache : public detail::Handle<kv_cache, kv_cache_free> {
 public:
  /// The kind's name, such as "fp32" or "paged".
  std::string kind() const { return kv_cache_kind(get()); }
  /// The type of the stored elements; empty for a cache of many sequences before init().
  std::string dtype() const {
    const char *name = kv_cache_dtype(get());
    return name != nullptr ? name : "";
  }
  bool is_lossy() const noexcept { return kv_cache_is_lossy(get()) != 0; }
  /// JSON of kv_cache_describe.
  std::string describe() const { return detail::filled<std::string>(kv_cache_describe, get()); }
  CacheMemory memory() const {
    CacheMemory use;
    detail::call(kv_cache_memory_bytes, get(), &use.resident, &use.payload, &use.metadata);
    return use;
  }
  /// The cache inside a tracing cache or a wrapper, for reading while this one lives; null for
  /// others.
  const kv_cache *underlying() const noexcept { return kv_cache_underlying(get()); }
  void set_allocator(const gen_allocator *allocator) { detail::call(kv_cache_set_allocator, get(), allocator); }

 protected:
  using Handle::Handle;
};

/// Keys and values for direct use: takes the cache that a kv_cache_…_new function made.
class Cache : public AnyCache {
 public:
  /// Calls a maker with all but its last two arguments: Cache::make(kv_cache_fp16_new, layers, max_seq_len).
  template <class Maker, class... Args>
  static Cache make(Maker maker, Args... args) {
    return Cache(detail::made<kv_cache>(maker, args...));
  }
  explicit Cache(kv_cache *owned) noexcept : AnyCache(owned) {}

  /// k, v: [batch, seq, dim].
  void update(int32_t layer, const float *k, const float *v, int32_t batch, int32_t seq, int32_t dim) {
    detail::call(kv_cache_update, get(), layer, k, v, batch, seq, dim);
  }
  /// A copy of a layer; of shape 0, 0, 0 if it is empty.
  CacheLayer layer(int32_t layer) const {
    return detail::layer_of([&](float *k, size_t k_room, float *v, size_t v_room, int32_t *k_shape, int32_t *v_shape) {
      detail::call(kv_cache_get, get(), layer, k, k_room, v, v_room, k_shape, v_shape);
    });
  }
  kv_cache_span view(int32_t layer) const {
    kv_cache_span span{};
    span.struct_size = sizeof span;
    detail::call(kv_cache_view, get(), layer, &span);
    return span;
  }
  int32_t seq_len() const noexcept { return kv_cache_seq_len(get()); }
  int32_t layer_seq_len(int32_t layer) const noexcept { return kv_cache_layer_seq_len(get(), layer); }
  int32_t kv_len(int32_t layer) const noexcept { return kv_cache_kv_len(get(), layer); }
  int32_t num_layers() const noexcept { return kv_cache_num_layers(get()); }
  int32_t max_seq_len() const noexcept { return kv_cache_max_seq_len(get()); }
  /// KV_CACHE_CAN_… bits.
  uint32_t capabilities() const noexcept { return kv_cache_capabilities(get()); }
  void truncate(int32_t n) { detail::call(kv_cache_truncate, get(), n); }
  void reset() { detail::call(kv_cache_reset, get()); }
  Cache clone() const { return make(kv_cache_clone, get()); }
  void save(const std::string &path) const { detail::call(kv_cache_save, get(), path.c_str()); }
  void load(const std::string &path) { detail::call(kv_cache_load, get(), path.c_str()); }
  std::vector<std::byte> save() const { return detail::filled<std::vector<std::byte>>(kv_cache_save_buffer, get()); }
  void load(const std::vector<std::byte> &state) {
    detail::call(kv_cache_load_buffer, get(), state.data(), state.size());
  }
};

/// Device memory. Cache::make(kv_cache_gpu_new_typed, ...) and kv_cache_gpu_new take any
/// gen_gpu_allocator.
class GpuAllocator : public detail::Handle<gen_gpu_allocator, gen_gpu_allocator_release> {
 public:
  /// Host memory that acts as a device.
  static GpuAllocator host() { return GpuAllocator(detail::made<gen_gpu_allocator>(gen_gpu_allocator_host)); }
  /// Memory of a device of the backend "cuda".
  static GpuAllocator cuda(int32_t device) {
    return GpuAllocator(detail::made<gen_gpu_allocator>(gen_gpu_allocator_cuda, device));
  }
  size_t bytes() const {
    size_t taken = 0;
    detail::call(gen_gpu_allocator_counters, get(), nullptr, &taken, nullptr);
    return taken;
  }

 private:
  explicit GpuAllocator(gen_gpu_allocator *table) : Handle(table) {}
};

/// Blocks that paged caches share.
class BlockPool : public detail::Handle<kv_cache_pool, kv_cache_pool_free> {
 public:
  BlockPool(int32_t layers, int32_t block_size, int32_t row_dim, int32_t max_memory_mb, const std::string &dtype = "fp32")
      : Handle(detail::made<kv_cache_pool>(kv_cache_pool_new, layers, block_size, row_dim, max_memory_mb, dtype.c_str())) {}
  /// Stores blocks in the memory of a device; call it before the first one is allocated.
  BlockPool &gpu_allocator(const gen_gpu_allocator *allocator) {
    detail::call(kv_cache_pool_set_gpu_allocator, get(), allocator);
    return *this;
  }
  /// An empty cache over the pool.
  Cache cache(int32_t layers) const { return Cache::make(kv_cache_paged_new, get(), layers); }
  size_t capacity() const noexcept { return kv_cache_pool_cap(get()); }
  size_t available() const noexcept { return kv_cache_pool_available(get()); }
  int32_t block_size() const noexcept { return kv_cache_pool_block_size(get()); }
  double fragmentation() const noexcept { return kv_cache_pool_fragmentation(get()); }
  size_t resident_bytes() const noexcept { return kv_cache_pool_resident_bytes(get()); }
  /// Allocates a block for the caller, to be passed to free() or inject().
  kv_cache_block *alloc() const { return detail::made<kv_cache_block>(kv_cache_pool_alloc, get()); }
  void retain(kv_cache_block *block) const { detail::call(kv_cache_pool_retain_block, get(), block); }
  void free(kv_cache_block *block) const { detail::call(kv_cache_pool_free_block, get(), block); }
  /// The blocks of a cache over the pool, borrowed until it changes.
  static std::vector<kv_cache_block *> table(const Cache &cache) {
    return detail::filled<std::vector<kv_cache_block *>>(kv_cache_block_table, cache.get());
  }
  /// Makes an empty cache continue from written blocks, of which it takes over one reference each.
  static void inject(Cache &cache, const std::vector<kv_cache_block *> &blocks, int32_t positions, int32_t batch,
                     int32_t dim) {
    detail::call(kv_cache_inject_blocks, cache.get(), blocks.data(), blocks.size(), positions, batch, dim);
  }
};

/// How to make tiered caches. set() takes the options that describe() lists.
class TierConfig : public detail::Handle<kv_cache_tier_config, kv_cache_tier_config_free> {
 public:
  TierConfig() : Handle(detail::made<kv_cache_tier_config>(kv_cache_tier_config_new)) {}
  TierConfig &set(const std::string &key, const std::string &value) {
    detail::call(kv_cache_tier_config_set, get(), key.c_str(), value.c_str());
    return *this;
  }
  /// The allocator of hot layers' device memory; null: host memory.
  TierConfig &gpu_allocator(const gen_gpu_allocator *allocator) {
    detail::call(kv_cache_tier_config_set_gpu_allocator, get(), allocator);
    return *this;
  }
  std::string describe() const { return detail::filled<std::string>(kv_cache_tier_config_describe, get()); }
};

/// A cache whose layers move between memory, a compact form and files. Any thread may move them.
class TieredCache : public Cache {
 public:
  explicit TieredCache(const TierConfig &config) : Cache(detail::made<kv_cache>(kv_cache_tiered_new, config.get())) {}
  /// Continues from the files of an earlier one.
  static TieredCache open(const TierConfig &config) {
    return TieredCache(detail::made<kv_cache>(kv_cache_tiered_open, config.get()));
  }
  /// KV_CACHE_TIER_….
  int32_t tier(int32_t layer) const noexcept { return kv_cache_tiered_tier(get(), layer); }
  int64_t access_count(int32_t layer) const noexcept { return kv_cache_tiered_access_count(get(), layer); }
  bool layer_is_lossy(int32_t layer) const noexcept { return kv_cache_tiered_is_lossy(get(), layer) != 0; }
  void promote(int32_t layer) const { detail::call(kv_cache_tiered_promote, get(), layer); }
  void demote(int32_t layer) const { detail::call(kv_cache_tiered_demote, get(), layer); }
  void manage() const { detail::call(kv_cache_tiered_manage, get()); }
  void prefetch(const std::vector<int32_t> &layers) const {
    detail::call(kv_cache_tiered_prefetch_async, get(), layers.data(), layers.size());
  }
  /// As layer(), from the copy that prefetch() has made; of shape 0, 0, 0 if there is none yet.
  CacheLayer prefetched(int32_t layer) const {
    return detail::layer_of([&](float *k, size_t k_room, float *v, size_t v_room, int32_t *k_shape, int32_t *v_shape) {
      detail::call(kv_cache_tiered_get_prefetched, get(), layer, k, k_room, v, v_room, k_shape);
      std::copy(k_shape, k_shape + 3, v_shape);
    });
  }
  void close() const { detail::call(kv_cache_tiered_close, get()); }

 private:
  explicit TieredCache(kv_cache *owned) noexcept : Cache(owned) {}
};

/// Keys and values of many sequences: takes the cache that kv_cache_causal_new or another function
/// of kv_cache_batch.h made. That header has the order of calls.
class BatchCache : public AnyCache {
 public:
  /// BatchCache::make(kv_cache_swa_new, window).
  template <class Maker, class... Args>
  static BatchCache make(Maker maker, Args... args) {
    return BatchCache(detail::made<kv_cache>(maker, args...));
  }
  /// One of several; the index is the layer type.
  static BatchCache wrapper(const std::vector<BatchCache> &caches) {
    std::vector<kv_cache *> handles;
    for (const BatchCache &cache : caches) handles.push_back(cache.get());
    return make(kv_cache_wrapper_new, handles.data(), handles.size());
  }
  explicit BatchCache(kv_cache *owned) noexcept : AnyCache(owned) {}

  void set_config(int32_t padding, bool permuted_v, const std::string &mask_dtype = "fp32") {
    detail::call(kv_cache_set_config, get(), padding, int32_t{permuted_v}, mask_dtype.c_str());
    half_mask_ = mask_dtype == "fp16";
  }
  void set_shift(kv_cache_shift_fn shift, void *user) { detail::call(kv_cache_set_shift, get(), shift, user); }
  void set_quota(int32_t entries) { detail::call(kv_cache_set_quota, get(), entries); }
  void init(const std::string &dtype, int32_t max_sequences, int32_t capacity, int32_t max_batch) {
    detail::call(kv_cache_init, get(), dtype.c_str(), max_sequences, capacity, max_batch);
  }
  void set_layer(int32_t layer) { detail::call(kv_cache_set_layer, get(), layer); }
  void set_layer_type(int32_t type) { detail::call(kv_cache_set_layer_type, get(), type); }
  /// Positions and sequences of a pass's tokens, one of each per token; `multimodal` are indices of
  /// tokens.
  void start_forward(const std::vector<int32_t> &positions, const std::vector<int32_t> &sequences, bool reserve = false,
                     const std::vector<int32_t> &multimodal = {}) {
    if (positions.size() != sequences.size()) {
      throw Error(GEN_ERROR_INVALID_ARGUMENT, "as many positions as sequences");
    }
    detail::call(kv_cache_start_forward, get(), positions.data(), sequences.data(), positions.size(), int32_t{reserve},
                 multimodal.data(), multimodal.size());
  }
  /// k: [k_dim, k_heads, n], v: [v_dim, v_heads, n].
  void put(const float *k, int32_t k_heads, int32_t k_dim, const float *v, int32_t v_heads, int32_t v_dim, int32_t n) {
    detail::call(kv_cache_put, get(), k, k_heads, k_dim, v, v_heads, v_dim, n);
  }
  /// What the tokens of a pass may see; an empty mask hides nothing.
  struct Masked {
    CacheTensor keys;
    CacheTensor values;
    std::vector<std::byte> mask;  ///< [length, n] float, or binary16 if set_config() said so
    std::array<int32_t, 2> mask_shape{};
  };
  Masked get_masked() {
    Masked out;
    const auto ask = [&](float *k, size_t k_room, float *v, size_t v_room, void *mask, size_t mask_room) {
      detail::call(kv_cache_get_masked, get(), k, k_room, v, v_room, mask, mask_room, out.keys.shape.data(),
                   out.values.shape.data(), out.mask_shape.data());
    };
    ask(nullptr, 0, nullptr, 0, nullptr, 0);
    const size_t cells = static_cast<size_t>(out.mask_shape[0]) * static_cast<size_t>(out.mask_shape[1]);
    detail::make_room(&out.keys);
    detail::make_room(&out.values);
    out.mask.resize(cells * (half_mask_ ? 2 : sizeof(float)));
    ask(out.keys.data.data(), out.keys.data.size(), out.values.data.data(), out.values.data.size(),
        cells > 0 ? out.mask.data() : nullptr, cells);
    return out;
  }
  void set_causal(const std::vector<int32_t> &except) {
    detail::call(kv_cache_set_causal, get(), except.data(), except.size());
  }
  void copy_prefix(int32_t src, int32_t dst, int32_t length) {
    detail::call(kv_cache_copy_prefix, get(), src, dst, length);
  }
  bool can_resume(int32_t sequence, int32_t position) const {
    int32_t can = 0;
    detail::call(kv_cache_can_resume, get(), sequence, position, &can);
    return can != 0;
  }
  void remove(int32_t sequence, int32_t begin, int32_t end) {
    detail::call(kv_cache_remove, get(), sequence, begin, end);
  }
  int32_t compact(int32_t budget) {
    int32_t moved = 0;
    detail::call(kv_cache_compact, get(), budget, &moved);
    return moved;
  }
  bool encoder_cached(int32_t sequence) const {
    int32_t cached = 0;
    detail::call(kv_cache_encoder_cached, get(), sequence, &cached);
    return cached != 0;
  }
  void close() { detail::call(kv_cache_close, get()); }

 private:
  bool half_mask_ = false;
};

}  // namespace gen

#endif  // GENERATE_KV_CACHE_HPP
