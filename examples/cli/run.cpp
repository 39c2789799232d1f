// SPDX-License-Identifier: Apache-2.0
// generate run: continue a prompt, streaming to the terminal, or as one JSON object.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "adapters.h"
#include "draft_svg.h"
#include "input_files.h"
#include "interrupt.h"
#include "model_file.h"
#include "option_help.h"
#include "output.h"
#include "progress_bar.h"
#include "results.h"
#include "sampling_options.h"

namespace cli {
namespace {

struct Run {
  ModelChoice model;
  std::vector<std::string> lora;  // --lora
  SamplingChoice sampling;
  std::string prompt;
  std::optional<std::string> suffix;
  std::string load_session;
  std::string save_session;
  bool saves = false;  // --save-session was given
  bool json = false;
  bool echo = false;
  bool stats = false;
  bool draft_stats = false;
  std::string draft_svg;
  bool draws = false;  // --draft-svg was given
};

int swallow_piece(void*, const gen_token*) { return 0; }

/// Shows a session's progress through its prompt from a separate thread, if stderr is a terminal.
class PrefillWatch {
 public:
  explicit PrefillWatch(const gen_session* session) {
    if (isatty(STDERR_FILENO) != 1) return;
    thread_ = std::thread([this, session] {
      std::unique_ptr<ProgressBar> bar;
      for (int tick = 0; !done_; ++tick) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        const double share = gen_session_progress(session);
        if (share >= 1) {
          bar.reset();
        } else if (tick > 10 && share > 0) {
          if (bar == nullptr) bar = std::make_unique<ProgressBar>("reading");
          bar->update(share);
        }
      }
    });
  }
  ~PrefillWatch() {
    done_ = true;
    if (thread_.joinable()) thread_.join();
  }
  PrefillWatch(const PrefillWatch&) = delete;
  PrefillWatch& operator=(const PrefillWatch&) = delete;

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

/// Appends the fill-in-the-middle prompt for the text between `prefix` and `suffix` to the session.
void append_gap(const Model& model, const Session& session, const std::string& prefix,
                const std::string& suffix) {
  const gen_tokenizer* tokenizer = gen_model_tokenizer(model.get());
  gen_error error;
  size_t n = 0;
  const auto encode = [&](int32_t* ids, size_t capacity) {
    check(gen_tokenizer_encode_fim(tokenizer, prefix.data(), prefix.size(), suffix.data(),
                                   suffix.size(), GEN_ENCODE_ADD_BOS, ids, capacity, &n, &error),
          error);
  };
  encode(nullptr, 0);
  std::vector<int32_t> ids(n);
  encode(ids.data(), ids.size());
  const InterruptGuard interrupt(session.get());
  check(gen_session_append_tokens(session.get(), ids.data(), ids.size(), &error), error);
}

/// A session may be saved where it was loaded from: it is read whole before.
void check_run_outputs(const Run& options) {
  std::vector<std::string> read = files_of(options.model);
  add_adapter_files(options.lora, &read);
  add_grammar_files(options.sampling.grammar, &read);
  if (options.saves) {
    check_writable(options.save_session, "--save-session");
    check_apart(options.save_session, "--save-session", read);
  }
  if (!options.draws) return;
  read.push_back(options.load_session);
  check_writable(options.draft_svg, "--draft-svg");
  check_apart(options.draft_svg, "--draft-svg", read);
}

void run(const Run& options) {
  if (options.saves || options.draws) check_run_outputs(options);
  std::string prompt = options.prompt;
  if (prompt == "-") {
    prompt.assign(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  }
  const Model model = load_model(options.model);
  const Generator generator = make_generator(model, options.model);
  const Session session = make<Session>(gen_session_new, generator.get());
  gen_error error;
  if (!options.load_session.empty()) {
    check(gen_session_load(session.get(), options.load_session.c_str(), &error), error);
  }
  const uint64_t seed = seed_of(options.sampling);
  const Sampling sampling = make_sampling(options.sampling, seed);
  use_adapters(options.lora, model, sampling);
  if (options.echo && !options.json) std::cout << prompt << std::flush;
  if (options.suffix) {
    append_gap(model, session, prompt, *options.suffix);
    prompt.clear();
  }

  gen_result* raw = nullptr;
  gen_status status = GEN_OK;
  {
    const InterruptGuard interrupt(session.get());
    const PrefillWatch watch(session.get());
    status = gen_session_generate_stream(session.get(), prompt.data(), prompt.size(),
                                         sampling.get(), options.json ? swallow_piece : print_piece,
                                         nullptr, &raw, &error);
  }
  const Result result(raw);
  if (result != nullptr) {
    if (options.json) {
      nlohmann::ordered_json json = result_json(result.get());
      json["seed"] = seed;
      std::cout << json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
                << "\n";
    } else {
      std::cout << "\n" << std::flush;
    }
    if (options.stats) std::cerr << speed_line(result.get()) << "\n";
    if (options.draft_stats) std::cerr << draft_line(result.get()) << "\n";
    if (options.draws) {
      write_file(options.draft_svg,
                 draft_svg(prompt, result.get(), gen_model_tokenizer(model.get())));
    }
    if (!options.sampling.seed) std::cerr << "seed: " << seed << "\n";
  }
  check_output();
  // After an interrupt there is a partial answer.
  if (options.saves && (status == GEN_OK || status == GEN_ERROR_CANCELLED)) {
    gen_error failure;
    check(gen_session_save(session.get(), options.save_session.c_str(), &failure), failure);
  }
  check(status, error);
  const std::string cut = cut_off(options.sampling.grammar, model.get(), result.get());
  if (!cut.empty()) throw Failure(cut, kCutOff);
}

/// Arguments that belong to no option: usually a prompt without -p, or without quotation marks.
void refuse_words(const CLI::App& command, bool no_prompt) {
  const std::vector<std::string> words = command.remaining();
  if (words.empty()) return;
  if (words[0].size() > 1 && words[0][0] == '-') throw CLI::ExtrasError({words[0]});
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  throw Failure("'" + text.substr(0, 64) + "' belongs to no option; a prompt is given as " +
                    (no_prompt ? "-p \"" + text.substr(0, 64) + "\"" : "-p \"one text\""),
                2);
}

}  // namespace

void add_run(CLI::App& app) {
  auto options = std::make_shared<Run>();
  CLI::App* command = app.add_subcommand("run", "continue a prompt");
  add_model_options(*command, options->model);
  add_kv_option(*command, options->model);
  add_draft_options(*command, options->model);
  add_adapter_option(*command, options->lora);
  add_context_option(*command, options->model);
  add_deterministic_option(*command, options->model);
  add_sampling_options(*command, options->sampling);
  CLI::Option* prompt = command->add_option("-p,--prompt", options->prompt,
                                            "text to continue; - reads standard input");
  CLI::Option* special = command->add_flag(
      "--special", options->model.special,
      "special tokens written in prompts are parsed as such, not as their characters");
  command
      ->add_option("--suffix", options->suffix,
                   "text after the gap to fill, for code models; --prompt is the text before it")
      ->needs(prompt)
      ->excludes(special);
  CLI::Option* load = command->add_option("--load-session", options->load_session,
                                          "continue a saved session; the prompt may be omitted");
  command->add_option("--save-session", options->save_session,
                      "save the session afterwards, to continue it later");
  command->add_flag("--json", options->json, "print one JSON object at the end");
  command->add_flag("--echo", options->echo, "print the prompt before its continuation");
  command->add_flag("--stats", options->stats, "print speeds to standard error");
  command->add_flag("--draft-stats", options->draft_stats,
                    "print the statistics of drafts to standard error");
  command->add_option("--draft-svg", options->draft_svg,
                      "draw the answer as SVG into this file: what was drafted, and accepted");
  command->allow_extras();
  command->callback([options, prompt, load, command] {
    options->saves = command->count("--save-session") > 0;
    options->draws = command->count("--draft-svg") > 0;
    refuse_words(*command, prompt->count() == 0);
    if (prompt->count() == 0 && load->count() == 0) throw CLI::RequiredError("--prompt");
    run(*options);
  });
}

}  // namespace cli
