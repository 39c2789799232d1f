// SPDX-License-Identifier: Apache-2.0
// From files that were made for ollama's own engine to those that this library reads, which are
// llama.cpp's: the step between a parsed file and its readers.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/status.h"
#include "model/gguf/gguf_file.h"

namespace gen::gguf::compat {

struct Translated {
  std::shared_ptr<const Metadata> metadata;
  std::vector<std::vector<std::byte>> made;  // data of tensors that is not in the file
  bool changed = false;                      // the file was made for another engine
};

/// The metadata of a file, and `tensors` renamed; both as they were for a file that needs no
/// translation. `tensors` may be empty where only metadata is read. A translated file is logged.
/// kFormat for a value of a wrong type and for keys that collide; kUnsupported for a file that
/// cannot be translated, which leaves `tensors` as they are by then.
Result<Translated> translate(std::shared_ptr<const Metadata> metadata,
                             std::vector<TensorInfo>& tensors);

}  // namespace gen::gguf::compat
