// SPDX-License-Identifier: Apache-2.0
// See codec.h.
#include "engine/kv/codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace gen::engine {

const KvCodec& kv_codec(KvFormat format) noexcept {
  switch (format) {
    case KvFormat::kF32:
      return kF32Codec;
    case KvFormat::kF16:
      return kF16Codec;
    case KvFormat::kFp8:
      return kFp8Codec;
    case KvFormat::kQ4:
      return kQ4Codec;
    case KvFormat::kQ3:
      break;
  }
  return kQ3Codec;
}

std::byte* kv_shared(const KvSide& side, const KvPlace& place, int32_t head) noexcept {
  const KvCodec& codec = kv_codec(side.format);
  if (codec.shared_offset == nullptr) return nullptr;
  return place.shared +
         codec.shared_offset(static_cast<size_t>(head), static_cast<size_t>(side.head_dim));
}

void kv_put(const KvSide& side, int64_t entry, int32_t heads, const float* row) noexcept {
  kv_codec(side.format).put(side, side.place(entry), heads, row);
}

void kv_get(const KvSide& side, int64_t entry, int32_t head, float* out) noexcept {
  kv_codec(side.format).get(side, side.place(entry), head, out);
}

KvSide host_side(const KvSideForm& form, const std::byte* tiles) noexcept {
  KvSide side = side_of(form);
  side.block_offset = 0;
  side.base = const_cast<std::byte*>(tiles);  // only read from
  return side;
}

namespace {

/// The number of contiguous entries from this one on in its tile and block, at most `count`.
int64_t entries_together(const KvSide& side, int64_t entry, int32_t lane, int64_t count) noexcept {
  const int64_t cell = side.cell(entry);
  int64_t most = std::min<int64_t>(count, kKvTile - lane);
  if (side.blocks != nullptr) most = std::min(most, side.block_size - cell % side.block_size);
  if (side.cells == nullptr) return most;
  int64_t n = 1;
  while (n < most && side.cell(entry + n) == cell + n) ++n;
  return n;
}

/// Lanes are adjacent in every row of a stripe. Returns the size of the whole stripe.
size_t copy_stripe(const KvStripe& stripe, const std::byte* from, int32_t from_lane, std::byte* to,
                   int32_t to_lane, size_t lanes) noexcept {
  const size_t row = kKvTile * stripe.bytes;
  const std::byte* source = from + static_cast<size_t>(from_lane) * stripe.bytes;
  std::byte* target = to + static_cast<size_t>(to_lane) * stripe.bytes;
  if (lanes == kKvTile) {
    std::memcpy(target, source, stripe.count * row);
  } else {
    for (size_t i = 0; i < stripe.count; ++i) {
      std::memcpy(target + i * row, source + i * row, lanes * stripe.bytes);
    }
  }
  return stripe.count * row;
}

}  // namespace

void kv_copy(const KvSide& from, int64_t first, const KvSide& to, int64_t to_first, int32_t heads,
             int64_t count) noexcept {
  const KvCodec& codec = kv_codec(from.format);
  const auto dim = static_cast<size_t>(from.head_dim);
  const KvStripes stripes = codec.stripes(from.order, dim);
  KvStripe shared;
  if (codec.shared_bytes != nullptr) {
    shared.bytes = codec.shared_stripe;
    shared.count =
        codec.shared_bytes(static_cast<size_t>(heads), dim) / (kKvTile * codec.shared_stripe);
  }
  for (int64_t done = 0; done < count;) {
    const KvPlace source = from.place(first + done);
    const KvPlace target = to.place(to_first + done);
    const int64_t left = entries_together(from, first + done, source.lane, count - done);
    const int64_t run = entries_together(to, to_first + done, target.lane, left);
    const auto lanes = static_cast<size_t>(run);
    for (int32_t head = 0; head < heads; ++head) {
      size_t offset = 0;
      for (const KvStripe& stripe : stripes.of) {
        offset += copy_stripe(stripe, kv_tile(from, source, head) + offset, source.lane,
                              kv_tile(to, target, head) + offset, target.lane, lanes);
      }
    }
    if (shared.count > 0) {
      copy_stripe(shared, source.shared, source.lane, target.shared, target.lane, lanes);
    }
    done += run;
  }
}

bool kv_hadamard_fits(int32_t n) noexcept { return n % 16 == 0; }

void kv_hadamard(float* x, int32_t n) noexcept {
  const int32_t block = n & -n;  // the lowest bit
  const float factor = 1.0F / std::sqrt(static_cast<float>(block));
  for (float* at = x; at < x + n; at += block) {
    for (int32_t half = 1; half < block; half *= 2) {
      for (int32_t i = 0; i < block; i += 2 * half) {
        for (int32_t j = i; j < i + half; ++j) {
          const float a = at[j];
          const float b = at[j + half];
          at[j] = a + b;
          at[j + half] = a - b;
        }
      }
    }
    for (int32_t i = 0; i < block; ++i) at[i] *= factor;
  }
}

}  // namespace gen::engine
