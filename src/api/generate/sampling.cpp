// SPDX-License-Identifier: Apache-2.0
// sampling.h of the C API. Numbers and switches are rows of generate::param_rows(), which drive
// their setters, names and descriptions.
#include <generate/sampling.h>

#include <limits>
#include <type_traits>
#include <variant>
#include <vector>

#include "api/boundary/boundary.h"
#include "api/generate/handles.h"
#include "api/boundary/host_call.h"
#include "base/json_text.h"
#include "api/boundary/option_table.h"

namespace {

using gen::Code;
using gen::Result;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::api::number_text;
using gen::api::OptionRow;
using gen::api::TextOption;
using gen::generate::CallParams;
using gen::generate::param_rows;
using gen::generate::ParamRow;
using gen::generate::StopRules;
using P = gen::sampling::SamplingParams;

Result<int32_t> parse_int32(const char* text) {
  GEN_ASSIGN(const int64_t value, gen::api::parse_int(text));
  if (value >= INT32_MIN && value <= INT32_MAX) return static_cast<int32_t>(value);
  return gen::error(Code::kInvalidArgument, "%s is outside 32 bits", text);
}

Result<double> parse(const char* text, double) { return gen::api::parse_double(text); }
Result<int32_t> parse(const char* text, int32_t) { return parse_int32(text); }
Result<uint64_t> parse(const char* text, uint64_t) { return gen::api::parse_uint(text); }
Result<bool> parse(const char* text, bool) { return gen::api::parse_bool(text); }

/// Parses `text` for a field and checks it against the field's row.
template <typename Part, typename T>
Status set_text(gen_sampling& s, T Part::*field, const char* text) {
  GEN_ASSIGN(const T value, parse(text, T()));
  return s.params.set(field, value);
}

std::string value_text(double value) { return number_text(value); }
std::string value_text(int32_t value) { return std::to_string(value); }
std::string value_text(uint64_t value) { return std::to_string(value); }
std::string value_text(bool value) { return value ? "1" : "0"; }

/// Whether the row describes a number or switch of type T.
template <typename T>
bool holds(const ParamRow& row) {
  const auto is_it = []<typename Part, typename U>(U Part::*) { return std::is_same_v<T, U>; };
  return std::visit(is_it, row.field);
}

const char* type_name(const ParamRow& row) {
  if (holds<double>(row)) return "float";
  return holds<bool>(row) ? "bool" : "int";
}

std::string range_of(const ParamRow& row) {
  constexpr double kNoBound = std::numeric_limits<double>::infinity();
  const bool counts = holds<int32_t>(row);
  return gen::api::range_text(counts && row.least == gen::api::kAnyLeast ? -kNoBound : row.least,
                              counts && row.most == gen::api::kAnyMost ? kNoBound : row.most);
}

std::string joined(const gen_sampling& s) {
  std::string out;
  for (const std::string& text : s.params.stops.strings) out += (out.empty() ? "" : "\n") + text;
  return out;
}
// A JSON array, since the texts contain line ends and quotes.
std::string joined_breakers(const gen_sampling& s) {
  std::string out = "[";
  for (const std::string& text : s.params.dry_breakers()) {
    out += (out.size() > 1 ? "," : "") + gen::json_quote(text);
  }
  return out + "]";
}
std::string joined_tokens(const gen_sampling& s) {
  std::string out;
  for (const int32_t token : s.params.stops.tokens) {
    out += (out.empty() ? "" : ",") + std::to_string(token);
  }
  return out;
}

using S = gen_sampling;

std::string joined_adapters(const S& s) {
  std::string out;
  for (const auto& [name, scale] : s.params.adapters) out += (out.empty() ? "" : "\n") + name;
  return out;
}

/// One adapter in place of all, or none.
Status set_adapter(S& s, const char* name) {
  CallParams with;
  if (name != nullptr && *name != '\0') GEN_TRY(with.add_adapter(name, 1.0F));
  s.params.adapters.swap(with.adapters);
  return {};
}

/// Lists; numbers are in param_rows().
const OptionRow<S> kLists[] = {
    {"stop_token",
     TextOption<S>{[] { return std::string("a token id"); },
                   [](S& s, const char* text) -> Status {
                     GEN_ASSIGN(const int32_t token, parse_int32(text));
                     return s.params.stops.add_token(token);
                   },
                   joined_tokens, "int"},
     "a token that ends the generation; may be repeated"},
    {"stop_string",
     TextOption<S>{
         [] {
           return "UTF-8, at most " + std::to_string(gen::generate::kMaxStopStringBytes) + " bytes";
         },
         [](S& s, const char* text) -> Status { return s.params.stops.add_string(text); }, joined},
     "a text that ends the generation and is left out; may be repeated"},
    {"adapter",
     TextOption<S>{[] { return std::string("a name that gen_adapter_load() was given"); },
                   [](S& s, const char* text) -> Status { return set_adapter(s, text); },
                   joined_adapters},
     "the adapter that calls use, in place of all others; empty for none"},
    {"dry_breaker",
     TextOption<S>{[] {
                     return "UTF-8, at most " + std::to_string(gen::generate::kMaxDryBreakerBytes) +
                            " bytes";
                   },
                   [](S& s, const char* text) -> Status { return s.params.add_dry_breaker(text); },
                   joined_breakers},
     "a text at which DRY stops matching; the first one replaces the defaults, an empty one "
     "removes them"},
};

Status set_by_key(S& s, std::string_view key, const char* text) {
  for (const ParamRow& row : param_rows()) {
    if (row.key != key) continue;
    return gen::api::named(
        row.key, std::visit([&](auto field) { return set_text(s, field, text); }, row.field));
  }
  if (key == "num_beams") {  // an option of other libraries; only 1 is accepted
    const Result<int32_t> beams = parse_int32(text);
    if (!beams.ok()) return gen::api::named("num_beams", beams.status());
    if (beams.value() > 1) {
      return gen::error(Code::kUnsupported, "num_beams %d is above 1: there is no beam search",
                        beams.value());
    }
    if (beams.value() == 1) return {};
    return gen::error(Code::kInvalidArgument, "num_beams %d is below 1", beams.value());
  }
  std::vector<std::string_view> numbers;
  for (const ParamRow& row : param_rows()) numbers.emplace_back(row.key);
  return gen::api::set_by_name<S>(kLists, s, std::string(key).c_str(), text, std::move(numbers));
}

std::string described(const S& s) {
  const CallParams defaults;
  std::vector<gen::api::OptionText> rows;
  for (const ParamRow& row : param_rows()) {
    const auto text_of = [&](const CallParams& params) {
      return std::visit([&](auto field) { return value_text(params.get(field)); }, row.field);
    };
    rows.push_back({row.key, type_name(row), range_of(row), text_of(defaults), text_of(s.params),
                    row.help, row.off});
  }
  gen::api::add_texts<S>(kLists, s, &rows);
  return gen::api::describe_rows(rows);
}

/// Calls the host's callback on a row of logits.
Status ask(gen_logits_callback callback, void* user, std::span<float> logits,
           std::span<const int32_t> held, size_t said) noexcept {
  constexpr const char* kName = "the logits callback";
  gen_error failure;  // cleared only in part
  failure.code = GEN_OK;
  failure.message[0] = '\0';
  try {
    const gen_status status =
        callback(user, logits.data(), logits.size(), held.data(), held.size(), said, &failure);
    return gen::api::host_outcome(status, failure, "", kName);
  } catch (...) {
    return gen::api::thrown_by(kName);
  }
}

/// Sets several values, or none if one of them is refused.
template <typename F>
Status set_all(S& s, F&& set) {
  CallParams trial;
  GEN_TRY(set(trial));
  return set(s.params);
}

/// Frame of a setter: refuses a NULL object, otherwise runs `set`.
template <typename F>
gen_status with(gen_sampling* sampling, gen_error* error, F&& set) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(sampling, "sampling"));
    return set(*sampling);
  });
}

}  // namespace

gen_status gen_sampling_new(gen_sampling** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    *out = new gen_sampling;
    return {};
  });
}

void gen_sampling_free(gen_sampling* sampling) { delete sampling; }

gen_status gen_sampling_set_temperature(gen_sampling* sampling, double temperature,
                                        gen_error* error) {
  return with(sampling, error, [&](S& s) { return s.params.set(&P::temperature, temperature); });
}

gen_status gen_sampling_set_top_k(gen_sampling* sampling, int32_t k, gen_error* error) {
  return with(sampling, error, [&](S& s) { return s.params.set(&P::top_k, k); });
}

gen_status gen_sampling_set_typical_p(gen_sampling* sampling, double p, gen_error* error) {
  return with(sampling, error, [&](S& s) { return s.params.set(&P::typical_p, p); });
}

gen_status gen_sampling_set_top_p(gen_sampling* sampling, double p, gen_error* error) {
  return with(sampling, error, [&](S& s) { return s.params.set(&P::top_p, p); });
}

gen_status gen_sampling_set_min_p(gen_sampling* sampling, double p, gen_error* error) {
  return with(sampling, error, [&](S& s) { return s.params.set(&P::min_p, p); });
}

gen_status gen_sampling_set_top_n_sigma(gen_sampling* sampling, double n, gen_error* error) {
  return with(sampling, error, [&](S& s) { return s.params.set(&P::top_n_sigma, n); });
}

gen_status gen_sampling_set_xtc(gen_sampling* sampling, double probability, double threshold,
                                gen_error* error) {
  return with(sampling, error, [&](S& s) {
    return set_all(s, [&](CallParams& params) -> Status {
      GEN_TRY(params.set(&P::xtc_probability, probability));
      return params.set(&P::xtc_threshold, threshold);
    });
  });
}

gen_status gen_sampling_set_mirostat(gen_sampling* sampling, double tau, double eta,
                                     gen_error* error) {
  return with(sampling, error, [&](S& s) {
    return set_all(s, [&](CallParams& params) -> Status {
      GEN_TRY(params.set(&P::mirostat_tau, tau));
      return params.set(&P::mirostat_eta, eta);
    });
  });
}

gen_status gen_sampling_set_repetition_penalty(gen_sampling* sampling, double penalty,
                                               gen_error* error) {
  return with(sampling, error, [&](S& s) { return s.params.set(&P::repetition_penalty, penalty); });
}

gen_status gen_sampling_set_compound_penalty(gen_sampling* sampling, int32_t compound,
                                             gen_error* error) {
  return with(sampling, error,
              [&](S& s) { return s.params.set(&P::compound_penalty, compound != 0); });
}

gen_status gen_sampling_set_frequency_penalty(gen_sampling* sampling, double penalty,
                                              gen_error* error) {
  return with(sampling, error, [&](S& s) { return s.params.set(&P::frequency_penalty, penalty); });
}

gen_status gen_sampling_set_presence_penalty(gen_sampling* sampling, double penalty,
                                             gen_error* error) {
  return with(sampling, error, [&](S& s) { return s.params.set(&P::presence_penalty, penalty); });
}

gen_status gen_sampling_set_penalize_prompt(gen_sampling* sampling, int32_t penalize,
                                            gen_error* error) {
  return with(sampling, error,
              [&](S& s) { return s.params.set(&P::penalize_prompt, penalize != 0); });
}

gen_status gen_sampling_set_penalty_window(gen_sampling* sampling, int32_t tokens,
                                           gen_error* error) {
  return with(sampling, error, [&](S& s) { return s.params.set(&P::penalty_window, tokens); });
}

gen_status gen_sampling_set_dry(gen_sampling* sampling, double multiplier, double base,
                                int32_t allowed_length, int32_t window, gen_error* error) {
  return with(sampling, error, [&](S& s) {
    return set_all(s, [&](CallParams& params) -> Status {
      GEN_TRY(params.set(&P::dry_multiplier, multiplier));
      GEN_TRY(params.set(&P::dry_base, base));
      GEN_TRY(params.set(&P::dry_allowed_length, allowed_length));
      return params.set(&P::dry_window, window);
    });
  });
}

gen_status gen_sampling_add_dry_breaker(gen_sampling* sampling, const char* text, size_t len,
                                        gen_error* error) {
  return with(sampling, error, [&](S& s) -> Status {
    GEN_TRY(not_null(text, "text"));
    GEN_ASSIGN(const auto view, gen::api::text_in(text, len, "text"));
    return s.params.add_dry_breaker(view);
  });
}

gen_status gen_sampling_set_max_new_tokens(gen_sampling* sampling, int32_t tokens,
                                           gen_error* error) {
  return with(sampling, error,
              [&](S& s) { return s.params.set(&StopRules::max_new_tokens, tokens); });
}

gen_status gen_sampling_set_min_new_tokens(gen_sampling* sampling, int32_t tokens,
                                           gen_error* error) {
  return with(sampling, error,
              [&](S& s) { return s.params.set(&StopRules::min_new_tokens, tokens); });
}

gen_status gen_sampling_set_seed(gen_sampling* sampling, uint64_t seed, gen_error* error) {
  return with(sampling, error, [&](S& s) { return s.params.set(&P::seed, seed); });
}

gen_status gen_sampling_set_gumbel(gen_sampling* sampling, int32_t gumbel, gen_error* error) {
  return with(sampling, error, [&](S& s) { return s.params.set(&P::gumbel, gumbel != 0); });
}

gen_status gen_sampling_set_logits_callback(gen_sampling* sampling, gen_logits_callback callback,
                                            void* user, gen_error* error) {
  return with(sampling, error, [&](S& s) -> Status {
    if (callback == nullptr) {
      s.params.edit_logits = nullptr;
    } else {
      s.params.edit_logits = [callback, user](std::span<float> logits,
                                              std::span<const int32_t> held, size_t said) {
        return ask(callback, user, logits, held, said);
      };
    }
    return {};
  });
}

gen_status gen_sampling_set_logprobs(gen_sampling* sampling, int32_t count, gen_error* error) {
  return with(sampling, error, [&](S& s) { return s.params.set(&P::logprobs, count); });
}

gen_status gen_sampling_set_logit_bias(gen_sampling* sampling, int32_t token, float bias,
                                       gen_error* error) {
  return with(sampling, error, [&](S& s) { return s.params.sampling.set_logit_bias(token, bias); });
}

gen_status gen_sampling_set_ignore_eos(gen_sampling* sampling, int32_t ignore, gen_error* error) {
  return with(sampling, error,
              [&](S& s) { return s.params.set(&StopRules::ignore_eos, ignore != 0); });
}

gen_status gen_sampling_add_stop_token(gen_sampling* sampling, int32_t token, gen_error* error) {
  return with(sampling, error, [&](S& s) { return s.params.stops.add_token(token); });
}

gen_status gen_sampling_add_stop_string(gen_sampling* sampling, const char* text, size_t len,
                                        gen_error* error) {
  return with(sampling, error, [&](S& s) -> Status {
    GEN_TRY(not_null(text, "text"));
    GEN_ASSIGN(const auto view, gen::api::text_in(text, len, "text"));
    if (view.empty()) return {};
    return s.params.stops.add_string(view);
  });
}

gen_status gen_sampling_set_adapter(gen_sampling* sampling, const char* name, gen_error* error) {
  return with(sampling, error, [&](S& s) { return set_adapter(s, name); });
}

gen_status gen_sampling_add_adapter(gen_sampling* sampling, const char* name, float scale,
                                    gen_error* error) {
  return with(sampling, error, [&](S& s) -> Status {
    GEN_TRY(not_null(name, "name"));
    return s.params.add_adapter(name, scale);
  });
}

gen_status gen_sampling_set_cancel(gen_sampling* sampling, gen_cancel* cancel, gen_error* error) {
  return with(sampling, error, [&](S& s) -> Status {
    s.params.cancel = cancel != nullptr ? cancel->flag : nullptr;
    return {};
  });
}

gen_status gen_sampling_set(gen_sampling* sampling, const char* key, const char* value,
                            gen_error* error) {
  return with(sampling, error, [&](S& s) -> Status {
    GEN_TRY(not_null(key, "key"));
    GEN_TRY(not_null(value, "value"));
    return set_by_key(s, key, value);
  });
}

gen_status gen_sampling_describe(const gen_sampling* sampling, char* buf, size_t capacity,
                                 size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(sampling, "sampling"));
    return gen::api::text_out(described(*sampling), buf, capacity, n);
  });
}
