// SPDX-License-Identifier: Apache-2.0
// Proves that kinds are found by name and that arguments are checked before anything is made.
#include "cache/sequence/registry.h"
#include "engine/memory/host_memory.h"

#include <gtest/gtest.h>

#include <string>

namespace gen::cache {
namespace {

const LayerShape kShape = {1, 4, 4};

TEST(CacheRegistry, FindsKindsByName) {
  ASSERT_NE(find_cache_kind("fp32"), nullptr);
  ASSERT_NE(find_cache_kind("fp16"), nullptr);
  EXPECT_STREQ(cache_kinds()[0].name, "fp32");
  EXPECT_EQ(find_cache_kind("fp16")->bits_per_value, 16.0);
  EXPECT_EQ(find_cache_kind("fp7"), nullptr);
  EXPECT_EQ(find_cache_kind(""), nullptr);
  EXPECT_EQ(find_cache_kind("fp3"), nullptr);
}

TEST(CacheRegistry, ReadsFormats) {
  for (const char* text : {"fp32", "fp16", "q3", "fp8/q4", "q4/fp32", "q4:rotated", "fp16:hadamard",
                           "q3/fp8:rotated"}) {
    EXPECT_STREQ(parse_cache_format(text).value().name(), text);
  }
  EXPECT_STREQ(parse_cache_format("q4/q4:best").value().name(), "q4");
  const CacheFormat mixed = parse_cache_format("fp8/q4:hadamard").value();
  EXPECT_EQ(mixed.keys, engine::KvFormat::kFp8);
  EXPECT_EQ(mixed.values, engine::KvFormat::kQ4);
  EXPECT_EQ(mixed.key_choice, KeyChoice::kHadamard);
  EXPECT_FALSE(parse_cache_format("fp32").value().lossy());
  EXPECT_TRUE(parse_cache_format("fp32/fp16").value().lossy());
  EXPECT_TRUE(parse_cache_format("fp32:hadamard").value().lossy());
  const auto refused = [](const char* text) {
    return std::string(parse_cache_format(text).status().message());
  };
  EXPECT_EQ(refused("fp8/"), "unknown cache kind \"\", known are fp32, fp16, fp8, q4, q3");
  EXPECT_EQ(refused("q4:upside"), "unknown key form \"upside\", known are best, rotated, hadamard");
  EXPECT_EQ(refused("q4/q3/q4"), "unknown cache kind \"q3/q4\", known are fp32, fp16, fp8, q4, q3");
}

TEST(CacheRegistry, KeysAreTurnedWhereAskedAndPossible) {
  const auto form = [](const char* text, int32_t dim) {
    return parse_cache_format(text).value().key_form(dim);
  };
  EXPECT_EQ(form("q4", 64), engine::KeyForm::kHadamard);
  EXPECT_EQ(form("q4", 20), engine::KeyForm::kRotated);
  EXPECT_EQ(form("q4:rotated", 64), engine::KeyForm::kRotated);
  EXPECT_EQ(form("fp16/q4", 64), engine::KeyForm::kRotated);  // by the keys alone
  EXPECT_EQ(form("q3/fp16", 64), engine::KeyForm::kHadamard);
  EXPECT_EQ(form("fp32:hadamard", 64), engine::KeyForm::kHadamard);
  const LayerShape odd = {1, 20, 20};
  const Status status = make_cache("fp16:hadamard", {&odd, 1}, 8, engine::system_memory()).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_STREQ(status.message(),
               "layer 0: keys of 20 elements cannot be turned, multiples of 16 can");
}

TEST(CacheRegistry, NamesWhatItKnows) {
  const Status status = make_cache("fp7", {&kShape, 1}, 8, engine::system_memory()).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_STREQ(status.message(), "unknown cache kind \"fp7\", known are fp32, fp16, fp8, q4, q3");
}

TEST(CacheRegistry, ChecksArguments) {
  EXPECT_STREQ(make_cache("fp32", {&kShape, 1}, 0, engine::system_memory()).status().message(),
               "cache capacity 0 is below 1");
  for (LayerShape bad :
       {LayerShape{0, 4, 4}, LayerShape{1, 0, 4}, LayerShape{1, 4, -1}, LayerShape{1, 4, 4, -1}}) {
    const LayerShape layers[] = {kShape, bad};
    const Status status = make_cache("fp32", layers, 8, engine::system_memory()).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(std::string(status.message()).find("layer 1: "), 0u) << status.message();
  }
}

TEST(CacheRegistry, NoLayersIsLegal) {
  auto made = make_cache("fp32", {}, 8, engine::system_memory());
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made.value()->memory().resident, 0u);
  auto plan = made.value()->plan(8);
  ASSERT_TRUE(plan.ok());
  made.value()->commit(*plan);
  EXPECT_EQ(made.value()->length(), 8);
}

}  // namespace
}  // namespace gen::cache
