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
#include "tools.h"

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
  std::vector<std::string> answers;  // --set
  bool stats = false;
  bool terminal = false;
};

/// Answers usually end by themselves; this limits those that do not.
constexpr int32_t kMaxTokens = 4096;

constexpr const char* kHelp = "/reset restarts, /exit quits, Ctrl-C stops an answer";

/// KEY=VALUE of an option.
std::pair<std::string, std::string> split(const char* option, const std::string& text) {
  const size_t at = text.find('=');
  if (at == std::string::npos)
    throw Failure(std::string(option) + ": '" + text + "' has no '='", 2);
  return {text.substr(0, at), text.substr(at + 1)};
}

/// The settings of a conversation.
void prepare(gen_chat* chat, const ChatRun& options, bool agent) {
  gen_error error;
  const std::string form = chat_template(options.form);
  check(gen_chat_set_template(chat, form.data(), form.size(), &error), error);
  for (const std::string& answer : options.answers) {
    const auto [key, value] = split("--set", answer);
    if (agent && key == "tool_choice") continue;  // an option of the agent's
    check_option("--set", gen_chat_set(chat, key.c_str(), value.c_str(), &error), error);
  }
  for (const std::string& variable : options.variables) {
    const auto [name, value] = split("--variable", variable);
    check_option("--variable",
                 gen_chat_set_variable(chat, name.c_str(), value.data(), value.size(), &error),
                 error);
  }
}

/// An empty conversation; `tools` may be null.
Chat new_chat(const ChatRun& options, const Tools* tools) {
  auto chat = make<Chat>(gen_chat_new);
  gen_error error;
  prepare(chat.get(), options, false);
  if (tools != nullptr) {
    for (const std::string& text : tools->descriptions()) {
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
void check_template(const Model& model, const ChatRun& options, const Tools* tools) {
  const Chat chat = new_chat(options, tools);
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

/// Text goes to standard output, and what else there is of an answer, at a terminal, to standard
/// error.
class Printer {
 public:
  explicit Printer(bool terminal) : terminal_(terminal) {}

  static int token(void* user, const gen_token* token) {
    auto& self = *static_cast<Printer*>(user);
    for (int32_t i = 0; i < token->piece_count; ++i) {
      const gen_piece& piece = token->pieces[i];
      self.print(piece.kind, {piece.text, piece.len});
    }
    return std::fflush(stdout) == 0 ? 0 : 1;
  }
  static int event(void* user, const gen_agent_event* event) {
    auto& self = *static_cast<Printer*>(user);
    const std::string text(event->text, event->len);
    if (event->kind == GEN_AGENT_TOOL_ENDED) {
      self.note(std::string(event->is_error != 0 ? " failed: " : " = ") + text + "]\n");
    } else if (event->kind == GEN_AGENT_TOOL_BEGAN) {
      self.note("[" + std::string(event->name) + " " + text);
    } else if (event->kind == GEN_AGENT_TEXT || event->kind == GEN_AGENT_REASONING) {
      self.print(event->kind, text);
    }
    return std::fflush(stdout) == 0 ? 0 : 1;
  }

 private:
  void note(const std::string& text) const {
    if (terminal_) std::cerr << text << std::flush;
  }
  void print(int32_t kind, const std::string& text) {
    switch (kind) {
      case GEN_PIECE_TEXT:
        if (reasoning_) note("\n");
        reasoning_ = false;
        std::fwrite(text.data(), 1, text.size(), stdout);
        break;
      case GEN_PIECE_REASONING:
        reasoning_ = true;
        note(text);
        break;
      case GEN_PIECE_CALL_NAME:
        std::fwrite("[", 1, 1, stdout);
        std::fwrite(text.data(), 1, text.size(), stdout);
        std::fwrite(" ", 1, 1, stdout);
        break;
      case GEN_PIECE_ARGUMENTS:
        std::fwrite(text.data(), 1, text.size(), stdout);
        break;
      default:
        std::fwrite("]\n", 1, 2, stdout);
        break;
    }
  }

  bool terminal_;
  bool reasoning_ = false;
};

/// A conversation, with tools that run or without.
struct Talk {
  ChatSession session;  // null for an agent's
  Agent agent;
};

bool ran_out_of_steps(const gen_agent* agent) {
  size_t n = 0;
  gen_error error;
  check(gen_agent_describe(agent, nullptr, 0, &n, &error), error);
  std::string text(n + 1, '\0');
  check(gen_agent_describe(agent, text.data(), text.size(), &n, &error), error);
  text.resize(n);
  return nlohmann::json::parse(text).at("stop_reason") == "max_steps";
}

/// One turn, streamed to standard output.
void answer(const Talk& talk, const ChatRun& options, const Model& model, const Sampling& sampling,
            const std::string& line) {
  gen_result* raw = nullptr;
  gen_error error;
  gen_status status = GEN_OK;
  Printer printer(options.terminal);
  if (talk.agent != nullptr) {
    const InterruptGuard interrupt(talk.agent.get());
    status = gen_agent_run(talk.agent.get(), line.data(), line.size(), Printer::event, &printer,
                           &raw, &error);
  } else {
    const InterruptGuard interrupt(gen_chat_session_session(talk.session.get()));
    status = gen_chat_session_send_stream(talk.session.get(), line.data(), line.size(),
                                          sampling.get(), Printer::token, &printer, &raw, &error);
  }
  const Result result(raw);
  std::cout << "\n" << std::flush;
  if (result != nullptr) {
    const std::string note =
        cut_note(gen_result_finish_reason(result.get()), options.sampling.max_new_tokens);
    if (options.terminal && !note.empty()) std::cerr << note << "\n";
    if (options.stats) std::cerr << speed_line(result.get()) << "\n";
  }
  if (status == GEN_OK && talk.agent != nullptr && ran_out_of_steps(talk.agent.get())) {
    std::cerr << "[stopped: each answer called a tool]\n";
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
  std::unique_ptr<Tools> tools;
  if (!options.tools.empty()) tools = std::make_unique<Tools>(options.tools);
  const auto start = [&]() -> Talk {
    if (tools == nullptr || !tools->run()) {
      const Chat empty = new_chat(options, tools.get());
      return {make<ChatSession>(gen_chat_session_new, generator.get(), empty.get()), nullptr};
    }
    gen_error error;
    const auto registry = make<ToolRegistry>(gen_tool_registry_new);
    tools->add_to(registry.get());
    const auto how = make<AgentOptions>(gen_agent_options_new);
    check_option("--system",
                 gen_agent_options_set(how.get(), "system", options.system.c_str(), &error), error);
    check(gen_agent_options_set_sampling(how.get(), sampling.get(), &error), error);
    for (const std::string& answer : options.answers) {
      const auto [key, value] = split("--set", answer);
      if (key != "tool_choice") continue;  // of the first answer; the others are as the model wants
      check_option("--set", gen_agent_options_set(how.get(), "tool_choice", value.c_str(), &error),
                   error);
    }
    Talk made{nullptr, make<Agent>(gen_agent_new, generator.get(), registry.get(), how.get())};
    prepare(gen_agent_chat(made.agent.get()), options, true);
    return made;
  };
  Talk talk = start();
  check_template(model, options, tools.get());
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
      answer(talk, options, model, sampling, line);
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
      ->add_option(
          "--tools", options->tools,
          "tools that the model may call: a JSON file with an array of them, which says what "
          "runs each (docs/agents.md), or calculator")
      ->type_name("FILE|calculator");
  command
      ->add_option("--set", options->answers,
                   "an option of answers (docs/options.md): tool_choice=required, reasoning=off, …")
      ->type_name("KEY=VALUE");
  command
      ->add_option("--variable", options->variables,
                   "a variable of the template and its JSON value: enable_thinking=false")
      ->type_name("NAME=JSON");
  command->add_flag("--stats", options->stats, "print speeds to standard error");
  command->callback([options] { chat(*options); });
}

}  // namespace cli
