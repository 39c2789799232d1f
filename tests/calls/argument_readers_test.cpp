// SPDX-License-Identifier: Apache-2.0
// Readers of arguments in every syntax: what they make of good and of bad texts, byte by byte.
#include "calls/arguments/argument_reader.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "calls/answers.h"
#include "calls/format_table.h"

namespace gen::calls {
namespace {

using test::same_json;
using State = ArgumentReader::State;

const Tool& weather() {
  static const Tool tool = [] {
    auto made = make_tool("weather", "", R"({"type": "object", "properties": {
      "city": {"type": "string"}, "days": {"type": "integer"}, "on": {"type": "boolean"},
      "places": {"type": "array", "items": {"type": "string"}},
      "where": {"type": "object", "properties": {"zip": {"type": "string"}}}}})");
    return made.ok() ? *made : Tool();
  }();
  return tool;
}

// The JSON, or "!" and the fault; "…" if the reader wants more. Bytes behind the end are a fault.
std::string read_all(ArgumentReader& reader, std::string_view text) {
  std::string json;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (reader.take(text[i], &json)) {
      case State::kMore:
        break;
      case State::kDone:
        EXPECT_TRUE(grammar::read_json(json).ok()) << json;
        return i + 1 == text.size() ? json : "! early: " + json;
      case State::kBad:
        return std::string("! ") + reader.fault();
    }
  }
  return "… " + json;
}

// Readers refer to it, so it stays.
const CallFormat& format(std::string_view name) {
  static std::vector<std::shared_ptr<const CallFormat>> kept;
  kept.push_back(format_named(name));
  return *kept.back();
}

std::string tagged(std::string_view text, const Tool* tool = &weather(),
                   std::string_view name = "qwen3-coder", std::string_view end = "</function>") {
  return read_all(*make_tagged_reader(format(name).marks, tool, end), text);
}

TEST(TaggedReader, ValuesByTheirSchema) {
  EXPECT_EQ(tagged("</function>"), "{}");
  EXPECT_EQ(tagged("\n<parameter=city>\nOslo\n</parameter>\n</function>"), R"({"city": "Oslo"})");
  EXPECT_EQ(tagged("<parameter=city>5</parameter><parameter=days>5</parameter></function>"),
            R"({"city": "5", "days": 5})");
  EXPECT_EQ(tagged("<parameter=days>\nfive\n</parameter></function>"), R"({"days": "five"})");
  EXPECT_EQ(tagged("<parameter=days>\"5\"</parameter></function>"), R"({"days": "5"})");
  EXPECT_EQ(tagged("<parameter=on>True</parameter></function>"), R"({"on": true})");
  EXPECT_EQ(tagged("<parameter=on>None</parameter></function>"), R"({"on": null})");
  EXPECT_EQ(tagged("<parameter=places>['a', \"b\"]</parameter></function>"),
            R"({"places": ["a", "b"]})");
  EXPECT_EQ(tagged("<parameter=city>\n\n\n</parameter></function>"), R"({"city": "\n"})");
  EXPECT_EQ(tagged("<parameter=city>\n</parameter></function>"), R"({"city": ""})");
  EXPECT_EQ(tagged("<parameter=city></parameter></function>"), R"({"city": ""})");
  EXPECT_EQ(tagged("<parameter=city>\r\na\r\n</parameter></function>"), R"({"city": "a"})");
  // Without a schema: JSON if it is JSON and no string.
  EXPECT_EQ(tagged("<parameter=a>5</parameter><parameter=b>\"x\"</parameter></function>", nullptr),
            R"({"a": 5, "b": "\"x\""})");
  EXPECT_EQ(tagged("<parameter=a>{\"k\": [1]}</parameter></function>", nullptr),
            R"({"a": {"k": [1]}})");
  EXPECT_EQ(tagged("<parameter=a>{no}</parameter></function>", nullptr), R"({"a": "{no}"})");
  EXPECT_EQ(tagged("<parameter=a>  x </parameter></function>", nullptr), R"({"a": "  x "})");
}

TEST(TaggedReader, MarksInsideValues) {
  EXPECT_EQ(tagged("<parameter=city>\na < b </p\n</parameter>\n</function>"),
            R"({"city": "a < b </p"})");
  // A mark that closes is one only before what can follow it.
  EXPECT_EQ(tagged("<parameter=city>\nuse </parameter> here\n</parameter>\n</function>"),
            R"({"city": "use </parameter> here"})");
  EXPECT_EQ(tagged("<parameter=city>x</parameter>\n</parameter>\n</function>"),
            R"({"city": "x</parameter>"})");
  EXPECT_EQ(tagged("<parameter=city>x</parameter>\n</parameters>\n</parameter></function>"),
            R"({"city": "x</parameter>\n</parameters>"})");
}

TEST(TaggedReader, Faults) {
  EXPECT_EQ(tagged("x"), "! neither an argument nor the end of the call");
  EXPECT_EQ(tagged("<parameter=>"), "! an argument without a name");
  EXPECT_EQ(tagged("<parameter=a>1</parameter><parameter=a>"), "! a name comes twice");
  EXPECT_EQ(tagged("<parameter=city>\xff"), "! not UTF-8");
  EXPECT_EQ(tagged("<parameter=city>\xc3</parameter></function>"), "! not UTF-8");
  EXPECT_EQ(tagged("<parameter=\xff"), "! not UTF-8");
  EXPECT_EQ(tagged("<parameter=city>\xe2\x82\xac \"\\\n\t</parameter></function>"),
            "{\"city\": \"\xe2\x82\xac \\\"\\\\\\n\\u0009\"}");
}

TEST(TaggedReader, TextsComeAsTheyArrive) {
  const auto reader = make_tagged_reader(format("qwen3-coder").marks, &weather(), "</function>");
  std::string json;
  for (const char byte : std::string_view("<parameter=city>\nOslo and")) {
    ASSERT_EQ(reader->take(byte, &json), State::kMore);
  }
  EXPECT_EQ(json, R"({"city": "Oslo and)");
}

TEST(TaggedReader, OtherFamilies) {
  EXPECT_EQ(tagged("\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>",
                   &weather(), "glm", "</tool_call>"),
            R"({"city": "Oslo"})");
  EXPECT_EQ(tagged("<arg_key>city</arg_key><arg_value>\nO\n</arg_value><arg_key> days </arg_key>\n"
                   "<arg_value>3</arg_value></tool_call>",
                   &weather(), "glm", "</tool_call>"),
            "{\"city\": \"\\nO\\n\", \"days\": 3}");
  // The mark says whether a value is a string, whatever the schema says.
  EXPECT_EQ(tagged("<｜DSML｜parameter name=\"days\" string=\"true\">3</｜DSML｜parameter>\n"
                   "<｜DSML｜parameter name=\"city\" string=\"false\">[1]</｜DSML｜parameter>\n"
                   "</｜DSML｜invoke>",
                   &weather(), "deepseek-v3.2", "</｜DSML｜invoke>"),
            R"({"days": "3", "city": [1]})");
  const auto mini = [&](std::string_view text) {
    return tagged(text, &weather(), "minicpm5", "</function>");
  };
  EXPECT_EQ(mini("<param name=\"city\"><![CDATA[a </param></function> ]] b]]></param></function>"),
            R"({"city": "a </param></function> ]] b"})");
  EXPECT_EQ(mini("<param name=\"city\"><![CDAT</param></function>"), R"({"city": "<![CDAT"})");
  EXPECT_EQ(mini("<param name=\"days\"><![CDATA[3]]></param>\n</function>"), R"({"days": 3})");
}

std::string dict(std::string_view text) {
  return read_all(*make_dict_reader(format("gemma4").marks), text);
}

TEST(DictReader, Values) {
  EXPECT_EQ(dict("{}"), "{}");
  EXPECT_EQ(dict("{city:<|\"|>Oslo<|\"|>,days:3}"), R"({"city": "Oslo", "days": 3})");
  EXPECT_EQ(dict(" { \"city\" : \"Os\\u006co\" , <|\"|>a b<|\"|>:[1,{x:true},[],{}] }"),
            R"({"city": "Oslo", "a b": [1, {"x": true}, [], {}]})");
  EXPECT_EQ(dict("{a:<|\"|>\"q\" \\ <| <|\"|>,b:None,c:-1.5e3}"),
            R"({"a": "\"q\" \\ <| ", "b": null, "c": -1.5e3})");
  EXPECT_EQ(dict("{a:<|\"|><|\"|>,b:\"\"}"), R"({"a": "", "b": ""})");
}

TEST(DictReader, Faults) {
  EXPECT_EQ(dict("x"), "! '{' is expected");
  EXPECT_EQ(dict("{a:Oslo}"), "! neither a number, a string, true, false nor null");
  EXPECT_EQ(dict("{a:01}"), "! neither a number, a string, true, false nor null");
  EXPECT_EQ(dict("{a:1,a:"), "! a name comes twice");
  EXPECT_EQ(dict("{a:1 b"), "! ',' or the end is expected");
  EXPECT_EQ(dict("{:1}"), "! a name is expected");
  EXPECT_EQ(dict("{a:]"), "! a value is expected");
  EXPECT_EQ(dict("{a:}"), "! a value is expected");
  EXPECT_EQ(dict("{a:1,b:}"), "! a value is expected");
  EXPECT_EQ(dict("{a:<|\"|>\xc3<|\"|>"), "! not UTF-8");
  EXPECT_EQ(dict("{a:" + std::string(300, '[')), "! nested too deep");
  EXPECT_EQ(dict("{a:<|\"|>x"), "… {\"a\": \"x");
}

std::string python(std::string_view text) { return read_all(*make_python_reader(")"), text); }

TEST(PythonReader, Values) {
  EXPECT_EQ(python(")"), "{}");
  EXPECT_EQ(python("city=\"Oslo\", days=3)"), R"({"city": "Oslo", "days": 3})");
  EXPECT_EQ(python(" city = 'O\\'s\"lo' , on=True, x=None , )"),
            R"({"city": "O's\"lo", "on": true, "x": null})");
  EXPECT_EQ(python("a='''it's\n''two'''', b=\"\"\"\"\"\")"),
            "! ',' or the end of the call is expected");
  EXPECT_EQ(python("a='''it's\n''two''', b=\"\"\"\"\"\", c='')"),
            "{\"a\": \"it's\\n''two\", \"b\": \"\", \"c\": \"\"}");
  EXPECT_EQ(python("a=[1, (2, 3), {'k': [True]}], b={})"),
            R"({"a": [1, [2, 3], {"k": [true]}], "b": {}})");
  EXPECT_EQ(python("a='\\x41\\101\\u00e9\\U0001F600\\n\\d\\ud83d\\ude00')"),
            "{\"a\": \"AA\xc3\xa9\xf0\x9f\x98\x80\\n\\\\d\xf0\x9f\x98\x80\"}");
  EXPECT_EQ(python("a=[1,],b=(\"x\",))"), R"({"a": [1], "b": ["x"]})");
  EXPECT_EQ(python("a=')')"), "{\"a\": \")\"}");
}

TEST(PythonReader, Faults) {
  EXPECT_EQ(python("\"Oslo\")"), "! a name and '=' are expected");
  EXPECT_EQ(python("a=1 b=2)"), "! ',' or the end of the call is expected");
  EXPECT_EQ(python("a=1, a=2)"), "! a name comes twice");
  EXPECT_EQ(python("a=x)"), "! neither a number, a string, true, false nor null");
  EXPECT_EQ(python("a='\\ud800x"), "! half a surrogate pair");
  EXPECT_EQ(python("a='\\xzz"), "! an escape is incomplete");
  EXPECT_EQ(python("a='\\U00110000'"), "! no character");
  EXPECT_EQ(python("a=1,,"), "! a name and '=' are expected");
}

std::string nested(std::string_view text, const Tool* tool = &weather()) {
  std::string marked;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<' && (i == 0 || text[i - 1] != '\\')) marked += "]<]minimax[>[";
    if (text[i] != '\\') marked += text[i];
  }
  return read_all(*make_nested_reader(format("minimax-m3").marks, tool, "]<]minimax[>[</invoke>"),
                  marked);
}

TEST(NestedReader, Values) {
  EXPECT_EQ(nested("</invoke>"), "{}");
  EXPECT_EQ(nested("\n<city>Oslo</city>\n<days>3</days>\n</invoke>"),
            R"({"city": "Oslo", "days": 3})");
  EXPECT_EQ(nested("<city>5</city><places><item>5</item> <item>b</item></places></invoke>"),
            R"({"city": "5", "places": ["5", "b"]})");
  EXPECT_EQ(nested("<where><zip>01</zip><n>1</n></where><places></places><city> </city></invoke>"),
            R"({"where": {"zip": "01", "n": 1}, "places": [], "city": " "})");
  EXPECT_EQ(nested("<city>a \\<b> \\</city> ]\\<]m</city></invoke>"),
            R"({"city": "a <b> </city> ]<]m"})");
  EXPECT_EQ(nested("<places>[1, 2]</places><where>\n{\"a\": 1}\n</where></invoke>"),
            R"({"places": [1, 2], "where": {"a": 1}})");
  EXPECT_EQ(nested("<a><b><item>1</item><item><c>x</c></item></b></a></invoke>", nullptr),
            R"({"a": {"b": [1, {"c": "x"}]}})");
}

TEST(NestedReader, Faults) {
  EXPECT_EQ(nested("x"), "! a tag is expected");
  EXPECT_EQ(nested("</where>"), "! a tag without its begin");
  EXPECT_EQ(nested("<city>a</city><city>"), "! a name comes twice");
  EXPECT_EQ(nested("<a><item>1</item><b>", nullptr), "! an array has elements that are no items");
  EXPECT_EQ(nested("<a><b>1</b></invoke>", nullptr), "! a tag without its begin");
  EXPECT_EQ(nested("<city>\xff"), "! not UTF-8");
  std::string deep;
  for (int i = 0; i < 300; ++i) deep += "<a>";
  EXPECT_EQ(nested(deep, nullptr), "! nested too deep");
}

}  // namespace
}  // namespace gen::calls
