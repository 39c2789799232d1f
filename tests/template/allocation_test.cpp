// SPDX-License-Identifier: Apache-2.0
// What takes no memory, and what may take no more than its budget. This program counts through its
// own operator new.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "support/counting_new.h"
#include "template/json.h"
#include "template/template.h"

namespace gen::templates {
namespace {

// Comparisons do not throw, so they take no memory.
TEST(TemplateAllocation, BigIntegersAreReadInPlace) {
  Heap heap;
  const auto number = [&](const std::string& text) {
    auto made = read_json(text, &heap, Writer::kUser);
    EXPECT_TRUE(made.ok());
    return made.ok() ? *made : Value();
  };
  const Value big = number("123456789012345678901234567890");
  const Value low = number("-" + std::string(400, '9'));
  ASSERT_TRUE(big.is(Kind::kBigInt) && low.is(Kind::kBigInt));
  const size_t before = gen::test::news;
  const double read = as_double(big);
  const double least = as_double(low);
  const bool same = equal(big, Value::of(123456789012345678901234567890.0));
  EXPECT_EQ(gen::test::news - before, 0U);
  EXPECT_EQ(read, 123456789012345678901234567890.0);
  EXPECT_EQ(least, -INFINITY);
  EXPECT_TRUE(same);
}

// Bytes that a rendering takes whose limit is 2 MB.
size_t bytes_of(const std::string& source, Code expected, const Variables& variables = {}) {
  auto compiled = Template::compile(source);
  EXPECT_TRUE(compiled.ok()) << compiled.status().message();
  if (!compiled.ok()) return 0;
  RenderOptions options;
  options.limits.memory = 2'000'000;
  const size_t before = gen::test::new_bytes;
  const Status status = (*compiled)->render(variables, options).status();
  EXPECT_EQ(status.code(), expected) << source.substr(0, 100) << ": " << status.message();
  return gen::test::new_bytes - before;
}

constexpr size_t kBound = 16'000'000;  // the budget, and buffers that double

// Each of these took 20 to 200 MB before it was refused.
TEST(TemplateAllocation, TextsAreChargedBeforeTheyGrow) {
  for (const char* const source : {
           "{{ {'a'*100000: range(1000)|list}|pprint }}",
           "{{ range(1000)|list|tojson(separators=('x'*100000, ':')) }}",
           "{{ {'a': range(1000)|list}|tojson(separators=('x'*100000, ':')) }}",
           "{{ ([{'a': 1}]*1000)|tojson(separators=(',', 'x'*100000)) }}",
           "{{ range(1000)|list|tojson(indent='x'*100000) }}",
           "{{ ([{'a'*100000: 1}]*1000)|tojson }}",
           "{{ ('%(a).100000d' * 1000) % {'a': 1} }}",
           "{{ ('%(a).300f' * 50000) % {'a': 1e300} }}",
           "{{ ('{0:.300f}' * 50000).format(1e300) }}",
           "{{ ('{0:.300}' * 50000).format(1.1e-300) }}",
           "{{ [namespace(**{'a'*50000: 1})]*2000 }}",
       }) {
    EXPECT_LT(bytes_of(source, Code::kOutOfRange), kBound) << source;
  }
  const std::string name(50'000, 'm');
  EXPECT_LT(bytes_of("{% macro " + name + "() %}{% endmacro %}{{ [" + name + "]*2000 }}",
                     Code::kOutOfRange),
            kBound);
  Heap heap;
  auto number = read_json(std::string(50'000, '7'), &heap, Writer::kUser);
  ASSERT_TRUE(number.ok());
  const Variables variables = {{"n", *number}};
  EXPECT_LT(bytes_of("{{ [n]*2000 }}", Code::kOutOfRange, variables), kBound);
  EXPECT_LT(bytes_of("{{ ([n]*2000)|tojson }}", Code::kOutOfRange, variables), kBound);
}

// A part takes more than its bytes.
TEST(TemplateAllocation, PartsAreChargedWhileTextsAreSplit) {
  for (const char* const source :
       {"{{ ('a '*400000).split() }}", "{{ ('a '*400000).split(' ') }}",
        "{{ ('a '*400000).rsplit() }}", "{{ ('a '*400000).rsplit(none, 390000) }}",
        "{{ ('a '*400000).rsplit(' ') }}", "{{ ('a\n'*400000).splitlines() }}",
        "{{ ('a\n'*200000)|indent }}", "{{ ('a\n'*400000)|wordwrap }}",
        "{{ ('a\n'*200000)|pprint }}"}) {
    EXPECT_LT(bytes_of(source, Code::kOutOfRange), kBound) << source;
  }
}

// Neither a needle that is longer than the text nor brackets behind an address take much.
TEST(TemplateAllocation, SearchesTakeWhatTheirTextTakes) {
  EXPECT_LT(bytes_of("{% set n = 'a' * 900000 %}{% for i in range(100) %}{{ 'b'.find(n) }}"
                     "{{ 'b'.rfind(n) }}{% endfor %}",
                     Code::kOk),
            kBound);
  EXPECT_LT(bytes_of("{{ ('x' ~ '(' * 9000 ~ 'y' ~ ')' * 9000)|urlize }}", Code::kOk), kBound);
}

}  // namespace
}  // namespace gen::templates
