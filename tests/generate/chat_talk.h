// SPDX-License-Identifier: Apache-2.0
// Turns of a chat session, for tests that count what they evaluate.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "generate/chat_world.h"

namespace gen::generate {

/// A conversation, with a system message of so many bytes, and its session.
struct ChatTalk {
  ChatTalk(const std::shared_ptr<const Generator>& by, const char* form, size_t system = 100)
      : chat(std::make_shared<Chat>()) {
    EXPECT_TRUE(chat->conversation.set_template(form).ok());
    chat->conversation.messages.push_back({"system", std::string(system, 'x')});
    session = ChatSession::create(by, chat).value();
  }
  GenResult send(std::optional<std::string_view> message, int32_t n) {
    CallParams params = greedy(n);
    params.stops.ignore_eos = true;
    for (const int32_t odd : {0, 1, 45, 46, 47, 48, 49}) {  // no character alone
      EXPECT_TRUE(params.sampling.set_logit_bias(odd, -INFINITY).ok());
    }
    std::optional<GenResult> result;
    const Status status = session->send(message, params, nullptr, nullptr, &result);
    EXPECT_TRUE(status.ok()) << status.message();
    return std::move(*result);
  }
  /// What the conversation takes with the opening of an answer.
  [[nodiscard]] int64_t length() const {
    Tokens ids;
    EXPECT_TRUE(chat::encode_chat(*session->session()->generator().tokenizer(), chat->conversation,
                                  true, &ids)
                    .ok());
    return std::ssize(ids);
  }
  std::shared_ptr<Chat> chat;
  std::shared_ptr<ChatSession> session;
};

}  // namespace gen::generate
