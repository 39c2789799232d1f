// SPDX-License-Identifier: Apache-2.0
// Proves for every architecture of the library's table that all of its products are sites of
// adapters, each by a name of its own, and that a model runs rows with and without adapters in one
// step, in whatever format its weights are.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/arch/registry.h"
#include "support/adapter_values.h"
#include "support/drift_model.h"

namespace gen::model {
namespace {

using Floats = std::vector<float>;
using Tokens = std::vector<int32_t>;

TEST(ModelAdapters, EveryProductIsASite) {
  for (const arch::Architecture* row : arch::architectures()) {
    SCOPED_TRACE(row->name);
    test::TinyModelSpec spec;
    spec.architecture = row->name;
    const test::TinyModel tiny(spec);
    const test::LoadedTiny loaded(tiny);
    const graph::ExecutionPlan& plan = test::plan_of(loaded);
    std::vector<int32_t> sites;
    for (const graph::Instruction& instruction : plan.instructions()) {
      if (instruction.product < 0) continue;
      for (const graph::SiteSlice& slice : plan.sites(instruction)) {
        if (slice.site >= 0) sites.push_back(slice.site);
      }
    }
    std::vector<int32_t> want;
    for (int32_t layer = 0; layer < spec.layers; ++layer) {
      const auto expect_mixer = [&](std::initializer_list<graph::SiteKind> kinds) {
        for (const graph::SiteKind kind : kinds) want.push_back(graph::site_id(layer, kind));
      };
      using graph::SiteKind;
      const bool recurs = tiny.has_recurrence(layer);
      const bool attends = tiny.attends(layer);
      if (recurs) expect_mixer({SiteKind::kMixerIn, SiteKind::kMixerOut});
      if (recurs && row->style.recurrence == arch::Recurrence::kDeltaNet) {
        expect_mixer({SiteKind::kAttnGate});
        expect_mixer({SiteKind::kAlpha, SiteKind::kBeta});
      }
      if (recurs && row->style.recurrence == arch::Recurrence::kMamba) {
        expect_mixer({SiteKind::kMixerParts, SiteKind::kMixerStep});
      }
      if (tiny.spec().layer_input > 0) {
        expect_mixer({SiteKind::kInputGate, SiteKind::kInputProj});
      }
      const bool chooses = tiny.has_experts(layer) && tiny.has_feed_forward(layer);
      if (chooses) {
        expect_mixer({SiteKind::kRouter, SiteKind::kExpertUps, SiteKind::kExpertDowns});
        if (row->style.feed_forward != arch::FeedForward::kPlain) {
          expect_mixer({SiteKind::kExpertGates});
        }
      }
      if (chooses && tiny.spec().shared_width > 0) {
        expect_mixer({SiteKind::kSharedUp, SiteKind::kSharedDown});
        if (row->style.feed_forward != arch::FeedForward::kPlain) {
          expect_mixer({SiteKind::kSharedGate});
        }
        if (row->style.experts.shared == arch::SharedExpert::kGated) {
          expect_mixer({SiteKind::kSharedRouter});
        }
      }
      if (chooses && tiny.spec().latent > 0) {
        expect_mixer({SiteKind::kLatentDown, SiteKind::kLatentUp});
      }
      if (row->style.attention_gate == arch::AttentionGate::kInQ && attends) {
        expect_mixer({SiteKind::kAttnGate});
      }
      if (row->style.attention_gate == arch::AttentionGate::kOwn ||
          row->style.attention_gate == arch::AttentionGate::kMayBeOwn) {
        want.push_back(graph::site_id(layer, graph::SiteKind::kAttnGate));
      }
      for (int32_t kind = 0; kind < 7; ++kind) {
        const bool gate = static_cast<graph::SiteKind>(kind) == graph::SiteKind::kGate;
        if (!attends && kind <= static_cast<int32_t>(SiteKind::kAttnOut)) continue;
        if (gate && row->style.feed_forward == arch::FeedForward::kPlain) continue;
        const bool inner = kind >= static_cast<int32_t>(graph::SiteKind::kGate);
        if (inner && tiny.has_experts(layer)) continue;
        if (inner && !tiny.has_feed_forward(layer)) continue;
        want.push_back(graph::site_id(layer, static_cast<graph::SiteKind>(kind)));
      }
    }
    want.push_back(graph::site_id(spec.layers, graph::SiteKind::kLogits));
    want.push_back(graph::site_id(spec.layers, graph::SiteKind::kEmbedding));
    if (tiny.spec().layer_input > 0) {
      want.push_back(graph::site_id(spec.layers, graph::SiteKind::kLayerInputs));
    }
    std::sort(want.begin(), want.end());
    std::sort(sites.begin(), sites.end());
    EXPECT_EQ(sites, want);
    std::vector<int32_t> shapes;
    for (const graph::SiteShape& shape : plan.site_shapes()) shapes.push_back(shape.site);
    std::sort(shapes.begin(), shapes.end());
    EXPECT_EQ(shapes, want);
  }
}

/// Two sequences of the same tokens in one step; the mixes they have.
std::pair<Floats, Floats> step(const test::LoadedTiny& loaded, const graph::AdapterTable* table,
                               int32_t first, int32_t second) {
  const Tokens tokens = {3, 14, 15, 9, 26};
  const auto one = loaded.cache();
  const auto two = loaded.cache();
  const auto beside_one = loaded.model().new_sequence_state().value();
  const auto beside_two = loaded.model().new_sequence_state().value();
  test::OwnedBatch batch;
  EXPECT_TRUE(batch.add(*one, tokens, true, beside_one.get()).ok());
  batch.sequences.back().adapter = first;
  EXPECT_TRUE(batch.add(*two, tokens, true, beside_two.get()).ok());
  batch.sequences.back().adapter = second;
  batch.finish(loaded.vocab());
  batch.batch.adapters = table;
  const Status status = loaded.model().forward(batch.batch);
  EXPECT_TRUE(status.ok()) << status.message();
  const Floats all = batch.results(loaded.vocab());
  const auto half = all.begin() + static_cast<ptrdiff_t>(all.size() / 2);
  return {Floats(all.begin(), half), Floats(half, all.end())};
}

TEST(ModelAdapters, RowsWithAndWithout) {
  std::vector<test::TinyModelSpec> specs;
  for (const arch::Architecture* row : arch::architectures()) {
    for (const DType type : {DType::kF32, DType::kQ8_0}) {
      test::TinyModelSpec& spec = specs.emplace_back();
      spec.architecture = row->name;
      spec.type = type;
    }
  }
  specs.push_back(test::drift_spec());  // sites before and behind a recurrence
  for (const test::TinyModelSpec& spec : specs) {
    SCOPED_TRACE(spec.architecture);
    test::TinyEngineOptions options;
    if (spec.architecture == "drift") options = test::with_drift();
    const test::LoadedTiny loaded(test::TinyModel(spec), options);
    const auto table = test::adapter_table(test::plan_of(loaded), 4);
    const size_t before = loaded.model().memory("weights").value();
    const Floats plain = step(loaded, nullptr, -1, -1).first;
    EXPECT_EQ(step(loaded, table.get(), -1, -1).first, plain);
    EXPECT_EQ(loaded.model().memory("weights").value(), before);  // no second plan yet
    const auto [with, without] = step(loaded, table.get(), 0, -1);
    EXPECT_EQ(without, plain);
    EXPECT_NE(with, plain);
    EXPECT_LT(loaded.model().memory("weights").value(), before + before / 4);
    const auto both = step(loaded, table.get(), 0, 0);
    EXPECT_EQ(both.first, with);
    EXPECT_EQ(both.second, with);
    // One of a higher rank comes later.
    const auto wide = test::adapter_table(test::plan_of(loaded), 9);
    EXPECT_EQ(step(loaded, wide.get(), -1, 0).first, plain);
    EXPECT_EQ(step(loaded, table.get(), -1, 0).second, with);
  }
}

}  // namespace
}  // namespace gen::model
