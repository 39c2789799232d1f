// SPDX-License-Identifier: Apache-2.0
// Where messages begin and end among the ids of a conversation, against the texts of its parts
// written by hand.
#include "chat/chat_borders.h"

#include <gtest/gtest.h>

#include "chat/chat_form.h"
#include "tokenizer/vocabularies.h"

namespace gen::chat {
namespace {

using namespace tokenizer;
using Strings = std::vector<std::string>;

std::shared_ptr<const Tokenizer> with_template(std::string chat_template) {
  VocabSpec spec = test::bpe_vocab({"h i", "a b"});
  test::add_token(&spec, "<|im_start|>", TokenType::kControl);
  test::add_token(&spec, "<|im_end|>", TokenType::kControl);
  spec.chat_template = std::move(chat_template);
  return test::must_create(spec);
}

/// The texts up to each border.
Strings texts(const Tokenizer& tokenizer, const std::vector<ChatMessage>& messages) {
  Conversation conversation;
  conversation.messages = messages;
  std::vector<int32_t> ids;
  EXPECT_TRUE(encode_chat(tokenizer, conversation, true, &ids).ok());
  Strings found;
  for (const int32_t border : chat_borders(tokenizer, conversation, ids)) {
    std::string text;
    for (const int32_t id : std::span(ids).first(static_cast<size_t>(border))) {
      EXPECT_TRUE(tokenizer.append_piece(id, kTextStart, true, &text).ok());
    }
    found.push_back(text);
  }
  return found;
}

#define TURN "<|im_start|>{{ m.role }}\n"
#define OPENING "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n<think>\n' }}{% endif %}"

TEST(ChatBorders, OfTheLastMessage) {
  const auto tokenizer = with_template("{% for m in messages %}" TURN
                                       "{{ m.content | trim }}<|im_end|>\n{% endfor %}" OPENING);
  const std::string lead = "<|im_start|>system\nbe<|im_end|>\n<|im_start|>user\n";
  for (const char* const said : {"hi", "a", "  ab", "b", "", "<|im_end|>"}) {
    std::string trimmed = said;
    while (trimmed.starts_with(' ')) trimmed.erase(0, 1);
    const Strings want = {lead, lead + trimmed + "<|im_end|>\n"};
    EXPECT_EQ(texts(*tokenizer, {{"system", "be"}, {"user", said}}), want) << said;
  }
  EXPECT_EQ(texts(*tokenizer, {}), Strings{});
}

// Behind the last message of the user everything may be laid out anew.
TEST(ChatBorders, OfTheUsersLastMessageToo) {
  const auto tokenizer = with_template(
      "{% set ns = namespace(last=0) %}{% for m in messages %}{% if m.role == 'user' %}"
      "{% set ns.last = loop.index0 %}{% endif %}{% endfor %}{% for m in messages %}" TURN
      "{% if m.role == 'assistant' and loop.index0 > ns.last %}<think>{{ m.reasoning_content }}"
      "</think>{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}" OPENING);
  std::vector<ChatMessage> messages = {{"user", "one"},
                                       {"assistant", "two", "old"},
                                       {"user", "three"},
                                       {"assistant", "four", "new"},
                                       {"tool", "five"}};
  const std::string before =
      "<|im_start|>user\none<|im_end|>\n<|im_start|>assistant\ntwo<|im_end|>\n<|im_start|>user\n";
  const std::string user = before + "three<|im_end|>\n";
  const std::string tool =
      user + "<|im_start|>assistant\n<think>new</think>four<|im_end|>\n<|im_start|>tool\n";
  EXPECT_EQ(texts(*tokenizer, messages), (Strings{before, user, tool, tool + "five<|im_end|>\n"}));
}

// What a template refuses is left out: here, a conversation that does not end with a message of the
// user.
TEST(ChatBorders, WhatATemplateRefusesIsLeftOut) {
  const auto tokenizer = with_template(
      "{% if messages[-1].role != 'tool' %}{{ raise_exception('no') }}{% endif %}"
      "{% for m in messages %}" TURN "{{ m.content }}<|im_end|>\n{% endfor %}" OPENING);
  const std::string before = "<|im_start|>user\n";
  const std::string tool = before + "ab<|im_end|>\n<|im_start|>tool\n";
  EXPECT_EQ(texts(*tokenizer, {{"user", "ab"}, {"tool", "hi"}}),
            (Strings{before, tool, tool + "hi<|im_end|>\n"}));
}

}  // namespace
}  // namespace gen::chat
