// SPDX-License-Identifier: Apache-2.0
// See counted_append.h.
#include "engine/counted_append.h"

#include <cstddef>
#include <cstring>

#include "engine/registry.h"

namespace gen::engine {

void append_on_host(const CountedAppend& append) noexcept {
  AppendCounter& counter = *append.counter;
  if (counter.position < 0 || counter.position >= append.max_seq_len) {
    counter.dropped = 1;
    return;
  }
  const auto dim = static_cast<size_t>(append.dim);
  const size_t at = static_cast<size_t>(counter.position) * dim;
  std::memmove(append.k + at, append.k_row, dim * sizeof(float));
  std::memmove(append.v + at, append.v_row, dim * sizeof(float));
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
