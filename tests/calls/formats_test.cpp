// SPDX-License-Identifier: Apache-2.0
// Answers of every family, written by hand, and what they mean; the same cut at every byte, and cut
// off at every byte.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "calls/answers.h"
#include "calls/format_table.h"

namespace gen::calls {
namespace {

using test::read_answer;
using test::same_json;

struct Golden {
  std::string_view format;
  std::string_view answer;
  std::string_view text;
  std::string_view reasoning;
  std::vector<Call> calls;
  std::string_view opening = {};
};

// Of all goldens: strings, numbers, truth values, lists and objects.
std::shared_ptr<const Tools> tools() {
  return test::tools_of({R"({"name": "weather", "parameters": {"type": "object", "properties": {
                            "city": {"type": "string"}, "days": {"type": "integer"},
                            "on": {"type": "boolean"}, "tags": {"type": "array"},
                            "where": {"type": "object"}}}})",
                         R"({"name": "find", "parameters": {"type": "object", "properties": {
                            "q": {"type": "string"}, "how": {"type": "number"}}}})"});
}

// Names and values that look like the syntax around them.
const std::string kWeather =
    R"({"city": "O's \"lo\"\n{a}, [b] é", "days": -3, "on": true, "tags": ["x", 1], "where": {"zip": "01", "n": null}})";
const std::string kFind = R"({"q": "a, b", "how": 0.5})";
const std::string kPlain = R"({"city": "Oslo", "days": 3})";

Call weather(std::string id = {}) { return {std::move(id), "weather", kWeather}; }
Call find(std::string id = {}) { return {std::move(id), "find", kFind}; }
Call plain(std::string id = {}) { return {std::move(id), "weather", kPlain}; }

// Each %W, %F and %P of the text is one of the three as JSON.
std::string filled(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '%' && i + 1 < text.size() ? text[i + 1] : ' ';
    if (next == 'W' || next == 'F' || next == 'P') {
      out += next == 'W' ? kWeather : next == 'F' ? kFind : kPlain;
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

const std::vector<Golden>& goldens() {
  static const std::vector<Golden> all = {
      {"hermes",
       "<think>\nHm, {\"a\": 1}?\n</think>\n\nI look.\n<tool_call>\n{\"name\": \"weather\", "
       "\"arguments\": %W}\n</tool_call>\n<tool_call>\n{\"name\": \"find\", \"arguments\": "
       "%F}\n</tool_call>",
       "I look.",
       "Hm, {\"a\": 1}?",
       {weather(), find()}},
      {"hermes",
       "<tool_call>{\"arguments\":%P,\"name\":\"weather\"}</tool_call>",
       "",
       "",
       {plain()}},
      {"qwen3-coder",
       "It rains.\n\n<tool_call>\n<function=weather>\n<parameter=city>\nO's \"lo\"\n{a}, [b] é\n"
       "</parameter>\n<parameter=days>\n-3\n</parameter>\n<parameter=on>\ntrue\n</parameter>\n"
       "<parameter=tags>\n[\"x\", 1]\n</parameter>\n<parameter=where>\n{\"zip\": \"01\", \"n\": "
       "null}\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=find>\n"
       "<parameter=q>\na, b\n</parameter>\n<parameter=how>\n0.5\n</parameter>\n</function>\n"
       "</tool_call>",
       "It rains.",
       "",
       {weather(), find()}},
      {"qwen3-coder",
       "I think so.\n</think>\n\n<function=weather><parameter=city>Oslo</parameter>"
       "<parameter=days>3</parameter></function></tool_call>",
       "",
       "I think so.",
       {plain()},
       "<think>\n"},
      {"seed-oss",
       "<seed:think>Well</seed:think>\nYes\n<seed:tool_call>\n<function=weather>\n"
       "<parameter=city>O's \"lo\"\n{a}, [b] é</parameter>\n<parameter=days>-3</parameter>\n"
       "<parameter=on>True</parameter>\n<parameter=tags>['x', 1]</parameter>\n"
       "<parameter=where>{'zip': '01', 'n': None}</parameter>\n</function>\n</seed:tool_call>\n"
       "<seed:tool_call>\n<function=find>\n<parameter=q>a, b</parameter>\n"
       "<parameter=how>0.5</parameter>\n</function>\n</seed:tool_call>",
       "Yes",
       "Well",
       {weather(), find()}},
      {"llama3", "{\"name\": \"weather\", \"parameters\": %W}", "", "", {weather()}},
      {"llama3", "<|python_tag|>{\"name\": \"weather\", \"parameters\": %P}", "", "", {plain()}},
      {"mistral-list",
       "[TOOL_CALLS][{\"name\": \"weather\", \"arguments\": %W, \"id\": \"abc123def\"}, {\"name\": "
       "\"find\", \"arguments\": %F, \"id\": \"abc123deg\"}]",
       "",
       "",
       {weather("abc123def"), find("abc123deg")}},
      {"mistral-list",
       "Fine. [TOOL_CALLS] [{\"name\": \"weather\", \"arguments\": %P}]",
       "Fine.",
       "",
       {plain()}},
      {"mistral-id",
       "[TOOL_CALLS]weather[CALL_ID]abc123def[ARGS]%W[TOOL_CALLS]find[CALL_ID]abc123deg[ARGS]%F",
       "",
       "",
       {weather("abc123def"), find("abc123deg")}},
      {"mistral",
       "[THINK]Hm[/THINK]Now:[TOOL_CALLS]weather[ARGS]%W[TOOL_CALLS]find[ARGS] %F",
       "Now:",
       "Hm",
       {weather(), find()}},
      {"harmony",
       "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary "
       "to=functions.weather <|constrain|>json<|message|>%W<|call|>",
       "",
       "Hm.",
       {weather()},
       "<|start|>assistant"},
      {"harmony",
       " to=functions.weather<|channel|>commentary json<|message|>%P<|call|>",
       "",
       "",
       {plain()},
       "<|start|>assistant"},
      {"harmony",
       "<|channel|>analysis to=functions.find<|message|>%F<|call|><|start|>assistant<|channel|>"
       "final<|message|>Done.<|return|>",
       "Done.",
       "",
       {find()},
       "<|start|>assistant"},
      {"gemma4",
       "<|channel>thought\nHm\n<channel|>Yes.<|tool_call>call:weather{city:<|\"|>O's \"lo\"\n{a}, "
       "[b] é<|\"|>,days:-3,on:true,tags:[<|\"|>x<|\"|>,1],where:{zip:<|\"|>01<|\"|>,n:null}}"
       "<tool_call|><|tool_call>call:find{how:0.5,q:<|\"|>a, b<|\"|>}<tool_call|><|tool_response>",
       "Yes.",
       "Hm",
       {weather(), {"", "find", R"({"how": 0.5, "q": "a, b"})"}}},
      {"functiongemma",
       "<start_function_call>call:weather{city:<escape>Oslo<escape>,days:3}<end_function_call>"
       "<start_function_response>",
       "",
       "",
       {plain()}},
      {"deepseek-r1",
       "I "
       "see.\n</"
       "think>\n\nSo.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n"
       "```json\n%W\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>find\n```"
       "json\n%F\n"
       "```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "So.",
       "I see.",
       {weather(), find()},
       "<think>\n"},
      {"deepseek-v3.1",
       "So.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>%W<｜tool▁call▁end｜>"
       "<｜tool▁call▁begin｜>find<｜tool▁sep｜>%F<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "So.",
       "",
       {weather(), find()}},
      {"deepseek-v3.2",
       "<think>Hm</think>So.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"weather\">\n"
       "<｜DSML｜parameter name=\"city\" string=\"true\">O's \"lo\"\n{a}, [b] "
       "é</｜DSML｜parameter>\n"
       "<｜DSML｜parameter name=\"days\" string=\"false\">-3</｜DSML｜parameter>\n"
       "<｜DSML｜parameter name=\"on\" string=\"false\">true</｜DSML｜parameter>\n"
       "<｜DSML｜parameter name=\"tags\" string=\"false\">[\"x\", 1]</｜DSML｜parameter>\n"
       "<｜DSML｜parameter name=\"where\" string=\"false\">{\"zip\": \"01\", \"n\": null}"
       "</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name=\"find\">\n"
       "<｜DSML｜parameter name=\"q\" string=\"true\">a, b</｜DSML｜parameter>\n"
       "<｜DSML｜parameter name=\"how\" "
       "string=\"false\">0.5</｜DSML｜parameter>\n</｜DSML｜invoke>\n"
       "</｜DSML｜function_calls>",
       "So.",
       "Hm",
       {weather(), find()}},
      {"gigachat3.5",
       "<think>Hm</think>\n\nSo.\n\n<｜GCML｜tool_calls>\n<｜GCML｜invoke name=\"weather\">\n"
       "<｜GCML｜parameter name=\"city\" "
       "string=\"true\">Oslo</｜GCML｜parameter>\n<｜GCML｜parameter "
       "name=\"days\" string=\"false\">3</｜GCML｜parameter>\n</｜GCML｜invoke>\n<｜GCML｜invoke "
       "name=\"find\">\n</｜GCML｜invoke>\n</｜GCML｜tool_calls>",
       "So.",
       "Hm",
       {plain(), {"", "find", "{}"}}},
      {"deepseek-v4",
       "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"weather\">\n<｜DSML｜parameter name=\"city\" "
       "string=\"true\">Oslo</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" "
       "string=\"false\">3"
       "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
       "",
       "",
       {plain()}},
      {"glm",
       "<think>Hm</think>\nSo.\n<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>O's "
       "\"lo\"\n{a}, [b] é</arg_value>\n<arg_key>days</arg_key>\n<arg_value>-3</arg_value>\n"
       "<arg_key>on</arg_key>\n<arg_value>true</arg_value>\n<arg_key>tags</arg_key>\n<arg_value>"
       "[\"x\", 1]</arg_value>\n<arg_key>where</arg_key>\n<arg_value>{\"zip\": \"01\", \"n\": "
       "null}</arg_value>\n</tool_call>\n<tool_call>find<arg_key>q</arg_key><arg_value>a, "
       "b</arg_value><arg_key>how</arg_key><arg_value>0.5</arg_value></tool_call>",
       "So.",
       "Hm",
       {weather(), find()}},
      {"kimi-k2",
       "So.<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0"
       "<|tool_call_argument_begin|>%W<|tool_call_end|><|tool_call_begin|>functions.find:1"
       "<|tool_call_argument_begin|>%F<|tool_call_end|><|tool_calls_section_end|>",
       "So.",
       "",
       {weather("functions.weather:0"), find("functions.find:1")}},
      {"minimax-m2",
       "<think>\nHm\n</think>\n\nSo.\n<minimax:tool_call>\n<invoke name=\"weather\">\n"
       "<parameter name=\"city\">O's \"lo\"\n{a}, [b] é</parameter>\n<parameter name=\"days\">-3"
       "</parameter>\n<parameter name=\"on\">true</parameter>\n<parameter name=\"tags\">[\"x\", 1]"
       "</parameter>\n<parameter name=\"where\">{\"zip\": \"01\", \"n\": null}</parameter>\n"
       "</invoke>\n<invoke name=\"find\">\n<parameter name=\"q\">a, b</parameter>\n"
       "<parameter name=\"how\">0.5</parameter>\n</invoke>\n</minimax:tool_call>",
       "So.",
       "Hm",
       {weather(), find()}},
      {"minimax-m3",
       "<mm:think>Hm</mm:think>So.]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke "
       "name=\"weather\">\n]<]minimax[>[<city>O's \"lo\"\n{a}, [b] é]<]minimax[>[</city>"
       "]<]minimax[>[<days>-3]<]minimax[>[</days>]<]minimax[>[<on>true]<]minimax[>[</on>"
       "]<]minimax[>[<tags>]<]minimax[>[<item>x]<]minimax[>[</item>]<]minimax[>[<item>1"
       "]<]minimax[>[</item>]<]minimax[>[</tags>]<]minimax[>[<where>{\"zip\": \"01\", \"n\": null}"
       "]<]minimax[>[</where>\n]<]minimax[>[</invoke>\n]<]minimax[>[<invoke name=\"find\">"
       "]<]minimax[>[<q>a, b]<]minimax[>[</q>]<]minimax[>[<how>0.5]<]minimax[>[</how>"
       "]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
       "So.",
       "Hm",
       {weather(), find()}},
      {"lfm2",
       "So.<|tool_call_start|>[weather(city='O\\'s \"lo\"\\n{a}, [b] é', days=-3, on=True, "
       "tags=[\"x\", 1], where={\"zip\": '01', 'n': None}), find(q=\"a, b\", how=0.5)]"
       "<|tool_call_end|>",
       "So.",
       "",
       {weather(), find()}},
      {"olmo3",
       "<function_calls>\nweather(city=\"Oslo\", days=3)\nfind(q='a, b', how=0.5)\n"
       "</function_calls>",
       "",
       "",
       {plain(), find()}},
      {"command-r7b",
       "<|START_THINKING|>Hm<|END_THINKING|><|START_ACTION|>[\n    {\"tool_call_id\": \"0\", "
       "\"tool_name\": \"weather\", \"parameters\": %W},\n    {\"tool_call_id\": \"1\", "
       "\"tool_name\": \"find\", \"parameters\": %F}\n]<|END_ACTION|>",
       "",
       "Hm",
       {weather("0"), find("1")}},
      {"command-r7b", "<|START_RESPONSE|>Yes.<|END_RESPONSE|>", "Yes.", "", {}},
      {"command-r",
       "Action:\n```json\n[\n    {\n        \"tool_name\": \"weather\",\n        \"parameters\": "
       "%W\n    },\n    {\n        \"tool_name\": \"find\",\n        \"parameters\": %F\n    }\n"
       "]```",
       "",
       "",
       {weather(), find()}},
      {"muse",
       " to=self<|message|>Hm.<|eom|><|start|>assistant to=weather<|message|>"
       "<atem:function_calls>\n<atem:invoke name=\"weather\">\n<atem:parameter name=\"city\">Oslo"
       "</atem:parameter>\n<atem:parameter name=\"days\">3</atem:parameter>\n</atem:invoke>\n"
       "</atem:function_calls><|eom|><|start|>assistant to=user<|message|>Asked.<|eot|>",
       "Asked.",
       "Hm.",
       {plain()},
       "<|start|>assistant"},
      {"functionary-3.2",
       "all\nSo.>>>weather\n%W>>>find\n%F",
       "So.",
       "",
       {weather(), find()},
       ">>>"},
      {"functionary-3.1",
       "So.<function=weather>%W</function><function=find>%F</function>",
       "So.",
       "",
       {weather(), find()}},
      {"gigachat3",
       "So.<|message_sep|>\n\nfunction call<|role_sep|>\n{\"name\": \"weather\", \"arguments\": "
       "%W}<|message_sep|>",
       "So.",
       "",
       {weather()}},
      {"minicpm5",
       "<function name=\"weather\"><param name=\"city\"><![CDATA[O's \"lo\"\n{a}, [b] é]]></param>"
       "<param name=\"days\">-3</param><param name=\"on\">true</param><param name=\"tags\">[\"x\", "
       "1]</param><param name=\"where\">{\"zip\": \"01\", \"n\": null}</param></function>\n"
       "<function name=\"find\"><param name=\"q\">a, b</param><param name=\"how\">0.5</param>"
       "</function>",
       "",
       "",
       {weather(), find()}},
      {"apertus",
       "<|inner_prefix|>Hm<|inner_suffix|>So.<|tools_prefix|>[{\"weather\": %W}, {\"find\": "
       "%F}]<|tools_suffix|>",
       "So.",
       "Hm",
       {weather(), find()}},
      {"lfm2",
       "<|tool_call_start|>[find(q='it's \"a, b\"', how=0.5)]<|tool_call_end|>",
       "",
       "",
       {{"", "find", R"({"q": "it's \"a, b\"", "how": 0.5})"}}},
      {"kimi-k3",
       "Hm<|close|>think<|sep|><|open|>response<|sep|>So.<|close|>response<|sep|><|open|>tools<|"
       "sep|>"
       "<|open|>call tool=\"weather\" index=\"1\"<|sep|><|open|>argument key=\"city\" "
       "type=\"string\"<|sep|>O's \"lo\"\n{a}, [b] é<|close|>argument<|sep|><|open|>argument "
       "key=\"days\" type=\"number\"<|sep|>-3<|close|>argument<|sep|><|open|>argument key=\"on\" "
       "type=\"boolean\"<|sep|>true<|close|>argument<|sep|><|open|>argument key=\"tags\" "
       "type=\"array\"<|sep|>[\"x\", 1]<|close|>argument<|sep|><|open|>argument key=\"where\" "
       "type=\"object\"<|sep|>{\"zip\": \"01\", \"n\": null}<|close|>argument<|sep|><|close|>call"
       "<|sep|><|open|>call tool=\"find\" index=\"2\"<|sep|><|open|>argument key=\"q\" "
       "type=\"string\"<|sep|>a, b<|close|>argument<|sep|><|open|>argument key=\"how\" "
       "type=\"number\"<|sep|>0.5<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>"
       "<|close|>message<|sep|>",
       "So.",
       "Hm",
       {weather("1"), find("2")},
       "<|open|>think<|sep|>"},
      {"apriel",
       "Here are my reasoning steps:\nHm\n[BEGIN FINAL RESPONSE]\nSo.\n<tool_calls>[{\"name\": "
       "\"weather\", \"arguments\": %W, \"id\": \"c1\"}, {\"name\": \"find\", \"arguments\": "
       "%F}]</tool_calls>\n[END FINAL RESPONSE]",
       "So.",
       "Hm",
       {weather("c1"), find()}},
      {"phi4",
       "<|tool_call|>{\"name\": \"find\", \"arguments\": %F}<|/tool_call|>",
       "",
       "",
       {find()}},
      {"phi4",
       "<|tool_call|>[{\"name\": \"weather\", \"arguments\": %W}, {\"name\": \"find\", "
       "\"arguments\": %F}]<|/tool_call|>",
       "",
       "",
       {weather(), find()}},
      {"granite3",
       "<think>Hm</think><response>So.</response><|tool_call|>[{\"name\": \"weather\", "
       "\"arguments\": %W}, {\"arguments\": %F, \"name\": \"find\"}]",
       "So.",
       "Hm",
       {weather(), find()}},
      {"firefunction2",
       "So. functools[{\"name\": \"weather\", \"arguments\": %W}, {\"name\": \"find\", "
       "\"arguments\": %F}]",
       "So.",
       "",
       {weather(), find()}},
      {"nemotron-nano2",
       "<think>\nHm\n</think>\n\n<TOOLCALL>[{\"name\": \"weather\", \"arguments\": %W}, {\"name\": "
       "\"find\", \"arguments\": %F}]</TOOLCALL>",
       "",
       "Hm",
       {weather(), find()}},
      {"json", "So. {\"name\": \"weather\", \"arguments\": %W}", "So.", "", {weather()}},
  };
  return all;
}

TEST(Formats, Goldens) {
  for (const Golden& golden : goldens()) {
    SCOPED_TRACE(golden.answer);
    const auto format = format_named(golden.format);
    ASSERT_NE(format, nullptr) << golden.format;
    const std::string answer = filled(golden.answer);
    for (size_t cut = 1; cut <= answer.size(); cut = cut < 8 ? cut + 1 : cut * 2 + 1) {
      const Answer read = read_answer(format, tools(), answer, cut, golden.opening);
      ASSERT_EQ(read.text, golden.text);
      ASSERT_EQ(read.reasoning, golden.reasoning);
      ASSERT_EQ(read.calls.size(), golden.calls.size())
          << (read.faults.empty() ? "" : read.faults[0].what);
      for (size_t i = 0; i < read.calls.size(); ++i) {
        EXPECT_EQ(read.calls[i].name, golden.calls[i].name);
        EXPECT_EQ(read.calls[i].id, golden.calls[i].id);
        ASSERT_TRUE(same_json(read.calls[i].arguments, golden.calls[i].arguments))
            << read.calls[i].arguments;
      }
    }
  }
}

// Two pieces with the border at every byte.
TEST(Formats, CutAtEveryByte) {
  for (const Golden& golden : goldens()) {
    SCOPED_TRACE(golden.answer);
    const std::string answer = filled(golden.answer);
    const auto format = format_named(golden.format);
    const Answer whole = read_answer(format, tools(), answer, SIZE_MAX, golden.opening);
    for (size_t at = 1; at < answer.size(); ++at) {
      CallParser parser(format, tools(), golden.opening);
      std::vector<Piece> pieces;
      parser.feed(std::string_view(answer).substr(0, at), &pieces);
      parser.feed(std::string_view(answer).substr(at), &pieces);
      parser.finish(&pieces);
      ASSERT_EQ(parser.answer().text, whole.text) << at;
      ASSERT_EQ(parser.answer().reasoning, whole.reasoning) << at;
      ASSERT_EQ(parser.answer().calls, whole.calls) << at;
    }
  }
}

// An answer that stops anywhere: what was complete stays, and no word of the rest is lost.
TEST(Formats, EveryTruncation) {
  for (const Golden& golden : goldens()) {
    SCOPED_TRACE(golden.answer);
    const std::string answer = filled(golden.answer);
    const auto format = format_named(golden.format);
    for (size_t size = 0; size < answer.size(); ++size) {
      const Answer read =
          read_answer(format, tools(), std::string_view(answer).substr(0, size), 3, golden.opening);
      ASSERT_LE(read.calls.size(), golden.calls.size());
      for (size_t i = 0; i < read.calls.size(); ++i) {
        ASSERT_EQ(read.calls[i].name, golden.calls[i].name);
        ASSERT_TRUE(grammar::read_json(read.calls[i].arguments).ok()) << read.calls[i].arguments;
      }
      // The question is in a call, or it is text.
      const size_t word = answer.find("a, b");
      if (word == std::string::npos || size < word + 4) continue;
      std::string all = read.text + read.reasoning;
      for (const Call& call : read.calls) all += call.arguments;
      ASSERT_NE(all.find("a, b"), std::string::npos) << size << ": " << all;
    }
  }
}

TEST(Formats, EachHasGoldensAndSigns) {
  for (const auto& format : call_formats()) {
    size_t count = 0;
    for (const Golden& golden : goldens())
      count += static_cast<size_t>(golden.format == format->name);
    EXPECT_GT(count, 0U) << format->name;
    EXPECT_EQ(format->signs.empty(), format->name == "json") << format->name;
  }
}

}  // namespace
}  // namespace gen::calls
