// SPDX-License-Identifier: Apache-2.0
// generate imatrix: makes an importance matrix from a calibration text, for quantize --importance.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "input_files.h"
#include "model_file.h"
#include "new_model.h"
#include "output.h"
#include "text_file.h"

namespace cli {
namespace {

struct Imatrix {
  ModelChoice model;
  std::string file;
  std::string out;
  int32_t context = 512;
  bool has_context = false;  // --window was given
  int32_t chunks = 0;        // 0: all of the text
};

void imatrix(const Imatrix& options) {
  std::vector<std::string> read = files_of(options.model);
  read.push_back(options.file);
  check_apart(options.out, "--output", read);
  const Model model = load_model(options.model);
  std::vector<int32_t> tokens = tokens_of_file(model, options.file);
  if (tokens.empty()) throw Failure("'" + options.file + "' has no tokens");
  const int32_t most = gen_model_config_max_seq_len(gen_model_get_config(model.get()));
  if (options.has_context && options.context > most) {
    throw Failure("--window " + std::to_string(options.context) + " above " + std::to_string(most) +
                  ", the model's context");
  }
  const int32_t context = std::min(options.context, most);
  const size_t before = tokens_before(model).size();
  if (static_cast<size_t>(context) <= before) {
    throw Failure("a context of " + std::to_string(context) + " has no token that others precede");
  }
  if (options.chunks > 0) {
    const size_t fresh = static_cast<size_t>(context) - before;
    tokens.resize(std::min(tokens.size(), static_cast<size_t>(options.chunks) * fresh));
  }
  const std::string name = std::filesystem::path(options.file).filename().string();
  write_model("evaluating", options.out, [&](auto progress, void* user, gen_error* error) {
    return gen_model_importance(model.get(), tokens.data(), tokens.size(), context, name.c_str(),
                                options.out.c_str(), progress, user, error);
  });
}

}  // namespace

void add_imatrix(CLI::App& app) {
  auto options = std::make_shared<Imatrix>();
  CLI::App* command =
      app.add_subcommand("imatrix", "measure which weights matter, for quantize --importance");
  add_model_options(*command, options->model);
  command->add_option("-f,--file", options->file, "UTF-8 text to measure with")->required();
  command->add_option("-o,--output", options->out, "GGUF file to write")->required();
  command
      ->add_option("--window", options->context, "tokens per window, at most the model's context")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  command->add_option("--chunks", options->chunks, "windows to evaluate; 0 for the whole text")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command->callback([options, command] {
    options->has_context = command->count("--window") > 0;
    imatrix(*options);
  });
}

}  // namespace cli
