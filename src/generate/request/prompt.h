// SPDX-License-Identifier: Apache-2.0
// The prompt of a generating call and the receiver of its events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace gen::generate {

struct Event;

/// Input of a call: `text`, or `tokens` used as they are if there are any. BOS is put before text
/// if the session is empty and the tokenizer adds it.
struct Prompt {
  /// Whether the input is appended to the session's tokens (kAppended), or is everything the
  /// session is to hold. In the latter case the common beginning stays, compared as the texts of a
  /// chat (kWholeChat, match_chat()) or token by token (kWhole). The rest of the session is
  /// dropped, even if the call fails.
  enum class Kind : uint8_t { kAppended, kWholeChat, kWhole };
  std::string_view text = {};
  std::span<const int32_t> tokens = {};
  bool parse_special = false;  // text of control tokens in `text` becomes these tokens
  Kind kind = Kind::kAppended;
  /// With Kind::kWhole: the Answered::unsaid that belongs to these tokens.
  std::string_view unsaid = {};
  /// Positions in `tokens`, ascending, from which another call is likely to go on: where messages
  /// begin and end. A sequence with a state keeps snapshots there. None: before control tokens.
  std::span<const int32_t> borders = {};
  /// Tokens of a conversation that had to be left out of these, for GenResult::usage.
  size_t left_out = 0;
};

/// A non-zero return value stops the call: kCancelled, with the value in GenResult::user_code. An
/// exception fails the call, see Generation::break_off().
using EventCallback = int32_t (*)(void* user, const Event& event);

}  // namespace gen::generate
