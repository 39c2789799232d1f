// SPDX-License-Identifier: Apache-2.0
// The context of an operation of the CUDA engine. Every operation is one .cu file with its kernels
// and one free function, declared in ops_run.h, that converts addresses to pointers and launches.
// Operations never synchronise, except for trials of a library (matrix_products.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "cuda/device/launch.h"
#include "cuda/ops/activation_rows.h"
#include "cuda/ops/matrix_products.h"
#include "engine/ops.h"

namespace gen::cuda {

/// Device memory of the queue for intermediate results between the kernels of an operation.
class ScratchMemory {
 public:
  virtual ~ScratchMemory() = default;
  /// Valid for what is enqueued before the next operation. kOutOfMemory.
  virtual Status take_scratch(size_t bytes, uint8_t** out) = 0;
  /// kCounters numbers beside the last result of take_scratch(). They are 0 between kernels: a
  /// kernel that uses them as arrival counters resets them.
  virtual uint32_t* counters() noexcept = 0;
  /// Free device memory after all enqueued work is done. Not in a capture.
  virtual Status read_back(const void* from, size_t bytes, void* to) = 0;
};
constexpr int64_t kCounters = 1024;

struct OpContext {
  device::Stream stream = nullptr;
  size_t shared_bytes = 0;  // the limit per block
  int32_t processors = 1;   // multiprocessors of the device
  int32_t compute = 75;     // its compute capability, 75 … 120
  /// Programmatic dependent launch: kernels begin before their predecessors end, see
  /// after_predecessor().
  bool programmatic = false;
  bool cooperative = false;  // kernels whose blocks wait for one another
  ScratchMemory* scratch = nullptr;
  MatrixProducts* products = nullptr;  // null: only our own kernels
  bool dry_run = false;                // nothing is launched
  bool pairs = true;                   // see pairs.h
  size_t l2_bytes = 0;                 // size of the L2 cache
  bool capturing = false;              // enqueued work becomes a graph and does not run
};

/// Rows of floats, as a kernel argument.
struct RowsView {
  float* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;
};
struct ConstRowsView {
  const float* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;
};

template <typename T>
T* pointer(engine::EnginePtr<T> address) noexcept {
  return reinterpret_cast<T*>(address.address());
}
inline RowsView view(const engine::MatrixView& of) noexcept {
  return {pointer(of.data), of.rows, of.cols, of.stride};
}
inline ConstRowsView view(const engine::ConstMatrixView& of) noexcept {
  return {pointer(of.data), of.rows, of.cols, of.stride};
}

/// The float32 of packed rows.
inline RowsView view(const engine::Activations& of) noexcept {
  const size_t stride = row_layout(of.forms, of.cols).bytes / sizeof(float);
  return {reinterpret_cast<float*>(of.data.address()), of.rows, of.cols,
          static_cast<int64_t>(stride)};
}

/// kOutOfMemory or kDevice, naming what failed.
Status device_status(device::Error failed, const char* what);

/// Blocks of `threads` that cover n items.
inline device::Dim3 grid_of(int64_t n, int32_t threads) noexcept {
  return {static_cast<unsigned>((n + threads - 1) / threads), 1, 1};
}
inline device::Dim3 block_of(int32_t threads) noexcept {
  return {static_cast<unsigned>(threads), 1, 1};
}

template <typename... Parameters, typename... Arguments>
Status run_kernel(const OpContext& context, const char* name, void (*kernel)(Parameters...),
                  device::Dim3 grid, int32_t threads, size_t shared_bytes,
                  const Arguments&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return {};
  if (shared_bytes > context.shared_bytes) {
    return error(Code::kUnsupported, "%s needs %zu bytes of shared memory, the device has %zu",
                 name, shared_bytes, context.shared_bytes);
  }
  if (context.dry_run) return {};
  device::LaunchConfig config;
  config.name = name;
  config.grid = grid;
  config.block = block_of(threads);
  config.dynamic_shared_bytes = shared_bytes;
  config.stream = context.stream;
  config.programmatic = context.programmatic;
  const device::Error failed = device::launch(kernel, config, arguments...);
  if (!failed.ok()) return device_status(failed, name);
  return {};
}

}  // namespace gen::cuda
