// SPDX-License-Identifier: Apache-2.0
// Random models of gemma4 with random assistants through the public C API: every form of the family
// takes one, and says with it what it says without.
#include <generate/generate.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "golden/random_models.h"
#include "support/gguf_writer.h"

namespace gen::test {
namespace {

/// Of a greedy and a drawn call; `eagle` is the assistant's file, if any.
std::string assisted_text(gen_model* model, const char* eagle, double* drafted) {
  gen_error error = {};
  gen_options* options = nullptr;
  gen_generator* generator = nullptr;
  gen_sampling* sampling = nullptr;
  EXPECT_EQ(gen_options_new(&options, &error), GEN_OK);
  EXPECT_EQ(gen_options_set(options, "draft_policy", "always", &error), GEN_OK);
  EXPECT_EQ(gen_options_set_eagle(options, eagle, &error), GEN_OK);
  EXPECT_EQ(gen_create(model, options, &generator, &error), GEN_OK) << error.message;
  EXPECT_EQ(gen_sampling_new(&sampling, &error), GEN_OK);
  EXPECT_EQ(gen_sampling_set_max_new_tokens(sampling, 60, &error), GEN_OK);
  EXPECT_EQ(gen_sampling_set_ignore_eos(sampling, 1, &error), GEN_OK);
  std::string all;
  for (const double temperature : {0.0, 0.8}) {
    gen_result* result = nullptr;
    EXPECT_EQ(gen_sampling_set_temperature(sampling, temperature, &error), GEN_OK);
    EXPECT_EQ(gen_generate(generator, "The quick brown fox jumps over the lazy dog.",
                           GEN_NUL_TERMINATED, sampling, &result, &error),
              GEN_OK)
        << error.message;
    size_t n = 0;
    const char* const text = gen_result_text(result, &n);
    all.append(text, n).append("|");
    gen_result_free(result);
  }
  EXPECT_EQ(gen_generator_draft_stats(generator, "drafted", drafted, &error), GEN_OK);
  gen_sampling_free(sampling);
  gen_free(generator);
  gen_options_free(options);
  return all;
}

TEST(RandomAssistants, ChangeNoText) {
  const std::string path =
      testing::TempDir() + "/generate_assistant_" + std::to_string(getpid()) + ".gguf";
  int32_t models = 0;
  for (const std::string& name : random_model_names()) {
    const std::vector<std::byte> assistant = make_random_assistant(name);
    if (assistant.empty()) continue;
    SCOPED_TRACE(name);
    ++models;
    gen_error error = {};
    gen_model* model = nullptr;
    const std::vector<std::byte> bytes = make_random_model(name);
    ASSERT_EQ(gen_model_load_memory(bytes.data(), bytes.size(), nullptr, &model, &error), GEN_OK)
        << error.message;
    ASSERT_TRUE(write_file(path, assistant));
    double none = 0;
    double drafted = 0;
    const std::string want = assisted_text(model, nullptr, &none);
    EXPECT_EQ(assisted_text(model, path.c_str(), &drafted), want);
    EXPECT_EQ(none, 0);
    EXPECT_GT(drafted, 100);
    gen_model_free(model);
  }
  unlink(path.c_str());
  EXPECT_GE(models, 3);
}

}  // namespace
}  // namespace gen::test
