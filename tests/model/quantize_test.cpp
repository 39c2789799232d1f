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
    GEN_TRY(quantize(**file, *find_recipe(type), *pool, {}, *out));
    GEN_TRY(out->finish());
    std::ifstream stream(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    out_.assign(bytes.begin(), bytes.end());
    GEN_ASSIGN(made_, gguf::GgufFile::parse(out_));
    return {};
  }

  [[nodiscard]] DType type_of(const char* name) const { return made_->find_tensor(name)->type; }

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
  Lines() {
    set_log_sink(
        [](void* user, int32_t level, const char* line) {
          if (level <= static_cast<int32_t>(LogLevel::kWarning)) {
            static_cast<Lines*>(user)->lines_.emplace_back(line);
          }
        },
        this);
    set_log_level(LogLevel::kWarning);
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
       {std::pair{"Q4_0", DType::kQ4_0}, std::pair{"Q6_K", DType::kQ6_K}}) {
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

TEST_F(QuantizeTest, TheSameTypeIsCopied) {
  ASSERT_TRUE(run(layers(2, 256, false), "Q4_K_M", 2).ok());
  const std::vector<std::byte> first = out_;
  in_ = first;
  auto file = gguf::GgufFile::parse(in_);
  const auto pool = ThreadPool::create(1).value();
  auto out = NewFile::create((folder_ / "again").string());
  ASSERT_TRUE(quantize(**file, *find_recipe("Q4_K_M"), *pool, {}, *out).ok());
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
