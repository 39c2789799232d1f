// SPDX-License-Identifier: Apache-2.0
// Proves that a spill file without memory keeps its places and leaves nothing where temporary files
// are.
#include "cache/sequence/spill_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>

#include "support/counting_new.h"

namespace gen::cache {
namespace {

/// Runs the call with its nth allocation failing; false if it has fewer.
template <typename F>
bool without(size_t nth, F&& call) {
  const size_t before = test::news;
  test::fail_new_at = before + nth;
  try {
    call();
  } catch (const std::bad_alloc&) {
  }
  const bool reached = test::news > test::fail_new_at;
  test::fail_new_at = ~size_t{0};
  return reached;
}

TEST(SpillFile, ARefusedBlockTakesNoPlace) {
  const std::string bytes = "what a block holds";
  const auto block = std::as_bytes(std::span(bytes));
  size_t nth = 0;
  for (bool reached = true; reached; ++nth) {
    auto file = SpillFile::create(system_files(), "", 64);
    ASSERT_TRUE(file.ok());
    reached = without(nth, [&] { static_cast<void>(file.value()->put(block).ok()); });
    auto first = file.value()->put(block);
    auto second = file.value()->put(block);
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(file.value()->places(), 2U) << nth;
  }
  EXPECT_GT(nth, 2U);
}

TEST(SpillFile, ARefusedFileLeavesNoFolder) {
  std::string own = (std::filesystem::temp_directory_path() / "spill-test-XXXXXX").string();
  ASSERT_NE(::mkdtemp(own.data()), nullptr);
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("TMPDIR", own.c_str(), 1);
  for (size_t nth = 0; nth < 100; ++nth) {
    const bool reached =
        without(nth, [] { static_cast<void>(SpillFile::create(system_files(), "", 64).ok()); });
    EXPECT_TRUE(std::filesystem::is_empty(own)) << nth;
    if (!reached) break;
  }
  if (before != nullptr) {
    ::setenv("TMPDIR", kept.c_str(), 1);
  } else {
    ::unsetenv("TMPDIR");
  }
  std::filesystem::remove_all(own);
}

}  // namespace
}  // namespace gen::cache
