// SPDX-License-Identifier: Apache-2.0
// The emulator's side of cuda/device/mma.cuh. 16-bit products are summed in float64 and rounded
// once; the hardware's own roundings are not known.
#pragma once

#include <cstdint>

#include "cuda/emulator/shared.h"
#include "cuda/emulator/warp.h"

namespace gen::cuda::emulator {

struct MmaLane {
  void* d;
  const uint32_t* a;
  const uint32_t* b;
};
void work_out_mma_f16_k8(void* const* payloads, unsigned lanes);
void work_out_mma_f16(void* const* payloads, unsigned lanes);
void work_out_mma_bf16(void* const* payloads, unsigned lanes);
void work_out_mma_s8(void* const* payloads, unsigned lanes);
void work_out_mma_s8_k16(void* const* payloads, unsigned lanes);

inline void mma(void* d, const uint32_t* a, const uint32_t* b, WarpResult result, Site site) {
  MmaLane lane{d, a, b};
  warp_operation("mma", device::kFullMask, &lane, result, site);
}

struct MatrixLane {
  uint32_t* r;
  size_t row;  // its place in shared memory
  const char* name;
  Thread* thread;
  bool transposed;
};
void work_out_matrices4(void* const* payloads, unsigned lanes);
void work_out_matrices2(void* const* payloads, unsigned lanes);

template <size_t kCount, typename T, typename Index>
void load_matrices(uint32_t (&r)[kCount], const device::Shared<T>& from, Index i, bool transposed,
                   Site site) {
  Thread& thread = self();
  MatrixLane lane{r, 0, from.name(), &thread, transposed};
  if (thread.lane() < kCount * 8) {
    lane.row = from.place(i, 16);
    if (lane.row % 16 != 0) fail("misaligned: a matrix row at byte %zu of %s", lane.row, lane.name);
  }
  warp_operation("load_matrices", device::kFullMask, &lane,
                 kCount == 4 ? work_out_matrices4 : work_out_matrices2, site);
}

}  // namespace gen::cuda::emulator

namespace gen::cuda::device {

inline void mma_f16_k8(float (&d)[4], const uint32_t (&a)[2], uint32_t b,
                       const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  emulator::mma(d, a, &b, emulator::work_out_mma_f16_k8, {file, line});
}
inline void mma_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                    const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  emulator::mma(d, a, b, emulator::work_out_mma_f16, {file, line});
}
inline void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                     const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (GEN_CUDA_ARCH < 800) emulator::fail("mma_bf16 below sm_80");
  emulator::mma(d, a, b, emulator::work_out_mma_bf16, {file, line});
}
inline void mma_s8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], int32_t c,
                   const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  for (int32_t& one : d) one = c;
  emulator::mma(d, a, b, emulator::work_out_mma_s8, {file, line});
}
inline void mma_s8_k16(int32_t (&d)[4], const uint32_t (&a)[2], uint32_t b, int32_t c,
                       const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  for (int32_t& one : d) one = c;
  emulator::mma(d, a, &b, emulator::work_out_mma_s8_k16, {file, line});
}

template <size_t kCount, typename T, typename Index>
void load_matrices(uint32_t (&r)[kCount], const Shared<T>& from, Index i,
                   const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  emulator::load_matrices(r, from, i, false, {file, line});
}
template <size_t kCount, typename T, typename Index>
void load_matrices_transposed(uint32_t (&r)[kCount], const Shared<T>& from, Index i,
                              const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  emulator::load_matrices(r, from, i, true, {file, line});
}

}  // namespace gen::cuda::device
