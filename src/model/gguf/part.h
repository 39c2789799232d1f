// SPDX-License-Identifier: Apache-2.0
// One GGUF file as it stands: header, metadata, tensors. GgufFile puts one or several together.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "model/gguf/gguf_file.h"

namespace gen::gguf {

struct Part {
  uint32_t version = 0;
  std::shared_ptr<const Metadata> metadata;
  std::vector<TensorInfo> tensors;  // part index 0; data checked against `bytes`
};

/// Checks everything that can be checked without other parts, except that names are unique.
/// Errors: kFormat, kUnsupported. All but the tensors' data is copied before it is checked, so that
/// bytes which change meanwhile are refused or found as they were checked.
Result<Part> parse_part(std::span<const std::byte> bytes);

/// What a file is that begins neither as GGUF does nor as anything else that is read: a download
/// that went wrong, by its first bytes; OK for all others.
Status check_no_other_file(std::span<const std::byte> bytes) noexcept;

/// The metadata alone, whatever the tensors are and whether they are there. The same errors.
Result<std::shared_ptr<const Metadata>> parse_metadata(std::span<const std::byte> bytes);

}  // namespace gen::gguf
