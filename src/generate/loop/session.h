// SPDX-License-Identifier: Apache-2.0
// Session: one growing text. It owns a sequence (sequence.h: tokens and their cache) and is made by
// Generator::new_session. Generating is in generation.h, everything else is here.
#pragma once

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

/// Threads: one call at a time, a second one gets kBusy; cancel(), progress() and length() at any
/// time from any thread. Held by shared_ptr: an open generation keeps it alive.
class Session final : public Evictable, public std::enable_shared_from_this<Session> {
 public:
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Whole text or callback form, see run() in run.h.
  Status generate(const Prompt& prompt, const CallParams& params, EventCallback callback,
                  void* user, std::optional<GenResult>* result);
  /// Pull form.
  Result<std::unique_ptr<Generation>> open(const Prompt& prompt, CallParams params);

  /// Adds a prompt without generating; evaluates all but its last token, which the next call needs
  /// anyway. An empty prompt does nothing. Errors as Generation::open and of the model; after a
  /// cancel the evaluated part stays, after any other failure nothing has changed.
  Status append(const Prompt& prompt);

  /// Makes it hold a conversation, `wanted`: what it has in common with that stays (match_chat()),
  /// the rest is evaluated as by append(). kContextFull, shifting or not. After a cancel the
  /// evaluated part stays; after any other failure it holds the same tokens, some of them pending.
  Status append_chat(std::span<const int32_t> wanted);
  /// First tokens that shifting never drops, if that is more than the generator says.
  Status set_keep(int32_t n);

  /// Log-probability of each token of the prompt, given all before it; BOS, where it is put first,
  /// is not scored, and a token with nothing before it scores 0. Changes nothing. `tokens` (may be
  /// null) receives the scored tokens.
  Status score(const Prompt& prompt, std::vector<float>* logprobs, std::vector<int32_t>* tokens);
  /// How many log-probabilities score() would give, from encoding alone.
  Result<size_t> score_length(const Prompt& prompt) const;

  /// Keeps the first `n` tokens; nothing happens if there are no more than that. Errors:
  /// kInvalidArgument for n < 0, kUnsupported for a model that cannot go back.
  Status truncate(int32_t n);
  /// Empties the session and clears a cancel.
  Status reset();
  /// Calls `write` with the contents of the session's state, to be written while the session is in
  /// use. kUnsupported for a model with a state of its own.
  Status save(const std::function<Status(const cache::StateContents& contents)>& write) const;
  /// Goes on from a state, which must be of the same model and kind of cache; the session is empty.
  /// Changes nothing on failure: kState if it is not empty; errors as Sequence::restore.
  Status load(std::span<const std::byte> state);
  /// A session of its own that goes on from the same tokens; caches share blocks where they can.
  Result<std::shared_ptr<Session>> fork() const;
  /// All tokens, sampled stop tokens included.
  Result<std::vector<int32_t>> tokens() const;

  [[nodiscard]] int32_t length() const noexcept { return length_.load(std::memory_order_relaxed); }
  /// A flag that stops append() and score() beside cancel(), and never what comes after; null for
  /// none. kBusy while a call runs.
  Status set_cancel(std::shared_ptr<const CancelFlag> cancel);
  /// Stops the running call, or else the next generating one: sticky until such a call consumes it
  /// or reset() clears it. A signal handler may call it.
  void cancel() noexcept { cancel_.fire(); }
  /// Share of the current prompt that is evaluated, 0 to 1; 1 where none is being evaluated.
  [[nodiscard]] float progress() const noexcept {
    return progress_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] const Generator& generator() const noexcept { return *generator_; }
  /// For reading only, and only while holding in_use().
  [[nodiscard]] const cache::KvCache& cache() const noexcept { return sequence_.cache(); }
  [[nodiscard]] InUseFlag& in_use() const noexcept { return in_use_; }

 private:
  friend class Generation;
  friend class Generator;

  Session(std::shared_ptr<const Generator> generator, Sequence sequence);
  bool evict() noexcept override;
  [[nodiscard]] int64_t last_used() const noexcept override;
  /// Tokens of the prompt, BOS included where it belongs; `*bos` tells whether it was put first.
  Status encode(const Prompt& prompt, std::vector<int32_t>* out, bool* bos) const;
  Status append_prompt(const Prompt& prompt);
  Status append_held(const Prompt& prompt, Participant* participant);
  Status cut_to(int32_t n);
  /// Cuts what it does not have in common with `wanted`, and gives what then is to come behind it;
  /// no more than `wanted` has, or there is room for. A model that cannot go back starts anew.
  Result<std::span<const int32_t>> cut_to_common(std::span<const int32_t> wanted,
                                                 Prompt::Place place);
  Status score_prompt(const Prompt& prompt, std::vector<float>* logprobs,
                      std::vector<int32_t>* tokens);
  Status score_tail(int32_t first, Participant* participant, std::vector<float>* scores);
  /// Tells what the prefix cache had of the prompt that was evaluated.
  void tell_reused() const;
  void publish_length() noexcept;
  /// Notes that what it holds is answered: the next prompt begins here.
  void note_answered(std::string unsaid = {}) noexcept;

  std::shared_ptr<const Generator> generator_;
  Sequence sequence_;
  mutable InUseFlag in_use_;
  CancelFlag cancel_;
  std::shared_ptr<const CancelFlag> given_cancel_;  // of set_cancel(); may be null
  std::atomic<int32_t> length_{0};
  std::atomic<float> progress_{1.0F};
  Answered answered_;
  std::atomic<int64_t> last_used_{kNothing};
  std::unique_ptr<DraftState> drafts_;  // of the generator's drafter, between two calls; or null
};

}  // namespace gen::generate
