// SPDX-License-Identifier: Apache-2.0
// What the lanes of a warp get of each other, and copies into shared memory.
#include <algorithm>
#include <cstring>

#include "cuda/device/async_copy.cuh"
#include "cuda/device/math.cuh"
#include "cuda/device/mma.cuh"
#include "cuda/device/warp.cuh"

namespace gen::cuda::emulator {
namespace {

template <typename Lane>
Lane& lane_of(void* const* payloads, unsigned lane) {
  return *static_cast<Lane*>(payloads[lane]);
}

void need_all(const char* what, unsigned lanes) {
  if (lanes != device::kFullMask) fail("%s without all lanes: %08x take part", what, lanes);
}

/// d += a * b, 16 x 8 x kDepth, of kPerWord values to a register; value(bits) gives one.
template <typename D, typename Sum, int kDepth, int kPerWord, typename Value>
void work_out_mma(void* const* payloads, unsigned lanes, Value value) {
  need_all("mma", lanes);
  // Registers hold a run of kPerWord along k; the upper half of k is in the later registers.
  const int run = 4 * kPerWord;  // of k, in the registers of one half
  const auto bits = [](uint32_t word, int k) { return word >> (k % kPerWord * (32 / kPerWord)); };
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      auto& out = lane_of<MmaLane>(payloads, static_cast<unsigned>(row % 8 * 4 + column / 2));
      D* const d = static_cast<D*>(out.d) + row / 8 * 2 + column % 2;
      Sum sum = static_cast<Sum>(*d);
      for (int k = 0; k < kDepth; ++k) {
        const int t = k % run / kPerWord;
        const auto& a = lane_of<MmaLane>(payloads, static_cast<unsigned>(row % 8 * 4 + t));
        const auto& b = lane_of<MmaLane>(payloads, static_cast<unsigned>(column * 4 + t));
        sum += value(bits(a.a[k / run * 2 + row / 8], k)) * value(bits(b.b[k / run], k));
      }
      *d = static_cast<D>(sum);
    }
  }
}

double f16_value(uint32_t bits) { return device::f16_to_f32(static_cast<uint16_t>(bits)); }
double bf16_value(uint32_t bits) { return device::bf16_to_f32(static_cast<uint16_t>(bits)); }
int64_t s8_value(uint32_t bits) { return static_cast<int8_t>(bits); }

void work_out_matrices(void* const* payloads, unsigned lanes, unsigned count) {
  need_all("load_matrices", lanes);
  for (unsigned lane = 0; lane < 32; ++lane) {
    const auto& mine = lane_of<MatrixLane>(payloads, lane);
    for (unsigned matrix = 0; matrix < count; ++matrix) {
      uint16_t values[2];
      for (unsigned i = 0; i < 2; ++i) {
        const unsigned row = mine.transposed ? lane % 4 * 2 + i : lane / 4;
        const unsigned column = mine.transposed ? lane / 4 : lane % 4 * 2 + i;
        const auto& from = lane_of<MatrixLane>(payloads, matrix * 8 + row);
        mine.thread->block->shared.read(*mine.thread, from.row + column * 2, &values[i], 2,
                                        from.name);
      }
      mine.r[matrix] = values[0] | static_cast<uint32_t>(values[1]) << 16;
    }
  }
}

}  // namespace

void work_out_shuffle(void* const* payloads, unsigned lanes) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    auto& mine = lane_of<ShuffleLane>(payloads, lane);
    if (mine.source >= 32 || (lanes >> mine.source & 1) == 0) {
      fail("divergent warp: lane %u reads lane %u, which takes no part in the shuffle", lane,
           mine.source);
    }
    mine.result = lane_of<ShuffleLane>(payloads, mine.source).value;
  }
}

void work_out_vote(void* const* payloads, unsigned lanes) {
  unsigned votes = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((lanes >> lane & 1) != 0 && lane_of<VoteLane>(payloads, lane).condition)
      votes |= 1u << lane;
  }
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((lanes >> lane & 1) != 0) lane_of<VoteLane>(payloads, lane).result = votes;
  }
}

void work_out_mma_f16_k8(void* const* payloads, unsigned lanes) {
  work_out_mma<float, double, 8, 2>(payloads, lanes, f16_value);
}
void work_out_mma_f16(void* const* payloads, unsigned lanes) {
  work_out_mma<float, double, 16, 2>(payloads, lanes, f16_value);
}
void work_out_mma_bf16(void* const* payloads, unsigned lanes) {
  work_out_mma<float, double, 16, 2>(payloads, lanes, bf16_value);
}
void work_out_mma_s8(void* const* payloads, unsigned lanes) {
  work_out_mma<int32_t, int64_t, 32, 4>(payloads, lanes, s8_value);
}
void work_out_mma_s8_k16(void* const* payloads, unsigned lanes) {
  work_out_mma<int32_t, int64_t, 16, 4>(payloads, lanes, s8_value);
}
void work_out_matrices4(void* const* payloads, unsigned lanes) {
  work_out_matrices(payloads, lanes, 4);
}
void work_out_matrices2(void* const* payloads, unsigned lanes) {
  work_out_matrices(payloads, lanes, 2);
}

void begin_copy(size_t to, const void* from, size_t bytes, const char* name) {
  if (to % bytes != 0) fail("misaligned: copy of %zu bytes to byte %zu of %s", bytes, to, name);
  if (from != nullptr) {
    check_access(from, bytes);
    count_read(from, bytes);
  }
  Thread& thread = self();
  thread.block->shared.begin_copy(thread, to, bytes, name);
  PendingCopy copy = {to, from, bytes, thread.copy_group};
  if (from != nullptr && !thread.block->grid->predecessor_done()) {
    copy.early = true;
    std::memcpy(copy.bytes_then, from, bytes);
  }
  thread.copies.push_back(copy);
}

void land_copies(unsigned pending) {
  Thread& thread = self();
  const bool finds = finds_unwritten();
  const auto stays = [&](const PendingCopy& copy) {
    return copy.group + pending >= thread.copy_group;
  };
  for (const PendingCopy& copy : thread.copies) {
    if (stays(copy)) continue;
    thread.block->shared.end_copy(copy.to, copy.early ? copy.bytes_then : copy.from, copy.bytes,
                                  finds ? copy.from : nullptr);
  }
  std::erase_if(thread.copies, [&](const PendingCopy& copy) { return !stays(copy); });
}

}  // namespace gen::cuda::emulator
