// SPDX-License-Identifier: Apache-2.0
// Generation: the one decode loop. It is pulled event by event; a callback, a whole text and a
// stream are all this loop. The push form is run.h. What it leaves in the session is in session.h;
// row_result.h has what the model answers for a token, draft_controller.h the rows behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/status.h"
#include "generate/loop/draft_controller.h"
#include "generate/loop/open_call.h"
#include "generate/loop/row_result.h"
#include "generate/loop/sequence.h"
#include "generate/request/call_params.h"
#include "generate/request/prompt.h"
#include "generate/request/result.h"
#include "generate/text/token_picker.h"
#include "generate/text/transcript.h"

namespace gen::generate {

class GrammarRule;
class Session;

/// One generating call on a session, from open() until it is destroyed; all that time the session
/// is in use. Nothing is evaluated before the first next(). Ends, in the order in which they are
/// looked at: cancel, a grammar that allows no token, a stop token that the grammar does not ask
/// for, a stop string, a grammar that is at its end, max_new_tokens, the context where it does not
/// shift (Sequence::make_room). After a cancel, a callback's stop or a stop condition the session
/// keeps what was evaluated and sampled; after any other failure it is as before open(), except for
/// what a shift dropped. Destroying an unfinished generation is a cancel. Where the generator
/// drafts, a step runs several rows; each event walks on by one of them as long as what was drawn
/// had been guessed (plain decoding has trees of one row), so that what ends a call between two
/// events ends it where it would without drafts. Texts are whole characters. One that an end other
/// than a stop token cuts is left out, and comes whole with the next call that goes on from there;
/// before a stop token it becomes U+FFFD. So it is with what is held back as a possible stop string
/// where no done event tells it. Who drives many generations from one thread uses want() and take()
/// in place of next(). Threads: one at a time, not necessarily the same.
class Generation {
 public:
  /// Failures change nothing: kBusy; kInvalidArgument for a prompt without tokens on an empty
  /// session; kTokenizer; kContextFull naming both numbers; kOutOfRange for a prompt token, stop
  /// token or bias outside the vocabulary; as GrammarRule::begin; kBusy also when the generator's
  /// queue is full.
  static Result<std::unique_ptr<Generation>> open(std::shared_ptr<Session> session,
                                                  const Prompt& prompt, CallParams params,
                                                  Urgency urgency = {});
  ~Generation();
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  /// The next event: every kept token, then exactly one done event, whatever ended the call; from
  /// then on null if it ended well, else the failure, both as often as asked. The event is valid
  /// until the next call.
  Result<const Event*> next();

  /// What the scheduler has to run before there is more to say: submit it, and call take() when it
  /// is done. Null when there is nothing to run: take() then has the event, or null where a row
  /// must run again first.
  StepRequest* want() noexcept;
  /// In place of running what was wanted: take() reports this failure.
  void fail(Status failure) noexcept { failure_ = std::move(failure); }
  /// Accounts for what has run. The event, or null if more must run first; only before the end.
  const Event* take() noexcept;

  /// As next(), never waiting for another thread: null while there is no event. The first call
  /// queues what is wanted; a later one runs a step for all that is queued, unless another thread
  /// does that. Only before the end.
  const Event* poll() noexcept;

  /// Ends the call as a callback's non-zero answer does: kCancelled, reason kCallback, no further
  /// event. After an end that was a failure only the code is noted.
  void stop(int32_t user_code) noexcept;

  /// Ends the call with a failure, and the session is as before open(), also after an end that was
  /// none. No further event.
  void break_off(Status failure) noexcept;

  /// The done event was given, or stop() or break_off() was called.
  [[nodiscard]] bool ended() const noexcept { return state_ == State::kEnded; }
  /// What there is so far; final once ended().
  [[nodiscard]] const GenResult& result() const noexcept { return result_; }
  /// All tokens of the session; for after the end.
  [[nodiscard]] std::span<const int32_t> held() const noexcept;
  /// A stop token, a stop string or a grammar has ended the text, whatever ended the call.
  [[nodiscard]] bool text_is_whole() const noexcept;
  /// Answered::unsaid; for after the end.
  [[nodiscard]] const std::string& unsaid() const noexcept;
  /// Leaves an empty result behind; for after the end.
  [[nodiscard]] GenResult take_result() noexcept { return std::move(result_); }

 private:
  /// kNew: the session is not this call's yet.
  enum class State : int32_t { kNew, kOpening, kPrefill, kDecode, kEnded };
  /// What the sequence evaluates: nothing; all but its last token, before the context shifts; all,
  /// for the token that is next.
  enum class Work : int32_t { kNone, kCatchUp, kRow };
  /// The event that is next: nobody has asked for it; it is asked for; the request that it needs is
  /// queued.
  enum class Asked : int32_t { kNot, kYes, kQueued };

  Generation(std::shared_ptr<Session> session, CallParams params, Urgency urgency);
  Status start(const Prompt& prompt);
  void begin_rows();
  bool queue() noexcept;
  Status prepare(StepRequest** request);
  Status begin_work();
  static Status make_mask(void* self) noexcept;
  Status advance(bool* event);
  Status choose(bool* event);
  Result<sampling::Choice> pick();
  Result<Transcript::Role> accept(int32_t token);
  Status say(const sampling::Choice& choice, Transcript::Role role);
  void end_at_grammar() noexcept;
  void note_member() noexcept;
  void note_event(bool prefill) noexcept;
  [[nodiscard]] TokenPicker::At where() const noexcept;
  [[nodiscard]] int32_t left() const noexcept;
  void take_back() noexcept;
  void leave_queue() noexcept;
  template <typename F>
  Status contain(F&& work) noexcept;
  /// `told`: the done event is given.
  void finish(FinishReason reason, Status status, bool told = true) noexcept;
  void settle(FinishReason reason) noexcept;

  std::shared_ptr<Session> session_;
  CallParams params_;
  GenResult result_;
  TokenPicker picker_;
  Transcript transcript_;
  std::unique_ptr<GrammarRule> rule_;  // null without
  RowResult row_;
  DraftController drafts_;
  CancelFlag cancel_;  // the session's or the caller's
  Urgency urgency_;
  std::optional<OpenCall> call_;
  StepRequest* request_ = nullptr;    // with the scheduler
  Status failure_;                    // of preparing a request, for take() to report
  SteadyClock::time_point asked_at_;  // when the event under way was asked for
  Sequence::Mark before_;             // the session as open() found it
  Answered answered_;                 // and what it had answered
  State state_ = State::kNew;
  Work work_ = Work::kNone;
  Asked asked_ = Asked::kNot;
};

/// OK while a call that has said `tokens` tokens is wanted; kCancelled where `cancel` (may be null)
/// is raised or the deadline has passed.
Status check_wanted(const CancelFlag* cancel, SteadyClock::time_point deadline, size_t tokens);

}  // namespace gen::generate
