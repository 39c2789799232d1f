// SPDX-License-Identifier: Apache-2.0
// The stream of the counter-based generator (base/rng.h) of each stage; the counter is the number
// of tokens drawn before. With separate streams no stage changes another stage's numbers, and using
// a stage or not does not affect later steps.
#pragma once

#include <cstdint>

namespace gen::sampling {

constexpr uint64_t kDrawStream = 0;
constexpr uint64_t kXtcStream = 1;
constexpr uint64_t kGumbelStream = 2;  // with the token in the upper 32 bits
constexpr uint64_t kDraftStream = 3;   // guesses that are verified by rejection
constexpr uint64_t kAcceptStream = 4;  // and their acceptance

}  // namespace gen::sampling
