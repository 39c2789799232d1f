// SPDX-License-Identifier: Apache-2.0
// sampling.h of the C API: typed setters check ranges, the table below gives them names.
#include <generate/sampling.h>

#include <cmath>
#include <limits>

#include "api/boundary.h"
#include "api/handles.h"
#include "api/option_table.h"

namespace {

using gen::Code;
using gen::Result;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::api::number_text;
using gen::api::OptionRow;

constexpr size_t kMaxStopStrings = 256;
constexpr size_t kMaxStopStringBytes = 4096;

Status in_range(double value, double low, double high, const char* what) {
  if (value >= low && value <= high) return {};
  return gen::error(Code::kInvalidArgument, "%s %g is outside [%g, %g]", what, value, low, high);
}

Status above_zero(double value, double high, const char* what) {
  if (value > 0 && value <= high) return {};
  return gen::error(Code::kInvalidArgument, "%s %g is outside (0, %g]", what, value, high);
}

Status set_temperature(gen_sampling& s, double value) {
  GEN_TRY(in_range(value, 0, 1e6, "temperature"));
  return s.params.set_temperature(value);
}
Status set_top_k(gen_sampling& s, int32_t value) { return s.params.set_top_k(value); }
Status set_typical_p(gen_sampling& s, double value) {
  GEN_TRY(above_zero(value, 1, "typical_p"));
  return s.params.set_typical_p(value);
}
Status set_top_p(gen_sampling& s, double value) {
  GEN_TRY(above_zero(value, 1, "top_p"));
  return s.params.set_top_p(value);
}
Status set_min_p(gen_sampling& s, double value) { return s.params.set_min_p(value); }
Status set_repetition_penalty(gen_sampling& s, double value) {
  GEN_TRY(above_zero(value, 1000, "repetition_penalty"));
  return s.params.set_repetition_penalty(value);
}
Status set_compound_penalty(gen_sampling& s, bool value) {
  s.params.compound_penalty = value;
  return {};
}
Status set_frequency_penalty(gen_sampling& s, double value) {
  return s.params.set_frequency_penalty(value);
}
Status set_presence_penalty(gen_sampling& s, double value) {
  return s.params.set_presence_penalty(value);
}
Status set_penalize_prompt(gen_sampling& s, bool value) {
  s.params.penalize_prompt = value;
  return {};
}
Status set_penalty_window(gen_sampling& s, int32_t value) {
  return s.params.set_penalty_window(value);
}
Status set_max_new_tokens(gen_sampling& s, int32_t value) {
  if (value < 1) {
    return gen::error(Code::kInvalidArgument, "max_new_tokens %d is below 1", value);
  }
  return s.params.set_max_new_tokens(value);
}
Status set_seed(gen_sampling& s, uint64_t value) {
  s.params.seed = value;
  return {};
}
Status set_logprobs(gen_sampling& s, int32_t value) {
  GEN_TRY(in_range(value, -1, 100, "logprobs"));
  return s.params.set_logprobs(value);
}
Status set_ignore_eos(gen_sampling& s, bool value) {
  s.params.ignore_eos = value;
  return {};
}
Status add_stop_token(gen_sampling& s, int32_t value) { return s.params.add_stop_token(value); }
Status add_stop_string(gen_sampling& s, std::string_view text) {
  if (text.size() > kMaxStopStringBytes) {
    return gen::error(Code::kInvalidArgument, "a stop string of %zu bytes is above %zu",
                      text.size(), kMaxStopStringBytes);
  }
  if (s.params.stop_strings.size() >= kMaxStopStrings) {
    return gen::error(Code::kInvalidArgument, "more than %zu stop strings", kMaxStopStrings);
  }
  return s.params.add_stop_string(text);
}

Result<int32_t> parse_int32(const char* text) {
  GEN_ASSIGN(const int64_t value, gen::api::parse_int(text));
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
    return gen::error(Code::kInvalidArgument, "%s is outside 32 bits", text);
  }
  return static_cast<int32_t>(value);
}

template <Status (*Set)(gen_sampling&, int32_t)>
Status from_int(gen_sampling& s, const char* text) {
  GEN_ASSIGN(const int32_t value, parse_int32(text));
  return Set(s, value);
}
template <Status (*Set)(gen_sampling&, double)>
Status from_double(gen_sampling& s, const char* text) {
  GEN_ASSIGN(const double value, gen::api::parse_double(text));
  return Set(s, value);
}
template <Status (*Set)(gen_sampling&, bool)>
Status from_bool(gen_sampling& s, const char* text) {
  GEN_ASSIGN(const bool value, gen::api::parse_bool(text));
  return Set(s, value);
}
Status seed_from_text(gen_sampling& s, const char* text) {
  GEN_ASSIGN(const uint64_t value, gen::api::parse_uint(text));
  return set_seed(s, value);
}
Status stop_string_from_text(gen_sampling& s, const char* text) { return add_stop_string(s, text); }

std::string bool_text(bool value) { return value ? "1" : "0"; }

std::string joined(const gen_sampling& s) {
  std::string out;
  for (const std::string& text : s.params.stop_strings) out += (out.empty() ? "" : "\n") + text;
  return out;
}
std::string joined_tokens(const gen_sampling& s) {
  std::string out;
  for (const int32_t token : s.params.stop_tokens) {
    out += (out.empty() ? "" : ",") + std::to_string(token);
  }
  return out;
}

using S = gen_sampling;
const OptionRow<S> kRows[] = {
    {"temperature", "float", "0 to 1e6; 0 is greedy", "1", from_double<set_temperature>,
     [](const S& s) { return number_text(s.params.temperature); }},
    {"top_k", "int", "0 and up; 0 keeps all", "0", from_int<set_top_k>,
     [](const S& s) { return std::to_string(s.params.top_k); }},
    {"typical_p", "float", "above 0, to 1", "1", from_double<set_typical_p>,
     [](const S& s) { return number_text(s.params.typical_p); }},
    {"top_p", "float", "above 0, to 1", "1", from_double<set_top_p>,
     [](const S& s) { return number_text(s.params.top_p); }},
    {"min_p", "float", "0 to 1", "0", from_double<set_min_p>,
     [](const S& s) { return number_text(s.params.min_p); }},
    {"repetition_penalty", "float", "above 0, to 1000; 1 is off", "1",
     from_double<set_repetition_penalty>,
     [](const S& s) { return number_text(s.params.repetition_penalty); }},
    {"compound_penalty", "bool", "0 or 1", "0", from_bool<set_compound_penalty>,
     [](const S& s) { return bool_text(s.params.compound_penalty); }},
    {"frequency_penalty", "float", "-100 to 100", "0", from_double<set_frequency_penalty>,
     [](const S& s) { return number_text(s.params.frequency_penalty); }},
    {"presence_penalty", "float", "-100 to 100", "0", from_double<set_presence_penalty>,
     [](const S& s) { return number_text(s.params.presence_penalty); }},
    {"penalize_prompt", "bool", "0 or 1", "0", from_bool<set_penalize_prompt>,
     [](const S& s) { return bool_text(s.params.penalize_prompt); }},
    {"penalty_window", "int", "0 and up; 0 is all", "0", from_int<set_penalty_window>,
     [](const S& s) { return std::to_string(s.params.penalty_window); }},
    {"max_new_tokens", "int", "1 and up", "256", from_int<set_max_new_tokens>,
     [](const S& s) { return std::to_string(s.params.max_new_tokens); }},
    {"seed", "int", "0 to 2^64 - 1", "0", seed_from_text,
     [](const S& s) { return std::to_string(s.params.seed); }},
    {"logprobs", "int", "-1 to 100; -1 records none", "-1", from_int<set_logprobs>,
     [](const S& s) { return std::to_string(s.params.logprobs); }},
    {"ignore_eos", "bool", "0 or 1", "0", from_bool<set_ignore_eos>,
     [](const S& s) { return bool_text(s.params.ignore_eos); }},
    {"stop_token", "int", "a token id; each one is added", "", from_int<add_stop_token>,
     joined_tokens},
    {"stop_string", "string", "UTF-8, at most 4096 bytes; each one is added", "",
     stop_string_from_text, joined},
};

/// A setter's frame: a NULL object is an argument error, anything else is `set`'s to say.
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
  return with(sampling, error, [&](S& s) { return set_temperature(s, temperature); });
}

gen_status gen_sampling_set_top_k(gen_sampling* sampling, int32_t k, gen_error* error) {
  return with(sampling, error, [&](S& s) { return set_top_k(s, k); });
}

gen_status gen_sampling_set_typical_p(gen_sampling* sampling, double p, gen_error* error) {
  return with(sampling, error, [&](S& s) { return set_typical_p(s, p); });
}

gen_status gen_sampling_set_top_p(gen_sampling* sampling, double p, gen_error* error) {
  return with(sampling, error, [&](S& s) { return set_top_p(s, p); });
}

gen_status gen_sampling_set_min_p(gen_sampling* sampling, double p, gen_error* error) {
  return with(sampling, error, [&](S& s) { return set_min_p(s, p); });
}

gen_status gen_sampling_set_repetition_penalty(gen_sampling* sampling, double penalty,
                                               gen_error* error) {
  return with(sampling, error, [&](S& s) { return set_repetition_penalty(s, penalty); });
}

gen_status gen_sampling_set_compound_penalty(gen_sampling* sampling, int32_t compound,
                                             gen_error* error) {
  return with(sampling, error, [&](S& s) { return set_compound_penalty(s, compound != 0); });
}

gen_status gen_sampling_set_frequency_penalty(gen_sampling* sampling, double penalty,
                                              gen_error* error) {
  return with(sampling, error, [&](S& s) { return set_frequency_penalty(s, penalty); });
}

gen_status gen_sampling_set_presence_penalty(gen_sampling* sampling, double penalty,
                                             gen_error* error) {
  return with(sampling, error, [&](S& s) { return set_presence_penalty(s, penalty); });
}

gen_status gen_sampling_set_penalize_prompt(gen_sampling* sampling, int32_t penalize,
                                            gen_error* error) {
  return with(sampling, error, [&](S& s) { return set_penalize_prompt(s, penalize != 0); });
}

gen_status gen_sampling_set_penalty_window(gen_sampling* sampling, int32_t tokens,
                                           gen_error* error) {
  return with(sampling, error, [&](S& s) { return set_penalty_window(s, tokens); });
}

gen_status gen_sampling_set_max_new_tokens(gen_sampling* sampling, int32_t tokens,
                                           gen_error* error) {
  return with(sampling, error, [&](S& s) { return set_max_new_tokens(s, tokens); });
}

gen_status gen_sampling_set_seed(gen_sampling* sampling, uint64_t seed, gen_error* error) {
  return with(sampling, error, [&](S& s) { return set_seed(s, seed); });
}

gen_status gen_sampling_set_logprobs(gen_sampling* sampling, int32_t count, gen_error* error) {
  return with(sampling, error, [&](S& s) { return set_logprobs(s, count); });
}

gen_status gen_sampling_set_logit_bias(gen_sampling* sampling, int32_t token, float bias,
                                       gen_error* error) {
  return with(sampling, error, [&](S& s) { return s.params.set_logit_bias(token, bias); });
}

gen_status gen_sampling_set_ignore_eos(gen_sampling* sampling, int32_t ignore, gen_error* error) {
  return with(sampling, error, [&](S& s) { return set_ignore_eos(s, ignore != 0); });
}

gen_status gen_sampling_add_stop_token(gen_sampling* sampling, int32_t token, gen_error* error) {
  return with(sampling, error, [&](S& s) { return add_stop_token(s, token); });
}

gen_status gen_sampling_add_stop_string(gen_sampling* sampling, const char* text, size_t len,
                                        gen_error* error) {
  return with(sampling, error, [&](S& s) -> Status {
    GEN_TRY(not_null(text, "text"));
    GEN_ASSIGN(const auto view, gen::api::text_in(text, len, "text"));
    if (view.empty()) return {};
    return add_stop_string(s, view);
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
    return gen::api::set_by_name<S>(kRows, s, key, value);
  });
}

gen_status gen_sampling_describe(const gen_sampling* sampling, char* buf, size_t capacity,
                                 size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(sampling, "sampling"));
    return gen::api::text_out(gen::api::describe_options<S>(kRows, *sampling), buf, capacity, n);
  });
}
