// SPDX-License-Identifier: Apache-2.0
// The decode loop. See generation.h.
#include "generate/loop/generation.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <new>
#include <utility>

#include "generate/loop/generator.h"
#include "generate/loop/session.h"
#include "generate/request/metric_names.h"
#include "generate/step/scheduler.h"
#include "generate/text/grammar_rule.h"

namespace gen::generate {
namespace {

double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

/// Tokens that the model's file excludes are barred, unless the call has a bias for them.
CallParams without_suppressed(CallParams params, const tokenizer::Tokenizer* tokenizer) {
  if (tokenizer == nullptr) return params;
  const std::vector<sampling::LogitBias> given = params.sampling.logit_bias;
  for (const int32_t token : tokenizer->spec().suppressed) {
    const bool known = std::any_of(given.begin(), given.end(),
                                   [&](const auto& entry) { return entry.token == token; });
    if (known) continue;
    // Fails for no token of a vocabulary.
    static_cast<void>(
        params.sampling.set_logit_bias(token, -std::numeric_limits<float>::infinity()));
  }
  return params;
}

Result<std::shared_ptr<const model::AdapterMix>> chosen_adapters(const CallParams& params,
                                                                 const model::Model& model) {
  if (params.adapters.empty()) return std::shared_ptr<const model::AdapterMix>();
  if (model.adapters() == nullptr) {
    return error(Code::kUnsupported, "this model takes no adapters");
  }
  return model.adapters()->mix(params.adapters);
}

}  // namespace

Generation::Generation(std::shared_ptr<Session> session, CallParams params, Urgency urgency)
    : session_(std::move(session)),
      params_(without_suppressed(std::move(params), session_->generator().tokenizer())),
      picker_(params_, session_->generator().tokenizer()),
      transcript_(params_, &result_),
      row_(session_->generator().model().traits(), session_->generator().vocab_size()),
      drafts_(session_->generator(), &result_),
      cancel_(&session_->cancel_, params_.cancel.get()),
      urgency_(urgency) {}

Generation::~Generation() {
  if (state_ == State::kNew) return;
  take_back();
  if (state_ == State::kOpening) {
    session_->sequence_.rewind(before_);
    session_->publish_length();  // tokens dropped by a shift stay dropped
  } else if (state_ != State::kEnded) {
    settle(FinishReason::kCancelled);
  }
  if (auto kept = drafts_.take_state()) session_->drafts_ = std::move(kept);
  session_->in_use_.leave();
}

Result<std::unique_ptr<Generation>> Generation::open(std::shared_ptr<Session> session,
                                                     const Prompt& prompt, CallParams params,
                                                     Urgency urgency) {
  const auto begin = SteadyClock::now();
  std::unique_ptr<Generation> generation(
      new Generation(std::move(session), std::move(params), urgency));
  GEN_TRY(metric::count_failure(generation->session_->generator().metrics(),
                                [&] { return generation->start(prompt); }));
  generation->result_.timings.first_token = seconds_since(begin);
  return generation;
}

Status Generation::start(const Prompt& prompt) {
  // Until the call takes part: it may hold blocks from here on.
  const BlockHolder arriving(&session_->generator().scheduler().queue());
  if (!session_->in_use_.try_enter()) {
    return error(Code::kBusy, "session is in use by another call");
  }
  state_ = State::kOpening;
  Sequence& sequence = session_->sequence_;
  before_ = sequence.mark();
  answered_ = session_->answered_;

  const Generator& generator = session_->generator();
  GEN_TRY(OpenCall::enter(generator, &call_));
  GEN_TRY(params_.check_vocab(generator.vocab_size()));
  GEN_ASSIGN(auto adapters, chosen_adapters(params_, generator.model()));

  std::vector<int32_t> tokens;
  std::string unsaid(prompt.unsaid);
  if (prompt.kind == Prompt::Kind::kAppended) {
    bool bos = false;
    GEN_TRY(session_->encode(prompt, &tokens, &bos));
    if (tokens.empty() && sequence.length() == 0) {
      return error(Code::kInvalidArgument,
                   "the prompt has no tokens, and there is no text before it");
    }
    const bool goes_on =
        tokens.empty() && sequence.moved(answered_.mark).length == sequence.length();
    unsaid = goes_on ? answered_.unsaid : std::string();
  }
  GEN_ASSIGN(rule_, GrammarRule::begin(params_, generator.tokenizer()));
  note_member();
  if (prompt.kind != Prompt::Kind::kAppended) {
    GEN_ASSIGN(const std::span<const int32_t> rest,
               session_->cut_to_common(prompt.tokens, prompt.kind));
    tokens.assign(rest.begin(), rest.end());
    before_ = sequence.mark();
    answered_ = session_->answered_;
  }
  GEN_TRY(sequence.extend(tokens, true));
  session_->set_borders(prompt);

  // From here on only memory can run out; the destructor then removes what was added.
  GEN_TRY(transcript_.begin(generator.text_spec(), sequence.tokens(), std::move(unsaid)));
  if (rule_ != nullptr) rule_->set_stops(transcript_.stop_tokens());
  sequence.reserve(transcript_.most());
  begin_rows();
  result_.usage.prompt = sequence.length() - sequence.moved(answered_.mark).length;
  result_.usage.dropped = static_cast<int64_t>(prompt.left_out);
  before_adapters_ = sequence.adapters();
  sequence.set_adapters(std::move(adapters));
  session_->progress_.store(0.0F, std::memory_order_relaxed);
  session_->publish_length();
  generator.metrics().add(metric::kRequests, 1);
  generator.metrics().add(metric::kPromptTokens, static_cast<double>(tokens.size()));
  state_ = State::kPrefill;
  return {};
}

// Decides what each row must answer and which source drafts.
void Generation::begin_rows() {
  row_.begin(picker_, rule_ != nullptr, session_->generator().drafter() != nullptr);
  const size_t held = session_->sequence_.tokens().size();
  drafts_.begin({.sampling = params_.sampling,
                 .rule = rule_.get(),
                 .max_tokens = held + static_cast<size_t>(transcript_.most())},
                &session_->drafts_, &row_);
}

// ---- The loop: want, run, take ----

Result<const Event*> Generation::next() {
  if (state_ == State::kEnded) {
    if (!result_.status.ok()) return result_.status;
    return static_cast<const Event*>(nullptr);
  }
  const Event* event = nullptr;
  while (event == nullptr) {
    if ((asked_ == Asked::kQueued || queue()) &&
        !session_->generator().scheduler().wait_any({&request_, 1})) {
      return error(Code::kBusy, "the pass of the model that runs this cannot wait for itself");
    }
    event = take();
  }
  return event;
}

const Event* Generation::poll() noexcept {
  const Event* event = nullptr;
  if (asked_ == Asked::kQueued) {
    if (!session_->generator().scheduler().poll(request_)) return nullptr;
    event = take();
  }
  if (event == nullptr && !queue()) event = take();
  // Without drafts a step gives one token, and the next poll() submits a request: the queue need
  // not wait for further tokens.
  if (event != nullptr && !event->done && drafts_.guesses()) {
    session_->generator().scheduler().queue().note_said(call_->participant(), drafts_.row() > 0);
  }
  return event;
}

// Submits the next request. False if nothing needs to run.
bool Generation::queue() noexcept {
  StepRequest* const request = want();
  if (request == nullptr) return false;
  failure_ = contain([&]() -> Status {
    session_->generator().scheduler().submit(request);
    asked_ = Asked::kQueued;
    return {};
  });
  // Another thread may run the step meanwhile. A failure here is reported when the mask is needed.
  const bool queued = asked_ == Asked::kQueued;
  if (queued && rule_ != nullptr && !row_.is_short()) {
    static_cast<void>(contain([&] { return rule_->prepare(left()); }));
  }
  return queued;
}

// Runs code that may throw; the error message contains the length of the text so far.
template <typename F>
Status Generation::contain(F&& work) noexcept {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return error(Code::kOutOfMemory, "no memory for token %zu of the text", result_.tokens.size());
  } catch (...) {
    return error(Code::kInternal, "token %zu of the text threw", result_.tokens.size());
  }
}

StepRequest* Generation::want() noexcept {
  if (asked_ == Asked::kNot) {
    asked_ = Asked::kYes;
    asked_at_ = SteadyClock::now();
  }
  failure_ = contain([this] { return prepare(&request_); });
  return request_;
}

// Leaves `*request` null if nothing needs to run: the end is decided or will be by take().
Status Generation::prepare(StepRequest** request) {
  *request = nullptr;
  GEN_TRY(check_wanted(&cancel_, urgency_.deadline, result_.tokens.size()));
  if (transcript_.end() != FinishReason::kNone || drafts_.row() > 0) return {};
  if (work_ == Work::kNone) GEN_TRY(begin_work());
  *request = session_->sequence_.next();
  return {};
}

// Starts the evaluation of the pending tokens; the last row gives the next token.
Status Generation::begin_work() {
  Sequence& sequence = session_->sequence_;
  Work work = Work::kRow;
  int32_t end = sequence.length();
  if (end == session_->generator().max_seq_len()) {
    sequence.settle_adapters();  // entries of other adapters are not shifted
    // The last token is evaluated alone after the shift, so that a prompt gives the same result
    // whether or not it was appended before.
    if (sequence.shifts() && sequence.evaluated() < end - 1) {
      work = Work::kCatchUp;
      --end;
    } else {
      GEN_TRY(sequence.make_room(1));
      session_->publish_length();
      end = sequence.length();
    }
  }
  Sequence::Pass pass;
  pass.cancel = &cancel_;
  if (state_ == State::kPrefill) pass.progress = &session_->progress_;
  pass.urgency = urgency_;
  pass.participant = call_->participant();
  pass.count_from = sequence.moved(before_).length;
  pass.observer = drafts_.state();
  if (work == Work::kRow) {
    pass.results_from = end - 1;
    GEN_TRY(row_.ask(&picker_, where(), rule_.get(), {make_mask, this}, &pass.query));
    if (drafts_.guesses() && state_ == State::kDecode && !row_.is_whole_again()) {
      pass.draft = drafts_.offer(sequence.tokens(), result_.tokens.size(),
                                 transcript_.stop_tokens(), left());
    }
  }
  GEN_TRY(sequence.start(end, pass));
  work_ = work;
  return {};
}

// Called by the thread that runs the step, while it runs; no other thread uses the rule then.
Status Generation::make_mask(void* self) noexcept {
  auto& own = *static_cast<Generation*>(self);
  own.row_.note_mask(own.contain([&] { return own.rule_->prepare(own.left()); }).ok());
  return {};
}

const Event* Generation::take() noexcept {
  const bool prefill = state_ == State::kPrefill;
  bool event = true;
  Status status = std::move(failure_);
  failure_ = Status();
  if (status.ok()) status = contain([&] { return advance(&event); });
  leave_queue();
  if (!status.ok()) {
    event = true;
    const bool cancelled = status.code() == Code::kCancelled;
    finish(cancelled ? FinishReason::kCancelled : FinishReason::kError, std::move(status));
  }
  if (!event) return nullptr;
  asked_ = Asked::kNot;
  note_event(prefill);
  return &transcript_.event();
}

// `prefill`: the event is the first one after the prompt.
void Generation::note_event(bool prefill) noexcept {
  const double took = seconds_since(asked_at_);
  (prefill ? result_.timings.first_token : result_.timings.decode) += took;
  if (transcript_.event().done) return;
  Metrics& metrics = session_->generator().metrics();
  metrics.add(metric::kCompletionTokens, 1);
  if (prefill) {
    metrics.observe(metric::kFirstTokenSeconds, result_.timings.first_token);
  } else {
    metrics.observe(metric::kInterTokenSeconds, took);
  }
}

// Sets `*event` to false if more of the prompt must be evaluated first.
Status Generation::advance(bool* event) {
  if (request_ == nullptr) {
    if (transcript_.end() == FinishReason::kNone) return choose(event);
    finish(transcript_.end(), Status());
    return {};
  }
  Sequence& sequence = session_->sequence_;
  const Status taken = sequence.take();
  if (state_ == State::kPrefill) {
    result_.usage.prompt_cached =
        std::min(answered_.cached_since + sequence.reused(), result_.usage.prompt);
    result_.usage.prompt_evaluated += request_->taken;
  }
  GEN_TRY(taken);
  *event = sequence.done();
  if (!*event) return {};
  if (std::exchange(work_, Work::kNone) == Work::kCatchUp) {
    *event = false;
    return {};
  }
  if (state_ == State::kPrefill) {
    result_.timings.prefill = seconds_since(asked_at_);
    session_->tell_reused();
  }
  state_ = State::kDecode;
  return choose(event);
}

// Withdraws the request of this call; rows that have run stay in the session.
void Generation::take_back() noexcept {
  session_->sequence_.withdraw();
  drafts_.end_step(&session_->sequence_);
  leave_queue();
}

void Generation::leave_queue() noexcept {
  request_ = nullptr;
  if (asked_ == Asked::kQueued) asked_ = Asked::kYes;
}

// ---- A token ----

// The position of the next token.
TokenPicker::At Generation::where() const noexcept {
  return {.held = session_->sequence_.tokens(),
          .said = result_.tokens,
          .stops = transcript_.stop_tokens()};
}

Result<sampling::Choice> Generation::pick() {
  TokenPicker::At at = where();
  sampling::TokenMask mask;
  if (rule_ != nullptr) {
    mask = rule_->mask();
    at.mask = &mask;
    at.stops = rule_->ends();
  }
  const std::optional<sampling::Proposal> proposal = drafts_.proposal();
  if (proposal.has_value()) at.proposal = &*proposal;
  return row_.pick(&picker_, drafts_.row(), at);
}

// Samples a token from the logits of a row and keeps it unless it ends the text. Sets `*event` to
// false if the row must be run again.
Status Generation::choose(bool* event) {
  if (rule_ != nullptr) {
    GEN_TRY(rule_->prepare(left()));
    if (!rule_->allows_any()) {
      end_at_grammar();
      return {};
    }
  }
  const Result<sampling::Choice> drawn = pick();
  if (drawn.ok() && drawn.value().token < 0) {
    drafts_.end_step(&session_->sequence_);
    row_.ask_again();
    session_->generator().metrics().add(metric::kRowsAgain, 1);
    *event = false;
    return {};
  }
  row_.taken();
  if (rule_ != nullptr && drawn.status().code() == Code::kGrammar) {
    drafts_.keep_row(&session_->sequence_);
    finish(
        FinishReason::kGrammarDeadEnd,
        error(Code::kGrammar, "biases forbid every token that the grammar allows after %zu tokens",
              result_.tokens.size()));
    return {};
  }
  GEN_ASSIGN(const sampling::Choice choice, drawn);
  GEN_ASSIGN(const Transcript::Role role, accept(choice.token));
  return say(choice, role);
}

// Advances the grammar by the sampled token.
Result<Transcript::Role> Generation::accept(int32_t token) {
  if (rule_ == nullptr) return Transcript::Role::kAny;
  GEN_ASSIGN(const bool part, rule_->accept(token));
  if (!part) return Transcript::Role::kEnd;
  const auto role = rule_->is_over(left() - 1) ? Transcript::Role::kLast : Transcript::Role::kPart;
  drafts_.follow_rule(token);
  return role;
}

// Decides whether this was the last token; the done event follows with the next call. If the token
// had been drafted, the logits of the next row are already available.
Status Generation::say(const sampling::Choice& choice, Transcript::Role role) {
  Sequence& sequence = session_->sequence_;
  sequence.push(choice.token);
  drafts_.enter();
  session_->publish_length();
  GEN_ASSIGN(const bool kept, transcript_.take(choice, sequence.length(), role));
  if (kept) note_member();
  const bool goes_on = kept && transcript_.end() == FinishReason::kNone;
  if (!drafts_.advance(choice.token, goes_on)) drafts_.end_step(&sequence);
  if (!kept) finish(transcript_.end(), Status());
  return {};
}

void Generation::note_member() noexcept {
  if (rule_ != nullptr) result_.grammar_complete = rule_->is_complete() ? 1 : 0;
}

// Tokens that may still be generated. A context that shifts has no limit.
int32_t Generation::left() const noexcept {
  const bool shifts = session_->generator().options().shift_context;
  const int32_t most = shifts ? params_.stops.effective_max_new_tokens() : transcript_.most();
  return most - static_cast<int32_t>(result_.tokens.size());
}

// The grammar allows no token. The text may be complete nevertheless, if no token of the vocabulary
// ends it.
void Generation::end_at_grammar() noexcept {
  drafts_.keep_row(&session_->sequence_);
  if (rule_->is_complete()) return finish(FinishReason::kGrammarComplete, Status());
  finish(FinishReason::kGrammarDeadEnd,
         error(Code::kGrammar, "no token of the vocabulary can go on after %zu tokens",
               result_.tokens.size()));
}

// ---- The end ----

std::span<const int32_t> Generation::held() const noexcept { return session_->sequence_.tokens(); }

const std::string& Generation::unsaid() const noexcept { return session_->answered_.unsaid; }

bool Generation::text_is_whole() const noexcept {
  const auto ends = [](FinishReason reason) {
    return reason == FinishReason::kStopToken || reason == FinishReason::kStopString ||
           reason == FinishReason::kGrammarComplete;
  };
  return ends(result_.finish_reason) || ends(transcript_.end());
}

void Generation::stop(int32_t user_code) noexcept {
  take_back();
  if (state_ == State::kEnded && !result_.status.ok()) {
    result_.user_code = user_code;
    return;
  }
  Status status = error(Code::kCancelled, "stopped by the callback's answer %d after %zu tokens",
                        user_code, result_.tokens.size());
  if (state_ == State::kEnded) {
    result_.finish_reason = FinishReason::kCallback;
    result_.status = std::move(status);
  } else {
    finish(FinishReason::kCallback, std::move(status), false);
  }
  result_.user_code = user_code;
}

void Generation::break_off(Status failure) noexcept {
  take_back();
  if (state_ != State::kEnded) {
    finish(FinishReason::kError, std::move(failure), false);
    return;
  }
  if (!result_.status.ok()) return;
  session_->sequence_.rewind(before_);
  session_->sequence_.set_adapters(before_adapters_);
  session_->answered_ = std::move(answered_);
  session_->publish_length();
  session_->generator().metrics().add(metric::errors(failure.code()), 1);
  result_.finish_reason = FinishReason::kError;
  result_.status = std::move(failure);
}

void Generation::finish(FinishReason reason, Status status, bool told) noexcept {
  drafts_.end_step(&session_->sequence_);
  transcript_.close(reason, told);
  settle(reason);
  if (call_.has_value()) call_->end();
  Metrics& metrics = session_->generator().metrics();
  if (reason == FinishReason::kError) metrics.add(metric::errors(status.code()), 1);
  if (result_.tokens.size() > 1 && result_.timings.decode > 0) {
    metrics.observe(metric::kTokensPerSecond,
                    static_cast<double>(result_.tokens.size() - 1) / result_.timings.decode);
  }
  result_.status = std::move(status);
  result_.usage.dropped += session_->sequence_.dropped() - before_.dropped;
  state_ = State::kEnded;
}

// Settles what the session keeps. After a cancel during prefill the evaluated part of the prompt
// stays.
void Generation::settle(FinishReason reason) noexcept {
  Sequence& sequence = session_->sequence_;
  if (reason == FinishReason::kError) {
    sequence.rewind(before_);
    sequence.set_adapters(before_adapters_);
  } else if (state_ == State::kPrefill && reason != FinishReason::kContextFull) {
    sequence.drop_pending(sequence.moved(before_).length);
  }
  if (reason == FinishReason::kCancelled) session_->cancel_.reset();
  if (reason != FinishReason::kError) session_->note_answered(transcript_.take_unsaid());
  if (reason != FinishReason::kError) drafts_.ended(sequence.tokens());
  session_->progress_.store(1.0F, std::memory_order_relaxed);
  session_->publish_length();
  session_->generator().metrics().add(metric::finished(reason), 1);
}

Status check_wanted(const CancelFlag* cancel, SteadyClock::time_point deadline, size_t tokens) {
  if (cancel != nullptr && cancel->raised()) {
    return error(Code::kCancelled, "cancelled after %zu tokens", tokens);
  }
  if (deadline != SteadyClock::time_point::max() && deadline <= SteadyClock::now()) {
    return error(Code::kCancelled, "the deadline has passed after %zu tokens", tokens);
  }
  return {};
}

}  // namespace gen::generate
