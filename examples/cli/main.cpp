// SPDX-License-Identifier: Apache-2.0
// generate: the command-line program. Answers go to standard output, everything else to standard
// error; the exit code is 0, 1 after an error, 2 for a wrong command line, 3 for a text that a
// limit cut off before it was complete under its grammar, 130 after Ctrl-C.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "commands.h"
#include "handles.h"
#include "manual.h"
#include "output.h"
#include "text_format.h"

namespace {

/// Lines of the library's log, each once: a file that is opened twice is as odd as before.
struct LogLines {
  std::set<std::string> printed;
};

void print_log(void* user, int32_t level, const char* line) {
  if (!static_cast<LogLines*>(user)->printed.insert(line).second) return;
  const char* const kind = level <= GEN_LOG_WARNING ? "warning" : "note";
  const char* const clear = isatty(STDERR_FILENO) == 1 ? "\r\x1b[K" : "";  // of a progress bar
  std::fprintf(stderr, "%s%s: %s\n", clear, kind, cli::printable(line).c_str());
}

constexpr const char* kExamples = R"(generate run -p "Once upon a time" -n 50
generate chat -m model.gguf
generate inspect model.gguf
generate quantize in.gguf out.gguf Q4_K_M
generate merge in.gguf adapter.gguf out.gguf
)";

/// Turns "help" and "help run" into the option --help; the words after it name the command.
std::vector<std::string> without_help_command(std::vector<std::string> words) {
  if (words.empty() || words[0] != "help") return words;
  words.erase(words.begin());
  words.resize(words.empty() ? 0 : 1);
  words.emplace_back("--help");
  return words;
}

void run(CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments == std::vector<std::string>{"help", "--man"}) {
    std::cout << cli::manual_page(app, gen_version(), kExamples);
    return;
  }
  if (arguments == std::vector<std::string>{"help", "--bash"}) {
    std::cout << cli::bash_completion(app);
    return;
  }
  std::vector<std::string> words = without_help_command(arguments);
  if (!words.empty() && !words[0].empty() && words[0][0] != '-' &&
      app.get_subcommands([&](CLI::App* one) { return one->get_name() == words[0]; }).empty()) {
    const std::string near = cli::nearest_command(app, words[0]);
    throw cli::Failure("no command '" + words[0].substr(0, 64) + "'" +
                           (near.empty() ? ";" : ", did you mean '" + near + "'?") +
                           " 'generate help' lists them",
                       2);
  }
  app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
}

int answer(int argc, char** argv) {
  try {
    CLI::App app("Text generation with GGUF models.", "generate");
    app.set_version_flag("--version", std::string("generate ") + gen_version());
    app.footer(
        "'generate help COMMAND' lists the options of a command.\n"
        "Exit status: 0, 1 after an error, 2 for a wrong command line, 3 for a text cut off by a "
        "limit before it was complete under its grammar, 130 after Ctrl-C.");
    app.failure_message(cli::parse_failure);
    app.require_subcommand(1);
    cli::add_run(app);
    cli::add_chat(app);
    cli::add_template(app);
    cli::add_tokenize(app);
    cli::add_logits(app);
    cli::add_perplexity(app);
    cli::add_features(app);
    cli::add_inspect(app);
    cli::add_estimate(app);
    cli::add_bench(app);
    cli::add_imatrix(app);
    cli::add_quantize(app);
    cli::add_merge(app);
    cli::add_grammar(app);
    int code = 0;
    try {
      run(app, std::vector<std::string>(argv + 1, argv + argc));
    } catch (const CLI::ParseError& problem) {
      code = app.exit(problem) == 0 ? 0 : 2;  // prints, help as well
    }
    cli::check_output();
    return code;
  } catch (const cli::Failure& failure) {
    std::fprintf(stderr, "generate: %s\n", cli::printable(failure.what()).c_str());
    return failure.exit_code;
  } catch (const std::bad_alloc&) {
    std::fputs("generate: out of memory\n", stderr);
    return 1;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "generate: %s\n", failure.what());
    return 1;
  }
}

/// Memory may also run out where no exception may leave, as in destructors of JSON values, which
/// allocate, or with none left for the exception itself.
[[noreturn]] void end_without_memory() {
  bool has_memory = false;
  try {
    if (std::current_exception()) throw;
    void* volatile some = std::malloc(size_t{1} << 16);  // volatile: or it is left out
    has_memory = some != nullptr;
    std::free(some);
  } catch (const std::bad_alloc&) {
  } catch (const std::exception& failure) {
    has_memory = true;
    std::fprintf(stderr, "generate: %s\n", failure.what());
  } catch (...) {
    has_memory = true;
  }
  if (has_memory) std::abort();
  constexpr std::string_view kLine = "generate: out of memory\n";
  static_cast<void>(write(STDERR_FILENO, kLine.data(), kLine.size()) == 0);
  _exit(1);
}

/// Before statics, of which those of the parser of command lines allocate.
[[gnu::constructor(101)]] void begin() { std::set_terminate(end_without_memory); }

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit on files is an error like any other
  cli::keep_standard_streams();
  LogLines lines;
  gen_log_set_callback(print_log, &lines);
  gen_log_set_level(GEN_LOG_WARNING);
  const int code = answer(argc, argv);
  gen_log_set_callback(nullptr, nullptr);
  return code;
}
