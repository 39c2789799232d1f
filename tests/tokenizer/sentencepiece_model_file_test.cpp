// SPDX-License-Identifier: Apache-2.0
// The wire format: bytes written down by hand, a round trip, and files that are broken.
#include "tokenizer/sentencepiece_model_file.h"

#include <gtest/gtest.h>

#include <string_view>

#include "tokenizer/sentencepiece_models.h"

namespace gen::tokenizer {
namespace {

Result<SpModel> parse(std::string_view bytes) {
  return parse_sp_model(std::as_bytes(std::span(bytes)));
}

TEST(SentencePieceModelFile, BytesByHand) {
  using namespace std::string_view_literals;
  // piece "ab", score -1.5, type 4; trainer: model type 2, byte fallback, pad id -1; an unknown
  // field; normalizer: no dummy prefix
  const auto model = parse(
      "\x0A\x0B\x0A\x02"
      "ab\x15\x00\x00\xC0\xBF\x18\x04"
      "\x12\x11\x18\x02\x98\x02\x01\xD8\x02\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"
      "\xA2\x06\x03xyz"
      "\x1A\x02\x18\x00"sv);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const SpModel& value = model.value();
  ASSERT_EQ(value.pieces, std::vector<std::string>{"ab"});
  EXPECT_EQ(value.scores[0], -1.5F);
  EXPECT_EQ(value.types[0], TokenType::kUserDefined);
  EXPECT_EQ(value.model_type, SpModelType::kBpe);
  EXPECT_TRUE(value.byte_fallback);
  EXPECT_EQ(value.pad_id, -1);
  EXPECT_EQ(value.bos_id, 1);  // the schema's default
  EXPECT_FALSE(value.add_dummy_prefix);
  EXPECT_TRUE(value.remove_extra_whitespaces);
}

TEST(SentencePieceModelFile, RoundTrip) {
  SpModel model;
  model.pieces = {"<unk>", std::string("\0\xFF", 2), std::string(300, 'x')};
  model.scores = {0, -3.25F, 1e30F};
  model.types = {TokenType::kUnknown, TokenType::kNormal, TokenType::kControl};
  model.model_type = SpModelType::kBpe;
  model.treat_whitespace_as_suffix = true;
  model.byte_fallback = true;
  model.unk_id = 0;
  model.bos_id = -1;
  model.eos_id = 70000;
  model.pad_id = INT32_MIN;
  model.charsmap = std::string("m\0p", 3);
  model.add_dummy_prefix = false;
  model.remove_extra_whitespaces = false;
  model.escape_whitespaces = false;
  const auto parsed = parse(test::serialize_sp_model(model));
  ASSERT_TRUE(parsed.ok());
  const SpModel& back = parsed.value();
  EXPECT_EQ(back.pieces, model.pieces);
  EXPECT_EQ(back.scores, model.scores);
  EXPECT_EQ(back.types, model.types);
  EXPECT_EQ(back.model_type, model.model_type);
  EXPECT_EQ(back.treat_whitespace_as_suffix, true);
  EXPECT_EQ(back.byte_fallback, true);
  EXPECT_EQ(back.unk_id, 0);
  EXPECT_EQ(back.bos_id, -1);
  EXPECT_EQ(back.eos_id, 70000);
  EXPECT_EQ(back.pad_id, INT32_MIN);
  EXPECT_EQ(back.charsmap, model.charsmap);
  EXPECT_FALSE(back.add_dummy_prefix || back.remove_extra_whitespaces || back.escape_whitespaces);
}

TEST(SentencePieceModelFile, BrokenFiles) {
  using namespace std::string_view_literals;
  const std::pair<std::string_view, const char*> cases[] = {
      {"\x0A"sv, "sentencepiece model: broken field at byte 0 of 1"},
      {"\x0A\x05"sv, "sentencepiece model: broken field at byte 0 of 2"},
      {"\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"sv,
       "sentencepiece model: broken field at byte 0 of 11"},
      {"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"sv,
       "sentencepiece model: broken field at byte 0 of 11"},
      {"\x02\x00"sv, "sentencepiece model: broken field at byte 0 of 2"},
      {"\x0B\x00"sv, "sentencepiece model: broken field at byte 0 of 2"},
      {"\x08\x01"sv, "sentencepiece model: field 1 has wire type 0"},
      {"\x0A\x02\x08\x01"sv, "sentencepiece piece: field 1 has wire type 0"},
      {"\x0A\x02\x10\x01"sv, "sentencepiece piece: field 2 has wire type 0"},
      {"\x0A\x05\x1D\x00\x00\x00\x00"sv, "sentencepiece piece: field 3 has wire type 5"},
      {"\x0A\x02\x15\x00"sv, "sentencepiece piece: broken field at byte 0 of 2"},
      {"\x12\x02\x1A\x00"sv, "sentencepiece trainer spec: field 3 has wire type 2"},
      {"\x1A\x02\x1A\x00"sv, "sentencepiece normalizer spec: field 3 has wire type 2"},
      {"\x1A\x02\x10\x01"sv, "sentencepiece normalizer spec: field 2 has wire type 0"},
  };
  for (const auto& [bytes, message] : cases) {
    const auto model = parse(bytes);
    ASSERT_FALSE(model.ok()) << message;
    EXPECT_EQ(model.status().code(), Code::kFormat);
    EXPECT_STREQ(model.status().message(), message);
  }
}

TEST(SentencePieceModelFile, EmptyFileIsAnEmptyModel) {
  const auto model = parse("");
  ASSERT_TRUE(model.ok());
  EXPECT_TRUE(model.value().pieces.empty());
}

}  // namespace
}  // namespace gen::tokenizer
