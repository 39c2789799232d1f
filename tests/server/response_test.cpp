// SPDX-License-Identifier: Apache-2.0
// Proves the forms of answers field by field against objects written out by hand from the API's
// reference, and that no text, however broken, gives a body that is not JSON.
#include "openai/response.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "openai/api_error.h"

namespace server {
namespace {

using Json = nlohmann::json;

Heading heading(bool chat, bool logprobs = false) {
  return {chat ? "chatcmpl-1" : "cmpl-1", "story", 1700000000, chat, logprobs};
}

Choice choice(size_t index, const std::string& text, const char* reason) {
  Choice made;
  made.index = index;
  made.text = text;
  made.finish_reason = reason;
  return made;
}

Json parsed(const nlohmann::ordered_json& json) { return Json::parse(dump(json)); }

TEST(Response, Completion) {
  const Json expected = Json::parse(R"({"id":"cmpl-1","object":"text_completion",
    "created":1700000000,"model":"story","choices":[
    {"index":0,"text":" a","logprobs":null,"finish_reason":"stop"},
    {"index":1,"text":"","logprobs":null,"finish_reason":"length"}],
    "usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12,
    "prompt_tokens_details":{"cached_tokens":3}}})");
  EXPECT_EQ(parsed(answer_json(heading(false), {choice(0, " a", "stop"), choice(1, "", "length")},
                               {5, 7, 3})),
            expected);
}

TEST(Response, GuessesAreToldIfThereWereAny) {
  const Json usage = Json::parse(R"({"prompt_tokens":5,"completion_tokens":7,"total_tokens":12,
    "prompt_tokens_details":{"cached_tokens":3},
    "completion_tokens_details":{"accepted_prediction_tokens":4,"rejected_prediction_tokens":2}})");
  EXPECT_EQ(
      parsed(answer_json(heading(false), {choice(0, " a", "stop")}, {5, 7, 3, 6, 4}))["usage"],
      usage);
}

TEST(Response, Chat) {
  const Json expected = Json::parse(R"({"id":"chatcmpl-1","object":"chat.completion",
    "created":1700000000,"model":"story","choices":[{"index":0,"message":{"role":"assistant",
    "content":"Hi","refusal":null},"logprobs":null,"finish_reason":"stop"}],
    "usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,
    "prompt_tokens_details":{"cached_tokens":0}}})");
  EXPECT_EQ(parsed(answer_json(heading(true), {choice(0, "Hi", "stop")}, {1, 2, 0})), expected);
}

TEST(Response, ChunksOfChats) {
  const auto expected = [](const std::string& choice_text) {
    return Json::parse(R"({"id":"chatcmpl-1","object":"chat.completion.chunk",
      "created":1700000000,"model":"story","choices":[)" +
                       choice_text + "]}");
  };
  EXPECT_EQ(parsed(role_chunk(heading(true), 2)),
            expected(R"({"index":2,"delta":{"role":"assistant","content":""},"logprobs":null,
              "finish_reason":null})"));
  EXPECT_EQ(parsed(text_chunk(heading(true), 2, "Hi")),
            expected(R"({"index":2,"delta":{"content":"Hi"},"logprobs":null,
              "finish_reason":null})"));
  EXPECT_EQ(parsed(end_chunk(heading(true), choice(2, "", "length"))),
            expected(R"({"index":2,"delta":{},"logprobs":null,"finish_reason":"length"})"));
  Json usage = expected("");
  usage["usage"] = {{"prompt_tokens", 4},
                    {"completion_tokens", 5},
                    {"total_tokens", 9},
                    {"prompt_tokens_details", {{"cached_tokens", 1}}}};
  EXPECT_EQ(parsed(usage_chunk(heading(true), {4, 5, 1})), usage);
}

TEST(Response, ChunksOfCompletions) {
  const auto expected = [](const std::string& choice_text) {
    return Json::parse(R"({"id":"cmpl-1","object":"text_completion","created":1700000000,
      "model":"story","choices":[)" +
                       choice_text + "]}");
  };
  EXPECT_EQ(parsed(text_chunk(heading(false), 0, "Hi")),
            expected(R"({"index":0,"text":"Hi","logprobs":null,"finish_reason":null})"));
  EXPECT_EQ(parsed(end_chunk(heading(false), choice(0, "", "stop"))),
            expected(R"({"index":0,"text":"","logprobs":null,"finish_reason":"stop"})"));
}

TEST(Response, Logprobs) {
  Choice scored = choice(0, "\xC3\xA9t", "stop");
  scored.tokens = {{{"\xC3", -0.5F}, {{"\xC3", -0.5F}, {"e", -1.0F}}},
                   {{"\xA9", -0.25F}, {}},
                   {{"t", -std::numeric_limits<float>::infinity()}, {}}};
  const std::string odd = "\xEF\xBF\xBD";  // stands for bytes that are no character
  const Json in_chat = Json::parse(R"({"content":[
    {"token":")" + odd + R"(","logprob":-0.5,"bytes":[195],"top_logprobs":[
      {"token":")" + odd + R"(","logprob":-0.5,"bytes":[195]},
      {"token":"e","logprob":-1.0,"bytes":[101]}]},
    {"token":")" + odd + R"(","logprob":-0.25,"bytes":[169],"top_logprobs":[]},
    {"token":"t","logprob":-9999.0,"bytes":[116],"top_logprobs":[]}]})");
  const auto chat = parsed(answer_json(heading(true, true), {scored}, {1, 3, 0}));
  EXPECT_EQ(chat["choices"][0]["logprobs"], in_chat);
  EXPECT_EQ(parsed(end_chunk(heading(true, true), scored))["choices"][0]["logprobs"], in_chat);

  const Json in_completion = Json::parse(R"({"tokens":[")" + odd + R"(",")" + odd + R"(","t"],
    "token_logprobs":[-0.5,-0.25,-9999.0],
    "top_logprobs":[{")" + odd + R"(":-0.5,"e":-1.0},{},{}],"text_offset":[0,1,1]})");
  const auto completion = parsed(answer_json(heading(false, true), {scored}, {1, 3, 0}));
  EXPECT_EQ(completion["choices"][0]["logprobs"], in_completion);
}

TEST(Response, EventsAreOneLine) {
  const std::string text = event(text_chunk(heading(true), 0, "a\n\ndata: b\r\xFF\xE2\x80\xA8"));
  EXPECT_EQ(text.rfind("data: {", 0), 0U);
  EXPECT_EQ(text.substr(text.size() - 2), "\n\n");
  EXPECT_EQ(text.find_first_of("\r\n"), text.size() - 2);
  const Json json = Json::parse(text.substr(6));
  EXPECT_EQ(json["choices"][0]["delta"]["content"], "a\n\ndata: b\r\xEF\xBF\xBD\xE2\x80\xA8");
  EXPECT_EQ(end_of_events(), "data: [DONE]\n\n");
}

TEST(Response, Errors) {
  EXPECT_EQ(parsed(error_json(bad_request("n", "'n' is \xFF", "x"))),
            Json::parse(R"({"error":{"message":"'n' is )"
                        "\xEF\xBF\xBD"
                        R"(","type":"invalid_request_error","param":"n","code":"x"}})"));
  EXPECT_EQ(parsed(error_json(server_error(503, "full"))),
            Json::parse(R"({"error":{"message":"full","type":"server_error","param":null,
                            "code":null}})"));
}

TEST(Response, Models) {
  EXPECT_EQ(parsed(models_json("story", 5)),
            Json::parse(R"({"object":"list","data":[{"id":"story","object":"model","created":5,
                            "owned_by":"libgenerate"}]})"));
}

}  // namespace
}  // namespace server
