// SPDX-License-Identifier: Apache-2.0
// generate template: renders the conversation on standard input with a chat template.
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "model_file.h"
#include "text_file.h"

namespace cli {
namespace {

using Template = Handle<gen_template, gen_template_free>;

struct Rendering {
  ModelChoice model;
  std::string file;
  bool json = false;
};

Template load_template(const Rendering& options) {
  if (options.file.empty()) {
    const Tokenizer tokenizer = load_tokenizer(options.model);
    return make<Template>(gen_template_from_tokenizer,
                          static_cast<const gen_tokenizer*>(tokenizer.get()));
  }
  const std::string source = text_of_file(options.file);
  return make<Template>(gen_template_new, source.data(), source.size());
}

void render(const Rendering& options) {
  const std::string request((std::istreambuf_iterator<char>(std::cin)),
                            std::istreambuf_iterator<char>());
  try {
    const Template form = load_template(options);
    const std::string made = text_of([&](char* buf, size_t capacity, size_t* n, gen_error* e) {
      return gen_template_render(form.get(), request.data(), request.size(), buf, capacity, n, e);
    });
    std::cout << (options.json ? made + "\n"
                               : nlohmann::json::parse(made).at("text").get<std::string>());
  } catch (const Failure& failure) {
    if (options.json) {
      std::cout << nlohmann::json{{"error", failure.what()}}.dump(
                       -1, ' ', false, nlohmann::json::error_handler_t::replace)
                << "\n";
    }
    throw;
  }
}

}  // namespace

void add_template(CLI::App& app) {
  auto options = std::make_shared<Rendering>();
  CLI::App* command = app.add_subcommand("template", "render a conversation with a chat template");
  CLI::Option* model = command->add_option("-m,--model", options->model.path,
                                           "use the template of this GGUF file (the bundled model "
                                           "if not given)");
  command->add_option("--template", options->file, "use the Jinja template in this file")
      ->excludes(model);
  command->add_flag(
      "--json", options->json,
      "print {\"text\":…,\"segments\":[{\"text\":…,\"special\":…},…]}, or {\"error\":…}");
  command->footer(
      "Standard input is a JSON object with \"messages\", and optionally \"tools\", "
      "\"add_generation_prompt\", \"bos_token\", \"eos_token\", \"variables\" (an object) and "
      "\"now\" (ISO 8601).");
  command->callback([options] { render(*options); });
}

}  // namespace cli
