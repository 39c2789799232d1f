// SPDX-License-Identifier: Apache-2.0
// The tables of end_texts.h.
#include "tokenizer/end_texts.h"

#include <algorithm>
#include <array>

namespace gen::tokenizer {
namespace {

// Always control tokens: nobody writes these by accident.
constexpr std::array<std::string_view, 13> kControlTexts = {"<|im_start|>",
                                                            "<|im_end|>",
                                                            "<|eot_id|>",
                                                            "<|eom_id|>",
                                                            "<|endoftext|>",
                                                            "<|end|>",
                                                            "<|end_of_text|>",
                                                            "<end_of_turn>",
                                                            "<start_of_turn>",
                                                            "<|return|>",
                                                            "<｜end▁of▁sentence｜>",
                                                            "<turn|>",
                                                            "<|tool_response>"};

// These end a turn if they are control tokens.
constexpr std::array<std::string_view, 35> kEndTexts = {
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end|>", "<|end_of_text|>",
    "<end_of_turn>", "<|return|>", "<｜end▁of▁sentence｜>", "<|call|>", "<end_of_utterance>",
    "<EOT>", "[EOT]", "[EOS]", "<turn|>", "<|tool_response>", "<eos>", "</s>", "_<EOT>",
    "<|flush|>", "<|calls|>", "[e~[",
    // They follow a text that was filled in.
    "<|fim_pad|>", "<fim_pad>", "<fim-pad>", "<PAD>", "[PAD]", "<|fim_repo|>", "<fim-repo>",
    "<REPO>", "<|repo_name|>", "<repo_name>", "<reponame>", "<|file_sep|>", "<|file_separator|>"};

}  // namespace

bool is_control_text(std::string_view text) noexcept {
  return std::find(kControlTexts.begin(), kControlTexts.end(), text) != kControlTexts.end();
}

std::vector<int32_t> find_end_tokens(const VocabSpec& spec) {
  std::vector<int32_t> ids;
  for (const int32_t id : {spec.eos, spec.eot, spec.eom}) {
    if (id >= 0) ids.push_back(id);
  }
  int32_t end_of_message = -1;   // <|end|>
  int32_t end_of_sentence = -1;  // </s>
  bool has_return = false;
  bool has_call = false;
  bool has_flush = false;
  bool has_tool_response = false;
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    if (spec.types[i] != TokenType::kControl) continue;
    const std::string_view text = spec.tokens[i];
    if (std::find(kEndTexts.begin(), kEndTexts.end(), text) == kEndTexts.end()) continue;
    const auto id = static_cast<int32_t>(i);
    ids.push_back(id);
    if (text == "<|end|>") end_of_message = id;
    has_return = has_return || text == "<|return|>";
    if (text == "</s>") end_of_sentence = id;
    has_call = has_call || text == "<|call|>" || text == "<|calls|>";
    has_flush = has_flush || text == "<|flush|>";
    has_tool_response = has_tool_response || text == "<|tool_response>";
  }
  // With these, <|end|> only closes one of several messages of a turn.
  if (has_call && (has_return || has_flush)) std::erase(ids, end_of_message);
  // Gemma 4 knows </s> as a mark of HTML, and a file that names no end means it.
  const bool named =
      end_of_sentence == spec.eos || end_of_sentence == spec.eot || end_of_sentence == spec.eom;
  if (!named && (has_tool_response || spec.eos < 0)) std::erase(ids, end_of_sentence);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace gen::tokenizer
