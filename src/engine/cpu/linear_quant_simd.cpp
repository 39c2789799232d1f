// SPDX-License-Identifier: Apache-2.0
// Products of quantised weights through Highway, for levels without an 8-bit dot product: the order
// of operations of linear_scalar.cpp, with as many of the 16 rows of a tile in a register as fit
// and several rows of x at a time.
//   Work:   weights are widened to 16 bits, even and odd bytes apart, and multiplied in pairs; on
//           x86 by the 8-bit multiply instead, kept from saturating: weights of at most 6 bits
//           cannot, those of 8 go in as magnitudes.
//   Needs:  tiles as in weight_layout.h, rows as in activations.h.
//   Error:  none beyond the scalar kernels': the bits are the same.
#include "engine/cpu/linear_quant_simd.h"

#include <cstring>

#include "engine/cpu/activations.h"
#include "engine/cpu/weight_layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/linear_quant_simd.cpp"
#include "engine/cpu/lanes.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#if GEN_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::CappedTag<float, 16>;
using I32 = hn::RebindToSigned<F32>;
using I16 = hn::Repartition<int16_t, I32>;
using U16 = hn::Repartition<uint16_t, I32>;
using U8 = hn::Repartition<uint8_t, I32>;
using Floats = hn::Vec<F32>;
using Ints = hn::Vec<I32>;
using Bytes = hn::Vec<U8>;

constexpr int64_t kLanesHere = HWY_MAX_BYTES / 4 < 16 ? HWY_MAX_BYTES / 4 : 16;
constexpr int64_t kPartBytes = kLanesHere * 4;
// Rows of x at a time: two or three registers each, of 16 or 32.
constexpr size_t kRowsAtOnce = kLanesHere == 16 ? 8 : 4;

HWY_INLINE Floats load_halves(const uint16_t* p) {
  const hn::Rebind<hwy::float16_t, F32> half;
  return hn::PromoteTo(F32(), hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(p)));
}

/// Sums of 32-bit lanes; on ARM the products of a lane are spread over two.
struct Sum {
  Ints a;
  Ints b;
  HWY_INLINE void clear() { a = b = hn::Zero(I32()); }
  [[nodiscard]] HWY_INLINE Ints value() const { return hn::RearrangeToOddPlusEven(a, b); }
};

/// Four consecutive activations in every lane.
HWY_INLINE Ints splat_quad(const int8_t* q) {
  int32_t quad;
  std::memcpy(&quad, q, sizeof(quad));
  return hn::Set(I32(), quad);
}

/// A quad of weights of up to 8 bits, ready to multiply.
struct WideQuad {
  static constexpr bool kOffsetRemoved = false;
  hn::Vec<I16> even;
  hn::Vec<I16> odd;
  explicit HWY_INLINE WideQuad(Bytes w) {
    const auto words = hn::BitCast(U16(), w);
    even = hn::BitCast(I16(), hn::And(words, hn::Set(U16(), 0x00FF)));
    odd = hn::BitCast(I16(), hn::ShiftRight<8>(words));
  }
  HWY_INLINE void add_to(Sum& sum, Ints x) const {
    const auto words = hn::BitCast(I16(), x);
    const auto x_even = hn::ShiftRight<8>(hn::ShiftLeft<8>(words));
    const auto x_odd = hn::ShiftRight<8>(words);
    sum.a = hn::ReorderWidenMulAccumulate(I32(), even, x_even, sum.a, sum.b);
    sum.a = hn::ReorderWidenMulAccumulate(I32(), odd, x_odd, sum.a, sum.b);
  }
};

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
/// A quad of weights of at most 6 bits: two products of at most 63 * 127 fit 16 bits.
struct SmallQuad {
  Bytes w;
  explicit HWY_INLINE SmallQuad(Bytes w_in) : w(w_in) {}
  HWY_INLINE void add_to(Sum& sum, Ints x) const {
#if HWY_TARGET == HWY_AVX2
    const hn::Vec<I16> pairs{_mm256_maddubs_epi16(w.raw, x.raw)};
#else
    const hn::Vec<I16> pairs{_mm512_maddubs_epi16(w.raw, x.raw)};
#endif
    sum.a = hn::ReorderWidenMulAccumulate(I32(), pairs, hn::Set(I16(), 1), sum.a, sum.b);
  }
};

/// A quad of weights stored with an offset of 128: magnitudes times activations of the weights'
/// signs. Two products of at most 128 * 127 fit 16 bits.
struct OffsetQuad {
  static constexpr bool kOffsetRemoved = true;
  hn::Vec<hn::Repartition<int8_t, I32>> w;
  Bytes magnitude;
  explicit HWY_INLINE OffsetQuad(Bytes w_in) {
    const hn::Repartition<int8_t, I32> d;
    w = hn::BitCast(d, hn::Xor(w_in, hn::Set(U8(), 0x80)));
    magnitude = hn::BitCast(U8(), hn::Abs(w));
  }
  HWY_INLINE void add_to(Sum& sum, Ints x) const {
#if HWY_TARGET == HWY_AVX2
    const hn::Vec<I16> pairs{_mm256_maddubs_epi16(magnitude.raw, _mm256_sign_epi8(x.raw, w.raw))};
#else
    const __m512i with_sign =
        _mm512_mask_sub_epi8(x.raw, _mm512_movepi8_mask(w.raw), _mm512_setzero_si512(), x.raw);
    const hn::Vec<I16> pairs{_mm512_maddubs_epi16(magnitude.raw, with_sign)};
#endif
    sum.a = hn::ReorderWidenMulAccumulate(I32(), pairs, hn::Set(I16(), 1), sum.a, sum.b);
  }
};
#else
using SmallQuad = WideQuad;
using OffsetQuad = WideQuad;
#endif

HWY_INLINE Bytes low_half(Bytes w) { return hn::And(w, hn::Set(U8(), 0x0F)); }
HWY_INLINE Bytes high_half(Bytes w) {
  return low_half(hn::BitCast(U8(), hn::ShiftRight<4>(hn::BitCast(U16(), w))));
}

/// Adds quads `quad` of all rows of x: w times x[b].q[4 * quad ..].
template <typename Quad, size_t kRows, typename Block>
HWY_INLINE void add_quad(Sum* sums, Bytes w, const Block* const* x, int64_t block, int64_t quad) {
  const Quad ready(w);
  GEN_UNROLL
  for (size_t t = 0; t < kRows; ++t) ready.add_to(sums[t], splat_quad(x[t][block].q + quad * 4));
}

/// The rows of x that a kernel works on at once.
template <typename Block, size_t kRows>
HWY_INLINE void rows_of(const TileJob& job, int64_t row, const Block** x) {
  GEN_UNROLL
  for (size_t t = 0; t < kRows; ++t) {
    x[t] = reinterpret_cast<const Block*>(job.x + (static_cast<size_t>(row) + t) * job.x_stride);
  }
}

template <size_t kRows>
HWY_INLINE void store_rows(const TileJob& job, int64_t row, int64_t column, const Floats* acc) {
  GEN_UNROLL
  for (size_t t = 0; t < kRows; ++t) {
    hn::StoreU(acc[t], F32(), job.acc + (row + static_cast<int64_t>(t)) * job.acc_stride + column);
  }
}

// Each kernel below handles lanes [part * kLanesHere, ...) of one tile for kRows rows of x.

template <size_t kTileBlock>
struct Block32 {
  using Block = ActQ8Block;
  template <size_t kRows>
  static HWY_INLINE void run(const TileJob& job, const std::byte* tile, int64_t part, int64_t row,
                             int64_t column) {
    const auto* scales = reinterpret_cast<const uint16_t*>(tile) + part * kLanesHere;
    const auto* w = reinterpret_cast<const uint8_t*>(tile + block32_weights_offset(job.cols)) +
                    part * kPartBytes;
    const Block* x[kRows];
    rows_of<Block, kRows>(job, row, x);
    Floats acc[kRows];
    GEN_UNROLL
    for (size_t t = 0; t < kRows; ++t) acc[t] = hn::Zero(F32());
    for (int64_t b = 0; b < job.cols / 32; ++b, w += kTileBlock) {
      Sum sums[kRows];
      GEN_UNROLL
      for (size_t t = 0; t < kRows; ++t) sums[t].clear();
      if constexpr (kTileBlock == kQ8_0TileBlock) {
        for (int64_t quad = 0; quad < 8; ++quad) {
          add_quad<OffsetQuad, kRows>(sums, hn::LoadU(U8(), w + quad * kQuadBytes), x, b, quad);
        }
      } else {
        for (int64_t quad = 0; quad < 4; ++quad) {
          const Bytes both = hn::LoadU(U8(), w + quad * kQuadBytes);
          add_quad<SmallQuad, kRows>(sums, low_half(both), x, b, quad);
          add_quad<SmallQuad, kRows>(sums, high_half(both), x, b, quad + 4);
        }
      }
      const Floats scale = load_halves(scales + b * kTileRows);
      GEN_UNROLL
      for (size_t t = 0; t < kRows; ++t) {
        Ints total = sums[t].value();
        if constexpr (kTileBlock == kQ4_0TileBlock) {
          total = hn::Add(total, hn::Set(I32(), x[t][b].minus_128_sum / 16));
        } else if constexpr (!OffsetQuad::kOffsetRemoved) {
          total = hn::Add(total, hn::Set(I32(), x[t][b].minus_128_sum));
        }
        const Floats sum = hn::ConvertTo(F32(), total);
        acc[t] = hn::MulAdd(hn::Mul(scale, hn::Set(F32(), x[t][b].scale)), sum, acc[t]);
      }
    }
    store_rows<kRows>(job, row, column, acc);
  }
};

/// Lanes of unsigned or signed bytes as floats.
template <typename T>
HWY_INLINE Floats load_bytes(const T* p) {
  const hn::Rebind<T, I32> bytes;
  return hn::ConvertTo(F32(), hn::PromoteTo(I32(), hn::LoadU(bytes, p)));
}

struct KernelQ4K {
  using Block = ActQ8KBlock;
  template <size_t kRows>
  static HWY_INLINE void run(const TileJob& job, const std::byte* tile, int64_t part, int64_t row,
                             int64_t column) {
    const auto* w = reinterpret_cast<const Q4_KTileBlock*>(tile);
    const int64_t lane = part * kLanesHere;
    const Block* x[kRows];
    rows_of<Block, kRows>(job, row, x);
    Floats acc[kRows];
    GEN_UNROLL
    for (size_t t = 0; t < kRows; ++t) acc[t] = hn::Zero(F32());
    for (int64_t b = 0; b < job.cols / 256; ++b, ++w) {
      Floats scaled[kRows];
      GEN_UNROLL
      for (size_t t = 0; t < kRows; ++t) scaled[t] = hn::Zero(F32());
      for (int64_t s = 0; s < 8; ++s) {
        Sum sums[kRows];
        GEN_UNROLL
        for (size_t t = 0; t < kRows; ++t) sums[t].clear();
        for (int64_t quad = 0; quad < 4; ++quad) {
          const Bytes both = hn::LoadU(U8(), w->weights[s][quad] + part * kPartBytes);
          add_quad<SmallQuad, kRows>(sums, low_half(both), x, b, s * 8 + quad);
          add_quad<SmallQuad, kRows>(sums, high_half(both), x, b, s * 8 + quad + 4);
        }
        const Floats scale = load_bytes(w->scales[s] + lane);
        GEN_UNROLL
        for (size_t t = 0; t < kRows; ++t) {
          scaled[t] = hn::MulAdd(hn::ConvertTo(F32(), sums[t].value()), scale, scaled[t]);
        }
      }
      // The minima of two runs lie side by side, and so do the sums of x.
      Sum minima[kRows];
      GEN_UNROLL
      for (size_t t = 0; t < kRows; ++t) minima[t].clear();
      for (int64_t pair = 0; pair < 4; ++pair) {
        const hn::Rebind<uint8_t, I16> bytes;
        const auto m = hn::PromoteTo(I16(), hn::LoadU(bytes, w->minima[pair][lane]));
        GEN_UNROLL
        for (size_t t = 0; t < kRows; ++t) {
          int32_t two;
          std::memcpy(&two, x[t][b].sum32 + 2 * pair, sizeof(two));
          const auto sums = hn::BitCast(I16(), hn::Set(I32(), two));
          minima[t].a = hn::ReorderWidenMulAccumulate(I32(), m, sums, minima[t].a, minima[t].b);
        }
      }
      const Floats d = load_halves(w->d + lane);
      const Floats dmin = load_halves(w->dmin + lane);
      GEN_UNROLL
      for (size_t t = 0; t < kRows; ++t) {
        const Floats x_scale = hn::Set(F32(), x[t][b].scale);
        acc[t] = hn::MulAdd(hn::Mul(d, x_scale), scaled[t], acc[t]);
        acc[t] =
            hn::NegMulAdd(hn::Mul(dmin, x_scale), hn::ConvertTo(F32(), minima[t].value()), acc[t]);
      }
    }
    store_rows<kRows>(job, row, column, acc);
  }
};

struct KernelQ6K {
  using Block = ActQ8KBlock;

  // Run 2 * pair + kOdd: quads 0..3 or 4..7 of 32 columns.
  template <size_t kRows, int64_t kOdd>
  static HWY_INLINE void run_of_16(const Q6_KTileBlock& w, int64_t pair, int64_t part,
                                   const Block* const* x, int64_t b, Floats* scaled) {
    const int64_t s = 2 * pair + kOdd;
    Sum sums[kRows];
    GEN_UNROLL
    for (size_t t = 0; t < kRows; ++t) sums[t].clear();
    GEN_UNROLL
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t quad = kOdd * 4 + i;
      const Bytes both = hn::LoadU(U8(), w.low[pair][i] + part * kPartBytes);
      const Bytes low = kOdd == 0 ? low_half(both) : high_half(both);
      const Bytes high = hn::LoadU(U8(), w.high[pair][i % 2] + part * kPartBytes);
      add_quad<SmallQuad, kRows>(sums, with_high(low, high, quad), x, b, pair * 8 + quad);
    }
    const Floats scale = load_bytes(w.scales[s] + part * kLanesHere);
    GEN_UNROLL
    for (size_t t = 0; t < kRows; ++t) {
      const auto offset = hn::Set(I32(), x[t][b].minus_32_sum[s]);
      const auto sum = hn::ConvertTo(F32(), hn::Add(sums[t].value(), offset));
      scaled[t] = hn::MulAdd(sum, scale, scaled[t]);
    }
  }

  // Quad `quad` of 32 columns from its low and high bits.
  static HWY_INLINE Bytes with_high(Bytes low, Bytes high, int64_t quad) {
    const auto words = hn::BitCast(U16(), high);
    const auto top = quad < 2   ? hn::ShiftLeft<4>(words)
                     : quad < 4 ? hn::ShiftLeft<2>(words)
                     : quad < 6 ? words
                                : hn::ShiftRight<2>(words);
    return hn::Or(low, hn::And(hn::BitCast(U8(), top), hn::Set(U8(), 0x30)));
  }

  template <size_t kRows>
  static HWY_INLINE void run(const TileJob& job, const std::byte* tile, int64_t part, int64_t row,
                             int64_t column) {
    const auto* halves = reinterpret_cast<const uint16_t*>(tile);
    const auto* w = reinterpret_cast<const Q6_KTileBlock*>(tile + q6_k_blocks_offset(job.cols));
    const int64_t lane = part * kLanesHere;
    const Block* x[kRows];
    rows_of<Block, kRows>(job, row, x);
    Floats acc[kRows];
    GEN_UNROLL
    for (size_t t = 0; t < kRows; ++t) acc[t] = hn::Zero(F32());
    for (int64_t b = 0; b < job.cols / 256; ++b, ++w) {
      Floats scaled[kRows];
      GEN_UNROLL
      for (size_t t = 0; t < kRows; ++t) scaled[t] = hn::Zero(F32());
      for (int64_t pair = 0; pair < 8; ++pair) {
        run_of_16<kRows, 0>(*w, pair, part, x, b, scaled);
        run_of_16<kRows, 1>(*w, pair, part, x, b, scaled);
      }
      const Floats d = load_halves(halves + b * kTileRows + lane);
      GEN_UNROLL
      for (size_t t = 0; t < kRows; ++t) {
        acc[t] = hn::MulAdd(hn::Mul(d, hn::Set(F32(), x[t][b].scale)), scaled[t], acc[t]);
      }
    }
    store_rows<kRows>(job, row, column, acc);
  }
};

template <typename Kernel>
HWY_INLINE void run_kernel(const TileJob& job) {
  constexpr auto kStep = static_cast<int64_t>(kRowsAtOnce);
  for (int64_t i = 0; i < job.n_tiles; ++i) {
    const std::byte* tile = job.tiles + static_cast<size_t>(i) * job.tile_bytes;
    for (int64_t part = 0; part < kTileRows / kLanesHere; ++part) {
      const int64_t column = i * kTileRows + part * kLanesHere;
      int64_t t = 0;
      for (; t + kStep <= job.rows; t += kStep) {
        Kernel::template run<kRowsAtOnce>(job, tile, part, t, column);
      }
      for (; t < job.rows; ++t) Kernel::template run<1>(job, tile, part, t, column);
    }
  }
}

inline void linear_q8_0(const TileJob& job) { run_kernel<Block32<kQ8_0TileBlock>>(job); }
inline void linear_q4_0(const TileJob& job) { run_kernel<Block32<kQ4_0TileBlock>>(job); }
inline void linear_q4_k(const TileJob& job) { run_kernel<KernelQ4K>(job); }
inline void linear_q6_k(const TileJob& job) { run_kernel<KernelQ6K>(job); }

constexpr QuantKernels kQuantKernels = {linear_q8_0, linear_q4_0, linear_q4_k, linear_q6_k};

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();
#endif  // GEN_SIMD_TARGET

#if HWY_ONCE
namespace gen::engine::cpu {

const QuantKernels* quant_kernels_simd([[maybe_unused]] CpuLevel level) noexcept {
  return GEN_SIMD_PICK(level, kQuantKernels);
}

}  // namespace gen::engine::cpu
#endif
