// SPDX-License-Identifier: Apache-2.0
// Products of quantised weights through Highway, for levels without an 8-bit dot product. The order
// of operations is that of linear_scalar.cpp, with as many of the 16 rows of a tile as fit in a
// register and several rows of x at a time. One source for all types (quant/traits.h).
//   Work:   weights are widened to 16 bits, even and odd bytes separately, and multiplied in pairs.
//           x86 uses the 8-bit multiply (maddubs) instead. It cannot saturate with values of at
//           most 7 bits; weights of 8 bits are passed as magnitudes.
//   Needs:  tiles as in weight_layout.h, rows as in activations.h.
//   Error:  none beyond the scalar kernels': the bits are the same.
#include "engine/cpu/linear/linear_quant_simd.h"

#include <cstring>
#include <type_traits>

#include "engine/cpu/pack/activations.h"
#include "engine/cpu/weight/weight_layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/linear/linear_quant_simd.cpp"
#include "engine/cpu/simd/lanes.h"
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
using quant::Traits;

constexpr int64_t kLanesHere = HWY_MAX_BYTES / 4 < 16 ? HWY_MAX_BYTES / 4 : 16;
constexpr int64_t kLaneGroupBytes = kLanesHere * 4;
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
  HWY_INLINE Sum() {}  // as in Pair
  HWY_INLINE void clear() { a = b = hn::Zero(I32()); }
  [[nodiscard]] HWY_INLINE Ints value() const { return hn::RearrangeToOddPlusEven(a, b); }
};

/// Four consecutive activations in every lane.
HWY_INLINE Ints splat_quad(const int8_t* q) {
  int32_t quad;
  std::memcpy(&quad, q, sizeof(quad));
  return hn::Set(I32(), quad);
}

/// A quad of weights of up to 8 bits, prepared for the multiply.
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
/// A quad of weights of values up to 128: two products of at most 128 * 127 fit 16 bits.
struct SmallQuad {
  static constexpr bool kOffsetRemoved = false;
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

/// A quad of weights stored with an offset of 128.
struct OffsetQuad {
  static constexpr bool kOffsetRemoved = true;
  hn::Vec<I16> even;
  hn::Vec<I16> odd;
  explicit HWY_INLINE OffsetQuad(Bytes w_in) {
    const auto words = hn::BitCast(I16(), hn::Xor(w_in, hn::Set(U8(), 0x80)));
    even = hn::ShiftRight<8>(hn::ShiftLeft<8>(words));
    odd = hn::ShiftRight<8>(words);
  }
  HWY_INLINE void add_to(Sum& sum, Ints x) const {
    const auto words = hn::BitCast(I16(), x);
    const auto x_even = hn::ShiftRight<8>(hn::ShiftLeft<8>(words));
    const auto x_odd = hn::ShiftRight<8>(words);
    sum.a = hn::ReorderWidenMulAccumulate(I32(), even, x_even, sum.a, sum.b);
    sum.a = hn::ReorderWidenMulAccumulate(I32(), odd, x_odd, sum.a, sum.b);
  }
};
#endif

template <Traits t>
using QuadOf = std::conditional_t<t.zero == 128, OffsetQuad, SmallQuad>;

/// Each byte shifted left, or right where kBits is negative; bits of a neighbour may come in.
template <int kBits>
HWY_INLINE Bytes shift_bytes(Bytes w) {
  const auto words = hn::BitCast(U16(), w);
  if constexpr (kBits > 0) {
    return hn::BitCast(U8(), hn::ShiftLeft<kBits>(words));
  } else {
    return hn::BitCast(U8(), hn::ShiftRight<-kBits>(words));
  }
}

/// Values of quad kQuad of 32 columns; `codes` points at this group of lanes' bytes of vector 0.
template <Traits t, int kQuad>
HWY_INLINE Bytes values_of(const uint8_t* codes) {
  if constexpr (t.table == quant::CodeTable::kSign) {  // twice the bit
    return hn::And(shift_bytes<1 - kQuad>(hn::LoadU(U8(), codes)), hn::Set(U8(), 2));
  }
  constexpr int kBase = base_bits(t.bits);
  constexpr int kUpper = upper_bits(t.bits);
  Bytes code = hn::LoadU(U8(), codes + kQuad % kBase * kQuadBytes);
  if constexpr (kBase < 8) {
    code = hn::And(shift_bytes<-(kQuad / kBase * kBase)>(code), hn::Set(U8(), (1 << kBase) - 1));
  }
  if constexpr (kUpper > 0) {
    const Bytes above = hn::LoadU(U8(), codes + (kBase + kQuad % kUpper) * kQuadBytes);
    const Bytes moved = shift_bytes<kBase - kQuad / kUpper * kUpper>(above);
    code = hn::Or(code, hn::And(moved, hn::Set(U8(), ((1 << kUpper) - 1) << kBase)));
  }
  if constexpr (t.table != quant::CodeTable::kNone) {
    code = hn::TableLookupBytes(hn::LoadDup128(U8(), quant::table_values(t.table)), code);
  }
  return code;
}

/// Adds the products of quads [kQuad, kEnd) of 32 columns with all rows of x, which begin at
/// `first` in each block.
template <Traits t, size_t kRows, int kQuad, int kEnd, typename Block>
HWY_INLINE void add_quads(Sum* sums, const uint8_t* codes, const Block* const* x, int64_t block,
                          int64_t first) {
  if constexpr (kQuad < kEnd) {
    const QuadOf<t> ready(values_of<t, kQuad>(codes));
    GEN_UNROLL
    for (size_t row = 0; row < kRows; ++row) {
      ready.add_to(sums[row], splat_quad(x[row][block].q + first + kQuad * 4));
    }
    add_quads<t, kRows, kQuad + 1, kEnd>(sums, codes, x, block, first);
  }
}

/// Prefetches codes that follow those of 32 columns, for a kernel of one row of x. With codes of
/// one or two bits it waits for memory, and takes two thirds of the time with this; others gain
/// nothing.
template <Traits t, size_t kRows>
HWY_INLINE void fetch_ahead(const uint8_t* codes) {
  constexpr int kAhead = 2048;
  if constexpr (kRows == 1 && t.bits <= 2) {
    GEN_UNROLL
    for (int line = 0; line < t.bits; ++line) __builtin_prefetch(codes + kAhead + line * 64);
  }
}

/// The rows of x that a kernel processes at once.
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

// Each kernel below handles lanes [lane_group * kLanesHere, ...) of one tile for kRows rows of x.

template <Traits t>
struct BlocksOf32 {
  using Block = ActQ8Block;

  static HWY_INLINE Floats scales(const std::byte* tile, int64_t at) {
    if constexpr (t.scale == quant::ScaleKind::kE8M0) {
      const hn::Rebind<uint8_t, I32> bytes;
      const auto e =
          hn::PromoteTo(I32(), hn::LoadU(bytes, reinterpret_cast<const uint8_t*>(tile) + at));
      const auto one = hn::Set(I32(), 1);
      return hn::BitCast(F32(), hn::ShiftLeft<23>(hn::Sub(hn::Max(e, one), one)));
    } else {
      return load_halves(reinterpret_cast<const uint16_t*>(tile) + at);
    }
  }

  /// acc += d * sum for the runs of block `b` from kRun on.
  template <size_t kRows, int kRun>
  static HWY_INLINE void add_runs(const std::byte* tile, const uint8_t* codes, int64_t lane,
                                  const Block* const* x, int64_t b, Floats* acc) {
    if constexpr (kRun < runs_of(t)) {
      static_assert(t.run == 32 || QuadOf<t>::kOffsetRemoved, "x has sums of 32 only");
      Sum sums[kRows];
      GEN_UNROLL
      for (size_t i = 0; i < kRows; ++i) sums[i].clear();
      add_quads<t, kRows, kRun * t.run / 4, (kRun + 1) * t.run / 4>(sums, codes, x, b, 0);
      const Floats d = scales(tile, (b * runs_of(t) + kRun) * kTileRows + lane);
      GEN_UNROLL
      for (size_t i = 0; i < kRows; ++i) {
        const Block& block = x[i][b];
        Ints total = sums[i].value();
        if constexpr (t.zero != 0 && !QuadOf<t>::kOffsetRemoved) {
          total = hn::Add(total, hn::Set(I32(), block.minus_128_sum / (128 / t.zero)));
        }
        const Floats scale = hn::Mul(d, hn::Set(F32(), block.scale));
        acc[i] = hn::MulAdd(scale, hn::ConvertTo(F32(), total), acc[i]);
      }
      add_runs<kRows, kRun + 1>(tile, codes, lane, x, b, acc);
    }
  }

  template <size_t kRows>
  static HWY_INLINE void run(const TileJob& job, const std::byte* tile, int64_t lane_group,
                             int64_t row, int64_t column) {
    const int64_t lane = lane_group * kLanesHere;
    [[maybe_unused]] const auto* dmin =
        reinterpret_cast<const uint16_t*>(tile + dmin_offset(t, job.cols));
    const auto* codes = reinterpret_cast<const uint8_t*>(tile + blocks_offset(t, job.cols)) +
                        lane_group * kLaneGroupBytes;
    const Block* x[kRows];
    rows_of<Block, kRows>(job, row, x);
    Floats acc[kRows];
    GEN_UNROLL
    for (size_t i = 0; i < kRows; ++i) acc[i] = hn::Zero(F32());
    for (int64_t b = 0; b < job.cols / 32; ++b, codes += block_bytes(t)) {
      fetch_ahead<t, kRows>(codes);
      add_runs<kRows, 0>(tile, codes, lane, x, b, acc);
      if constexpr (t.minima) {
        const Floats m = load_halves(dmin + b * kTileRows + lane);
        GEN_UNROLL
        for (size_t i = 0; i < kRows; ++i) {
          const Block& block = x[i][b];
          const float sum = static_cast<float>(block.minus_128_sum) * -0x1p-7F;
          acc[i] = hn::MulAdd(hn::Mul(m, hn::Set(F32(), block.scale)), hn::Set(F32(), sum), acc[i]);
        }
      }
    }
    store_rows<kRows>(job, row, column, acc);
  }
};

template <Traits t>
struct BlocksOf256 {
  using Block = ActQ8KBlock;

  static HWY_INLINE Floats in_units(Floats d) {
    if constexpr (t.halvings != 0) return hn::Mul(d, hn::Set(F32(), quant::unit_of(t)));
    return d;
  }

  /// Scales of run `run` of this group of lanes, `lane` on.
  static HWY_INLINE Floats scales(const uint8_t* block, int64_t run, int64_t lane) {
    if constexpr (packed_minima(t)) {
      const auto pairs = hn::BitCast(I32(), load_pairs(block, run / 2, lane));
      const auto words = run % 2 == 0 ? pairs : hn::ShiftRight<16>(pairs);
      return hn::ConvertTo(F32(), hn::And(words, hn::Set(I32(), 15)));
    } else {
      const hn::Rebind<int8_t, I32> bytes;
      const auto* p = reinterpret_cast<const int8_t*>(block) + run * kTileRows + lane;
      return hn::ConvertTo(F32(), hn::PromoteTo(I32(), hn::LoadU(bytes, p)));
    }
  }

  /// The paired bytes of runs 2 * pair and 2 * pair + 1, as 16-bit lanes.
  static HWY_INLINE hn::Vec<I16> load_pairs(const uint8_t* block, int64_t pair, int64_t lane) {
    const hn::Rebind<uint8_t, I16> bytes;
    const uint8_t* p = block + minima_offset(t) + pair * 2 * kTileRows + lane * 2;
    return hn::PromoteTo(I16(), hn::LoadU(bytes, p));
  }

  /// scaled += scale * sum for run kRun % kPerSubBlock of 32 columns.
  template <size_t kRows, int kRunHere>
  static HWY_INLINE void add_run(const uint8_t* block, const uint8_t* codes, int64_t sub_block,
                                 int64_t lane, const Block* const* x, int64_t b, Floats* scaled) {
    constexpr int kPerSubBlock = 32 / t.run;
    if constexpr (kRunHere < kPerSubBlock) {
      const int64_t run = sub_block * kPerSubBlock + kRunHere;
      Sum sums[kRows];
      GEN_UNROLL
      for (size_t i = 0; i < kRows; ++i) sums[i].clear();
      constexpr int kFirst = kRunHere * t.run / 4;
      add_quads<t, kRows, kFirst, kFirst + t.run / 4>(sums, codes, x, b, sub_block * 32);
      const Floats scale = scales(block, run, lane);
      GEN_UNROLL
      for (size_t i = 0; i < kRows; ++i) {
        Ints total = sums[i].value();
        if constexpr (t.zero != 0 && !QuadOf<t>::kOffsetRemoved) {
          const int32_t sum = t.run == 16 ? x[i][b].sum16[run] : x[i][b].sum32[run];
          total = hn::Add(total, hn::Set(I32(), -t.zero * sum));
        }
        scaled[i] = hn::MulAdd(hn::ConvertTo(F32(), total), scale, scaled[i]);
      }
      add_run<kRows, kRunHere + 1>(block, codes, sub_block, lane, x, b, scaled);
    }
  }

  /// acc -= dmin * x.scale * the sum over runs of minimum times sum of x.
  template <size_t kRows>
  static HWY_INLINE void subtract_minima(const uint8_t* block, Floats dmin, int64_t lane,
                                         const Block* const* x, int64_t b, Floats* acc) {
    Sum minima[kRows];
    GEN_UNROLL
    for (size_t i = 0; i < kRows; ++i) minima[i].clear();
    // The minima of two runs are interleaved, and so are the sums of x.
    for (int64_t pair = 0; pair < runs_of(t) / 2; ++pair) {
      auto m = load_pairs(block, pair, lane);
      if constexpr (packed_minima(t)) m = hn::ShiftRight<4>(m);
      GEN_UNROLL
      for (size_t i = 0; i < kRows; ++i) {
        int32_t two;
        std::memcpy(&two, (t.run == 16 ? x[i][b].sum16 : x[i][b].sum32) + 2 * pair, sizeof(two));
        const auto sums = hn::BitCast(I16(), hn::Set(I32(), two));
        minima[i].a = hn::ReorderWidenMulAccumulate(I32(), m, sums, minima[i].a, minima[i].b);
      }
    }
    GEN_UNROLL
    for (size_t i = 0; i < kRows; ++i) {
      acc[i] = hn::NegMulAdd(hn::Mul(dmin, hn::Set(F32(), x[i][b].scale)),
                             hn::ConvertTo(F32(), minima[i].value()), acc[i]);
    }
  }

  template <size_t kRows>
  static HWY_INLINE void run(const TileJob& job, const std::byte* tile, int64_t lane_group,
                             int64_t row, int64_t column) {
    const int64_t lane = lane_group * kLanesHere;
    const auto* d = reinterpret_cast<const uint16_t*>(tile) + lane;
    const auto* dmin = reinterpret_cast<const uint16_t*>(tile + dmin_offset(t, job.cols)) + lane;
    const auto* block = reinterpret_cast<const uint8_t*>(tile + blocks_offset(t, job.cols));
    const Block* x[kRows];
    rows_of<Block, kRows>(job, row, x);
    Floats acc[kRows];
    GEN_UNROLL
    for (size_t i = 0; i < kRows; ++i) acc[i] = hn::Zero(F32());
    for (int64_t b = 0; b < job.cols / 256; ++b, block += block_bytes(t)) {
      const uint8_t* codes = block + codes_offset(t) + lane_group * kLaneGroupBytes;
      Floats scaled[kRows];
      GEN_UNROLL
      for (size_t i = 0; i < kRows; ++i) scaled[i] = hn::Zero(F32());
      for (int64_t cols32 = 0; cols32 < 8; ++cols32, codes += sub_block_bytes(t)) {
        fetch_ahead<t, kRows>(codes);
        add_run<kRows, 0>(block, codes, cols32, lane, x, b, scaled);
      }
      const Floats scale = in_units(load_halves(d + b * kTileRows));
      GEN_UNROLL
      for (size_t i = 0; i < kRows; ++i) {
        acc[i] = hn::MulAdd(hn::Mul(scale, hn::Set(F32(), x[i][b].scale)), scaled[i], acc[i]);
      }
      if constexpr (t.minima) {
        subtract_minima<kRows>(block, in_units(load_halves(dmin + b * kTileRows)), lane, x, b, acc);
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
    for (int64_t lane_group = 0; lane_group < kTileRows / kLanesHere; ++lane_group) {
      const int64_t column = i * kTileRows + lane_group * kLanesHere;
      int64_t t = 0;
      for (; t + kStep <= job.rows; t += kStep) {
        Kernel::template run<kRowsAtOnce>(job, tile, lane_group, t, column);
      }
      for (; t < job.rows; ++t) Kernel::template run<1>(job, tile, lane_group, t, column);
    }
  }
}

template <size_t kIndex>
inline void linear(const TileJob& job) {
  constexpr Traits t = quant::kTraits[kIndex];
  run_kernel<std::conditional_t<t.block == 32, BlocksOf32<t>, BlocksOf256<t>>>(job);
}

template <size_t... kIndices>
constexpr QuantKernels all_kernels(std::index_sequence<kIndices...>) {
  return {{linear<kIndices>...}};
}
constexpr QuantKernels kQuantKernels = all_kernels(kQuantIndices);

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
