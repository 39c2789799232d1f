// SPDX-License-Identifier: Apache-2.0
// A session of a tiny model of a family with recurrences, the view of its state, and what a session
// has that took its tokens one after another.
#pragma once

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

}  // namespace
}  // namespace gen
