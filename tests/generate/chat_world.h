// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of chat sessions: models whose answers depend on every earlier token, with a
// vocabulary in which each text has a unique tokenization.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "generate/cache_forms.h"
#include "generate/chat_session.h"
#include "generate/fake_world.h"

namespace gen::generate {

using chat::ChatMessage;
using chat::Conversation;

// One token per character, so that tokenization is unique; and the bytes of U+00E9 and U+FFFD.
inline const Strings& pieces() {
  static const Strings all = [] {
    Strings made;
    for (const char c : std::string("abcdefghijklmnopqrstuvwxyz0123456789 :\n+-AB")) {
      made.emplace_back(1, c);
    }
    for (const char* const byte : {"\xC3", "\xA9", "\xEF", "\xBF", "\xBD"}) made.emplace_back(byte);
    EXPECT_EQ(made.size() + 2, static_cast<size_t>(kFormsVocab));
    return made;
  }();
  return all;
}

enum class Kind : int32_t { kStop, kShift, kShiftAnew, kNoCut, kOneWay, kTiny, kDrift, kCount };

/// A model and a generator.
struct Place {
  Place(Kind which, int32_t context, int32_t chunk, int32_t keep)
      : kind(which), model(std::make_shared<FakeModel>(kFormsVocab, context)) {
    GeneratorOptions options;
    options.prefill_chunk = chunk;
    options.max_seq_len = context;
    options.shift_context = kind == Kind::kShift || kind == Kind::kShiftAnew;
    options.context_keep = keep;
    const auto tokenizer = std::make_shared<FakeTokenizer>(pieces());
    if (is_tiny()) {
      const FormsPlace place = forms_place(false, kind == Kind::kDrift);
      options.snapshot_every = keep + 1;  // of kDrift
      set_caches(&options, CacheForm(), place.model.layer_shapes(), place.memory);
      const std::shared_ptr<const model::Model> tiny(std::shared_ptr<void>(), &place.model);
      generator = Generator::create(tiny, tokenizer, options).value();
      return;
    }
    model->stateful = kind == Kind::kOneWay;
    model->mutable_traits().can_truncate = !model->stateful;
    model->mutable_traits().can_shift = kind == Kind::kShift;
    model->spoil_logits = [](std::span<const int32_t>, float* logits) {
      logits[FakeTokenizer::kBos] = logits[47] = logits[48] = logits[49] = -9.0F;
      logits[FakeTokenizer::kEos] += 2.5F;
      logits[45] += 1.0F;  // bytes of a character
      logits[46] += 1.0F;
      logits[6] += 2.0F;  // "e"
    };
    options.cache_factory = [which](std::span<const cache::LayerShape>,
                                    int32_t capacity) -> Result<std::unique_ptr<cache::KvCache>> {
      auto made = std::make_unique<FakeCache>(capacity, which != Kind::kNoCut);
      made->can_shift = which == Kind::kShift;
      return std::unique_ptr<cache::KvCache>(std::move(made));
    };
    generator = Generator::create(model, tokenizer, options).value();
  }
  /// A small model of random weights.
  [[nodiscard]] bool is_tiny() const { return kind == Kind::kTiny || kind == Kind::kDrift; }

  Kind kind;
  std::shared_ptr<FakeModel> model;  // not used if it is tiny
  std::shared_ptr<const Generator> generator;
};

}  // namespace gen::generate
