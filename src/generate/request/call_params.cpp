// SPDX-License-Identifier: Apache-2.0
// The table of a call's parameters, and their checks. See call_params.h.
#include "generate/request/call_params.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/utf8.h"

namespace gen::generate {
namespace {

using P = sampling::SamplingParams;
using sampling::kMaxDryBase;
using sampling::kMaxDryMultiplier;
using sampling::kMaxFlatPenalty;
using sampling::kMaxLogprobs;
using sampling::kMaxMirostatTau;

constexpr double kAny = std::numeric_limits<double>::infinity();
constexpr double kMaxInt = std::numeric_limits<int32_t>::max();
constexpr double kLeastInt = std::numeric_limits<int32_t>::min();

constexpr ParamRow kRows[] = {
    {"temperature", &P::temperature, -kAny, 1e6, "",
     "divides logits; 0 or less takes the most probable token"},
    {"top_k", &P::top_k, 0, kMaxInt, "0", "keeps the k largest logits"},
    {"typical_p", &P::typical_p, -kAny, kAny, "0 or less, 1 or more",
     "keeps the tokens of the most typical surprise up to this total probability"},
    {"top_p", &P::top_p, -kAny, kAny, "0 or less, 1 or more",
     "keeps the most probable tokens up to this total probability"},
    {"min_p", &P::min_p, 0, 1, "0",
     "keeps tokens with at least this share of the largest probability"},
    {"top_n_sigma", &P::top_n_sigma, -kAny, kAny, "0 or less",
     "keeps logits at most this many standard deviations below the largest"},
    {"xtc_probability", &P::xtc_probability, 0, 1, "0",
     "probability that XTC removes the most probable tokens of a step"},
    {"xtc_threshold", &P::xtc_threshold, 0, 1, "above 0.5",
     "of the tokens with at least this probability XTC keeps only the least probable one"},
    {"mirostat_tau", &P::mirostat_tau, 0, kMaxMirostatTau, "0",
     "target of mirostat 2: average surprise of the sampled tokens, in bits"},
    {"mirostat_eta", &P::mirostat_eta, 0, 1, "", "learning rate of mirostat 2"},
    {"repetition_penalty", &P::repetition_penalty, -kAny, 1000, "0 or less, 1",
     "above 1: tokens already generated become less likely"},
    {"compound_penalty", &P::compound_penalty, 0, 1, "0",
     "applies repetition_penalty for each occurrence"},
    {"frequency_penalty", &P::frequency_penalty, -kMaxFlatPenalty, kMaxFlatPenalty, "0",
     "above 0: each earlier occurrence of a token makes it less likely"},
    {"presence_penalty", &P::presence_penalty, -kMaxFlatPenalty, kMaxFlatPenalty, "0",
     "above 0: tokens already generated become less likely, regardless of how often"},
    {"penalize_prompt", &P::penalize_prompt, 0, 1, "0",
     "penalties count the tokens of the prompt as well"},
    {"penalty_window", &P::penalty_window, 0, kMaxInt, "0",
     "number of last tokens that the penalties count"},
    {"dry_multiplier", &P::dry_multiplier, 0, kMaxDryMultiplier, "0",
     "DRY: subtracts this, times dry_base for each token beyond dry_allowed_length, from tokens "
     "that would continue a repetition"},
    {"dry_base", &P::dry_base, 1, kMaxDryBase, "", "how the penalty of DRY grows with the length"},
    {"dry_allowed_length", &P::dry_allowed_length, 1, kMaxInt, "",
     "longest repetition that DRY does not penalize"},
    {"dry_window", &P::dry_window, 0, kMaxInt, "0",
     "number of last tokens in which DRY looks for repetitions"},
    {"max_new_tokens", &StopRules::max_new_tokens, kLeastInt, kMaxInt, "",
     "most tokens to generate; 0 or less: 256"},
    {"min_new_tokens", &StopRules::min_new_tokens, 0, kMaxInt, "0",
     "tokens to generate before an end or stop token, if another token is possible"},
    {"seed", &P::seed, 0, kAny, "", "seed of the random numbers"},
    {"gumbel", &P::gumbel, 0, 1, "0",
     "samples with Gumbel noise per token, so that similar distributions give the same tokens"},
    {"logprobs", &P::logprobs, -1, kMaxLogprobs, "-1",
     "alternatives per token whose log-probabilities are recorded"},
    {"ignore_eos", &StopRules::ignore_eos, 0, 1, "0",
     "the model's end tokens do not end a generation"},
    {"fit_grammar", &StopRules::fit_grammar, 0, 1, "0",
     "with a grammar: only tokens with which the text can still end within max_new_tokens and the "
     "context"},
};
static_assert(kDefaultMaxNewTokens == 256, "the help of max_new_tokens");

// Every number of a call has a row in the table.
const ParamRow& row_of(const ParamRow::Field& field) noexcept {
  size_t i = 0;
  while (kRows[i].field != field) ++i;
  return kRows[i];
}

Status check(const ParamRow& row, double value) {
  if (!std::isfinite(value)) {
    return error(Code::kInvalidArgument, "%s %g is not a finite number", row.key, value);
  }
  if (value >= row.least && value <= row.most) return {};
  if (row.least == -kAny) {
    return error(Code::kInvalidArgument, "%s %g is above %g", row.key, value, row.most);
  }
  return error(Code::kInvalidArgument, "%s %.10g outside [%.10g, %.10g]", row.key, value, row.least,
               row.most);
}

}  // namespace

std::span<const ParamRow> param_rows() noexcept { return kRows; }

template <typename Part, typename T>
Status CallParams::set(T Part::*field, T value) {
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, int32_t>) {
    GEN_TRY(check(row_of(field), value));
  }
  if constexpr (std::is_same_v<Part, StopRules>) {
    stops.*field = value;
  } else {
    sampling.*field = value;
  }
  return {};
}

template Status CallParams::set(double P::*, double);
template Status CallParams::set(int32_t P::*, int32_t);
template Status CallParams::set(uint64_t P::*, uint64_t);
template Status CallParams::set(bool P::*, bool);
template Status CallParams::set(int32_t StopRules::*, int32_t);
template Status CallParams::set(bool StopRules::*, bool);

Status StopRules::add_token(int32_t token) {
  if (token < 0) {
    return error(Code::kInvalidArgument, "stop token %d outside [0, %d]", token,
                 std::numeric_limits<int32_t>::max());
  }
  if (std::find(tokens.begin(), tokens.end(), token) == tokens.end()) tokens.push_back(token);
  return {};
}

Status StopRules::add_string(std::string_view text) {
  if (text.size() > kMaxStopStringBytes) {
    return error(Code::kInvalidArgument, "a stop string of %zu bytes is above %zu", text.size(),
                 kMaxStopStringBytes);
  }
  if (strings.size() >= kMaxStopStrings) {
    return error(Code::kInvalidArgument, "more than %zu stop strings", kMaxStopStrings);
  }
  const size_t valid = utf8_valid_prefix(text);
  if (valid != text.size()) {
    return error(Code::kInvalidArgument, "stop string is not UTF-8 at byte %zu of %zu", valid,
                 text.size());
  }
  strings.emplace_back(text);
  return {};
}

Status CallParams::add_dry_breaker(std::string_view text) {
  if (text.size() > kMaxDryBreakerBytes) {
    return error(Code::kInvalidArgument, "a dry breaker of %zu bytes is above %zu", text.size(),
                 kMaxDryBreakerBytes);
  }
  const size_t valid = utf8_valid_prefix(text);
  if (valid != text.size()) {
    return error(Code::kInvalidArgument, "dry breaker is not UTF-8 at byte %zu of %zu", valid,
                 text.size());
  }
  std::vector<std::string> texts;
  if (own_dry_breakers.has_value()) texts = *own_dry_breakers;
  if (!text.empty() && std::find(texts.begin(), texts.end(), text) == texts.end()) {
    if (texts.size() >= kMaxDryBreakers) {
      return error(Code::kInvalidArgument, "more than %zu dry breakers", kMaxDryBreakers);
    }
    texts.emplace_back(text);
  }
  own_dry_breakers = std::move(texts);
  return {};
}

std::vector<std::string> CallParams::dry_breakers() const {
  if (own_dry_breakers.has_value()) return *own_dry_breakers;
  return {"\n", ":", "\"", "*"};
}

Status CallParams::add_adapter(std::string_view name, float scale) {
  GEN_TRY(model::AdapterRegistry::check(name, scale));
  for (const model::AdapterChoice& known : adapters) {
    if (known.name != name) continue;
    return error(Code::kInvalidArgument, "adapter \"%.64s\" is given twice", known.name.c_str());
  }
  if (adapters.size() == kMaxAdapters) {
    return error(Code::kInvalidArgument, "more than %zu adapters", kMaxAdapters);
  }
  adapters.push_back({std::string(name), scale});
  return {};
}

Status CallParams::check_vocab(int32_t vocab_size) const {
  for (const int32_t token : stops.tokens) {
    if (token < 0 || token >= vocab_size) {
      return error(Code::kOutOfRange, "stop token %d outside vocabulary of %d", token, vocab_size);
    }
  }
  return sampling.check_vocab(vocab_size);
}

}  // namespace gen::generate
