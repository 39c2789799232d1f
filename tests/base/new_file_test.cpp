// SPDX-License-Identifier: Apache-2.0
// Proves that a NewFile appears whole or not at all and leaves nothing beside it.
#include "base/new_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace gen {
namespace {

namespace fs = std::filesystem;

class NewFileTest : public testing::Test {
 protected:
  NewFileTest() {
    std::string pattern = (fs::temp_directory_path() / "new_file_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~NewFileTest() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string at(const char* name) const { return (folder_ / name).string(); }
  [[nodiscard]] size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  static std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::span<const std::byte> bytes(const std::string& text) {
    return std::as_bytes(std::span(text.data(), text.size()));
  }

  fs::path folder_;
};

TEST_F(NewFileTest, IsThereOnlyWhenFinished) {
  auto file = NewFile::create(at("a"));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_TRUE(file->write(bytes("one ")).ok());
  EXPECT_TRUE(file->write(bytes("two")).ok());
  EXPECT_FALSE(fs::exists(at("a")));
  EXPECT_TRUE(file->finish().ok());
  EXPECT_EQ(content(at("a")), "one two");
  EXPECT_EQ(files(), 1U);
}

TEST_F(NewFileTest, ReplacesWhatWasThereOnlyWhenFinished) {
  std::ofstream(at("a")) << "old";
  fs::create_symlink("a", at("link"));
  {
    auto dropped = NewFile::create(at("a"));
    EXPECT_TRUE(dropped->write(bytes("new")).ok());
    EXPECT_EQ(files(), 3U);
  }
  EXPECT_EQ(content(at("a")), "old");
  EXPECT_EQ(files(), 2U);
  auto kept = NewFile::create(at("link"));
  ASSERT_TRUE(kept.ok());
  NewFile moved = std::move(kept).value();
  EXPECT_TRUE(moved.write(bytes("new")).ok());
  EXPECT_TRUE(moved.finish().ok());
  EXPECT_EQ(content(at("a")), "new");
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(files(), 2U);
}

TEST_F(NewFileTest, ALinkThatLeadsNowhereStays) {
  fs::create_directory(at("folder"));
  fs::create_symlink("second", at("first"));
  fs::create_symlink("folder/a", at("second"));
  auto made = NewFile::create(at("first"));
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(made->write(bytes("new")).ok());
  EXPECT_TRUE(made->finish().ok());
  EXPECT_EQ(content(at("folder/a")), "new");
  EXPECT_TRUE(fs::is_symlink(at("first")) && fs::is_symlink(at("second")));
  fs::create_symlink("round", at("round"));
  EXPECT_EQ(NewFile::create(at("round")).status().code(), Code::kIo);
}

TEST_F(NewFileTest, TwoWritersDoNotMeet) {
  auto first = NewFile::create(at("a"));
  auto second = NewFile::create(at("a"));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(first->write(bytes("first")).ok());
  EXPECT_TRUE(second->write(bytes("second")).ok());
  EXPECT_TRUE(second->finish().ok());
  EXPECT_TRUE(first->finish().ok());
  EXPECT_EQ(content(at("a")), "first");
  EXPECT_EQ(files(), 1U);
}

TEST_F(NewFileTest, RefusesPlacesThatAreNone) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  std::ofstream(at("plain")) << "x";
  for (const auto& [path, part] :
       {std::pair{folder_.string(), "is a directory"}, std::pair{at("pipe"), "not a regular file"},
        std::pair{at("no/such/file"), "no such file"},
        std::pair{at("plain/file"), "not a directory"}, std::pair{std::string(), "file name"}}) {
    const auto file = NewFile::create(path);
    ASSERT_FALSE(file.ok()) << path;
    EXPECT_EQ(file.status().code(), Code::kIo);
    EXPECT_NE(std::string(file.status().message()).find(part), std::string::npos)
        << file.status().message();
    EXPECT_NE(std::string(file.status().message()).find(path), std::string::npos);
  }
  EXPECT_EQ(files(), 2U);
}

mode_t mode_of(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

TEST_F(NewFileTest, IsPrivateOrAsTheUmaskSaysAndKeepsModesThatWereThere) {
  const mode_t umask_before = ::umask(022);
  for (const auto access : {NewFile::Access::kPrivate, NewFile::Access::kUmask}) {
    for (const int before : {-1, 0600, 0640, 0644, 0666, 0700, 0604, 0444}) {
      const std::string path = at("a");
      if (before >= 0) {
        std::ofstream(path) << "old";
        ASSERT_EQ(::chmod(path.c_str(), static_cast<mode_t>(before)), 0);
      }
      const mode_t fresh = access == NewFile::Access::kPrivate ? 0600 : 0644;
      const mode_t wanted = before >= 0 ? static_cast<mode_t>(before) : fresh;
      auto file = NewFile::create(path, access);
      ASSERT_TRUE(file.ok()) << file.status().message();
      EXPECT_TRUE(file->write(bytes("new")).ok());
      for (const auto& entry : fs::directory_iterator(folder_)) {
        if (entry.path() == path) continue;
        // Never more than the owner of a private file, and than what it will be.
        const mode_t part = mode_of(entry.path());
        EXPECT_EQ(part & ~(wanted | 0600), 0U) << std::oct << part;
      }
      EXPECT_TRUE(file->finish().ok());
      EXPECT_EQ(mode_of(path), wanted) << std::oct << wanted;
      EXPECT_EQ(content(path), "new");
      fs::remove(path);
    }
  }
  ::umask(umask_before);
}

// A group that had no rights to the old file gets none to the new one.
TEST_F(NewFileTest, KeepsTheGroupOfWhatWasThere) {
  const std::string path = at("a");
  std::ofstream(path) << "old";
  const gid_t other = ::getegid() + 1;
  if (::chown(path.c_str(), static_cast<uid_t>(-1), other) != 0) GTEST_SKIP() << "only for root";
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  auto file = NewFile::create(path, NewFile::Access::kPrivate);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->finish().ok());
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_gid, other);
  EXPECT_EQ(info.st_mode & 0777, 0640U);
}

TEST_F(NewFileTest, ADiskThatIsFullIsAnError) {
  // A limit on the size of files stands for the end of the disk. The signal that comes with it
  // would end the test.
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_DFL);
  rlimit low = old;
  low.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  Status status;
  {
    auto file = NewFile::create(at("a"));
    status = file->write(bytes(std::string(10000, 'x')));
  }
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_NE(std::string(status.message()).find(at("a")), std::string::npos) << status.message();
  EXPECT_EQ(files(), 0U);
}

}  // namespace
}  // namespace gen
