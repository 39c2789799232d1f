// SPDX-License-Identifier: Apache-2.0
// generate perplexity: exp of the mean negative log-probability of a text's tokens. The text is cut
// into windows of
// --window tokens, each run on its own after a begin-of-sequence token (if the model has one);
// every token that has something before it counts.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model_file.h"
#include "progress_bar.h"

namespace cli {
namespace {

constexpr size_t kRows = 128;

struct Perplexity {
  ModelChoice model;
  std::string file;
  int32_t window = 512;
  bool json = false;
};

std::vector<int32_t> read_tokens(const Model& model, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Failure("cannot read " + path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const gen_tokenizer* tokenizer = gen_model_tokenizer(model.get());
  gen_error error;
  size_t n = 0;
  check(gen_tokenizer_encode(tokenizer, text.data(), text.size(), 0, nullptr, 0, &n, &error),
        error);
  std::vector<int32_t> ids(n);
  check(gen_tokenizer_encode(tokenizer, text.data(), text.size(), 0, ids.data(), n, &n, &error),
        error);
  return ids;
}

double log_probability(const float* logits, size_t vocab, int32_t token) {
  const float peak = *std::max_element(logits, logits + vocab);
  double sum = 0;
  for (size_t i = 0; i < vocab; ++i) sum += std::exp(static_cast<double>(logits[i] - peak));
  return static_cast<double>(logits[token] - peak) - std::log(sum);
}

/// Adds the log-probabilities of window[1…] to *sum.
void score_window(const Model& model, const ModelChoice& choice, const std::vector<int32_t>& window,
                  size_t vocab, std::vector<float>& logits, double* sum) {
  const Cache cache = make_cache(model, choice, static_cast<int32_t>(window.size()));
  kv_cache* caches[] = {cache.get()};
  gen_error error;
  for (size_t begin = 0; begin + 1 < window.size(); begin += kRows) {
    const size_t rows = std::min(kRows, window.size() - 1 - begin);
    check(gen_model_forward_batch(model.get(), window.data() + begin, nullptr, nullptr, rows,
                                  caches, 1, logits.data(), logits.size(), &error),
          error);
    for (size_t row = 0; row < rows; ++row) {
      *sum += log_probability(logits.data() + row * vocab, vocab, window[begin + row + 1]);
    }
  }
}

void perplexity(const Perplexity& options) {
  const Model model = load_model(options.model);
  const gen_model_config* config = gen_model_get_config(model.get());
  const auto vocab = static_cast<size_t>(gen_model_config_vocab_size(config));
  const int32_t bos = gen_model_config_bos(config);
  const std::vector<int32_t> tokens = read_tokens(model, find_file(options.file, "heldout.txt"));
  const auto width =
      static_cast<size_t>(std::min(options.window, gen_model_config_max_seq_len(config)));
  const size_t fresh = bos >= 0 ? width - 1 : width;
  if (tokens.size() < 2) throw Failure("the text has fewer than 2 tokens");

  std::vector<float> logits(kRows * vocab);
  double sum = 0;
  size_t scored = 0;
  {
    ProgressBar bar("scoring");
    for (size_t begin = 0; begin < tokens.size(); begin += fresh) {
      const size_t end = std::min(begin + fresh, tokens.size());
      std::vector<int32_t> window;
      if (bos >= 0) window.push_back(bos);
      window.insert(window.end(), tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                    tokens.begin() + static_cast<std::ptrdiff_t>(end));
      score_window(model, options.model, window, vocab, logits, &sum);
      scored += window.size() - 1;
      bar.update(static_cast<double>(end) / static_cast<double>(tokens.size()));
    }
  }
  const double mean = -sum / static_cast<double>(scored);
  if (options.json) {
    std::cout << nlohmann::ordered_json{{"perplexity", std::exp(mean)},
                                        {"nll_per_token", mean},
                                        {"tokens", scored},
                                        {"window", width}}
                     .dump()
              << "\n";
  } else {
    std::cout << "perplexity " << std::exp(mean) << " over " << scored << " tokens in windows of "
              << width << "\n";
  }
}

}  // namespace

void add_perplexity(CLI::App& app) {
  auto options = std::make_shared<Perplexity>();
  CLI::App* command = app.add_subcommand("perplexity", "how well the model predicts a text");
  add_model_options(*command, options->model);
  add_kv_option(*command, options->model);
  command->add_option("-f,--file", options->file,
                      "UTF-8 text (the bundled held-out text if not given)");
  command->add_option("--window", options->window, "tokens in a window")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options] { perplexity(*options); });
}

}  // namespace cli
