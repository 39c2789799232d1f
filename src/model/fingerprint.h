// SPDX-License-Identifier: Apache-2.0
// What tells the content of a model's file from that of others without reading all of it.
#pragma once

#include <cstdint>
#include <string_view>

namespace gen::gguf {
class GgufFile;
}

namespace gen::model {

/// An XXH64 over the architecture, all metadata except general.* (names of models and authors may
/// change), and each tensor's name, type, shape, first and last 4096 bytes.
uint64_t fingerprint_of(const gguf::GgufFile& file, std::string_view architecture);

}  // namespace gen::model
