// SPDX-License-Identifier: Apache-2.0
// One request being answered: begun at the engine, then written to a client, piece by piece or
// whole. A client that leaves takes its answer with it. Knows nothing of HTTP.
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

/// Who gets the answer.
class Client {
 public:
  virtual ~Client() = default;
  /// False if the client has gone.
  virtual bool write(std::string_view bytes) = 0;
  /// The client is still there, as far as one can tell.
  virtual bool is_there() = 0;
};

class Reply {
 public:
  struct Gone {};

  /// Submits the request, once its language is made. ApiError if the model cannot take it or the
  /// queue is full, Gone if the client left.
  Reply(const Encoder& encoder, Languages& languages, Engine& engine, Metrics& metrics,
        const Request& request, Heading heading, Client& client);
  /// An answer that is not over is abandoned.
  ~Reply();
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;

  /// Waits until there is something to say. ApiError if that is a failure: no byte is written yet,
  /// so it can still have a status of its own. False if the client left.
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
  /// What an event adds to its choice, its text aside.
  Choice part(const Event& event);

  const Encoder& encoder_;
  Engine& engine_;
  Metrics& metrics_;
  const Metrics::Gauge counted_;
  Heading heading_;
  std::string language_field_;  // which says what texts the answer may be; empty if any
  Languages::Made language_;    // for others who want the same; null if any text will do
  size_t choices_of_prompt_;
  Usage usage_;
  std::shared_ptr<Answer> answer_;
  std::optional<Event> first_;
  std::vector<bool> begun_;  // the choice's role was written
  std::vector<size_t> offsets_;  // characters of each choice's prompt and text so far
};

}  // namespace server
