// SPDX-License-Identifier: Apache-2.0
// A file that appears whole or not at all: it is written under another name beside its place and
// renamed when it is finished.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace gen {

/// Movable only; ends with finish(), or leaves nothing behind. Threads: one at a time.
class NewFile {
 public:
  /// Who may read a file that did not exist before.
  enum class Access {
    kUmask,   // whom the process' umask lets
    kPrivate  // this user: for what holds somebody's texts
  };

  /// An existing file keeps its permissions, whatever `access` says. While the file is written,
  /// nobody can read it who cannot read it at the end. Errors: kIo naming the path if its folder
  /// cannot be written to or if the path exists as anything but a regular file. A symbolic link is
  /// followed, so that the link stays.
  static Result<NewFile> create(const std::string& path, Access access = Access::kUmask);

  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&& other) noexcept;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();

  /// Appends. Errors: kIo naming the path and the reason ("no space left", …). Reaching a limit on
  /// the size of files is such an error, too; it does not end the process by SIGXFSZ.
  Status write(std::span<const std::byte> bytes);
  /// Waits until the bytes are on the disk and renames the file; an existing file is replaced.
  /// Nothing may be called afterwards.
  Status finish();

 private:
  struct Permissions {
    mode_t mode;
    gid_t group;
  };

  NewFile() noexcept = default;
  Status keep_permissions() noexcept;
  void discard() noexcept;

  std::string path_;       // where it shall be
  std::string temporary_;  // where it is; empty when finished
  int descriptor_ = -1;
  std::optional<Permissions> replaced_;  // of the file that was there
};

/// Writes a file with this text, whole or not at all.
Status write_file(const std::string& path, std::string_view text);

}  // namespace gen
