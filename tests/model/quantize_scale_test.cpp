// SPDX-License-Identifier: Apache-2.0
// Proves the scales beside matrices of NVFP4: weights of any size keep the type's relative error,
// matrices that need no scale have none, and what a file has already is kept.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/quantize.h"
#include "model/weights.h"
#include "quant/format.h"
#include "support/gguf_writer.h"

namespace gen::model {
namespace {

namespace fs = std::filesystem;
using test::GgufWriter;

constexpr int64_t kColumns = 128;
constexpr int64_t kRows = 24;

/// Weights of all sizes below `largest`, in runs of different sizes.
std::vector<float> weights(float largest, int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t run = i / 16;
    const float size = 1.0F - 0.07F * static_cast<float>(run % 11);
    const float share = static_cast<float>(i * 7919 % 1009 - 504) / 504.0F;
    values[static_cast<size_t>(i)] = largest * size * share;
  }
  return values;
}

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

class QuantizeScale : public testing::Test {
 protected:
  QuantizeScale() {
    std::string pattern = (fs::temp_directory_path() / "scale_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~QuantizeScale() override { fs::remove_all(folder_); }

  void run(const GgufWriter& writer, const char* type = "NVFP4", int32_t threads = 2) {
    quantize_bytes(writer.build().bytes, type, threads);
  }
  void quantize_bytes(std::vector<std::byte> bytes, const char* type, int32_t threads) {
    in_ = std::move(bytes);
    const auto file = gguf::GgufFile::parse(in_).value();
    const auto pool = ThreadPool::create(threads).value();
    const std::string path = (folder_ / "out").string();
    auto out = NewFile::create(path);
    ASSERT_TRUE(quantize(*file, *find_recipe(type), QuantOptions(), *pool, {}, *out).ok());
    ASSERT_TRUE(out->finish().ok());
    std::ifstream stream(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const auto read = std::as_bytes(std::span(text.data(), text.size()));
    out_.assign(read.begin(), read.end());
    made_ = gguf::GgufFile::parse(out_).value();
  }

  [[nodiscard]] std::vector<float> values(const std::string& name) const {
    const gguf::TensorInfo* const tensor = made_->find_tensor(name);
    if (tensor == nullptr) return {};
    std::vector<float> all(static_cast<size_t>(tensor->elements()));
    quant::find_format(tensor->type)->decode(tensor->data.data(), all.data(), tensor->elements());
    return all;
  }

  fs::path folder_;
  std::vector<std::byte> in_;
  std::vector<std::byte> out_;
  std::shared_ptr<const gguf::GgufFile> made_;
};

// A level is at most a sixth of the largest one from its neighbours' middle; the scale of a run has
// four bits.
void expect_near(const std::vector<float>& got, float scale, const std::vector<float>& want) {
  for (size_t run = 0; run < want.size(); run += 16) {
    float largest = 0.0F;
    for (size_t i = run; i < run + 16; ++i) largest = std::max(largest, std::fabs(want[i]));
    for (size_t i = run; i < run + 16; ++i) {
      ASSERT_LE(std::fabs(got[i] * scale - want[i]), largest * (1.0F / 6 + 1.0F / 16)) << i;
    }
  }
}

TEST_F(QuantizeScale, WeightsOfAnySizeKeepTheirRelativeError) {
  for (const float largest : {1e-38F, 1e-20F, 1e-5F, 0.001F, 0.02F, 0.09F, 0.5F, 200.0F, 2600.0F,
                              3000.0F, 70000.0F, 1e38F}) {
    const std::vector<float> want = weights(largest, kColumns * kRows);
    run(GgufWriter().tensor("blk.0.attn_q.weight", 0, {kColumns, kRows}, bytes_of(want)));
    ASSERT_EQ(made_->find_tensor("blk.0.attn_q.weight")->type, DType::kNVFP4);
    const float scale = scale_beside(*made_, "blk.0.attn_q.weight").value();
    const bool wanted = largest < 0.1F || largest > 2688.0F;
    EXPECT_EQ(made_->find_tensor("blk.0.attn_q.scale") != nullptr, wanted) << largest;
    int exponent = 0;
    EXPECT_EQ(std::frexp(scale, &exponent), 0.5F) << largest;  // a power of two
    if (largest > 1e-30F) expect_near(values("blk.0.attn_q.weight"), scale, want);
    if (HasFatalFailure()) FAIL() << largest;
  }
}

// Powers of two change nothing else.
TEST_F(QuantizeScale, SmallWeightsHaveTheBlocksOfLargeOnes) {
  const auto blocks = [&](float factor) {
    std::vector<float> all = weights(1500.0F, kColumns * kRows);
    for (float& one : all) one *= factor;
    run(GgufWriter().tensor("blk.0.attn_q.weight", 0, {kColumns, kRows}, bytes_of(all)));
    const auto data = made_->find_tensor("blk.0.attn_q.weight")->data;
    return std::vector<std::byte>(data.begin(), data.end());
  };
  const std::vector<std::byte> plain = blocks(1.0F);
  EXPECT_EQ(made_->find_tensor("blk.0.attn_q.scale"), nullptr);
  for (const int exponent : {-100, -20, 10}) {
    const float factor = std::ldexp(1.0F, exponent);
    EXPECT_EQ(blocks(factor), plain) << exponent;
    EXPECT_EQ(values("blk.0.attn_q.scale"), std::vector<float>{factor});
  }
}

TEST_F(QuantizeScale, ExpertsHaveOneEach) {
  std::vector<float> want = weights(1e-5F, 64 * 4);
  for (const float largest : {1.0F, 0.0F, 3e-4F}) {
    const std::vector<float> more = weights(largest, 64 * 4);
    want.insert(want.end(), more.begin(), more.end());
  }
  GgufWriter writer;
  for (const char* name : {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", "other_exps"}) {
    writer.tensor(std::string("blk.3.") + name + ".weight", 0, {64, 4, 4}, bytes_of(want));
  }
  run(writer);
  for (const char* name : {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"}) {
    const std::string stem = std::string("blk.3.") + name;
    const gguf::TensorInfo* const scale = made_->find_tensor(stem + ".scale");
    ASSERT_NE(scale, nullptr) << name;
    EXPECT_EQ(scale->type, DType::kF32);
    EXPECT_EQ(scale->shape, (std::array<int64_t, 4>{4, 1, 1, 1}));
    const std::vector<float> scales = values(stem + ".scale");
    ASSERT_EQ(scales.size(), 4U);
    EXPECT_EQ(scales[1], 1.0F);
    EXPECT_EQ(scales[2], 1.0F);
    const std::vector<float> got = values(stem + ".weight");
    for (size_t i = 0; i < 4; ++i) {
      const auto part = [&](const std::vector<float>& all) {
        const auto at = all.begin() + static_cast<std::ptrdiff_t>(i * 256);
        return std::vector<float>(at, at + 256);
      };
      expect_near(part(got), scales[i], part(want));
    }
  }
  EXPECT_EQ(made_->find_tensor("blk.3.other_exps.scale"), nullptr);
  // Gates and ups in one tensor have that of the ups, and one for each of the file's own.
  GgufWriter joined;
  joined.tensor("blk.3.ffn_gate_up_exps.weight", 0, {64, 4, 4}, bytes_of(want));
  joined.tensor("blk.3.ffn_down_exps.weight", 0, {64, 4, 4}, bytes_of(want));
  joined.tensor("blk.3.ffn_down_exps.scale", 0, {4}, bytes_of({1, 2, 3, 4}));
  run(joined);
  const std::vector<float> scales = values("blk.3.ffn_up_exps.scale");
  ASSERT_EQ(scales.size(), 4U);
  EXPECT_EQ(values("blk.3.ffn_down_exps.scale"),
            (std::vector<float>{scales[0], 2 * scales[1], 3 * scales[2], 4 * scales[3]}));
  // With ups beside them they would share it.
  joined.tensor("blk.3.ffn_up_exps.weight", 0, {64, 4, 4}, bytes_of(want));
  run(joined);
  EXPECT_EQ(values("blk.3.ffn_up_exps.scale"), scales);
}

TEST_F(QuantizeScale, OnlyWhereAReaderKnowsIt) {
  const std::vector<std::byte> small = bytes_of(weights(1e-5F, kColumns * kRows));
  GgufWriter writer;
  // A scale may come before its matrix. Several numbers beside one matrix are something else.
  writer.tensor("blk.0.attn_k.scale", 0, {1}, bytes_of({0.25F}));
  writer.tensor("blk.0.ffn_up.scale", 0, {2}, bytes_of({0.25F, 3.0F}));
  for (const char* name : {"output.weight", "per_layer_token_embd.weight",
                           "blk.0.nextn.embed_tokens.weight", "blk.0.attn_q.weight",
                           "blk.0.attn_k.weight", "blk.0.attn_v.weight", "blk.0.ffn_up.weight"}) {
    writer.tensor(name, 0, {kColumns, kRows}, small);
  }
  // Factors that the file has already are multiplied.
  writer.tensor("blk.0.attn_v.weight.scale", 0, {1}, bytes_of({4.0F}));
  run(writer);
  std::vector<std::string> scales;
  for (const gguf::TensorInfo& tensor : made_->tensors()) {
    if (tensor.name.ends_with(".scale")) scales.push_back(tensor.name);
  }
  EXPECT_EQ(scales, (std::vector<std::string>{"blk.0.attn_k.scale", "blk.0.ffn_up.scale",
                                              "blk.0.attn_q.scale", "blk.0.attn_v.weight.scale"}));
  EXPECT_EQ(values("blk.0.ffn_up.scale"), (std::vector<float>{0.25F, 3.0F}));
  const float scale = values("blk.0.attn_q.scale").at(0);
  EXPECT_EQ(values("blk.0.attn_k.scale"), std::vector<float>{0.25F * scale});
  EXPECT_EQ(values("blk.0.attn_v.weight.scale"), std::vector<float>{4.0F * scale});
  for (const char* name : {"blk.0.attn_k.weight", "blk.0.attn_v.weight"}) {
    EXPECT_EQ(values(name), values("blk.0.attn_q.weight")) << name;
  }
  // Another type needs none, and a file of the type is copied with what it has.
  const std::vector<std::byte> first = out_;
  quantize_bytes(first, "NVFP4", 1);
  EXPECT_EQ(out_, first);
  run(GgufWriter().tensor("blk.0.attn_q.weight", 0, {kColumns, kRows}, small), "IQ4_NL");
  EXPECT_EQ(made_->find_tensor("blk.0.attn_q.scale"), nullptr);
}

TEST_F(QuantizeScale, BytesDoNotDependOnThreads) {
  // More than a piece; zeros take no time.
  std::vector<float> want = weights(0.03F, int64_t{256} * 4200);
  std::fill(want.begin() + 20000, want.end() - 40000, 0.0F);
  const GgufWriter writer =
      GgufWriter().tensor("blk.0.attn_q.weight", 0, {256, 4200}, bytes_of(want));
  run(writer, "NVFP4", 1);
  const std::vector<std::byte> alone = out_;
  run(writer, "NVFP4", 3);
  EXPECT_EQ(out_, alone);
  EXPECT_EQ(values("blk.0.attn_q.scale"), std::vector<float>{0x1p-16F});
}

}  // namespace
}  // namespace gen::model
