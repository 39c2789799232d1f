// SPDX-License-Identifier: Apache-2.0
// Parity with llama.cpp through the public C API: tokens, the ten best probabilities at each
// position of a text, greedy continuation. The cache is float16, llama.cpp's usual, but float32 for
// dequantised models. The expected values are golden files made by make_goldens.sh; random_models.h
// and bundled_models.h make the models that are not in the tree.
#include <generate/experimental.h>
#include <generate/generate.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "golden/bundled_models.h"
#include "golden/golden_file.h"
#include "golden/random_models.h"

namespace gen::test {
namespace {

const std::string kFolder = GEN_TEST_SOURCE_DIR "/tests/golden";

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Model = std::unique_ptr<gen_model, Freer<gen_model_free>>;
using Cache = std::unique_ptr<kv_cache, Freer<kv_cache_free>>;

std::vector<std::byte> model_bytes(const GoldenFile& golden) {
  if (golden.kind == "random") return make_random_model(golden.model);
  if (golden.kind == "dequantised") return make_dequantised_model(golden.model);
  return read_bundled_model(golden.model);
}

/// How far probabilities may be from the golden ones: every one by `most`, all but `exempt` of them
/// by `usual`. Weights that keep their value agree closely. Quantised weights are multiplied with
/// inputs rounded to 8 bits, so that a difference in a last bit can move an input by one of its
/// steps; in a trained model, at some positions, that shows. Against the same weights run with
/// float32 inputs, values of an earlier training were off by up to 0.068 in llama.cpp, 0.060 here,
/// with 7 to 10 % beyond 0.005 in both, so no closer agreement between the two can be asked of
/// them. BF16 weights at CPU level avx512_bf16 take inputs rounded to 8 bits, by 2^-9 of each; so
/// does llama.cpp, but not the same ones, and values differ by up to 0.0012 instead of 0.0007 where
/// only it rounds. Dequantised, with a float32 cache as well, nothing is rounded in either program:
/// they then agree to some 0.00003.
struct Tolerance {
  double usual = 0;
  double most = 0;
  double exempt = 0;
};

bool rounds_bf16() {
  char info[4096];
  size_t n = 0;
  gen_error error;
  return gen_build_info(info, sizeof(info), &n, &error) == GEN_OK &&
         std::string(info, n).find("\"cpu\":\"avx512_bf16\"") != std::string::npos;
}

Tolerance tolerance(const GoldenFile& golden) {
  if (golden.kind == "bundled") return {5e-3, 0.1, 0.1};
  const DTypeInfo* format = dtype_info(random_model_format(golden.model));
  if (golden.kind == "random" && format->block_elements > 1) return {5e-3, 5e-3, 0};
  if (format->type == DType::kBF16 && rounds_bf16()) return {2e-3, 2e-3, 0};
  return {1e-3, 1e-3, 0};
}

std::vector<double> softmax(std::span<const float> logits) {
  const double most = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  std::vector<double> out(logits.size());
  double sum = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = std::exp(static_cast<double>(logits[i]) - most);
    sum += out[i];
  }
  for (double& p : out) p /= sum;
  return out;
}

class Golden : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(read_golden(GetParam(), &golden_)) << GetParam();
    const std::vector<std::byte> bytes = model_bytes(golden_);
    ASSERT_EQ(fingerprint(bytes), golden_.fingerprint)
        << "the golden file was made for another " << golden_.model << "; see make_goldens.sh";
    gen_model* model = nullptr;
    ASSERT_EQ(gen_model_load_memory(bytes.data(), bytes.size(), nullptr, &model, &error_), GEN_OK)
        << error_.message;
    model_.reset(model);
    const gen_model_config* config = gen_model_get_config(model);
    vocab_size_ = static_cast<size_t>(gen_model_config_vocab_size(config));
    kv_cache* cache = nullptr;
    const auto new_cache = golden_.kind == "dequantised" ? kv_cache_new : kv_cache_fp16_new;
    ASSERT_EQ(new_cache(gen_model_config_num_cache_layers(config), 1024, &cache, &error_), GEN_OK)
        << error_.message;
    cache_.reset(cache);
  }

  /// Probabilities after each of `tokens`, run in chunks of at most `chunk`.
  std::vector<std::vector<double>> run(std::span<const int32_t> tokens, size_t chunk) {
    std::vector<std::vector<double>> out;
    for (size_t begin = 0; begin < tokens.size(); begin += chunk) {
      const auto part = tokens.subspan(begin, std::min(chunk, tokens.size() - begin));
      std::vector<float> logits(part.size() * vocab_size_);
      kv_cache* cache = cache_.get();
      const gen_status status =
          gen_model_forward_batch(model_.get(), part.data(), nullptr, nullptr, part.size(), &cache,
                                  1, logits.data(), logits.size(), &error_);
      EXPECT_EQ(status, GEN_OK) << error_.message;
      if (status != GEN_OK) return out;
      for (size_t row = 0; row < part.size(); ++row) {
        out.push_back(softmax(std::span(logits).subspan(row * vocab_size_, vocab_size_)));
      }
    }
    return out;
  }

  GoldenFile golden_;
  Model model_;
  Cache cache_;
  size_t vocab_size_ = 0;
  gen_error error_ = {};
};

TEST_P(Golden, TokensAreTheSame) {
  std::vector<int32_t> ids(golden_.text.size() + 2);
  size_t n = 0;
  ASSERT_EQ(gen_tokenizer_encode(gen_model_tokenizer(model_.get()), golden_.text.data(),
                                 golden_.text.size(), GEN_ENCODE_ADD_BOS, ids.data(), ids.size(),
                                 &n, &error_),
            GEN_OK)
      << error_.message;
  ids.resize(n);
  EXPECT_EQ(ids, golden_.tokens);
}

TEST_P(Golden, ProbabilitiesAgree) {
  const Tolerance allowed = tolerance(golden_);
  const auto ours = run(golden_.tokens, 200);
  ASSERT_EQ(ours.size(), golden_.top.size());
  double worst = 0;
  size_t values = 0;
  size_t beyond = 0;
  for (size_t position = 0; position < ours.size(); ++position) {
    const std::vector<double>& row = ours[position];
    std::set<int32_t> listed;
    for (const auto& [id, probability] : golden_.top[position]) {
      ASSERT_TRUE(id >= 0 && static_cast<size_t>(id) < row.size());
      listed.insert(id);
      const double found = row[static_cast<size_t>(id)];
      const double difference = std::fabs(found - probability);
      worst = std::max(worst, difference);
      ++values;
      if (difference > allowed.usual) ++beyond;
      EXPECT_LE(difference, allowed.most) << "position " << position << ", token " << id << ": "
                                          << found << ", not " << probability;
    }
    // Nor may a token that is not listed be better than the last of those that are.
    for (size_t id = 0; id < row.size(); ++id) {
      if (listed.count(static_cast<int32_t>(id)) != 0) continue;
      EXPECT_LE(row[id], golden_.top[position].back().second + allowed.most)
          << "position " << position << ", token " << id;
    }
    if (HasFailure()) break;  // the first position says it all
  }
  EXPECT_LE(static_cast<double>(beyond), allowed.exempt * static_cast<double>(values))
      << beyond << " of " << values << " values differ by more than " << allowed.usual;
  std::printf("    largest difference %.6f, %zu of %zu beyond %.3f\n", worst, beyond, values,
              allowed.usual);
}

// At a near tie either token is right; the golden one is then followed, so that what comes after it
// is compared too.
TEST_P(Golden, GreedyTokensAgreeExceptAtNearTies) {
  const double near_tie = tolerance(golden_).most;
  std::vector<double> row = run(golden_.tokens, 200).back();
  size_t compared = 0;
  for (const int32_t expected : golden_.greedy) {
    const auto best = std::max_element(row.begin(), row.end());
    const double first = *best;
    const auto ours = static_cast<int32_t>(best - row.begin());
    *best = 0;
    const double second = *std::max_element(row.begin(), row.end());
    if (first - second >= near_tie) {
      ASSERT_EQ(ours, expected) << "at " << first << " before " << second;
      ++compared;
    }
    const auto next = run(std::span(&expected, 1), 1);
    ASSERT_EQ(next.size(), 1U);
    row = next[0];
  }
  if (golden_.kind == "random") {  // a hardly trained draft is all near ties
    EXPECT_GT(compared, 0U);
  }
  std::printf("    %zu of %zu compared\n", compared, golden_.greedy.size());
}

std::string case_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = std::filesystem::path(info.param).stem().string();
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Files, Golden, ::testing::ValuesIn(golden_paths(kFolder)), case_name);

TEST(GoldenFiles, EveryModelHasOne) {
  std::set<std::string> models;
  for (const std::string& path : golden_paths(kFolder)) {
    GoldenFile golden;
    ASSERT_TRUE(read_golden(path, &golden)) << path;
    models.insert(golden.model);
  }
  for (const std::string& name : random_model_names()) EXPECT_EQ(models.count(name), 1U) << name;
  for (const std::string& name : dequantised_model_names())
    EXPECT_EQ(models.count(name), 1U) << name;
  for (const char* name : {"story", "draft"}) EXPECT_EQ(models.count(name), 1U) << name;
}

}  // namespace
}  // namespace gen::test
