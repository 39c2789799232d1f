// SPDX-License-Identifier: Apache-2.0
// Between the thread that generates and the one that talks to a client: pieces of text in one
// direction, the wish to stop in the other.
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

/// A token that was drawn, and the most probable ones in its place, best first.
struct Drawn {
  int32_t id = -1;
  float logprob = 0;
  std::vector<std::pair<int32_t, float>> top;
};

/// How one choice ended.
struct End {
  int32_t finish_reason = GEN_FINISH_NONE;  // GEN_FINISH_…
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of the prompt, not computed anew
  int64_t completion_tokens = 0;
  int64_t drafted_tokens = 0;   // guessed, see --draft
  int64_t accepted_tokens = 0;  // of these, right
  gen_status status = GEN_OK;   // anything else: the choice failed, and `message` says why
  std::string message;
};

/// A piece of a choice's text, or its end.
struct Event {
  size_t choice = 0;
  std::string text;
  std::optional<End> end;
  std::vector<Drawn> drawn;  // since the event before, if log-probabilities were asked for
};

/// All choices of one request. One client's thread takes events; any thread may do the rest.
class Answer {
 public:
  explicit Answer(size_t choices) : open_(choices), cancel_(cli::make<Cancel>(gen_cancel_new)) {}

  /// Waits for the next event, at most for `patience`. Nothing if none came, or if all choices have
  /// ended and their events are taken. std::bad_alloc if one was lost.
  std::optional<Event> next(std::chrono::milliseconds patience);
  /// All ends are taken.
  bool over() const;

  /// Stops all choices at their next token, or while their prompt is being run.
  void cancel();
  bool cancelled() const { return cancelled_; }

  // For who generates.
  void push(Event event) noexcept;
  /// There was no memory for an event.
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
