// SPDX-License-Identifier: Apache-2.0
// Which stream of the counter-based generator (base/rng.h) belongs to which stage; the counter is
// the number of tokens drawn before. A stage of its own stream changes no other stage's numbers,
// and being asked or not changes nothing of the steps that follow.
#pragma once

#include <cstdint>

namespace gen::sampling {

constexpr uint64_t kDrawStream = 0;
constexpr uint64_t kXtcStream = 1;
constexpr uint64_t kGumbelStream = 2;  // with the token in the upper 32 bits
constexpr uint64_t kDraftStream = 3;   // guesses that are judged by rejection
constexpr uint64_t kAcceptStream = 4;  // and whether they are kept

}  // namespace gen::sampling
