// SPDX-License-Identifier: Apache-2.0
// No builtin makes text of a stranger the template's own: each filter, test, function and method of
// the tables, with a stranger's text in each argument in turn. The same call is made with two
// strangers' texts of one shape, and what comes out as the template's own must not depend on which.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/sanitized.h"
#include "template/json.h"
#include "template/template.h"
#include "template/text_filters.h"

namespace gen::templates {
namespace {

enum class Made { kText, kNoText, kRefused };

// What the template's own words of a rendering are.
Made own_words(const Template& compiled, const Value& stranger, std::string* own) {
  RenderOptions options;
  options.now = LocalTime{};
  const auto text = compiled.render({{"x", stranger}}, options);
  if (!text.ok()) {
    const bool no_text =
        std::string_view(text.status().message()).find("has no text") != std::string_view::npos;
    return no_text ? Made::kNoText : Made::kRefused;
  }
  own->clear();
  text.value().runs(0, text.value().size(), [&](std::string_view run, Writer writer) {
    if (writer == Writer::kTemplate) own->append(run);
  });
  return Made::kText;
}

struct Pair {
  std::string one;
  std::string other;
  bool alike = true;  // no builtin tells them apart
};

// What of the first of a pair may not be the template's own, as it is and as builtins write it.
const char* const kForeign[] = {"☃", "%E2%98%83", "u2603", "777", "7.75", "beef", "1df"};

// Texts of a stranger that some builtin takes for something: a snowman in one, a cloud in the
// other.
std::vector<Pair> texts() {
  std::vector<Pair> made;
  for (const std::string shape :
       {"@", "@<9", "<|@|>", "%Y@%d", "%@Y", "@%%", "{:@>9}", "{:{}}@", "%(k)9s@", "@ @", "@\n@\n",
        "@://", "www.@.org", "a@@b.org", "<b>@</b> @", "@@@@@@@@@@@@"}) {
    Pair pair;
    for (const char c : shape) {
      pair.one += c == '@' ? "☃" : std::string(1, c);
      pair.other += c == '@' ? "☁" : std::string(1, c);
    }
    made.push_back(std::move(pair));
  }
  made.push_back({"777", "888", false});
  made.push_back({"7.75", "8.25", false});
  made.push_back({"x", "d", false});  // forms of a number
  made.push_back({"777x", "888d", false});
  return made;
}

std::string quoted(const std::string& text) {
  std::string made = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') made += '\\';
    if (c == '\n' || c == '\t') {
      made += c == '\n' ? "\\n" : "\\t";
    } else {
      made += c;
    }
  }
  return made + "\"";
}

// The values in which a stranger's text may come, as JSON.
std::vector<Pair> strangers() {
  std::vector<Pair> made;
  for (const Pair& text : texts()) {
    const std::string a = quoted(text.one);
    const std::string b = quoted(text.other);
    made.push_back({a, b, text.alike});
    made.push_back({"[" + a + "]", "[" + b + "]", text.alike});
    made.push_back({"{" + a + ": " + a + "}", "{" + b + ": " + b + "}", text.alike});
    if (text.one.size() > 9) continue;
    made.push_back({"[[" + a + ", " + a + "]]", "[[" + b + ", " + b + "]]", text.alike});
    made.push_back({"[{\"k\": " + a + "}]", "[{\"k\": " + b + "}]", text.alike});
  }
  for (const char* const number : {"777", "-777", "-777.5", "-77777777777777777777"}) {
    made.push_back({number, number});
  }
  made.push_back({"[777, 777]", "[888, 888]", false});
  made.push_back({"[\"☃\", \"☃☃\"]", "[\"☁\", \"☁☁\"]"});
  return made;
}

// Calls of one builtin with x at one place.
struct Calls {
  std::string name;
  std::vector<std::string> calls;
  std::vector<std::string> templates;  // that make them otherwise
};

// What stands at the other places.
const char* const kOthers[] = {"12", "'k'", "479"};
const char* const kObjects[] = {"'a b'",      "'{:{}}'",      "'%s'", "['a', 'k']",
                                "{'k': 'v'}", "[{'k': 'v'}]", "48879"};

// Arguments with x at `place`, and `other` at those before and, if they are given, behind it.
std::string arguments(size_t place, size_t count, const std::string& other) {
  std::string made;
  for (size_t i = 0; i < count; ++i) {
    made += (i > 0 ? ", " : "") + (i == place ? std::string("x") : other);
  }
  return made;
}

Calls calls_of(const Builtin& builtin, const char* before, const char* behind, bool of_object) {
  const std::string name(builtin.name);
  Calls made{std::string(before) + name, {}, {}};
  const auto add = [&](const std::string& object, const std::string& args) {
    std::string call = before + name + (args.empty() && of_object ? behind : "(" + args + ")");
    if (of_object) call = "(" + object + ")" + call;
    made.calls.push_back(std::move(call));
  };
  if (of_object) add("x", "");
  const size_t most = builtin.any ? 3 : builtin.params.size();
  for (const char* const other : kOthers) {
    for (size_t count = 1; count <= most; ++count) {
      if (of_object) add("x", arguments(count, count, other));
      for (size_t place = 0; place < count; ++place) {
        for (const char* const object : kObjects) {
          add(object, arguments(place, count, other));
          if (!of_object) break;
        }
      }
    }
  }
  for (const char* const object : kObjects) {
    for (const std::string_view param : builtin.params) {
      if (!param.empty()) add(object, std::string(param) + "=x");
    }
    if (builtin.any || !builtin.params.size()) {
      add(object, "**x");
      add(object, "k=x");
      add(object, "*x");
      add(object, "'k', *x");
    }
    if (!of_object) break;
  }
  return made;
}

std::vector<Calls> all_calls() {
  std::vector<Calls> made;
  for (const auto& rows : {text_filters(), row_filters()}) {
    for (const Builtin& one : rows) {
      made.push_back(calls_of(one, "|", "", true));
      // Within those that call a filter by its name.
      if (one.name == "map") {
        for (const Builtin& inner : text_filters()) {
          made.back().templates.push_back("{{ ['k', x]|map('" + std::string(inner.name) +
                                          "')|list }}");
        }
      }
    }
  }
  for (const Builtin& one : all_tests()) {
    made.push_back(calls_of(one, " is ", "", true));
    const std::string name = "'" + std::string(one.name) + "'";
    made.back().templates.push_back("{{ [x, 'k']|select(" + name + ")|list }}");
    made.back().templates.push_back("{{ [x, 'k']|select(" + name + ", 'k')|list }}");
    made.back().templates.push_back("{{ ['k']|select(" + name + ", x)|list }}");
  }
  for (const auto& rows : {text_methods(), dict_methods(), sequence_methods()}) {
    for (const Builtin& one : rows) made.push_back(calls_of(one, ".", "()", true));
  }
  for (const Builtin& one : all_functions()) {
    if (one.name[0] != ' ') {
      made.push_back(calls_of(one, "", "", false));
      continue;
    }
    // Methods of what the language makes: their calls are those of loops and cyclers.
    Calls calls{std::string(one.name), {}, {}};
    const std::string method(one.name.substr(one.name.find('.') + 1));
    if (one.name.starts_with(" loop.")) {
      calls.templates.push_back("{% for i in [1, 2] %}{{ loop." + method +
                                "(x, 'k') }}{% endfor %}");
    } else {
      calls.templates.push_back("{% set c = cycler(x, 'k') %}{{ c." + method +
                                "() }}{{ c.current }}");
    }
    made.push_back(std::move(calls));
  }
  // What is no builtin but takes arguments in the same way.
  made.push_back(
      {"macro",
       {},
       {"{% macro m() %}{{ kwargs }}{{ varargs }}{% endmacro %}{{ m(**x) }}",
        "{% macro m() %}{{ kwargs }}{{ varargs }}{% endmacro %}{{ m(*x) }}",
        "{% macro m() %}{% for k in kwargs %}{{ k }}{% endfor %}{% endmacro %}{{ m(**x) }}",
        "{% macro m(k) %}{{ k }}{% endmacro %}{{ m(x) }}",
        "{% macro m() %}{{ caller(**x) }}{% endmacro %}{% call m() %}{{ kwargs }}{% endcall %}"}});
  made.push_back({"operators",
                  {},
                  {"{{ x % 7 }}",
                   "{{ x % 'k' }}",
                   "{{ x % (7, 'k') }}",
                   "{{ '%s%9s' % (x, x) }}",
                   "{{ x + x }}",
                   "{{ x * 2 }}",
                   "{{ x ~ 1 }}",
                   "{{ x[0] }}",
                   "{{ x[:1] }}",
                   "{{ x[::-1] }}",
                   "{{ {x: x} }}",
                   "{{ '%c' % x }}",
                   "{{ '%' ~ x ~ 'd' }}",
                   "{{ ('%' ~ x) % 7 }}",
                   "{{ -(x|float) }}",
                   "{{ -(x|int) }}",
                   "{{ +(x|float) }}",
                   "{{ (x|float)|round(1) }}",
                   "{{ (x|int)|abs }}",
                   "{{ range(x|int)|last }}",
                   "{{ range(5000, 5000 + (x|int))|list }}",
                   "{{ '%x' % (x|int) }}",
                   "{{ '{:c}'.format(x|int) }}",
                   "{{ (x|float)|int }}",
                   "{{ (x|float) // 1 }}"}});
  return made;
}

// The ways to print what a call makes: as it is, row by row, and called.
std::vector<std::string> printed(const std::string& call) {
  return {"{{ " + call + " }}", "{% for v in " + call + " %}{{ v }}{% endfor %}",
          "{% set o = " + call + " %}{{ o() }}{{ o() }}",
          "{% set o = " + call + " %}{{ o.next() }}{{ o.current }}"};
}

struct Stranger {
  Pair shown;
  Value one;
  Value other;
};

// How many calls were taken by one of the templates, which are tried in order.
size_t check(const std::vector<std::string>& sources, const std::vector<Stranger>& strangers) {
  std::vector<std::shared_ptr<const Template>> compiled;
  for (const std::string& source : sources) {
    auto made = Template::compile(source);
    if (made.ok()) compiled.push_back(*made);
  }
  size_t taken = 0;
  for (const Stranger& stranger : strangers) {
    for (const auto& one : compiled) {
      std::string first;
      std::string second;
      const Made made = own_words(*one, stranger.one, &first);
      if (made == Made::kRefused && one == compiled.front()) break;  // whichever way it is printed
      if (made != Made::kText || own_words(*one, stranger.other, &second) != Made::kText) continue;
      ++taken;
      bool leaks = stranger.shown.alike && first != second;
      for (const char* const foreign : kForeign) leaks |= first.find(foreign) != std::string::npos;
      if (!leaks) break;  // else the next way to print it would say the same
      ADD_FAILURE() << sources[0] << " with " << stranger.shown.one << ": " << first << " and "
                    << second;
      return taken;
    }
  }
  return taken;
}

TEST(Origin, NoBuiltinMakesATextTheTemplatesOwn) {
  Heap heap;
  std::vector<Stranger> given;
  for (const Pair& pair : strangers()) {
    auto one = read_json(pair.one, &heap, Writer::kUser);
    auto other = read_json(pair.other, &heap, Writer::kUser);
    ASSERT_TRUE(one.ok() && other.ok()) << pair.one;
    given.push_back({pair, *one, *other});
  }
  // Those that take nothing, or end the rendering.
  const std::set<std::string> kSilent = {"raise_exception", ".encode"};
  test::Thinned thinned(3);
  for (const Calls& calls : all_calls()) {
    size_t taken = 0;
    for (const std::string& call : std::set<std::string>(calls.calls.begin(), calls.calls.end())) {
      if (thinned.skips() && taken > 0) continue;
      taken += check(printed(call), given);
    }
    for (const std::string& source : calls.templates) taken += check({source}, given);
    EXPECT_TRUE(taken > 0 || kSilent.count(calls.name) > 0) << calls.name << " took nothing";
  }
}

}  // namespace
}  // namespace gen::templates
