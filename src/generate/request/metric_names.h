// SPDX-License-Identifier: Apache-2.0
// Names of the metrics of generation; metrics.h of the C API describes them.
#pragma once

#include <new>
#include <span>

#include "base/metrics.h"
#include "base/status.h"
#include "generate/request/result.h"

namespace gen::generate::metric {

// Counters.
inline constexpr const char* kRequests = "requests";
inline constexpr const char* kPromptTokens = "prompt_tokens";
inline constexpr const char* kPromptCachedTokens = "prompt_cached_tokens";
inline constexpr const char* kCompletionTokens = "completion_tokens";
inline constexpr const char* kSteps = "steps";
inline constexpr const char* kStepsFailed = "steps_failed";
inline constexpr const char* kPrefixLookups = "prefix_lookups";
inline constexpr const char* kPrefixHits = "prefix_hits";
inline constexpr const char* kPrefixEvictions = "prefix_evictions";
inline constexpr const char* kPreemptions = "preemptions";
inline constexpr const char* kTierDemotions = "tier_demotions";
inline constexpr const char* kTierPromotions = "tier_promotions";
inline constexpr const char* kTierBytesWritten = "tier_bytes_written";
inline constexpr const char* kTierBytesRead = "tier_bytes_read";
inline constexpr const char* kTierColdHits = "tier_cold_hits";
inline constexpr const char* kTierWarmHits = "tier_warm_hits";
inline constexpr const char* kDraftedTokens = "drafted_tokens";
inline constexpr const char* kAcceptedTokens = "accepted_tokens";
inline constexpr const char* kDraftsFailed = "drafts_failed";
inline constexpr const char* kRowsAgain = "rows_again";
/// "finished_length" and so on.
const char* finished(FinishReason reason) noexcept;
/// "errors_model" and so on; null for OK.
const char* errors(Code code) noexcept;
/// Makes a call and counts its failure. A cancel is not counted.
template <typename F>
Status count_failure(Metrics& metrics, F&& call) {
  Status status;
  try {
    status = call();
  } catch (const std::bad_alloc&) {
    metrics.add(errors(Code::kOutOfMemory), 1);
    throw;
  }
  if (!status.ok() && status.code() != Code::kCancelled) metrics.add(errors(status.code()), 1);
  return status;
}

// Gauges.
inline constexpr const char* kQueueLength = "queue_length";
inline constexpr const char* kCacheBlocksUsed = "cache_blocks_used";
inline constexpr const char* kCacheBlocksFree = "cache_blocks_free";
inline constexpr const char* kCacheFragmentation = "cache_fragmentation";
inline constexpr const char* kCacheWindowBlocksUsed = "cache_window_blocks_used";
inline constexpr const char* kCacheWindowFragmentation = "cache_window_fragmentation";
inline constexpr const char* kSpeculativeAcceptanceRate = "speculative_acceptance_rate";

// Histograms.
inline constexpr const char* kFirstTokenSeconds = "first_token_seconds";
inline constexpr const char* kInterTokenSeconds = "inter_token_seconds";
inline constexpr const char* kTokensPerSecond = "tokens_per_second";
inline constexpr const char* kQueueWaitSeconds = "queue_wait_seconds";
inline constexpr const char* kStepSeconds = "step_seconds";
inline constexpr const char* kBatchSequences = "batch_sequences";
inline constexpr const char* kBatchRows = "batch_rows";

enum class Kind { kCounter, kGauge, kHistogram };
struct Metric {
  const char* name;
  Kind kind;
  const char* help;  // one sentence
};

std::span<const Metric> all() noexcept;

}  // namespace gen::generate::metric
