// SPDX-License-Identifier: Apache-2.0
// Stores a row of heads in shared memory as an entry of a cache, byte for byte like
// engine/kv/*.cpp. Called by the whole block. Work is sequential where the order of sums affects
// the result (q3) and spread over threads elsewhere.
//   f32, f16   element by element, rounded to nearest even
//   fp8        scale = largest magnitude of the head / 448, a warp for each head
//   q4         32 elements a thread: the largest magnitude becomes -8 scales
//   q3         a warp for each group of up to 256: eight rounds of weighted k-means
#pragma once

#include "cuda/ops/cache/kv.cuh"
#include "cuda/ops/device.cuh"
#include "cuda/ops/math.cuh"

namespace gen::cuda {

/// Bytes of shared memory that a warp needs for q3: values, weights and products, codes, sums.
struct Q3Space {
  Shared<double> weighted;  // [256]
  Shared<double> weight;    // [256]
  Shared<double> sums;      // [2][8][2]
  Shared<float> x;          // [256]
  Shared<float> means;      // [8]
  Shared<int32_t> nearest;  // [256]
};
constexpr size_t kQ3SpaceBytes = 256 * 8 * 2 + 32 * 8 + 256 * 4 + 8 * 4 + 256 * 4;

GEN_DEVICE Q3Space q3_space(size_t offset) {
  return {dynamic_shared<double>(offset, 256),       dynamic_shared<double>(offset + 2048, 256),
          dynamic_shared<double>(offset + 4096, 32), dynamic_shared<float>(offset + 4352, 256),
          dynamic_shared<float>(offset + 5376, 8),   dynamic_shared<int32_t>(offset + 5408, 256)};
}

template <typename T>
GEN_DEVICE void put_value(uint8_t* at, T value) {
  *reinterpret_cast<T*>(at) = value;
}

GEN_DEVICE void store_plain(const KvSideForm& form, const KvPlace& place, int32_t heads,
                            Shared<float> row) {
  const int32_t dim = form.head_dim;
  for (int32_t i = thread_x(); i < heads * dim; i += block_threads()) {
    const KvPlace at = head_place(form, place, i / dim);
    const int32_t d = i % dim;
    const int32_t index = form.order == KvOrder::kKeys ? d * kTile + at.lane : at.lane * dim + d;
    const float x = row[i];
    if (form.format == KvFormat::kF32) {
      put_value(at.tile + static_cast<size_t>(index) * 4, x);
    } else {
      put_value(at.tile + static_cast<size_t>(index) * 2, f32_to_f16(x));
    }
  }
}

GEN_DEVICE void store_fp8(const KvSideForm& form, const KvPlace& place, int32_t heads,
                          Shared<float> row) {
  const int32_t dim = form.head_dim;
  for (int32_t head = warp_of_block(); head < heads; head += block_threads() / 32) {
    const KvPlace at = head_place(form, place, head);
    // Magnitudes are ordered as their bits are.
    int32_t largest = 0;
    for (int32_t d = lane_of_warp(); d < dim; d += 32) {
      const auto bits = static_cast<int32_t>(float_bits(row[head * dim + d]) & 0x7FFFFFFFU);
      largest = bits > largest ? bits : largest;
    }
    for (uint32_t apart = 16; apart > 0; apart /= 2) {
      const int32_t other = shuffle_xor(largest, apart);
      largest = other > largest ? other : largest;
    }
    // One canonical NaN, since the payload after a division differs between machines.
    const float scale = largest > 0x7F800000
                            ? float_from_bits(0x7FC00000U)
                            : float_from_bits(static_cast<uint32_t>(largest)) / 448.0F;
    const bool finite = largest < 0x7F800000;
    const float inverse = 1.0F / scale;
    const bool by_inverse = (float_bits(inverse) & 0x7F800000U) != 0x7F800000U;
    if (lane_of_warp() == 0) put_value(at.tile + at.lane * 4, scale);
    for (int32_t d = lane_of_warp(); d < dim; d += 32) {
      const float x = row[head * dim + d];
      const uint8_t code = scale == 0.0F ? uint8_t{0}
                           : !finite     ? uint8_t{0x7E}
                                         : e4m3_code(by_inverse ? x * inverse : x / scale);
      at.tile[kTile * 4 +
              (form.order == KvOrder::kKeys ? d * kTile + at.lane : at.lane * dim + d)] = code;
    }
  }
}

GEN_DEVICE void store_q4(const KvSideForm& form, const KvPlace& place, int32_t heads,
                         Shared<float> row) {
  const int32_t dim = form.head_dim;
  const int32_t groups = groups_of(dim, kQ4Group);
  for (int32_t item = thread_x(); item < heads * groups; item += block_threads()) {
    const KvPlace at = head_place(form, place, item / groups);
    const int32_t g = item % groups;
    const int32_t first = item / groups * dim + g * kQ4Group;
    const int32_t n = dim - g * kQ4Group < kQ4Group ? dim - g * kQ4Group : kQ4Group;
    float largest = 0.0F;
    for (int32_t i = 0; i < n; ++i) {
      const float x = row[first + i];
      const float size = float_from_bits(float_bits(x) & 0x7FFFFFFFU);
      if (!(size <= float_from_bits(float_bits(largest) & 0x7FFFFFFFU))) largest = x;
      if (largest != largest) break;
    }
    float wanted = largest / -8.0F;
    wanted = wanted < -65504.0F ? -65504.0F : 65504.0F < wanted ? 65504.0F : wanted;
    const uint16_t half = largest != largest ? uint16_t{0x7E00} : f32_to_f16(wanted);
    const float scale = f16_to_f32(half);
    put_value(at.tile + (g * kTile + at.lane) * 2, half);
    const auto code = [&](int32_t i) -> uint32_t {
      if (i >= n || scale == 0.0F) return 8;
      const float level = floor_of(row[first + i] / scale + 8.5F);
      return static_cast<uint32_t>(level <= 0.0F ? 0.0F : level < 15.0F ? level : 15.0F);
    };
    uint8_t* const codes = at.tile + groups * kTile * 2;
    if (form.order == KvOrder::kKeys) {
      for (int32_t i = 0; i < n; i += 2) {
        codes[(g * kQ4Group + i) / 2 * kTile + at.lane] =
            static_cast<uint8_t>(code(i) | (code(i + 1) << 4));
      }
    } else {
      for (int32_t j = 0; j < 16; ++j) {
        codes[(at.lane * groups + g) * (kQ4Group / 2) + j] =
            static_cast<uint8_t>(code(j) | (code(j + 16) << 4));
      }
    }
  }
}

/// The nearest of eight, the lowest on ties.
GEN_DEVICE int32_t q3_nearest(float x, Shared<float> means) {
  float best = (x - means[0]) * (x - means[0]);
  int32_t nearest = 0;
  for (int32_t c = 1; c < kQ3Centroids; ++c) {
    const float apart = x - means[c];
    const float distance = apart * apart;
    if (distance < best) {
      best = distance;
      nearest = c;
    }
  }
  return nearest;
}

/// Fits `n` elements of the row from `first` on by one warp: space.nearest and space.means, which
/// are then what binary16 holds; see quant/kv_q3.cpp. Returns whether there was a NaN.
GEN_DEVICE bool q3_fit(Shared<float> row, int32_t first, int32_t n, const Q3Space& space) {
  constexpr float kLargest = 65504.0F;
  const int32_t lane = lane_of_warp();
  float least = kLargest;
  float most = -kLargest;
  int32_t nan = 0;
  for (int32_t i = lane; i < n; i += 32) {
    const float given = row[first + i];
    nan |= given != given ? 1 : 0;
    const float value = given != given      ? 0.0F
                        : given < -kLargest ? -kLargest
                        : kLargest < given  ? kLargest
                                            : given;
    space.x[i] = value;
    least = value < least ? value : least;
    most = most < value ? value : most;
  }
  for (uint32_t apart = 16; apart > 0; apart /= 2) {
    const float other_least = shuffle_xor(least, apart);
    const float other_most = shuffle_xor(most, apart);
    nan |= shuffle_xor(nan, apart);
    least = other_least < least ? other_least : least;
    most = most < other_most ? other_most : most;
  }
  // Of zeros of both signs the first element's.
  least = shuffle(least, 0);
  most = shuffle(most, 0);
  if (least == most) {
    for (int32_t i = lane; i < n; i += 32) space.nearest[i] = 0;
    if (lane < kQ3Centroids) space.means[lane] = f16_to_f32(f32_to_f16(least));
    sync_warp();
    return nan != 0;
  }
  for (int32_t i = lane; i < n; i += 32) {
    const float x = space.x[i];
    const float size = float_from_bits(float_bits(x) & 0x7FFFFFFFU);
    const auto weight = static_cast<double>(square_root(size) + 1e-4F);
    space.weighted[i] = weight * static_cast<double>(x);
    space.weight[i] = weight;
  }
  if (lane < kQ3Centroids) {
    space.means[lane] = least + static_cast<float>(lane) / 7.0F * (most - least);
  }
  sync_warp();
  for (int32_t round = 0; round < 8; ++round) {
    for (int32_t i = lane; i < n; i += 32) {
      space.nearest[i] = q3_nearest(space.x[i], space.means);
    }
    sync_warp();
    // Two sets of sums, of even and odd elements, each in the order of elements.
    if (lane < 2 * kQ3Centroids) {
      const int32_t c = lane % kQ3Centroids;
      double weighted = 0.0;
      double weight = 0.0;
      for (int32_t i = lane / kQ3Centroids; i < n; i += 2) {
        if (space.nearest[i] != c) continue;
        weighted += space.weighted[i];
        weight += space.weight[i];
      }
      space.sums[2 * lane] = weighted;
      space.sums[2 * lane + 1] = weight;
    }
    sync_warp();
    int32_t moved = 0;
    if (lane < kQ3Centroids) {
      const double weight = space.sums[2 * lane + 1] + space.sums[2 * lane + 17];
      if (weight != 0.0) {
        const auto mean =
            static_cast<float>((space.sums[2 * lane] + space.sums[2 * lane + 16]) / weight);
        moved = mean != space.means[lane] ? 1 : 0;
        space.means[lane] = mean;
      }
    }
    for (uint32_t apart = 16; apart > 0; apart /= 2) moved |= shuffle_xor(moved, apart);
    sync_warp();
    if (moved == 0) break;
  }
  if (lane < kQ3Centroids) {
    space.means[lane] = f16_to_f32(f32_to_f16(space.means[lane]));
  }
  sync_warp();
  for (int32_t i = lane; i < n; i += 32) {
    space.nearest[i] = q3_nearest(space.x[i], space.means);
  }
  sync_warp();
  return nan != 0;
}

GEN_DEVICE void store_q3(const KvSideForm& form, const KvPlace& place, int32_t heads,
                         Shared<float> row, size_t space_offset) {
  const int32_t dim = form.head_dim;
  const int32_t together = dim < kQ3Group ? kQ3Group / dim : 1;
  const int32_t groups_a_head = groups_of(dim, kQ3Group);
  const int32_t sets = (heads + together - 1) / together;
  const int32_t row_bytes = 3 * ((dim + 7) / 8);
  const Q3Space space =
      q3_space(space_offset + static_cast<size_t>(warp_of_block()) * kQ3SpaceBytes);
  for (int32_t item = warp_of_block(); item < sets * groups_a_head; item += block_threads() / 32) {
    const int32_t head = item / groups_a_head * together;
    const int32_t g = item % groups_a_head;
    const int32_t here = heads - head < together ? heads - head : together;
    const int32_t all = here * dim;
    const int32_t n = all - g * kQ3Group < kQ3Group ? all - g * kQ3Group : kQ3Group;
    const bool nan = q3_fit(row, head * dim + g * kQ3Group, n, space);
    const KvPlace first = head_place(form, place, head);
    const int32_t lane = lane_of_warp();
    if (lane < kQ3Centroids) {
      // Keep NaN, or a broken pass would go unnoticed.
      put_value(
          first.shared + static_cast<size_t>(g) * kQ3GroupBytes + (lane * kTile + first.lane) * 2,
          nan ? uint16_t{0x7E00} : f32_to_f16(space.means[lane]));
    }
    // Octets of elements of each head; of a head of several groups those of this group.
    const int32_t heads_here = together == 1 ? 1 : here;
    const int32_t own = together == 1 ? n : dim;
    const int32_t octets = (own + 7) / 8;
    for (int32_t i = lane; i < heads_here * octets; i += 32) {
      const KvPlace at = head_place(form, place, head + i / octets);
      const int32_t octet = i % octets;
      uint32_t bits = 0;
      for (int32_t j = 0; j < 8 && octet * 8 + j < own; ++j) {
        bits |= static_cast<uint32_t>(space.nearest[i / octets * dim + octet * 8 + j]) << (3 * j);
      }
      const int32_t whole = g * (kQ3Group / 8) + octet;
      for (int32_t k = 0; k < 3; ++k) {
        at.tile[form.order == KvOrder::kKeys ? (3 * whole + k) * kTile + at.lane
                                             : at.lane * row_bytes + 3 * whole + k] =
            static_cast<uint8_t>(bits >> (8 * k));
      }
    }
    sync_warp();
  }
}

/// Stores [heads, head_dim] as one entry. A barrier must follow before the row is changed. q3 needs
/// kQ3SpaceBytes for each warp from `space_offset` on.
GEN_DEVICE void store_entry(const KvSideForm& form, const KvPlace& place, int32_t heads,
                            Shared<float> row, size_t space_offset) {
  switch (form.format) {
    case KvFormat::kF32:
    case KvFormat::kF16:
      store_plain(form, place, heads, row);
      break;
    case KvFormat::kFp8:
      store_fp8(form, place, heads, row);
      break;
    case KvFormat::kQ4:
      store_q4(form, place, heads, row);
      break;
    case KvFormat::kQ3:
      store_q3(form, place, heads, row, space_offset);
      break;
  }
}

}  // namespace gen::cuda
