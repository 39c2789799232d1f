// SPDX-License-Identifier: Apache-2.0
// The views of engine/ops.h with pointers instead of addresses, for kernels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gen::engine::cpu {

struct Rows {
  float* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;
  [[nodiscard]] float* row(int64_t t) const noexcept { return data + t * stride; }
};
struct ConstRows {
  const float* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;
  [[nodiscard]] const float* row(int64_t t) const noexcept { return data + t * stride; }
};
struct PackedView {
  std::byte* data = nullptr;
  uint32_t forms = 0;
  int64_t rows = 0;
  int64_t cols = 0;
};

}  // namespace gen::engine::cpu
