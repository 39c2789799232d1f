// SPDX-License-Identifier: Apache-2.0
// One request being answered: submitted to the engine, then written to a client, streamed or whole.
// If the client leaves, the answer is abandoned. Knows nothing of HTTP.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answer.h"
#include "engine.h"
#include "languages.h"
#include "metrics.h"
#include "openai/request.h"
#include "openai/response.h"
#include "prompts.h"

namespace server {

/// The receiver of the answer.
class Client {
 public:
  virtual ~Client() = default;
  /// False if the client has gone.
  virtual bool write(std::string_view bytes) = 0;
  /// Whether the client is still connected, as far as can be told.
  virtual bool is_there() = 0;
};

class Reply {
 public:
  struct Gone {};

  /// Submits the request, once its language is compiled. ApiError if the model cannot take it or
  /// the queue is full, Gone if the client left.
  Reply(const Encoder& encoder, Languages& languages, Engine& engine, Metrics& metrics,
        const Request& request, Heading heading, Client& client);
  /// Abandons an unfinished answer.
  ~Reply();
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;

  /// Waits for the first event. ApiError if that is a failure: no byte is written yet, so it can
  /// still have its own status. False if the client left.
  bool wait_for_first_event(Client& client);
  /// Writes the answer as it comes, in server-sent events. False if the client left.
  bool stream_to(Client& client);
  /// Writes the answer as one body once it is complete. False if the client left or a choice
  /// failed: then the body must not look complete.
  bool write_to(Client& client);

 private:
  std::optional<Event> next_event(Client& client);
  ApiError failure(const End& end) const;
  void count(const Event& end);
  bool stream_event(Client& client, const Event& event);
  /// The choice as changed by an event, without its text.
  Choice part(const Event& event);

  const Encoder& encoder_;
  Engine& engine_;
  Metrics& metrics_;
  const Metrics::Gauge counted_;
  Heading heading_;
  std::string language_field_;  // the field that constrains the answers; empty if none does
  bool own_mix_;                // "lora" says which adapters make the answers
  Languages::Made language_;    // shared with equal requests; null without a constraint
  size_t choices_of_prompt_;
  Usage usage_;
  std::shared_ptr<Answer> answer_;
  std::optional<Event> first_;
  std::vector<bool> begun_;      // the choice's role was written
  std::vector<size_t> offsets_;  // characters of each choice's prompt and text so far
};

}  // namespace server
