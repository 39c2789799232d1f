// SPDX-License-Identifier: Apache-2.0
// Tiles of cache formats with scales or packed codes as float32 (src/engine/kv/ says how they lie),
// compiled once per target. Every element is the codec's one: an exact level times a scale, rounded
// once, or a centroid. Nothing outside of a tile is read or written.

#if defined(GEN_ENGINE_CPU_KV_UNPACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_KV_UNPACK_INL_H_
#undef GEN_ENGINE_CPU_KV_UNPACK_INL_H_
#else
#define GEN_ENGINE_CPU_KV_UNPACK_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/cpu/lanes-inl.h"
#include "tensor/e4m3.h"
#include "tensor/half.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

constexpr int32_t kUnpackTile = 16;  // entries, kKvTile

// What differs between vectors and plain floats: a few lanes of integers made from bytes.
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

using Codes = int32_t;
HWY_INLINE Codes load_codes(const uint8_t* p) { return *p; }
HWY_INLINE Codes join_codes(Codes a, Codes b, Codes c) { return a | b << 8 | c << 16; }
HWY_INLINE Native low_half(Codes x) { return static_cast<float>(x & 15); }
HWY_INLINE Native high_half(Codes x) { return static_cast<float>(x >> 4); }
/// E4M3 values / 256.
HWY_INLINE Native load_fp8(const uint8_t* p) { return e4m3_to_f32(*p) * 0x1p-8F; }
/// The bit of x picks.
template <int kBit>
HWY_INLINE Native if_bit(Codes x, Native yes, Native no) {
  return ((x >> kBit) & 1) != 0 ? yes : no;
}

#else

using Codes = hn::Vec<NativeIntTag>;
using NativeBytesTag = hn::Rebind<uint8_t, NativeTag>;
HWY_INLINE Codes load_codes(const uint8_t* p) {
  return hn::PromoteTo(NativeIntTag(), hn::LoadU(NativeBytesTag(), p));
}
HWY_INLINE Codes join_codes(Codes a, Codes b, Codes c) {
  return hn::Or(a, hn::Or(hn::ShiftLeft<8>(b), hn::ShiftLeft<16>(c)));
}
HWY_INLINE Native low_half(Codes x) {
  return hn::ConvertTo(NativeTag(), hn::And(x, hn::Set(NativeIntTag(), 15)));
}
HWY_INLINE Native high_half(Codes x) { return hn::ConvertTo(NativeTag(), hn::ShiftRight<4>(x)); }
/// E4M3 values / 256: moved to where binary16 has its exponent, whose bias is larger by 8.
HWY_INLINE Native load_fp8(const uint8_t* p) {
  const hn::Rebind<int8_t, NativeTag> d8;
  const hn::Rebind<int16_t, NativeTag> d16;
  const auto wide = hn::PromoteTo(d16, hn::LoadU(d8, reinterpret_cast<const int8_t*>(p)));
  const auto bits = hn::And(hn::ShiftLeft<7>(wide), hn::Set(d16, static_cast<int16_t>(0xBFFF)));
  return hn::PromoteTo(NativeTag(), hn::BitCast(NativeHalfTag(), bits));
}
template <int kBit>
HWY_INLINE Native if_bit(Codes x, Native yes, Native no) {
  const auto bit = hn::Set(NativeIntTag(), int32_t{1} << kBit);
  return hn::IfThenElse(hn::RebindMask(NativeTag(), hn::TestBit(x, bit)), yes, no);
}

#endif

HWY_INLINE const uint8_t* bytes_at(const std::byte* p) {
  return reinterpret_cast<const uint8_t*>(p);
}
/// Sixteen binary16 numbers as floats.
HWY_INLINE void widen16(const std::byte* halves, float* out) {
  store(load(reinterpret_cast<const uint16_t*>(halves)), out);
}

inline void unpack_fp8_keys(const std::byte* tile, const std::byte*, int32_t dims, float* out) {
  const auto* scales = reinterpret_cast<const float*>(tile);
  const uint8_t* codes = bytes_at(tile + kUnpackTile * sizeof(float));
  for (int64_t lane = 0; lane < kUnpackTile; lane += kNativeLanes) {
    const Native scale = mul(load_native(scales + lane), splat_native(256.0F));
    for (int64_t d = 0; d < dims; ++d) {
      store(mul(load_fp8(codes + d * kUnpackTile + lane), scale), out + d * kUnpackTile + lane);
    }
  }
}

inline void unpack_fp8_values(const std::byte* tile, const std::byte*, int32_t dims, float* out) {
  const auto* scales = reinterpret_cast<const float*>(tile);
  const uint8_t* codes = bytes_at(tile + kUnpackTile * sizeof(float));
  for (int64_t lane = 0; lane < kUnpackTile; ++lane, codes += dims, out += dims) {
    const Native scale = splat_native(scales[lane] * 256.0F);
    int64_t d = 0;
    for (; d + kNativeLanes <= dims; d += kNativeLanes) {
      store(mul(load_fp8(codes + d), scale), out + d);
    }
    if (d < dims) {
      const auto rest = static_cast<size_t>(dims - d);
      uint8_t padded[kNativeLanes] = {};
      float values[kNativeLanes];
      std::memcpy(padded, codes + d, rest);
      store(mul(load_fp8(padded), scale), values);
      std::memcpy(out + d, values, rest * sizeof(float));
    }
  }
}

constexpr int32_t kQ4Group = 32;

/// (n - 8) * scale, as one rounding of n * scale - 8 * scale.
struct Q4Scale {
  Native scale;
  Native offset;
  HWY_INLINE explicit Q4Scale(Native s) : scale(s), offset(mul(s, splat_native(-8.0F))) {}
  HWY_INLINE Native value(Native n) const { return fma(n, scale, offset); }
};

inline void unpack_q4_keys(const std::byte* tile, const std::byte*, int32_t dims, float* out) {
  const int32_t groups = (dims + kQ4Group - 1) / kQ4Group;
  const uint8_t* codes = bytes_at(tile + groups * kUnpackTile * int64_t{sizeof(uint16_t)});
  for (int32_t g = 0; g < groups; ++g) {
    const int64_t end = std::min(dims, (g + 1) * kQ4Group);
    for (int64_t lane = 0; lane < kUnpackTile; lane += kNativeLanes) {
      const auto* halves = reinterpret_cast<const uint16_t*>(tile) + g * kUnpackTile + lane;
      const Q4Scale scale(load_native(halves));
      for (int64_t d = int64_t{g} * kQ4Group; d < end; d += 2) {
        const Codes both = load_codes(codes + d / 2 * kUnpackTile + lane);
        store(scale.value(low_half(both)), out + d * kUnpackTile + lane);
        if (d + 1 == end) break;
        store(scale.value(high_half(both)), out + (d + 1) * kUnpackTile + lane);
      }
    }
  }
}

HWY_INLINE void unpack_q4_group(const uint8_t* codes, float scale, float* out) {
  const Q4Scale by(splat_native(scale));
  for (int64_t i = 0; i < 16; i += kNativeLanes) {
    const Codes both = load_codes(codes + i);
    store(by.value(low_half(both)), out + i);
    store(by.value(high_half(both)), out + 16 + i);
  }
}

inline void unpack_q4_values(const std::byte* tile, const std::byte*, int32_t dims, float* out) {
  const int32_t groups = (dims + kQ4Group - 1) / kQ4Group;
  const uint8_t* codes = bytes_at(tile + groups * kUnpackTile * int64_t{sizeof(uint16_t)});
  for (int32_t g = 0; g < groups; ++g, tile += kUnpackTile * sizeof(uint16_t)) {
    float scales[kUnpackTile];
    widen16(tile, scales);
    const int32_t n = std::min(dims - g * kQ4Group, kQ4Group);
    for (int64_t lane = 0; lane < kUnpackTile; ++lane) {
      const uint8_t* from = codes + (lane * groups + g) * (kQ4Group / 2);
      float* to = out + lane * dims + int64_t{g} * kQ4Group;
      if (n == kQ4Group) {
        unpack_q4_group(from, scales[lane], to);
      } else {
        float values[kQ4Group];
        unpack_q4_group(from, scales[lane], values);
        std::memcpy(to, values, static_cast<size_t>(n) * sizeof(float));
      }
    }
  }
}

constexpr int32_t kQ3Group = 256;
constexpr int64_t kQ3Centroids = 8;
constexpr int64_t kQ3GroupBytes = kQ3Centroids * kUnpackTile * int64_t{sizeof(uint16_t)};

template <int kFirstBit>
HWY_INLINE Native pick_centroid(Codes x, const Native* c) {
  const Native c01 = if_bit<kFirstBit>(x, c[1], c[0]);
  const Native c23 = if_bit<kFirstBit>(x, c[3], c[2]);
  const Native c45 = if_bit<kFirstBit>(x, c[5], c[4]);
  const Native c67 = if_bit<kFirstBit>(x, c[7], c[6]);
  return if_bit<kFirstBit + 2>(x, if_bit<kFirstBit + 1>(x, c67, c45),
                               if_bit<kFirstBit + 1>(x, c23, c01));
}

inline void unpack_q3_keys(const std::byte* tile, const std::byte* shared, int32_t dims,
                           float* out) {
  const uint8_t* codes = bytes_at(tile);
  for (int64_t first = 0; first < dims; first += kQ3Group, shared += kQ3GroupBytes) {
    const int64_t end = std::min<int64_t>(dims, first + kQ3Group);
    for (int64_t lane = 0; lane < kUnpackTile; lane += kNativeLanes) {
      Native c[kQ3Centroids];
      for (int64_t i = 0; i < kQ3Centroids; ++i) {
        c[i] = load_native(reinterpret_cast<const uint16_t*>(shared) + i * kUnpackTile + lane);
      }
      for (int64_t d = first; d < end; d += 8) {
        const uint8_t* from = codes + d / 8 * 3 * kUnpackTile + lane;
        const Codes x = join_codes(load_codes(from), load_codes(from + kUnpackTile),
                                   load_codes(from + 2 * kUnpackTile));
        float* to = out + d * kUnpackTile + lane;
        const int64_t n = end - d;
        store(pick_centroid<0>(x, c), to);
        if (n > 1) store(pick_centroid<3>(x, c), to + kUnpackTile);
        if (n > 2) store(pick_centroid<6>(x, c), to + 2 * kUnpackTile);
        if (n > 3) store(pick_centroid<9>(x, c), to + 3 * kUnpackTile);
        if (n > 4) store(pick_centroid<12>(x, c), to + 4 * kUnpackTile);
        if (n > 5) store(pick_centroid<15>(x, c), to + 5 * kUnpackTile);
        if (n > 6) store(pick_centroid<18>(x, c), to + 6 * kUnpackTile);
        if (n > 7) store(pick_centroid<21>(x, c), to + 7 * kUnpackTile);
      }
    }
  }
}

/// Eight elements from three bytes.
HWY_INLINE void unpack_octet(const uint8_t* from, const float* centroids, float* out) {
  const uint32_t bits = from[0] | uint32_t{from[1]} << 8 | uint32_t{from[2]} << 16;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  const hn::FixedTag<float, 8> d;
  const hn::FixedTag<uint32_t, 8> du;
  const hn::FixedTag<int32_t, 8> di;
  const auto shifts = hn::Mul(hn::Iota(du, 0), hn::Set(du, 3));
  const auto index = hn::And(hn::Shr(hn::Set(du, bits), shifts), hn::Set(du, 7));
  const auto table = hn::LoadU(d, centroids);
  hn::StoreU(hn::TableLookupLanes(table, hn::IndicesFromVec(d, hn::BitCast(di, index))), d, out);
#else
  for (uint32_t i = 0; i < 8; ++i) out[i] = centroids[(bits >> (3 * i)) & 7];
#endif
}

inline void unpack_q3_values(const std::byte* tile, const std::byte* shared, int32_t dims,
                             float* out) {
  const int64_t octets = (dims + 7) / 8;
  for (int64_t first = 0; first < dims; first += kQ3Group, shared += kQ3GroupBytes) {
    const int64_t end = std::min<int64_t>(dims, first + kQ3Group);
    float by_centroid[kQ3Centroids][kUnpackTile];
    for (int64_t i = 0; i < kQ3Centroids; ++i) {
      widen16(shared + i * kUnpackTile * int64_t{sizeof(uint16_t)}, by_centroid[i]);
    }
    for (int64_t lane = 0; lane < kUnpackTile; ++lane) {
      float centroids[kQ3Centroids];
      for (int64_t i = 0; i < kQ3Centroids; ++i) centroids[i] = by_centroid[i][lane];
      const uint8_t* codes = bytes_at(tile) + lane * 3 * octets;
      float* to = out + lane * dims;
      for (int64_t d = first; d < end; d += 8) {
        if (d + 8 <= end) {
          unpack_octet(codes + d / 8 * 3, centroids, to + d);
        } else {
          float values[8];
          unpack_octet(codes + d / 8 * 3, centroids, values);
          std::memcpy(to + d, values, static_cast<size_t>(end - d) * sizeof(float));
        }
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_KV_UNPACK_INL_H_
