// SPDX-License-Identifier: Apache-2.0
// The interface behind the kv_cache_update family of the C API: keys and values of one sequence
// written layer by layer as float32 [batch, seq, dim] tensors. It knows no model; a layer takes its
// batch and dim from its first write, and layers advance on their own, as they do within a forward
// pass. A new variant is one file that implements this (most derive from LayeredStore), one row in
// tensor_kinds.cpp, and passes the conformance test. What attention reads in place is kv_cache.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "cache/memory_use.h"
#include "cache/state/state_file.h"
#include "tensor/dtype.h"

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
  DType type = DType::kF32;  // or kF16
  TensorShape shape;
  size_t batch_stride = 0;
  size_t seq_stride = 0;
};

/// Of a store whose layers can be read in place.
class TensorViews {
 public:
  /// k and v are null for a miss. Valid until the store is freed or the layer takes another shape;
  /// rows keep their content until a truncate below them and a write.
  [[nodiscard]] virtual TensorSpan view(int32_t layer) const noexcept = 0;

 protected:
  ~TensorViews() = default;
};

/// Of a store whose layers have room for max_seq_len() from their first write.
class TensorBuffers {
 public:
  /// All that the layer's last write reserved, [batch, max_seq_len, dim]; its positions from
  /// layer_seq_len() on hold anything. k and v are null for a layer that was never written, or is
  /// out of range. Valid until the store is freed or the layer takes another shape.
  [[nodiscard]] virtual TensorSpan full_buffer(int32_t layer) const noexcept = 0;

 protected:
  ~TensorBuffers() = default;
};

/// Of a store on a device, which tells those that run there how long the sequence is.
class TensorCounters {
 public:
  /// Addresses on the device: the position that is written next, and the positions that count.
  [[nodiscard]] virtual const int32_t* position_counter() const noexcept = 0;
  [[nodiscard]] virtual const int32_t* length_counter() const noexcept = 0;
  /// Every layer gets the length that the first of them tells. kDevice; kState if a layer has no
  /// memory.
  virtual Status sync_counter() = 0;

 protected:
  ~TensorCounters() = default;
};

class TensorProvider;

/// Of a store that can be copied.
class TensorCopies {
 public:
  /// An independent copy. kOutOfMemory; whatever else the variant may meet.
  [[nodiscard]] virtual Result<std::unique_ptr<TensorProvider>> clone() const = 0;

 protected:
  ~TensorCopies() = default;
};

/// What a variant is and can do, as data: for those who ask before there is a store. The store's
/// views(), buffers() and copies() say the same.
struct TensorTraits {
  const char* kind = "";       // static text
  const char* dtype = "fp32";  // what elements are kept as; static text
  bool lossy = false;          // get() may differ from what was written
  bool can_view = false;
  bool has_full_buffer = false;  // a layer's memory has room for max_seq_len() from its first write
  bool can_clone = true;
  bool one_row_one_result = true;  // what is read does not depend on how positions came at once
};

/// Any failing call leaves the object as it was.
/// Threads: not synchronised, except that any thread may ask for the lengths.
class TensorProvider {
 public:
  virtual ~TensorProvider() = default;

  [[nodiscard]] virtual const TensorTraits& traits() const noexcept = 0;

  /// Appends shape.seq positions to a layer. k and v are float32 [batch, seq, dim]. Checked in this
  /// order: kOutOfRange for the layer; kInvalidArgument for a shape that is no shape, or another
  /// batch or dim than the layer has (an empty layer takes a new one); kCacheFull, where there is a
  /// limit; kOutOfMemory and whatever else the variant may meet; kInvalidArgument for elements that
  /// it cannot keep. seq == 0 does nothing.
  virtual Status update(int32_t layer, const float* k, const float* v,
                        const TensorShape& shape) = 0;

  /// What get() would copy; all 0 for an empty layer or one out of range.
  [[nodiscard]] virtual TensorShape shape(int32_t layer) const noexcept = 0;
  /// Decodes the layer into dense float32 of shape(layer); either may be null. A miss copies
  /// nothing.
  virtual Status get(int32_t layer, float* k, float* v) const = 0;
  /// Null where a store cannot do it, for as long as it lives.
  [[nodiscard]] virtual const TensorViews* views() const noexcept { return nullptr; }
  [[nodiscard]] virtual const TensorBuffers* buffers() const noexcept { return nullptr; }
  [[nodiscard]] virtual const TensorCopies* copies() const noexcept { return nullptr; }
  [[nodiscard]] virtual TensorCounters* counters() noexcept { return nullptr; }
  [[nodiscard]] virtual const TensorCounters* counters() const noexcept { return nullptr; }

  /// A number that is another after each change of what the layer holds; out of range: 0.
  [[nodiscard]] virtual uint64_t changes(int32_t layer) const noexcept = 0;

  /// Positions of the whole store: moves when all layers have come to the same length. 0 without
  /// layers.
  [[nodiscard]] virtual int32_t seq_len() const noexcept = 0;
  /// Positions of one layer; 0 out of range.
  [[nodiscard]] virtual int32_t layer_seq_len(int32_t layer) const noexcept = 0;
  /// Entries that attention reads, shape(layer).seq, from any thread.
  [[nodiscard]] virtual int32_t kv_len(int32_t layer) const noexcept {
    return layer_seq_len(layer);
  }
  /// Positions that an entry of a layer stands for, and the first of them; 0 where there is no such
  /// entry, and in a store whose entries are its positions.
  [[nodiscard]] virtual int32_t entry_positions(int32_t /*layer*/, int32_t /*entry*/,
                                                int32_t* /*first*/) const noexcept {
    return 0;
  }
  [[nodiscard]] virtual int32_t num_layers() const noexcept = 0;
  /// INT32_MAX where there is no limit of the store's own.
  [[nodiscard]] virtual int32_t max_seq_len() const noexcept = 0;

  /// Every layer keeps its first max(n, 0) positions.
  virtual Status truncate(int32_t n) = 0;
  /// Forgets everything; keeps the memory unless the variant says otherwise.
  virtual Status reset() { return truncate(0); }
  [[nodiscard]] virtual MemoryUse memory() const noexcept = 0;

  /// Writes the store's content in its own form, from which restore() gives the same bits.
  virtual Status save(StateWriter& to) const = 0;
  /// Takes what save() wrote into a store without positions. kFormat for damage; kInvalidArgument
  /// for a state of another form or number of layers, or a shape that the store cannot have;
  /// kCacheFull if a layer is too long; kPoolExhausted; kOutOfMemory.
  virtual Status restore(StateReader& from) = 0;
};

}  // namespace gen::cache
