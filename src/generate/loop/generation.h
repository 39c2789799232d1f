// SPDX-License-Identifier: Apache-2.0
// Generation: the decode loop. It is pulled event by event; callbacks, whole texts and streams all
// use it. run.h has the push form and session.h what a call leaves in the session. row_result.h
// holds the model's answer for a token, draft_controller.h the drafted rows after it.
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

/// One generating call on a session, from open() to its destruction; the session is in use all that
/// time. Nothing is evaluated before the first next().
/// Reasons to end, in the order in which they are checked: cancel, a grammar that allows no token,
/// a stop token that the grammar does not ask for, a stop string, the end of the grammar,
/// max_new_tokens, a full context that does not shift (Sequence::make_room). After a cancel, a stop
/// by the callback or a stop condition the session keeps the evaluated and sampled tokens; after
/// any other failure it is as before open(), except for tokens dropped by a shift. Destroying an
/// unfinished generation cancels it.
/// With drafts a step runs several rows. Each event advances by one row while the sampled tokens
/// match the drafts; a call that ends between two events ends where it would without drafts.
/// Texts consist of whole characters. A character that is cut by any end except a stop token is
/// left out and delivered whole by the next call that continues there; before a stop token it
/// becomes U+FFFD. The same holds for a possible stop string that is held back when no done event
/// delivers it.
/// A thread that drives many generations uses want() and take() instead of next(). Threads: one at
/// a time, not necessarily the same one.
class Generation {
 public:
  /// Errors: kBusy if the session is in use or the generator's queue is full; kInvalidArgument for
  /// a prompt without tokens on an empty session; kTokenizer; kContextFull, naming both numbers;
  /// kOutOfRange for a prompt token, stop token or bias outside the vocabulary; as
  /// GrammarRule::begin. A failure changes nothing.
  static Result<std::unique_ptr<Generation>> open(std::shared_ptr<Session> session,
                                                  const Prompt& prompt, CallParams params,
                                                  Urgency urgency = {});
  ~Generation();
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  /// The next event: one for every kept token, then exactly one done event, whatever ended the
  /// call. After that it returns null if the call ended well, otherwise the failure, on every call.
  /// The event is valid until the next call.
  Result<const Event*> next();

  /// The request that must run before there is a next event: submit it and call take() when it is
  /// done. Null if nothing needs to run; take() then returns the event, or null if a row must run
  /// again.
  StepRequest* want() noexcept;
  /// Reports a failure instead of running the request; take() returns it.
  void fail(Status failure) noexcept { failure_ = std::move(failure); }
  /// Takes the results of the request. Returns the event, or null if more must run first. Not to be
  /// called after the end.
  const Event* take() noexcept;

  /// As next() but never waits for another thread: returns null while there is no event. The first
  /// call submits a request; later calls run a step for all queued requests unless another thread
  /// runs one. Not to be called after the end.
  const Event* poll() noexcept;

  /// Ends the call as a non-zero return value of a callback does: kCancelled, reason kCallback, no
  /// further event. If the call has already failed, only the code is recorded.
  void stop(int32_t user_code) noexcept;

  /// Fails the call, even if it has ended well. The session is as before open(). No further event.
  void break_off(Status failure) noexcept;

  /// The done event was delivered, or stop() or break_off() was called.
  [[nodiscard]] bool ended() const noexcept { return state_ == State::kEnded; }
  /// The result so far; final once ended().
  [[nodiscard]] const GenResult& result() const noexcept { return result_; }
  /// All tokens of the session. Call it after the end.
  [[nodiscard]] std::span<const int32_t> held() const noexcept;
  /// True if a stop token, a stop string or the grammar ended the text, whatever ended the call.
  [[nodiscard]] bool text_is_whole() const noexcept;
  /// As Answered::unsaid. Call it after the end.
  [[nodiscard]] const std::string& unsaid() const noexcept;
  /// Adds what was read of the answer to the result.
  void set_answer(std::shared_ptr<const calls::Answer> answer) noexcept {
    result_.answer = std::move(answer);
  }
  /// Moves the result out. Call it after the end.
  [[nodiscard]] GenResult take_result() noexcept { return std::move(result_); }

 private:
  /// kNew: the call does not own the session yet.
  enum class State : int32_t { kNew, kOpening, kPrefill, kDecode, kEnded };
  /// What the sequence evaluates: nothing; all but its last token, before the context shifts;
  /// everything, for the next token.
  enum class Work : int32_t { kNone, kCatchUp, kRow };
  /// State of the next event: not requested; requested; its step request is queued.
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
  /// `told`: the done event is delivered.
  void finish(FinishReason reason, Status status, bool told = true) noexcept;
  void settle(FinishReason reason) noexcept;

  std::shared_ptr<Session> session_;
  CallParams params_;
  GenResult result_;
  TokenPicker picker_;
  Transcript transcript_;
  std::unique_ptr<GrammarRule> rule_;  // null without a grammar
  RowResult row_;
  DraftController drafts_;
  CancelFlag cancel_;  // the session's or the caller's
  Urgency urgency_;
  std::optional<OpenCall> call_;
  StepRequest* request_ = nullptr;    // with the scheduler
  Status failure_;                    // of prepare(); reported by take()
  SteadyClock::time_point asked_at_;  // when the current event was requested
  Sequence::Mark before_;             // state of the session before open()
  std::shared_ptr<const model::AdapterMix> before_adapters_;  // the same
  Answered answered_;  // the session's last answer before open()
  State state_ = State::kNew;
  Work work_ = Work::kNone;
  Asked asked_ = Asked::kNot;
};

/// OK while a call that has generated `tokens` tokens should go on; kCancelled if `cancel` (may be
/// null) is raised or the deadline has passed.
Status check_wanted(const CancelFlag* cancel, SteadyClock::time_point deadline, size_t tokens);

}  // namespace gen::generate
