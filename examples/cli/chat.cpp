// SPDX-License-Identifier: Apache-2.0
// generate chat: a conversation at the terminal, in the model's own form. /reset starts anew, /exit
// or the end of input leaves, /help tells of these, Ctrl-C stops an answer.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "interrupt.h"
#include "model_file.h"
#include "output.h"
#include "results.h"
#include "sampling_options.h"

namespace cli {
namespace {

struct ChatRun {
  ModelChoice model;
  SamplingChoice sampling;
  std::string system;
  bool stats = false;
};

constexpr const char* kHelp = "/reset starts anew, /exit leaves, Ctrl-C stops an answer";

struct Message {
  const char* role;
  std::string text;
};

/// Messages in the model's form, with the opening of an answer behind them if asked for.
std::string laid_out(const Model& model, const std::vector<Message>& messages, bool opening) {
  auto chat = make<Chat>(gen_chat_new);
  gen_error error;
  for (const Message& one : messages) {
    check(gen_chat_add(chat.get(), one.role, one.text.data(), one.text.size(), &error), error);
  }
  return text_of([&](char* buf, size_t capacity, size_t* n, gen_error* e) {
    return gen_chat_format(model.get(), chat.get(), opening ? 1 : 0, buf, capacity, n, e);
  });
}

/// What the form has behind an answer.
std::string end_of_answer(const Model& model) {
  const std::string open = laid_out(model, {{"user", "a"}}, true);
  return laid_out(model, {{"user", "a"}, {"assistant", ""}}, false).substr(open.size());
}

/// Adds a message and the opening of the answer to the session. What came before is there already,
/// up to the end of the last answer: that comes first, then the new turn.
void append_turn(const Model& model, const Session& session, const std::string& system,
                 const std::string& line) {
  gen_error error;
  const bool first = gen_session_length(session.get()) == 0;
  std::vector<Message> messages;
  if (first && !system.empty()) messages.push_back({"system", system});
  messages.push_back({"user", line});
  std::string text = laid_out(model, messages, true);
  if (!first) text.insert(0, end_of_answer(model));

  const gen_tokenizer* tokenizer = gen_model_tokenizer(model.get());
  uint32_t flags = GEN_ENCODE_PARSE_SPECIAL;
  if (first) flags |= GEN_ENCODE_ADD_BOS;
  size_t n = 0;
  check(gen_tokenizer_encode(tokenizer, text.data(), text.size(), flags, nullptr, 0, &n, &error),
        error);
  std::vector<int32_t> ids(n);
  check(gen_tokenizer_encode(tokenizer, text.data(), text.size(), flags, ids.data(), ids.size(), &n,
                             &error),
        error);
  check(gen_session_append_tokens(session.get(), ids.data(), n, &error), error);
}

/// One turn, streamed to standard output.
void answer(const Model& model, const Session& session, const ChatRun& options,
            const Sampling& sampling, const std::string& line) {
  append_turn(model, session, options.system, line);
  gen_result* raw = nullptr;
  gen_error error;
  gen_status status = GEN_OK;
  {
    const InterruptGuard interrupt(session.get());
    status = gen_session_generate_stream(session.get(), "", 0, sampling.get(), print_piece, nullptr,
                                         &raw, &error);
  }
  const Result result(raw);
  // Whether the model ended the answer or it was cut, its end is the form's and comes with the next
  // turn.
  if (gen_result_finish_reason(result.get()) == GEN_FINISH_STOP_TOKEN) {
    check(gen_session_truncate(session.get(), gen_session_length(session.get()) - 1, &error),
          error);
  }
  std::cout << "\n" << std::flush;
  if (result != nullptr && options.stats) std::cerr << speed_line(result.get()) << "\n";
  if (status != GEN_ERROR_CANCELLED) check(status, error);
}

void chat(const ChatRun& options) {
  const Model model = load_model(options.model);
  const Generator generator = make_generator(model, options.model);
  const Session session = make<Session>(gen_session_new, generator.get());
  const uint64_t seed = seed_of(options.sampling);
  const Sampling sampling = make_sampling(options.sampling, seed);
  const bool terminal = isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
  if (terminal) {
    std::cerr << kHelp << "; seed " << seed << "\n";
  } else if (options.stats) {
    std::cerr << "seed " << seed << "\n";
  }
  std::string line;
  for (;;) {
    if (terminal) std::cerr << "> ";
    if (!std::getline(std::cin, line) || line == "/exit") break;
    if (line.empty()) continue;
    if (line == "/help") {
      std::cerr << kHelp << "\n";
      continue;
    }
    gen_error error;
    if (line == "/reset") {
      check(gen_session_reset(session.get(), &error), error);
      continue;
    }
    try {
      answer(model, session, options, sampling, line);
    } catch (const Failure& failure) {
      if (!terminal) throw;
      std::cerr << "generate: " << failure.what()
                << (failure.status == GEN_ERROR_CONTEXT_FULL ? "; /reset starts anew\n" : "\n");
    }
    check_output();
  }
}

}  // namespace

void add_chat(CLI::App& app) {
  auto options = std::make_shared<ChatRun>();
  options->sampling.temperature = 0.6;
  options->sampling.seed.reset();
  CLI::App* command = app.add_subcommand("chat", "talk with the model");
  add_model_options(*command, options->model);
  add_kv_option(*command, options->model);
  add_draft_options(*command, options->model);
  add_context_option(*command, options->model);
  add_sampling_options(*command, options->sampling);
  command->add_option("--system", options->system, "the system message");
  command->add_flag("--stats", options->stats, "print speeds to standard error");
  command->callback([options] { chat(*options); });
}

}  // namespace cli
