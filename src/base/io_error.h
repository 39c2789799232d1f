// SPDX-License-Identifier: Apache-2.0
// Failures of file calls as one line of text, the same words wherever files are read or written.
#pragma once

#include <string>

#include "base/status.h"

namespace gen {

/// kIo "cannot <verb> '<path>': <what errno `number` means>"; kOutOfMemory for ENOMEM.
Status io_error(const char* verb, const std::string& path, int number) noexcept;

}  // namespace gen
