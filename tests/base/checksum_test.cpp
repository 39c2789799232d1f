// SPDX-License-Identifier: Apache-2.0
// Proves that Checksum is XXH64, by values published with it, however the bytes come.
#include "base/checksum.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gen {
namespace {

uint64_t of(const std::string& text) { return checksum(std::as_bytes(std::span(text))); }

/// The buffer of the hash's own self-test.
std::vector<std::byte> published_bytes(size_t n) {
  std::vector<std::byte> bytes;
  uint32_t state = 2654435761U;
  for (size_t i = 0; i < n; ++i, state *= state) {
    bytes.push_back(static_cast<std::byte>(state >> 24));
  }
  return bytes;
}

TEST(Checksum, PublishedValues) {
  EXPECT_EQ(of(""), 0xEF46DB3751D8E999U);
  EXPECT_EQ(of("a"), 0xD24EC4F1A98C6E5BU);
  EXPECT_EQ(of("abc"), 0x44BC2CF5AD770999U);
  EXPECT_EQ(of("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1U);
  EXPECT_EQ(checksum(published_bytes(1)), 0x4FCE394CC88952D8U);
  EXPECT_EQ(checksum(published_bytes(14)), 0xCFFA8DB881BC3A3DU);
  EXPECT_EQ(checksum(published_bytes(101)), 0x0EAB543384F878ADU);
}

TEST(Checksum, PiecesDoNotMatter) {
  const auto bytes = published_bytes(101);
  for (size_t first = 0; first <= bytes.size(); ++first) {
    for (size_t second = first; second <= bytes.size(); second += 7) {
      Checksum sum;
      sum.add(std::span(bytes).first(first));
      sum.add(std::span(bytes).subspan(first, second - first));
      static_cast<void>(sum.value());
      sum.add(std::span(bytes).subspan(second));
      ASSERT_EQ(sum.value(), 0x0EAB543384F878ADU) << first << " " << second;
    }
  }
}

TEST(Checksum, NumbersAreTheirBytes) {
  Checksum sum;
  sum.add_number(0x6867666564636261U);
  EXPECT_EQ(sum.value(), of("abcdefgh"));
}

TEST(Checksum, EveryBitCounts) {
  auto bytes = published_bytes(77);
  const uint64_t whole = checksum(bytes);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    ASSERT_NE(checksum(bytes), whole) << "bit " << bit;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
}

}  // namespace
}  // namespace gen
