// SPDX-License-Identifier: Apache-2.0
// See metric_names.h.
#include "generate/request/metric_names.h"

#include <algorithm>
#include <array>

namespace gen::generate::metric {
namespace {

constexpr const char* kFinished[] = {nullptr,
                                     "finished_stop_token",
                                     "finished_stop_string",
                                     "finished_length",
                                     "finished_context_full",
                                     "finished_grammar_complete",
                                     "finished_grammar_dead_end",
                                     "finished_cancelled",
                                     "finished_callback",
                                     "finished_error"};

constexpr const char* kErrors[] = {nullptr,
                                   "errors_invalid_argument",
                                   "errors_out_of_memory",
                                   "errors_io",
                                   "errors_format",
                                   "errors_unsupported",
                                   "errors_cache_full",
                                   "errors_pool_exhausted",
                                   "errors_out_of_range",
                                   "errors_sequence",
                                   "errors_busy",
                                   "errors_cancelled",
                                   "errors_grammar",
                                   "errors_device",
                                   "errors_context_full",
                                   "errors_state",
                                   "errors_model",
                                   "errors_tokenizer",
                                   "errors_internal"};

constexpr Metric kNamed[] = {
    {kRequests, Kind::kCounter, "Generating calls that began."},
    {kPromptTokens, Kind::kCounter, "Tokens of prompts and of appended texts."},
    {kPromptCachedTokens, Kind::kCounter, "Of these, tokens that a prefix cache had."},
    {kCompletionTokens, Kind::kCounter, "Tokens generated, without stop tokens."},
    {kSteps, Kind::kCounter, "Forward passes of the model."},
    {kStepsFailed, Kind::kCounter, "Steps in which a sequence failed."},
    {kPrefixLookups, Kind::kCounter, "Prompts looked up in a prefix cache."},
    {kPrefixHits, Kind::kCounter, "Of these, those that it had a part of."},
    {kPrefixEvictions, Kind::kCounter, "Blocks that a prefix cache let go."},
    {kPreemptions, Kind::kCounter, "Sessions whose cache was taken, to be computed again."},
    {kTierDemotions, Kind::kCounter, "Blocks of tiered caches that went to a file."},
    {kTierPromotions, Kind::kCounter, "Of these, those that came back to be written."},
    {kTierBytesWritten, Kind::kCounter, "Bytes that went to files of tiered caches."},
    {kTierBytesRead, Kind::kCounter, "Bytes that were read from them."},
    {kTierColdHits, Kind::kCounter, "Blocks of a layer that attention waited for."},
    {kTierWarmHits, Kind::kCounter, "Blocks of a layer that were read ahead of it."},
    {kDraftedTokens, Kind::kCounter, "Guessed tokens that the model looked at."},
    {kAcceptedTokens, Kind::kCounter, "Of these, tokens that were what it said."},
    {kDraftsFailed, Kind::kCounter, "Times that a drafter could not do its work."},
    {kRowsAgain, Kind::kCounter,
     "Rows whose largest logits did not decide the token, run again for all."},
    {kQueueLength, Kind::kGauge, "Sequences left waiting by the last step."},
    {kCacheBlocksUsed, Kind::kGauge, "Blocks of the cache pool in use."},
    {kCacheBlocksFree, Kind::kGauge, "Blocks of the cache pool that are free."},
    {kCacheFragmentation, Kind::kGauge, "Share of the used blocks' room that holds nothing."},
    {kCacheWindowBlocksUsed, Kind::kGauge, "Of the used blocks, those of layers with windows."},
    {kCacheWindowFragmentation, Kind::kGauge, "Share of their room that holds nothing."},
    {kSpeculativeAcceptanceRate, Kind::kGauge,
     "Share that was accepted of the last 32 drafted tokens of a call."},
    {kFirstTokenSeconds, Kind::kHistogram, "Time from the call to its first token."},
    {kInterTokenSeconds, Kind::kHistogram, "Time to each further token."},
    {kTokensPerSecond, Kind::kHistogram, "Tokens of a call a second, from its second one on."},
    {kQueueWaitSeconds, Kind::kHistogram, "Time that rows wait for their step to begin."},
    {kStepSeconds, Kind::kHistogram, "Time of a step."},
    {kBatchSequences, Kind::kHistogram, "Sequences of a step."},
    {kBatchRows, Kind::kHistogram, "Tokens run in a step."},
};

constexpr size_t kFinishes = std::size(kFinished) - 1;
constexpr size_t kFailures = std::size(kErrors) - 1;
using Table = std::array<Metric, std::size(kNamed) + kFinishes + kFailures>;

constexpr Table make_table() {
  Table table{};
  auto next = std::copy(std::begin(kNamed), std::end(kNamed), table.begin());
  for (size_t i = 1; i <= kFinishes; ++i) {
    *next++ = {kFinished[i], Kind::kCounter, "Calls that ended for this reason."};
  }
  for (size_t i = 1; i <= kFailures; ++i) {
    *next++ = {kErrors[i], Kind::kCounter, "Calls that failed with this error."};
  }
  return table;
}

constexpr Table kAll = make_table();

}  // namespace

const char* finished(FinishReason reason) noexcept {
  const auto index = static_cast<size_t>(reason);
  return index < std::size(kFinished) ? kFinished[index] : nullptr;
}

const char* errors(Code code) noexcept {
  const auto index = static_cast<size_t>(-static_cast<int32_t>(code));
  return index < std::size(kErrors) ? kErrors[index] : nullptr;
}

std::span<const Metric> all() noexcept { return kAll; }

}  // namespace gen::generate::metric
