// SPDX-License-Identifier: Apache-2.0
// Code shared by the kernels with the 8-bit dot product of AVX-512 (vpdpbusd, which Highway 1.0.3
// does not offer): loads, and decoding of a tile's codes to bytes. Included between GEN_VNNI_BEGIN
// and GEN_VNNI_END, in an unnamed namespace. It uses intrinsics only and is always inlined, so that
// no function is also compiled by another file with other flags.
//   Needs:  AVX-512 F, BW, DQ, VL and VNNI.
//   Read next: weight_layout.h, linear_vnni_row.cpp.

using quant::Traits;

#define GEN_VNNI_INLINE inline __attribute__((always_inline))

GEN_VNNI_INLINE __m512i load64(const void* p) { return _mm512_loadu_si512(p); }

GEN_VNNI_INLINE __m512 load_halves(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

// Four consecutive activations, or a pair of sums, in every lane.
GEN_VNNI_INLINE __m512i splat4(const void* p) {
  int32_t quad;
  __builtin_memcpy(&quad, p, sizeof(quad));
  return _mm512_set1_epi32(quad);
}

// Stored scales, or scales of minima, times what they count.
template <Traits t>
GEN_VNNI_INLINE __m512 load_units(const uint16_t* p) {
  const __m512 d = load_halves(p);
  if constexpr (t.halvings == 0) return d;
  return _mm512_mul_ps(d, _mm512_set1_ps(quant::unit_of(t)));
}

// The scales of block `b` (with runs of 16 in blocks of 32, of run `b`).
template <Traits t>
GEN_VNNI_INLINE __m512 load_d(const std::byte* tile, int64_t b) {
  if constexpr (t.scale == quant::ScaleKind::kE8M0) {
    const auto* bytes = reinterpret_cast<const __m128i*>(tile + b * kTileRows);
    const __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128(bytes));
    const __m512i one = _mm512_set1_epi32(1);
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_sub_epi32(_mm512_max_epi32(e, one), one), 23));
  } else {
    return load_units<t>(reinterpret_cast<const uint16_t*>(tile) + b * kTileRows);
  }
}

// The paired bytes of runs 2 * pair and 2 * pair + 1 of a block of 256, as 16-bit lanes.
template <Traits t>
GEN_VNNI_INLINE __m512i load_pairs(const uint8_t* block, int pair) {
  const uint8_t* p = block + minima_offset(t) + pair * 2 * kTileRows;
  return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

// The minima of two runs, as 16-bit lanes.
template <Traits t>
GEN_VNNI_INLINE __m512i load_minima(const uint8_t* block, int pair) {
  const __m512i pairs = load_pairs<t>(block, pair);
  return packed_minima(t) ? _mm512_srli_epi16(pairs, 4) : pairs;
}

// The scales of run `run` of a block of 256.
template <Traits t>
GEN_VNNI_INLINE __m512 load_scales(const uint8_t* block, int run) {
  if constexpr (packed_minima(t)) {
    const __m512i pairs = load_pairs<t>(block, run / 2);
    const __m512i words = run % 2 == 0 ? pairs : _mm512_srli_epi32(pairs, 16);
    return _mm512_cvtepi32_ps(_mm512_and_si512(words, _mm512_set1_epi32(15)));
  } else {
    const auto* p = reinterpret_cast<const __m128i*>(block + run * kTileRows);
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p)));
  }
}

// Each byte shifted left, or right where kBits is negative; bits of a neighbour may come in.
template <int kBits>
GEN_VNNI_INLINE __m512i shift_bytes(__m512i w) {
  if constexpr (kBits > 0) {
    return _mm512_slli_epi16(w, kBits);
  } else if constexpr (kBits < 0) {
    return _mm512_srli_epi16(w, -kBits);
  } else {
    return w;
  }
}

// Values, zero included, of quads kQuad to 7 of 32 columns.
template <Traits t, int kQuad = 0>
GEN_VNNI_INLINE void decode_sub_block(const uint8_t* codes, __m512i (&out)[8]) {
  if constexpr (kQuad < 8) {
    constexpr int kBase = base_bits(t.bits);
    constexpr int kUpper = upper_bits(t.bits);
    __m512i code = load64(codes + kQuad % kBase * kQuadBytes);
    if constexpr (kBase < 8) {
      code = _mm512_and_si512(shift_bytes<-(kQuad / kBase * kBase)>(code),
                              _mm512_set1_epi8((1 << kBase) - 1));
    }
    if constexpr (kUpper > 0) {
      const __m512i above = load64(codes + (kBase + kQuad % kUpper) * kQuadBytes);
      const __m512i moved = shift_bytes<kBase - kQuad / kUpper * kUpper>(above);
      const __m512i mask = _mm512_set1_epi8(((1 << kUpper) - 1) << kBase);
      code = _mm512_or_si512(code, _mm512_and_si512(moved, mask));
    }
    if constexpr (t.table == quant::CodeTable::kSign) {
      code = _mm512_add_epi8(code, code);
    } else if constexpr (t.table != quant::CodeTable::kNone) {
      constexpr const uint8_t* kValues = quant::table_values(t.table);
      const auto* values = reinterpret_cast<const __m128i*>(kValues);
      code = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128(values)), code);
    }
    out[kQuad] = code;
    decode_sub_block<t, kQuad + 1>(codes, out);
  }
}

// -128 times the sum of 16 activations, in every lane.
GEN_VNNI_INLINE __m512i minus_128_sum_of_16(const int8_t* q) {
  const __m128i four = _mm_dpbusd_epi32(_mm_setzero_si128(), _mm_set1_epi8(static_cast<char>(128)),
                                        _mm_loadu_si128(reinterpret_cast<const __m128i*>(q)));
  const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
  const __m128i sum = _mm_add_epi32(two, _mm_shuffle_epi32(two, 0xB1));
  return _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_broadcastd_epi32(sum));
}
