// SPDX-License-Identifier: Apache-2.0
// See counted_append.h.
#include "engine/memory/counted_append.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "tensor/half.h"

namespace gen::engine {
namespace {

void write_row(const CountedAppend& append, void* rows, const float* row) {
  const auto dim = static_cast<size_t>(append.dim);
  const size_t at = static_cast<size_t>(append.counter->position) * dim;
  if (append.type == DType::kF32) {
    std::memmove(static_cast<float*>(rows) + at, row, dim * sizeof(float));
  } else {
    std::transform(row, row + dim, static_cast<uint16_t*>(rows) + at, f32_to_f16);
  }
}

}  // namespace

void append_on_host(const CountedAppend& append) noexcept {
  AppendCounter& counter = *append.counter;
  if (counter.position < 0 || counter.position >= append.max_seq_len) {
    counter.dropped = 1;
    return;
  }
  write_row(append, append.k, append.k_row);
  write_row(append, append.v, append.v_row);
  if (append.moves) ++counter.position;
}

}  // namespace gen::engine
