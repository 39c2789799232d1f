// SPDX-License-Identifier: Apache-2.0
// gen_session_ssm_state of models with recurrences: a layer's numbers are those of the tokens
// however they came to be evaluated, and those of the reference; sessions go back to snapshots and
// go on with the same bits; calls that fail change nothing.
#include <generate/generate.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "status_record.h"
#include "support/tiny_model.h"
#include "support/tiny_vocabulary.h"

namespace gen {
namespace {

using Floats = std::vector<float>;

test::TinyModelSpec spec_of(const std::string& architecture) {
  test::TinyModelSpec spec;
  spec.architecture = architecture;
  spec.layers = 4;
  spec.context = 200;
  return spec;
}

/// Memory of the library that can end.
struct Memory {
  int left = -1;  // allocations that are granted; below 0: all
  int calls = 0;

  static int32_t take(void* user, size_t bytes, size_t align, void** out) {
    auto& memory = *static_cast<Memory*>(user);
    ++memory.calls;
    *out = nullptr;
    if (memory.left == 0) return GEN_ERROR_OUT_OF_MEMORY;
    if (memory.left > 0) --memory.left;
    *out = std::aligned_alloc(align, (bytes + align - 1) / align * align);
    return *out != nullptr ? GEN_OK : GEN_ERROR_OUT_OF_MEMORY;
  }
  static void give_back(void* /*user*/, void* pointer, size_t /*bytes*/) { std::free(pointer); }
};

class SessionState : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    test::TinyModel tiny(spec_of(GetParam()));
    test::set_tiny_vocabulary(&tiny.writer(), test::tiny_pieces(tiny.spec().vocab));
    const std::vector<std::byte> bytes = tiny.bytes();
    std::ofstream(path).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
    for (int32_t i = 0; i < 150; ++i) tokens.push_back(i * i % 47);
    gen_model_options* load = nullptr;
    const gen_allocator table = {sizeof table, &memory, Memory::take, Memory::give_back};
    ASSERT_EQ(gen_model_options_new(&load, &error), GEN_OK);
    ASSERT_EQ(gen_model_options_set_allocator(load, &table, &error), GEN_OK);
    ASSERT_EQ(gen_model_load(path.c_str(), load, &model, &error), GEN_OK) << error.message;
    gen_model_options_free(load);
    ASSERT_EQ(gen_options_new(&options, &error), GEN_OK);
    open();
  }
  void TearDown() override {
    gen_session_free(session);
    gen_free(generator);
    gen_options_free(options);
    gen_model_free(model);
    std::filesystem::remove(path);
  }
  /// A session by the options.
  void open() {
    gen_session_free(session);
    gen_free(generator);
    session = nullptr;
    generator = nullptr;
    ASSERT_EQ(gen_create(model, options, &generator, &error), GEN_OK) << error.message;
    session = fresh();
    view = gen_session_ssm_state(session);
    ASSERT_NE(view, nullptr);
  }
  static bool attends() { return !std::string(GetParam()).starts_with("mamba"); }
  gen_session* fresh() {
    gen_session* made = nullptr;
    EXPECT_EQ(gen_session_new(generator, &made, &error), GEN_OK);
    return made;
  }
  void append(gen_session* to, size_t first, size_t n) {
    EXPECT_EQ(gen_session_append_tokens(to, tokens.data() + first, n, &error), GEN_OK)
        << error.message;
  }
  Floats layer(const gen_ssm_state* of, int32_t i, int32_t shape[3] = nullptr) {
    int32_t own[3] = {};
    if (shape == nullptr) shape = own;
    EXPECT_EQ(gen_ssm_state_get_layer(of, i, nullptr, 0, shape, &error), GEN_OK);
    Floats h(static_cast<size_t>(shape[0] * shape[1] * shape[2]));
    EXPECT_EQ(gen_ssm_state_get_layer(of, i, h.data(), h.size(), shape, &error), GEN_OK)
        << error.message;
    return h;
  }
  std::vector<Floats> all(const gen_ssm_state* of) {
    std::vector<Floats> layers;
    for (int32_t i = 0; i < gen_ssm_state_num_layers(of); ++i) layers.push_back(layer(of, i));
    return layers;
  }
  /// What a session has that took the first `n` tokens one after another.
  std::vector<Floats> by_steps(size_t n) {
    gen_session* const other = fresh();
    for (size_t i = 0; i <= n; ++i) append(other, i, 1);
    EXPECT_EQ(gen_ssm_state_position(gen_session_ssm_state(other)), static_cast<int32_t>(n));
    std::vector<Floats> layers = all(gen_session_ssm_state(other));
    gen_session_free(other);
    return layers;
  }
  /// Twelve tokens with the logarithms of their probabilities, and the tokens of their prompt.
  std::vector<float> say(gen_session* of, int64_t* prompt = nullptr) {
    gen_sampling* sampling = nullptr;
    gen_result* result = nullptr;
    EXPECT_EQ(gen_sampling_new(&sampling, &error), GEN_OK);
    EXPECT_EQ(gen_sampling_set_ignore_eos(sampling, 1, &error), GEN_OK);
    EXPECT_EQ(gen_sampling_set_logprobs(sampling, 0, &error), GEN_OK);
    EXPECT_EQ(gen_sampling_set_max_new_tokens(sampling, 12, &error), GEN_OK);
    EXPECT_EQ(gen_session_generate(of, "", 0, sampling, &result, &error), GEN_OK) << error.message;
    size_t n = 0;
    const int32_t* const ids = gen_result_tokens(result, &n);
    std::vector<float> said(ids, ids + n);
    const float* const probabilities = gen_result_logprobs(result, &n);
    said.insert(said.end(), probabilities, probabilities + n);
    if (prompt != nullptr) {
      EXPECT_EQ(gen_result_usage(result, "prompt", prompt, &error), GEN_OK);
    }
    gen_result_free(result);
    gen_sampling_free(sampling);
    return said;
  }
  /// The text of `n` more tokens.
  std::string text_of(gen_session* of, int32_t n) {
    gen_sampling* sampling = nullptr;
    gen_result* result = nullptr;
    EXPECT_EQ(gen_sampling_new(&sampling, &error), GEN_OK);
    EXPECT_EQ(gen_sampling_set_ignore_eos(sampling, 1, &error), GEN_OK);
    EXPECT_EQ(gen_sampling_set_max_new_tokens(sampling, n, &error), GEN_OK);
    EXPECT_EQ(gen_sampling_set_temperature(sampling, 0, &error), GEN_OK);
    EXPECT_EQ(gen_session_generate(of, "", 0, sampling, &result, &error), GEN_OK) << error.message;
    size_t size = 0;
    const char* const bytes = gen_result_text(result, &size);
    std::string text(bytes, size);
    gen_result_free(result);
    gen_sampling_free(sampling);
    return text;
  }
  /// A saved session with another number in each layer of its state.
  std::vector<std::byte> changed_state(gen_session* of) {
    size_t size = 0;
    EXPECT_EQ(gen_session_save_buffer(of, nullptr, 0, &size, &error), GEN_OK);
    std::vector<std::byte> saved(size);
    EXPECT_EQ(gen_session_save_buffer(of, saved.data(), size, &size, &error), GEN_OK);
    // Behind the section's head are positions, unprocessed rows, layers and two sizes of each.
    constexpr size_t kHead = 16;
    const auto name = std::as_bytes(std::span("RECU", 4));
    const auto at = std::search(saved.begin(), saved.end(), name.begin(), name.end());
    std::byte* number = &*at + kHead + 2 * sizeof(int32_t);
    int32_t layers = 0;
    std::memcpy(&layers, number, sizeof layers);
    const std::byte* sizes = number + sizeof layers;
    number += sizeof layers + static_cast<size_t>(layers) * 2 * sizeof(int64_t);
    for (int32_t i = 0; i < layers; ++i) {
      int64_t cells = 0;
      std::memcpy(&cells, sizes + static_cast<size_t>(i) * 2 * sizeof cells, sizeof cells);
      const float other = 3.0F;
      std::memcpy(number, &other, sizeof other);
      number += static_cast<size_t>(cells) * sizeof(float);
    }
    const uint64_t sum = checksum(std::span(saved).first(size - sizeof(uint64_t)));
    std::memcpy(&saved[size - sizeof sum], &sum, sizeof sum);
    return saved;
  }

  const std::string path =
      (std::filesystem::temp_directory_path() / ("states" + std::to_string(::getpid()) + ".gguf"))
          .string();
  Memory memory;
  std::vector<int32_t> tokens;
  gen_model* model = nullptr;
  gen_options* options = nullptr;
  gen_generator* generator = nullptr;
  gen_session* session = nullptr;
  gen_ssm_state* view = nullptr;
  gen_error error = {};
};

// The rows of a short pass with places for snapshots are kept beside the state, a long one's are
// not.
TEST_P(SessionState, LayersDoNotDependOnThePasses) {
  constexpr size_t kLengths[] = {1, 9, 17, 120};
  for (size_t i = 0; i < 8; ++i) {
    const size_t n = kLengths[i / 2];
    SCOPED_TRACE(n);
    ASSERT_EQ(gen_options_set(options, "state_snapshot_every", i % 2 == 0 ? "1024" : "4", &error),
              GEN_OK);
    open();
    append(session, 0, n + 1);
    ASSERT_EQ(gen_ssm_state_position(view), static_cast<int32_t>(n));
    const std::vector<Floats> want = by_steps(n);
    EXPECT_EQ(all(view), want);
    EXPECT_EQ(gen_session_length(session), static_cast<int32_t>(n) + 1);
    // The session goes on as if nobody had looked.
    gen_session* const other = fresh();
    append(other, 0, n + 1);
    EXPECT_EQ(say(session), say(other));
    EXPECT_EQ(all(view), all(gen_session_ssm_state(other)));
    gen_session_free(other);
  }
}

TEST_P(SessionState, LayersSayWhatTheyAre) {
  std::map<std::string, int> kinds;
  int64_t bytes = 0;
  for (int32_t i = 0; i < gen_ssm_state_num_layers(view); ++i) {
    int32_t shape[3] = {};
    const std::string kind = gen_ssm_state_layer_kind(view, i);
    ++kinds[kind];
    const Floats h = layer(view, i, shape);
    EXPECT_EQ(h, Floats(h.size()));  // zeros at the beginning
    bytes += static_cast<int64_t>(h.size() * sizeof(float));
    EXPECT_EQ(kind == "convolution", shape[0] == 1 && shape[1] == 2) << kind;  // three taps
    if (kind == "delta net") {
      EXPECT_EQ(std::vector<int32_t>(shape, shape + 3), (std::vector<int32_t>{4, 16, 16}));
    }
    EXPECT_GE(gen_ssm_state_layer_index(view, i), 0);
    EXPECT_LT(gen_ssm_state_layer_index(view, i), 4);
    if (i > 0) {
      EXPECT_GE(gen_ssm_state_layer_index(view, i), gen_ssm_state_layer_index(view, i - 1));
    }
  }
  EXPECT_EQ(bytes, gen_ssm_state_memory_bytes(view));
  EXPECT_GT(bytes, 0);
  EXPECT_EQ(kinds["convolution"] > 0, true);
  EXPECT_EQ(kinds["delta net"] > 0, std::string(GetParam()) == "qwen35");
  EXPECT_EQ(kinds["selective scan"] > 0, std::string(GetParam()).starts_with("mamba"));
  EXPECT_EQ(gen_ssm_state_layer_kind(view, 100), nullptr);
  EXPECT_EQ(gen_ssm_state_layer_index(view, 100), -1);
}

TEST_P(SessionState, SessionsGoBack) {
  ASSERT_EQ(gen_options_set(options, "state_snapshot_every", "4", &error), GEN_OK);
  for (const bool paged : {false, true}) {
    SCOPED_TRACE(paged);
    if (paged && !attends()) continue;
    if (paged) {
      ASSERT_EQ(gen_options_set_paged_kv(options, 1, 16, &error), GEN_OK);
    }
    open();
    std::map<size_t, int64_t> snapshots;
    std::map<size_t, std::vector<Floats>> states;
    size_t done = 0;
    for (const size_t n : {size_t{1}, size_t{10}, size_t{24}, size_t{100}}) {
      append(session, done, n - done);
      ASSERT_EQ(gen_ssm_state_snapshot(view, &snapshots[n], &error), GEN_OK) << error.message;
      states[n] = by_steps(n - 1);
      done = n;
    }
    for (const size_t n : {size_t{100}, size_t{24}, size_t{10}, size_t{1}}) {
      SCOPED_TRACE(n);
      gen_session* const other = fresh();
      append(other, 0, n);
      const std::vector<float> want = say(other);
      gen_session_free(other);
      for (int round = 0; round < 2; ++round) {
        ASSERT_EQ(gen_ssm_state_restore(view, snapshots[n], &error), GEN_OK) << error.message;
        EXPECT_EQ(gen_session_length(session), static_cast<int32_t>(n));
        EXPECT_EQ(gen_ssm_state_position(view), static_cast<int32_t>(n) - 1);
        if (round == 1) {
          EXPECT_EQ(all(view), states[n]);
        }
        EXPECT_EQ(say(session), want);
      }
    }
  }
}

TEST_P(SessionState, NotToAnotherText) {
  append(session, 0, 20);
  int64_t snapshot = 0;
  ASSERT_EQ(gen_ssm_state_snapshot(view, &snapshot, &error), GEN_OK);
  ASSERT_EQ(gen_session_truncate(session, 10, &error), GEN_OK);
  EXPECT_EQ(gen_ssm_state_restore(view, snapshot, &error), GEN_ERROR_STATE);
  append(session, 50, 30);
  const std::vector<Floats> before = all(view);
  EXPECT_EQ(gen_ssm_state_restore(view, snapshot, &error), GEN_ERROR_STATE);
  EXPECT_STREQ(error.message,
               "the text begins with 10 of the 19 tokens that the snapshot was taken after");
  EXPECT_EQ(gen_session_length(session), 40);
  EXPECT_EQ(all(view), before);
  // The same tokens again are the same text.
  ASSERT_EQ(gen_session_truncate(session, 10, &error), GEN_OK);
  append(session, 10, 60);
  ASSERT_EQ(gen_ssm_state_restore(view, snapshot, &error), GEN_OK) << error.message;
  EXPECT_EQ(gen_session_length(session), 20);
  EXPECT_EQ(all(view), by_steps(19));
}

// Where the last answer ended is part of what is restored: what follows it is the next prompt.
TEST_P(SessionState, AnswersEndWhereTheyDid) {
  append(session, 0, 10);
  say(session);
  append(session, 10, 8);
  int64_t snapshot = 0;
  ASSERT_EQ(gen_ssm_state_snapshot(view, &snapshot, &error), GEN_OK);
  int64_t prompt = 0;
  const std::vector<float> want = say(session, &prompt);
  EXPECT_EQ(prompt, 8);
  ASSERT_EQ(gen_ssm_state_restore(view, snapshot, &error), GEN_OK) << error.message;
  EXPECT_EQ(say(session, &prompt), want);
  EXPECT_EQ(prompt, 8);
}

// So is text that was held back as the possible begin of a stop string.
TEST_P(SessionState, TextThatIsHeldBackStays) {
  append(session, 0, 12);
  gen_session* fork = nullptr;
  ASSERT_EQ(gen_session_fork(session, &fork, &error), GEN_OK);
  const std::string text = text_of(fork, 12);
  gen_session_free(fork);
  ASSERT_GT(text.size(), 3U);
  gen_sampling* sampling = nullptr;
  ASSERT_EQ(gen_sampling_new(&sampling, &error), GEN_OK);
  ASSERT_EQ(gen_sampling_set_ignore_eos(sampling, 1, &error), GEN_OK);
  ASSERT_EQ(gen_sampling_set_temperature(sampling, 0, &error), GEN_OK);
  ASSERT_EQ(gen_sampling_add_stop_string(sampling, text.data(), text.size(), &error), GEN_OK)
      << error.message;
  gen_stream* stream = nullptr;
  ASSERT_EQ(gen_stream_open(session, "", 0, sampling, &stream, &error), GEN_OK) << error.message;
  for (int i = 0; i < 1000 && gen_session_length(session) < 15; ++i) {
    const gen_token* token = nullptr;
    int32_t state = 0;
    ASSERT_EQ(gen_stream_poll(stream, &token, &state, &error), GEN_OK);
  }
  gen_stream_close(stream);
  gen_sampling_free(sampling);
  const int32_t held = gen_session_length(session);
  ASSERT_GE(held, 15);
  ASSERT_LT(held, 24);
  int64_t snapshot = 0;
  ASSERT_EQ(gen_ssm_state_snapshot(view, &snapshot, &error), GEN_OK);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(text_of(session, 24 - held), text) << round;
    ASSERT_EQ(gen_ssm_state_restore(view, snapshot, &error), GEN_OK);
  }
}

// A file may hold any numbers. A session that goes back to them shares nothing of what follows.
TEST_P(SessionState, WhatCameFromAFileIsNotShared) {
  for (const auto& [key, value] :
       {std::pair{"paged_kv", "16,4"}, {"prefix_cache", "1000"}, {"state_snapshot_every", "4"}}) {
    ASSERT_EQ(gen_options_set(options, key, value, &error), GEN_OK) << error.message;
  }
  open();
  append(session, 0, 61);
  const std::vector<float> want = say(session);
  open();
  append(session, 0, 39);
  append(session, 39, 1);  // alone, so that no rows are kept beside the state
  std::vector<std::byte> saved = changed_state(session);
  open();  // with nothing to share
  ASSERT_EQ(gen_session_load_buffer(session, saved.data(), saved.size(), &error), GEN_OK)
      << error.message;
  int64_t snapshot = 0;
  ASSERT_EQ(gen_ssm_state_snapshot(view, &snapshot, &error), GEN_OK);
  ASSERT_EQ(gen_session_reset(session, &error), GEN_OK);
  append(session, 0, 40);
  const std::vector<Floats> own = all(view);
  ASSERT_EQ(gen_ssm_state_restore(view, snapshot, &error), GEN_OK) << error.message;
  EXPECT_FALSE(all(view) == own);
  append(session, 40, 21);
  gen_session* const other = fresh();
  append(other, 0, 61);
  EXPECT_EQ(say(other), want);
  gen_session_free(other);
}

TEST_P(SessionState, TheLastSixteenStay) {
  int64_t snapshot = 0;
  for (size_t i = 0; i < 20; ++i) {
    append(session, i, 1);
    ASSERT_EQ(gen_ssm_state_snapshot(view, &snapshot, &error), GEN_OK);
    EXPECT_EQ(snapshot, static_cast<int64_t>(i) + 1);
  }
  for (const int64_t gone : {int64_t{0}, int64_t{4}, int64_t{21}, int64_t{-1}}) {
    EXPECT_EQ(gen_ssm_state_restore(view, gone, &error), GEN_ERROR_OUT_OF_RANGE);
  }
  ASSERT_EQ(gen_ssm_state_restore(view, 5, &error), GEN_OK);
  EXPECT_EQ(gen_session_length(session), 5);
  EXPECT_EQ(all(view), by_steps(4));
}

TEST_P(SessionState, AForkHasItsOwn) {
  append(session, 0, 30);
  int64_t snapshot = 0;
  ASSERT_EQ(gen_ssm_state_snapshot(view, &snapshot, &error), GEN_OK);
  gen_session* fork = nullptr;
  ASSERT_EQ(gen_session_fork(session, &fork, &error), GEN_OK);
  gen_ssm_state* const other = gen_session_ssm_state(fork);
  ASSERT_NE(other, view);
  EXPECT_EQ(gen_ssm_state_restore(other, snapshot, &error), GEN_ERROR_OUT_OF_RANGE);
  EXPECT_EQ(all(other), all(view));
  append(fork, 100, 20);
  EXPECT_EQ(gen_ssm_state_position(view), 29);
  EXPECT_EQ(all(view), by_steps(29));
  gen_session_free(session);
  session = nullptr;
  EXPECT_EQ(gen_ssm_state_position(other), 49);
  EXPECT_EQ(all(other).size(), static_cast<size_t>(gen_ssm_state_num_layers(other)));
  gen_session_free(fork);
}

TEST_P(SessionState, IsBusyWhileTheSessionIs) {
  append(session, 0, 30);
  int64_t snapshot = 0;
  ASSERT_EQ(gen_ssm_state_snapshot(view, &snapshot, &error), GEN_OK);
  struct Seen {
    gen_ssm_state* view;
    int calls = 0;
  } seen = {view};
  const auto look = [](void* user, const gen_token*) -> int32_t {
    auto& into = *static_cast<Seen*>(user);
    ++into.calls;
    gen_error why = {};
    int64_t number = 0;
    const float h[1] = {};
    EXPECT_EQ(gen_ssm_state_get_layer(into.view, 0, nullptr, 0, nullptr, &why), GEN_ERROR_BUSY);
    EXPECT_EQ(gen_ssm_state_snapshot(into.view, &number, &why), GEN_ERROR_BUSY);
    EXPECT_EQ(gen_ssm_state_restore(into.view, 1, &why), GEN_ERROR_BUSY);
    EXPECT_EQ(gen_ssm_state_reset(into.view, &why), GEN_ERROR_BUSY);
    EXPECT_EQ(gen_ssm_state_set_layer(into.view, 0, h, 1, 1, 1, &why), GEN_ERROR_BUSY);
    EXPECT_GE(gen_ssm_state_position(into.view), 29);
    return 0;
  };
  gen_sampling* sampling = nullptr;
  ASSERT_EQ(gen_sampling_new(&sampling, &error), GEN_OK);
  ASSERT_EQ(gen_sampling_set_ignore_eos(sampling, 1, &error), GEN_OK);
  ASSERT_EQ(gen_sampling_set_max_new_tokens(sampling, 3, &error), GEN_OK);
  EXPECT_EQ(gen_session_generate_stream(session, "", 0, sampling, look, &seen, nullptr, &error),
            GEN_OK)
      << error.message;
  EXPECT_GT(seen.calls, 0);
  gen_sampling_free(sampling);
  EXPECT_EQ(gen_ssm_state_restore(view, snapshot, &error), GEN_OK);
}

// Each allocation fails in turn; what is asked for again then succeeds.
TEST_P(SessionState, FailingMemoryChangesNothing) {
  ASSERT_EQ(gen_options_set(options, "state_snapshot_every", "4", &error), GEN_OK);
  open();
  append(session, 0, 20);
  int64_t early = 0;
  ASSERT_EQ(gen_ssm_state_snapshot(view, &early, &error), GEN_OK);
  append(session, 20, 10);
  int refused = 0;
  const auto refuse = [&](const auto& call) {
    for (memory.left = 0;; ++memory.left) {
      const int granted = memory.left;
      const gen_status status = call();
      memory.left = granted;
      if (status == GEN_OK) break;
      ASSERT_EQ(status, GEN_ERROR_OUT_OF_MEMORY) << error.message;
      ++refused;
      EXPECT_EQ(gen_session_length(session), 30);
      EXPECT_EQ(gen_ssm_state_position(view), 29);
    }
    memory.left = -1;
  };
  const std::vector<Floats> want = by_steps(29);
  Floats h(want[0].size(), 7.0F);
  refuse([&] {
    EXPECT_EQ(h, Floats(h.size(), 7.0F));
    return gen_ssm_state_get_layer(view, 0, h.data(), h.size(), nullptr, &error);
  });
  EXPECT_EQ(h, want[0]);
  EXPECT_GT(refused, 0);
  EXPECT_EQ(all(view), want);
  refuse([&] {
    int64_t late = 0;
    return gen_ssm_state_snapshot(view, &late, &error);
  });
  refuse([&] { return gen_ssm_state_restore(view, early, &error); });
  EXPECT_EQ(gen_session_length(session), 20);
  EXPECT_EQ(all(view), by_steps(19));
}

TEST_P(SessionState, CannotBeSet) {
  append(session, 0, 30);
  const std::vector<Floats> before = all(view);
  int32_t shape[3] = {};
  const Floats h = layer(view, 0, shape);
  EXPECT_EQ(gen_ssm_state_set_layer(view, 0, h.data(), shape[0], shape[1], shape[2], &error),
            GEN_ERROR_UNSUPPORTED);
  EXPECT_EQ(gen_ssm_state_reset(view, &error), GEN_ERROR_UNSUPPORTED);
  gen_ssm_state_free(view);
  EXPECT_EQ(all(view), before);
  EXPECT_EQ(gen_ssm_state_snapshot(view, nullptr, &error), GEN_ERROR_INVALID_ARGUMENT);
}

INSTANTIATE_TEST_SUITE_P(Families, SessionState,
                         ::testing::Values("qwen35", "mamba", "mamba2", "lfm2"));

using DeltaState = SessionState;

TEST_P(DeltaState, IsTheReference) {
  const test::TinyModel tiny(spec_of("qwen35"));
  for (const size_t n : {size_t{5}, size_t{40}}) {
    EXPECT_EQ(gen_session_reset(session, &error), GEN_OK);
    append(session, 0, n + 1);
    (void)tiny.logits({tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n)});
    int compared = 0;
    for (int32_t i = 0; i < gen_ssm_state_num_layers(view); ++i) {
      if (gen_ssm_state_layer_kind(view, i) != std::string("delta net")) continue;
      const std::vector<double>& want = tiny.delta_state(gen_ssm_state_layer_index(view, i));
      const Floats h = layer(view, i);
      ASSERT_EQ(h.size(), want.size());
      double largest = 0.0;
      for (const double value : want) largest = std::max(largest, std::abs(value));
      for (size_t j = 0; j < h.size(); ++j) EXPECT_NEAR(h[j], want[j], 1e-4 * largest);
      ++compared;
    }
    EXPECT_EQ(compared, 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, DeltaState, ::testing::Values("qwen35"));

}  // namespace
}  // namespace gen
