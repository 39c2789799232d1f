// SPDX-License-Identifier: Apache-2.0
// Saved states in the C API: a path, or a buffer by the rule for output of variable length.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "base/status.h"
#include "cache/state/state_file.h"

namespace gen::api {

/// Writes a state to a file, completely or not at all. kIo, naming the file.
Status state_to_file(cache::StateKind kind, const cache::StateContents& contents, const char* path);
/// NULL `buf` asks for the size; a buffer that is too small is kOutOfRange with *n set.
Status state_to_buffer(cache::StateKind kind, const cache::StateContents& contents, void* buf,
                       size_t capacity, size_t* n);

/// Calls `take` with the contents of a file. kIo, naming the file; failures of `take` get the file
/// name in front.
Status state_from_file(const char* path,
                       const std::function<Status(std::span<const std::byte> state)>& take);

}  // namespace gen::api
