// SPDX-License-Identifier: Apache-2.0
// launch(kernel, config, arguments…) launches a kernel from host code, because <<<>>> is not C++.
// Arguments are converted to the kernel's parameters and copied at the call. Kernels with more
// shared memory than the default limit are opted in.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <tuple>
#include <utility>

#include "cuda/device/dim3.h"
#include "cuda/device/qualifiers.cuh"
#include "cuda/device/runtime.h"
#ifdef GEN_CUDA_EMULATED
#include "cuda/emulator/launch.h"
#endif

namespace gen::cuda::device {

struct LaunchConfig {
  /// For messages and profiles.
  const char* name = "kernel";
  Dim3 grid = {};
  Dim3 block = {};
  size_t dynamic_shared_bytes = 0;
  Stream stream = nullptr;
  /// All blocks are resident at once, so sync_grid() may be used.
  bool cooperative = false;
  /// May start while its predecessor on the stream still runs (sm_90 on): the kernel calls
  /// wait_for_predecessor() before it touches anything the other writes or reads.
  bool programmatic = false;
};

#ifndef GEN_CUDA_EMULATED
Error launch_kernel(const void* kernel, const LaunchConfig& config, void** arguments) noexcept;
Error occupancy(const void* kernel, int threads, size_t dynamic_shared_bytes, int* out) noexcept;
Error compiled_for(const void* kernel, int* out) noexcept;
#else
Error launch_emulated(emulator::KernelBody body, const LaunchConfig& config) noexcept;
Error emulated_occupancy(int threads, size_t dynamic_shared_bytes, int* out) noexcept;
int emulated_compiled_for() noexcept;
#endif

template <typename... Parameters, typename... Arguments>
Error launch(void (*kernel)(Parameters...), const LaunchConfig& config, Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "one argument for each parameter");
  std::tuple<Parameters...> values(static_cast<Parameters>(std::forward<Arguments>(arguments))...);
#ifdef GEN_CUDA_EMULATED
  try {
    return launch_emulated([kernel, values] { std::apply(kernel, values); }, config);
  } catch (const std::bad_alloc&) {  // of the emulator itself
    return kOutOfMemory;
  }
#else
  return std::apply(
      [&](Parameters&... each) {
        std::array<void*, sizeof...(Parameters) + 1> pointers{
            const_cast<void*>(static_cast<const void*>(&each))..., nullptr};
        return launch_kernel(reinterpret_cast<const void*>(kernel), config, pointers.data());
      },
      values);
#endif
}

/// The number of resident blocks of a kernel per multiprocessor.
template <typename... Parameters>
Error blocks_per_sm(void (*kernel)(Parameters...), int threads, size_t dynamic_shared_bytes,
                    int* out) {
#ifdef GEN_CUDA_EMULATED
  static_cast<void>(kernel);
  return emulated_occupancy(threads, dynamic_shared_bytes, out);
#else
  return occupancy(reinterpret_cast<const void*>(kernel), threads, dynamic_shared_bytes, out);
#endif
}

/// The architecture of the kernel code that the current device runs, 75 … 120. It is below the
/// device's compute capability if the driver compiled PTX of an older one.
template <typename... Parameters>
Error compiled_for(void (*kernel)(Parameters...), int* out) {
#ifdef GEN_CUDA_EMULATED
  static_cast<void>(kernel);
  *out = emulated_compiled_for();
  return kSuccess;
#else
  return compiled_for(reinterpret_cast<const void*>(kernel), out);
#endif
}

}  // namespace gen::cuda::device
