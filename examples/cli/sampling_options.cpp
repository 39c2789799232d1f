// SPDX-License-Identifier: Apache-2.0
// See sampling_options.h.
#include "sampling_options.h"

namespace cli {

void add_sampling_options(CLI::App& command, SamplingChoice& choice) {
  command.add_option("-n,--tokens", choice.max_new_tokens, "most tokens to generate")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--temp", choice.temperature, "temperature; 0 takes the most probable token")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--top-k", choice.top_k, "keep the k most probable tokens; 0 keeps all")
      ->capture_default_str();
  command.add_option("--top-p", choice.top_p, "keep the tokens that make up this probability")
      ->capture_default_str();
  command
      .add_option("--typical-p", choice.typical_p,
                  "keep the most typical tokens up to this probability")
      ->capture_default_str();
  command.add_option("--min-p", choice.min_p, "keep tokens this probable beside the best")
      ->capture_default_str();
  command.add_option("--repeat-penalty", choice.repetition_penalty, "weaken tokens said before")
      ->capture_default_str();
  command
      .add_option("--frequency-penalty", choice.frequency_penalty,
                  "weaken tokens by this for each time they were said")
      ->capture_default_str();
  command
      .add_option("--presence-penalty", choice.presence_penalty,
                  "weaken tokens by this if they were said")
      ->capture_default_str();
  command
      .add_option("--penalty-window", choice.penalty_window,
                  "tokens the penalties look back; 0 is the whole answer")
      ->capture_default_str();
  command.add_option("-s,--seed", choice.seed, "seed of the draws")->capture_default_str();
  command.add_option("--stop", choice.stop, "text that ends the answer; may be given again");
  command.add_flag("--ignore-eos", choice.ignore_eos, "go on after the model's end tokens");
}

Sampling make_sampling(const SamplingChoice& choice) {
  auto sampling = make<Sampling>(gen_sampling_new);
  gen_sampling* s = sampling.get();
  gen_error error;
  check(gen_sampling_set_max_new_tokens(s, choice.max_new_tokens, &error), error);
  check(gen_sampling_set_temperature(s, choice.temperature, &error), error);
  check(gen_sampling_set_top_k(s, choice.top_k, &error), error);
  check(gen_sampling_set_top_p(s, choice.top_p, &error), error);
  check(gen_sampling_set_typical_p(s, choice.typical_p, &error), error);
  check(gen_sampling_set_min_p(s, choice.min_p, &error), error);
  check(gen_sampling_set_repetition_penalty(s, choice.repetition_penalty, &error), error);
  check(gen_sampling_set_frequency_penalty(s, choice.frequency_penalty, &error), error);
  check(gen_sampling_set_presence_penalty(s, choice.presence_penalty, &error), error);
  check(gen_sampling_set_penalty_window(s, choice.penalty_window, &error), error);
  check(gen_sampling_set_seed(s, choice.seed, &error), error);
  check(gen_sampling_set_ignore_eos(s, choice.ignore_eos ? 1 : 0, &error), error);
  for (const std::string& text : choice.stop) {
    check(gen_sampling_add_stop_string(s, text.data(), text.size(), &error), error);
  }
  return sampling;
}

}  // namespace cli
