// SPDX-License-Identifier: Apache-2.0
// Every allocation of making a tokenizer and of encoding fails once: std::bad_alloc comes out, the
// output is as it was, nothing is printed, and the next try is right.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>

#include "support/counting_new.h"
#include "tokenizer/vocabularies.h"

namespace gen::tokenizer {
namespace {

using test::Ids;
using Made = std::shared_ptr<const Tokenizer>;

std::string read_model(const char* name) {
  std::ifstream file(std::string(GEN_TEST_SOURCE_DIR "/tests/tokenizer/data/") + name,
                     std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Made load(const std::string& file) {
  return std::move(load_sentencepiece_model(std::as_bytes(std::span(file)))).value();
}

// Calls `work` with ever later allocations failing until it needs no more; how many it needed.
size_t fail_each(const std::function<void()>& work, const std::function<void()>& after_failure) {
  for (size_t point = 0;; ++point) {
    gen::test::fail_new_at = gen::test::news + point;
    bool failed = false;
    try {
      work();
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    gen::test::fail_new_at = ~size_t{0};
    if (!failed) return point;
    after_failure();
  }
}

TEST(TokenizerMemory, Making) {
  const std::string bpe = read_model("bpe.model");
  const std::string unigram = read_model("unigram.model");
  const std::function<Made()> makers[] = {
      [&] { return load(bpe); }, [&] { return load(unigram); },
      [] {
        return test::must_create(test::sp_vocab({"_", "a", "_a"}));
      },
      [] { return test::must_create(test::bpe_vocab({"a b"})); }};
  testing::internal::CaptureStderr();
  for (const auto& make : makers) {
    Made made;
    EXPECT_GT(fail_each([&] { made = make(); }, [&] { ASSERT_FALSE(made); }), 10U);
    ASSERT_TRUE(made);
    EXPECT_EQ(test::decode(*made, test::encode(*made, "a a")), "a a");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// Long enough for words to be met again and for the heap, with unknown and user-defined pieces.
TEST(TokenizerMemory, Encoding) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "The grey goose of the mill \xF0\x9F\xA6\x99 <sep>";
  text += std::string(200, 'e');
  for (const Made& tokenizer : {load(read_model("bpe.model")), load(read_model("unigram.model")),
                                test::must_create(test::sp_vocab({"_", "e", "ee", "eeee", "_e"})),
                                test::must_create(test::bpe_vocab({"e e", "ee ee"}))}) {
    const Ids expected = test::encode(*tokenizer, text);
    const Ids before = {7, 8};
    Ids ids = before;
    const auto encode = [&] { ASSERT_TRUE(tokenizer->encode(text, 0, &ids).ok()); };
    EXPECT_GT(fail_each(encode, [&] { ASSERT_EQ(ids, before); }), 3U);
    EXPECT_EQ(Ids(ids.begin() + 2, ids.end()), expected);
  }
}

}  // namespace
}  // namespace gen::tokenizer
