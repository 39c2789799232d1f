// SPDX-License-Identifier: Apache-2.0
// Element types of files that this library does not read, for messages.
#pragma once

#include <cstdint>
#include <string>

namespace gen::gguf {

/// What to say of a type number without an entry in tensor/dtype.h: the number and, where known,
/// its name and the program that it was made for.
std::string describe_foreign_type(uint32_t number);

}  // namespace gen::gguf
