// SPDX-License-Identifier: Apache-2.0
// Merging by file names: a split model becomes one file, no part of it is written over, and
// whatever call on the new file fails, nothing is left of it.
#include "model/merge_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "model/gguf/split_name.h"
#include "support/failing_files.h"
#include "support/merged_file.h"

namespace gen::model {
namespace {

namespace fs = std::filesystem;
using test::bytes_of;
using test::drawn;

class MergeFile : public testing::Test {
 protected:
  MergeFile() {
    std::string pattern = (fs::temp_directory_path() / "merge_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    for (int part = 0; part < 2; ++part) {
      test::GgufWriter writer;
      writer.set<uint16_t>("split.no", static_cast<uint16_t>(part))
          .set<uint16_t>("split.count", 2)
          .set<int32_t>("split.tensors.count", 4);
      if (part == 0) writer.set_string("general.architecture", "llama");
      for (const char* name : {"a", "b"}) {
        const std::string whole = "blk." + std::to_string(part) + "." + name + ".weight";
        writer.tensor(whole, 0, {64, 3}, bytes_of(drawn(whole, 192)));
      }
      EXPECT_TRUE(test::write_file(part_path(part), writer.build().bytes));
    }
    test::AdapterWriter adapter("llama");
    for (const char* name : {"blk.0.a.weight", "blk.1.b.weight"})
      adapter.pair(name, {64, 2}, {2, 3});
    EXPECT_TRUE(test::write_file(path("adapter"), adapter.bytes()));
  }
  ~MergeFile() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const char* name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::string part_path(int part) const {
    return gguf::split_path(path("m"), part + 1, 2);
  }
  [[nodiscard]] Status run(const std::string& out) const {
    return merge_file(part_path(1), path("adapter"), 1.0F, out, nullptr, {});
  }
  [[nodiscard]] size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  fs::path folder_;
};

TEST_F(MergeFile, ASplitModelBecomesOneFile) {
  const Status status = run(path("out"));
  ASSERT_TRUE(status.ok()) << status.message();
  const auto before = gguf::GgufFile::open(part_path(0)).value();
  const auto after = gguf::GgufFile::open(path("out")).value();
  EXPECT_EQ(after->parts(), 1);
  EXPECT_FALSE(after->metadata().has("split.count"));
  ASSERT_EQ(after->tensors().size(), 4U);
  for (const gguf::TensorInfo& was : before->tensors()) {
    const gguf::TensorInfo& is = *after->find_tensor(was.name);
    const bool same = std::equal(is.data.begin(), is.data.end(), was.data.begin(), was.data.end());
    EXPECT_EQ(same, was.name != "blk.0.a.weight" && was.name != "blk.1.b.weight") << was.name;
  }
}

TEST_F(MergeFile, NoPartIsWrittenOver) {
  for (const std::string& out : {part_path(0), part_path(1), path("adapter")}) {
    const Status status = run(out);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << out;
    EXPECT_NE(std::string(status.message()).find(out), std::string::npos) << status.message();
  }
  EXPECT_TRUE(run(path("out")).ok());
}

TEST_F(MergeFile, WhateverFailsLeavesNothing) {
  test::file_calls = 0;
  ASSERT_TRUE(run(path("out")).ok());
  const int64_t calls = test::file_calls;
  EXPECT_GT(calls, 8);
  const size_t whole = files();
  fs::remove(path("out"));
  int refused = 0;
  for (int64_t call = 0; call < calls; ++call) {
    test::file_calls = 0;
    test::file_call_that_fails = call;
    const Status status = run(path("out"));
    test::file_call_that_fails = -1;
    if (status.ok()) {  // closing what was read, say
      EXPECT_EQ(files(), whole);
      fs::remove(path("out"));
      continue;
    }
    ++refused;
    EXPECT_EQ(status.code(), Code::kIo) << status.message();
    EXPECT_EQ(files(), whole - 1) << call;
  }
  EXPECT_GT(refused, 5);
}

}  // namespace
}  // namespace gen::model
