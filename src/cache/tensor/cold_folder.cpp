// SPDX-License-Identifier: Apache-2.0
// See cold_folder.h.
#include "cache/tensor/cold_folder.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "base/checksum.h"
#include "base/io_error.h"

namespace gen::cache {
namespace {

constexpr uint32_t kColdVersion = 1;
constexpr size_t kColdHeaderBytes = 96;
constexpr size_t kManifestHead = 40;
constexpr size_t kManifestRow = 48;
constexpr uint32_t kNoFile = UINT32_MAX;
constexpr char kLayerMagic[] = "GENKVLAY";
constexpr char kManifestMagic[] = "GENKVMAN";
constexpr char kPrefix[] = "kv-";
constexpr char kPart[] = ".part";

/// Writes numbers in sequence.
class Writer {
 public:
  void text(const char* eight) { raw(std::as_bytes(std::span(eight, 8))); }
  void raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void u32(uint32_t x) { number(x, 4); }
  void i32(int32_t x) { number(static_cast<uint32_t>(x), 4); }
  void u64(uint64_t x) { number(x, 8); }
  void seal() { u64(checksum(bytes_)); }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void number(uint64_t x, int n) {
    for (int i = 0; i < n; ++i) bytes_.push_back(static_cast<std::byte>(x >> (8 * i)));
  }
  std::vector<std::byte> bytes_;
};

/// Reads them; the caller has checked the size.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  [[nodiscard]] bool text(const char* eight) { return std::memcmp(take(8).data(), eight, 8) == 0; }
  std::span<const std::byte> take(size_t n) {
    const auto taken = bytes_.first(n);
    bytes_ = bytes_.subspan(n);
    return taken;
  }
  uint32_t u32() { return static_cast<uint32_t>(number(4)); }
  int32_t i32() { return static_cast<int32_t>(number(4)); }
  uint64_t u64() { return number(8); }

 private:
  uint64_t number(size_t n) {
    uint64_t x = 0;
    size_t shift = 0;
    for (const std::byte byte : take(n)) {
      x |= std::to_integer<uint64_t>(byte) << shift;
      shift += 8;
    }
    return x;
  }
  std::span<const std::byte> bytes_;
};

bool sealed(std::span<const std::byte> bytes) {
  const size_t body = bytes.size() - sizeof(uint64_t);
  return Reader(bytes.subspan(body)).u64() == checksum(bytes.first(body));
}

Status bad_file(const std::string& path, const char* why) {
  return error(Code::kFormat, "'%.600s' %s", path.c_str(), why);
}

uint32_t element_type(const WarmForm& form) {  // float32, binary16, or the form's own codes
  if (form.groups != nullptr) return 2;
  return form.code == WarmForm::Code::kF16 ? 1 : 0;
}

bool good_id(std::string_view id) {
  constexpr size_t kMost = 64;
  if (id.empty() || id.size() > kMost) return false;
  return std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

Status check_id(const std::string& id) {
  if (id.empty() || good_id(id)) return {};
  return error(Code::kInvalidArgument,
               "store id '%.80s': 1 to 64 letters, digits, '-' and '_' are allowed", id.c_str());
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    text += "0123456789abcdef"[std::to_integer<size_t>(byte >> 4)];
    text += "0123456789abcdef"[std::to_integer<size_t>(byte & std::byte{15})];
  }
  return text;
}

/// Turns std::bad_alloc into a status, so that the caller can undo what it began.
template <typename F>
Status contain(F&& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return {Code::kOutOfMemory, "no memory for a file of a tiered cache"};
  }
}

}  // namespace

ColdFolder::~ColdFolder() {
  try {
    if (!close().ok()) static_cast<void>(close());
  } catch (...) {  // no memory for the manifest: the previous one stays
  }
}

void ColdFolder::set_path(std::string path) {
  constexpr size_t kLongestName = sizeof "/layer_-2147483648.bin";
  path_ = std::move(path);
  closed_ = false;  // there are files to remove now
  name_.reserve(path_.size() + kLongestName);
}

std::string ColdFolder::file_of(int32_t layer) const {
  return path_ + "/layer_" + std::to_string(layer) + ".bin";
}

const std::string& ColdFolder::name_of_layer(int32_t layer) {
  char digits[16];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), layer).ptr;
  return name_.assign(path_).append("/layer_").append(digits, end).append(".bin");
}

const std::string& ColdFolder::name_of_manifest() {
  return name_.assign(path_).append("/manifest.bin");
}

ColdLayer ColdFolder::layer(int32_t layer) const {
  const std::lock_guard lock(mutex_);
  return layers_[static_cast<size_t>(layer)];
}

size_t ColdFolder::metadata_bytes() const noexcept {
  const std::lock_guard lock(mutex_);
  return sizeof(*this) + layers_.capacity() * sizeof(ColdLayer);
}

Result<std::unique_ptr<ColdFolder>> ColdFolder::create(const Options& options, int32_t num_layers) {
  GEN_TRY(check_id(options.id));
  std::unique_ptr<ColdFolder> made(new ColdFolder(options, num_layers));
  made->closed_ = true;  // there are no files to remove yet
  made->litter_.reserve(static_cast<size_t>(num_layers));
  if (::getentropy(made->owner_.data(), made->owner_.size()) != 0) {
    return io_error("open", "the system's random numbers", errno);
  }
  if (made->temporary_) {
    GEN_ASSIGN(std::string path, made->files_.make_temporary_folder());
    made->set_path(std::move(path));
  } else {
    const std::string id = options.id.empty() ? hex(std::span(made->owner_).first(8)) : options.id;
    std::string path = options.folder + "/" + kPrefix + id;
    GEN_TRY(made->files_.make_folder(path));
    made->set_path(std::move(path));
  }
  GEN_ASSIGN(made->lock_, OpenFile::lock(made->files_, made->path_));
  return made;
}

Result<std::unique_ptr<ColdFolder>> ColdFolder::open(const Options& options, int32_t num_layers) {
  GEN_TRY(check_id(options.id));
  if (options.folder.empty()) {
    return Status(Code::kInvalidArgument, "a cold folder to open has no default");
  }
  std::string id = options.id;
  if (id.empty()) {
    GEN_ASSIGN(const auto names, options.files->list(options.folder));
    size_t found = 0;
    for (const std::string& name : names) {
      const std::string_view rest = std::string_view(name).substr(std::min(name.size(), size_t{3}));
      if (!name.starts_with(kPrefix) || !good_id(rest)) continue;
      ++found;
      id = rest;
    }
    if (found != 1) {
      return error(Code::kIo, "'%.600s' holds %zu stores, not the one to open",
                   options.folder.c_str(), found);
    }
  }
  std::unique_ptr<ColdFolder> made(new ColdFolder(options, num_layers));
  made->closed_ = true;
  made->litter_.reserve(static_cast<size_t>(num_layers));
  made->set_path(options.folder + "/" + kPrefix + id);
  made->closed_ = true;  // do not remove files before they are checked
  GEN_ASSIGN(made->lock_, OpenFile::lock(made->files_, made->path_));
  GEN_TRY(made->read_manifest());
  made->manifest_there_ = true;
  made->closed_ = false;
  return made;
}

Status ColdFolder::read_manifest() {
  const std::string path = manifest_path();
  GEN_ASSIGN(OpenFile file, OpenFile::open(files_, path));
  GEN_ASSIGN(const uint64_t size, file.size());
  const size_t rows = layers_.size();
  const size_t expected = kManifestHead + rows * kManifestRow + sizeof(uint64_t);
  if (size < kManifestHead) return bad_file(path, "is no manifest of a tiered cache: too short");
  std::vector<std::byte> bytes(std::min<size_t>(expected, static_cast<size_t>(size)));
  GEN_TRY(file.read(0, bytes));
  Reader reader(bytes);
  if (!reader.text(kManifestMagic)) return bad_file(path, "is no manifest of a tiered cache");
  const uint32_t version = reader.u32();
  if (version != kColdVersion) {
    return error(Code::kFormat, "'%.600s' is of version %u, not %u", path.c_str(), version,
                 kColdVersion);
  }
  const uint32_t count = reader.u32();
  if (count != rows) {
    return error(Code::kFormat, "'%.600s' is of a cache of %u layers, not %zu", path.c_str(), count,
                 rows);
  }
  if (size != expected || !sealed(bytes)) return bad_file(path, "is damaged");
  const auto owner = reader.take(owner_.size());
  std::copy(owner.begin(), owner.end(), owner_.begin());
  generation_ = reader.u64();
  for (ColdLayer& layer : layers_) {
    const uint32_t form = reader.u32();
    layer.chunk = reader.i32();
    layer.shape.batch = reader.i32();
    layer.shape.seq = reader.i32();
    layer.shape.dim = reader.i32();
    layer.kept = reader.i32();
    layer.bytes = reader.u64();
    layer.checksum = reader.u64();
    layer.generation = reader.u64();
    if (form == kNoFile) {
      layer = {};
      continue;
    }
    layer.form = find_warm_form(form);
    size_t needed = 0;
    const bool good =
        layer.form != nullptr && layer.chunk > 0 && layer.shape.batch > 0 && layer.shape.seq > 0 &&
        layer.shape.dim > 0 && layer.kept > 0 && layer.kept <= layer.shape.seq &&
        layer.form->layer_bytes(layer.shape, layer.chunk, &needed) && needed == layer.bytes;
    if (!good) return bad_file(path, "is damaged");
  }
  return {};
}

Status ColdFolder::write_file(const std::string& path, std::span<const std::byte> header,
                              std::span<const std::byte> payload) {
  const std::string part = path + kPart;
  Status status;
  {
    GEN_ASSIGN(OpenFile file, OpenFile::create(files_, part));
    status = file.write(0, header);
    if (status.ok() && !payload.empty()) status = file.write(header.size(), payload);
    if (status.ok()) status = file.sync();
    const Status closed = file.close();
    if (status.ok()) status = closed;
  }
  if (status.ok()) status = files_.rename(part, path);
  if (!status.ok()) {
    if (!files_.remove(part).ok()) static_cast<void>(files_.remove(part));
    return status;
  }
  return files_.sync_folder(path_);
}

Status ColdFolder::replace(std::vector<ColdLayer> layers) {
  Writer writer;
  writer.text(kManifestMagic);
  writer.u32(kColdVersion);
  writer.u32(static_cast<uint32_t>(layers.size()));
  writer.raw(owner_);
  writer.u64(generation_);
  for (const ColdLayer& layer : layers) {
    writer.u32(layer.form != nullptr ? static_cast<uint32_t>(layer.form->code) : kNoFile);
    writer.i32(layer.chunk);
    writer.i32(layer.shape.batch);
    writer.i32(layer.shape.seq);
    writer.i32(layer.shape.dim);
    writer.i32(layer.kept);
    writer.u64(layer.bytes);
    writer.u64(layer.checksum);
    writer.u64(layer.generation);
  }
  writer.seal();
  manifest_old_ = true;
  manifest_there_ = true;
  GEN_TRY(write_file(manifest_path(), writer.bytes(), {}));
  manifest_old_ = false;
  layers_ = std::move(layers);
  return {};
}

Status ColdFolder::put(int32_t layer, const ColdLayer& what, std::span<const std::byte> payload) {
  ColdLayer added = what;
  added.bytes = payload.size();
  added.checksum = checksum(payload);
  {
    const std::lock_guard lock(mutex_);
    added.generation = ++generation_;
  }
  Writer writer;
  writer.text(kLayerMagic);
  writer.u32(kColdVersion);
  writer.i32(layer);
  writer.raw(owner_);
  writer.u32(static_cast<uint32_t>(added.form->code));
  writer.i32(added.chunk);
  writer.i32(added.shape.batch);
  writer.i32(added.shape.seq);
  writer.i32(added.shape.dim);
  writer.u32(element_type(*added.form));
  writer.u64(added.bytes);
  writer.u64(added.checksum);
  writer.u64(added.generation);
  writer.u64(0);
  writer.seal();
  Status status = contain([&] { return write_file(file_of(layer), writer.bytes(), payload); });
  const std::lock_guard lock(mutex_);
  if (status.ok()) {
    status = contain([&] {
      std::vector<ColdLayer> next = layers_;
      next[static_cast<size_t>(layer)] = added;
      return replace(std::move(next));
    });
  }
  if (!status.ok()) forget(layer);
  return status;
}

Status ColdFolder::read(int32_t layer, std::span<std::byte> payload) const {
  const ColdLayer expected = this->layer(layer);
  GEN_ASSERT(expected.form != nullptr && payload.size() == expected.bytes);
  const std::string path = file_of(layer);
  GEN_ASSIGN(const OpenFile file, OpenFile::open(files_, path));
  GEN_ASSIGN(const uint64_t size, file.size());
  if (size != kColdHeaderBytes + expected.bytes) {
    return error(Code::kFormat, "'%.600s' has %llu bytes, not %llu: it is torn or not this cache's",
                 path.c_str(), static_cast<unsigned long long>(size),
                 static_cast<unsigned long long>(kColdHeaderBytes + expected.bytes));
  }
  std::byte header[kColdHeaderBytes];
  GEN_TRY(file.read(0, header));
  Reader reader(header);
  if (!reader.text(kLayerMagic)) return bad_file(path, "is no layer of a tiered cache");
  const uint32_t version = reader.u32();
  if (version != kColdVersion) {
    return error(Code::kFormat, "'%.600s' is of version %u, not %u", path.c_str(), version,
                 kColdVersion);
  }
  if (!sealed(header)) return bad_file(path, "is damaged: its header's checksum is wrong");
  bool same = reader.i32() == layer;
  const auto owner = reader.take(owner_.size());
  if (!std::equal(owner.begin(), owner.end(), owner_.begin())) {
    return bad_file(path, "belongs to another cache");
  }
  same = reader.u32() == static_cast<uint32_t>(expected.form->code) && same;
  same = reader.i32() == expected.chunk && same;
  same = reader.i32() == expected.shape.batch && same;
  same = reader.i32() == expected.shape.seq && same;
  same = reader.i32() == expected.shape.dim && same;
  same = reader.u32() == element_type(*expected.form) && same;
  same = reader.u64() == expected.bytes && same;
  same = reader.u64() == expected.checksum && same;
  same = reader.u64() == expected.generation && same;
  if (!same) return bad_file(path, "holds something else than was put there");
  GEN_TRY(file.read(kColdHeaderBytes, payload));
  if (checksum(payload) != expected.checksum) {
    return bad_file(path, "is damaged: its checksum is wrong");
  }
  return {};
}

void ColdFolder::forget(int32_t layer) {
  if (files_.remove(name_of_layer(layer)).ok()) return;
  if (std::find(litter_.begin(), litter_.end(), layer) == litter_.end()) {
    litter_.push_back(layer);  // reserved, one entry per layer
  }
}

Status ColdFolder::drop(int32_t layer) {
  const std::lock_guard lock(mutex_);
  std::vector<ColdLayer> next = layers_;
  next[static_cast<size_t>(layer)] = {};
  GEN_TRY(replace(std::move(next)));
  forget(layer);
  return {};
}

Status ColdFolder::keep(std::span<const int32_t> kept) {
  const std::lock_guard lock(mutex_);
  std::vector<ColdLayer> next = layers_;
  std::vector<int32_t> dropped;
  bool changes = false;
  for (size_t i = 0; i < next.size(); ++i) {
    if (next[i].form == nullptr || next[i].kept <= kept[i]) continue;
    changes = true;
    next[i].kept = kept[i];
    if (kept[i] > 0) continue;
    next[i] = {};
    dropped.push_back(static_cast<int32_t>(i));
  }
  if (!changes) return {};
  GEN_TRY(replace(std::move(next)));
  for (const int32_t layer : dropped) forget(layer);
  return {};
}

Status ColdFolder::close() {
  const std::lock_guard lock(mutex_);
  if (closed_) return {};
  const bool cold = std::any_of(layers_.begin(), layers_.end(),
                                [](const ColdLayer& layer) { return layer.form != nullptr; });
  while (!litter_.empty()) {
    const int32_t layer = litter_.back();
    if (layers_[static_cast<size_t>(layer)].form == nullptr) {
      GEN_TRY(files_.remove(name_of_layer(layer)));
    }
    litter_.pop_back();
  }
  if (cold && !temporary_) {
    if (manifest_old_) GEN_TRY(replace(layers_));
  } else {
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (layers_[i].form == nullptr) continue;
      GEN_TRY(files_.remove(name_of_layer(static_cast<int32_t>(i))));
      layers_[i] = {};
    }
    if (manifest_there_) GEN_TRY(files_.remove(name_of_manifest()));
    manifest_there_ = false;
    GEN_TRY(files_.remove_folder(path_));
  }
  closed_ = true;
  static_cast<void>(lock_.close());
  return {};
}

}  // namespace gen::cache
