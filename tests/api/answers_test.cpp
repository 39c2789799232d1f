// SPDX-License-Identifier: Apache-2.0
// Answers that a chat session reads: text, reasoning and tool calls, in pieces and as messages, cut
// and continued, with a limit on reasoning. What the model says is prescribed, by its logits.
#include <generate/generate.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "status_record.h"
#include "support/sanitized.h"
#include "tool_template.h"

namespace gen {
namespace {

using nlohmann::json;

const std::string kModel = GEN_TEST_SOURCE_DIR "/examples/demo_model/draft.gguf";

constexpr const char* kWeather =
    R"({"type": "function", "function": {"name": "weather", "description": "w", "parameters":)"
    R"( {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}})";

struct Script {
  std::vector<int32_t> tokens;
  int32_t end = -1;
  size_t before = 0;  // tokens of the answer from earlier calls
};

gen_status follow(void* user, float* logits, size_t n, const int32_t*, size_t, size_t said,
                  gen_error*) {
  const Script& script = *static_cast<const Script*>(user);
  const size_t at = script.before + said;
  std::fill(logits, logits + n, -100.0F);
  const int32_t token = at < script.tokens.size() ? script.tokens[at] : script.end;
  logits[static_cast<size_t>(token)] = 100.0F;
  return GEN_OK;
}

struct Seen {
  std::string text, reasoning, calls;
  gen_chat_session* to_end = nullptr;  // its reasoning is ended after some
  gen_status ended = GEN_ERROR_INTERNAL;
  int32_t stop_after = -1;
  int32_t tokens = 0;
};

void note(Seen& seen, const gen_token& token) {
  for (int32_t i = 0; i < token.piece_count; ++i) {
    const gen_piece& piece = token.pieces[i];
    const std::string text(piece.text, piece.len);
    EXPECT_EQ(piece.text[piece.len], '\0');
    switch (piece.kind) {
      case GEN_PIECE_TEXT:
        seen.text += text;
        break;
      case GEN_PIECE_REASONING:
        seen.reasoning += text;
        break;
      case GEN_PIECE_CALL_NAME:
        seen.calls += std::to_string(piece.call) + text + "(";
        break;
      case GEN_PIECE_ARGUMENTS:
        seen.calls += text;
        break;
      case GEN_PIECE_CALL_END:
        seen.calls += ")";
        break;
      default:
        seen.calls += "!";
        break;
    }
  }
}

int see(void* user, const gen_token* token) {
  Seen& seen = *static_cast<Seen*>(user);
  note(seen, *token);
  if (seen.to_end != nullptr && seen.reasoning.size() > 8) {
    seen.ended = gen_chat_session_end_reasoning(seen.to_end, nullptr);
    seen.to_end = nullptr;
  }
  return ++seen.tokens == seen.stop_after ? 1 : 0;
}

class Answers : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(gen_model_load(kModel.c_str(), nullptr, &model_, &error_), GEN_OK);
    ASSERT_EQ(gen_create(model_, nullptr, &generator_, &error_), GEN_OK);
    ASSERT_EQ(gen_chat_new(&chat_, &error_), GEN_OK);
    ASSERT_EQ(gen_chat_set_template(chat_, kToolTemplate, GEN_NUL_TERMINATED, &error_), GEN_OK)
        << error_.message;
    ASSERT_EQ(gen_chat_session_new(generator_, chat_, &talk_, &error_), GEN_OK);
    ASSERT_EQ(gen_sampling_new(&sampling_, &error_), GEN_OK);
    ASSERT_EQ(gen_sampling_set_logits_callback(sampling_, follow, &script_, &error_), GEN_OK);
    script_.end = gen_tokenizer_special(gen_model_tokenizer(model_), GEN_SPECIAL_EOT);
  }
  void TearDown() override {
    gen_result_free(result_);
    gen_sampling_free(sampling_);
    gen_chat_session_free(talk_);
    gen_chat_free(chat_);
    gen_free(generator_);
    gen_model_free(model_);
  }
  std::vector<int32_t> encoded(const std::string& text) {
    size_t n = 0;
    std::vector<int32_t> ids(4096);
    EXPECT_EQ(gen_tokenizer_encode(gen_model_tokenizer(model_), text.data(), text.size(), 0,
                                   ids.data(), ids.size(), &n, &error_),
              GEN_OK);
    ids.resize(n);
    return ids;
  }
  // The vocabulary begins texts with a space, which an answer has not.
  void script(const std::string& text) {
    const std::vector<int32_t> ids = encoded("\n" + text);
    const auto lead = static_cast<std::ptrdiff_t>(encoded("\n").size());
    script_.tokens.assign(ids.begin() + lead, ids.end());
    script_.before = 0;
  }
  // Reasoning without an end, of so many tokens.
  void script_thoughts(size_t n) {
    std::string thoughts = "<think>\n";
    for (int i = 0; i < 40; ++i) thoughts += "and then ";
    script(thoughts);
    script_.tokens.resize(n);
  }
  gen_status send(const char* text, Seen* seen) {
    gen_result_free(result_);
    return gen_chat_session_send_stream(talk_, text, text != nullptr ? GEN_NUL_TERMINATED : 0,
                                        sampling_, see, seen, &result_, &error_);
  }
  void set(const char* key, const char* value) {
    ASSERT_EQ(gen_chat_set(chat_, key, value, &error_), GEN_OK) << error_.message;
  }
  void add_weather() {
    ASSERT_EQ(gen_chat_add_tool(chat_, kWeather, GEN_NUL_TERMINATED, &error_), GEN_OK);
  }
  template <typename F, typename T>
  json filled(F call, const T* object) {
    size_t n = 0;
    EXPECT_EQ(call(object, nullptr, 0, &n, &error_), GEN_OK);
    std::string text(n + 1, '?');
    EXPECT_EQ(call(object, text.data(), n, &n, &error_), GEN_ERROR_OUT_OF_RANGE);
    EXPECT_EQ(call(object, text.data(), text.size(), &n, &error_), GEN_OK);
    text.pop_back();
    return json::parse(text);
  }
  json last() { return filled(gen_chat_describe, chat_).at("messages").back(); }

  gen_error error_{};
  gen_model* model_ = nullptr;
  gen_generator* generator_ = nullptr;
  gen_chat* chat_ = nullptr;
  gen_chat_session* talk_ = nullptr;
  gen_sampling* sampling_ = nullptr;
  gen_result* result_ = nullptr;
  Script script_;
};

TEST_F(Answers, ReasoningTextAndCalls) {
  add_weather();
  set("constrain_calls", "0");
  script(
      "<think>\nWhere?\n</think>\n\nLet me see.\n<tool_call>\n{\"name\": \"weather\", "
      "\"arguments\": "
      "{\"city\": \"Oslo\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"weather\", \"arguments\": "
      "{\"city\": \"Rome\"}}\n</tool_call>");
  Seen seen;
  ASSERT_EQ(send("Is it warm?", &seen), GEN_OK) << error_.message;
  EXPECT_EQ(seen.reasoning, "Where?");
  EXPECT_EQ(seen.text, "Let me see.");
  EXPECT_EQ(seen.calls, R"(0weather({"city": "Oslo"})1weather({"city": "Rome"}))");
  EXPECT_EQ(last(), json::parse(R"({"role": "assistant", "content": "Let me see.",
    "reasoning_content": "Where?", "tool_calls": [
    {"type": "function", "id": "call_0", "function": {"name": "weather", "arguments": {"city": "Oslo"}}},
    {"type": "function", "id": "call_1", "function": {"name": "weather", "arguments": {"city": "Rome"}}}]})"));
  EXPECT_EQ(filled(gen_result_answer, result_), json::parse(R"({"text": "Let me see.",
    "reasoning": "Where?", "calls": [{"id": "call_0", "name": "weather", "arguments": {"city": "Oslo"}},
    {"id": "call_1", "name": "weather", "arguments": {"city": "Rome"}}], "faults": []})"));

  // What the session holds is what the template writes of it: only the results are evaluated.
  size_t before = 0, after = 0;
  ASSERT_EQ(gen_chat_encode(model_, chat_, 0, nullptr, 0, &before, &error_), GEN_OK);
  ASSERT_EQ(gen_chat_add_tool_result(chat_, "call_0", "weather", "18", GEN_NUL_TERMINATED, &error_),
            GEN_OK);
  ASSERT_EQ(gen_chat_add_tool_result(chat_, "call_1", "weather", "25", GEN_NUL_TERMINATED, &error_),
            GEN_OK);
  ASSERT_EQ(gen_chat_encode(model_, chat_, 1, nullptr, 0, &after, &error_), GEN_OK);
  script("<tool_call>\n{\"name\": \"weather\", \"arguments\": {}}\n</tool_call>");
  ASSERT_EQ(send(nullptr, &seen), GEN_OK) << error_.message;
  int64_t evaluated = 0;
  ASSERT_EQ(gen_result_usage(result_, "prompt_evaluated", &evaluated, &error_), GEN_OK);
  EXPECT_LE(evaluated, static_cast<int64_t>(after - before) + 3);
  EXPECT_EQ(last().at("tool_calls").at(0).at("id"), "call_2");
}

TEST_F(Answers, WithoutToolsCallsAreText) {
  script("<think>\na\n</think>\n\n<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>");
  Seen seen;
  ASSERT_EQ(send("Hi", &seen), GEN_OK) << error_.message;
  EXPECT_EQ(seen.reasoning, "a");
  EXPECT_EQ(seen.text, "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>");
  EXPECT_EQ(seen.calls, "");
}

TEST_F(Answers, BrokenCallsAreTextWithAFault) {
  add_weather();
  set("constrain_calls", "0");
  script("So <tool_call>\n{\"name\": \"weather\", \"arguments\": [}\n</tool_call>");
  Seen seen;
  ASSERT_EQ(send("Hi", &seen), GEN_OK) << error_.message;
  EXPECT_EQ(seen.text, "So <tool_call>\n{\"name\": \"weather\", \"arguments\": [}\n</tool_call>");
  EXPECT_EQ(seen.calls, "0weather(!");
  EXPECT_EQ(filled(gen_result_answer, result_).at("faults").size(), 1U);
  EXPECT_FALSE(last().contains("tool_calls"));
}

// Wherever an answer is cut, it goes on as if it had not been.
TEST_F(Answers, CutAnswersGoOn) {
  const std::string said =
      "<think>\nWhere is it?\n</think>\n\nIt is near.  Or far. <tool_call> is no call.";
  script(said);
  const std::vector<int32_t> tokens = script_.tokens;
  Seen whole;
  ASSERT_EQ(send("Where?", &whole), GEN_OK) << error_.message;
  const json message = last();
  for (int32_t cut = 1; cut < static_cast<int32_t>(tokens.size()); cut += 3) {
    ASSERT_EQ(gen_chat_truncate(chat_, 0, &error_), GEN_OK);
    script_.before = 0;
    Seen first;
    first.stop_after = cut;
    ASSERT_EQ(send("Where?", &first), GEN_ERROR_CANCELLED);
    script_.before = static_cast<size_t>(cut);
    Seen second;
    ASSERT_EQ(send(nullptr, &second), GEN_OK) << error_.message << " at " << cut;
    EXPECT_EQ(first.reasoning + second.reasoning, whole.reasoning) << cut;
    EXPECT_EQ(first.text + second.text, whole.text) << cut;
    EXPECT_EQ(last(), message) << cut;
  }
}

// Also behind a call that is complete, which keeps its id.
TEST_F(Answers, CutAnswersGoOnBehindACall) {
  add_weather();
  script(
      "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>\n"
      "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>");
  Seen whole;
  ASSERT_EQ(send("Where?", &whole), GEN_OK) << error_.message;
  const json messages = filled(gen_chat_describe, chat_).at("messages");
  ASSERT_EQ(messages.back().at("tool_calls").size(), 2U);
  const auto n = static_cast<int32_t>(script_.tokens.size());
  for (int32_t cut = n / 2; cut < n; ++cut) {
    ASSERT_EQ(gen_chat_truncate(chat_, 0, &error_), GEN_OK);
    script_.before = 0;
    Seen first;
    first.stop_after = cut;
    ASSERT_EQ(send("Where?", &first), GEN_ERROR_CANCELLED);
    script_.before = static_cast<size_t>(cut);
    Seen second;
    ASSERT_EQ(send(nullptr, &second), GEN_OK) << error_.message << " at " << cut;
    EXPECT_EQ(filled(gen_chat_describe, chat_).at("messages"), messages) << cut;
  }
}

// Calls of tools are constrained; text that a limit cuts is cut nevertheless, and goes on.
TEST_F(Answers, TextBesideToolsIsCutByItsLimit) {
  add_weather();
  script("one two three four five six");
  ASSERT_EQ(gen_sampling_set_max_new_tokens(sampling_, 3, &error_), GEN_OK);
  Seen first;
  ASSERT_EQ(send("Count.", &first), GEN_OK) << error_.message;
  EXPECT_EQ(gen_result_finish_reason(result_), GEN_FINISH_LENGTH);
  ASSERT_EQ(gen_sampling_set_max_new_tokens(sampling_, 64, &error_), GEN_OK);
  script_.before = 3;
  Seen second;
  ASSERT_EQ(send(nullptr, &second), GEN_OK) << error_.message;
  EXPECT_EQ(first.text + second.text, "one two three four five six");
}

TEST_F(Answers, TextUnderASchemaNeedsNoTools) {
  set("response_schema", R"({"type": "object", "properties": {"a": {"type": "integer"}}})");
  script("<think>\nHm.\n</think>\n\n{\"a\": 1}");
  Seen seen;
  ASSERT_EQ(send("Hi", &seen), GEN_OK) << error_.message;
  EXPECT_EQ(seen.reasoning, "Hm.");
  EXPECT_EQ(seen.text, "{\"a\": 1}");
}

// An answer goes on with the tools that it began with; the next one has those of the conversation.
TEST_F(Answers, ToolsAddedToACutAnswerAreThoseOfTheNext) {
  add_weather();
  script("one two three four");
  Seen first;
  first.stop_after = 2;
  ASSERT_EQ(send("Count.", &first), GEN_ERROR_CANCELLED);
  std::string other = kWeather;
  other.replace(other.find("weather"), 7, "climate");
  ASSERT_EQ(gen_chat_add_tool(chat_, other.c_str(), GEN_NUL_TERMINATED, &error_), GEN_OK);
  script_.before = 2;
  Seen second;
  ASSERT_EQ(send(nullptr, &second), GEN_OK) << error_.message;
  script("<tool_call>\n{\"name\": \"climate\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>");
  Seen third;
  ASSERT_EQ(send("And there?", &third), GEN_OK) << error_.message;
  EXPECT_EQ(third.calls, R"(0climate({"city": "Oslo"}))");
}

TEST_F(Answers, ReasoningEndsAtItsBudget) {
  set("reasoning_budget", "6");
  set("reasoning_end", " Enough.");
  script_thoughts(40);
  Seen seen;
  ASSERT_EQ(send("Why?", &seen), GEN_OK) << error_.message;
  EXPECT_TRUE(std::string_view(seen.reasoning).ends_with(" Enough.")) << seen.reasoning;
  EXPECT_LT(seen.reasoning.size(), 60U);
  EXPECT_FALSE(seen.text.empty());
  EXPECT_EQ(last().at("reasoning_content"), seen.reasoning);
}

// Where it is cut makes no difference: before the budget is spent, in the closing, or behind it.
TEST_F(Answers, BudgetsAreOfTheWholeAnswer) {
  set("reasoning_budget", "6");
  set("reasoning_end", " Enough of that.");
  script_thoughts(40);
  Seen whole;
  ASSERT_EQ(send("Why?", &whole), GEN_OK) << error_.message;
  ASSERT_FALSE(whole.text.empty());
  const json message = last();
  for (const int32_t each : {1, 2, 5, 7, 11}) {
    SCOPED_TRACE(testing::Message() << each << " tokens a call");
    ASSERT_EQ(gen_chat_truncate(chat_, 0, &error_), GEN_OK);
    ASSERT_EQ(gen_sampling_set_max_new_tokens(sampling_, each, &error_), GEN_OK);
    script_.before = 0;
    Seen parts;
    ASSERT_EQ(send("Why?", &parts), GEN_OK) << error_.message;
    while (gen_result_finish_reason(result_) == GEN_FINISH_LENGTH) {
      script_.before += static_cast<size_t>(each);
      ASSERT_EQ(send(nullptr, &parts), GEN_OK) << error_.message;
    }
    EXPECT_EQ(last(), message);
  }
}

// A model with fewer tokens than its tokenizer may lack those of the closing.
TEST_F(Answers, ClosingsNeedTheModelsVocabulary) {
  const gen_tokenizer* const tokenizer = gen_model_tokenizer(model_);
  int32_t last = gen_tokenizer_vocab_size(tokenizer);
  std::string piece;
  do {
    char text[64] = {};
    size_t n = 0;
    if (gen_tokenizer_piece(tokenizer, --last, text, sizeof text, &n, &error_) != GEN_OK) continue;
    piece = text;
  } while (encoded(piece).empty() || encoded(piece).back() != last);
  gen_forward table = {};
  table.struct_size = sizeof table;
  table.forward = [](void*, const gen_forward_batch*, float*, float*, gen_error*) -> gen_status {
    return GEN_ERROR_MODEL;
  };
  gen_model_config* config = nullptr;
  ASSERT_EQ(gen_model_config_new(&config, &error_), GEN_OK);
  ASSERT_EQ(gen_model_config_set_vocab_size(config, last, &error_), GEN_OK);
  ASSERT_EQ(gen_model_config_set_max_seq_len(config, 512, &error_), GEN_OK);
  gen_model* model = nullptr;
  gen_generator* generator = nullptr;
  gen_chat_session* talk = nullptr;
  ASSERT_EQ(gen_model_new_custom(&table, config, tokenizer, &model, &error_), GEN_OK)
      << error_.message;
  gen_model_config_free(config);
  ASSERT_EQ(gen_create(model, nullptr, &generator, &error_), GEN_OK) << error_.message;
  ASSERT_EQ(gen_chat_session_new(generator, chat_, &talk, &error_), GEN_OK) << error_.message;
  std::swap(talk, talk_);
  set("reasoning_budget", "0");
  set("reasoning_end", piece.c_str());
  Seen seen;
  EXPECT_EQ(send("Why?", &seen), GEN_ERROR_UNSUPPORTED);
  const std::string said = error_.message;
  EXPECT_NE(said.find("token " + std::to_string(last) + " ends reasoning"), said.npos) << said;
  std::swap(talk, talk_);
  gen_chat_session_free(talk);
  gen_free(generator);
  gen_model_free(model);
}

TEST_F(Answers, ReasoningEndsWhenAsked) {
  EXPECT_EQ(gen_chat_session_end_reasoning(talk_, &error_), GEN_ERROR_STATE);
  EXPECT_EQ(gen_chat_session_end_reasoning(nullptr, &error_), GEN_ERROR_INVALID_ARGUMENT);
  set("reasoning_control", "1");
  set("reasoning_end", " Stop.");
  script_thoughts(60);
  Seen seen;
  seen.to_end = talk_;
  ASSERT_EQ(send("Why?", &seen), GEN_OK) << error_.message;
  EXPECT_EQ(seen.ended, GEN_OK);
  EXPECT_TRUE(std::string_view(seen.reasoning).ends_with(" Stop.")) << seen.reasoning;
  EXPECT_LT(seen.reasoning.size(), 60U);
}

// Such as that of LFM2: the answer is shown as it was written.
TEST_F(Answers, TemplatesThatShowNoCalls) {
  constexpr const char* kNoCalls =
      "{{ tools | tojson }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content "
      "}}<|im_end|>"
      "\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
  ASSERT_EQ(gen_chat_set_template(chat_, kNoCalls, GEN_NUL_TERMINATED, &error_), GEN_OK);
  add_weather();
  set("constrain_calls", "0");
  const std::string said = R"(See {"name": "weather", "arguments": {"city": "Oslo"}} now.)";
  script(said);
  Seen seen;
  ASSERT_EQ(send("Is it warm?", &seen), GEN_OK) << error_.message;
  EXPECT_EQ(last().at("tool_calls").size(), 1U);
  ASSERT_EQ(gen_chat_add_tool_result(chat_, "call_0", "weather", "18", GEN_NUL_TERMINATED, &error_),
            GEN_OK);
  std::string text(4096, '?');
  size_t n = 0;
  ASSERT_EQ(gen_chat_format(model_, chat_, 1, text.data(), text.size(), &n, &error_), GEN_OK)
      << error_.message;
  EXPECT_NE(text.find(said), std::string::npos);
  script("Yes.");
  ASSERT_EQ(send(nullptr, &seen), GEN_OK) << error_.message;
  int64_t evaluated = 0;
  ASSERT_EQ(gen_result_usage(result_, "prompt_evaluated", &evaluated, &error_), GEN_OK);
  EXPECT_LT(evaluated, 40);

  // A control token that the model drew stays one; the same text as letters stays text.
  ASSERT_EQ(gen_chat_truncate(chat_, 0, &error_), GEN_OK);
  script(R"(<|im_start|>{"name": "weather", "arguments": {"city": "Rome"}})");
  int32_t mark = -1;
  ASSERT_EQ(gen_tokenizer_encode(gen_model_tokenizer(model_), "<|im_start|>", GEN_NUL_TERMINATED,
                                 GEN_ENCODE_PARSE_SPECIAL, &mark, 1, &n, &error_),
            GEN_OK);
  script_.tokens.insert(script_.tokens.begin(), mark);
  ASSERT_EQ(send("And there?", &seen), GEN_OK) << error_.message;
  ASSERT_EQ(gen_chat_add_tool_result(chat_, "call_0", "", "25", GEN_NUL_TERMINATED, &error_),
            GEN_OK);
  std::vector<int32_t> ids(1024);
  ASSERT_EQ(gen_chat_encode(model_, chat_, 1, ids.data(), ids.size(), &n, &error_), GEN_OK);
  EXPECT_EQ(std::count(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n), mark), 5);
}

TEST_F(Answers, StreamsHavePieces) {
  script("<think>\nHm.\n</think>\n\nYes.");
  gen_stream* stream = nullptr;
  ASSERT_EQ(
      gen_chat_session_open_stream(talk_, "Well?", GEN_NUL_TERMINATED, sampling_, &stream, &error_),
      GEN_OK);
  Seen seen;
  const gen_token* token = nullptr;
  while (gen_stream_next(stream, &token, &error_) == GEN_OK && token != nullptr) note(seen, *token);
  EXPECT_EQ(seen.reasoning, "Hm.");
  EXPECT_EQ(seen.text, "Yes.");
  ASSERT_EQ(gen_stream_result(stream, &result_, &error_), GEN_OK);
  EXPECT_EQ(filled(gen_result_answer, result_).at("reasoning"), "Hm.");
  gen_stream_close(stream);
  EXPECT_EQ(last().at("content"), "Yes.");
  EXPECT_EQ(last().at("reasoning_content"), "Hm.");

  set("keep_reasoning", "0");
  ASSERT_EQ(gen_chat_truncate(chat_, 0, &error_), GEN_OK);
  Seen again;
  ASSERT_EQ(send("Well?", &again), GEN_OK) << error_.message;
  EXPECT_EQ(again.reasoning, "Hm.");
  EXPECT_FALSE(last().contains("reasoning_content"));
}

// Whatever the format, what is drawn under its grammar is read as calls of the tools. The model is
// a small one that knows none of them.
TEST_F(Answers, DemandedCallsAreValidInEveryFormat) {
  ASSERT_EQ(gen_sampling_set_logits_callback(sampling_, nullptr, nullptr, &error_), GEN_OK);
  ASSERT_EQ(gen_sampling_set_max_new_tokens(sampling_, 500, &error_), GEN_OK);
  ASSERT_EQ(
      gen_chat_add_tool(chat_, R"({"type": "function", "function": {"name": "find", "parameters":
      {"type": "object", "properties": {"words": {"type": "string", "maxLength": 12}, "count": {"type":
      "integer", "minimum": 1, "maximum": 20}, "how": {"enum": ["all", "any"]}, "deep": {"type": "boolean"}},
      "required": ["words", "count"]}}})",
                        GEN_NUL_TERMINATED, &error_),
      GEN_OK);
  set("tool_choice", "required");
  std::string formats;
  for (const json& row : filled(gen_chat_describe_options, chat_)) {
    if (row.at("key") == "call_format") formats = row.at("range").get<std::string>();
  }
  formats = formats.substr(formats.find("one of ") + 7) + ", ";
  const uint64_t seeds = test::kSanitized ? 1 : 3;
  size_t tried = 0;
  for (size_t at = 0; at < formats.size(); at = formats.find(", ", at) + 2) {
    const std::string format = formats.substr(at, formats.find(", ", at) - at);
    SCOPED_TRACE(format);
    set("call_format", format.c_str());
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      ASSERT_EQ(gen_sampling_set_seed(sampling_, seed, &error_), GEN_OK);
      ASSERT_EQ(gen_chat_truncate(chat_, 0, &error_), GEN_OK);
      Seen seen;
      ASSERT_EQ(send("Find it.", &seen), GEN_OK) << error_.message;
      const json answer = filled(gen_result_answer, result_);
      SCOPED_TRACE(answer.dump() + " of " + gen_result_text(result_, nullptr));
      EXPECT_EQ(answer.at("text"), "");
      EXPECT_TRUE(answer.at("faults").empty());
      ASSERT_FALSE(answer.at("calls").empty());
      for (const json& call : answer.at("calls")) {
        EXPECT_EQ(call.at("name"), "find");
        const json& arguments = call.at("arguments");
        EXPECT_TRUE(arguments.at("words").is_string());
        EXPECT_TRUE(arguments.at("count").is_number_integer());
        EXPECT_GE(arguments.at("count"), 1);
        EXPECT_LE(arguments.at("count"), 20);
        if (arguments.contains("deep")) {
          EXPECT_TRUE(arguments.at("deep").is_boolean());
        }
        if (arguments.contains("how")) {
          EXPECT_TRUE(arguments.at("how") == "all" || arguments.at("how") == "any");
        }
      }
      ++tried;
    }
  }
  EXPECT_GE(tried, 30 * seeds);
}

// A call that a limit cuts goes on under its grammar.
TEST_F(Answers, CutCallsStayConstrained) {
  ASSERT_EQ(gen_sampling_set_logits_callback(sampling_, nullptr, nullptr, &error_), GEN_OK);
  ASSERT_EQ(gen_sampling_set_fit_grammar(sampling_, 0, &error_), GEN_OK);
  add_weather();
  set("tool_choice", "weather");
  set("parallel_calls", "0");
  set("reasoning", "off");
  for (const int32_t cut : {1, 7, 20, 30}) {
    ASSERT_EQ(gen_chat_truncate(chat_, 0, &error_), GEN_OK);
    ASSERT_EQ(gen_sampling_set_max_new_tokens(sampling_, cut, &error_), GEN_OK);
    Seen seen;
    ASSERT_EQ(send("Hi", &seen), GEN_OK) << error_.message;
    ASSERT_EQ(gen_result_finish_reason(result_), GEN_FINISH_LENGTH);
    EXPECT_FALSE(last().contains("tool_calls"));
    ASSERT_EQ(gen_sampling_set_max_new_tokens(sampling_, 400, &error_), GEN_OK);
    ASSERT_EQ(send(nullptr, &seen), GEN_OK) << error_.message;
    ASSERT_TRUE(last().contains("tool_calls")) << last();
    const json call = last().at("tool_calls").at(0).at("function");
    EXPECT_EQ(call.at("name"), "weather");
    EXPECT_TRUE(call.at("arguments").at("city").is_string());
    EXPECT_EQ(last().at("content"), "");
  }
}

// A tool whose schema cannot be enforced may have any arguments; the others keep theirs.
TEST_F(Answers, OneOddToolDoesNotFreeTheOthers) {
  ASSERT_EQ(gen_sampling_set_logits_callback(sampling_, nullptr, nullptr, &error_), GEN_OK);
  ASSERT_EQ(gen_sampling_set_max_new_tokens(sampling_, 300, &error_), GEN_OK);
  ASSERT_EQ(
      gen_chat_add_tool(chat_, R"({"type": "function", "function": {"name": "odd", "parameters":
      {"type": "object", "properties": {"a": {"$ref": "http://elsewhere/a.json"}}}}})",
                        GEN_NUL_TERMINATED, &error_),
      GEN_OK);
  add_weather();
  Seen seen;
  ASSERT_EQ(send("Hi", &seen), GEN_OK) << error_.message;
  set("tool_choice", "required");
  EXPECT_EQ(send("Hi", &seen), GEN_ERROR_GRAMMAR);
  EXPECT_NE(std::string(error_.message).find("odd"), std::string::npos) << error_.message;
  set("tool_choice", "weather");
  ASSERT_EQ(send("Hi", &seen), GEN_OK) << error_.message;
  EXPECT_EQ(last().at("tool_calls").at(0).at("function").at("name"), "weather");
  set("call_format", "off");
  EXPECT_EQ(send(nullptr, &seen), GEN_ERROR_INVALID_ARGUMENT);
}

TEST_F(Answers, Options) {
  EXPECT_EQ(gen_chat_set(nullptr, "tool_choice", "auto", &error_), GEN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(gen_chat_set(chat_, nullptr, "auto", &error_), GEN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(gen_chat_set(chat_, "tool_choice", nullptr, &error_), GEN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(gen_chat_set(chat_, "call_format", "none", &error_), GEN_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("hermes"), std::string::npos);
  EXPECT_EQ(gen_chat_set(chat_, "reasoning", "maybe", &error_), GEN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(gen_chat_set(chat_, "reasoning_budget", "-2", &error_), GEN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(gen_chat_set(chat_, "reasoning_end", "\xff", &error_), GEN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(gen_chat_set(chat_, "no_such", "1", &error_), GEN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(gen_chat_describe_options(chat_, nullptr, 0, nullptr, &error_),
            GEN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(gen_result_answer(nullptr, nullptr, 0, nullptr, &error_), GEN_ERROR_INVALID_ARGUMENT);
  set("tool_choice", "weather");
  for (const json& row : filled(gen_chat_describe_options, chat_)) {
    if (row.at("key") == "tool_choice") {
      EXPECT_EQ(row.at("value"), "weather");
    }
  }
  // While an answer is open, the conversation is in use.
  gen_stream* stream = nullptr;
  set("tool_choice", "auto");
  ASSERT_EQ(
      gen_chat_session_open_stream(talk_, "Hi", GEN_NUL_TERMINATED, sampling_, &stream, &error_),
      GEN_OK);
  size_t n = 0;
  EXPECT_EQ(gen_chat_set(chat_, "tool_choice", "none", &error_), GEN_ERROR_BUSY);
  EXPECT_EQ(gen_chat_describe_options(chat_, nullptr, 0, &n, &error_), GEN_ERROR_BUSY);
  gen_stream_close(stream);
  set("tool_choice", "weather");
  // A demand that cannot be met is an error, and leaves the conversation as it was.
  script("Yes.");
  Seen seen;
  EXPECT_EQ(send("Hi", &seen), GEN_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(filled(gen_chat_describe, chat_).at("messages").empty());
}

}  // namespace
}  // namespace gen
