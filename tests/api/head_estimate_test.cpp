// SPDX-License-Identifier: Apache-2.0
// gen_estimate_memory counts the head of a model's own file where it drafts.
#include <generate/generate.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "support/tiny_model.h"
#include "support/tiny_vocabulary.h"

#include "counting_allocator.h"
#include "status_record.h"

namespace gen {
namespace {

class HeadEstimate : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/generate_head_" + std::to_string(getpid()) + ".gguf";
    spec_.architecture = "glm4";
    spec_.layers = 3;
    spec_.draft_layers = 1;
    test::TinyModel tiny(spec_);
    test::set_tiny_vocabulary(&tiny.writer(), test::tiny_pieces(spec_.vocab));
    ASSERT_TRUE(test::write_file(path_, tiny.bytes()));
    ASSERT_EQ(gen_options_new(&options_, &error_), GEN_OK);
  }
  void TearDown() override {
    gen_options_free(options_);
    unlink(path_.c_str());
  }
  void set(const char* key, const char* value) {
    ASSERT_EQ(gen_options_set(options_, key, value, &error_), GEN_OK) << error_.message;
  }
  size_t foretold(const char* key) {
    gen_memory_estimate* estimate = nullptr;
    size_t bytes = 0;
    EXPECT_EQ(gen_estimate_memory(path_.c_str(), nullptr, options_, &estimate, &error_), GEN_OK)
        << error_.message;
    EXPECT_EQ(gen_memory_estimate_get(estimate, key, &bytes, &error_), GEN_OK);
    gen_memory_estimate_free(estimate);
    return bytes;
  }
  /// Weights while a generator with the options is there.
  size_t weights() {
    gen_model* model = nullptr;
    gen_generator* generator = nullptr;
    size_t bytes = 0;
    EXPECT_EQ(gen_model_load(path_.c_str(), nullptr, &model, &error_), GEN_OK) << error_.message;
    EXPECT_EQ(gen_create(model, options_, &generator, &error_), GEN_OK) << error_.message;
    EXPECT_EQ(gen_model_memory(model, "weights", &bytes, &error_), GEN_OK);
    gen_free(generator);
    gen_model_free(model);
    return bytes;
  }

  test::TinyModelSpec spec_;
  std::string path_;
  gen_options* options_ = nullptr;
  gen_error error_ = {};
};

TEST_F(HeadEstimate, WhereItDrafts) {
  const size_t of_layer = sizeof(float) * 2 * static_cast<size_t>(spec_.kv_heads) *
                          static_cast<size_t>(spec_.head_dim) * static_cast<size_t>(spec_.context);
  const auto layers = static_cast<size_t>(spec_.layers);
  for (const char* heads : {"auto", "on", "off"}) {
    SCOPED_TRACE(heads);
    set("draft_heads", heads);
    const bool drafts = std::string(heads) != "off";
    EXPECT_EQ(foretold("cache"), (layers + (drafts ? 1 : 0)) * of_layer);
    EXPECT_EQ(foretold("weights"), weights());
  }
  set("draft_heads", "off");
  const size_t without = weights();
  set("draft_heads", "on");
  EXPECT_GT(weights(), without);
  // Where others draft, it does not unless told to.
  set("draft_heads", "auto");
  set("self_draft", "1");
  EXPECT_EQ(foretold("cache"), layers * of_layer);
  EXPECT_EQ(foretold("weights"), without);
}

// A state keeps the rows of two drafts in a row.
TEST_F(HeadEstimate, OfAModelWithAState) {
  spec_.architecture = "qwen35";
  spec_.layers = 4;
  spec_.context = 40;
  test::TinyModel tiny(spec_);
  test::set_tiny_vocabulary(&tiny.writer(), test::tiny_pieces(spec_.vocab));
  ASSERT_TRUE(test::write_file(path_, tiny.bytes()));
  set("draft_heads", "on,20");
  set("draft_policy", "always");
  set("state_snapshot_budget", "0");
  counting counts = {};
  const gen_allocator table = {sizeof table, &counts, counting_allocate, counting_release};
  gen_model_options* load = nullptr;
  gen_model* model = nullptr;
  gen_session* session = nullptr;
  gen_generator* generator = nullptr;
  gen_sampling* sampling = nullptr;
  ASSERT_EQ(gen_model_options_new(&load, &error_), GEN_OK);
  ASSERT_EQ(gen_model_options_set_allocator(load, &table, &error_), GEN_OK);
  ASSERT_EQ(gen_model_load(path_.c_str(), load, &model, &error_), GEN_OK) << error_.message;
  ASSERT_EQ(gen_create(model, options_, &generator, &error_), GEN_OK) << error_.message;
  ASSERT_EQ(gen_sampling_new(&sampling, &error_), GEN_OK);
  ASSERT_EQ(gen_sampling_set(sampling, "ignore_eos", "1", &error_), GEN_OK);
  // A prompt up to the end, then drafts of which most are wrong.
  for (const int32_t said : {2, 24}) {
    gen_session_free(session);
    ASSERT_EQ(gen_session_new(generator, &session, &error_), GEN_OK);
    const std::vector<int32_t> prompt(static_cast<size_t>(spec_.context - said), 5);
    ASSERT_EQ(gen_session_append_tokens(session, prompt.data(), prompt.size(), &error_), GEN_OK);
    ASSERT_EQ(gen_sampling_set_max_new_tokens(sampling, said, &error_), GEN_OK);
    ASSERT_EQ(gen_session_generate(session, "", 0, sampling, nullptr, &error_), GEN_OK);
  }
  EXPECT_GE(foretold("peak"), counts.peak);
  gen_sampling_free(sampling);
  gen_session_free(session);
  gen_free(generator);
  gen_model_free(model);
  gen_model_options_free(load);
}

}  // namespace
}  // namespace gen
