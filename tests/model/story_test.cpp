// SPDX-License-Identifier: Apache-2.0
// Proves that the bundled models are read right, end to end: what they were trained on is far
// likelier than chance, and what they write is text. Figures are loose, so that retraining them
// needs no change here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include "base/cpu.h"
#include "cache/sequence/registry.h"
#include "engine/backend/registry.h"
#include "engine/memory/host_memory.h"
#include "model/loader.h"

namespace gen::model {
namespace {

std::string demo(const char* name) {
  return std::string(GEN_TEST_SOURCE_DIR) + "/examples/demo_model/" + name;
}

class Teller {
 public:
  explicit Teller(const char* name) { load(name); }

  void load(const char* name) {
    auto file = gguf::GgufFile::open(demo(name));
    ASSERT_TRUE(file.ok()) << file.status().message();
    engine::EngineOptions engine_options;
    engine_options.pool = ThreadPool::create(2).value();
    engine_options.cpu_level = detect_cpu_level();
    LoadOptions options;
    options.engine = engine::create_engine("cpu", engine_options).value();
    options.check_tensors = true;
    auto loaded = load_model(std::move(file).value(), options);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    loaded_ = std::move(loaded).value();
    ASSERT_NE(loaded_->tokenizer, nullptr);
    cache_ = cache::make_cache("fp16", loaded_->model->layer_shapes(), 512, engine::system_memory())
                 .value();
  }

  /// Logits of all rows.
  std::vector<float> forward(std::span<const int32_t> tokens) {
    graph::BatchSequence sequence;
    sequence.cache = cache_.get();
    const auto count = static_cast<int32_t>(tokens.size());
    sequence.plan = cache_->plan(count).value();
    sequence.n_rows = count;
    std::vector<int32_t> positions;
    for (int32_t i = 0; i < count; ++i) positions.push_back(sequence.plan.start + i);
    const std::vector<uint8_t> wants(tokens.size(), 1);
    std::vector<float> logits(tokens.size() * vocab());
    graph::Batch batch;
    batch.tokens = tokens;
    batch.positions = positions;
    batch.wants = wants;
    batch.sequences = {&sequence, 1};
    batch.logits = logits.data();
    batch.logits_rows = tokens.size();
    const Status status = loaded_->model->forward(batch);
    EXPECT_TRUE(status.ok()) << status.message();
    cache_->commit(sequence.plan);
    return logits;
  }
  [[nodiscard]] size_t vocab() const {
    return static_cast<size_t>(loaded_->model->traits().vocab_size);
  }
  [[nodiscard]] const tokenizer::Tokenizer& tokenizer() const { return *loaded_->tokenizer; }

 private:
  std::shared_ptr<const LoadedModel> loaded_;
  std::unique_ptr<cache::KvCache> cache_;
};

/// Mean negative log likelihood of a token of the held-out text.
double held_out_loss(Teller& teller) {
  std::ifstream stream(demo("heldout.txt"));
  std::stringstream text;
  text << stream.rdbuf();
  EXPECT_GT(text.str().size(), 2000U);
  std::vector<int32_t> tokens;
  EXPECT_TRUE(
      teller.tokenizer().encode(text.str().substr(0, 1500), tokenizer::kAddBos, &tokens).ok());
  tokens.resize(std::min<size_t>(tokens.size(), 300));
  const std::vector<float> logits = teller.forward(tokens);
  double loss = 0.0;
  for (size_t t = 0; t + 1 < tokens.size(); ++t) {
    const float* row = logits.data() + t * teller.vocab();
    double sum = 0.0;
    for (size_t i = 0; i < teller.vocab(); ++i) sum += std::exp(static_cast<double>(row[i]));
    loss += std::log(sum) - static_cast<double>(row[static_cast<size_t>(tokens[t + 1])]);
  }
  return loss / static_cast<double>(tokens.size() - 1);
}

TEST(Story, HeldOutTextIsLikely) {
  Teller story("story.gguf");
  Teller draft("draft.gguf");
  const double story_loss = held_out_loss(story);
  const double draft_loss = held_out_loss(draft);
  RecordProperty("story", std::to_string(story_loss));
  RecordProperty("draft", std::to_string(draft_loss));
  const double chance = std::log(static_cast<double>(story.vocab()));
  EXPECT_LT(story_loss, 0.5 * chance);
  EXPECT_LT(story_loss, draft_loss);
  EXPECT_LT(draft_loss, chance);
}

TEST(Story, GoesOnInWords) {
  Teller story("story.gguf");
  std::vector<int32_t> tokens;
  ASSERT_TRUE(story.tokenizer().encode("Once upon a time", tokenizer::kAddBos, &tokens).ok());
  std::vector<float> logits = story.forward(tokens);
  std::vector<int32_t> said;
  for (int i = 0; i < 40; ++i) {
    const auto last = logits.end() - static_cast<std::ptrdiff_t>(story.vocab());
    const auto best = static_cast<int32_t>(std::max_element(last, logits.end()) - last);
    said.push_back(best);
    logits = story.forward({&said.back(), 1});
  }
  std::string text;
  ASSERT_TRUE(story.tokenizer().decode(said, false, &text).ok());
  RecordProperty("text", text);
  EXPECT_GE(std::count(text.begin(), text.end(), ' '), 10) << text;
  for (const char c : text) EXPECT_TRUE(c == '\n' || c >= ' ') << text;
}

}  // namespace
}  // namespace gen::model
