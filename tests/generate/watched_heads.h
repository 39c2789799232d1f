// SPDX-License-Identifier: Apache-2.0
// WatchedHeads: a HeadDrafter whose drafts are compared with those of a head that begins anew with
// the whole text: the model runs all of its rows at once, then the head, in caches of their own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "generate/head_world.h"

namespace gen::generate {

class WatchedHeads final : public Drafter {
 public:
  /// `whole`: each text was seen from its beginning; otherwise there is nothing to compare.
  WatchedHeads(std::shared_ptr<const model::Model> model, int32_t most, bool whole = true)
      : model_(std::move(model)),
        head_(head_of(*model_)),
        drafter_(head_drafter(*model_, most)),
        whole_(whole) {}

  [[nodiscard]] int32_t max_rows() const noexcept override { return drafter_->max_rows(); }
  std::unique_ptr<DraftState> begin() override { return drafter_->begin(); }
  [[nodiscard]] std::span<const int32_t> taps() const noexcept override { return drafter_->taps(); }
  void observe(std::span<const ObservedRows> rows) override { drafter_->observe(rows); }
  void propose(std::span<DraftJob* const> jobs) override {
    drafter_->propose(jobs);
    for (const DraftJob* const job : jobs) {
      if (!whole_ || job->draw != nullptr || job->matcher != nullptr) continue;
      const auto got = job->tree.tokens().subspan(1);
      const Tokens want = drafted({job->tokens.begin(), job->tokens.end()}, got.size());
      EXPECT_EQ(Tokens(got.begin(), got.end()), want) << "behind " << job->tokens.size();
      EXPECT_GT(got.size(), 0U) << "behind " << job->tokens.size();
      compared += static_cast<int64_t>(got.size());
    }
  }

  std::atomic<int64_t> compared{0};
  /// The first position of the texts that was seen.
  std::atomic<int32_t> base{0};

 private:
  [[nodiscard]] Tokens drafted(const Tokens& text, size_t n) const {
    const auto width = static_cast<size_t>(head_->width);
    const auto rows = text.size() - 1;
    const auto cache_of = [](const model::Model& of) {
      return cache::make_cache("fp32", of.layer_shapes(), of.traits().max_seq_len,
                               engine::system_memory())
          .value();
    };
    const auto cache = cache_of(*model_);
    const auto state = model_->new_sequence_state().value();
    test::OwnedBatch batch;
    EXPECT_TRUE(batch.add(*cache, std::span(text).first(rows), false, state.get()).ok());
    std::vector<float> features(rows * width);
    const graph::Tap tap = {head_->taps[0], features.data()};
    batch.finish(kFormsVocab);
    batch.batch.taps = {&tap, 1};
    EXPECT_TRUE(model_->forward(batch.batch).ok());
    if (head_->reads_cache) {
      batch.commit();
      features.erase(features.begin(), features.end() - static_cast<std::ptrdiff_t>(width));
      return read(*cache, text.back(), std::move(features), n);
    }
    const auto own = cache_of(*head_->first);
    features.erase(features.begin(), features.begin() + base * static_cast<std::ptrdiff_t>(width));
    Tokens next(text.begin() + 1 + base, text.end());
    if (!head_->later.empty()) return by_later(next, features, n);
    Tokens made;
    while (made.size() < n) {
      test::OwnedBatch one;
      EXPECT_TRUE(one.add(*own, next, false).ok());
      one.finish(kFormsVocab);
      one.batch.features = features;
      std::vector<float> states(next.size() * width);
      const graph::Tap out = {head_->state, states.data()};
      one.batch.taps = {&out, 1};
      EXPECT_TRUE(head_->first->forward(one.batch).ok());
      one.commit();
      const std::vector<float> logits = one.results(kFormsVocab);
      const auto best = std::max_element(logits.begin(), logits.begin() + kFormsVocab);
      made.push_back(static_cast<int32_t>(best - logits.begin()));
      next = {made.back()};
      features.assign(states.end() - static_cast<std::ptrdiff_t>(width), states.end());
    }
    return made;
  }

  /// The same where each token is a later head's: each runs all rows, with the states of the heads
  /// before it.
  [[nodiscard]] Tokens by_later(Tokens rows, std::vector<float> features, size_t n) const {
    Tokens made;
    while (made.size() < n) {
      const model::Model& of = made.empty() ? *head_->first : *head_->later[made.size() - 1];
      const auto own = cache::make_cache("fp32", of.layer_shapes(), of.traits().max_seq_len,
                                         engine::system_memory())
                           .value();
      test::OwnedBatch all;
      EXPECT_TRUE(all.add(*own, rows, false).ok());
      all.finish(kFormsVocab);
      all.batch.features = features;
      std::vector<float> states(features.size());
      const graph::Tap out = {head_->state, states.data()};
      all.batch.taps = {&out, 1};
      EXPECT_TRUE(of.forward(all.batch).ok());
      const std::vector<float> logits = all.results(kFormsVocab);
      const auto best = std::max_element(logits.begin(), logits.begin() + kFormsVocab);
      made.push_back(static_cast<int32_t>(best - logits.begin()));
      rows.push_back(made.back());
      features.insert(features.end(), states.end() - head_->width, states.end());
    }
    return made;
  }
  /// The same of a head that reads the cache of the text.
  [[nodiscard]] Tokens read(cache::KvCache& cache, int32_t token, std::vector<float> features,
                            size_t n) const {
    Tokens made;
    while (made.size() < n) {
      test::OwnedBatch one;
      EXPECT_TRUE(one.read(cache, token).ok());
      one.finish(kFormsVocab);
      one.batch.features = features;
      std::vector<float> state(features.size());
      const graph::Tap out = {head_->state, state.data()};
      one.batch.taps = {&out, 1};
      EXPECT_TRUE(head_->first->forward(one.batch).ok());
      const std::vector<float> logits = one.results(kFormsVocab);
      const auto best = std::max_element(logits.begin(), logits.begin() + kFormsVocab);
      token = static_cast<int32_t>(best - logits.begin());
      made.push_back(token);
      features = state;
    }
    return made;
  }

  const std::shared_ptr<const model::Model> model_;
  const std::shared_ptr<const model::DraftHead> head_;
  const std::shared_ptr<HeadDrafter> drafter_;
  const bool whole_;
};

}  // namespace gen::generate
