// SPDX-License-Identifier: Apache-2.0
// How each KvFormat lies in a tile of sixteen entries (engine/kv_layer.h), and entries written and
// read one at a time by that. What is written depends on the entry's own row only, and each byte
// belongs to one entry, so entries may be written by several threads. A new format is a number in
// KvFormat, a file with its codec, a line in codec.cpp, a row in cache/sequence/cache_format.cpp,
// and for attention a reader (cpu/attention/attention_read-inl.h) or an unpacking kernel
// (cpu/kv_unpack-inl.h), as an element of each table by KvFormat in cpu/attention-inl.h: without a
// reader a tile is unpacked, and dots<Floats> and weighted<Floats> read what is float32 then. Pages
// that list formats: docs/caches.md, docs/state-format.md, gen_options_set_kv_dtype.
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

/// A tile is its stripes one after the other.
struct KvStripes {
  KvStripe of[2];
};

struct KvCodec {
  /// Bytes of a tile of one head, a multiple of 16. No overflow for head_dim below 2^31.
  size_t (*tile_bytes)(KvOrder order, size_t head_dim);
  /// Bytes that all heads of a tile share, or null for none.
  size_t (*shared_bytes)(size_t heads, size_t head_dim);
  /// Bytes of `shared_bytes` before those of a head; null with it.
  size_t (*shared_offset)(size_t head, size_t head_dim);
  /// Writes an entry: row is [heads, head_dim].
  void (*put)(const KvSide& side, const KvPlace& place, int32_t heads, const float* row);
  /// Reads one head of an entry.
  void (*get)(const KvSide& side, const KvPlace& place, int32_t head, float* out);
  /// What each entry has of a tile of one head.
  KvStripes (*stripes)(KvOrder order, size_t head_dim);
  /// What heads share is one stripe of elements of so many bytes; 0 without shared_bytes.
  size_t shared_stripe = 0;
};

const KvCodec& kv_codec(KvFormat format) noexcept;

/// kv_codec(side.format) of one entry.
void kv_put(const KvSide& side, int64_t entry, int32_t heads, const float* row) noexcept;
void kv_get(const KvSide& side, int64_t entry, int32_t head, float* out) noexcept;

/// Copies `count` entries of all heads as they are, those of `from` from entry `first` on to those
/// of `to` from `to_first` on. Both sides must have the same format, order and head_dim; blocks may
/// differ. Other entries of `to` stay as they are.
void kv_copy(const KvSide& from, int64_t first, const KvSide& to, int64_t to_first, int32_t heads,
             int64_t count) noexcept;

/// Rows of tiles in host memory that lie as `form` says, to be read.
KvSide host_side(const KvSideForm& form, const std::byte* tiles) noexcept;

/// Where a head's tile lies, and what heads share of it that is this head's.
inline std::byte* kv_tile(const KvSide& side, const KvPlace& place, int32_t head) noexcept {
  return place.tile + static_cast<size_t>(head) * side.head_stride;
}
std::byte* kv_shared(const KvSide& side, const KvPlace& place, int32_t head) noexcept;

/// Turns x[n] in place by the orthonormal Hadamard matrix of the largest power of two that divides
/// n, block by block; its own inverse. Dot products of two turned vectors stay what they were, but
/// outliers are spread over a block, which is kind to formats of few bits.
void kv_hadamard(float* x, int32_t n) noexcept;
/// Whether that helps: blocks of at least 16.
bool kv_hadamard_fits(int32_t n) noexcept;

// The codecs of codec.cpp's table.
extern const KvCodec kF32Codec;
extern const KvCodec kF16Codec;
extern const KvCodec kFp8Codec;
extern const KvCodec kQ4Codec;
extern const KvCodec kQ3Codec;

}  // namespace gen::engine
