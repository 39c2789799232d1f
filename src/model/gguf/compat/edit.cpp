// SPDX-License-Identifier: Apache-2.0
// See edit.h. The metadata is written anew and parsed again, so that the parser's checks hold for
// what readers see.
#include "model/gguf/compat/edit.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "model/gguf/byte_reader.h"
#include "model/gguf/byte_writer.h"
#include "model/gguf/clean_name.h"
#include "model/gguf/metadata_parser.h"
#include "model/gguf/tensor_role.h"

namespace gen::gguf::compat {
namespace {

constexpr std::string_view kArchitecture = "general.architecture";
constexpr size_t kMaxTensorName = 64;

std::string typed(ValueType type) {
  std::string out;
  append_value(&out, static_cast<uint32_t>(type));
  return out;
}

std::string array_head(ValueType element, uint64_t count) {
  std::string out = typed(ValueType::kArray);
  append_value(&out, static_cast<uint32_t>(element));
  append_value(&out, count);
  return out;
}

void append_bytes(std::string* out, std::span<const std::byte> bytes) {
  out->append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string serialised(const Value& value) {
  std::string out = value.type() == ValueType::kArray
                        ? array_head(value.element_type(), value.count())
                        : typed(value.type());
  append_bytes(&out, value.bytes());
  return out;
}

/// How many bytes the first `count` elements of an array take.
size_t bytes_of(const Value& value, uint64_t count) {
  if (value.element_type() != ValueType::kString) {
    return static_cast<size_t>(count * scalar_bytes(value.element_type()));
  }
  const std::span<const std::byte> bytes = value.bytes();
  size_t at = 0;
  for (uint64_t i = 0; i < count; ++i) {
    at += sizeof(uint64_t) + static_cast<size_t>(load<uint64_t>(bytes.data() + at));
  }
  return at;
}

}  // namespace

Edit::Edit(const Metadata& metadata, std::vector<TensorInfo>& tensors)
    : metadata_(metadata), tensors_(tensors) {
  entries_.reserve(metadata.entries().size());
  for (const Value& value : metadata.entries()) {
    entries_.push_back({std::string(value.key()), &value, {}});
  }
  architecture_ = text(kArchitecture);
}

ptrdiff_t Edit::index_of(std::string_view key) const noexcept {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.key == key; });
  return found == entries_.end() ? -1 : found - entries_.begin();
}

const Value* Edit::find(std::string_view key) const noexcept {
  const ptrdiff_t index = index_of(key);
  return index < 0 ? nullptr : entries_[static_cast<size_t>(index)].value;
}

Result<uint32_t> Edit::u32(std::string_view key, uint32_t fallback) const {
  const Value* const value = find(key);
  if (value == nullptr) return fallback;
  return metadata_.get_u32(value->key());
}

Result<std::vector<int32_t>> Edit::i32s(std::string_view key) const {
  const Value* const value = find(key);
  if (value == nullptr) return std::vector<int32_t>();
  return metadata_.get_i32s(value->key());
}

std::string Edit::text(std::string_view key) const {
  const Value* const value = find(key);
  if (value == nullptr || value->type() != ValueType::kString) return {};
  const auto read = metadata_.get_string(value->key());
  return read.ok() ? read.value() : std::string();
}

const TensorInfo* Edit::tensor(std::string_view name) const noexcept {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                  [&](const TensorInfo& each) { return each.name == name; });
  return found == tensors_.end() ? nullptr : &*found;
}

void Edit::set_architecture(std::string_view name) {
  const std::string old = architecture_ + ".";
  const std::string now = std::string(name) + ".";
  set_text(kArchitecture, name);
  architecture_ = name;
  // Keys of both names are found by the parser.
  for (Entry& entry : entries_) {
    if (!entry.key.starts_with(old)) continue;
    entry.key = now + entry.key.substr(old.size());
    ++changed_keys_;
  }
}

void Edit::rename_key(std::string_view from, std::string_view to) {
  const ptrdiff_t index = index_of(from);
  if (index < 0 || from == to) return;
  ++changed_keys_;
  if (has(to)) {
    entries_.erase(entries_.begin() + index);
  } else {
    entries_[static_cast<size_t>(index)].key = to;
  }
}

void Edit::drop_key(std::string_view key) {
  const ptrdiff_t index = index_of(key);
  if (index < 0) return;
  ++changed_keys_;
  entries_.erase(entries_.begin() + index);
}

void Edit::set(std::string_view key, std::string made) {
  const ptrdiff_t index = index_of(key);
  if (index >= 0) {
    Entry& entry = entries_[static_cast<size_t>(index)];
    if (entry.value != nullptr && serialised(*entry.value) == made) return;
    entry.value = nullptr;
    entry.made = std::move(made);
  } else {
    entries_.push_back({std::string(key), nullptr, std::move(made)});
  }
  ++changed_keys_;
}

void Edit::set_u32(std::string_view key, uint32_t value) {
  std::string made = typed(ValueType::kU32);
  append_value(&made, value);
  set(key, std::move(made));
}

void Edit::set_f32(std::string_view key, float value) {
  std::string made = typed(ValueType::kF32);
  append_value(&made, value);
  set(key, std::move(made));
}

void Edit::set_text(std::string_view key, std::string_view value) {
  std::string made = typed(ValueType::kString);
  append_text(&made, value);
  set(key, std::move(made));
}

void Edit::set_i32s(std::string_view key, std::span<const int32_t> values) {
  std::string made = array_head(ValueType::kI32, values.size());
  append_bytes(&made, std::as_bytes(values));
  set(key, std::move(made));
}

void Edit::cut_array(std::string_view key, uint64_t count) {
  const Value* const value = find(key);
  if (value == nullptr || value->type() != ValueType::kArray || value->count() <= count) return;
  std::string made = array_head(value->element_type(), count);
  append_bytes(&made, value->bytes().first(bytes_of(*value, count)));
  set(key, std::move(made));
}

void Edit::rename(TensorInfo* tensor, std::string to) {
  tensor->name = std::move(to);
  ++changed_tensors_;
}

void Edit::rename_part(std::string_view from, std::string_view to) {
  const bool inside = from.ends_with('.');
  for (TensorInfo& each : tensors_) {
    const std::string_view name = each.name;
    if (is_media_tensor(name)) continue;
    size_t at = std::string_view::npos;
    if (inside) {
      at = name.find(from);
    } else if (name.ends_with(from)) {
      at = name.size() - from.size();
    }
    if (at == std::string_view::npos) continue;
    rename(&each, each.name.substr(0, at) + std::string(to) + each.name.substr(at + from.size()));
  }
}

void Edit::rename_tensor(std::string_view from, std::string to) {
  for (TensorInfo& each : tensors_) {
    if (each.name == from) return rename(&each, std::move(to));
  }
}

void Edit::add_to(TensorInfo* tensor, float term) {
  std::vector<std::byte>& copy = made_.emplace_back(tensor->data.begin(), tensor->data.end());
  for (size_t at = 0; at + sizeof(float) <= copy.size(); at += sizeof(float)) {
    const float sum = load<float>(copy.data() + at) + term;
    std::memcpy(copy.data() + at, &sum, sizeof sum);
  }
  tensor->data = copy;
  tensor->part = -1;  // of no file
  tensor->offset_in_file = 0;
}

Result<std::shared_ptr<const Metadata>> Edit::finish(std::vector<std::vector<std::byte>>* made) {
  for (const TensorInfo& each : tensors_) {
    if (each.name.size() <= kMaxTensorName) continue;
    return error(Code::kFormat,
                 "tensor '%s': the name that it is translated to is longer than %zu bytes",
                 each.name.c_str(), kMaxTensorName);
  }
  std::string written;
  for (const Entry& entry : entries_) {
    append_text(&written, entry.key);
    written += entry.value != nullptr ? serialised(*entry.value) : entry.made;
  }
  const auto bytes = std::as_bytes(std::span(written));
  const auto head = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  ByteReader reader(*head);
  *made = std::move(made_);
  return MetadataParser::parse(reader, entries_.size(), head);
}

}  // namespace gen::gguf::compat
