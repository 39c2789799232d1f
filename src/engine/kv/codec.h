// SPDX-License-Identifier: Apache-2.0
// The layout of each KvFormat in a tile of sixteen entries (engine/kv_layer.h), and codecs that
// write and read one entry at a time. The bytes of an entry depend on its own row only, and each
// byte belongs to one entry, so several threads may write entries.
//
// To add a format: a value of KvFormat, a file with its codec, a line in codec.cpp, and a row in
// cache/sequence/cache_format.cpp. Attention also needs a reader
// (cpu/attention/attention_read-inl.h) or an unpacking kernel (cpu/attention/kv_unpack-inl.h), as
// an entry of each table indexed by KvFormat in cpu/attention/attention-inl.h. Without a reader a
// tile is unpacked to float32 and read by dots<Floats> and weighted<Floats>. Formats are listed in
// docs/caches.md, docs/state-format.md and at gen_options_set_kv_dtype.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/kv_view.h"

namespace gen::engine {

/// Part of a tile: [count][kKvTile][bytes], so that each entry has `bytes` at `count` places.
struct KvStripe {
  size_t count = 0;
  size_t bytes = 0;
};

/// A tile is a sequence of stripes.
struct KvStripes {
  KvStripe of[2];
};

struct KvCodec {
  /// Bytes of a tile of one head, a multiple of 16. No overflow for head_dim below 2^31.
  size_t (*tile_bytes)(KvOrder order, size_t head_dim);
  /// Size of the data that all heads of a tile share; null for none.
  size_t (*shared_bytes)(size_t heads, size_t head_dim);
  /// Bytes of `shared_bytes` before those of a head; null with it.
  size_t (*shared_offset)(size_t head, size_t head_dim);
  /// Writes an entry: row is [heads, head_dim].
  void (*put)(const KvSide& side, const KvPlace& place, int32_t heads, const float* row);
  /// Reads one head of an entry.
  void (*get)(const KvSide& side, const KvPlace& place, int32_t head, float* out);
  /// The stripes of a tile of one head.
  KvStripes (*stripes)(KvOrder order, size_t head_dim);
  /// The shared data is one stripe with elements of this many bytes; 0 without shared_bytes.
  size_t shared_stripe = 0;
};

const KvCodec& kv_codec(KvFormat format) noexcept;

/// kv_codec(side.format) of one entry.
void kv_put(const KvSide& side, int64_t entry, int32_t heads, const float* row) noexcept;
void kv_get(const KvSide& side, int64_t entry, int32_t head, float* out) noexcept;

/// Copies `count` entries of all heads in their stored form, from entry `first` of `from` to entry
/// `to_first` of `to`. Both sides must have the same format, order and head_dim; block sizes may
/// differ. Other entries of `to` are not changed.
void kv_copy(const KvSide& from, int64_t first, const KvSide& to, int64_t to_first, int32_t heads,
             int64_t count) noexcept;

/// A read-only side over tiles in host memory with the layout of `form`.
KvSide host_side(const KvSideForm& form, const std::byte* tiles) noexcept;

/// The tile of a head, and the head's portion of the shared data.
inline std::byte* kv_tile(const KvSide& side, const KvPlace& place, int32_t head) noexcept {
  return place.tile + static_cast<size_t>(head) * side.head_stride;
}
std::byte* kv_shared(const KvSide& side, const KvPlace& place, int32_t head) noexcept;

/// Multiplies x[n] in place, block by block, with the orthonormal Hadamard matrix of the largest
/// power of two that divides n. The transform is its own inverse and preserves dot products. It
/// spreads outliers over a block, which reduces the error of formats with few bits.
void kv_hadamard(float* x, int32_t n) noexcept;
/// Whether the transform is useful: blocks of at least 16.
bool kv_hadamard_fits(int32_t n) noexcept;

// The codecs of codec.cpp's table.
extern const KvCodec kF32Codec;
extern const KvCodec kF16Codec;
extern const KvCodec kFp8Codec;
extern const KvCodec kQ4Codec;
extern const KvCodec kQ3Codec;

}  // namespace gen::engine
