// SPDX-License-Identifier: Apache-2.0
// Small models with random weights, one for each architecture and weight format and for each kind
// of rotary scaling, as GGUF files in memory. They are the same on every machine: numbers come from
// a counter-based generator and no library function is involved. Another program's results on them
// are the golden files beside this one; see make_goldens.sh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace gen::test {

/// "llama-f32", "llama-yarn", "qwen3-q4_k", …
std::vector<std::string> random_model_names();

/// The GGUF file of a model; empty for an unknown name.
std::vector<std::byte> make_random_model(std::string_view name);

/// The file of an assistant that drafts for such a model, whose guesses are as good as any; empty
/// for other models than those of gemma4.
std::vector<std::byte> make_random_assistant(std::string_view name);

/// The format of a model's matrices; F32 for an unknown name.
DType random_model_format(std::string_view name);

/// Fingerprint of a file's bytes (64-bit FNV-1a), by which a golden file knows its model.
uint64_t fingerprint(std::span<const std::byte> bytes);

}  // namespace gen::test
