// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters: the option --lora.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "commands.h"
#include "handles.h"

namespace cli {

/// What FILE or FILE:SCALE says.
struct AdapterFile {
  std::string path;
  float scale = 1.0F;  // finite
};
/// What stands behind the last colon is a scale if the whole is no file. Failure 2 if it is no
/// finite number and what stands before it is a file.
AdapterFile adapter_file(const std::string& text);

/// One that the model has loaded.
struct Adapter {
  std::string name;  // of no other one
  AdapterFile file;
};
using Adapters = std::vector<Adapter>;

/// --lora FILE or FILE:SCALE, which may be repeated.
void add_adapter_option(CLI::App& command, std::vector<std::string>& files);
/// Adds the files that --lora names, without scales.
void add_adapter_files(const std::vector<std::string>& lora, std::vector<std::string>* files);
/// Failure 1 for a file that cannot be read or does not fit, 2 for a name that adapters cannot
/// have.
void load_adapter(const gen_model* model, const Adapter& adapter);
/// Loads them into the model; their names are those of their files, and different.
Adapters load_adapters(const std::vector<std::string>& files, const Model& model);
/// Calls with these settings use the adapters together.
void name_adapters(const Adapters& adapters, const Sampling& to);
/// Calls with these settings use this one, alone.
void name_adapter(const Adapter& adapter, const Sampling& to);
/// Loads them into the model and names all in the settings.
void use_adapters(const std::vector<std::string>& files, const Model& model, const Sampling& to);
/// What an empty session appends is evaluated with the adapters, although it has generated nothing
/// yet.
void prepare_session(const Session& session, const Adapters& adapters);

/// "one.gguf, two.gguf (scale 0.5)", safe for a terminal.
std::string adapters_text(const Adapters& adapters);
/// Adds "adapters", [{"name", "scale"}], to a JSON object, if there are any.
void add_adapters(const Adapters& adapters, nlohmann::ordered_json& object);

}  // namespace cli
