// SPDX-License-Identifier: Apache-2.0
// A file that appears whole or not at all: it is written under another name beside its place and
// renamed when it is finished.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/status.h"

namespace gen {

/// Movable only; ends with finish(), or leaves nothing behind. Threads: one at a time.
class NewFile {
 public:
  /// Errors: kIo naming the path if its folder cannot be written to or if it is there already as
  /// anything but a regular file. A symbolic link is followed, so that the link stays.
  static Result<NewFile> create(const std::string& path);

  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&& other) noexcept;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();

  /// Appends. Errors: kIo naming the path and the reason ("no space left", …).
  Status write(std::span<const std::byte> bytes);
  /// Waits until the bytes are on the disk and puts the file in its place; a file that was there is
  /// replaced. Nothing may be called afterwards.
  Status finish();

 private:
  NewFile() noexcept = default;
  void discard() noexcept;

  std::string path_;       // where it shall be
  std::string temporary_;  // where it is; empty when finished
  int descriptor_ = -1;
};

}  // namespace gen
