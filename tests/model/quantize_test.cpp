// SPDX-License-Identifier: Apache-2.0
// Proves the quantiser: which tensor becomes which type, blocks equal to those of the codec, bytes
// that do not depend on threads, metadata of every type kept byte for byte, hostile weights
// refused.
#include "model/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/log.h"
#include "quant/format.h"
#include "support/gguf_writer.h"

namespace gen::model {
namespace {

namespace fs = std::filesystem;
using test::GgufWriter;

std::vector<std::byte> floats(size_t n, float first = 0.5F) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) {
    values[i] = i == 0 ? first : static_cast<float>(static_cast<int>(i * 7919 % 1009) - 504) / 999;
  }
  std::vector<std::byte> bytes(n * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

class QuantizeTest : public testing::Test {
 protected:
  QuantizeTest() {
    std::string pattern = (fs::temp_directory_path() / "quantize_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~QuantizeTest() override { fs::remove_all(folder_); }

  // Quantises what `writer` builds; the bytes are kept until the next call.
  Status run(const GgufWriter& writer, const char* type, int32_t threads = 1) {
    in_ = writer.build().bytes;
    auto file = gguf::GgufFile::parse(in_);
    EXPECT_TRUE(file.ok()) << file.status().message();
    const auto pool = ThreadPool::create(threads).value();
    const std::string path = (folder_ / "out").string();
    auto out = NewFile::create(path);
    GEN_TRY(quantize(**file, *find_recipe(type), options_, *pool, {}, *out));
    GEN_TRY(out->finish());
    std::ifstream stream(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    out_.assign(bytes.begin(), bytes.end());
    GEN_ASSIGN(made_, gguf::GgufFile::parse(out_));
    return {};
  }

  [[nodiscard]] DType type_of(const char* name) const { return made_->find_tensor(name)->type; }

  QuantOptions options_;
  fs::path folder_;
  std::vector<std::byte> in_;
  std::vector<std::byte> out_;
  std::shared_ptr<const gguf::GgufFile> made_;
};

GgufWriter layers(int count, uint64_t width, bool tied) {
  GgufWriter writer;
  const auto add = [&](const std::string& name, std::vector<uint64_t> dims) {
    size_t n = 1;
    for (const uint64_t dim : dims) n *= dim;
    writer.tensor(name, 0, std::move(dims), floats(n));
  };
  add("token_embd.weight", {width, 3});
  if (!tied) add("output.weight", {width, 3});
  add("output_norm.weight", {width});
  for (int i = 0; i < count; ++i) {
    const std::string prefix = "blk." + std::to_string(i) + ".";
    for (const char* name : {"attn_q", "attn_v", "ffn_down"})
      add(prefix + name + ".weight", {width, 2});
    add(prefix + "attn_q.bias", {width});
    add(prefix + "ffn_norm.weight", {width});
  }
  return writer;
}

TEST_F(QuantizeTest, MixesGiveMoreBitsWhereTheyCount) {
  ASSERT_TRUE(run(layers(16, 256, false), "Q4_K_M").ok());
  EXPECT_EQ(type_of("token_embd.weight"), DType::kQ4_K);
  EXPECT_EQ(type_of("output.weight"), DType::kQ6_K);
  EXPECT_EQ(type_of("output_norm.weight"), DType::kF32);
  // Of 16 layers the first and last two, and from the third on every third.
  const std::vector<int> more = {0, 1, 4, 7, 10, 13, 14, 15};
  for (int i = 0; i < 16; ++i) {
    const std::string prefix = "blk." + std::to_string(i) + ".";
    const bool is_more = std::find(more.begin(), more.end(), i) != more.end();
    EXPECT_EQ(type_of((prefix + "attn_q.weight").c_str()), DType::kQ4_K);
    for (const char* name : {"attn_v.weight", "ffn_down.weight"}) {
      EXPECT_EQ(type_of((prefix + name).c_str()), is_more ? DType::kQ6_K : DType::kQ4_K) << i;
    }
    EXPECT_EQ(type_of((prefix + "attn_q.bias").c_str()), DType::kF32);
    EXPECT_EQ(type_of((prefix + "ffn_norm.weight").c_str()), DType::kF32);
  }
  ASSERT_TRUE(run(layers(1, 256, true), "Q5_K_M").ok());
  EXPECT_EQ(type_of("token_embd.weight"), DType::kQ6_K);
  EXPECT_EQ(type_of("blk.0.attn_q.weight"), DType::kQ5_K);
  ASSERT_TRUE(run(layers(1, 256, true), "Q8_0").ok());
  EXPECT_EQ(type_of("token_embd.weight"), DType::kQ8_0);
}

TEST_F(QuantizeTest, StacksAreWeightsOfProducts) {
  GgufWriter writer;
  writer.set_string("general.architecture", "qwen3moe");
  writer.tensor("blk.0.ffn_gate_inp.weight", 0, {256, 4}, floats(256 * 4));
  writer.tensor("blk.0.ffn_gate_inp_shexp.weight", 0, {256}, floats(256));
  writer.tensor("blk.0.exp_probs_b.bias", 0, {4}, floats(4));
  writer.tensor("blk.0.ffn_gate_exps.bias", 0, {8, 4}, floats(32));
  writer.tensor("blk.0.ffn_gate_exps.weight", 0, {256, 8, 4}, floats(size_t{256} * 8 * 4));
  writer.tensor("blk.0.ffn_down_exps.weight", 0, {32, 256, 4}, floats(size_t{256} * 32 * 4));
  ASSERT_TRUE(run(writer, "Q4_K_M").ok());
  for (const char* name : {"ffn_gate_inp.weight", "ffn_gate_inp_shexp.weight", "exp_probs_b.bias",
                           "ffn_gate_exps.bias"}) {
    EXPECT_EQ(type_of((std::string("blk.0.") + name).c_str()), DType::kF32) << name;
  }
  EXPECT_EQ(type_of("blk.0.ffn_gate_exps.weight"), DType::kQ4_K);
  EXPECT_EQ(type_of("blk.0.ffn_down_exps.weight"), DType::kQ8_0);  // Q6_K where rows are longer
  EXPECT_EQ(made_->find_tensor("blk.0.ffn_gate_exps.weight")->shape,
            (std::array<int64_t, 4>{256, 8, 4, 1}));
}

TEST_F(QuantizeTest, RowsThatDoNotFitGetWhatFits) {
  const std::map<std::string, DType> at_96 = {{"Q4_K_M", DType::kQ5_0}, {"Q5_K_M", DType::kQ5_1},
                                              {"Q6_K", DType::kQ8_0},   {"IQ4_XS", DType::kIQ4_NL},
                                              {"Q4_0", DType::kQ4_0},   {"F16", DType::kF16}};
  for (const auto& [type, wanted] : at_96) {
    ASSERT_TRUE(run(layers(4, 96, false), type.c_str()).ok());
    EXPECT_EQ(type_of("blk.1.attn_q.weight"), wanted) << type;
    EXPECT_EQ(type_of("output.weight"), type == "F16" ? DType::kF16 : DType::kQ8_0) << type;
    ASSERT_TRUE(run(layers(4, 40, false), type.c_str()).ok());
    EXPECT_EQ(type_of("blk.1.attn_q.weight"), DType::kF16) << type;
  }
  ASSERT_TRUE(run(layers(1, 40, false), "F32").ok());
  EXPECT_EQ(type_of("blk.0.attn_q.weight"), DType::kF32);
}

/// What is logged while it lives.
class Lines {
 public:
  explicit Lines(LogLevel level = LogLevel::kWarning) {
    set_log_sink([](void* user, int32_t,
                    const char* line) { static_cast<Lines*>(user)->lines_.emplace_back(line); },
                 this);
    set_log_level(level);
  }
  ~Lines() {
    set_log_level(LogLevel::kOff);
    set_log_sink(nullptr, nullptr);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  [[nodiscard]] std::vector<std::string> take() { return std::exchange(lines_, {}); }

 private:
  std::vector<std::string> lines_;
};

// The recipe does not say it any more, so a line of the log does, one for each pair of types.
TEST_F(QuantizeTest, RowsThatDoNotFitAreToldOf) {
  Lines lines;
  using All = std::vector<std::string>;
  ASSERT_TRUE(run(layers(4, 40, false), "Q4_K_M").ok());
  EXPECT_EQ(
      lines.take(),
      (All{"token_embd.weight and 8 more tensors become F16, not Q4_K: rows of 40 are no "
           "multiple of 256, nor of 32",
           "output.weight and 4 more tensors become F16, not Q6_K: rows of 40 are no multiple "
           "of 256, nor of 32"}));
  ASSERT_TRUE(run(layers(1, 96, true), "Q5_K_M").ok());
  EXPECT_EQ(lines.take(),
            (All{"token_embd.weight and 2 more tensors become Q8_0, not Q6_K: rows of "
                 "96 are no multiple of 256",
                 "blk.0.attn_q.weight becomes Q5_1, not Q5_K: rows of 96 are no "
                 "multiple of 256"}));
  ASSERT_TRUE(run(layers(1, 40, true), "Q8_0").ok());
  EXPECT_EQ(lines.take(),
            (All{"token_embd.weight and 3 more tensors become F16, not Q8_0: rows of 40 "
                 "are no multiple of 32"}));
  for (const char* type : {"F16", "F32", "BF16"}) {
    ASSERT_TRUE(run(layers(1, 40, true), type).ok());
    EXPECT_EQ(lines.take(), All()) << type;
  }
  ASSERT_TRUE(run(layers(4, 256, false), "Q4_K_M").ok());
  EXPECT_EQ(lines.take(), All());
}

TEST_F(QuantizeTest, BlocksAreThoseOfTheCodecWhateverTheThreads) {
  // More than one piece of a million weights, and a row count that threads do not divide.
  const GgufWriter writer =
      GgufWriter().tensor("blk.0.attn_q.weight", 0, {256, 4099}, floats(size_t{256} * 4099));
  for (const auto& [name, type] :
       {std::pair{"Q4_0", DType::kQ4_0}, std::pair{"Q6_K", DType::kQ6_K},
        std::pair{"IQ2_XXS", DType::kIQ2_XXS}, std::pair{"TQ1_0", DType::kTQ1_0}}) {
    ASSERT_TRUE(run(writer, name, 1).ok());
    const std::vector<std::byte> alone = out_;
    const auto data = made_->tensors()[0].data;
    std::vector<float> x(size_t{256} * 4099);
    std::memcpy(x.data(), floats(x.size()).data(), x.size() * sizeof(float));
    std::vector<std::byte> wanted(data.size());
    quant::find_format(type)->encode(x.data(), wanted.data(), static_cast<int64_t>(x.size()));
    EXPECT_TRUE(std::equal(data.begin(), data.end(), wanted.begin()));
    for (const int32_t threads : {2, 3}) {
      ASSERT_TRUE(run(writer, name, threads).ok());
      EXPECT_EQ(out_, alone) << threads;
    }
  }
}

// What a recipe gives to the parts of layers; "-" for what it has nowhere.
TEST_F(QuantizeTest, MixesOfFewBits) {
  GgufWriter writer;
  const auto add = [&](const std::string& name) { writer.tensor(name, 0, {256, 2}, floats(512)); };
  add("token_embd.weight");
  add("output.weight");
  for (int i = 0; i < 16; ++i) {
    for (const char* part :
         {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"}) {
      add("blk." + std::to_string(i) + "." + part + ".weight");
    }
  }
  writer.tensor("blk.2.ffn_down_exps.weight", 0, {256, 2, 2}, floats(1024));
  struct Mix {
    const char* name;
    uint32_t file_type;
    DType embedding, output;
    DType v[3], down[3], attention, q, gate_in_the_middle;  // layers 0, 3 and 9; output matrix
  };
  using enum DType;
  for (const Mix& mix : {
           Mix{"Q4_K_S",
               14,
               kQ4_K,
               kQ6_K,
               {kQ5_K, kQ5_K, kQ4_K},
               {kQ5_K, kQ4_K, kQ4_K},
               kQ4_K,
               kQ4_K,
               kQ4_K},
           Mix{"Q5_K_S",
               16,
               kQ5_K,
               kQ6_K,
               {kQ5_K, kQ5_K, kQ5_K},
               {kQ5_K, kQ5_K, kQ5_K},
               kQ5_K,
               kQ5_K,
               kQ5_K},
           Mix{"Q3_K_L",
               13,
               kQ3_K,
               kQ6_K,
               {kQ5_K, kQ5_K, kQ5_K},
               {kQ5_K, kQ5_K, kQ5_K},
               kQ5_K,
               kQ3_K,
               kQ3_K},
           Mix{"Q3_K_M",
               12,
               kQ3_K,
               kQ6_K,
               {kQ5_K, kQ4_K, kQ4_K},
               {kQ5_K, kQ4_K, kQ4_K},
               kQ4_K,
               kQ3_K,
               kQ3_K},
           Mix{"Q3_K_S",
               11,
               kQ3_K,
               kQ6_K,
               {kQ3_K, kQ3_K, kQ3_K},
               {kQ3_K, kQ3_K, kQ3_K},
               kQ3_K,
               kQ3_K,
               kQ3_K},
           Mix{"Q2_K",
               10,
               kQ2_K,
               kQ6_K,
               {kQ3_K, kQ3_K, kQ3_K},
               {kQ3_K, kQ3_K, kQ3_K},
               kQ3_K,
               kQ2_K,
               kQ2_K},
           Mix{"Q2_K_S",
               21,
               kQ2_K,
               kQ6_K,
               {kQ2_K, kQ2_K, kQ2_K},
               {kQ4_K, kQ2_K, kQ2_K},
               kQ2_K,
               kQ2_K,
               kQ2_K},
           Mix{"IQ3_M",
               27,
               kIQ3_S,
               kQ6_K,
               {kQ4_K, kQ4_K, kQ4_K},
               {kQ4_K, kIQ3_S, kIQ3_S},
               kQ4_K,
               kIQ3_S,
               kIQ3_S},
           Mix{"IQ3_S",
               26,
               kIQ3_S,
               kQ6_K,
               {kIQ3_S, kIQ3_S, kIQ3_S},
               {kIQ3_S, kIQ3_S, kIQ3_S},
               kIQ3_S,
               kIQ3_S,
               kIQ3_S},
           Mix{"IQ3_XS",
               22,
               kIQ3_S,
               kQ6_K,
               {kIQ3_S, kIQ3_S, kIQ3_S},
               {kIQ3_S, kIQ3_S, kIQ3_S},
               kIQ3_S,
               kIQ3_XXS,
               kIQ3_XXS},
           Mix{"IQ3_XXS",
               23,
               kIQ3_S,
               kQ5_K,
               {kIQ3_S, kIQ3_S, kIQ3_S},
               {kQ4_K, kQ3_K, kQ3_K},
               kIQ3_S,
               kIQ2_S,
               kIQ3_XXS},
           Mix{"IQ2_M",
               29,
               kIQ3_S,
               kQ5_K,
               {kIQ3_S, kIQ3_S, kIQ3_S},
               {kIQ3_S, kIQ2_S, kIQ2_S},
               kIQ3_S,
               kIQ2_S,
               kIQ2_S},
           Mix{"IQ2_S",
               28,
               kIQ3_S,
               kQ5_K,
               {kIQ3_S, kIQ3_S, kIQ3_S},
               {kIQ3_S, kIQ2_XS, kIQ2_XS},
               kIQ3_S,
               kIQ2_XS,
               kIQ2_XS},
           Mix{"IQ2_XS",
               20,
               kQ2_K,
               kQ5_K,
               {kQ2_K, kQ2_K, kQ2_K},
               {kQ2_K, kIQ2_XS, kIQ2_XS},
               kIQ2_XS,
               kIQ2_XS,
               kIQ2_XS},
           Mix{"IQ2_XXS",
               19,
               kQ2_K,
               kQ5_K,
               {kQ2_K, kQ2_K, kQ2_K},
               {kQ2_K, kIQ2_XXS, kIQ2_XXS},
               kIQ2_XXS,
               kIQ2_XXS,
               kIQ2_XXS},
           Mix{"IQ1_M",
               31,
               kQ2_K,
               kQ5_K,
               {kQ2_K, kQ2_K, kQ2_K},
               {kQ2_K, kIQ1_M, kIQ1_M},
               kIQ2_XXS,
               kIQ1_M,
               kIQ1_M},
           Mix{"IQ1_S",
               24,
               kQ2_K,
               kQ5_K,
               {kQ2_K, kQ2_K, kQ2_K},
               {kQ2_K, kIQ1_S, kIQ1_S},
               kIQ2_XXS,
               kIQ1_S,
               kIQ1_S},
           Mix{"TQ1_0",
               36,
               kQ4_K,
               kQ6_K,
               {kTQ1_0, kTQ1_0, kTQ1_0},
               {kTQ1_0, kTQ1_0, kTQ1_0},
               kTQ1_0,
               kTQ1_0,
               kTQ1_0},
           Mix{"TQ2_0",
               37,
               kQ4_K,
               kQ6_K,
               {kTQ2_0, kTQ2_0, kTQ2_0},
               {kTQ2_0, kTQ2_0, kTQ2_0},
               kTQ2_0,
               kTQ2_0,
               kTQ2_0},
           Mix{"MXFP4_MOE",
               38,
               kQ8_0,
               kQ8_0,
               {kQ8_0, kQ8_0, kQ8_0},
               {kQ8_0, kQ8_0, kQ8_0},
               kQ8_0,
               kQ8_0,
               kQ8_0},
           Mix{"NVFP4",
               39,
               kQ8_0,
               kQ8_0,
               {kNVFP4, kNVFP4, kNVFP4},
               {kNVFP4, kNVFP4, kNVFP4},
               kNVFP4,
               kNVFP4,
               kNVFP4},
           Mix{"Q1_0",
               40,
               kQ1_0,
               kQ6_K,
               {kQ1_0, kQ1_0, kQ1_0},
               {kQ1_0, kQ1_0, kQ1_0},
               kQ1_0,
               kQ1_0,
               kQ1_0},
           Mix{"Q2_0",
               41,
               kQ4_K,
               kQ6_K,
               {kQ2_0, kQ2_0, kQ2_0},
               {kQ2_0, kQ2_0, kQ2_0},
               kQ2_0,
               kQ2_0,
               kQ2_0},
       }) {
    ASSERT_TRUE(run(writer, mix.name).ok()) << mix.name;
    EXPECT_EQ(made_->metadata().get_u32("general.file_type").value(), mix.file_type) << mix.name;
    EXPECT_EQ(type_of("token_embd.weight"), mix.embedding) << mix.name;
    EXPECT_EQ(type_of("output.weight"), mix.output) << mix.name;
    const char* const layer[] = {"blk.0.", "blk.3.", "blk.9."};
    for (size_t i = 0; i < 3; ++i) {
      const std::string prefix = layer[i];
      EXPECT_EQ(type_of((prefix + "attn_v.weight").c_str()), mix.v[i]) << mix.name << i;
      EXPECT_EQ(type_of((prefix + "ffn_down.weight").c_str()), mix.down[i]) << mix.name << i;
      EXPECT_EQ(type_of((prefix + "attn_output.weight").c_str()), mix.attention) << mix.name;
      EXPECT_EQ(type_of((prefix + "attn_q.weight").c_str()), mix.q) << mix.name;
    }
    EXPECT_EQ(type_of("blk.9.ffn_gate.weight"), mix.gate_in_the_middle) << mix.name;
    const DType experts = type_of("blk.2.ffn_down_exps.weight");
    EXPECT_EQ(experts == kMXFP4, std::string(mix.name) == "MXFP4_MOE") << mix.name;
  }
  ASSERT_TRUE(run(writer, "IQ3_XS").ok());
  EXPECT_EQ(type_of("blk.1.ffn_gate.weight"), kIQ3_S);
  EXPECT_EQ(type_of("blk.14.ffn_up.weight"), kIQ3_S);
}

TEST_F(QuantizeTest, SharedKeysAndExpertsGetMore) {
  GgufWriter shared = layers(1, 256, false);
  shared.set_string("general.architecture", "llama")
      .set<uint32_t>("llama.attention.head_count", 8)
      .set<uint32_t>("llama.attention.head_count_kv", 2);
  for (const char* type : {"IQ2_XS", "Q2_K", "IQ3_XXS", "IQ1_S"}) {
    ASSERT_TRUE(run(shared, type).ok());
    EXPECT_EQ(type_of("blk.0.attn_v.weight"), DType::kQ4_K) << type;
  }
  GgufWriter experts = layers(1, 256, false);
  experts.set_string("general.architecture", "llama")
      .set<uint32_t>("llama.attention.head_count", 8)
      .set<uint32_t>("llama.attention.head_count_kv", 8)
      .set<uint32_t>("llama.expert_count", 4);
  ASSERT_TRUE(run(experts, "IQ2_XS").ok());
  EXPECT_EQ(type_of("blk.0.attn_v.weight"), DType::kQ4_K);
  ASSERT_TRUE(run(experts, "Q2_K").ok());
  EXPECT_EQ(type_of("blk.0.attn_v.weight"), DType::kQ3_K);
}

TEST_F(QuantizeTest, PatternsNameTypes) {
  options_.types =
      parse_type_patterns(" blk.1.attn_v.* = Q8_0,*attn_?.weight=iq4_nl ,*=F16").value();
  ASSERT_TRUE(run(layers(2, 256, false), "Q4_K_M").ok());
  EXPECT_EQ(type_of("blk.1.attn_v.weight"), DType::kQ8_0);
  EXPECT_EQ(type_of("blk.0.attn_v.weight"), DType::kIQ4_NL);
  EXPECT_EQ(type_of("blk.0.ffn_down.weight"), DType::kF16);
  EXPECT_EQ(type_of("output.weight"), DType::kF16);
  EXPECT_EQ(type_of("output_norm.weight"), DType::kF32);  // a vector
  EXPECT_EQ(type_of("blk.0.attn_q.bias"), DType::kF32);
  EXPECT_EQ(made_->metadata().get_u32("general.file_type").value(), 15U);

  Lines lines;
  options_.types = parse_type_patterns("output.weight=IQ1_S,*.attn_v.*=Q6_K").value();
  ASSERT_TRUE(run(layers(1, 96, false), "Q8_0").ok());
  EXPECT_EQ(type_of("output.weight"), DType::kIQ4_NL);
  EXPECT_EQ(lines.take(),
            (std::vector<std::string>{
                "output.weight becomes IQ4_NL, not IQ1_S: rows of 96 are no multiple of 256",
                "blk.0.attn_v.weight becomes Q8_0, not Q6_K: rows of 96 are no multiple of 256"}));

  options_.types = parse_type_patterns("*_norm.weight=Q8_0").value();
  const Status status = run(layers(1, 96, false), "Q8_0");
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_STREQ(status.message(), "\"*_norm.weight\" matches no matrix of the model");

  options_.types = parse_type_patterns("*.attn_v=Q8_0").value();
  const Status short_of_a_name = run(layers(1, 96, false), "Q8_0");
  EXPECT_STREQ(
      short_of_a_name.message(),
      "\"*.attn_v\" matches no matrix of the model; a pattern is a whole name: with .weight "
      "behind it, it matches");
}

TEST(TypePatterns, WhatIsNotOneIsRefused) {
  for (const auto& [text, part] : {std::pair{"a", "\"a\" is not PATTERN=TYPE"},
                                   {"=Q8_0", "\"=Q8_0\" is not"},
                                   {"a=Q8_0,,b=Q8_0", "\"\" is not"},
                                   {"a=Q8_1", "\"Q8_1\" is not one of F32, "},
                                   {"a=Q4_K_M", "\"Q4_K_M\" is not one of"},
                                   {"a=", "\"\" is not one of"}}) {
    auto parsed = parse_type_patterns(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.status().code(), Code::kInvalidArgument);
    EXPECT_NE(std::string(parsed.status().message()).find(part), std::string::npos)
        << parsed.status().message();
  }
  EXPECT_TRUE(parse_type_patterns("")->empty());
  EXPECT_EQ(parse_type_patterns("a=b=Q8_0").value()[0].pattern, "a=b");
}

TEST(TypePatterns, Matching) {
  for (const auto& [pattern, text] : {std::pair{"", ""},
                                      {"*", ""},
                                      {"*", "abc"},
                                      {"a*c", "abbc"},
                                      {"*b*b*", "abab"},
                                      {"*aab", "aaaab"},
                                      {"?b?", "abc"},
                                      {"**", "x"}}) {
    EXPECT_TRUE(matches_pattern(pattern, text)) << pattern << ' ' << text;
  }
  for (const auto& [pattern, text] : {std::pair{"", "a"},
                                      {"?", ""},
                                      {"a*c", "abcd"},
                                      {"A", "a"},
                                      {"*b?", "ab"},
                                      {"blk.*.attn_v.weight", "blk.1.attn_v.weights"}}) {
    EXPECT_FALSE(matches_pattern(pattern, text)) << pattern << ' ' << text;
  }
  // A hostile pattern takes no more than the product of the lengths.
  std::string stars;
  for (int i = 0; i < 2000; ++i) stars += "*a";
  EXPECT_FALSE(matches_pattern(stars + "b", std::string(20000, 'a')));
}

std::vector<float> ramp(size_t n) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i * 37 % 101) / 50.0F;
  return values;
}

TEST_F(QuantizeTest, ImportanceIsThatOfTheColumns) {
  GgufWriter writer;
  const std::vector<std::byte> bytes = floats(size_t{256} * 12 * 3);
  writer.tensor("blk.0.ffn_down_exps.weight", 0, {256, 12, 3}, bytes);
  writer.tensor("blk.0.attn_q.weight", 0, {256, 12}, floats(size_t{256} * 12));
  const Importance importance(std::map<std::string, std::vector<float>>{
      {"blk.0.ffn_down_exps.weight", ramp(size_t{256} * 3)}, {"blk.0.attn_q.weight", ramp(256)}});
  options_.importance = &importance;
  for (const char* name : {"IQ4_NL", "TQ2_0", "Q4_0", "Q2_0"}) {
    const DType type = name == std::string("Q2_0")     ? DType::kQ2_0
                       : name == std::string("TQ2_0")  ? DType::kTQ2_0
                       : name == std::string("IQ4_NL") ? DType::kIQ4_NL
                                                       : DType::kQ4_0;
    std::vector<float> x(size_t{256} * 12 * 3);
    std::memcpy(x.data(), bytes.data(), bytes.size());
    ASSERT_TRUE(run(writer, name, 1).ok());
    const std::vector<std::byte> alone = out_;
    const auto data = made_->find_tensor("blk.0.ffn_down_exps.weight")->data;
    std::vector<std::byte> wanted(data.size());
    const std::vector<float> all = ramp(size_t{256} * 3);
    for (size_t row = 0; row < 36; ++row) {
      quant::find_format(type)->encode_by(x.data() + 256 * row, all.data() + row / 12 * 256,
                                          wanted.data() + data.size() / 36 * row, 256);
    }
    EXPECT_TRUE(std::equal(data.begin(), data.end(), wanted.begin())) << name;
    for (const int32_t threads : {2, 3}) {
      ASSERT_TRUE(run(writer, name, threads).ok());
      EXPECT_EQ(out_, alone) << threads;
    }
  }
}

TEST_F(QuantizeTest, ImportanceOfAnotherModelIsRefused) {
  const GgufWriter writer = layers(1, 256, false);
  for (const auto& [name, size, part] :
       {std::tuple{"blk.7.attn_q.weight", 256, "it has tensor blk.7.attn_q.weight"},
        {"blk.0.attn_q.weight", 255, "blk.0.attn_q.weight it has 255 columns, not 256"},
        {"blk.0.attn_q.weight", 512, "512 columns, not 256"}}) {
    const Importance importance(
        std::map<std::string, std::vector<float>>{{name, ramp(static_cast<size_t>(size))}});
    options_.importance = &importance;
    const Status status = run(writer, "Q8_0");
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(std::string(status.message()).find(part), std::string::npos) << status.message();
  }
}

TEST_F(QuantizeTest, FewBitsWithoutImportanceAreToldOf) {
  using All = std::vector<std::string>;
  Lines lines;
  ASSERT_TRUE(run(layers(1, 256, false), "IQ2_XXS").ok());
  EXPECT_EQ(lines.take(), (All{"token_embd.weight and 3 more tensors get less than 3 bits a weight "
                               "without an importance matrix: expect large errors"}));
  ASSERT_TRUE(run(layers(1, 256, false), "IQ3_S").ok());
  EXPECT_EQ(lines.take(), All());
  const Importance importance(std::map<std::string, std::vector<float>>{
      {"blk.0.attn_q.weight", ramp(256)}, {"blk.0.attn_v.weight", ramp(256)}});
  options_.importance = &importance;
  ASSERT_TRUE(run(layers(1, 256, false), "IQ3_XXS").ok());
  EXPECT_EQ(lines.take(), (All{"output.weight and 1 more tensor are not in the importance matrix: "
                               "all columns count alike"}));
  ASSERT_TRUE(run(layers(1, 256, false), "IQ2_XXS").ok());
  EXPECT_EQ(lines.take(), (All{"token_embd.weight and 1 more tensor get less than 3 bits a weight "
                               "without importance, since the matrix has none for them: expect "
                               "large errors",
                               "output.weight is not in the importance matrix: all columns count "
                               "alike"}));
}

TEST_F(QuantizeTest, ImportanceOfWhatIsNotQuantisedIsToldOf) {
  using All = std::vector<std::string>;
  GgufWriter writer = layers(1, 256, false);
  writer.tensor("blk.0.ffn_gate_inp.weight", 0, {256, 4}, floats(1024));
  const Importance importance(
      std::map<std::string, std::vector<float>>{{"output.weight", ramp(256)},
                                                {"blk.0.attn_q.weight", ramp(256)},
                                                {"blk.0.attn_v.weight", ramp(256)},
                                                {"blk.0.ffn_down.weight", ramp(256)},
                                                {"blk.0.ffn_gate_inp.weight", ramp(256)}});
  options_.importance = &importance;
  {
    Lines lines(LogLevel::kInfo);
    ASSERT_TRUE(run(writer, "Q4_K_M").ok());
    EXPECT_EQ(lines.take(), (All{"blk.0.ffn_gate_inp.weight is not quantised: its importance is "
                                 "not used"}));
    options_.types = parse_type_patterns("*.attn_q.*=F16").value();
    ASSERT_TRUE(run(writer, "Q4_K_M").ok());
    EXPECT_EQ(lines.take(), (All{"blk.0.attn_q.weight and 1 more tensor are not quantised: "
                                 "their importance is not used"}));
  }
  Lines warnings;
  ASSERT_TRUE(run(writer, "Q4_K_M").ok());
  EXPECT_EQ(warnings.take(), All());
  ASSERT_TRUE(run(writer, "F16").ok());
  EXPECT_EQ(warnings.take(), (All{"output.weight and 4 more tensors are not quantised: the "
                                  "importance matrix changes nothing"}));
}

// Encoders and projectors stay as they are, whatever their types, unless a pattern names them.
TEST_F(QuantizeTest, TensorsOfPicturesAndSoundStay) {
  using All = std::vector<std::string>;
  const std::vector<std::byte> half(size_t{256} * 2 * 2, std::byte{0x2F});
  const std::vector<std::byte> odd(292, std::byte{5});
  const auto with_media = [&](GgufWriter writer) {
    for (const char* name : {"v.blk.0.attn_q.weight", "a.blk.0.ffn_down.weight", "mm.0.weight",
                             "model.vision_tower.a.weight", "s.blk.0.attn_v.weight"}) {
      writer.tensor(name, 1, {256, 2}, half);
    }
    writer.tensor("v.blk.0.attn_q.bias", 1, {256}, std::vector<std::byte>(512, std::byte{0x2F}));
    writer.tensor("v.position_embd.weight", 15, {256, 1}, odd);  // Q8_K, which has no codec
    return writer;
  };
  Lines lines(LogLevel::kInfo);
  for (const char* type : {"Q4_K_M", "F32", "NVFP4"}) {
    ASSERT_TRUE(run(with_media(layers(1, 256, false)), type).ok()) << type;
    EXPECT_NE(type_of("blk.0.attn_q.weight"), DType::kF16);
    auto before = gguf::GgufFile::parse(in_).value();
    int n = 0;
    for (const gguf::TensorInfo& tensor : before->tensors()) {
      if (tensor.type == DType::kF32) continue;
      ++n;
      const auto& kept = *made_->find_tensor(tensor.name);
      EXPECT_EQ(kept.type, tensor.type) << tensor.name;
      EXPECT_TRUE(
          std::equal(kept.data.begin(), kept.data.end(), tensor.data.begin(), tensor.data.end()));
    }
    EXPECT_EQ(n, 7);
    const All told = lines.take();
    EXPECT_EQ(std::count(told.begin(), told.end(),
                         "7 tensors of pictures and sound keep their types "
                         "(v.blk.0.attn_q.weight, ...)"),
              1);
  }
  options_.types = parse_type_patterns("v.*attn_q.weight=Q8_0,mm.*=Q4_0").value();
  ASSERT_TRUE(run(with_media(layers(1, 256, false)), "Q4_K_M").ok());
  EXPECT_EQ(type_of("v.blk.0.attn_q.weight"), DType::kQ8_0);
  EXPECT_EQ(type_of("mm.0.weight"), DType::kQ4_0);
  EXPECT_EQ(type_of("a.blk.0.ffn_down.weight"), DType::kF16);
  EXPECT_EQ(type_of("v.blk.0.attn_q.bias"), DType::kF16);
  // A projector's file has nothing else.
  options_.types.clear();
  static_cast<void>(lines.take());
  ASSERT_TRUE(run(with_media(GgufWriter()), "Q4_K_M").ok());
  EXPECT_EQ(lines.take(), (All{"nothing is quantised: 7 tensors of pictures and sound keep their "
                               "types (v.blk.0.attn_q.weight, ...)"}));
}

TEST_F(QuantizeTest, TheSameTypeIsCopied) {
  ASSERT_TRUE(run(layers(2, 256, false), "Q4_K_M", 2).ok());
  const std::vector<std::byte> first = out_;
  in_ = first;
  auto file = gguf::GgufFile::parse(in_);
  const auto pool = ThreadPool::create(1).value();
  auto out = NewFile::create((folder_ / "again").string());
  ASSERT_TRUE(quantize(**file, *find_recipe("Q4_K_M"), QuantOptions(), *pool, {}, *out).ok());
  ASSERT_TRUE(out->finish().ok());
  std::ifstream stream(folder_ / "again", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  ASSERT_EQ(text.size(), first.size());
  EXPECT_EQ(std::memcmp(text.data(), first.data(), text.size()), 0);
}

TEST_F(QuantizeTest, MetadataIsKept) {
  GgufWriter writer = layers(1, 64, false);
  writer.set<uint32_t>("general.alignment", 64)
      .alignment(64)
      .set<uint32_t>("general.file_type", 0)
      .set<uint16_t>("split.count", 1)
      .set_string("a.text", std::string("with\0zero", 9))
      .set<bool>("a.bool", true)
      .set<double>("a.double", 0.1)
      .set<int8_t>("a.byte", -3)
      .set_array<float>("a.floats", {1.5F, -2.0F})
      .set_array<int64_t>("a.none", {})
      .set_strings("a.words", {"", "one", "two words"});
  ASSERT_TRUE(run(writer, "Q5_1").ok());
  EXPECT_EQ(made_->version(), 3U);
  auto before = gguf::GgufFile::parse(in_).value();
  for (const gguf::Value& entry : before->metadata().entries()) {
    const std::string key(entry.key());
    const gguf::Value* kept = made_->metadata().find(key);
    if (key == "split.count") {
      EXPECT_EQ(kept, nullptr);
      continue;
    }
    ASSERT_NE(kept, nullptr) << key;
    if (key == "general.file_type") continue;
    EXPECT_EQ(kept->type_text(), entry.type_text()) << key;
    EXPECT_EQ(kept->count(), entry.count()) << key;
    const auto a = entry.bytes();
    const auto b = kept->bytes();
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << key;
    EXPECT_EQ(kept->text(100), entry.text(100)) << key;
  }
  EXPECT_EQ(made_->metadata().get_u32("general.file_type").value(), 9U);
  EXPECT_EQ(made_->metadata().get_u32("general.quantization_version").value(), 2U);
  EXPECT_EQ(made_->metadata().entries().size(), before->metadata().entries().size());
}

TEST_F(QuantizeTest, WhatIsNoWeightStaysAndWhatIsUnknownIsRefused) {
  GgufWriter writer = layers(1, 64, false);
  writer.tensor("table", 26, {8, 4}, std::vector<std::byte>(128, std::byte{7}));  // I32
  ASSERT_TRUE(run(writer, "Q8_0").ok());
  EXPECT_EQ(type_of("table"), DType::kI32);
  EXPECT_EQ(made_->find_tensor("table")->data[5], std::byte{7});
  // Any type that has a codec becomes another.
  writer.tensor("low.weight", 19, {256, 2}, std::vector<std::byte>(100, std::byte{1}));  // IQ1_S
  ASSERT_TRUE(run(writer, "Q8_0").ok());
  EXPECT_EQ(type_of("low.weight"), DType::kQ8_0);
  writer.tensor("odd.weight", 15, {256, 1}, std::vector<std::byte>(292));  // Q8_K
  const Status status = run(writer, "Q8_0");
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_NE(std::string(status.message()).find("odd.weight"), std::string::npos);
}

// llama.cpp leaves these, too; its convolutions are F32 alone.
TEST_F(QuantizeTest, SmallMatricesStayWhatTheyAre) {
  GgufWriter writer = layers(1, 256, false);
  const char* const names[] = {"blk.0.ssm_conv1d.weight", "blk.0.shortconv.conv.weight",
                               "blk.0.time_mix_w1.weight", "blk.0.ffn_gate_inp.weight",
                               "blk.0.attn_rel_b.weight"};
  for (const char* name : names) writer.tensor(name, 0, {4, 64}, floats(256));
  writer.tensor("blk.0.time_mix_w2.weight", 1, {256, 2}, std::vector<std::byte>(1024));
  for (const char* type : {"Q4_K_M", "Q8_0", "F16"}) {
    ASSERT_TRUE(run(writer, type).ok());
    for (const char* name : names) EXPECT_EQ(type_of(name), DType::kF32) << name;
    EXPECT_EQ(type_of("blk.0.time_mix_w2.weight"), DType::kF16);
  }
  ASSERT_TRUE(run(writer, "F32").ok());
  EXPECT_EQ(type_of("blk.0.time_mix_w2.weight"), DType::kF32);
}

TEST_F(QuantizeTest, WhatIsNoModelIsRefused) {
  for (const char* kind : {"adapter", "imatrix"}) {
    GgufWriter writer = layers(1, 64, false);
    writer.set_string("general.type", kind);
    const Status status = run(writer, "Q8_0");
    EXPECT_EQ(status.code(), Code::kUnsupported);
    EXPECT_EQ(status.message(), "metadata 'general.type': \"" + std::string(kind) +
                                    "\"; the weights of models are quantised");
  }
}

TEST_F(QuantizeTest, LayersOfAnyNumber) {
  GgufWriter writer = layers(2, 64, false);
  const char* const names[] = {"blk.9223372036854775807.attn_v.weight",
                               "blk.2000000000000000000.attn_v.weight"};
  for (const char* name : names) writer.tensor(name, 0, {64, 2}, floats(128));
  ASSERT_TRUE(run(writer, "Q4_1").ok());
  for (const char* name : names) EXPECT_EQ(type_of(name), DType::kQ4_1);
}

TEST_F(QuantizeTest, WeightsThatAreNotFiniteAreRefused) {
  for (const float value : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    const GgufWriter writer =
        GgufWriter().tensor("blk.0.attn_q.weight", 0, {64, 8}, floats(size_t{64} * 8, value));
    const Status status = run(writer, "Q4_0", 3);
    EXPECT_EQ(status.code(), Code::kFormat);
    EXPECT_NE(std::string(status.message()).find("weight 0"), std::string::npos);
  }
}

}  // namespace
}  // namespace gen::model
