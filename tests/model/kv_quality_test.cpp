// SPDX-License-Identifier: Apache-2.0
// Proves that each kind of cache keeps the quality that docs/caches.md tells, on a part of the
// bundled model's held-out text: mean KL divergence of the probabilities from those with a float32
// cache, agreement of the most probable token, and perplexity. Bounds are some two times what is
// measured, for a retrained model; a scale or centroid that is a tenth off is outside them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include "base/cpu.h"
#include "engine/memory/host_memory.h"
#include "support/loaded_tiny.h"
#include "support/sanitized.h"

namespace gen::model {
namespace {

constexpr size_t kWindow = 384;

std::string demo(const char* name) {
  return std::string(GEN_TEST_SOURCE_DIR) + "/examples/demo_model/" + name;
}

struct Bounds {
  const char* kind;
  double divergence;  // nats, at most
  double agreement;   // share, at least
  double perplexity;  // times that of float32, at most
};
constexpr Bounds kBounds[] = {
    {"fp32", 0.0, 1.0, 1.0},    {"fp16", 2e-4, 0.985, 1.002}, {"fp8", 1.5e-3, 0.975, 1.005},
    {"q4", 8e-3, 0.965, 1.015}, {"q3", 3e-2, 0.945, 1.03},
};

/// In double precision, whatever made the logits.
std::vector<double> log_softmax(const float* logits, size_t n) {
  const double peak = static_cast<double>(*std::max_element(logits, logits + n));
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(logits[i]) - peak);
  std::vector<double> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<double>(logits[i]) - peak - std::log(sum);
  return out;
}

class KvQuality : public testing::Test {
 protected:
  void SetUp() override {
    auto file = gguf::GgufFile::open(demo("story.gguf"));
    ASSERT_TRUE(file.ok()) << file.status().message();
    LoadOptions options;
    options.engine = test::cpu_engine({.threads = 2});
    auto loaded = load_model(std::move(file).value(), options);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    loaded_ = std::move(loaded).value();
    std::ifstream text(demo("heldout.txt"), std::ios::binary);
    std::stringstream all;
    all << text.rdbuf();
    ASSERT_TRUE(loaded_->tokenizer->encode(all.str().substr(0, 8000), 0, &tokens_).ok());
  }

  /// Logits of all rows of a window through a cache of its own.
  std::vector<float> run(const char* kind, const std::vector<int32_t>& window) {
    const auto vocab = static_cast<int64_t>(loaded_->model->traits().vocab_size);
    auto cache = cache::make_cache(kind, loaded_->model->layer_shapes(),
                                   static_cast<int32_t>(kWindow), engine::system_memory());
    EXPECT_TRUE(cache.ok());
    test::OwnedBatch batch;
    EXPECT_TRUE(batch.add(*cache.value(), window).ok());
    EXPECT_TRUE(loaded_->model->forward(batch.finish(vocab)).ok());
    return batch.logits;
  }

  std::shared_ptr<const LoadedModel> loaded_;
  std::vector<int32_t> tokens_;
};

TEST_F(KvQuality, StaysWithinItsBounds) {
  const auto vocab = static_cast<size_t>(loaded_->model->traits().vocab_size);
  const size_t windows = test::kSanitized ? 1 : 4;
  ASSERT_GE(tokens_.size(), windows * kWindow);
  for (const Bounds& bounds : kBounds) {
    double divergence = 0;
    double agreements = 0;
    double log_ratio = 0;
    double rows = 0;
    for (size_t w = 0; w < windows; ++w) {
      std::vector<int32_t> window{loaded_->tokenizer->special(tokenizer::Special::kBos)};
      const auto from = tokens_.begin() + static_cast<std::ptrdiff_t>(w * kWindow);
      window.insert(window.end(), from, from + static_cast<std::ptrdiff_t>(kWindow - 1));
      const std::vector<float> reference = run("fp32", window);
      const std::vector<float> logits = run(bounds.kind, window);
      for (size_t row = 0; row + 1 < kWindow; ++row) {
        const std::vector<double> p = log_softmax(reference.data() + row * vocab, vocab);
        const std::vector<double> q = log_softmax(logits.data() + row * vocab, vocab);
        for (size_t i = 0; i < vocab; ++i) divergence += std::exp(p[i]) * (p[i] - q[i]);
        agreements += std::max_element(p.begin(), p.end()) - p.begin() ==
                              std::max_element(q.begin(), q.end()) - q.begin()
                          ? 1
                          : 0;
        const auto next = static_cast<size_t>(window[row + 1]);
        log_ratio += p[next] - q[next];
        rows += 1;
      }
    }
    SCOPED_TRACE(testing::Message()
                 << bounds.kind << ": divergence " << divergence / rows << ", agreement "
                 << agreements / rows << ", perplexity times " << std::exp(log_ratio / rows));
    RecordProperty(std::string(bounds.kind) + "_divergence", std::to_string(divergence / rows));
    EXPECT_LE(divergence / rows, bounds.divergence);
    EXPECT_GE(agreements / rows, bounds.agreement);
    EXPECT_LE(std::exp(log_ratio / rows), bounds.perplexity);
  }
}

}  // namespace
}  // namespace gen::model
