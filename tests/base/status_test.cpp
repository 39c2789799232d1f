// SPDX-License-Identifier: Apache-2.0
// Proves that codes and one-line messages travel through copies, Result and the macros.
#include "base/status.h"

#include <gtest/gtest.h>

namespace gen {
namespace {

Status fail_if(bool fail) {
  if (fail) return error(Code::kOutOfRange, "token %d outside vocabulary of %d", 7, 5);
  return {};
}

Result<int> half(int value) {
  if (value % 2 != 0) return error(Code::kInvalidArgument, "%d is odd", value);
  return value / 2;
}

Result<int> quarter(int value) {
  GEN_TRY(fail_if(value < 0));
  GEN_ASSIGN(const int first, half(value));
  GEN_ASSIGN(int second, half(first));
  return second;
}

TEST(Status, OkIsEmpty) {
  EXPECT_TRUE(Status().ok());
  EXPECT_STREQ(Status().message(), "");
  EXPECT_STREQ(Status(Code::kOk, "text is dropped").message(), "");
}

TEST(Status, CopiesKeepTheText) {
  Status first = fail_if(true);
  Status copy = first;
  first = Status();
  EXPECT_EQ(copy.code(), Code::kOutOfRange);
  EXPECT_STREQ(copy.message(), "token 7 outside vocabulary of 5");
  const Status& self = copy;
  copy = self;
  EXPECT_STREQ(copy.message(), "token 7 outside vocabulary of 5");
}

TEST(Status, MessagesAreOneLineAndFitTheErrorStruct) {
  EXPECT_STREQ(error(Code::kFormat, "a\nb\r%s", "c\n").message(), "a b c ");
  EXPECT_STREQ(error(Code::kFormat, "%s", "\x1B[2J\t\x7F\x01\xC3\xA9~").message(),
               " [2J   \xC3\xA9~");
  const Status status = error(Code::kFormat, "%s", std::string(5000, 'x').c_str());
  EXPECT_EQ(std::string(status.message()), std::string(1019, 'x'));
}

TEST(Result, CarriesValueOrFailure) {
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_TRUE(quarter(12).status().ok());
  EXPECT_STREQ(quarter(6).status().message(), "3 is odd");
  EXPECT_EQ(quarter(-4).status().code(), Code::kOutOfRange);
}

TEST(Result, MovesOwnedValues) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(4));
  ASSERT_TRUE(result.ok());
  std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 4);
}

}  // namespace
}  // namespace gen
