// SPDX-License-Identifier: Apache-2.0
// The assistant of a gemma4 from a file beside it: texts are those without it under every option of
// caches, and a file that does not fit is refused with a line that names it and what is wrong.
#include <generate/generate.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "support/tiny_assistant.h"
#include "support/tiny_vocabulary.h"

#include "status_record.h"

namespace gen {
namespace {

using test::TinyAssistant;
using test::TinyAssistantSpec;

test::TinyModelSpec assisted_spec(int32_t window) {
  test::TinyModelSpec spec;
  spec.architecture = "gemma4";
  spec.layers = 3;
  spec.window = window;
  spec.local = {1, 1, 0};
  spec.context = 256;
  return spec;
}

class AssistantFiles : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/generate_assistant_" + std::to_string(getpid()) + ".gguf";
  }
  void TearDown() override { unlink(path_.c_str()); }

  void load(const test::TinyModelSpec& spec, gen_model** model) {
    test::TinyModel tiny(spec);
    test::set_tiny_vocabulary(&tiny.writer(), test::tiny_pieces(spec.vocab));
    const std::vector<std::byte> bytes = tiny.bytes();
    ASSERT_EQ(gen_model_load_memory(bytes.data(), bytes.size(), nullptr, model, &error_), GEN_OK)
        << error_.message;
  }
  void write(const TinyAssistantSpec& of, const test::TinyModelSpec& spec = assisted_spec(5)) {
    const test::TinyModel tiny(spec);
    ASSERT_TRUE(test::write_file(path_, TinyAssistant(tiny, of).bytes()));
  }
  using Settings = std::vector<std::pair<const char*, const char*>>;
  gen_generator* create(gen_model* model, const Settings& settings, bool drafts) {
    gen_options* options = nullptr;
    gen_generator* generator = nullptr;
    EXPECT_EQ(gen_options_new(&options, &error_), GEN_OK);
    EXPECT_EQ(gen_options_set(options, "draft_policy", "always", &error_), GEN_OK);
    for (const auto& [name, value] : settings) {
      EXPECT_EQ(gen_options_set(options, name, value, &error_), GEN_OK) << error_.message;
    }
    const char* const path = drafts ? path_.c_str() : nullptr;
    EXPECT_EQ(gen_options_set_eagle(options, path, &error_), GEN_OK);
    status_ = gen_create(model, options, &generator, &error_);
    gen_options_free(options);
    return generator;
  }
  /// What two turns of a session and a fork of it say, at a temperature.
  std::vector<int32_t> said(gen_generator* generator) {
    std::vector<int32_t> all;
    gen_sampling* sampling = nullptr;
    gen_session* session = nullptr;
    gen_session* fork = nullptr;
    EXPECT_EQ(gen_sampling_new(&sampling, &error_), GEN_OK);
    EXPECT_EQ(gen_sampling_set_max_new_tokens(sampling, 40, &error_), GEN_OK);
    EXPECT_EQ(gen_sampling_set_temperature(sampling, 0.7, &error_), GEN_OK);
    EXPECT_EQ(gen_session_new(generator, &session, &error_), GEN_OK);
    const auto say = [&](gen_session* of, const char* text) {
      gen_result* result = nullptr;
      EXPECT_EQ(gen_session_generate(of, text, GEN_NUL_TERMINATED, sampling, &result, &error_),
                GEN_OK)
          << error_.message;
      size_t n = 0;
      const int32_t* const tokens = gen_result_tokens(result, &n);
      all.insert(all.end(), tokens, tokens + n);
      gen_result_free(result);
    };
    say(session, "abaabbab");
    EXPECT_EQ(gen_session_fork(session, &fork, &error_), GEN_OK);
    say(fork, "ba");
    say(session, "bb");
    gen_session_free(fork);
    gen_session_free(session);
    gen_sampling_free(sampling);
    return all;
  }

  std::string path_;
  gen_error error_ = {};
  gen_status status_ = GEN_OK;
};

TEST_F(AssistantFiles, ChangeNoTextUnderAnyOptionOfCaches) {
  const Settings all[] = {{},
                          {{"kv_dtype", "fp16"}},
                          {{"kv_dtype", "q4"}},
                          {{"kv_dtype", "fp8/q4"}},
                          {{"paged_kv", "1"}},
                          {{"paged_kv", "1"}, {"prefix_cache", "16"}},
                          {{"compressed_kv", "8"}}};
  for (const Settings& settings : all) {
    SCOPED_TRACE(settings.empty() ? "" : settings[0].first);
    // Compressed caches have no windows.
    const bool windows = settings.empty() || settings[0].first != std::string("compressed_kv");
    const test::TinyModelSpec spec = assisted_spec(windows ? 5 : 0);
    gen_model* model = nullptr;
    load(spec, &model);
    TinyAssistantSpec of;
    if (!windows) of.local = {0, 0};
    write(of, spec);
    gen_generator* const plain = create(model, settings, false);
    ASSERT_NE(plain, nullptr) << error_.message;
    gen_generator* const drafting = create(model, settings, true);
    ASSERT_NE(drafting, nullptr) << error_.message;
    EXPECT_EQ(gen_generator_eagle_enabled(drafting), 1);
    const std::vector<int32_t> want = said(plain);
    EXPECT_EQ(want.size(), 120U);
    EXPECT_EQ(said(drafting), want);
    double drafted = 0;
    EXPECT_EQ(gen_generator_draft_stats(drafting, "drafted", &drafted, &error_), GEN_OK);
    EXPECT_GT(drafted, 100);
    gen_free(plain);
    gen_free(drafting);
    gen_model_free(model);
  }
}

TEST_F(AssistantFiles, AreRefusedByName) {
  const auto refused = [&](const test::TinyModelSpec& spec, const TinyAssistantSpec& of,
                           gen_status status, const std::string& says) {
    SCOPED_TRACE(says);
    gen_model* model = nullptr;
    load(spec, &model);
    write(of);
    EXPECT_EQ(create(model, {}, true), nullptr);
    EXPECT_EQ(status_, status);
    const std::string message = error_.message;
    EXPECT_NE(message.find(path_), std::string::npos) << message;
    EXPECT_NE(message.find(says), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    gen_model_free(model);
  };
  refused({}, {}, GEN_ERROR_UNSUPPORTED, "an assistant of gemma4 for a model llama");
  refused(assisted_spec(6), {}, GEN_ERROR_FORMAT,
          "block 0 has window 5, cache layer 1, which it reads, has 6");
  refused(assisted_spec(5), {.without = "nextn.pre_projection.weight"}, GEN_ERROR_FORMAT,
          "nextn.pre_projection.weight");
  refused(assisted_spec(5), {.other = {{"embedding_length_out", 65}}}, GEN_ERROR_FORMAT,
          "embedding_length_out is 65");
}

TEST_F(AssistantFiles, AreNoModels) {
  write({});
  gen_model* model = nullptr;
  EXPECT_EQ(gen_model_load(path_.c_str(), nullptr, &model, &error_), GEN_ERROR_UNSUPPORTED);
  EXPECT_EQ(model, nullptr);
  EXPECT_NE(std::string(error_.message).find("gemma4-assistant"), std::string::npos);
}

}  // namespace
}  // namespace gen
