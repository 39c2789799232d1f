// SPDX-License-Identifier: Apache-2.0
// Proves what recipes give to models of certain shapes: with eight experts, with 80 layers, with
// queries that share keys and values, with one matrix for queries, keys and values, and with or
// without importance. Expected types are those that llama.cpp's quantiser gives, by hand.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/quant_recipe.h"
#include "support/gguf_writer.h"

namespace gen::model {
namespace {

using enum DType;

struct Shape {
  const char* arch = "llama";
  uint32_t layers = 16;
  uint32_t heads = 8;
  uint32_t kv_heads = 8;
  uint32_t experts = 0;
};

class Mixes : public testing::Test {
 protected:
  void make(const Shape& shape) {
    test::GgufWriter writer;
    const std::string arch = shape.arch;
    writer.set_string("general.architecture", arch)
        .set<uint32_t>(arch + ".block_count", shape.layers)
        .set<uint32_t>(arch + ".attention.head_count", shape.heads)
        .set<uint32_t>(arch + ".attention.head_count_kv", shape.kv_heads)
        .set<uint32_t>(arch + ".expert_count", shape.experts);
    const std::vector<std::byte> data(256 * sizeof(float) * 2);
    for (uint32_t i = 0; i < shape.layers; ++i) {
      for (const char* part :
           {"attn_q", "attn_k", "attn_v", "attn_qkv", "attn_output", "ffn_down", "ffn_up"}) {
        writer.tensor("blk." + std::to_string(i) + "." + part + ".weight", 0, {256, 2}, data);
      }
    }
    bytes_ = writer.build().bytes;
    file_ = gguf::GgufFile::parse(bytes_).value();
  }

  DType type(const char* recipe, int layer, const char* part) {
    const TypeChooser chooser(*find_recipe(recipe), options_, *file_);
    const std::string name = "blk." + std::to_string(layer) + "." + part + ".weight";
    return chooser.choose(*file_->find_tensor(name));
  }

  QuantOptions options_;
  std::vector<std::byte> bytes_;
  std::shared_ptr<const gguf::GgufFile> file_;
};

// Values, keys and outputs of attention, and what is multiplied last, in layers 0, 3 and 4 of 16;
// layer 4 is one of every third.
TEST_F(Mixes, OfEightExperts) {
  make({.experts = 8});
  struct Row {
    const char* recipe;
    DType v, k, out, down[3];
  };
  for (const Row& row : {
           Row{"Q6_K", kQ8_0, kQ8_0, kQ6_K, {kQ6_K, kQ6_K, kQ6_K}},
           Row{"Q5_K_M", kQ8_0, kQ8_0, kQ5_K, {kQ6_K, kQ5_K, kQ6_K}},
           Row{"Q5_K_S", kQ8_0, kQ8_0, kQ5_K, {kQ5_K, kQ5_K, kQ5_K}},
           Row{"Q4_K_M", kQ8_0, kQ8_0, kQ5_K, {kQ6_K, kQ4_K, kQ6_K}},
           Row{"Q4_K_S", kQ8_0, kQ8_0, kQ5_K, {kQ5_K, kQ4_K, kQ4_K}},
           Row{"Q4_0", kQ8_0, kQ8_0, kQ4_0, {kQ4_0, kQ4_0, kQ4_0}},
           Row{"Q5_1", kQ8_0, kQ8_0, kQ5_1, {kQ5_1, kQ5_1, kQ5_1}},
           Row{"IQ4_NL", kQ8_0, kQ8_0, kQ5_K, {kQ5_K, kIQ4_NL, kIQ4_NL}},
           Row{"IQ4_XS", kQ8_0, kQ8_0, kQ5_K, {kQ5_K, kIQ4_XS, kIQ4_XS}},
           Row{"Q3_K_L", kQ8_0, kQ8_0, kQ3_K, {kQ5_K, kQ5_K, kQ5_K}},
           Row{"Q3_K_M", kQ8_0, kQ8_0, kQ5_K, {kQ5_K, kQ4_K, kQ4_K}},
           Row{"Q3_K_S", kQ8_0, kQ8_0, kQ5_K, {kQ3_K, kQ3_K, kQ3_K}},
           Row{"IQ3_M", kQ8_0, kQ8_0, kQ5_K, {kQ4_K, kIQ3_S, kQ4_K}},
           Row{"IQ3_S", kQ8_0, kQ8_0, kQ5_K, {kIQ3_S, kIQ3_S, kIQ3_S}},
           Row{"IQ3_XS", kQ8_0, kQ8_0, kQ5_K, {kIQ3_S, kIQ3_S, kIQ3_S}},
           Row{"IQ3_XXS", kQ8_0, kQ8_0, kQ5_K, {kQ4_K, kQ3_K, kQ3_K}},
           Row{"Q2_K", kQ8_0, kQ8_0, kQ5_K, {kQ3_K, kQ3_K, kQ3_K}},
           Row{"Q2_K_S", kQ8_0, kQ8_0, kQ2_K, {kQ4_K, kQ2_K, kQ2_K}},
           Row{"TQ1_0", kQ8_0, kQ8_0, kTQ1_0, {kTQ1_0, kTQ1_0, kTQ1_0}},
           // Types with rules of their own for attention.
           Row{"IQ2_M", kQ4_K, kQ4_K, kQ5_K, {kIQ3_S, kIQ2_S, kIQ2_S}},
           Row{"IQ2_XS", kQ4_K, kQ4_K, kQ5_K, {kQ2_K, kIQ2_XS, kIQ2_XS}},
           Row{"IQ2_XXS", kQ4_K, kQ4_K, kQ5_K, {kQ2_K, kIQ2_XXS, kIQ2_XXS}},
           Row{"IQ1_M", kQ4_K, kQ4_K, kQ5_K, {kQ2_K, kIQ1_M, kIQ1_M}},
           Row{"IQ1_S", kQ4_K, kQ4_K, kQ5_K, {kQ2_K, kIQ1_S, kIQ1_S}},
           Row{"MXFP4_MOE", kQ8_0, kQ8_0, kQ8_0, {kQ8_0, kQ8_0, kQ8_0}},
           Row{"F16", kF16, kF16, kF16, {kF16, kF16, kF16}},
           Row{"BF16", kBF16, kBF16, kBF16, {kBF16, kBF16, kBF16}},
       }) {
    const int layers[] = {0, 3, 4};
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(type(row.recipe, layers[i], "attn_v"), row.v) << row.recipe;
      EXPECT_EQ(type(row.recipe, layers[i], "attn_k"), row.k) << row.recipe;
      EXPECT_EQ(type(row.recipe, layers[i], "attn_output"), row.out) << row.recipe;
      EXPECT_EQ(type(row.recipe, layers[i], "ffn_down"), row.down[i]) << row.recipe << i;
    }
  }
  for (const uint32_t experts : {7U, 9U, 16U}) {
    make({.experts = experts});
    EXPECT_EQ(type("Q4_K_M", 3, "attn_v"), kQ4_K);
    EXPECT_EQ(type("Q4_K_M", 3, "attn_k"), kQ4_K);
    EXPECT_EQ(type("Q4_K_M", 3, "attn_output"), kQ4_K);
    EXPECT_EQ(type("IQ2_XS", 3, "attn_k"), kIQ2_XS);
  }
}

// With 80 layers, values have no fewer than five bits; layer 12 is one of every third.
TEST_F(Mixes, OfEightyLayers) {
  for (const Shape& shape :
       {Shape{"llama", 80, 64, 8}, Shape{"qwen2", 80, 64, 8}, Shape{"qwen2", 80, 64, 64}}) {
    make(shape);
    EXPECT_EQ(type("Q4_K_M", 12, "attn_v"), kQ6_K);
    EXPECT_EQ(type("Q4_K_M", 13, "attn_v"), kQ5_K);
    EXPECT_EQ(type("Q4_K_M", 13, "ffn_down"), kQ4_K);
    EXPECT_EQ(type("Q4_K_M", 13, "attn_q"), kQ4_K);
    EXPECT_EQ(type("Q4_K_S", 13, "attn_v"), kQ5_K);
    EXPECT_EQ(type("Q3_K_S", 13, "attn_v"), kQ5_K);
    EXPECT_EQ(type("Q3_K_M", 13, "attn_v"), kQ5_K);
    EXPECT_EQ(type("Q3_K_M", 4, "ffn_down"), kQ5_K);
    EXPECT_EQ(type("Q3_K_M", 5, "ffn_down"), kQ4_K);
    EXPECT_EQ(type("Q2_K", 13, "attn_v"), kQ5_K);
    EXPECT_EQ(type("IQ3_M", 13, "attn_v"), kQ5_K);
    EXPECT_EQ(type("Q5_K_S", 13, "attn_v"), kQ5_K);
    EXPECT_EQ(type("Q4_0", 13, "attn_v"), kQ4_0);
    EXPECT_EQ(type("F16", 13, "attn_v"), kF16);
  }
  make({"llama", 80, 64, 8});
  EXPECT_EQ(type("IQ2_XS", 13, "attn_v"), kQ4_K);
  for (const Shape& shape : {Shape{"llama", 80, 64, 64}, Shape{"llama", 79, 64, 8},
                             Shape{"qwen3", 80, 64, 8}, Shape{"llama", 64, 64, 8}}) {
    make(shape);
    EXPECT_EQ(type("Q4_K_S", 13, "attn_v"), kQ4_K) << shape.arch << shape.layers;
  }
}

TEST_F(Mixes, OfSharedKeysAndJoinedMatrices) {
  make({.kv_heads = 2});
  for (const char* recipe : {"IQ4_NL", "IQ4_XS"}) EXPECT_EQ(type(recipe, 9, "attn_v"), kQ5_K);
  make({.kv_heads = 4});
  EXPECT_EQ(type("IQ4_NL", 9, "attn_v"), kIQ4_NL);
  EXPECT_EQ(type("IQ4_XS", 9, "attn_v"), kIQ4_XS);
  for (const auto& [recipe, wanted] : {std::pair{"Q4_K_M", kQ5_K},
                                       {"Q5_K_M", kQ6_K},
                                       {"Q3_K_M", kQ4_K},
                                       {"Q3_K_L", kQ4_K},
                                       {"IQ3_M", kQ4_K},
                                       {"Q4_K_S", kQ4_K},
                                       {"Q5_K_S", kQ5_K},
                                       {"Q3_K_S", kQ3_K}}) {
    EXPECT_EQ(type(recipe, 3, "attn_qkv"), wanted) << recipe;
  }
}

TEST_F(Mixes, OfFirstLayersByImportance) {
  make({});
  const std::vector<std::tuple<const char*, DType, DType, DType>> rows = {
      {"Q4_0", kQ4_0, kQ4_1, kQ4_0},
      {"Q5_0", kQ5_0, kQ5_1, kQ5_0},
      {"Q4_1", kQ4_1, kQ4_1, kQ4_1},
      {"IQ4_NL", kQ5_K, kIQ4_NL, kIQ4_NL},
      {"IQ4_XS", kQ5_K, kIQ4_XS, kIQ4_XS}};
  const Importance importance({{"blk.0.ffn_down.weight", std::vector<float>(256, 1.0F)}});
  for (const auto& [recipe, unknown, known, later] : rows) {
    options_.importance = nullptr;
    EXPECT_EQ(type(recipe, 1, "ffn_down"), unknown) << recipe;
    EXPECT_EQ(type(recipe, 2, "ffn_down"), later) << recipe;
    options_.importance = &importance;
    EXPECT_EQ(type(recipe, 1, "ffn_down"), known) << recipe;
    EXPECT_EQ(type(recipe, 2, "ffn_down"), later) << recipe;
  }
}

}  // namespace
}  // namespace gen::model
