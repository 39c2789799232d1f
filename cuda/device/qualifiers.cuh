// SPDX-License-Identifier: Apache-2.0
// How kernels and device functions are declared, for nvcc and for the emulator's host compiler.
//   GEN_KERNEL GEN_LAUNCH_BOUNDS(256, 2) name(parameters) { … }   void, launched by launch()
//   GEN_DEVICE float name(parameters) { … }                       inline; also of templates
//   GEN_TABLE float kName[] = { … };                              constants read on the device
// constexpr functions of src/ may be called on the device (nvcc --expt-relaxed-constexpr).
// GEN_CUDA_ARCH is the architecture compiled for, 750 … 1200; 0 on the host side.
#pragma once

#ifdef GEN_CUDA_EMULATED
#define GEN_KERNEL [[maybe_unused]] static void
#define GEN_LAUNCH_BOUNDS(...)
#define GEN_DEVICE [[maybe_unused]] inline
#define GEN_HOST_DEVICE [[maybe_unused]] inline
#define GEN_TABLE [[maybe_unused]] static const
#define GEN_UNROLL
#define GEN_NO_UNROLL
#define GEN_RESTRICT __restrict__
#ifndef GEN_CUDA_ARCH
#define GEN_CUDA_ARCH 900
#endif
#else
#define GEN_KERNEL static __global__ void
#define GEN_LAUNCH_BOUNDS(...) __launch_bounds__(__VA_ARGS__)
#define GEN_DEVICE __device__ __forceinline__
#define GEN_HOST_DEVICE __host__ __device__ __forceinline__
#define GEN_TABLE static __device__ const
#define GEN_UNROLL _Pragma("unroll")
#define GEN_NO_UNROLL _Pragma("unroll 1")
#define GEN_RESTRICT __restrict__
#ifdef __CUDA_ARCH__
#define GEN_CUDA_ARCH __CUDA_ARCH__
#else
#define GEN_CUDA_ARCH 0
#endif
#endif

namespace gen::cuda::device {

/// All lanes of a warp.
inline constexpr unsigned kFullMask = 0xFFFFFFFFu;

}  // namespace gen::cuda::device
