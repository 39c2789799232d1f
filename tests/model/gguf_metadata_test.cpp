// SPDX-License-Identifier: Apache-2.0
// Every type of value comes back as it was written, through getters that convert what fits and
// refuse the rest by name.
#include "model/gguf/metadata.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "model/gguf/gguf_file.h"
#include "support/gguf_writer.h"

namespace gen::gguf {
namespace {

using test::GgufWriter;

std::shared_ptr<const Metadata> parse(const GgufWriter& writer) {
  const auto image = writer.build();
  const auto file = GgufFile::parse(image.bytes);
  EXPECT_TRUE(file.ok()) << file.status().message();
  // The file and its bytes go; the metadata stays.
  return file.ok() ? file.value()->shared_metadata() : std::make_shared<const Metadata>();
}

template <typename T>
void expect_failure(const Result<T>& result, const char* message) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::kFormat);
  EXPECT_STREQ(result.status().message(), message);
}

class GgufVersions : public ::testing::TestWithParam<uint32_t> {};

TEST_P(GgufVersions, ScalarsComeBack) {
  GgufWriter writer(GetParam());
  writer.set<uint8_t>("u8", 200)
      .set<int8_t>("i8", -100)
      .set<uint16_t>("u16", 60000)
      .set<int16_t>("i16", -30000)
      .set<uint32_t>("u32", 4000000000U)
      .set<int32_t>("i32", -2000000000)
      .set<float>("f32", 1.5F)
      .set<bool>("bool", true)
      .set_string("string", "d\xC3\xA9j\xC3\xA0")
      .set<uint64_t>("u64", 1ULL << 63)
      .set<int64_t>("i64", -(1LL << 40))
      .set<double>("f64", 0.1);
  const auto metadata = parse(writer);
  ASSERT_EQ(metadata->entries().size(), 12U);
  EXPECT_EQ(metadata->get_u32("u8").value(), 200U);
  EXPECT_EQ(metadata->get_i32("i8").value(), -100);
  EXPECT_EQ(metadata->get_u32("u16").value(), 60000U);
  EXPECT_EQ(metadata->get_i32("i16").value(), -30000);
  EXPECT_EQ(metadata->get_u32("u32").value(), 4000000000U);
  EXPECT_EQ(metadata->get_i32("i32").value(), -2000000000);
  EXPECT_EQ(metadata->get_f32("f32").value(), 1.5F);
  EXPECT_EQ(metadata->get_bool("bool").value(), true);
  EXPECT_EQ(metadata->get_string("string").value(), "d\xC3\xA9j\xC3\xA0");
  EXPECT_EQ(metadata->get_u64("u64").value(), 1ULL << 63);
  EXPECT_EQ(metadata->get_f32("f64").value(), 0.1F);
  EXPECT_EQ(metadata->find("i64")->text(), "-1099511627776");
  EXPECT_EQ(metadata->find("f64")->text(), "0.1");
  EXPECT_EQ(metadata->find("i8")->text(), "-100");
  EXPECT_EQ(metadata->find("bool")->text(), "true");
  // In file order, each key a C string.
  EXPECT_STREQ(metadata->entries()[0].key().data(), "u8");
  EXPECT_STREQ(metadata->entries()[8].key().data(), "string");
  EXPECT_EQ(metadata->entries()[8].type(), ValueType::kString);
}

TEST_P(GgufVersions, ArraysComeBack) {
  GgufWriter writer(GetParam());
  writer.set_array<uint8_t>("u8", {1, 255})
      .set_array<int8_t>("i8", {-128, 127})
      .set_array<uint16_t>("u16", {65535})
      .set_array<int16_t>("i16", {-1})
      .set_array<uint32_t>("u32", {7, 8, 9})
      .set_array<int32_t>("i32", {-7})
      .set_array<float>("f32", {0.5F, -2.0F})
      .set_array<bool>("bool", {true, false, true})
      .set_strings("string", {"", "a", "\xFF"})
      .set_array<uint64_t>("u64", {5})
      .set_array<int64_t>("i64", {-5})
      .set_array<double>("f64", {0.25})
      .set_array<float>("empty", {});
  const auto metadata = parse(writer);
  EXPECT_EQ(metadata->get_u32s("u8").value(), (std::vector<uint32_t>{1, 255}));
  EXPECT_EQ(metadata->get_i32s("i8").value(), (std::vector<int32_t>{-128, 127}));
  EXPECT_EQ(metadata->get_i32s("u16").value(), (std::vector<int32_t>{65535}));
  EXPECT_EQ(metadata->get_i32s("i16").value(), (std::vector<int32_t>{-1}));
  EXPECT_EQ(metadata->get_u32s("u32").value(), (std::vector<uint32_t>{7, 8, 9}));
  EXPECT_EQ(metadata->get_i32s("i32").value(), (std::vector<int32_t>{-7}));
  EXPECT_EQ(metadata->get_f32s("f32").value(), (std::vector<float>{0.5F, -2.0F}));
  EXPECT_EQ(metadata->get_bools("bool").value(), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(metadata->get_strings("string").value(),
            (std::vector<std::string_view>{"", "a", "\xFF"}));
  EXPECT_EQ(metadata->get_u32s("u64").value(), (std::vector<uint32_t>{5}));
  EXPECT_EQ(metadata->get_i32s("i64").value(), (std::vector<int32_t>{-5}));
  EXPECT_EQ(metadata->get_f32s("f64").value(), (std::vector<float>{0.25F}));
  EXPECT_TRUE(metadata->get_f32s("empty").value().empty());
  EXPECT_EQ(metadata->find("u32")->count(), 3U);
  EXPECT_EQ(metadata->find("u32")->element_type(), ValueType::kU32);
}

INSTANTIATE_TEST_SUITE_P(TwoAndThree, GgufVersions, ::testing::Values(2U, 3U));

TEST(GgufMetadata, MissingKeysFailOrFallBack) {
  const auto metadata = parse(GgufWriter());
  expect_failure(metadata->get_u32("k"), "metadata 'k' is missing (u32 wanted)");
  expect_failure(metadata->get_string("k"), "metadata 'k' is missing (string wanted)");
  expect_failure(metadata->get_f32s("k"), "metadata 'k' is missing (array of finite f32 wanted)");
  EXPECT_EQ(metadata->get_u32("k", 5).value(), 5U);
  EXPECT_EQ(metadata->get_i32("k", -5).value(), -5);
  EXPECT_EQ(metadata->get_u64("k", 6).value(), 6U);
  EXPECT_EQ(metadata->get_f32("k", 0.5F).value(), 0.5F);
  EXPECT_EQ(metadata->get_bool("k", true).value(), true);
  EXPECT_EQ(metadata->get_string("k", "x").value(), "x");
  EXPECT_EQ(metadata->find("k"), nullptr);
}

TEST(GgufMetadata, WrongTypesFailAlsoWithAFallback) {
  GgufWriter writer;
  writer.set_string("s", "x").set<bool>("b", false).set<uint32_t>("u", 1).set<float>("f", 1.0F);
  writer.set_array<uint32_t>("us", {1}).set_strings("ss", {"x"});
  const auto metadata = parse(writer);
  expect_failure(metadata->get_u32("s"), "metadata 's': u32 wanted, string found");
  expect_failure(metadata->get_u32("s", 1), "metadata 's': u32 wanted, string found");
  expect_failure(metadata->get_u32("b"), "metadata 'b': u32 wanted, bool found");
  expect_failure(metadata->get_bool("u", true), "metadata 'u': bool wanted, u32 found");
  expect_failure(metadata->get_f32("u"), "metadata 'u': finite f32 wanted, u32 found");
  expect_failure(metadata->get_i32("f"), "metadata 'f': i32 wanted, f32 found");
  expect_failure(metadata->get_u32("us"), "metadata 'us': u32 wanted, array of u32 found");
  expect_failure(metadata->get_u32s("u"), "metadata 'u': array of u32 wanted, u32 found");
  expect_failure(metadata->get_string("ss", ""),
                 "metadata 'ss': string wanted, array of string found");
  expect_failure(metadata->get_strings("us"),
                 "metadata 'us': array of string wanted, array of u32 found");
  expect_failure(metadata->get_f32s("ss"),
                 "metadata 'ss': array of finite f32 wanted, array of string found");
}

TEST(GgufMetadata, ValuesThatDoNotFitFail) {
  GgufWriter writer;
  writer.set<int32_t>("minus", -1)
      .set<uint32_t>("big", 1U << 31)
      .set<uint64_t>("wide", 1ULL << 32)
      .set<float>("nan", std::nanf(""))
      .set<double>("double", 1e39)
      .set_array<int32_t>("array", {1, -2})
      .set_array<float>("inf", {1.0F, -std::numeric_limits<float>::infinity()})
      .set_string("bad", "\xC3")
      .set_string("nul", std::string_view("a\0b", 3));
  const auto metadata = parse(writer);
  expect_failure(metadata->get_u32("minus"), "metadata 'minus': -1 does not fit u32");
  expect_failure(metadata->get_i32("big"), "metadata 'big': 2147483648 does not fit i32");
  expect_failure(metadata->get_u32("wide"), "metadata 'wide': 4294967296 does not fit u32");
  expect_failure(metadata->get_u64("minus"), "metadata 'minus': -1 does not fit u64");
  expect_failure(metadata->get_f32("nan"), "metadata 'nan': nan does not fit finite f32");
  expect_failure(metadata->get_f32("double"), "metadata 'double': 1e+39 does not fit finite f32");
  expect_failure(metadata->get_u32s("array"),
                 "metadata 'array': element 1, -2, does not fit array of u32");
  expect_failure(metadata->get_f32s("inf"),
                 "metadata 'inf': element 1, -inf, does not fit array of finite f32");
  expect_failure(metadata->get_string("bad"), "metadata 'bad': string is not UTF-8 without NUL");
  expect_failure(metadata->get_string("nul"), "metadata 'nul': string is not UTF-8 without NUL");
}

TEST(GgufMetadata, TextIsReadable) {
  GgufWriter writer;
  writer.set_array<int32_t>("long", {1, 2, 3, 4, 5})
      .set_strings("words", {"one", std::string("\0\xFF", 2)})
      .set_string("bad", std::string_view("a\0\xC3z", 4))
      .set_array<bool>("flags", {true, false})
      .set_array<float>("empty", {});
  const auto metadata = parse(writer);
  EXPECT_EQ(metadata->find("long")->text(), "[1, 2, 3, 4, 5]");
  EXPECT_EQ(metadata->find("long")->text(2), "[1, 2, ... 5 in all]");
  EXPECT_EQ(metadata->find("long")->text(0), "[... 5 in all]");
  EXPECT_EQ(metadata->find("words")->text(), "[\"one\", \"\xEF\xBF\xBD\xEF\xBF\xBD\"]");
  EXPECT_EQ(metadata->find("bad")->text(), "a\xEF\xBF\xBD\xEF\xBF\xBDz");
  EXPECT_EQ(metadata->find("flags")->text(), "[true, false]");
  EXPECT_EQ(metadata->find("empty")->text(), "[]");
}

}  // namespace
}  // namespace gen::gguf
