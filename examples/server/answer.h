// SPDX-License-Identifier: Apache-2.0
// The connection between the thread that generates and the one that serves a client: pieces of text
// in one direction, cancellation in the other.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "../cli/handles.h"

namespace server {

/// A drawn token, and the most probable tokens at its position, best first.
struct Drawn {
  int32_t id = -1;
  float logprob = 0;
  std::vector<std::pair<int32_t, float>> top;
};

/// How one choice ended.
struct End {
  int32_t finish_reason = GEN_FINISH_NONE;  // GEN_FINISH_…
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;     // of the prompt, found in the prefix cache
  int64_t evaluated_tokens = 0;  // "prompt_evaluated" of gen_result_usage
  int64_t completion_tokens = 0;
  int64_t drafted_tokens = 0;   // draft tokens, see --draft
  int64_t accepted_tokens = 0;  // of these, accepted
  gen_status status = GEN_OK;   // anything else: the choice failed, and `message` says why
  std::string message;
};

/// A piece of a choice's text, or its end.
struct Event {
  size_t choice = 0;
  std::string text;
  std::optional<End> end;
  std::vector<Drawn> drawn;  // since the previous event, if log-probabilities were asked for
};

/// All choices of one request. The client's thread takes events; any thread may call the rest.
class Answer {
 public:
  explicit Answer(size_t choices) : open_(choices), cancel_(cli::make<Cancel>(gen_cancel_new)) {}

  /// Waits for the next event, at most for `patience`. Nothing if none came, or if all choices have
  /// ended and their events are taken. Throws std::bad_alloc if an event was lost.
  std::optional<Event> next(std::chrono::milliseconds patience);
  /// All choices have ended, and their events are taken.
  bool over() const;

  /// Stops all choices at their next token, or during their prompts.
  void cancel();
  bool cancelled() const { return cancelled_; }

  // For the generating thread.
  void push(Event event) noexcept;
  /// Records that an event was lost for lack of memory.
  void lose() noexcept;
  /// The flag for gen_sampling_set_cancel.
  gen_cancel* flag() const { return cancel_.get(); }

 private:
  using Cancel = cli::Handle<gen_cancel, gen_cancel_free>;

  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Event> events_;
  bool lost_ = false;  // an event
  size_t open_;        // choices whose end is not taken yet
  Cancel cancel_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace server
