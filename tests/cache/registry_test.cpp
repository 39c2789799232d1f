// SPDX-License-Identifier: Apache-2.0
// Proves that kinds are found by name and that arguments are checked before anything is made.
#include "cache/registry.h"

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
  EXPECT_TRUE(check_cache_kind("fp16").ok());
}

TEST(CacheRegistry, NamesWhatItKnows) {
  const Status status = make_cache("fp7", {&kShape, 1}, 8, system_allocator()).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_STREQ(status.message(), "unknown cache kind fp7, known are fp32, fp16, fp8, q4, q3");
}

TEST(CacheRegistry, ChecksArguments) {
  EXPECT_STREQ(make_cache("fp32", {&kShape, 1}, 0, system_allocator()).status().message(),
               "cache capacity 0 is below 1");
  for (LayerShape bad :
       {LayerShape{0, 4, 4}, LayerShape{1, 0, 4}, LayerShape{1, 4, -1}, LayerShape{1, 4, 4, -1}}) {
    const LayerShape layers[] = {kShape, bad};
    const Status status = make_cache("fp32", layers, 8, system_allocator()).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(std::string(status.message()).find("layer 1: "), 0u) << status.message();
  }
}

TEST(CacheRegistry, NoLayersIsLegal) {
  auto made = make_cache("fp32", {}, 8, system_allocator());
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made.value()->memory().resident, 0u);
  auto plan = made.value()->plan(8);
  ASSERT_TRUE(plan.ok());
  made.value()->commit(*plan);
  EXPECT_EQ(made.value()->length(), 8);
}

}  // namespace
}  // namespace gen::cache
