// SPDX-License-Identifier: Apache-2.0
// The calculator of `generate chat --tools calculator`.
#include "calculator.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace cli {
namespace {

TEST(Calculator, Computes) {
  EXPECT_EQ(calculate("17 * 23"), "391");
  EXPECT_EQ(calculate("2 + 3 * 4 - 6 / 4"), "12.5");
  EXPECT_EQ(calculate("8 - 4 - 2"), "2");
  EXPECT_EQ(calculate("16 / 4 / 2"), "2");
  EXPECT_EQ(calculate("-(2 + -3) * 5"), "5");
  EXPECT_EQ(calculate(" 1e3+.5 "), "1000.5");
  EXPECT_EQ(calculate("1 / 3"), "0.333333333333");
}

TEST(Calculator, SaysWhatIsWrong) {
  const auto fault = [](const std::string& text) -> std::string {
    try {
      return "gave " + calculate(text);
    } catch (const std::invalid_argument& wrong) {
      return wrong.what();
    }
  };
  EXPECT_EQ(fault(""), "the expression is incomplete");
  EXPECT_EQ(fault("2 +"), "the expression is incomplete");
  EXPECT_EQ(fault("2 x"), "'x' was not expected");
  EXPECT_EQ(fault("(1"), "a parenthesis is not closed");
  EXPECT_EQ(fault("1 / (2 - 2)"), "division by zero");
  EXPECT_EQ(fault("1e300 * 1e300"), "the result is no number");
  EXPECT_EQ(fault(std::string(100'000, '(')), "the expression is nested too deeply");
  EXPECT_EQ(fault(std::string(100'000, '-')), "the expression is nested too deeply");
}

}  // namespace
}  // namespace cli
