// SPDX-License-Identifier: Apache-2.0
// The options of snapshots of a recurrent model's state: what a session that goes back evaluates
// again, what the estimate of memory says of them, and that texts do not depend on them.
#include <generate/generate.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "support/tiny_model.h"
#include "support/tiny_vocabulary.h"

namespace gen {
namespace {

/// Memory of the library, counted.
struct Counts {
  size_t live = 0;
  size_t peak = 0;

  static int32_t take(void* user, size_t bytes, size_t align, void** out) {
    auto& counts = *static_cast<Counts*>(user);
    *out = std::aligned_alloc(align, (bytes + align - 1) / align * align);
    if (*out == nullptr) return GEN_ERROR_OUT_OF_MEMORY;
    counts.live += bytes;
    counts.peak = std::max(counts.peak, counts.live);
    return GEN_OK;
  }
  static void give_back(void* user, void* pointer, size_t bytes) {
    static_cast<Counts*>(user)->live -= bytes;
    std::free(pointer);
  }
};

class StateSnapshots : public ::testing::Test {
 protected:
  static constexpr int32_t kContext = 400;

  void SetUp() override {
    test::TinyModelSpec spec;
    spec.architecture = "qwen35";
    spec.layers = 4;
    spec.context = kContext;
    test::TinyModel tiny(spec);
    test::set_tiny_vocabulary(&tiny.writer(), test::tiny_pieces(spec.vocab));
    const std::vector<std::byte> bytes = tiny.bytes();
    std::ofstream(path).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
    for (int32_t i = 0; i < kContext; ++i) tokens.push_back(i * i % 47);
    ASSERT_EQ(gen_options_new(&options, &error), GEN_OK);
  }
  void TearDown() override {
    gen_options_free(options);
    std::filesystem::remove(path);
  }
  void set(const char* key, const char* value) {
    ASSERT_EQ(gen_options_set(options, key, value, &error), GEN_OK) << error.message;
  }
  size_t estimate(const char* key) {
    gen_memory_estimate* made = nullptr;
    EXPECT_EQ(gen_estimate_memory(path.c_str(), nullptr, options, &made, &error), GEN_OK)
        << error.message;
    size_t bytes = 0;
    EXPECT_EQ(gen_memory_estimate_get(made, key, &bytes, &error), GEN_OK);
    gen_memory_estimate_free(made);
    return bytes;
  }

  const std::string path = (std::filesystem::temp_directory_path() /
                            ("snapshots" + std::to_string(::getpid()) + ".gguf"))
                               .string();
  std::vector<int32_t> tokens;
  gen_options* options = nullptr;
  gen_error error = {};
};

/// A model and a session of it.
struct Talk {
  Talk(const std::string& path, const gen_options* options) {
    const gen_allocator table = {sizeof table, &counts, Counts::take, Counts::give_back};
    gen_model_options* load = nullptr;
    EXPECT_EQ(gen_model_options_new(&load, &error), GEN_OK);
    EXPECT_EQ(gen_model_options_set_allocator(load, &table, &error), GEN_OK);
    EXPECT_EQ(gen_model_load(path.c_str(), load, &model, &error), GEN_OK) << error.message;
    gen_model_options_free(load);
    EXPECT_EQ(gen_create(model, options, &generator, &error), GEN_OK) << error.message;
    EXPECT_EQ(gen_session_new(generator, &session, &error), GEN_OK);
  }
  ~Talk() {
    gen_session_free(session);
    gen_free(generator);
    gen_model_free(model);
    EXPECT_EQ(counts.live, 0U);
  }
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;
  void append(std::span<const int32_t> some) {
    EXPECT_EQ(gen_session_append_tokens(session, some.data(), some.size(), &error), GEN_OK)
        << error.message;
  }
  /// Three tokens, and "prompt_evaluated".
  std::pair<std::vector<int32_t>, int64_t> say() {
    gen_sampling* sampling = nullptr;
    gen_result* result = nullptr;
    EXPECT_EQ(gen_sampling_new(&sampling, &error), GEN_OK);
    EXPECT_EQ(gen_sampling_set_ignore_eos(sampling, 1, &error), GEN_OK);
    EXPECT_EQ(gen_sampling_set_max_new_tokens(sampling, 3, &error), GEN_OK);
    EXPECT_EQ(gen_session_generate(session, "", 0, sampling, &result, &error), GEN_OK)
        << error.message;
    size_t n = 0;
    const int32_t* const ids = gen_result_tokens(result, &n);
    int64_t evaluated = 0;
    EXPECT_EQ(gen_result_usage(result, "prompt_evaluated", &evaluated, &error), GEN_OK);
    std::pair<std::vector<int32_t>, int64_t> said = {{ids, ids + n}, evaluated};
    gen_result_free(result);
    gen_sampling_free(sampling);
    return said;
  }

  Counts counts;
  gen_model* model = nullptr;
  gen_generator* generator = nullptr;
  gen_session* session = nullptr;
  gen_error error = {};
};

TEST_F(StateSnapshots, ASessionGoesBackToTheNearest) {
  std::vector<int32_t> want;
  for (const auto& [every, budget, rows] :
       {std::tuple{"32", "-1", 200 - 192}, std::tuple{"0", "-1", 200},
        std::tuple{"32", "0", 200}}) {
    set("state_snapshot_every", every);
    set("state_snapshot_budget", budget);
    Talk talk(path, options);
    talk.append(std::span(tokens).first(250));
    ASSERT_EQ(gen_session_truncate(talk.session, 200, &error), GEN_OK);
    const auto [said, evaluated] = talk.say();
    EXPECT_EQ(evaluated, rows) << every << " " << budget;
    if (want.empty()) want = said;
    EXPECT_EQ(said, want);
  }
}

TEST_F(StateSnapshots, TheEstimateHoldsTheirBudget) {
  set("state_snapshot_every", "8");
  set("state_snapshot_budget", "0");
  EXPECT_EQ(estimate("snapshots"), 0U);
  EXPECT_EQ(estimate("device_snapshots"), 0U);
  const size_t without = estimate("peak");
  for (const char* const budget : {"-1", "0", "1"}) {
    SCOPED_TRACE(budget);
    set("state_snapshot_budget", budget);
    const size_t snapshots = estimate("snapshots");
    const size_t peak = estimate("peak");
    EXPECT_EQ(snapshots > 0, *budget != '0');
    EXPECT_LE(peak, without + snapshots);
    if (*budget == '1') {
      EXPECT_LE(snapshots, size_t{1} << 20);
    }
    Talk talk(path, options);
    talk.append(std::span(tokens).first(kContext - 1));
    talk.say();
    EXPECT_GE(peak, talk.counts.peak);
    EXPECT_LE(peak, talk.counts.peak + snapshots + 4096);
  }
}

}  // namespace
}  // namespace gen
