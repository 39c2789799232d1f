// SPDX-License-Identifier: Apache-2.0
// The table of sampling parameters, and their checks. See params.h.
#include "sampling/params.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/utf8.h"

namespace gen::sampling {
namespace {

using P = SamplingParams;
constexpr double kAny = std::numeric_limits<double>::infinity();
constexpr double kMostInt = std::numeric_limits<int32_t>::max();
constexpr double kLeastInt = std::numeric_limits<int32_t>::min();

constexpr ParamRow kRows[] = {
    {"temperature", &P::temperature, -kAny, 1e6, "",
     "divides logits; 0 or less takes the most probable token"},
    {"top_k", &P::top_k, 0, kMostInt, "0", "keeps the k largest logits"},
    {"typical_p", &P::typical_p, -kAny, kAny, "0 or less, 1 or more",
     "keeps the tokens of the most typical surprise up to this probability"},
    {"top_p", &P::top_p, -kAny, kAny, "0 or less, 1 or more",
     "keeps the most probable tokens up to this probability"},
    {"min_p", &P::min_p, 0, 1, "0", "keeps tokens at least this share as probable as the first"},
    {"repetition_penalty", &P::repetition_penalty, -kAny, 1000, "0 or less, 1",
     "divides positive and multiplies negative logits of tokens generated before"},
    {"compound_penalty", &P::compound_penalty, 0, 1, "0",
     "applies repetition_penalty for each occurrence"},
    {"frequency_penalty", &P::frequency_penalty, -kMaxFlatPenalty, kMaxFlatPenalty, "0",
     "subtracted from a token's logit for each time it was generated"},
    {"presence_penalty", &P::presence_penalty, -kMaxFlatPenalty, kMaxFlatPenalty, "0",
     "subtracted once from the logit of a token that was generated"},
    {"penalize_prompt", &P::penalize_prompt, 0, 1, "0", "penalties count the prompt, too"},
    {"penalty_window", &P::penalty_window, 0, kMostInt, "0",
     "last tokens that count for the penalties"},
    {"max_new_tokens", &P::max_new_tokens, kLeastInt, kMostInt, "",
     "most tokens of a call; 0 or less is 256"},
    {"seed", &P::seed, 0, kAny, "", "of the draws"},
    {"logprobs", &P::logprobs, -1, kMaxLogprobs, "-1",
     "alternatives whose log-probabilities are recorded beside the token's"},
    {"ignore_eos", &P::ignore_eos, 0, 1, "0", "the model's end tokens do not end a generation"},
};
static_assert(kDefaultMaxNewTokens == 256, "the help of max_new_tokens");

// Every number of SamplingParams has a row.
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

Status check_id(const char* name, int32_t token) {
  if (token >= 0) return {};
  return error(Code::kInvalidArgument, "%s %d outside [0, %d]", name, token,
               std::numeric_limits<int32_t>::max());
}

}  // namespace

std::span<const ParamRow> param_rows() noexcept { return kRows; }

template <typename T>
Status SamplingParams::set(T SamplingParams::*field, T value) {
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, int32_t>) {
    GEN_TRY(check(row_of(field), value));
  }
  this->*field = value;
  return {};
}

template Status SamplingParams::set(double SamplingParams::*, double);
template Status SamplingParams::set(int32_t SamplingParams::*, int32_t);
template Status SamplingParams::set(uint64_t SamplingParams::*, uint64_t);
template Status SamplingParams::set(bool SamplingParams::*, bool);

Status SamplingParams::set_logit_bias(int32_t token, float bias) {
  GEN_TRY(check_id("logit_bias token", token));
  if (std::isnan(bias) || bias == std::numeric_limits<float>::infinity()) {
    return error(Code::kInvalidArgument, "logit_bias %g is neither finite nor -inf",
                 static_cast<double>(bias));
  }
  const auto at =
      std::lower_bound(logit_bias.begin(), logit_bias.end(), token,
                       [](const LogitBias& entry, int32_t id) { return entry.token < id; });
  const bool there = at != logit_bias.end() && at->token == token;
  if (bias == 0.0F) {
    if (there) logit_bias.erase(at);
  } else if (there) {
    at->bias = bias;
  } else {
    logit_bias.insert(at, {token, bias});
  }
  return {};
}

Status SamplingParams::add_stop_token(int32_t token) {
  GEN_TRY(check_id("stop token", token));
  if (std::find(stop_tokens.begin(), stop_tokens.end(), token) == stop_tokens.end()) {
    stop_tokens.push_back(token);
  }
  return {};
}

Status SamplingParams::add_stop_string(std::string_view text) {
  const size_t valid = utf8_valid_prefix(text);
  if (valid != text.size()) {
    return error(Code::kInvalidArgument, "stop string is not UTF-8 at byte %zu of %zu", valid,
                 text.size());
  }
  stop_strings.emplace_back(text);
  return {};
}

Status SamplingParams::check_vocab(int32_t vocab_size) const {
  for (const int32_t token : stop_tokens) {
    if (token < 0 || token >= vocab_size) {
      return error(Code::kOutOfRange, "stop token %d outside vocabulary of %d", token, vocab_size);
    }
  }
  for (const LogitBias& entry : logit_bias) {
    if (entry.token < 0 || entry.token >= vocab_size) {
      return error(Code::kOutOfRange, "logit_bias token %d outside vocabulary of %d", entry.token,
                   vocab_size);
    }
  }
  return {};
}

}  // namespace gen::sampling
