// SPDX-License-Identifier: Apache-2.0
// The grammar of answers with calls: which answers it has, in the formats of several families.
#include "calls/call_grammar.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "calls/call_grammar_reader.h"
#include "calls/format_table.h"

namespace gen::calls {
namespace {

using test::CallReader;
using test::tool;

const char* const kWeather =
    R"({"type":"object","properties":{"city":{"type":"string","maxLength":10},)"
    R"("days":{"type":"integer","minimum":1,"maximum":16}},"required":["city"]})";
const char* const kTime = R"({"type":"object","properties":{}})";

std::vector<Tool> two_tools() { return {tool("weather", kWeather), tool("time", kTime)}; }

struct Case {
  std::vector<const char*> yes;
  std::vector<const char*> no;
};

void check(CallReader& reads, const Case& all) {
  for (const char* text : all.yes) EXPECT_TRUE(reads(text)) << reads.stop(text);
  for (const char* text : all.no) EXPECT_FALSE(reads(text)) << text;
}

CallGrammarOptions choice(ToolChoice which) {
  CallGrammarOptions options;
  options.choice = which;
  return options;
}

TEST(CallGrammar, HasTextAndCallsOfHermes) {
  CallReader reads({});
  ASSERT_TRUE(reads.make(*format_named("hermes"), two_tools()).ok());
  check(reads,
        {{"", "Hello <tool and {\"name\": \"x\"}", "<think>\nWell.\n</think>\n\nHello",
          "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>",
          "Sure.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\", "
          "\"days\": 3}}\n</tool_call>\n<tool_call>\n{\"name\": \"time\", \"arguments\": "
          "{}}\n</tool_call>",
          "<think>\n</think>\n\n<tool_call>\n{\"name\": \"time\", \"arguments\": "
          "{}}\n</tool_call> and text"},
         {"<tool_call>", "a <tool_call> b",
          "<tool_call>\n{\"name\": \"other\", \"arguments\": {}}\n</tool_call>",
          "<tool_call>\n{\"name\": \"weather\", \"arguments\": {}}\n</tool_call>",
          "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": 3}}\n</tool_call>",
          "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"a\", \"b\": "
          "1}}\n</tool_call>",
          "<tool_call>\n{\"name\": \"time\", \"arguments\": {\"a\": 1}}\n</tool_call>",
          "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": "
          "\"12345678901\"}}\n</tool_call>",
          "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"a\", \"days\": "
          "17}}\n</tool_call>",
          "<think>\n", "<think>\n<tool_call>\n"}});
}

TEST(CallGrammar, KeepsToTheChoice) {
  CallReader reads({});
  const CallFormat format = *format_named("hermes");
  const char* const call = "<tool_call>\n{\"name\": \"time\", \"arguments\": {}}\n</tool_call>";
  const std::string two = std::string(call) + "\n" + call;
  ASSERT_TRUE(reads.make(format, two_tools(), choice(ToolChoice::kNone)).ok());
  check(reads, {{"", "a", "<think>a</think>b"}, {call, "<tool_call>"}});
  CallGrammarOptions options = choice(ToolChoice::kRequired);
  ASSERT_TRUE(reads.make(format, two_tools(), options).ok());
  const std::string thought = std::string("<think>\nI\n</think>\n\n") + call;
  check(reads, {{call, two.c_str(), thought.c_str()}, {"", "a", "<think>a</think>"}});
  options.parallel = false;
  ASSERT_TRUE(reads.make(format, two_tools(), options).ok());
  check(reads, {{call}, {two.c_str()}});
  options.named = "weather";
  ASSERT_TRUE(reads.make(format, two_tools(), options).ok());
  check(reads, {{"<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n"
                 "</tool_call>"},
                {call}});
  options = choice(ToolChoice::kAuto);
  options.parallel = false;
  ASSERT_TRUE(reads.make(format, two_tools(), options).ok());
  check(reads, {{call, "a"}, {two.c_str()}});
  options.may_reason = false;
  ASSERT_TRUE(reads.make(format, two_tools(), options).ok());
  check(reads, {{call, "a"}, {thought.c_str(), "<think>"}});
  options.may_reason = true;
  options.in_reasoning = true;
  ASSERT_TRUE(reads.make(format, two_tools(), options).ok());
  const std::string inside = std::string("I\n</think>\n\n") + call;
  check(reads, {{inside.c_str(), "</think>a"}, {call, "a"}});
}

TEST(CallGrammar, HasAnswersUnderASchema) {
  CallReader reads({});
  const CallFormat format = *format_named("hermes");
  CallGrammarOptions options;
  options.response = R"({"type":"array","items":{"type":"integer"},"uniqueItems":true})";
  ASSERT_TRUE(reads.make(format, two_tools(), options).ok());
  const char* const call = "<tool_call>\n{\"name\": \"time\", \"arguments\": {}}\n</tool_call>";
  check(reads, {{"[1, 2]", "[]", call, "<think>a</think>\n\n[1]", "<think>a</think>[1]"},
                {"", "a", "[1, 1]", "<think>a</think>[1, 1]", "[1]\n<tool_call>"}});
  options.choice = ToolChoice::kNone;
  ASSERT_TRUE(reads.make(format, {}, options).ok());
  check(reads, {{"[1, 2]"}, {"[1, 1]", call, "a"}});
}

TEST(CallGrammar, HasAnswersOfAFormatWithoutCalls) {
  CallReader reads({});
  CallFormat format = *format_named("hermes");
  format.section = {};
  format.call.clear();
  CallGrammarOptions options;
  options.choice = ToolChoice::kNone;
  ASSERT_TRUE(reads.make(format, {}, options).ok());
  check(reads, {{"", "a", "<think>a</think>b", "<tool_call>"}, {"<think>"}});
  options.response = R"({"type":"integer"})";
  ASSERT_TRUE(reads.make(format, {}, options).ok());
  check(reads, {{"1", "<think>a</think>\n\n1"}, {"", "a", "<think>a</think>"}});
}

TEST(CallGrammar, NamesWhatIsWrong) {
  CallReader reads({});
  const CallFormat format = *format_named("hermes");
  EXPECT_EQ(reads.make(format, {}, choice(ToolChoice::kRequired)).code(), Code::kInvalidArgument);
  CallGrammarOptions options = choice(ToolChoice::kRequired);
  options.named = "none";
  EXPECT_STREQ(reads.make(format, two_tools(), options).message(), "no tool has the name none");
  EXPECT_EQ(reads.make(format, {tool("a", "{}"), tool("a", "{}")}).code(), Code::kInvalidArgument);
  options = {};
  options.response = R"({"format":"idn-hostname"})";
  const Status response = reads.make(format, two_tools(), options);
  EXPECT_EQ(std::string(response.message()).find("response: /format"), 0U) << response.message();
  const Status refused =
      reads.make(format, {tool("a", R"({"properties":{"x":{"format":"idn-hostname"}}})")});
  EXPECT_EQ(refused.code(), Code::kGrammar);
  EXPECT_EQ(std::string(refused.message()).find("tool a: /properties/x/format"), 0U)
      << refused.message();
}

TEST(CallGrammar, HasRawStringsOfQwenCoder) {
  CallReader reads({});
  const char* const schema =
      R"({"type":"object","properties":{"text":{"type":"string","minLength":1},"n":{"type":"number"},)"
      R"("list":{"type":"array","items":{"enum":["a","b"]}},"any":{}},"required":["text"]})";
  ASSERT_TRUE(
      reads.make(*format_named("qwen3-coder"), {tool("f", schema)}, choice(ToolChoice::kRequired))
          .ok());
  const auto call = [](const std::string& arguments) {
    return "<tool_call>\n<function=f>\n" + arguments + "</function>\n</tool_call>";
  };
  const auto argument = [](const std::string& name, const std::string& value) {
    return "<parameter=" + name + ">\n" + value + "\n</parameter>\n";
  };
  const auto yes = [&](const std::string& text) { EXPECT_TRUE(reads(text)) << reads.stop(text); };
  const auto no = [&](const std::string& text) { EXPECT_FALSE(reads(text)) << text; };
  yes(call(argument("text", "a \"quoted\" <b>\n{text}")));
  yes(call(argument("text", "\n")));
  yes(call(argument("text", "42") + argument("n", "-1.5")));
  yes(call(argument("text", "a") + argument("list", "[\"a\", \"b\"]")));
  yes(call(argument("text", "a") + argument("any", "some text")));
  yes(call(argument("text", "a") + argument("any", "12")));
  yes(call(argument("text", "a") + argument("any", "{\"a\": [1, \"x\"]}")));
  yes(call(argument("text", "a") + argument("any", "")));
  no(call(argument("text", "a\r")));  // which would be read as the end of a line
  no(call(""));
  no(call(argument("text", "")));
  no(call(argument("text", "a</parameter>b")));
  no(call(argument("text", "a") + argument("n", "\"1\"")));
  no(call(argument("text", "a") + argument("n", "b")));
  no(call(argument("text", "a") + argument("list", "[\"c\"]")));
  no(call(argument("text", "a") + argument("any", "{\"a\": }")));
  no(call(argument("text", "a") + argument("other", "1")));
  no(call(argument("n", "1") + argument("text", "a")));  // as the schema lists them
}

TEST(CallGrammar, ForbidsCallsWithoutTheirSection) {
  CallReader reads({});
  ASSERT_TRUE(reads.make(*format_named("qwen3-coder"), two_tools()).ok());
  check(reads, {{"a <function b", "a\n\n<tool_call>\n<function=time>\n</function>\n</tool_call>"},
                {"<function=time>\n</function>", "<think><function=time></think>"}});
}

TEST(CallGrammar, HasBareObjects) {
  CallReader reads({});
  CallFormat format;
  format.name = "bare";
  format.call = {{Field::kObject}};
  format.keys.arguments = "parameters";
  format.parallel = false;
  ASSERT_TRUE(format.bare());
  ASSERT_TRUE(reads.make(format, two_tools()).ok());
  check(reads, {{"", "Hello {\"a\": 1}", "the \"parameters\" of it",
                 "{\"name\": \"weather\", \"parameters\": {\"city\": \"Oslo\"}}",
                 "a {\"name\": \"time\", \"parameters\": {}}"},
                {"{", "{\"a\": 1}", " {\"a\": 1}", "{\"name\": \"weather\", \"parameters\": {}}",
                 "a [{\"name\": \"time\", \"parameters\": {}}",
                 "a {\"name\": \"time\", \"paramet\\u0065rs\" : {}}",
                 "a {\"name\": \"time\", \"arguments\": {}}"}});
  ASSERT_TRUE(reads.make(*format_named("json"), two_tools(), choice(ToolChoice::kRequired)).ok());
  check(reads, {{"{\"name\": \"time\", \"arguments\": {}}",
                 "<think>a</think>{\"name\": \"time\", "
                 "\"arguments\": {}}"},
                {"a"}});
}

TEST(CallGrammar, WritesMarksAsControlTokens) {
  CallReader reads({"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]"});
  CallFormat format;
  format.name = "mistral";
  format.reasoning = {{"[THINK]", "[/THINK]"}};
  format.section = {"[TOOL_CALLS]", ""};
  format.call = {{Field::kName},
                 {Field::kText, "[CALL_ID]"},
                 {Field::kId},
                 {Field::kText, "[ARGS]"},
                 {Field::kArguments}};
  format.ids = IdForm::kNine;
  ASSERT_TRUE(reads.make(format, two_tools()).ok());
  check(reads, {{"Hi [", "[THINK]a[/THINK]b", "a[TOOL_CALLS]time[CALL_ID]abcdefgh1[ARGS]{}",
                 "[TOOL_CALLS]time[CALL_ID]abcdefgh1[ARGS]{}[TOOL_CALLS]weather[CALL_ID]"
                 "000000000[ARGS]{\"city\": \"a\"}"},
                {"[TOOL_CALLS]time[CALL_ID]abcdefgh[ARGS]{}", "[THINK]a", "[ARGS]", "[TOOL_CALLS]",
                 "[TOOL_CALLS]weather[CALL_ID]000000000[ARGS]{}"}});
  EXPECT_FALSE(reads("a[TOOL_CALLS]time[CALL_ID]abcdefgh1[ARGS]{}", true));
  EXPECT_FALSE(reads("a[TOOL_CALLS]", true));
  EXPECT_TRUE(reads("a[ARGS]", true));  // bytes that open nothing
}

TEST(CallGrammar, HasArraysOfCalls) {
  CallReader reads({"[TOOL_CALLS]"});
  CallFormat format;
  format.name = "array";
  format.section = {"[TOOL_CALLS][", "]"};
  format.between = ", ";
  format.call = {{Field::kObject}};
  format.keys.id = "id";
  format.ids = IdForm::kNine;
  ASSERT_TRUE(reads.make(format, two_tools(), choice(ToolChoice::kRequired)).ok());
  check(reads,
        {{"[TOOL_CALLS][{\"name\": \"time\", \"arguments\": {}, \"id\": \"abcdefghi\"}]",
          "[TOOL_CALLS][{\"id\": \"abcdefghi\", \"name\": \"time\", \"arguments\": {}}, "
          "{\"name\": \"weather\", \"arguments\": {\"city\": \"a\"}, \"id\": \"012345678\"}]"},
         {"[TOOL_CALLS][]", "[TOOL_CALLS][{\"name\": \"time\", \"arguments\": {}}]"}});
}

CallFormat dict_format() {
  CallFormat format;
  format.name = "dict";
  format.reasoning = {{"<|channel>thought\n", "<channel|>"}};
  format.section = {"<|tool_call>", "<tool_call|>"};
  format.call = {{Field::kText, "call:"}, {Field::kName}, {Field::kArguments}};
  format.syntax = Syntax::kDict;
  format.marks.quote = "<|\"|>";
  return format;
}

TEST(CallGrammar, HasDictionaries) {
  CallReader reads({"<|tool_call>", "<tool_call|>", "<|\"|>", "<|channel>", "<channel|>"});
  const char* const schema =
      R"({"type":"object","properties":{"s":{"type":"string","pattern":"^[a-z ]*$"},)"
      R"("n":{"type":["integer","null"]},"b":{"type":"boolean"},)"
      R"("l":{"type":"array","items":{"$ref":"#/$defs/node"},"maxItems":2}},)"
      R"("$defs":{"node":{"type":"object","properties":{"v":{"enum":["x","y",1]},"next":{"$ref":"#/$defs/node"}},)"
      R"("additionalProperties":false}}})";
  ASSERT_TRUE(reads.make(dict_format(), {tool("f", schema)}).ok());
  check(reads, {{"<|tool_call>call:f{}<tool_call|>", "call: Bob", "<|channel>thought\na<channel|>b",
                 "<|tool_call>call:f{s:<|\"|>a b<|\"|>,n:null,b:true}<tool_call|>",
                 "<|tool_call>call:f{n:3,l:[{v:<|\"|>x<|\"|>},{next:{v:1,next:{}}}]}<tool_call|>"
                 "<|tool_call>call:f{}<tool_call|>"},
                {"<|tool_call>call:f{s:\"a b\"}<tool_call|>", "call:f{}", "<|channel>thought\na",
                 "<|tool_call>call:f{s:<|\"|>A<|\"|>}<tool_call|>",
                 "<|tool_call>call:f{l:[{v:<|\"|>z<|\"|>}]}<tool_call|>",
                 "<|tool_call>call:f{l:[{v:2}]}<tool_call|>",
                 "<|tool_call>call:f{l:[{},{},{}]}<tool_call|>",
                 "<|tool_call>call:f{l:[{w:1}]}<tool_call|>"}});
}

TEST(CallGrammar, HasPython) {
  CallReader reads({"<|tool_call_start|>", "<|tool_call_end|>"});
  CallFormat format;
  format.name = "python";
  format.section = {"<|tool_call_start|>[", "]<|tool_call_end|>"};
  format.between = ", ";
  format.call = {{Field::kName}, {Field::kText, "("}, {Field::kArguments}, {Field::kText, ")"}};
  format.syntax = Syntax::kPython;
  const char* const schema =
      R"({"type":"object","properties":{"s":{"type":"string","maxLength":3},"b":{"type":["boolean","null"]},)"
      R"("o":{"type":"object","required":["k"],"properties":{"k":{"type":"array","prefixItems":[{"const":true},{"type":"number"}],)"
      R"("items":false,"minItems":1}}}}})";
  ASSERT_TRUE(reads.make(format, {tool("f", schema)}).ok());
  const auto call = [](const std::string& inside) {
    return "<|tool_call_start|>[f(" + inside + ")]<|tool_call_end|>";
  };
  for (const std::string inside :
       {"", "s=\"a\\\"b\"", "b=None", "s=\"\", b=True", "o={\"k\": [True]}",
        "b=False, o={\"k\": [True, 1.5]}", "o={\"k\": [True], \"z\": {\"a\": None}}", "), f("}) {
    EXPECT_TRUE(reads(call(inside))) << reads.stop(call(inside));
  }
  for (const std::string inside :
       {"s='a'", "s=\"abcd\"", "b=true", "b=null", "o={}", "o={\"k\": []}", "o={\"k\": [False]}",
        "o={\"k\": [True, 1, 2]}", "z=1", "b=None, s=\"\""}) {
    EXPECT_FALSE(reads(call(inside))) << inside;
  }
  EXPECT_EQ(reads.report().relaxed,
            (std::vector<std::string>{
                "tool f: /properties/o: members that are not listed may come twice",
                "tool f: values of any type: members that are not listed may come twice"}));
}

TEST(CallGrammar, HasNestedTags) {
  CallReader reads({"<tool_call>", "</tool_call>", "]<]x[>["});
  CallFormat format;
  format.name = "nested";
  format.section = {"<tool_call>", "</tool_call>"};
  format.call = {{Field::kText, "<f name=\""},
                 {Field::kName},
                 {Field::kText, "\">"},
                 {Field::kArguments},
                 {Field::kText, "</f>"}};
  format.syntax = Syntax::kNested;
  format.marks.lead = "]<]x[>[";
  const char* const schema =
      R"({"type":"object","properties":{"s":{"type":"string"},"l":{"type":"array","items":{"type":"integer"}},)"
      R"("o":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"boolean"}},"required":["b"],)"
      R"("additionalProperties":false}}})";
  ASSERT_TRUE(reads.make(format, {tool("f", schema)}).ok());
  const auto call = [](const std::string& inside) {
    return "<tool_call><f name=\"f\">" + inside + "</f></tool_call>";
  };
  const std::string x = "]<]x[>[";
  for (const std::string& inside :
       {std::string(), x + "<s>12 <b>" + x + "</s>",
        x + "<l>" + x + "<item>1" + x + "</item>" + x + "<item>2" + x + "</item>" + x + "</l>",
        x + "<l>[]" + x + "</l>",
        x + "<o>" + x + "<a>t" + x + "</a>" + x + "<b>true" + x + "</b>" + x + "</o>"}) {
    EXPECT_TRUE(reads(call(inside))) << reads.stop(call(inside));
  }
  for (const std::string& inside :
       {x + "<s>a", x + "<l>" + x + "</l>", x + "<l>" + x + "<item>a" + x + "</item>" + x + "</l>",
        x + "<o>" + x + "<a>t" + x + "</a>" + x + "</o>", x + "<z>1" + x + "</z>",
        x + "<o>" + x + "<a>t" + x + "</b>" + x + "</o>"}) {
    EXPECT_FALSE(reads(call(inside))) << inside;
  }
}

TEST(CallGrammar, HasMessages) {
  CallReader reads({"<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>",
                    "<|constrain|>"});
  const CallFormat format = *format_named("harmony");
  ASSERT_TRUE(reads.make(format, two_tools()).ok());
  const char* const thought = "<|channel|>analysis<|message|>I think.<|end|>";
  const char* const call =
      "<|channel|>commentary to=functions.weather <|constrain|>json<|message|>"
      "{\"city\": \"Oslo\"}<|call|>";
  const std::string next = "<|start|>assistant";
  const std::string both = thought + next + call;
  const std::string spoken = thought + next + "<|channel|>final<|message|>Hello";
  const std::string again = both + next + call;
  check(reads,
        {{both.c_str(), spoken.c_str(), "<|channel|>final<|message|>Hello<|return|>", call,
          "<|channel|>commentary to=functions.time <|constrain|>json<|message|>{}<|call|>"},
         {"Hello", thought, again.c_str(),
          "<|channel|>commentary to=functions.time <|constrain|>json<|message|>{}",
          "<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{}<|call|>",
          "<|channel|>commentary to=functions.x <|constrain|>json<|message|>{}<|call|>"}});
  CallGrammarOptions options = choice(ToolChoice::kRequired);
  ASSERT_TRUE(reads.make(format, two_tools(), options).ok());
  check(reads, {{both.c_str(), call}, {spoken.c_str(), thought}});
  options = choice(ToolChoice::kAuto);
  options.response = R"({"type":"integer"})";
  ASSERT_TRUE(reads.make(format, two_tools(), options).ok());
  check(reads, {{both.c_str(), "<|channel|>final<|message|>12"}, {spoken.c_str()}});
  options = choice(ToolChoice::kNone);
  options.in_reasoning = true;
  ASSERT_TRUE(reads.make(format, two_tools(), options).ok());
  check(reads, {{"a<|end|><|start|>assistant<|channel|>final<|message|>Hello"}, {"a", "a<|end|>"}});
}

TEST(CallGrammar, HasMessagesWithoutMarksAtTheirEnds) {
  CallReader reads({});
  const CallFormat format = *format_named("functionary-3.2");
  ASSERT_TRUE(reads.make(format, two_tools()).ok());
  check(reads,
        {{"all\nHello > you", "all\nHello\n>>>time\n{}", "time\n{}>>>weather\n{\"city\": \"a\"}"},
         {"Hello", "weather\n{}", "all\nHello>>>you", "all\na>>>>time\n{}"}});
}

// Of a function without parameters, of one with any, and of a map.
TEST(CallGrammar, HasMembersThatTheSchemaDoesNotList) {
  const std::vector<Tool> tools = {
      tool("none", ""), tool("any", "{}"),
      tool("map", R"({"type":"object","additionalProperties":{"type":"integer"}})")};
  struct Syntaxes {
    const char* format;
    std::vector<std::string> yes;
    std::vector<std::string> no;
    size_t relaxed;
  };
  const auto hermes = [](const std::string& name, const std::string& arguments) {
    return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": " + arguments +
           "}\n</tool_call>";
  };
  const auto coder = [](const std::string& name, const std::string& value) {
    return "<tool_call>\n<function=" + name + ">\n<parameter=a>\n" + value +
           "\n</parameter>\n</function>\n</tool_call>";
  };
  const auto gemma = [](const std::string& name, const std::string& arguments) {
    return "<|tool_call>call:" + name + arguments + "<tool_call|>";
  };
  const auto olmo = [](const std::string& name, const std::string& arguments) {
    return "<function_calls>" + name + "(" + arguments + ")</function_calls>";
  };
  const Syntaxes all[] = {
      {"hermes",
       {hermes("none", "{}"), hermes("any", "{\"a\": [1, {\"b\": null}]}"),
        hermes("map", "{\"a\": 1}")},
       {hermes("none", "{\"a\": 1}"), hermes("any", "{\"a\": 1, \"a\": 2}"), hermes("any", "1"),
        hermes("map", "{\"a\": \"b\"}")},
       0},
      {"qwen3-coder",
       {coder("any", "1"), coder("any", "text"), coder("any", "{\"b\": 1}"), coder("map", "-2")},
       {coder("none", "1"), coder("any", "{\"b\": 1"), coder("map", "a"), coder("map", "\"1\"")},
       3},
      {"gemma4",
       {gemma("any", "{a:1,b:{c:<|\"|>d<|\"|>}}"), gemma("map", "{a:1}"), gemma("none", "{}")},
       {gemma("none", "{a:1}"), gemma("any", "{a:d}"), gemma("map", "{a:<|\"|>d<|\"|>}")},
       3},
      {"olmo3",
       {olmo("any", "a=1, b={\"c\": [None]}"), olmo("map", "a=1"), olmo("none", "")},
       {olmo("none", "a=1"), olmo("any", "a=null"), olmo("map", "a=\"b\"")},
       3}};
  for (const Syntaxes& one : all) {
    CallReader reads({});
    ASSERT_TRUE(reads.make(*format_named(one.format), tools).ok()) << one.format;
    for (const std::string& text : one.yes) EXPECT_TRUE(reads(text)) << reads.stop(text);
    for (const std::string& text : one.no) EXPECT_FALSE(reads(text)) << text;
    EXPECT_EQ(reads.report().relaxed.size(), one.relaxed) << one.format;
  }
  CallReader reads({});
  ASSERT_TRUE(reads.make(*format_named("minimax-m3"), tools).ok());
  ASSERT_FALSE(reads.report().relaxed.empty());
  EXPECT_EQ(reads.report().relaxed[0],
            "tool any: #: members that are not listed cannot be written");
}

// Arguments are an object, whatever else a schema allows; its references stay those of itself.
TEST(CallGrammar, HasOnlyObjectsOfASchema) {
  CallReader reads({});
  const char* const nullable =
      R"({"type":["null","object"],"properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"const":1}}})";
  const char* const identified =
      R"({"$id":"https://example.com/x","type":["object","string"],"properties":{"a":{"$ref":"#/$defs/x"}},)"
      R"("$defs":{"x":{"const":1}}})";
  const char* const untyped = R"({"properties":{"a":{"const":1}}})";
  const char* const joined =
      R"({"allOf":[{"properties":{"a":{"const":1}}}],"properties":{"b":{}}})";
  ASSERT_TRUE(reads
                  .make(*format_named("hermes"), {tool("n", nullable), tool("i", identified),
                                                  tool("u", untyped), tool("j", joined)})
                  .ok());
  const auto call = [](const std::string& name, const std::string& arguments) {
    return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": " + arguments +
           "}\n</tool_call>";
  };
  for (const char* name : {"n", "i", "u", "j"}) {
    EXPECT_TRUE(reads(call(name, "{\"a\": 1}"))) << reads.stop(call(name, "{\"a\": 1}"));
    for (const char* arguments : {"{\"a\": 2}", "null", "1", "\"a\"", "[]"}) {
      EXPECT_FALSE(reads(call(name, arguments))) << name << arguments;
    }
    EXPECT_EQ(reads(call(name, "{\"c\": 2}")), *name == 'j') << name;
  }
  // No object can be valid.
  for (const char* const format : {"hermes", "olmo3"}) {
    EXPECT_EQ(
        reads.make(*format_named(format), {tool("s", R"({"allOf":[{"type":"string"}]})")}).code(),
        Code::kGrammar);
  }
}

TEST(CallGrammar, KeepsLengthsOfRawStrings) {
  for (const uint32_t most : {3U, 100'000U}) {
    CallReader reads({});
    const std::string schema = R"({"properties":{"s":{"type":"string","maxLength":)" +
                               std::to_string(most) + R"(,"minLength":1}},"required":["s"]})";
    ASSERT_TRUE(reads.make(*format_named("gemma4"), {tool("f", schema)}).ok());
    const auto call = [](const std::string& text) {
      return "<|tool_call>call:f{s:<|\"|>" + text + "<|\"|>}<tool_call|>";
    };
    std::string text;
    for (uint32_t i = 0; i < most; ++i) text += i % 2 == 0 ? "a" : "\xC3\xA9";
    EXPECT_FALSE(reads(call("")));
    EXPECT_TRUE(reads(call("a")));
    EXPECT_TRUE(reads(call(text))) << most;
    EXPECT_FALSE(reads(call(text + "a"))) << most;
  }
}

// What has no meaning for an automaton is left out, and said.
TEST(CallGrammar, ReportsWhatItRelaxes) {
  CallReader reads({});
  const char* const schema =
      R"({"properties":{"p":{"type":"string","format":"regex"},)"
      R"("u":{"type":"array","items":{"type":"string"},"uniqueItems":true}}})";
  const Tool search = tool("search", schema);
  ASSERT_TRUE(reads.make(*format_named("gemma4"), {search}).ok());
  EXPECT_EQ(reads.report().relaxed,
            (std::vector<std::string>{"tool search: /properties/p/format: some back references, "
                                      "names of groups and ranges left out",
                                      "tool search: /properties/p: the format regex",
                                      "tool search: /properties/u: uniqueItems"}));
  EXPECT_TRUE(
      reads("<|tool_call>call:search{p:<|\"|>(<|\"|>,u:[<|\"|>a<|\"|>,<|\"|>a<|\"|>]}"
            "<tool_call|>"));
  // Between marks the array is JSON, so it is checked.
  ASSERT_TRUE(reads.make(*format_named("qwen3-coder"), {search}).ok());
  EXPECT_EQ(reads.report().relaxed.size(), 2U);
  const auto call = [](const std::string& array) {
    return "<tool_call>\n<function=search>\n<parameter=u>\n" + array +
           "\n</parameter>\n</function>\n</tool_call>";
  };
  EXPECT_TRUE(reads(call("[\"a\", \"b\"]")));
  EXPECT_FALSE(reads(call("[\"a\", \"a\"]")));
}

TEST(CallGrammar, StopsAtLimits) {
  CallReader reads({});
  CallGrammarOptions options;
  options.limits.edges = 50;
  EXPECT_EQ(reads.make(*format_named("hermes"), two_tools(), options).code(), Code::kGrammar);
  options = {};
  auto cancel = std::make_shared<CancelFlag>();
  cancel->fire();
  options.limits.cancel = cancel;
  EXPECT_EQ(reads.make(*format_named("hermes"), two_tools(), options).code(), Code::kCancelled);
}

}  // namespace
}  // namespace gen::calls
