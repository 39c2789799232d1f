// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters: the option --lora.
#pragma once

#include <string>
#include <vector>

#include "commands.h"
#include "handles.h"

namespace cli {

/// --lora FILE or FILE:SCALE, which may be repeated.
void add_adapter_option(CLI::App& command, std::vector<std::string>& files);
/// Loads them into the model and names them in the settings.
void use_adapters(const std::vector<std::string>& files, const Model& model, const Sampling& to);

}  // namespace cli
