// SPDX-License-Identifier: Apache-2.0
// Kernels that use every part of cuda/device, for the tests of the layer itself.
#pragma once

#include <cstdint>

#include "cuda/device/runtime.h"

namespace gen::test {

using cuda::device::Error;
using cuda::device::Stream;

/// out[block] = the sum of in[n] over the block's 256 elements, by a tree in shared memory.
Error block_sums(const float* in, float* out, int n, Stream stream);
/// The same by shuffles, `down` or xor, within warps and then between them.
Error warp_sums(const float* in, float* out, int n, bool down, Stream stream);
/// out[i] = in[0] + … + in[i] of n <= 1024.
Error scan(const int32_t* in, int32_t* out, int n, Stream stream);
/// All out[i] = the sum over in[n]; `part` has one element a block. One cooperative kernel.
Error sum_everywhere(const float* in, float* part, float* out, int n, int blocks, Stream stream);
/// Blocks hand a counter from one to the next, waiting for each other.
Error relay(uint32_t* counter, uint32_t* order, int blocks, Stream stream);
/// counts[v] += how often v is in in[n]; most[0] = the largest.
Error histogram(const uint32_t* in, int n, int32_t* counts, int32_t* most, Stream stream);
/// out[i] = the lanes of i's warp whose value is above 0.
Error votes(const int32_t* in, uint32_t* out, int n, Stream stream);

enum class Product { kF16, kBf16, kF16K8, kS8 };
/// d[16][8] = a[16][k] b[8][k] of values of 2 bytes, k = 16 (8), or 1 byte, k = 32. b is given with
/// k along rows; `transposed` gives 16-bit b as [k][8] and has it turned when it is loaded.
Error product(Product what, const void* a, const void* b, void* d, bool transposed, Stream stream);
/// out[i] = in[i] + 1 of n = 16 tiles of 256, which come through two buffers of shared memory.
Error pipeline(const float* in, float* out, Stream stream);
/// to[i] = from[i] + add. Programmatic launches wait for their predecessor, or do not, or begin to
/// fetch before they do.
enum class Start { kPlain, kProgrammatic, kProgrammaticWithoutWait, kProgrammaticFetchingAhead };
Error add(const int32_t* from, int32_t* to, int n, int32_t add, Start start, Stream stream);
/// places[block] = how many blocks had been there.
Error arrivals(uint32_t* counter, uint32_t* places, int blocks, Stream stream);
/// out[0 … 3]: dp4a signed and unsigned, float16 and bfloat16 bits of x.
Error arithmetic(int32_t a, int32_t b, float x, uint32_t* out, Stream stream);

}  // namespace gen::test
