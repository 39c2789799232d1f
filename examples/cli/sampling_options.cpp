// SPDX-License-Identifier: Apache-2.0
// See sampling_options.h.
#include "sampling_options.h"

namespace cli {

void add_sampling_options(CLI::App& command, SamplingChoice& choice) {
  command.add_option("-n,--tokens", choice.max_new_tokens, "most tokens to generate")
      ->capture_default_str();
  command.add_option("--temp", choice.temperature, "temperature; 0 takes the most probable token")
      ->capture_default_str();
  command.add_option("--top-k", choice.top_k, "keep the k most probable tokens; 0 keeps all")
      ->capture_default_str();
  command.add_option("--top-p", choice.top_p, "keep the tokens that make up this probability")
      ->capture_default_str();
  command.add_option("--min-p", choice.min_p, "keep tokens this probable beside the best")
      ->capture_default_str();
  command.add_option("--repeat-penalty", choice.repetition_penalty, "weaken tokens said before")
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
  check(gen_sampling_set_min_p(s, choice.min_p, &error), error);
  check(gen_sampling_set_repetition_penalty(s, choice.repetition_penalty, &error), error);
  check(gen_sampling_set_seed(s, choice.seed, &error), error);
  check(gen_sampling_set_ignore_eos(s, choice.ignore_eos ? 1 : 0, &error), error);
  for (const std::string& text : choice.stop) {
    check(gen_sampling_add_stop_string(s, text.data(), text.size(), &error), error);
  }
  return sampling;
}

}  // namespace cli
