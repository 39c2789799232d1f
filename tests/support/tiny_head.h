// SPDX-License-Identifier: Apache-2.0
// Tiny models whose files have a block that drafts, and steps of their heads.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "model/draft_head.h"
#include "support/loaded_tiny.h"

namespace gen::test {

using Floats = std::vector<float>;

inline const std::vector<int32_t> kHeadText = {3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9, 32, 38};

inline TinyModelSpec head_spec(const char* family) {
  TinyModelSpec spec;
  spec.architecture = family;
  spec.layers = 3;
  spec.draft_layers = 1;
  spec.experts_used = 6;  // all that there are: what rounding might choose otherwise
  return spec;
}

inline Floats features_of(size_t rows, int32_t width, uint32_t seed = 4) {
  std::mt19937 random(seed);
  Floats values(rows * static_cast<size_t>(width));
  for (float& value : values) value = static_cast<float>(random() >> 8) * 0x1p-23F - 1.0F;
  return values;
}

template <typename T>
double relative_error(const Floats& got, const std::vector<T>& want) {
  EXPECT_EQ(got.size(), want.size());
  double difference = 0.0;
  double size = 0.0;
  for (size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    difference += std::pow(double{got[i]} - static_cast<double>(want[i]), 2);
    size += std::pow(static_cast<double>(want[i]), 2);
  }
  return std::sqrt(difference / size);
}

struct HeadRows {
  Floats logits;
  Floats states;
};

/// The head's rows of the text with these features, in steps of n.
inline HeadRows run_head(const model::DraftHead& head, const Floats& features,
                         size_t n = kHeadText.size()) {
  const model::Model& model = *head.first;
  const auto width = static_cast<size_t>(head.width);
  const auto own = static_cast<size_t>(head.own_width);
  const auto cache =
      cache::make_cache("fp32", model.layer_shapes(), 64, engine::system_memory()).value();
  HeadRows all;
  for (size_t at = 0; at < kHeadText.size(); at += n) {
    const auto part = std::span(kHeadText).subspan(at, std::min(n, kHeadText.size() - at));
    test::OwnedBatch batch;
    EXPECT_TRUE(batch.add(*cache, part).ok());
    batch.finish(model.traits().vocab_size);
    batch.batch.features = std::span(features).subspan(at * width, part.size() * width);
    Floats states(part.size() * own);
    const graph::Tap tap = {head.state, states.data()};
    batch.batch.taps = {&tap, 1};
    const Status status = model.forward(batch.batch);
    EXPECT_TRUE(status.ok()) << status.message();
    batch.commit();
    const Floats logits = batch.results(model.traits().vocab_size);
    all.logits.insert(all.logits.end(), logits.begin(), logits.end());
    all.states.insert(all.states.end(), states.begin(), states.end());
  }
  return all;
}

inline bool is_draft_block(const std::string& name, const TinyModelSpec& spec) {
  return name.starts_with("blk." + std::to_string(spec.layers) + ".");
}

inline std::vector<std::byte> trunk_of(const TinyModelSpec& spec) {
  TinyModel tiny(spec);
  tiny.writer().drop_tensors([&](const std::string& name) { return is_draft_block(name, spec); });
  return tiny.bytes();
}

}  // namespace gen::test
