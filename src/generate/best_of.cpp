// SPDX-License-Identifier: Apache-2.0
// See best_of.h.
#include "generate/best_of.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "generate/loop/generator.h"
#include "generate/loop/session.h"

namespace gen::generate {
namespace {

double mean_logprob(const GenResult& result) {
  constexpr double kWorst = -std::numeric_limits<double>::infinity();
  if (!result.status.ok()) return kWorst;
  if (result.logprobs.empty()) return 0.0;  // no tokens were generated
  return std::accumulate(result.logprobs.begin(), result.logprobs.end(), 0.0) /
         static_cast<double>(result.logprobs.size());
}

/// Removes log-probabilities that were computed for the ranking only.
void forget_logprobs(GenResult* result) {
  result->logprobs.clear();
  result->top_ids.clear();
  result->top_logprobs.clear();
}

/// A session that holds the evaluated prompt, and the rest of the prompt for each text.
struct Start {
  std::shared_ptr<const Session> session;  // null: each text evaluates the whole prompt
  Prompt rest;
};

Result<Start> start_of(const Generator& generator, const Prompt& prompt, const CallParams& params) {
  GEN_ASSIGN(const auto session, generator.new_session());
  GEN_TRY(session->set_cancel(params.cancel));
  GEN_TRY(session->append(prompt));
  if (session->length() == 0) return Start{nullptr, prompt};  // the calls report the error
  GEN_TRY(session->set_cancel(nullptr));
  // The model's state cannot be copied.
  if (session->fork().status().code() == Code::kUnsupported) return Start{nullptr, prompt};
  return Start{session, {}};
}

}  // namespace

Result<std::vector<GenResult>> best_of(const Generator& generator, const Prompt& prompt,
                                       const CallParams& params, int32_t n, int32_t best_of) {
  if (n < 1 || best_of < n || best_of > kMaxTexts) {
    return error(Code::kInvalidArgument, "n %d and best_of %d are not 1 <= n <= best_of <= %d", n,
                 best_of, kMaxTexts);
  }
  BatchRequest request;
  request.params = params;
  const bool ranks = best_of > n;
  const bool asked = params.sampling.logprobs >= 0;
  if (ranks && !asked) request.params.sampling.logprobs = 0;
  std::vector<BatchRequest> requests;
  requests.reserve(static_cast<size_t>(best_of));
  GEN_ASSIGN(Start start, start_of(generator, prompt, params));
  request.prompt = start.rest;
  request.from = std::move(start.session);
  for (int32_t i = 0; i < best_of; ++i) {
    requests.push_back(request);
    requests.back().params.sampling.seed += static_cast<uint64_t>(i);
  }
  std::vector<GenResult> results = run_batch(generator, requests, nullptr, nullptr);
  if (!ranks) return results;
  std::stable_sort(results.begin(), results.end(), [](const GenResult& a, const GenResult& b) {
    return mean_logprob(a) > mean_logprob(b);
  });
  // Keeps the best texts and the failed ones; drops those in between.
  const auto failed = std::find_if(results.begin(), results.end(),
                                   [](const GenResult& result) { return !result.status.ok(); });
  const auto good = n - std::min<std::ptrdiff_t>(results.end() - failed, n);
  if (results.begin() + good < failed) results.erase(results.begin() + good, failed);
  results.resize(static_cast<size_t>(n));
  if (!asked) {
    for (GenResult& result : results) forget_logprobs(&result);
  }
  return results;
}

}  // namespace gen::generate
