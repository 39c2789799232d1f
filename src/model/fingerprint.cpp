// SPDX-License-Identifier: Apache-2.0
// See fingerprint.h.
#include "model/fingerprint.h"

#include <algorithm>
#include <span>

#include "base/checksum.h"
#include "model/gguf/gguf_file.h"

namespace gen::model {
namespace {

constexpr size_t kSampleBytes = 4096;  // at a tensor's start, and at its end

void add_text(Checksum* sum, std::string_view text) {
  sum->add_number(text.size());
  sum->add(std::as_bytes(std::span(text)));
}

}  // namespace

uint64_t fingerprint_of(const gguf::GgufFile& file, std::string_view architecture) {
  Checksum sum;
  add_text(&sum, architecture);
  for (const gguf::Value& value : file.metadata().entries()) {
    if (value.key().starts_with("general.")) continue;
    add_text(&sum, value.key());
    sum.add_number(value.bytes().size());
    sum.add(value.bytes());
  }
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    add_text(&sum, tensor.name);
    sum.add_number(static_cast<uint64_t>(tensor.type));
    for (const int64_t n : tensor.shape) sum.add_number(static_cast<uint64_t>(n));
    const size_t sample = std::min(tensor.data.size(), kSampleBytes);
    sum.add(tensor.data.first(sample));
    sum.add(tensor.data.last(sample));
  }
  return sum.value();
}

}  // namespace gen::model
