// SPDX-License-Identifier: Apache-2.0
// See state_call.h.
#include "api/boundary/state_call.h"

#include "api/boundary/boundary.h"
#include "base/io_error.h"
#include "base/mapped_file.h"

namespace gen::api {

Status state_to_file(cache::StateKind kind, const cache::StateContents& contents,
                     const char* path) {
  return cache::save_state(kind, contents, std::string(path));
}

Status state_to_buffer(cache::StateKind kind, const cache::StateContents& contents, void* buf,
                       size_t capacity, size_t* n) {
  GEN_ASSIGN(const size_t bytes, cache::state_size(contents));
  if (buf != nullptr && bytes > capacity) {
    *n = bytes;
    return error(Code::kOutOfRange, "a state of %zu bytes does not fit a buffer of %zu", bytes,
                 capacity);
  }
  if (buf != nullptr) {
    GEN_TRY(cache::save_state(kind, contents, std::span(static_cast<std::byte*>(buf), bytes)));
  }
  *n = bytes;
  return {};
}

Status state_from_file(const char* path,
                       const std::function<Status(std::span<const std::byte> state)>& take) {
  // Read, not mapped: the checked bytes must be the bytes used, even if another process writes to
  // the file meanwhile.
  GEN_ASSIGN(const MappedFile file, MappedFile::open(path, MappedFile::Mode::kRead));
  Status status = take(file.bytes());
  return status.ok() ? status : in_file(path, std::move(status));
}

}  // namespace gen::api
