// SPDX-License-Identifier: Apache-2.0
// See session.h.
#include "generate/loop/session.h"

#include <algorithm>
#include <utility>

#include "chat/chat_form.h"
#include "generate/loop/generator.h"
#include "generate/request/metric_names.h"
#include "generate/step/scheduler.h"
#include "sampling/selection.h"

namespace gen::generate {
namespace {

constexpr size_t kScoreBytes = size_t{16} << 20;  // size of the logits buffer while scoring

/// A cancel raised before this call is meant for the next generating call: it is raised again after
/// this one.
class EarlierCancel {
 public:
  explicit EarlierCancel(CancelFlag* flag) noexcept : flag_(*flag), raised_(flag->take()) {}
  ~EarlierCancel() {
    if (raised_) flag_.fire();
  }
  EarlierCancel(const EarlierCancel&) = delete;
  EarlierCancel& operator=(const EarlierCancel&) = delete;

 private:
  CancelFlag& flag_;
  const bool raised_;
};

}  // namespace

// Declared in generator.h, where Session is incomplete.
Result<std::shared_ptr<Session>> Generator::new_session() const {
  GEN_ASSIGN(Sequence sequence, Sequence::create(*this));
  return std::shared_ptr<Session>(new Session(shared_from_this(), std::move(sequence)));
}

Session::Session(std::shared_ptr<const Generator> generator, Sequence sequence)
    : generator_(std::move(generator)), sequence_(std::move(sequence)) {
  generator_->scheduler().add(this);
}

Session::~Session() { generator_->scheduler().remove(this); }

void Session::publish_length() noexcept {
  length_.store(sequence_.length(), std::memory_order_relaxed);
  evaluated_.store(sequence_.evaluated(), std::memory_order_relaxed);
  last_used_.store(sequence_.evictable() ? SteadyClock::now().time_since_epoch().count() : kNothing,
                   std::memory_order_relaxed);
}

int64_t Session::last_used() const noexcept {
  return in_use_.held() ? kNothing : last_used_.load(std::memory_order_relaxed);
}

int64_t Session::most_freed() const noexcept {
  if (last_used() == kNothing || !in_use_.try_keep()) return 0;
  const int64_t freed = sequence_.cache().most_freed();
  in_use_.end_keep();
  return freed;
}

bool Session::evict() noexcept {
  if (!in_use_.try_keep()) return false;
  const bool gave = sequence_.evict();
  evaluated_.store(sequence_.evaluated(), std::memory_order_relaxed);
  last_used_.store(kNothing, std::memory_order_relaxed);
  in_use_.end_keep();
  return gave;
}

Status Session::encode(const Prompt& prompt, std::vector<int32_t>* out, bool* bos) const {
  out->clear();
  *bos = false;
  if (!prompt.tokens.empty()) {
    out->assign(prompt.tokens.begin(), prompt.tokens.end());
    return {};
  }
  if (prompt.text.empty()) return {};
  const tokenizer::Tokenizer* const tokenizer = generator_->tokenizer();
  if (tokenizer == nullptr) {
    return error(Code::kTokenizer, "the model has no tokenizer, prompts must be tokens");
  }
  const bool special = prompt.parse_special || generator_->options().parse_special;
  const uint32_t flags = special ? tokenizer::kParseSpecial : 0U;
  if (sequence_.length() > 0) {
    return tokenizer->encode(prompt.text, flags, out, sequence_.tokens().back());
  }
  if (!tokenizer->spec().add_bos) return tokenizer->encode(prompt.text, flags, out);
  GEN_TRY(tokenizer->encode(prompt.text, flags | tokenizer::kAddBos, out));
  *bos = !out->empty() && out->front() == tokenizer->special(tokenizer::Special::kBos);
  if (*bos && out->size() == 1) {  // BOS alone is no prompt
    out->clear();
    *bos = false;
    return tokenizer->encode(prompt.text, flags, out);
  }
  return {};
}

void Session::tell_reused() const {
  if (generator_->prefix_cache() == nullptr) return;
  Metrics& metrics = generator_->metrics();
  PrefixUse& use = generator_->prefix_use();
  use.lookups.fetch_add(1, std::memory_order_relaxed);
  metrics.add(metric::kPrefixLookups, 1);
  if (sequence_.reused() == 0) return;
  use.hits.fetch_add(1, std::memory_order_relaxed);
  use.tokens.fetch_add(sequence_.reused(), std::memory_order_relaxed);
  metrics.add(metric::kPrefixHits, 1);
  metrics.add(metric::kPromptCachedTokens, sequence_.reused());
}

void Session::note_answered(std::string unsaid) noexcept {
  answered_ = {sequence_.mark(), 0, std::move(unsaid)};
}

Status Session::append(const Prompt& prompt) {
  return metric::count_failure(generator_->metrics(), [&] { return append_prompt(prompt); });
}

Status Session::append_prompt(const Prompt& prompt) {
  Participant participant(
      &generator_->scheduler().queue());  // expected until the session is free again
  const InUseGuard guard(&in_use_);
  GEN_TRY(guard.entered("session"));
  return append_held(prompt, &participant);
}

Result<std::span<const int32_t>> Session::cut_to_common(std::span<const int32_t> wanted,
                                                        Prompt::Kind kind) {
  const std::span<const int32_t> held = sequence_.tokens();
  const auto same = std::mismatch(held.begin(), held.end(), wanted.begin(), wanted.end());
  const auto exact = static_cast<size_t>(same.first - held.begin());
  chat::ChatMatch match{exact, exact};
  if (kind == Prompt::Kind::kWholeChat) {
    match = chat::match_chat(*generator_->tokenizer(), held, wanted);
    // The tokenization that the session holds may be longer than the new one and leave no room.
    const size_t whole = match.held + (wanted.size() - match.wanted);
    if (whole > wanted.size() && whole >= static_cast<size_t>(generator_->max_seq_len())) {
      match = {exact, exact};
    }
  }
  const Status cut = cut_to(static_cast<int32_t>(match.held));
  if (cut.ok()) return wanted.subspan(match.wanted);
  if (cut.code() != Code::kUnsupported) return cut;
  GEN_TRY(cut_to(0));
  return wanted;
}

Status Session::append_chat(std::span<const int32_t> wanted, std::span<const int32_t> borders) {
  return metric::count_failure(generator_->metrics(), [&]() -> Status {
    Participant participant(&generator_->scheduler().queue());
    const InUseGuard guard(&in_use_);
    GEN_TRY(guard.entered("session"));
    const auto limit = static_cast<size_t>(generator_->max_seq_len());
    if (wanted.size() > limit) {
      return error(Code::kContextFull, "the conversation of %zu tokens exceeds the context of %zu",
                   wanted.size(), limit);
    }
    const std::vector<int32_t> held(sequence_.tokens().begin(), sequence_.tokens().end());
    std::vector<int32_t> left;  // of the borders
    left.reserve(borders.size());
    Prompt prompt;
    GEN_ASSIGN(prompt.tokens, cut_to_common(wanted, Prompt::Kind::kWholeChat));
    const auto kept_ids = static_cast<int32_t>(wanted.size() - prompt.tokens.size());
    for (const int32_t border : borders) {
      if (border > kept_ids) left.push_back(border - kept_ids);
    }
    prompt.borders = left;
    const auto kept = static_cast<size_t>(sequence_.length());
    Status status;
    const auto give_back = [&] {
      if (static_cast<size_t>(sequence_.length()) != kept) return;
      // The capacity for these tokens is still allocated.
      (void)sequence_.extend(std::span(held).subspan(std::min(kept, held.size())));
      publish_length();
    };
    try {
      status = append_held(prompt, &participant);
    } catch (...) {
      give_back();
      throw;
    }
    if (!status.ok() && status.code() != Code::kCancelled) give_back();
    return status;
  });
}

void Session::set_borders(const Prompt& prompt) {
  if (!sequence_.keeps_points()) return;
  if (prompt.borders.empty()) return guess_borders();
  const int32_t first = sequence_.length() - static_cast<int32_t>(prompt.tokens.size());
  std::vector<int32_t> borders;
  borders.reserve(prompt.borders.size());
  for (const int32_t border : prompt.borders) borders.push_back(first + border);
  sequence_.set_borders(std::move(borders));
}

// Messages end and begin with control tokens, a few of them together; those of the last two places.
void Session::guess_borders() {
  constexpr int32_t kTogether = 8;
  const tokenizer::Tokenizer* const tokenizer = generator_->tokenizer();
  if (tokenizer == nullptr) return;
  std::vector<int32_t> borders;
  for (int32_t at = sequence_.length() - 1; at > sequence_.evaluated(); --at) {
    if (!tokenizer->is_control(sequence_.tokens()[static_cast<size_t>(at)])) continue;
    if (!borders.empty() && borders.back() - at <= kTogether) {
      borders.back() = at;
    } else if (borders.size() < 2) {
      borders.push_back(at);
    } else {
      break;
    }
  }
  std::reverse(borders.begin(), borders.end());
  sequence_.set_borders(std::move(borders));
}

Status Session::set_keep(int32_t n) {
  const InUseGuard guard(&in_use_);
  GEN_TRY(guard.entered("session"));
  sequence_.set_keep(n);
  return {};
}

// A head (Drafter::observe) knows texts by their rows.
DraftState* Session::observer() noexcept {
  Drafter* const drafter = generator_->drafter();
  if (drafter == nullptr || drafter->taps().empty()) return nullptr;
  if (drafts_ == nullptr) {
    try {
      drafts_ = drafter->begin();
    } catch (...) {  // no memory: the next call tries again
      generator_->metrics().add(metric::kDraftsFailed, 1);
    }
  }
  return drafts_.get();
}

Status Session::append_held(const Prompt& prompt, Participant* participant) {
  std::vector<int32_t> tokens;
  bool bos = false;
  GEN_TRY(encode(prompt, &tokens, &bos));
  if (tokens.empty()) return {};
  // Checked here as well: a single token is not evaluated before it is needed.
  if (given_cancel_ != nullptr && given_cancel_->raised())
    return {Code::kCancelled, "cancelled before the first token"};
  const Sequence::Mark before = sequence_.mark();
  const EarlierCancel earlier(&cancel_);
  GEN_TRY(sequence_.extend(tokens, true));
  progress_.store(0.0F, std::memory_order_relaxed);
  const CancelFlag cancel(&cancel_, given_cancel_.get());
  Status status;
  try {
    set_borders(prompt);
    Sequence::Pass pass;
    pass.cancel = &cancel;
    pass.participant = participant;
    pass.progress = &progress_;
    pass.observer = observer();
    status = sequence_.evaluate(sequence_.length() - 1, pass);
  } catch (...) {
    sequence_.rewind(before);
    progress_.store(1.0F, std::memory_order_relaxed);
    publish_length();
    throw;
  }
  if (status.ok()) {
    generator_->metrics().add(metric::kPromptTokens, static_cast<double>(tokens.size()));
    tell_reused();
    answered_.cached_since += sequence_.reused();
  } else if (status.code() == Code::kCancelled) {
    sequence_.drop_pending(sequence_.moved(before).length);
    cancel_.reset();
  } else {
    sequence_.rewind(before);
  }
  progress_.store(1.0F, std::memory_order_relaxed);
  publish_length();
  return status;
}

Status Session::score(const Prompt& prompt, std::vector<float>* logprobs,
                      std::vector<int32_t>* tokens) {
  return metric::count_failure(generator_->metrics(),
                               [&] { return score_prompt(prompt, logprobs, tokens); });
}

Status Session::score_prompt(const Prompt& prompt, std::vector<float>* logprobs,
                             std::vector<int32_t>* tokens) {
  Participant participant(&generator_->scheduler().queue());
  const InUseGuard guard(&in_use_);
  GEN_TRY(guard.entered("session"));
  std::vector<int32_t> given;
  bool bos = false;
  GEN_TRY(encode(prompt, &given, &bos));
  const auto skipped = static_cast<int32_t>(bos);
  std::vector<float> scores;
  scores.reserve(given.size());
  const Sequence::Mark before = sequence_.mark();
  const EarlierCancel earlier(&cancel_);
  GEN_TRY(sequence_.extend(given));
  sequence_.remember_here(cache::SnapshotPlace::kPlain);
  Status status;
  try {
    status = score_tail(before.length + skipped, &participant, &scores);
  } catch (...) {
    sequence_.rewind(before);
    publish_length();
    throw;
  }
  sequence_.rewind(before);
  publish_length();
  if (status.code() == Code::kCancelled) cancel_.reset();
  GEN_TRY(status);
  *logprobs = std::move(scores);
  if (tokens != nullptr) tokens->assign(given.begin() + skipped, given.end());
  return {};
}

Result<size_t> Session::score_length(const Prompt& prompt) const {
  const InUseGuard guard(&in_use_);
  GEN_TRY(guard.entered("session"));
  std::vector<int32_t> given;
  bool bos = false;
  GEN_TRY(encode(prompt, &given, &bos));
  return given.size() - static_cast<size_t>(bos);
}

// The logits of row i predict token i + 1. They are computed in windows of bounded size.
Status Session::score_tail(int32_t first, Participant* participant, std::vector<float>* scores) {
  const int32_t length = sequence_.length();
  if (first == 0 && length > 0) scores->push_back(0.0F);
  const auto row_size = static_cast<size_t>(generator_->model().traits().vocab_size);
  const auto vocab = static_cast<size_t>(generator_->vocab_size());
  const auto window =
      static_cast<int32_t>(std::clamp<size_t>(kScoreBytes / (row_size * sizeof(float)), 1,
                                              static_cast<size_t>(generator_->prefill_chunk())));
  std::vector<float> logits(static_cast<size_t>(window) * row_size);
  const CancelFlag cancel(&cancel_, given_cancel_.get());
  for (int32_t from = std::max(first - 1, 0); from < length - 1; from += window) {
    Sequence::Pass pass;
    pass.results_from = from;
    pass.query.logits = logits.data();
    pass.cancel = &cancel;
    pass.participant = participant;
    const int32_t end = std::min(from + window, length - 1);
    GEN_TRY(sequence_.evaluate(end, pass));
    for (int32_t row = from; row < end; ++row) {
      const std::span<const float> one(logits.data() + static_cast<size_t>(row - from) * row_size,
                                       vocab);
      const auto next = static_cast<size_t>(sequence_.tokens()[static_cast<size_t>(row) + 1]);
      GEN_ASSIGN(const float score, sampling::token_logprob(one, next, row));
      scores->push_back(score);
    }
  }
  return {};
}

Status Session::truncate(int32_t n) {
  const BlockHolder holder(&generator_->scheduler().queue());
  const InUseGuard guard(&in_use_);
  GEN_TRY(guard.entered("session"));
  return cut_to(n);
}

Status Session::cut_to(int32_t n) {
  const int32_t length = sequence_.length();
  GEN_TRY(sequence_.truncate(n));
  note_cut(length, n);
  return {};
}

void Session::note_cut(int32_t before, int32_t n) noexcept {
  if (n < before) answered_.unsaid.clear();
  answered_.mark = sequence_.moved(answered_.mark);
  answered_.mark.length = std::min(answered_.mark.length, n);
  answered_.cached_since = std::min(answered_.cached_since, n - answered_.mark.length);
  publish_length();
}

Status Session::set_cancel(std::shared_ptr<const CancelFlag> cancel) {
  const InUseGuard guard(&in_use_);
  GEN_TRY(guard.entered("session"));
  given_cancel_ = std::move(cancel);
  return {};
}

Status Session::reset() {
  const BlockHolder holder(&generator_->scheduler().queue());
  const InUseGuard guard(&in_use_);
  GEN_TRY(guard.entered("session"));
  sequence_.rewind({0, 0});
  sequence_.set_adapters(nullptr);
  note_answered();
  cancel_.reset();
  publish_length();
  return {};
}

Status Session::save(
    const std::function<Status(const cache::StateContents& contents)>& write) const {
  const BlockHolder holder(&generator_->scheduler().queue());
  const InUseGuard guard(&in_use_);
  GEN_TRY(guard.entered("session"));
  return write([this](cache::StateWriter& to) { return sequence_.save(to, drafts_.get()); });
}

Status Session::load(std::span<const std::byte> state) {
  const BlockHolder holder(&generator_->scheduler().queue());
  const InUseGuard guard(&in_use_);
  GEN_TRY(guard.entered("session"));
  if (sequence_.length() > 0) {
    return error(Code::kState, "the session holds %d tokens; a state goes into an empty one",
                 sequence_.length());
  }
  GEN_ASSIGN(cache::StateReader reader, cache::StateReader::open(state));
  if (reader.kind() != cache::StateKind::kSession) {
    return {Code::kInvalidArgument, "the state is a cache's, not a session's"};
  }
  GEN_TRY(sequence_.restore(reader, &drafts_));
  note_answered();
  publish_length();
  return {};
}

Result<std::shared_ptr<Session>> Session::fork() const {
  const BlockHolder holder(&generator_->scheduler().queue());
  const InUseGuard guard(&in_use_);
  GEN_TRY(guard.entered("session"));
  GEN_ASSIGN(Sequence copy, sequence_.fork());
  std::shared_ptr<Session> session(new Session(generator_, std::move(copy)));
  session->answered_.mark.length = sequence_.moved(answered_.mark).length;
  session->answered_.cached_since = answered_.cached_since;
  session->answered_.unsaid = answered_.unsaid;
  session->publish_length();
  if (drafts_ != nullptr) {
    try {
      session->drafts_ = drafts_->fork();
    } catch (...) {  // no memory: it is made anew when it is needed
      generator_->metrics().add(metric::kDraftsFailed, 1);
    }
  }
  return session;
}

Result<std::vector<int32_t>> Session::tokens() const {
  const BlockHolder holder(&generator_->scheduler().queue());
  const InUseGuard guard(&in_use_);
  GEN_TRY(guard.entered("session"));
  return std::vector<int32_t>(sequence_.tokens().begin(), sequence_.tokens().end());
}

}  // namespace gen::generate
