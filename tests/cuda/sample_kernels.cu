// SPDX-License-Identifier: Apache-2.0
#include "sample_kernels.h"

#include "cuda/device/async_copy.cuh"
#include "cuda/device/atomic.cuh"
#include "cuda/device/grid.cuh"
#include "cuda/device/launch.h"
#include "cuda/device/math.cuh"
#include "cuda/device/memory.cuh"
#include "cuda/device/mma.cuh"
#include "cuda/device/shared.cuh"
#include "cuda/device/thread.cuh"
#include "cuda/device/warp.cuh"

namespace gen::test {
namespace {

using namespace cuda::device;

constexpr unsigned kBlock = 256;

unsigned blocks_for(int n) { return (static_cast<unsigned>(n) + kBlock - 1) / kBlock; }

GEN_DEVICE int global_index() {
  return static_cast<int>(block_index().x * block_size().x + thread_index().x);
}

GEN_KERNEL block_sums_kernel(const float* in, float* out, int n) {
  GEN_SHARED(float, partial, kBlock);
  const unsigned t = thread_index().x;
  const int i = global_index();
  partial[t] = i < n ? in[i] : 0.0f;
  for (unsigned width = kBlock / 2; width != 0; width /= 2) {
    sync_threads();
    if (t < width) partial[t] += partial[t + width];
  }
  if (t == 0) out[block_index().x] = partial[0];
}

GEN_DEVICE float warp_sum(float value, bool down) {
  for (unsigned lanes = 16; lanes != 0; lanes /= 2) {
    value += down ? shuffle_down(value, lanes) : shuffle_xor(value, lanes);
  }
  return value;
}

GEN_KERNEL warp_sums_kernel(const float* in, float* out, int n, bool down) {
  GEN_SHARED(float, partial, kBlock / 32);
  const int i = global_index();
  const float mine = warp_sum(i < n ? in[i] : 0.0f, down);
  if (lane_id() == 0) partial[warp_id()] = mine;
  sync_threads();
  if (warp_id() != 0) return;
  float whole = 0.0f;
  if (lane_id() < kBlock / 32) whole = partial[lane_id()];
  whole = warp_sum(whole, down);
  if (lane_id() == 0) out[block_index().x] = whole;
}

GEN_DEVICE int32_t warp_scan(int32_t value) {
  for (unsigned delta = 1; delta < 32; delta *= 2) {
    const int32_t before = shuffle_up(value, delta);
    if (lane_id() >= delta) value += before;
  }
  return value;
}

GEN_KERNEL scan_kernel(const int32_t* in, int32_t* out, int n) {
  const auto totals = dynamic_shared<int32_t>(0, 32);
  const int i = static_cast<int>(thread_index().x);
  int32_t value = warp_scan(i < n ? in[i] : 0);
  if (lane_id() == 31) totals[warp_id()] = value;
  sync_threads();
  if (warp_id() == 0) totals[lane_id()] = warp_scan(totals[lane_id()]);
  sync_threads();
  if (warp_id() != 0) value += totals[warp_id() - 1];
  if (i < n) out[i] = value;
}

GEN_KERNEL sum_everywhere_kernel(const float* in, float* part, float* out, int n) {
  GEN_SHARED(float, partial, kBlock / 32);
  const int step = static_cast<int>(grid_size().x * block_size().x);
  float mine = 0.0f;
  for (int i = global_index(); i < n; i += step) mine += in[i];
  mine = warp_sum(mine, false);
  if (lane_id() == 0) partial[warp_id()] = mine;
  sync_threads();
  if (thread_index().x == 0) {
    float sum = 0.0f;
    for (unsigned w = 0; w < kBlock / 32; ++w) sum += partial[w];
    part[block_index().x] = sum;
  }
  sync_grid();
  float whole = 0.0f;
  for (unsigned b = 0; b < grid_size().x; ++b) whole += part[b];
  for (int i = global_index(); i < n; i += step) out[i] = whole;
}

GEN_KERNEL relay_kernel(uint32_t* counter, uint32_t* order) {
  if (thread_index().x == 0) {
    while (load_acquire(counter) != block_index().x) spin_pause();
    order[block_index().x] = block_index().x != 0 ? order[block_index().x - 1] + 1 : 1;
    store_release(counter, block_index().x + 1);
  }
}

GEN_KERNEL histogram_kernel(const uint32_t* in, int n, int32_t* counts, int32_t* most) {
  GEN_SHARED(int32_t, mine, 16);
  const unsigned t = thread_index().x;
  if (t < 16) mine[t] = 0;
  sync_threads();
  const int i = global_index();
  if (i < n) atomic_add(mine, in[i], 1);
  sync_threads();
  if (t < 16) {
    const int32_t whole = atomic_add(&counts[t], mine[t]) + mine[t];
    atomic_max(most, whole);
  }
}

GEN_KERNEL votes_kernel(const int32_t* in, uint32_t* out, int n) {
  const int i = global_index();
  const unsigned inside = ballot(i < n);
  if (i >= n) return;
  const bool above = in[i] > 0;
  const unsigned lanes = ballot(above, inside);
  if (any(above, inside) != (lanes != 0)) device_trap();
  if (all(above, inside) != (lanes == inside)) device_trap();
  out[i] = lanes;
}

GEN_KERNEL product_kernel(Product what, const uint16_t* a, const uint16_t* b, void* out,
                          bool transposed) {
  GEN_SHARED(uint16_t, a_tile, 16 * 16);
  GEN_SHARED(uint16_t, b_tile, 8 * 16);
  const unsigned lane = lane_id();
  const unsigned width = what == Product::kF16K8 ? 8 : 16;  // of a row, in 16 bits
  for (unsigned i = lane; i < 16 * width; i += 32) a_tile[i] = a[i];
  for (unsigned i = lane; i < 8 * width; i += 32) b_tile[i] = b[i];
  sync_warp();
  const unsigned row = lane / 4;
  const unsigned column = lane % 4 * 2;
  if (what == Product::kF16K8) {
    uint32_t fa[2];
    uint32_t fb[2];
    load_matrices(fa, a_tile, lane % 16 * 8);
    load_matrices(fb, b_tile, lane % 8 * 8);
    float d[4] = {};
    mma_f16_k8(d, fa, fb[0]);
    for (unsigned i = 0; i < 4; ++i) {
      static_cast<float*>(out)[(row + i / 2 * 8) * 8 + column + i % 2] = d[i];
    }
    return;
  }
  uint32_t fa[4];
  uint32_t fb[2];
  load_matrices(fa, a_tile, lane % 16 * 16 + lane / 16 * 8);
  if (transposed) {
    load_matrices_transposed(fb, b_tile, lane % 16 * 8);
  } else {
    load_matrices(fb, b_tile, lane % 8 * 16 + lane / 8 % 2 * 8);
  }
  if (what == Product::kS8) {
    int32_t d[4] = {};
    mma_s8(d, fa, fb, 0);
    for (unsigned i = 0; i < 4; ++i) {
      static_cast<int32_t*>(out)[(row + i / 2 * 8) * 8 + column + i % 2] = d[i];
    }
    return;
  }
  float d[4] = {};
  if (what == Product::kF16) mma_f16(d, fa, fb);
  if (what == Product::kBf16) mma_bf16(d, fa, fb);
  for (unsigned i = 0; i < 4; ++i) {
    static_cast<float*>(out)[(row + i / 2 * 8) * 8 + column + i % 2] = d[i];
  }
}

GEN_KERNEL pipeline_kernel(const float* in, float* out) {
  GEN_SHARED(float, tiles, 2 * 256);
  const unsigned t = thread_index().x;  // of 64, four elements each
  copy_async16(tiles, t * 4, in + t * 4);
  commit_copies();
  for (unsigned tile = 0; tile < 16; ++tile) {
    const unsigned next = tile + 1;
    copy_async16(tiles, next % 2 * 256 + t * 4, in + next % 16 * 256 + t * 4, next < 16);
    commit_copies();
    wait_copies<1>();
    sync_threads();
    // What another thread fetched.
    for (unsigned i = 0; i < 4; ++i) {
      out[tile * 256 + i * 64 + t] = tiles[tile % 2 * 256 + i * 64 + t] + 1.0f;
    }
    sync_threads();
  }
}

GEN_KERNEL add_kernel(const int32_t* from, int32_t* to, int n, int32_t add, bool waits) {
  if (waits) wait_for_predecessor();
  const int i = global_index();
  if (i < n) to[i] = from[i] + add;
  let_successor_start();
}

/// Of what is fetched before the wait.
GEN_KERNEL add_ahead_kernel(const int32_t* from, int32_t* to, int n, int32_t add) {
  GEN_SHARED(int32_t, fetched, kBlock);
  const auto t = static_cast<int>(thread_index().x);
  const int i = global_index();
  copy_async4(fetched, t, from + (i < n ? i : 0), i < n);
  commit_copies();
  wait_for_predecessor();
  wait_copies<0>();
  const int32_t value = fetched[t];
  if (i < n) to[i] = value + add;
  let_successor_start();
}

GEN_KERNEL arrivals_kernel(uint32_t* counter, uint32_t* places) {
  if (thread_index().x == 0) places[block_index().x] = atomic_add(counter, 1u);
}

GEN_KERNEL arithmetic_kernel(int32_t a, int32_t b, float x, uint32_t* out) {
  out[0] = static_cast<uint32_t>(dp4a(a, b, -7));
  out[1] = static_cast<uint32_t>(dp4a(static_cast<uint32_t>(a), b, 9));
  out[2] = f32_to_f16(x);
  out[3] = f32_to_bf16(x);
}

}  // namespace

Error block_sums(const float* in, float* out, int n, Stream stream) {
  return launch(
      block_sums_kernel,
      {.name = "block_sums", .grid = {blocks_for(n)}, .block = {kBlock}, .stream = stream}, in, out,
      n);
}
Error warp_sums(const float* in, float* out, int n, bool down, Stream stream) {
  return launch(warp_sums_kernel,
                {.name = "warp_sums", .grid = {blocks_for(n)}, .block = {kBlock}, .stream = stream},
                in, out, n, down);
}
Error scan(const int32_t* in, int32_t* out, int n, Stream stream) {
  return launch(scan_kernel,
                {.name = "scan", .block = {1024}, .dynamic_shared_bytes = 32 * 4, .stream = stream},
                in, out, n);
}
Error sum_everywhere(const float* in, float* part, float* out, int n, int blocks, Stream stream) {
  return launch(sum_everywhere_kernel,
                {.name = "sum_everywhere",
                 .grid = {static_cast<unsigned>(blocks)},
                 .block = {kBlock},
                 .stream = stream,
                 .cooperative = true},
                in, part, out, n);
}
Error relay(uint32_t* counter, uint32_t* order, int blocks, Stream stream) {
  return launch(relay_kernel,
                {.name = "relay",
                 .grid = {static_cast<unsigned>(blocks)},
                 .block = {32},
                 .stream = stream,
                 .cooperative = true},
                counter, order);
}
Error histogram(const uint32_t* in, int n, int32_t* counts, int32_t* most, Stream stream) {
  return launch(histogram_kernel,
                {.name = "histogram", .grid = {blocks_for(n)}, .block = {kBlock}, .stream = stream},
                in, n, counts, most);
}
Error votes(const int32_t* in, uint32_t* out, int n, Stream stream) {
  return launch(votes_kernel,
                {.name = "votes", .grid = {blocks_for(n)}, .block = {kBlock}, .stream = stream}, in,
                out, n);
}
Error product(Product what, const void* a, const void* b, void* d, bool transposed, Stream stream) {
  return launch(product_kernel, {.name = "product", .block = {32}, .stream = stream}, what,
                static_cast<const uint16_t*>(a), static_cast<const uint16_t*>(b), d, transposed);
}
Error pipeline(const float* in, float* out, Stream stream) {
  return launch(pipeline_kernel, {.name = "pipeline", .block = {64}, .stream = stream}, in, out);
}
Error add(const int32_t* from, int32_t* to, int n, int32_t add, Start start, Stream stream) {
  if (start == Start::kProgrammaticFetchingAhead) {
    return launch(add_ahead_kernel,
                  {.name = "add_ahead",
                   .grid = {blocks_for(n)},
                   .block = {kBlock},
                   .stream = stream,
                   .programmatic = true},
                  from, to, n, add);
  }
  return launch(add_kernel,
                {.name = "add",
                 .grid = {blocks_for(n)},
                 .block = {kBlock},
                 .stream = stream,
                 .programmatic = start != Start::kPlain},
                from, to, n, add, start != Start::kProgrammaticWithoutWait);
}
Error arrivals(uint32_t* counter, uint32_t* places, int blocks, Stream stream) {
  return launch(arrivals_kernel,
                {.name = "arrivals",
                 .grid = {static_cast<unsigned>(blocks)},
                 .block = {32},
                 .stream = stream},
                counter, places);
}
Error arithmetic(int32_t a, int32_t b, float x, uint32_t* out, Stream stream) {
  return launch(arithmetic_kernel, {.name = "arithmetic", .stream = stream}, a, b, x, out);
}

}  // namespace gen::test
