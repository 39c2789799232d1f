// SPDX-License-Identifier: Apache-2.0
// speculative.h of the C API.
#include <generate/speculative.h>

#include <algorithm>
#include <utility>

#include "api/boundary/boundary.h"
#include "api/generate/drafting_generator.h"
#include "api/generate/handles.h"
#include "api/model/model_handle.h"
#include "api/boundary/option_table.h"
#include "generate/draft_pair.h"
#include "sampling/acceptance.h"

struct gen_speculative : gen::api::DraftingGenerator {
  gen_speculative() noexcept : DraftingGenerator("the speculative generator") {}
};

struct gen_draft : gen::Postponed {
  gen::api::Shared<gen::generate::DraftPair> shared;
  gen::HomeProcess home;
};

namespace {

using gen::Code;
using gen::Result;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::generate::DraftPair;
using gen::generate::kMaxDraftLength;

/// The callbacks that a call on both models may reach.
gen::SharedCallbacks callbacks_of(const gen_model* draft, const gen_model& target) {
  gen::CallbackList all;
  for (const gen_model* model : {draft, &target}) {
    if (model == nullptr || model->shared.callbacks() == nullptr) continue;
    for (const auto& table : *model->shared.callbacks()) {
      if (std::find(all.begin(), all.end(), table) == all.end()) all.push_back(table);
    }
  }
  return all.empty() ? nullptr : std::make_shared<const gen::CallbackList>(std::move(all));
}

/// Options for the two models of a pair; metrics and tracers belong to generators only.
gen::generate::GeneratorOptions pair_options(const gen_options& options, const gen_model& model) {
  gen::generate::GeneratorOptions inner = options.generator;
  const auto parts = model.shared.keep();
  if (parts->engine != nullptr) inner.memory = &parts->engine->memory();
  return inner;
}

gen_status make_draft(gen_draft** out, gen_error* error, const gen_model* draft,
                      const gen_model* target, const gen_options* options,
                      Result<std::shared_ptr<DraftPair>> (*make)(const gen_model* draft,
                                                                 const gen_model* target,
                                                                 int32_t layers,
                                                                 const gen_options& chosen),
                      int32_t layers) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(draft, "draft"));
    GEN_TRY(not_null(out, "out"));
    if (target != nullptr) GEN_TRY(not_null(target, "target"));
    const gen::SharedCallbacks callbacks = callbacks_of(target, *draft);
    const gen::api::Entry entry(callbacks);
    GEN_TRY(entry.entered("the model"));
    auto handle = std::make_unique<gen_draft>();
    GEN_ASSIGN(auto made,
               make(draft, target, layers, options != nullptr ? *options : gen_options()));
    handle->shared = gen::api::Shared<DraftPair>(std::move(made), callbacks);
    *out = handle.release();
    return {};
  });
}

}  // namespace

gen_status gen_speculative_new(const gen_model* draft, const gen_model* target, int32_t length,
                               const gen_options* options, gen_speculative** out,
                               gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(draft, "draft"));
    GEN_TRY(not_null(target, "target"));
    GEN_TRY(not_null(out, "out"));
    gen_options chosen = options != nullptr ? *options : gen_options();
    GEN_ASSIGN(chosen.drafts.draft_length, gen::api::drafting_length(length));
    chosen.draft = draft->shared.keep();
    chosen.draft_callbacks = draft->shared.callbacks();
    auto handle = std::make_unique<gen_speculative>();
    GEN_TRY(gen::api::make_drafting(*target, std::move(chosen), nullptr, handle.get()));
    *out = handle.release();
    return {};
  });
}

gen_status gen_speculative_generate(gen_speculative* speculative, const char* prompt, size_t len,
                                    const gen_sampling* sampling, gen_result** result,
                                    gen_error* error) {
  return gen::api::drafting_generate(speculative, "speculative", prompt, len, sampling, result,
                                     error);
}

gen_status gen_speculative_generate_stream(gen_speculative* speculative, const char* prompt,
                                           size_t len, const gen_sampling* sampling,
                                           gen_token_callback callback, void* user,
                                           gen_result** result, gen_error* error) {
  return gen::api::drafting_stream(speculative, "speculative", prompt, len, sampling, callback,
                                   user, result, error);
}

gen_status gen_speculative_set_adaptive(gen_speculative* speculative, int32_t adaptive,
                                        gen_error* error) {
  return gen::api::drafting_set_adaptive(speculative, "speculative", adaptive, error);
}

gen_status gen_speculative_stats(const gen_speculative* speculative, const char* key, double* value,
                                 gen_error* error) {
  return gen::api::drafting_stats(speculative, "speculative", key, value, error);
}

void gen_speculative_free(gen_speculative* speculative) {
  if (speculative != nullptr) gen::api::end_handle(speculative, speculative->shared.callbacks());
}

gen_status gen_generator_draft_stats(const gen_generator* generator, const char* key, double* value,
                                     gen_error* error) {
  if (value != nullptr) *value = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(generator, "generator"));
    GEN_TRY(not_null(key, "key"));
    GEN_TRY(not_null(value, "value"));
    GEN_ASSIGN(const auto used, generator->shared.enter("the generator"));
    return gen::api::draft_figure(used->draft_use(), key, value);
  });
}

gen_status gen_draft_new(const gen_model* draft, const gen_model* target,
                         const gen_options* options, gen_draft** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return make_draft(
      out, error, draft, target, options,
      [](const gen_model* guesses, const gen_model* judges, int32_t /*layers*/,
         const gen_options& chosen) {
        const gen::generate::ModelInUse none;
        return DraftPair::create(gen::api::in_use(guesses->shared.keep()),
                                 judges != nullptr ? gen::api::in_use(judges->shared.keep()) : none,
                                 gen::api::cache_choice(chosen), pair_options(chosen, *guesses),
                                 pair_options(chosen, judges != nullptr ? *judges : *guesses));
      },
      0);
}

gen_status gen_draft_new_self(const gen_model* target, int32_t layers, const gen_options* options,
                              gen_draft** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  if (target == nullptr) return guard(error, [&] { return not_null(target, "target"); });
  return make_draft(
      out, error, target, nullptr, options,
      [](const gen_model* model, const gen_model* /*judges*/, int32_t first,
         const gen_options& chosen) {
        return DraftPair::create_self(gen::api::in_use(model->shared.keep()), first,
                                      gen::api::cache_choice(chosen), pair_options(chosen, *model));
      },
      layers);
}

int32_t gen_draft_depth(const gen_draft* draft) {
  return draft != nullptr ? draft->shared.peek().depth() : 0;
}

gen_status gen_draft_generate(gen_draft* draft, const int32_t* tokens, size_t count, int32_t length,
                              int32_t* ids, float* logprobs, size_t capacity, size_t* n,
                              gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(draft, "draft"));
    GEN_TRY(not_null(tokens, "tokens"));
    GEN_TRY(not_null(ids, "ids"));
    GEN_TRY(not_null(n, "n"));
    GEN_TRY(gen::api::check_range("draft length", length, 1, kMaxDraftLength));
    if (capacity < static_cast<size_t>(length)) {
      *n = static_cast<size_t>(length);
      return gen::error(Code::kOutOfRange, "%d tokens do not fit buffers of %zu", length, capacity);
    }
    GEN_ASSIGN(const auto used, draft->shared.enter("the draft"));
    GEN_ASSIGN(const auto guesses, used->generate({tokens, count}, length));
    std::copy(guesses.tokens.begin(), guesses.tokens.end(), ids);
    if (logprobs != nullptr) {
      std::copy(guesses.logprobs.begin(), guesses.logprobs.end(), logprobs);
    }
    *n = guesses.tokens.size();
    return {};
  });
}

gen_status gen_draft_verify(gen_draft* draft, const int32_t* tokens, size_t count,
                            const int32_t* guesses, size_t n_guesses, int32_t* accepted,
                            int32_t* correction, gen_error* error) {
  if (accepted != nullptr) *accepted = 0;
  if (correction != nullptr) *correction = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(draft, "draft"));
    GEN_TRY(not_null(tokens, "tokens"));
    if (n_guesses > 0) GEN_TRY(not_null(guesses, "guesses"));
    GEN_TRY(not_null(accepted, "accepted"));
    GEN_TRY(not_null(correction, "correction"));
    if (n_guesses > static_cast<size_t>(kMaxDraftLength)) {
      return gen::error(Code::kInvalidArgument, "%zu guesses exceed the limit of %d", n_guesses,
                        kMaxDraftLength);
    }
    GEN_ASSIGN(const auto used, draft->shared.enter("the draft"));
    GEN_ASSIGN(const auto verdict, used->verify({tokens, count}, {guesses, n_guesses}));
    *accepted = verdict.accepted;
    *correction = verdict.correction;
    return {};
  });
}

gen_status gen_draft_acceptance_rate(gen_draft* draft, const int32_t* tokens, size_t count,
                                     int32_t length, double* rate, gen_error* error) {
  if (rate != nullptr) *rate = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(draft, "draft"));
    GEN_TRY(not_null(tokens, "tokens"));
    GEN_TRY(not_null(rate, "rate"));
    GEN_TRY(gen::api::check_range("draft length", length, gen::api::kAnyLeast, kMaxDraftLength));
    GEN_ASSIGN(const auto used, draft->shared.enter("the draft"));
    GEN_ASSIGN(*rate, used->acceptance_rate({tokens, count}, length));
    return {};
  });
}

void gen_draft_free(gen_draft* draft) {
  if (draft != nullptr) gen::api::end_handle(draft, draft->shared.callbacks());
}

gen_status gen_draft_accept_tokens(const int32_t* tokens, size_t n_tokens, const float* draft_probs,
                                   const float* target_probs, size_t vocab, int32_t greedy,
                                   uint64_t seed, uint64_t step, int32_t* ids, size_t capacity,
                                   size_t* n, double* rate, gen_error* error) {
  if (n != nullptr) *n = 0;
  if (rate != nullptr) *rate = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(ids, "ids"));
    GEN_TRY(not_null(n, "n"));
    if (n_tokens == 0) return {};
    GEN_TRY(not_null(tokens, "tokens"));
    if (greedy == 0) GEN_TRY(not_null(draft_probs, "draft_probs"));
    GEN_TRY(not_null(target_probs, "target_probs"));
    if (vocab == 0) return gen::error(Code::kInvalidArgument, "vocab is 0: a row has no tokens");
    if (n_tokens >= SIZE_MAX / sizeof(float) / vocab) {
      return gen::error(Code::kInvalidArgument, "%zu rows of %zu probabilities are too many",
                        n_tokens, vocab);
    }
    if (capacity <= n_tokens) {
      *n = n_tokens + 1;
      return gen::error(Code::kOutOfRange, "%zu tokens do not fit a buffer of %zu", n_tokens + 1,
                        capacity);
    }
    const gen::sampling::AcceptanceDraws draws{seed, step};
    std::vector<int32_t> said;
    size_t accepted = 0;
    GEN_TRY(gen::sampling::accept_tokens({tokens, n_tokens},
                                         {draft_probs, greedy != 0 ? 0 : n_tokens * vocab},
                                         {target_probs, (n_tokens + 1) * vocab}, vocab,
                                         greedy != 0 ? nullptr : &draws, &said, &accepted));
    std::copy(said.begin(), said.end(), ids);
    *n = said.size();
    if (rate != nullptr) *rate = static_cast<double>(accepted) / static_cast<double>(n_tokens);
    return {};
  });
}
