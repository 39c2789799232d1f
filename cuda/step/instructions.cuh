// SPDX-License-Identifier: Apache-2.0
// The work of a thread block for its tiles of each instruction, with the arithmetic and the bits of
// the operations (cuda/ops). Each instruction waits for its inputs once; before that it reads only
// arguments and weights, which no kernel writes.
#pragma once

#include <cstddef>

#include "cuda/device/memory.cuh"
#include "cuda/ops/linear/linear_floats.cuh"
#include "cuda/ops/linear/linear_quant.cuh"
#include "cuda/step/weight_stream.cuh"

namespace gen::cuda {

/// Pieces of 16 bytes of an instruction's arguments.
constexpr int32_t kTaskPieces = sizeof(StepTask) / sizeof(device::UInt4);

/// A block's turn at an instruction.
struct StepTurn {
  int32_t instruction;  // past the end if there is none
  StepOp op;
  int32_t tile;  // the first one
  int32_t tiles;
  int32_t n_waits;
  int32_t first_wait;
  int32_t wait;     // the counter that this thread polls, for the first n_waits threads
  uint32_t wanted;  // required arrivals
};

/// The next instruction, from i on, of which the block has a tile.
GEN_DEVICE StepTurn next_turn(const StepView& of, int32_t i) {
  StepTurn turn = {};
  for (; i < of.n; ++i) {
    const StepHead& head = of.heads[i];
    turn.tile = own_tile(head);
    turn.tiles = head.tiles;
    if (turn.tile >= turn.tiles) continue;
    turn.op = head.op;
    turn.n_waits = head.n_waits;
    turn.first_wait = head.waits[0];
    if (thread_x() < turn.n_waits) {
      turn.wait = head.waits[thread_x()];
      turn.wanted = of.run * head.arrivals[thread_x()];
    }
    break;
  }
  turn.instruction = i;
  return turn;
}

/// Dependencies and arguments of instructions. Arguments are prefetched to shared memory while the
/// previous instruction waits. All threads of a block must make the same calls.
class StepInputs {
 public:
  GEN_DEVICE StepInputs(const StepView& of, const Shared<device::UInt4>& slots,
                        const StepTurn& first)
      : of_(of), slots_(slots) {
    fetch(first);
    keep();
    sync_threads();
  }

  /// Must be called before the current turn; `next` is the one after it.
  GEN_DEVICE void fetch(const StepTurn& next) {
    slot_ = 1 - slot_;
    if (thread_x() < kTaskPieces && next.instruction < of_.n) {
      piece_ = device::load16(of_.tasks[next.instruction].bytes + thread_x() * 16);
    }
  }
  /// The arguments of the current turn.
  template <typename Task>
  GEN_DEVICE Task arguments() const {
    static_assert(sizeof(Task) <= sizeof(StepTask) && alignof(Task) <= 16);
    return slots_.subspan((1 - slot_) * kTaskPieces, static_cast<size_t>(kTaskPieces))
        .template as<Task>()[0];
  }
  /// The epilogue of the current product.
  GEN_DEVICE LinearEnd linear_end() const {
    static_assert(offsetof(LinearTask, end) % alignof(LinearEnd) == 0 &&
                  sizeof(LinearTask) <= sizeof(StepTask));
    constexpr size_t kFirst = offsetof(LinearTask, end) / sizeof(uint64_t);
    constexpr size_t kWords = sizeof(LinearEnd) / sizeof(uint64_t);
    return slots_.template as<uint64_t>()
        .subspan((1 - slot_) * kTaskPieces * 2 + static_cast<int32_t>(kFirst), kWords)
        .template as<LinearEnd>()[0];
  }
  /// Waits for the dependencies of the turn. Called once per turn.
  GEN_DEVICE void wait(const StepTurn& turn) {
    // Consecutive segments of a stack wait for the same instruction.
    const bool seen = turn.n_waits == 1 && turn.first_wait == seen_;
    if (!seen && thread_x() < turn.n_waits) {
      const uint32_t* const counter = of_.arrived + turn.wait;
      // Counters may wrap around.
      while (static_cast<int32_t>(device::load_acquire(counter) - turn.wanted) < 0) {
        device::spin_pause();
      }
    }
    seen_ = turn.n_waits == 1 ? turn.first_wait : -1;
    keep();
    sync_threads();
  }

 private:
  GEN_DEVICE void keep() {
    if (thread_x() < kTaskPieces) slots_[slot_ * kTaskPieces + thread_x()] = piece_;
  }

  const StepView& of_;
  const Shared<device::UInt4>& slots_;  // two
  device::UInt4 piece_ = {};            // of the next turn's arguments
  int32_t slot_ = 0;                    // of the next turn
  int32_t seen_ = -1;                   // the only dependency of the turn before
};

/// Calls use(i) for each tile of the block. A tile no longer uses shared memory when the next one
/// begins.
template <typename Use>
GEN_DEVICE void for_tiles(const StepTurn& turn, const Use& use) {
  for (int32_t tile = turn.tile; tile < turn.tiles; tile += tiles_apart()) {
    use(tile);
    if (tile + tiles_apart() < turn.tiles) sync_threads();
  }
}

GEN_DEVICE void run_elements(const ElementsStep& of, int32_t tile) {
  const int32_t d = tile * kStepColumns + thread_x();
  if (d >= of.cols) return;
  switch (of.op) {
    case ElementsOp::kAdd:
      of.y[d] = of.a[d] + of.b[d];
      break;
    case ElementsOp::kGated:
      of.y[d] = gated(of.activation, of.a[d / of.run], of.b[d]);
      break;
    case ElementsOp::kActivate:
      of.y[d] = activated(of.activation, of.a[d]);
      break;
  }
}

GEN_DEVICE void run_select(const SelectStep& of, int32_t tile) {
  const int32_t d = tile * kStepColumns + thread_x();
  if (d < of.x.cols) of.y[d] = of.x.data[of.row[0] * of.x.stride + d];
}

GEN_DEVICE void run_pack(const PackStep& of, int32_t tile) {
  const int32_t first = tile * kStepColumns;
  const auto cols = static_cast<int32_t>(of.y.cols);
  const int32_t end = cols - first < kStepColumns ? cols : first + kStepColumns;
  auto* const to = reinterpret_cast<float*>(of.y.data);
  const int32_t d = first + thread_x();
  if (of.x != to && d < end) to[d] = of.x[d];
  if (!has_forms(of.y)) return;
  quantise_columns(of.y, 0, first, end, [&](int32_t column) -> float { return of.x[column]; });
}

/// A lane's share of a step of quantised weights, from the ring.
template <quant::Traits t>
struct StreamedSteps {
  WeightStream& stream;
  GEN_DEVICE void operator()(int32_t, LaneStep<t>* to) const {
    stream.take_unit((step_bytes(t) + kSlotBytes - 1) / kSlotBytes);
    to->load(stream, lane_of_warp());
  }
};

/// The sums of a tile for its first matrix, and for the second if there are two, each in the thread
/// that has the output. The code shared by both matrices is instantiated once, since it is long.
template <size_t kIndex, typename Begin>
GEN_DEVICE void sum_quants(const LinearStep& of, WeightStream& stream, const Begin& begin,
                           float (&sums)[2]) {
  constexpr Traits t = quant::kTraits[kIndex];
  static_assert(kQuantThreads == kStepThreads && kTileOutputs == kStepWarps);
  static_assert(step_bytes(t) <= kUnitSlots * kSlotBytes);
  constexpr auto kTerms = static_cast<size_t>(round_terms(t) * kTermBuffers);
  const Shared<Term> scaled = dynamic_shared<Term>(of.terms_offset, kTerms);
  const Shared<Term> minima = dynamic_shared<Term>(
      of.terms_offset + (t.minima ? kTerms * sizeof(Term) : 0), t.minima ? kTerms : 0);
  const QuantView view = {of.x, of.n_steps, of.n_blocks};
  const StreamedSteps<t> steps = {stream};
  GEN_NO_UNROLL
  for (int32_t matrix = 0; matrix < of.weights.n_matrices; ++matrix) {
    if (matrix > 0) sync_threads();  // the last terms have been read
    const float sum = sum_tile<t>(view, steps, scaled, minima, begin);
    sums[1] = sum;
    if (matrix == 0) sums[0] = sum;
  }
}

/// The sum of an output, in all lanes.
template <typename Type>
GEN_DEVICE float sum_streamed(const LinearStep& of, WeightStream& stream) {
  constexpr int32_t kElements = Type::kElements;
  const auto cols = static_cast<int32_t>(of.x.cols);
  const auto* const x = reinterpret_cast<const float*>(of.x.data);
  float sums[1] = {};
  for (int32_t at = 0; at < of.weights.unit_bytes; at += kSlotBytes) {
    const int32_t first = (at / 16 + lane_of_warp()) * kElements;
    const device::UInt4 piece = stream.take16(first < cols);
    if (first >= cols) continue;
    float values[static_cast<size_t>(kElements)];
    load_elements<kElements>(x + first, cols - first, values);
    float w[static_cast<size_t>(kElements)];
    Type::decode(piece, w);
    sums[0] = add_products(values, w, sums[0]);
  }
  return sum_lanes(sums);
}

template <typename Type>
GEN_DEVICE void sum_floats(const LinearStep& of, WeightStream& stream, float (&sums)[2]) {
  GEN_NO_UNROLL
  for (int32_t matrix = 0; matrix < of.weights.n_matrices; ++matrix) {
    const float sum = sum_streamed<Type>(of, stream);
    sums[1] = sum;
    if (matrix == 0) sums[0] = sum;
  }
}

template <size_t kIndex = 0, typename Begin>
GEN_DEVICE void sum_quants_of(const LinearStep& of, WeightStream& stream, const Begin& begin,
                              float (&sums)[2]) {
  if constexpr (kIndex < sizeof(quant::kTraits) / sizeof(quant::kTraits[0])) {
    if constexpr (has_tiles(quant::kTraits[kIndex])) {
      if (of.type == quant::kTraits[kIndex].type) {
        return sum_quants<kIndex>(of, stream, begin, sums);
      }
    }
    sum_quants_of<kIndex + 1>(of, stream, begin, sums);
  }
}

/// With quantised weights a thread has an output of a tile; with float weights a warp has one.
GEN_DEVICE void run_linear(const LinearStep& of, const StepTurn& turn, WeightStream& stream,
                           StepInputs& inputs) {
  const bool floats = of.type == DType::kF32 || of.type == DType::kF16 || of.type == DType::kBF16;
  const int32_t own = floats ? warp_of_block() : thread_x();
  const bool ends = floats ? lane_of_warp() == 0 : thread_x() < kTileOutputs;
  bool begun = false;
  const auto begin = [&] {
    if (!begun) inputs.wait(turn);
    begun = true;
  };
  if (floats) begin();
  for (int32_t tile = turn.tile; tile < turn.tiles; tile += tiles_apart()) {
    const int32_t output = tile * kTileOutputs + own;
    const bool has = output < of.outputs;
    float sums[2] = {};
    if (!floats) {
      sum_quants_of(of, stream, begin, sums);
    } else if (!has) {
      break;
    } else if (of.type == DType::kF32) {
      sum_floats<WeightF32>(of, stream, sums);
    } else if (of.type == DType::kF16) {
      sum_floats<WeightF16>(of, stream, sums);
    } else {
      sum_floats<WeightBF16>(of, stream, sums);
    }
    if (ends && has) finish_output(inputs.linear_end(), 0, output, sums[0], sums[1]);
    if (!floats && tile + tiles_apart() < turn.tiles) sync_threads();
  }
}

/// Tiles 0 and 1 are keys and values if there are any; the others have a query head per warp.
GEN_DEVICE void run_append(const AppendView& of, int32_t tile) {
  const int32_t sides = of.k.data != nullptr ? 2 : 0;
  if (tile < sides) {
    append_side(of, 0, tile == 0);
  } else {
    rope_query(of, 0, (tile - sides) * kStepWarps + warp_of_block());
  }
}

GEN_DEVICE void run_chunks(const ChunksStep& of, int32_t tile) {
  attention_chunk(of.view, 0, tile % of.view.slots, of.batch, tile / of.view.slots);
}
GEN_DEVICE void run_merge(const SplitView& of, int32_t tile) {
  RowWalk walk;
  int32_t s = 0;
  if (!begin_walk(of.of, 0, &walk, &s)) return;
  const int32_t i = tile * kStepColumns + thread_x();
  if (i >= of.of.n_heads * of.of.v_dim) return;
  merge_element<8>(of, 0, i / of.of.v_dim, walk.n_chunks(), i % of.of.v_dim);
}

}  // namespace gen::cuda
