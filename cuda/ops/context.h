// SPDX-License-Identifier: Apache-2.0
// What an operation of the CUDA engine gets to work with. Every operation is one .cu file with its
// kernels and one free function, declared in ops_run.h, that turns addresses into pointers and
// launches. Nothing is waited for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "cuda/device/launch.h"
#include "engine/ops.h"

namespace gen::cuda {

struct OpContext {
  device::Stream stream = nullptr;
  size_t shared_bytes = 0;  // the most that a block may have
};

/// Rows of floats as kernels take them.
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

/// Floats from one packed row to the next. There is one form, float32.
constexpr int64_t packed_stride(int64_t cols) noexcept { return (cols + 15) / 16 * 16; }
inline RowsView view(const engine::Activations& of) noexcept {
  return {reinterpret_cast<float*>(of.data.address()), of.rows, of.cols, packed_stride(of.cols)};
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
  device::LaunchConfig config;
  config.name = name;
  config.grid = grid;
  config.block = block_of(threads);
  config.dynamic_shared_bytes = shared_bytes;
  config.stream = context.stream;
  const device::Error failed = device::launch(kernel, config, arguments...);
  if (!failed.ok()) return device_status(failed, name);
  return {};
}

}  // namespace gen::cuda
