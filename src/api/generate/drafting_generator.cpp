// SPDX-License-Identifier: Apache-2.0
// See drafting_generator.h.
#include "api/generate/drafting_generator.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "api/boundary/boundary.h"
#include "api/boundary/option_table.h"
#include "api/generate/generating_call.h"
#include "api/model/model_handle.h"

namespace gen::api {
namespace {

using generate::DraftUse;
using generate::kMaxDraftLength;

double share(double part, double all) { return all > 0 ? part / all : 0.0; }

double number(const std::atomic<int64_t>& value) {
  return static_cast<double>(value.load(std::memory_order_relaxed));
}

Status drafting_call(const DraftingGenerator& handle, const char* prompt, size_t len,
                     const gen_sampling* sampling, gen_token_callback callback, void* user,
                     gen_result** result) {
  GEN_ASSIGN(const auto used, handle.shared.enter(handle.what));
  GEN_ASSIGN(auto session, used->new_session());
  return generating_call(session, prompt, len, sampling, callback, user, result);
}

}  // namespace

Status draft_figure(const DraftUse& use, std::string_view key, double* value) {
  constexpr std::string_view kAt = "acceptance_at_";
  const double passes = number(use.passes);
  const double tokens = number(use.tokens);
  const double drafted = number(use.drafted);
  const double accepted = number(use.accepted);
  const std::pair<std::string_view, double> all[] = {
      {"passes", passes},   {"tokens", tokens},     {"tokens_per_pass", share(tokens, passes)},
      {"drafted", drafted}, {"accepted", accepted}, {"acceptance_rate", share(accepted, drafted)},
  };
  for (const auto& [name, figure] : all) {
    if (name != key) continue;
    *value = figure;
    return {};
  }
  if (key.starts_with(kAt) && key.size() > kAt.size()) {
    int32_t at = 0;
    const char* const end = key.data() + key.size();
    const auto read = std::from_chars(key.data() + kAt.size(), end, at);
    const bool padded = key[kAt.size()] == '0';  // each key has one spelling
    if (read.ec == std::errc() && read.ptr == end && !padded && at >= 1 && at <= kMaxDraftLength) {
      const auto i = static_cast<size_t>(at - 1);
      *value = share(number(use.right[i]), number(use.tried[i]));
      return {};
    }
  }
  return gen::error(Code::kInvalidArgument,
                    "no draft figure \"%.*s\" (passes, tokens, tokens_per_pass, drafted, accepted, "
                    "acceptance_rate, acceptance_at_1 to acceptance_at_%d)",
                    static_cast<int>(std::min<size_t>(key.size(), 60)), key.data(),
                    kMaxDraftLength);
}

Result<int32_t> drafting_length(int32_t length) {
  GEN_TRY(check_range("draft length", length, kAnyLeast, kMaxDraftLength));
  return length > 0 ? length : generate::kDefaultDraftLength;
}

Status make_drafting(const gen_model& target, gen_options options, const AddHead& add_head,
                     DraftingGenerator* handle) {
  handle->fixed = std::make_shared<std::atomic<bool>>(false);
  options.generator.draft_policy.fixed = handle->fixed;
  const Entry entry(callbacks_of(target, options));
  GEN_TRY(entry.entered("the model"));
  if (add_head && !options.drafts.off) {
    GEN_TRY(add_head(*model_of(target.shared.keep()), &options.drafts));
  }
  GEN_ASSIGN(const auto made, create_generator(target, options));
  handle->shared = std::move(made->shared);
  return {};
}

gen_status drafting_generate(const DraftingGenerator* handle, const char* name, const char* prompt,
                             size_t len, const gen_sampling* sampling, gen_result** result,
                             gen_error* error) {
  if (result != nullptr) *result = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(handle, name));
    return drafting_call(*handle, prompt, len, sampling, nullptr, nullptr, result);
  });
}

gen_status drafting_stream(const DraftingGenerator* handle, const char* name, const char* prompt,
                           size_t len, const gen_sampling* sampling, gen_token_callback callback,
                           void* user, gen_result** result, gen_error* error) {
  if (result != nullptr) *result = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(handle, name));
    GEN_TRY(not_null(reinterpret_cast<const void*>(callback), "callback"));
    return drafting_call(*handle, prompt, len, sampling, callback, user, result);
  });
}

gen_status drafting_set_adaptive(const DraftingGenerator* handle, const char* name,
                                 int32_t adaptive, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(handle, name));
    GEN_ASSIGN(const auto used, handle->shared.enter(handle->what));
    handle->fixed->store(adaptive == 0, std::memory_order_relaxed);
    return {};
  });
}

gen_status drafting_stats(const DraftingGenerator* handle, const char* name, const char* key,
                          double* value, gen_error* error) {
  if (value != nullptr) *value = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(handle, name));
    GEN_TRY(not_null(key, "key"));
    GEN_TRY(not_null(value, "value"));
    GEN_ASSIGN(const auto used, handle->shared.enter(handle->what));
    return draft_figure(used->draft_use(), key, value);
  });
}

}  // namespace gen::api
