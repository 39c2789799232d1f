// SPDX-License-Identifier: Apache-2.0
// The emulator's side of cuda/device/async_copy.cuh: a copy is noted, and lands when it is waited
// for; until then its place reads as uninitialised.
#pragma once

#include "cuda/device/memory.cuh"
#include "cuda/emulator/shared.h"

namespace gen::cuda::emulator {

void begin_copy(size_t to, const void* from, size_t bytes, const char* name);
void land_copies(unsigned pending);

template <typename T, typename Index>
void copy_async(const device::Shared<T>& to, Index i, const void* from, size_t bytes, bool valid) {
  begin_copy(to.place(i, bytes), valid ? from : nullptr, bytes, to.name());
}

}  // namespace gen::cuda::emulator

namespace gen::cuda::device {

template <typename T, typename Index>
void copy_async16(const Shared<T>& to, Index i, const void* from, bool valid = true) {
  emulator::copy_async(to, i, from, 16, valid);
}
template <typename T, typename Index>
void copy_async16_again(const Shared<T>& to, Index i, const void* from, bool valid = true) {
  emulator::copy_async(to, i, from, 16, valid);
}
template <typename T, typename Index>
void copy_async4(const Shared<T>& to, Index i, const void* from, bool valid = true) {
  emulator::copy_async(to, i, from, 4, valid);
}
inline void commit_copies() { ++emulator::self().copy_group; }
template <int kPending>
void wait_copies() {
  emulator::land_copies(kPending);
}

}  // namespace gen::cuda::device
