// SPDX-License-Identifier: Apache-2.0
// What a generating call is given beside its parameters, and whom its events go to.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace gen::generate {

struct Event;

/// What to go on with: `text`, or `tokens` taken as they are if there are any. BOS goes before text
/// when the session is empty and the tokenizer wants it.
struct Prompt {
  /// Whether `tokens` come behind what the session holds, or are all that it is to hold: what both
  /// begin with stays then, as the texts of a chat (match_chat()) or token by token, and the rest
  /// of the session goes, even if the call fails.
  enum class Place : uint8_t { kBehind, kWholeChat, kWhole };
  std::string_view text = {};
  std::span<const int32_t> tokens = {};
  bool parse_special = false;  // texts of control tokens in `text` become those tokens
  Place place = Place::kBehind;
  /// With Place::kWhole, Answered::unsaid of when that was held.
  std::string_view unsaid = {};
};

/// Non-zero stops the call cleanly: kCancelled, with the value in GenResult::user_code. An
/// exception is a failure of the call, see Generation::break_off().
using EventCallback = int32_t (*)(void* user, const Event& event);

}  // namespace gen::generate
