// SPDX-License-Identifier: Apache-2.0
// See gguf_writer.h.
#include "model/gguf/gguf_writer.h"

#include "base/checked.h"
#include "model/gguf/byte_writer.h"

namespace gen::gguf {

void HeaderWriter::copy(const Value& entry) {
  ++entries_;
  append_text(&metadata_, entry.key());
  append_value(&metadata_, static_cast<uint32_t>(entry.type()));
  if (entry.type() == ValueType::kArray) {
    append_value(&metadata_, static_cast<uint32_t>(entry.element_type()));
    append_value(&metadata_, entry.count());
  }
  const auto bytes = entry.bytes();
  metadata_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void HeaderWriter::set_u32(std::string_view key, uint32_t value) {
  ++entries_;
  append_text(&metadata_, key);
  append_value(&metadata_, static_cast<uint32_t>(ValueType::kU32));
  append_value(&metadata_, value);
}

void HeaderWriter::set_string(std::string_view key, std::string_view value) {
  ++entries_;
  append_text(&metadata_, key);
  append_value(&metadata_, static_cast<uint32_t>(ValueType::kString));
  append_text(&metadata_, value);
}

void HeaderWriter::set_strings(std::string_view key, std::span<const std::string> values) {
  ++entries_;
  append_text(&metadata_, key);
  append_value(&metadata_, static_cast<uint32_t>(ValueType::kArray));
  append_value(&metadata_, static_cast<uint32_t>(ValueType::kString));
  append_value(&metadata_, static_cast<uint64_t>(values.size()));
  for (const std::string& value : values) append_text(&metadata_, value);
}

bool HeaderWriter::add_tensor(const TensorInfo& like, DType type) {
  uint64_t bytes = 0;
  const auto row = static_cast<uint64_t>(like.shape[0]);
  if (!dtype_row_bytes(type, row, &bytes)) return false;
  if (!checked_mul(bytes, static_cast<uint64_t>(like.elements()) / row, &bytes)) return false;
  ++tensors_;
  append_text(&infos_, like.name);
  append_value(&infos_, static_cast<uint32_t>(like.n_dims));
  for (int i = 0; i < like.n_dims; ++i) {
    append_value(&infos_, static_cast<uint64_t>(like.shape[static_cast<size_t>(i)]));
  }
  append_value(&infos_, static_cast<uint32_t>(type));
  append_value(&infos_, data_bytes_);
  return checked_add(bytes, padding(bytes), &bytes) &&
         checked_add(data_bytes_, bytes, &data_bytes_);
}

std::string HeaderWriter::finish() const {
  constexpr uint32_t kVersion = 3;
  std::string out(kMagic);
  append_value(&out, kVersion);
  append_value(&out, tensors_);
  append_value(&out, entries_);
  out += metadata_;
  out += infos_;
  out.resize(out.size() + static_cast<size_t>(padding(out.size())));
  return out;
}

}  // namespace gen::gguf
