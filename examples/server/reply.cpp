// SPDX-License-Identifier: Apache-2.0
// See reply.h.
#include "reply.h"

#include <chrono>
#include <random>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "prompts.h"

namespace server {
namespace {

/// How often a client that waits for its next token is looked after.
constexpr auto kPatience = std::chrono::milliseconds(25);

const char* finish_name(int32_t reason) {
  const bool length = reason == GEN_FINISH_LENGTH || reason == GEN_FINISH_CONTEXT_FULL;
  return length ? "length" : "stop";
}

uint64_t random_seed() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32U) | device();
}

std::shared_ptr<const gen_sampling> shared(cli::Sampling sampling) {
  return std::shared_ptr<gen_sampling>(std::move(sampling));
}

}  // namespace

Reply::Reply(const Encoder& encoder, Engine& engine, Metrics& metrics, const Request& request,
             Heading heading)
    : encoder_(encoder),
      engine_(engine),
      metrics_(metrics),
      counted_(metrics.clients),
      heading_(std::move(heading)),
      include_usage_(request.include_usage),
      choices_of_prompt_(static_cast<size_t>(request.n)),
      answer_(std::make_shared<Answer>(request.choices())),
      begun_(request.choices(), false) {
  heading_.chat = request.chat;
  heading_.logprobs = request.logprobs >= 0;
  if (request.choices() > engine_.capacity()) {
    throw bad_request("n", "the request asks for " + std::to_string(request.choices()) +
                               " answers, and the server has room for " +
                               std::to_string(engine_.capacity()));
  }
  const uint64_t seed = random_seed();
  const Matcher matcher = encoder_.matcher(request);
  if (request.language) language_ = request.language->field;
  std::vector<Task> tasks;
  for (const auto& prompt : encoder_.prompts(request)) {
    usage_.prompt_tokens += static_cast<int64_t>(prompt->size());
    for (size_t i = 0; i < static_cast<size_t>(request.n); ++i) {
      tasks.push_back({answer_, tasks.size(), prompt,
                       shared(make_sampling(encoder_.model(), request, i, seed, answer_->flag(),
                                            matcher.get()))});
    }
  }
  switch (engine_.submit(std::move(tasks))) {
    case Engine::Admission::kTaken:
      return;
    case Engine::Admission::kFull:
      throw server_error(503,
                         "no room beside the answers that run and wait, at most " +
                             std::to_string(engine_.capacity()) + " answers; try again later",
                         "overloaded");
    case Engine::Admission::kStopping:
      throw library_error(GEN_ERROR_CANCELLED, {}, {});
  }
}

Reply::~Reply() {
  if (!answer_->over()) engine_.abandon(answer_);
}

bool Reply::wait_for_first_event(Client& client) {
  first_ = next_event(client);
  if (first_ && first_->end && first_->end->status != GEN_OK) {
    throw failure(*first_->end);
  }
  return first_.has_value();
}

ApiError Reply::failure(const End& end) const {
  return library_error(end.status, end.message,
                       end.status == GEN_ERROR_GRAMMAR ? language_ : std::string());
}

/// Nothing if the client left.
std::optional<Event> Reply::next_event(Client& client) {
  if (first_) return std::exchange(first_, std::nullopt);
  for (;;) {
    auto event = answer_->next(kPatience);
    if (!client.is_there()) {
      ++metrics_.disconnects;
      return std::nullopt;
    }
    if (event) return event;
  }
}

Choice Reply::finished_choice(size_t index, std::string text, const End& end) const {
  Choice choice;
  choice.index = index;
  choice.text = std::move(text);
  choice.finish_reason = finish_name(end.finish_reason);
  for (const Drawn& drawn : end.drawn) {
    ScoredToken token;
    token.piece = {token_bytes(encoder_.model(), drawn.id), drawn.logprob};
    for (const auto& [id, logprob] : drawn.top) {
      token.top.push_back({token_bytes(encoder_.model(), id), logprob});
    }
    choice.tokens.push_back(std::move(token));
  }
  return choice;
}

void Reply::count(const Event& end) {
  usage_.completion_tokens += end.end->completion_tokens;
  usage_.drafted_tokens += end.end->drafted_tokens;
  usage_.accepted_tokens += end.end->accepted_tokens;
  // A prompt counts once, whatever the number of its answers.
  if (end.choice % choices_of_prompt_ == 0) usage_.cached_tokens += end.end->cached_tokens;
}

bool Reply::stream_event(Client& client, const Event& event) {
  if (event.end && event.end->status != GEN_OK) {
    client.write(server::event(error_json(failure(*event.end))));
    return false;
  }
  std::string out;
  if (heading_.chat && !begun_[event.choice])
    out += server::event(role_chunk(heading_, event.choice));
  begun_[event.choice] = true;
  if (!event.text.empty()) {
    out += server::event(text_chunk(heading_, event.choice, event.text));
  }
  if (event.end) {
    count(event);
    out += server::event(end_chunk(heading_, finished_choice(event.choice, {}, *event.end)));
  }
  return client.write(out);
}

bool Reply::stream_to(Client& client) {
  while (first_ || !answer_->over()) {
    const auto event = next_event(client);
    if (!event || !stream_event(client, *event)) return false;
  }
  std::string out;
  if (include_usage_) out = server::event(usage_chunk(heading_, usage_));
  out += end_of_events();
  return client.write(out);
}

bool Reply::write_to(Client& client) {
  std::vector<Choice> choices(begun_.size());
  std::vector<std::string> texts(begun_.size());
  while (first_ || !answer_->over()) {
    auto event = next_event(client);
    if (!event) return false;
    texts[event->choice] += event->text;
    if (!event->end) continue;
    if (event->end->status != GEN_OK) return false;
    count(*event);
    choices[event->choice] =
        finished_choice(event->choice, std::move(texts[event->choice]), *event->end);
  }
  return client.write(dump(answer_json(heading_, choices, usage_)));
}

}  // namespace server
