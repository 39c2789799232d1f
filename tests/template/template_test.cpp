// SPDX-License-Identifier: Apache-2.0
// Who wrote what in a rendering, what is refused with which status, and that every bound holds.
#include "template/template.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cstdio>
#include <string>

#include "template/json.h"

namespace gen::templates {
namespace {

std::shared_ptr<const Template> must_compile(std::string_view source) {
  auto compiled = Template::compile(source);
  EXPECT_TRUE(compiled.ok()) << compiled.status().message();
  return compiled.ok() ? *compiled : nullptr;
}

// The rendering with what the user wrote in braces.
std::string marked(std::string_view source, std::string_view json) {
  Heap heap;
  auto given = read_json(json, &heap, Writer::kUser);
  if (!given.ok()) return given.status().message();
  Variables variables;
  for (const auto& [key, value] : given->dict().entries) {
    variables.emplace_back(std::string(key.view()), value);
  }
  const auto compiled = must_compile(source);
  if (!compiled) return "";
  auto text = compiled->render(variables);
  if (!text.ok()) return text.status().message();
  std::string made;
  text->runs(0, text->size(), [&](std::string_view run, Writer writer) {
    made += writer == Writer::kUser ? "{" + std::string(run) + "}" : std::string(run);
  });
  return made;
}

Status status_of(std::string_view source, const Limits& limits = {}) {
  auto compiled = Template::compile(source);
  if (!compiled.ok()) return compiled.status();
  RenderOptions options;
  options.limits = limits;
  return (*compiled)->render({}, options).status();
}

// A program may have set the locale of its user.
TEST(Template, NumbersHavePointsInAnyLocale) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  const char* set = nullptr;
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "ru_RU.UTF-8", "pt_BR.UTF-8"}) {
    if (set == nullptr) set = std::setlocale(LC_ALL, name);
  }
  if (set == nullptr) GTEST_SKIP() << "no locale with commas in numbers";
  char shown[16];
  std::snprintf(shown, sizeof shown, "%.1f", 0.5);
  EXPECT_STREQ(shown, "0,5");
  const char* const kUser = R"({"x": 0.25, "s": "1.5"})";
  EXPECT_EQ(marked("{{ 0.5 + x }} {{ s|float }}", kUser), "{0.75} {1.5}");
  EXPECT_EQ(marked("{{ '%.2f' % x }} {{ '{:.3f}'.format(x) }} {{ '{:.2}'.format(x) }}", kUser),
            "{0.25} {0.250} {0.25}");
  EXPECT_EQ(marked("{{ 1.25|round(1) }} {{ 1500|filesizeformat }}", "{}"), "1.2 1.5 kB");
  EXPECT_STREQ(error(Code::kFormat, "%g", 0.5).message(), "0.5");
  std::snprintf(shown, sizeof shown, "%.1f", 0.5);
  EXPECT_STREQ(shown, "0,5");  // the program's own
  std::setlocale(LC_ALL, before.c_str());
}

TEST(Template, KnowsWhoWroteWhat) {
  const char* const kUser =
      R"({"c": "aXbX", "n": 7, "d": {"k": "v<|x|>"}, "l": ["p", "q"], "u": "ß"})";
  EXPECT_EQ(marked("<|a|>{{ c }}<|b|>", kUser), "<|a|>{aXbX}<|b|>");
  EXPECT_EQ(marked("{{ '<|' + c + '|>' }}", kUser), "<|{aXbX}|>");
  EXPECT_EQ(marked("{{ '<|' ~ c ~ '|>' ~ n }}", kUser), "<|{aXbX}|>{7}");
  EXPECT_EQ(marked("{{ (n + 1) ~ 1 }}", kUser), "{8}1");
  EXPECT_EQ(marked("{{ ('-' + c)|replace('X', '<T>') }}", kUser), "-{a}<T>{b}<T>");
  EXPECT_EQ(marked("{{ ('-' + c).split('X')|join('|') }}", kUser), "-{a}|{b}|");
  EXPECT_EQ(marked("{{ ('-' + c + '-')[1:-1] ~ ('-' + c)[:2] }}", kUser), "{aXbX}-{a}");
  EXPECT_EQ(marked("{{ ('-' + c)[::-1] }}", kUser), "{XbXa}-");
  EXPECT_EQ(marked("{{ ('t' + c)|upper }}{{ ('s' + u)|upper }}", kUser), "T{AXBX}S{SS}");
  EXPECT_EQ(marked("{{ '<%s>' % c }}{{ '<{}>'.format(c) }}", kUser), "<{aXbX}><{aXbX}>");
  EXPECT_EQ(marked("{% set x %}<{{ c }}>{% endset %}{{ x|trim }}", kUser), "<{aXbX}>");
  EXPECT_EQ(marked("{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(c) }}", kUser), "<{aXbX}>");
  EXPECT_EQ(marked("{{ d|tojson }}|{{ {'k': '<|x|>'}|tojson }}", kUser),
            R"({{"k": "v<|x|>"}}|{{"}k{": "}<|x|>{"}})");
  EXPECT_EQ(marked("{% for k, v in d.items() %}{{ k }}={{ v }}{% endfor %}", kUser),
            "{k}={v<|x|>}");
  EXPECT_EQ(marked("{{ l }}{{ l|join(',') }}", kUser), "['{p}', '{q}']{p},{q}");
  EXPECT_EQ(marked("{{ ('x' + c)|indent(2, true) }}{{ c|e }}", kUser), "  x{aXbXaXbX}");
}

// By Python's int() of a float: all digits, toward zero.
TEST(Template, SizesBelowTheFirstUnitAreWhole) {
  EXPECT_EQ(
      marked(
          "{{ (-7.7e19)|filesizeformat }},{{ (-0.5)|filesizeformat }},{{ 999.9|filesizeformat }}",
          "{}"),
      "-77000000000000000000 Bytes,0 Bytes,999 Bytes");
  EXPECT_EQ(status_of("{{ '-inf'|filesizeformat }}").code(), Code::kInvalidArgument);
}

// By Python's "%c" % number.
TEST(Template, ACharacterByItsNumber) {
  EXPECT_EQ(marked("{{ '%c' % 65 }}{{ '<%3c>' % 8364 }}{{ '%c' % true }}{{ '%05c' % '-' }}", "{}"),
            "A<  €>\x01    -");
  EXPECT_EQ(marked("{{ '%c' % n }}", R"({"n": 60})"), "{<}");
  for (const char* wrong : {"{{ '%c' % -1 }}", "{{ '%c' % 1114112 }}", "{{ '%c' % 55296 }}",
                            "{{ '%c' % 65.0 }}", "{{ '%c' % 'ab' }}"}) {
    EXPECT_EQ(status_of(wrong).code(), Code::kInvalidArgument) << wrong;
  }
}

TEST(Template, StatusesAndMessages) {
  EXPECT_EQ(status_of("{% if %}").code(), Code::kFormat);
  EXPECT_STREQ(status_of("a\n{{ x | nope }}").message(),
               "template line 2: no filter is named 'nope'");
  EXPECT_EQ(status_of("{{ x | nope }}").code(), Code::kUnsupported);
  EXPECT_NE(std::string(status_of("{{ [1]|random }}").message()).find("'random'"),
            std::string::npos);
  EXPECT_EQ(status_of("{{ [1]|random }}").code(), Code::kUnsupported);
  EXPECT_STREQ(status_of("{{ x is nope }}").message(), "template line 1: no test is named 'nope'");
  EXPECT_STREQ(status_of("{% nope %}").message(), "template line 1: no tag is named 'nope'");
  EXPECT_STREQ(status_of("\n\n{{ raise_exception('Roles must\\nalternate') }}").message(),
               "template line 3: the template says: Roles must alternate");
  EXPECT_EQ(status_of("{{ raise_exception('x') }}").code(), Code::kInvalidArgument);
  EXPECT_STREQ(status_of("{% for m in [1] %}\n{{ m.x.y }}{% endfor %}").message(),
               "template line 2: int has no 'x'");
  EXPECT_EQ(Template::compile("\xff").status().code(), Code::kFormat);
  // What Jinja2 has and we do not is named.
  const Status escapes = status_of("\n{% autoescape true %}{{ x }}{% endautoescape %}");
  EXPECT_EQ(escapes.code(), Code::kUnsupported);
  EXPECT_STREQ(
      escapes.message(),
      "template line 2: autoescape is for HTML and not supported; {% autoescape false %} is");
  const Status bytes = status_of("{{ 'a'.encode('utf-8') }}");
  EXPECT_EQ(bytes.code(), Code::kUnsupported);
  EXPECT_NE(std::string(bytes.message()).find("text.encode makes bytes"), std::string::npos);
  EXPECT_STREQ(status_of("{% block b %}{% endblock %}\n{% block b %}{% endblock %}").message(),
               "template line 2: block 'b' is there twice");
}

// What is printed of a range is who wrote its numbers'.
TEST(Template, RangesAreWhoseTheirNumbersAre) {
  EXPECT_EQ(marked("{{ range(2) }}{{ range(n) }}", R"({"n": 3})"), "range(0, 2)range({0}, {3})");
}

TEST(Template, BoundsHold) {
  const auto is = [](std::string_view source, Code code, const Limits& limits = {}) {
    const Status status = status_of(source, limits);
    EXPECT_EQ(status.code(), code) << source << ": " << status.message();
  };
  Limits few;
  few.steps = 1000;
  Limits tight;
  tight.memory = 100'000;
  is("{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}",
     Code::kOutOfRange, few);
  is("{% for a in range(10) %}{% endfor %}", Code::kOk, few);
  is("{{ 'x' * 200000 }}", Code::kOutOfRange, tight);
  is("{{ 'x' * 9223372036854775807 }}", Code::kOutOfRange);
  is("{{ [1] * 9223372036854775807 }}", Code::kOutOfRange);
  is("{% set ns = namespace(s='x') %}{% for i in range(40) %}{% set ns.s = ns.s + ns.s %}{% endfor "
     "%}",
     Code::kOutOfRange, tight);
  is("{% for i in range(10000) %}0123456789{% endfor %}{{ 1 }}", Code::kOutOfRange, tight);
  is("{{ 'aaaa'.replace('', 'x' * 90000) }}", Code::kOutOfRange, tight);
  is("{{ '%99999999d' % 1 }}", Code::kInvalidArgument);
  is("{{ 'x'|center(999999) }}", Code::kOutOfRange, tight);
  for (const char* use : {"center", "ljust", "rjust"}) {  // times 4 bytes is 0 in 64 bits
    is("{{ 'a'." + std::string(use) + "(4611686018427387904, '\U0001F600') }}", Code::kOutOfRange,
       tight);
  }
  is("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", Code::kOutOfRange);
  is("{% for x in [[]] recursive %}{{ loop([[]]) }}{% endfor %}", Code::kOutOfRange);
  is("{% block b %}{{ self.b() }}{% endblock %}", Code::kOutOfRange);
  is("{% block b %}{% for i in range(9) %}{{ self.b() }}{% endfor %}{% endblock %}",
     Code::kOutOfRange);
  is("{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns.a == ns.a }}", Code::kOk);
  is("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}", Code::kUnsupported);
  is("{{ " + std::string(5000, '-') + "1 }}", Code::kUnsupported);
  std::string blocks;
  for (int i = 0; i < 5000; ++i) blocks += "{% if 1 %}";
  is(blocks, Code::kUnsupported);
  std::string sum = "{{ 1";
  for (int i = 0; i < 5000; ++i) sum += " + 1";
  is(sum + " }}", Code::kOk);
  is("{{ 9223372036854775807 + 1 }}", Code::kOutOfRange);
  is("{{ (-9223372036854775807 - 1) // -1 }}", Code::kOutOfRange);
}

// What shares parts is small and takes forever to compare; each of these ran for minutes.
TEST(Template, NothingTakesForever) {
  const auto code = [](const std::string& source) { return status_of(source, {}).code(); };
  const auto doubled = [](const std::string& of, const std::string& use) {
    return "{% set n = namespace(l=[1], m=[1]) %}{% for i in range(60) %}{% set n.l = " + of +
           "n.l" +
           (of == "("   ? ", n.l)"
            : of == "[" ? ", n.l]"
                        : "}") +
           " %}{% set n.m = " + of + "n.m" +
           (of == "("   ? ", n.m)"
            : of == "[" ? ", n.m]"
                        : "}") +
           " %}{% endfor %}{{ " + use + " }}";
  };
  for (const char* use : {"n.l == n.m", "n.l in [n.m]", "[n.l, n.m]|sort", "[n.l, n.m]|max",
                          "[n.l].count(n.m)", "[n.l].index(n.m)", "n.l < n.m"}) {
    EXPECT_EQ(code(doubled("[", use)), Code::kOutOfRange) << use;
  }
  EXPECT_EQ(
      code("{% set n = namespace(l=(1,), m=(1,)) %}{% for i in range(60) %}{% set n.l = (n.l, n.l) "
           "%}{% set n.m = (n.m, n.m) %}{% endfor %}{{ {n.l: 1} }}"),
      Code::kInvalidArgument);
  EXPECT_EQ(code("{% set n = namespace(l=[], m=[]) %}{% for i in range(1000) %}{% set n.l = [n.l] "
                 "%}{% set n.m = [n.m] %}{% endfor %}{{ n.l == n.m }}"),
            Code::kOutOfRange);
  EXPECT_EQ(code("{% set l = ['a' * 1000000] * 100 %}{% set m = ['a' * 1000000] * 100 %}"
                 "{% for i in range(1000) %}{% set x = l == m %}{% endfor %}"),
            Code::kOutOfRange);
  std::string params;
  for (int i = 0; i < 1000; ++i) params += (i > 0 ? ", a" : "a") + std::to_string(i) + "=1";
  EXPECT_EQ(code("{% macro f(" + params +
                 ") %}{% endmacro %}{% for i in range(10000) %}{{ f() }}"
                 "{% endfor %}"),
            Code::kOutOfRange);
  for (int i = 1000; i < 1030; ++i) params += ", a" + std::to_string(i) + "=1";
  EXPECT_EQ(code("{{ dict(" + params + ") }}"), Code::kFormat);
  EXPECT_EQ(code("{% macro f(" + params + ") %}{% endmacro %}"), Code::kFormat);
  std::string names;
  for (int i = 0; i < 50000; ++i) names += "{% set a" + std::to_string(i) + " = 1 %}";
  EXPECT_EQ(code(names), Code::kOutOfRange);
}

// Values that are looked for among keys and names cost steps.
TEST(Template, LookUpsCountAsSteps) {
  const auto code = [](const std::string& source, uint64_t steps) {
    Limits limits;
    limits.steps = steps;
    return status_of(source, limits).code();
  };
  const auto numbers = [](int count) {
    std::string made = "{0: 0";
    for (int i = 1; i < count; ++i) made += ", " + std::to_string(i) + ": 0";
    return made + "}";
  };
  const std::string tuple = "{% set t = (0,) * 9000 %}{% set d = {} %}";
  for (const char* const use : {"d[t]", "d.get(t)", "t in d", "t in d.keys()", "{t: 1}",
                                "dict([(t, 1)])", "[t]|unique|list"}) {
    EXPECT_EQ(code(tuple + "{% for i in range(200) %}{% if " + use + " %}{% endif %}{% endfor %}",
                   1'000'000),
              Code::kOutOfRange)
        << use;
  }
  EXPECT_EQ(code("{{ " + numbers(1000) + "|length }}", 700'000), Code::kOk);
  EXPECT_EQ(code("{{ " + numbers(1000) + "|length }}", 400'000), Code::kOutOfRange);
  EXPECT_EQ(code("{{ dict(" + numbers(1000) + ")|length }}", 700'000), Code::kOutOfRange);
  EXPECT_EQ(code("{{ " + numbers(1000) + " == " + numbers(1000) + " }}", 1'300'000),
            Code::kOutOfRange);
  std::string names = "a0=0";
  for (int i = 1; i < 1000; ++i) names += ", a" + std::to_string(i) + "=0";
  EXPECT_EQ(code("{% set ns = namespace(" + names +
                     ") %}{% for i in range(1000) %}{{ ns.a999 }}{% endfor %}",
                 100'000),
            Code::kOutOfRange);
  EXPECT_EQ(code("{% set d = dict(" + names +
                     ") %}{% set k = 'k' * 100000 %}"
                     "{% for i in range(100) %}{% if k in d %}{% endif %}{% endfor %}",
                 100'000),
            Code::kOutOfRange);
}

// Where a part of the needle is everywhere, counting looked at all of it at each place, for
// seconds; grouping moved the digits for each zero.
TEST(Template, CountingAndGroupingOfLongTexts) {
  EXPECT_EQ(marked("{{ ('a' * 1000000).count('a' * 500000 ~ 'b') }}", "{}"), "0");
  std::string ones = "1";
  for (int i = 1; i < 200; ++i) ones += ", 1";
  EXPECT_EQ(marked("{{ ('{:0100000,}' * 200).format(" + ones + ")|length }}", "{}"), "20000200");
}

// What Python computes exactly beyond 64 bits is refused, never rounded.
TEST(Template, BigIntegersAreNotRounded) {
  const char* const kBig = R"({"n": 18446744073709551615, "m": -9223372036854775809,
                              "e": 9223372036854775808, "h": 1E400})";
  for (const char* const use :
       {"n + 1", "1 - n", "n * 1", "n // 2", "n % 7", "n ** 2", "n / 2", "-n", "-m", "n + n",
        "n + true", "[n, 1]|sum", "n is divisibleby 5", "7 is divisibleby n", "n|round(-1)"}) {
    EXPECT_EQ(marked("{{ " + std::string(use) + " }}", kBig),
              "template line 1: an integer beyond 64 bits")
        << use;
  }
  EXPECT_EQ(marked("{{ n }} {{ +n }} {{ n|abs }} {{ m|abs }} {{ n|round }} {{ n + 0.5 }}", kBig),
            "{18446744073709551615} {18446744073709551615} {18446744073709551615} "
            "{9223372036854775809} {18446744073709551615} {1.8446744073709552e+19}");
  EXPECT_EQ(
      marked("{{ n is odd }} {{ n is even }} {{ e is odd }} {{ e is even }} {{ m is odd }}", kBig),
      "True False False True True");
  EXPECT_EQ(marked("{{ e == 9223372036854775807 }} {{ 9223372036854775807 < e }} {{ e < n }} "
                   "{{ n < e }} {{ m < -9223372036854775807 - 1 }} {{ [n, e, 1, m]|sort }}",
                   kBig),
            "False True True False True [{-9223372036854775809}, 1, {9223372036854775808}, "
            "{18446744073709551615}]");
}

// Python's round() of an integer is exact.
TEST(Template, IntegersAreRoundedExactly) {
  const auto code = [](const char* source) { return status_of(source).code(); };
  EXPECT_EQ(code("{{ 1.5|round(-9223372036854775807-1) }}"), Code::kOutOfRange);
  EXPECT_EQ(code("{{ 9223372036854775807|round(-1) }}"), Code::kOutOfRange);
  EXPECT_EQ(code("{{ 9223372036854775807|round(-19) }}"), Code::kOutOfRange);
  EXPECT_EQ(marked("{{ 9007199254740993|round(-1) }} {{ 9223372036854775804|round(-1) }} "
                   "{{ (-9223372036854775804)|round(-1) }} {{ 25|round(-1) }} {{ 35|round(-1) }} "
                   "{{ (-25)|round(-1) }} {{ 4999999999999999999|round(-19) }} "
                   "{{ 9223372036854775807|round(-20) }} {{ true|round(-1) }}",
                   "{}"),
            "9007199254740990 9223372036854775800 -9223372036854775800 20 40 -20 0 0 0");
}

// Long needles are looked for in another way than short ones.
TEST(Template, LongTextsAreFound) {
  const std::string body = "{% set a = 'ab' * 40 %}{% set t = 'x' ~ a ~ a ~ 'c' ~ a ~ 'y' %}";
  const auto made = [&](const std::string& use) {
    auto text = must_compile(body + "{{ " + use + " }}")->render({});
    return std::string(text.ok() ? text->view() : text.status().message());
  };
  EXPECT_EQ(made("t.find(a ~ 'c')"), "81");
  EXPECT_EQ(made("t.find(a)"), "1");
  EXPECT_EQ(made("t.rfind(a)"), "162");
  EXPECT_EQ(made("t.find(a ~ a ~ a)"), "-1");
  EXPECT_EQ(made("t.rfind(a ~ 'd')"), "-1");
  EXPECT_EQ(made("(a ~ 'c') in t"), "True");
  EXPECT_EQ(made("t.replace(a, '-')"), "x--c-y");
  EXPECT_EQ(made("t.split(a)"), "['x', '', 'c', 'y']");
  EXPECT_EQ(made("t.rsplit(a, 1)|length"), "2");
  EXPECT_EQ(made("t.find(a, 2)"), "3");
  EXPECT_EQ(made("t.find(t)"), "0");
}

TEST(Template, ValuesStayAsTheyAre) {
  Heap heap;
  auto list = read_json("[1, 2]", &heap, Writer::kUser);
  ASSERT_TRUE(list.ok());
  const Variables variables = {{"l", *list}};
  const auto compiled = must_compile("{% set l = l + [3] %}{{ l|length }}{{ l|reverse|list }}");
  for (int i = 0; i < 2; ++i) {
    auto text = compiled->render(variables);
    ASSERT_TRUE(text.ok());
    EXPECT_EQ(text->view(), "3[3, 2, 1]");
  }
  EXPECT_EQ(list->sequence().values.size(), 2U);
}

TEST(Template, Clock) {
  for (const char* wrong : {"", "2024", "2024-13-01", "2024-02-30", "2023-02-29",
                            "2024-01-01T25:00", "2024-01-01x", "2024-01-01T10:00:00+"}) {
    EXPECT_FALSE(LocalTime::from_iso(wrong).ok()) << wrong;
  }
  auto time = LocalTime::from_iso("2024-02-29T23:59:58.25+02:00");
  ASSERT_TRUE(time.ok());
  EXPECT_EQ(format_time("%F %T %f %a %j", *time), "2024-02-29 23:59:58 250000 Thu 060");
}

TEST(Json, ReadsWhatJsonIs) {
  Heap heap;
  for (const char* wrong : {"", "{", "[1,]", "{\"a\":1,}", "01", "1.", ".5", "+1", "'a'", "\"\n\"",
                            "\"\\x\"", "tru", "1 2", "{\"a\" 1}", "[1 2]", "\xff", "\"\\u12\""}) {
    EXPECT_EQ(read_json(wrong, &heap, Writer::kUser).status().code(), Code::kInvalidArgument)
        << wrong;
  }
  EXPECT_FALSE(read_json(std::string(200, '['), &heap, Writer::kUser).ok());
  auto last = read_json("{\"a\": 1, \"b\": 2, \"a\": 3}", &heap, Writer::kUser);
  ASSERT_TRUE(last.ok());
  EXPECT_EQ(last->dict().entries.size(), 2U);
  EXPECT_EQ(last->dict().find("a")->integer, 3);
}

}  // namespace
}  // namespace gen::templates
