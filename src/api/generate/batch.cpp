// SPDX-License-Identifier: Apache-2.0
// batch.h of the C API: requests and the calls that run many of them.
#include <generate/batch.h>

#include <algorithm>
#include <chrono>

#include "api/boundary/boundary.h"
#include "api/generate/handles.h"
#include "generate/batch_run.h"
#include "generate/best_of.h"

struct gen_request {
  std::string prompt;
  std::vector<int32_t> tokens;  // used instead of `prompt` if not empty
  gen::generate::CallParams params;
  int32_t priority = 0;
  int64_t deadline_ms = 0;  // 0: no deadline
};

namespace {

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::generate::BatchRequest;
using gen::generate::SteadyClock;

// Longer deadlines are limited to this, so that sums of times do not overflow.
constexpr int64_t kLongestDeadlineMs = int64_t{1} << 40;

struct Bridge {
  gen_batch_callback callback;
  void* user;
};

int32_t forward_event(void* user, size_t index, const gen::generate::Event& event) {
  Bridge& bridge = *static_cast<Bridge*>(user);
  gen_token token;
  gen::api::fill_token(event, &token);
  return bridge.callback(bridge.user, index, &token);
}

/// `request` is a copy that lasts: a callback may change or free the caller's.
BatchRequest batch_request(gen_request& request, SteadyClock::time_point now) {
  BatchRequest made;
  made.prompt.text = request.prompt;
  made.prompt.tokens = request.tokens;
  made.params = std::move(request.params);
  made.urgency.priority = request.priority;
  if (request.deadline_ms > 0 && request.deadline_ms < kLongestDeadlineMs) {
    made.urgency.deadline = now + std::chrono::milliseconds(request.deadline_ms);
  }
  return made;
}

Status run_batch(gen_generator* generator, const gen_request* const* requests, size_t count,
                 gen_batch_callback callback, void* user, gen_result** results) {
  GEN_TRY(not_null(generator, "generator"));
  if (count == 0) return {};
  GEN_TRY(not_null(requests, "requests"));
  GEN_TRY(not_null(results, "results"));
  const SteadyClock::time_point now = SteadyClock::now();
  GEN_ASSIGN(const auto used, generator->shared.enter("the generator"));
  std::vector<gen_request> copies;
  std::vector<BatchRequest> batch;
  copies.reserve(count);
  batch.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if (requests[i] == nullptr) {
      return gen::error(Code::kInvalidArgument, "request %zu of %zu is NULL", i, count);
    }
    copies.push_back(*requests[i]);
    batch.push_back(batch_request(copies.back(), now));
  }
  // Allocated before anything runs, so that no result is lost for lack of memory.
  std::vector<std::unique_ptr<gen_result>> made(count);
  for (auto& handle : made) handle = std::make_unique<gen_result>();
  Bridge bridge{callback, user};
  auto outcomes = gen::generate::run_batch(*used, batch,
                                           callback != nullptr ? forward_event : nullptr, &bridge);
  for (size_t i = 0; i < count; ++i) {
    gen::api::fill_result(std::move(outcomes[i]), made[i].get());
    results[i] = made[i].release();
  }
  return {};
}

void clear(gen_result** results, size_t count) {
  if (results != nullptr) std::fill_n(results, count, nullptr);
}

}  // namespace

gen_status gen_request_new(gen_request** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    *out = new gen_request;
    return {};
  });
}

void gen_request_free(gen_request* request) { delete request; }

gen_status gen_request_set_prompt(gen_request* request, const char* prompt, size_t len,
                                  gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(request, "request"));
    GEN_TRY(not_null(prompt, "prompt"));
    GEN_ASSIGN(const auto text, gen::api::text_in(prompt, len, "prompt"));
    request->prompt.assign(text);
    request->tokens.clear();
    return {};
  });
}

gen_status gen_request_set_prompt_tokens(gen_request* request, const int32_t* tokens, size_t count,
                                         gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(request, "request"));
    GEN_TRY(not_null(tokens, "tokens"));
    if (count == 0) return {Code::kInvalidArgument, "a prompt of no tokens"};
    request->tokens.assign(tokens, tokens + count);
    request->prompt.clear();
    return {};
  });
}

gen_status gen_request_set_sampling(gen_request* request, const gen_sampling* sampling,
                                    gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(request, "request"));
    request->params = gen::api::params_of(sampling);
    return {};
  });
}

gen_status gen_request_set_priority(gen_request* request, int32_t priority, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(request, "request"));
    request->priority = priority;
    return {};
  });
}

gen_status gen_request_set_deadline_ms(gen_request* request, int64_t milliseconds,
                                       gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(request, "request"));
    if (milliseconds < 0) {
      return gen::error(Code::kInvalidArgument, "a deadline of %lld ms is below 0",
                        static_cast<long long>(milliseconds));
    }
    request->deadline_ms = milliseconds;
    return {};
  });
}

gen_status gen_batch_generate(gen_generator* generator, const gen_request* const* requests,
                              size_t count, gen_result** results, gen_error* error) {
  clear(results, count);
  return guard(error,
               [&] { return run_batch(generator, requests, count, nullptr, nullptr, results); });
}

gen_status gen_batch_generate_stream(gen_generator* generator, const gen_request* const* requests,
                                     size_t count, gen_batch_callback callback, void* user,
                                     gen_result** results, gen_error* error) {
  clear(results, count);
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(reinterpret_cast<const void*>(callback), "callback"));
    return run_batch(generator, requests, count, callback, user, results);
  });
}

gen_status gen_generate_n(gen_generator* generator, const char* prompt, size_t len,
                          const gen_sampling* sampling, int32_t n, int32_t best_of,
                          gen_result** results, gen_error* error) {
  clear(results, n > 0 && n <= gen::generate::kMaxTexts ? static_cast<size_t>(n) : 0);
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(generator, "generator"));
    GEN_TRY(not_null(results, "results"));
    gen::generate::Prompt what;
    GEN_ASSIGN(what.text, gen::api::text_in(prompt, len, "prompt"));
    GEN_ASSIGN(const auto used, generator->shared.enter("the generator"));
    const auto wanted = static_cast<size_t>(std::clamp(n, 0, gen::generate::kMaxTexts));
    std::vector<std::unique_ptr<gen_result>> made(wanted);
    for (auto& handle : made) handle = std::make_unique<gen_result>();
    GEN_ASSIGN(auto outcomes,
               gen::generate::best_of(*used, what, gen::api::params_of(sampling), n, best_of));
    for (size_t i = 0; i < wanted; ++i) {
      gen::api::fill_result(std::move(outcomes[i]), made[i].get());
      results[i] = made[i].release();
    }
    return {};
  });
}
