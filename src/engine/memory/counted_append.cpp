// SPDX-License-Identifier: Apache-2.0
// See counted_append.h.
#include "engine/memory/counted_append.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "engine/backend/registry.h"
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

Status append_on_device(int32_t device, const CountedAppend& append, void* stream) {
  if (device < 0) {
    if (stream != nullptr) {
      return {Code::kInvalidArgument, "host memory that poses as a device has no streams"};
    }
    append_on_host(append);
    return {};
  }
  if (stream == nullptr) {
    return error(Code::kInvalidArgument, "stream is NULL, no stream of device %d", device);
  }
  GEN_ASSIGN(const EngineRow* const row, engine_row("cuda"));
  if (const char* reason = row->why_not(); reason != nullptr) {
    return error(Code::kUnsupported, "backend %s: %s", row->name, reason);
  }
  if (const int32_t count = row->device_count(); device >= count) {
    return error(Code::kUnsupported, "device %d of backend %s, which has %d", device, row->name,
                 count);
  }
  return row->append(device, append, stream);
}

}  // namespace gen::engine
