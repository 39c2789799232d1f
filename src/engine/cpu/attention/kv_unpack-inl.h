// SPDX-License-Identifier: Apache-2.0
// Converts codes of cache formats to floats, in registers or tile by tile, compiled once per
// target. The floats are levels, still to be multiplied by a scale, or centroids. Layouts are
// described in src/engine/kv/. Nothing outside of a tile is read or written.

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

#include "engine/cpu/simd/lanes-inl.h"
#include "engine/kv_view.h"
#include "tensor/e4m3.h"
#include "tensor/half.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

constexpr int32_t kUnpackTile = kKvTile;

// The part that differs between vectors and plain floats: a few integer lanes made from bytes.
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

using Codes = int32_t;
HWY_INLINE Codes load_codes(const uint8_t* p) { return *p; }
HWY_INLINE Codes join_codes(Codes a, Codes b, Codes c) { return a | b << 8 | c << 16; }
HWY_INLINE Native low_level(Codes x) { return static_cast<float>((x & 15) - 8); }
HWY_INLINE Native high_level(Codes x) { return static_cast<float>((x >> 4) - 8); }
/// E4M3 values / 256.
HWY_INLINE Native load_fp8(const uint8_t* p) { return e4m3_to_f32(*p) * 0x1p-8F; }
/// Selects by a bit of x.
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
// A 4-bit level is its code - 8.
#if HWY_TARGET == HWY_AVX3
// One table lookup in a register, which uses only the low four bits of an index.
HWY_INLINE Native level_of(Codes x) {
  const __m512 levels = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
  return Native{_mm512_permutexvar_ps(x.raw, levels)};
}
HWY_INLINE Native low_level(Codes x) { return level_of(x); }
HWY_INLINE Native high_level(Codes x) { return level_of(hn::ShiftRight<4>(x)); }
#else
HWY_INLINE Native low_level(Codes x) {
  const auto code = hn::And(x, hn::Set(NativeIntTag(), 15));
  return hn::ConvertTo(NativeTag(), hn::Sub(code, hn::Set(NativeIntTag(), 8)));
}
HWY_INLINE Native high_level(Codes x) {
  return hn::ConvertTo(NativeTag(), hn::Sub(hn::ShiftRight<4>(x), hn::Set(NativeIntTag(), 8)));
}
#endif
/// E4M3 values / 256: the bits are shifted to the exponent of binary16, whose bias is larger by 8.
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

// Tables indexed by a byte, for load(): an E4M3 number / 256, and the two 4-bit levels of a byte.
struct Fp8Level {
  uint8_t code;
};
struct LowLevel {
  uint8_t codes;
};
struct HighLevel {
  uint8_t codes;
};
HWY_INLINE Native load_native(const Fp8Level* p) { return load_fp8(&p->code); }
HWY_INLINE Native load_native(const LowLevel* p) { return low_level(load_codes(&p->codes)); }
HWY_INLINE Native load_native(const HighLevel* p) { return high_level(load_codes(&p->codes)); }

/// 32 adjacent E4M3 numbers / 256.
HWY_INLINE void load_pair(const Fp8Level* p, Lanes16* first, Lanes16* second) {
#if HWY_TARGET == HWY_AVX3
  const __m512i wide =
      _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  const __m512i halves =
      _mm512_and_si512(_mm512_slli_epi16(wide, 7), _mm512_set1_epi16(static_cast<int16_t>(0xBFFF)));
  *first = Lanes16{_mm512_cvtph_ps(_mm512_castsi512_si256(halves))};
  *second = Lanes16{_mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1))};
#else
  *first = load(p);
  *second = load(p + kLanes);
#endif
}

/// The low, then the high levels of sixteen bytes.
HWY_INLINE void load_levels(const std::byte* p, Lanes16* low, Lanes16* high) {
#if HWY_TARGET == HWY_AVX3
  const Codes codes = load_codes(reinterpret_cast<const uint8_t*>(p));
  *low = low_level(codes);
  *high = high_level(codes);
#else
  *low = load(reinterpret_cast<const LowLevel*>(p));
  *high = load(reinterpret_cast<const HighLevel*>(p));
#endif
}

HWY_INLINE const uint8_t* bytes_at(const std::byte* p) {
  return reinterpret_cast<const uint8_t*>(p);
}
/// Sixteen binary16 numbers as floats.
HWY_INLINE void widen16(const std::byte* halves, float* out) {
  store(load(reinterpret_cast<const uint16_t*>(halves)), out);
}

// fp8 and q4 are unpacked to scales [groups][16] followed by levels, for attention_scaled-inl.h.

inline void unpack_fp8(const std::byte* tile, const std::byte*, int32_t dims, float* out) {
  store(mul(load(reinterpret_cast<const float*>(tile)), splat(256.0F)), out);
  const auto* codes = reinterpret_cast<const Fp8Level*>(tile + kUnpackTile * sizeof(float));
  out += kUnpackTile;
  for (int64_t i = 0; i < int64_t{kUnpackTile} * dims; i += kLanes) store(load(codes + i), out + i);
}

constexpr int32_t kQ4Group = 32;

/// Unpacks the scales of a tile, advances `out`, and returns the codes that follow the scales.
HWY_INLINE const std::byte* unpack_q4_scales(const std::byte* tile, int32_t groups, float** out) {
  for (int32_t g = 0; g < groups; ++g) {
    widen16(tile, *out);
    tile += kUnpackTile * sizeof(uint16_t);
    *out += kUnpackTile;
  }
  return tile;
}

inline void unpack_q4_keys(const std::byte* tile, const std::byte*, int32_t dims, float* out) {
  const std::byte* codes = unpack_q4_scales(tile, (dims + kQ4Group - 1) / kQ4Group, &out);
  for (int32_t d = 0; d < dims; d += 2, codes += kUnpackTile, out += 2 * kUnpackTile) {
    Lanes16 low;
    Lanes16 high;
    load_levels(codes, &low, &high);
    store(low, out);
    if (d + 1 < dims) store(high, out + kUnpackTile);
  }
}

inline void unpack_q4_values(const std::byte* tile, const std::byte*, int32_t dims, float* out) {
  const int32_t groups = (dims + kQ4Group - 1) / kQ4Group;
  const std::byte* codes = unpack_q4_scales(tile, groups, &out);
  for (int32_t lane = 0; lane < kUnpackTile; ++lane) {
    for (int32_t d = 0; d < dims; d += kQ4Group, codes += kQ4Group / 2) {
      const int64_t n = std::min(dims - d, kQ4Group);
      Lanes16 low;
      Lanes16 high;
      load_levels(codes, &low, &high);
      if (n == kQ4Group) {
        store(low, out);
        store(high, out + kUnpackTile);
      } else {
        store_first(low, out, std::min<int64_t>(n, kUnpackTile));
        if (n > kUnpackTile) store_first(high, out + kUnpackTile, n - kUnpackTile);
      }
      out += n;
    }
  }
}

constexpr int32_t kQ3Group = 256;
constexpr int64_t kQ3Centroids = 8;
constexpr int64_t kQ3GroupBytes = kQ3Centroids * kUnpackTile * int64_t{sizeof(uint16_t)};

/// The codes of eight elements of a few keys: byte k at from + 16 k.
#if HWY_TARGET == HWY_AVX3
// Bits are tested in place, which saves widening the bytes.
struct Octet {
  __m128i bytes[3];
};
HWY_INLINE Octet load_octet(const uint8_t* from) {
  const auto* bytes = reinterpret_cast<const __m128i*>(from);
  return {{_mm_loadu_si128(bytes), _mm_loadu_si128(bytes + 1), _mm_loadu_si128(bytes + 2)}};
}
template <int kBit>
HWY_INLINE Native if_octet_bit(const Octet& x, Native yes, Native no) {
  const __mmask16 bit =
      _mm_test_epi8_mask(x.bytes[kBit / 8], _mm_set1_epi8(static_cast<char>(1 << (kBit % 8))));
  return Native{_mm512_mask_blend_ps(bit, no.raw, yes.raw)};
}
#else
using Octet = Codes;
HWY_INLINE Octet load_octet(const uint8_t* from) {
  return join_codes(load_codes(from), load_codes(from + kUnpackTile),
                    load_codes(from + 2 * kUnpackTile));
}
template <int kBit>
HWY_INLINE Native if_octet_bit(Octet x, Native yes, Native no) {
  return if_bit<kBit>(x, yes, no);
}
#endif

/// Element i of an octet.
template <int kI>
HWY_INLINE Native pick_centroid(const Octet& x, const Native* c) {
  constexpr int kBit = 3 * kI;
  const Native c01 = if_octet_bit<kBit>(x, c[1], c[0]);
  const Native c23 = if_octet_bit<kBit>(x, c[3], c[2]);
  const Native c45 = if_octet_bit<kBit>(x, c[5], c[4]);
  const Native c67 = if_octet_bit<kBit>(x, c[7], c[6]);
  return if_octet_bit<kBit + 2>(x, if_octet_bit<kBit + 1>(x, c67, c45),
                                if_octet_bit<kBit + 1>(x, c23, c01));
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
        const Octet x = load_octet(from);
        float* to = out + d * kUnpackTile + lane;
        const int64_t n = end - d;
        store(pick_centroid<0>(x, c), to);
        if (n > 1) store(pick_centroid<1>(x, c), to + kUnpackTile);
        if (n > 2) store(pick_centroid<2>(x, c), to + 2 * kUnpackTile);
        if (n > 3) store(pick_centroid<3>(x, c), to + 3 * kUnpackTile);
        if (n > 4) store(pick_centroid<4>(x, c), to + 4 * kUnpackTile);
        if (n > 5) store(pick_centroid<5>(x, c), to + 5 * kUnpackTile);
        if (n > 6) store(pick_centroid<6>(x, c), to + 6 * kUnpackTile);
        if (n > 7) store(pick_centroid<7>(x, c), to + 7 * kUnpackTile);
      }
    }
  }
}

// The centroids of one entry, in which sixteen codes are looked up at once.
#if HWY_TARGET == HWY_AVX3
using Q3Table = __m512;  // the centroids twice, since a lookup uses four bits of an index
HWY_INLINE Q3Table q3_table(const float* centroids) {
  return _mm512_broadcast_f32x8(_mm256_loadu_ps(centroids));
}
#elif HWY_TARGET == HWY_AVX2
using Q3Table = __m256;
HWY_INLINE Q3Table q3_table(const float* centroids) { return _mm256_loadu_ps(centroids); }
#else
using Q3Table = const float*;
HWY_INLINE Q3Table q3_table(const float* centroids) { return centroids; }
#endif

/// Sixteen elements from six bytes. The lookup ignores the bits of the next code. The second load
/// of four bytes begins at the third byte, so that nothing after the six is read.
HWY_INLINE Lanes16 pick_elements(Q3Table table, const std::byte* codes) {
  uint32_t first;
  uint32_t second;
  std::memcpy(&first, codes, sizeof(first));
  std::memcpy(&second, codes + 2, sizeof(second));
#if HWY_TARGET == HWY_AVX3
  const __m512i shifts =
      _mm512_setr_epi32(0, 3, 6, 9, 12, 15, 18, 21, 8, 11, 14, 17, 20, 23, 26, 29);
  const __m512i bits =
      _mm512_mask_blend_epi32(0xFF00, _mm512_set1_epi32(static_cast<int32_t>(first)),
                              _mm512_set1_epi32(static_cast<int32_t>(second)));
  return Lanes16{_mm512_permutexvar_ps(_mm512_srlv_epi32(bits, shifts), table)};
#elif HWY_TARGET == HWY_AVX2
  const __m256i low = _mm256_setr_epi32(0, 3, 6, 9, 12, 15, 18, 21);
  const __m256i high = _mm256_setr_epi32(8, 11, 14, 17, 20, 23, 26, 29);
  const __m256i a = _mm256_srlv_epi32(_mm256_set1_epi32(static_cast<int32_t>(first)), low);
  const __m256i b = _mm256_srlv_epi32(_mm256_set1_epi32(static_cast<int32_t>(second)), high);
  return {Native{_mm256_permutevar8x32_ps(table, a)}, Native{_mm256_permutevar8x32_ps(table, b)}};
#else
  float elements[kLanes];
  for (uint32_t i = 0; i < 8; ++i) elements[i] = table[(first >> (3 * i)) & 7];
  for (uint32_t i = 0; i < 8; ++i) elements[i + 8] = table[(second >> (3 * i + 8)) & 7];
  return load(elements);
#endif
}

/// A tile's centroids, [centroid][entry], as [entry][centroid].
HWY_INLINE void turn_centroids(const std::byte* group, float* by_entry) {
  float rows[kQ3Centroids][kUnpackTile];
  for (int64_t c = 0; c < kQ3Centroids; ++c) {
    widen16(group + c * kUnpackTile * int64_t{sizeof(uint16_t)}, rows[c]);
  }
  for (int64_t i = 0; i < kUnpackTile; ++i) {
    for (int64_t c = 0; c < kQ3Centroids; ++c) by_entry[i * kQ3Centroids + c] = rows[c][i];
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
