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

Heading heading(bool chat, bool logprobs = false, bool usage = false) {
  return {chat ? "chatcmpl-1" : "cmpl-1", "story", 1700000000, chat, logprobs, usage};
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
    "prompt_tokens_details":{"cached_tokens":3,"evaluated_tokens":2}}})");
  EXPECT_EQ(parsed(answer_json(heading(false), {choice(0, " a", "stop"), choice(1, "", "length")},
                               {5, 7, 3, 2})),
            expected);
}

TEST(Response, GuessesAreToldIfThereWereAny) {
  const Json usage = Json::parse(R"({"prompt_tokens":5,"completion_tokens":7,"total_tokens":12,
    "prompt_tokens_details":{"cached_tokens":3,"evaluated_tokens":2},
    "completion_tokens_details":{"accepted_prediction_tokens":4,"rejected_prediction_tokens":2}})");
  EXPECT_EQ(
      parsed(answer_json(heading(false), {choice(0, " a", "stop")}, {5, 7, 3, 2, 6, 4}))["usage"],
      usage);
}

TEST(Response, Chat) {
  const Json expected = Json::parse(R"({"id":"chatcmpl-1","object":"chat.completion",
    "created":1700000000,"model":"story","choices":[{"index":0,"message":{"role":"assistant",
    "content":"Hi","refusal":null},"logprobs":null,"finish_reason":"stop"}],
    "usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,
    "prompt_tokens_details":{"cached_tokens":0,"evaluated_tokens":1}}})");
  EXPECT_EQ(parsed(answer_json(heading(true), {choice(0, "Hi", "stop")}, {1, 2, 0, 1})), expected);
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
  EXPECT_EQ(parsed(text_chunk(heading(true), choice(2, "Hi", nullptr))),
            expected(R"({"index":2,"delta":{"content":"Hi"},"logprobs":null,
              "finish_reason":null})"));
  EXPECT_EQ(parsed(end_chunk(heading(true), choice(2, "", "length"))),
            expected(R"({"index":2,"delta":{},"logprobs":null,"finish_reason":"length"})"));
  Json usage = expected("");
  usage["usage"] = {{"prompt_tokens", 4},
                    {"completion_tokens", 5},
                    {"total_tokens", 9},
                    {"prompt_tokens_details", {{"cached_tokens", 1}, {"evaluated_tokens", 3}}}};
  EXPECT_EQ(parsed(usage_chunk(heading(true), {4, 5, 1, 3})), usage);
}

TEST(Response, ChunksOfCompletions) {
  const auto expected = [](const std::string& choice_text) {
    return Json::parse(R"({"id":"cmpl-1","object":"text_completion","created":1700000000,
      "model":"story","choices":[)" +
                       choice_text + "]}");
  };
  EXPECT_EQ(parsed(text_chunk(heading(false), choice(0, "Hi", nullptr))),
            expected(R"({"index":0,"text":"Hi","logprobs":null,"finish_reason":null})"));
  EXPECT_EQ(parsed(end_chunk(heading(false), choice(0, "", "stop"))),
            expected(R"({"index":0,"text":"","logprobs":null,"finish_reason":"stop"})"));
}

TEST(Response, ChunksBeforeTheUsageHaveNone) {
  for (const bool chat : {false, true}) {
    for (const bool asked : {false, true}) {
      const Heading with = heading(chat, false, asked);
      for (const auto& chunk : {role_chunk(with, 0), text_chunk(with, choice(0, "Hi", nullptr)),
                                end_chunk(with, choice(0, "", "stop"))}) {
        EXPECT_EQ(chunk.contains("usage"), asked);
        EXPECT_TRUE(!asked || chunk["usage"].is_null());
      }
      EXPECT_FALSE(answer_json(with, {choice(0, "", "stop")}, {1, 2, 0, 1})["usage"].is_null());
    }
  }
}

TEST(Response, LogprobsOfChats) {
  Choice scored = choice(0, "\xC3\xA9t", "stop");
  scored.tokens = {{{5, "\xC3", -0.5F}, {{5, "\xC3", -0.5F}, {6, "e", -1.0F}}},
                   {{7, "\xA9", -0.25F}, {}},
                   {{8, "t", -std::numeric_limits<float>::infinity()}, {}}};
  const std::string odd = "\xEF\xBF\xBD";  // stands for bytes that are no character
  const Json expected = Json::parse(R"({"content":[
    {"token":")" + odd + R"(","logprob":-0.5,"bytes":[195],"top_logprobs":[
      {"token":")" + odd + R"(","logprob":-0.5,"bytes":[195]},
      {"token":"e","logprob":-1.0,"bytes":[101]}]},
    {"token":")" + odd + R"(","logprob":-0.25,"bytes":[169],"top_logprobs":[]},
    {"token":"t","logprob":-9999.0,"bytes":[116],"top_logprobs":[]}],"refusal":null})");
  const auto chat = parsed(answer_json(heading(true, true), {scored}, {1, 3, 0}));
  EXPECT_EQ(chat["choices"][0]["logprobs"], expected);
  EXPECT_EQ(parsed(text_chunk(heading(true, true), scored))["choices"][0]["logprobs"], expected);
  EXPECT_EQ(parsed(end_chunk(heading(true, true), scored))["choices"][0]["logprobs"], expected);
}

/// Those of a completion.
Json completion_logprobs(Choice scored) {
  const auto whole = parsed(answer_json(heading(false, true), {scored}, {1, 1, 0}));
  EXPECT_EQ(parsed(text_chunk(heading(false, true), scored))["choices"][0]["logprobs"],
            whole["choices"][0]["logprobs"]);
  return whole["choices"][0]["logprobs"];
}

TEST(Response, LogprobsOfCompletions) {
  Choice scored = choice(0, "\xC3\xA9t", "stop");
  scored.tokens = {{{5, "\xC3", -0.5F}, {{5, "\xC3", -0.5F}, {6, "e", -1.0F}}, 7},
                   {{7, "\xA9", -0.25F}, {}, 8},
                   {{8, "t", -std::numeric_limits<float>::infinity()}, {}, 8}};
  EXPECT_EQ(completion_logprobs(scored), Json::parse(R"({
    "tokens":["bytes:\\xc3","bytes:\\xa9","t"],
    "token_logprobs":[-0.5,-0.25,-9999.0],
    "top_logprobs":[{"bytes:\\xc3":-0.5,"e":-1.0},{"bytes:\\xa9":-0.25},{"t":-9999.0}],
    "text_offset":[7,8,8]})"));
}

TEST(Response, TokensOfOneTextHaveKeysOfTheirOwn) {
  const auto top_of = [](ScoredPiece drawn, std::vector<ScoredPiece> top) {
    Choice scored = choice(0, "", "stop");
    scored.tokens = {{std::move(drawn), std::move(top)}};
    return completion_logprobs(scored)["top_logprobs"][0];
  };
  // "A" and the byte 0x41: the better one has the text alone.
  EXPECT_EQ(top_of({3, "b", -1}, {{1, "A", -0.5F}, {2, "A", -0.75F}, {3, "b", -1}}),
            Json::parse(R"({"A":-0.5,"token_id:2:A":-0.75,"b":-1.0})"));
  // But for the one that was drawn, which is found by what "tokens" has, among the best or not.
  EXPECT_EQ(top_of({2, "A", -0.75F}, {{1, "A", -0.5F}, {2, "A", -0.75F}}),
            Json::parse(R"({"token_id:1:A":-0.5,"A":-0.75})"));
  EXPECT_EQ(top_of({2, "A", -4}, {{1, "A", -0.5F}, {4, "B", -0.75F}}),
            Json::parse(R"({"token_id:1:A":-0.5,"B":-0.75,"A":-4.0})"));
  EXPECT_EQ(top_of({2, "A", -4}, {}), Json::parse(R"({"A":-4.0})"));
  // Different bytes that are no text, and a token whose text is their name.
  EXPECT_EQ(top_of({1, "\xFF", -1},
                   {{1, "\xFF", -1}, {2, "\xFE\x41", -2}, {3, "bytes:\\xff", -3}, {4, "\xFF", -4}}),
            Json::parse(R"({"bytes:\\xff":-1.0,"bytes:\\xfe\\x41":-2.0,
                            "token_id:3:bytes:\\xff":-3.0,"token_id:4:bytes:\\xff":-4.0})"));
  // Tokens without any bytes, and one whose text is another's key.
  EXPECT_EQ(top_of({9, "x", -1}, {{9, "x", -1}, {1, "", -2}, {5, "token_id:2:", -3}, {2, "", -4}}),
            Json::parse(R"({"x":-1.0,"":-2.0,"token_id:2:":-3.0,"token_id:2:token_id:2:":-4.0})"));
}

TEST(Response, WhatIsNoUtf8IsNamedByItsBytes) {
  for (const auto& [bytes, name] :
       {std::pair("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x90\x88", "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x90\x88"),
        {"\x7F", "\x7F"},
        {"\xF4\x8F\xBF\xBF", "\xF4\x8F\xBF\xBF"},
        {"\x80", "bytes:\\x80"},
        {"\xC3", "bytes:\\xc3"},
        {"\xC1\xBF", "bytes:\\xc1\\xbf"},
        {"\xE0\x9F\xBF", "bytes:\\xe0\\x9f\\xbf"},
        {"\xED\xA0\x80", "bytes:\\xed\\xa0\\x80"},
        {"\xF0\x8F\xBF\xBF", "bytes:\\xf0\\x8f\\xbf\\xbf"},
        {"\xF4\x90\x80\x80", "bytes:\\xf4\\x90\\x80\\x80"},
        {"\xF5\x80\x80\x80", "bytes:\\xf5\\x80\\x80\\x80"},
        {"a\xE2\x82", "bytes:\\x61\\xe2\\x82"},
        {"\xE2\x28\xA1", "bytes:\\xe2\\x28\\xa1"}}) {
    Choice scored = choice(0, "", "stop");
    scored.tokens = {{{1, bytes, -1}, {}}};
    EXPECT_EQ(completion_logprobs(scored)["tokens"][0], name);
  }
}

TEST(Response, EventsAreOneLine) {
  const std::string text =
      event(text_chunk(heading(true), choice(0, "a\n\ndata: b\r\xFF\xE2\x80\xA8", nullptr)));
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
  EXPECT_EQ(parsed(models_json("story", {}, 5)),
            Json::parse(R"({"object":"list","data":[{"id":"story","object":"model","created":5,
                            "owned_by":"libgenerate"}]})"));
  EXPECT_EQ(parsed(models_json("story", {"a"}, 5)),
            Json::parse(R"({"object":"list","data":[{"id":"story","object":"model","created":5,
                            "owned_by":"libgenerate"},{"id":"a","object":"model","created":5,
                            "owned_by":"libgenerate","parent":"story"}]})"));
}

TEST(Response, Adapters) {
  EXPECT_EQ(parsed(adapters_json({})), Json::array());
  EXPECT_EQ(parsed(adapters_json({"a", "b"})),
            Json::parse(R"([{"id":0,"name":"a","scale":0.0},{"id":1,"name":"b","scale":0.0}])"));
}

}  // namespace
}  // namespace server
