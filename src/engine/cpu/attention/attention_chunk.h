// SPDX-License-Identifier: Apache-2.0
// Attention of a few queries over one chunk of a sequence: the kernels of attention.h applied to
// the runs of attention_walk.h. attention.cpp and attention_split.cpp distribute chunks over
// threads and merge the partials.
#pragma once

#include <cstdint>
#include <limits>

#include "engine/cpu/attention/attention.h"
#include "engine/cpu/attention/attention_walk.h"
#include "engine/cpu/base/carver.h"
#include "engine/cpu/sequence/sequence_ops.h"
#include "engine/ops.h"

namespace gen::engine::cpu {

/// A block of rows of one sequence and the query heads that share a kv head.
struct AttentionItem {
  const SequenceRows* sequence;
  int32_t row;   // first row within the sequence
  int32_t rows;  // of this item
  int32_t kv_head;
};

/// Scratch of a thread for a chunk, sized for the largest item.
struct ChunkSpace {
  AttentionChunk* chunk;
  AttentionChunk* next_chunk;
  float* unpacked;        // a few tiles
  const float** queries;  // [queries]
  SlotRange* seen;        // [queries] of a chunk
  float* scores;          // [queries, kAttentionChunk]
};

/// Immutable after set_out(); shared by threads.
class ChunkAttention {
 public:
  ChunkAttention(const AttendArgs& args, const AttentionKernels& kernels) noexcept;

  void set_out(Rows out) noexcept { out_ = out; }
  [[nodiscard]] const AttentionKernels& kernels() const noexcept { return kernels_; }
  [[nodiscard]] int32_t group() const noexcept { return group_; }
  [[nodiscard]] int32_t k_dim() const noexcept { return args_.k_dim; }
  [[nodiscard]] int32_t v_dim() const noexcept { return args_.v_dim; }
  /// Row stride of the sums, in floats.
  [[nodiscard]] int64_t v_stride() const noexcept { return v_stride_; }
  [[nodiscard]] int32_t queries(const AttentionItem& item) const noexcept {
    return item.rows * group_;
  }

  [[nodiscard]] ChunkSpace take_space(Carver& carver, int64_t item_queries) const noexcept;
  /// The running softmax of the item's queries before their first chunk.
  void begin(const AttentionItem& item, SoftmaxPartial* states, float* sums) const noexcept;
  /// Packs the item's queries, queries * k_dim floats.
  void pack_queries(const AttentionItem& item, const float** queries, float* packed) const noexcept;
  /// Computes scores, softmax and weighted sums of space.chunk for all queries of the item.
  void partial(const AttentionItem& item, const RowWalk& walk, const float* packed,
               ChunkSpace& space, SoftmaxPartial* partials, float* partial_sums) const noexcept;
  [[nodiscard]] float* out_row(const AttentionItem& item, int32_t query) const noexcept;

  static RowWalk walk_of(const AttentionItem& item) noexcept {
    return {*item.sequence, item.row, item.rows, item.kv_head};
  }

 private:
  static constexpr SoftmaxPartial kNothingSeen = {-std::numeric_limits<float>::infinity(), 0.0F};

  void weighted_sums(const AttentionItem& item, const ChunkSpace& space,
                     float* partial_sums) const noexcept;
  /// Calls use(dots, weighted, run, stride) for a run that its kernels can read directly, or for
  /// unpacked pieces of it in order.
  template <typename Use>
  void readable(const KvSide& side, const KvRun& run, int32_t n_queries, float* unpacked,
                Use use) const noexcept;
  [[nodiscard]] int64_t unpacked_floats() const noexcept;

  const AttendArgs& args_;
  const AttentionKernels& kernels_;
  const int32_t group_;     // query heads per kv head
  const int64_t v_stride_;  // row stride of the sums, in floats
  Rows out_;
};

}  // namespace gen::engine::cpu
