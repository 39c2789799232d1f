// SPDX-License-Identifier: Apache-2.0
// Proves that once a generating call has begun its result is handed out, whichever allocation fails:
// each of them does in turn. This program replaces operator new.
#include <generate/generate.h>

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "support/counting_new.h"

#include "status_record.h"

namespace gen::api {
namespace {

constexpr int32_t kPrompt[] = {1, 10, 20, 30, 40};
constexpr size_t kTokens = 6;

/// What the callback of a call was given; takes no memory.
struct Heard {
  char text[500] = "";
  size_t pieces = 0;
  int done = 0;
};

int listen(void* user, const gen_token* token) {
  auto& heard = *static_cast<Heard*>(user);
  std::strncat(heard.text, token->text, sizeof heard.text - std::strlen(heard.text) - 1);
  EXPECT_EQ(token->text[token->text_len], '\0');
  if (token->done != 0) {
    ++heard.done;
  } else {
    ++heard.pieces;
  }
  return 0;
}

int listen_to_batch(void* user, size_t index, const gen_token* token) {
  return listen(static_cast<Heard*>(user) + index, token);
}

/// Makes the nth allocation of a call fail; whether it came to that.
template <typename F>
bool fail_nth(size_t nth, F&& call) {
  test::news = 0;
  test::fail_new_at = nth;
  call();
  test::fail_new_at = ~size_t{0};
  return test::news > nth;
}

/// A result that is whole, or one of what there was by the failure.
void expect_result(const gen_result* result, const Heard& heard) {
  ASSERT_NE(result, nullptr);
  EXPECT_STREQ(gen_result_text(result, nullptr), heard.text);
  EXPECT_EQ(heard.done, 1);
  size_t tokens = 0;
  size_t logprobs = 0;
  (void)gen_result_tokens(result, &tokens);
  (void)gen_result_logprobs(result, &logprobs);
  EXPECT_EQ(tokens, heard.pieces);
  EXPECT_EQ(logprobs, tokens);
  for (size_t i = 0; i < tokens; ++i) {
    const int32_t* ids = nullptr;
    const float* values = nullptr;
    EXPECT_EQ(gen_result_top_logprobs(result, i, &ids, &values), 2U);
  }
  if (gen_result_error(result) == nullptr) {
    EXPECT_EQ(tokens, kTokens);
  } else {
    EXPECT_EQ(gen_result_error(result)->code, GEN_ERROR_OUT_OF_MEMORY);
  }
}

class LastAllocation : public testing::Test {
 protected:
  LastAllocation() {
    const std::string path = std::string(GEN_TEST_SOURCE_DIR) + "/examples/demo_model/draft.gguf";
    gen_model* model = nullptr;
    EXPECT_EQ(gen_model_load(path.c_str(), nullptr, &model, &error_), GEN_OK) << error_.message;
    EXPECT_EQ(gen_create(model, nullptr, &generator_, &error_), GEN_OK) << error_.message;
    gen_model_free(model);
    EXPECT_EQ(gen_sampling_new(&sampling_, nullptr), GEN_OK);
    EXPECT_EQ(gen_sampling_set_max_new_tokens(sampling_, kTokens, nullptr), GEN_OK);
    EXPECT_EQ(gen_sampling_set_logprobs(sampling_, 2, nullptr), GEN_OK);
    EXPECT_EQ(gen_sampling_set_ignore_eos(sampling_, 1, nullptr), GEN_OK);
  }
  ~LastAllocation() override {
    gen_sampling_free(sampling_);
    gen_free(generator_);
  }

  gen_error error_{};
  gen_generator* generator_ = nullptr;
  gen_sampling* sampling_ = nullptr;
};

TEST_F(LastAllocation, OfASessionsCalls) {
  for (const bool streams : {false, true}) {
    gen_session* session = nullptr;
    ASSERT_EQ(gen_session_new(generator_, &session, &error_), GEN_OK);
    ASSERT_EQ(gen_session_append_tokens(session, kPrompt, 5, &error_), GEN_OK);
    const int32_t before = gen_session_length(session);
    size_t unfinished = 0;
    bool reached = true;
    for (size_t nth = 0; reached && !HasFailure(); ++nth) {
      SCOPED_TRACE(testing::Message() << (streams ? "stream" : "text") << ", allocation " << nth);
      Heard heard;
      gen_result* result = nullptr;
      gen_status status = GEN_OK;
      reached = fail_nth(nth, [&] {
        status = streams ? gen_session_generate_stream(session, "", 0, sampling_, listen, &heard,
                                                       &result, &error_)
                         : gen_session_generate(session, "", 0, sampling_, &result, &error_);
      });
      EXPECT_TRUE(status == GEN_OK || status == GEN_ERROR_OUT_OF_MEMORY) << error_.message;
      const int32_t length = gen_session_length(session);
      EXPECT_EQ(length == before, status != GEN_OK) << length;
      EXPECT_TRUE(result != nullptr || status != GEN_OK);
      if (streams && heard.pieces + static_cast<size_t>(heard.done) > 0) expect_result(result, heard);
      if (result != nullptr && status != GEN_OK) ++unfinished;
      gen_result_free(result);
      EXPECT_EQ(gen_session_truncate(session, before, nullptr), GEN_OK);
    }
    EXPECT_GT(unfinished, 5U);
    gen_session_free(session);
  }
}

// A stream keeps its result until it is closed.
TEST_F(LastAllocation, OfAStreamsResult) {
  gen_session* session = nullptr;
  gen_stream* stream = nullptr;
  ASSERT_EQ(gen_session_new(generator_, &session, &error_), GEN_OK);
  ASSERT_EQ(gen_session_append_tokens(session, kPrompt, 5, &error_), GEN_OK);
  ASSERT_EQ(gen_stream_open(session, "", 0, sampling_, &stream, &error_), GEN_OK);
  Heard heard;
  const gen_token* token = nullptr;
  do {
    ASSERT_EQ(gen_stream_next(stream, &token, &error_), GEN_OK);
    if (token != nullptr) (void)listen(&heard, token);
  } while (token != nullptr);
  size_t refused = 0;
  bool reached = true;
  for (size_t nth = 0; reached && !HasFailure(); ++nth) {
    gen_result* result = nullptr;
    gen_status status = GEN_OK;
    reached = fail_nth(nth, [&] { status = gen_stream_result(stream, &result, &error_); });
    EXPECT_EQ(status, reached ? GEN_ERROR_OUT_OF_MEMORY : GEN_OK);
    EXPECT_EQ(result == nullptr, reached);
    if (!reached) expect_result(result, heard);
    refused += reached ? 1 : 0;
    gen_result_free(result);
  }
  EXPECT_GT(refused, 3U);
  gen_stream_close(stream);
  gen_session_free(session);
}

TEST_F(LastAllocation, OfABatch) {
  constexpr size_t kRequests = 3;
  gen_request* requests[kRequests];
  for (size_t i = 0; i < kRequests; ++i) {
    ASSERT_EQ(gen_request_new(&requests[i], nullptr), GEN_OK);
    ASSERT_EQ(gen_request_set_prompt_tokens(requests[i], kPrompt, 3 + i, nullptr), GEN_OK);
    ASSERT_EQ(gen_request_set_sampling(requests[i], sampling_, nullptr), GEN_OK);
  }
  size_t begun = 0;
  bool reached = true;
  for (size_t nth = 0; reached && !HasFailure(); ++nth) {
    SCOPED_TRACE(testing::Message() << "allocation " << nth);
    Heard heard[kRequests];
    gen_result* results[kRequests] = {};
    gen_status status = GEN_OK;
    reached = fail_nth(nth, [&] {
      status = gen_batch_generate_stream(generator_, requests, kRequests, listen_to_batch, heard,
                                         results, &error_);
    });
    EXPECT_TRUE(status == GEN_OK || status == GEN_ERROR_OUT_OF_MEMORY) << error_.message;
    for (size_t i = 0; i < kRequests; ++i) {
      if (status == GEN_OK) expect_result(results[i], heard[i]);
      EXPECT_TRUE(status == GEN_OK || heard[i].pieces + static_cast<size_t>(heard[i].done) == 0);
      gen_result_free(results[i]);
    }
    if (status == GEN_OK) ++begun;
  }
  EXPECT_GT(begun, 50U);
  for (gen_request* request : requests) gen_request_free(request);
}

}  // namespace
}  // namespace gen::api
