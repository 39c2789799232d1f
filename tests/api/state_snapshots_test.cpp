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
    write("qwen35");
    for (int32_t i = 0; i < kContext; ++i) tokens.push_back(i * i % 47);
    ASSERT_EQ(gen_options_new(&options, &error), GEN_OK);
  }
  void write(const char* architecture) {
    test::TinyModelSpec spec;
    spec.architecture = architecture;
    spec.layers = 4;
    spec.context = kContext;
    test::TinyModel tiny(spec);
    test::set_tiny_vocabulary(&tiny.writer(), test::tiny_pieces(spec.vocab));
    const std::vector<std::byte> bytes = tiny.bytes();
    std::ofstream(path).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
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
  std::pair<std::vector<int32_t>, int64_t> say() { return say(session); }
  std::pair<std::vector<int32_t>, int64_t> say(gen_session* talks) {
    gen_sampling* sampling = nullptr;
    gen_result* result = nullptr;
    EXPECT_EQ(gen_sampling_new(&sampling, &error), GEN_OK);
    EXPECT_EQ(gen_sampling_set_ignore_eos(sampling, 1, &error), GEN_OK);
    EXPECT_EQ(gen_sampling_set_max_new_tokens(sampling, 3, &error), GEN_OK);
    EXPECT_EQ(gen_session_generate(talks, "", 0, sampling, &result, &error), GEN_OK)
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

// A compressed cache is cut where a chunk ends: only snapshots there are of use.
TEST_F(StateSnapshots, CompressedCachesNeedThemAtTheEndsOfChunks) {
  set("compressed_kv", "8");
  for (const auto& [every, rows] :
       {std::pair{"32", 200 - 192}, std::pair{"36", 200 - 144}, std::pair{"33", 200}}) {
    set("state_snapshot_every", every);
    Talk talk(path, options);
    talk.append(std::span(tokens).first(250));
    ASSERT_EQ(gen_session_truncate(talk.session, 200, &error), GEN_OK);
    EXPECT_EQ(talk.say().second, rows) << every;
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

// A prefix cache keeps snapshots of texts that the session has left.
TEST_F(StateSnapshots, TheEstimateHoldsThoseOfAPrefixCache) {
  set("state_snapshot_every", "16");
  set("state_snapshot_budget", "1");
  set("paged_kv", "16,16");
  const size_t without = estimate("snapshots");
  set("prefix_cache", "1000");
  const size_t snapshots = estimate("snapshots");
  const size_t peak = estimate("peak");
  EXPECT_GE(snapshots, 5 * without);  // of four times the budget, in whole snapshots, too
  EXPECT_LE(snapshots, size_t{5} << 20);
  set("prefix_cache", "2");
  EXPECT_LT(estimate("snapshots"), snapshots);
  set("prefix_cache", "1000");
  Talk talk(path, options);
  for (int32_t text = 0; text < 8; ++text) {
    ASSERT_EQ(gen_session_truncate(talk.session, 0, &error), GEN_OK) << error.message;
    tokens[0] = 1 + text;
    talk.append(std::span(tokens).first(kContext - 3));
    talk.say();
  }
  EXPECT_GE(peak, talk.counts.peak);
  EXPECT_LE(peak, talk.counts.peak + snapshots + (size_t{2} << 20));
  set("state_snapshot_budget", "0");
  EXPECT_EQ(estimate("snapshots"), 0U);
}

// A model without keys and values has nothing to compress or to put into tiers, and no blocks to
// fill; the options change nothing of what it says, and fail nowhere.
TEST_F(StateSnapshots, OptionsOfCachesWithoutKeysAndValues) {
  write("mamba");
  std::vector<int32_t> want;
  for (const auto& [key, value] :
       {std::pair{"kv_dtype", "fp32"}, std::pair{"kv_dtype", "q4"}, std::pair{"compressed_kv", "8"},
        std::pair{"tiered_kv", "4"}, std::pair{"paged_kv", "1"}, std::pair{"paged_kv", "1,5"}}) {
    SCOPED_TRACE(testing::Message() << key << " " << value);
    gen_options_free(options);
    ASSERT_EQ(gen_options_new(&options, &error), GEN_OK);
    set(key, value);
    EXPECT_GT(estimate("snapshots"), 0U);
    Talk talk(path, options);
    talk.append(std::span(tokens).first(250));
    gen_session* fork = nullptr;
    ASSERT_EQ(gen_session_fork(talk.session, &fork, &error), GEN_OK) << error.message;
    const auto [said, evaluated] = talk.say();
    EXPECT_EQ(evaluated, 1);
    if (want.empty()) want = said;
    EXPECT_EQ(said, want);
    EXPECT_EQ(talk.say(fork).first, want);
    // The other session goes on from the saved one.
    size_t n = 0;
    ASSERT_EQ(gen_session_truncate(fork, 250, &error), GEN_OK);
    ASSERT_EQ(gen_session_save_buffer(fork, nullptr, 0, &n, &error), GEN_OK) << error.message;
    std::vector<std::byte> saved(n);
    ASSERT_EQ(gen_session_save_buffer(fork, saved.data(), n, &n, &error), GEN_OK);
    gen_session* loaded = nullptr;
    ASSERT_EQ(gen_session_new(talk.generator, &loaded, &error), GEN_OK);
    ASSERT_EQ(gen_session_load_buffer(loaded, saved.data(), n, &error), GEN_OK) << error.message;
    EXPECT_EQ(talk.say(loaded).first, want);
    gen_session_free(loaded);
    gen_session_free(fork);
  }
}

// Tiers of a model without keys and values hold nothing, so the estimate is the one without them.
TEST_F(StateSnapshots, TiersWithoutKeysAndValuesChangeNoEstimate) {
  write("mamba");
  for (const char* const every : {"0", "1", "8"}) {
    SCOPED_TRACE(every);
    set("state_snapshot_every", every);
    set("tiered_kv", "");
    const size_t peak = estimate("peak");
    const size_t workspace = estimate("workspace");
    set("tiered_kv", "4");
    EXPECT_EQ(estimate("cache"), 0U);
    EXPECT_EQ(estimate("workspace"), workspace);
    EXPECT_EQ(estimate("peak"), peak);
    Talk talk(path, options);
    talk.append(std::span(tokens).first(kContext - 1));
    talk.say();
    EXPECT_GE(estimate("peak"), talk.counts.peak);
  }
}

// Its prefix cache shares snapshots of the state, beside blocks that only count tokens.
TEST_F(StateSnapshots, APrefixWithoutKeysAndValuesIsShared) {
  write("mamba");
  set("paged_kv", "1");
  set("prefix_cache", "100");
  set("state_snapshot_every", "0");
  Talk talk(path, options);
  talk.append(std::span(tokens).first(250));
  const auto [want, evaluated] = talk.say();
  for (const size_t n : {250U, 200U}) {
    gen_session* other = nullptr;
    gen_session* plain = nullptr;
    gen_generator* alone = nullptr;
    ASSERT_EQ(gen_create(talk.model, nullptr, &alone, &error), GEN_OK);
    ASSERT_EQ(gen_session_new(talk.generator, &other, &error), GEN_OK);
    ASSERT_EQ(gen_session_new(alone, &plain, &error), GEN_OK);
    int64_t ran[2];
    std::vector<int32_t> said[2];
    for (int i = 0; i < 2; ++i) {
      gen_session* const session = i == 0 ? other : plain;
      gen_sampling* sampling = nullptr;
      gen_result* result = nullptr;
      ASSERT_EQ(gen_sampling_new(&sampling, &error), GEN_OK);
      ASSERT_EQ(gen_sampling_set_ignore_eos(sampling, 1, &error), GEN_OK);
      ASSERT_EQ(gen_session_append_tokens(session, tokens.data(), n, &error), GEN_OK);
      ASSERT_EQ(gen_session_append_tokens(session, &tokens[3], 2, &error), GEN_OK);
      ASSERT_EQ(gen_session_generate(session, "", 0, sampling, &result, &error), GEN_OK);
      ASSERT_EQ(gen_result_usage(result, "prompt_cached", &ran[i], &error), GEN_OK);
      size_t count = 0;
      const int32_t* const ids = gen_result_tokens(result, &count);
      said[i].assign(ids, ids + count);
      gen_result_free(result);
      gen_sampling_free(sampling);
    }
    // The last border of blocks before the end of the first prompt, and none for a text that parts
    // from it earlier and so passes no snapshot.
    EXPECT_EQ(ran[0], n == 250 ? 240 : 0);
    EXPECT_EQ(ran[1], 0);
    EXPECT_EQ(said[0], said[1]);
    gen_session_free(other);
    gen_session_free(plain);
    gen_free(alone);
  }
}

}  // namespace
}  // namespace gen
