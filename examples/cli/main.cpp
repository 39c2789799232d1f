// SPDX-License-Identifier: Apache-2.0
// generate: the command-line program. Answers go to standard output, everything else to standard
// error; the exit code is 0, 1 after an error, 2 for a wrong command line.
#include <clocale>
#include <csignal>
#include <cstdio>
#include <exception>

#include "commands.h"
#include "handles.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);
  CLI::App app("Text generation with GGUF models.", "generate");
  app.set_version_flag("--version", std::string("generate ") + gen_version());
  app.require_subcommand(1);
  cli::add_run(app);
  cli::add_chat(app);
  cli::add_tokenize(app);
  cli::add_logits(app);
  cli::add_perplexity(app);
  cli::add_inspect(app);
  cli::add_estimate(app);
  cli::add_bench(app);
  cli::add_quantize(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  } catch (const cli::Failure& failure) {
    std::fprintf(stderr, "generate: %s\n", failure.what());
    return failure.exit_code;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "generate: %s\n", failure.what());
    return 1;
  }
  return 0;
}
