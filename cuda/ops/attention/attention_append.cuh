// SPDX-License-Identifier: Apache-2.0
// rope_append fused into the kernel of attention (attention_plain.cu), for a step of one row. A
// block rotates its own heads of q. Blocks of the row's last chunk also rotate the row's own key
// and use its own value; for each kv head one of them stores both. No block reads them from the
// cache before the kernel has ended. Operations and bits are those of rope_append.cuh.
//   Order   The row and the record of its sequence are loaded at once, then the block table. While
//           keys and values are being loaded, a warp computes the dot products of q and the own
//           key.
//   Shared  a head for each warp, the own key and value.
#pragma once

#include "cuda/ops/attention/attention_stage.cuh"
#include "cuda/ops/sequence/rope_append.cuh"

namespace gen::cuda {

/// An element as stored in the cache.
template <typename T>
GEN_DEVICE T narrowed(float x) {
  if constexpr (sizeof(T) == 4) {
    return x;
  } else {
    return f32_to_f16(x);
  }
}

/// Bytes of shared memory of a block of `warps`.
constexpr size_t own_row_bytes(int32_t k_dim, int32_t v_dim, int32_t warps) noexcept {
  return static_cast<size_t>((warps + 1) * k_dim + v_dim) * sizeof(float);
}

/// The row of a block: up to kHeads heads of q (`n` from `first_head` on), and the key and value of
/// head `kv_head`. The block has at least as many threads as a value has elements. If `there` is
/// false, the row has been rotated and stored before; this then reads nothing and has no memory.
template <typename T, int32_t kHeads, int32_t kWarps>
class OwnRow {
 public:
  GEN_DEVICE OwnRow(const AppendView& of, bool there, int64_t t, int32_t kv_head,
                    int32_t first_head, int32_t n, size_t shared_offset)
      : of_(of),
        kv_head_(kv_head),
        n_(n),
        q_from_(of.q.data + t * of.q.stride + int64_t{first_head} * of.k_dim),
        k_from_(of.k.data + t * of.k.stride + int64_t{kv_head} * of.k_dim),
        cs_(of.cs.data != nullptr ? of.cs.data + t * of.cs.stride : nullptr),
        head_(dynamic_shared<float>(
            shared_offset + static_cast<size_t>(warp_of_block() * of.k_dim) * sizeof(float),
            static_cast<size_t>(of.k_dim))),
        key_(dynamic_shared<float>(
            shared_offset + static_cast<size_t>(kWarps * of.k_dim) * sizeof(float),
            static_cast<size_t>(of.k_dim))),
        value_(dynamic_shared<float>(
            shared_offset + static_cast<size_t>((kWarps + 1) * of.k_dim) * sizeof(float),
            static_cast<size_t>(of.v_dim))) {
    if (!there) return;
    GEN_UNROLL
    for (int32_t i = 0; i < kEach; ++i) {
      const int32_t h = warp_of_block() + i * kWarps;
      if (h < n_) q_[i] = load_head(of_, q_from_ + h * of_.k_dim, cs_);
    }
    if (warp_of_block() == kWarps - 1) k_ = load_head(of_, k_from_, cs_);
    if (thread_x() < of_.v_dim) {
      v_ = of_.v.data[t * of_.v.stride + int64_t{kv_head} * of_.v_dim + thread_x()];
    }
  }

  /// q[d][head], zeros of heads that are not there.
  GEN_DEVICE void put_queries(const Shared<float>& q) const {
    GEN_UNROLL
    for (int32_t i = 0; i < kEach; ++i) {
      const int32_t h = warp_of_block() + i * kWarps;
      if (h >= kHeads) continue;
      if (h < n_) prepare_head(of_, q_[i], q_from_ + h * of_.k_dim, of_.q_norm, cs_, head_);
      for (int32_t d = lane_of_warp(); d < of_.k_dim; d += 32) {
        float x = 0.0F;
        if (h < n_) x = head_[d];
        q[d * kHeads + h] = x;
      }
      sync_warp();  // all have read the head
    }
  }
  /// The key and the value as a cache holds them.
  GEN_DEVICE void put_entry() const {
    if (warp_of_block() == kWarps - 1) {
      prepare_head(of_, k_, k_from_, of_.k_norm, cs_, key_);
      for (int32_t d = lane_of_warp(); d < of_.k_dim; d += 32) {
        const float x = key_[d];
        key_[d] = widened<T>(narrowed<T>(x));
      }
    }
    if (thread_x() < of_.v_dim) value_[thread_x()] = widened<T>(narrowed<T>(v_));
  }
  /// The raw score of the own key for head `head` of kHeads. A barrier after put_queries() and
  /// put_entry() must precede it.
  GEN_DEVICE float score(const Shared<float>& q, int32_t head) const {
    float sum = 0.0F;
    for (int32_t d = 0; d < of_.k_dim; ++d) {
      const float element = q[d * kHeads + head];
      const float key = key_[d];
      sum = multiply_add(element, key, sum);
    }
    return sum;
  }
  [[nodiscard]] GEN_DEVICE float value(int32_t d) const { return value_[d]; }

  /// Into the cache, as entry `entry`.
  GEN_DEVICE void store(const Blocks& blocks, int32_t entry) const {
    const auto put = [&](const KvSideForm& form, const Shared<float>& from, bool keys) {
      const KvPlace place = head_place(form, place_of(form, blocks, entry), kv_head_);
      for (int32_t d = thread_x(); d < form.head_dim; d += kWarps * 32) {
        const int32_t at = keys ? d * kTile + place.lane : place.lane * form.head_dim + d;
        const float x = from[d];
        reinterpret_cast<T*>(place.tile)[at] = narrowed<T>(x);
      }
    };
    put(of_.layer.k, key_, true);
    put(of_.layer.v, value_, false);
  }

 private:
  static constexpr int32_t kEach = (kHeads + kWarps - 1) / kWarps;  // heads of a warp

  const AppendView& of_;
  int32_t kv_head_;
  int32_t n_;
  const float* q_from_;
  const float* k_from_;
  const float* cs_;
  const Shared<float> head_;
  const Shared<float> key_;
  const Shared<float> value_;
  LoadedHead q_[static_cast<size_t>(kEach)] = {};
  LoadedHead k_ = {};
  float v_ = 0.0F;
};

}  // namespace gen::cuda
