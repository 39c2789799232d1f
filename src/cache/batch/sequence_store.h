// SPDX-License-Identifier: Apache-2.0
// The interface behind kv_cache_batch.h of the C API: keys and values of many sequences, written
// and read a batch at a time as float32 [tokens, heads, dim]. A pass is start_forward, then put and
// get for each layer. Operations that several stores must do together have two parts: a plan, which
// may fail and changes nothing visible, and a commit, which cannot fail. A new variant is one file
// that implements this; lane_store.h is for attention that reads in place.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/allocator.h"
#include "base/status.h"
#include "cache/memory_use.h"
#include "tensor/dtype.h"

namespace gen::cache {

/// Types of masks; the first is the default.
inline constexpr DType kMaskTypes[] = {DType::kF32, DType::kF16};

/// The layout of what get() returns.
struct SequenceConfig {
  int32_t padding = 1;      // histories begin and end at multiples of this
  bool permuted_v = false;  // values as [heads, dim, entries]
  DType mask_type = kMaskTypes[0];
};

struct SequenceLimits {
  DType type = DType::kF16;  // kF32, kF16, kQ8_0 or kQ4_0
  int32_t max_sequences = 1;
  int32_t capacity = 1;  // entries of a sequence
  int32_t max_batch = 1;
};

/// Borrowed for the call.
struct SequenceBatch {
  std::span<const int32_t> positions;   // [n], in its sequence
  std::span<const int32_t> sequences;   // [n]
  std::span<const int32_t> multimodal;  // indices of placeholder tokens of encoder items
  bool reserve = false;                 // for the worst case; nothing is stored
};

/// The checks of a batch in every store. kInvalidArgument for a number of tokens outside [1,
/// max_batch] and for numbers outside their range; kOutOfRange for an index of no token.
Status check_batch(const SequenceBatch& batch, int32_t max_batch);

/// Keys or values of a pass: float32 [n, heads, dim].
struct PutRows {
  const float* data = nullptr;
  int32_t heads = 0;
  int32_t dim = 0;
};

/// What get() writes, fastest dimension first: k [k_dim, heads, length]; v [v_dim, heads, length],
/// or [length, v_dim, heads] permuted; mask [length, n], 0 where a token may look and -infinity
/// elsewhere. A mask of 0, 0 hides nothing.
struct HistoryShape {
  int32_t k[3] = {0, 0, 0};
  int32_t v[3] = {0, 0, 0};
  int32_t mask[2] = {0, 0};
};

/// Rotates keys [n, heads, dim] of a layer by one offset each: the shift of its position.
using ShiftKeys = std::function<Status(int32_t layer, float* keys, int32_t dim, int32_t heads,
                                       int32_t n, const int32_t* offsets)>;

/// Of a store that has a child for each type of layer.
class LayerTypes {
 public:
  /// Selects the child for put and get. kOutOfRange.
  virtual Status set_layer_type(int32_t type) = 0;
  [[nodiscard]] virtual size_t layer_type() const noexcept = 0;

 protected:
  ~LayerTypes() = default;
};

/// Of a store for an encoder's output.
class EncoderItems {
 public:
  /// Whether the sequence has an encoder's output.
  [[nodiscard]] virtual Result<bool> encoder_cached(int32_t sequence) const = 0;

 protected:
  ~EncoderItems() = default;
};

/// Threads: not synchronised.
class SequenceStore {
 public:
  virtual ~SequenceStore() = default;

  /// "causal", "swa", …
  [[nodiscard]] virtual const char* kind() const noexcept = 0;

  /// Before init, once: kState after either.
  virtual Status configure(const SequenceConfig& config) = 0;
  [[nodiscard]] virtual bool configured() const noexcept = 0;
  /// Once. `allocator` must outlive the store; memory is taken by the first put of a layer.
  virtual Status init(const SequenceLimits& limits, Allocator& allocator) = 0;
  /// Returns to the state before init(), if that was the last call.
  virtual void undo_init() noexcept = 0;
  /// Initialised or closed.
  [[nodiscard]] virtual bool begun() const noexcept = 0;
  /// Frees everything. May be called again; afterwards every call that can fail is kState.
  virtual void close() noexcept = 0;

  /// Selects the layer of put and get, 0 and up.
  virtual Status set_layer(int32_t layer) = 0;
  virtual Status set_shift(ShiftKeys shift) = 0;
  /// 0 for none.
  virtual Status set_quota(int32_t entries) = 0;

  virtual Status plan_start(const SequenceBatch& batch) = 0;
  virtual void commit_start() noexcept = 0;
  Status start_forward(const SequenceBatch& batch) {
    GEN_TRY(plan_start(batch));
    commit_start();
    return {};
  }

  /// Stores the rows of this pass in the layer; n as in start_forward. kInvalidArgument for a shape
  /// that differs from the layer's, and for non-finite values that the type cannot store.
  virtual Status put(const PutRows& k, const PutRows& v, int32_t n) = 0;
  /// kState outside a pass and before the layer's first put.
  [[nodiscard]] virtual Result<HistoryShape> shape() = 0;
  /// Writes data in the shape that shape() returned; each may be null. A failure of ShiftKeys
  /// leaves `k` undefined.
  virtual Status get(float* k, float* v, void* mask) = 0;
  [[nodiscard]] virtual DType mask_type() const noexcept = 0;
  /// Lifts the causal rule for these tokens of the pass.
  virtual Status set_causal(std::span<const int32_t> except) = 0;

  virtual Status plan_copy_prefix(int32_t src, int32_t dst, int32_t length) = 0;
  virtual void commit_copy_prefix() noexcept = 0;
  Status copy_prefix(int32_t src, int32_t dst, int32_t length) {
    GEN_TRY(plan_copy_prefix(src, dst, length));
    commit_copy_prefix();
    return {};
  }
  [[nodiscard]] virtual Result<bool> can_resume(int32_t sequence, int32_t position) const = 0;
  /// Positions [begin, end); INT32_MAX as end for all from begin on.
  virtual Status plan_remove(int32_t sequence, int32_t begin, int32_t end) = 0;
  virtual void commit_remove() noexcept = 0;
  Status remove(int32_t sequence, int32_t begin, int32_t end) {
    GEN_TRY(plan_remove(sequence, begin, end));
    commit_remove();
    return {};
  }
  /// How many cells, at most `budget`, should move to where they are read together.
  virtual Result<int32_t> plan_compact(int32_t budget) = 0;
  /// Moves them, and ends the pass.
  virtual void commit_compact() noexcept = 0;
  Result<int32_t> compact(int32_t budget) {
    GEN_ASSIGN(const int32_t moves, plan_compact(budget));
    commit_compact();
    return moves;
  }

  [[nodiscard]] virtual MemoryUse memory() const noexcept = 0;

  /// Null for a store that is the same for all layers.
  [[nodiscard]] virtual LayerTypes* layer_types() noexcept { return nullptr; }
  /// Null for a store that keeps none.
  [[nodiscard]] virtual const EncoderItems* encoder_items() const noexcept { return nullptr; }
};

}  // namespace gen::cache
