// SPDX-License-Identifier: Apache-2.0
// Parameters of a generating call, as plain data: sampling (sampling/params.h), stop conditions,
// the grammar, and the cancel flag. A call copies them on entry, so one object may serve many
// calls. Drafts would be a further member beside `sampling`; their numbers need rows in
// param_rows(). Read next: generation.h.
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
#include "model/adapter_registry.h"
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
constexpr size_t kMaxAdapters = 64;  // with any scale

/// What ends a text.
struct StopRules {
  int32_t max_new_tokens = kDefaultMaxNewTokens;  // <= 0: the default
  int32_t min_new_tokens = 0;  // no stop token is sampled before, if any other token is allowed
  bool ignore_eos = false;     // the model's end tokens do not stop
  bool fit_grammar = true;     // a text under a grammar is kept short enough to be complete
  std::vector<int32_t> tokens;
  std::vector<std::string> strings;  // empty ones are ignored

  Status add_token(int32_t token);  // >= 0; a duplicate is ignored
  /// At most kMaxStopStrings strings of kMaxStopStringBytes each. They must be UTF-8, because
  /// generated text always is.
  Status add_string(std::string_view text);
  [[nodiscard]] int32_t effective_max_new_tokens() const noexcept {
    return max_new_tokens > 0 ? max_new_tokens : kDefaultMaxNewTokens;
  }
};

struct CallParams {
  sampling::SamplingParams sampling;
  StopRules stops;
  /// Texts at which DRY stops matching; nullopt: the default ones.
  std::optional<std::vector<std::string>> own_dry_breakers;
  /// Edits the logits, [V], before the chain, once for each sampled token; may be null. `held` are
  /// all tokens of the session, the last `said` of them from this call. A failure ends the call.
  std::function<Status(std::span<float> logits, std::span<const int32_t> held, size_t said)>
      edit_logits;
  std::vector<model::AdapterChoice> adapters;  // of the model's; empty: none
  std::shared_ptr<const CancelFlag> cancel;    // the call stops when it is raised; may be null
  /// The grammar of the call's text; null: no grammar. With `matcher` the text continues from its
  /// state; the matcher must no longer change.
  std::shared_ptr<const grammar::Grammar> grammar;
  std::shared_ptr<const grammar::Matcher> matcher;
  /// A limit that cuts a member of the grammar which could go on is kLength or kContextFull. Else
  /// it is kGrammarComplete where texts are fitted.
  bool names_limits = false;

  /// Sets a field that has a row in param_rows(). kInvalidArgument, naming the value and the range;
  /// then nothing has changed.
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

  /// Adds a DRY breaker. The first one replaces the default ones; an empty one just removes them.
  /// At most kMaxDryBreakers of kMaxDryBreakerBytes each, UTF-8; a duplicate is ignored.
  Status add_dry_breaker(std::string_view text);
  [[nodiscard]] std::vector<std::string> dry_breakers() const;

  /// Adds an adapter, at most kMaxAdapters. kInvalidArgument for one that is there, and as
  /// AdapterRegistry::check().
  Status add_adapter(std::string_view name, float scale);

  /// kOutOfRange for a stop token or a bias outside the vocabulary. Called at the start of a call.
  [[nodiscard]] Status check_vocab(int32_t vocab_size) const;
};

/// Name and range of a number or switch of a call. Fields set directly may hold anything; a value
/// out of range then counts as the nearest value that turns the option off.
struct ParamRow {
  using Sampling = sampling::SamplingParams;
  using Field = std::variant<double Sampling::*, int32_t Sampling::*, uint64_t Sampling::*,
                             bool Sampling::*, int32_t StopRules::*, bool StopRules::*>;
  const char* key;
  Field field;
  double least;      // inclusive range; infinite: any finite number of the type
  double most;       // not used for switches and 64-bit numbers, which have no range
  const char* off;   // values that turn it off, as text; empty if there are none
  const char* help;  // one phrase
};

/// All rows, in display order.
std::span<const ParamRow> param_rows() noexcept;

}  // namespace gen::generate
