// SPDX-License-Identifier: Apache-2.0
// generate merge: writes a model with an adapter in its weights.
#include <memory>
#include <string>

#include "commands.h"
#include "new_model.h"

namespace cli {
namespace {

struct Merge {
  std::string model;
  std::string adapter;
  std::string out;
  std::string type;  // empty: as in the model
  float scale = 1.0F;
};

void merge(const Merge& options) {
  write_model("merging", options.out, [&](auto progress, void* user, gen_error* error) {
    return gen_adapter_merge(options.model.c_str(), options.adapter.c_str(), options.scale,
                             options.out.c_str(), options.type.c_str(), progress, user, error);
  });
}

}  // namespace

void add_merge(CLI::App& app) {
  auto options = std::make_shared<Merge>();
  CLI::App* command =
      app.add_subcommand("merge", "write a model with a LoRA adapter in its weights");
  command->add_option("MODEL", options->model, "GGUF file to read")->required();
  command->add_option("ADAPTER", options->adapter, "LoRA adapter, GGUF")->required();
  command->add_option("OUT", options->out, "GGUF file to write")->required();
  command->add_option("--scale", options->scale, "what the adapter is multiplied by")
      ->capture_default_str();
  command->add_option("--type", options->type,
                      "type of the weights, as quantize takes it; else each as in MODEL");
  command->callback([options] { merge(*options); });
}

}  // namespace cli
