// SPDX-License-Identifier: Apache-2.0
// The models of examples/demo_model, as they are and dequantised: every quantised tensor expanded
// to float32. With those no input of a product is rounded, so that another program's results can be
// asked for closely on trained weights.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gen::test {

/// "story-f32" and "draft-f32".
std::vector<std::string> dequantised_model_names();

/// The bytes of "story" or "draft"; empty if there is no such file.
std::vector<std::byte> read_bundled_model(std::string_view name);

/// The GGUF file of a dequantised model; empty for an unknown name, or a bundled model with
/// metadata or tensors that this does not know.
std::vector<std::byte> make_dequantised_model(std::string_view name);

}  // namespace gen::test
