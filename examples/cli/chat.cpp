// SPDX-License-Identifier: Apache-2.0
// generate chat: a conversation at the terminal, in the model's own form. /reset starts anew, /exit
// or the end of input leaves, /help tells of these, Ctrl-C stops an answer.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
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

/// What has been said, and the text that the session holds of it; empty if that is not known.
struct Talk {
  std::vector<Message> messages;
  std::string held;
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

std::vector<int32_t> encoded(const Model& model, std::string_view text, uint32_t flags) {
  const gen_tokenizer* tokenizer = gen_model_tokenizer(model.get());
  gen_error error;
  size_t n = 0;
  flags |= GEN_ENCODE_PARSE_SPECIAL;
  check(gen_tokenizer_encode(tokenizer, text.data(), text.size(), flags, nullptr, 0, &n, &error),
        error);
  std::vector<int32_t> ids(n);
  check(gen_tokenizer_encode(tokenizer, text.data(), text.size(), flags, ids.data(), ids.size(), &n,
                             &error),
        error);
  return ids;
}

/// Makes the session hold `ids`: what it has in common with them stays, the rest is evaluated.
void hold(const Session& session, const std::vector<int32_t>& ids) {
  gen_error error;
  std::vector<int32_t> held(static_cast<size_t>(gen_session_length(session.get())));
  size_t n = 0;
  check(gen_session_tokens(session.get(), held.data(), held.size(), &n, &error), error);
  size_t same = static_cast<size_t>(
      std::mismatch(held.begin(), held.end(), ids.begin(), ids.end()).first - held.begin());
  same = std::min(same, ids.size() - 1);  // something is to be evaluated before the answer
  if (same < held.size() &&
      gen_session_truncate(session.get(), static_cast<int32_t>(same), &error) != GEN_OK) {
    check(gen_session_reset(session.get(), &error), error);  // a state that cannot go back
    same = 0;
  }
  check(gen_session_append_tokens(session.get(), ids.data() + same, ids.size() - same, &error),
        error);
}

/// Lays out the talk with the opening of an answer and brings the session there. Where the text
/// goes on from what the session holds, only what is new is encoded; a template may also change
/// what it made of earlier turns (it drops old thoughts, it trims answers), then tokens are
/// compared.
void append_turn(const Model& model, const Session& session, Talk* talk) {
  const std::string text = laid_out(model, talk->messages, true);
  if (!talk->held.empty() && text.size() > talk->held.size() && text.starts_with(talk->held)) {
    const auto ids = encoded(model, std::string_view(text).substr(talk->held.size()), 0);
    gen_error error;
    check(gen_session_append_tokens(session.get(), ids.data(), ids.size(), &error), error);
  } else {
    const auto ids = encoded(model, text, GEN_ENCODE_ADD_BOS);
    if (ids.empty()) throw Failure("the model's chat template gives no token");
    talk->held.clear();
    hold(session, ids);
  }
  talk->held = text;
}

/// One turn, streamed to standard output.
void answer(const Model& model, const Session& session, const ChatRun& options,
            const Sampling& sampling, const std::string& line, Talk* talk) {
  if (talk->messages.empty() && !options.system.empty()) {
    talk->messages.push_back({"system", options.system});
  }
  talk->messages.push_back({"user", line});
  try {
    append_turn(model, session, talk);
  } catch (const Failure&) {
    talk->messages.pop_back();
    throw;
  }
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
  if (result != nullptr) {
    size_t n = 0;
    const char* const said = gen_result_text(result.get(), &n);
    talk->messages.push_back({"assistant", std::string(said, n)});
    // A stop text is not part of the answer but may be of the session.
    const int32_t reason = gen_result_finish_reason(result.get());
    const bool as_said = reason == GEN_FINISH_STOP_TOKEN || reason == GEN_FINISH_LENGTH ||
                         reason == GEN_FINISH_CANCELLED;
    talk->held = as_said ? talk->held + talk->messages.back().text : "";
  } else {
    talk->messages.pop_back();
    talk->held.clear();
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
  Talk talk;
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
      talk = {};
      continue;
    }
    try {
      answer(model, session, options, sampling, line, &talk);
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
