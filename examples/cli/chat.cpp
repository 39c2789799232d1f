// SPDX-License-Identifier: Apache-2.0
// generate chat: a conversation at the terminal, with the model's own template. /reset restarts,
// /exit or the end of input quits, /help lists these commands, Ctrl-C stops an answer.
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "adapters.h"
#include "chat_template.h"
#include "interrupt.h"
#include "model_file.h"
#include "output.h"
#include "results.h"
#include "sampling_options.h"
#include "text_file.h"
#include "text_format.h"

namespace cli {
namespace {

struct ChatRun {
  ModelChoice model;
  std::vector<std::string> lora;  // --lora
  SamplingChoice sampling;
  std::string system;
  std::string form;
  std::string tools;
  std::vector<std::string> variables;
  bool stats = false;
  bool terminal = false;
};

/// Answers usually end by themselves; this limits those that do not.
constexpr int32_t kMaxTokens = 4096;

constexpr const char* kHelp = "/reset restarts, /exit quits, Ctrl-C stops an answer";

/// An empty conversation.
Chat new_chat(const ChatRun& options) {
  auto chat = make<Chat>(gen_chat_new);
  gen_error error;
  const std::string form = chat_template(options.form);
  check(gen_chat_set_template(chat.get(), form.data(), form.size(), &error), error);
  for (const std::string& variable : options.variables) {
    const size_t at = variable.find('=');
    if (at == std::string::npos) throw Failure("--variable: '" + variable + "' has no '='", 2);
    const std::string value = variable.substr(at + 1);
    check_option("--variable",
                 gen_chat_set_variable(chat.get(), variable.substr(0, at).c_str(), value.data(),
                                       value.size(), &error),
                 error);
  }
  if (!options.tools.empty()) {
    const auto tools =
        nlohmann::ordered_json::parse(text_of_file(options.tools), nullptr, /*exceptions=*/false);
    if (!tools.is_array()) throw Failure("--tools: " + options.tools + " is not a JSON array", 2);
    for (const auto& tool : tools) {
      const std::string text = tool.dump();
      check_option("--tools", gen_chat_add_tool(chat.get(), text.data(), text.size(), &error),
                   error);
    }
  }
  if (!options.system.empty()) {
    check_option(
        "--system",
        gen_chat_add(chat.get(), "system", options.system.data(), options.system.size(), &error),
        error);
  }
  return chat;
}

/// Fails if the template refuses every conversation, before one is begun.
void check_template(const Model& model, const ChatRun& options) {
  const Chat chat = new_chat(options);
  gen_error error;
  check(gen_chat_add(chat.get(), "user", "Hello", GEN_NUL_TERMINATED, &error), error);
  size_t n = 0;
  const gen_status status = gen_chat_encode(model.get(), chat.get(), 1, nullptr, 0, &n, &error);
  if (status != GEN_ERROR_UNSUPPORTED) return;  // anything else is about this conversation
  const std::string said = error.message;
  throw Failure(options.form.empty() ? said + "; choose one with --chat-template" : said, 1,
                status);
}

/// Why an answer was cut off, for a terminal; empty if it was not.
std::string cut_note(int32_t reason, int32_t most) {
  switch (reason) {
    case GEN_FINISH_LENGTH:
      return "[cut off after " + std::to_string(most) + " tokens; -n allows more]";
    case GEN_FINISH_CANCELLED:
      return "[stopped]";
    case GEN_FINISH_CONTEXT_FULL:
      return "[cut off: the context is full; --context-policy shift makes room]";
    default:
      return {};
  }
}

/// One turn, streamed to standard output.
void answer(gen_chat_session* talk, const ChatRun& options, const Model& model,
            const Sampling& sampling, const std::string& line) {
  gen_result* raw = nullptr;
  gen_error error;
  gen_status status = GEN_OK;
  {
    const InterruptGuard interrupt(gen_chat_session_session(talk));
    status = gen_chat_session_send_stream(talk, line.data(), line.size(), sampling.get(),
                                          print_piece, nullptr, &raw, &error);
  }
  const Result result(raw);
  std::cout << "\n" << std::flush;
  if (result != nullptr) {
    const std::string note =
        cut_note(gen_result_finish_reason(result.get()), options.sampling.max_new_tokens);
    if (options.terminal && !note.empty()) std::cerr << note << "\n";
    if (options.stats) std::cerr << speed_line(result.get()) << "\n";
  }
  if (status != GEN_ERROR_CANCELLED) check(status, error);
  const std::string cut = status == GEN_OK
                              ? cut_off(options.sampling.grammar, model.get(), result.get())
                              : std::string();
  if (!cut.empty()) throw Failure(cut, kCutOff);
}

bool is_command(const std::string& line) {
  return line.size() > 1 && line[0] == '/' &&
         std::all_of(line.begin() + 1, line.end(),
                     [](unsigned char c) { return std::isalpha(c) != 0; });
}

void chat(ChatRun options) {
  const Model model = load_model(options.model);
  const Generator generator = make_generator(model, options.model);
  const uint64_t seed = seed_of(options.sampling);
  const Sampling sampling = make_sampling(options.sampling, seed);
  use_adapters(options.lora, model, sampling);
  options.terminal = isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
  const auto start = [&] {
    const Chat empty = new_chat(options);
    return make<ChatSession>(gen_chat_session_new, generator.get(), empty.get());
  };
  ChatSession talk = start();
  check_template(model, options);
  if (options.terminal) {
    std::cerr << kHelp << "; seed " << seed << "\n";
  } else if (options.stats) {
    std::cerr << "seed " << seed << "\n";
  }
  int64_t n_messages = 0;
  int64_t n_failed = 0;
  std::string first_failure;
  bool cut = false;
  std::string line;
  if (options.terminal) {
    std::setvbuf(stdin, nullptr, _IONBF, 0);  // the wait for a line sees all input that has arrived
    keep_interrupts();
  }
  for (;;) {
    if (options.terminal) std::cerr << "> ";
    const Line got = options.terminal ? read_line_at_terminal(&line) : read_line(&line);
    if (got == Line::kInterrupted) {
      std::cerr << "\nCtrl-C again or /exit quits\n";
      continue;
    }
    if (got == Line::kEnd) break;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line == "/exit") break;
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    if (line == "/help") {
      std::cerr << kHelp << "\n";
      continue;
    }
    if (line == "/reset") {
      talk = start();
      continue;
    }
    if (is_command(line)) {
      std::cerr << "generate: no command " << line.substr(0, 64) << "; " << kHelp << "\n";
      continue;
    }
    ++n_messages;
    try {
      answer(talk.get(), options, model, sampling, line);
    } catch (const Failure& failure) {
      // One bad line should not lose the others.
      std::string said = failure.what();
      if (failure.status == GEN_ERROR_CONTEXT_FULL) {
        // With "shift" all earlier turns have been left out already.
        said += options.model.context == "stop"
                    ? "; /reset restarts, --context-policy shift makes room"
                    : "; shorten the message, or give a larger --ctx";
      }
      if (!options.terminal) said = "message " + std::to_string(n_messages) + ": " + said;
      std::cerr << "generate: " << printable(said) << "\n";
      if (failure.exit_code == kCutOff) {
        cut = true;
      } else if (n_failed++ == 0) {
        first_failure = said;
      }
    }
    check_output();
  }
  if (n_failed > 0 && !options.terminal) {
    throw Failure(std::to_string(n_failed) + " of " + std::to_string(n_messages) +
                  " messages not answered; first " + first_failure);
  }
  if (cut && !options.terminal) throw Failure("not every answer follows the grammar", kCutOff);
}

}  // namespace

void add_chat(CLI::App& app) {
  auto options = std::make_shared<ChatRun>();
  options->sampling.temperature = 0.6;
  options->sampling.seed.reset();
  options->sampling.max_new_tokens = kMaxTokens;
  options->model.context = "shift";
  CLI::App* command = app.add_subcommand("chat", "talk with the model");
  add_model_options(*command, options->model);
  add_kv_option(*command, options->model);
  add_draft_options(*command, options->model);
  add_adapter_option(*command, options->lora);
  add_context_option(*command, options->model);
  add_deterministic_option(*command, options->model);
  add_sampling_options(*command, options->sampling);
  command->add_option("--system", options->system, "the system message");
  command->add_option("--chat-template", options->form, kChatTemplateHelp)->type_name("FILE|NAME");
  command
      ->add_option("--tools", options->tools, "a JSON file with an array of tools for the template")
      ->type_name("FILE");
  command
      ->add_option("--variable", options->variables,
                   "a variable of the template and its JSON value: enable_thinking=false")
      ->type_name("NAME=JSON");
  command->add_flag("--stats", options->stats, "print speeds to standard error");
  command->callback([options] { chat(*options); });
}

}  // namespace cli
