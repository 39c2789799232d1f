// SPDX-License-Identifier: Apache-2.0
// What grammars of calls cost: 22 tools with 10 arguments each, in every format. Prints how long
// the grammar takes to compile, to prepare for a vocabulary, and per token of calls with text
// before them: the mask, with accepting the token before it; cold, and once more.
//   call_grammar_bench [size of the vocabulary]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/vocabularies.h"
#include "calls/call_grammar.h"
#include "calls/call_values.h"
#include "calls/format_table.h"
#include "grammar/matcher/matcher.h"

namespace gen::calls {
namespace {

using namespace grammar::bench;
using grammar::JsonValue;

Tool random_tool(std::mt19937& random, int number) {
  static const char* const kTypes[] = {
      R"({"type":"string","description":"some words"})",
      R"({"type":"string","maxLength":200})",
      R"({"type":"integer","minimum":0,"maximum":100})",
      R"({"type":"boolean"})",
      R"({"type":"string","enum":["first","second","third"]})",
      R"({"type":"array","items":{"type":"string"}})",
      R"({"type":"string","format":"date-time"})",
      R"({"type":["string","null"]})",
      R"({"type":"object","properties":{"x":{"type":"number"},"y":{"type":"number"}},"required":["x","y"]})",
      R"({"type":"number"})"};
  std::string members;
  for (int i = 0; i < 10; ++i) {
    members += (i > 0 ? ",\"" : "\"") + random_word(random) + std::to_string(i) +
               "\":" + kTypes[(i + number) % 10];
  }
  return make_tool("tool_" + random_word(random) + std::to_string(number), "",
                   R"({"type":"object","properties":{)" + members + "}}")
      .value();
}

struct Times {
  double mean = 0;
  double worst = 0;
};

Times read(grammar::Matcher& matcher, const std::vector<int32_t>& tokens, bool* taken) {
  std::vector<uint64_t> mask(matcher.grammar().vocabulary().words());
  Times times;
  matcher.reset();
  for (const int32_t token : tokens) {
    const double begin = now_micros();
    *taken &= matcher.mask(mask).ok() && matcher.accept_token(token).value();
    const double one = micros(begin);
    times.mean += one / static_cast<double>(tokens.size());
    times.worst = std::max(times.worst, one);
  }
  return times;
}

int run(size_t size) {
  const auto vocabulary = synthetic(size);
  std::mt19937 random(3);
  Tools tools;
  for (int i = 0; i < 22; ++i) tools.push_back(random_tool(random, i));
  test::Random draw(9);
  std::printf("%-16s %10s %10s %10s %10s %10s %10s\n", "format", "compile ms", "prepare ms",
              "cold us", "worst us", "warm us", "worst us");
  for (const auto& format : call_formats()) {
    tokenizer::VocabSpec spec;
    const double begin = now_micros();
    auto made = call_grammar(*format, tools, spec, {});
    const double compile = micros(begin);
    if (!made.ok()) {
      std::printf("%-16s %s\n", format->name.c_str(), made.status().message());
      continue;
    }
    const double next = now_micros();
    const auto over = (*made)->over(vocabulary).value();
    const double prepare = micros(next);
    auto matcher = grammar::Matcher::create(over).value();
    std::vector<std::vector<int32_t>> answers;
    for (int i = 0; i < 20; ++i) {
      const Tool& tool = tools[draw.below(tools.size())];
      JsonValue value = JsonValue::object();
      for (const auto& [name, schema] : tool.schema.find("properties")->members) {
        const auto* type = schema.find("type");
        if (schema.find("enum") != nullptr) {
          value.add(name, JsonValue::of_string("second"));
        } else if (type->text == "integer") {
          value.add(name, test::number(42));
        } else if (type->text == "string" && schema.find("format") == nullptr) {
          value.add(name, JsonValue::of_string("some words of a text, and more of them"));
        }
      }
      const bool plain = !format->messages && !format->bare();
      const std::string text =
          (plain ? "I will look that up. " : "") + test::call_text(*format, tool.name, value);
      answers.push_back(spell(*vocabulary, text));
    }
    bool taken = true;
    Times cold;
    Times warm;
    for (Times* const times : {&cold, &warm}) {
      for (const auto& answer : answers) {
        const Times one = read(matcher, answer, &taken);
        times->mean += one.mean / static_cast<double>(answers.size());
        times->worst = std::max(times->worst, one.worst);
      }
    }
    std::printf("%-16s %10.1f %10.1f %10.1f %10.1f %10.1f %10.1f%s\n", format->name.c_str(),
                compile / 1000, prepare / 1000, cold.mean, cold.worst, warm.mean, warm.worst,
                taken ? "" : "  refused");
    if (!taken) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace gen::calls

int main(int argc, char** argv) {
  return gen::calls::run(argc > 1 ? static_cast<size_t>(std::atoi(argv[1])) : 128000);
}
