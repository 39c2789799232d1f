// SPDX-License-Identifier: Apache-2.0
// See draft_pair.h. Both sides are sessions, so any model and cache will do. The target's drafter
// proposes the tokens that the caller passed.
#include "generate/draft_pair.h"

#include <algorithm>
#include <utility>

#include "generate/draft/draft_vocabulary.h"
#include "generate/draft/model_drafter.h"
#include "generate/loop/generation.h"
#include "generate/loop/session.h"

namespace gen::generate {
namespace {

CallParams greedy_params(int32_t most) {
  CallParams params;
  params.sampling.temperature = 0.0;
  params.stops.max_new_tokens = most;
  params.stops.ignore_eos = true;
  return params;
}

Result<std::shared_ptr<Session>> session_over(const ModelInUse& model, const CacheChoice& caches,
                                              GeneratorOptions options) {
  // The draft model may have a smaller context. A text that does not fit is refused: if the context
  // shifted, the result would depend on earlier calls.
  options.max_seq_len = std::min(options.max_seq_len, model.model->traits().max_seq_len);
  options.shift_context = false;
  GEN_ASSIGN(const auto generator, create_generator(model, caches, std::move(options)));
  return generator->new_session();
}

/// Makes the session hold the text, with all but its last token evaluated. The common prefix stays
/// if the model can be cut, which a target may not.
Status hold(Session& session, std::span<const int32_t> text) {
  if (text.empty()) return {Code::kInvalidArgument, "the text has no tokens"};
  GEN_ASSIGN(const auto held, session.tokens());
  const auto most = static_cast<std::ptrdiff_t>(std::min(held.size(), text.size() - 1));
  const auto at = std::mismatch(held.begin(), held.begin() + most, text.begin());
  auto same = static_cast<size_t>(at.first - held.begin());
  const Status cut = session.truncate(static_cast<int32_t>(same));
  if (cut.code() == Code::kUnsupported) {
    GEN_TRY(session.reset());
    same = 0;
  } else {
    GEN_TRY(cut);
  }
  Prompt rest;
  rest.tokens = text.subspan(same);
  return session.append(rest);
}

}  // namespace

/// Proposes the tokens that it was given.
class DraftPair::Given final : public Drafter {
 public:
  void set(std::span<const int32_t> text, std::span<const int32_t> guesses) {
    length_ = text.size();
    guesses_.assign(guesses.begin(), guesses.end());
  }
  [[nodiscard]] int32_t max_rows() const noexcept override { return kMaxDraftRows - 1; }
  std::unique_ptr<DraftState> begin() override { return std::make_unique<DraftState>(); }
  void propose(std::span<DraftJob* const> jobs) override {
    for (DraftJob* const job : jobs) {
      for (size_t at = job->tokens.size() - length_;
           at < guesses_.size() && job->tree.rows() <= job->most; ++at) {
        job->tree.add(guesses_[at], job->tree.rows() - 1);
      }
    }
  }

 private:
  size_t length_ = 0;
  std::vector<int32_t> guesses_;
};

Result<std::shared_ptr<DraftPair>> DraftPair::create(const ModelInUse& draft,
                                                     const ModelInUse& target,
                                                     const CacheChoice& caches,
                                                     GeneratorOptions draft_options,
                                                     GeneratorOptions target_options) {
  GEN_TRY(check_draft_model(*draft.model));
  std::shared_ptr<DraftPair> pair(new DraftPair());
  draft_options.drafter = nullptr;
  if (target.model != nullptr) {
    GEN_ASSIGN(pair->vocab_, common_vocabulary(*draft.model, draft.tokenizer.get(), *target.model,
                                               target.tokenizer.get()));
    pair->given_ = std::make_shared<Given>();
    target_options.drafter = pair->given_;
    target_options.draft_policy = {};
    GEN_ASSIGN(pair->target_, session_over(target, caches, std::move(target_options)));
  }
  GEN_ASSIGN(pair->draft_, session_over(draft, caches, std::move(draft_options)));
  return pair;
}

Result<std::shared_ptr<DraftPair>> DraftPair::create_self(const ModelInUse& target, int32_t layers,
                                                          const CacheChoice& caches,
                                                          const GeneratorOptions& options) {
  const int32_t all = target.model->traits().num_layers;
  if (layers < 1 || layers >= all) layers = std::max(all / 2, 1);
  ModelInUse draft = target;
  GEN_ASSIGN(draft.model, target.model->first_layers(layers));
  return create(draft, target, caches, options, options);
}

int32_t DraftPair::depth() const noexcept {
  return draft_->generator().model().traits().num_layers;
}

Result<Guesses> DraftPair::generate(std::span<const int32_t> text, int32_t length) {
  const InUseGuard in_use(&in_use_);
  GEN_TRY(in_use.entered("the draft"));
  return generate_held(text, length);
}

Result<Guesses> DraftPair::generate_held(std::span<const int32_t> text, int32_t length) {
  if (length < 1 || length >= kMaxDraftRows) {
    return error(Code::kInvalidArgument, "a draft of %d tokens, outside [1, %d]", length,
                 kMaxDraftRows - 1);
  }
  GEN_TRY(hold(*draft_, text));
  CallParams params = greedy_params(length);
  params.sampling.logprobs = 0;
  Guesses guesses;
  guesses.tokens.reserve(static_cast<size_t>(length));
  guesses.logprobs.reserve(static_cast<size_t>(length));
  GEN_ASSIGN(const auto call, draft_->open({}, std::move(params)));
  const auto ends = draft_->generator().end_tokens();
  while (static_cast<int32_t>(guesses.tokens.size()) < length) {
    GEN_ASSIGN(const Event* const event, call->next());
    if (event == nullptr || event->done) {
      GEN_TRY(call->result().status);
      break;
    }
    if (event->token >= vocab_) break;  // outside the target's vocabulary
    guesses.tokens.push_back(event->token);
    guesses.logprobs.push_back(event->logprob);
    if (std::find(ends.begin(), ends.end(), event->token) != ends.end()) break;
  }
  return guesses;
}

Result<Verdict> DraftPair::verify(std::span<const int32_t> text, std::span<const int32_t> guesses) {
  const InUseGuard in_use(&in_use_);
  GEN_TRY(in_use.entered("the draft"));
  return verify_held(text, guesses);
}

Result<Verdict> DraftPair::verify_held(std::span<const int32_t> text,
                                       std::span<const int32_t> guesses) {
  if (target_ == nullptr) return Status(Code::kState, "there is no target to judge a draft");
  const int32_t vocab = target_->generator().vocab_size();
  for (const int32_t token : guesses) {
    if (token >= 0 && token < vocab) continue;
    return error(Code::kOutOfRange, "guess %d outside [0, %d)", token, vocab);
  }
  GEN_TRY(hold(*target_, text));
  given_->set(text, guesses);
  GEN_ASSIGN(const auto call,
             target_->open({}, greedy_params(static_cast<int32_t>(guesses.size()) + 1)));
  Verdict verdict;
  for (;;) {
    GEN_ASSIGN(const Event* const event, call->next());
    if (event == nullptr || event->done) {
      GEN_TRY(call->result().status);
      return verdict;  // the context is full
    }
    const auto at = static_cast<size_t>(verdict.accepted);
    if (at == guesses.size() || guesses[at] != event->token) {
      verdict.correction = event->token;
      return verdict;
    }
    ++verdict.accepted;
  }
}

Result<double> DraftPair::acceptance_rate(std::span<const int32_t> text, int32_t length) {
  const InUseGuard in_use(&in_use_);
  GEN_TRY(in_use.entered("the draft"));
  GEN_ASSIGN(const Guesses guesses, generate_held(text, length > 0 ? length : kDefaultLength));
  GEN_ASSIGN(const Verdict verdict, verify_held(text, guesses.tokens));
  if (guesses.tokens.empty()) return 0.0;
  return static_cast<double>(verdict.accepted) / static_cast<double>(guesses.tokens.size());
}

}  // namespace gen::generate
