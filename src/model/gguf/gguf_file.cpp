// SPDX-License-Identifier: Apache-2.0
// Putting the parts of a model together and looking tensors up. Each part is checked alone by
// parse_part (part.h); here they are checked against each other. See gguf_file.h.
#include "model/gguf/gguf_file.h"

#include <algorithm>
#include <cinttypes>
#include <filesystem>
#include <numeric>
#include <utility>

#include "model/gguf/compat/translate.h"
#include "model/gguf/part.h"
#include "model/gguf/split_name.h"

namespace gen::gguf {
namespace {

constexpr uint32_t kMaxParts = 65535;  // split.count is a 16-bit number

struct SplitKeys {
  uint32_t number = 0;  // from 0
  uint32_t count = 1;
};

Result<SplitKeys> read_split_keys(const Metadata& metadata) {
  SplitKeys keys;
  GEN_ASSIGN(keys.count, metadata.get_u32("split.count", keys.count));
  GEN_ASSIGN(keys.number, metadata.get_u32("split.no", keys.number));
  // llama.cpp writes 0 into a file that it has put together.
  if (keys.count == 0) keys.count = 1;
  if (keys.count > kMaxParts) {
    return error(Code::kFormat, "metadata 'split.count': %" PRIu32 " outside [0, %" PRIu32 "]",
                 keys.count, kMaxParts);
  }
  if (keys.number >= keys.count) {
    return error(Code::kFormat,
                 "metadata 'split.no': %" PRIu32 " outside [0, %" PRIu32 "), split.count",
                 keys.number, keys.count);
  }
  return keys;
}

struct OpenPart {
  MappedFile file;
  Part part;
  SplitKeys keys;
};

Result<OpenPart> open_part(const std::string& path, MappedFile::Mode mode) {
  OpenPart out;
  GEN_ASSIGN(out.file, MappedFile::open(path, mode));
  GEN_ASSIGN(out.part, parse_part(out.file.bytes()));
  GEN_ASSIGN(out.keys, read_split_keys(*out.part.metadata));
  return out;
}

/// The part number in the name must equal that in the file, so that parts cannot be confused.
Status check_name(const SplitName& name, const SplitKeys& keys) noexcept {
  if (static_cast<uint32_t>(name.count) != keys.count) {
    return error(Code::kFormat, "metadata 'split.count': %" PRIu32 ", but the file name says %d",
                 keys.count, name.count);
  }
  if (static_cast<uint32_t>(name.number) != keys.number + 1) {
    return error(Code::kFormat,
                 "metadata 'split.no': %" PRIu32 " (from 0), but the file name says part %d",
                 keys.number, name.number);
  }
  return {};
}

}  // namespace

/// Builds a GgufFile part by part.
class Reader {
 public:
  Reader() : file_(new GgufFile) {}

  void add(uint64_t file_bytes, Part part) {
    const int index = added_++;
    if (index == 0) {
      file_->version_ = part.version;
      file_->metadata_ = std::move(part.metadata);
    }
    file_->parts_ = added_;
    file_->total_bytes_ += file_bytes;
    for (TensorInfo& tensor : part.tensors) tensor.part = index;
    if (index == 0) {
      file_->tensors_ = std::move(part.tensors);
    } else {
      file_->tensors_.insert(file_->tensors_.end(), std::make_move_iterator(part.tensors.begin()),
                             std::make_move_iterator(part.tensors.end()));
    }
  }

  void keep(MappedFile file) { file_->files_.push_back(std::move(file)); }

  /// The number of tensors of all parts is known to each of them.
  Status check_total(const Metadata& of_part) const {
    GEN_ASSIGN(const uint64_t total, of_part.get_u64("split.tensors.count"));
    if (total == file_->tensors_.size()) return {};
    return error(Code::kFormat,
                 "metadata 'split.tensors.count': %" PRIu64 ", but the parts have %zu tensors",
                 total, file_->tensors_.size());
  }

  Result<std::shared_ptr<const GgufFile>> finish() {
    GEN_ASSIGN(compat::Translated translated, compat::translate(file_->metadata_, file_->tensors_));
    file_->metadata_ = std::move(translated.metadata);
    file_->made_ = std::move(translated.made);
    file_->translated_ = translated.changed;
    const std::vector<TensorInfo>& tensors = file_->tensors_;
    std::vector<uint32_t>& order = file_->by_name_;
    order.resize(tensors.size());
    std::iota(order.begin(), order.end(), uint32_t{0});
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return tensors[a].name < tensors[b].name; });
    const auto twin = std::adjacent_find(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return tensors[a].name == tensors[b].name;
    });
    if (twin != order.end()) {
      return error(Code::kFormat, "tensor '%s': its name is there twice",
                   tensors[*twin].name.c_str());
    }
    return std::shared_ptr<const GgufFile>(std::move(file_));
  }

 private:
  std::shared_ptr<GgufFile> file_;
  int added_ = 0;
};

namespace {

Result<std::shared_ptr<const GgufFile>> open_split(const SplitName& name, OpenPart given,
                                                   MappedFile::Mode mode) {
  Reader reader;
  std::vector<std::pair<std::string, std::shared_ptr<const Metadata>>> metadata;
  for (int number = 1; number <= name.count; ++number) {
    const std::string path = split_path(name.prefix, number, name.count);
    OpenPart part;
    if (number == name.number) {
      part = std::move(given);
    } else {
      std::error_code ignored;
      if (!std::filesystem::exists(path, ignored)) {
        return error(Code::kFormat,
                     "metadata 'split.count': %d, but part %d is missing: no file '%.600s'",
                     name.count, number, path.c_str());
      }
      auto opened = open_part(path, mode);
      if (!opened.ok()) {
        const Status status = opened.status();
        return status.code() == Code::kIo ? status : in_part(status, path);
      }
      part = std::move(opened).value();
      const Status named = check_name({name.prefix, number, name.count}, part.keys);
      if (!named.ok()) return in_part(named, path);
    }
    metadata.emplace_back(path, part.part.metadata);
    reader.add(part.file.bytes().size(), std::move(part.part));
    reader.keep(std::move(part.file));
  }
  for (const auto& [path, of_part] : metadata) {
    const Status total = reader.check_total(*of_part);
    if (!total.ok()) return in_part(total, path);
  }
  return reader.finish();
}

}  // namespace

Result<std::shared_ptr<const GgufFile>> GgufFile::open(const std::string& path,
                                                       MappedFile::Mode mode) {
  GEN_ASSIGN(OpenPart given, open_part(path, mode));
  if (given.keys.count > 1) {
    const std::optional<SplitName> name = parse_split_name(path);
    if (!name.has_value()) {
      return error(Code::kFormat,
                   "metadata 'split.count': %" PRIu32
                   " parts, but the file name does not end like -00001-of-%05" PRIu32 ".gguf",
                   given.keys.count, given.keys.count);
    }
    GEN_TRY(check_name(*name, given.keys));
    return open_split(*name, std::move(given), mode);
  }
  Reader reader;
  reader.add(given.file.bytes().size(), std::move(given.part));
  reader.keep(std::move(given.file));
  return reader.finish();
}

Result<std::shared_ptr<const GgufFile>> GgufFile::parse(std::span<const std::byte> bytes) {
  GEN_ASSIGN(Part part, parse_part(bytes));
  GEN_ASSIGN(const SplitKeys keys, read_split_keys(*part.metadata));
  if (keys.count > 1) {
    return error(Code::kFormat,
                 "metadata 'split.count': %" PRIu32 ", but a model in memory must be whole",
                 keys.count);
  }
  Reader reader;
  reader.add(bytes.size(), std::move(part));
  return reader.finish();
}

const TensorInfo* GgufFile::find_tensor(std::string_view name) const noexcept {
  const auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [this](uint32_t index, std::string_view wanted) { return tensors_[index].name < wanted; });
  if (found == by_name_.end() || tensors_[*found].name != name) return nullptr;
  return &tensors_[*found];
}

bool GgufFile::is_mapped() const noexcept {
  return !files_.empty() && std::all_of(files_.begin(), files_.end(),
                                        [](const MappedFile& file) { return file.is_mapped(); });
}

Status GgufFile::check_unchanged() const {
  for (const MappedFile& file : files_) GEN_TRY(file.check_unchanged());
  return {};
}

void GgufFile::drop_pages(const TensorInfo& tensor) const noexcept {
  const auto part = static_cast<size_t>(tensor.part);
  if (part >= files_.size()) return;
  files_[part].drop_pages(static_cast<size_t>(tensor.offset_in_file), tensor.data.size());
}

}  // namespace gen::gguf
