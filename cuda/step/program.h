// SPDX-License-Identifier: Apache-2.0
// A step as one kernel interprets it: instructions in an order that dependencies allow, each cut
// into tiles, which blocks of threads take in turn. An instruction begins when those that it waits
// for have ended, which counters in device memory tell: each block that has tiles of an instruction
// adds one to its counter when they are done. Counters are never reset: in its n-th run a program
// waits for n times the arrivals of one.
//   tile i of an instruction belongs to block (i + first_block) modulo the number of blocks
// Written by compile.cu on the host, read by kernel.cu. Arguments of instructions: tasks.cuh.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gen::cuda {

constexpr int32_t kStepThreads = 256;
constexpr int32_t kStepWarps = kStepThreads / 32;
/// Blocks of a multiprocessor: more would divide its registers and its shared memory.
constexpr int32_t kStepBlocks = 1;
constexpr int32_t kMaxWaits = 6;

/// Shared memory of a warp for weights that are under way: slots of 512 bytes, 16 of each
/// lane.
constexpr int32_t kSlotBytes = 512;
constexpr int32_t kSlots = 32;
/// Slots of one unit of weights at most, and those that are under way while one is used.
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
  kBadLogit,    // best: the first logit that is no number, of a part of a row with edits
  kBestOfPart,  // best: of a part of a row
  kBest,        // best: of the parts
};

struct StepHead {
  StepOp op = StepOp::kElements;
  int32_t tiles = 0;
  int32_t first_block = 0;
  int32_t next_weights = 0;  // the next instruction that reads weights; behind the last, if none
  int32_t n_waits = 0;
  int32_t waits[kMaxWaits] = {};
  uint32_t arrivals[kMaxWaits] = {};  // of these instructions, in one run
};

/// The arguments of an instruction; which, its operation says.
struct alignas(16) StepTask {
  uint8_t bytes[384];
};

/// What the kernel gets.
struct StepView {
  const StepHead* heads;
  const StepTask* tasks;
  uint32_t* arrived;  // [n]
  int32_t n;
  int32_t first_weights;  // the first instruction that reads weights
  uint32_t run;           // 1, 2, …
};

/// Bytes of device memory that were the same after two ways of running a step.
struct StepSpan {
  uint8_t* at;
  size_t bytes;  // a multiple of 4
};

}  // namespace gen::cuda
