// SPDX-License-Identifier: Apache-2.0
// What a C++ exception from each kind of callback does: it is a failure of the call around it,
// which leaves everything as it was, or nothing where nobody can be told. Texts are compared with
// those of sessions to which nothing happened.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <generate/generate.h>

#include "status_record.h"

namespace {

constexpr const char* kDraft = GEN_TEST_SOURCE_DIR "/examples/demo_model/draft.gguf";

template <typename T>
using Owned = std::unique_ptr<T, void (*)(T*)>;

/// Throws at the call of this number, from 0; what is thrown need not be a std::exception.
struct Thrower {
  int at = 0;
  bool plain = false;
  int calls = 0;

  void call() {
    if (calls++ != at) return;
    if (plain) throw 5;
    throw std::runtime_error("no more");
  }
};

int on_token(void* user, const gen_token* /*token*/) {
  static_cast<Thrower*>(user)->call();
  return 0;
}
int on_batch(void* user, size_t index, const gen_token* /*token*/) {
  if (index == 1) static_cast<Thrower*>(user)->call();
  return 0;
}
gen_status on_logits(void* user, float* /*logits*/, size_t /*n*/, const int32_t* /*tokens*/,
                     size_t /*count*/, size_t /*said*/, gen_error* /*error*/) {
  static_cast<Thrower*>(user)->call();
  return GEN_OK;
}
int on_progress(void* user, double /*share*/) {
  static_cast<Thrower*>(user)->call();
  return 0;
}
void on_metric(void* user, const char* /*name*/, double /*value*/) {
  static_cast<Thrower*>(user)->call();
}
void on_evict(void* user, int32_t /*id*/) { static_cast<Thrower*>(user)->call(); }
gen_status on_allocate(void* user, size_t bytes, size_t align, void** out) {
  static_cast<Thrower*>(user)->call();
  *out = std::aligned_alloc(align, (bytes + align - 1) / align * align);
  return GEN_OK;
}
void on_release(void* user, void* pointer, size_t /*bytes*/) {
  std::free(pointer);
  static_cast<Thrower*>(user)->call();
}

class Exceptions : public ::testing::Test {
 protected:
  Exceptions() : model_(nullptr, gen_model_free), generator_(nullptr, gen_free) {
    model_ = load(nullptr);
    generator_ = create(nullptr);
  }
  Owned<gen_model> load(const gen_model_options* options) {
    gen_model* model = nullptr;
    status_ = gen_model_load(kDraft, options, &model, &error_);
    return {model, gen_model_free};
  }
  Owned<gen_generator> create(const gen_options* options) {
    gen_generator* generator = nullptr;
    status_ = gen_create(model_.get(), options, &generator, &error_);
    return {generator, gen_free};
  }
  Owned<gen_session> begin(gen_generator* generator) {
    gen_session* session = nullptr;
    EXPECT_EQ(gen_session_new(generator, &session, &error_), GEN_OK) << error_.message;
    EXPECT_EQ(gen_session_append(session, "Once upon", 9, &error_), GEN_OK) << error_.message;
    return {session, gen_session_free};
  }
  Owned<gen_sampling> greedy() {
    gen_sampling* sampling = nullptr;
    EXPECT_EQ(gen_sampling_new(&sampling, &error_), GEN_OK);
    EXPECT_EQ(gen_sampling_set_temperature(sampling, 0, &error_), GEN_OK);
    EXPECT_EQ(gen_sampling_set_max_new_tokens(sampling, 6, &error_), GEN_OK);
    return {sampling, gen_sampling_free};
  }
  /// What a session goes on with.
  std::string text(gen_session* session) {
    gen_result* result = nullptr;
    EXPECT_EQ(gen_session_generate(session, "", 0, greedy().get(), &result, &error_), GEN_OK)
        << error_.message;
    const Owned<gen_result> owned(result, gen_result_free);
    return gen_result_text(result, nullptr);
  }
  void expect_failure(gen_status status, gen_status wanted, const char* part) {
    EXPECT_EQ(status, wanted);
    EXPECT_NE(std::string(error_.message).find(part), std::string::npos) << error_.message;
  }

  gen_error error_{};
  gen_status status_ = GEN_OK;
  Owned<gen_model> model_;
  Owned<gen_generator> generator_;
};

TEST_F(Exceptions, OfATokenCallbackTakeTheCallBack) {
  const std::string expected = text(begin(generator_.get()).get());
  for (int at = 0; at <= 6; ++at) {  // the last is that of the done event
    for (const bool plain : {false, true}) {
      auto session = begin(generator_.get());
      const int32_t length = gen_session_length(session.get());
      Thrower thrower{at, plain};
      gen_result* result = nullptr;
      const gen_status status = gen_session_generate_stream(
          session.get(), " a time", 7, greedy().get(), on_token, &thrower, &result, &error_);
      const Owned<gen_result> owned(result, gen_result_free);
      expect_failure(status, GEN_ERROR_INTERNAL, plain ? "threw" : "threw: no more");
      EXPECT_EQ(thrower.calls, at + 1);
      ASSERT_NE(result, nullptr);
      EXPECT_EQ(gen_result_finish_reason(result), GEN_FINISH_ERROR);
      EXPECT_EQ(gen_result_error(result)->code, GEN_ERROR_INTERNAL);
      EXPECT_EQ(gen_session_length(session.get()), length);
      EXPECT_EQ(text(session.get()), expected);
    }
  }
}

TEST_F(Exceptions, OfALogitsCallbackTakeTheCallBack) {
  const std::string expected = text(begin(generator_.get()).get());
  for (const bool plain : {false, true}) {
    auto session = begin(generator_.get());
    const int32_t length = gen_session_length(session.get());
    Thrower thrower{3, plain};
    const auto sampling = greedy();
    ASSERT_EQ(gen_sampling_set_logits_callback(sampling.get(), on_logits, &thrower, &error_),
              GEN_OK);
    gen_result* result = nullptr;
    const gen_status status =
        gen_session_generate(session.get(), " a time", 7, sampling.get(), &result, &error_);
    const Owned<gen_result> owned(result, gen_result_free);
    expect_failure(status, GEN_ERROR_INTERNAL,
                   plain ? "the logits callback threw" : "the logits callback threw: no more");
    EXPECT_EQ(thrower.calls, 4);
    EXPECT_EQ(gen_session_length(session.get()), length);
    EXPECT_EQ(text(session.get()), expected);
  }
}

TEST_F(Exceptions, OfABatchCallbackEndOneRequest) {
  std::vector<std::string> expected;
  for (int at = -1; at <= 6; ++at) {
    Thrower thrower{at};
    gen_request* requests[3];
    gen_result* results[3] = {};
    for (gen_request*& request : requests) {
      ASSERT_EQ(gen_request_new(&request, &error_), GEN_OK);
      ASSERT_EQ(gen_request_set_prompt(request, "Once", 4, &error_), GEN_OK);
      ASSERT_EQ(gen_request_set_sampling(request, greedy().get(), &error_), GEN_OK);
    }
    EXPECT_EQ(gen_batch_generate_stream(generator_.get(), requests, 3, on_batch, &thrower, results,
                                        &error_),
              GEN_OK);
    for (size_t i = 0; i < 3; ++i) {
      const Owned<gen_result> owned(results[i], gen_result_free);
      gen_request_free(requests[i]);
      if (at < 0) expected.emplace_back(gen_result_text(results[i], nullptr));
      if (at >= 0 && i == 1) {
        EXPECT_EQ(gen_result_finish_reason(results[i]), GEN_FINISH_ERROR);
        EXPECT_EQ(gen_result_error(results[i])->code, GEN_ERROR_INTERNAL);
      } else {
        EXPECT_EQ(gen_result_text(results[i], nullptr), expected[i]);
      }
    }
  }
}

TEST_F(Exceptions, OfAProgressCallbackEndTheWork) {
  gen_model_options* options = nullptr;
  ASSERT_EQ(gen_model_options_new(&options, &error_), GEN_OK);
  const Owned<gen_model_options> owned(options, gen_model_options_free);
  Thrower thrower{1};
  ASSERT_EQ(gen_model_options_set_progress(options, on_progress, &thrower, &error_), GEN_OK);
  EXPECT_EQ(load(options).get(), nullptr);
  expect_failure(status_, GEN_ERROR_INTERNAL, "progress callback threw: no more");
  EXPECT_EQ(thrower.calls, 2);

  const std::string out = (std::filesystem::temp_directory_path() /
                           ("exceptions_" + std::to_string(getpid()) + ".gguf"))
                              .string();
  Thrower again{1};
  expect_failure(gen_model_quantize(kDraft, out.c_str(), "Q8_0", on_progress, &again, &error_),
                 GEN_ERROR_INTERNAL, "progress callback threw: no more");
  EXPECT_EQ(again.calls, 2);
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(Exceptions, OfAnAllocatorAreAFailureToAllocate) {
  for (int at = 0; at < 4; ++at) {
    Thrower thrower{at};
    const gen_allocator table = {sizeof table, &thrower, on_allocate, on_release};
    gen_model_options* options = nullptr;
    ASSERT_EQ(gen_model_options_new(&options, &error_), GEN_OK);
    const Owned<gen_model_options> owned(options, gen_model_options_free);
    ASSERT_EQ(gen_model_options_set_allocator(options, &table, &error_), GEN_OK);
    const auto model = load(options);
    if (model != nullptr) continue;  // it was a release that threw
    expect_failure(status_, GEN_ERROR_OUT_OF_MEMORY, "allocate threw: no more");
  }
  // Releases say nothing.
  Thrower thrower{-1};
  const gen_allocator table = {sizeof table, &thrower, on_allocate, on_release};
  kv_cache* cache = nullptr;
  ASSERT_EQ(kv_cache_new(1, 4, &cache, &error_), GEN_OK);
  ASSERT_EQ(kv_cache_set_allocator(cache, &table, &error_), GEN_OK);
  const float row[] = {1, 2};
  ASSERT_EQ(kv_cache_update(cache, 0, row, row, 1, 1, 2, &error_), GEN_OK);
  thrower.at = thrower.calls;
  kv_cache_free(cache);
  EXPECT_GT(thrower.calls, thrower.at);
}

TEST_F(Exceptions, OfAMetricsSinkGoNowhere) {
  const std::string expected = text(begin(generator_.get()).get());
  for (int at = 0; at < 50; ++at) {
    Thrower thrower{at};
    const gen_metrics_sink sink = {sizeof sink, &thrower, on_metric, on_metric, on_metric};
    gen_options* options = nullptr;
    ASSERT_EQ(gen_options_new(&options, &error_), GEN_OK);
    const Owned<gen_options> owned(options, gen_options_free);
    ASSERT_EQ(gen_options_set_metrics(options, &sink, &error_), GEN_OK);
    const auto generator = create(options);
    EXPECT_EQ(text(begin(generator.get()).get()), expected);
    EXPECT_GT(thrower.calls, at);
  }
}

gen_status on_shift(void* user, int32_t, float*, int32_t, int32_t, int32_t, const int32_t*) {
  static_cast<Thrower*>(user)->call();
  return GEN_OK;
}

TEST_F(Exceptions, OfAShiftFunctionFailTheRead) {
  for (const bool plain : {false, true}) {
    kv_cache* made = nullptr;
    ASSERT_EQ(kv_cache_causal_new(&made, &error_), GEN_OK);
    const Owned<kv_cache> cache(made, kv_cache_free);
    Thrower thrower{0, plain};
    ASSERT_EQ(kv_cache_set_shift(made, on_shift, &thrower, &error_), GEN_OK);
    ASSERT_EQ(kv_cache_init(made, "fp32", 1, 8, 4, &error_), GEN_OK);
    const int32_t positions[] = {0, 1, 2};
    const int32_t sequences[] = {0, 0, 0};
    const float x[] = {1, 2, 3};
    ASSERT_EQ(kv_cache_start_forward(made, positions, sequences, 3, 0, nullptr, 0, &error_),
              GEN_OK);
    ASSERT_EQ(kv_cache_put(made, x, 1, 1, x, 1, 1, 3, &error_), GEN_OK);
    ASSERT_EQ(kv_cache_remove(made, 0, 0, 1, &error_), GEN_OK);
    ASSERT_EQ(kv_cache_start_forward(made, positions + 2, sequences, 1, 0, nullptr, 0, &error_),
              GEN_OK);
    ASSERT_EQ(kv_cache_put(made, x, 1, 1, x, 1, 1, 1, &error_), GEN_OK);
    const auto read = [&](float* k) {
      return kv_cache_get_masked(made, k, 8, nullptr, 0, nullptr, 0, nullptr, nullptr, nullptr,
                                 &error_);
    };
    float k[8] = {};
    EXPECT_EQ(read(k), GEN_ERROR_INTERNAL);
    EXPECT_NE(std::string(error_.message).find("the shift function"), std::string::npos);
    EXPECT_EQ(read(k), GEN_OK) << error_.message;
    EXPECT_EQ(thrower.calls, 2);
  }
}

TEST_F(Exceptions, OfAnEvictCallbackGoNowhere) {
  kv_cache_radix* radix = nullptr;
  ASSERT_EQ(kv_cache_radix_new(1, 4, &radix, &error_), GEN_OK);
  const Owned<kv_cache_radix> owned(radix, kv_cache_radix_free);
  Thrower thrower{0};
  ASSERT_EQ(kv_cache_radix_set_evict_callback(radix, on_evict, &thrower, &error_), GEN_OK);
  const int32_t tokens[] = {1, 2, 3};
  ASSERT_EQ(kv_cache_radix_insert(radix, tokens, 3, nullptr, 0, nullptr, &error_), GEN_OK);
  size_t removed = 0;
  EXPECT_EQ(kv_cache_radix_remove(radix, tokens, 1, &removed, &error_), GEN_OK) << error_.message;
  EXPECT_EQ(removed, 3U);
  EXPECT_EQ(thrower.calls, 3);
  EXPECT_EQ(kv_cache_radix_size(radix), 0);
}

// --- a model that is a function: the next token is the last one and 3 more

constexpr int32_t kVocab = 13;
struct Functions {
  Thrower forward{-1};
  Thrower states{-1};
};
gen_status run(void* user, const gen_forward_batch* batch, float* logits, float* /*features*/,
               gen_error* /*error*/) {
  static_cast<Functions*>(user)->forward.call();
  for (int32_t row = 0; row < batch->n_rows; ++row) {
    for (int32_t i = 0; i < kVocab && batch->wants_logits[row] != 0; ++i) {
      *logits++ = i == (batch->tokens[row] + 3) % kVocab ? 5.0F : 0.0F;
    }
  }
  return GEN_OK;
}
gen_status state_new(void* user, void** state, gen_error* /*error*/) {
  static_cast<Functions*>(user)->states.call();
  *state = nullptr;
  return GEN_OK;
}
gen_status state_clone(void* user, const void* /*state*/, void** out, gen_error* error) {
  return state_new(user, out, error);
}
gen_status state_truncate(void* user, void* state, int32_t /*n*/, gen_error* error) {
  return state_new(user, &state, error);
}
void state_free(void* user, void* /*state*/) { static_cast<Functions*>(user)->states.call(); }

TEST(ExceptionsOfAModel, AreFailuresOfTheCall) {
  gen_error error{};
  Functions functions;
  gen_forward table{};
  table.struct_size = sizeof table;
  table.user = &functions;
  table.forward = run;
  table.state_new = state_new;
  table.state_clone = state_clone;
  table.state_truncate = state_truncate;
  table.state_free = state_free;
  table.release = [](void* /*user*/) { throw std::runtime_error("at the end"); };
  gen_model_config* config = nullptr;
  gen_model* model = nullptr;
  gen_generator* generator = nullptr;
  gen_session* session = nullptr;
  ASSERT_EQ(gen_model_config_new(&config, &error), GEN_OK);
  ASSERT_EQ(gen_model_config_set_vocab_size(config, kVocab, &error), GEN_OK);
  ASSERT_EQ(gen_model_config_set_max_seq_len(config, 50, &error), GEN_OK);
  ASSERT_EQ(gen_model_new_custom(&table, config, nullptr, &model, &error), GEN_OK);
  gen_model_config_free(config);
  ASSERT_EQ(gen_create(model, nullptr, &generator, &error), GEN_OK);
  gen_model_free(model);

  const int32_t tokens[] = {1, 2, 3, 4};
  ASSERT_EQ(gen_session_new(generator, &session, &error), GEN_OK);
  functions.forward = {0};
  EXPECT_EQ(gen_session_append_tokens(session, tokens, 4, &error), GEN_ERROR_INTERNAL);
  EXPECT_STREQ(error.message, "forward threw: no more");
  EXPECT_EQ(gen_session_length(session), 0);
  EXPECT_EQ(gen_session_append_tokens(session, tokens, 4, &error), GEN_OK) << error.message;

  gen_session* fork = nullptr;
  functions.states = {0};
  EXPECT_EQ(gen_session_fork(session, &fork, &error), GEN_ERROR_INTERNAL);
  EXPECT_STREQ(error.message, "state_clone threw: no more");
  EXPECT_EQ(fork, nullptr);
  EXPECT_EQ(gen_session_length(session), 4);

  functions.states = {-1};
  gen_sampling* sampling = nullptr;
  gen_result* result = nullptr;
  ASSERT_EQ(gen_sampling_new(&sampling, &error), GEN_OK);
  ASSERT_EQ(gen_sampling_set_temperature(sampling, 0, &error), GEN_OK);
  ASSERT_EQ(gen_sampling_set_max_new_tokens(sampling, 3, &error), GEN_OK);
  EXPECT_EQ(gen_session_generate(session, "", 0, sampling, &result, &error), GEN_OK);
  size_t n = 0;
  const int32_t* said = gen_result_tokens(result, &n);
  EXPECT_EQ(std::vector<int32_t>(said, said + n), (std::vector<int32_t>{7, 10, 0}));
  gen_result_free(result);
  gen_sampling_free(sampling);
  functions.states = {0};
  gen_session_free(session);
  EXPECT_EQ(functions.states.calls, 1) << "state_free threw";
  gen_free(generator);  // and release
}

}  // namespace
