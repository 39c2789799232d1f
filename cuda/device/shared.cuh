// SPDX-License-Identifier: Apache-2.0
// A block's shared memory.
//   GEN_SHARED(float, partial, 32);                      static, 16-byte aligned
//   const auto tile = dynamic_shared<uint16_t>(0, n);    from a byte of the dynamic part
//   partial[lane] = x;  float y = partial[0];  tile.as<UInt4>()[i]  tile.subspan(first, count)
// Under nvcc these are plain arrays. The emulator poisons them when the block starts and detects
// accesses out of bounds and uninitialised reads. There an element is a proxy that must be read or
// written at once, so `auto x = partial[0]` and references to elements do not compile. T is
// trivial.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/device/qualifiers.cuh"
#ifdef GEN_CUDA_EMULATED
#include "cuda/emulator/shared.h"
#else

#define GEN_SHARED(type, name, count)                      \
  __shared__ alignas(16) type gen_storage_##name[(count)]; \
  const ::gen::cuda::device::Shared<type> name(gen_storage_##name, (count))

namespace gen::cuda::device {

template <typename T>
class Shared {
 public:
  __device__ Shared(T* data, size_t) : data_(data) {}
  template <typename Index>
  GEN_DEVICE T& operator[](Index i) const {
    return data_[i];
  }
  /// The same bytes as elements of another type; their address must be aligned for it.
  template <typename U>
  GEN_DEVICE Shared<U> as() const {
    return Shared<U>(reinterpret_cast<U*>(data_), 0);
  }
  template <typename Index>
  GEN_DEVICE Shared subspan(Index first, size_t count) const {
    return Shared(data_ + first, count);
  }
  /// The address, for instructions; used by the device layer only.
  template <typename Index>
  GEN_DEVICE uint32_t address(Index i) const {
    return static_cast<uint32_t>(__cvta_generic_to_shared(data_ + i));
  }

 private:
  T* data_;
};

/// `count` elements that begin `offset` bytes into the dynamic part.
template <typename T>
GEN_DEVICE Shared<T> dynamic_shared(size_t offset, size_t count) {
  extern __shared__ __align__(128) unsigned char gen_dynamic_shared[];
  return Shared<T>(reinterpret_cast<T*>(gen_dynamic_shared + offset), count);
}

}  // namespace gen::cuda::device
#endif
