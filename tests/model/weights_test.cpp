// SPDX-License-Identifier: Apache-2.0
// Proves that tensors are found by name and checked, that the first mistake is the one reported,
// and that a scan finds weights that are no numbers in every format.
#include "model/weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "quant/format.h"
#include "support/gguf_writer.h"
#include "tensor/half.h"

namespace gen::model {
namespace {

std::shared_ptr<const gguf::GgufFile> file_of(const std::vector<std::byte>& bytes) {
  auto file = gguf::GgufFile::parse(bytes);
  EXPECT_TRUE(file.ok()) << file.status().message();
  return file.ok() ? file.value() : nullptr;
}

std::vector<std::byte> floats(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

class WeightsTest : public testing::Test {
 protected:
  WeightsTest() {
    test::GgufWriter writer;
    writer.tensor("m", 0, {3, 2}, floats({1, 2, 3, 4, 5, 6}));
    writer.tensor("v", 0, {4}, floats({1, -2, 3, 0.5F}));
    std::vector<std::byte> halves(8);
    const uint16_t bits[] = {f32_to_f16(1.5F), f32_to_f16(-2.0F), 0, f32_to_f16(8.0F)};
    std::memcpy(halves.data(), bits, sizeof bits);
    writer.tensor("h", 1, {4}, halves);
    bytes_ = writer.build().bytes;
    file_ = file_of(bytes_);
  }
  std::vector<std::byte> bytes_;
  std::shared_ptr<const gguf::GgufFile> file_;
};

TEST_F(WeightsTest, HandsOutWhatTheFileHolds) {
  Weights weights(*file_, true);
  const engine::WeightSource m = weights.matrix("m", 2, 3);
  EXPECT_STREQ(m.name, "m");
  EXPECT_EQ(m.rows, 2);
  EXPECT_EQ(m.cols, 3);
  EXPECT_EQ(m.data.size(), 24U);
  EXPECT_TRUE(m.lasting);
  EXPECT_EQ(weights.vector("v", 4), (std::vector<float>{1, -2, 3, 0.5F}));
  EXPECT_EQ(weights.optional_vector("h", 4), (std::vector<float>{1.5F, -2, 0, 8}));
  EXPECT_TRUE(weights.optional_vector("none", 4).empty());
  EXPECT_TRUE(weights.finish().ok());
  EXPECT_FALSE(Weights(*file_, false).matrix("m", 2, 3).lasting);
}

TEST_F(WeightsTest, PiecesAreRowsOfTheWhole) {
  Weights weights(*file_, true);
  const engine::WeightSource last = weights.rows("m", 2, 1, 1, 3);
  EXPECT_STREQ(last.name, "m");
  EXPECT_EQ(last.rows, 1);
  EXPECT_EQ(last.cols, 3);
  ASSERT_EQ(last.data.size(), 12U);
  EXPECT_EQ(std::memcmp(last.data.data(), std::vector<float>{4, 5, 6}.data(), 12), 0);
  EXPECT_EQ(weights.rows("m", 2, 0, 2, 3).data.size(), 24U);
  const engine::WeightSource wrong = weights.rows("m", 3, 1, 2, 3);
  EXPECT_EQ(wrong.rows, 2);
  EXPECT_TRUE(wrong.data.empty());
  EXPECT_STREQ(weights.finish().message(), "tensor m is 3 x 2, expected 3 x 3");
}

TEST_F(WeightsTest, KeepsTheFirstMistake) {
  Weights weights(*file_, true);
  const engine::WeightSource wrong = weights.matrix("m", 3, 2);
  EXPECT_EQ(wrong.rows, 3);  // so that a graph can still be named
  EXPECT_TRUE(wrong.data.empty());
  EXPECT_TRUE(weights.vector("none", 4).empty());
  const Status status = weights.finish();
  EXPECT_EQ(status.code(), Code::kFormat);
  EXPECT_STREQ(status.message(), "tensor m is 3 x 2, expected 2 x 3");
}

TEST_F(WeightsTest, WrongLengthsAndMissingOnes) {
  Weights short_vector(*file_, true);
  EXPECT_TRUE(short_vector.optional_vector("v", 5).empty());
  EXPECT_EQ(short_vector.finish().code(), Code::kFormat);
  Weights missing(*file_, true);
  missing.matrix("w", 2, 3);
  EXPECT_STREQ(missing.finish().message(), "tensor w is missing");
}

TEST_F(WeightsTest, EveryTensorNeedsAPlace) {
  Weights weights(*file_, true);
  weights.matrix("m", 2, 3);
  weights.vector("v", 4);
  const Status status = weights.finish();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_STREQ(status.message(), "tensor h has no place in this architecture");
  EXPECT_TRUE(weights.finish_model(2, 3).ok());
  EXPECT_EQ(weights.skipped_bytes(), file_->find_tensor("h")->data.size());
  weights.ignore("h");
  EXPECT_TRUE(weights.finish().ok());
  EXPECT_TRUE(weights.finish_model(2, 3).ok());
  EXPECT_EQ(weights.skipped_bytes(), 0U);
}

TEST(Weights, OfTheTextWithoutAPlaceAreRefused) {
  for (const std::string name :
       {"blk.0.attn_q.bias", "blk.3.attn_q.bias", "output.bias", "token_types.weight"}) {
    test::GgufWriter writer;
    writer.tensor(name, 0, {1, 2}, floats({1, 2}));
    const auto bytes = writer.build().bytes;
    const auto file = file_of(bytes);
    Weights weights(*file, true);
    const Status status = weights.finish_model(2, 3);
    EXPECT_EQ(status.code(), Code::kUnsupported);
    EXPECT_EQ(std::string(status.message()),
              "tensor " + name + " has no place in this architecture");
    weights.ignore(name);
    EXPECT_TRUE(weights.finish_model(2, 3).ok());
  }
}

TEST(WeightScales, AreOneNumberBesideTheMatrix) {
  test::GgufWriter writer;
  const auto two = [&](const char* name) { writer.tensor(name, 0, {1, 2}, floats({1, 2})); };
  const auto one = [&](const char* name, float value) {
    writer.tensor(name, 0, {1}, floats({value}));
  };
  two("a.weight");
  one("a.scale", 0.25F);
  one("a.input_scale", 7.0F);
  two("b.weight");
  one("b.weight.scale", -3.0F);
  one("b.weight.input_scale", 7.0F);
  two("c.weight");
  writer.tensor("c.scale", 0, {2}, floats({5, 6}));
  two("d");
  one("d.scale", 5.0F);
  const auto bytes = writer.build().bytes;
  const auto file = file_of(bytes);
  Weights weights(*file, true);
  EXPECT_EQ(weights.matrix("a.weight", 2, 1).scale, 0.25F);
  EXPECT_EQ(weights.rows("a.weight", 2, 1, 1, 1).scale, 0.25F);
  EXPECT_EQ(weights.matrix("b.weight", 2, 1).scale, -3.0F);
  EXPECT_EQ(weights.matrix("c.weight", 2, 1).scale, 1.0F);
  EXPECT_EQ(weights.matrix("d", 2, 1).scale, 1.0F);
  EXPECT_STREQ(weights.finish().message(), "tensor c.scale has no place in this architecture");
  EXPECT_STREQ(weights.finish_model(2, 3).message(), weights.finish().message());
  EXPECT_EQ(weights.vector("c.scale", 2), (std::vector<float>{5, 6}));  // somebody knows it
  EXPECT_STREQ(weights.finish().message(), "tensor d.scale has no place in this architecture");
  weights.ignore("d.scale");
  EXPECT_TRUE(weights.finish().ok()) << weights.finish().message();
}

TEST(WeightScales, OfWhatIsNotReadAreNotEither) {
  for (const std::string of : {"blk.1.attn_k", "blk.1.attn_v.weight"}) {
    test::GgufWriter writer;
    writer.tensor("blk.1.attn_k.weight", 0, {1, 2}, floats({1, 2}));
    writer.tensor("blk.1.attn_v.weight", 0, {1, 2}, floats({1, 2}));
    writer.tensor(of + ".scale", 0, {1}, floats({2}));
    writer.tensor(of + ".input_scale", 0, {1}, floats({2}));
    const auto bytes = writer.build().bytes;
    const auto file = file_of(bytes);
    Weights weights(*file, true);
    weights.ignore("blk.1.attn_k.weight");
    weights.ignore("blk.1.attn_v.weight");
    EXPECT_TRUE(weights.finish().ok()) << weights.finish().message();
    EXPECT_TRUE(weights.finish_model(2, 3).ok());
    EXPECT_EQ(weights.skipped_bytes(), 0U);
  }
}

TEST(WeightScales, ThatScaleNothingAreRefused) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const auto& [value, shown] :
       {std::pair{0.0F, "0"}, std::pair{kInfinity, "inf"}, std::pair{-kInfinity, "-inf"},
        std::pair{NAN, "nan"}, std::pair{1e-40F, "9.99995e-41"}}) {
    test::GgufWriter writer;
    writer.tensor("a.weight", 0, {1, 2}, floats({1, 2}));
    writer.tensor("a.scale", 0, {1}, floats({value}));
    const auto bytes = writer.build().bytes;
    const auto file = file_of(bytes);
    Weights weights(*file, true);
    weights.matrix("a.weight", 2, 1);
    const Status status = weights.finish();
    EXPECT_EQ(status.code(), Code::kFormat);
    EXPECT_EQ(std::string(status.message()),
              "tensor a.scale is " + std::string(shown) + ", which scales nothing");
  }
}

TEST(Weights, ValuesThatAreComparedMustBeFinite) {
  for (const float value : {1e38F, NAN, std::numeric_limits<float>::infinity()}) {
    test::GgufWriter writer;
    writer.tensor("a.bias", 0, {3}, floats({0, 1, value}));
    const auto bytes = writer.build().bytes;
    const auto file = file_of(bytes);
    Weights weights(*file, true);
    EXPECT_EQ(weights.optional_finite_vector("a.bias", 3).size(), 3U);
    EXPECT_TRUE(weights.optional_finite_vector("b.bias", 3).empty());
    const Status status = weights.finish();
    EXPECT_EQ(status.ok(), value == 1e38F);
    if (value == 1e38F) continue;
    EXPECT_EQ(status.code(), Code::kFormat);
    EXPECT_STREQ(status.message(), "tensor a.bias: value 2 is not finite");
  }
}

struct Poison {
  const char* name;
  DType type;
  size_t at;  // byte of the second block, or element, that is overwritten
  std::vector<uint8_t> with;
};

class Scan : public testing::TestWithParam<Poison> {};

TEST_P(Scan, FindsWhatIsNoNumber) {
  const Poison& poison = GetParam();
  const DTypeInfo& info = *dtype_info(poison.type);
  constexpr int64_t kCount = 8192;
  std::vector<float> values(kCount);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  std::vector<std::byte> data(static_cast<size_t>(kCount) / info.block_elements * info.block_bytes);
  quant::find_format(poison.type)->encode(values.data(), data.data(), kCount);
  gguf::TensorInfo tensor;
  tensor.name = "w";
  tensor.type = poison.type;
  tensor.shape = {kCount / 2, 2, 1, 1};
  tensor.n_dims = 2;
  tensor.data = data;
  EXPECT_TRUE(check_finite(tensor).ok());
  // In the last block, so that the whole tensor must be looked at.
  const size_t last = data.size() - info.block_bytes;
  std::memcpy(data.data() + last + poison.at, poison.with.data(), poison.with.size());
  const Status status = check_finite(tensor);
  EXPECT_EQ(status.code(), Code::kFormat);
  EXPECT_EQ(std::string(status.message()),
            "tensor w: weight " + std::to_string(kCount - info.block_elements) + " is not finite");
}

const std::vector<uint8_t> kHalfNan = {0x00, 0x7E};
const std::vector<uint8_t> kHalfInf = {0x00, 0x7C};
const Poison kPoisons[] = {
    {"f32_nan", DType::kF32, 0, {0x00, 0x00, 0xC0, 0x7F}},
    {"f32_inf", DType::kF32, 0, {0x00, 0x00, 0x80, 0xFF}},
    {"f16_nan", DType::kF16, 0, kHalfNan},
    {"bf16_inf", DType::kBF16, 0, {0x80, 0x7F}},
    {"q8_0_scale", DType::kQ8_0, 0, kHalfNan},
    {"q4_0_scale", DType::kQ4_0, 0, kHalfInf},
    {"q4_k_scale", DType::kQ4_K, 0, kHalfInf},
    {"q4_k_minimum", DType::kQ4_K, 2, kHalfNan},
    {"q6_k_scale", DType::kQ6_K, 208, kHalfInf},
};
INSTANTIATE_TEST_SUITE_P(All, Scan, testing::ValuesIn(kPoisons),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(Scan, RefusesTypesWithoutACodec) {
  gguf::TensorInfo tensor;
  tensor.name = "w";
  tensor.type = DType::kI32;
  EXPECT_EQ(check_finite(tensor).code(), Code::kUnsupported);
}

}  // namespace
}  // namespace gen::model
