// SPDX-License-Identifier: Apache-2.0
// generate quantize: writes a model with its weights in another type.
#include <csignal>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "commands.h"
#include "handles.h"
#include "progress_bar.h"

namespace cli {
namespace {

struct Quantize {
  std::string in;
  std::string out;
  std::string type;
};

// The signal handler's state. The first Ctrl-C cancels the work, which removes the partial file;
// the second ends the program.
volatile std::sig_atomic_t interrupted = 0;

extern "C" void on_stop(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
}

int on_share(void* bar, double share) {
  static_cast<ProgressBar*>(bar)->update(share);
  return interrupted;
}

void print_warning(void*, int32_t, const char* line) { std::cerr << "warning: " << line << "\n"; }

void quantize(const Quantize& options) {
  gen_log_set_callback(print_warning, nullptr);
  gen_log_set_level(GEN_LOG_WARNING);
  std::signal(SIGINT, on_stop);
  std::signal(SIGTERM, on_stop);
  {
    ProgressBar bar("quantising");
    gen_error error;
    check(gen_model_quantize(options.in.c_str(), options.out.c_str(), options.type.c_str(),
                             on_share, &bar, &error),
          error);
  }
  std::cout << options.out << ": " << std::filesystem::file_size(options.out) << " bytes\n";
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
