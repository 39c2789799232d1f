// SPDX-License-Identifier: Apache-2.0
// Failures of file calls as one line of text, the same words wherever files are read or written.
#pragma once

#include <string>

#include "base/status.h"

namespace gen {

/// kIo "cannot <verb> '<path>': <what errno `number` means>"; kOutOfMemory for ENOMEM.
Status io_error(const char* verb, const std::string& path, int number) noexcept;

/// A failure of reading a file. Failures about its contents (kFormat, kUnsupported) get the file's
/// name in front, which only kIo includes already. Call it once, where the path is known.
Status in_file(const std::string& path, Status status) noexcept;

}  // namespace gen
