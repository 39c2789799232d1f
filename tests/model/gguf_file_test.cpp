// SPDX-License-Identifier: Apache-2.0
// Tensors of good files, opened in each way, and split models: good ones from any part, bad ones
// with a part missing, repeated or foreign.
#include "model/gguf/gguf_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "model/gguf/split_name.h"
#include "model/gguf/totals.h"
#include "support/gguf_writer.h"

namespace gen::gguf {
namespace {

using test::GgufWriter;
namespace fs = std::filesystem;

std::vector<std::byte> pattern(size_t n, int first) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) {
    bytes[i] = static_cast<std::byte>((static_cast<size_t>(first) + i) & 0xFF);
  }
  return bytes;
}

bool same(std::span<const std::byte> a, const std::vector<std::byte>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

class GgufFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string form = (fs::temp_directory_path() / "gguf_XXXXXX").string();
    ASSERT_NE(::mkdtemp(form.data()), nullptr);
    folder_ = form;
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void write(const std::string& name, const GgufWriter& writer) const {
    ASSERT_TRUE(test::write_file(path(name), writer.build().bytes));
  }
  static void expect_format(const Result<std::shared_ptr<const GgufFile>>& file,
                            const std::string& says) {
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.status().code(), Code::kFormat);
    const std::string message = file.status().message();
    EXPECT_NE(message.find(says), std::string::npos) << message;
  }

  std::string folder_;
};

TEST_F(GgufFileTest, TensorsComeBackInEveryMode) {
  for (const uint32_t version : {2U, 3U}) {
    GgufWriter writer(version);
    writer.set<uint32_t>("general.alignment", 64).alignment(64);
    writer.tensor("z.row", 0, {3}, pattern(12, 1))
        .tensor("a.matrix", 8, {32, 2}, pattern(68, 50))
        .tensor("m.cube", 1, {2, 3, 4}, pattern(48, 9))
        .tensor("k", 14, {256, 1, 1, 2}, pattern(420, 7));
    const auto image = writer.build();
    ASSERT_TRUE(test::write_file(path("m.gguf"), image.bytes));
    const auto mapped = GgufFile::open(path("m.gguf"), MappedFile::Mode::kMap);
    const auto read = GgufFile::open(path("m.gguf"), MappedFile::Mode::kRead);
    const auto memory = GgufFile::parse(image.bytes);
    for (const auto* result : {&mapped, &read, &memory}) {
      ASSERT_TRUE(result->ok()) << result->status().message();
      const GgufFile& file = *result->value();
      EXPECT_EQ(file.version(), version);
      EXPECT_EQ(file.parts(), 1);
      EXPECT_EQ(file.total_bytes(), image.bytes.size());
      ASSERT_EQ(file.tensors().size(), 4U);
      EXPECT_EQ(file.tensors()[0].name, "z.row");
      const TensorInfo* matrix = file.find_tensor("a.matrix");
      ASSERT_NE(matrix, nullptr);
      EXPECT_EQ(matrix->type, DType::kQ8_0);
      EXPECT_EQ(matrix->shape, (std::array<int64_t, 4>{32, 2, 1, 1}));
      EXPECT_EQ(matrix->n_dims, 2);
      EXPECT_EQ(matrix->elements(), 64);
      EXPECT_EQ(matrix->offset_in_file, image.at("a.matrix.data"));
      EXPECT_EQ(matrix->offset_in_file % 64, 0U);
      EXPECT_TRUE(same(matrix->data, pattern(68, 50)));
      EXPECT_TRUE(same(file.find_tensor("m.cube")->data, pattern(48, 9)));
      EXPECT_EQ(file.find_tensor("m.cube")->elements(), 24);
      EXPECT_EQ(file.find_tensor("k")->type, DType::kQ6_K);
      EXPECT_EQ(file.find_tensor("k")->n_dims, 4);
      file.drop_pages(*matrix);
      EXPECT_TRUE(same(matrix->data, pattern(68, 50)));
      EXPECT_EQ(file.find_tensor("a"), nullptr);
      EXPECT_EQ(file.find_tensor("zz"), nullptr);
    }
  }
}

TEST_F(GgufFileTest, AFileWithoutTensorsIsAVocabulary) {
  GgufWriter writer;
  writer.set_string("general.architecture", "llama");
  const auto image = writer.build();
  const auto file = GgufFile::parse(image.bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_TRUE(file.value()->tensors().empty());
}

TEST_F(GgufFileTest, GapsAndTrailingBytesAreFine) {
  GgufWriter writer;
  writer.tensor("a", 0, {1}, pattern(4, 0)).tensor("b", 0, {1}, pattern(4, 4));
  auto image = writer.build();
  image.poke<uint64_t>("b.offset", 64);
  image.bytes.resize(image.bytes.size() + 128);
  const auto file = GgufFile::parse(image.bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file.value()->find_tensor("b")->offset_in_file, image.at("data") + 64);
}

TEST_F(GgufFileTest, MissingFilesAndFoldersAreIo) {
  const auto missing = GgufFile::open(path("none.gguf"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), Code::kIo);
  const auto folder = GgufFile::open(folder_);
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.status().code(), Code::kIo);
  EXPECT_NE(std::string(folder.status().message()).find("is a directory"), std::string::npos);
}

TEST_F(GgufFileTest, SplitNames) {
  const auto name = parse_split_name("/d/model-00002-of-00010.gguf");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->prefix, "/d/model");
  EXPECT_EQ(name->number, 2);
  EXPECT_EQ(name->count, 10);
  EXPECT_EQ(split_path("/d/model", 10, 10), "/d/model-00010-of-00010.gguf");
  for (const char* bad : {"", "model.gguf", "m-0002-of-00010.gguf", "m-00002-of-00010.ggu",
                          "m-0000x-of-00010.gguf", "m_00002-of-00010.gguf"}) {
    EXPECT_FALSE(parse_split_name(bad).has_value()) << bad;
  }
}

// Not a literal + std::to_string, on which gcc 12 raises false alarms when headers are precompiled.
std::string tensor_name(int number) { return std::string("t").append(std::to_string(number)); }

/// A part of a model of `count` parts with one tensor in each.
GgufWriter part(int number, int count, int tensors) {
  GgufWriter writer;
  if (number == 0) writer.set_string("general.name", "whole");
  writer.set<uint16_t>("split.no", static_cast<uint16_t>(number))
      .set<uint16_t>("split.count", static_cast<uint16_t>(count))
      .set<int32_t>("split.tensors.count", tensors)
      .tensor(tensor_name(number), 0, {4}, pattern(16, number));
  return writer;
}

std::string part_name(int number, int count) { return split_path("m", number + 1, count); }

TEST_F(GgufFileTest, SplitModelOpensFromAnyPart) {
  for (int i = 0; i < 3; ++i) write(part_name(i, 3), part(i, 3, 3));
  for (int i = 0; i < 3; ++i) {
    const auto result = GgufFile::open(path(part_name(i, 3)));
    ASSERT_TRUE(result.ok()) << result.status().message();
    const GgufFile& file = *result.value();
    EXPECT_EQ(file.parts(), 3);
    EXPECT_EQ(file.metadata().get_string("general.name").value(), "whole");
    ASSERT_EQ(file.tensors().size(), 3U);
    for (int t = 0; t < 3; ++t) {
      const TensorInfo* tensor = file.find_tensor(tensor_name(t));
      ASSERT_NE(tensor, nullptr);
      EXPECT_EQ(tensor->part, t);
      EXPECT_TRUE(same(tensor->data, pattern(16, t)));
      file.drop_pages(*tensor);
    }
    uint64_t bytes = 0;
    for (int t = 0; t < 3; ++t) bytes += fs::file_size(path(part_name(t, 3)));
    EXPECT_EQ(file.total_bytes(), bytes);
  }
}

TEST_F(GgufFileTest, MissingPart) {
  write(part_name(0, 3), part(0, 3, 3));
  write(part_name(2, 3), part(2, 3, 3));
  expect_format(GgufFile::open(path(part_name(0, 3))),
                "metadata 'split.count': 3, but part 2 is missing: no file '");
}

TEST_F(GgufFileTest, FirstPartMissing) {
  write(part_name(1, 2), part(1, 2, 2));
  expect_format(GgufFile::open(path(part_name(1, 2))), "but part 1 is missing");
}

TEST_F(GgufFileTest, RepeatedPart) {
  write(part_name(0, 2), part(0, 2, 2));
  write(part_name(1, 2), part(0, 2, 2));
  expect_format(GgufFile::open(path(part_name(0, 2))),
                "'m-00002-of-00002.gguf': metadata 'split.no': 0 (from 0), but the file name says "
                "part 2");
}

TEST_F(GgufFileTest, SwappedParts) {
  write(part_name(0, 2), part(1, 2, 2));
  write(part_name(1, 2), part(0, 2, 2));
  expect_format(GgufFile::open(path(part_name(0, 2))), "metadata 'split.no': 1");
}

TEST_F(GgufFileTest, PartOfAnotherCount) {
  write(part_name(0, 2), part(0, 2, 2));
  write(part_name(1, 2), part(1, 3, 2));
  expect_format(GgufFile::open(path(part_name(0, 2))),
                "'m-00002-of-00002.gguf': metadata 'split.count': 3, but the file name says 2");
}

TEST_F(GgufFileTest, WholeFileAsPart) {
  write(part_name(0, 2), part(0, 2, 2));
  GgufWriter whole;
  whole.tensor("t1", 0, {4}, pattern(16, 1));
  write(part_name(1, 2), whole);
  expect_format(GgufFile::open(path(part_name(0, 2))), "metadata 'split.count': 1");
}

TEST_F(GgufFileTest, NameWithoutNumbers) {
  write("m.gguf", part(0, 2, 2));
  expect_format(GgufFile::open(path("m.gguf")),
                "metadata 'split.count': 2 parts, but the file name does not end like "
                "-00001-of-00002.gguf");
}

TEST_F(GgufFileTest, TensorInTwoParts) {
  write(part_name(0, 2), part(0, 2, 2));
  GgufWriter twin;
  twin.set<uint16_t>("split.no", 1)
      .set<uint16_t>("split.count", 2)
      .set<int32_t>("split.tensors.count", 2)
      .tensor("t0", 0, {4}, pattern(16, 0));
  write(part_name(1, 2), twin);
  expect_format(GgufFile::open(path(part_name(0, 2))), "tensor 't0': its name is there twice");
}

// As llama.cpp writes it: it keeps the keys of the parts and says that there are none.
TEST_F(GgufFileTest, PartsThatWerePutTogether) {
  GgufWriter whole;
  whole.set<uint16_t>("split.no", 0)
      .set<uint16_t>("split.count", 0)
      .set<int32_t>("split.tensors.count", 2)
      .tensor("t0", 0, {4}, pattern(16, 0))
      .tensor("t1", 0, {4}, pattern(16, 1));
  write("whole.gguf", whole);
  const auto file = GgufFile::open(path("whole.gguf"));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file.value()->tensors().size(), 2U);
}

TEST_F(GgufFileTest, WrongTotalOfTensors) {
  write(part_name(0, 2), part(0, 2, 2));
  write(part_name(1, 2), part(1, 2, 3));
  expect_format(GgufFile::open(path(part_name(0, 2))),
                "'m-00002-of-00002.gguf': metadata 'split.tensors.count': 3, but the parts have 2");
}

TEST(GgufTotals, CountWhatATokenUses) {
  GgufWriter writer;
  writer.tensor("token_embd.weight", 0, {10}, pattern(40, 0));
  writer.tensor("blk.0.ffn_up_exps.weight", 0, {2, 3, 4}, pattern(96, 0));
  writer.tensor("blk.9.attn_q.weight", 0, {7}, pattern(28, 0));
  writer.tensor("blk.10.attn_q.weight", 0, {100}, pattern(400, 0));
  const auto bytes = writer.build().bytes;
  const auto file = GgufFile::parse(bytes).value();
  EXPECT_EQ(totals(*file, 11, 0, 0).parameters, 141);
  EXPECT_EQ(totals(*file, 11, 0, 0).active, 141);
  EXPECT_EQ(totals(*file, 11, 1, 4).active, 10 + 6 + 7 + 100);
  EXPECT_EQ(totals(*file, 10, 3, 4).active, 10 + 18 + 7);  // block 10 only drafts
}

TEST_F(GgufFileTest, DamagedPart) {
  write(part_name(0, 2), part(0, 2, 2));
  auto image = part(1, 2, 2).build();
  image.poke<uint64_t>("t1.dim0", 0);
  ASSERT_TRUE(test::write_file(path(part_name(1, 2)), image.bytes));
  expect_format(GgufFile::open(path(part_name(0, 2))),
                "'m-00002-of-00002.gguf': tensor 't1': dimension 0 is 0");
}

}  // namespace
}  // namespace gen::gguf
