// SPDX-License-Identifier: Apache-2.0
// Fuzzes the path of an untrusted head that drafts: its GGUF file, its graphs beside a small model,
// and drafts of a whole call. Whatever the head guesses, the text is the model's. Seeds:
// head_seeds.py, heads of every form for the models below.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "generate/draft_choice.h"
#include "generate/loop/session.h"
#include "generate/request/call_params.h"
#include "generate/request/result.h"
#include "model/gguf/gguf_file.h"
#include "model/loader.h"
#include "support/cpu_engine.h"
#include "support/tiny_model.h"

namespace {

using gen::generate::DraftChoice;
using gen::generate::ModelInUse;

void require(bool condition) {
  if (!condition) std::abort();
}

void require_line(const gen::Status& status) {
  require(status.message()[0] != '\0');
  for (const char* at = status.message(); *at != '\0'; ++at) require(*at != '\n');
}

/// A model, for assistants of gemma4 one of that family.
struct Target {
  explicit Target(bool gemma) {
    gen::test::TinyModelSpec spec;
    spec.hidden = 32;
    spec.heads = 2;
    spec.kv_heads = 1;
    spec.feed_forward = 32;
    spec.vocab = 20;
    spec.context = 32;
    if (gemma) {
      spec.architecture = "gemma4";
      spec.window = 4;
      spec.local = {1, 0};
    }
    bytes = gen::test::TinyModel(spec).bytes();
    gen::model::LoadOptions options;
    options.engine = gen::test::cpu_engine();
    const auto loaded =
        gen::model::load_model(gen::gguf::GgufFile::parse(bytes).value(), options).value();
    model = {loaded->model, nullptr};
    for (size_t i = 0; i < std::size(kTemperatures); ++i) plain[i] = said(nullptr, i);
  }
  /// Of a call to the end of the context.
  [[nodiscard]] std::vector<int32_t> said(std::shared_ptr<gen::generate::Drafter> drafter,
                                          size_t temperature) const;

  static constexpr double kTemperatures[] = {0.0, 0.8};
  std::vector<std::byte> bytes;
  ModelInUse model;
  std::vector<int32_t> plain[std::size(kTemperatures)];
};

std::vector<int32_t> Target::said(std::shared_ptr<gen::generate::Drafter> drafter,
                                  size_t temperature) const {
  gen::generate::GeneratorOptions options;
  options.drafter = std::move(drafter);
  options.draft_policy.kind = gen::generate::DraftPolicy::Kind::kAlways;
  const auto generator =
      gen::generate::Generator::create(model.model, nullptr, std::move(options)).value();
  gen::generate::CallParams params;
  params.sampling.seed = 7;
  params.sampling.temperature = kTemperatures[temperature];
  params.stops.ignore_eos = true;
  const std::vector<int32_t> prompt = {3, 14, 15, 9, 2, 6};
  std::optional<gen::generate::GenResult> result;
  const gen::Status status =
      generator->generate({.text = {}, .tokens = prompt}, params, nullptr, nullptr, &result);
  require(status.ok() && result.has_value());
  return result->tokens;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Target llama(false);
  static const Target gemma(true);
  auto file = gen::gguf::GgufFile::parse(std::as_bytes(std::span(data, size)));
  if (!file.ok()) return 0;
  auto name = (*file)->metadata().get_string("general.architecture");
  const bool assistant = name.ok() && name.value() == "gemma4-assistant";
  const Target& target = assistant ? gemma : llama;
  auto head = gen::model::load_draft_head(std::move(file).value(),
                                           target.model.model->head_target().value(), false, true);
  if (!head.ok()) {
    require_line(head.status());
    return 0;
  }
  if (head.value() == nullptr) return 0;
  DraftChoice choice;
  choice.head = std::move(head).value();
  for (size_t i = 0; i < std::size(target.plain); ++i) {
    auto drafter = gen::generate::make_drafter(choice, target.model, {}, {});
    if (!drafter.ok()) {
      require_line(drafter.status());
      return 0;
    }
    require(target.said(std::move(drafter).value(), i) == target.plain[i]);
  }
  return 0;
}
