// SPDX-License-Identifier: Apache-2.0
// What must work when there is no memory. This program counts through its own operator new.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "support/counting_new.h"
#include "template/json.h"

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

}  // namespace
}  // namespace gen::templates
