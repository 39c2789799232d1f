// SPDX-License-Identifier: Apache-2.0
// What a generating call is asked to do, as plain data: how tokens are drawn (sampling/params.h),
// what ends the text, what it must be a member of, and who may stop it. A call copies it on entry,
// so one object may serve many calls. Adapters and drafts belong here, too, beside `sampling`; each
// is a member and, where it has numbers, rows of param_rows(). Read next: generation.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/cancel.h"
#include "base/status.h"
#include "sampling/params.h"

namespace gen::grammar {
class Grammar;
class Matcher;
}  // namespace gen::grammar

namespace gen::generate {

constexpr int32_t kDefaultMaxNewTokens = 256;

constexpr size_t kMaxStopStrings = 256;
constexpr size_t kMaxStopStringBytes = 4096;
constexpr size_t kMaxDryBreakers = 64;
constexpr size_t kMaxDryBreakerBytes = 256;

/// What ends a text.
struct StopRules {
  int32_t max_new_tokens = kDefaultMaxNewTokens;  // <= 0: the default
  int32_t min_new_tokens = 0;  // before so many no token that stops is drawn, if there is another
  bool ignore_eos = false;     // the model's end tokens do not stop
  bool fit_grammar = true;     // a text under a grammar takes a way to its end that is short enough
  std::vector<int32_t> tokens;
  std::vector<std::string> strings;  // empty ones are ignored

  Status add_token(int32_t token);  // >= 0; twice is once
  /// At most kMaxStopStrings of kMaxStopStringBytes. Must be UTF-8, since text that is not never
  /// comes out.
  Status add_string(std::string_view text);
  [[nodiscard]] int32_t effective_max_new_tokens() const noexcept {
    return max_new_tokens > 0 ? max_new_tokens : kDefaultMaxNewTokens;
  }
};

struct CallParams {
  sampling::SamplingParams sampling;
  StopRules stops;
  /// Texts over which DRY sees no repetition; none of one's own: the default ones.
  std::optional<std::vector<std::string>> own_dry_breakers;
  /// Edits a row, [V], before the chain sees it, once for each token that is drawn; null: nothing
  /// does. `held` are all tokens of the session, the last `said` of them are from this call. What
  /// fails ends the call.
  std::function<Status(std::span<float> logits, std::span<const int32_t> held, size_t said)>
      edit_logits;
  std::shared_ptr<const CancelFlag> cancel;  // stops the call when raised; may be null
  /// What the text of the call is to be a member of; null: anything. With `matcher` the text goes
  /// on where that stands, which nobody moves any more.
  std::shared_ptr<const grammar::Grammar> grammar;
  std::shared_ptr<const grammar::Matcher> matcher;

  /// Sets a field that has a row in param_rows(), which says what it may be. kInvalidArgument
  /// naming the value and the range; then nothing has changed.
  template <typename Part, typename T>
  Status set(T Part::*field, T value);

  template <typename T>
  [[nodiscard]] const T& get(T sampling::SamplingParams::*field) const noexcept {
    return sampling.*field;
  }
  template <typename T>
  [[nodiscard]] const T& get(T StopRules::*field) const noexcept {
    return stops.*field;
  }

  /// The first one takes the place of the default ones, and leaves none at all if it is empty. At
  /// most kMaxDryBreakers of kMaxDryBreakerBytes, UTF-8; twice is once.
  Status add_dry_breaker(std::string_view text);
  [[nodiscard]] std::vector<std::string> dry_breakers() const;

  /// kOutOfRange for a stop token or a bias outside the vocabulary. Called when a call begins.
  [[nodiscard]] Status check_vocab(int32_t vocab_size) const;
};

/// A number or a switch of a call: what it is called and what it may be. Fields that are filled by
/// hand may hold anything, out-of-range values then read as the nearest "off" value.
struct ParamRow {
  using Sampling = sampling::SamplingParams;
  using Field = std::variant<double Sampling::*, int32_t Sampling::*, uint64_t Sampling::*,
                             bool Sampling::*, int32_t StopRules::*, bool StopRules::*>;
  const char* key;
  Field field;
  double least;      // both are allowed; infinite: any finite number of the type
  double most;       // not used for switches and 64 bits, which may be anything
  const char* off;   // values that do nothing, for people; empty where there is none
  const char* help;  // one phrase
};

/// All of them, in the order in which they are shown.
std::span<const ParamRow> param_rows() noexcept;

}  // namespace gen::generate
