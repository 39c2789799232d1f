// SPDX-License-Identifier: Apache-2.0
// Fuzzes the path of an untrusted head that drafts: its GGUF file, its graphs beside a small model,
// and drafts of a whole call. Whatever the head guesses, the text is the model's. Seeds:
// head_seeds.py, heads of every form for the model below.
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

const ModelInUse& target() {
  static const std::vector<std::byte> bytes = [] {
    gen::test::TinyModelSpec spec;
    spec.hidden = 32;
    spec.heads = 2;
    spec.kv_heads = 1;
    spec.feed_forward = 32;
    spec.vocab = 20;
    spec.context = 32;
    return gen::test::TinyModel(spec).bytes();
  }();
  static const ModelInUse made = [] {
    gen::model::LoadOptions options;
    options.engine = gen::test::cpu_engine();
    const auto loaded =
        gen::model::load_model(gen::gguf::GgufFile::parse(bytes).value(), options).value();
    return ModelInUse{loaded->model, nullptr};
  }();
  return made;
}

/// Of a call to the end of the context.
std::vector<int32_t> said(std::shared_ptr<gen::generate::Drafter> drafter, double temperature) {
  gen::generate::GeneratorOptions options;
  options.drafter = std::move(drafter);
  options.draft_policy.kind = gen::generate::DraftPolicy::Kind::kAlways;
  const auto generator =
      gen::generate::Generator::create(target().model, nullptr, std::move(options)).value();
  gen::generate::CallParams params;
  params.sampling.seed = 7;
  params.sampling.temperature = temperature;
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
  constexpr double kTemperatures[] = {0.0, 0.8};
  static const std::vector<int32_t> plain[] = {said(nullptr, kTemperatures[0]),
                                               said(nullptr, kTemperatures[1])};
  auto file = gen::gguf::GgufFile::parse(std::as_bytes(std::span(data, size)));
  if (!file.ok()) return 0;
  auto head = gen::model::load_draft_head(std::move(file).value(),
                                          target().model->head_target().value(), false, true);
  if (!head.ok()) {
    require_line(head.status());
    return 0;
  }
  if (head.value() == nullptr) return 0;
  DraftChoice choice;
  choice.head = std::move(head).value();
  for (size_t i = 0; i < std::size(plain); ++i) {
    auto drafter = gen::generate::make_drafter(choice, target(), {}, {});
    if (!drafter.ok()) {
      require_line(drafter.status());
      return 0;
    }
    require(said(std::move(drafter).value(), kTemperatures[i]) == plain[i]);
  }
  return 0;
}
