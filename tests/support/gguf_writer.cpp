// SPDX-License-Identifier: Apache-2.0
// Laying a GGUF file out: header, metadata, tensor infos, padding, data. See gguf_writer.h.
#include "support/gguf_writer.h"

#include <fstream>

namespace gen::test {

void GgufWriter::append_string(std::vector<std::byte>* out, std::string_view text) {
  append(out, static_cast<uint64_t>(text.size()));
  const auto* from = reinterpret_cast<const std::byte*>(text.data());
  out->insert(out->end(), from, from + text.size());
}

GgufWriter& GgufWriter::set_string(std::string key, std::string_view value) {
  std::vector<std::byte> bytes;
  append_string(&bytes, value);
  entries_.push_back({std::move(key), kString, 0, 0, std::move(bytes)});
  return *this;
}

GgufWriter& GgufWriter::set_strings(std::string key, const std::vector<std::string>& values) {
  std::vector<std::byte> bytes;
  for (const std::string& value : values) append_string(&bytes, value);
  entries_.push_back({std::move(key), kArray, kString, values.size(), std::move(bytes)});
  return *this;
}

GgufWriter& GgufWriter::tensor(std::string name, uint32_t type, std::vector<uint64_t> dims,
                               std::vector<std::byte> data) {
  const uint64_t n_bytes = data.size();
  tensors_.push_back({std::move(name), type, std::move(dims), std::move(data), n_bytes});
  return *this;
}

GgufWriter& GgufWriter::tensor_elsewhere(std::string name, uint32_t type,
                                         std::vector<uint64_t> dims, uint64_t n_bytes) {
  tensors_.push_back({std::move(name), type, std::move(dims), {}, n_bytes});
  return *this;
}

GgufWriter& GgufWriter::alignment(uint64_t bytes) {
  alignment_ = bytes;
  return *this;
}

void GgufWriter::pad(std::vector<std::byte>* out) const {
  while (out->size() % alignment_ != 0) out->push_back(std::byte{0});
}

GgufImage GgufWriter::head() const {
  GgufImage image;
  std::vector<std::byte>& out = image.bytes;
  const auto mark = [&](const std::string& name) { image.marks.emplace(name, out.size()); };
  mark("magic");
  for (const char c : {'G', 'G', 'U', 'F'}) append(&out, c);
  mark("version");
  append(&out, version_);
  mark("tensor_count");
  append(&out, static_cast<uint64_t>(tensors_.size()));
  mark("metadata_count");
  append(&out, static_cast<uint64_t>(entries_.size()));
  for (const Entry& entry : entries_) {
    mark(entry.key + ".key_length");
    append_string(&out, entry.key);
    image.marks.emplace(entry.key + ".key", out.size() - entry.key.size());
    mark(entry.key + ".type");
    append(&out, entry.type);
    if (entry.type == kArray) {
      mark(entry.key + ".array_type");
      append(&out, entry.element);
      mark(entry.key + ".array_length");
      append(&out, entry.count);
    }
    mark(entry.key + ".value");
    out.insert(out.end(), entry.value.begin(), entry.value.end());
  }
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    mark(tensor.name + ".name_length");
    append_string(&out, tensor.name);
    image.marks.emplace(tensor.name + ".name", out.size() - tensor.name.size());
    mark(tensor.name + ".n_dims");
    append(&out, static_cast<uint32_t>(tensor.dims.size()));
    for (size_t i = 0; i < tensor.dims.size(); ++i) {
      mark(tensor.name + ".dim" + std::to_string(i));
      append(&out, tensor.dims[i]);
    }
    mark(tensor.name + ".type");
    append(&out, tensor.type);
    mark(tensor.name + ".offset");
    append(&out, offset);
    offset += (tensor.n_bytes + alignment_ - 1) / alignment_ * alignment_;
  }
  mark("infos_end");
  if (!tensors_.empty()) pad(&out);
  mark("data");
  return image;
}

GgufImage GgufWriter::build() const {
  GgufImage image = head();
  std::vector<std::byte>& out = image.bytes;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    image.marks.emplace(tensors_[i].name + ".data", out.size());
    out.insert(out.end(), tensors_[i].data.begin(), tensors_[i].data.end());
    if (i + 1 < tensors_.size()) pad(&out);  // the end is not padded: a truncation must hurt
  }
  return image;
}

bool write_file(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return static_cast<bool>(file.flush());
}

}  // namespace gen::test
