// SPDX-License-Identifier: Apache-2.0
// A step as a program that one kernel interprets: instructions in an order that satisfies their
// dependencies, each divided into tiles that thread blocks take in turn. An instruction begins when
// its dependencies are complete, as told by counters in device memory: each block with tiles of an
// instruction adds one to its counter when they are done. Counters are never reset: in its n-th run
// a program waits for n times the arrivals of one run.
//   Tile i of an instruction belongs to block (i + first_block) modulo the number of blocks.
// Written by compile.cu on the host, read by kernel.cu. Arguments of instructions: tasks.cuh.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gen::cuda {

constexpr int32_t kStepThreads = 256;
constexpr int32_t kStepWarps = kStepThreads / 32;
/// Blocks per multiprocessor: more would divide its registers and its shared memory.
constexpr int32_t kStepBlocks = 1;
constexpr int32_t kMaxWaits = 6;

/// Shared memory of a warp for weights in flight: slots of 512 bytes, 16 for each lane.
constexpr int32_t kSlotBytes = 512;
constexpr int32_t kSlots = 32;
/// The largest number of slots per unit of weights, and the slots in flight while one is used.
constexpr int32_t kUnitSlots = 4;
constexpr int32_t kSlotsAhead = kSlots - kUnitSlots;
constexpr size_t kRingBytes = size_t{kSlotBytes} * kSlots * kStepWarps;

enum class StepOp : int32_t {
  kElements,    // y = a + b, act(a) * b, act(a)
  kSelect,      // y = x[row]
  kPack,        // forms of a packed row
  kNorm,        // rms_norm
  kLinear,      // a segment of a product
  kAppend,      // rope_append: keys, values, then query heads
  kChunks,      // attention, a chunk and some heads
  kMerge,       // attention, the chunks of an element
  kBadLogit,    // best: the first NaN or +inf logit of a part, for rows with parameters
  kBestOfPart,  // best: of a part of a row
  kBest,        // best: of the parts
};

struct StepHead {
  StepOp op = StepOp::kElements;
  int32_t tiles = 0;
  int32_t first_block = 0;
  int32_t next_weights = 0;  // the next instruction that reads weights; past the end if none
  int32_t n_waits = 0;
  int32_t waits[kMaxWaits] = {};
  uint32_t arrivals[kMaxWaits] = {};  // of these instructions, in one run
};

/// The arguments of an instruction, by its operation.
struct alignas(16) StepTask {
  uint8_t bytes[384];
};

/// The argument of the kernel.
struct StepView {
  const StepHead* heads;
  const StepTask* tasks;
  uint32_t* arrived;  // [n]
  int32_t n;
  int32_t first_weights;  // the first instruction that reads weights
  uint32_t run;           // 1, 2, …
};

/// A range of device memory that is compared after the kernel and the graph.
struct StepSpan {
  uint8_t* at;
  size_t bytes;  // a multiple of 4
};

}  // namespace gen::cuda
