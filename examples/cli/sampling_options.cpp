// SPDX-License-Identifier: Apache-2.0
// See sampling_options.h.
#include "sampling_options.h"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <random>
#include <utility>

#include "option_help.h"

namespace cli {
namespace {

/// Empty for a random seed.
std::optional<uint64_t> parse_seed(const std::string& text) {
  if (text == "random" || text == "-1") return std::nullopt;
  uint64_t seed = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, seed);
  if (failure != std::errc() || stop != end) {
    throw CLI::ValidationError(
        "--seed", "'" + text + "' is neither a number from 0 to 18446744073709551615 nor random");
  }
  return seed;
}

/// Options that set a setting by name.
constexpr std::pair<const char*, const char*> kByName[] = {
    {"--top-n-sigma", "top_n_sigma"},     {"--xtc-probability", "xtc_probability"},
    {"--xtc-threshold", "xtc_threshold"}, {"--mirostat-tau", "mirostat_tau"},
    {"--mirostat-eta", "mirostat_eta"},   {"--dry-multiplier", "dry_multiplier"},
    {"--dry-base", "dry_base"},           {"--dry-allowed-length", "dry_allowed_length"},
    {"--dry-window", "dry_window"},       {"--min-tokens", "min_new_tokens"},
};

}  // namespace

void add_sampling_options(CLI::App& command, SamplingChoice& choice) {
  takes_count(command.add_option("-n,--tokens", choice.max_new_tokens,
                                 "maximum tokens of a text or answer"))
      ->capture_default_str();
  command.add_option("--temp", choice.temperature, sampling_help("temperature"))
      ->check([](const std::string& text) {
        return std::strtod(text.c_str(), nullptr) < 0 ? text + " is below 0" : std::string();
      })
      ->capture_default_str();
  command.add_option("--top-k", choice.top_k, sampling_help("top_k"))->capture_default_str();
  command.add_option("--top-p", choice.top_p, sampling_help("top_p"))->capture_default_str();
  command.add_option("--typical-p", choice.typical_p, sampling_help("typical_p"))
      ->capture_default_str();
  command.add_option("--min-p", choice.min_p, sampling_help("min_p"))->capture_default_str();
  command
      .add_option("--repeat-penalty", choice.repetition_penalty,
                  sampling_help("repetition_penalty"))
      ->capture_default_str();
  command
      .add_option("--frequency-penalty", choice.frequency_penalty,
                  sampling_help("frequency_penalty"))
      ->capture_default_str();
  command
      .add_option("--presence-penalty", choice.presence_penalty, sampling_help("presence_penalty"))
      ->capture_default_str();
  command.add_option("--penalty-window", choice.penalty_window, sampling_help("penalty_window"))
      ->capture_default_str();
  command
      .add_option_function<std::string>(
          "-s,--seed", [&choice](const std::string& text) { choice.seed = parse_seed(text); },
          "seed of the draws: a number, or random (-1), which is then printed")
      ->default_str(choice.seed ? std::to_string(*choice.seed) : "random");
  command.add_option("--stop", choice.stop, sampling_help("stop_string"));
  command.add_flag("--ignore-eos", choice.ignore_eos, sampling_help("ignore_eos"));
  for (const auto& [option, key] : kByName) {
    command
        .add_option_function<std::string>(
            option,
            [&choice, option = option, key = key](const std::string& value) {
              choice.settings.push_back({option, key, value});
            },
            sampling_help(key))
        ->type_name("NUMBER")
        ->default_str(sampling_default(key));
  }
  command
      .add_option_function<std::vector<std::string>>(
          "--dry-breaker",
          [&choice](const std::vector<std::string>& values) {
            for (const std::string& value : values) {
              choice.settings.push_back({"--dry-breaker", "dry_breaker", value});
            }
          },
          sampling_help("dry_breaker"))
      ->allow_extra_args(false)
      ->type_name("TEXT");
  command.add_flag("--gumbel", choice.gumbel, sampling_help("gumbel"));
  add_grammar_options(command, choice.grammar);
  command.add_flag("--fit-grammar,!--no-fit-grammar", choice.fit_grammar,
                   sampling_help("fit_grammar"));
}

uint64_t seed_of(const SamplingChoice& choice) {
  return choice.seed ? *choice.seed : std::random_device()();
}

Sampling make_sampling(const SamplingChoice& choice, uint64_t seed) {
  auto sampling = make<Sampling>(gen_sampling_new);
  gen_sampling* s = sampling.get();
  gen_error error;
  check_option("--tokens", gen_sampling_set_max_new_tokens(s, choice.max_new_tokens, &error),
               error);
  check_option("--temp", gen_sampling_set_temperature(s, choice.temperature, &error), error);
  check_option("--top-k", gen_sampling_set_top_k(s, choice.top_k, &error), error);
  check_option("--top-p", gen_sampling_set_top_p(s, choice.top_p, &error), error);
  check_option("--typical-p", gen_sampling_set_typical_p(s, choice.typical_p, &error), error);
  check_option("--min-p", gen_sampling_set_min_p(s, choice.min_p, &error), error);
  check_option("--repeat-penalty",
               gen_sampling_set_repetition_penalty(s, choice.repetition_penalty, &error), error);
  check_option("--frequency-penalty",
               gen_sampling_set_frequency_penalty(s, choice.frequency_penalty, &error), error);
  check_option("--presence-penalty",
               gen_sampling_set_presence_penalty(s, choice.presence_penalty, &error), error);
  check_option("--penalty-window",
               gen_sampling_set_penalty_window(s, choice.penalty_window, &error), error);
  check_option("--seed", gen_sampling_set_seed(s, seed, &error), error);
  check(gen_sampling_set_ignore_eos(s, choice.ignore_eos ? 1 : 0, &error), error);
  check(gen_sampling_set_gumbel(s, choice.gumbel ? 1 : 0, &error), error);
  check(gen_sampling_set_fit_grammar(s, choice.fit_grammar ? 1 : 0, &error), error);
  for (const auto& [option, key, value] : choice.settings) {
    check_option(option.c_str(), gen_sampling_set(s, key.c_str(), value.c_str(), &error), error);
  }
  const Grammar grammar = make_grammar(choice.grammar);
  check(gen_sampling_set_grammar(s, grammar.get(), &error), error);
  for (const std::string& text : choice.stop) {
    check_option("--stop", gen_sampling_add_stop_string(s, text.data(), text.size(), &error),
                 error);
  }
  return sampling;
}

}  // namespace cli
