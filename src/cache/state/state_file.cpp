// SPDX-License-Identifier: Apache-2.0
// See state_file.h. The file is written in pieces of a megabyte; larger spans are written directly.
#include "cache/state/state_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/new_file.h"

namespace gen::cache {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie");

constexpr char kMagic[8] = {'G', 'E', 'N', 'S', 'T', 'A', 'T', 'E'};
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 24;  // magic, version, kind, total size
constexpr size_t kSectionHeaderBytes = 16;
constexpr size_t kSumBytes = 8;
constexpr size_t kPiece = size_t{1} << 20;

constexpr size_t padded(size_t bytes) { return (bytes + 7) / 8 * 8; }

template <typename T>
T load(std::span<const std::byte> from, size_t offset) {
  T value;
  std::memcpy(&value, from.data() + offset, sizeof(T));
  return value;
}

std::string printable(std::span<const std::byte> name) {
  std::string text;
  for (const std::byte byte : name) {
    const auto c = std::to_integer<char>(byte);
    text += c >= ' ' && c <= '~' ? c : '?';
  }
  return text;
}

}  // namespace

Result<size_t> state_size(const StateContents& contents) {
  StateWriter counter(nullptr);
  GEN_TRY(contents(counter));
  return kHeaderBytes + counter.bytes_ + kSumBytes;
}

Status save_state(StateKind kind, const StateContents& contents, std::span<std::byte> out) {
  GEN_ASSIGN(const size_t bytes, state_size(contents));
  GEN_ASSERT(bytes <= out.size());
  StateWriter writer([&out](std::span<const std::byte> piece) {
    std::memcpy(out.data(), piece.data(), piece.size());
    out = out.subspan(piece.size());
    return Status();
  });
  return writer.run(kind, bytes, contents);
}

Status save_state(StateKind kind, const StateContents& contents, const std::string& path) {
  GEN_ASSIGN(const size_t bytes, state_size(contents));
  GEN_ASSIGN(NewFile file, NewFile::create(path, NewFile::Access::kPrivate));
  StateWriter writer([&file](std::span<const std::byte> piece) { return file.write(piece); });
  GEN_TRY(writer.run(kind, bytes, contents));
  return file.finish();
}

Status StateWriter::run(StateKind kind, size_t bytes, const StateContents& contents) {
  held_.reserve(std::min(bytes, kPiece));
  GEN_TRY(write(std::as_bytes(std::span(kMagic))));
  GEN_TRY(number(kVersion));
  GEN_TRY(number(static_cast<uint32_t>(kind)));
  GEN_TRY(number(uint64_t{bytes}));
  GEN_TRY(contents(*this));
  GEN_ASSERT(bytes_ + kSumBytes == bytes);
  GEN_TRY(number(sum_.value()));
  return flush();
}

Status StateWriter::section(const char* name, size_t bytes, const StateContents& fill) {
  if (sink_ == nullptr) {
    bytes_ += kSectionHeaderBytes + padded(bytes);
    return {};
  }
  GEN_TRY(write(std::as_bytes(std::span(name, 4))));
  GEN_TRY(number(uint32_t{0}));
  GEN_TRY(number(uint64_t{bytes}));
  const size_t start = bytes_;
  GEN_TRY(fill(*this));
  GEN_ASSERT(bytes_ - start == bytes);
  static_cast<void>(start);
  constexpr std::byte kZeros[8] = {};
  return write(std::span(kZeros).first(padded(bytes) - bytes));
}

Status StateWriter::write(std::span<const std::byte> bytes) {
  bytes_ += bytes.size();
  sum_.add(bytes);
  if (held_.size() + bytes.size() > held_.capacity()) GEN_TRY(flush());
  if (bytes.size() > held_.capacity()) return sink_(bytes);
  held_.insert(held_.end(), bytes.begin(), bytes.end());
  return {};
}

Status StateWriter::flush() {
  const Status status = held_.empty() ? Status() : sink_(held_);
  held_.clear();
  return status;
}

Result<std::span<const std::byte>> StateSection::bytes(size_t n) {
  if (n > bytes_.size()) {
    return error(Code::kFormat, "section %s ends %zu bytes early", name_, n - bytes_.size());
  }
  const auto taken = bytes_.first(n);
  bytes_ = bytes_.subspan(n);
  return taken;
}

Status StateSection::expect(size_t n) const {
  if (n == bytes_.size()) return {};
  return error(Code::kFormat, "section %s goes on for %zu bytes, not %zu", name_, bytes_.size(), n);
}

Result<StateReader> StateReader::open(std::span<const std::byte> state) {
  if (state.size() < sizeof(kMagic) || std::memcmp(state.data(), kMagic, sizeof(kMagic)) != 0) {
    return Status(Code::kFormat, "not a saved cache or session");
  }
  if (state.size() < kHeaderBytes + kSumBytes) {
    return error(Code::kFormat, "a state of %zu bytes is shorter than its header", state.size());
  }
  const auto version = load<uint32_t>(state, 8);
  if (version != kVersion) {
    return error(Code::kFormat, "a state of version %u; this library reads version %u", version,
                 kVersion);
  }
  const auto bytes = load<uint64_t>(state, 16);
  if (bytes != state.size()) {
    return error(Code::kFormat, "a state of %llu bytes of which %zu are there",
                 static_cast<unsigned long long>(bytes), state.size());
  }
  const size_t end = state.size() - kSumBytes;
  if (checksum(state.first(end)) != load<uint64_t>(state, end)) {
    return Status(Code::kFormat, "the state is damaged: its checksum is another");
  }
  const auto kind = load<uint32_t>(state, 12);
  if (kind < static_cast<uint32_t>(StateKind::kTensors) ||
      kind > static_cast<uint32_t>(StateKind::kSession)) {
    return error(Code::kFormat, "a state of kind %u, which is unknown", kind);
  }
  return StateReader(static_cast<StateKind>(kind), state.subspan(kHeaderBytes, end - kHeaderBytes));
}

bool StateReader::next_is(const char* name) const noexcept {
  return sections_.size() >= kSectionHeaderBytes && std::memcmp(sections_.data(), name, 4) == 0;
}

Result<StateSection> StateReader::section(const char* name) {
  if (sections_.size() < kSectionHeaderBytes) {
    return error(Code::kFormat, "section %s is missing", name);
  }
  if (std::memcmp(sections_.data(), name, 4) != 0) {
    return error(Code::kFormat, "section %s in place of %s", printable(sections_.first(4)).c_str(),
                 name);
  }
  const auto bytes = load<uint64_t>(sections_, 8);
  const size_t there = sections_.size() - kSectionHeaderBytes;
  if (bytes > there || padded(bytes) > there) {
    return error(Code::kFormat, "section %s of %llu bytes, of which %zu are there", name,
                 static_cast<unsigned long long>(bytes), there);
  }
  const StateSection found(name, sections_.subspan(kSectionHeaderBytes, bytes));
  sections_ = sections_.subspan(kSectionHeaderBytes + padded(bytes));
  return found;
}

Status StateReader::finish() const {
  if (sections_.empty()) return {};
  return error(Code::kFormat, "%zu bytes after the last section", sections_.size());
}

}  // namespace gen::cache
