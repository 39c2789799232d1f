// SPDX-License-Identifier: Apache-2.0
// Proves that the system's files do what file_ops.h says, above all where something is in the way.
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/file_ops.h"
#include "support/failing_file_ops.h"

namespace gen {
namespace {

using test::TestFolder;

std::span<const std::byte> bytes(const char* text) {
  return std::as_bytes(std::span(text, std::char_traits<char>::length(text)));
}

TEST(FileOps, WritesReadsAndRenames) {
  const TestFolder folder;
  FileOps& files = system_files();
  const std::string path = folder.path() + "/a";
  auto file = OpenFile::create(files, path);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->write(0, bytes("hello")).ok());
  ASSERT_TRUE(file->write(8, bytes("x")).ok());
  EXPECT_EQ(file->size().value(), 9U);
  EXPECT_TRUE(file->sync().ok());
  ASSERT_TRUE(file->close().ok());
  ASSERT_TRUE(file->close().ok());
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);  // what people said is nobody else's business
  ASSERT_TRUE(files.rename(path, path + "b").ok());
  ASSERT_TRUE(files.sync_folder(folder.path()).ok());
  auto again = OpenFile::open(files, path + "b");
  ASSERT_TRUE(again.ok());
  std::byte read[9];
  ASSERT_TRUE(again->read(0, read).ok());
  EXPECT_EQ(read[1], std::byte{'e'});
  EXPECT_EQ(read[6], std::byte{0});
  const Status beyond = again->read(5, read);
  EXPECT_EQ(beyond.code(), Code::kIo);
  EXPECT_NE(std::string(beyond.message()).find("ended after 4 of 9"), std::string::npos);
  EXPECT_EQ(files.list(folder.path()).value(), std::vector<std::string>{"ab"});
  ASSERT_TRUE(files.remove(path + "b").ok());
  ASSERT_TRUE(files.remove(path + "b").ok());
}

TEST(FileOps, SaysWhatIsInTheWay) {
  const TestFolder folder;
  FileOps& files = system_files();
  const auto fails = [](const Status& status, const char* part) {
    EXPECT_EQ(status.code(), Code::kIo);
    EXPECT_NE(std::string(status.message()).find(part), std::string::npos) << status.message();
  };
  const std::string path = folder.path() + "/a";
  fails(files.open(path).status(), "no such file");
  fails(files.open(folder.path()).status(), "is a directory");
  fails(files.create(folder.path()).status(), "is a directory");
  fails(files.create("").status(), "not a file name");
  fails(files.create(path + std::string("\0b", 2)).status(), "not a file name");
  fails(files.create(path + "/b").status(), "no such file");
  ASSERT_EQ(::symlink("/nowhere", path.c_str()), 0);
  fails(files.create(path).status(), "is a symbolic link");
  ASSERT_TRUE(files.remove(path).ok());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  fails(files.open(path).status(), "not a regular file");
  fails(files.make_folder(path), "exists");
  fails(files.make_folder(path + "/b/c"), "directory");
  fails(files.list(path).status(), "directory");
  fails(files.sync_folder(path), "directory");
  fails(files.lock_folder(path + "x").status(), "no such file");
  fails(files.rename(path + "x", path), "no such file");
}

// A link may lead to somebody else's file.
TEST(FileOps, FollowsNoLink) {
  const TestFolder folder;
  FileOps& files = system_files();
  const std::string file = folder.path() + "/file";
  const std::string own = folder.path() + "/folder";
  ASSERT_TRUE(OpenFile::create(files, file).ok());
  ASSERT_TRUE(files.make_folder(own).ok());
  ASSERT_EQ(::symlink(file.c_str(), (file + "-link").c_str()), 0);
  ASSERT_EQ(::symlink(own.c_str(), (own + "-link").c_str()), 0);
  for (const Status& status :
       {OpenFile::open(files, file + "-link").status(), OpenFile::create(files, file + "-link").status(),
        files.lock_folder(own + "-link").status()}) {
    EXPECT_EQ(status.code(), Code::kIo);
    EXPECT_NE(std::string(status.message()).find("-link': is a symbolic link"), std::string::npos)
        << status.message();
  }
  EXPECT_TRUE(OpenFile::open(files, file).ok());
}

TEST(FileOps, FoldersAreHeldByOneAndRemovedWhenEmpty) {
  FileOps& files = system_files();
  const std::string path = files.make_temporary_folder().value();
  auto lock = files.lock_folder(path);
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(files.lock_folder(path).status().code(), Code::kBusy);
  ASSERT_TRUE(files.close(*lock, path).ok());
  lock = files.lock_folder(path);
  ASSERT_TRUE(lock.ok());
  ASSERT_TRUE(files.close(*lock, path).ok());
  auto file = OpenFile::create(files, path + "/x");
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(files.remove_folder(path).ok());  // somebody's file is in it
  EXPECT_TRUE(std::filesystem::exists(path + "/x"));
  ASSERT_TRUE(files.remove(path + "/x").ok());
  EXPECT_TRUE(files.remove_folder(path).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(files.remove_folder(path).ok());
}

}  // namespace
}  // namespace gen
