// SPDX-License-Identifier: Apache-2.0
// generate quantize: writes a model with its weights in another type.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "commands.h"
#include "new_model.h"

namespace cli {
namespace {

struct Quantize {
  std::string in;
  std::string out;
  std::string type;
  std::string importance;
  std::vector<std::string> types;
};

void quantize(const Quantize& options) {
  gen_log_set_level(GEN_LOG_INFO);
  std::string types;
  for (const std::string& one : options.types) types += types.empty() ? one : "," + one;
  const auto used = make<QuantizeOptions>(gen_quantize_options_new);
  gen_error error;
  check(gen_quantize_options_set(used.get(), "importance", options.importance.c_str(), &error),
        error);
  if (gen_quantize_options_set(used.get(), "types", types.c_str(), &error) != GEN_OK) {
    const std::string_view message = error.message;
    constexpr std::string_view kKey = "types";
    throw Failure(
        "--type" + std::string(message.substr(message.starts_with(kKey) ? kKey.size() : 0)), 2);
  }
  write_model("quantising", options.out, [&](auto progress, void* user, gen_error* failure) {
    return gen_model_quantize_with(options.in.c_str(), options.out.c_str(), options.type.c_str(),
                                   used.get(), progress, user, failure);
  });
}

}  // namespace

void add_quantize(CLI::App& app) {
  auto options = std::make_shared<Quantize>();
  CLI::App* command = app.add_subcommand("quantize", "write a model with smaller weights");
  command->add_option("IN", options->in, "GGUF file to read")->required();
  command->add_option("OUT", options->out, "GGUF file to write")->required();
  command
      ->add_option("TYPE", options->type,
                   "Q4_K_M, Q4_K_S, Q5_K_M, Q5_K_S, Q6_K, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, "
                   "IQ4_XS, Q3_K_L, Q3_K_M, Q3_K_S, IQ3_M, IQ3_S, IQ3_XS, IQ3_XXS, Q2_K, Q2_K_S, "
                   "IQ2_M, IQ2_S, IQ2_XS, IQ2_XXS, IQ1_M, IQ1_S, TQ2_0, TQ1_0, Q2_0, Q1_0, NVFP4, "
                   "MXFP4_MOE, F16, BF16 or F32")
      ->required();
  command->add_option("--importance", options->importance,
                      "importance matrix of the model, by which the errors of columns count");
  command
      ->add_option("--type", options->types,
                   "type of the matrices whose whole name a pattern matches, "
                   "\"blk.*.attn_v.weight=Q6_K\": * is any text, ? any one byte; may be given "
                   "several times, the first that matches counts")
      ->type_name("PATTERN=TYPE")
      ->allow_extra_args(false);
  command->callback([options, command] {
    if (options->importance.empty() && command->count("--importance") > 0) {
      throw Failure("--importance: an empty file name", 2);
    }
    quantize(*options);
  });
}

}  // namespace cli
