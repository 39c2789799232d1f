// SPDX-License-Identifier: Apache-2.0
// Proves that the head in a model's file, or in a file beside it, computes what the definition of
// its block says (a separate forward pass in double precision) in every family that has such
// blocks, with the model's weights where it has none of its own and no copy of them; what is no
// head, what is refused and how it says so; and that a model can be used whatever its head could
// not have.
#include "model/draft_head.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/arch/registry.h"
#include "support/tiny_head.h"

namespace gen::model {
namespace {

using test::features_of;
using test::Floats;
using test::head_spec;
using test::HeadRows;
using test::is_draft_block;
using test::kHeadText;
using test::relative_error;
using test::run_head;
using test::TinyModel;
using test::TinyModelSpec;
using test::trunk_of;

std::vector<const char*> families() {
  std::vector<const char*> all;
  for (const arch::Architecture* row : arch::architectures()) {
    if (row->style.draft_layers) all.push_back(row->name);
  }
  return all;
}

TEST(DraftHead, FamiliesHaveThem) {
  std::vector<std::string> names;
  for (const char* name : families()) names.emplace_back(name);
  for (const char* name :
       {"qwen35", "qwen35moe", "qwen3next", "glm4moe", "glm4", "exaone4", "cohere2moe", "step35"}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  }
}

void expect_defined(const TinyModelSpec& spec, const test::TinyEngineOptions& options = {}) {
  SCOPED_TRACE(testing::Message() << spec.architecture << ", tied " << spec.tied << ", own "
                                  << spec.draft_tables << spec.draft_norms << spec.draft_heads);
  const TinyModel tiny(spec);
  const test::LoadedTiny loaded(tiny, options);
  auto head = loaded.model().draft_head();
  ASSERT_TRUE(head.ok()) << head.status().message();
  ASSERT_NE(*head, nullptr);
  EXPECT_EQ((*head)->width, spec.hidden);
  EXPECT_EQ((*head)->own_width, spec.hidden);
  const bool unnormed = spec.architecture == "step35";
  EXPECT_EQ((*head)->taps, std::vector{unnormed ? spec.layers : graph::kNormedTap});
  const Floats features = features_of(kHeadText.size(), spec.hidden);
  const TinyModel::Drafted want = tiny.drafted(kHeadText, features);
  const HeadRows got = run_head(**head, features);
  EXPECT_LT(relative_error(got.logits, want.logits), 2e-5);
  EXPECT_LT(relative_error(got.states, unnormed ? want.hidden : want.normed), 2e-5);
  for (const size_t n : {size_t{1}, size_t{4}}) {
    const HeadRows again = run_head(**head, features, n);
    EXPECT_EQ(again.logits, got.logits);
    EXPECT_EQ(again.states, got.states);
  }
}

TEST(DraftHead, IsWhatItsBlockSays) {
  for (const char* family : families()) {
    for (const bool tied : {false, true}) {
      for (int32_t own = 0; own < 8; ++own) {
        TinyModelSpec spec = head_spec(family);
        spec.tied = tied;
        spec.draft_tables = (own & 1) != 0;
        spec.draft_norms = (own & 2) != 0;
        spec.draft_heads = (own & 4) != 0;
        expect_defined(spec);
      }
    }
  }
}

TEST(DraftHead, IsSoInEveryFormOfItsFamily) {
  for (const char* family : families()) {
    TinyModelSpec spec = head_spec(family);
    spec.biases = true;
    expect_defined(spec);
    expect_defined(spec, {.threads = 3, .level = CpuLevel::kScalar});
    spec.seed = 5;
    for (const int32_t layers : {1, 2}) {  // the next one of a hybrid attends, or would recur
      spec.layers = layers;
      expect_defined(spec);
    }
  }
  TinyModelSpec cohere = head_spec("cohere2moe");
  cohere.rms_norms = true;
  for (const int32_t layers : {3, 4}) {  // the block has a window, or none
    cohere.layers = layers;
    cohere.window = 4;
    expect_defined(cohere);
  }
  TinyModelSpec step = head_spec("step35");
  step.window = 4;
  step.choice_bias = true;
  step.gate_by_head = true;
  step.biases = true;
  step.freq_factors = {1.0F, 1.5F, 2.0F, 4.0F, 8.0F, 8.0F, 9.0F, 9.0F};
  step.expert_limits = {0.0F, 0.2F, 0.1F};
  step.swiglu_limits = {0.2F, 0.0F, 0.3F};
  for (const std::vector<uint32_t>& local : {std::vector<uint32_t>{1, 1, 0}, {0, 1, 1}, {}}) {
    step.local = local;
    expect_defined(step);
  }
  TinyModelSpec glm = head_spec("glm4moe");
  glm.dense_layers = 1;
  glm.choice_bias = true;
  glm.expert_scale = 2.5F;
  expect_defined(glm);
}

// A block for each token of a draft.
TEST(DraftHead, EachBlockIsAHead) {
  for (const char* family : families()) {
    for (const bool own_tables : {false, true}) {
      for (const bool beside : {false, true}) {
        SCOPED_TRACE(testing::Message() << family << own_tables << beside);
        TinyModelSpec spec = head_spec(family);
        spec.draft_layers = 3;
        spec.draft_tables = own_tables;
        spec.draft_heads = own_tables;
        const TinyModel tiny(spec);
        const std::vector<std::byte> bytes = tiny.bytes();
        const test::LoadedTiny loaded(tiny);
        auto head = beside ? load_draft_head(gguf::GgufFile::parse(bytes).value(),
                                             loaded.model().head_target().value(), false, true)
                           : loaded.model().draft_head();
        ASSERT_TRUE(head.ok()) << head.status().message();
        ASSERT_EQ((*head)->later.size(), 2U);
        const Floats features = features_of(kHeadText.size(), spec.hidden);
        for (int32_t i = 0; i < 3; ++i) {
          DraftHead one = **head;
          if (i > 0) one.first = one.later[static_cast<size_t>(i) - 1];
          const TinyModel::Drafted want = tiny.drafted(kHeadText, features, i);
          const HeadRows got = run_head(one, features);
          EXPECT_LT(relative_error(got.logits, want.logits), 2e-5);
          const bool unnormed = spec.architecture == "step35";
          EXPECT_LT(relative_error(got.states, unnormed ? want.hidden : want.normed), 2e-5);
        }
      }
    }
  }
}

TEST(DraftHead, IsNoneOfFilesWithLayersAlone) {
  for (const char* family : families()) {
    TinyModelSpec spec = head_spec(family);
    spec.without_drafts = true;
    const test::LoadedTiny loaded{TinyModel(spec)};
    auto head = loaded.model().draft_head();
    ASSERT_TRUE(head.ok()) << head.status().message();
    EXPECT_EQ(*head, nullptr);
    spec.draft_layers = 0;
    const test::LoadedTiny without{TinyModel(spec)};
    EXPECT_EQ(without.model().draft_head().value(), nullptr);
  }
  const test::LoadedTiny llama{TinyModel(TinyModelSpec())};
  EXPECT_EQ(llama.model().draft_head().value(), nullptr);
}

// A family whose windows depend on the number of layers.
TEST(DraftHead, OfASmallExaoneHasNoWindow) {
  TinyModelSpec spec = head_spec("exaone4");
  spec.context = 8192;  // more than the family's window
  for (spec.layers = 1; spec.layers <= 4; ++spec.layers) {
    const test::LoadedTiny loaded{TinyModel(spec)};
    for (const cache::LayerShape& layer : loaded.model().layer_shapes()) EXPECT_EQ(layer.window, 0);
    const auto head = loaded.model().draft_head().value();
    ASSERT_EQ(head->first->layer_shapes().size(), 1U);
    EXPECT_EQ(head->first->layer_shapes()[0].window, 0) << spec.layers;
  }
}

// ---- Files beside a model ----

/// The block, and what it shares with its model.
test::GgufWriter head_file(const TinyModelSpec& spec) {
  TinyModel tiny(spec);
  tiny.writer().drop_tensors([&](const std::string& name) {
    return !is_draft_block(name, spec) && name != "token_embd.weight" && name != "output.weight" &&
           !name.starts_with("output_norm.") && !name.starts_with("rope_freqs");
  });
  return tiny.writer();
}

Result<std::shared_ptr<const DraftHead>> head_beside(const Model& model,
                                                     std::shared_ptr<const gguf::GgufFile> file) {
  return load_draft_head(std::move(file), model.head_target().value(), false, true);
}

TEST(DraftHead, MayComeInAFileBesideTheModel) {
  for (const char* family : families()) {
    SCOPED_TRACE(family);
    for (const bool tied : {false, true}) {
      TinyModelSpec spec = head_spec(family);
      spec.tied = tied;
      auto loaded = std::make_unique<test::LoadedTiny>(trunk_of(spec));
      EXPECT_EQ(loaded->model().draft_head().value(), nullptr);
      const auto bytes = head_file(spec).build().bytes;
      auto file = gguf::GgufFile::parse(bytes).value();
      auto head = head_beside(loaded->model(), std::move(file));
      ASSERT_TRUE(head.ok()) << head.status().message();
      ASSERT_NE(*head, nullptr);
      const Floats features = features_of(kHeadText.size(), spec.hidden);
      const auto want = TinyModel(spec).drafted(kHeadText, features).logits;
      const std::vector<std::byte> freed = loaded->release();  // it lives on without its model
      EXPECT_LT(relative_error(run_head(**head, features).logits, want), 2e-5);
    }
  }
}

struct Refusal {
  const char* name;
  std::function<std::vector<std::byte>(TinyModelSpec)> file;
  Code code;
  const char* says;
};

std::vector<std::byte> without(const TinyModelSpec& spec, const std::string& tensor) {
  test::GgufWriter writer = head_file(spec);
  writer.drop_tensors([&](const std::string& name) { return name == tensor; });
  return writer.build().bytes;
}

const Refusal kRefusals[] = {
    {"shape",
     [](const TinyModelSpec& spec) {
       auto image = head_file(spec).build();
       image.poke("blk.3.nextn.eh_proj.weight.dim0", uint64_t{64});
       return image.bytes;
     },
     Code::kFormat, "blk.3.nextn.eh_proj.weight"},
    {"enorm", [](const TinyModelSpec& spec) { return without(spec, "blk.3.nextn.enorm.weight"); },
     Code::kFormat, "blk.3.nextn.enorm.weight"},
    {"hnorm", [](const TinyModelSpec& spec) { return without(spec, "blk.3.nextn.hnorm.weight"); },
     Code::kFormat, "blk.3.nextn.hnorm.weight"},
    {"attention", [](const TinyModelSpec& spec) { return without(spec, "blk.3.attn_k.weight"); },
     Code::kFormat, "blk.3.attn_k.weight"},
    {"embedding", [](const TinyModelSpec& spec) { return without(spec, "token_embd.weight"); },
     Code::kFormat, "token_embd.weight"},
    {"last_norm", [](const TinyModelSpec& spec) { return without(spec, "output_norm.weight"); },
     Code::kFormat, "output_norm.weight"},
    {"width",
     [](TinyModelSpec spec) {
       spec.hidden = 96;
       return head_file(spec).build().bytes;
     },
     Code::kFormat, "embedding_length 96 for a model with 64"},
    {"vocabulary",
     [](TinyModelSpec spec) {
       spec.vocab = 51;
       return head_file(spec).build().bytes;
     },
     Code::kFormat, "a vocabulary of 51 for a model with 50"},
    {"unused",
     [](const TinyModelSpec& spec) {
       test::GgufWriter writer = head_file(spec);
       writer.tensor("blk.3.nextn.more.weight", 0, {1}, std::vector<std::byte>(4));
       return writer.build().bytes;
     },
     Code::kUnsupported, "blk.3.nextn.more.weight"},
};

TEST(DraftHead, RefusalsNameWhatDoesNotFit) {
  const TinyModelSpec spec = head_spec("qwen35");
  const test::LoadedTiny loaded(trunk_of(spec));
  for (const Refusal& each : kRefusals) {
    SCOPED_TRACE(each.name);
    const auto bytes = each.file(spec);
    auto file = gguf::GgufFile::parse(bytes);
    ASSERT_TRUE(file.ok()) << file.status().message();
    auto head = head_beside(loaded.model(), std::move(file).value());
    EXPECT_EQ(head.status().code(), each.code);
    EXPECT_NE(std::string(head.status().message()).find(each.says), std::string::npos)
        << head.status().message();
  }
}

TEST(DraftHead, AFileWithoutOneIsNone) {
  const TinyModelSpec spec = head_spec("qwen35");
  const test::LoadedTiny loaded(trunk_of(spec));
  const auto bytes = trunk_of(spec);
  EXPECT_EQ(head_beside(loaded.model(), gguf::GgufFile::parse(bytes).value()).value(), nullptr);
}

}  // namespace
}  // namespace gen::model
