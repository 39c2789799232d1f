// SPDX-License-Identifier: Apache-2.0
// Direct passes of a recurrent model: whatever pass of a call fails, cache and state are as they
// were and go on with the bits of a new sequence; a call of one pass runs on the state itself.
#include <gtest/gtest.h>

#include <vector>

#include "generate/forward.h"
#include "support/loaded_tiny.h"

namespace gen::generate {
namespace {

const std::vector<int32_t> kTokens = {3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9, 32, 38, 46, 26, 43};

/// A model whose passes take four rows of a prompt, and fail from a call on.
class FailingModel final : public model::Model {
 public:
  explicit FailingModel(const model::Model& inner) : inner_(inner), traits_(inner.traits()) {
    traits_.prompt_rows = 4;
    traits_.max_batch_rows = 4;
  }
  const model::ModelTraits& traits() const noexcept override { return traits_; }
  std::span<const cache::LayerShape> layer_shapes() const noexcept override {
    return inner_.layer_shapes();
  }
  Result<std::unique_ptr<cache::SequenceState>> new_sequence_state() const override {
    return inner_.new_sequence_state();
  }
  Status forward(const graph::Batch& batch) const override {
    GEN_TRY(inner_.forward(batch));
    return passes_left-- > 0 ? Status() : Status(Code::kModel, "failed on purpose");
  }
  Result<size_t> memory(std::string_view key) const override { return inner_.memory(key); }

  mutable int32_t passes_left = 1000;

 private:
  const model::Model& inner_;
  model::ModelTraits traits_;
};

class ForwardStates : public ::testing::Test {
 protected:
  static test::TinyModelSpec spec() {
    test::TinyModelSpec spec;
    spec.architecture = "qwen35";
    return spec;
  }
  Result<std::vector<float>> run(size_t first, size_t n) {
    GEN_ASSIGN(TrialSequence trial, try_sequence(model, cache::CacheTrial(*cache), state.get()));
    GEN_ASSIGN(std::vector<float> row,
               forward_one(model, std::span(kTokens).subspan(first, n), trial));
    static_cast<void>(trial.cache.keep());
    made = trial.made.get();
    if (trial.made != nullptr) state = std::move(trial.made);
    return row;
  }

  const test::LoadedTiny tiny{test::TinyModel(spec())};
  const FailingModel model{tiny.model()};
  std::unique_ptr<cache::KvCache> cache = tiny.cache();
  std::unique_ptr<cache::SequenceState> state;
  const cache::SequenceState* made = nullptr;  // by the last run
};

TEST_F(ForwardStates, AFailingPassChangesNothing) {
  const auto own_cache = tiny.cache();
  const auto own_state = tiny.state();
  const std::vector<float> all = tiny.feed(*own_cache, kTokens, own_state.get());
  const std::vector<float> want(all.end() - tiny.vocab(), all.end());
  for (int32_t passes = 0; passes < 3; ++passes) {
    cache = tiny.cache();
    state.reset();
    model.passes_left = 1000;
    ASSERT_TRUE(run(0, 5).ok());
    model.passes_left = passes;
    EXPECT_EQ(run(5, 11).status().code(), Code::kModel);
    EXPECT_EQ(cache->length(), 5);
    EXPECT_EQ(state->length(), 5);
    model.passes_left = 1000;
    const auto row = run(5, 11);
    ASSERT_TRUE(row.ok()) << row.status().message();
    EXPECT_EQ(row.value(), want) << passes;
  }
}

TEST_F(ForwardStates, OnePassTakesNoCopy) {
  ASSERT_TRUE(run(0, 4).ok());
  EXPECT_NE(made, nullptr);
  for (size_t at = 4; at < 8; ++at) {
    const cache::SequenceState* const before = state.get();
    ASSERT_TRUE(run(at, 1).ok());
    EXPECT_EQ(made, nullptr);
    EXPECT_EQ(state.get(), before);
  }
  ASSERT_TRUE(run(8, 5).ok());
  EXPECT_NE(made, nullptr);
}

}  // namespace
}  // namespace gen::generate
