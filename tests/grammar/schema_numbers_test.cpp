// SPDX-License-Identifier: Apache-2.0
// Numbers under bounds, multipleOf and lists of values, against arithmetic over their digits as
// texts: short and long ones, with many zeros and nines, near the limits and far from them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "grammar/schema/number_dfa.h"
#include "grammar/schema_validator.h"

namespace gen::grammar {
namespace {

/// digits * 10^exponent.
struct Exact {
  bool negative = false;
  std::string digits;
  int exponent = 0;
};

Exact read(const std::string& text) {
  Exact made;
  size_t at = 0;
  if (text[at] == '-') made.negative = ++at > 0;
  bool fraction = false;
  for (; at < text.size() && (text[at] | 0x20) != 'e'; ++at) {
    if (text[at] == '.') {
      fraction = true;
    } else {
      made.digits += text[at];
      made.exponent -= fraction ? 1 : 0;
    }
  }
  if (at < text.size()) made.exponent += std::stoi(text.substr(at + 1));
  made.digits.erase(0, std::min(made.digits.find_first_not_of('0'), made.digits.size()));
  while (!made.digits.empty() && made.digits.back() == '0') {
    made.digits.pop_back();
    ++made.exponent;
  }
  if (made.digits.empty()) made = {};
  return made;
}

int compare(const Exact& a, const Exact& b) {
  if (a.digits.empty() && b.digits.empty()) return 0;
  const int sign_a = a.digits.empty() ? 0 : a.negative ? -1 : 1;
  const int sign_b = b.digits.empty() ? 0 : b.negative ? -1 : 1;
  if (sign_a != sign_b) return sign_a < sign_b ? -1 : 1;
  const int least = std::min(a.exponent, b.exponent);
  std::string x = a.digits + std::string(static_cast<size_t>(a.exponent - least), '0');
  std::string y = b.digits + std::string(static_cast<size_t>(b.exponent - least), '0');
  const size_t most = std::max(x.size(), y.size());
  x.insert(0, most - x.size(), '0');
  y.insert(0, most - y.size(), '0');
  return sign_a * x.compare(y);
}

bool is_multiple(const Exact& a, uint32_t divisor, int places) {
  if (a.digits.empty()) return true;
  if (a.exponent + places < 0) return false;
  uint32_t rest = 0;
  for (const char c : a.digits) rest = (rest * 10 + static_cast<uint32_t>(c - '0')) % divisor;
  for (int i = 0; i < a.exponent + places; ++i) rest = rest * 10 % divisor;
  return rest == 0;
}

std::string random_digits(std::mt19937& random, size_t most, const std::string& start) {
  static const char* const kKinds[] = {"0", "9", "0123456789", "05", "09"};
  const std::string kinds = kKinds[random() % 5];
  std::string made = random() % 3 == 0 ? start.substr(0, random() % (start.size() + 1)) : "";
  const size_t size = random() % (most + 1);
  while (made.size() < size) made += kinds[random() % kinds.size()];
  return made;
}

// An exponent comes where it is followed: behind at most 4 digits, and 17 behind the point.
std::string random_number(std::mt19937& random) {
  std::string whole = random_digits(random, 8, "1500");
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size()));
  if (whole.empty()) whole = "0";
  const std::string fraction = random_digits(random, random() % 2 == 0 ? 4 : 40, "0500");
  std::string made = (random() % 4 == 0 ? "-" : "") + whole;
  if (!fraction.empty()) made += "." + fraction;
  if (whole.size() <= 4 && fraction.size() <= 17 && random() % 3 == 0) {
    made += std::string("e") + (random() % 2 == 0 ? "-" : "") + std::to_string(random() % 24);
  }
  return made;
}

TEST(SchemaNumbers, AreJudgedByValue) {
  struct Case {
    const char* keywords;
    std::function<bool(const Exact&)> holds;
  };
  const auto against = [](const char* limit, auto fits) {
    return [limit = read(limit), fits](const Exact& x) { return fits(compare(x, limit)); };
  };
  const auto at_most = [](int order) { return order <= 0; };
  const auto at_least = [](int order) { return order >= 0; };
  const Case cases[] = {
      {R"("maximum":150)", against("150", at_most)},
      {R"("minimum":5)", against("5", at_least)},
      {R"("minimum":0.05)", against("0.05", at_least)},
      {R"("maximum":-1500)", against("-1500", at_most)},
      {R"("maximum":1e-9)", against("1e-9", at_most)},
      {R"("minimum":12345678901234567890.5)", against("12345678901234567890.5", at_least)},
      {R"("exclusiveMinimum":0)", against("0", [](int order) { return order > 0; })},
      {R"("exclusiveMaximum":1500)", against("1500", [](int order) { return order < 0; })},
      {R"("const":1500)", against("1500", [](int order) { return order == 0; })},
      {R"("multipleOf":0.05)", [](const Exact& x) { return is_multiple(x, 5, 2); }},
      {R"("multipleOf":300)", [](const Exact& x) { return is_multiple(x, 300, 0); }},
      {R"("multipleOf":1)", [](const Exact& x) { return is_multiple(x, 1, 0); }},
      {R"("minimum":-150,"maximum":1500)",
       [](const Exact& x) {
         return compare(x, read("-150")) >= 0 && compare(x, read("1500")) <= 0;
       }},
  };
  std::mt19937 random(25);
  for (const Case& one : cases) {
    const std::string body = "{" + std::string(one.keywords) + "}";
    test::Validator is(R"({"type":"number",)" + body.substr(1));
    test::Validator is_not(R"({"type":"number","not":)" + body + "}");
    size_t members = 0;
    for (int i = 0; i < 1500; ++i) {
      const std::string text = random_number(random);
      const bool holds = one.holds(read(text));
      members += holds ? 1 : 0;
      EXPECT_EQ(is(text), holds) << one.keywords << " " << text;
      EXPECT_EQ(is_not(text), !holds) << "not " << one.keywords << " " << text;
    }
    EXPECT_LT(members, 1500U) << one.keywords;
  }
}

// Of many bounds the tightest count, however many there are and in which order; a strict one before
// the other at the same value.
TEST(SchemaNumbers, TheTightestBoundsCount) {
  std::string all;
  for (int i = 0; i < 2000; ++i) {
    const std::string low = std::to_string(i * 7 % 2000);  // 0 to 1999
    all +=
        std::string(i > 0 ? "," : "") + R"({"minimum":)" + low + R"(,"maximum":1)" + low + "999}";
  }
  test::Validator many(R"({"type":"number","allOf":[)" + all + "]}");
  EXPECT_TRUE(many("1999"));
  EXPECT_FALSE(many("1998.9"));
  EXPECT_TRUE(many("10999"));  // the least maximum is that of 0
  EXPECT_FALSE(many("10999.1"));
  for (const char* schema : {R"({"type":"number","allOf":[{"minimum":5},{"exclusiveMinimum":5},
                                 {"minimum":4.9}]})",
                             R"({"type":"number","allOf":[{"exclusiveMinimum":5},{"minimum":5},
                                 {"not":{"maximum":4}}]})",
                             R"({"type":"number","not":{"maximum":5},"minimum":5})"}) {
    test::Validator above(schema);
    EXPECT_FALSE(above("5")) << schema;
    EXPECT_TRUE(above("5.01")) << schema;
  }
  test::Validator below(R"({"type":"number","allOf":[{"maximum":2},{"not":{"minimum":2}}]})");
  EXPECT_FALSE(below("2"));
  EXPECT_TRUE(below("1.99"));
  test::Validator between(R"({"type":"number","maximum":9,"not":{"maximum":5}})");
  EXPECT_TRUE(between("9"));
  EXPECT_FALSE(between("10"));
  EXPECT_FALSE(between("5"));
}

// Many zeros between the digits that count, of numbers and of the divisor.
TEST(SchemaNumbers, MultiplesOverManyZeros) {
  const test::SchemaCase cases[] = {
      {R"({"type":"number","multipleOf":64})",
       {"100032", "1000064", "10000064", "-100032.00", "1e6"},
       {"100034", "1000032", "10000032", "100032.5", "1e5"}},
      {R"({"type":"number","multipleOf":7e300})",
       {"7e300", "0.007e303", "0", "21e300"},
       {"7e299", "7", "8e300", "1e301"}},
  };
  for (const test::SchemaCase& one : cases) test::check(one);
}

// Several divisors at once, given in thousandths; so are the numbers.
TEST(SchemaNumbers, MultiplesOfSeveralNumbers) {
  const std::vector<std::vector<int>> lists = {{2500, 700},      {2500, 4000, 7000}, {10, 1500},
                                               {300, 200, 125},  {1, 1000},          {6000, 40},
                                               {99'991'000, 300}};
  const auto text_of = [](int64_t thousandths) {
    char text[40];
    std::snprintf(text, sizeof text, "%lld.%03d", static_cast<long long>(thousandths / 1000),
                  static_cast<int>(thousandths % 1000));
    return std::string(text);
  };
  std::mt19937 random(5);
  for (const std::vector<int>& list : lists) {
    for (const bool integer : {false, true}) {
      std::string schema = R"({"minimum":0,"maximum":100000000,"allOf":[{})";
      for (const int one : list) schema += R"(,{"multipleOf":)" + text_of(one) + "}";
      schema += integer ? R"(],"type":"integer"})" : R"(],"type":"number"})";
      ASSERT_EQ(test::refusal(schema), "");
      test::Validator validator(schema);
      size_t members = 0;
      for (int i = 0; i < 400; ++i) {
        // Multiples of some of them, and their neighbours.
        int64_t value = 1;
        for (const int one : list)
          value = random() % 4 == 0 ? value : std::lcm(value, int64_t{one});
        if (integer && random() % 2 == 0) value = std::lcm(value, int64_t{1000});
        value = value * static_cast<int64_t>(random() % 50) + (random() % 5 == 0 ? 1 : 0);
        bool wanted = value <= 100'000'000'000 && (!integer || value % 1000 == 0);
        for (const int one : list) wanted = wanted && value % one == 0;
        members += wanted ? 1 : 0;
        ASSERT_EQ(validator(text_of(value)), wanted) << schema << " " << text_of(value);
      }
      EXPECT_GT(members, 10U) << schema;
    }
  }
}

// What several have in common is computed once.
TEST(SchemaNumbers, MultiplesUnderTheSameBounds) {
  test::Validator items(R"({"type":"array","prefixItems":[
      {"type":"number","minimum":2,"multipleOf":7},
      {"type":"number","minimum":2,"multipleOf":3},
      {"type":"number","minimum":2,"multipleOf":7,"not":{"multipleOf":4}},
      {"type":"number","minimum":2,"not":{"multipleOf":4}},
      {"type":"number","minimum":-9,"multipleOf":7}]})");
  for (int i = -14; i <= 90; ++i) {
    const bool fits[] = {i >= 2 && i % 7 == 0, i >= 2 && i % 3 == 0,
                         i >= 2 && i % 7 == 0 && i % 4 != 0, i >= 2 && i % 4 != 0,
                         i >= -9 && i % 7 == 0};
    std::string before = "[";
    for (const bool one : fits) {
      EXPECT_EQ(items(before + std::to_string(i) + "]"), one) << before << i;
      before += &one == fits ? "7," : before.size() == 3 ? "3," : "7,";
    }
  }
}

TEST(SchemaNumbers, ManyRangesApart) {
  std::string all;
  for (int i = 0; i < 120; ++i) {
    all += std::string(i > 0 ? "," : "") + R"({"minimum":)" + std::to_string(10 * i) +
           R"(,"maximum":)" + std::to_string(10 * i + 5) + "}";
  }
  test::Validator ranges(R"({"type":"number","anyOf":[)" + all + "]}");
  for (int i = 0; i < 1300; ++i) {
    const std::string text = std::to_string(i);
    EXPECT_EQ(ranges(text), i < 1200 && i % 10 <= 5) << text;
    EXPECT_EQ(ranges(text + ".01"), i < 1200 && i % 10 < 5) << text;
    // With an exponent a number has at most 4 digits before its point.
    EXPECT_EQ(ranges(text + "00e-2"), i > 0 && i < 100 && i % 10 <= 5) << text;
  }
  EXPECT_FALSE(ranges("-1"));
}

// `count` multiples of `step`, from the first on.
std::string multiples_of(int count, int step) {
  std::string made;
  for (int i = 1; i <= count; ++i) made += (i > 1 ? "," : "") + std::to_string(i * step);
  return made;
}

// 123 * 10^-2 as 1.23e0: one digit before the point.
std::string scientific(const std::string& digits, int exponent) {
  const int size = static_cast<int>(digits.size());
  const std::string tail = digits.substr(1);
  return digits.substr(0, 1) + (tail.empty() ? "" : "." + tail) + "e" +
         std::to_string(exponent + size - 1);
}

TEST(SchemaNumbers, LongListsOfValues) {
  std::mt19937 random(19);
  std::vector<Exact> values = {{}};
  std::string list = "0";
  while (values.size() < 2'000) {
    Exact one;
    one.negative = random() % 8 == 0;
    one.digits = std::to_string(random() % 1'000'000'000 + 1);
    one.exponent = random() % 3 == 0 ? static_cast<int>(random() % 12) - 10 : 0;
    list += (one.negative ? ",-" : ",") + one.digits + "e" + std::to_string(one.exponent);
    values.push_back(
        read((one.negative ? "-" : "") + one.digits + "e" + std::to_string(one.exponent)));
  }
  test::Validator some(R"({"enum":[)" + list + "]}");
  test::Validator others(R"({"type":"number","not":{"enum":[)" + list + "]}}");
  const auto has = [&](const Exact& x) {
    return std::any_of(values.begin(), values.end(),
                       [&](const Exact& one) { return compare(one, x) == 0; });
  };
  size_t n_members = 0;
  for (int i = 0; i < 4'000; ++i) {
    Exact x = values[1 + random() % (values.size() - 1)];
    if (i % 2 == 1) {
      char& digit = x.digits[random() % x.digits.size()];
      digit = static_cast<char>('1' + random() % 9);
    }
    const std::string sign = x.negative ? "-" : "";
    std::string plain = x.digits + std::string(static_cast<size_t>(std::max(x.exponent, 0)), '0');
    if (x.exponent < 0) {
      const auto places = static_cast<size_t>(-x.exponent);
      if (plain.size() <= places) plain.insert(0, places + 1 - plain.size(), '0');
      plain.insert(plain.size() - places, ".");
    }
    const bool member = has(x);
    n_members += member ? 1 : 0;
    const std::string point = x.exponent < 0 ? "" : ".";
    for (const std::string& text : {plain, plain + point + "00", scientific(x.digits, x.exponent),
                                    scientific(x.digits + "00", x.exponent - 2)}) {
      EXPECT_EQ(some(sign + text), member) << sign << text;
      EXPECT_EQ(others(sign + text), !member) << sign << text;
    }
  }
  EXPECT_GE(n_members, 2'000U);
  for (const char* zero : {"0", "-0", "0.00", "0e7", "0.0E-3"}) EXPECT_TRUE(some(zero)) << zero;
  // As docs say, a long list knows an exponent behind one digit only.
  test::Validator hundreds(R"({"enum":[)" + multiples_of(33, 100) + "]}");
  for (const char* text : {"100", "1e2", "1.0e+2", "3300"}) EXPECT_TRUE(hundreds(text)) << text;
  for (const char* text : {"10e1", "0.1e3", "1e1"}) EXPECT_FALSE(hundreds(text)) << text;
  test::Validator fewer(R"({"enum":[)" + multiples_of(32, 100) + "]}");
  for (const char* text : {"100", "1e2", "10e1", "0.1e3"}) EXPECT_TRUE(fewer(text)) << text;
}

// The place in a listed number is kept in 16 bits.
TEST(SchemaNumbers, ListedNumbersAreNotTooLong) {
  const auto listed = [](size_t n_digits) {
    return NumberTerm::one_of({{false, std::string(n_digits, '7'), 1}}).status();
  };
  EXPECT_TRUE(listed(65'535).ok());
  EXPECT_STREQ(listed(65'536).message(), "a listed number of more than 65535 digits");
}

TEST(SchemaNumbers, ManyMultiplesOfLongNumbers) {
  test::Validator some(R"({"type":"integer","multipleOf":123457,"minimum":1,"maximum":500000000})");
  for (int64_t k = 0; k <= 4'060; k += 29) {
    EXPECT_EQ(some(std::to_string(123'457 * k)), k > 0 && k <= 4'050) << k;
    EXPECT_FALSE(some(std::to_string(123'457 * k + 1 + k % 123'000))) << k;
  }
}

// Remainders of so long a divisor are too many for an automaton; multiples between bounds are not.
TEST(SchemaNumbers, MultiplesOfLongNumbersBetweenBounds) {
  test::Validator some(R"({"type":"number","multipleOf":0.123456789,"minimum":-2,"maximum":2})");
  constexpr int64_t kStep = 123'456'789;
  for (int64_t k = -20; k <= 20; ++k) {
    const int64_t billionths = k * kStep;
    const bool inside = std::abs(billionths) <= 2'000'000'000;
    char text[64];
    std::snprintf(text, sizeof text, "%lde-9", static_cast<long>(billionths));
    if (std::abs(billionths) < 10'000) continue;
    std::string plain = (k < 0 ? "-" : "") + std::to_string(std::abs(billionths) / 1'000'000'000);
    std::snprintf(text, sizeof text, ".%09ld",
                  static_cast<long>(std::abs(billionths) % 1'000'000'000));
    EXPECT_EQ(some(plain + text), inside) << plain << text;
    EXPECT_EQ(some(plain + text + "00"), inside) << plain << text;
    EXPECT_FALSE(some(plain + text + "1")) << plain << text;
  }
  EXPECT_TRUE(some("0"));
  EXPECT_TRUE(some("1.23456789e-1"));
  EXPECT_FALSE(some("1"));
  // Whole ones, the list of a draft, and what excludes them.
  test::Validator whole(
      R"({"type":"integer","multipleOf":1234567.5,"exclusiveMinimum":0,"maximum":5e6})");
  for (const char* text : {"2469135", "2469135.0", "4938270"}) EXPECT_TRUE(whole(text)) << text;
  for (const char* text : {"0", "1234567.5", "1234567", "7407405"})
    EXPECT_FALSE(whole(text)) << text;
  test::Validator no(R"({"enum":[0,70001,70002,140002],"not":{"multipleOf":70001}})");
  EXPECT_TRUE(no("70002"));
  EXPECT_FALSE(no("0"));
  EXPECT_FALSE(no("140002"));
  EXPECT_EQ(test::refusal(R"({"not":{"multipleOf":70001},"minimum":0,"maximum":9})"),
            "/not/multipleOf: a divisor whose digits are above 65536, without bounds that leave at "
            "most 4096 multiples");
  EXPECT_EQ(
      test::refusal(R"({"type":"integer","multipleOf":70001,"minimum":0})"),
      "/multipleOf: a divisor whose digits are above 65536, without bounds that leave at most "
      "4096 multiples");
  EXPECT_EQ(test::refusal(R"({"type":"integer","multipleOf":70001,"minimum":1,"maximum":70000})"),
            "#: no value is valid: no number fits all keywords");
}

}  // namespace
}  // namespace gen::grammar
