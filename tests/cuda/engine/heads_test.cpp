// SPDX-License-Identifier: Apache-2.0
// Heads on the CUDA engine: weights are quantised, so that texts, log-probabilities and drafts are
// the CPU's to the bit; and what a head has seen moves between engines in saved sessions.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "cuda/engine/tested_engine.h"
#include "generate/head_world.h"

namespace gen::generate {
namespace {

/// A head whose drafts are kept.
class KeptDrafts final : public Drafter {
 public:
  KeptDrafts(const model::Model& model, engine::EngineMemory& memory)
      : head_(head_drafter(model, 2, memory)) {}
  [[nodiscard]] int32_t max_rows() const noexcept override { return head_->max_rows(); }
  std::unique_ptr<DraftState> begin() override { return head_->begin(); }
  Result<std::unique_ptr<DraftState>> restore(std::span<const int32_t> text,
                                              const SavedHead& saved) override {
    return head_->restore(text, saved);
  }
  [[nodiscard]] std::span<const int32_t> taps() const noexcept override { return head_->taps(); }
  void observe(std::span<const ObservedRows> rows) override { head_->observe(rows); }
  void propose(std::span<DraftJob* const> jobs) override {
    head_->propose(jobs);
    for (const DraftJob* const job : jobs) {
      EXPECT_EQ(job->failures, 0);
      drafts.insert(drafts.end(), job->tree.tokens().begin(), job->tree.tokens().end());
    }
  }
  Tokens drafts;

 private:
  const std::shared_ptr<HeadDrafter> head_;
};

/// A model on an engine, alone or with its last layer and its head on it, and its drafts.
struct Side {
  Side(const test::TinyModel& tiny, const std::shared_ptr<engine::Engine>& engine, int32_t layers)
      : loaded(tiny, options_of(engine, layers)),
        drafter(std::make_shared<KeptDrafts>(loaded.model(), engine->memory())) {
    HeadGenerator of;
    of.drafter = drafter;
    of.memory = &engine->memory();
    model = {std::shared_ptr<void>(), &loaded.model()};
    with = head_generator(model, of);
    of.drafter = nullptr;
    without = head_generator(model, of);
  }
  static test::TinyEngineOptions options_of(const std::shared_ptr<engine::Engine>& engine,
                                            int32_t layers) {
    test::TinyEngineOptions options;
    options.engine = engine;
    if (layers >= 0) {
      options.host = test::cpu_engine();
      options.on_device = {layers, layers};
    }
    return options;
  }
  Said said(Session& session, const Tokens& prompt) const {
    drafter->drafts.clear();
    return say(session, prompt, 8);
  }
  test::LoadedTiny loaded;
  std::shared_ptr<KeptDrafts> drafter;
  std::shared_ptr<const model::Model> model;
  std::shared_ptr<const Generator> with;
  std::shared_ptr<const Generator> without;
};

class CudaHeads : public testing::TestWithParam<const char*> {};

TEST_P(CudaHeads, DraftAsOnTheCpu) {
  test::TinyModelSpec spec;
  spec.architecture = GetParam();
  spec.draft_layers = 1;
  spec.vocab = kFormsVocab;
  spec.context = kFormsContext;
  spec.type = DType::kQ8_0;
  const test::TinyModel tiny(spec);
  Side cpu(tiny, test::cpu_engine(), -1);
  const auto session = cpu.with->new_session().value();
  const Said want = cpu.said(*session, text_of(1, 7));
  const Tokens drafts = cpu.drafter->drafts;
  EXPECT_GE(drafts.size(), 8U);
  EXPECT_EQ(say(*cpu.without->new_session().value(), text_of(1, 7), 8), want);
  const std::vector<std::byte> state = state_of(*session);
  const Said more = cpu.said(*session, text_of(2, 2));
  const Tokens drafts_of_more = cpu.drafter->drafts;

  const auto engine = test::cuda_engine();
  for (const int32_t layers : {-1, 1}) {
    SCOPED_TRACE(layers);
    Side cuda(tiny, engine, layers);
    const auto there = cuda.with->new_session().value();
    EXPECT_EQ(cuda.said(*there, text_of(1, 7)), want);
    EXPECT_EQ(cuda.drafter->drafts, drafts);
    const auto moved = cuda.with->new_session().value();
    ASSERT_TRUE(moved->load(state).ok());
    EXPECT_EQ(cuda.said(*moved, text_of(2, 2)), more);
    EXPECT_EQ(cuda.drafter->drafts, drafts_of_more);
    if (layers >= 0) continue;
    const auto back = cpu.with->new_session().value();
    ASSERT_TRUE(back->load(state_of(*there)).ok());
    EXPECT_EQ(cpu.said(*back, text_of(2, 2)), more);
    EXPECT_EQ(cpu.drafter->drafts, drafts_of_more);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, CudaHeads, testing::Values("exaone4", "qwen35", "step35"));

}  // namespace
}  // namespace gen::generate
