// SPDX-License-Identifier: Apache-2.0
// Element types of GGUF files, also of those that the library does not read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cli {

/// "Q4_K"; "Q6_0 (133)" for a type of ik_llama.cpp or of old files, "type 77" for an unknown one.
std::string gguf_type_name(uint32_t number);

/// Bytes of `elements`; nothing for a type whose blocks are not known, a part of a block, or a size
/// that overflows.
std::optional<uint64_t> gguf_type_bytes(uint32_t number, uint64_t elements);

/// "Q4_K_M" of general.file_type 15; empty for a number that is not known.
std::string gguf_file_type_name(uint64_t number);

}  // namespace cli
