// SPDX-License-Identifier: Apache-2.0
// A file for blocks of memory that a cache does not need for a while. It has no name once it is
// open: nobody else can read or change it, it disappears with its last user however that ends, and
// nothing can be found in it later. Files that outlive their store are cold_folder.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/file_ops.h"
#include "base/status.h"
#include "engine/memory.h"

namespace gen::cache {

class SpillFile;

/// A block in a file; its place is free again when this ends. Immutable; keeps the file.
class SpilledBlock {
 public:
  SpilledBlock(std::shared_ptr<SpillFile> file, uint64_t place, size_t bytes,
               uint64_t checksum) noexcept
      : file_(std::move(file)), place_(place), bytes_(bytes), checksum_(checksum) {}
  SpilledBlock(const SpilledBlock&) = delete;
  SpilledBlock& operator=(const SpilledBlock&) = delete;
  ~SpilledBlock();

  [[nodiscard]] size_t bytes() const noexcept { return bytes_; }
  /// It will be read soon.
  void announce() const noexcept;
  /// bytes() of them to an engine's memory, as they were put: kIo, or kFormat if they are not.
  Status read(engine::EngineMemory& memory, engine::EnginePtr<std::byte> to) const;

 private:
  std::shared_ptr<SpillFile> file_;
  uint64_t place_;
  size_t bytes_;
  uint64_t checksum_;
};

/// Threads: any.
class SpillFile : public std::enable_shared_from_this<SpillFile> {
 public:
  /// A file in `folder`, or where the system keeps temporary ones if that is empty, for blocks of
  /// up to block_bytes. kIo.
  static Result<std::shared_ptr<SpillFile>> create(FileOps& files, const std::string& folder,
                                                   size_t block_bytes);

  /// Written when sync() has succeeded. kIo.
  Result<std::shared_ptr<const SpilledBlock>> put(std::span<const std::byte> bytes);
  /// The bytes of a buffer.
  Result<std::shared_ptr<const SpilledBlock>> put(engine::EngineMemory& memory,
                                                  const engine::EngineBuffer& buffer);
  Status sync() { return file_.sync(); }
  /// Blocks that the file has room for, in use or not.
  [[nodiscard]] uint64_t places() const;

 private:
  friend class SpilledBlock;
  SpillFile(OpenFile file, size_t place_bytes) noexcept
      : file_(std::move(file)), place_bytes_(place_bytes) {}

  Result<uint64_t> take_place();
  void free_place(uint64_t place) noexcept;

  OpenFile file_;
  const size_t place_bytes_;
  mutable std::mutex mutex_;
  uint64_t places_ = 0;
  std::vector<uint64_t> free_;  // with room for all places
};

}  // namespace gen::cache
