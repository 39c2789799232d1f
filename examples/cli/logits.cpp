// SPDX-License-Identifier: Apache-2.0
// generate logits: the most probable next tokens at each position of a token sequence.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "model_file.h"
#include "option_help.h"

namespace cli {
namespace {

constexpr size_t kPassRows = 128;  // positions in one forward pass

struct Logits {
  ModelChoice model;
  std::vector<int32_t> tokens;
  int32_t top = 10;
  bool json = false;
};

/// [[id, probability], …], most probable first.
nlohmann::json top_of(const float* logits, size_t vocab, size_t top) {
  const float peak = *std::max_element(logits, logits + vocab);
  double sum = 0;
  for (size_t i = 0; i < vocab; ++i) sum += std::exp(static_cast<double>(logits[i] - peak));
  std::vector<size_t> order(vocab);
  std::iota(order.begin(), order.end(), size_t{0});
  top = std::min(top, vocab);
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(top), order.end(),
      [&](size_t a, size_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  auto list = nlohmann::json::array();
  for (size_t i = 0; i < top; ++i) {
    list.push_back({order[i], std::exp(static_cast<double>(logits[order[i]] - peak)) / sum});
  }
  return list;
}

void logits(const Logits& options) {
  const Model model = load_model(options.model);
  const auto vocab =
      static_cast<size_t>(gen_model_config_vocab_size(gen_model_get_config(model.get())));
  const auto count = options.tokens.size();
  const Cache cache = make_cache(model, options.model, static_cast<int32_t>(count));
  kv_cache* caches[] = {cache.get()};
  std::vector<float> values(std::min(count, kPassRows) * vocab);
  auto top = nlohmann::json::array();
  gen_error error;
  for (size_t begin = 0; begin < count; begin += kPassRows) {
    const size_t rows = std::min(kPassRows, count - begin);
    check(gen_model_forward_batch(model.get(), options.tokens.data() + begin, nullptr, nullptr,
                                  rows, caches, 1, values.data(), values.size(), &error),
          error);
    for (size_t row = 0; row < rows; ++row) {
      top.push_back(top_of(values.data() + row * vocab, vocab, static_cast<size_t>(options.top)));
    }
  }
  if (options.json) {
    std::cout << nlohmann::json{{"top", top}}.dump() << "\n";
    return;
  }
  for (size_t position = 0; position < count; ++position) {
    std::cout << position << ":";
    for (const auto& entry : top[position]) {
      std::cout << " " << entry[0] << " (" << entry[1].get<double>() << ")";
    }
    std::cout << "\n";
  }
}

}  // namespace

void add_logits(CLI::App& app) {
  auto options = std::make_shared<Logits>();
  CLI::App* command = app.add_subcommand("logits", "probabilities of the next token");
  add_model_options(*command, options->model);
  add_kv_option(*command, options->model);
  command->add_option("--tokens", options->tokens, "token ids, separated by commas")
      ->required()
      ->delimiter(',')
      ->check([](const std::string& text) {
        const bool digits =
            !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
        return digits ? std::string() : "'" + text + "' is not a token id";
      });
  takes_count(command->add_option("--top", options->top, "how many tokens to show"), 0)
      ->capture_default_str();
  command->add_flag("--json", options->json, "print {\"top\":[[[id,prob],…] per position]}");
  command->callback([options] { logits(*options); });
}

}  // namespace cli
