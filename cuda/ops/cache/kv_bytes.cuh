// SPDX-License-Identifier: Apache-2.0
// The bytes of one entry in a tile, in every format: byte i of an entry of a head is at offset_of()
// from the head's tile, byte i of the shared data at shared_byte(). The stripes are those of
// engine/kv/codec.h.
#pragma once

#include "cuda/ops/cache/kv.cuh"
#include "cuda/ops/device.cuh"

namespace gen::cuda {

struct Stripe {
  int32_t count;  // rows of sixteen entries
  int32_t bytes;  // of an entry in each
};

GEN_HOST_DEVICE Stripe first_stripe(const KvSideForm& form) {
  const bool keys = form.order == KvOrder::kKeys;
  const int32_t dim = form.head_dim;
  switch (form.format) {
    case KvFormat::kF32:
      return keys ? Stripe{dim, 4} : Stripe{1, 4 * dim};
    case KvFormat::kF16:
      return keys ? Stripe{dim, 2} : Stripe{1, 2 * dim};
    case KvFormat::kFp8:
      return {1, 4};
    case KvFormat::kQ4:
      return {(dim + kQ4Group - 1) / kQ4Group, 2};
    case KvFormat::kQ3:
      break;
  }
  const int32_t bytes = 3 * ((dim + 7) / 8);
  return keys ? Stripe{bytes, 1} : Stripe{1, bytes};
}
GEN_HOST_DEVICE Stripe second_stripe(const KvSideForm& form) {
  const bool keys = form.order == KvOrder::kKeys;
  const int32_t dim = form.head_dim;
  if (form.format == KvFormat::kFp8) return keys ? Stripe{dim, 1} : Stripe{1, dim};
  if (form.format == KvFormat::kQ4) {
    return keys ? Stripe{(dim + 1) / 2, 1} : Stripe{1, (dim + kQ4Group - 1) / kQ4Group * 16};
  }
  return {0, 1};
}

/// Of an entry of one head.
GEN_HOST_DEVICE int32_t entry_bytes(const KvSideForm& form) {
  const Stripe first = first_stripe(form);
  const Stripe second = second_stripe(form);
  return first.count * first.bytes + second.count * second.bytes;
}
/// Of what all heads share.
GEN_HOST_DEVICE int32_t shared_entry_bytes(const KvSideForm& form, int32_t heads) {
  if (form.format != KvFormat::kQ3) return 0;
  const int32_t dim = form.head_dim;
  const int32_t together = dim < kQ3Group ? kQ3Group / dim : 1;
  const int32_t groups = (dim + kQ3Group - 1) / kQ3Group;
  return (heads + together - 1) / together * groups * kQ3Centroids * 2;
}

GEN_DEVICE int32_t offset_of(const KvSideForm& form, int32_t lane, int32_t i) {
  Stripe stripe = first_stripe(form);
  int32_t before = 0;
  if (i >= stripe.count * stripe.bytes) {
    before = kTile * stripe.count * stripe.bytes;
    i -= stripe.count * stripe.bytes;
    stripe = second_stripe(form);
  }
  return before + (i / stripe.bytes * kTile + lane) * stripe.bytes + i % stripe.bytes;
}

/// Byte i of an entry of all heads, those of the heads first and then what they share.
GEN_DEVICE uint8_t* byte_of(const KvSideForm& form, const KvPlace& place, int32_t heads,
                            int32_t i) {
  const int32_t own = entry_bytes(form);
  if (i < heads * own) {
    return place.tile + static_cast<size_t>(i / own) * form.head_stride +
           offset_of(form, place.lane, i % own);
  }
  i -= heads * own;
  return place.shared + (i / 2 * kTile + place.lane) * 2 + i % 2;
}

}  // namespace gen::cuda
