// SPDX-License-Identifier: Apache-2.0
// FailingFiles: the system's files with the nth call failing, reads that come back changed, and a
// count of what is open. Nothing is synced, since tests need no power cut. TestFolder: a folder of
// a test's own, removed with what is in it.
#pragma once

#include <stdlib.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/file_ops.h"

namespace gen::test {

/// Threads: any.
class FailingFiles final : public FileOps {
 public:
  Result<int> create(const std::string& path) override {
    GEN_TRY(turn(path));
    return opened(system_files().create(path));
  }
  Result<int> open(const std::string& path) override {
    GEN_TRY(turn(path));
    return opened(system_files().open(path));
  }
  Result<uint64_t> size(int file, const std::string& path) override {
    GEN_TRY(turn(path));
    return system_files().size(file, path);
  }
  Status read(int file, uint64_t offset, std::span<std::byte> to,
              const std::string& path) override {
    GEN_TRY(turn(path));
    GEN_TRY(system_files().read(file, offset, to, path));
    if (on_read) on_read(offset, to);
    return {};
  }
  void will_read(int file, uint64_t offset, size_t bytes) noexcept override {
    ++announced;
    system_files().will_read(file, offset, bytes);
  }
  Status write(int file, uint64_t offset, std::span<const std::byte> bytes,
               const std::string& path) override {
    const Status status = turn(path);
    if (status.ok()) return system_files().write(file, offset, bytes, path);
    // A full disk takes a part.
    static_cast<void>(system_files().write(file, offset, bytes.first(bytes.size() / 2), path));
    return status;
  }
  Status sync(int, const std::string& path) override { return turn(path); }
  Status close(int file, const std::string& path) override {
    const Status status = turn(path);
    --open_files;
    GEN_TRY(system_files().close(file, path));
    return status;
  }
  Status rename(const std::string& from, const std::string& to) override {
    GEN_TRY(turn(to));
    return system_files().rename(from, to);
  }
  Status remove(const std::string& path) override {
    GEN_TRY(turn(path));
    return system_files().remove(path);
  }
  Status make_folder(const std::string& path) override {
    GEN_TRY(turn(path));
    return system_files().make_folder(path);
  }
  Result<std::string> make_temporary_folder() override {
    GEN_TRY(turn("temporary"));
    return system_files().make_temporary_folder();
  }
  Status remove_folder(const std::string& path) override {
    GEN_TRY(turn(path));
    return system_files().remove_folder(path);
  }
  Status sync_folder(const std::string& path) override { return turn(path); }
  Result<int> lock_folder(const std::string& path) override {
    GEN_TRY(turn(path));
    return opened(system_files().lock_folder(path));
  }
  Result<std::vector<std::string>> list(const std::string& path) override {
    GEN_TRY(turn(path));
    return system_files().list(path);
  }

  static constexpr size_t kNever = ~size_t{0};
  std::atomic<size_t> calls{0};
  std::atomic<size_t> fail_at{kNever};  // index of the call that fails, counted from 0
  std::atomic<size_t> fail_for{1};      // and how many from there on
  std::atomic<size_t> announced{0};     // calls of will_read, which cannot fail
  std::atomic<int> open_files{0};
  std::function<void(uint64_t offset, std::span<std::byte> bytes)> on_read;

 private:
  Status turn(const std::string& path) {
    const size_t call = calls.fetch_add(1);
    const size_t first = fail_at;
    if (call < first || call - first >= fail_for) return {};
    return error(Code::kIo, "cannot write '%.600s': no space left, says the test", path.c_str());
  }
  Result<int> opened(Result<int> file) {
    if (file.ok()) ++open_files;
    return file;
  }
};

class TestFolder {
 public:
  TestFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "gen-test-XXXXXX").string();
    if (::mkdtemp(path.data()) != nullptr) path_ = path;
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Everything below, files and folders.
  [[nodiscard]] std::vector<std::string> all() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
      found.push_back(entry.path().string());
    }
    return found;
  }

 private:
  std::string path_;
};

}  // namespace gen::test
