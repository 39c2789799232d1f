// SPDX-License-Identifier: Apache-2.0
// Reads importance matrices: the GGUF form (importance_sums.h) and the older binary form of
// llama.cpp, little-endian:
//   int32 number of entries, then for each
//     int32 length of the name, the name, int32 calls, int32 number of values,
//     float32 values: means of squared inputs times calls, or if calls is 0, the means
//   int32 number of windows, int32 length of a name, the name of the text: may be missing
// Files are assumed to be hostile. A matrix that a GGUF file has no rows for has ones, as an expert
// that no row used.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/status.h"
#include "model/importance.h"

namespace gen::model {

/// Errors, naming the file: kIo; kFormat for a file that is neither, is damaged or says of a tensor
/// what cannot be; kUnsupported as GgufFile::open.
Result<Importance> read_importance(const std::string& path);
/// The same of bytes; messages name no file.
Result<Importance> parse_importance(std::span<const std::byte> bytes);

}  // namespace gen::model
