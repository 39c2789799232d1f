// SPDX-License-Identifier: Apache-2.0
// Models with heads for tests of drafts: of random weights, and such whose next token follows from
// the last one alone, with heads that see one half of their input and are right by it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/memory/host_memory.h"
#include "generate/cache_forms.h"
#include "generate/draft/head_drafter.h"
#include "model/draft_head.h"
#include "support/tiny_assistant.h"
#include "support/tiny_head.h"

namespace gen::generate {

enum class Head : int32_t {
  kRandom,    // and the model, too
  kToken,     // sees the token of a row: all of its drafts are right
  kBlock,     // is of random weights, and the model is not
  kFeatures,  // sees the features of a row: the first draft is right, and every other one is wrong
};

/// The token after `token` in the models that are not random. A cycle of all 50.
inline int32_t after(int32_t token) { return (21 * token + 17) % kFormsVocab; }

struct HeadModelSpec {
  const char* family = "exaone4";
  Head head = Head::kRandom;
  int32_t context = kFormsContext;
  int32_t blocks = 1;  // heads for as many tokens of a draft
  auto operator<=>(const HeadModelSpec&) const = default;
};

/// Blocks add nothing, so hidden states are embeddings, of which token t has a one at t.
inline std::vector<std::byte> known_file(test::TinyModelSpec spec, Head head) {
  constexpr size_t kWidth = 64;
  spec.draft_heads = true;
  test::TinyModel tiny(spec);
  auto image = tiny.writer().build();
  const auto set = [&](const std::string& name, const test::Floats& values) {
    std::memcpy(image.bytes.data() + image.at(name + ".data"), values.data(),
                values.size() * sizeof(float));
  };
  const auto clear = [&](const std::string& name, size_t n) { set(name, test::Floats(n, 0.0F)); };
  const auto vocab = static_cast<size_t>(spec.vocab);
  test::Floats table(vocab * kWidth);
  test::Floats next(table.size());
  test::Floats second(table.size());
  for (int32_t t = 0; t < spec.vocab; ++t) {
    const auto at = static_cast<size_t>(t);
    table[at * kWidth + at] = 1.0F;
    next[static_cast<size_t>(after(t)) * kWidth + at] = 1.0F;
    second[static_cast<size_t>(after(after(t))) * kWidth + at] = 1.0F;
  }
  set("token_embd.weight", table);
  set("output.weight", next);
  set("output_norm.weight", test::Floats(kWidth, 1.0F));
  for (int32_t i = 0; i < spec.layers + (head == Head::kBlock ? 0 : spec.draft_layers); ++i) {
    const std::string block = "blk." + std::to_string(i) + ".";
    if (tiny.attends(i)) clear(block + "attn_output.weight", kWidth * kWidth);
    if (tiny.has_recurrence(i)) {
      clear(block + "ssm_out.weight", kWidth * static_cast<size_t>(spec.inner));
    }
    clear(block + "ffn_down.weight", kWidth * static_cast<size_t>(spec.feed_forward));
  }
  if (head == Head::kBlock) return std::move(image.bytes);
  for (int32_t i = 0; i < spec.draft_layers; ++i) {
    const std::string block = "blk." + std::to_string(spec.layers + i) + ".nextn.";
    set(block + "enorm.weight", test::Floats(kWidth, 1.0F));
    set(block + "hnorm.weight", test::Floats(kWidth, 1.0F));
    test::Floats half(2 * kWidth * kWidth);
    for (size_t j = 0; j < kWidth; ++j) {
      half[j * 2 * kWidth + j + (head == Head::kFeatures ? kWidth : 0)] = 1.0F;
    }
    set(block + "eh_proj.weight", half);
    set(block + "shared_head_head.weight", head == Head::kFeatures ? second : next);
  }
  return std::move(image.bytes);
}

/// Such a model of gemma4, whose head is in a file beside it.
inline test::TinyModelSpec assisted_spec(int32_t context) {
  test::TinyModelSpec spec;
  spec.architecture = "gemma4";
  spec.layers = 3;
  spec.window = 9;
  spec.local = {1, 1, 0};
  spec.layer_input = 0;
  spec.logit_cap = 0.0F;
  spec.context = context;
  spec.vocab = kFormsVocab;
  return spec;
}

/// As known_file.
inline std::vector<std::byte> known_gemma(const test::TinyModelSpec& spec) {
  constexpr size_t kWidth = 64;
  test::TinyModel tiny(spec);
  auto image = tiny.writer().build();
  const auto set = [&](const std::string& name, const test::Floats& values) {
    std::memcpy(image.bytes.data() + image.at(name + ".data"), values.data(),
                values.size() * sizeof(float));
  };
  test::Floats table(static_cast<size_t>(spec.vocab) * kWidth);
  test::Floats next(table.size());
  for (int32_t t = 0; t < spec.vocab; ++t) {
    table[static_cast<size_t>(t) * kWidth + static_cast<size_t>(t)] = 1.0F;
    next[static_cast<size_t>(after(t)) * kWidth + static_cast<size_t>(t)] = 1.0F;
  }
  set("token_embd.weight", table);
  set("output.weight", next);
  set("output_norm.weight", test::Floats(kWidth, 1.0F));
  for (int32_t i = 0; i < spec.layers; ++i) {
    const std::string block = "blk." + std::to_string(i) + ".";
    set(block + "attn_output.weight", test::Floats(kWidth * kWidth, 0.0F));
    set(block + "ffn_down.weight",
        test::Floats(kWidth * static_cast<size_t>(spec.feed_forward), 0.0F));
  }
  return std::move(image.bytes);
}

/// Its assistant: of random weights, or with layers that add nothing and see one half of the input.
inline test::TinyAssistantSpec assistant_spec(Head head) {
  constexpr size_t kWidth = 64;
  test::TinyAssistantSpec spec;
  if (head == Head::kRandom || head == Head::kBlock) return spec;
  spec.hidden = kWidth;
  test::Floats half(2 * kWidth * kWidth);
  test::Floats same(kWidth * kWidth);
  test::Floats next(static_cast<size_t>(kFormsVocab) * kWidth);
  for (size_t i = 0; i < kWidth; ++i) {
    half[i * 2 * kWidth + i + (head == Head::kFeatures ? kWidth : 0)] = 1.0F;
    same[i * kWidth + i] = 1.0F;
  }
  for (int32_t t = 0; t < kFormsVocab; ++t) {
    const int32_t said = head == Head::kFeatures ? after(after(t)) : after(t);
    next[static_cast<size_t>(said) * kWidth + static_cast<size_t>(t)] = 1.0F;
  }
  spec.set = {{"token_embd.weight", next},
              {"nextn.pre_projection.weight", half},
              {"nextn.post_projection.weight", same},
              {"output_norm.weight", {1.0F}}};
  for (size_t i = 0; i < spec.local.size(); ++i) {
    const std::string block = "blk." + std::to_string(i) + ".";
    spec.set[block + "attn_output.weight"] = {0.0F};
    spec.set[block + "ffn_down.weight"] = {0.0F};
  }
  return spec;
}

/// Looks up drafts for some lengths of a text, of which so many are right.
class KnownLookup final : public Drafter {
 public:
  /// `trees`: beside each token is a wrong one, before it, wherever rows may have several children.
  explicit KnownLookup(bool trees = false) : trees_(trees) {}
  [[nodiscard]] int32_t max_rows() const noexcept override { return 6; }
  [[nodiscard]] int32_t max_proposed() const noexcept override { return 0; }
  std::unique_ptr<DraftState> begin() override { return std::make_unique<DraftState>(); }
  void look_up(std::span<DraftJob* const> jobs) override {
    for (DraftJob* const job : jobs) {
      const uint32_t drawn = static_cast<uint32_t>(job->tokens.size()) * 2654435761U >> 16;
      if (drawn % 2 != 0 || job->most < (trees_ ? 6 : 3)) continue;
      const auto right = static_cast<int32_t>(drawn / 2 % 3);
      looked += 1;
      wrong += right == 0 ? 1 : 0;
      int32_t token = job->tokens.back();
      int32_t parent = 0;
      for (int32_t depth = 0; depth < 3; ++depth) {
        const int32_t other = (after(token) + 1 + depth) % kFormsVocab;
        token = after(token);
        if (trees_ && job->branches) {
          job->tree.add(other, parent);
          branched += 1;
          if (depth == right) break;
        }
        parent = job->tree.add(depth == right ? other : token, parent);
      }
    }
  }
  int64_t looked = 0;
  int64_t wrong = 0;  // from the first token on
  int64_t branched = 0;

 private:
  const bool trees_;
};

/// Heads of files beside models.
inline std::map<const model::Model*, std::shared_ptr<const model::DraftHead>>& assistants() {
  static std::map<const model::Model*, std::shared_ptr<const model::DraftHead>> all;
  return all;
}

inline std::shared_ptr<const model::DraftHead> head_of(const model::Model& model) {
  const auto found = assistants().find(&model);
  return found != assistants().end() ? found->second : model.draft_head().value();
}

/// The model of a file; the same for the same spec.
inline std::shared_ptr<const model::Model> head_model(const HeadModelSpec& of) {
  static std::map<HeadModelSpec, std::unique_ptr<test::LoadedTiny>> models;
  std::unique_ptr<test::LoadedTiny>& loaded = models[of];
  if (loaded == nullptr && of.family == std::string("gemma4")) {
    static std::map<HeadModelSpec, std::vector<std::byte>> files;
    const test::TinyModelSpec spec = assisted_spec(of.context);
    const test::TinyModel tiny(spec);
    loaded = std::make_unique<test::LoadedTiny>(of.head == Head::kRandom ? tiny.bytes()
                                                                         : known_gemma(spec));
    files[of] = test::TinyAssistant(tiny, assistant_spec(of.head)).bytes();
    auto head = model::load_draft_head(gguf::GgufFile::parse(files[of]).value(),
                                       loaded->model().head_target().value(), false, true);
    EXPECT_TRUE(head.ok()) << head.status().message();
    assistants()[&loaded->model()] = std::move(head).value();
  }
  if (loaded == nullptr) {
    test::TinyModelSpec spec;
    spec.architecture = of.family;
    spec.draft_layers = of.blocks;
    spec.context = of.context;
    spec.vocab = kFormsVocab;
    loaded = std::make_unique<test::LoadedTiny>(
        of.head == Head::kRandom ? test::TinyModel(spec).bytes() : known_file(spec, of.head));
  }
  return {std::shared_ptr<void>(), &loaded->model()};
}

inline std::shared_ptr<HeadDrafter> head_drafter(
    const model::Model& model, int32_t most,
    engine::EngineMemory& memory = engine::system_memory()) {
  HeadDrafter::Options options;
  options.most = most;
  options.vocab = model.traits().vocab_size;
  options.context = model.traits().max_seq_len;
  options.memory = &memory;
  auto made = HeadDrafter::create(head_of(model), options);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made).value();
}

struct HeadGenerator {
  CacheForm form = {};
  int32_t chunk = 8;
  int32_t max_sequences = 8;
  std::shared_ptr<Drafter> drafter = nullptr;
  engine::EngineMemory* memory = nullptr;  // of caches; null: the host's
  DraftPolicy policy = {};
  std::optional<int32_t> keep = std::nullopt;  // full contexts shift, and keep so many tokens
};

inline std::shared_ptr<const Generator> head_generator(
    const std::shared_ptr<const model::Model>& model, HeadGenerator of) {
  GeneratorOptions options;
  options.draft_policy = std::move(of.policy);
  options.shift_context = of.keep.has_value();
  options.context_keep = of.keep.value_or(0);
  options.prefill_chunk = of.chunk;
  options.max_sequences = of.max_sequences;
  options.drafter = std::move(of.drafter);
  set_caches(&options, of.form, model->layer_shapes(),
             of.memory != nullptr ? *of.memory : engine::system_memory());
  std::vector<std::string> pieces;
  for (int32_t i = 0; i < kFormsVocab - 2; ++i) {
    pieces.push_back(std::string(1, static_cast<char>('a' + i % 26)));
  }
  auto made = Generator::create(model, std::make_shared<test::FakeTokenizer>(pieces), options);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made).value();
}

inline GenResult answer_of(Session& session, const Tokens& prompt, const CallParams& params) {
  std::optional<GenResult> result;
  const Status status =
      session.generate({.text = {}, .tokens = prompt}, params, nullptr, nullptr, &result);
  EXPECT_TRUE(status.ok()) << status.message();
  return result.has_value() ? std::move(*result) : GenResult();
}

inline CallParams greedy_call(int32_t n) {
  CallParams params = params_of(n);
  params.sampling.temperature = 0.0;
  return params;
}

}  // namespace gen::generate
