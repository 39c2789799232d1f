// SPDX-License-Identifier: Apache-2.0
// generate bench: prefill and decode speed, beside the memory bandwidth measured in the same run.
// One run that is not counted warms up. The prompt's token ids are made up, since speed does not
// depend on them.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model_file.h"

namespace cli {
namespace {

struct Bench {
  ModelChoice model;
  int32_t prompt = 128;
  int32_t tokens = 32;
  int32_t repeat = 3;
  bool json = false;
};

struct Speeds {
  double prefill = 0;
  double decode = 0;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Speeds measure(const Model& model, const Bench& options, std::vector<float>& logits) {
  const Cache cache = make_cache(model, options.model, options.prompt + options.tokens);
  const auto vocab = static_cast<int32_t>(logits.size());
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < options.prompt; ++i) {
    prompt.push_back(static_cast<int32_t>((int64_t{i} * 7919 + 13) % std::min(vocab, 30000)));
  }
  gen_error error;
  Speeds speeds;
  auto start = std::chrono::steady_clock::now();
  check(gen_model_forward(model.get(), prompt.data(), prompt.size(), cache.get(), logits.data(),
                          logits.size(), &error),
        error);
  speeds.prefill = options.prompt / seconds_since(start);
  start = std::chrono::steady_clock::now();
  for (int32_t i = 0; i < options.tokens; ++i) {
    const auto best =
        static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    check(
        gen_model_forward(model.get(), &best, 1, cache.get(), logits.data(), logits.size(), &error),
        error);
  }
  speeds.decode = options.tokens / seconds_since(start);
  return speeds;
}

double peak(int32_t threads, const char* what) {
  double value = 0;
  gen_error error;
  check(gen_measure_peaks(threads, what, &value, &error), error);
  return value;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void bench(const Bench& options) {
  const double bandwidth = peak(options.model.threads, "read_bandwidth");
  const Model model = load_model(options.model);
  const gen_model_config* config = gen_model_get_config(model.get());
  std::vector<float> logits(static_cast<size_t>(gen_model_config_vocab_size(config)));
  std::vector<double> prefill;
  std::vector<double> decode;
  for (int32_t run = 0; run <= options.repeat; ++run) {
    const Speeds speeds = measure(model, options, logits);
    if (run == 0) continue;
    prefill.push_back(speeds.prefill);
    decode.push_back(speeds.decode);
  }
  size_t stream = 0;
  gen_error error;
  check(gen_model_memory(model.get(), "stream", &stream, &error), error);
  const double share = static_cast<double>(stream) * median(decode) / bandwidth;
  if (options.json) {
    std::cout << nlohmann::ordered_json{{"engine", std::string("libgenerate ") + gen_version()},
                                        {"model", find_file(options.model.path, "story.gguf")},
                                        {"threads", options.model.threads},
                                        {"prompt", options.prompt},
                                        {"gen", options.tokens},
                                        {"kv", options.model.kv},
                                        {"prefill_tps", prefill},
                                        {"decode_tps", decode},
                                        {"read_bandwidth_gbs", bandwidth / 1e9},
                                        {"stream_bytes_per_token", stream},
                                        {"decode_bandwidth_share", share}}
                     .dump()
              << "\n";
    return;
  }
  std::cout << "prefill " << median(prefill) << " tokens/s, decode " << median(decode)
            << " tokens/s (medians of " << options.repeat << "); "
            << static_cast<double>(stream) / 1e6 << " MB of weights read per token, " << share * 100
            << "% of the " << bandwidth / 1e9 << " GB/s read bandwidth\n";
}

}  // namespace

void add_bench(CLI::App& app) {
  auto options = std::make_shared<Bench>();
  CLI::App* command = app.add_subcommand("bench", "measure prefill and decode speed");
  add_model_options(*command, options->model);
  add_kv_option(*command, options->model);
  command->add_option("-p,--prompt", options->prompt, "prompt tokens")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->add_option("-n,--tokens", options->tokens, "tokens to decode")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->add_option("-r,--repeat", options->repeat, "counted runs")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options] { bench(*options); });
}

}  // namespace cli
