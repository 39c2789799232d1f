// SPDX-License-Identifier: Apache-2.0
// How tokens are chosen. See generate.hpp.
#ifndef GENERATE_SAMPLING_HPP
#define GENERATE_SAMPLING_HPP

#include <cstdint>
#include <string>
#include <string_view>

#include "grammar.hpp"

namespace gen {

/// How tokens are chosen; setters return the object, so that they chain.
class Sampling : public detail::Handle<gen_sampling, gen_sampling_free> {
 public:
  Sampling() : Handle(detail::made<gen_sampling>(gen_sampling_new)) {}
  Sampling &temperature(double value) { return apply(gen_sampling_set_temperature, value); }
  Sampling &top_k(int32_t value) { return apply(gen_sampling_set_top_k, value); }
  Sampling &top_p(double value) { return apply(gen_sampling_set_top_p, value); }
  Sampling &min_p(double value) { return apply(gen_sampling_set_min_p, value); }
  Sampling &typical_p(double value) { return apply(gen_sampling_set_typical_p, value); }
  Sampling &repetition_penalty(double value) { return apply(gen_sampling_set_repetition_penalty, value); }
  Sampling &frequency_penalty(double value) { return apply(gen_sampling_set_frequency_penalty, value); }
  Sampling &presence_penalty(double value) { return apply(gen_sampling_set_presence_penalty, value); }
  Sampling &dry(double multiplier, double base = 1.75, int32_t allowed_length = 2, int32_t window = 0) {
    return apply(gen_sampling_set_dry, multiplier, base, allowed_length, window);
  }
  Sampling &dry_breaker(std::string_view text) {
    return apply(gen_sampling_add_dry_breaker, detail::data(text), text.size());
  }
  Sampling &xtc(double probability, double threshold) { return apply(gen_sampling_set_xtc, probability, threshold); }
  Sampling &top_n_sigma(double value) { return apply(gen_sampling_set_top_n_sigma, value); }
  Sampling &mirostat(double tau, double eta) { return apply(gen_sampling_set_mirostat, tau, eta); }
  Sampling &min_new_tokens(int32_t value) { return apply(gen_sampling_set_min_new_tokens, value); }
  Sampling &max_new_tokens(int32_t value) { return apply(gen_sampling_set_max_new_tokens, value); }
  Sampling &seed(uint64_t value) { return apply(gen_sampling_set_seed, value); }
  Sampling &gumbel(bool on = true) { return apply(gen_sampling_set_gumbel, on ? 1 : 0); }
  /// Edits the logits of each step; `user` must live as long as the calls.
  Sampling &logits_callback(gen_logits_callback callback, void *user) {
    return apply(gen_sampling_set_logits_callback, callback, user);
  }
  Sampling &logprobs(int32_t count) { return apply(gen_sampling_set_logprobs, count); }
  Sampling &logit_bias(int32_t token, float bias) { return apply(gen_sampling_set_logit_bias, token, bias); }
  Sampling &ignore_eos(bool ignore = true) { return apply(gen_sampling_set_ignore_eos, ignore ? 1 : 0); }
  Sampling &stop(std::string_view text) {
    return apply(gen_sampling_add_stop_string, detail::data(text), text.size());
  }
  Sampling &stop_token(int32_t token) { return apply(gen_sampling_add_stop_token, token); }
  /// Uses the model's adapter of that name, with scale 1, and no other; "" for none.
  Sampling &adapter(const std::string &name) { return apply(gen_sampling_set_adapter, name.c_str()); }
  /// Uses another one beside those that calls use.
  Sampling &add_adapter(const std::string &name, float scale) {
    return apply(gen_sampling_add_adapter, name.c_str(), scale);
  }
  Sampling &cancel(Cancel &cancel) { return apply(gen_sampling_set_cancel, cancel.get()); }
  /// Restricts texts to members of the grammar, which may be destroyed before the calls end.
  Sampling &grammar(const Grammar &grammar) { return apply(gen_sampling_set_grammar, grammar.get()); }
  /// The same for texts that continue from the current position of a matcher.
  Sampling &grammar(const GrammarMatcher &matcher) { return apply(gen_sampling_set_grammar_matcher, matcher.get()); }
  /// Draws only tokens after which the text can still be completed within max_new_tokens; the
  /// default.
  Sampling &fit_grammar(bool fit = true) { return apply(gen_sampling_set_fit_grammar, fit ? 1 : 0); }
  /// Any setting by name; describe() lists them.
  Sampling &set(const std::string &key, const std::string &value) {
    return apply(gen_sampling_set, key.c_str(), value.c_str());
  }
  std::string describe() const { return detail::filled<std::string>(gen_sampling_describe, get()); }

 private:
  template <class Setter, class... Args>
  Sampling &apply(Setter setter, Args... args) {
    detail::call(setter, get(), args...);
    return *this;
  }
};

}  // namespace gen

#endif  // GENERATE_SAMPLING_HPP
