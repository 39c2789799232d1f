// SPDX-License-Identifier: Apache-2.0
// See reply.h.
#include "reply.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <random>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "prompts.h"

namespace server {
namespace {

/// How often a waiting client is checked.
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

Reply::Reply(const Encoder& encoder, Languages& languages, Engine& engine, Metrics& metrics,
             const Request& request, Heading heading, Client& client)
    : encoder_(encoder),
      engine_(engine),
      metrics_(metrics),
      counted_(metrics.clients),
      heading_(std::move(heading)),
      own_mix_(request.own_mix),
      choices_of_prompt_(static_cast<size_t>(request.n)),
      answer_(std::make_shared<Answer>(request.choices())),
      begun_(request.choices(), false),
      offsets_(request.choices(), 0) {
  heading_.chat = request.chat;
  heading_.logprobs = request.logprobs >= 0;
  heading_.usage = request.include_usage;
  if (request.choices() > engine_.capacity()) {
    throw bad_request("n", "the request asks for " + std::to_string(request.choices()) +
                               " answers, and the server has room for " +
                               std::to_string(engine_.capacity()));
  }
  const uint64_t seed = random_seed();
  std::vector<Task> tasks;
  const auto prompts = encoder_.prompts(request);
  Matcher matcher;
  if (request.language) {
    language_field_ = request.language->field;
    language_ = languages.get(*request.language, [&] { return client.is_there(); });
    if (language_ == nullptr) {
      ++metrics_.disconnects;
      throw Gone();
    }
    matcher = language_->matcher();
  }
  for (size_t p = 0; p < prompts.size(); ++p) {
    usage_.prompt_tokens += static_cast<int64_t>(prompts[p]->size());
    const bool counted = heading_.logprobs && !request.chat;
    const size_t offset = counted ? encoder_.text_size(request.prompts[p]) : 0;
    for (size_t i = 0; i < static_cast<size_t>(request.n); ++i) {
      offsets_[tasks.size()] = offset;
      tasks.push_back({answer_, tasks.size(), prompts[p], language_,
                       shared(make_sampling(encoder_.model(), request, i, seed, answer_->flag(),
                                            matcher.get())),
                       heading_.logprobs});
    }
  }
  switch (engine_.submit(std::move(tasks))) {
    case Engine::Admission::kTaken:
      return;
    case Engine::Admission::kFull:
      throw server_error(503,
                         "the queue is full: the server runs and queues at most " +
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

// A model with adapters that the server's owner chose should give numbers; with a client's scales
// it need not.
ApiError Reply::failure(const End& end) const {
  if (own_mix_ && end.status == GEN_ERROR_MODEL) {
    return bad_request("lora", "with these adapters and scales " + end.message);
  }
  const bool is_mix = own_mix_ && end.status == GEN_ERROR_INVALID_ARGUMENT;
  const std::string field = end.status == GEN_ERROR_GRAMMAR ? language_field_
                            : is_mix                        ? "lora"
                                                            : std::string();
  return library_error(end.status, end.message, field);
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

Choice Reply::part(const Event& event) {
  Choice choice;
  choice.index = event.choice;
  if (event.end) choice.finish_reason = finish_name(event.end->finish_reason);
  const gen_model* model = encoder_.model();
  size_t offset = offsets_[event.choice];
  for (const Drawn& drawn : event.drawn) {
    ScoredToken token;
    token.piece = {drawn.id, token_bytes(model, drawn.id), drawn.logprob};
    for (const auto& [id, logprob] : drawn.top) {
      token.top.push_back({id, token_bytes(model, id), logprob});
    }
    token.offset = offset;
    offset += token_characters(model, drawn.id);
    choice.tokens.push_back(std::move(token));
  }
  offsets_[event.choice] += characters(event.text);
  return choice;
}

void Reply::count(const Event& end) {
  usage_.completion_tokens += end.end->completion_tokens;
  usage_.drafted_tokens += end.end->drafted_tokens;
  usage_.accepted_tokens += end.end->accepted_tokens;
  // A prompt counts once, however many answers it has.
  if (end.choice % choices_of_prompt_ != 0) return;
  usage_.cached_tokens += end.end->cached_tokens;
  usage_.evaluated_tokens += end.end->evaluated_tokens;
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
  Choice piece = part(event);
  if (event.end) {
    count(event);
    out += server::event(end_chunk(heading_, piece));
  } else {
    piece.text = event.text;
    out += server::event(text_chunk(heading_, piece));
  }
  return client.write(out);
}

bool Reply::stream_to(Client& client) {
  while (first_ || !answer_->over()) {
    const auto event = next_event(client);
    if (!event || !stream_event(client, *event)) return false;
  }
  std::string out;
  if (heading_.usage) out = server::event(usage_chunk(heading_, usage_));
  out += end_of_events();
  return client.write(out);
}

bool Reply::write_to(Client& client) {
  std::vector<Choice> choices(begun_.size());
  while (first_ || !answer_->over()) {
    auto event = next_event(client);
    if (!event) return false;
    if (event->end && event->end->status != GEN_OK) return false;
    if (event->end) count(*event);
    Choice piece = part(*event);
    Choice& choice = choices[event->choice];
    choice.index = piece.index;
    choice.text += event->text;
    choice.finish_reason = piece.finish_reason;
    std::move(piece.tokens.begin(), piece.tokens.end(), std::back_inserter(choice.tokens));
  }
  return client.write(dump(answer_json(heading_, choices, usage_)));
}

}  // namespace server
