// SPDX-License-Identifier: Apache-2.0
// Parsing of metadata, whose entries point into the bytes that the caller has copied. See
// metadata_parser.h.
#include "model/gguf/metadata_parser.h"

#include <algorithm>
#include <cinttypes>
#include <limits>
#include <numeric>

#include "base/checked.h"
#include "model/gguf/clean_name.h"

namespace gen::gguf {
namespace {

constexpr uint32_t kTypes = 13;

Status truncated(const Value& entry, const char* what, uint64_t wanted, uint64_t left) noexcept {
  return error(Code::kFormat,
               "metadata '%.*s': %s needs %" PRIu64 " bytes, but %" PRIu64
               " are left in the file; is the download complete?",
               shown_length(entry.key()), entry.key().data(), what, wanted, left);
}

}  // namespace

Status MetadataParser::parse_entry(ByteReader& reader, uint64_t index, uint64_t count, Value* out) {
  uint64_t length = 0;
  if (!reader.take(&length)) {
    return error(Code::kFormat,
                 "metadata count is %" PRIu64 ", but the file ends in entry %" PRIu64
                 "; is the download complete?",
                 count, index);
  }
  if (length == 0 || length > kMaxKeyBytes) {
    return error(Code::kFormat,
                 "metadata entry %" PRIu64 ": key length %" PRIu64 " outside [1, %" PRIu64 "]",
                 index, length, kMaxKeyBytes);
  }
  const auto* key = reinterpret_cast<const char*>(reader.cursor());
  const uint64_t left = reader.remaining();
  if (!reader.skip(length)) {
    return error(Code::kFormat,
                 "metadata entry %" PRIu64 ": key length %" PRIu64 ", but %" PRIu64
                 " bytes are left in the file; is the download complete?",
                 index, length, left);
  }
  if (!is_clean_name({key, static_cast<size_t>(length)})) {
    return error(Code::kFormat,
                 "metadata entry %" PRIu64 ": key is not UTF-8 without control characters", index);
  }
  out->key_ = key;
  out->key_length_ = static_cast<uint32_t>(length);
  const std::string_view name = out->key();
  uint32_t type = 0;
  if (!reader.take(&type)) return truncated(*out, "type", sizeof type, reader.remaining());
  if (type >= kTypes) {
    return error(Code::kFormat, "metadata '%.*s': type %" PRIu32 " outside [0, %" PRIu32 "]",
                 shown_length(name), name.data(), type, kTypes - 1);
  }
  out->type_ = static_cast<ValueType>(type);
  out->element_ = out->type_;
  if (out->type_ == ValueType::kArray) return skip_array(reader, out);
  out->data_ = reader.cursor();
  return skip_value(reader, *out, 0);
}

Status MetadataParser::skip_array(ByteReader& reader, Value* entry) {
  const std::string_view name = entry->key();
  uint32_t type = 0;
  uint64_t count = 0;
  if (!reader.take(&type)) return truncated(*entry, "array type", sizeof type, reader.remaining());
  if (type >= kTypes) {
    return error(Code::kFormat, "metadata '%.*s': array type %" PRIu32 " outside [0, %" PRIu32 "]",
                 shown_length(name), name.data(), type, kTypes - 1);
  }
  if (!reader.take(&count)) {
    return truncated(*entry, "array length", sizeof count, reader.remaining());
  }
  entry->element_ = static_cast<ValueType>(type);
  entry->count_ = count;
  entry->data_ = reader.cursor();
  if (entry->element_ == ValueType::kArray) {
    return error(Code::kUnsupported, "metadata '%.*s': arrays of arrays are not supported",
                 shown_length(name), name.data());
  }
  const bool strings = entry->element_ == ValueType::kString;
  const uint64_t each = strings ? sizeof(uint64_t) : scalar_bytes(entry->element_);
  uint64_t bytes = 0;
  if (!checked_mul(count, each, &bytes) || bytes > reader.remaining()) {
    return error(Code::kFormat,
                 "metadata '%.*s': array length %" PRIu64 " needs at least %" PRIu64
                 " bytes each, but %" PRIu64
                 " bytes are left in the file; is the download complete?",
                 shown_length(name), name.data(), count, each, reader.remaining());
  }
  if (!strings && entry->element_ != ValueType::kBool) {
    return reader.skip(bytes) ? Status() : truncated(*entry, "array", bytes, reader.remaining());
  }
  for (uint64_t i = 0; i < count; ++i) GEN_TRY(skip_value(reader, *entry, i));
  return {};
}

Status MetadataParser::skip_value(ByteReader& reader, const Value& entry, uint64_t element) {
  const std::string_view name = entry.key();
  if (entry.element_ == ValueType::kString) {
    uint64_t length = 0;
    if (!reader.take(&length)) {
      return truncated(entry, "string length", sizeof length, reader.remaining());
    }
    const uint64_t left = reader.remaining();
    if (reader.skip(length)) return {};
    return error(Code::kFormat,
                 "metadata '%.*s': string length %" PRIu64 " of element %" PRIu64 ", but %" PRIu64
                 " bytes are left in the file; is the download complete?",
                 shown_length(name), name.data(), length, element, left);
  }
  const std::byte* value = reader.cursor();
  const uint64_t bytes = scalar_bytes(entry.element_);
  if (!reader.skip(bytes)) return truncated(entry, "value", bytes, reader.remaining());
  if (entry.element_ == ValueType::kBool && load<uint8_t>(value) > 1) {
    return error(Code::kFormat, "metadata '%.*s': bool of value %d in element %" PRIu64,
                 shown_length(name), name.data(), static_cast<int>(load<uint8_t>(value)), element);
  }
  return {};
}

void MetadataParser::end_keys(std::vector<std::byte>& head, const Metadata& metadata) {
  for (const Value& entry : metadata.entries_) {
    const auto* key = reinterpret_cast<const std::byte*>(entry.key_);
    // The byte after a key is the lowest of its type, which has been read.
    head[static_cast<size_t>(key - head.data()) + entry.key_length_] = std::byte{0};
  }
}

Status MetadataParser::index_keys(Metadata* out) {
  const std::vector<Value>& entries = out->entries_;
  out->by_key_.resize(entries.size());
  std::iota(out->by_key_.begin(), out->by_key_.end(), uint32_t{0});
  const auto key = [&](uint32_t index) { return entries[index].key(); };
  std::sort(out->by_key_.begin(), out->by_key_.end(),
            [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  const auto twin = std::adjacent_find(out->by_key_.begin(), out->by_key_.end(),
                                       [&](uint32_t a, uint32_t b) { return key(a) == key(b); });
  if (twin == out->by_key_.end()) return {};
  return error(Code::kFormat, "metadata '%.*s' is there twice", shown_length(key(*twin)),
               key(*twin).data());
}

Status MetadataParser::check_count(const ByteReader& reader, uint64_t count) {
  const uint64_t most =
      std::min<uint64_t>(reader.remaining() / kMinEntryBytes, std::numeric_limits<uint32_t>::max());
  if (count <= most) return {};
  return error(Code::kFormat,
               "metadata count %" PRIu64 " above %" PRIu64
               ", the most that fit in the file; is the download complete?",
               count, most);
}

Status MetadataParser::skip(ByteReader& reader, uint64_t count) {
  GEN_TRY(check_count(reader, count));
  for (uint64_t i = 0; i < count; ++i) {
    Value ignored;
    GEN_TRY(parse_entry(reader, i, count, &ignored));
  }
  return {};
}

Result<std::shared_ptr<const Metadata>> MetadataParser::parse(
    ByteReader& reader, uint64_t count, const std::shared_ptr<std::vector<std::byte>>& head) {
  GEN_TRY(check_count(reader, count));
  auto metadata = std::make_shared<Metadata>();
  metadata->entries_.resize(static_cast<size_t>(count));
  for (uint64_t i = 0; i < count; ++i) {
    GEN_TRY(parse_entry(reader, i, count, &metadata->entries_[static_cast<size_t>(i)]));
  }
  GEN_TRY(index_keys(metadata.get()));
  end_keys(*head, *metadata);
  metadata->bytes_ = head;
  return std::shared_ptr<const Metadata>(std::move(metadata));
}

}  // namespace gen::gguf
