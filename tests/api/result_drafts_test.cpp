// SPDX-License-Identifier: Apache-2.0
// gen_result_drafts: what was drafted for each pass adds up to the counts, and what was accepted is
// the text.
#include <generate/generate.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "status_record.h"

namespace gen {
namespace {

const std::string kFolder = GEN_TEST_SOURCE_DIR "/examples/demo_model/";

class ResultDrafts : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(gen_model_load((kFolder + "story.gguf").c_str(), nullptr, &model_, &error_), GEN_OK);
    ASSERT_EQ(gen_options_new(&options_, &error_), GEN_OK);
    set("draft_policy", "always");
  }
  void TearDown() override {
    gen_options_free(options_);
    gen_model_free(model_);
  }
  void set(const char* key, const char* value) {
    ASSERT_EQ(gen_options_set(options_, key, value, &error_), GEN_OK) << error_.message;
  }
  gen_result* say(const std::string& prompt, int32_t tokens, double temperature) {
    gen_generator* generator = nullptr;
    gen_sampling* sampling = nullptr;
    gen_result* result = nullptr;
    EXPECT_EQ(gen_create(model_, options_, &generator, &error_), GEN_OK) << error_.message;
    EXPECT_EQ(gen_sampling_new(&sampling, &error_), GEN_OK);
    EXPECT_EQ(gen_sampling_set_max_new_tokens(sampling, tokens, &error_), GEN_OK);
    EXPECT_EQ(gen_sampling_set_temperature(sampling, temperature, &error_), GEN_OK);
    EXPECT_EQ(gen_sampling_set_seed(sampling, 7, &error_), GEN_OK);
    EXPECT_EQ(gen_generate(generator, prompt.data(), prompt.size(), sampling, &result, &error_),
              GEN_OK);
    gen_sampling_free(sampling);
    gen_free(generator);
    return result;
  }
  nlohmann::json drafts(const gen_result* result) {
    size_t n = 0;
    EXPECT_EQ(gen_result_drafts(result, nullptr, 0, &n, &error_), GEN_OK);
    std::string text(n + 1, '?');
    EXPECT_EQ(gen_result_drafts(result, text.data(), n, &n, &error_), GEN_ERROR_OUT_OF_RANGE);
    EXPECT_EQ(n + 1, text.size());
    EXPECT_EQ(gen_result_drafts(result, text.data(), text.size(), &n, &error_), GEN_OK);
    EXPECT_EQ(text.back(), '\0');
    text.pop_back();
    return nlohmann::json::parse(text);
  }
  int64_t usage(const gen_result* result, const char* key) {
    int64_t value = -1;
    EXPECT_EQ(gen_result_usage(result, key, &value, &error_), GEN_OK);
    return value;
  }
  /// Checks the record of a result and frees that; returns the names of the drafters.
  std::set<std::string> check(gen_result* result) {
    size_t n = 0;
    const int32_t* const said = gen_result_tokens(result, &n);
    int64_t drafted = 0;
    int64_t accepted = 0;
    size_t next = 1;  // the first token has no draft
    std::set<std::string> names;
    for (const auto& pass : drafts(result)) {
      const auto index = pass.at("index").get<size_t>();
      const auto tokens = pass.at("tokens").get<std::vector<int32_t>>();
      const auto parents = pass.at("parents").get<std::vector<int32_t>>();
      const auto grades = pass.at("grades").get<std::vector<int32_t>>();
      const auto right = pass.at("accepted").get<std::vector<size_t>>();
      EXPECT_FALSE(tokens.empty());
      EXPECT_EQ(parents.size(), tokens.size());
      EXPECT_EQ(grades.size(), tokens.size());
      EXPECT_GE(index, next);  // passes do not overlap
      for (size_t i = 0; i < tokens.size(); ++i) {
        EXPECT_EQ(parents[i], static_cast<int32_t>(i) - 1);  // a chain
        EXPECT_TRUE(grades[i] >= 0 && grades[i] < 5);
      }
      for (size_t i = 0; i < right.size(); ++i) {
        EXPECT_EQ(right[i], i);
        if (index + i < n) {
          EXPECT_EQ(tokens[i], said[index + i]);
        }
      }
      if (right.size() < tokens.size() && index + right.size() < n) {
        EXPECT_NE(tokens[right.size()], said[index + right.size()]);
      }
      next = index + right.size() + 1;
      drafted += static_cast<int64_t>(tokens.size());
      accepted += static_cast<int64_t>(right.size());
      names.insert(pass.at("drafter").get<std::string>());
    }
    EXPECT_EQ(drafted, usage(result, "drafted"));
    EXPECT_EQ(accepted, usage(result, "accepted"));
    EXPECT_GT(accepted, 0);
    EXPECT_LT(accepted, drafted);
    gen_result_free(result);
    return names;
  }

  gen_model* model_ = nullptr;
  gen_options* options_ = nullptr;
  gen_error error_ = {};
};

const std::string kPrompt = "Once upon a time there was a dog. The dog ran. The dog ran. The dog";
using Names = std::set<std::string>;

TEST_F(ResultDrafts, AHead) {
  set("eagle", (kFolder + "eagle3.gguf").c_str());
  EXPECT_EQ(check(say(kPrompt, 120, 0)), (Names{"head"}));
  EXPECT_EQ(check(say(kPrompt, 120, 0.8)), (Names{"head"}));
}

TEST_F(ResultDrafts, ALookup) {
  set("prompt_lookup", "2,4");
  EXPECT_EQ(check(say(kPrompt, 200, 0)), (Names{"lookup"}));
}

TEST_F(ResultDrafts, SeveralTellWhoDrafted) {
  set("suffix_lookup", "5");
  set("self_draft", "2,3");
  set("eagle", (kFolder + "eagle.gguf").c_str());
  const Names names = check(say(kPrompt, 200, 0));
  EXPECT_TRUE(names.contains("suffix"));
  EXPECT_TRUE(names.contains("head"));
  for (const std::string& name : names) {
    EXPECT_TRUE(name == "suffix" || name == "head" || name == "layers") << name;
  }
}

TEST_F(ResultDrafts, AModel) {
  gen_model* draft = nullptr;
  ASSERT_EQ(gen_model_load((kFolder + "draft.gguf").c_str(), nullptr, &draft, &error_), GEN_OK);
  ASSERT_EQ(gen_options_set_speculative_draft(options_, draft, 4, &error_), GEN_OK);
  EXPECT_EQ(check(say(kPrompt, 120, 0)), (Names{"model"}));
  gen_model_free(draft);
}

TEST_F(ResultDrafts, NoneWithoutDrafters) {
  gen_result* const result = say(kPrompt, 12, 0);
  EXPECT_EQ(drafts(result), nlohmann::json::array());
  size_t n = 7;
  EXPECT_EQ(gen_result_drafts(nullptr, nullptr, 0, &n, &error_), GEN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(n, 0u);
  EXPECT_EQ(gen_result_drafts(result, nullptr, 0, nullptr, &error_), GEN_ERROR_INVALID_ARGUMENT);
  gen_result_free(result);
}

}  // namespace
}  // namespace gen
