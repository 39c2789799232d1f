// SPDX-License-Identifier: Apache-2.0
// The decode loop. See generation.h.
#include "generate/generation.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "base/mass_parts.h"
#include "generate/generator.h"
#include "generate/grammar_rule.h"
#include "generate/metric_names.h"
#include "generate/scheduler.h"
#include "generate/session.h"

namespace gen::generate {
namespace {

/// A row is brought in whole where more than the vocabulary's size by this is set aside.
constexpr size_t kMaxAside = 8;

double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

}  // namespace

Generation::Generation(std::shared_ptr<Session> session, CallParams params, Urgency urgency)
    : session_(std::move(session)),
      params_(std::move(params)),
      picker_(params_, session_->generator().tokenizer()),
      transcript_(params_, &result_),
      cancel_(&session_->cancel_, params_.cancel.get()),
      urgency_(urgency) {}

Generation::~Generation() {
  if (!holds_session_) return;
  take_back();
  if (state_ == State::kOpening) {
    session_->sequence_.rewind(before_);
    session_->publish_length();  // what was dropped to make room stays dropped
  } else if (state_ != State::kEnded) {
    settle(FinishReason::kCancelled);
  }
  if (drafts_ != nullptr) session_->drafts_ = std::move(drafts_);
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
  if (!session_->in_use_.try_enter()) {
    return error(Code::kBusy, "session is in use by another call");
  }
  holds_session_ = true;
  Sequence& sequence = session_->sequence_;
  before_ = sequence.mark();
  answered_ = session_->answered_;

  const Generator& generator = session_->generator();
  GEN_TRY(OpenCall::enter(generator, &call_));
  GEN_TRY(params_.check_vocab(generator.vocab_size()));

  std::vector<int32_t> tokens;
  std::string unsaid(prompt.unsaid);
  if (prompt.place == Prompt::Place::kBehind) {
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
  if (prompt.place != Prompt::Place::kBehind) {
    GEN_ASSIGN(const std::span<const int32_t> rest,
               session_->cut_to_common(prompt.tokens, prompt.place));
    tokens.assign(rest.begin(), rest.end());
    before_ = sequence.mark();
    answered_ = session_->answered_;
  }
  GEN_TRY(sequence.extend(tokens, true));

  // From here on only memory can fail, and the destructor then takes back what was added.
  GEN_TRY(transcript_.begin(generator.text_spec(), sequence.tokens(), std::move(unsaid)));
  if (rule_ != nullptr) rule_->set_stops(transcript_.stop_tokens());
  sequence.reserve(transcript_.most());
  begin_drafts();
  result_.usage.prompt = sequence.length() - sequence.moved(answered_.mark).length;
  session_->progress_.store(0.0F, std::memory_order_relaxed);
  session_->publish_length();
  generator.metrics().add(metric::kRequests, 1);
  generator.metrics().add(metric::kPromptTokens, static_cast<double>(tokens.size()));
  state_ = State::kPrefill;
  return {};
}

// Without memory for drafts the call does without.
void Generation::begin_drafts() {
  const Generator& generator = session_->generator();
  const model::ModelTraits& traits = generator.model().traits();
  Drafter* const drafter = generator.drafter();
  // Rows of guesses would each have a text and a mask of their own.
  const sampling::ShortRowNeed need = picker_.short_row(rule_ != nullptr);
  const bool ruled = rule_ != nullptr || picker_.edits() || need.temperature > 0.0;
  if (traits.vocab_size == generator.vocab_size() && need.k <= traits.max_best &&
      need.k < traits.vocab_size && (!ruled || (traits.rules_best && drafter == nullptr))) {
    n_best_ = need.k;
    mass_at_ = need.temperature;
    wants_part_ = need.part;
  }
  if (drafter != nullptr) {
    try {
      max_drafts_ = std::clamp(drafter->max_rows(), 0, kMaxDraftRows - 1);
      const auto rows = static_cast<size_t>(max_drafts_) + 1;
      tracker_ = AcceptTracker(max_drafts_);
      drafts_ = std::move(session_->drafts_);
      if (drafts_ == nullptr) drafts_ = drafter->begin();
      if (rule_ != nullptr) draft_rule_ = std::make_unique<grammar::Matcher>(rule_->fork());
      make_room(rows);
      job_.tree.reserve(static_cast<int32_t>(rows));
      job_.positions.reserve(rows);
      job_.wants.reserve(rows);
      job_.state = drafts_.get();
      job_.matcher = draft_rule_.get();
      if (params_.sampling.temperature > 0.0) {
        draft_draw_.emplace(params_.sampling, generator.options().draft_policy.rejects,
                            static_cast<int32_t>(rows));
        draft_draw_->reserve(session_->sequence_.tokens().size() +
                             static_cast<size_t>(transcript_.most()));
        job_.draw = &*draft_draw_;
      }
      if (drafts_ != nullptr) return;
    } catch (...) {
      drafts_ = nullptr;
      draft_rule_.reset();
      draft_draw_.reset();
    }
    generator.metrics().add(metric::kDraftsFailed, 1);
  } else if (n_best_ == 1 && !ruled && traits.chains) {
    begin_chains();
    if (chains_) return;
  }
  make_room(1);
}

// Without memory for chains the call does without.
void Generation::begin_chains() noexcept {
  try {
    make_room(static_cast<size_t>(kMaxDraftRows));
    job_.tree.reserve(kMaxDraftRows);
    job_.wants.reserve(static_cast<size_t>(kMaxDraftRows));
    chains_ = true;
  } catch (...) {
  }
}

// As the adaptive policy has it; the planner of steps asks for less by itself.
int32_t Generation::max_drafts() noexcept {
  const DraftPolicy& policy = session_->generator().options().draft_policy;
  if (policy.now() != DraftPolicy::Kind::kAdaptive) return max_drafts_;
  const auto said = static_cast<int32_t>(result_.tokens.size());
  if (said < paused_until_) return 0;
  if (tracker_.count() >= policy.fall_back_at && tracker_.rate() < policy.fall_back) {
    tracker_.clear();
    paused_until_ = said + policy.probe_tokens;
    return 0;
  }
  return std::min(max_drafts_, tracker_.length());
}

// Without memory for that the step does without drafts.
void Generation::begin_draws() noexcept {
  if (job_.most <= 0 || !draft_draw_.has_value()) return;
  try {
    draft_draw_->begin(session_->sequence_.tokens(), result_.tokens.size());
  } catch (...) {
    job_.most = 0;
    session_->generator().metrics().add(metric::kDraftsFailed, 1);
  }
}

// For what rows of a step give.
void Generation::make_room(size_t rows) {
  const auto width = static_cast<size_t>(session_->generator().model().traits().vocab_size);
  const auto n_best = static_cast<size_t>(n_best_);
  best_.resize(rows * n_best);
  logits_.resize(rows * (n_best > 0 ? n_best : width));
  path_.reserve(rows);
}

Result<const Event*> Generation::next() {
  if (state_ == State::kEnded) {
    if (!result_.status.ok()) return result_.status;
    return static_cast<const Event*>(nullptr);
  }
  const Event* event = nullptr;
  while (event == nullptr) {
    if ((queued_ || queue()) && !session_->generator().scheduler().wait_any({&request_, 1})) {
      return error(Code::kBusy, "the pass of the model that runs this cannot wait for itself");
    }
    event = take();
  }
  return event;
}

const Event* Generation::poll() noexcept {
  const Event* event = nullptr;
  if (queued_) {
    if (!session_->generator().scheduler().poll(request_)) return nullptr;
    event = take();
  }
  if (event == nullptr && !queue()) event = take();
  // Where a step says one token only, its session is back with the next call.
  if (event != nullptr && !event->done && (drafts_ != nullptr || chains_)) {
    session_->generator().scheduler().queue().note_said(call_->participant(), row_ > 0);
  }
  return event;
}

// Queues what is wanted; false if there is nothing to wait for.
bool Generation::queue() noexcept {
  StepRequest* const request = want();
  if (request == nullptr) return false;
  failure_ = contain([&]() -> Status {
    session_->generator().scheduler().submit(request);
    queued_ = true;
    return {};
  });
  // While another thread may run the step. What fails here fails again when the mask is needed.
  if (queued_ && rule_ != nullptr && !wants_best()) {
    static_cast<void>(contain([&] { return rule_->prepare(left()); }));
  }
  return queued_;
}

// Runs what may throw; the message says how far the text has come.
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
  if (!asking_) {
    asking_ = true;
    asked_ = SteadyClock::now();
  }
  failure_ = contain([this] { return prepare(&request_); });
  return request_;
}

// Leaves `*request` null where nothing needs to run: the end is decided, or about to be.
Status Generation::prepare(StepRequest** request) {
  *request = nullptr;
  GEN_TRY(check_wanted(&cancel_, urgency_.deadline, result_.tokens.size()));
  if (transcript_.end() != FinishReason::kNone || row_ > 0) return {};
  Sequence& sequence = session_->sequence_;
  if (!evaluating_) {
    const auto width = static_cast<size_t>(session_->generator().model().traits().vocab_size);
    Sequence::Pass pass;
    int32_t end = sequence.length();
    if (end == session_->generator().max_seq_len()) {
      // The last token alone is evaluated after the shift, so that a prompt gives what it gives
      // if it is appended before.
      catching_up_ = sequence.shifts() && sequence.evaluated() < end - 1;
      if (catching_up_) {
        --end;
      } else {
        GEN_TRY(sequence.make_room(1));
        session_->publish_length();
        end = sequence.length();
      }
    }
    if (!catching_up_) {
      pass.results_from = end - 1;
      if (wants_best()) GEN_TRY(add_rule(&pass.rule));
      if (wants_best()) {
        pass.best = {n_best_, best_.data(), logits_.data(), 0};
      } else {
        pass.rule = {};
        if (whole_row_) logits_.resize(std::max(logits_.size(), width));
        pass.logits = logits_.data();
      }
    }
    pass.cancel = &cancel_;
    if (state_ == State::kPrefill) pass.progress = &session_->progress_;
    pass.urgency = urgency_;
    pass.participant = call_->participant();
    pass.count_from = sequence.moved(before_).length;
    const bool drafts = drafts_ != nullptr || chains_;
    if (drafts && state_ == State::kDecode && !catching_up_ && !whole_row_) {
      job_.most = std::min(chains_ ? kMaxLinks - 1 : max_drafts(), left() - 1);
      job_.stops = transcript_.stop_tokens();
      job_.failures = 0;
      begin_draws();
      pass.draft = &job_;
    }
    GEN_TRY(sequence.start(end, pass));
    evaluating_ = true;
  }
  *request = sequence.next();
  return {};
}

const Event* Generation::take() noexcept {
  const bool prefill = state_ == State::kPrefill;
  bool event = true;
  Status status = std::move(failure_);
  failure_ = Status();
  if (status.ok()) status = contain([&] { return advance(&event); });
  request_ = nullptr;
  queued_ = false;
  if (!status.ok()) {
    event = true;
    const bool cancelled = status.code() == Code::kCancelled;
    finish(cancelled ? FinishReason::kCancelled : FinishReason::kError, std::move(status));
  }
  if (!event) return nullptr;
  asking_ = false;
  const double took = seconds_since(asked_);
  (prefill ? result_.timings.first_token : result_.timings.decode) += took;
  const Event& said = transcript_.event();
  if (!said.done) {
    Metrics& metrics = session_->generator().metrics();
    metrics.add(metric::kCompletionTokens, 1);
    if (prefill) {
      metrics.observe(metric::kFirstTokenSeconds, result_.timings.first_token);
    } else {
      metrics.observe(metric::kInterTokenSeconds, took);
    }
  }
  return &said;
}

// Sets `*event` to false if more of the prompt must run first.
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
  }
  GEN_TRY(taken);
  *event = sequence.done();
  if (!*event) return {};
  evaluating_ = false;
  if (catching_up_) {
    catching_up_ = false;
    *event = false;
    return {};
  }
  if (state_ == State::kPrefill) {
    result_.timings.prefill = seconds_since(asked_);
    session_->tell_reused();
  }
  state_ = State::kDecode;
  return choose(event);
}

// Nothing runs for this call any more; what has run stays in the session.
void Generation::take_back() noexcept {
  session_->sequence_.withdraw();
  end_step();
  request_ = nullptr;
  queued_ = false;
}

// The best tokens of the row that is next.
sampling::ShortRow Generation::short_row() const noexcept {
  const auto n = static_cast<size_t>(n_best_);
  const size_t first = static_cast<size_t>(row_) * n;
  return {std::span(best_).subspan(first, n),
          std::span(logits_).subspan(first, n),
          aside_,
          aside_logits_,
          mass_,
          part_};
}

// What comes with the last row of a pass. Where tokens aside are many, the row costs no more.
Status Generation::add_rule(RowRule* rule) {
  masked_ = false;
  if (rule_ != nullptr) {
    rule->mask = rule_->mask().bits;
    rule->during = {make_mask, this};
  }
  const auto vocab = static_cast<size_t>(session_->generator().vocab_size());
  if (mass_at_ > 0.0) {
    mass_.resize(mass_parts(vocab));
    rule->temperature = mass_at_;
    rule->mass = mass_.data();
  }
  if (wants_part_) {
    part_.resize(kMassPart);
    rule->place = picker_.draw_place(where());
    rule->part = part_.data();
  }
  if (!picker_.edits()) return {};
  GEN_TRY(picker_.list_edited(where(), vocab, &aside_));
  aside_logits_.resize(aside_.size());
  rule->aside = aside_;
  rule->aside_logits = aside_logits_.data();
  whole_row_ = aside_.size() > vocab / kMaxAside;
  return {};
}

// By whoever runs the step, while it runs; nobody else looks at the rule then.
Status Generation::make_mask(void* self) noexcept {
  auto& own = *static_cast<Generation*>(self);
  own.masked_ = own.contain([&] { return own.rule_->prepare(own.left()); }).ok();
  return {};
}

// Of the token that is next.
TokenPicker::At Generation::where() const noexcept {
  return {.held = session_->sequence_.tokens(),
          .said = result_.tokens,
          .stops = transcript_.stop_tokens()};
}

Result<sampling::Choice> Generation::pick() {
  const auto vocab = static_cast<size_t>(session_->generator().vocab_size());
  const auto row = static_cast<size_t>(row_);
  const auto width = static_cast<size_t>(session_->generator().model().traits().vocab_size);
  TokenPicker::At at = where();
  sampling::TokenMask mask;
  if (rule_ != nullptr) {
    mask = rule_->mask();
    at.mask = &mask;
    at.stops = rule_->ends();
  }
  std::optional<sampling::Proposal> proposal;
  if (draft_draw_.has_value()) proposal = draft_draw_->proposal(job_.tree, row_);
  if (proposal.has_value()) at.proposal = &*proposal;
  if (wants_best()) {
    if (rule_ != nullptr && !masked_) return sampling::Choice();
    return picker_.pick_short(short_row(), vocab, at);
  }
  return picker_.pick(std::span(logits_).subspan(row * width, vocab), at);
}

// Draws a token from the logits of a row, and keeps it unless it ends the text. Whether it was the
// last one is decided here, the done event comes with the next call. Where it had been guessed the
// logits of the next row are there. Sets `*event` to false if the row must be run again first.
Status Generation::choose(bool* event) {
  Sequence& sequence = session_->sequence_;
  auto role = Transcript::Role::kAny;
  if (rule_ != nullptr) {
    GEN_TRY(rule_->prepare(left()));
    if (!rule_->allows_any()) {
      end_at_grammar();
      return {};
    }
  }
  const Result<sampling::Choice> drawn = pick();
  if (drawn.ok() && drawn.value().token < 0) {
    end_step();
    whole_row_ = true;
    session_->generator().metrics().add(metric::kRowsAgain, 1);
    *event = false;
    return {};
  }
  whole_row_ = false;
  if (rule_ != nullptr && drawn.status().code() == Code::kGrammar) {
    keep_row();
    finish(
        FinishReason::kGrammarDeadEnd,
        error(Code::kGrammar, "biases forbid every token that the grammar allows after %zu tokens",
              result_.tokens.size()));
    return {};
  }
  GEN_ASSIGN(const sampling::Choice choice, drawn);
  if (rule_ != nullptr) {
    GEN_ASSIGN(const bool part, rule_->accept(choice.token));
    role = !part                        ? Transcript::Role::kEnd
           : rule_->is_over(left() - 1) ? Transcript::Role::kLast
                                        : Transcript::Role::kPart;
    if (part) follow_rule(choice.token);
  }
  sequence.push(choice.token);
  path_.push_back(row_);  // start() made room
  session_->publish_length();
  GEN_ASSIGN(const bool kept, transcript_.take(choice, sequence.length(), role));
  if (kept) note_member();
  const bool goes_on = kept && transcript_.end() == FinishReason::kNone;
  row_ = job_.tree.child(row_, choice.token);
  if (row_ > 0) ++hits_;
  if (!goes_on) row_ = -1;
  if (row_ < 0) end_step();
  if (!kept) finish(transcript_.end(), Status());
  return {};
}

void Generation::note_member() noexcept {
  if (rule_ != nullptr) result_.grammar_complete = rule_->is_complete() ? 1 : 0;
}

// Where that fails there are no more drafts.
void Generation::follow_rule(int32_t token) noexcept {
  if (draft_rule_ == nullptr) return;
  try {
    const Result<bool> accepted = draft_rule_->accept_token(token);
    if (accepted.ok() && accepted.value()) return;
  } catch (...) {
  }
  max_drafts_ = 0;
}

// Tokens that may still be kept. A context that shifts has room for any number.
int32_t Generation::left() const noexcept {
  const bool shifts = session_->generator().options().shift_context;
  const int32_t most = shifts ? params_.stops.effective_max_new_tokens() : transcript_.most();
  return most - static_cast<int32_t>(result_.tokens.size());
}

// No token can come. The text may be a member all the same, where none of the vocabulary ends it.
void Generation::end_at_grammar() noexcept {
  keep_row();
  if (rule_->is_complete()) return finish(FinishReason::kGrammarComplete, Status());
  finish(FinishReason::kGrammarDeadEnd,
         error(Code::kGrammar, "no token of the vocabulary can go on after %zu tokens",
               result_.tokens.size()));
}

// The row that is next has run, and what nothing can follow is part of the text all the same.
void Generation::keep_row() noexcept {
  path_.push_back(row_);
  session_->sequence_.keep(path_);
  path_.pop_back();
}

// The rows of the step that the text went through are evaluated, the others have never been.
void Generation::end_step() noexcept {
  session_->sequence_.keep(path_);
  // Each row of a chain is a pass of the model.
  const size_t passes = chains_ ? path_.size() : std::min<size_t>(path_.size(), 1);
  for (size_t i = 0; i < passes; ++i) {
    session_->generator().draft_use().note_pass(path_.size() / passes);
  }
  if (drafts_ != nullptr && job_.tree.rows() > 1 && !path_.empty()) {
    drafts_->accepted(path_);
    note_drafts(job_.tree.rows() - 1, hits_);
  }
  job_.tree.cut(0);
  hits_ = 0;
  path_.clear();
  row_ = 0;
}

void Generation::note_drafts(int32_t drafted, int32_t accepted) noexcept {
  result_.usage.drafted += drafted;
  result_.usage.accepted += accepted;
  Metrics& metrics = session_->generator().metrics();
  metrics.add(metric::kDraftedTokens, drafted);
  metrics.add(metric::kAcceptedTokens, accepted);
  tracker_.record(accepted, drafted);
  metrics.set(metric::kSpeculativeAcceptanceRate, tracker_.rate());
  session_->generator().draft_use().note_drafts(drafted, accepted);
  DraftRecord& record = job_.record;
  record.proposed = drafted;
  record.accepted = accepted;
  const std::span<const uint8_t> grades = job_.tree.grades().subspan(1);
  std::copy_n(grades.begin(), std::min(grades.size(), record.grades.size()), record.grades.begin());
}

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
  session_->answered_ = std::move(answered_);
  session_->publish_length();
  session_->generator().metrics().add(metric::errors(failure.code()), 1);
  result_.finish_reason = FinishReason::kError;
  result_.status = std::move(failure);
}

void Generation::finish(FinishReason reason, Status status, bool told) noexcept {
  end_step();
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
  result_.usage.dropped = session_->sequence_.dropped() - before_.dropped;
  state_ = State::kEnded;
}

// What the session is left with. A cancelled prompt stays as far as it was evaluated.
void Generation::settle(FinishReason reason) noexcept {
  Sequence& sequence = session_->sequence_;
  if (reason == FinishReason::kError) {
    sequence.rewind(before_);
  } else if (state_ == State::kPrefill && reason != FinishReason::kContextFull) {
    sequence.drop_pending(sequence.moved(before_).length);
  }
  if (reason == FinishReason::kCancelled) session_->cancel_.reset();
  if (reason != FinishReason::kError) session_->note_answered(transcript_.take_unsaid());
  if (drafts_ != nullptr && reason != FinishReason::kError) drafts_->ended(sequence.tokens());
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
