// SPDX-License-Identifier: Apache-2.0
// Proves that requests in the forms of the OpenAI API become the values they stand for, and that
// everything else is refused with the status and the field's name: wrong types, numbers beyond
// limits, texts that are not JSON or not UTF-8, deep nesting, fields that cannot be honoured.
#include "openai/request.h"

#include <gtest/gtest.h>

#include <string>

#include "openai/api_error.h"
#include "openai/as_written.h"

namespace server {
namespace {

Dialect dialect() {
  Dialect made;
  made.model = "story";
  made.settings = {"temperature", "top_p", "repetition_penalty", "ignore_eos"};
  made.max_tokens = 100;
  return made;
}

Request completion(const std::string& body) { return parse_completion(body, dialect()); }
Request chat(const std::string& body) { return parse_chat(body, dialect()); }

/// A chat with more fields behind its one message.
std::string chat_with(const std::string& fields) {
  return R"({"messages":[{"role":"user","content":"Hi"}])" + fields + "}";
}
std::string prompt_with(const std::string& fields) { return R"({"prompt":"a")" + fields + "}"; }

template <typename Parse>
void expect_refused(Parse parse, const std::string& body, int status, const std::string& param) {
  try {
    parse(body);
    ADD_FAILURE() << "taken: " << body.substr(0, 200);
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status, status) << body.substr(0, 200);
    EXPECT_EQ(error.param, param) << body.substr(0, 200) << ": " << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    EXPECT_LT(std::string(error.what()).size(), 400U);
  }
}

std::string setting(const Request& request, const std::string& key) {
  for (const Setting& one : request.settings) {
    if (one.key == key) return one.value;
  }
  return "none";
}

TEST(Request, CompletionHasDefaults) {
  const Request request = completion(R"({"prompt":"Once"})");
  EXPECT_FALSE(request.chat);
  ASSERT_EQ(request.prompts.size(), 1U);
  EXPECT_EQ(std::get<std::string>(request.prompts[0]), "Once");
  EXPECT_EQ(request.n, 1);
  EXPECT_EQ(request.choices(), 1U);
  EXPECT_EQ(request.max_tokens, 16);
  EXPECT_EQ(request.logprobs, -1);
  EXPECT_FALSE(request.stream);
  EXPECT_FALSE(request.include_usage);
  EXPECT_FALSE(request.seed.has_value());
  EXPECT_TRUE(request.settings.empty());
  EXPECT_TRUE(request.stop.empty());
}

TEST(Request, CompletionTakesEveryField) {
  const Request request = completion(
      R"({"model":"story","prompt":["a","b\u0000c"],"n":3,"max_tokens":7,"temperature":0.25,)"
      R"("top_p":1,"top_k":40,"min_p":0.05,"seed":-1,"stop":["x","yz"],"logprobs":2,"stream":true,)"
      R"("stream_options":{"include_usage":true},"presence_penalty":0,"frequency_penalty":0.5,)"
      R"("ignore_eos":true,"repetition_penalty":1.1,"logit_bias":{"5":-100,"7":1.5},"user":"me",)"
      R"("echo":false,"suffix":null,"best_of":3})");
  ASSERT_EQ(request.prompts.size(), 2U);
  EXPECT_EQ(std::get<std::string>(request.prompts[1]), std::string("b\0c", 3));
  EXPECT_EQ(request.choices(), 6U);
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_EQ(setting(request, "temperature"), "0.25");
  EXPECT_EQ(setting(request, "top_p"), "1");
  EXPECT_EQ(setting(request, "top_k"), "40");
  EXPECT_EQ(setting(request, "min_p"), "0.05");
  EXPECT_EQ(setting(request, "ignore_eos"), "1");
  EXPECT_EQ(setting(request, "repetition_penalty"), "1.1");
  EXPECT_EQ(setting(request, "frequency_penalty"), "0.5");
  EXPECT_EQ(setting(request, "presence_penalty"), "none");  // 0 changes nothing
  EXPECT_EQ(request.settings.size(), 7U);
  EXPECT_EQ(request.seed, UINT64_MAX);
  EXPECT_EQ(request.stop, (std::vector<std::string>{"x", "yz"}));
  EXPECT_EQ(request.logprobs, 2);
  EXPECT_TRUE(request.stream && request.include_usage);
  const std::vector<std::pair<int32_t, float>> bias = {{5, -100.0F}, {7, 1.5F}};
  EXPECT_EQ(request.logit_bias, bias);
}

TEST(Request, LanguagesAreTextsOfALimitedSize) {
  const auto language = [](const Request& request) {
    return request.language ? request.language->field + " " + request.language->text : "none";
  };
  EXPECT_EQ(language(completion(prompt_with(""))), "none");
  EXPECT_EQ(language(completion(prompt_with(R"(,"grammar":"root ::= \"a\\n\"")"))),
            "grammar root ::= \"a\\n\"");
  EXPECT_EQ(language(chat(chat_with(R"(,"regex":"[0-9]+")"))), "regex [0-9]+");
  // What changes nothing: null, and a grammar without a rule. A pattern that is empty is one.
  EXPECT_EQ(language(completion(prompt_with(R"(,"grammar":"","regex":null)"))), "none");
  EXPECT_EQ(language(completion(prompt_with(R"(,"grammar":null,"regex":"")"))), "regex ");
  EXPECT_EQ(language(completion(prompt_with(R"(,"grammar":"","regex":"a")"))), "regex a");
  EXPECT_EQ(language(completion(prompt_with(R"(,"tags":{"tags":[]})"))), R"(tags {"tags":[]})");
  EXPECT_EQ(language(chat(chat_with(R"(,"response_format":{"type":"text"})"))), "none");
  EXPECT_EQ(language(chat(chat_with(R"(,"response_format":{"type":"json_object"})"))),
            R"(response_format {"type": "object"})");
  EXPECT_EQ(language(completion(
                prompt_with(R"(,"response_format":{"type":"json_schema","json_schema":)"
                            R"({"name":"a","strict":true,"schema":{"type":"integer"}}})"))),
            R"(response_format {"type":"integer"})");
  for (const auto& [format, param] :
       {std::pair(R"("json_object")", "response_format"),
        {"{}", "response_format.type"},
        {R"({"type":"xml"})", "response_format.type"},
        {R"({"type":"text","x":1})", "response_format.x"},
        {R"({"type":"json_schema"})", "response_format.json_schema"},
        {R"({"type":"json_schema","json_schema":{}})", "response_format.json_schema.schema"},
        {R"({"type":"json_schema","json_schema":{"schema":{},"x":1}})",
         "response_format.json_schema.x"},
        {R"({"type":"json_schema","json_schema":{"schema":{},"name":1}})",
         "response_format.json_schema.name"},
        {R"({"type":"json_schema","json_schema":{"schema":{},"strict":"yes"}})",
         "response_format.json_schema.strict"},
        {R"({"type":"json_object"},"regex":"a")", "response_format"}}) {
    expect_refused(chat, chat_with(std::string(R"(,"response_format":)") + format), 400, param);
  }
  expect_refused(chat, chat_with(R"(,"tags":{},"grammar":"root ::= \"a\"")"), 400, "tags");
  for (const char* name : {"grammar", "lark", "regex"}) {
    const std::string field = std::string(",\"") + name + "\":";
    for (const char* wrong : {"5", "[]", "{}", "true", "[\"a\"]"}) {
      expect_refused(completion, prompt_with(field + wrong), 400, name);
      expect_refused(chat, chat_with(field + wrong), 400, name);
    }
    const std::string most = "\"" + std::string(64 << 10, 'a');
    EXPECT_EQ(completion(prompt_with(field + most + "\"")).language->text.size(), 64U << 10U);
    expect_refused(completion, prompt_with(field + most + "a\""), 400, name);
  }
  expect_refused(chat, chat_with(R"(,"grammar":"root ::= \"a\"","regex":"a")"), 400, "regex");
}

TEST(Request, SchemasAndTagsAreTextsAsWritten) {
  const auto text = [](const Request& request) { return request.language->text; };
  const auto with_schema = [](const std::string& schema) {
    return prompt_with(R"(,"response_format":{"type":"json_schema","json_schema":{"schema":)" +
                       schema + "}}");
  };
  // Digits, order, names that stand twice, and what is no JSON at all: for the library to judge.
  for (const char* schema :
       {R"({ "minimum" : 12345678901234567891, "b":[{"]":"\\\""}],"a":1.00000000000000000001})",
        R"({"maximum":1e400,"multipleOf":1.0})", R"({"type":"object","type":"array"})", "true",
        "[1e400]", R"({"a" "}{\\"})"}) {
    EXPECT_EQ(text(completion(with_schema(schema))), schema);
    EXPECT_EQ(text(chat(chat_with(R"(,"tags":)" + std::string(schema)))), schema);
  }
  // The last of equal names counts, and escapes in names do.
  EXPECT_EQ(text(completion(prompt_with(
                R"(,"response_format":{"json_schema":{"schema":{"a":1}}},"respons\u0065_format":)"
                R"({"json_schema":0,"type":"json_schema","json_schema":{"schema":{"schema":2},)"
                R"("schema" : {"schema":3} ,"name":"{"}})"))),
            R"({"schema":3})");
  EXPECT_FALSE(completion(prompt_with(R"(,"tags":{"a":1e4},"tags":null)")).language.has_value());
  // The rest is JSON, or the request is none; messages tell where.
  for (const char* wrong :
       {R"({"a":1}])", R"({"a":1)", R"({"a":"})", "{}}", R"({"a":x},"tags":null)", "1e400", "x"}) {
    expect_refused(completion, prompt_with(R"(,"tags":)" + std::string(wrong)), 400, "");
  }
  expect_refused(chat,
                 chat_with(R"(,"response_format":{"json_schema":{}},"response_format":)"
                           R"({"type":"json_schema","json_schema":{"name":"a"}})"),
                 400, "response_format.json_schema.schema");
}

TEST(Request, ATextIsTakenOutAsWritten) {
  std::string taken = "before";
  std::string room;
  const auto left = [&](const char* text) {
    return std::string(take_as_written(text, {"a", "b"}, &taken, &room));
  };
  EXPECT_EQ(left(R"({"a":{"b":{"c":1e400}, "d":2}})"), R"({"a":{"b":{         }, "d":2}})");
  EXPECT_EQ(taken, R"({"c":1e400})");
  EXPECT_EQ(left(R"({"a":{"b":[1,[2]]}})"), R"({"a":{"b":[     ]}})");
  EXPECT_EQ(taken, "[1,[2]]");
  // Numbers stay; of fields of one name the last counts, whatever it lacks.
  for (const char* text : {R"({"a":{"b":1.50}})", R"({"a":{"b":{}},"a":{"b":1.50}})"}) {
    EXPECT_EQ(left(text), text);
    EXPECT_EQ(taken, "1.50");
  }
  for (const char* text : {R"({"a":{"b":[1]},"a":{"c":[1]}})", R"({"a":{"b":[1]},"a":3})", "[]", "",
                           "{", R"({"a)", R"({"a":)", R"({"a":{"b")", R"({"b":{"a":[1]}})"}) {
    EXPECT_EQ(left(text), text);
    EXPECT_EQ(taken, "") << text;
  }
}

TEST(Request, PromptsMayBeTokens) {
  const Request one = completion(R"({"prompt":[1,2,2147483647]})");
  ASSERT_EQ(one.prompts.size(), 1U);
  EXPECT_EQ(std::get<1>(one.prompts[0]), (std::vector<int32_t>{1, 2, 2147483647}));
  const Request two = completion(R"({"prompt":[[1],[2,3],"text"]})");
  ASSERT_EQ(two.prompts.size(), 3U);
  EXPECT_EQ(std::get<1>(two.prompts[1]), (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(std::get<0>(two.prompts[2]), "text");
  for (const char* body : {R"({"prompt":[1,-2]})", R"({"prompt":[1,2147483648]})",
                           R"({"prompt":[1,2.5]})", R"({"prompt":[1,"a"]})"}) {
    expect_refused(completion, body, 400, "prompt[1]");
  }
  expect_refused(completion, R"({"prompt":["a",[1,null]]})", 400, "prompt[1][1]");
  expect_refused(completion, R"({"prompt":["a",{}]})", 400, "prompt[1]");
}

TEST(Request, ChatsHaveMessages) {
  const Request request = chat(
      R"({"messages":[{"role":"developer","content":"Be kind."},{"role":"user","content":)"
      R"([{"type":"text","text":"He"},{"type":"text","text":"llo"}],"name":"Ann"},)"
      R"({"role":"assistant","content":null,"reasoning_content":"Hm","tool_calls":[{"id":"x",)"
      R"("type":"function","function":{"name":"add","arguments":"{\"a\":1}"}},)"
      R"({"function":{"name":"now","arguments":""}}]},)"
      R"({"role":"tool","content":"4","tool_call_id":"x"}],"reasoning_effort":"high",)"
      R"("chat_template_kwargs":{"enable_thinking":false},"logprobs":true,"top_logprobs":3,"max_completion_tokens":9,)"
      R"("max_tokens":5,"response_format":{"type":"text"},"tools":[],"tool_choice":"none"})");
  EXPECT_TRUE(request.chat);
  ASSERT_EQ(request.messages.size(), 4U);
  EXPECT_EQ(request.messages[0].role, "system");
  EXPECT_EQ(request.messages[1].content, "Hello");
  EXPECT_EQ(request.messages[1].name, "Ann");
  EXPECT_EQ(request.messages[2].content, "");
  EXPECT_EQ(request.messages[2].reasoning, "Hm");
  ASSERT_EQ(request.messages[2].tool_calls.size(), 2U);
  EXPECT_EQ(request.messages[2].tool_calls[1].arguments, "{}");
  EXPECT_EQ(request.messages[2].tool_calls[0].id, "x");
  EXPECT_EQ(request.messages[2].tool_calls[0].name, "add");
  EXPECT_EQ(request.messages[2].tool_calls[0].arguments, "{\"a\":1}");
  EXPECT_EQ(request.messages[3].tool_call_id, "x");
  ASSERT_EQ(request.variables.size(), 2U);
  EXPECT_EQ(request.variables[0].key, "enable_thinking");
  EXPECT_EQ(request.variables[0].value, "false");
  EXPECT_EQ(request.variables[1].value, "\"high\"");
  EXPECT_EQ(request.messages[3].role, "tool");
  EXPECT_EQ(request.logprobs, 3);
  EXPECT_EQ(request.max_tokens, 9);
  EXPECT_EQ(request.choices(), 1U);
  // An answer goes on for as long as the server allows.
  EXPECT_EQ(chat(chat_with("")).max_tokens, 100);
  EXPECT_EQ(chat(chat_with(R"(,"logprobs":true)")).logprobs, 0);
  EXPECT_EQ(chat(chat_with(R"(,"logprobs":false,"top_logprobs":0)")).logprobs, -1);
}

TEST(Request, MessagesAreChecked) {
  const auto with = [](const std::string& message) {
    return R"({"messages":[{"role":"user","content":"Hi"},)" + message + "]}";
  };
  expect_refused(chat, "{}", 400, "messages");
  expect_refused(chat, R"({"messages":[]})", 400, "messages");
  expect_refused(chat, R"({"messages":"Hi"})", 400, "messages");
  expect_refused(chat, with("5"), 400, "messages[1]");
  expect_refused(chat, with("{}"), 400, "messages[1].role");
  expect_refused(chat, with(R"({"role":"king","content":"a"})"), 400, "messages[1].role");
  expect_refused(chat, with(R"({"role":7,"content":"a"})"), 400, "messages[1].role");
  expect_refused(chat, with(R"({"role":"user"})"), 400, "messages[1].content");
  expect_refused(chat, with(R"({"role":"user","content":5})"), 400, "messages[1].content");
  expect_refused(chat, with(R"({"role":"user","content":["a"]})"), 400, "messages[1].content[0]");
  expect_refused(chat, with(R"({"role":"user","content":[{"type":"image_url"}]})"), 400,
                 "messages[1].content[0].type");
  expect_refused(chat, with(R"({"role":"user","content":"a","mood":"good"})"), 400,
                 "messages[1].mood");
  expect_refused(chat, with(R"({"role":"assistant","tool_calls":[{"id":"x"}]})"), 400,
                 "messages[1].tool_calls[0].function");
  expect_refused(chat, with(R"({"role":"assistant","tool_calls":[{"function":{}}]})"), 400,
                 "messages[1].tool_calls[0].function.name");
  expect_refused(chat, with(R"({"role":"assistant","tool_calls":{"a":1}})"), 400,
                 "messages[1].tool_calls");
  for (const char* arguments : {R"("x")", R"("[]")", R"(" ")", R"("{")", "{}"}) {
    expect_refused(chat,
                   with(R"({"role":"assistant","tool_calls":[{"function":{"name":"f"}},)"
                        R"({"function":{"name":"f","arguments":)" +
                        std::string(arguments) + "}}]}"),
                   400, "messages[1].tool_calls[1].function.arguments");
  }
  expect_refused(chat, with(R"({"role":"user","content":"a","tool_calls":[{"id":"x"}]})"), 400,
                 "messages[1].tool_calls");
  expect_refused(chat, chat_with(R"(,"chat_template_kwargs":[1])"), 400, "chat_template_kwargs");
}

// The library would take what is before it.
TEST(Request, ANulIsRefusedWhereATextEndsWithIt) {
  const auto with = [](const std::string& message) {
    return R"({"messages":[{"role":"user","content":"Hi"},)" + message + "]}";
  };
  const auto with_call = [&](const std::string& call) {
    return with(R"({"role":"assistant","tool_calls":[)" + call + "]}");
  };
  expect_refused(chat, with(R"({"role":"user","content":"a","name":"bob\u0000x"})"), 400,
                 "messages[1].name");
  expect_refused(chat, with(R"({"role":"tool","content":"a","tool_call_id":"\u0000"})"), 400,
                 "messages[1].tool_call_id");
  expect_refused(chat, with_call(R"({"id":"x\u0000","function":{"name":"f"}})"), 400,
                 "messages[1].tool_calls[0].id");
  expect_refused(chat, with_call(R"({"id":"x","function":{"name":"f\u0000g"}})"), 400,
                 "messages[1].tool_calls[0].function.name");
  expect_refused(chat, chat_with(R"(,"chat_template_kwargs":{"a\u0000b":1})"), 400,
                 "chat_template_kwargs");
  expect_refused(chat, chat_with(R"(,"tags":{},"json_style":"any\u0000")"), 400, "json_style");
  // Other texts may have any.
  const Request request =
      chat(R"({"messages":[{"role":"user","content":"a\u0000b"}],"reasoning_effort":"\u0000"})");
  EXPECT_EQ(request.messages[0].content, std::string("a\0b", 3));
}

/// A request's adapters to a server that has several.
std::string adapters_of(const std::string& fields) {
  Dialect with = dialect();
  with.adapters = {"a", "b", "c", "d", "e"};
  const Request request = parse_completion(prompt_with("," + fields), with);
  std::string out = request.model + ":";
  for (const AdapterUse& use : request.adapters) {
    out += " " + use.name + "*" + std::to_string(use.scale).substr(0, 4);
  }
  return out;
}

TEST(Request, AdaptersByModelAndByList) {
  EXPECT_EQ(adapters_of(R"("n":1)"), "story:");
  EXPECT_EQ(adapters_of(R"("model":"story")"), "story:");
  EXPECT_EQ(adapters_of(R"("model":"b")"), "b: b*1.00");
  EXPECT_EQ(adapters_of(R"("model":"b","lora":null)"), "b: b*1.00");
  EXPECT_EQ(adapters_of(R"("model":"b","lora":[])"), "b:");
  EXPECT_EQ(adapters_of(R"("model":"b","lora":[{"id":0,"scale":0.25}])"), "b: a*0.25");
  EXPECT_EQ(adapters_of(R"("lora":[{"name":"e","id":null},{"id":2,"scale":2,"name":null}])"),
            "story: e*1.00 c*2.00");
  // Those without effect do not count.
  EXPECT_EQ(adapters_of(R"("lora":[{"id":0},{"id":1},{"id":2,"scale":-0.0},{"id":3},{"id":4}])"),
            "story: a*1.00 b*1.00 d*1.00 e*1.00");
  EXPECT_EQ(adapters_of(R"("lora":[{"id":0,"scale":1e-300}])"), "story:");
}

TEST(Request, WrongAdaptersNameTheirField) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("lora":{})", "lora"},
      {R"("lora":"a")", "lora"},
      {R"("lora":["a"])", "lora[0]"},
      {R"("lora":[{}])", "lora[0]"},
      {R"("lora":[{"scale":1}])", "lora[0]"},
      {R"("lora":[{"id":0,"name":"a"}])", "lora[0]"},
      {R"("lora":[{"id":0},{"id":5}])", "lora[1].id"},
      {R"("lora":[{"id":-1}])", "lora[0].id"},
      {R"("lora":[{"id":18446744073709551615}])", "lora[0].id"},
      {R"("lora":[{"id":0.0}])", "lora[0].id"},
      {R"("lora":[{"id":"a"}])", "lora[0].id"},
      {R"("lora":[{"name":0}])", "lora[0].name"},
      {R"("lora":[{"name":""}])", "lora[0].name"},
      {R"("lora":[{"name":"story"}])", "lora[0].name"},
      {R"("lora":[{"name":"a\u0000"}])", "lora[0].name"},
      {R"("lora":[{"id":0,"scale":"1"}])", "lora[0].scale"},
      {R"("lora":[{"id":0,"scale":-1e39}])", "lora[0].scale"},
      {R"("lora":[{"id":0,"path":"a.gguf"}])", "lora[0].path"},
      {R"("lora":[{"id":1},{"id":0},{"name":"b","scale":0}])", "lora[2]"},
      {R"("lora":[{"id":0},{"id":1},{"id":2},{"id":3},{"id":4}])", "lora"}};
  for (const auto& [fields, param] : cases) {
    expect_refused(adapters_of, fields, 400, param);
    expect_refused(completion, prompt_with(std::string(",") + fields), 400, "lora");
  }
  expect_refused(adapters_of, R"("model":"f")", 404, "model");
  expect_refused(adapters_of, R"("model":"f","lora":[])", 404, "model");
}

TEST(Request, WrongTypesAndNumbersNameTheirField) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("model":5)", "model"},
      {R"("n":0)", "n"},
      {R"("n":9)", "n"},
      {R"("n":"2")", "n"},
      {R"("n":1.5)", "n"},
      {R"("n":18446744073709551615)", "n"},
      {R"("n":-9223372036854775808)", "n"},
      {R"("n":99999999999999999999999)", "n"},
      {R"("n":true)", "n"},
      {R"("max_tokens":0)", "max_tokens"},
      {R"("max_tokens":101)", "max_tokens"},
      {R"("max_tokens":[])", "max_tokens"},
      {R"("temperature":"hot")", "temperature"},
      {R"("top_p":{})", "top_p"},
      {R"("top_k":[1])", "top_k"},
      {R"("seed":1.5)", "seed"},
      {R"("seed":"1")", "seed"},
      {R"("stop":5)", "stop"},
      {R"("stop":["a",5])", "stop[1]"},
      {R"("stream":1)", "stream"},
      {R"("stream":true,"stream_options":5)", "stream_options"},
      {R"("stream":true,"stream_options":{"include_usage":1})", "stream_options.include_usage"},
      {R"("stream":true,"stream_options":{"x":1})", "stream_options.x"},
      {R"("stream_options":{"include_usage":true})", "stream_options"},
      {R"("logit_bias":[])", "logit_bias"},
      {R"("logit_bias":{"a":1})", "logit_bias"},
      {R"("logit_bias":{"-1":1})", "logit_bias"},
      {R"("logit_bias":{"1":101})", "logit_bias.1"},
      {R"("frequency_penalty":[])", "frequency_penalty"},
      {R"("nonsense":1)", "nonsense"},
  };
  for (const auto& [fields, param] : cases) {
    expect_refused(completion, prompt_with(std::string(",") + fields), 400, param);
    expect_refused(chat, chat_with(std::string(",") + fields), 400, param);
  }
  expect_refused(completion, prompt_with(R"(,"model":"other")"), 404, "model");
  expect_refused(completion, prompt_with(R"(,"logprobs":21)"), 400, "logprobs");
  expect_refused(completion, prompt_with(R"(,"best_of":2)"), 400, "best_of");
  expect_refused(completion, prompt_with(R"(,"echo":true)"), 400, "echo");
  expect_refused(completion, prompt_with(R"(,"messages":[])"), 400, "messages");
  expect_refused(completion, "{}", 400, "prompt");
  expect_refused(completion, R"({"prompt":[]})", 400, "prompt");
  expect_refused(completion, R"({"prompt":5})", 400, "prompt");
  expect_refused(chat, chat_with(R"(,"logprobs":3)"), 400, "logprobs");
  expect_refused(chat, chat_with(R"(,"top_logprobs":3)"), 400, "top_logprobs");
  expect_refused(chat, chat_with(R"(,"tools":[{"type":"function"}])"), 400, "tools");
}

/// Everything that a request says.
std::string all_of(const Request& request) {
  std::string out = request.chat ? "chat" : "completion";
  const auto add = [&](const std::string& text) { out += "|" + text; };
  for (const Prompt& prompt : request.prompts) add(std::get<std::string>(prompt));
  for (const Message& message : request.messages) {
    add(message.role + ":" + message.content + ":" + message.name + ":" + message.reasoning + ":" +
        message.tool_call_id);
    for (const ToolCall& call : message.tool_calls) {
      add(call.id + ":" + call.name + ":" + call.arguments);
    }
  }
  for (const auto* list : {&request.variables, &request.settings}) {
    for (const Setting& one : *list) add(one.key + "=" + one.value);
  }
  for (const std::string& text : request.stop) add(text);
  for (const auto& [token, bias] : request.logit_bias) add("bias of " + std::to_string(token));
  if (request.language) add(request.language->field);
  add(std::to_string(request.n) + " " + std::to_string(request.max_tokens) + " " +
      std::to_string(request.logprobs) + (request.seed ? "seed" : "") +
      (request.stream ? "stream" : "") + (request.include_usage ? "usage" : ""));
  return out;
}

// Clients with types send what their user has not set: as null or as its default.
TEST(Request, WhatChangesNothingIsTaken) {
  const std::pair<const char*, std::vector<const char*>> of_both[] = {
      {"frequency_penalty", {"0", "0.0"}},
      {"logit_bias", {"{}"}},
      {"max_tokens", {}},
      {"model", {R"("story")"}},
      {"lora", {"[]"}},
      {"n", {"1"}},
      {"presence_penalty", {"0"}},
      {"seed", {}},
      {"stop", {"[]"}},
      {"stream", {"false"}},
      {"stream_options", {"{}", R"({"include_usage":false})", R"({"include_usage":null})"}},
      {"temperature", {}},
      {"top_p", {}},
      {"user", {R"("")"}},
      {"response_format",
       {R"({"type":"text"})", R"({"type":"text","json_schema":null,"other":null})"}},
      {"a_field_of_tomorrow", {}}};
  const std::pair<const char*, std::vector<const char*>> of_chats[] = {
      {"audio", {}},
      {"function_call", {R"("none")", R"("auto")"}},
      {"functions", {"[]"}},
      {"logprobs", {"false"}},
      {"max_completion_tokens", {}},
      {"metadata", {"{}"}},
      {"modalities", {R"(["text"])", "[]"}},
      {"moderation", {}},
      {"parallel_tool_calls", {"true", "false"}},
      {"prediction", {}},
      {"prompt_cache_key", {R"("a")"}},
      {"prompt_cache_options", {"{}", R"({"mode":"implicit","ttl":"30m"})"}},
      {"prompt_cache_retention", {R"("in_memory")", R"("24h")"}},
      {"reasoning_effort", {}},
      {"safety_identifier", {R"("a")"}},
      {"service_tier", {R"("auto")", R"("default")"}},
      {"store", {"false", "true"}},
      {"tool_choice", {R"("none")", R"("auto")", R"("auto","tools":[])", R"("none","tools":[])"}},
      {"tools", {"[]"}},
      {"top_logprobs", {"0"}},
      {"verbosity", {R"("medium")"}},
      {"web_search_options", {}}};
  const std::pair<const char*, std::vector<const char*>> of_completions[] = {
      {"best_of", {"1"}}, {"echo", {"false"}}, {"logprobs", {}}, {"suffix", {R"("")"}}};
  const auto expect_taken = [](auto parse, auto with, const auto& cases) {
    const std::string plain = all_of(parse(with("")));
    for (const auto& [name, harmless] : cases) {
      std::vector<const char*> values = harmless;
      values.push_back("null");
      for (const char* value : values) {
        const std::string field = std::string(",\"") + name + "\":" + value;
        try {
          EXPECT_EQ(all_of(parse(with(field))), plain) << field;
        } catch (const ApiError& error) {
          ADD_FAILURE() << field << ": " << error.what();
        }
      }
    }
  };
  expect_taken(chat, chat_with, of_both);
  expect_taken(completion, prompt_with, of_both);
  expect_taken(chat, chat_with, of_chats);
  expect_taken(completion, prompt_with, of_completions);
  EXPECT_EQ(all_of(completion(R"({"prompt":null})")), all_of(completion(R"({"prompt":""})")));
  // The same fields with other values are not.
  for (const char* field :
       {R"("modalities":["text","audio"])", R"("modalities":["audio"])", R"("modalities":"text")",
        R"("tool_choice":"required")", R"("tool_choice":{"type":"function"})",
        R"("function_call":"f")", R"("verbosity":"low")", R"("moderation":{"model":"m"})",
        R"("audio":{"voice":"a"})", R"("functions":[{}])"}) {
    const std::string text = field;
    expect_refused(chat, chat_with("," + text), 400, text.substr(1, text.find('"', 1) - 1));
  }
}

TEST(Request, WhatChangesNothingInAMessageIsTaken) {
  const auto with = [](const std::string& message) {
    return chat(R"({"messages":[)" + message + "]}");
  };
  for (const char* role : {"system", "developer", "user", "assistant", "tool"}) {
    const std::string begin = std::string(R"({"role":")") + role + R"(","content":"a")";
    const std::string plain = all_of(with(begin + "}"));
    for (const char* field :
         {R"("audio":null)", R"("function_call":null)", R"("name":null)", R"("refusal":null)",
          R"("refusal":"")", R"("tool_calls":null)", R"("tool_calls":[])", R"("annotations":null)",
          R"("annotations":[])", R"("reasoning":null)", R"("reasoning_content":null)",
          R"("reasoning_details":null)", R"("tool_call_id":null)", R"("a_field_of_tomorrow":null)",
          R"("content":[{"type":"text","text":"a"}])",
          R"("content":[{"type":"text","text":"a","image_url":null,"refusal":null,
                         "prompt_cache_breakpoint":null}])"}) {
      try {
        EXPECT_EQ(all_of(with(begin + "," + field + "}")), plain) << field;
      } catch (const ApiError& error) {
        ADD_FAILURE() << role << " " << field << ": " << error.what();
      }
    }
  }
  const std::string call = R"({"role":"assistant","content":null,"tool_calls":[{"id":"x",)";
  EXPECT_EQ(all_of(with(call + R"("type":null,"index":null,"custom":null,)"
                               R"("function":{"name":"f","arguments":null,"strict":null}}]})")),
            all_of(with(call + R"("type":"function","function":{"name":"f"}}]})")));
}

TEST(Request, APartIsBlamedAtItsOwnPlace) {
  const auto with = [](const std::string& part) {
    return R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"},)" + part + "]}]}";
  };
  const std::string path = "messages[0].content[1]";
  expect_refused(chat, with(R"({"type":"text","text":null})"), 400, path + ".text");
  expect_refused(chat, with(R"({"type":"text"})"), 400, path + ".text");
  expect_refused(chat, with(R"({"type":"text","text":5})"), 400, path + ".text");
  expect_refused(chat, with(R"({"type":null,"text":"a"})"), 400, path + ".type");
  expect_refused(chat, with(R"({"type":"image_url","text":"a"})"), 400, path + ".type");
  expect_refused(chat, with("null"), 400, path);
}

TEST(Request, ASuffixMakesGaps) {
  const Request request = completion(R"({"prompt":["a","b"],"suffix":"z"})");
  ASSERT_EQ(request.prompts.size(), 2U);
  const auto& gap = std::get<Gap>(request.prompts[1]);
  EXPECT_EQ(gap.prefix + "|" + gap.suffix, "b|z");
  EXPECT_TRUE(std::holds_alternative<std::string>(
      completion(prompt_with(R"(,"suffix":"")")).prompts.front()));
  expect_refused(completion, R"({"prompt":[1,2],"suffix":"z"})", 400, "suffix");
  expect_refused(completion, R"({"prompt":"a","suffix":5})", 400, "suffix");
  expect_refused(chat, chat_with(R"(,"suffix":"z")"), 400, "suffix");
}

TEST(Request, CountsAreLimited) {
  std::string prompts = R"({"prompt":["a")";
  std::string messages = R"({"messages":[{"role":"user","content":"a"})";
  std::string stops = R"(,"stop":["a")";
  for (int i = 1; i < 16; ++i) prompts += R"(,"a")";
  for (int i = 1; i < 16; ++i) stops += R"(,"a")";
  for (int i = 1; i < 1024; ++i) messages += R"(,{"role":"user","content":"a"})";
  EXPECT_EQ(completion(prompts + "]}").prompts.size(), 16U);
  EXPECT_EQ(completion(prompt_with(stops + "]")).stop.size(), 16U);
  EXPECT_EQ(chat(messages + "]}").messages.size(), 1024U);
  expect_refused(completion, prompts + R"(,"a"]})", 400, "prompt");
  expect_refused(completion, prompt_with(stops + R"(,"a"])"), 400, "stop");
  expect_refused(chat, messages + R"(,{"role":"user","content":"a"}]})", 400, "messages");
}

TEST(Request, TextThatIsNotJsonIsRefused) {
  const std::string deep(100000, '[');
  const std::string cases[] = {"",
                               "{",
                               "null",
                               "[]",
                               "\"text\"",
                               "{\"prompt\":\"a\"} x",
                               "{\"prompt\":\"\xFF\"}",
                               "{\"prompt\":\"\xED\xA0\x80\"}",
                               "{\"prompt\":\"\xF4\x90\x80\x80\"}",
                               R"({"prompt":"\ud800"})",
                               "{\"prompt\":\"a\nb\"}",
                               "{\"prompt\":1e999}",
                               "{\"prompt\":NaN}",
                               "{'prompt':'a'}",
                               std::string("\0", 1),
                               deep,
                               R"({"prompt":)" + deep,
                               R"({"user":)" + deep + std::string(100000, ']') + "}"};
  for (const std::string& text : cases) {
    expect_refused(completion, text, 400, "");
    expect_refused(chat, text, 400, "");
  }
}

TEST(Request, NestingIsCountedToTheLimit) {
  const auto nested = [](size_t depth) {
    return R"({"prompt":"a","metadata":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_EQ(completion(nested(63)).prompts.size(), 1U);
  expect_refused(completion, nested(65), 400, "");
}

// Every object, array and field of a text takes memory many times its size, and a parser that looks
// back at them takes time by their square.
TEST(Request, ObjectsArraysAndFieldsAreCountedToTheLimit) {
  const auto with = [](size_t lists) {
    std::string body = R"({"prompt":"a","metadata":[[])";
    for (size_t i = 1; i < lists; ++i) body += ",[]";
    return body + "]}";
  };
  // The object, its two fields and the list of lists are four.
  EXPECT_EQ(completion(with(65536 - 4)).prompts.size(), 1U);
  expect_refused(completion, with(65536 - 3), 400, "");
  std::string body = R"({"messages":[{})";
  while (body.size() < (4U << 20U)) body += ",{}";
  expect_refused(chat, body + "]}", 400, "");
  expect_refused(chat, body, 400, "");
}

TEST(Request, OtherValuesHaveALimitOfTheirOwn) {
  Dialect few = dialect();
  few.max_values = 4;
  const auto parse = [&](const std::string& body) { return parse_completion(body, few); };
  for (const char* value : {"1", "-1", "0.5", "true", "null", R"("a")"}) {
    const std::string with = R"({"prompt":"a","metadata":[1,2,)" + std::string(value);
    EXPECT_EQ(parse(with + "]}").prompts.size(), 1U);
    expect_refused(parse, with + ",3]}", 400, "");
  }
}

TEST(Request, PromptsMayHaveManyTokens) {
  std::string body = R"({"prompt":[1)";
  while (body.size() < (1U << 20U)) body += ",1";
  const Request request = completion(body + "]}");
  EXPECT_EQ(std::get<std::vector<int32_t>>(request.prompts[0]).size(), (body.size() - 10) / 2);
}

TEST(Request, NamesOfUnknownFieldsAreCutShort) {
  try {
    completion(prompt_with(",\"" + std::string(5000, 'x') + "\":1"));
    FAIL();
  } catch (const ApiError& error) {
    EXPECT_EQ(error.param, std::string(64, 'x') + "...");
  }
}

TEST(Request, OptionsOfJsonGoToTheLibrary) {
  const auto parse = [](const std::string& fields) {
    return parse_chat(R"({"messages": [{"role": "user", "content": "x"}], )" + fields + "}",
                      dialect());
  };
  const Request request =
      parse(R"("response_format": {"type": "json_object"}, "json_order": "any", "json_space": 4,
               "json_style": "plain", "json_digits": null)");
  ASSERT_TRUE(request.language.has_value());
  const std::vector<Setting>& options = request.language->options;
  ASSERT_EQ(options.size(), 3U);
  EXPECT_EQ(options[0].key + "=" + options[0].value, "json_style=plain");
  EXPECT_EQ(options[1].key + "=" + options[1].value, "json_order=any");
  EXPECT_EQ(options[2].key + "=" + options[2].value, "json_space=4");
  for (const char* wrong : {R"("json_style": "any")", R"("regex": "\\d+", "json_style": "any")",
                            R"("grammar": "root ::= \"a\"", "json_digits": 3)",
                            R"("response_format": {"type": "json_object"}, "json_order": true)",
                            R"("response_format": {"type": "json_object"}, "json_space": 1.5)",
                            R"("response_format": {"type": "json_object"}, "json_spaces": 1)"}) {
    EXPECT_THROW(parse(wrong), ApiError) << wrong;
  }
}

}  // namespace
}  // namespace server
