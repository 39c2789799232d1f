// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters: the option --lora.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "commands.h"
#include "handles.h"

namespace cli {

/// What FILE or FILE:SCALE says.
struct AdapterFile {
  std::string path;
  float scale = 1.0F;
};
/// What stands behind the last colon is a scale if it is a number and the whole is no file.
AdapterFile adapter_file(const std::string& text);

/// --lora FILE or FILE:SCALE, which may be repeated.
void add_adapter_option(CLI::App& command, std::vector<std::string>& files);
/// Loads them into the model; their names are "0", "1" and so on.
void load_adapters(const std::vector<std::string>& files, const Model& model);
/// Calls with these settings use the first `count` of the loaded ones, together.
void name_adapters(size_t count, const Sampling& to);
/// Calls with these settings use one of the loaded ones, alone.
void name_adapter(size_t index, const Sampling& to);
/// Loads them into the model and names all in the settings.
void use_adapters(const std::vector<std::string>& files, const Model& model, const Sampling& to);
/// What an empty session appends is evaluated with the first `count` adapters, although it has
/// generated nothing yet.
void prepare_session(const Session& session, size_t count);

}  // namespace cli
