// SPDX-License-Identifier: Apache-2.0
// Proves that both modes give the bytes of a file, and that everything that is not a readable
// regular file is refused with kIo naming the path and the reason.
#include "base/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/sanitized.h"

namespace gen {
namespace {

class MappedFileTest : public ::testing::TestWithParam<MappedFile::Mode> {
 protected:
  void SetUp() override {
    dir_ = std::filesystem::path(::testing::TempDir()) /
           ("mapped_file_test." + std::to_string(getpid()));
    std::filesystem::create_directories(dir_);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::string write(const std::string& name, const std::string& content) const {
    const std::string path = dir_ / name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  static void expect_refused(const std::string& path, const std::string& reason) {
    auto file = MappedFile::open(path, GetParam());
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.status().code(), Code::kIo);
    const std::string message = file.status().message();
    EXPECT_NE(message.find(reason), std::string::npos) << message;
    EXPECT_NE(message.find(path.substr(0, 600)), std::string::npos) << message;
  }

  std::filesystem::path dir_;
};

std::string text_of(const MappedFile& file) {
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

std::string pattern(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + (i >> 8));
  return text;
}

TEST_P(MappedFileTest, GivesTheBytes) {
  for (size_t size : {1U, 63U, 4095U, 4096U, 4097U, 300000U}) {
    const std::string content = pattern(size);
    auto file = MappedFile::open(write("data", content), GetParam());
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_TRUE(text_of(file.value()) == content) << size;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(file->bytes().data()) % 64, 0U);
  }
}

TEST_P(MappedFileTest, EmptyFileIsZeroBytes) {
  auto file = MappedFile::open(write("empty", ""), GetParam());
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->bytes().size(), 0U);
}

TEST_P(MappedFileTest, OutlivesItsName) {
  const std::string path = write("gone", "still here");
  auto file = MappedFile::open(path, GetParam());
  ASSERT_TRUE(file.ok());
  std::filesystem::remove(path);
  EXPECT_EQ(text_of(file.value()), "still here");
}

TEST_P(MappedFileTest, Moves) {
  auto file = MappedFile::open(write("a", "first"), GetParam());
  auto other = MappedFile::open(write("b", "second"), GetParam());
  ASSERT_TRUE(file.ok() && other.ok());
  MappedFile moved(std::move(file).value());
  EXPECT_EQ(text_of(moved), "first");
  moved = std::move(other).value();
  EXPECT_EQ(text_of(moved), "second");
  EXPECT_EQ(file->bytes().size(), 0U);
}

TEST_P(MappedFileTest, DroppedPagesComeBack) {
  const std::string content = pattern(5 * 4096 + 100);
  auto file = MappedFile::open(write("data", content), GetParam());
  ASSERT_TRUE(file.ok());
  const size_t size = content.size();
  file->drop_pages(0, size);
  file->drop_pages(100, 2 * 4096);
  file->drop_pages(size - 1, SIZE_MAX);
  file->drop_pages(size, 1);
  file->drop_pages(SIZE_MAX, SIZE_MAX);
  EXPECT_TRUE(text_of(file.value()) == content);
}

/// Page faults of this thread that take no file from a disk.
long faults() {
  rusage usage{};
  EXPECT_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
  return usage.ru_minflt;
}

TEST_P(MappedFileTest, PagesAreThereOnceFaultedIn) {
  const std::string content = pattern(400 * 4096 + 100);
  auto file = MappedFile::open(write("data", content), GetParam());
  ASSERT_TRUE(file.ok());
  const std::span<const std::byte> bytes = file->bytes();
  fault_in(bytes.first(0));
  fault_in(bytes.subspan(4097, 8192));
  fault_in(bytes);
  const long before = faults();
  unsigned sum = 0;
  for (size_t i = 0; i < bytes.size(); i += 4096) sum += std::to_integer<unsigned>(bytes[i]);
  const long taken = faults() - before;
  EXPECT_GT(sum, 0U);
#ifdef MADV_POPULATE_READ
  // Kernels before 5.14 do not know it. Without it there are as many as 25.
  const size_t beyond = reinterpret_cast<uintptr_t>(bytes.data()) % 4096;
  void* const page = const_cast<std::byte*>(bytes.data()) - beyond;
  if (!test::kSanitized && ::madvise(page, 1, MADV_POPULATE_READ) == 0) {
    EXPECT_LE(taken, 2);
  }
#endif
  EXPECT_TRUE(text_of(file.value()) == content);
}

TEST_P(MappedFileTest, RefusesWhatIsNotAFile) {
  expect_refused(dir_ / "missing", "no such file");
  expect_refused(dir_, "is a directory");
  expect_refused("/dev/null", "not a regular file");
  expect_refused("", "no such file");
  const std::string file = write("file", "x");
  expect_refused(file + "/below", "not a directory");
  const std::string pipe = dir_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  expect_refused(pipe, "not a regular file");  // and does not wait for a writer
  std::filesystem::create_symlink("loop", dir_ / "loop");
  expect_refused(dir_ / "loop", "symbolic links");
  expect_refused(std::string(5000, 'x'), "name too long");
  auto zero = MappedFile::open(std::string("a\0b", 3), GetParam());
  EXPECT_EQ(zero.status().code(), Code::kIo);
}

TEST_P(MappedFileTest, RefusesWithoutPermission) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const std::string path = write("secret", "x");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  expect_refused(path, "permission denied");
}

// What was read stays; what is mapped is noticed.
TEST_P(MappedFileTest, TellsWhetherItWasChanged) {
  const bool mapped = GetParam() == MappedFile::Mode::kMap;
  const std::string path = write("data", pattern(9000));
  auto file = MappedFile::open(path, GetParam());
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->check_unchanged().ok());
  std::filesystem::resize_file(path, 5000);
  const Status shorter = file->check_unchanged();
  EXPECT_EQ(shorter.code(), mapped ? Code::kIo : Code::kOk);
  if (mapped) {
    EXPECT_EQ(shorter.message(), "cannot read '" + path + "': it was changed meanwhile");
  }
  std::filesystem::resize_file(path, 9000);
  const timespec times[2] = {{1, 0}, {1, 0}};  // as after a write, whatever the clock's steps
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  EXPECT_EQ(file->check_unchanged().code(), mapped ? Code::kIo : Code::kOk);
  const MappedFile moved = std::move(file).value();
  EXPECT_EQ(moved.check_unchanged().code(), mapped ? Code::kIo : Code::kOk);
}

// The way to replace a file that is in use.
TEST_P(MappedFileTest, AFileInItsPlaceIsAnother) {
  const std::string path = write("data", "the first");
  auto file = MappedFile::open(path, GetParam());
  ASSERT_TRUE(file.ok());
  std::filesystem::rename(write("new", "another"), path);
  EXPECT_TRUE(file->check_unchanged().ok());
  std::filesystem::remove(path);
  EXPECT_TRUE(file->check_unchanged().ok());
  EXPECT_EQ(text_of(file.value()), "the first");
}

INSTANTIATE_TEST_SUITE_P(Modes, MappedFileTest,
                         ::testing::Values(MappedFile::Mode::kMap, MappedFile::Mode::kRead));

}  // namespace
}  // namespace gen
