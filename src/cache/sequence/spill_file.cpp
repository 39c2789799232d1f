// SPDX-License-Identifier: Apache-2.0
// See spill_file.h.
#include "cache/sequence/spill_file.h"

#include <unistd.h>

#include <cerrno>
#include <new>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/checksum.h"
#include "base/io_error.h"

namespace gen::cache {
namespace {

constexpr size_t kPage = 4096;  // places start at page borders, so that no two share a page

Result<OpenFile> open_unnamed(FileOps& files, const std::string& folder) {
  uint64_t random = 0;
  if (::getentropy(&random, sizeof(random)) != 0) {
    return io_error("open", "the system's random numbers", errno);
  }
  const std::string path = folder + "/kv-spill-" + std::to_string(random);
  GEN_ASSIGN(OpenFile file, OpenFile::create(files, path));
  Status removed = files.remove(path);
  if (!removed.ok()) {
    static_cast<void>(files.remove(path));
    return removed;
  }
  return file;
}

/// The same in a folder that is removed in any case.
Result<OpenFile> open_unnamed_and_remove(FileOps& files, const std::string& folder) {
  Result<OpenFile> file = Status(Code::kOutOfMemory, "no memory for the name of a spill file");
  try {
    file = open_unnamed(files, folder);
  } catch (const std::bad_alloc&) {
  }
  Status removed = files.remove_folder(folder);
  if (!removed.ok()) static_cast<void>(files.remove_folder(folder));
  GEN_TRY(file.status());
  GEN_TRY(removed);
  return file;
}

}  // namespace

SpilledBlock::~SpilledBlock() { file_->free_place(place_); }

void SpilledBlock::announce() const noexcept {
  file_->file_.will_read(place_ * file_->place_bytes_, bytes_);
}

Status SpilledBlock::read(engine::EngineMemory& memory, engine::EnginePtr<std::byte> to) const {
  std::vector<std::byte> bounce;
  std::byte* at = memory.host(to);
  if (at == nullptr) {
    bounce.resize(bytes_);
    at = bounce.data();
  }
  const std::span<std::byte> bytes(at, bytes_);
  GEN_TRY(file_->file_.read(place_ * file_->place_bytes_, bytes));
  if (checksum(bytes) == checksum_) {
    return bounce.empty() ? Status() : memory.write(to, bounce.data(), bytes_);
  }
  return error(Code::kFormat, "'%.600s' is damaged: the checksum of block %llu is wrong",
               file_->file_.path().c_str(), static_cast<unsigned long long>(place_));
}

Result<std::shared_ptr<SpillFile>> SpillFile::create(FileOps& files, const std::string& folder,
                                                     size_t block_bytes) {
  size_t place_bytes = 0;
  if (!checked_align_up(block_bytes, kPage, &place_bytes)) {
    return error(Code::kOutOfMemory, "a block of %zu bytes", block_bytes);
  }
  if (!folder.empty()) {
    GEN_ASSIGN(OpenFile file, open_unnamed(files, folder));
    return std::shared_ptr<SpillFile>(new SpillFile(std::move(file), place_bytes));
  }
  GEN_ASSIGN(const std::string own, files.make_temporary_folder());
  GEN_ASSIGN(OpenFile file, open_unnamed_and_remove(files, own));
  return std::shared_ptr<SpillFile>(new SpillFile(std::move(file), place_bytes));
}

Result<uint64_t> SpillFile::take_place() {
  const std::lock_guard lock(mutex_);
  if (!free_.empty()) {
    const uint64_t place = free_.back();
    free_.pop_back();
    return place;
  }
  // Reserved now, so that releasing a place does not allocate.
  if (free_.capacity() <= places_) free_.reserve(2 * static_cast<size_t>(places_) + 64);
  return places_++;
}

void SpillFile::free_place(uint64_t place) noexcept {
  const std::lock_guard lock(mutex_);
  free_.push_back(place);
}

uint64_t SpillFile::places() const {
  const std::lock_guard lock(mutex_);
  return places_;
}

Result<std::shared_ptr<const SpilledBlock>> SpillFile::put(engine::EngineMemory& memory,
                                                           const engine::EngineBuffer& buffer) {
  if (const std::byte* at = memory.host(buffer.data())) return put({at, buffer.size()});
  std::vector<std::byte> bounce(buffer.size());
  GEN_TRY(memory.read(bounce.data(), buffer.data(), buffer.size()));
  return put(bounce);
}

Result<std::shared_ptr<const SpilledBlock>> SpillFile::put(std::span<const std::byte> bytes) {
  GEN_ASSERT(bytes.size() <= place_bytes_);
  GEN_ASSIGN(const uint64_t place, take_place());
  std::shared_ptr<const SpilledBlock> block;
  try {
    block = std::make_shared<const SpilledBlock>(shared_from_this(), place, bytes.size(),
                                                 checksum(bytes));
  } catch (...) {
    free_place(place);
    throw;
  }
  // From here on the block releases its place even if the write fails.
  GEN_TRY(file_.write(place * place_bytes_, bytes));
  return block;
}

}  // namespace gen::cache
