// SPDX-License-Identifier: Apache-2.0
// generate estimate: will it fit?
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "adapters.h"
#include "gguf_head.h"
#include "model_file.h"
#include "text_format.h"

namespace cli {
namespace {

struct Estimate {
  ModelChoice model;
  std::vector<std::string> lora;  // --lora
  uint64_t fit = 0;               // --fit, bytes; 0 for none
  bool json = false;
};

/// Of a device, and of a state, only models with one have something to show.
bool is_always_shown(std::string_view key) {
  return !key.starts_with("device_") && key != "snapshots";
}

/// Positions that the figures are for; null if the file does not say.
nlohmann::ordered_json context_of(const Estimate& choice, const std::string& path) {
  if (choice.model.max_seq_len > 0) return choice.model.max_seq_len;
  const auto head = read_gguf_head(path);
  if (!head) return nullptr;
  const auto family = head->metadata.value("general.architecture", nlohmann::ordered_json());
  if (!family.is_string()) return nullptr;
  const std::string key = family.get<std::string>() + ".context_length";
  return head->metadata.value(key, nlohmann::ordered_json());
}

MemoryEstimate estimate_of(const Estimate& choice, const std::string& path) {
  const ModelOptions options = make_model_options(choice.model);
  for (const std::string& text : choice.lora) {
    gen_error error;
    const std::string file = adapter_file(text).path;
    check_option("--lora", gen_model_options_set(options.get(), "adapter", file.c_str(), &error),
                 error);
  }
  const Options generator = make_options(choice.model);
  use_drafts(choice.model, generator.get(), false);
  return make_by_options<MemoryEstimate>(gen_estimate_memory, path.c_str(), options.get(),
                                         generator.get());
}

size_t figure(const MemoryEstimate& estimate, const char* key) {
  size_t bytes = 0;
  gen_error error;
  check(gen_memory_estimate_get(estimate.get(), key, &bytes, &error), error);
  return bytes;
}

/// The most positions that fit, as --ctx, at most the model's own. On a device its memory counts.
int32_t most_that_fit(Estimate choice, const std::string& path) {
  const nlohmann::ordered_json own = context_of(choice, path);
  if (!is_count(own)) {
    estimate_of(choice, path);  // says what is wrong with the file
    throw Failure(path + ": --fit: the file does not say the model's context");
  }
  const auto peak_of = [&](int32_t positions) {
    choice.model.max_seq_len = positions;
    const MemoryEstimate estimate = estimate_of(choice, path);
    const size_t device = figure(estimate, "device_peak");
    return device > 0 ? device : figure(estimate, "peak");
  };
  const auto whole = static_cast<int32_t>(
      std::min<uint64_t>(own.get<uint64_t>(), std::numeric_limits<int32_t>::max()));
  if (peak_of(whole) <= choice.fit) return whole;
  const size_t least = peak_of(1);
  if (least > choice.fit) {
    throw Failure("--fit " + size_text(choice.fit) + ": the model with one position takes " +
                  size_text(least));
  }
  int32_t fits = 1;
  int32_t beyond = whole;
  while (beyond - fits > 1) {
    const int32_t middle = fits + (beyond - fits) / 2;
    (peak_of(middle) <= choice.fit ? fits : beyond) = middle;
  }
  return fits;
}

/// Looks at the text before a unit is applied to it. Empty if nothing is wrong.
std::string fit_problem(const std::string& text) {
  const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const bool is_whole = end > 0 && (end == text.size() || text[end] != '.');
  if (is_whole && text.find_first_not_of('0') < end) return "";
  return "'" + text + "' is not a whole number above 0, of bytes or with a unit: 8G, 512M";
}

void estimate(Estimate choice) {
  const std::string path = find_file(choice.model.path, "story.gguf");
  if (choice.fit > 0) choice.model.max_seq_len = most_that_fit(choice, path);
  const MemoryEstimate found = estimate_of(choice, path);
  nlohmann::ordered_json figures;
  const nlohmann::ordered_json context = context_of(choice, path);
  figures["context"] = context;
  if (!choice.json && context.is_number()) {
    std::printf("context: %s positions\n", context.dump().c_str());
  }
  for (const char* key :
       {"peak", "weights", "cache", "snapshots", "workspace", "device_peak", "device_weights",
        "device_cache", "device_snapshots", "device_workspace", "mapped", "file"}) {
    const size_t bytes = figure(found, key);
    figures[key] = bytes;
    if (choice.json || (bytes == 0 && !is_always_shown(key))) continue;
    std::printf("%-16s %10.2f MiB\n", key, static_cast<double>(bytes) / (1 << 20));
  }
  if (choice.json) {
    std::cout << figures.dump() << "\n";
  } else if (choice.model.max_seq_len == 0) {
    std::cout << "for a full context of the model's own length: --ctx N and --kv TYPE change it\n";
  }
}

}  // namespace

void add_estimate(CLI::App& app) {
  auto choice = std::make_shared<Estimate>();
  CLI::App* command = app.add_subcommand(
      "estimate", "estimate the memory of a model and a full session, without loading the model");
  add_model_options(*command, choice->model, true);
  add_kv_option(*command, choice->model);
  add_draft_options(*command, choice->model);
  add_adapter_option(*command, choice->lora);
  command
      ->add_option(
          "--fit", choice->fit,
          "the most positions that fit so much memory, of a device for a model on one: 8G, "
          "512M or bytes")
      ->type_name("BYTES")
      ->transform(CLI::AsSizeValue(false))
      ->transform(CLI::Validator([](std::string& text) { return fit_problem(text); }, ""))
      ->excludes("--ctx");
  command->add_flag("--json", choice->json,
                    "print one JSON object, sizes in bytes, context in positions");
  command->callback([choice] { estimate(*choice); });
}

}  // namespace cli
