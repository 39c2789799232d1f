// SPDX-License-Identifier: Apache-2.0
// Grammars beside texts that are and are not their members.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/vocabularies.h"

namespace gen::grammar::test {

struct MemberCase {
  const char* source;
  std::vector<std::string> members;
  std::vector<std::string> others;
};

inline bool is_member(Matcher& matcher, std::string_view text) {
  matcher.reset();
  return matcher.accept_bytes(text).value() && matcher.is_complete();
}

inline void expect_members(const MemberCase& one, Matcher matcher) {
  for (const std::string& text : one.members) {
    EXPECT_TRUE(is_member(matcher, text)) << one.source << " : " << text;
  }
  for (const std::string& text : one.others) {
    EXPECT_FALSE(is_member(matcher, text)) << one.source << " : " << text;
  }
}

/// The message of a kGrammar error; `source` is only named.
template <typename Made>
std::string failure_of(const Made& made, std::string_view source) {
  EXPECT_FALSE(made.ok()) << source;
  EXPECT_EQ(made.status().code(), Code::kGrammar) << source;
  return made.ok() ? std::string() : std::string(made.status().message());
}

}  // namespace gen::grammar::test
