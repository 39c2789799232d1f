// SPDX-License-Identifier: Apache-2.0
// See adapters.h.
#include "adapters.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "../cli/adapters.h"
#include "../cli/handles.h"

namespace server {
namespace {

cli::Adapter adapter_of(const std::string& option) {
  cli::Adapter of{{}, cli::adapter_file(option)};
  const size_t equals = option.find('=');
  std::error_code failure;
  if (equals == std::string::npos || std::filesystem::exists(of.file.path, failure)) {
    of.name = std::filesystem::path(of.file.path).stem().string();
  } else {
    of = {option.substr(0, equals), cli::adapter_file(option.substr(equals + 1))};
  }
  return of;
}

}  // namespace

std::vector<std::string> load_adapters(const std::vector<std::string>& options,
                                       const gen_model* model, const std::string& model_name) {
  std::vector<std::string> names;
  for (const std::string& option : options) {
    cli::Adapter of = adapter_of(option);
    if (of.name == model_name) {
      throw cli::Failure("--lora " + option + ": '" + of.name + "' is the model's name", 2);
    }
    if (std::find(names.begin(), names.end(), of.name) != names.end()) {
      throw cli::Failure("--lora " + option + ": there are two adapters named '" + of.name + "'",
                         2);
    }
    cli::load_adapter(model, of);
    names.push_back(std::move(of.name));
  }
  return names;
}

}  // namespace server
