// SPDX-License-Identifier: Apache-2.0
// Keys and values written layer by layer as [batch, seq, dim] tensors: what the kv_cache_update
// family of the C API works on. It knows no model; a layer takes its batch and dim from its first
// write. Layers advance on their own, as they do within a forward pass.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/allocator.h"
#include "base/status.h"
#include "cache/kv_cache.h"
#include "engine/kv_view.h"

namespace gen::cache {

/// [batch, seq, dim]; all 0 where there is nothing.
struct TensorShape {
  int32_t batch = 0;
  int32_t seq = 0;
  int32_t dim = 0;
};

/// One layer as it lies in memory: element (b, p, d) is stored at
/// b * batch_stride + p * seq_stride + d * element size, strides in bytes.
struct TensorSpan {
  const std::byte* k = nullptr;
  const std::byte* v = nullptr;
  TensorShape shape;
  size_t batch_stride = 0;
  size_t seq_stride = 0;
};

/// Storage: per layer one buffer, keys then values, each [batch, max_seq_len, dim]. It is reserved
/// in full by the layer's first write, so later writes allocate nothing, and never initialised, so
/// pages come as they are written.
/// Any failing call leaves the store as it was.
/// Threads: not synchronised, but for seq_len() and layer_seq_len().
class TensorStore {
 public:
  /// More layers than any model has; bounds the table that create() makes.
  static constexpr int32_t kMaxLayers = 65536;
  /// kInvalidArgument for num_layers outside [0, kMaxLayers] or max_seq_len below 1.
  static Status check(int32_t num_layers, int32_t max_seq_len);
  /// Checks as check(). `allocator` must outlive the store.
  static Result<std::unique_ptr<TensorStore>> create(engine::KvFormat format, int32_t num_layers,
                                                     int32_t max_seq_len, Allocator& allocator);

  /// Appends shape.seq positions to a layer. k and v are float32 [batch, seq, dim]. Checked in this
  /// order: kOutOfRange for the layer; kInvalidArgument for a shape that is no shape, or another
  /// batch or dim than the layer has (an empty layer takes a new one); kCacheFull; kOutOfMemory.
  /// seq == 0 does nothing.
  Status update(int32_t layer, const float* k, const float* v, const TensorShape& shape);

  /// What get() would copy; all 0 for an empty layer or one out of range.
  [[nodiscard]] TensorShape shape(int32_t layer) const noexcept;
  /// Decodes the layer into dense float32 [batch, seq, dim]; either may be null. A miss copies
  /// nothing.
  void get(int32_t layer, float* k, float* v) const noexcept;
  /// In place; k and v are null for a miss. Valid until the store is freed or the layer takes
  /// another shape; rows keep their content until a truncate below them and a write.
  [[nodiscard]] TensorSpan view(int32_t layer) const noexcept;

  /// Positions of the whole store: moves when all layers have come to the same length. 0 without
  /// layers.
  [[nodiscard]] int32_t seq_len() const noexcept { return agreed_; }
  /// Positions of one layer; 0 out of range.
  [[nodiscard]] int32_t layer_seq_len(int32_t layer) const noexcept;
  [[nodiscard]] int32_t num_layers() const noexcept { return static_cast<int32_t>(layers_.size()); }
  [[nodiscard]] int32_t max_seq_len() const noexcept { return max_seq_len_; }
  [[nodiscard]] engine::KvFormat format() const noexcept { return format_; }

  /// Every layer keeps its first max(n, 0) positions.
  void truncate(int32_t n) noexcept;
  /// Forgets everything and keeps the memory.
  void reset() noexcept { truncate(0); }
  [[nodiscard]] MemoryUse memory() const noexcept;
  /// A deep copy from the same allocator; kOutOfMemory.
  [[nodiscard]] Result<std::unique_ptr<TensorStore>> clone() const;

 private:
  struct Layer {
    Buffer buffer;  // keys in the first half, values in the second
    int32_t batch = 0;
    int32_t dim = 0;
    std::atomic<int32_t> cursor = 0;  // one writer; lengths may be asked from any thread
  };

  TensorStore(engine::KvFormat format, int32_t num_layers, int32_t max_seq_len,
              Allocator& allocator)
      : format_(format),
        max_seq_len_(max_seq_len),
        allocator_(allocator),
        layers_(static_cast<size_t>(num_layers)) {}

  [[nodiscard]] const Layer* find(int32_t layer) const noexcept;
  [[nodiscard]] size_t element_bytes() const noexcept;
  /// Bytes of keys, or of values, of a layer; false on overflow.
  [[nodiscard]] bool half_bytes(const TensorShape& shape, size_t* bytes) const noexcept;
  void encode(const Layer& layer, const float* from, int32_t seq, std::byte* to) const noexcept;
  void decode(const Layer& layer, const std::byte* from, float* to) const noexcept;
  void note_agreement() noexcept;

  engine::KvFormat format_;
  int32_t max_seq_len_;
  std::atomic<int32_t> agreed_ = 0;
  Allocator& allocator_;
  std::vector<Layer> layers_;
};

}  // namespace gen::cache
