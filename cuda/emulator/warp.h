// SPDX-License-Identifier: Apache-2.0
// The emulator's side of cuda/device/warp.cuh: each lane leaves what it brings, the last to arrive
// works out what all get.
#pragma once

#include <cstdint>
#include <cstring>

#include "cuda/device/qualifiers.cuh"
#include "cuda/emulator/machine.h"

namespace gen::cuda::emulator {

struct ShuffleLane {
  uint64_t value;
  unsigned source;
  uint64_t result;
};
/// What each lane gets of the one it names.
void work_out_shuffle(void* const* payloads, unsigned lanes);

struct VoteLane {
  bool condition;
  unsigned result;
};
void work_out_vote(void* const* payloads, unsigned lanes);

inline void warp_operation(const char* what, unsigned mask, void* payload, WarpResult result,
                           Site site) {
  self().block->grid->warp_operation(what, mask, payload, result, site);
}

template <typename T>
T shuffle_from(const char* what, T value, unsigned source, unsigned mask, Site site) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  ShuffleLane lane{0, source, 0};
  std::memcpy(&lane.value, &value, sizeof value);
  warp_operation(what, mask, &lane, work_out_shuffle, site);
  std::memcpy(&value, &lane.result, sizeof value);
  return value;
}

}  // namespace gen::cuda::emulator

namespace gen::cuda::device {

inline void sync_warp(unsigned mask = kFullMask, const char* file = __builtin_FILE(),
                      int line = __builtin_LINE()) {
  emulator::warp_operation("sync_warp", mask, nullptr, nullptr, {file, line});
}

template <typename T>
T shuffle_down(T value, unsigned delta, unsigned mask = kFullMask,
               const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const unsigned lane = emulator::self().lane();
  const unsigned source = delta < 32 - lane ? lane + delta : lane;
  return emulator::shuffle_from("shuffle_down", value, source, mask, {file, line});
}
template <typename T>
T shuffle_up(T value, unsigned delta, unsigned mask = kFullMask,
             const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const unsigned lane = emulator::self().lane();
  const unsigned source = delta <= lane ? lane - delta : lane;
  return emulator::shuffle_from("shuffle_up", value, source, mask, {file, line});
}
template <typename T>
T shuffle_xor(T value, unsigned lanes, unsigned mask = kFullMask,
              const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const unsigned source = emulator::self().lane() ^ lanes;
  return emulator::shuffle_from("shuffle_xor", value, source, mask, {file, line});
}
template <typename T>
T shuffle(T value, unsigned lane, unsigned mask = kFullMask, const char* file = __builtin_FILE(),
          int line = __builtin_LINE()) {
  return emulator::shuffle_from("shuffle", value, lane, mask, {file, line});
}

inline unsigned ballot(bool condition, unsigned mask = kFullMask,
                       const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  emulator::VoteLane lane{condition, 0};
  emulator::warp_operation("a vote", mask, &lane, emulator::work_out_vote, {file, line});
  return lane.result;
}
inline bool any(bool condition, unsigned mask = kFullMask, const char* file = __builtin_FILE(),
                int line = __builtin_LINE()) {
  return ballot(condition, mask, file, line) != 0;
}
inline bool all(bool condition, unsigned mask = kFullMask, const char* file = __builtin_FILE(),
                int line = __builtin_LINE()) {
  return ballot(!condition, mask, file, line) == 0;
}

}  // namespace gen::cuda::device
