// SPDX-License-Identifier: Apache-2.0
// generate inspect: what a model file is and what it costs in memory.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "model_file.h"

namespace cli {
namespace {

struct Inspect {
  ModelChoice model;
  bool json = false;
};

void inspect(const Inspect& options) {
  const Model model = load_model(options.model);
  auto json = nlohmann::ordered_json::parse(
      text_of([&](char* buf, size_t capacity, size_t* n, gen_error* error) {
        return gen_model_describe(model.get(), buf, capacity, n, error);
      }));
  for (const char* key : {"file", "weights", "mapped", "workspace", "stream"}) {
    size_t bytes = 0;
    gen_error error;
    check(gen_model_memory(model.get(), key, &bytes, &error), error);
    json["memory"][key] = bytes;
  }
  for (size_t i = 0; i < gen_model_metadata_count(model.get()); ++i) {
    const char* key = gen_model_metadata_key(model.get(), i);
    json["metadata"][key] = text_of([&](char* buf, size_t capacity, size_t* n, gen_error* error) {
      return gen_model_metadata_value(model.get(), key, buf, capacity, n, error);
    });
  }
  if (options.json) {
    std::cout << json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
              << "\n";
    return;
  }
  for (const auto& [key, value] : json.items()) {
    if (!value.is_object()) {
      std::cout << key << ": " << (value.is_string() ? value.get<std::string>() : value.dump())
                << "\n";
      continue;
    }
    std::cout << key << ":\n";
    for (const auto& [name, entry] : value.items()) {
      std::cout << "  " << name << ": "
                << (entry.is_string() ? entry.get<std::string>() : entry.dump()) << "\n";
    }
  }
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto options = std::make_shared<Inspect>();
  CLI::App* command = app.add_subcommand("inspect", "show what a model file holds");
  add_model_options(*command, options->model);
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options] { inspect(*options); });
}

}  // namespace cli
