// SPDX-License-Identifier: Apache-2.0
// generate perplexity: exp of the mean negative log-probability of a text's tokens. The text is
// split into windows of --window tokens, each evaluated on its own after a begin-of-sequence token
// (if the model has one); every token with a predecessor counts. With --against the same windows
// are evaluated with a second cache, and the distance of the probabilities is shown.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model_file.h"
#include "progress_bar.h"
#include "text_file.h"
#include "text_format.h"

namespace cli {
namespace {

constexpr size_t kRows = 128;

struct Perplexity {
  ModelChoice model;
  std::string file;
  std::string against;  // a kind of cache, empty for none
  int32_t window = 512;
  bool has_window = false;  // --window was given
  bool json = false;
};

/// Log-probabilities are the logits minus this.
double log_sum(const float* logits, size_t vocab) {
  const float peak = *std::max_element(logits, logits + vocab);
  double sum = 0;
  for (size_t i = 0; i < vocab; ++i) sum += std::exp(static_cast<double>(logits[i] - peak));
  return static_cast<double>(peak) + std::log(sum);
}

/// Sums over the tokens scored so far.
struct Scores {
  size_t tokens = 0;
  double log_probability = 0;
  double divergence = 0;  // Kullback-Leibler, of the other cache's probabilities from these
  size_t agreements = 0;  // of the most probable token
};

void compare(const float* logits, const float* reference, size_t vocab, Scores* scores) {
  const double own = log_sum(logits, vocab);
  const double its = log_sum(reference, vocab);
  for (size_t i = 0; i < vocab; ++i) {
    const double log_p = static_cast<double>(reference[i]) - its;
    const double log_q = static_cast<double>(logits[i]) - own;
    scores->divergence += std::exp(log_p) * (log_p - log_q);
  }
  const bool same = std::max_element(logits, logits + vocab) - logits ==
                    std::max_element(reference, reference + vocab) - reference;
  if (same) ++scores->agreements;
}

/// A window through one kind of cache, [kRows, vocab] logits at a time.
class Pass {
 public:
  Pass(const Model& model, const ModelChoice& choice, const std::vector<int32_t>& window,
       size_t vocab)
      : model_(model),
        window_(window),
        cache_(make_cache(model, choice, static_cast<int32_t>(window.size()))),
        logits_(kRows * vocab) {}

  const float* run(size_t begin, size_t rows) {
    kv_cache* caches[] = {cache_.get()};
    gen_error error;
    check(gen_model_forward_batch(model_.get(), window_.data() + begin, nullptr, nullptr, rows,
                                  caches, 1, logits_.data(), logits_.size(), &error),
          error);
    return logits_.data();
  }

 private:
  const Model& model_;
  const std::vector<int32_t>& window_;
  Cache cache_;
  std::vector<float> logits_;
};

/// Scores window[1…].
void score_window(const Model& model, const Perplexity& options, const std::vector<int32_t>& window,
                  size_t vocab, Scores* scores) {
  Pass pass(model, options.model, window, vocab);
  std::unique_ptr<Pass> reference;
  if (!options.against.empty()) {
    ModelChoice choice = options.model;
    choice.kv = options.against;
    reference = std::make_unique<Pass>(model, choice, window, vocab);
  }
  for (size_t begin = 0; begin + 1 < window.size(); begin += kRows) {
    const size_t rows = std::min(kRows, window.size() - 1 - begin);
    const float* logits = pass.run(begin, rows);
    const float* others = reference != nullptr ? reference->run(begin, rows) : nullptr;
    for (size_t row = 0; row < rows; ++row) {
      const float* own = logits + row * vocab;
      const auto next = static_cast<size_t>(window[begin + row + 1]);
      scores->log_probability += static_cast<double>(own[next]) - log_sum(own, vocab);
      if (others != nullptr) compare(own, others + row * vocab, vocab, scores);
    }
    scores->tokens += rows;
  }
}

void print(const Perplexity& options, const Scores& scores, size_t window) {
  const auto tokens = static_cast<double>(scores.tokens);
  const double mean = -scores.log_probability / tokens;
  const double divergence = scores.divergence / tokens;
  const double agreement = static_cast<double>(scores.agreements) / tokens;
  if (options.json) {
    nlohmann::ordered_json json{{"perplexity", std::exp(mean)},
                                {"nll_per_token", mean},
                                {"tokens", scores.tokens},
                                {"window", window}};
    if (!options.against.empty()) {
      json["against"] = options.against;
      json["kl_divergence"] = divergence;
      json["top1_agreement"] = agreement;
    }
    std::cout << json.dump() << "\n";
    return;
  }
  std::cout << "perplexity " << std::exp(mean) << " over " << scores.tokens
            << " tokens in windows of " << window << "\n";
  if (options.against.empty()) return;
  std::cout << "against " << options.against << ": KL divergence " << format("%.3g", divergence)
            << " nats a token, top-1 agreement " << format("%.2f %%", 100 * agreement) << "\n";
}

void perplexity(const Perplexity& options) {
  const Model model = load_model(options.model);
  const gen_model_config* config = gen_model_get_config(model.get());
  const auto vocab = static_cast<size_t>(gen_model_config_vocab_size(config));
  const int32_t most = gen_model_config_max_seq_len(config);
  if (options.has_window && options.window > most) {
    throw Failure("--window " + std::to_string(options.window) + " above " + std::to_string(most) +
                  ", the model's context");
  }
  const std::vector<int32_t> tokens = tokens_of_file(model, find_file(options.file, "heldout.txt"));
  const auto width = static_cast<size_t>(std::min(options.window, most));
  const std::vector<int32_t> before = tokens_before(model);
  if (width < 2 || width <= before.size()) {
    throw Failure("a context of " + std::to_string(most) + " has no token that others precede");
  }
  const size_t fresh = width - before.size();
  if (tokens.size() < 2) throw Failure("the text has fewer than 2 tokens");

  Scores scores;
  {
    ProgressBar bar("scoring");
    for (size_t begin = 0; begin < tokens.size(); begin += fresh) {
      const size_t end = std::min(begin + fresh, tokens.size());
      std::vector<int32_t> window = before;
      window.insert(window.end(), tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                    tokens.begin() + static_cast<std::ptrdiff_t>(end));
      score_window(model, options, window, vocab, &scores);
      bar.update(static_cast<double>(end) / static_cast<double>(tokens.size()));
    }
  }
  print(options, scores, width);
}

}  // namespace

void add_perplexity(CLI::App& app) {
  auto options = std::make_shared<Perplexity>();
  CLI::App* command = app.add_subcommand("perplexity", "how well the model predicts a text");
  add_model_options(*command, options->model);
  add_kv_option(*command, options->model);
  command->add_option("-f,--file", options->file,
                      "UTF-8 text (the bundled held-out text if not given)");
  command
      ->add_option("--against", options->against,
                   "compare with this kind of cache: KL divergence and top-1 agreement")
      ->check(kv_problem);
  command->add_option("--window", options->window, "tokens per window, at most the model's context")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options, command] {
    options->has_window = command->count("--window") > 0;
    perplexity(*options);
  });
}

}  // namespace cli
