// SPDX-License-Identifier: Apache-2.0
// gen_tokenizer_encode_fim over a vocabulary that the test writes; which texts are marks is for
// tests/tokenizer/fill_in_middle_test.cpp.
#include <generate/generate.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/gguf_writer.h"

#include "status_record.h"

namespace {

using Ids = std::vector<int32_t>;

constexpr int32_t kBos = 1;
constexpr int32_t kPrefix = 3;
constexpr int32_t kSuffix = 4;
constexpr int32_t kMiddle = 5;
constexpr int32_t kA = 6;
constexpr int32_t kB = 7;

struct FillInMiddle : testing::Test {
  ~FillInMiddle() override {
    for (gen_tokenizer* each : made) gen_tokenizer_free(each);
    std::filesystem::remove(path);
  }

  gen_tokenizer* load(bool marks) {
    gen::test::GgufWriter writer;
    writer.set_string("general.architecture", "llama")
        .set_string("tokenizer.ggml.model", "llama")
        .set_strings("tokenizer.ggml.tokens",
                     {"<unk>", "<s>", "</s>", "<P>", "<S>", "<M>", "a", "b"})
        .set_array<float>("tokenizer.ggml.scores", {0, 0, 0, 0, 0, 0, -1, -1})
        .set_array<int32_t>("tokenizer.ggml.token_type", {2, 3, 3, 3, 3, 3, 1, 1})
        .set<uint32_t>("tokenizer.ggml.bos_token_id", kBos)
        .set<uint32_t>("tokenizer.ggml.unknown_token_id", 0)
        .set<bool>("tokenizer.ggml.add_bos_token", true)
        .set<bool>("tokenizer.ggml.add_space_prefix", false);
    if (marks) {
      writer.set<uint32_t>("tokenizer.ggml.fim_pre_token_id", kPrefix)
          .set<uint32_t>("tokenizer.ggml.suffix_token_id", kA)  // what newer files say counts
          .set<uint32_t>("tokenizer.ggml.fim_suf_token_id", kSuffix)
          .set<uint32_t>("tokenizer.ggml.middle_token_id", kMiddle);
    }
    const auto image = writer.build();
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(image.bytes.data()),
               static_cast<std::streamsize>(image.bytes.size()));
    file.close();
    gen_tokenizer* tokenizer = nullptr;
    EXPECT_EQ(gen_tokenizer_load(path.c_str(), &tokenizer, &error), GEN_OK) << error.message;
    made.push_back(tokenizer);
    return tokenizer;
  }

  gen_status encode(gen_tokenizer* tokenizer, const char* prefix, const char* suffix,
                    uint32_t flags) {
    ids.assign(16, -1);
    size_t n = 0;
    const gen_status status =
        gen_tokenizer_encode_fim(tokenizer, prefix, GEN_NUL_TERMINATED, suffix, GEN_NUL_TERMINATED,
                                 flags, ids.data(), ids.size(), &n, &error);
    ids.resize(n);
    return status;
  }

  std::string path = (std::filesystem::temp_directory_path() /
                      ("fill_in_middle_test_" + std::to_string(::getpid()) + ".gguf"))
                         .string();
  std::vector<gen_tokenizer*> made;
  Ids ids;
  gen_error error{};
};

TEST_F(FillInMiddle, MarksStandAroundBothTexts) {
  gen_tokenizer* tokenizer = load(true);
  ASSERT_EQ(encode(tokenizer, "ab", "ba", 0), GEN_OK) << error.message;
  EXPECT_EQ(ids, Ids({kPrefix, kA, kB, kSuffix, kB, kA, kMiddle}));
  ASSERT_EQ(encode(tokenizer, "", "a", GEN_ENCODE_ADD_BOS), GEN_OK);
  EXPECT_EQ(ids, Ids({kBos, kPrefix, kSuffix, kA, kMiddle}));
  // A mark in a text is text: none of its characters is in this vocabulary.
  ASSERT_EQ(encode(tokenizer, "<M>", "", 0), GEN_OK);
  for (size_t i = 1; i + 2 < ids.size(); ++i) EXPECT_EQ(ids[i], 0);
}

TEST_F(FillInMiddle, Refusals) {
  gen_tokenizer* tokenizer = load(true);
  EXPECT_EQ(encode(nullptr, "a", "b", 0), GEN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(encode(tokenizer, nullptr, "b", 0), GEN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(encode(tokenizer, "a", nullptr, 0), GEN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(encode(tokenizer, "a", "b", GEN_ENCODE_PARSE_SPECIAL), GEN_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error.message).find("flags 0x2"), std::string::npos) << error.message;
  EXPECT_EQ(encode(tokenizer, "a", "\xFF", 0), GEN_ERROR_TOKENIZER);
  EXPECT_TRUE(ids.empty());
  size_t n = 99;
  EXPECT_EQ(gen_tokenizer_encode_fim(tokenizer, "a", 1, "b", 1, 0, nullptr, 0, &n, &error), GEN_OK);
  EXPECT_EQ(n, 5U);
  int32_t few[4] = {7, 7, 7, 7};
  n = 99;
  EXPECT_EQ(gen_tokenizer_encode_fim(tokenizer, "a", 1, "b", 1, 0, few, 4, &n, &error),
            GEN_ERROR_OUT_OF_RANGE);
  EXPECT_EQ(n, 5U);
  EXPECT_EQ(few[0], 7);
  EXPECT_EQ(gen_tokenizer_encode_fim(tokenizer, "a", 1, "b", 1, 0, few, 4, nullptr, &error),
            GEN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(encode(load(false), "a", "b", 0), GEN_ERROR_UNSUPPORTED);
}

}  // namespace
