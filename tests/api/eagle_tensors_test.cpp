// SPDX-License-Identifier: Apache-2.0
// gen_eagle_new_tensors over a model from a file: the tensors of the head beside the bundled model,
// with the model's output layer and with a copy of it, draft what the file does, and change no
// text.
#include <generate/generate.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/gguf/gguf_file.h"
#include "quant/format.h"

#include "status_record.h"

namespace gen {
namespace {

constexpr const char* kFolder = GEN_TEST_SOURCE_DIR "/examples/demo_model/";
constexpr const char* kPrompt = "Once upon a time there was a dog. The dog";

std::vector<float> values_in(const gguf::GgufFile& file, const char* name) {
  const gguf::TensorInfo& tensor = *file.find_tensor(name);
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  quant::find_format(tensor.type)->decode(tensor.data.data(), values.data(), tensor.elements());
  return values;
}

struct Figures {
  std::string text;
  std::vector<int32_t> tokens;
  int64_t drafted = 0;
  int64_t accepted = 0;
};

class EagleTensors : public testing::Test {
 protected:
  void SetUp() override {
    const auto file = gguf::GgufFile::open(std::string(kFolder) + "eagle.gguf").value();
    norm_ = values_in(*file, "eagle.norm.weight");
    bias_ = values_in(*file, "eagle.norm.bias");
    fc1_ = values_in(*file, "eagle.fc1.weight");
    fc2_ = values_in(*file, "eagle.fc2.weight");
    const std::string story = std::string(kFolder) + "story.gguf";
    ASSERT_EQ(gen_model_load(story.c_str(), nullptr, &model_, &error_), GEN_OK) << error_.message;
    tensors_.struct_size = sizeof tensors_;
    tensors_.hidden = static_cast<int32_t>(norm_.size());
    tensors_.norm_weight = norm_.data();
    tensors_.norm_bias = bias_.data();
    tensors_.fc1_weight = fc1_.data();
    tensors_.fc2_weight = fc2_.data();
  }
  void TearDown() override { gen_model_free(model_); }

  /// What it says, and frees it.
  Figures said(gen_eagle* eagle, double temperature) {
    Figures figures;
    gen_sampling* sampling = nullptr;
    gen_result* result = nullptr;
    size_t n = 0;
    EXPECT_EQ(gen_sampling_new(&sampling, &error_), GEN_OK);
    EXPECT_EQ(gen_sampling_set_max_new_tokens(sampling, 60, &error_), GEN_OK);
    EXPECT_EQ(gen_sampling_set_temperature(sampling, temperature, &error_), GEN_OK);
    EXPECT_EQ(gen_eagle_set_adaptive(eagle, 0, &error_), GEN_OK);
    EXPECT_EQ(gen_eagle_generate(eagle, kPrompt, GEN_NUL_TERMINATED, sampling, &result, &error_),
              GEN_OK)
        << error_.message;
    figures.text = gen_result_text(result, nullptr);
    const int32_t* const tokens = gen_result_tokens(result, &n);
    figures.tokens.assign(tokens, tokens + n);
    EXPECT_EQ(gen_result_usage(result, "drafted", &figures.drafted, &error_), GEN_OK);
    EXPECT_EQ(gen_result_usage(result, "accepted", &figures.accepted, &error_), GEN_OK);
    gen_result_free(result);
    gen_sampling_free(sampling);
    gen_eagle_free(eagle);
    return figures;
  }
  gen_eagle* made() {
    gen_eagle* eagle = nullptr;
    EXPECT_EQ(gen_eagle_new_tensors(model_, &tensors_, 4, nullptr, &eagle, &error_), GEN_OK)
        << error_.message;
    return eagle;
  }
  void expect_refused(gen_status status, const std::string& part) {
    gen_eagle* eagle = nullptr;
    EXPECT_EQ(gen_eagle_new_tensors(model_, &tensors_, 4, nullptr, &eagle, &error_), status);
    EXPECT_EQ(eagle, nullptr);
    EXPECT_NE(std::string(error_.message).find(part), std::string::npos) << error_.message;
  }

  std::vector<float> norm_;
  std::vector<float> bias_;
  std::vector<float> fc1_;
  std::vector<float> fc2_;
  gen_model* model_ = nullptr;
  gen_eagle_tensors tensors_ = {};
  gen_error error_ = {};
};

// The model's own output layer is of 8 bits and a copy of it is not, so guesses with it may differ
// where two tokens are nearly alike.
TEST_F(EagleTensors, DraftWhatTheirFileDrafts) {
  const auto story = gguf::GgufFile::open(std::string(kFolder) + "story.gguf").value();
  const char* const output =
      story->find_tensor("output.weight") != nullptr ? "output.weight" : "token_embd.weight";
  std::vector<float> lm_head = values_in(*story, output);
  tensors_.vocab_size = gen_model_config_vocab_size(gen_model_get_config(model_));
  for (const double temperature : {0.0, 0.6}) {
    gen_eagle* of_file = nullptr;
    ASSERT_EQ(gen_eagle_new(model_, (std::string(kFolder) + "eagle.gguf").c_str(), 4, nullptr,
                            &of_file, &error_),
              GEN_OK)
        << error_.message;
    const Figures want = said(of_file, temperature);
    EXPECT_GT(want.accepted, 5);
    for (float* const head : {static_cast<float*>(nullptr), lm_head.data()}) {
      tensors_.lm_head = head;
      const Figures got = said(made(), temperature);
      EXPECT_EQ(got.text, want.text);
      EXPECT_EQ(got.tokens, want.tokens);
      const double most = head == nullptr ? 0.0 : 6.0;
      EXPECT_NEAR(static_cast<double>(got.accepted), static_cast<double>(want.accepted), most);
      EXPECT_NEAR(static_cast<double>(got.drafted), static_cast<double>(want.drafted), 4.0 * most);
    }
  }
  // A head that is read by columns, where rows are meant, is seldom right.
  for (std::vector<float>* const matrix : {&fc1_, &fc2_}) {
    const size_t n = norm_.size();
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < i; ++j) std::swap((*matrix)[i * n + j], (*matrix)[j * n + i]);
    }
  }
  EXPECT_LT(said(made(), 0.0).accepted, 3);
}

TEST_F(EagleTensors, MustFitTheModel) {
  tensors_.lm_head = fc1_.data();
  tensors_.vocab_size = 5;
  expect_refused(GEN_ERROR_INVALID_ARGUMENT, "lm_head has 5 rows for a vocabulary of");
  tensors_.lm_head = nullptr;
  tensors_.hidden = 128;
  expect_refused(GEN_ERROR_INVALID_ARGUMENT, "width 128 for a model with a hidden state of 256");
  tensors_.hidden = 256;
  tensors_.fc2_weight = nullptr;
  expect_refused(GEN_ERROR_INVALID_ARGUMENT, "fc2.weight is NULL");
}

}  // namespace
}  // namespace gen
