// SPDX-License-Identifier: Apache-2.0
// generate quantize: writes a model with its weights in another type.
#include <memory>
#include <string>

#include "commands.h"
#include "new_model.h"

namespace cli {
namespace {

struct Quantize {
  std::string in;
  std::string out;
  std::string type;
};

void quantize(const Quantize& options) {
  write_model("quantising", options.out, [&](auto progress, void* user, gen_error* error) {
    return gen_model_quantize(options.in.c_str(), options.out.c_str(), options.type.c_str(),
                              progress, user, error);
  });
}

}  // namespace

void add_quantize(CLI::App& app) {
  auto options = std::make_shared<Quantize>();
  CLI::App* command = app.add_subcommand("quantize", "write a model with smaller weights");
  command->add_option("IN", options->in, "GGUF file to read")->required();
  command->add_option("OUT", options->out, "GGUF file to write")->required();
  command
      ->add_option(
          "TYPE", options->type,
          "Q4_K_M, Q5_K_M, Q6_K, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, IQ4_XS, F16, BF16 or F32")
      ->required();
  command->callback([options] { quantize(*options); });
}

}  // namespace cli
