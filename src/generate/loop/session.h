// SPDX-License-Identifier: Apache-2.0
// Session: one growing text. It owns a sequence (sequence.h: tokens and their cache);
// Generator::new_session makes it. generation.h generates; everything else is here.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/in_use.h"
#include "base/status.h"
#include "generate/loop/sequence.h"
#include "generate/request/prompt.h"

namespace gen::generate {

class Generation;
class Generator;
struct CallParams;
struct GenResult;

/// Threads: one call at a time; a concurrent call gets kBusy. cancel(), progress() and length() may
/// be called at any time from any thread. Held by shared_ptr: an open generation keeps it alive.
class Session final : public Evictable, public std::enable_shared_from_this<Session> {
 public:
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Whole text or callback form; see run() in run.h.
  Status generate(const Prompt& prompt, const CallParams& params, EventCallback callback,
                  void* user, std::optional<GenResult>* result);
  /// Pull form.
  Result<std::unique_ptr<Generation>> open(const Prompt& prompt, CallParams params);

  /// Adds a prompt without generating. Evaluates all but its last token, which the next call needs
  /// anyway. An empty prompt does nothing. Errors as Generation::open and of the model. After a
  /// cancel the evaluated part stays; after any other failure nothing has changed.
  Status append(const Prompt& prompt);

  /// Makes the session hold the conversation `wanted`: the common beginning stays (match_chat()),
  /// the rest is evaluated as by append(). kContextFull if it exceeds the context, even one that
  /// shifts. After a cancel the evaluated part stays; after any other failure the session holds the
  /// same tokens, some of them pending.
  /// `borders` as in Prompt.
  Status append_chat(std::span<const int32_t> wanted, std::span<const int32_t> borders = {});
  /// Raises the number of first tokens that a shift never drops above the generator's.
  Status set_keep(int32_t n);

  /// Log-probability of each token of the prompt, given all before it. A BOS that is added to the
  /// prompt is not scored; a token with nothing before it scores 0. Changes nothing. `tokens` (may
  /// be null) receives the scored tokens.
  Status score(const Prompt& prompt, std::vector<float>* logprobs, std::vector<int32_t>* tokens);
  /// Number of log-probabilities that score() would return; needs no evaluation.
  Result<size_t> score_length(const Prompt& prompt) const;

  /// Keeps the first `n` tokens; does nothing if there are no more. Errors: kInvalidArgument for n
  /// < 0, kUnsupported for a model that cannot be cut.
  Status truncate(int32_t n);
  /// Empties the session and clears a cancel.
  Status reset();
  /// Calls `write` with the contents of the session's state, while the session is in use.
  /// kUnsupported for a model with a sequence state.
  Status save(const std::function<Status(const cache::StateContents& contents)>& write) const;
  /// Loads a state into the empty session; it must be of the same model and kind of cache. Changes
  /// nothing on failure: kState if the session is not empty; errors as Sequence::restore.
  Status load(std::span<const std::byte> state);
  /// A new session with the same tokens; the caches share blocks if they can.
  Result<std::shared_ptr<Session>> fork() const;
  // session_state.cpp: the model's state as Sequence has it; none of these without has_state().
  [[nodiscard]] bool has_state() const noexcept { return sequence_.has_state(); }
  [[nodiscard]] std::vector<cache::StateFacts> state_facts() const {
    return sequence_.state_facts();
  }
  /// As Sequence::read_state.
  Status read_state(int32_t layer, std::array<int32_t, 3>* dims, float* to, size_t capacity);
  /// What a session held, and where its last answer ended.
  struct Point {
    Sequence::Point sequence;
    Answered answered;
  };
  /// As Sequence::point and go_back.
  Result<Point> point() const;
  Status go_back(const Point& point);
  /// Tokens that the state is after. May lag a running step; any thread.
  [[nodiscard]] int32_t evaluated() const noexcept {
    return evaluated_.load(std::memory_order_relaxed);
  }
  /// All tokens, including sampled stop tokens.
  Result<std::vector<int32_t>> tokens() const;

  [[nodiscard]] int32_t length() const noexcept { return length_.load(std::memory_order_relaxed); }
  /// Sets a flag that stops append() and score() in addition to cancel(), and no other call; null:
  /// none. kBusy while a call runs.
  Status set_cancel(std::shared_ptr<const CancelFlag> cancel);
  /// Stops the running call, otherwise the next generating one: the flag stays until such a call
  /// consumes it or reset() clears it. A signal handler may call it.
  void cancel() noexcept { cancel_.fire(); }
  /// Evaluated share of the current prompt, 0 to 1; 1 if none is being evaluated.
  [[nodiscard]] float progress() const noexcept {
    return progress_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] const Generator& generator() const noexcept { return *generator_; }
  [[nodiscard]] bool keeps_snapshots() const noexcept { return sequence_.keeps_snapshots(); }
  /// Whether a prompt's borders are of use; any thread.
  [[nodiscard]] bool keeps_points() const noexcept { return sequence_.keeps_points(); }
  /// Read-only, and only while holding in_use().
  [[nodiscard]] const cache::KvCache& cache() const noexcept { return sequence_.cache(); }
  /// Null for a model without snapshots of its state. As cache().
  [[nodiscard]] cache::StateSnapshots* snapshots() const noexcept { return sequence_.snapshots(); }
  /// Of the drafter, between two calls; may be null.
  [[nodiscard]] const DraftState* drafts() const noexcept { return drafts_.get(); }
  [[nodiscard]] InUseFlag& in_use() const noexcept { return in_use_; }

 private:
  friend class Generation;
  friend class Generator;

  Session(std::shared_ptr<const Generator> generator, Sequence sequence);
  bool evict() noexcept override;
  [[nodiscard]] int64_t last_used() const noexcept override;
  [[nodiscard]] int64_t most_freed() const noexcept override;
  /// Tokens of the prompt, with BOS if it belongs there; `*bos` tells whether BOS was added.
  Status encode(const Prompt& prompt, std::vector<int32_t>* out, bool* bos) const;
  Status append_prompt(const Prompt& prompt);
  Status append_held(const Prompt& prompt, Participant* participant);
  /// The drafter's state if it is to be given rows, or null.
  DraftState* observer() noexcept;
  Status cut_to(int32_t n);
  /// Cuts the session to its common beginning with `wanted` and returns the tokens to append. These
  /// are no more than `wanted` has, or than there is room for. A model that cannot be cut starts
  /// from scratch.
  Result<std::span<const int32_t>> cut_to_common(std::span<const int32_t> wanted,
                                                 Prompt::Kind kind);
  Status score_prompt(const Prompt& prompt, std::vector<float>* logprobs,
                      std::vector<int32_t>* tokens);
  Status score_tail(int32_t first, Participant* participant, std::vector<float>* scores);
  /// Gives the sequence the borders of a prompt with whose tokens it ends now.
  void set_borders(const Prompt& prompt);
  /// For a prompt that does not tell them, such as one that a program rendered itself.
  void guess_borders();
  /// Reports the prompt tokens that came from the prefix cache.
  void tell_reused() const;
  void publish_length() noexcept;
  void note_cut(int32_t before, int32_t n) noexcept;
  /// Records that the contents are answered: the next prompt begins here.
  void note_answered(std::string unsaid = {}) noexcept;

  std::shared_ptr<const Generator> generator_;
  Sequence sequence_;
  mutable InUseFlag in_use_;
  CancelFlag cancel_;
  std::shared_ptr<const CancelFlag> given_cancel_;  // set by set_cancel(); may be null
  std::atomic<int32_t> length_{0};
  std::atomic<int32_t> evaluated_{0};
  std::atomic<float> progress_{1.0F};
  Answered answered_;
  std::atomic<int64_t> last_used_{kNothing};
  std::unique_ptr<DraftState> drafts_;  // drafter state between two calls; may be null
};

}  // namespace gen::generate
