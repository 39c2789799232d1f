// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies of all weights of a warp in a run of a program, in the order of use, to its
// ring in shared memory. Weights are requested before the inputs of an instruction are ready, so
// memory is busy while blocks wait for one another. Lane l copies bytes [16 l, 16 l + 16) of each
// 512 of a unit, one group of copies per slot. A unit begins in a new slot. Slots in use are
// refilled when the next ones are taken.
#pragma once

#include "cuda/device/async_copy.cuh"
#include "cuda/ops/device.cuh"
#include "cuda/step/tasks.cuh"

namespace gen::cuda {

/// The arguments of an instruction, or their common head.
template <typename T>
GEN_DEVICE const T& task_of(const StepView& of, int32_t i) {
  static_assert(sizeof(T) <= sizeof(StepTask));
  return *reinterpret_cast<const T*>(of.tasks[i].bytes);
}

/// The first tile of an instruction in this block; at least head.tiles if it has none.
GEN_DEVICE int32_t own_tile(const StepHead& head) {
  const int32_t after = block_x() - head.first_block;
  return after < 0 ? after + static_cast<int32_t>(device::grid_size().x) : after;
}
GEN_DEVICE int32_t tiles_apart() { return static_cast<int32_t>(device::grid_size().x); }

class WeightStream {
 public:
  /// `units` has a place for each warp.
  GEN_DEVICE WeightStream(const StepView& of, const Shared<WeightUnits>& units)
      : of_(of),
        units_(units),
        ring_(dynamic_shared<uint8_t>(static_cast<size_t>(warp_of_block()) * kSlotBytes * kSlots,
                                      static_cast<size_t>(kSlotBytes * kSlots))) {
    seek(of.first_weights);
    settle();
    for (int32_t i = 0; i < kSlotsAhead; ++i) issue();
  }

  /// The lane's 16 bytes of the next slot, if the unit has any for it.
  GEN_DEVICE device::UInt4 take16(bool any) {
    issue();
    device::wait_copies<kSlotsAhead>();
    const int32_t at = slot_ * kSlotBytes + lane_of_warp() * 16;
    slot_ = (slot_ + 1) % kSlots;
    device::UInt4 piece = {};
    if (any) piece = ring_.as<device::UInt4>()[at / 16];
    return piece;
  }

  /// A whole unit of `slots` slots, for all lanes; valid until the next is taken.
  GEN_DEVICE void take_unit(int32_t slots) {
    sync_warp();  // all have read the slots that are refilled now
    for (int32_t i = 0; i < slots; ++i) issue();
    device::wait_copies<kSlotsAhead>();
    sync_warp();
    unit_ = slot_ * kSlotBytes;
    slot_ = (slot_ + slots) % kSlots;
  }
  // Bytes of the unit.
  [[nodiscard]] GEN_DEVICE device::UInt4 load16(int32_t i) const {
    return ring_.as<device::UInt4>()[place(i) / 16];
  }
  [[nodiscard]] GEN_DEVICE device::UInt2 load8(int32_t i) const {
    return ring_.as<device::UInt2>()[place(i) / 8];
  }
  [[nodiscard]] GEN_DEVICE uint32_t load4(int32_t i) const {
    return ring_.as<uint32_t>()[place(i) / 4];
  }
  [[nodiscard]] GEN_DEVICE uint32_t load2(int32_t i) const {
    const uint16_t value = ring_.as<uint16_t>()[place(i) / 2];
    return value;
  }
  [[nodiscard]] GEN_DEVICE uint32_t load1(int32_t i) const {
    const uint8_t value = ring_[place(i)];
    return value;
  }

 private:
  [[nodiscard]] GEN_DEVICE int32_t place(int32_t i) const {
    return (unit_ + i) % (kSlotBytes * kSlots);
  }

  /// Starts to fill a slot with the next weights, or with nothing after the last.
  GEN_DEVICE void issue() {
    if (at_ != nullptr) {
      const int32_t first = lane_of_warp() * 16;
      if (first < left_) {
        device::copy_async16(ring_, next_slot_ * kSlotBytes + first, at_ + first);
      }
      at_ += kSlotBytes;
      left_ -= kSlotBytes;
      if (left_ <= 0) next_unit();
    }
    device::commit_copies();
    next_slot_ = (next_slot_ + 1) % kSlots;
  }

  GEN_DEVICE void next_unit() {
    index_ += kStepWarps;
    settle();
  }
  /// Moves to the next instruction that reads weights and of which the block has a tile.
  GEN_DEVICE void seek(int32_t instruction) {
    index_ = warp_of_block();
    matrix_ = 0;
    for (; instruction < of_.n; instruction = of_.heads[instruction].next_weights) {
      tile_ = own_tile(of_.heads[instruction]);
      tiles_ = of_.heads[instruction].tiles;
      if (tile_ >= tiles_) continue;
      sync_warp();  // all have read the shared data that changes now
      if (lane_of_warp() == 0) {
        units_[warp_of_block()] = task_of<LinearStep>(of_, instruction).weights;
      }
      sync_warp();
      break;
    }
    instruction_ = instruction;
  }
  /// Moves to the next existing unit: a warp may have none of a tile's matrix.
  GEN_DEVICE void settle() {
    while (instruction_ < of_.n) {
      const WeightUnits weights = units_[warp_of_block()];
      if (point(weights)) return;
      index_ = warp_of_block();
      if (++matrix_ < weights.n_matrices) continue;
      matrix_ = 0;
      tile_ += tiles_apart();
      if (tile_ >= tiles_) seek(of_.heads[instruction_].next_weights);
    }
    at_ = nullptr;
  }
  /// Whether there is such a unit.
  GEN_DEVICE bool point(const WeightUnits& weights) {
    const int32_t units = tile_ + 1 == tiles_ ? weights.last_units : weights.units;
    if (index_ >= units) return false;
    at_ = (matrix_ == 0 ? weights.first : weights.second) +
          static_cast<size_t>(tile_) * weights.tile_bytes +
          static_cast<size_t>(index_) * static_cast<size_t>(weights.unit_bytes);
    left_ = weights.unit_bytes;
    return true;
  }

  const StepView& of_;
  const Shared<WeightUnits>& units_;  // of the instruction of the next weights
  const Shared<uint8_t> ring_;
  const uint8_t* at_ = nullptr;  // the next weights; the unit has `left_` bytes more
  int32_t left_ = 0;
  int32_t instruction_ = 0;
  int32_t tile_ = 0;
  int32_t tiles_ = 0;
  int32_t matrix_ = 0;
  int32_t index_ = 0;      // of the unit in the tile
  int32_t next_slot_ = 0;  // that is filled
  int32_t slot_ = 0;       // that is taken
  int32_t unit_ = 0;       // where the unit taken begins
};

}  // namespace gen::cuda
