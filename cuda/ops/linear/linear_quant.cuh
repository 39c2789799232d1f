// SPDX-License-Identifier: Apache-2.0
// A tile of quantised weights (weight_tiles.h) times a row in 8 bits (activation_rows.h), by a
// thread block whose caller loads the tile's steps: for the step kernel (cuda/step). Sums and bits
// are those of linear_quant_few.cuh.
//
//   Work    In a round each warp takes a step of the tile: lane 4 r + q has quarter q of output r
//           and multiplies its codes in fours with the row (dp4a). What a block adds, a factor and
//           a value, goes to shared memory. Then a thread for each output adds the round's terms,
//           blocks ascending; this is the only chain. There are two buffers of terms, so other
//           warps go on while the chain is added.
//   Shared  8 warps x terms of a step x 8 outputs x 8 bytes, twice, doubled by minima: 2 to 8 KiB.
#pragma once

#include "cuda/device/memory.cuh"
#include "cuda/ops/linear/linear_end.cuh"
#include "cuda/ops/weight/weight_fragments.cuh"
#include "cuda/ops/weight/weight_tiles.h"

namespace gen::cuda {

using quant::Traits;

constexpr int32_t kQuantThreads = 256;
constexpr int32_t kQuantWarps = kQuantThreads / 32;

/// sum = fma(factor, value, sum).
struct Term {
  float factor;
  float value;
};

constexpr int32_t step_blocks(const Traits& t) noexcept { return step_cols(t) / t.block; }
/// Terms of a step that come from its blocks' scales; as many come from their minima.
constexpr int32_t round_terms(const Traits& t) noexcept {
  return kQuantWarps * step_blocks(t) * kTileOutputs;
}
constexpr int32_t kTermBuffers = 2;

/// Of one row.
struct QuantView {
  PackedRows x;
  int32_t n_steps;
  int32_t n_blocks;
};

/// A lane's share of a step, as in memory.
template <Traits t>
struct LaneStep {
  static constexpr int32_t kCodes = code_words(t);
  static constexpr int32_t kUpper = upper_words(t);

  /// From a step whose bytes `of` loads.
  template <typename Source>
  GEN_DEVICE void load(const Source& of, int32_t lane) {
    GEN_UNROLL
    for (int32_t v = 0; v < kCodes / 4; ++v) {
      const device::UInt4 four = of.load16((v * kTileLanes + lane) * 16);
      codes[4 * v] = four.x;
      codes[4 * v + 1] = four.y;
      codes[4 * v + 2] = four.z;
      codes[4 * v + 3] = four.w;
    }
    const int32_t above = upper_offset(t) + lane * kUpper * 4;
    if constexpr (kUpper == 1) upper[0] = of.load4(above);
    if constexpr (kUpper == 2) {
      const device::UInt2 two = of.load8(above);
      upper[0] = two.x;
      upper[1] = two.y;
    }
    if constexpr (kUpper == 4) {
      const device::UInt4 four = of.load16(above);
      upper[0] = four.x;
      upper[1] = four.y;
      upper[2] = four.z;
      upper[3] = four.w;
    }
    const int32_t of_runs = runs_offset(t) + lane * run_bytes(t);
    if constexpr (run_bytes(t) == 4) runs = of.load4(of_runs);
    if constexpr (run_bytes(t) == 2) runs = of.load2(of_runs);
    const int32_t at = t.block == 32 ? lane : lane / kTileQuarters;
    if constexpr (t.scale == quant::ScaleKind::kE8M0) {
      d = of.load1(d_offset(t) + at);
    } else {
      d = of.load2(d_offset(t) + 2 * at);
    }
    if constexpr (t.minima) dmin = of.load2(dmin_offset(t) + 2 * at);
  }

  /// Quad `quad` of sub-block `sub_block`: values, zero included, of four columns.
  [[nodiscard]] GEN_DEVICE uint32_t values(int32_t sub_block, int32_t quad) const {
    constexpr int32_t kFirst = first_bits(t);
    constexpr int32_t kAbove = bits_above(t);
    if constexpr (kFirst == 8) return codes[quad];
    uint32_t four = (codes[sub_block * kFirst + quad % kFirst] >> (quad / kFirst * kFirst)) &
                    ((1U << kFirst) - 1) * 0x01010101U;
    if constexpr (kAbove > 0) {
      const uint32_t word = upper[sub_block * kAbove + quad % kAbove];
      four |= ((word >> (quad / kAbove * kAbove)) & ((1U << kAbove) - 1) * 0x01010101U) << kFirst;
    }
    return looked_up<t>(four);
  }
  [[nodiscard]] GEN_DEVICE float scale() const { return stored_scale<t>(d); }
  [[nodiscard]] GEN_DEVICE float minimum_scale() const { return stored_scale<t>(dmin); }
  [[nodiscard]] GEN_DEVICE int32_t run_scale(int32_t run) const {
    return scale_of_run<t>(runs, run);
  }
  [[nodiscard]] GEN_DEVICE int32_t run_minimum(int32_t run) const {
    return minimum_of_run<t>(runs, run);
  }

  uint32_t codes[static_cast<size_t>(kCodes)] = {};
  uint32_t upper[static_cast<size_t>(kUpper > 0 ? kUpper : 1)] = {};
  uint32_t runs = 0;
  uint32_t d = 0;
  uint32_t dmin = 0;
};

/// Sum of the products of quads [first, first + 4 n) with 16 n bytes of x.
template <int32_t n, size_t kQuads>
GEN_DEVICE int32_t dot(const uint32_t (&values)[kQuads], int32_t first, const uint8_t* q) {
  int32_t sum = 0;
  GEN_UNROLL
  for (int32_t i = 0; i < n; ++i) {
    const device::UInt4 four = device::load16(q + 16 * i);
    sum = device::dp4a(values[first + 4 * i], static_cast<int32_t>(four.x), sum);
    sum = device::dp4a(values[first + 4 * i + 1], static_cast<int32_t>(four.y), sum);
    sum = device::dp4a(values[first + 4 * i + 2], static_cast<int32_t>(four.z), sum);
    sum = device::dp4a(values[first + 4 * i + 3], static_cast<int32_t>(four.w), sum);
  }
  return sum;
}

/// The terms of a step: [blocks of the step][outputs].
struct TermPlaces {
  Shared<Term> scaled;
  Shared<Term> minima;
  int32_t first;
  GEN_DEVICE int32_t at(int32_t block, int32_t output) const {
    return first + block * kTileOutputs + output;
  }
};

/// Terms of a step of types with blocks of 32: fma(d s, i) and, with minima, fma(m s, sum q_x).
template <Traits t>
GEN_DEVICE void terms_of_32(const QuantView& of, const LaneStep<t>& lane, int32_t step,
                            const TermPlaces& to) {
  const int32_t output = lane_of_warp() / kTileQuarters;
  const int32_t quarter = lane_of_warp() % kTileQuarters;
  const int32_t block = step * kTileQuarters + quarter;
  if (block >= of.n_blocks) return;
  uint32_t values[8];
  GEN_UNROLL
  for (int32_t quad = 0; quad < 8; ++quad) values[quad] = lane.values(0, quad);
  const uint8_t* const row = of.x.data;
  const device::UInt2 pair = device::load8(row + of.x.at.q8_pairs + static_cast<size_t>(block) * 8);
  const float x_scale = float_from_bits(pair.x);
  const auto x_sum = static_cast<int32_t>(pair.y);
  const int32_t sum =
      dot<2>(values, 0, row + of.x.at.q8 + static_cast<size_t>(block) * 32) - t.zero * x_sum;
  to.scaled[to.at(quarter, output)] = Term{lane.scale() * x_scale, static_cast<float>(sum)};
  if constexpr (t.minima) {
    to.minima[to.at(quarter, output)] =
        Term{lane.minimum_scale() * x_scale, static_cast<float>(x_sum)};
  }
}

/// Of types with blocks of 256: fma(d s, sum of runs) and, with minima, fma(-dmin s, sum of minima
/// times sums of q_x).
template <Traits t>
GEN_DEVICE void terms_of_256(const QuantView& of, const LaneStep<t>& lane, int32_t step,
                             const TermPlaces& to) {
  constexpr int32_t kRuns = lane_runs(t);
  const int32_t output = lane_of_warp() / kTileQuarters;
  const int32_t quarter = lane_of_warp() % kTileQuarters;
  uint32_t values[16];
  GEN_UNROLL
  for (int32_t quad = 0; quad < 16; ++quad) values[quad] = lane.values(quad / 8, quad % 8);
  const uint8_t* const row = of.x.data;
  const uint8_t* const q = row + of.x.at.q8k + static_cast<size_t>(step * 256 + quarter * 64);
  const device::UInt4 four = device::load16(
      row + of.x.at.q8k_sums + static_cast<size_t>(step * 16 + quarter * 4) * sizeof(int32_t));
  const int32_t sums[4] = {static_cast<int32_t>(four.x), static_cast<int32_t>(four.y),
                           static_cast<int32_t>(four.z), static_cast<int32_t>(four.w)};
  float runs[static_cast<size_t>(kRuns)];
  float scales[static_cast<size_t>(kRuns)];
  int32_t minima = 0;
  GEN_UNROLL
  for (int32_t run = 0; run < kRuns; ++run) {
    constexpr int32_t kVectors = t.run / 16;
    int32_t x_sum = 0;
    GEN_UNROLL
    for (int32_t i = 0; i < kVectors; ++i) x_sum += sums[run * kVectors + i];
    const int32_t sum = dot<kVectors>(values, run * kVectors * 4, q + run * t.run);
    runs[run] = static_cast<float>(sum - t.zero * x_sum);
    scales[run] = static_cast<float>(lane.run_scale(run));
    if constexpr (t.minima) minima += lane.run_minimum(run) * x_sum;
  }
  // Runs ascending: each quarter continues the sum of the one before.
  float scaled = 0.0F;
  GEN_UNROLL
  for (int32_t turn = 0; turn < kTileQuarters; ++turn) {
    GEN_UNROLL
    for (int32_t run = 0; run < kRuns; ++run) {
      scaled = multiply_add(runs[run], scales[run], scaled);
    }
    scaled = shuffle(scaled, static_cast<uint32_t>(output * kTileQuarters + turn));
  }
  const float x_scale =
      *reinterpret_cast<const float*>(row + of.x.at.q8k_scales + static_cast<size_t>(step) * 4);
  if constexpr (t.minima) {
    minima += shuffle_xor(minima, 1);
    minima += shuffle_xor(minima, 2);
    if (quarter == 1) {
      to.minima[to.at(0, output)] =
          Term{-(lane.minimum_scale() * x_scale), static_cast<float>(minima)};
    }
  }
  if (quarter == 0) to.scaled[to.at(0, output)] = Term{lane.scale() * x_scale, scaled};
}

/// The sum of output `thread` for the row, of the threads that have one. All threads of the block
/// take part. `steps(i, lane)` loads step i of the tile into what a lane has of it, for each warp
/// in the order of its steps. `begin` is called before x is read, after the first step.
template <Traits t, typename Steps, typename Begin>
GEN_DEVICE float sum_tile(const QuantView& of, const Steps& steps, const Shared<Term>& scaled,
                          const Shared<Term>& minima, const Begin& begin) {
  constexpr int32_t kBlocks = step_blocks(t);
  const int32_t warp = warp_of_block();
  float sum = 0.0F;
  LaneStep<t> next;
  if (warp < of.n_steps) steps(warp, &next);
  begin();
  for (int32_t first = 0, round = 0; first < of.n_steps; first += kQuantWarps, ++round) {
    const LaneStep<t> now = next;
    const int32_t step = first + warp;
    if (step + kQuantWarps < of.n_steps) steps(step + kQuantWarps, &next);
    const int32_t buffer = round % kTermBuffers * round_terms(t);
    if (step < of.n_steps) {
      const TermPlaces to = {scaled, minima, buffer + warp * kBlocks * kTileOutputs};
      if constexpr (t.block == 32) {
        terms_of_32<t>(of, now, step, to);
      } else {
        terms_of_256<t>(of, now, step, to);
      }
    }
    sync_threads();
    if (thread_x() < kTileOutputs) {
      const int32_t left = of.n_blocks - first * kBlocks;
      const int32_t blocks = left < kQuantWarps * kBlocks ? left : kQuantWarps * kBlocks;
      for (int32_t block = 0; block < blocks; ++block) {
        const int32_t at = buffer + block * kTileOutputs + thread_x();
        const Term term = scaled[at];
        sum = multiply_add(term.factor, term.value, sum);
        if constexpr (t.minima) {
          const Term minimum = minima[at];
          sum = multiply_add(minimum.factor, minimum.value, sum);
        }
      }
    }
  }
  return sum;
}

}  // namespace gen::cuda
