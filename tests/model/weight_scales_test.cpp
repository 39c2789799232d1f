// SPDX-License-Identifier: Apache-2.0
// A scale beside a matrix is a factor of it: a file with scales that are powers of two gives the
// bits of one whose weights were multiplied by them, in every family, at every shape of a step.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "model/gguf/gguf_file.h"
#include "support/loaded_tiny.h"

namespace gen::model {
namespace {

const std::vector<int32_t> kTokens = {3, 14, 15, 9,  26, 5,  35, 8, 9,
                                      7, 9,  32, 38, 46, 26, 43, 0, 1};

/// Logits of all tokens, in steps of n rows.
std::vector<float> logits(const test::LoadedTiny& model, size_t n) {
  const auto cache = model.cache();
  std::vector<float> all;
  for (size_t at = 0; at < kTokens.size(); at += n) {
    const size_t count = std::min(n, kTokens.size() - at);
    const auto part = model.feed(*cache, std::span(kTokens).subspan(at, count));
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

class WeightScales : public testing::TestWithParam<const char*> {};

TEST_P(WeightScales, AreFactorsOfTheirMatrices) {
  test::TinyModelSpec spec;
  spec.architecture = GetParam();
  spec.biases = true;
  test::TinyModel plain(spec);
  test::TinyModel beside(spec);
  test::GgufImage image = plain.writer().build();
  const auto bytes = plain.bytes();
  const auto file = gguf::GgufFile::parse(bytes).value();
  int factors = 0;
  for (const gguf::TensorInfo& tensor : file->tensors()) {
    if (tensor.shape[1] == 1) continue;
    const float factor = std::ldexp(1.0F, factors++ % 7 - 3);
    const std::string stem = tensor.name.substr(0, tensor.name.rfind('.'));
    const std::string name = factors % 2 == 0 ? stem + ".scale" : tensor.name + ".scale";
    std::vector<std::byte> number(sizeof factor);
    std::memcpy(number.data(), &factor, sizeof factor);
    beside.writer().tensor(name, 0, {1}, number);
    std::byte* const at = image.bytes.data() + image.at(tensor.name + ".data");
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      float value = 0.0F;
      std::memcpy(&value, at + static_cast<size_t>(i) * sizeof value, sizeof value);
      value *= factor;
      std::memcpy(at + static_cast<size_t>(i) * sizeof value, &value, sizeof value);
    }
  }
  EXPECT_GT(factors, 10);
  const test::LoadedTiny with(beside);
  const test::LoadedTiny multiplied(std::move(image.bytes));
  const test::LoadedTiny without(plain);
  const std::vector<float> want = logits(multiplied, 1);
  EXPECT_NE(want, logits(without, 1));
  for (const size_t n : {size_t{1}, size_t{5}, kTokens.size()}) {
    EXPECT_EQ(logits(with, n), want) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(All, WeightScales,
                         testing::Values("llama", "qwen2", "gemma2", "phi3", "olmo2", "granite"));

}  // namespace
}  // namespace gen::model
